/* queue/manager/manager_suppression.c: a dead address is tried once, whatever mail comes or waits for it. */
/* link: t/sim/loop.c */
#include "queue/manager/manager.h"
#include "t/support/manager_world.h"

#define DEAD "550 5.1.1 User unknown (in reply to RCPT TO command)"

enum { MINUTE_MS = 60 * 1000 };

static unsigned suppressed_events;

static void
on_event(void *context, const struct event *event)
{
    (void)context;
    suppressed_events += event->kind == EVENT_SUPPRESSED;
}

static void
plug_refusal(struct world *w)
{
    manager_set_channel(w->manager, TARGET_SMTP, world_open_refusing, w);
}

static void
suppress_begin(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    w->settings.suppression = (struct suppression_settings){
        .is_on = true, .hard_ms = INT64_C(90) * 24 * 3600 * 1000, .limit = 1000};
    w->plug = plug_refusal;
    world_refusal = (struct world_refusal){.reply = DEAD, .host = "mx.test", .blame = BLAME_MESSAGE};
    world_restart(w);
    suppressed_events = 0;
    event_read(w->events, EVENT_BIT(EVENT_SUPPRESSED), on_event, w);
}

static bool
suppresses(struct world *w, const char *sender, const char *recipient)
{
    struct outcome o;
    return manager_suppresses(w->manager, text_from(sender), text_from(recipient), &o);
}

TEST(tried_once)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "* smtp://x");
    world_deliver(&w, "me@h.test", "dead@b.test");
    is_number(world_log_count(&w, "to=<dead@b.test>, relay=mx.test"), 1, "it is tried");
    is_number(suppressed_events, 1, "it is told");
    ok_named(suppresses(&w, "me@h.test", "dead@b.test"), "RCPT is refused then");
    ok_named(!suppresses(&w, "me@h.test", "other@b.test"), "not for others");
    world_deliver(&w, "me@h.test", "dead@b.test other@b.test");
    is_number(world_log_count(&w, "to=<dead@b.test>, relay=mx.test"), 1, "mail without such a reply fails untried");
    ok(world_logged(&w, "to=<dead@b.test>, relay=none"));
    ok(world_logged(&w, "suppressed since 2025-06-15 after a hard bounce (550 5.1.1 User unknown"));
    is_number(world_log_count(&w, "to=<other@b.test>, relay=mx.test"), 1, "the other recipient is tried");
    is_number(suppression_count(manager_suppression(w.manager)).failed, 1, "it is counted");
    world_restart(&w);
    ok_named(suppresses(&w, "me@h.test", "dead@b.test"), "over a restart");
}

/* Two messages wait in memory while the first is refused. */
TEST(mail_that_waits)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "* smtp://x?concurrency=1");
    for (int i = 0; i < 5; i++)
        world_send(&w, "me@h.test", "dead@b.test");
    world_turns(&w);
    sim_loop_advance(w.loop, 30 * MINUTE_MS);
    is_number(world_log_count(&w, "to=<dead@b.test>, relay=mx.test"), 1, "the others never reach a session");
    is_number(world_log_count(&w, "to=<dead@b.test>, relay=none"), 4, "and fail immediately");
    ok_named(world_is_empty(&w), "nothing is left");
}

TEST(own_domains_are_asked)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "* smtp://x");
    world_deliver(&w, "me@h.test", "new@h.test");
    world_deliver(&w, "me@h.test", "new@h.test");
    is_number(world_log_count(&w, "to=<new@h.test>, relay=mx.test"), 2, "a mailbox of a local domain may come");
    ok(!suppresses(&w, "me@h.test", "new@h.test"));
}

/* A host may refuse the content for one of two recipients: the other is as good as before. */
TEST(content_of_others)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "* smtp://x");
    world_refusal.reply = "550 5.1.1 User unknown (in reply to end of DATA command)";
    for (int i = 0; i < 3; i++)
        world_deliver(&w, "me@h.test", "good@b.test other@b.test");
    ok_named(!suppresses(&w, "me@h.test", "good@b.test"), "nobody knows whom it was about");
    for (int i = 0; i < 3; i++)
        world_deliver(&w, "me@h.test", "bad@b.test");
    ok_named(suppresses(&w, "me@h.test", "bad@b.test"), "one alone is it");
}

/* The mailbox of a redirect may be dead: those for whom the mail was are not. */
TEST(redirects)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "stage.test smtp://x\n* redirect:dead@stage.test");
    world_deliver(&w, "me@h.test", "ann@b.test");
    is_number(world_log_count(&w, "to=<ann@b.test>, relay=mx.test"), 1, "the mailbox of the redirect is dead");
    ok_named(!suppresses(&w, "me@h.test", "ann@b.test"), "the recipient is not");
    manager_suppress(w.manager, TEXT("me@h.test"), TEXT("bob@b.test"), SUPPRESSION_HARD, TEXT("x"));
    ok_named(!suppresses(&w, "me@h.test", "bob@b.test"), "nor is one refused that is not tried");
    world_deliver(&w, "me@h.test", "bob@b.test");
    is_number(world_log_count(&w, "to=<bob@b.test>, relay=mx.test"), 1, "at RCPT, or later");
}

