/* link: t/sim/loop.c */
/* queue/group/take.c: what is refused, and why; what is stored, and remembered. */
#include "queue/manager/manager_internal.h"
#include "t/support/give_kit.h"

#include "base/crc.h"
#include "queue/queue_operator.h"
#include "sched/sched.h"
#include "t/support/manager_world.h"
#include "t/support/must.h"

#define ROUTE "* smtp://smtp.b.test"
#define BODY  "Subject: x\r\n\r\nbody\r\n"

struct taker {
    struct world w;
    struct kit_host host;
    unsigned answers;
    struct id own;
    struct outcome refusal; /* of the last answer; code 0: taken */
};

static const struct id there = {.time_ms = 1750000000000, .hash = 0x1234567890};

static void
taker_start(struct taker *t)
{
    t->host = (struct kit_host){.name = "relay2"};
    kit_host_start(&t->host, t->w.loop, t->w.events, t->w.manager);
}

static void
taker_begin(struct taker *t)
{
    memset(t, 0, sizeof(*t));
    manager_world_begin(&t->w, ROUTE);
    t->w.settings.queue.journal_size = 8 * 1024 * 1024;
    t->w.settings.queue.journal_message_max = 256 * 1024;
    world_restart(&t->w);
    taker_start(t);
}

static void
taker_restart(struct taker *t)
{
    kit_host_stop(&t->host);
    world_restart(&t->w);
    taker_start(t);
}

static void
taker_end(struct taker *t)
{
    kit_host_stop(&t->host);
    manager_world_end(&t->w);
}

static void
on_taken(void *context, struct id own, const struct outcome *refusal)
{
    struct taker *t = context;
    t->answers++;
    t->own = own;
    t->refusal = refusal != NULL ? *refusal : (struct outcome){0};
}

/* To good@ and later@, or to none. */
static struct envelope *
sample(const char *recipients)
{
    struct envelope *e = envelope_new();
    struct text rest = text_from(recipients), one;
    e->id = there;
    e->birth_ms = SIM_WALL_START_MS - 3600 * 1000;
    e->sender = TEXT("me@a.test");
    e->content_size = (int64_t)strlen(BODY);
    e->content_crc = crc_add(0, BODY, strlen(BODY));
    while (text_word(&rest, " ", &one))
        must(envelope_add(e, one, NOTIFY_DEFAULT, TEXT("")));
    return e;
}

static struct buffer
form_of(const struct envelope *e)
{
    struct buffer form;
    buffer_init(&form, 1024 * 1024);
    must(envelope_write_given(e, &form));
    return form;
}

static struct sibling_message
message_of(const struct buffer *form)
{
    return (struct sibling_message){
        .id = there,
        .sections = form->length,
        .content = (int64_t)strlen(BODY),
        .crc = crc_add(crc_add(0, form->at, form->length), BODY, strlen(BODY))};
}

/* The code of the refusal, or 0. */
static int
offer_message(struct taker *t, const struct sibling_message *message,
              const struct buffer *form)
{
    struct outcome early = kit_offer(&t->host, "relay1", message, buffer_text(form),
                                     TEXT(BODY), on_taken, t);
    if (early.code != 0) {
        t->refusal = early;
        return early.code;
    }
    world_turns(&t->w);
    return t->refusal.code;
}

/* Frees the envelope. */
static int
offer_envelope(struct taker *t, struct envelope *e)
{
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    int code = offer_message(t, &message, &form);
    buffer_free(&form);
    envelope_free(&e);
    return code;
}

static struct envelope *
load(const struct taker *t)
{
    struct envelope *e = queue_load(manager_queue(t->w.manager), t->own);
    must(e != NULL);
    return e;
}

TEST(sizes)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("later@b.test");
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    message.sections = (size_t)SIBLING_SECTIONS_MAX + 1;
    is_number(offer_message(&t, &message, &form), 552, "sections");
    message = message_of(&form);
    message.content = 11 * 1024 * 1024 + 1;
    is_number(offer_message(&t, &message, &form), 552, "content");
    is_text(text_from(t.refusal.enhanced), TEXT("5.3.4"), "which is too large");
    message = message_of(&form);
    take_reload(t.host.take, 10);
    is_number(offer_message(&t, &message, &form), 552, "a limit that was set since");
    take_reload(t.host.take, 10 * 1024 * 1024);
    is_number(t.answers, 0, "before a byte is read");
    buffer_free(&form);
    envelope_free(&e);
    ok(world_is_empty(&t.w));
}

