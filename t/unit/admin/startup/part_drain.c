/* The states of a drain, in their order, and the way back from each. */
#include "admin/startup/parts.h"

#include "admin/control/control_server.h"
#include "queue/queue_operator.h"
#include "t/support/listener_world.h"
#include "t/support/tap.h"

enum { SIBLING_GIFTS = 8 };

struct given {
    struct world w;
    struct control_server *control;
    struct configuration configuration;
    struct daemon d;
    char path[100];
    /* The siblings, in memory. */
    struct sibling_calls calls;
    struct sibling_gift gifts[SIBLING_GIFTS];
    char to[SIBLING_GIFTS][16];
    size_t count;
    enum sibling_answer answer;
    int gone;
};

static struct given g;
static int told;

static void
on_event(void *context, const struct event *v)
{
    (void)context;
    told += v->kind == EVENT_DRAINING && text_starts(v->text, TEXT("drain: "));
}

static void
begin(int64_t delay_ms, int64_t timeout_ms)
{
    char error[300];
    const struct server_rules rules = {.hostname = "mx.test", .size_limit = 10000000, .recipient_limit = 100, .hop_limit = 50, .error_limit = 20};
    memset(&g, 0, sizeof(g));
    listener_world_start(&g.w, &rules, false, true);
    snprintf(g.path, sizeof(g.path), "%s/control", g.w.spool);
    g.control = control_server_new(g.w.loop, g.w.net, g.w.log, g.w.manager, g.path, error, sizeof(error));
    g.configuration.options.drain_delay_ms = delay_ms;
    g.configuration.options.drain_timeout_ms = timeout_ms;
    g.d = (struct daemon){.loop = g.w.loop, .events = g.w.events, .manager = g.w.manager, .listener = g.w.listener,
                          .control = g.control, .configuration = &g.configuration};
    part_drain_start(&g.d);
    told = 0;
    event_read(g.w.events, EVENT_BIT(EVENT_DRAINING), on_event, &g);
}

static bool
has_room(void *context, const char *host, int64_t bytes)
{
    (void)context, (void)host, (void)bytes;
    return g.count < SIBLING_GIFTS;
}

static void
take(void *context, const char *host, const struct sibling_gift *gift)
{
    (void)context;
    snprintf(g.to[g.count], sizeof(g.to[0]), "%s", host);
    g.gifts[g.count++] = *gift;
}

static void
ignore(void *context, void *callback_context)
{
    (void)context, (void)callback_context;
}

static void
each_sibling(void *context, bool (*each)(void *context, const struct sibling *s), void *each_context)
{
    const struct sibling all[] = {
        {.host = "two",   .address = "127.0.0.1:2", .state = "running", .version = "", .spool = ""},
        {.host = "three", .address = "127.0.0.1:3", .state = "running", .version = "", .spool = ""}
    };
    (void)context;
    for (size_t i = 0; i < 2 && each(each_context, &all[i]); i++)
        continue;
}

static void
with_siblings(enum sibling_answer answer)
{
    g.answer = answer;
    g.calls = (struct sibling_calls){.context = &g, .has_room = has_room, .give = take, .ignore = ignore};
    g.d.peer.give = (struct give_setup){.loop = g.w.loop, .events = g.w.events, .manager = g.w.manager, .calls = &g.calls,
                                     .host = "one", .siblings = each_sibling, .context = &g};
}

/* They answer all that they have been given. */
static void
answer_all(void)
{
    for (size_t i = 0; i < g.count; i++) {
        const struct id there = {.time_ms = 1000 + i, .hash = i};
        const struct outcome said = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.3.2", "not now");
        g.gifts[i].given(g.gifts[i].context, g.answer, there, g.answer == SIBLING_TAKEN ? NULL : &said);
    }
    g.count = 0;
}

static void
on_gone(void *context)
{
    (void)context;
    g.gone++;
}

static void
end(void)
{
    part_drain_stop(&g.d);
    control_server_free(&g.control);
    listener_world_end(&g.w);
}

