/* Recipients: as users write them, each once, within the limit; what is none is refused. */
#include "admin/sendmail/recipients.h"

#include "t/support/tap.h"

static void
qualified(struct text written, const char *want)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, RECIPIENTS_ADDRESS_MAX);
    bool good = recipients_qualify(written, "h.test", &out);
    is_text(good ? buffer_text(&out) : TEXT("(refused)"), text_from(want), want);
}

TEST(qualify)
{
    qualified(TEXT("a@B.test"), "a@b.test");
    qualified(TEXT("<a@b.test>"), "a@b.test");
    qualified(TEXT(" a@b.test "), "a@b.test");
    qualified(TEXT("ann"), "ann@h.test");
    qualified(TEXT("<ann>"), "ann@h.test");
    qualified(TEXT("\"ann\""), "ann@h.test");
    qualified(TEXT("\"a b\"@x.test"), "\"a b\"@x.test");
    qualified(TEXT("a@[127.0.0.1]"), "a@[127.0.0.1]");
    qualified(TEXT("a..b"), "\"a..b\"@h.test");
    qualified(TEXT("a.@b.test."), "\"a.\"@b.test");
    static const struct text wrong[] = {
        TEXT(""),        TEXT(" "),          TEXT("<>"),      TEXT("a@"),
        TEXT("@b"),      TEXT("a b"),        TEXT("a@b@c"),   TEXT("a@b.test\n"),
        TEXT("\na@b"),   TEXT("a\r@b"),      TEXT("a@b\0"),   TEXT("a@b\t"),
        TEXT("a@b,c@d"), TEXT("a@b.test>"),  TEXT("A <a@b>"), TEXT("a@-b"),
        TEXT("a@..b"),   TEXT("a@b.test x"), TEXT("\\"),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        qualified(wrong[i], "(refused)");
    char lengthy[700];
    memset(lengthy, 'x', sizeof(lengthy));
    qualified(text_of(lengthy, sizeof(lengthy)), "(refused)");
    qualified(text_of(lengthy, 248), "(refused)"); /* 255 with @h.test */
    FIXTURE(buffer, out, buffer_init, buffer_free, 5);
    ok(!recipients_qualify(TEXT("a@bcd.test"), "h.test", &out));
}

static void
sender_is(const char *written, const char *want)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, RECIPIENTS_ADDRESS_MAX);
    bool good = recipients_qualify_sender(text_from(written), "h.test", &out);
    is_text(good ? buffer_text(&out) : TEXT("(refused)"), text_from(want), written);
}

TEST(sender)
{
    sender_is("ann", "ann@h.test");
    sender_is("<a@b.test>", "a@b.test");
    sender_is("Joe <joe@client.test>", "joe@client.test");
    sender_is("Web \\<web@client.test\\>", "web@client.test"); /* PHP's mail() */
    sender_is("\"Doe, Joe\" <joe@client.test>", "joe@client.test");
    sender_is("joe@client.test (Joe)", "joe@client.test");
    sender_is("Joe <joe>", "joe@h.test");
    sender_is("a@b, c@d", "(refused)");
    sender_is("Doe, Joe <joe@client.test>", "(refused)");
    sender_is("Joe", "Joe@h.test");
    sender_is("Joe Doe", "(refused)");
    sender_is("Joe <a@b>\nBcc: x", "(refused)");
}

static struct recipients
begin(void)
{
    return (struct recipients){
        .envelope = envelope_new(), .hostname = "h.test", .notify = NOTIFY_DELAY};
}

/* The addresses with spaces between. */
static void
list_is(const struct recipients *r, const char *want)
{
    char all[1000] = "";
    for (unsigned i = 0; i < r->envelope->count; i++) {
        struct text a = r->envelope->recipients[i].address;
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%.*s", i ? " " : "",
                 TEXT_ARGS(a));
    }
    is_string(all, want, want);
}

TEST(lists)
{
    struct recipients r = begin();
    ok(recipients_add(&r, TEXT("a@b.test")));
    ok(recipients_add(&r, TEXT("Ann <ann@b.test>, root, \"x, y\" <c@d.test>")));
    ok(recipients_add(&r, TEXT("friends: e@f.test, a@B.test;")));
    ok(recipients_add(&r, TEXT("")));
    list_is(&r, "a@b.test ann@b.test root@h.test c@d.test e@f.test");
    ok(r.error == NULL);
    is_number(r.envelope->recipients[1].notify, NOTIFY_DELAY, "with what was asked");
    is_text(r.envelope->recipients[1].original, TEXT(""), "no ORCPT");
    ok(!recipients_add(&r, TEXT("g@h.test, x y z")));
    ok(r.error != NULL);
    list_is(&r, "a@b.test ann@b.test root@h.test c@d.test e@f.test g@h.test");
    recipients_free(&r);
}

TEST(once)
{
    struct recipients r = begin();
    ok(recipients_add(&r, TEXT("a@b.test, <a@b.test>, \"a\"@B.TEST")));
    ok(recipients_add(&r, TEXT("A@b.test")));
    list_is(&r, "a@b.test A@b.test");
    ok(!recipients_add(&r, TEXT("a b c")));
    ok_named(!recipients_add(&r, TEXT("a@b.test")), "a mistake stays");
    is_number(recipients_count(&r), 2, "each is counted once");
    recipients_free(&r);
}

/* False: one was refused. */
static bool
add_users(struct recipients *r, int count)
{
    char address[40];
    bool good = true;
    for (int i = 0; i < count && good; i++) {
        snprintf(address, sizeof(address), "user%d@b.test", i);
        good = recipients_add(r, text_from(address));
    }
    return good;
}

TEST(many)
{
    struct recipients r = begin();
    struct envelope *first = r.envelope, **last;
    first->sender = envelope_text(first, TEXT("list@a.test"));
    first->envelope_id = envelope_text(first, TEXT("Q1"));
    first->ret = RETURN_HEADERS;
    ok(add_users(&r, RECIPIENTS_PER_ENVELOPE));
    ok_named(r.envelope == first, "an envelope that is full is the only one");
    ok(add_users(&r, 2 * RECIPIENTS_PER_ENVELOPE + 1));
    is_number(recipients_count(&r), 20001, "each once");
    is_number(r.full_count, 2, "in three envelopes");
    ok(recipients_envelope(&r, 0) != NULL && *recipients_envelope(&r, 0) == first);
    is_number((*recipients_envelope(&r, 1))->count, 10000, "full ones first");
    last = recipients_envelope(&r, 2);
    is_number((*last)->count, 1, "then the last one");
    ok(recipients_envelope(&r, 3) == NULL);
    is_text((*last)->sender, TEXT("list@a.test"), "of the same sender");
    is_text((*last)->envelope_id, TEXT("Q1"), "and ENVID");
    is_number((*last)->ret, RETURN_HEADERS, "and return");
    is_text((*last)->recipients[0].address, TEXT("user20000@b.test"), "in their order");
    is_number((*last)->recipients[0].notify, NOTIFY_DELAY, "with what was asked");
    envelope_free(last);
    ok_named(*last == NULL, "one that was taken is not freed again");
    recipients_free(&r);
}

TEST(limit)
{
    struct recipients r = begin();
    ok_named(add_users(&r, RECIPIENTS_MAX), "a million");
    ok(recipients_add(&r, TEXT("user0@b.test")));
    ok(!recipients_add(&r, TEXT("one@more.test")));
    is_string(r.error, "too many recipients (1000000 at most)", "the limit");
    is_number(recipients_count(&r), RECIPIENTS_MAX, "nothing beyond it");
    recipients_free(&r);
}
