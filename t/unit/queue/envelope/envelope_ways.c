/* Recipients that came through an alias: their ways in memory and in all forms on disk. */
#include "queue/envelope/envelope.h"

#include "queue/spool/injected.h"
#include "t/support/tap.h"
#include "t/support/envelope_damage.h"

enum { FORM_MAX = 1024 * 1024 };

static void
add(struct envelope *e, const char *address, const char *origin, const char *sender)
{
    if (!envelope_add(e, text_from(address), NOTIFY_DEFAULT, TEXT("")))
        abort();
    if (origin == NULL)
        return;
    e->recipients[e->count - 1].way =
        envelope_way(e, text_from(origin), text_from(sender));
    ok(e->recipients[e->count - 1].way != NULL);
}

static struct envelope *
sample(void)
{
    struct envelope *e = envelope_new();
    e->id = id_make(1750000000000, (const unsigned char[]){1, 2, 3, 4, 5});
    e->birth_ms = 1749999999123;
    e->sender = envelope_text(e, TEXT("me@out.test"));
    add(e, "plain@d.test", NULL, NULL);
    add(e, "a@far.test", "root@d.test", "");
    add(e, "b@far.test", "list@d.test", "owner-list@d.test");
    add(e, "c@far.test", "list@d.test", "owner-list@d.test");
    add(e, "d@far.test", "root@d.test", "SRS0=ABCDEF=AA=out.test=me@d.test");
    add(e, "list@d.test", "list@d.test", "owner-list@d.test");
    e->recipients[5].expanded = true;
    return e;
}

static bool
are_same(const struct envelope *a, const struct envelope *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; same && i < a->count; i++) {
        const struct recipient *x = &a->recipients[i], *y = &b->recipients[i];
        same = text_equal(x->address, y->address) && x->expanded == y->expanded &&
               (x->way == NULL) == (y->way == NULL) &&
               text_equal(envelope_origin_of(x), envelope_origin_of(y)) &&
               text_equal(envelope_sender_of(a, x), envelope_sender_of(b, y));
    }
    return same;
}

TEST(memory)
{
    struct envelope *e = sample();
    const struct recipient *r = e->recipients;
    ok_named(r[2].way == r[3].way && r[2].way == r[5].way, "equal ways are one");
    is_number(r[1].way->number, 1, "numbered");
    is_number(r[4].way->number, 3, "by their texts");
    is_text(envelope_sender_of(e, &r[0]), TEXT("me@out.test"), "the message's sender");
    is_text(envelope_sender_of(e, &r[2]), TEXT("owner-list@d.test"), "its own");
    is_text(envelope_notified(e, &r[2]), TEXT("owner-list@d.test"), "who is notified");
    is_text(envelope_notified(e, &r[4]), TEXT("me@out.test"), "SRS stands for it");
    is_text(envelope_notified(e, &r[5]), TEXT("me@out.test"), "who asked for a report");
    is_text(envelope_origin_of(&r[0]), TEXT(""), "no alias");
    ok(envelope_is_srs(TEXT("srs1+x")) && !envelope_is_srs(TEXT("srs0x")) &&
       !envelope_is_srs(TEXT("SRS0=")));
    envelope_free(&e);
}

TEST(todo)
{
    struct envelope *e = sample(), *again = envelope_new();
    struct buffer form;
    buffer_init(&form, FORM_MAX);
    envelope_write_todo(e, &form);
    ok(envelope_read_todo(buffer_text(&form), e->id, again) == PROGRESS_DONE);
    ok(are_same(e, again));
    ok_named(again->recipients[2].way == again->recipients[3].way, "shared again");
    envelope_free(&again);
    envelope_damage_check(&form, e->id);
    buffer_free(&form);
    envelope_free(&e);
}

static void
read_channels(const struct envelope *from, struct envelope *to)
{
    struct buffer local, remote;
    struct mark_place places[6];
    for (int i = 0; i < 6; i++)
        places[i].channel = i == 2 ? CHANNEL_LOCAL : CHANNEL_REMOTE;
    buffer_init(&local, FORM_MAX);
    buffer_init(&remote, FORM_MAX);
    assert(from->count == 6);
    envelope_write_channels(from, places, &local, &remote);
    ok(envelope_read_channel(buffer_text(&local), from->id, CHANNEL_LOCAL, to) ==
           PROGRESS_DONE &&
       envelope_read_channel(buffer_text(&remote), from->id, CHANNEL_REMOTE, to) ==
           PROGRESS_DONE);
    for (unsigned i = 0; i < from->count; i++) {
        const struct buffer *form = i == 2 ? &local : &remote;
        ok(form->at[places[i].offset] == (from->recipients[i].done ? 'D' : 'T'));
        ok(memcmp(&to->recipients[i].mark, &places[i], sizeof(places[i])) == 0);
    }
    buffer_free(&local);
    buffer_free(&remote);
}

TEST(preprocessed)
{
    struct envelope *e = sample(), *again = envelope_new();
    struct buffer form;
    buffer_init(&form, FORM_MAX);
    e->recipients[3].done = true;
    envelope_write_info(e, 1, &form);
    ok(envelope_read_info(buffer_text(&form), e->id, again) == PROGRESS_DONE);
    read_channels(e, again);
    ok(are_same(e, again));
    ok(again->recipients[3].done && !again->recipients[2].done);
    buffer_free(&form);
    envelope_free(&e);
    envelope_free(&again);
}

/* An injector may not say where its mail came from, nor send as somebody else. */
TEST(injected)
{
    struct envelope *e = sample();
    ok(injected_take(e, 1000, 1750000000000) == NULL);
    for (unsigned i = 0; i < e->count; i++) {
        ok(e->recipients[i].way == NULL && !e->recipients[i].expanded);
        is_text(envelope_sender_of(e, &e->recipients[i]), TEXT("me@out.test"),
                "the message's sender");
    }
    ok(e->ways == NULL);
    envelope_free(&e);
}