/* The state in the answer, or its error. */
static const char *
asked(const char *request)
{
    static char said[200];
    json_t *question = json_loads(request, 0, NULL);
    json_t *answer = questions_answer(control_server_questions(g.control), question);
    const char *state = json_string_value(json_object_get(answer, "state"));
    const char *error = json_string_value(json_object_get(answer, "error"));
    snprintf(said, sizeof(said), "%s", state != NULL ? state : error != NULL ? error : "nothing");
    json_decref(answer);
    json_decref(question);
    return said;
}

static void
pass_to(enum drain_state state)
{
    for (int i = 0; i < 2000 && g.d.drain.state != state; i++)
        loop_turn(g.w.loop, TURN_MS);
    is_number(g.d.drain.state, state, "the next state");
}

static bool
accepting(void)
{
    json_t *question = json_pack("{s:s}", "command", "status");
    json_t *answer = questions_answer(control_server_questions(g.control), question);
    const char *why = json_string_value(json_object_get(answer, "reason"));
    bool is = json_is_true(json_object_get(answer, "accepting"));
    ok_named(is == (why[0] == '\0'), "a reason, or none");
    json_decref(answer);
    json_decref(question);
    return is;
}

#define BEGIN    "{\"command\":\"drain\",\"wait_ms\":100000}"
#define EMPTY    "{\"command\":\"drain\",\"wait_ms\":100000,\"empty\":true}"
#define PROGRESS "{\"command\":\"drain\",\"progress\":true}"
#define CANCEL   "{\"command\":\"drain\",\"cancel\":true}"

static void
greeting(const char *want)
{
    FIXTURE(visitor, v, visit, leave, &g.w);
    ok_named(hears(&v, text_from(want)), want);
}

TEST(bad_questions)
{
    begin(0, 1000);
    is_string(asked("{\"command\":\"drain\",\"wait_ms\":-1}"), "a drain lasts at most a day", "a negative time");
    is_string(asked("{\"command\":\"drain\",\"wait_ms\":\"5s\"}"), "wait_ms must be a number", "no number");
    is_string(asked("{\"command\":\"drain\",\"wait_ms\":86400001}"), "a drain lasts at most a day", "too long");
    is_string(asked(PROGRESS), "running", "who asks for progress starts nothing");
    is_string(asked(CANCEL), "running", "nor who cancels");
    ok(part_drain_reason(&g.d) == NULL && accepting());
    end();
}

TEST(all_states)
{
    begin(3600 * 1000, 50);
    is_string(asked(BEGIN), "leaving", "it begins");
    is_string(asked(EMPTY), "leaving", "once; emptying may be added");
    ok(g.d.drain.empties && part_drain_reason(&g.d) != NULL && !accepting());
    greeting("220");
    is_string(asked(CANCEL), "running", "back");
    ok(accepting());
    g.configuration.options.drain_delay_ms = 0;
    struct visitor busy;
    visit(&busy, &g.w);
    ok(hears(&busy, TEXT("220")) && asks(&busy, "HELO x\r\n", "250") && asks(&busy, "MAIL FROM:<>\r\n", "250"));
    is_string(asked(EMPTY), "leaving", "again");
    pass_to(DRAIN_EMPTYING);
    greeting("421 4.3.2");
    for (int i = 0; i < 100; i++)
        turn(&busy, TURN_MS);
    is_string(asked(PROGRESS), "emptying", "while a client is in its transaction");
    leave(&busy);
    pass_to(DRAIN_CLOSING);
    pass_to(DRAIN_GONE);
    greeting("421 4.3.2");
    is_string(asked(BEGIN), "gone", "it stays");
    is_string(asked(EMPTY), "gone", "it was to be emptied");
    is_number(told, 6, "each state is an event");
    is_string(asked(CANCEL), "running", "and comes back");
    greeting("220");
    end();
    begin(0, 50);
    asked(BEGIN);
    pass_to(DRAIN_GONE);
    is_string(asked(EMPTY), "a drain is under way that does not empty the queue: cancel it first", "too late");
    end();
}

