/* Quotas of sendmail(1): mail is counted when it is first loaded, with its recipients as they were given; what is too much waits in
 * todo/ and goes by itself, what can never pass is returned, and nothing is counted twice. */
/* link: t/sim/loop.c */
#include "queue/manager/expansion.h"
#include "queue/manager/manager_internal.h"
#include "t/support/injected.h"

enum { HOUR_MS = 3600 * 1000, SECOND_MS = 1000 };

static const char file[] = "team: good@a.test, good@b.test, good@c.test, good@d.test\n"
                           "one: good@one.test\n"
                           "same: good@one.test\n"
                           "bounced: bad@a.test, bad@b.test\n";

static struct aliases *aliases;

/* The manager forgets them at each start. */
static void
plug(struct world *w)
{
    if (aliases == NULL)
        aliases = injected_aliases(w, file);
    manager_set_aliases(w->manager, aliases, NULL);
}

static void
quota_begin(struct world *w, const char *quotas)
{
    manager_world_begin(w, "* smtp://x");
    w->plug = plug;
    w->settings.quotas = text_from(quotas);
    world_restart(w);
}

static void
quota_end(struct world *w)
{
    ok_named(world_is_empty(w), "nothing is left");
    manager_world_end(w);
    aliases_free(&aliases);
}

/* The use of its day by the uid of this process. */
static unsigned
used_of(const struct world *w, const char *name)
{
    char who[40];
    snprintf(who, sizeof(who), "%s%u", name, (unsigned)geteuid());
    struct quota_use *use = quotas_recall(manager_quotas(w->manager),
                                          text_from(name[0] == 'u' ? who : name));
    return use != NULL ? quota_used(use, QUOTA_DAY, loop_monotonic_ms(w->loop)) : 0;
}

/* Five of one recipient each, three a day. */
TEST(waits)
{
    FIXTURE(world, w, quota_begin, quota_end, "uid:* 3/d");
    world_stop(&w);
    for (int i = 0; i < 5; i++)
        injected_add(&w, "me@h.test", "good@x.test");
    manager_world_start(&w);
    is_number(w.attempts, 3, "three go");
    is_number(used_of(&w, "uid:"), 3, "and count");
    is_number(world_files(&w, "todo"), 2, "two wait where they were written");
    is_number(world_log_count(&w, "waits: Quota: 3 recipients a day of uid"), 2,
              "which is logged, once each");
    sim_loop_advance(w.loop, 5 * HOUR_MS);
    is_number(w.attempts, 3, "five hours later");
    is_number(world_log_count(&w, "waits: Quota"), 2, "nothing is logged again");
    world_restart(&w);
    is_number(w.attempts, 3, "a restart changes nothing");
    is_number(used_of(&w, "uid:"), 3, "nor counts it again");
    sim_loop_advance(w.loop, 22 * (int64_t)HOUR_MS);
    is_number(w.attempts, 5, "after a day they go by themselves");
}

TEST(as_given)
{
    FIXTURE(world, w, quota_begin, quota_end, "uid:* 4/d");
    world_stop(&w);
    injected_add(&w, "me@h.test", "team@h.test good@x.test");
    manager_world_start(&w);
    is_number(w.attempts, 5, "five copies");
    is_number(used_of(&w, "uid:"), 2, "of two recipients as they were given");
    world_stop(&w);
    injected_add(&w, "me@h.test", "one@h.test same@h.test");
    manager_world_start(&w);
    is_number(w.attempts, 6, "one copy");
    is_number(used_of(&w, "uid:"), 4, "of two");
    world_stop(&w);
    injected_add(&w, "me@h.test", "team@h.test");
    manager_world_start(&w);
    is_number(w.attempts, 6, "an alias more is too much");
    ok(manager_quota_waits(w.manager, w.id));
    sim_loop_advance(w.loop, 26 * (int64_t)HOUR_MS);
    is_number(w.attempts, 10, "tomorrow it goes");
    is_number(used_of(&w, "uid:"), 1, "as one");
}

