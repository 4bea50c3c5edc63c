/* Operators who have left: their requests are not begun, or end between two
 * messages. */
/* link: t/sim/clock.c */
#include "t/support/control_world.h"
#include "t/support/queue_home.h"
#include "t/support/until.h"

#include <sys/socket.h>
#include <sys/un.h>

static void
begin(struct world *w, const char *home)
{
    control_world_begin(w, home, TEXT("* hold"));
    control_turns(w, 20);
}

static void
send_many(struct world *w, const char *home, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        post_mail(w, 1, "b.test");
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
    FIXTURE(world, w, begin, control_world_end, home);
    send_many(&w, home, 3);
    for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
        close(ask(&w, requests[i]));
        control_turns(&w, 100);
        is_number(count_files(home, "hold"), 3, "nothing is begun");
        ok(!has_logged(&w, "by the operator") && !has_logged(&w, "the operator wants"));
    }
    int alive = ask(&w, requests[0]);
    until(&w, count_files(home, "hold") == 0);
    is_number(count_files(home, "hold"), 0, "who waits for the answer has it done");
    close(alive);
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
    control_turns(&w, 100);
    is_number(count_removed(&w), removed, "not one more");
    until(&w, count_files(home, "hold") == MANY - removed);
    control_world_end(&w);
    is_number(count_files(home, "hold"), MANY - removed, "the rest stays");
}

/* The number of lines that come back until the connection ends, which it must. */
static size_t
lines_until_end(struct world *w, int client)
{
    char some[4096];
    size_t lines = 0;
    ssize_t got = -1;
    for (;;) {
        until(w, (got = recv(client, some, sizeof(some), MSG_DONTWAIT)) >= 0);
        if (got <= 0)
            break;
        for (ssize_t i = 0; i < got; i++)
            lines += some[i] == '\n';
    }
    is_number(got, 0, "the server closes");
    return lines;
}

/* More requests than a turn answers, or an operation of several turns among them, and the
 * end of input in one of the next turns. A line without its end is no request. */
static void
test_half_closed_early(const char *home)
{
    enum { MANY = 40 };
    static const char quick[] = "{\"command\":\"sites\",\"from\":0}\n";
    static const char slow[] = "{\"command\":\"hold\",\"all\":true}\n";
    char requests[(MANY + 1) * sizeof(quick)];
    FIXTURE(world, w, begin, control_world_end, home);
    for (int round = 0; round < 8; round++) {
        bool with_slow = round % 2 == 1;
        requests[0] = '\0';
        for (int i = 0; i < MANY; i++)
            strcat(requests, with_slow && i == 3 ? slow : quick);
        strcat(requests, "{\"command\"");
        int client = ask(&w, requests);
        for (int i = 0; i < round / 2; i++)
            loop_turn(w.loop, 1);
        shutdown(client, SHUT_WR);
        is_number(lines_until_end(&w, client), MANY, "each request is answered");
        close(client);
    }
}

/* It has said all, and waits for the answer. */
static void
test_half_closed(const char *home)
{
    char answer[20];
    FIXTURE(world, w, begin, control_world_end, home);
    int client = ask(&w, "{\"command\":\"sites\",\"from\":0}\n");
    shutdown(client, SHUT_WR);
    ssize_t got = -1;
    until(&w, (got = recv(client, answer, sizeof(answer), MSG_DONTWAIT)) >= 0);
    ok_named(got > 10 && memcmp(answer, "{\"ok\":true", 10) == 0, "it is answered");
    close(client);
}

int
main(void)
{
    static void (*const tests[])(const char *) = {
        test_gone_before, test_gone_between, test_half_closed, test_half_closed_early};
    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
        char home[64];
        queue_home_make_home(home);
        tests[i](home);
        remove_home(home);
    }
    return done();
}
