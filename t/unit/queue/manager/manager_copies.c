/* Copies (`copy_to`): each message that is accepted has one, which is durable with it, has no sender, and whose failure nobody
 * hears of. */
/* link: t/sim/loop.c */
#include "queue/manager/manager_internal.h"

#include "mime/verp.h"
#include "t/support/injected.h"

#include <stdlib.h>
#include <string.h>

static void
copies_begin(struct world *w, const char *table)
{
    manager_world_begin(w, "* smtp://x");
    w->settings.copy_to = text_from(table);
    world_restart(w);
}

static void
copies_end(struct world *w)
{
    ok_named(world_is_empty(w), "nothing is left");
    manager_world_end(w);
}

static unsigned
times(const struct world *w, const char *words)
{
    unsigned count = 0;
    struct text rest = buffer_text(&w->seen);
    for (const char *at; rest.length > 0 && (at = memmem(rest.at, rest.length, words, strlen(words))) != NULL; count++)
        rest = text_after(rest, (size_t)(at - rest.at) + 1);
    return count;
}

TEST(once)
{
    FIXTURE(world, w, copies_begin, copies_end, "good@arc.test");
    world_deliver(&w, "ann@a.test", "good@b.test good@c.test");
    is_number(w.attempts, 3, "two recipients and the copy");
    is_number(times(&w, " >good@arc.test "), 1, "which has no sender");
    world_deliver(&w, "ann@a.test", "good@arc.test");
    is_number(times(&w, "ann@a.test>good@arc.test "), 1, "mail to it is a copy itself");
    is_number(w.attempts, 4, "and has none");
    is_number(manager_copied(w.manager).delivered, 1, "counted");
}

TEST(no_reports)
{
    const struct text secret = TEXT("0123456789abcdef");
    FIXTURE(world, w, copies_begin, copies_end, "good@arc.test");
    struct verp *v = verp_new(TEXT("bounce@shop.test"), srs_new(TEXT(""), &secret, true));
    manager_set_verp(w.manager, v);
    world_deliver(&w, "", "bounce@shop.test");
    is_number(w.attempts, 0, "a report that is read has no copy");
    world_deliver(&w, "ann@a.test", "bounce@shop.test good@b.test");
    is_number(times(&w, " >good@arc.test "), 1, "mail that goes on has");
    manager_set_verp(w.manager, NULL);
    verp_free(&v);
}

TEST(fails_alone)
{
    FIXTURE(world, w, copies_begin, copies_end, "bad@arc.test");
    w.notify = NOTIFY_SUCCESS | NOTIFY_FAILURE;
    world_deliver(&w, "ann@a.test", "bad@b.test");
    is_number(times(&w, ">ann@a.test "), 1, "the author hears of the own recipient");
    ok(world_logged(&w, "the copy for <bad@arc.test> failed, and nobody is notified"));
    w.seen.length = 0;
    w.notify = NOTIFY_DEFAULT;
    world_deliver(&w, "ann@a.test", "good@b.test");
    is_number(times(&w, ">ann@a.test "), 0, "and of no copy");
    is_number(manager_copied(w.manager).failed, 2, "counted");
    is_string(manager_copied(w.manager).failed_to, "bad@arc.test", "the last one");
}

/* The others go, and are reported; over restarts the copy goes on by itself, however the table
 * has changed. */
TEST(waits_alone)
{
    FIXTURE(world, w, copies_begin, copies_end, "later@arc.test");
    world_deliver(&w, "ann@a.test", "good@b.test");
    is_number(times(&w, "ann@a.test>good@b.test "), 1, "delivered");
    w.settings.copy_to = TEXT("other@arc.test");
    world_restart(&w);
    for (int i = 0; i < 20 && !world_is_empty(&w); i++) {
        sim_loop_advance(w.loop, 3600 * 1000);
        world_turns(&w);
        w.all_good = i >= 3;
    }
    is_number(times(&w, "good@b.test "), 1, "once");
    is_number(times(&w, "other@arc.test "), 0, "no new copy");
    ok_named(times(&w, ">later@arc.test ") > 1, "tried again");
}

