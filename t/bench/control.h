/* The control port of the sink, and its counters in JSON. */
#ifndef T_BENCH_CONTROL_H
#define T_BENCH_CONTROL_H

#include "t/bench/door.h"

enum { CONTROL_LINE_MAX = 1024 };

/* A client of the control port. */
struct control_server {
    struct server *server;
    struct net_connection *connection;
    struct loop_timer timer;
    bool waiting;
    unsigned long long wanted;
    struct control_server *prev, *next;
};

struct server {
    struct sink sink;
    const char *control, *count_file, *directory;
    struct control_server *controls;
};

/* --- Counters --- */

static void
reset_counters(struct sink *sink)
{
    for (size_t i = 0; i < sink->site_count; i++)
        tally_reset(&sink->sites[i].tally);
    tally_reset(&sink->total);
}

/* One line, from malloc(); takes the object. */
static char *
line_of(json_t *object)
{
    char *text = json_dumps(object, 0), *line;
    if (text == NULL || asprintf(&line, "%s\n", text) < 0)
        abort();
    free(text);
    json_decref(object);
    return line;
}

static char *
total_line(struct sink *sink)
{
    json_t *object = json_object();
    tally_print(&sink->total, object);
    return line_of(object);
}

static char *
site_line(struct site *site)
{
    json_t *object = json_object();
    char address[NET_ADDRESS_TEXT_MAX];
    net_address_format(&site->address, address);
    json_object_set_new(object, "address", json_string(address));
    tally_print(&site->tally, object);
    return line_of(object);
}

static void
print_counters(void *context)
{
    struct server *server = context;
    char *line = total_line(&server->sink);
    /* The file first: a reader of the line finds it written. */
    FILE *file = server->count_file ? fopen(server->count_file, "w") : NULL;
    if (file != NULL) {
        fputs(line, file);
        fclose(file);
    }
    fputs(line, stdout);
    fflush(stdout);
    free(line);
}

/* --- Control port --- */

static void
control_end(struct control_server *c)
{
    DL_DELETE(c->server->controls, c);
    loop_timer_stop(c->server->sink.loop, &c->timer);
    net_close(&c->connection);
    loop_release(c->server->sink.loop, free, c);
}

/* Takes the line. */
static void
control_say(struct control_server *c, char *line)
{
    net_send(c->connection, text_from(line));
    free(line);
}

static void
control_complain(struct control_server *c, const char *what)
{
    control_say(c, line_of(json_pack("{s:s}", "error", what)));
}

static void
control_server_answer(struct control_server *c)
{
    control_say(c, total_line(&c->server->sink));
}

static void
on_wait_over(void *context)
{
    struct control_server *c = context;
    c->waiting = false;
    loop_timer_stop(c->server->sink.loop, &c->timer);
    control_server_answer(c);
    net_want_input(c->connection, true);
}

static void
on_arrived(struct sink *sink)
{
    struct server *server = memory_container(sink, struct server, sink);
    struct control_server *c, *next;
    DL_FOREACH_SAFE (server->controls, c, next) {
        if (c->waiting && sink->total.count[COUNT_MESSAGES] >= c->wanted)
            on_wait_over(c);
    }
}

static void
on_stats(struct control_server *c, struct text arguments)
{
    (void)arguments;
    control_server_answer(c);
}

static void
on_reset(struct control_server *c, struct text arguments)
{
    (void)arguments;
    reset_counters(&c->server->sink);
    control_server_answer(c);
}

static void
on_wait(struct control_server *c, struct text arguments)
{
    struct text count = TEXT(""), seconds = TEXT("");
    uint64_t wanted, wait_s;
    text_word(&arguments, " \t", &count);
    text_word(&arguments, " \t", &seconds);
    if (!text_number(count, INT64_MAX, &wanted) ||
        !text_number(seconds, 1000000, &wait_s)) {
        control_complain(c, "wait N SECONDS");
        return;
    }
    c->wanted = wanted;
    c->waiting = true;
    net_want_input(c->connection, false);
    loop_timer_start(c->server->sink.loop, &c->timer, (int64_t)wait_s * 1000,
                     on_wait_over, c);
    on_arrived(&c->server->sink);
}

static struct site *
find_site(struct sink *sink, struct text name)
{
    struct net_address address;
    if (!net_address_parse(name, 0, &address))
        return NULL;
    for (size_t i = 0; i < sink->site_count; i++)
        if (net_address_equal(&sink->sites[i].address, &address))
            return &sink->sites[i];
    return NULL;
}

static void
on_site(struct control_server *c, struct text arguments)
{
    struct text name = TEXT(""), verb = TEXT("");
    text_word(&arguments, " \t", &name);
    bool asked = !text_word(&arguments, " \t", &verb);
    struct site *site = find_site(&c->server->sink, name);
    if (site == NULL) {
        control_complain(c, "no such address");
        return;
    }
    if (!asked && (!text_equal(verb, TEXT("set")) ||
                   text_trim(arguments).length == 0 || !site_set(site, arguments))) {
        control_complain(c, "site ADDRESS, or that with set KEY=VALUE...");
        return;
    }
    control_say(c, site_line(site));
}

/* Clients with a late answer are answered now. */
static void
on_hurry(struct control_server *c, struct text arguments)
{
    struct session *s;
    (void)arguments;
    DL_FOREACH (c->server->sink.open, s)
        if (s->waiting)
            loop_timer_start(c->server->sink.loop, &s->timer, 0, on_waited, s);
    control_server_answer(c);
}

static void
control_command(struct control_server *c, struct text line)
{
    static const struct {
        const char *verb;
        void (*run)(struct control_server *c, struct text arguments);
    } rows[] = {
        {"stats", on_stats},
        {"reset", on_reset},
        {"wait",  on_wait },
        {"hurry", on_hurry},
        {"site",  on_site }
    };
    struct text verb = TEXT("");
    text_word(&line, " \t", &verb);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!text_equal(verb, text_from(rows[i].verb)))
            continue;
        rows[i].run(c, line);
        return;
    }
    control_complain(c, "stats, reset, wait N SECONDS, hurry or site ADDRESS ...");
}

static void
on_control_event(void *context, enum net_event event)
{
    struct control_server *c = context;
    if (event == NET_CONNECTED || event == NET_DRAINED)
        return;
    if (event != NET_INPUT) {
        control_end(c);
        return;
    }
    while (!c->waiting) {
        struct text in = net_input(c->connection);
        size_t end = text_find(in, '\n');
        if (end == TEXT_NONE || end > CONTROL_LINE_MAX) {
            if (in.length > CONTROL_LINE_MAX)
                control_end(c);
            return;
        }
        char line[CONTROL_LINE_MAX + 1];
        text_copy(line, sizeof(line), text_trim(text_before(in, end)));
        net_consume(c->connection, end + 1);
        control_command(c, text_from(line));
    }
}

static void
control_accept(void *context, struct net_connection *connection)
{
    struct server *server = context;
    struct control_server *c = memory_new(sizeof(*c));
    c->server = server;
    c->connection = connection;
    DL_APPEND(server->controls, c);
    net_attach(connection, on_control_event, c);
}

#endif
