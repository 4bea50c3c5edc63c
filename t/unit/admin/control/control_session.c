/* Requests and answers without a connection: a transport that is a buffer, which is full,
 * or goes, when the test says so; and what another host may ask. */
#include "admin/control/control_session.h"

#include "queue/queue_operator.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/until.h"

enum { SOME = 20, MESSAGES = 120 };

static char folder[40];
static struct world w;
static struct control_service service;

struct wire {
    struct control_session *session;
    struct buffer lines;
    unsigned count, done;
    size_t full_at; /* bytes */
    bool leaves;    /* when it is done */
};

static void
on_line(void *context, struct text json)
{
    struct wire *wire = context;
    wire->count++;
    ok(buffer_add(&wire->lines, json) && buffer_add_byte(&wire->lines, '\n'));
}

static bool
is_full(void *context)
{
    const struct wire *wire = context;
    return wire->lines.length >= wire->full_at;
}

static bool
is_idle(void *context)
{
    const struct wire *wire = context;
    return wire->lines.length == 0;
}

static void
on_done(void *context)
{
    struct wire *wire = context;
    wire->done++;
    if (wire->leaves)
        control_session_free(&wire->session);
}

static void
wire_begin(struct wire *wire, bool is_sibling, size_t line_max)
{
    *wire = (struct wire){.full_at = SIZE_MAX};
    buffer_init(&wire->lines, 1024 * 1024);
    wire->session = control_session_new(&service, &(struct control_transport){.context = wire, .line = on_line, .is_full = is_full, .is_idle = is_idle, .done = on_done, .is_sibling = is_sibling, .line_max = line_max});
}

static void
wire_end(struct wire *wire)
{
    control_session_free(&wire->session);
    ok(wire->session == NULL);
    control_session_free(&wire->session);
    buffer_free(&wire->lines);
}

static bool
has(const struct wire *wire, const char *words)
{
    return wire->lines.length > 0 && memmem(wire->lines.at, wire->lines.length, words, strlen(words)) != NULL;
}

static bool
take(struct wire *wire, const char *line)
{
    return control_session_take(wire->session, text_from(line));
}

TEST(owner)
{
    FIXTURE(wire, wire, wire_begin, wire_end, false, 0);
    ok_named(take(&wire, "{\"command\":\"status\"}"), "an answer in the same turn");
    ok(!control_session_is_busy(wire.session));
    ok_named(has(&wire, "\"uptime_s\""), "the status");
    ok_named(take(&wire, "nonsense") && has(&wire, "a request must be a JSON object"), "nonsense is refused");
    ok_named(take(&wire, "{\"command\":\"http\"}") && has(&wire, "unknown command"), "there is no HTTP here");
    buffer_clear(&wire.lines);
    wire.count = 0;
    ok_named(!take(&wire, "{\"command\":\"list\",\"limit\":1000}"), "an answer of several turns");
    ok(control_session_is_busy(wire.session));
    ok_named(wire.count == 0, "not a line before it returns");
    until(&w, wire.done == 1);
    is_number(wire.count, MESSAGES + 1, "all messages, and the end");
    ok(!control_session_is_busy(wire.session));
}

TEST(full)
{
    FIXTURE(wire, wire, wire_begin, wire_end, false, 0);
    wire.full_at = 4096;
    ok(!take(&wire, "{\"command\":\"list\",\"limit\":1000}"));
    control_turns(&w, SOME);
    ok_named(wire.lines.length >= 4096 && wire.lines.length < 8192, "it stops where the transport is full");
    is_number(wire.done, 0, "and waits");
    unsigned rounds = 0;
    while (wire.done == 0 && rounds++ < MESSAGES) {
        buffer_clear(&wire.lines);
        control_session_resume(wire.session);
        control_turns(&w, SOME);
    }
    is_number(wire.count, MESSAGES + 1, "all come at last");
    ok_named(rounds > 5, "a piece at a time");
}

TEST(going)
{
    struct wire wire;
    wire_begin(&wire, false, 0);
    wire.leaves = true;
    ok(!take(&wire, "{\"command\":\"retry\",\"all\":true}"));
    until(&w, wire.done == 1);
    ok_named(wire.session == NULL, "it may go when it is done");
    wire_end(&wire);
    wire_begin(&wire, false, 0);
    ok(!take(&wire, "{\"command\":\"list\",\"limit\":1000}"));
    wire_end(&wire);
    control_turns(&w, SOME);
    is_number(wire.done, 0, "and in the middle");
}

TEST(sibling)
{
    static const char *const refused[] = {"rm", "bounce", "adopt", "test", "follow", "http", "page", "drain", "log-level", "reload", "unlock", "quota-reset", "forget-limits", "cluster-forget", "cluster-adopt", "cat", "tokens", "nonsense", ""};
    static const char *const answered[] = {"status", "{\"command\":\"sites\",\"from\":0}"};
    char line[200];
    FIXTURE(wire, wire, wire_begin, wire_end, true, 0);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        snprintf(line, sizeof(line), "{\"command\":\"%s\",\"all\":true}", refused[i]);
        buffer_clear(&wire.lines);
        ok_named(take(&wire, line) && has(&wire, "other hosts of the group may not ask for that"), refused[i]);
    }
    snprintf(line, sizeof(line), "{\"command\":\"%s\"}", answered[0]);
    buffer_clear(&wire.lines);
    ok_named(take(&wire, line) && has(&wire, "\"uptime_s\""), "it may ask for the status");
    ok_named(take(&wire, answered[1]) && has(&wire, "\"sites\""), "and for sites");
    ok_named(!take(&wire, "{\"command\":\"hold\",\"all\":true}"), "it may hold mail");
    until(&w, wire.done == 1);
    ok_named(!take(&wire, "{\"command\":\"list\"}"), "and list it");
    until(&w, wire.done == 2);
}

TEST(long_line)
{
    FIXTURE(wire, wire, wire_begin, wire_end, true, 600);
    post_mail(&w, 50, "many.test");
    control_turns(&w, SOME);
    ok(!take(&wire, "{\"command\":\"list\",\"to\":\"many.test\"}"));
    until(&w, wire.done == 1);
    ok_named(has(&wire, "\"recipients_more\":"), "a listing that is too long lacks recipients, and says so");
    ok(wire.lines.length < 800);
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "session");
    control_world_begin(&w, folder, TEXT("* hold"));
    service = (struct control_service){.loop = w.loop, .log = w.log, .manager = w.manager, .questions = control_server_questions(w.control)};
    control_turns(&w, SOME);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_mail(&w, 1, "keep.test");
    until(&w, w.accepted == MESSAGES && queue_count_apart(manager_queue(w.manager)).held == MESSAGES);
    tap_tests("");
    ok(service.sessions == NULL);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