static struct srs *secret;

static void
plug_srs(struct world *w)
{
    manager_set_aliases(w->manager, NULL, secret);
}

/* As an SRS address leads back to good@a.test. */
static struct srs *
srs_sighted(char address[SRS_ADDRESS_MAX])
{
    struct text key = TEXT("0123456789abcdef");
    struct srs *made = srs_new(TEXT("h.test"), &key, 1);
    if (!srs_forward(made, TEXT("good@a.test"), SIM_WALL_START_MS, address))
        abort();
    return made;
}

/* Mail of sendmail(1) for an address of SRS waits while the secret cannot be read: as
 * members of the null sender, bounces among them, can be lost. */
TEST(unsure)
{
    struct world w;
    char address[SRS_ADDRESS_MAX];
    manager_world_begin(&w, "* smtp://x");
    w.plug = plug_srs;
    struct srs *sighted = srs_sighted(address);
    secret = srs_new(TEXT("h.test"), NULL, 0);
    world_restart(&w);
    world_stop(&w);
    injected_add(&w, "", address);
    injected_add(&w, "me@h.test", address);
    manager_world_start(&w);
    is_number(w.attempts, 0, "nothing is tried");
    is_number(world_files(&w, "todo"), 2, "they wait where they were written");
    is_number(world_log_count(&w, "waits: addresses of SRS cannot be verified now"), 2,
              "which is logged, once each");
    sim_loop_advance(w.loop, 5 * HOUR_MS);
    world_restart(&w);
    is_number(w.attempts, 0, "and after a restart");
    is_number(world_files(&w, "todo"), 2, "they still wait");
    world_saw(&w, "", "nobody is notified");
    struct srs *blind = secret;
    secret = sighted;
    plug_srs(&w);
    sim_loop_advance(w.loop, 1000);
    is_number(w.attempts, 2, "the secret can be read: they go immediately");
    world_saw(&w, "me@h.test>good@a.test >good@a.test ",
              "to where the addresses lead");
    ok_named(world_is_empty(&w), "nothing is left");

    /* With any error, a message does not stay for longer than its lifetime. */
    world_stop(&w);
    secret = blind;
    injected_add(&w, "good@c.test", address);
    manager_world_start(&w);
    is_number(world_files(&w, "todo"), 1, "one that waits");
    sim_loop_advance(w.loop, 24 * 8 * (int64_t)HOUR_MS);
    ok(world_logged(&w, "the secret of SRS could not be read in time"));
    world_saw(&w, ">good@c.test ", "is returned");
    ok_named(world_is_empty(&w), "nothing is left");
    secret = NULL;
    manager_world_end(&w);
    srs_free(&blind);
    srs_free(&sighted);
}

/* --- Released before it was loaded ------------------------------------------------ */

TEST(released)
{
    FIXTURE(world, w, quota_begin, quota_end, "");
    injected_held(&w, "me@h.test", "team@h.test");
    manager_world_start(&w);
    is_number(w.attempts, 0, "nothing is tried");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w,
              "me@h.test>good@a.test me@h.test>good@b.test me@h.test>good@c.test "
              "me@h.test>good@d.test ",
              "released by the daemon: to the members");
    injected_held(&w, "me@h.test", "team@h.test");
    injected_operate(&w, MANAGER_RELEASE);
    is_number(world_files(&w, "hold"), 0, "released without a daemon");
    is_number(world_files(&w, "todo"), 1, "it stays where aliases are looked up");
    manager_world_start(&w);
    world_saw(&w,
              "me@h.test>good@a.test me@h.test>good@b.test me@h.test>good@c.test "
              "me@h.test>good@d.test ",
              "to the members");
}