/* A client that hangs delays it for the timeout at most; the time is over for emptying, too. */
TEST(time_over)
{
    struct visitor busy;
    begin(0, 300);
    visit(&busy, &g.w);
    ok(hears(&busy, TEXT("220")) && asks(&busy, "HELO x\r\n", "250") && asks(&busy, "MAIL FROM:<>\r\n", "250"));
    is_string(asked("{\"command\":\"drain\",\"wait_ms\":1,\"empty\":true}"), "leaving", "with little time");
    pass_to(DRAIN_GONE);
    ok(listener_sessions(g.w.listener) > 0);
    ok_named(asks(&busy, "RCPT TO:<a@b.test>\r\n", "250"), "its transaction is not cut");
    leave(&busy);
    end();
}

/* Messages that wait. */
static void
submit(int count)
{
    FIXTURE(visitor, v, visit, leave, &g.w);
    ok(hears(&v, TEXT("220")) && asks(&v, "HELO x\r\n", "250"));
    for (int i = 0; i < count; i++)
        ok(asks(&v, "MAIL FROM:<a@x.test>\r\n", "250") && asks(&v, "RCPT TO:<b@y.test>\r\n", "250") && asks(&v, "DATA\r\n", "354") &&
           asks(&v, "Subject: m\r\n\r\nm\r\n.\r\n", "250"));
}

/* All are held by the routes of this world. */
static int64_t
waiting(void)
{
    return (int64_t)queue_count_apart(manager_queue(g.w.manager)).held;
}

TEST(hand_over)
{
    begin(0, 50);
    is_string(asked("{\"command\":\"drain\",\"to\":\"two\"}"), "this host cannot give its queue: `cluster` and `cluster_secret` are not set", "no siblings");
    with_siblings(SIBLING_TAKEN);
    is_string(asked("{\"command\":\"drain\",\"to\":\"two\",\"keep\":true}"), "the queue is kept, or given to a host: not both", "both");
    submit(3);
    asked("{\"command\":\"drain\",\"wait_ms\":100000,\"to\":\"two\"}");
    pass_to(DRAIN_GIVING);
    ok(part_drain_reason(&g.d) != NULL && !accepting());
    for (int i = 0; i < 2000 && g.count < 3; i++)
        loop_turn(g.w.loop, TURN_MS);
    is_number(g.count, 3, "all are given");
    for (size_t i = 0; i < g.count; i++)
        is_string(g.to[i], "two", "to the one that is named");
    is_number(waiting(), 3, "and kept until it has them");
    answer_all();
    pass_to(DRAIN_GONE);
    is_number(waiting(), 0, "nothing is left");
    is_number((int64_t)give_progress(g.d.drain.give).given, 3, "and that is counted");
    is_string(asked(CANCEL), "running", "back");
    end();
}

/* A client that was too slow for drain_timeout still hears 250: its message goes, too. */
TEST(hand_over_late)
{
    struct visitor v;
    begin(0, 50);
    with_siblings(SIBLING_TAKEN);
    submit(1);
    visit(&v, &g.w);
    ok(hears(&v, TEXT("220")) && asks(&v, "HELO x\r\n", "250") && asks(&v, "MAIL FROM:<a@x.test>\r\n", "250") &&
       asks(&v, "RCPT TO:<b@y.test>\r\n", "250") && asks(&v, "DATA\r\n", "354"));
    part_drain_hand_over(&g.d, 100000, on_gone);
    pass_to(DRAIN_GIVING);
    for (int i = 0; i < 2000 && waiting() > 0; i++) {
        answer_all();
        turn(&v, TURN_MS);
    }
    is_number(waiting(), 0, "the queue is given");
    for (int i = 0; i < 100; i++)
        turn(&v, TURN_MS);
    is_number(g.d.drain.state, DRAIN_GIVING, "it waits for the client");
    ok(asks(&v, "Subject: m\r\n\r\nm\r\n.\r\n", "250"));
    leave(&v);
    for (int i = 0; i < 2000 && g.gone == 0; i++) {
        answer_all();
        loop_turn(g.w.loop, TURN_MS);
    }
    is_number(g.gone, 1, "gone");
    is_number(waiting(), 0, "nothing stays");
    is_number((int64_t)give_progress(g.d.drain.give).given, 2, "both are counted");
    end();
}

