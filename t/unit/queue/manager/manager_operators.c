/* Commands of operators, in every state that a message can be in: hold, release, retry,
 * bounce, remove. */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "t/support/manager_world.h"

#define HOUR_MS (3600 * INT64_C(1000))

static const char later_route[] = "* smtp://sink.test";

/* The path of a file of the message that was accepted last. */
static void
path_of(const struct world *w, const char *space, const char *suffix, char path[300])
{
    char id[ID_LENGTH + 1];
    id_format(w->id, id);
    snprintf(path, 300, "%s/%s/%s%s", w->folder, space, id, suffix);
}

static void
has_note(const struct world *w, const char *want)
{
    char path[300], note[QUEUE_NOTE_MAX];
    struct queue *queue = manager_queue(w->manager);
    path_of(w, "hold", "", path);
    is_number(queue_note(queue, w->id, QUEUE_HOLD, note), 0, "there is a note");
    const char *space = strchr(note, ' ');
    ok(space && llabs(atoll(note) - loop_now_ms(w->loop) / 1000) <= 1);
    is_string(space ? space + 1 : "", want, "it says why");
}

static bool
is_held(const struct world *w)
{
    char note[QUEUE_NOTE_MAX];
    return queue_note(manager_queue(w->manager), w->id, QUEUE_HOLD, note) == 0 &&
           manager_active(w->manager, w->id) == NULL && world_place(w) == SCHED_UNKNOWN;
}

/* Takes the work of the only session, as a delivery that has begun. */
static void
start_delivery(struct world *w, const char *recipients, struct delivery_request *request)
{
    w->stalled = true;
    world_deliver(w, "ann@a.test", recipients);
    if (!ok_named(w->fakes && manager_take(w->manager, w->fakes->session, request),
                  "a delivery runs"))
        abort();
}

static void
end_delivery(struct world *w, struct delivery_request *request)
{
    fake_settle(w->fakes, request);
    world_unstall(w);
    world_turns(w);
}

TEST(hold_deferred)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test?lifetime=2h");
    world_deliver(&w, "ann@a.test", "later@b.test good@b.test");
    buffer_clear(&w.seen);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    has_note(&w, "held by the operator");
    ok(is_held(&w));
    ok(world_logged(&w, ": held by the operator"));
    ok_named(world_operate(&w, MANAGER_HOLD) == MANAGER_ALREADY, "once is enough");
    ok(world_operate(&w, MANAGER_RETRY) == MANAGER_REFUSED);
    manager_retry_all(w.manager);
    sim_loop_advance(w.loop, 24 * HOUR_MS);
    world_restart(&w);
    sim_loop_advance(w.loop, 24 * HOUR_MS);
    world_saw(&w, "", "neither delivered nor expired, whatever happens");
    ok(is_held(&w));
    w.all_good = true;
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    is_number(world_files(&w, "hold"), 0, "the mark is gone at once");
    world_turns(&w);
    world_saw(&w, "ann@a.test>later@b.test ", "released mail is due, for who is left");
    ok(world_logged(&w, ": released by the operator"));
    ok(world_is_empty(&w));
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_UNKNOWN);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_UNKNOWN);
}