/* The active queue is full: it goes to the disk, with the members. */
TEST(released_without_room)
{
    FIXTURE(world, w, quota_begin, quota_end, "");
    injected_held(&w, "me@h.test", "team@h.test");
    w.settings.sched.active_limit = 1;
    manager_world_start(&w);
    struct id held = w.id;
    w.stalled = true;
    world_deliver(&w, "me@h.test", "good@x.test");
    w.id = held;
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    is_number(w.attempts, 0, "there is no room");
    world_unstall(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(w.attempts, 5, "all members get it");
}

/* An address that cannot be verified now waits on, whether the active queue is full or
 * not. */
static void
test_released_unsure(unsigned limit)
{
    struct world w;
    char address[SRS_ADDRESS_MAX];
    manager_world_begin(&w, "* smtp://x");
    w.plug = plug_srs;
    struct srs *sighted = srs_sighted(address);
    secret = srs_new(TEXT("h.test"), NULL, 0);
    injected_held(&w, "", address);
    w.settings.sched.active_limit = (int)limit;
    manager_world_start(&w);
    struct id held = w.id;
    w.stalled = true;
    world_deliver(&w, "me@h.test", "good@x.test");
    w.id = held;
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_unstall(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(w.attempts, 1, "nothing but the other message is tried");
    is_number(world_files(&w, "todo"), 1, "it waits where it was written");
    world_saw(&w, "me@h.test>good@x.test ", "and is not lost");
    struct srs *blind = secret;
    secret = sighted;
    plug_srs(&w);
    sim_loop_advance(w.loop, 1000);
    world_saw(&w, ">good@a.test ", "there is a secret: it goes");
    ok_named(world_is_empty(&w), "nothing is left");
    secret = NULL;
    manager_world_end(&w);
    srs_free(&blind);
    srs_free(&sighted);
}

/* A route holds the message; it is released while it must wait for its quota, or for the
 * secret of SRS: the release counts afterwards. */
static void
test_release_remembered(void)
{
    struct world w;
    char address[SRS_ADDRESS_MAX], both[2 * SRS_ADDRESS_MAX];
    manager_world_begin(&w, "held.test hold\n* smtp://x");
    w.plug = plug_srs;
    struct srs *sighted = srs_sighted(address);
    secret = srs_new(TEXT("h.test"), NULL, 0);
    w.settings.quotas = TEXT("uid:* 3/d");
    snprintf(both, sizeof(both), "good@held.test %s", address);
    injected_held(&w, "me@h.test", both);
    manager_world_start(&w);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    is_number(world_files(&w, "todo"), 1, "it waits for the secret");
    sim_loop_advance(w.loop, HOUR_MS / 4);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_ALREADY);
    struct srs *blind = secret;
    secret = sighted;
    plug_srs(&w);
    sim_loop_advance(w.loop, 1000);
    world_saw(&w, "me@h.test>good@held.test me@h.test>good@a.test ",
              "then it passes the route, too");
    is_number(used_of(&w, "uid:"), 2, "of two recipients, as given");

    injected_held(&w, "me@h.test", "good@held.test good@b.test");
    manager_world_start(&w);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    is_number(world_files(&w, "todo"), 1, "it waits for the quota");
    world_saw(&w, "", "nothing is tried");
    sim_loop_advance(w.loop, 30 * (int64_t)HOUR_MS);
    world_saw(&w, "me@h.test>good@held.test me@h.test>good@b.test ",
              "tomorrow it passes the route");
    is_number(world_files(&w, "hold"), 0, "and is not held again");

    injected_held(&w, "me@h.test", "good@held.test good@b.test");
    manager_world_start(&w);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_DONE);
    sim_loop_advance(w.loop, 30 * (int64_t)HOUR_MS);
    world_saw(&w, "", "held meanwhile: nothing is tried");
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE);
    world_turns(&w);
    ok_named(world_is_empty(&w), "nothing is left");
    secret = NULL;
    manager_world_end(&w);
    srs_free(&blind);
    srs_free(&sighted);
}