static const char *
closed_now(void *context)
{
    (void)context;
    return "draining: deliveries end";
}

TEST(closed)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    is_number(offer_envelope(&t, sample("later@b.test")), 0, "taken");
    struct id own = t.own;
    kit_host_stop(&t.host);
    t.host.take = take_new(&(struct take_setup){
        .loop = t.w.loop, .manager = t.w.manager, .closed = closed_now});
    take_serve(t.host.take, &t.host.service);
    is_number(offer_envelope(&t, sample("later@b.test")), 0, "known all the same");
    ok(id_compare(own, t.own) == 0);
    struct envelope *e = sample("later@b.test");
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    message.id.hash++;
    is_number(offer_message(&t, &message, &form), 451, "another one is refused");
    is_text(text_from(t.refusal.enhanced), TEXT("4.3.2"), "for now");
    buffer_free(&form);
    envelope_free(&e);
}

/* It begins to leave while bytes come: what it takes then may find its queue given. */
TEST(closed_meanwhile)
{
    struct sibling_hello hello = {.host = "relay1"};
    struct outcome refusal;
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("later@b.test");
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    const struct sibling_service *service = &t.host.service;
    struct taking *taking = service->take(service->context, &hello, &message, &refusal);
    must(taking != NULL);
    service->take_bytes(taking, buffer_text(&form));
    service->take_bytes(taking, TEXT(BODY));
    t.host.closed = "it is draining";
    service->take_end(&taking, on_taken, &t);
    world_turns(&t.w);
    is_number(t.refusal.code, 451, "refused");
    ok(world_is_empty(&t.w));
    t.host.closed = NULL;
    is_number(offer_message(&t, &message, &form), 0, "taken later");
    buffer_free(&form);
    envelope_free(&e);
}

TEST(full_disk)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    kit_host_stop(&t.host);
    t.w.settings.queue.bytes_reserve = INT64_MAX / 4;
    world_restart(&t.w);
    taker_start(&t);
    is_number(offer_envelope(&t, sample("later@b.test")), 452, "the disk is full");
    is_text(text_from(t.refusal.enhanced), TEXT("4.3.1"), "so another host takes it");
}

TEST(damage)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("later@b.test");
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    message.crc ^= 1;
    is_number(offer_message(&t, &message, &form), 451, "changed on the way");
    is_text(text_from(t.refusal.enhanced), TEXT("4.3.0"), "once more");
    message = message_of(&form);
    message.id.hash++;
    is_number(offer_message(&t, &message, &form), 554, "under another name");
    is_text(text_from(t.refusal.enhanced), TEXT("5.5.4"), "it cannot be read");
    form.at[form.length / 2] ^= 1;
    message = message_of(&form);
    is_number(offer_message(&t, &message, &form), 554, "no form");
    buffer_free(&form);
    e->content_crc ^= 1;
    is_number(offer_envelope(&t, e), 554, "of another content");
    is_number(offer_envelope(&t, sample("")), 554, "for nobody");
    is_number(t.answers, 5, "each is answered once");
    ok(world_is_empty(&t.w));
}

TEST(moves)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    for (unsigned given = GIVE_MOVES_MAX; given >= GIVE_MOVES_MAX - 1; given--) {
        struct envelope *e = sample("later@b.test");
        e->moved = (struct moved_state){.came = TEXT("relay9/01JD3ZK5Q8-9F3K2C7A"),
                                        .first = TEXT("01JD3ZK5Q7-9F3K2C7A"),
                                        .given = given};
        is_number(offer_envelope(&t, e), given == GIVE_MOVES_MAX ? 554 : 0, "moves");
        if (given == GIVE_MOVES_MAX)
            is_text(text_from(t.refusal.enhanced), TEXT("5.4.6"), "too many");
    }
    struct envelope *e = load(&t);
    char came[60] = "relay1/";
    id_format(there, came + strlen(came));
    is_number(e->moved.given, GIVE_MOVES_MAX, "one more");
    is_text(e->moved.first, TEXT("01JD3ZK5Q7-9F3K2C7A"), "the first name stays");
    is_text(e->moved.came, text_from(came), "the last giver");
    envelope_free(&e);
}