TEST(copies)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "* smtp://x");
    w.settings.copy_to = TEXT("archive@c.test");
    world_restart(&w);
    world_deliver(&w, "me@h.test", "new@h.test");
    ok_named(!suppresses(&w, "me@h.test", "archive@c.test"), "an archive that refuses one copy");
    world_deliver(&w, "me@h.test", "new@h.test");
    is_number(world_log_count(&w, "to=<archive@c.test>, relay=mx.test"), 2, "gets the next");
}

TEST(complaints_of_others)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "* smtp://x");
    manager_suppress(w.manager, TEXT("me@h.test"), TEXT("good@b.test"), SUPPRESSION_COMPLAINT, TEXT("abuse"));
    is_number(suppressed_events, 1, "it is told");
    ok(suppresses(&w, "me@h.test", "good@b.test"));
    manager_suppress(w.manager, TEXT("me@h.test"), TEXT("good@h.test"), SUPPRESSION_COMPLAINT, TEXT("abuse"));
    ok(!suppresses(&w, "me@h.test", "good@h.test"));
}

TEST(off)
{
    char path[200];
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://x");
    world_deliver(&w, "me@h.test", "bad@b.test");
    manager_suppress(w.manager, TEXT("me@h.test"), TEXT("bad@b.test"), SUPPRESSION_HARD, TEXT("x"));
    ok(manager_suppression(w.manager) == NULL);
    world_restart(&w);
    snprintf(path, sizeof(path), "%s/lock/suppressed", w.settings.queue.spool);
    ok_named(access(path, F_OK) != 0, "no file");
    w.settings.suppression = (struct suppression_settings){.is_on = true, .limit = 10};
    manager_reload(w.manager, &w.settings, w.routes);
    manager_suppress(w.manager, TEXT("me@h.test"), TEXT("bad@b.test"), SUPPRESSION_HARD, TEXT("x"));
    ok_named(suppresses(&w, "me@h.test", "bad@b.test"), "a reload begins");
    w.settings.suppression.is_on = false;
    manager_reload(w.manager, &w.settings, w.routes);
    ok_named(!suppresses(&w, "me@h.test", "bad@b.test"), "and ends it");
    w.settings.suppression.is_on = true;
    manager_reload(w.manager, &w.settings, w.routes);
    ok_named(suppresses(&w, "me@h.test", "bad@b.test"), "the list stays");
}

/* A list of 200 addresses, of which every tenth is dead, gets ten mailings; the daemon starts anew after each. */
static struct outcome
list_outcome(struct text address)
{
    uint64_t number = 1;
    (void)!text_number(text_before(text_after(address, 1), text_find(address, '@') - 1), 1000, &number);
    if (number % 10 != 0)
        return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "taken");
    struct outcome o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "%s", "");
    outcome_say_reply(&o, "mx.test[192.0.2.1]", TEXT("550 5.1.1 User unknown"), "in reply to RCPT TO command");
    text_copy(o.remote, sizeof(o.remote), TEXT("mx.test[192.0.2.1]:25"));
    return o;
}

static struct world *mailing;
static unsigned tries[201]; /* the last: of others */

static void
list_work(void *context)
{
    struct sched_session *session = context;
    struct delivery_request request;
    while (manager_take(mailing->manager, session, &request))
        for (size_t i = 0; i < request.count; i++) {
            struct text address = request.envelope->recipients[request.indexes[i]].address;
            uint64_t number = 200;
            (void)!text_number(text_before(text_after(address, 1), text_find(address, '@') - 1), 199, &number);
            tries[number]++;
            struct outcome o = list_outcome(address);
            manager_settled(mailing->manager, &request, i, &o, NULL);
        }
    manager_session_ended(mailing->manager, session, &outcome_no_trouble);
}

static void
list_open(void *context, struct sched_session *session, const struct target *target, const char *domain)
{
    static struct loop_task tasks[100];
    static unsigned next;
    (void)target, (void)domain;
    mailing = context;
    loop_post(mailing->loop, &tasks[next++ % 100], list_work, session);
}

static void
plug_list(struct world *w)
{
    manager_set_channel(w->manager, TARGET_SMTP, list_open, w);
}

TEST(ten_mailings)
{
    FIXTURE(world, w, suppress_begin, manager_world_end, "* smtp://x");
    w.plug = plug_list;
    for (int run = 0; run < 10; run++) {
        world_restart(&w);
        for (int i = 0; i < 200; i += 4) {
            char to[100];
            snprintf(to, sizeof(to), "a%d@b.test a%d@b.test a%d@b.test a%d@b.test", i, i + 1, i + 2, i + 3);
            world_send(&w, "me@h.test", to);
        }
        world_turns(&w);
        sim_loop_advance(w.loop, 10 * MINUTE_MS);
    }
    unsigned dead = 0, others = 0;
    for (int i = 0; i < 200; i++)
        *(i % 10 == 0 ? &dead : &others) += tries[i] != (i % 10 == 0 ? 1U : 10U);
    is_number(dead, 0, "each dead address is tried once");
    is_number(others, 0, "and each other one in every mailing");
    ok_named(world_is_empty(&w), "nothing is left");
}
