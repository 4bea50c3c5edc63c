/* Notifications that nobody gets: when they are a finding, of which host, and until when. */
/* link: t/sim/loop.c */
#include "t/support/manager_world.h"

enum { DAY_MS = 24 * 60 * 60 * 1000 };

static char list[2000];

static void
note(void *context, const char *host, const char *what)
{
    (void)context;
    snprintf(list, sizeof(list), "%s: %s", host, what);
}

static bool
is_lost(struct world *w, const char *words)
{
    list[0] = '\0';
    manager_lost_reports(w->manager, note, NULL);
    return words[0] == '\0' ? list[0] == '\0' : strstr(list, words) != NULL;
}

static void
answer(struct world *w, const char *sender, const char *host, const char *reply)
{
    snprintf(world_refusal.host, sizeof(world_refusal.host), "%s", host);
    world_refusal.reply = reply;
    world_send(w, sender, "x@b.test");
    world_turns(w);
}

/* A smarthost that refuses the null sender, where mail waits since we have logged in. */
TEST(refused)
{
    static const char refusal[] = "450 4.7.1 sender <> not owned by this account "
                                  "(in reply to MAIL FROM command)";
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    manager_set_channel(w.manager, TARGET_SMTP, world_open_refusing, &w);
    world_refusal.blame = BLAME_MESSAGE;
    ok_named(is_lost(&w, ""), "nothing yet");
    answer(&w, "ann@a.test", "mx.b.test", refusal);
    ok_named(is_lost(&w, ""), "the sender of other mail is the finding sender_refused");
    answer(&w, "", "mx.b.test", "450 4.2.1 mailbox busy");
    ok_named(is_lost(&w, ""), "a mailbox is no matter of the sender");
    answer(&w, "", "mx.b.test", refusal);
    ok_named(is_lost(&w, "mx.b.test: notifications of failed mail are lost"),
             "a refused null sender is lost");
    ok_named(is_lost(&w, "sender <> not owned by this account"), "with the reply");
    answer(&w, "ann@a.test", "mx.b.test", NULL);
    ok_named(!is_lost(&w, ""), "other mail that is taken proves nothing");
    answer(&w, "", "mx.c.test", NULL);
    ok_named(!is_lost(&w, ""), "nor does another host");
    answer(&w, "", "mx.b.test", NULL);
    ok_named(is_lost(&w, ""), "a notification that is taken ends it");
    answer(&w, "", "mx.b.test", refusal);
    sim_loop_advance(w.loop, 6 * (int64_t)DAY_MS);
    answer(&w, "", "mx.b.test", refusal);
    ok_named(!is_lost(&w, ""), "the last one counts");
}

TEST(discarded)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "h.test smtp://other.test, * smtp://sink.test");
    world_deliver(&w, "", "bad@b.test");
    ok_named(is_lost(&w, "postmaster: notifications of failed mail are lost"),
             "one to postmaster that fails");
    ok_named(is_lost(&w, "no such user"), "with its reason");
    ok_named(world_logged(&w, "to postmaster failed; discarded: no such user"),
             "which is logged");
    sim_loop_advance(w.loop, 8 * (int64_t)DAY_MS);
    ok_named(is_lost(&w, ""), "for a week");
}