/* The connection broke, and the giver is faster than the disk. */
TEST(twice)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("later@b.test");
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    for (int i = 0; i < 2; i++)
        (void)kit_offer(&t.host, "relay1", &message, buffer_text(&form), TEXT(BODY),
                        on_taken, &t);
    world_turns(&t.w);
    is_number(t.answers, 2, "both are answered");
    is_number(sched_count(manager_sched(t.w.manager)).deferred +
                  sched_count(manager_sched(t.w.manager)).active,
              1, "one message");
    (void)kit_offer(&t.host, "relay3", &message, buffer_text(&form), TEXT(BODY),
                    on_taken, &t);
    world_turns(&t.w);
    is_number(sched_count(manager_sched(t.w.manager)).deferred, 2,
              "another host's is another one");
    buffer_free(&form);
    envelope_free(&e);
}

/* A host that announces much on many connections does not fill the memory. */
TEST(sections)
{
    enum { MANY = TAKE_SECTIONS_MAX / SIBLING_SECTIONS_MAX };
    struct taking *all[MANY], *more;
    struct outcome refusal = {0};
    const struct sibling_hello from = {.host = "relay1"};
    struct sibling_message message = {.id = there, .sections = SIBLING_SECTIONS_MAX};
    FIXTURE(taker, t, taker_begin, taker_end);
    const struct sibling_service *s = &t.host.service;
    for (int i = 0; i < MANY; i++) {
        message.id.hash++;
        all[i] = s->take(s->context, &from, &message, &refusal);
        ok_named(all[i] != NULL, "there is room");
    }
    message.id.hash++;
    more = s->take(s->context, &from, &message, &refusal);
    ok_named(more == NULL && refusal.code == 451, "and an end of it: later, or another host");
    s->take_drop(&all[0]);
    more = s->take(s->context, &from, &message, &refusal);
    ok_named(more != NULL, "until one has gone");
    s->take_drop(&more);
    for (int i = 1; i < MANY; i++)
        s->take_drop(&all[i]);
}

TEST(ignored)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("good@b.test");
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    (void)kit_offer(&t.host, "relay1", &message, buffer_text(&form), TEXT(BODY), NULL,
                    NULL);
    world_turns(&t.w);
    ok_named(world_is_empty(&t.w), "a connection broke: nothing is stored");
    (void)kit_offer(&t.host, "relay1", &message, buffer_text(&form), TEXT(BODY),
                    on_taken, &t);
    t.host.service.take_ignore(t.host.service.context, &t);
    world_turns(&t.w);
    is_number(t.answers, 0, "nobody waits for the answer");
    world_saw(&t.w, "me@a.test>good@b.test ", "it is delivered");
    is_number(offer_message(&t, &message, &form), 0, "and known");
    world_saw(&t.w, "", "once");
    buffer_free(&form);
    envelope_free(&e);
}

/* For an hour. */
TEST(forgotten)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    t.w.all_good = true;
    is_number(offer_envelope(&t, sample("good@b.test")), 0, "taken");
    struct id own = t.own;
    sim_loop_advance(t.w.loop, 59 * 60 * 1000);
    taker_restart(&t);
    is_number(offer_envelope(&t, sample("good@b.test")), 0, "known");
    ok(id_compare(own, t.own) == 0);
    sim_loop_advance(t.w.loop, 2 * 60 * 1000);
    is_number(offer_envelope(&t, sample("good@b.test")), 0, "taken again");
    ok(id_compare(own, t.own) != 0);
}

static void
note_recalled(void *context, const char *came, struct id id)
{
    struct buffer *all = context;
    (void)id;
    must(buffer_format(all, "%.*s ", 8, came));
}

