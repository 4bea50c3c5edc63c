/* The rights of another user's envelope, field by field; and that nothing else is
 * left. */
#include "queue/spool/injected.h"

#include "t/support/tap.h"

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

static void
test_taken(void)
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

static void
test_dropped(void)
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
    e->double_bounce = e->ascii_header = true;
    ok_named(injected_take(e, 1000, now_ms) == NULL, "the null sender");
    is_text(e->fragment.made_of, TEXT(""), "it is made of nothing");
    is_text(e->trust, TEXT("int"), "he is not alice");
    ok_named(!e->fragment.by_peer && e->fragment.set_mark.length == 0, "nor another host of ours");
    is_number(e->priority, 0, "nor urgent");
    is_text(e->submitter, TEXT("uid:1000"), "the owner of the file is the submitter");
    is_number(e->header_needs, HEADER_NEEDS_ALL, "whose word on the header does not count");
    ok_named(e->message_id.length == 0 && e->tag.length == 0, "events tell what the header says");
    ok_named(!e->double_bounce, "a failure is told");
    ok_named(!e->ascii_header, "nobody has looked");
    envelope_free(&e);
}

static void
test_birth(void)
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

static void
test_senders(void)
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

static void
test_words(void)
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

static void
test_recipients(void)
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

int
main(void)
{
    test_taken();
    test_dropped();
    test_birth();
    test_senders();
    test_words();
    test_recipients();
    return done();
}