/* sendmail(1): also when it is loaded again, and beside a rule that a reload brings. */
TEST(injected)
{
    FIXTURE(world, w, copies_begin, copies_end, "sender:h.test good@arc.test");
    world_stop(&w);
    injected_add(&w, "me@h.test", "good@x.test");
    injected_add(&w, "me@other.test", "good@x.test");
    manager_world_start(&w);
    world_turns(&w);
    is_number(times(&w, ">good@x.test "), 2, "both are sent");
    is_number(times(&w, " >good@arc.test ") + text_starts(buffer_text(&w.seen), TEXT(">good@arc.test ")), 1, "one is copied");
}

/* Nor does an operator who returns mail of sendmail(1) forget the copy and the members of an alias. */
TEST(returned)
{
    FIXTURE(world, w, copies_begin, copies_end, "good@arc.test");
    struct aliases *aliases = injected_aliases(&w, "team: one@a.test, two@a.test\n");
    injected_held(&w, "me@h.test", "team@h.test");
    manager_world_start(&w);
    manager_set_aliases(w.manager, aliases, NULL);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DONE);
    ok(world_logged(&w, "the copy for <good@arc.test> failed, and nobody is notified"));
    ok(world_logged(&w, "to=<one@a.test>, ") && world_logged(&w, "to=<two@a.test>, "));
    is_number(world_log_count(&w, "status=bounced (returned by the operator"), 3, "each of them");
    world_turns(&w);
    is_number(times(&w, ">me@h.test "), 1, "the sender is notified");
    world_stop(&w);
    aliases_free(&aliases);
    manager_world_start(&w);
}

/* One that the sender wants to hear of is expanded all the same. */
TEST(returned_alias)
{
    FIXTURE(world, w, copies_begin, copies_end, "good@arc.test");
    struct aliases *aliases = injected_aliases(&w, "team: one@a.test, two@a.test\n");
    w.notify = NOTIFY_SUCCESS | NOTIFY_FAILURE;
    injected_held(&w, "me@h.test", "team@h.test");
    manager_world_start(&w);
    manager_set_aliases(w.manager, aliases, NULL);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_DONE);
    ok(world_logged(&w, "to=<team@h.test>, ") && world_logged(&w, "status=sent (expanded into its members)"));
    is_number(world_log_count(&w, "status=bounced (returned by the operator"), 3, "its members and the copy fail");
    world_turns(&w);
    is_number(times(&w, ">me@h.test "), 1, "the sender is notified");
    world_stop(&w);
    aliases_free(&aliases);
    manager_world_start(&w);
}

TEST(reload)
{
    FIXTURE(world, w, copies_begin, copies_end, "good@arc.test");
    w.settings.copy_to = TEXT("");
    manager_reload(w.manager, &w.settings, w.routes);
    world_deliver(&w, "ann@a.test", "good@b.test");
    is_number(w.attempts, 1, "no copy");
    w.settings.copy_to = TEXT("recipient:b.test good@arc.test");
    manager_reload(w.manager, &w.settings, w.routes);
    world_deliver(&w, "ann@a.test", "good@b.test");
    world_deliver(&w, "ann@a.test", "good@c.test");
    is_number(times(&w, ">good@arc.test "), 1, "of one");
}

/* As many recipients as there may be, and the copy. */
TEST(many)
{
    FIXTURE(world, w, copies_begin, copies_end, "good@arc.test");
    struct envelope *e = envelope_new();
    for (unsigned i = 0; i < ENVELOPE_RECIPIENTS_MAX; i++)
        if (!envelope_add(e, TEXT("good@b.test"), NOTIFY_DEFAULT, TEXT("")))
            abort();
    manager_copy(w.manager, e);
    is_number(e->count, ENVELOPE_RECIPIENTS_MAX + 1, "beyond the limit");
    ok(envelope_is_copy(&e->recipients[ENVELOPE_RECIPIENTS_MAX]) && !envelope_is_copy(&e->recipients[0]));
    struct envelope *read = envelope_new();
    FIXTURE(buffer, form, buffer_init, buffer_free, 64 << 20);
    envelope_write_todo(e, &form);
    ok(envelope_read_todo(buffer_text(&form), e->id, read) == PROGRESS_DONE && read->count == e->count);
    ok(envelope_is_copy(&read->recipients[ENVELOPE_RECIPIENTS_MAX]));
    envelope_free(&read);
    envelope_free(&e);
}
