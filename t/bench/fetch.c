/* fetch: one call of base/http/http_call.h, for tests against other people's servers.
 *
 *   fetch ANCHORS URL DEADLINE_MS [BODY]
 * Prints "status S", the response's fields, an empty line and its body; or "error WHY".
 * With a BODY it is a POST. */
#include "base/dns/dns.h"
#include "base/http/http_call.h"
#include "base/loop/loop.h"
#include "base/net/net.h"

#include <stdio.h>
#include <stdlib.h>

static void
print_result(void *context, const struct http_result *result)
{
    if (result->error != NULL) {
        printf("error %s\n", result->error);
    } else {
        struct text fields = http_reader_fields(result->response);
        struct text body = buffer_text(&result->response->body);
        printf("status %u\n%.*s\r\n", result->response->status, TEXT_ARGS(fields));
        fwrite(body.at, 1, body.length, stdout);
    }
    loop_stop(context);
}

int
main(int argc, char **argv)
{
    char error[TLS_ERROR_MAX];
    struct http_request request = {.method = TEXT("GET")};
    if (argc < 4) {
        fprintf(stderr, "usage: fetch ANCHORS URL DEADLINE_MS [BODY]\n");
        return 64;
    }
    struct loop *loop = loop_new();
    struct tls *tls = tls_new(error, sizeof(error));
    struct tls_client *client = tls_client_new(tls, argv[1], error, sizeof(error));
    struct http_caller_settings settings = {
        .loop = loop,
        .net = net_new(loop),
        .dns = dns_new(loop, TEXT("127.0.0.1:1"), error, sizeof(error)),
        .tls = &client};
    if (client == NULL || settings.dns == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    struct http_call_options options = {.deadline_ms = strtol(argv[3], NULL, 10),
                                        .cleartext = true};
    if (argc > 4)
        request = (struct http_request){.method = TEXT("POST"),
                                        .type = TEXT("text/plain"),
                                        .body = text_from(argv[4])};
    struct http_caller *caller = http_caller_new(&settings);
    http_call_start(caller, text_from(argv[2]), &request, &options, print_result, loop);
    loop_run(loop);
    http_caller_free(&caller);
    dns_free(&settings.dns);
    net_free(&settings.net);
    tls_client_free(&client);
    tls_free(&tls);
    loop_free(&loop);
    return 0;
}
