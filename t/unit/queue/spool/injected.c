/* The rights of another user's envelope, field by field; and that nothing else is
 * left. */
#include "queue/spool/injected.h"

#include "t/support/tap.h"

#include <limits.h>
#include <string.h>

static const int64_t now_ms = INT64_C(1763800000000);
enum { YEAR_DAYS = 365 };
static const int64_t day_ms = INT64_C(24) * 60 * 60 * 1000;

static struct envelope *
envelope_of(const char *sender, const char *recipient)
{
    struct envelope *e = envelope_new();
    e->birth_ms = now_ms - 1000;
    e->sender = envelope_text(e, text_from(sender));
    if (!envelope_add(e, text_from(recipient), NOTIFY_SUCCESS,
                      TEXT("rfc822;a+2Bb@c.test")))
        abort();
    return e;
}

TEST(taken)
{
    struct envelope *e = envelope_of("s@x.test", "r@y.test");
    e->envelope_id = TEXT("my+2Bid");
    e->ret = RETURN_FULL;
    e->eight_bit = e->utf8 = true;
    e->prefix = TEXT("Received: by x\r\n");
    ok(injected_take(e, 1000, now_ms) == NULL);
    is_text(e->sender, TEXT("s@x.test"), "the sender");
    is_text(e->recipients[0].address, TEXT("r@y.test"), "the recipient");
    is_number(e->recipients[0].notify, NOTIFY_SUCCESS, "NOTIFY");
    is_text(e->recipients[0].original, TEXT("rfc822;a+2Bb@c.test"), "ORCPT");
    is_text(e->envelope_id, TEXT("my+2Bid"), "ENVID");
    is_number(e->ret, RETURN_FULL, "RET");
    ok_named(e->eight_bit && e->utf8, "BODY and SMTPUTF8");
    is_text(e->prefix, TEXT("Received: by x\r\n"), "header lines");
    is_number(e->birth_ms, now_ms - 1000, "when it was handed in");
    is_text(e->trust, TEXT("int"), "one of those who may relay");
    ok_named(e->ours, "it is ours");
    is_text(e->submitter, TEXT("uid:1000"), "of this user");
    is_number(e->header_needs, HEADER_NEEDS_ALL, "and nobody has looked at the header");
    envelope_free(&e);
}

TEST(dropped)
{
    struct envelope *e = envelope_of("", "r@y.test");
    e->fragment.made_of = TEXT("1\n01JD3ZK5Q8-9F3K2C7A 4000000000\n");
    e->trust = TEXT("auth:alice net:192.0.2.0/24");
    e->fragment.by_peer = true;
    e->fragment.set_mark = TEXT("00;1;2");
    e->priority = 9;
    e->ours = true;
    e->header_needs = 0;
    e->submitter = TEXT("user:alice");
    e->message_id = TEXT("<of@another>");
    e->tag = TEXT("forged");
    e->posted = TEXT("alice 1");
    e->double_bounce = e->ascii_header = true;
    ok_named(injected_take(e, 1000, now_ms) == NULL, "the null sender");
    is_text(e->fragment.made_of, TEXT(""), "it is made of nothing");
    is_text(e->trust, TEXT("int"), "he is not alice");
    ok_named(!e->fragment.by_peer && e->fragment.set_mark.length == 0, "nor another host of ours");
    is_number(e->priority, 0, "nor urgent");
    is_text(e->posted, TEXT(""), "nor posted with a key");
    is_text(e->submitter, TEXT("uid:1000"), "the owner of the file is the submitter");
    is_number(e->header_needs, HEADER_NEEDS_ALL, "whose word on the header does not count");
    ok_named(e->message_id.length == 0 && e->tag.length == 0, "events tell what the header says");
    ok_named(!e->double_bounce, "a failure is told");
    ok_named(!e->ascii_header, "nobody has looked");
    envelope_free(&e);
}