/* Beyond the active set: on the disk, and in the scheduler's list. */
TEST(hold_incoming)
{
    struct id ids[6];
    char why[MANAGER_WHY_MAX];
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    w.settings.sched.active_limit = 2;
    world_restart(&w);
    w.stalled = true;
    for (int i = 0; i < 6; i++) {
        world_send(&w, "ann@a.test", "good@b.test");
        ids[i] = w.id;
    }
    world_turns(&w);
    for (int i = 0; i < 6; i++) {
        w.id = ids[i];
        bool active = world_place(&w) == SCHED_ACTIVE;
        enum manager_result result = world_operate(&w, MANAGER_HOLD);
        ok(result == (active ? MANAGER_LATER : MANAGER_DONE));
        is_number(world_files(&w, "hold"), i + 1, "marked");
    }
    world_unstall(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    world_saw(&w, "", "nobody is served");
    for (int i = 0; i < 6; i++) {
        w.id = ids[i];
        ok(is_held(&w));
    }
    for (int i = 5; i >= 0; i--)
        ok(manager_operate(w.manager, MANAGER_RELEASE, ids[i], why) == MANAGER_DONE);
    world_turns(&w);
    is_number(w.attempts, 6, "all are delivered");
    ok(world_is_empty(&w));
}

/* The running attempt ends normally; what is left is held. */
TEST(hold_in_delivery)
{
    static const struct {
        const char *to;
        bool stays;
        bool bounces;
    } cases[] = {
        {"good@b.test",              false, false},
        {"bad@b.test",               false, true },
        {"later@b.test",             true,  false},
        {"good@b.test later@b.test", true,  false},
        {"bad@b.test later@b.test",  true,  false},
        {"site@b.test good@b.test",  true,  false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct delivery_request request;
        FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
        start_delivery(&w, cases[i].to, &request);
        ok(world_operate(&w, MANAGER_HOLD) == MANAGER_LATER);
        is_number(world_files(&w, "hold"), 1,
                  "the mark is there before the delivery ends");
        ok_named(manager_active(w.manager, w.id) != NULL, "its request is still good");
        buffer_clear(&w.seen);
        end_delivery(&w, &request);
        ok_named(is_held(&w) == cases[i].stays, cases[i].to);
        ok(world_logged(&w, "notified") == cases[i].bounces);
        ok(world_is_empty(&w) == !cases[i].stays);
        sim_loop_advance(w.loop, HOUR_MS);
        w.all_good = true;
        buffer_clear(&w.seen);
        if (cases[i].stays)
            ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
        world_turns(&w);
        ok(!cases[i].stays || w.seen.length > 0);
        ok_named(world_is_empty(&w), "then it is delivered");
    }
}

/* Other recipients of it, that no session has taken yet, are not served any more. */
TEST(hold_rest)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://sink.test?recipients=1&initial=1&concurrency=1");
    start_delivery(&w, "good@b.test good2@b.test good3@b.test", &request);
    is_number(request.count, 1, "one at a time");
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_LATER);
    end_delivery(&w, &request);
    world_saw(&w, "ann@a.test>good@b.test ", "who was being served, and nobody else");
    ok(is_held(&w));
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, "ann@a.test>good2@b.test ann@a.test>good3@b.test ", "the rest later");
    ok(world_is_empty(&w));
}

/* Its time is over when its last attempt ends, but it is to be held. */
TEST(hold_expired)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test?lifetime=1h");
    start_delivery(&w, "later@b.test good@b.test", &request);
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_LATER);
    end_delivery(&w, &request);
    ok_named(is_held(&w) && !world_logged(&w, "status=expired"), "held, not expired");
    buffer_clear(&w.seen);
    w.all_good = true;
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, "ann@a.test>later@b.test ", "one more attempt");
    ok(world_is_empty(&w));
}

/* A released message passes the routes that say hold, also after a deferral and a
 * restart. */
TEST(release_past_route)
{
    struct world w;
    manager_world_begin(&w, "b.test hold\n.b.test hold\n* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test good@x.b.test good@c.test");
    world_saw(&w, "ann@a.test>good@c.test ", "held but for one");
    has_note(&w, "held by a route");
    ok(is_held(&w));
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(
        &w, "ann@a.test>later@b.test ann@a.test>good@x.b.test ",
        "by the next route that matches");
    ok(world_place(&w) == SCHED_DEFERRED);
    world_restart(&w);
    sim_loop_advance(w.loop, 400 * 1000);
    world_saw(&w, "ann@a.test>later@b.test ", "it is still released");
    ok(world_place(&w) == SCHED_DEFERRED);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    w.all_good = true;
    world_restart(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    world_saw(&w, "", "until an operator holds it");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    ok(world_is_empty(&w));
    world_deliver(&w, "ann@a.test", "good@b.test");
    ok_named(is_held(&w), "others are held as before");
    manager_world_end(&w);

    /* Nothing else matches: it goes by MX. */
    manager_world_begin(&w, "* hold");
    world_deliver(&w, "ann@a.test", "good@b.test");
    ok(is_held(&w));
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, "ann@a.test>good@b.test ", "by MX");
    ok(world_is_empty(&w));
    manager_world_end(&w);
}

