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
