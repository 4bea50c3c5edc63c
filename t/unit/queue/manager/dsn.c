/* Notifications: the recipient, the subject and the form; read back from a real queue. */
#include "queue/manager/dsn.h"

#include "base/memory.h"
#include "mime/report/report.h"
#include "t/support/dsn_kit.h"
#include "t/support/tap.h"

#include <unistd.h>

static char folder[] = "/tmp/petrel-notice-XXXXXX";

TEST(plain)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    dsn_kit_fail(&k, e, 1, false);
    dsn_kit_fail(&k, e, 2, true);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    is_number(t.result, DSN_BEGUN, "the sender is told");
    is_text(t.notice->sender, TEXT(""), "from nobody");
    is_number(t.notice->count, 1, "to one");
    is_text(t.notice->recipients[0].address, TEXT("ann@a.test"), "the sender");
    is_number(t.notice->recipients[0].notify, NOTIFY_NEVER, "and nobody about that");
    ok(!t.notice->double_bounce && !t.notice->eight_bit && !t.notice->utf8);
    ok_named(told_is_mail(&t), "proper lines");
    told_field_is(&t, "From", "Mail Delivery System <MAILER-DAEMON@h.test>");
    told_field_is(&t, "To", "<ann@a.test>");
    told_field_is(&t, "Subject", "Undelivered Mail Returned to Sender");
    told_field_is(&t, "Auto-Submitted", "auto-replied");
    char id[ID_LENGTH + 1];
    id_format(e->id, id);
    told_shows(&t, id);
    told_shows(&t, "<carol@c.test>");
    told_shows(&t, "<dan@d.test>");
    ok_named(!told_has(&t, "bob@b.test"), "who got it is not told");
    told_shows(
        &t, "Final-Recipient: rfc822; carol@c.test\r\nAction: failed\r\nStatus: 5.1.1");
    told_shows(&t, "Remote-MTA: dns; mx.b.test");
    told_shows(&t, "Diagnostic-Code: smtp; 550 5.1.1 <1> no such user");
    told_shows(&t, ", without success");
    ok(text_starts(told_part(&t, 0), TEXT("\r\nContent-Type: text/plain")));
    ok(text_starts(told_part(&t, 1),
                   TEXT("\r\nContent-Type: message/delivery-status")));
    is_text(told_part(&t, 2),
            TEXT("\r\nContent-Type: text/rfc822-headers\r\n\r\nReceived: by test\r\n"
                 "From: Ann <ann@a.test>\r\nSubject: a\r\n\tfolded one\r\n"),
            "the header as it came in, and ours");
    is_text(told_part(&t, 3), TEXT(""), "three parts");
    ok_named(!told_has(&t, "The body."), "no more than the header");
    char line[100];
    char notice[ID_LENGTH + 1];
    id_format(t.notice->id, notice);
    snprintf(line, sizeof(line), "%s: sender notified: %s", id, notice);
    ok_named(kit_logged(&k, line), "the log joins the two");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

/* NOTIFY: failures of recipients with NEVER are not reported. */
TEST(notify)
{
    static const struct {
        unsigned notify;
        bool told;
    } cases[] = {
        {NOTIFY_DEFAULT,                                 true },
        {NOTIFY_NEVER,                                   false},
        {NOTIFY_FAILURE,                                 true },
        {NOTIFY_SUCCESS,                                 false},
        {NOTIFY_DELAY,                                   false},
        {NOTIFY_FAILURE | NOTIFY_SUCCESS | NOTIFY_DELAY, true }
    };
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
        e->recipients[0].notify = cases[i].notify;
        dsn_kit_fail(&k, e, 0, false);
        struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
        is_number(t.result, cases[i].told ? DSN_BEGUN : DSN_NOTHING, "alone");
        free(t.bytes);
        if (t.notice)
            queue_retire(k.queue, &t.notice);
        dsn_kit_fail(&k, e, 1, false);
        t = dsn_kit_tell(&k, e, &dsn_kit_settings);
        is_number(t.result, DSN_BEGUN, "beside one that is told");
        ok(told_has(&t, "bob@b.test") == cases[i].told);
        ok(told_has(&t, "carol@c.test"));
        dsn_kit_forget(&k, &t, &e);
    }
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    is_number(t.result, DSN_NOTHING, "no failure, no notice");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