/* Second thoughts while a delivery runs. */
TEST(release_in_delivery)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    start_delivery(&w, "later@b.test", &request);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_ALREADY);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_LATER);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    is_number(world_files(&w, "hold"), 0, "no mark");
    w.attempts = 0;
    fake_settle(w.fakes, &request);
    w.all_good = true;
    world_unstall(&w);
    world_turns(&w);
    is_number(w.attempts, 2, "due at once when the delivery has ended");
    ok(world_is_empty(&w));
}

TEST(bounce)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_deliver(&w, "ann@a.test", "later@b.test good@b.test bad@b.test");
    buffer_clear(&w.seen);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DONE);
    ok(world_logged(&w, " queue: ") &&
       world_logged(&w, "to=<later@b.test>, relay=none, "));
    ok(world_logged(&w, "dsn=5.0.0, status=bounced (returned by the operator: delivery "
                        "cancelled by administrator)"));
    ok(world_logged(&w, ": returned by the operator"));
    for (int verb = MANAGER_HOLD; verb <= MANAGER_REMOVE; verb++)
        ok_named(world_operate(&w, (enum manager_verb)verb) == MANAGER_ENDING,
                 "there is nothing more to say");
    world_turns(&w);
    world_saw(&w, ">ann@a.test ", "one bounce, for all failures");
    ok(world_is_empty(&w));
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_UNKNOWN);

    world_deliver(&w, "ann@a.test", "later@b.test");
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    buffer_clear(&w.seen);
    ok_named(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DONE, "a held one");
    world_turns(&w);
    world_saw(&w, ">ann@a.test ", "is returned, too");
    ok(world_is_empty(&w));

    world_deliver(&w, "", "later@b.test");
    buffer_clear(&w.seen);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, ">postmaster@h.test ", "without a sender, to postmaster");
    ok(world_is_empty(&w));

    start_delivery(&w, "later@b.test good@b.test", &request);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_LATER);
    buffer_clear(&w.seen);
    end_delivery(&w, &request);
    world_saw(&w, "ann@a.test>later@b.test ann@a.test>good@b.test >ann@a.test ",
              "after the delivery");
    ok(world_is_empty(&w));
    start_delivery(&w, "good@b.test", &request);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_LATER);
    buffer_clear(&w.seen);
    end_delivery(&w, &request);
    world_saw(&w, "ann@a.test>good@b.test ", "nobody was left to be returned");
    ok(world_is_empty(&w));
}

/* No space for the bounce: it stays, decided, and a hold keeps it. */
TEST(bounce_refused)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_deliver(&w, "ann@a.test", "later@b.test");
    w.settings.queue.bytes_reserve = INT64_MAX / 4;
    world_restart(&w);
    buffer_clear(&w.seen);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DONE);
    sim_loop_advance(w.loop, 200 * 1000);
    ok(world_logged(&w, "cannot write the notification now"));
    is_number(world_files(&w, "mess"), 1, "it waits");
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    w.settings.queue.bytes_reserve = 0;
    world_restart(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    world_saw(&w, "", "held, nobody is told");
    ok(is_held(&w));
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, ">ann@a.test ", "told now");
    ok(world_is_empty(&w));
}

/* The last of two commands while a delivery runs counts. */
TEST(last_word)
{
    static const enum manager_verb verbs[] = {MANAGER_HOLD, MANAGER_BOUNCE,
                                              MANAGER_REMOVE};
    for (size_t i = 0; i < 9; i++) {
        struct delivery_request request;
        enum manager_verb first = verbs[i / 3], last = verbs[i % 3];
        FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
        start_delivery(&w, "later@b.test", &request);
        ok(world_operate(&w, first) == MANAGER_LATER);
        ok(world_operate(&w, last) == MANAGER_LATER);
        end_delivery(&w, &request);
        ok(is_held(&w) == (last == MANAGER_HOLD));
        ok(world_logged(&w, "notified") == (last == MANAGER_BOUNCE));
        ok(world_is_empty(&w) == (last != MANAGER_HOLD));
    }
}