static bool
is_marked(const struct world *w)
{
    char path[100], name[ID_LENGTH + 1];
    id_format(w->id, name);
    snprintf(path, sizeof(path), "%s/lock/%s", w->folder, name);
    return access(path, F_OK) == 0;
}

/* A message that an operator has released stays released over restarts, while it waits in todo/ and when it was released
 * without a daemon: a route does not hold it again. */
static void
test_release_lasts(void)
{
    struct world w;
    char address[SRS_ADDRESS_MAX], both[2 * SRS_ADDRESS_MAX];
    manager_world_begin(&w, "held.test hold\n* smtp://x");
    w.plug = plug_srs;
    struct srs *sighted = srs_sighted(address);
    secret = srs_new(TEXT("h.test"), NULL, 0);
    snprintf(both, sizeof(both), "good@held.test %s", address);
    injected_held(&w, "me@h.test", both);
    manager_world_start(&w);
    ok_named(!is_marked(&w), "held");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    for (int i = 0; i < 3; i++) {
        world_restart(&w);
        sim_loop_advance(w.loop, HOUR_MS / 4);
        is_number(world_files(&w, "hold"), 0, "it is not held again");
        is_number(world_files(&w, "todo"), 1, "but waits for the secret");
    }
    struct srs *blind = secret;
    secret = sighted;
    plug_srs(&w);
    sim_loop_advance(w.loop, 1000);
    world_saw(&w, "me@h.test>good@held.test me@h.test>good@a.test ", "then it passes the route");
    ok_named(world_is_empty(&w), "nothing is left");
    ok_named(!is_marked(&w), "nor its mark");

    /* It is removed while it waits. */
    secret = blind;
    injected_held(&w, "me@h.test", both);
    manager_world_start(&w);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    ok_named(is_marked(&w), "another has one");
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE);
    world_turns(&w);
    world_stop(&w);
    ok_named(!is_marked(&w), "which goes with it");
    secret = NULL;
    manager_world_end(&w);
    srs_free(&blind);
    srs_free(&sighted);
}

static void
test_release_offline(void)
{
    FIXTURE(world, w, manager_world_begin, quota_end, "held.test hold\n* smtp://x");
    w.plug = plug;
    world_restart(&w);
    injected_held(&w, "me@h.test", "good@held.test one@h.test");
    injected_operate(&w, MANAGER_RELEASE);
    is_number(world_files(&w, "todo"), 1, "released without a daemon");
    ok(is_marked(&w));
    manager_world_start(&w);
    world_saw(&w, "me@h.test>good@held.test me@h.test>good@one.test ", "it passes the route, to the members");
    is_number(world_files(&w, "hold"), 0, "and is not held again");
    ok_named(!is_marked(&w), "nothing is left of that");
}

/* --- Our own mail ----------------------------------------------------------------- */

/* A bounce for an address of SRS waits like mail of sendmail(1), with a journal, too: it
 * has the null sender, and would be lost. */
static void
test_unsure_bounce(int64_t journal_size, bool restarts)
{
    struct world w;
    char address[SRS_ADDRESS_MAX], bounce[SRS_ADDRESS_MAX + 20];
    manager_world_begin(&w, "* smtp://x");
    w.plug = plug_srs;
    w.settings.queue.journal_size = journal_size;
    struct srs *sighted = srs_sighted(address);
    secret = srs_new(TEXT("h.test"), NULL, 0);
    world_restart(&w);
    world_deliver(&w, address, "bad@x.test");
    snprintf(bounce, sizeof(bounce), "%s>bad@x.test ", address);
    world_saw(&w, bounce, "a message is refused");
    is_number(world_files(&w, "todo"), 1, "its bounce waits where SRS is looked up");
    for (int i = 0; i < 3; i++) {
        sim_loop_advance(w.loop, HOUR_MS);
        if (restarts)
            world_restart(&w);
    }
    world_saw(&w, "", "for hours");
    is_number(world_files(&w, "todo"), 1, "and does not move");
    struct srs *blind = secret;
    secret = sighted;
    plug_srs(&w);
    sim_loop_advance(w.loop, 1000);
    world_saw(&w, ">good@a.test ", "the secret can be read: the author gets it");
    ok_named(world_is_empty(&w), "nothing is left");
    secret = NULL;
    manager_world_end(&w);
    srs_free(&blind);
    srs_free(&sighted);
}

