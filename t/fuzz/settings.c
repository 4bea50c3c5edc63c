/* Fuzz target: settings, as a file and as arguments, through all that reads them. */
#include "admin/settings/options.h"
#include "base/settings/settings_file.h"
#include "smtp/delivery/delivery.h"
#include "smtp/session/listener.h"
#include "smtp/access/policy.h"
#include "sched/route/bind_address.h"

#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PRINTED_MAX = 8 * 1024 * 1024 };

/* Every line is told once, in order, without line ends in its key. */
static void
check_file(struct text t)
{
    struct settings_file file;
    struct settings_line line;
    size_t before = 0;
    settings_file_start(&file, t);
    while (settings_file_next(&file, &line)) {
        must(line.number > before);
        before = line.number;
        must((line.error != NULL) == (line.key.length == 0));
        must(text_find(line.key, '\n') == TEXT_NONE);
    }
    settings_file_end(&file);
}

/* All but what reads files: keys and users. */
static void
check_listener(const struct options *o, struct buffer *mistakes)
{
    struct listener_settings settings = o->server;
    settings.tls_certificate = settings.tls_key = settings.auth_users = TEXT("");
    (void)!listener_check(&settings, mistakes);
}

static void
check_values(const struct options *o)
{
    struct buffer mistakes;
    struct policy policy;
    struct endpoint *endpoints;
    struct bind_address sources;
    size_t count;
    buffer_init(&mistakes, 64 * 1024);
    struct route_table *routes = options_routes(o, &mistakes);
    route_free(&routes);
    (void)!policy_read(&policy, o->server.relay_from, false, &mistakes);
    policy_free(&policy);
    if (policy_endpoints_read(o->server.listen, &endpoints, &count, &mistakes))
        must(count <= ENDPOINTS_MAX);
    free(endpoints);
    (void)!bind_address_read(&sources, o->delivery.smtp_bind, &mistakes);
    check_listener(o, &mistakes);
    (void)!delivery_check(&o->delivery, &mistakes);
    must(o->delivery.mx_address_limit > 0 && o->delivery.connect_timeout_ms > 0);
    buffer_free(&mistakes);
}

/* Each line is an argument "key=value". */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { ARGUMENTS = 64 };
    static char none[] = "PETREL_CONFIG=/dev/null";
    char *environment[] = {none, NULL}, *arguments[ARGUMENTS + 1] = {NULL};
    struct text t = text_of(data, size), rest = t, line;
    size_t count = 0;
    check_file(t);
    while (count < ARGUMENTS && rest.length > 0 && text_cut(&rest, '\n', &line)) {
        char *argument = text_string(line);
        for (char *at = argument; *at != '\0'; at++)
            if (*at == '\t') /* so that a value may have lines */
                *at = '\n';
        if (strstr(argument, "_file") != NULL) /* read no files here */
            free(argument);
        else
            arguments[count++] = argument;
    }
    struct options options;
    struct options_sources sources = {.environment = environment,
                                      .overrides = arguments};
    struct settings *s = options_read(&sources, &options);
    if (settings_errors(s).length == 0)
        check_values(&options);
    struct buffer printed;
    buffer_init(&printed, PRINTED_MAX);
    settings_print(s, &printed);
    buffer_free(&printed);
    settings_free(&s);
    for (size_t i = 0; i < count; i++)
        free(arguments[i]);
    return 0;
}