TEST(birth)
{
    static const int64_t absurd[] = {INT64_MAX, INT64_C(1) << 62, 1, 0};
    for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
        struct envelope *e = envelope_of("s@x.test", "r@y.test");
        e->birth_ms = absurd[i];
        ok(injected_take(e, 1000, now_ms) == NULL);
        is_number(e->birth_ms, now_ms, "no such time: now");
        envelope_free(&e);
    }
    struct envelope *e = envelope_of("s@x.test", "r@y.test");
    e->birth_ms = now_ms - YEAR_DAYS * day_ms;
    ok(injected_take(e, 1000, now_ms) == NULL);
    is_number(e->birth_ms, now_ms - YEAR_DAYS * day_ms, "a year ago is a time");
    e->birth_ms = now_ms + 1;
    ok(injected_take(e, 1000, now_ms) == NULL);
    is_number(e->birth_ms, now_ms, "what is to come is not");
    envelope_free(&e);
}

TEST(senders)
{
    static const char *const bad[] = {"m@x> AUTH=<root@else.example",
                                      "a b@c.test",
                                      "a@b.test\r\nRCPT TO:<x@y>",
                                      "postmaster",
                                      "@",
                                      "a@",
                                      "a@b@c",
                                      "\"a@b.test",
                                      "a@b.test\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct envelope *e = envelope_of(bad[i], "r@y.test");
        ok_named(injected_take(e, 1000, now_ms) != NULL, bad[i]);
        envelope_free(&e);
    }
    struct envelope *e = envelope_of("\"a b\"@c.test", "r@y.test");
    ok_named(injected_take(e, 1000, now_ms) == NULL, "a quoted string is none of them");
    envelope_free(&e);
}

TEST(words)
{
    static const char *const bad[] = {"a b", "a\r\nb", "a\x01", "\xff"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct envelope *e = envelope_of("s@x.test", "r@y.test");
        e->envelope_id = e->recipients[0].original = text_from(bad[i]);
        ok(injected_take(e, 1000, now_ms) == NULL);
        is_text(e->envelope_id, TEXT(""), "no ENVID");
        is_text(e->recipients[0].original, TEXT(""), "no ORCPT");
        envelope_free(&e);
    }
    static char much[INJECTED_PREFIX_MAX + 3];
    memset(much, 'x', sizeof(much) - 1);
    struct envelope *e = envelope_of("s@x.test", "r@y.test");
    e->envelope_id = text_of(much, INJECTED_ID_MAX + 1);
    e->recipients[0].original = text_of(much, INJECTED_ORIGINAL_MAX + 1);
    memcpy(much + INJECTED_PREFIX_MAX - 1, "\r\n", 2);
    e->prefix = text_of(much, INJECTED_PREFIX_MAX + 1);
    ok(injected_take(e, 1000, now_ms) == NULL);
    ok_named(e->envelope_id.length + e->recipients[0].original.length +
                     e->prefix.length ==
                 0,
             "what is too long is left out");
    e->prefix = TEXT("Received: x");
    ok(injected_take(e, 1000, now_ms) == NULL);
    is_text(e->prefix, TEXT(""), "and lines without an end");
    envelope_free(&e);
}

TEST(recipients)
{
    static char much[INJECTED_ADDRESS_MAX + 2];
    memset(much, 'x', sizeof(much) - 1);
    struct envelope *e = envelope_of("s@x.test", much);
    ok_named(injected_take(e, 1000, now_ms) != NULL, "an address of 1001 bytes");
    envelope_free(&e);
    e = envelope_of("s@x.test", "");
    ok_named(injected_take(e, 1000, now_ms) != NULL, "none");
    envelope_free(&e);
    e = envelope_new();
    ok_named(injected_take(e, 1000, now_ms) != NULL, "nobody");
    envelope_free(&e);
    e = envelope_of("s@x.test", "no address");
    ok_named(injected_take(e, 1000, now_ms) == NULL, "what is told of in a bounce passes");
    e->recipients[0].notify = UINT32_MAX;
    ok(injected_take(e, 1000, now_ms) == NULL);
    is_number(e->recipients[0].notify, NOTIFY_NEVER, "NEVER excludes the others");
    e->recipients[0].notify = 0xfffffff0;
    ok(injected_take(e, 1000, now_ms) == NULL);
    is_number(e->recipients[0].notify, NOTIFY_DEFAULT, "there are but four");
    envelope_free(&e);
}