/* RET and the size limit: all of it, or its header. */
TEST(return)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    dsn_kit_fail(&k, e, 0, false);
    e->ret = RETURN_FULL;
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    is_text(told_part(&t, 2),
            TEXT("\r\nContent-Type: message/rfc822\r\n\r\nReceived: by test\r\n"
                 "From: Ann <ann@a.test>\r\nSubject: a\r\n\tfolded one\r\n\r\n"
                 "The body.\r\n"),
            "RET=FULL");
    dsn_kit_forget(&k, &t, NULL);
    e->ret = RETURN_HEADERS;
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(!told_has(&t, "The body."), "RET=HDRS");
    dsn_kit_forget(&k, &t, NULL);
    e->ret = RETURN_FULL;
    struct dsn_settings with = {.hostname = "h.test",
                                .size_limit = (size_t)e->content_size};
    t = dsn_kit_tell(&k, e, &with);
    ok_named(told_has(&t, "The body."), "just within the limit");
    dsn_kit_forget(&k, &t, NULL);
    with.size_limit--;
    t = dsn_kit_tell(&k, e, &with);
    ok_named(!told_has(&t, "The body.") && told_has(&t, "folded one"),
             "beyond the limit");
    dsn_kit_forget(&k, &t, NULL);
    e->tls = ENVELOPE_TLS_REQUIRED;
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(!told_has(&t, "The body.") && told_has(&t, "folded one"), "REQUIRETLS: the header alone (RFC 8689)");
    ok_named(!told_has(&t, "TLS-Required"), "it asks for TLS by its envelope");
    is_number(t.notice->tls, ENVELOPE_TLS_REQUIRED, "which has the wish");
    dsn_kit_forget(&k, &t, NULL);
    e->tls = ENVELOPE_TLS_WAIVED;
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(told_has(&t, "\r\nTLS-Required: No\r\n"), "who waives TLS wants the report, too");
    is_number(t.notice->tls, ENVELOPE_TLS_WAIVED, "likewise");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

/* The null sender: postmaster is told, and when that fails nobody. */
TEST(double)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "", dsn_kit_mail);
    e->ret = RETURN_FULL;
    e->recipients[0].notify = NOTIFY_NEVER;
    dsn_kit_fail(&k, e, 0, false);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    is_number(t.result, DSN_BEGUN, "somebody is told");
    is_text(t.notice->recipients[0].address, TEXT("postmaster@h.test"), "postmaster");
    is_text(t.notice->sender, TEXT(""), "from nobody");
    ok(t.notice->double_bounce);
    told_field_is(&t, "To", "<postmaster@h.test>");
    told_field_is(&t, "Subject",
                  "Undeliverable Mail, Sender Not Notified (double bounce)");
    ok_named(!told_has(&t, "The body."), "only the header");
    ok(kit_logged(&k, "sender is null; postmaster notified: "));
    queue_retire(k.queue, &e);
    free(t.bytes);

    struct envelope *second = t.notice;
    struct failure f = {
        .recipient = 0,
        .expired = false,
        .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no")};
    queue_settle(k.queue, second, 0, &f);
    struct told last = dsn_kit_tell(&k, second, &dsn_kit_settings);
    is_number(last.result, DSN_NOTHING, "never a bounce of that");
    dsn_kit_forget(&k, &last, &second);
    kit_close(&k);
}