/* As the control socket's `test` does. */
static void
send_own(struct world *w, const char *sender, const char *recipient)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, text_from(sender));
    e->ours = true;
    if (!envelope_add(e, text_from(recipient), 0, TEXT("")))
        abort();
    manager_expand_own(w->manager, e);
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    (void)queue_write(draft, TEXT("Subject: x\r\n\r\nbody\r\n"));
    queue_name(draft, e);
    queue_commit(&draft, &e, world_stored, w);
    world_turns(w);
}

/* The active queue is full, so our own mail is read from the disk: that its address is
 * forged is found again. */
static void
test_forged_own(void)
{
    struct world w;
    char address[SRS_ADDRESS_MAX];
    manager_world_begin(&w, "* smtp://x");
    w.plug = plug_srs;
    w.settings.queue.journal_size = 4 << 20;
    w.settings.sched.active_limit = 1;
    secret = srs_sighted(address);
    world_restart(&w);
    w.stalled = true;
    world_deliver(&w, "me@h.test", "good@x.test");
    send_own(&w, "good@h.test", "SRS0=AAAAAA=Y6=a.test=good@h.test");
    world_unstall(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    ok(world_logged(&w, "the SRS hash, or the tag, is wrong or too old"));
    world_saw(&w, "me@h.test>good@x.test >good@h.test ", "nothing is sent to it");
    ok_named(world_is_empty(&w), "nothing is left");
    manager_world_end(&w);
    srs_free(&secret);
}

/* --- Quotas ------------------------------------------------------------------------ */

/* Others wait with an address of SRS for an hour, not for days: then they get the message,
 * and the sender hears of that address. */
TEST(unsure_shared)
{
    struct world w;
    char address[SRS_ADDRESS_MAX], both[2 * SRS_ADDRESS_MAX];
    manager_world_begin(&w, "* smtp://x");
    w.plug = plug_srs;
    struct srs *sighted = srs_sighted(address);
    secret = srs_new(TEXT("h.test"), NULL, 0);
    world_restart(&w);
    world_stop(&w);
    snprintf(both, sizeof(both), "good@ann.test %s", address);
    injected_add(&w, "good@me.test", both);
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS / 2);
    world_saw(&w, "", "for half an hour both wait");
    sim_loop_advance(w.loop, HOUR_MS);
    world_saw(&w, "good@me.test>good@ann.test >good@me.test ",
              "then ann gets it, and the sender a bounce");
    ok(world_logged(&w, "the secret of SRS could not be read"));
    ok_named(world_is_empty(&w), "nothing is left");

    /* A bounce cannot be bounced: all wait. */
    world_stop(&w);
    injected_add(&w, "", both);
    manager_world_start(&w);
    sim_loop_advance(w.loop, 5 * HOUR_MS);
    world_saw(&w, "", "with the null sender both wait");
    struct srs *blind = secret;
    secret = sighted;
    plug_srs(&w);
    sim_loop_advance(w.loop, 1000);
    world_saw(&w, ">good@ann.test >good@a.test ", "and get it in the end");
    secret = NULL;
    manager_world_end(&w);
    srs_free(&blind);
    srs_free(&sighted);
}