static struct envelope *
given(void)
{
    struct envelope *e = envelope_of("s@x.test", "r@y.test");
    struct failure f = {.outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no such user")};
    e->recipients[0].done = true;
    e->delivery.done = 1;
    e->delivery.due_ms = now_ms + 60000;
    e->delivery.attempts = 3;
    e->delivery.warned_s = 14400;
    envelope_fail(e, &f);
    e->trust = TEXT("auth:alice net:192.0.2.0/24");
    e->submitter = TEXT("user:alice");
    e->message_id = TEXT("<a@b>");
    e->tag = TEXT("tag");
    e->moved.hold = TEXT("1750000000 held by the operator\n");
    e->moved.reason = TEXT("450 greylisted");
    return e;
}

/* The state of mail that another host gives stays. */
TEST(given)
{
    struct envelope *e = given();
    ok(injected_take_given(e, now_ms) == NULL);
    ok_named(e->recipients[0].done && e->delivery.attempts == 3 && e->delivery.warned_s == 14400 &&
                 e->delivery.due_ms == now_ms + 60000, "marks and times");
    is_string(e->delivery.failures[0].outcome.text, "no such user", "failures");
    is_text(e->trust, TEXT("auth:alice net:192.0.2.0/24"), "trust");
    is_text(e->submitter, TEXT("user:alice"), "submitter");
    is_text(e->message_id, TEXT("<a@b>"), "Message-ID");
    is_text(e->tag, TEXT("tag"), "tag");
    is_text(e->moved.hold, TEXT("1750000000 held by the operator\n"), "hold");
    is_text(e->moved.reason, TEXT("450 greylisted"), "reason");
    envelope_free(&e);
}

/* State that no host of ours writes is not taken: it forges no line, no time, no trust. */
TEST(given_forged)
{
    struct envelope *e = given();
    struct outcome *o = &e->delivery.failures[0].outcome;
    o->code = 999;
    o->blame = BLAME_SITE;
    strcpy(o->enhanced, "5\r\nX: y");
    strcpy(o->text, "no\r\nX-Forged: yes");
    strcpy(o->remote, "mx\r\nX-Forged: yes");
    e->birth_ms = now_ms + 1000000;
    e->delivery.due_ms = INT64_MAX;
    e->delivery.attempts = UINT_MAX;
    e->delivery.warned_s = INT64_MAX;
    e->trust = TEXT("root\n");
    e->submitter = TEXT("user:a\nb");
    e->message_id = TEXT("<a\r\nb>");
    e->tag = TEXT("a\nb");
    e->prefix = TEXT("no end");
    e->envelope_id = TEXT("a b");
    e->moved.hold = TEXT("1 a\nb\n");
    e->moved.reason = TEXT("a\nb");
    e->recipients[0].original = TEXT("rfc822;a b");
    ok(injected_take_given(e, now_ms) == NULL);
    ok_named(o->code == 0 && o->blame == BLAME_MESSAGE, "code and blame");
    is_string(o->enhanced, "5.0.0", "status");
    is_string(o->text, "no  X-Forged: yes", "one line");
    is_string(o->remote, "", "remote");
    is_number(e->birth_ms, now_ms, "birth");
    ok_named(e->delivery.due_ms <= now_ms + 24 * 3600 * 1000, "due within a day");
    ok_named(e->delivery.attempts < 1000000 && e->delivery.warned_s <= 24 * 3600, "attempts, notification");
    is_text(e->trust, TEXT("ext"), "no trust");
    is_text(e->submitter, TEXT(""), "no submitter");
    is_text(e->message_id, TEXT(""), "no Message-ID");
    is_text(e->tag, TEXT(""), "no tag");
    is_text(e->prefix, TEXT(""), "no header lines");
    is_text(e->envelope_id, TEXT(""), "no ENVID");
    is_text(e->moved.hold, TEXT("0 held by another host\n"), "it stays held");
    is_text(e->moved.reason, TEXT(""), "no reason");
    is_text(e->recipients[0].original, TEXT(""), "no ORCPT");
    envelope_free(&e);
    e = given();
    e->sender = TEXT("a\r\nb@c.test");
    ok_named(injected_take_given(e, now_ms) != NULL, "a sender that is no address");
    envelope_free(&e);
    e = given();
    e->delivery.failures[0].outcome.verdict = VERDICT_DEFERRED;
    ok_named(injected_take_given(e, now_ms) != NULL, "a failure that is none");
    envelope_free(&e);
    e = given();
    e->recipients[0].way = envelope_way(e, TEXT("list@x.test"), TEXT("no address\r\n"));
    ok_named(injected_take_given(e, now_ms) != NULL, "an owner that is no address");
    envelope_free(&e);
}