TEST(hand_over_in_vain)
{
    begin(0, 50);
    with_siblings(SIBLING_LATER);
    submit(2);
    asked("{\"command\":\"drain\",\"wait_ms\":700}");
    pass_to(DRAIN_GIVING);
    for (int i = 0; i < 5000 && g.d.drain.state == DRAIN_GIVING; i++) {
        answer_all();
        loop_turn(g.w.loop, TURN_MS);
    }
    is_number(g.d.drain.state, DRAIN_GONE, "its time is over");
    is_number(waiting(), 2, "all is still here");
    is_string(asked(CANCEL), "running", "back");
    is_number(waiting(), 2, "nor lost then");
    /* It is kept when that is asked for, and when it is delivered first. */
    asked("{\"command\":\"drain\",\"wait_ms\":100000,\"keep\":true}");
    pass_to(DRAIN_GONE);
    asked(CANCEL);
    asked("{\"command\":\"drain\",\"wait_ms\":1,\"empty\":true}");
    pass_to(DRAIN_GONE);
    is_number(g.count, 0, "nothing was given");
    end();
}

/* A sibling that may have a message is asked first by the next drain, whatever others say. */
TEST(hand_over_cancelled)
{
    begin(0, 50);
    with_siblings(SIBLING_LOST);
    submit(1);
    asked("{\"command\":\"drain\",\"wait_ms\":100000,\"to\":\"three\"}");
    pass_to(DRAIN_GIVING);
    for (int i = 0; i < 2000 && g.count < 1; i++)
        loop_turn(g.w.loop, TURN_MS);
    is_string(asked(CANCEL), "running", "cancelled before the answer");
    answer_all();
    asked("{\"command\":\"drain\",\"wait_ms\":100000}");
    pass_to(DRAIN_GIVING);
    for (int i = 0; i < 2000 && g.count < 1; i++)
        loop_turn(g.w.loop, TURN_MS);
    is_string(g.to[0], "three", "the one that may have it");
    is_number(give_progress(g.d.drain.give).sent, 1, "no other one");
    g.answer = SIBLING_TAKEN;
    answer_all();
    pass_to(DRAIN_GONE);
    is_number(waiting(), 0, "nothing is left");
    asked(CANCEL);
    submit(1);
    asked("{\"command\":\"drain\",\"wait_ms\":0}");
    pass_to(DRAIN_GONE);
    ok_named(!g.d.drain.has_given, "this drain has given nothing");
    end();
}

/* SIGTERM with stop = hand_over: also of one that is being drained, and cancelled by nobody. */
TEST(hand_over_at_stop)
{
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        begin(0, 50);
        with_siblings(SIBLING_TAKEN);
        submit(1);
        if (is_gone) {
            asked("{\"command\":\"drain\",\"wait_ms\":1000,\"keep\":true}");
            pass_to(DRAIN_GONE);
        }
        part_drain_hand_over(&g.d, 100000, on_gone);
        if (!is_gone)
            is_string(asked(CANCEL), "the daemon stops: that cannot be cancelled", "too late");
        for (int i = 0; i < 2000 && g.gone == 0; i++) {
            answer_all();
            loop_turn(g.w.loop, TURN_MS);
        }
        is_number(g.gone, 1, "gone, once");
        is_number(waiting(), is_gone, "with its queue, unless it was gone before");
        end();
    }
}

/* The number of messages given, by the answer. */
static int64_t
given_count(void)
{
    json_t *question = json_loads(PROGRESS, 0, NULL);
    json_t *answer = questions_answer(control_server_questions(g.control), question);
    int64_t count = json_integer_value(json_object_get(answer, "given"));
    json_decref(answer);
    json_decref(question);
    return count;
}