static unsigned
log_count(const struct world *w, const char *words)
{
    unsigned count = 0;
    size_t length = strlen(words);
    const char *at = w->lines.at, *end = w->lines.at + w->lines.length;
    while ((at = memmem(at, (size_t)(end - at), words, length)) != NULL) {
        at += length;
        count++;
    }
    return count;
}

/* A delivery that a stop cuts short has a verdict before the manager ends. */
static void
cut(struct world *w, struct delivery_request *request, const char *delivered)
{
    struct outcome cut = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2",
                                      "Petrel is shutting down");
    struct outcome good =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "Ok");
    for (size_t i = 0; i < request->count; i++) {
        struct text to = request->envelope->recipients[request->indexes[i]].address;
        bool arrived = text_equal(to, text_from(delivered));
        manager_settled(w->manager, request, i, arrived ? &good : &cut, NULL);
    }
    world_stop(w);
}

static void
on_drained(void *context)
{
    (void)context;
}

/* A clean stop carries out commands that waited for the delivery's end; a recipient
 * that was served is not reported otherwise. */
TEST(stop)
{
    static const struct {
        enum manager_verb verb;
        const char *to, *delivered;
        unsigned bounced; /* recipients; then the sender hears of it once */
        bool drains;
    } cases[] = {
        {MANAGER_REMOVE, "later@b.test later2@b.test", "",             0, true },
        {MANAGER_REMOVE, "later@b.test later2@b.test", "later@b.test", 0, false},
        {MANAGER_BOUNCE, "later@b.test later2@b.test", "",             2, true },
        {MANAGER_BOUNCE, "later@b.test later2@b.test", "later@b.test", 1, true },
        {MANAGER_BOUNCE, "later@b.test",               "",             1, false},
        {MANAGER_BOUNCE, "later@b.test",               "later@b.test", 0, true },
        {MANAGER_HOLD,   "later@b.test later2@b.test", "",             0, true },
        {MANAGER_HOLD,   "later@b.test",               "later@b.test", 0, true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct delivery_request request;
        FIXTURE(world, w, manager_world_begin, manager_world_end,
                "* smtp://sink.test?recipients=1&initial=1&concurrency=1");
        start_delivery(&w, cases[i].to, &request);
        is_number(request.count, 1, "the second one waits for a session");
        ok(world_operate(&w, cases[i].verb) == MANAGER_LATER);
        if (cases[i].drains)
            manager_drain(w.manager, 1000, on_drained, &w);
        world_turns(&w);
        cut(&w, &request, cases[i].delivered);
        bool told = cases[i].bounced > 0;
        ok(world_logged(&w, "removed by the operator") ==
           (cases[i].verb == MANAGER_REMOVE));
        is_number(log_count(&w, "status=bounced"), cases[i].bounced,
                  "only who was not served fails");
        is_number(world_files(&w, "mess"),
                  told || (cases[i].verb == MANAGER_HOLD && !cases[i].delivered[0]),
                  "on the disk before the end");
        buffer_clear(&w.seen);
        w.stalled = false;
        w.all_good = true;
        manager_world_start(&w);
        sim_loop_advance(w.loop, HOUR_MS);
        world_saw(&w, told ? ">ann@a.test " : "",
                  "and never delivered after the next start");
        ok((w.attempts == 1) == told);
        bool stays = cases[i].verb == MANAGER_HOLD && !cases[i].delivered[0];
        ok(is_held(&w) == stays && world_is_empty(&w) == !stays);
    }
}

/* More bounces than are written at a time. */
TEST(stop_many)
{
    enum { MANY = 100 };
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://sink.test?initial=1&concurrency=1");
    w.stalled = true;
    for (unsigned i = 0; i < MANY; i++) {
        world_deliver(&w, "ann@a.test", "later@b.test");
        ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_LATER);
    }
    world_stop(&w);
    is_number(world_files(&w, "mess"), MANY, "a notice each, and no more");
    w.stalled = false;
    w.all_good = true;
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(w.attempts, MANY, "each arrives, once");
    ok(memmem(w.seen.at, w.seen.length, "later", 5) == NULL);
    ok(world_is_empty(&w));
}

