/* The end of a session in every form: none leads to the next session in the same second
 * while its host is not known to work, none blames a site that is not to blame, and none
 * leaves mail without an attempt for ever. */
#include "t/support/sched_world.h"

static struct outcome
ended(enum verdict verdict, enum blame blame)
{
    return outcome_make(verdict, blame, 0, verdict == VERDICT_FAILED ? "5.1.2" : "4.4.2",
                        "it has ended");
}

static const struct form {
    enum verdict verdict;
    enum blame blame;
} forms[] = {
    {VERDICT_DELIVERED, BLAME_NONE   },
    {VERDICT_DEFERRED,  BLAME_MESSAGE},
    {VERDICT_DEFERRED,  BLAME_SITE   },
    {VERDICT_DEFERRED,  BLAME_ADDRESS},
    {VERDICT_DEFERRED,  BLAME_DEMAND },
    {VERDICT_FAILED,    BLAME_MESSAGE},
    {VERDICT_FAILED,    BLAME_SITE   }
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

/* A host that ends each session before its greeting in that way, for a minute. */
static void
test_ungreeted(const struct form *f)
{
    struct channel *c;
    struct outcome why = ended(f->verdict, f->blame);
    bool is_ours = f->verdict != VERDICT_FAILED &&
                   (f->blame == BLAME_NONE || f->blame == BLAME_MESSAGE);
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 10);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int s = 0; s < 60; s++) {
        unsigned before = w.opens;
        while ((c = world_channel(&w, "a.example", 0)) != NULL && w.opens < 1000)
            channel_end(&w, c, &why);
        world_must(w.opens - before <= 1, "a second session within a second");
        world_pass(&w, 1000);
    }
    ok_named(w.opens <= 61, "at most one session a second");
    if (is_ours)
        is_number(w.mails[0].deferrals + w.mails[0].finals, 0, "no attempt of the mail");
    else
        ok_named(w.mails[0].deferrals + w.mails[0].finals > 0, "an attempt of the mail");
}

/* A host that greets, and ends the session before it has heard the message. */
TEST(unheard)
{
    struct outcome why = ended(VERDICT_DEFERRED, BLAME_SITE);
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 10);
    w.may_be_early = true;
    for (int i = 0; i < 5; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (struct channel *c; (c = world_channel(&w, "a.example", 0)) != NULL;) {
        if (channel_take(&w, c))
            channel_answer(&w, c, VERDICT_DEFERRED, BLAME_SITE);
        channel_end(&w, c, &why);
    }
    ok_named(w.opens <= 5, "no session for each message");
    for (int i = 0; i < 5; i++)
        is_number(w.mails[i].deferrals, 1, "an attempt");
}

/* A greeted session whose host is gone while nothing is under way on its connection: it
 * has carried no mail, or else delivery.c would say that nothing is wrong. */
TEST(gone)
{
    struct outcome why = ended(VERDICT_DEFERRED, BLAME_SITE);
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 10);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(channel_take(&w, c));
    channel_send(&w, c);
    ok(!channel_take(&w, c));
    channel_end(&w, c, &why);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    ok_named(world_channel(&w, "a.example", 0) == NULL, "the site pauses");
    is_number(w.mails[1].deferrals, 0, "and no message is blamed");
    world_pass(&w, 1000);
    ok_named(world_channel(&w, "a.example", 0) != NULL, "for a second");
}

/* Mail that was refused in a way that ended its session fails alone. */
TEST(refused_mail)
{
    struct outcome why = ended(VERDICT_FAILED, BLAME_MESSAGE);
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 10);
    for (int i = 0; i < 3; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(channel_take(&w, c));
    channel_answer(&w, c, VERDICT_FAILED, BLAME_MESSAGE);
    channel_end(&w, c, &why);
    world_run(&w);
    unsigned finals = 0;
    for (int i = 0; i < 3; i++)
        finals += w.mails[i].finals;
    is_number(finals, 1, "one message has failed");
}

/* A kept session that ends although nothing is wrong: the next one comes immediately. */
TEST(kept)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 10);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(channel_take(&w, c));
    channel_send(&w, c);
    ok(!channel_take(&w, c));
    channel_end(&w, c, &outcome_no_trouble);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    ok_named(world_channel(&w, "a.example", 0) != NULL, "mail has a session immediately");
}

/* A host that is back, and whose mail on disk finds no place in memory, is not asked
 * again and again. */
TEST(probe_without_room)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 2, 100);
    w.target.transport.adaptive = true;
    w.may_be_early = true;
    for (int i = 0; i < 2; i++)
        world_add(&w, "back.example", 0, 0);
    world_run(&w);
    while (world_channel(&w, "back.example", 0))
        channel_refuse(&w, world_channel(&w, "back.example", 0));
    int64_t until_ms = world_site(&w, "smtp:back.example").site.dead_until_ms;
    for (int i = 0; i < 2; i++)
        world_add(&w, "busy.example", 0, 0);
    world_run(&w);
    is_number(w.active, 2, "memory is full of other mail");
    world_pass(&w, until_ms - w.now);
    struct channel *c = world_channel(&w, "back.example", 0);
    ok_named(c && !channel_take(&w, c) && !channel_take(&w, c), "the probe greets");
    unsigned opens = w.opens;
    channel_end(&w, c, NULL);
    world_pass(&w, 60000);
    is_number(w.opens, opens, "it ends without mail: once is enough");
    channel_drain(&w, world_channel(&w, "busy.example", 0));
    while ((c = world_channel(&w, "", 0)))
        channel_drain(&w, c);
    is_number(w.finishes, 4, "the mail goes when it has a place");
}

int
main(void)
{
    for (int i = 0; i < FORMS; i++)
        test_ungreeted(&forms[i]);
    tap_tests("");
    return done();
}