/* More than the quota in one message. */
TEST(never)
{
    FIXTURE(world, w, quota_begin, quota_end, "uid:* 3/d");
    world_stop(&w);
    w.notify = NOTIFY_SUCCESS | NOTIFY_FAILURE;
    injected_add(&w, "good@h.test", "good@a.test good@b.test good@c.test team@h.test");
    manager_world_start(&w);
    is_number(world_log_count(&w, "status=bounced"), 4, "the members of an alias fail in its place");
    is_number(world_log_count(&w, "status=sent (expanded into its members)"), 1, "which does not");
    w.notify = 0;
    world_saw(&w, ">good@h.test ", "only the bounce is sent");
    ok(world_logged(&w, "550 5.7.1 Quota: more recipients than the 3 a day of uid") ||
       world_logged(&w, "more recipients than the 3 a day of uid"));
    is_number(used_of(&w, "uid:"), 0, "and nothing counts");
    world_stop(&w);
    injected_add(&w, "good@h.test", "team@h.test team@h.test one@h.test");
    manager_world_start(&w);
    is_number(used_of(&w, "uid:"), 3, "three fit");
}

/* Mail that bounces has been sent on, too. */
static void
test_bounced(void)
{
    FIXTURE(world, w, quota_begin, quota_end, "uid:* 9/d\nsender:me@h.test 2/d");
    world_stop(&w);
    injected_add(&w, "me@h.test", "bounced@h.test");
    manager_world_start(&w);
    is_number(used_of(&w, "uid:"), 1, "counts");
    is_number(used_of(&w, "sender:me@h.test"), 1, "for each kind");
    world_stop(&w);
    injected_add(&w, "me@h.test", "good@a.test good@b.test");
    injected_add(&w, "other@h.test", "good@c.test");
    manager_world_start(&w);
    is_number(used_of(&w, "sender:me@h.test"), 1,
              "two more are too much for the sender");
    is_number(used_of(&w, "uid:"), 2, "and take nothing of the user");
    ok(manager_reset_quota(w.manager, TEXT("sender:me@h.test")));
    world_turns(&w);
    is_number(used_of(&w, "sender:me@h.test"), 2, "a reset lets them go");
}

static void
test_changes(void)
{
    FIXTURE(world, w, quota_begin, quota_end, "uid:* 1/d");
    world_stop(&w);
    for (int i = 0; i < 4; i++)
        injected_add(&w, "me@h.test", "team@h.test");
    manager_world_start(&w);
    is_number(w.attempts, 4, "one goes, to four");
    w.settings.quotas = TEXT("uid:* 2/d");
    manager_reload(w.manager, &w.settings, w.routes);
    world_turns(&w);
    is_number(w.attempts, 8, "a larger quota: another");
    w.settings.quotas = TEXT("");
    manager_reload(w.manager, &w.settings, w.routes);
    world_turns(&w);
    is_number(w.attempts, 16, "no quota: all");
}

/* The next hop is away: what was counted is tried again, and counts once. */
static void
test_deferred(void)
{
    FIXTURE(world, w, quota_begin, quota_end, "uid:* 3/d");
    world_stop(&w);
    injected_add(&w, "me@h.test", "later@a.test later@b.test");
    manager_world_start(&w);
    is_number(used_of(&w, "uid:"), 2, "counted");
    sim_loop_advance(w.loop, 3 * (int64_t)HOUR_MS);
    ok(w.attempts > 2);
    is_number(used_of(&w, "uid:"), 2, "once");
    world_restart(&w);
    is_number(used_of(&w, "uid:"), 2, "also after a restart");
    w.all_good = true;
    sim_loop_advance(w.loop, 5 * (int64_t)HOUR_MS);
}

int
main(void)
{
    tap_tests("");
    test_released_unsure(100);
    test_released_unsure(1);
    test_release_remembered();
    test_release_lasts();
    test_release_offline();
    test_unsure_bounce(0, false);
    test_unsure_bounce(0, true);
    test_unsure_bounce(4 << 20, false);
    test_unsure_bounce(4 << 20, true);
    test_forged_own();
    test_bounced();
    test_changes();
    test_deferred();
    return done();
}
