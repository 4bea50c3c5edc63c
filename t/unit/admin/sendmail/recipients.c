/* Recipients: as users write them, each once, within the limit; what is none is refused. */
#include "admin/sendmail/recipients.h"

#include "t/support/tap.h"

static void
qualified(struct text written, const char *want)
{
    struct buffer out;
    buffer_init(&out, RECIPIENTS_ADDRESS_MAX);
    bool good = recipients_qualify(written, "h.test", &out);
    is_text(good ? buffer_text(&out) : TEXT("(refused)"), text_from(want), want);
    buffer_free(&out);
}

static void
test_qualify(void)
{
    qualified(TEXT("a@B.test"), "a@b.test");
    qualified(TEXT("<a@b.test>"), "a@b.test");
    qualified(TEXT(" a@b.test "), "a@b.test");
    qualified(TEXT("ann"), "ann@h.test");
    qualified(TEXT("<ann>"), "ann@h.test");
    qualified(TEXT("\"ann\""), "ann@h.test");
    qualified(TEXT("\"a b\"@x.test"), "\"a b\"@x.test");
    qualified(TEXT("a@[127.0.0.1]"), "a@[127.0.0.1]");
    static const struct text wrong[] = {
        TEXT(""),        TEXT(" "),         TEXT("<>"),         TEXT("a@"),
        TEXT("@b"),      TEXT("a b"),       TEXT("a@b@c"),      TEXT("a@b.test\n"),
        TEXT("\na@b"),   TEXT("a\r@b"),     TEXT("a@b\0"),      TEXT("a@b\t"),
        TEXT("a@b,c@d"), TEXT("a@b.test>"), TEXT("A <a@b>"),    TEXT("a@-b"),
        TEXT("a..b"),    TEXT("a@b.test x"), TEXT("\\"),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        qualified(wrong[i], "(refused)");
    char lengthy[700];
    memset(lengthy, 'x', sizeof(lengthy));
    qualified(text_of(lengthy, sizeof(lengthy)), "(refused)");
    qualified(text_of(lengthy, 65), "(refused)");
    struct buffer out;
    buffer_init(&out, 5);
    ok(!recipients_qualify(TEXT("a@bcd.test"), "h.test", &out));
    buffer_free(&out);
}

static struct recipients
begin(unsigned limit)
{
    return (struct recipients){.envelope = envelope_new(),
                               .hostname = "h.test",
                               .limit = limit,
                               .notify = NOTIFY_DELAY};
}

static void
end(struct recipients *r)
{
    recipients_free(r);
    envelope_free(&r->envelope);
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

static void
test_lists(void)
{
    struct recipients r = begin(10);
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
    end(&r);
}

static void
test_once(void)
{
    struct recipients r = begin(2);
    ok(recipients_add(&r, TEXT("a@b.test, <a@b.test>, \"a\"@B.TEST")));
    ok(recipients_add(&r, TEXT("A@b.test")));
    list_is(&r, "a@b.test A@b.test");
    ok_named(recipients_add(&r, TEXT("a@b.test")), "the limit counts others only");
    ok(!recipients_add(&r, TEXT("c@b.test")));
    is_string(r.error, "too many recipients (recipient_limit)", "the limit");
    ok_named(!recipients_add(&r, TEXT("a@b.test")), "a mistake stays");
    is_number(r.envelope->count, 2, "nothing beyond it");
    end(&r);
}

static void
test_many(void)
{
    struct recipients r = begin(20000);
    char address[40];
    bool good = true;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 20000; i++) {
            snprintf(address, sizeof(address), "user%d@b.test", i);
            good = good && recipients_add(&r, text_from(address));
        }
    ok(good);
    is_number(r.envelope->count, 20000, "20,000, each once");
    end(&r);
}

int
main(void)
{
    test_qualify();
    test_lists();
    test_once();
    test_many();
    return done();
}