/* As many as can be known after a restart: those that may be given again, not the first. */
TEST(recalled)
{
    struct buffer all;
    FIXTURE(taker, t, taker_begin, taker_end);
    for (unsigned i = 0; i < 5; i++) {
        char from[20];
        struct envelope *e = sample("good@b.test");
        struct buffer form = form_of(e);
        struct sibling_message message = message_of(&form);
        snprintf(from, sizeof(from), "host%u", i);
        (void)kit_offer(&t.host, from, &message, buffer_text(&form), TEXT(BODY),
                        on_taken, &t);
        world_turns(&t.w);
        buffer_free(&form);
        envelope_free(&e);
    }
    static const char *const want[] = {"", "host4/01 ", "host3/01 host4/01 "};
    for (size_t most = 0; most < 3; most++) {
        buffer_init(&all, 1000);
        queue_each_taken(manager_queue(t.w.manager), most, note_recalled, &all);
        is_text(buffer_text(&all), text_from(want[most]), "the newest");
        buffer_free(&all);
    }
    buffer_init(&all, 1000);
    queue_each_taken(manager_queue(t.w.manager), TAKE_KNOWN_MAX, note_recalled, &all);
    is_number((int64_t)all.length, 5 * 9, "all");
    buffer_free(&all);
}

/* The clock of this host is set while an answer is lost. */
TEST(clock_set)
{
    static const int64_t hours[] = {2, -2};
    for (size_t i = 0; i < 2; i++) {
        FIXTURE(taker, t, taker_begin, taker_end);
        is_number(offer_envelope(&t, sample("later@b.test")), 0, "taken");
        struct id own = t.own;
        sim_loop_step_wall(t.w.loop, hours[i] * 3600 * 1000);
        world_turns(&t.w);
        is_number(offer_envelope(&t, sample("later@b.test")), 0, "known");
        ok(id_compare(own, t.own) == 0);
        sim_loop_advance(t.w.loop, 61 * 60 * 1000);
        is_number(offer_envelope(&t, sample("later@b.test")), 0, "for an hour");
        ok(id_compare(own, t.own) != 0);
    }
}

/* The giver's clock was years ahead: nobody waits as long for an attempt, or for its end. */
static void
test_ahead(void)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("later@b.test");
    e->birth_ms = SIM_WALL_START_MS + INT64_C(400) * 24 * 3600 * 1000;
    e->delivery.due_ms = e->birth_ms + 3600 * 1000;
    e->delivery.attempts = 2;
    is_number(offer_envelope(&t, e), 0, "taken");
    for (int i = 0; i < 2; i++) {
        e = load(&t);
        ok_named(e->birth_ms <= loop_now_ms(t.w.loop), "not younger than now");
        ok_named(sched_find(manager_sched(t.w.manager), t.own).due_ms <=
                     loop_now_ms(t.w.loop) + 5 * 3600 * 1000,
                 "farther ahead than a wait of ours, it counts as due");
        envelope_free(&e);
        taker_restart(&t);
    }
    t.w.all_good = true;
    sim_loop_advance(t.w.loop, 24 * 3600 * 1000);
    world_saw(&t.w, "me@a.test>later@b.test me@a.test>later@b.test ", "delivered");
    ok(world_is_empty(&t.w));
}

/* The giver's clock is wrong, and it says so: age and wait are the same here. A clock that
 * is set here meanwhile changes neither. */
static void
test_other_clock(int64_t ahead_ms, int64_t step_ms)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct sibling_hello hello = {.host = "relay1",
                                  .now_ms = loop_now_ms(t.w.loop) + ahead_ms,
                                  .heard_ms = loop_monotonic_ms(t.w.loop)};
    struct outcome refusal;
    struct envelope *e = sample("later@b.test");
    e->birth_ms = hello.now_ms - 7200 * 1000;
    e->delivery.due_ms = hello.now_ms + 900 * 1000;
    e->delivery.attempts = 2;
    struct buffer form = form_of(e);
    struct sibling_message message = message_of(&form);
    sim_loop_step_wall(t.w.loop, step_ms);
    sim_loop_advance(t.w.loop, 1000);
    const struct sibling_service *service = &t.host.service;
    struct taking *taking = service->take(service->context, &hello, &message, &refusal);
    must(taking != NULL);
    service->take_bytes(taking, buffer_text(&form));
    service->take_bytes(taking, TEXT(BODY));
    service->take_end(&taking, on_taken, &t);
    world_turns(&t.w);
    is_number(t.refusal.code, 0, "taken");
    envelope_free(&e);
    buffer_free(&form);
    e = load(&t);
    int64_t now_ms = loop_now_ms(t.w.loop),
            age_ms = now_ms - age_clock_birth_ms(&t.w.manager->age, e->birth_ms, now_ms),
            wait_ms = sched_find(manager_sched(t.w.manager), t.own).due_ms -
                      loop_now_ms(t.w.loop);
    ok_named(age_ms >= 7200 * 1000 && age_ms <= 7202 * 1000, "as old as there");
    ok_named(wait_ms >= 898 * 1000 && wait_ms <= 900 * 1000, "it waits as long");
    envelope_free(&e);
}