/* It stays a double bounce over a restart. */
TEST(double_restart)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "", dsn_kit_mail);
    dsn_kit_fail(&k, e, 0, false);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    struct id id = t.notice->id;
    queue_retire(k.queue, &e);
    free(t.bytes);
    envelope_free(&t.notice);
    kit_close(&k);

    is_number(queue_kit_open(&k, folder), 0, k.error);
    e = queue_load(k.queue, id);
    ok(e && e->double_bounce);
    dsn_kit_fail(&k, e, 0, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    is_number(t.result, DSN_NOTHING, "never a bounce of that");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

TEST(dsn)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    e->envelope_id = envelope_text(e, TEXT("QQ+2B314"));
    e->recipients[0].original = envelope_text(e, TEXT("rfc822;Bob+2Bx@orig.test"));
    e->recipients[1].original = envelope_text(e, TEXT("x400;/c+3Dde"));
    e->recipients[2].original = envelope_text(e, TEXT("rfc822;bad+0Aline"));
    for (unsigned i = 0; i < 3; i++)
        dsn_kit_fail(&k, e, i, false);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    told_shows(&t, "Original-Envelope-Id: QQ+314\r\n");
    told_shows(&t,
               "Original-Recipient: rfc822;Bob+x@orig.test\r\nFinal-Recipient: rfc822; "
               "bob@b.test");
    told_shows(&t, "Original-Recipient: x400;/c=de\r\n");
    told_shows(&t, "\r\n\r\nFinal-Recipient: rfc822; dan@d.test");
    ok_named(!told_has(&t, "line"), "one that is no xtext is left out");
    dsn_kit_forget(&k, &t, &e);

    /* Octets that are no printable ASCII are shown as they were given. */
    e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    e->envelope_id = envelope_text(e, TEXT("Q+C2+9B31m"));
    e->recipients[0].original = envelope_text(e, TEXT("rfc822;x+C2+9B31m@orig.test"));
    e->recipients[1].original = envelope_text(e, TEXT("rfc822;y+9B@orig.test"));
    e->recipients[2].original = envelope_text(e, TEXT("utf-8;z\xc2\x9b@orig.test"));
    for (unsigned i = 0; i < 3; i++)
        dsn_kit_fail(&k, e, i, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    told_shows(&t, "Original-Envelope-Id: Q+C2+9B31m\r\n");
    told_shows(&t, "Original-Recipient: rfc822;x+C2+9B31m@orig.test\r\n");
    told_shows(&t, "Original-Recipient: rfc822;y+9B@orig.test\r\n");
    ok_named(!told_has(&t, "\x9b"), "a control octet never");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

static void
succeed(struct kit *k, struct envelope *e, unsigned index, bool relayed)
{
    struct failure f = {
        .recipient = index,
        .relayed = relayed,
        .outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "250 Ok")};
    e->recipients[index].notify = NOTIFY_SUCCESS;
    snprintf(f.outcome.remote, sizeof(f.outcome.remote), "mx.b.test[192.0.2.1]:25");
    queue_settle(k->queue, e, index, &f);
}

/* Successes that were asked for, alone and beside a failure (RFC 3461 §4.3, §6.2). */
TEST(success)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    e->ret = RETURN_FULL;
    e->envelope_id = envelope_text(e, TEXT("E1"));
    e->recipients[0].original = envelope_text(e, TEXT("rfc822;Bob@orig.test"));
    succeed(&k, e, 0, true);
    succeed(&k, e, 1, false);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    is_number(t.result, DSN_BEGUN, "a success is told");
    ok(kit_logged(&k, "sender notified of the delivery"));
    is_text(t.notice->sender, TEXT(""), "from nobody");
    told_field_is(&t, "Subject", "Successful Mail Delivery Report");
    told_shows(&t, "Original-Envelope-Id: E1\r\n");
    told_shows(&t, "Original-Recipient: rfc822;Bob@orig.test\r\n"
                   "Final-Recipient: rfc822; bob@b.test\r\nAction: relayed\r\n"
                   "Status: 2.0.0\r\nRemote-MTA: dns; mx.b.test\r\n");
    told_shows(&t, "Final-Recipient: rfc822; carol@c.test\r\nAction: delivered\r\n");
    ok_named(!told_has(&t, "dan@d.test"), "who has not got it yet is not told");
    ok_named(!told_has(&t, "The body."), "RET=FULL is for failures alone");
    ok(told_is_mail(&t));
    dsn_kit_forget(&k, &t, NULL);
    dsn_kit_fail(&k, e, 2, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    told_field_is(&t, "Subject", "Undelivered Mail Returned to Sender");
    told_shows(&t, "Action: relayed\r\n");
    told_shows(&t, "Action: delivered\r\n");
    told_shows(&t, "Final-Recipient: rfc822; dan@d.test\r\nAction: failed\r\n");
    ok_named(told_has(&t, "The body."), "and goes with one");
    dsn_kit_forget(&k, &t, &e);

    /* A failure that nobody wants to hear of, and a success that somebody does. */
    e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    e->ret = RETURN_FULL;
    e->recipients[2].notify = NOTIFY_SUCCESS;
    succeed(&k, e, 0, true);
    dsn_kit_fail(&k, e, 2, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok(told_has(&t, "bob@b.test") && !told_has(&t, "dan@d.test") &&
       !told_has(&t, "The body."));
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

TEST(success_wanted)
{
    static const struct {
        unsigned notify;
        bool told;
    } cases[] = {
        {NOTIFY_DEFAULT,                  false},
        {NOTIFY_NEVER,                    false},
        {NOTIFY_FAILURE | NOTIFY_DELAY,   false},
        {NOTIFY_SUCCESS,                  true },
        {NOTIFY_SUCCESS | NOTIFY_FAILURE, true },
        {NOTIFY_SUCCESS | NOTIFY_NEVER,   false}
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct recipient r = {.notify = cases[i].notify};
        ok(dsn_wants_success(&r) == cases[i].told);
    }
}

TEST(eight_bit)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e =
        dsn_kit_accept(&k, "ann@a.test", TEXT("Subject: \xc3\xbc\r\n\r\nplain\r\n"));
    e->eight_bit = true;
    dsn_kit_fail(&k, e, 0, false);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(t.notice->eight_bit, "8-bit in the header");
    told_field_is(&t, "Content-Transfer-Encoding", "8bit");
    dsn_kit_forget(&k, &t, &e);
    e = dsn_kit_accept(&k, "ann@a.test", TEXT("Subject: x\r\n\r\n\xc3\xbc\r\n"));
    e->eight_bit = true;
    dsn_kit_fail(&k, e, 0, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(!t.notice->eight_bit, "8-bit in a body that is not told");
    dsn_kit_forget(&k, &t, NULL);
    e->ret = RETURN_FULL;
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(t.notice->eight_bit, "8-bit in a body that is");
    dsn_kit_forget(&k, &t, &e);
    e = dsn_kit_accept(&k, "j\xc3\xbcrgen@a.test", dsn_kit_mail);
    e->utf8 = true;
    e->priority = -3;
    dsn_kit_fail(&k, e, 0, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(t.notice->utf8, "SMTPUTF8");
    is_number(t.notice->priority, -3, "the priority of what it tells of");
    ok(text_starts(told_part(&t, 1),
                   TEXT("\r\nContent-Type: message/global-delivery-status")));
    dsn_kit_forget(&k, &t, &e);
    e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    e->utf8 = e->ascii_header = true;
    e->recipients[0].original =
        envelope_text(e, TEXT("utf-8;b\xc3\xb8\\x{2B}b@orig.test"));
    dsn_kit_fail(&k, e, 0, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok_named(!t.notice->utf8, "SMTPUTF8 that was not needed is not needed now");
    ok(text_starts(told_part(&t, 1),
                   TEXT("\r\nContent-Type: message/delivery-status")));
    told_shows(&t, "Original-Recipient: utf-8;b\\x{F8}\\x{2B}b@orig.test\r\n");
    dsn_kit_forget(&k, &t, &e);
    e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    e->utf8 = true; /* and its header is not known */
    e->recipients[0].original =
        envelope_text(e, TEXT("utf-8;b\xc3\xb8\\x{2B}b@orig.test"));
    e->recipients[0].address = envelope_text(e, TEXT("b\xc3\xb8@b.test"));
    dsn_kit_fail(&k, e, 0, false);
    t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok(t.notice->utf8);
    told_shows(&t, "Original-Recipient: utf-8;b\xc3\xb8\\x{2B}b@orig.test\r\n"
                   "Final-Recipient: utf-8; b\xc3\xb8@b.test\r\n");
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

/* The original's last part is exactly this. */
static void
header_told(struct kit *k, struct text content, struct text want, const char *name)
{
    struct envelope *e = dsn_kit_accept(k, "ann@a.test", content);
    dsn_kit_fail(k, e, 0, false);
    struct told t = dsn_kit_tell(k, e, &dsn_kit_settings);
    struct text got = told_part(&t, 2);
    got = text_after(got, strlen("\r\nContent-Type: text/rfc822-headers\r\n\r\n"));
    is_text(got, want, name);
    ok(told_is_mail(&t));
    dsn_kit_forget(k, &t, &e);
}

TEST(odd_headers)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    header_told(&k, TEXT(""), TEXT("Received: by test\r\n"), "nothing");
    header_told(&k, TEXT("\r\nbody\r\n"), TEXT("Received: by test\r\n"), "no header");
    header_told(&k, TEXT("A: b\r\n"), TEXT("Received: by test\r\nA: b\r\n"), "no body");
    header_told(&k, TEXT("A: b\r\nodd line\r\nC: d\r\n\r\n"),
                TEXT("Received: by test\r\nA: b\r\n"), "an odd line");
    struct buffer large, want;
    buffer_init(&large, 500000);
    buffer_init(&want, 500000);
    bool good = true;
    for (int i = 0; i < 4000; i++)
        good = good && buffer_format(&large, "X-%d: %040d\r\n", i, i);
    good = good && buffer_add(&large, TEXT("\r\nbody\r\n"));
    ok(good);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", buffer_text(&large));
    dsn_kit_fail(&k, e, 0, false);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    struct text got = told_part(&t, 2);
    got = text_after(got, strlen("\r\nContent-Type: text/rfc822-headers\r\n\r\n"
                                 "Received: by test\r\n"));
    ok_named(got.length > 50 * 1024 && got.length <= 64 * 1024, "a huge one is cut");
    ok_named(text_starts(buffer_text(&large), got), "it is a part of it");
    ok_named(got.at[got.length - 1] == '\n', "in whole lines");
    ok(told_is_mail(&t));
    dsn_kit_forget(&k, &t, &e);
    buffer_free(&large);
    buffer_free(&want);
    kit_close(&k);
}

/* Peers' words cannot forge anything. */
TEST(hostile)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    struct failure f = {
        .recipient = 0,
        .expired = false,
        .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                "no\r\n\r\n--=_x\r\nBcc: evil\x1b[2J %s", "y")};
    memset(f.outcome.text + 60, 'z', 400);
    queue_settle(k.queue, e, 0, &f);
    struct told t = dsn_kit_tell(&k, e, &dsn_kit_settings);
    ok(!told_has(&t, "\nBcc:") && !told_has(&t, "\x1b") && !told_has(&t, "\r\n--=_x"));
    ok(told_is_mail(&t));
    dsn_kit_forget(&k, &t, &e);

    kit_close(&k);
}

/* --- Many ------------------------------------------------------------------------- */

enum { MANY = 10000, IN_A_TURN = 2000 };

static struct envelope *
fail_many(struct kit *k)
{
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, TEXT("ann@a.test"));
    for (int i = 0; i < MANY; i++) {
        char address[40];
        snprintf(address, sizeof(address), "user%d@b.test", i);
        if (!envelope_add(e, text_from(address), 0, TEXT("rfc822;x@y")))
            abort();
    }
    e = queue_kit_accept(k, e, dsn_kit_mail);
    for (unsigned i = 0; i < MANY; i++)
        dsn_kit_fail(k, e, i, false);
    return e;
}

/* Many failures make one notice, in many turns; its settings need not live so long. */
TEST(many)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = fail_many(&k);
    struct told t = {.bytes = memory_string("")};
    char hostname[] = "h.test";
    struct dsn_settings with = {.hostname = hostname, .size_limit = 2000};
    with = dsn_kit_settings_in(&k, &with);
    k.answers = 0;
    k.stored = NULL;
    t.result = dsn_begin(&with, e, &dsn_kit_under_way, kit_stored, &k);
    memset(hostname, 'x', sizeof(hostname) - 1);
    memset(&with, 0, sizeof(with));
    unsigned turns = 1;
    for (; dsn_kit_under_way != NULL && turns < MANY; turns++)
        loop_turn(k.loop, 0);
    ok_named(turns >= REPORT_LISTS * MANY / IN_A_TURN, "not too many in a turn");
    dsn_kit_take(&k, &t);
    told_shows(&t, "Final-Recipient: rfc822; user0@b.test\r\n");
    char last[80];
    snprintf(last, sizeof(last), "Final-Recipient: rfc822; user%d@b.test\r\n",
             MANY - 1);
    ok(told_has(&t, last));
    ok(told_has(&t, "Reporting-MTA: dns; h.test\r\n"));
    ok(told_is_mail(&t));
    dsn_kit_forget(&k, &t, &e);
    kit_close(&k);
}

/* One that is given up leaves nothing, and nobody hears of it. */
TEST(drop)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = fail_many(&k);
    struct dsn_settings with = dsn_kit_settings_in(&k, &dsn_kit_settings);
    k.answers = 0;
    is_number(dsn_begin(&with, e, &dsn_kit_under_way, kit_stored, &k), DSN_BEGUN,
              "it is begun");
    loop_turn(k.loop, 0);
    loop_turn(k.loop, 0);
    ok_named(dsn_kit_under_way != NULL, "and not whole");
    dsn_drop(&dsn_kit_under_way);
    ok(dsn_kit_under_way == NULL);
    dsn_drop(&dsn_kit_under_way);
    kit_turns(&k, 5);
    is_number(k.answers, 0, "nothing comes of it");
    queue_retire(k.queue, &e);
    kit_turns(&k, 3);
    ok_named(!kit_logged(&k, "sender notified"), "nobody is notified");
    kit_close(&k);
}

/* The log says that the sender is notified when the notification is durable. */
TEST(refused)
{
    struct kit k;
    char todo[100], aside[100];
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = dsn_kit_accept(&k, "ann@a.test", dsn_kit_mail);
    dsn_kit_fail(&k, e, 1, false);
    kit_turns(&k, 3);
    struct dsn_settings with = dsn_kit_settings_in(&k, &dsn_kit_settings);
    k.answers = 0;
    snprintf(todo, sizeof(todo), "%s/todo", folder);
    snprintf(aside, sizeof(aside), "%s/aside", folder);
    ok(rename(todo, aside) == 0);
    is_number(dsn_begin(&with, e, &dsn_kit_under_way, kit_stored, &k), DSN_BEGUN,
              "it is begun");
    kit_turns(&k, 5);
    ok(rename(aside, todo) == 0);
    ok_named(k.answers == 1 && k.refused, "and refused");
    ok(dsn_kit_under_way == NULL);
    ok_named(!kit_logged(&k, "sender notified"), "nobody is notified");
    ok(kit_logged(&k, "cannot write the notification now: "));
    queue_retire(k.queue, &e);
    kit_turns(&k, 3);
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
