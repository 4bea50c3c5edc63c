/* Delay warnings: the recipients, and NOTIFY; read back from a real queue. */
#include "queue/manager/dsn.h"

#include "base/memory.h"
#include "t/support/dsn_kit.h"
#include "t/support/tap.h"

#include <unistd.h>

static char folder[] = "/tmp/petrel-delay-XXXXXX";

static const int64_t UNTIL_MS = INT64_C(1795230308000); /* Sat, 21 Nov 2026 03:05:08 */

/* Recipients 0..count-1 are late. */
static struct told
tell_delay(struct kit *k, const struct envelope *e, size_t count)
{
    static struct outcome busy;
    busy = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0",
                        "450 4.2.0 come again");
    snprintf(busy.remote, sizeof(busy.remote), "mx.b.test[192.0.2.1]:25");
    struct dsn_delay delays[3];
    for (unsigned i = 0; i < count; i++)
        delays[i] = (struct dsn_delay){i, i == 2 ? 0 : UNTIL_MS, &busy};
    struct told t = {.bytes = memory_string("")};
    k->answers = 0;
    k->stored = NULL;
    struct dsn_settings here = dsn_kit_settings_in(k, &dsn_kit_settings);
    t.result =
        dsn_begin_delay(&here, e, delays, count, &dsn_kit_under_way, kit_stored, k);
    ok_named(k->answers == 0, "nothing is called back at once");
    dsn_kit_take(k, &t);
    return t;
}

TEST(delay)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    e->ret = RETURN_FULL;
    e->envelope_id = envelope_text(e, TEXT("QQ+2B314"));
    e->recipients[0].original = envelope_text(e, TEXT("rfc822;Bob+2Bx@orig.test"));
    dsn_kit_fail(&k, e, 2, false);
    struct told t = tell_delay(&k, e, 2);
    is_number(t.result, DSN_BEGUN, "the sender is told of a delay");
    is_text(t.notice->sender, TEXT(""), "from nobody");
    is_text(t.notice->recipients[0].address, TEXT("ann@a.test"), "the sender");
    is_number(t.notice->recipients[0].notify, NOTIFY_NEVER, "and nobody about that");
    ok(!t.notice->double_bounce && told_is_mail(&t));
    told_field_is(&t, "Subject", "Delayed Mail (still being retried)");
    told_field_is(&t, "Auto-Submitted", "auto-replied");
    told_shows(&t, "Original-Envelope-Id: QQ+314\r\n");
    told_shows(&t, "Original-Recipient: rfc822;Bob+x@orig.test\r\n"
                   "Final-Recipient: rfc822; bob@b.test\r\nAction: delayed\r\n"
                   "Status: 4.2.0\r\nRemote-MTA: dns; mx.b.test\r\n"
                   "Diagnostic-Code: smtp; 450 4.2.0 come again\r\n");
    told_shows(&t, "Final-Recipient: rfc822; carol@c.test\r\nAction: delayed\r\n");
    told_shows(&t, "Will-Retry-Until: Sat, 21 Nov 2026 03:05:08 +0000\r\n");
    told_shows(&t, "you do not need to resend it.");
    ok_named(!told_has(&t, "dan@d.test") && !told_has(&t, "failed"),
             "failures are told later");
    is_text(told_part(&t, 2),
            TEXT("\r\nContent-Type: text/rfc822-headers\r\n\r\nReceived: by test\r\n"
                 "From: Ann <ann@a.test>\r\nSubject: a\r\n\tfolded one\r\n"),
            "the header alone, whatever RET says");
    ok(kit_logged(&k, "sender notified of the delay: "));
    dsn_kit_forget(&k, &t, NULL);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(told_has(&t, "dan@d.test") && !told_has(&t, "bob@b.test"),
             "in the bounce");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

/* NOTIFY: without it, or with DELAY; and there must be somebody to tell. */
TEST(delay_notify)
{
    static const struct {
        unsigned notify;
        bool told;
    } cases[] = {
        {NOTIFY_DEFAULT,                  true },
        {NOTIFY_NEVER,                    false},
        {NOTIFY_FAILURE,                  false},
        {NOTIFY_SUCCESS | NOTIFY_FAILURE, false},
        {NOTIFY_DELAY,                    true },
        {NOTIFY_FAILURE | NOTIFY_DELAY,   true }
    };
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
        e->recipients[0].notify = cases[i].notify;
        ok(dsn_wants_delay(&e->recipients[0]) == cases[i].told);
        struct told t = tell_delay(&k, e, 1);
        is_number(t.result, cases[i].told ? DSN_BEGUN : DSN_NOTHING, "alone");
        dsn_kit_forget(&k, &t, NULL);
        t = tell_delay(&k, e, 3);
        ok_named(told_has(&t, "bob@b.test") == cases[i].told,
                 "beside two that are told");
        ok(told_has(&t, "carol@c.test") && told_has(&t, "dan@d.test"));
        dsn_kit_forget(&k, &t, &e);
    }
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    struct told t = tell_delay(&k, e, 0);
    is_number(t.result, DSN_NOTHING, "nobody is late");
    dsn_kit_forget(&k, &t, &e);
    e = dsn_kit_accept(&k, "", dsn_kit_mail);
    t = tell_delay(&k, e, 3);
    is_number(t.result, DSN_NOTHING, "a null sender hears of no delay");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

int
main(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    tap_tests("");
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
    return done();
}