/* A failure that the giver has not reported is reported here, once; one that it has
 * reported is not. */
static void
test_failures(bool notified)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("bad@b.test later@b.test");
    e->recipients[0].done = true;
    e->delivery.done = 1;
    e->delivery.attempts = 2;
    e->delivery.due_ms = SIM_WALL_START_MS + 600 * 1000;
    envelope_fail(e, &(struct failure){.notified = notified,
                                       .outcome = outcome_make(
                                           VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                           "no such user")});
    is_number(offer_envelope(&t, e), 0, "taken");
    taker_restart(&t);
    sim_loop_advance(t.w.loop, 500 * 1000);
    world_saw(&t.w, "", "not before its time");
    sim_loop_advance(t.w.loop, 200 * 1000);
    taker_restart(&t);
    t.w.all_good = true;
    manager_retry_all(t.w.manager);
    world_turns(&t.w);
    unsigned reports = 0, tries = 0;
    struct text seen = buffer_text(&t.w.seen), one;
    while (text_word(&seen, " ", &one)) {
        reports += text_equal(one, TEXT(">me@a.test"));
        tries += text_equal(one, TEXT("me@a.test>bad@b.test"));
    }
    is_number(reports, notified ? 0 : 1, "the sender is told");
    is_number(tries, 0, "it is not tried");
    ok(world_is_empty(&t.w));
}

/* States that no host of ours gives. */
TEST(odd_states)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    t.w.all_good = true;
    struct envelope *e = sample("good@b.test");
    e->recipients[0].done = true;
    e->delivery.done = 1;
    is_number(offer_envelope(&t, e), 0, "a message of which nothing is left to do");
    taker_restart(&t);
    sim_loop_advance(t.w.loop, 1000);
    world_turns(&t.w);
    ok_named(world_is_empty(&t.w), "ends");
    t.w.all_good = false;
    e = sample("later@b.test");
    e->delivery.attempts = (unsigned)-1;
    e->delivery.due_ms = 0;
    e->birth_ms = INT64_MAX / 2;
    is_number(offer_envelope(&t, e), 0, "tried for ever, and of the far future");
    sim_loop_advance(t.w.loop, 1000);
    world_turns(&t.w);
    e = sample("later@b.test");
    e->delivery.due_ms = INT64_MAX;
    e->birth_ms = 0;
    offer_envelope(&t, e);
    taker_restart(&t);
    sim_loop_advance(t.w.loop, 3600 * 1000);
    world_turns(&t.w);
}

/* Nor texts: what would be a line of its own in a notification is a part of a line. */
TEST(forged)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("later@b.test");
    e->sender = TEXT("a\r\nb");
    is_number(offer_envelope(&t, e), 554, "a sender that is no address");
    e = sample("bad@b.test later@b.test");
    struct failure f = {.outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no")};
    strcpy(f.outcome.text, "no\r\nX-Forged: yes");
    e->recipients[0].done = true;
    e->delivery.done = 1;
    e->submitter = TEXT("user:a\nb");
    envelope_fail(e, &f);
    is_number(offer_envelope(&t, e), 0, "taken");
    e = load(&t);
    is_string(e->delivery.failures[0].outcome.text, "no  X-Forged: yes", "one line");
    is_text(e->submitter, TEXT(""), "no submitter");
    envelope_free(&e);
}