/* The daemon stops while sessions end, and the control socket answers: no order may begin what
 * nobody would end, or open the listener again. */
TEST(ordered_at_stop)
{
    begin(0, 50);
    with_siblings(SIBLING_TAKEN);
    submit(2);
    asked(BEGIN);
    for (int i = 0; i < 5000 && g.d.drain.state != DRAIN_GONE; i++) {
        answer_all();
        loop_turn(g.w.loop, TURN_MS);
    }
    is_number(given_count(), 2, "the queue is given");
    part_drain_stop(&g.d);
    is_string(asked(PROGRESS), "gone", "it says how far it got");
    is_number(given_count(), 2, "with its figures");
    is_string(asked(CANCEL), "the daemon stops: that cannot be cancelled", "it does not open again");
    is_string(asked(BEGIN), "the daemon stops", "nor begins anew");
    end();
    begin(0, 50);
    part_drain_stop(&g.d);
    is_string(asked(PROGRESS), "running", "also where nothing was given");
    is_string(asked(BEGIN), "the daemon stops", "no drain begins while it stops");
    is_number(g.d.drain.state, DRAIN_RUNNING, "none has begun");
    end();
}

/* After a drain for which the time was too short, or one that kept all: others may have room now, and the
 * host may never come back. By SIGTERM, or by another drain. */
static void
hand_over_again(bool by_signal, const char *first)
{
    begin(0, 50);
    with_siblings(SIBLING_LATER);
    submit(2);
    asked(first);
    for (int i = 0; i < 5000 && g.d.drain.state != DRAIN_GONE; i++) {
        answer_all();
        loop_turn(g.w.loop, TURN_MS);
    }
    is_number(g.d.drain.state, DRAIN_GONE, "its time is over");
    is_number(waiting(), 2, "all is still here");
    g.answer = SIBLING_TAKEN;
    if (by_signal)
        part_drain_hand_over(&g.d, 100000, on_gone);
    else
        is_string(asked(BEGIN), "giving", "once more");
    for (int i = 0; i < 2000 && g.d.drain.state != DRAIN_GONE; i++) {
        answer_all();
        loop_turn(g.w.loop, TURN_MS);
    }
    is_number(g.gone, by_signal, "gone, once");
    is_number(waiting(), 0, "with its queue");
    is_number((int64_t)give_progress(g.d.drain.give).given, 2, "and that is counted");
    end();
}

/* SIGTERM while a queue is given on command, for long: its own time counts from then on. */
static void
hand_over_sooner(void)
{
    begin(0, 50);
    with_siblings(SIBLING_LATER);
    submit(1);
    asked("{\"command\":\"drain\",\"wait_ms\":86400000}");
    pass_to(DRAIN_GIVING);
    part_drain_hand_over(&g.d, 300, on_gone);
    for (int i = 0; i < 2000 && g.gone == 0; i++) {
        answer_all();
        loop_turn(g.w.loop, TURN_MS);
    }
    is_number(g.gone, 1, "its time is over");
    is_number(waiting(), 1, "and the message still here");
    end();
}

/* The daemon stops in the middle of it. */
static void
stopped(void)
{
    for (enum drain_state state = DRAIN_LEAVING; state <= DRAIN_GONE; state++) {
        begin(state == DRAIN_LEAVING ? 1000 : 0, 1000);
        if (state == DRAIN_GIVING) {
            with_siblings(SIBLING_TAKEN);
            submit(1);
        }
        asked(state == DRAIN_EMPTYING ? EMPTY : BEGIN);
        pass_to(state);
        end();
    }
}

int
main(void)
{
    tap_tests("");
    hand_over_again(true, "{\"command\":\"drain\",\"wait_ms\":300,\"to\":\"two\"}");
    hand_over_again(false, "{\"command\":\"drain\",\"wait_ms\":300,\"to\":\"two\"}");
    hand_over_again(false, "{\"command\":\"drain\",\"wait_ms\":300,\"keep\":true}");
    hand_over_sooner();
    stopped();
    return done();
}
