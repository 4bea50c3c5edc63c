/* Prints the address of the page, and carries it there where nothing listens. */
#include "admin/tool/page_command.h"

#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    ERROR_MAX = 512,
    PAGE_PORT = 8025,
    PORT_MAX = 65535,
    CARRIED_MAX = 64, /* connections; the daemon serves 32 */
    CARRIED_LOW = 1   /* reads on when all has been written */
};

/* --- Carrying ---------------------------------------------------------------------- */

struct carrier {
    struct loop *loop;
    struct net *net;
    struct net_address control;
    size_t count;
};

/* A browser's connection and the one to the control socket. */
struct carried {
    struct carrier *carrier;
    struct net_connection *browser, *daemon;
    bool is_http;  /* the daemon has said so */
    bool is_ended; /* it says no more; its last bytes are carried first */
};

static void
carried_end(struct carried *c)
{
    if (c->browser == NULL)
        return;
    /* Unsent bytes still go. */
    net_close(&c->browser);
    net_close(&c->daemon);
    c->carrier->count--;
    loop_release(c->carrier->loop, free, c);
}

static void
carried_copy(struct net_connection *from, struct net_connection *to)
{
    struct text input = net_input(from);
    if (net_unsent(to) >= NET_HIGH_WATER) {
        net_want_input(from, false);
        return;
    }
    net_send(to, input);
    net_consume(from, input.length);
}

/* The first line of the daemon answers the question that makes it HTTP. */
static bool
carried_begin(struct carried *c)
{
    struct text input = net_input(c->daemon);
    size_t end = text_find(input, '\n');
    if (end >= input.length)
        return true;
    c->is_http = text_starts(input, TEXT("{\"ok\":true"));
    net_consume(c->daemon, end + 1);
    net_want_input(c->browser, true);
    return c->is_http;
}

static void
carried_finish(struct carried *c)
{
    carried_copy(c->daemon, c->browser);
    if (net_input(c->daemon).length == 0)
        carried_end(c);
}

static void
carried_on_daemon(void *context, enum net_event event)
{
    struct carried *c = context;
    if (event == NET_DRAINED) {
        net_want_input(c->browser, c->is_http);
    } else if (event == NET_INPUT) {
        if (!c->is_http && !carried_begin(c))
            carried_end(c);
        else if (c->is_http)
            carried_copy(c->daemon, c->browser);
    } else if (event == NET_ENDED) {
        c->is_ended = true;
        carried_finish(c);
    } else if (event != NET_CONNECTED) {
        carried_end(c);
    }
}

static void
carried_on_browser(void *context, enum net_event event)
{
    struct carried *c = context;
    if (event == NET_DRAINED && c->is_ended)
        carried_finish(c);
    else if (event == NET_DRAINED)
        net_want_input(c->daemon, true);
    else if (event == NET_INPUT && c->is_http)
        carried_copy(c->browser, c->daemon);
    else if (event == NET_ENDED || event == NET_FAILED)
        carried_end(c);
}

static void
carrier_on_accept(void *context, struct net_connection *browser)
{
    struct carrier *carrier = context;
    if (carrier->count >= CARRIED_MAX) {
        net_abort(&browser);
        return;
    }
    struct carried *c = memory_new(sizeof(*c));
    carrier->count++;
    *c = (struct carried){.carrier = carrier, .browser = browser};
    net_attach(browser, carried_on_browser, c);
    net_set_low_water(browser, CARRIED_LOW);
    net_want_input(browser, false);
    c->daemon =
        net_connect(carrier->net, &carrier->control, NULL, carried_on_daemon, c);
    net_set_low_water(c->daemon, CARRIED_LOW);
    net_send(c->daemon, TEXT("{\"command\":\"http\"}\n"));
}

/* Returns only if the port is not free: a signal ends the process. */
static int
page_carry(struct loop *loop, const char *control, unsigned port, const char *key)
{
    char error[ERROR_MAX];
    struct carrier carrier = {
        .loop = loop, .net = net_new(loop), .control = {.family = NET_UNIX}};
    struct net_address at;
    text_copy(carrier.control.path, sizeof(carrier.control.path), text_from(control));
    (void)net_address_parse_ip(TEXT("127.0.0.1"), &at);
    at.port = (uint16_t)port;
    struct net_listener *listener = net_listen(carrier.net, &at, 0, carrier_on_accept,
                                               &carrier, error, sizeof(error));
    if (listener == NULL) {
        fprintf(stderr, "petrel page: %s; --port N uses another port\n", error);
        net_free(&carrier.net);
        return EX_UNAVAILABLE;
    }
    printf("http://127.0.0.1:%u/#k=%s\n",
           (unsigned)net_listener_address(listener)->port, key);
    puts("The key is valid once, for 5 minutes. This command carries the page to the "
         "daemon until it is interrupted.");
    (void)fflush(stdout);
    loop_run(loop);
    net_listener_free(&listener);
    net_free(&carrier.net);
    return 0;
}

/* --- The command -------------------------------------------------------------------- */

static int
page_usage(void)
{
    fputs("usage: petrel page [--read] [--port N]\n", stderr);
    return EX_USAGE;
}

/* NULL: standard error has the reason, and code its exit code. */
static json_t *
page_ask(struct loop *loop, const char *control, bool reads, int *code)
{
    struct control_client *daemon =
        control_client_reach(loop, control, "petrel page", code);
    if (daemon == NULL)
        return NULL;
    json_t *answer = control_client_ask(
        daemon, "petrel page",
        json_pack("{s:s,s:s}", "command", "page", "access", reads ? "read" : "operate"),
        code);
    *code = EX_UNAVAILABLE;
    control_client_free(&daemon);
    return answer;
}

int
page_command(int count, char **arguments, const struct options *options)
{
    bool reads = false, has_port = false;
    uint64_t port = PAGE_PORT;
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--read") == 0)
            reads = true;
        else if (strcmp(arguments[i], "--port") == 0 && i + 1 < count &&
                 text_number(text_from(arguments[i + 1]), PORT_MAX, &port) && port > 0)
            has_port = ++i > 0;
        else
            return page_usage();
    }
    int code = EX_UNAVAILABLE;
    struct loop *loop = loop_new();
    json_t *answer = page_ask(loop, options->control, reads, &code), *url;
    json_t *urls = json_object_get(answer, "urls");
    size_t i;
    if (answer != NULL && (has_port || json_array_size(urls) == 0)) {
        code = page_carry(loop, options->control, (unsigned)port,
                          json_field_string(answer, "key"));
    } else if (answer != NULL) {
        json_array_foreach (urls, i, url)
            printf("%s#k=%s\n", json_string_value(url),
                   json_field_string(answer, "key"));
        puts("The key is valid once, for 5 minutes.");
        code = 0;
    }
    json_decref(answer);
    loop_free(&loop);
    return code;
}
