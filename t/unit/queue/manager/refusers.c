/* Receivers that refuse this host: which, why, until when, and how many are remembered. */
/* link: t/sim/loop.c */
#include "t/support/manager_world.h"

enum { MINUTE_MS = 60 * 1000, HOUR_MS = 60 * MINUTE_MS };

static char list[8000];
static size_t count;

static void
note(void *context, const char *receiver, const char *what)
{
    (void)context;
    count++;
    snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s: %s\n", receiver, what);
}

static size_t
refusers(struct world *w)
{
    list[0] = '\0';
    count = 0;
    manager_refusers(w->manager, note, NULL);
    return count;
}

static void
answer(struct world *w, const char *host, const char *reply)
{
    snprintf(world_refusal.host, sizeof(world_refusal.host), "%s", host);
    world_refusal.reply = reply;
    world_send(w, "", "x@b.test"); /* nobody hears of it */
    world_turns(w);
}

static void
begin(struct world *w)
{
    manager_world_begin(w, "* smtp://sink.test");
    manager_set_channel(w->manager, TARGET_SMTP, world_open_refusing, w);
    world_refusal.blame = BLAME_MESSAGE;
}

TEST(which)
{
    FIXTURE(world, w, begin, manager_world_end);
    is_number((long)refusers(&w), 0, "nobody yet");
    answer(&w, "mx.b.test", "550 5.1.1 user unknown");
    answer(&w, "mx.b.test", "550 5.7.1 Relaying denied");
    answer(&w, "mx.b.test", NULL);
    is_number((long)refusers(&w), 0, "one user, or a route, is no matter of this host");
    answer(&w, "mx.b.test", "550 5.7.25 no PTR record");
    is_number((long)refusers(&w), 1, "the name of its address is");
    ok_named(strstr(list, "mx.b.test: refuses mail (ptr): ") == list, list);
    answer(&w, "mx.b.test", "554 5.7.1 blocked using zen.spamhaus.org");
    is_number((long)refusers(&w), 1, "one receiver, one entry");
    ok_named(strstr(list, "(reputation)") != NULL, "of the last reason");
    answer(&w, "mx.c.test", "450 4.7.26 SPF and DKIM missing");
    is_number((long)refusers(&w), 2, "a temporary refusal counts, too");
    answer(&w, "alt1.gmail-smtp-in.l.google.com", "550 5.7.26 x");
    answer(&w, "alt2.gmail-smtp-in.l.google.com", "550 5.7.26 x");
    is_number((long)refusers(&w), 3, "the hosts of a large receiver are one");
    ok_named(strstr(list, "Google: refuses mail (auth): Google wants") != NULL, list);
    world_refusal.blame = BLAME_ADDRESS;
    answer(&w, "mx.d.test", "450 5.7.25 no PTR record");
    is_number((long)refusers(&w), 3, "what goes to IPv4 instead is no refusal");
}

TEST(until_when)
{
    FIXTURE(world, w, begin, manager_world_end);
    answer(&w, "mx.a.test", "550 5.7.25 no PTR record");
    answer(&w, "mx.b.test", "550 5.7.25 no PTR record");
    answer(&w, "mx.b.test", NULL);
    sim_loop_advance(w.loop, 59 * MINUTE_MS);
    is_number((long)refusers(&w), 2, "both for an hour");
    sim_loop_advance(w.loop, MINUTE_MS);
    is_number((long)refusers(&w), 1, "then not the one that has taken mail since");
    ok_named(strstr(list, "mx.a.test") == list, list);
    answer(&w, "mx.a.test", "550 5.7.25 no PTR record");
    sim_loop_advance(w.loop, 5 * HOUR_MS + 59 * MINUTE_MS);
    is_number((long)refusers(&w), 1, "the other for six hours after the last refusal");
    sim_loop_advance(w.loop, MINUTE_MS);
    is_number((long)refusers(&w), 0, "and no longer");
    answer(&w, "mx.b.test", "550 5.7.25 no PTR record");
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    is_number((long)refusers(&w), 1, "refused again, it has taken nothing since");
}

TEST(many)
{
    char host[300];
    FIXTURE(world, w, begin, manager_world_end);
    for (int i = 0; i < 3 * MANAGER_REFUSERS_MAX; i++) {
        snprintf(host, sizeof(host), "mx%d.test", i);
        answer(&w, host, "550 5.7.25 no PTR record");
        sim_loop_advance(w.loop, 1000);
    }
    is_number((long)refusers(&w), MANAGER_REFUSERS_MAX, "no more than that");
    ok_named(strstr(list, "mx47.test") != NULL && strstr(list, "mx31.test") == NULL, "those refused last");
    memset(host, 'x', 280);
    strcpy(host + 280, ".test");
    answer(&w, host, "550 5.7.25 no PTR record");
    answer(&w, host, "550 5.7.25 no PTR record");
    is_number((long)refusers(&w), MANAGER_REFUSERS_MAX, "a long name is one, too");
    answer(&w, "", "550 5.7.25 no PTR record");
    is_number((long)refusers(&w), MANAGER_REFUSERS_MAX, "one without a name is none");
}