/* No space for the bounce: the stop does not wait for it, and the next start sends it.
 */
TEST(stop_refused)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_deliver(&w, "ann@a.test", "later@b.test");
    world_stop(&w);
    w.settings.queue.bytes_reserve = INT64_MAX / 4;
    w.stalled = true;
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    ok(w.fakes && manager_take(w.manager, w.fakes->session, &request));
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_LATER);
    buffer_clear(&w.seen);
    int64_t begun_ms = loop_monotonic_ms(w.loop);
    cut(&w, &request, "");
    is_number(loop_monotonic_ms(w.loop), begun_ms, "nothing is waited for");
    ok(world_logged(&w, "cannot write the notification now"));
    is_number(world_files(&w, "mess"), 1, "it is there, decided");
    w.settings.queue.bytes_reserve = 0;
    w.stalled = false;
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    world_saw(&w, ">ann@a.test ", "told now, and not delivered");
    ok(world_is_empty(&w));
}

static void
set_content(const struct world *w, const char *space, const char *suffix,
            const char *bytes)
{
    char path[300];
    path_of(w, space, suffix, path);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(bytes, file) < 0 || fclose(file) != 0)
        abort();
}

TEST(corrupt)
{
    char why[MANAGER_WHY_MAX];
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_deliver(&w, "ann@a.test", "later@b.test");
    buffer_clear(&w.seen);
    world_stop(&w);
    set_content(&w, "mess", "", "Subject: x\r\n\r\nBODY\r\n");
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    unsigned quarantined = world_files(&w, "corrupt");
    ok_named(quarantined > 2 && world_files(&w, "mess") == 0, "damaged, and quarantined");
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DAMAGED);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DAMAGED);
    ok(world_operate(&w, MANAGER_RETRY) == MANAGER_DAMAGED);
    ok(manager_operate(w.manager, MANAGER_RELEASE, w.id, why) == MANAGER_REFUSED);
    ok_named(strstr(why, "still damaged") != NULL, "says why");
    is_number(world_files(&w, "corrupt"), quarantined, "all is where it was");
    is_number(world_files(&w, "mess") + world_files(&w, "info"), 0,
              "nothing came back");
    set_content(&w, "corrupt", ".mess", "Subject: x\r\n\r\nbody\r\n");
    w.all_good = true;
    ok_named(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE, "repaired");
    is_number(world_files(&w, "corrupt"), 0, "note and all");
    world_turns(&w);
    world_saw(&w, "ann@a.test>later@b.test ", "delivered");
    ok(world_is_empty(&w));

    w.all_good = false;
    world_deliver(&w, "ann@a.test", "later@b.test");
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    world_stop(&w);
    set_content(&w, "mess", "", "x");
    manager_world_start(&w);
    ok_named(world_operate(&w, MANAGER_RELEASE) == MANAGER_REFUSED, "a held one");
    ok(world_files(&w, "corrupt") > 3);
    set_content(&w, "corrupt", ".mess", "Subject: x\r\n\r\nbody\r\n");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    ok_named(world_place(&w) != SCHED_UNKNOWN, "comes out of hold/ too");
    is_number(world_files(&w, "hold") + world_files(&w, "corrupt"), 0, "at once");
    world_turns(&w);
    world_stop(&w);
    set_content(&w, "mess", "", "x");
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    ok(world_files(&w, "corrupt") > 2);
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE);
    ok(world_is_empty(&w));
}

/* A question that reads it finds that out before its attempt does. */
TEST(corrupt_when_asked)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_deliver(&w, "ann@a.test", "later@b.test");
    struct envelope *e = manager_peek(w.manager, w.id, QUEUE_DEFERRED);
    ok_named(e != NULL && world_place(&w) == SCHED_DEFERRED, "it waits");
    envelope_free(&e);
    set_content(&w, "remote", "", "x");
    ok(manager_peek(w.manager, w.id, QUEUE_DEFERRED) == NULL);
    ok(world_files(&w, "corrupt") > 2);
    ok_named(world_place(&w) == SCHED_UNKNOWN, "it is in corrupt/ alone, and waits no more");
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE);
    ok(world_is_empty(&w));
}