/* The data needed to sign it, and those that came with it. */
static void
test_carried(void)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("later@b.test");
    e->ours = true;
    e->header_needs = HEADER_NEEDS_FROM;
    e->submitter = TEXT("user:joe");
    e->priority = 3;
    e->trust = TEXT("int");
    e->prefix = TEXT("Received: by h (Petrel, from userid 0)\r\n");
    e->envelope_id = TEXT("QQ314159");
    e->ret = RETURN_HEADERS;
    e->delivery.warned_s = 14400;
    e->delivery.released = true;
    e->delivery.attempts = 7;
    is_number(offer_envelope(&t, e), 0, "taken");
    for (int i = 0; i < 2; i++) { /* from the journal, then from files */
        e = load(&t);
        ok(e->ours && e->header_needs == HEADER_NEEDS_FROM && e->priority == 3 &&
           e->ret == RETURN_HEADERS && !e->storage.injected);
        is_text(e->submitter, TEXT("user:joe"), "submitter");
        is_text(e->trust, TEXT("int"), "trust");
        is_text(e->envelope_id, TEXT("QQ314159"), "ENVID");
        is_number(e->birth_ms, SIM_WALL_START_MS - 3600 * 1000, "birth");
        is_number(e->delivery.warned_s, 14400, "warned");
        ok(e->delivery.released && e->moved.given == 1);
        envelope_free(&e);
        taker_restart(&t);
        manager_retry_all(t.w.manager);
        world_turns(&t.w);
    }
    ok(world_logged(&t.w, "from=relay1, was=") && !world_logged(&t.w, "sendmail: "));
    is_number(world_files(&t.w, "info"), 1, "deferred, in files");
}

static void
test_held(void)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct envelope *e = sample("good@b.test");
    e->moved.hold = TEXT("1750000000 held by the operator\n");
    is_number(offer_envelope(&t, e), 0, "taken");
    char note[QUEUE_NOTE_MAX];
    is_number(queue_note(manager_queue(t.w.manager), t.own, QUEUE_HOLD, note), 0,
              "held");
    sim_loop_advance(t.w.loop, 3600 * 1000);
    world_saw(&t.w, "", "not delivered");
    t.w.id = t.own;
    ok(world_operate(&t.w, MANAGER_REMOVE) == MANAGER_DONE);
    taker_restart(&t);
    ok_named(world_is_empty(&t.w), "an operator can remove it");
}

/* Mail that waited for a quota where it was: the uid is in its envelope. What was tried
 * there waits for its receiver. */
static void
test_quota(void)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    kit_host_stop(&t.host);
    t.w.settings.quotas = TEXT("uid:7 1/d");
    world_restart(&t.w);
    taker_start(&t);
    for (unsigned i = 0; i < 4; i++) {
        struct envelope *e = sample("good@b.test");
        e->id.hash += i;
        e->ours = true;
        e->submitter = TEXT("uid:7");
        e->moved.reason = TEXT("450 Quota: words of anybody");
        e->delivery.attempts = i == 3;
        struct buffer form = form_of(e);
        struct sibling_message message = message_of(&form);
        message.id = e->id;
        is_number(offer_message(&t, &message, &form), 0, "taken");
        buffer_free(&form);
        envelope_free(&e);
    }
    is_number(t.w.attempts, 2, "one may go, and one that was tried before");
    sim_loop_advance(t.w.loop, INT64_C(26) * 3600 * 1000);
    is_number(t.w.attempts, 3, "another one tomorrow");
}

/* A copy of a lost host: of any size, moved often, and not delivered before it is decided whose
 * it is. */
