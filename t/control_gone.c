/* Operators who have left: what they asked for is not begun, or ends between two
 * messages. */
#include "admin/control.h"

#include "base/memory.h"
#include "t/queue_home.h"
#include "t/until.h"

#include <sys/socket.h>
#include <sys/un.h>

struct world {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct net *net;
    struct manager *manager;
    struct route_table *routes;
    struct control *control;
    char path[100];
};

static void
turns(struct world *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        loop_turn(w->loop, 1);
}

static void
begin(struct world *w, const char *home)
{
    char error[300] = "";
    *w = (struct world){.loop = loop_new()};
    struct manager_settings settings = {
        .hostname = "h.test",
        .queue = {.spool = home,        .slices = 1},
        .sched = { .active_limit = 1000, .session_limit = 10,   .seed = 1}
    };
    struct route_settings routes = {.routes = TEXT("* hold")};
    transport_default(&routes.base);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&w->lines, 1024 * 1024);
    log_capture(w->log, &w->lines);
    w->net = net_new(w->loop);
    w->routes = route_new(&routes, &w->lines);
    snprintf(w->path, sizeof(w->path), "%s/control", home);
    if (w->routes == NULL || manager_new(&w->manager, w->loop, w->log, &settings,
                                         w->routes, error, sizeof(error)) != 0)
        abort();
    w->control =
        control_new(w->loop, w->net, w->log, w->manager, w->path, error, sizeof(error));
    if (w->control == NULL)
        abort();
    turns(w, 20);
}

static void
end(struct world *w)
{
    control_free(&w->control);
    manager_free(&w->manager);
    net_free(&w->net);
    route_free(&w->routes);
    log_free(&w->log);
    buffer_free(&w->lines);
    loop_free(&w->loop);
}

static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct world *w = context;
    if (refusal)
        abort();
    manager_accept(w->manager, &e);
}

/* A route holds them. */
static void
send_many(struct world *w, const char *home, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct outcome refusal;
        struct envelope *e = envelope_new();
        struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
        if (!envelope_add(e, TEXT("a@b.test"), NOTIFY_NEVER, TEXT("")) ||
            draft == NULL || !queue_write(draft, TEXT("A: b\r\n\r\n")))
            abort();
        queue_name(draft, e);
        queue_commit(&draft, &e, on_stored, w);
    }
    until(w, count_files(home, "hold") >= count);
    is_number(count_files(home, "hold"), count, "messages wait");
}

/* A client in a few system calls, so that it may be gone before the daemon runs. */
static int
ask(const struct world *w, const char *request)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    size_t length = strlen(request);
    strcpy(address.sun_path, w->path);
    if (client < 0 ||
        connect(client, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        send(client, request, length, MSG_NOSIGNAL) != (ssize_t)length)
        abort();
    return client;
}

static unsigned
count_removed(const struct world *w)
{
    static const char words[] = ": removed by the operator";
    unsigned count = 0;
    struct text rest = buffer_text(&w->lines), line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        count += memmem(line.at, line.length, words, strlen(words)) != NULL;
    return count;
}

static bool
has_logged(const struct world *w, const char *words)
{
    return w->lines.length > 0 &&
           memmem(w->lines.at, w->lines.length, words, strlen(words)) != NULL;
}

static void
test_gone_before(const char *home)
{
    static const char *const requests[] = {
        "{\"command\":\"rm\",\"all\":true}\n",
        "{\"command\":\"bounce\",\"all\":true}\n",
        "{\"command\":\"release\",\"all\":true}\n",
        "{\"command\":\"status\"}\n{\"command\":\"rm\",\"all\":true}\n",
        "{\"command\":\"retry\",\"all\":true}\n"};
    struct world w;
    begin(&w, home);
    send_many(&w, home, 3);
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
        close(ask(&w, requests[i]));
        turns(&w, 100);
        is_number(count_files(home, "hold"), 3, "nothing is begun");
        ok(!has_logged(&w, "by the operator") && !has_logged(&w, "the operator wants"));
    }
    int alive = ask(&w, requests[0]);
    until(&w, count_files(home, "hold") == 0);
    is_number(count_files(home, "hold"), 0, "who waits for the answer has it done");
    close(alive);
    end(&w);
}

static void
test_gone_between(const char *home)
{
    enum { MANY = 300 };
    struct world w;
    begin(&w, home);
    send_many(&w, home, MANY);
    int client = ask(&w, "{\"command\":\"rm\",\"all\":true}\n");
    until(&w, count_removed(&w) > 0);
    unsigned removed = count_removed(&w);
    ok_named(removed > 0 && removed < MANY, "some are removed");
    close(client);
    turns(&w, 100);
    is_number(count_removed(&w), removed, "not one more");
    until(&w, count_files(home, "hold") == MANY - removed);
    end(&w);
    is_number(count_files(home, "hold"), MANY - removed, "the rest stays");
}

/* It has said all, and waits for the answer. */
static void
test_half_closed(const char *home)
{
    struct world w;
    char answer[20];
    begin(&w, home);
    int client = ask(&w, "{\"command\":\"sites\",\"from\":0}\n");
    shutdown(client, SHUT_WR);
    ssize_t got = -1;
    until(&w, (got = recv(client, answer, sizeof(answer), MSG_DONTWAIT)) >= 0);
    ok_named(got > 10 && memcmp(answer, "{\"ok\":true", 10) == 0, "it is answered");
    close(client);
    end(&w);
}

int
main(void)
{
    static void (*const tests[])(const char *) = {test_gone_before, test_gone_between,
                                                  test_half_closed};
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
        char home[64];
        make_home(home);
        tests[i](home);
        remove_home(home);
    }
    return done();
}