/* Every command without a daemon: nothing moves but what it is about. */
TEST(offline)
{
    struct id ids[6];
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    for (int i = 0; i < 6; i++) {
        world_deliver(&w, "ann@a.test", "later@b.test");
        ids[i] = w.id;
    }
    buffer_clear(&w.seen);
    int64_t due_ms = sched_find(manager_sched(w.manager), w.id).due_ms;
    world_stop(&w);
    w.settings.offline = true;
    manager_world_start(&w);
    ok(manager_is_offline(w.manager));
    sim_loop_advance(w.loop, 12 * HOUR_MS);
    world_saw(&w, "", "nothing is delivered");
    ok(due_ms < loop_now_ms(w.loop));
    w.id = ids[0];
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_ALREADY);
    ok(world_operate(&w, MANAGER_RETRY) == MANAGER_REFUSED);
    w.id = ids[1];
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    w.id = ids[2];
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DONE);
    w.id = ids[3];
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE);
    w.id = ids[4];
    ok(world_operate(&w, MANAGER_RETRY) == MANAGER_DONE);
    w.id = (struct id){.time_ms = 1};
    ok(world_operate(&w, MANAGER_RETRY) == MANAGER_UNKNOWN);
    world_turns(&w);
    struct manager_notifications notifications = manager_notifications(w.manager);
    ok(notifications.begun == 1 && notifications.ended == 1);
    world_stop(&w);
    w.settings.offline = false;
    w.all_good = true;
    manager_world_start(&w);
    is_number(w.attempts, 6 + 4, "the released, the retried, the other, the bounce");
    ok(memmem(w.seen.at, w.seen.length, ">ann@a.test", 11) != NULL);
    is_number(world_files(&w, "mess"), 1, "and one is left");
    w.id = ids[0];
    ok(is_held(&w));
}

/* Nobody has asked the routes yet where it goes, and without a daemon there are none. */
TEST(offline_journal)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_stop(&w);
    w.settings.queue.journal_size = 4 << 20;
    manager_world_start(&w);
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "bob@b.test");
    world_stop(&w);
    is_number(world_files(&w, "info"), 0, "the journal has it");
    w.settings.offline = true;
    manager_world_start(&w);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_stop(&w);
    is_number(world_files(&w, "info"), 1, "it has become files");
    w.settings.offline = w.stalled = false;
    w.all_good = true;
    buffer_clear(&w.seen);
    manager_world_start(&w);
    world_saw(&w, "ann@a.test>bob@b.test ", "at the start");
    ok(world_is_empty(&w));
}

/* Mail that is due much later is due now. */
TEST(offline_retry)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_deliver(&w, "ann@a.test", "later@b.test");
    buffer_clear(&w.seen);
    world_stop(&w);
    w.settings.offline = true;
    manager_world_start(&w);
    ok(world_operate(&w, MANAGER_RETRY) == MANAGER_DONE);
    world_stop(&w);
    w.settings.offline = false;
    manager_world_start(&w);
    world_saw(&w, "ann@a.test>later@b.test ", "at the start");
    is_number(sched_find(manager_sched(w.manager), w.id).attempts, 2, "rounds so far");
}

TEST(slices)
{
    char why[MANAGER_WHY_MAX];
    FIXTURE(world, w, manager_world_begin, manager_world_end, later_route);
    world_stop(&w);
    w.settings.queue.slices = 2;
    char error[300];
    if (manager_new(&w.manager, w.loop, w.events, &w.settings, w.routes, error,
                    sizeof(error)) != 0)
        abort();
    struct id other = {.time_ms = 5, .hash = UINT64_C(0xFFFFFFFFFF)};
    for (int verb = MANAGER_HOLD; verb <= MANAGER_REMOVE; verb++)
        ok(manager_operate(w.manager, (enum manager_verb)verb, other, why) ==
           MANAGER_REFUSED);
    is_string(why, "belongs to slice 1; ask its daemon", "says where");
    ok(!manager_handles(w.manager, other));
    ok(manager_handles(w.manager, (struct id){.time_ms = 5, .hash = 1}));
}