static void
adopt_begin(struct taker *t, uint64_t hash)
{
    struct envelope *e = sample("good@b.test");
    struct outcome refusal;
    struct buffer form;
    buffer_init(&form, 1024 * 1024);
    take_reload(t->host.take, 4);
    e->moved.given = GIVE_MOVES_MAX;
    e->moved.came = TEXT("relay7/01M8H4KQ7J-ZWR0RQV6");
    e->moved.first = TEXT("01M8H4KQ7J-ZWR0RQV6");
    e->id.hash = hash;
    must(envelope_write_given(e, &form));
    struct sibling_message message = message_of(&form);
    message.id = e->id;
    message.crc = 0;
    struct taking *taking = take_adopt(t->host.take, "relay1", &message, &refusal);
    must(taking != NULL);
    t->host.service.take_bytes(taking, buffer_text(&form));
    t->host.service.take_bytes(taking, TEXT(BODY));
    t->host.service.take_end(&taking, on_taken, t);
    buffer_free(&form);
    envelope_free(&e);
}

static void
adopt(struct taker *t, uint64_t hash)
{
    adopt_begin(t, hash);
    world_turns(&t->w);
}

/* The lost host is back, owns its copies again and gives the message, which is stored here and
 * not decided, or is about to be stored: that there is a copy of another host is no news then. */
TEST(given_while_adopted)
{
    for (int is_stored = 0; is_stored < 2; is_stored++) {
        FIXTURE(taker, t, taker_begin, taker_end);
        struct id was = there;
        was.hash = 3;
        adopt_begin(&t, was.hash);
        if (is_stored)
            world_turns(&t.w);
        struct envelope *e = sample("good@b.test");
        e->id = was;
        struct buffer form = form_of(e);
        struct sibling_message message = message_of(&form);
        message.id = was;
        is_number(offer_message(&t, &message, &form), 0, "it is taken");
        is_number(t.answers, 2, "for both");
        take_decide(t.host.take, "relay1", was, false);
        sim_loop_advance(t.w.loop, 60 * 1000);
        world_saw(&t.w, "me@a.test>good@b.test ", "and delivered, once");
        adopt(&t, was.hash);
        take_decide(t.host.take, "relay1", was, true);
        sim_loop_advance(t.w.loop, 60 * 1000);
        world_saw(&t.w, "", "it stays known");
        buffer_free(&form);
        envelope_free(&e);
    }
}

TEST(adopted)
{
    FIXTURE(taker, t, taker_begin, taker_end);
    struct id was = there;
    was.hash = 1;
    adopt(&t, 1);
    ok(t.answers == 1 && t.refusal.code == 0);
    world_saw(&t.w, "", "it is not delivered");
    ok(!queue_lacks(manager_queue(t.w.manager), t.own));
    take_decide(t.host.take, "relay1", was, true);
    take_decide(t.host.take, "relay1", was, false); /* decided */
    manager_pause(t.w.manager, true);
    sim_loop_advance(t.w.loop, 3600 * 1000);
    world_saw(&t.w, "", "nor while nothing is delivered");
    manager_drain(t.w.manager, 0, world_drained, &t.w);
    manager_cancel_drain(t.w.manager);
    sim_loop_advance(t.w.loop, 3600 * 1000);
    world_saw(&t.w, "", "which a drain does not end");
    manager_pause(t.w.manager, false);
    sim_loop_advance(t.w.loop, 3600 * 1000);
    world_saw(&t.w, "me@a.test>good@b.test ", "then it is");
    ok(world_logged(&t.w, "from=relay1, was=") && world_logged(&t.w, "status=adopted"));
    ok(queue_lacks(manager_queue(t.w.manager), t.own));
    was.hash = 2;
    adopt(&t, 2);
    adopt(&t, 2); /* known */
    is_number(t.answers, 3, "another");
    take_decide(t.host.take, "relay1", was, false);
    world_turns(&t.w);
    ok_named(world_is_empty(&t.w), "that another host has goes");
    adopt(&t, 2);
    taker_restart(&t);
    sim_loop_advance(t.w.loop, 3600 * 1000);
    world_saw(&t.w, "me@a.test>good@b.test ", "after a restart nobody can say so");
}

int
main(void)
{
    tap_tests("");
    test_other_clock(0, 0);
    test_other_clock(INT64_C(-40) * 24 * 3600 * 1000, 0);
    test_other_clock(INT64_C(40) * 24 * 3600 * 1000, 0);
    test_other_clock(-7200 * 1000, 3600 * 1000);
    test_ahead();
    test_failures(false);
    test_failures(true);
    test_carried();
    test_held();
    test_quota();
    return done();
}
