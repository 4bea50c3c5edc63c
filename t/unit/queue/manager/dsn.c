/* Notices: who is told, what of, in which form; read back from a real queue. */
#include "queue/manager/dsn.h"

#include "base/memory.h"
#include "mime/header.h"
#include "mime/report.h"
#include "t/support/queue_kit.h"
#include "t/support/tap.h"

#include <unistd.h>

static char folder[] = "/tmp/petrel-notice-XXXXXX";
static const struct dsn_settings settings = {.hostname = "h.test",
                                                .size_limit = 2000};
static struct dsn *under_way;

static const struct text mail = TEXT("From: Ann <ann@a.test>\r\n"
                                     "Subject: a\r\n\tfolded one\r\n"
                                     "\r\n"
                                     "The body.\r\n");

/* What came of it: the notice's envelope and all its bytes. */
struct told {
    enum dsn_result result;
    struct envelope *notice;
    char *bytes; /* "" when there is none */
    size_t length;
};

static struct envelope *
accept_mail(struct kit *k, const char *sender, struct text content)
{
    static const char *const to[] = {"bob@b.test", "carol@c.test", "dan@d.test", NULL};
    struct envelope *e = queue_kit_accept(k, kit_envelope(sender, to), content);
    if (e == NULL)
        abort();
    return e;
}

static void
fail_one(struct kit *k, struct envelope *e, unsigned index, bool expired)
{
    struct failure f = {.recipient = index,
                        .expired = expired,
                        .outcome =
                            outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                         "550 5.1.1 <%u> no such user", index)};
    snprintf(f.outcome.remote, sizeof(f.outcome.remote), "mx.b.test[192.0.2.1]:25");
    queue_settle(k->queue, e, index, CHANNEL_REMOTE, &f);
}

static struct dsn_settings
settings_in(const struct kit *k, const struct dsn_settings *with)
{
    struct dsn_settings made = *with;
    made.queue = k->queue;
    made.loop = k->loop;
    made.log = k->log;
    return made;
}

/* What comes of it, once it is committed. */
static void
take_notice(struct kit *k, struct told *t)
{
    kit_turns(k, 3);
    is_number(k->answers, t->result == DSN_BEGUN, "stored comes if promised");
    t->notice = k->stored;
    k->stored = NULL;
    if (t->notice == NULL)
        return;
    free(t->bytes);
    t->length = (size_t)t->notice->content_size;
    t->bytes = memory_new(t->length + 1);
    int content = queue_content_open(k->queue, t->notice);
    if (queue_content_read(k->queue, content, 0, t->bytes, t->length) !=
        (int64_t)t->length)
        abort();
    queue_content_close(k->queue, content);
}

static struct told
tell(struct kit *k, const struct envelope *e, const struct dsn_settings *with)
{
    struct told t = {.bytes = memory_string("")};
    k->answers = 0;
    k->stored = NULL;
    struct dsn_settings here = settings_in(k, with);
    t.result = dsn_begin(&here, e, &under_way, kit_stored, k);
    ok_named(k->answers == 0, "nothing is called back at once");
    take_notice(k, &t);
    return t;
}

static void
forget(struct kit *k, struct told *t, struct envelope **e)
{
    free(t->bytes);
    if (t->notice)
        queue_retire(k->queue, &t->notice);
    if (e)
        queue_retire(k->queue, e);
}

static bool
has(const struct told *t, const char *words)
{
    return strstr(t->bytes, words) != NULL;
}

static void
shows(const struct told *t, const char *words)
{
    char name[100];
    text_copy(name, sizeof(name), text_before(text_from(words), strcspn(words, "\r")));
    ok_named(has(t, words), name[0] ? name : "a recipient without more");
}

/* The value of a field in the notice's header, unfolded. */
static void
field(const struct told *t, const char *name, char *out, size_t size)
{
    struct text rest = text_of(t->bytes, t->length);
    struct header_field f;
    struct buffer value;
    buffer_init(&value, 1000);
    while (header_next(&rest, &f))
        if (text_equal_nocase(f.name, text_from(name)) &&
            !header_unfold(f.value, &value))
            abort();
    text_copy(out, size, text_trim(buffer_text(&value)));
    buffer_free(&value);
}

static void
field_is(const struct told *t, const char *name, const char *want)
{
    char value[500];
    field(t, name, value, sizeof(value));
    is_string(value, want, name);
}

/* Part number which (from 0) of the multipart, without its line end. */
static struct text
part(const struct told *t, int which)
{
    char value[500], mark[200];
    field(t, "Content-Type", value, sizeof(value));
    const char *start = strstr(value, "boundary=\"");
    if (start == NULL)
        return TEXT("");
    start += strlen("boundary=\"");
    snprintf(mark, sizeof(mark), "\r\n--%.*s", (int)strcspn(start, "\""), start);
    const char *at = t->bytes;
    for (int i = 0; i <= which && at; i++) {
        at = strstr(at, mark);
        at = at ? at + strlen(mark) : NULL;
    }
    const char *next = at ? strstr(at, mark) : NULL;
    return next ? text_of(at, (size_t)(next - at)) : TEXT("");
}

/* Lines of CRLF only, none longer than 998. */
static bool
is_mail(const struct told *t)
{
    struct text rest = text_of(t->bytes, t->length), line;
    while (text_cut(&rest, '\n', &line) && rest.at)
        if (line.length == 0 || line.length > 999 ||
            text_find(line, '\r') != line.length - 1)
            return false;
    return line.length == 0;
}

static void
test_plain(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    fail_one(&k, e, 1, false);
    fail_one(&k, e, 2, true);
    struct told t = tell(&k, e, &settings);
    is_number(t.result, DSN_BEGUN, "the sender is told");
    is_text(t.notice->sender, TEXT(""), "from nobody");
    is_number(t.notice->count, 1, "to one");
    is_text(t.notice->recipients[0].address, TEXT("ann@a.test"), "the sender");
    is_number(t.notice->recipients[0].notify, NOTIFY_NEVER, "and nobody about that");
    ok(!t.notice->double_bounce && !t.notice->eight_bit && !t.notice->utf8);
    ok_named(is_mail(&t), "proper lines");
    field_is(&t, "From", "Mail Delivery System <MAILER-DAEMON@h.test>");
    field_is(&t, "To", "<ann@a.test>");
    field_is(&t, "Subject", "Undelivered Mail Returned to Sender");
    field_is(&t, "Auto-Submitted", "auto-replied");
    char id[ID_LENGTH + 1];
    id_format(e->id, id);
    shows(&t, id);
    shows(&t, "<carol@c.test>");
    shows(&t, "<dan@d.test>");
    ok_named(!has(&t, "bob@b.test"), "who got it is not told");
    shows(&t,
          "Final-Recipient: rfc822; carol@c.test\r\nAction: failed\r\nStatus: 5.1.1");
    shows(&t, "Remote-MTA: dns; mx.b.test");
    shows(&t, "Diagnostic-Code: smtp; 550 5.1.1 <1> no such user");
    shows(&t, ", without success");
    ok(text_starts(part(&t, 0), TEXT("\r\nContent-Type: text/plain")));
    ok(text_starts(part(&t, 1), TEXT("\r\nContent-Type: message/delivery-status")));
    is_text(part(&t, 2),
            TEXT("\r\nContent-Type: text/rfc822-headers\r\n\r\nReceived: by test\r\n"
                 "From: Ann <ann@a.test>\r\nSubject: a\r\n\tfolded one\r\n"),
            "the header as it came in, and ours");
    is_text(part(&t, 3), TEXT(""), "three parts");
    ok_named(!has(&t, "The body."), "no more than the header");
    char line[100];
    char notice[ID_LENGTH + 1];
    id_format(t.notice->id, notice);
    snprintf(line, sizeof(line), "%s: sender notified: %s", id, notice);
    ok_named(kit_logged(&k, line), "the log joins the two");
    forget(&k, &t, &e);
    kit_close(&k);
}

/* NOTIFY: the failures of those who asked for silence are not told. */
static void
test_notify(void)
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
        struct envelope *e = accept_mail(&k, "ann@a.test", mail);
        e->recipients[0].notify = cases[i].notify;
        fail_one(&k, e, 0, false);
        struct told t = tell(&k, e, &settings);
        is_number(t.result, cases[i].told ? DSN_BEGUN : DSN_NOTHING, "alone");
        free(t.bytes);
        if (t.notice)
            queue_retire(k.queue, &t.notice);
        fail_one(&k, e, 1, false);
        t = tell(&k, e, &settings);
        is_number(t.result, DSN_BEGUN, "beside one that is told");
        ok(has(&t, "bob@b.test") == cases[i].told);
        ok(has(&t, "carol@c.test"));
        forget(&k, &t, &e);
    }
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    struct told t = tell(&k, e, &settings);
    is_number(t.result, DSN_NOTHING, "no failure, no notice");
    forget(&k, &t, &e);
    kit_close(&k);
}

/* RET and the size limit: all of it, or its header. */
static void
test_return(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    fail_one(&k, e, 0, false);
    e->ret = RETURN_FULL;
    struct told t = tell(&k, e, &settings);
    is_text(part(&t, 2),
            TEXT("\r\nContent-Type: message/rfc822\r\n\r\nReceived: by test\r\n"
                 "From: Ann <ann@a.test>\r\nSubject: a\r\n\tfolded one\r\n\r\n"
                 "The body.\r\n"),
            "RET=FULL");
    forget(&k, &t, NULL);
    e->ret = RETURN_HEADERS;
    t = tell(&k, e, &settings);
    ok_named(!has(&t, "The body."), "RET=HDRS");
    forget(&k, &t, NULL);
    e->ret = RETURN_FULL;
    struct dsn_settings with = {.hostname = "h.test",
                                   .size_limit = (size_t)e->content_size};
    t = tell(&k, e, &with);
    ok_named(has(&t, "The body."), "just within the limit");
    forget(&k, &t, NULL);
    with.size_limit--;
    t = tell(&k, e, &with);
    ok_named(!has(&t, "The body.") && has(&t, "folded one"), "beyond the limit");
    forget(&k, &t, &e);
    kit_close(&k);
}

/* The null sender: postmaster is told, and when that fails nobody. */
static void
test_double(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "", mail);
    e->ret = RETURN_FULL;
    e->recipients[0].notify = NOTIFY_NEVER;
    fail_one(&k, e, 0, false);
    struct told t = tell(&k, e, &settings);
    is_number(t.result, DSN_BEGUN, "somebody is told");
    is_text(t.notice->recipients[0].address, TEXT("postmaster@h.test"), "postmaster");
    is_text(t.notice->sender, TEXT(""), "from nobody");
    ok(t.notice->double_bounce);
    field_is(&t, "To", "<postmaster@h.test>");
    field_is(&t, "Subject", "Undeliverable Mail, Sender Not Notified (double bounce)");
    ok_named(!has(&t, "The body."), "only the header");
    ok(kit_logged(&k, "sender is null; postmaster notified: "));
    queue_retire(k.queue, &e);
    free(t.bytes);

    struct envelope *second = t.notice;
    struct failure f = {
        .recipient = 0,
        .expired = false,
        .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no")};
    queue_settle(k.queue, second, 0, CHANNEL_REMOTE, &f);
    struct told last = tell(&k, second, &settings);
    is_number(last.result, DSN_NOTHING, "never a bounce of that");
    ok(kit_logged(&k, "notification to postmaster failed; discarded"));
    forget(&k, &last, &second);
    kit_close(&k);
}

/* It stays a double bounce over a restart. */
static void
test_double_restart(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "", mail);
    fail_one(&k, e, 0, false);
    struct told t = tell(&k, e, &settings);
    struct id id = t.notice->id;
    queue_retire(k.queue, &e);
    free(t.bytes);
    envelope_free(&t.notice);
    kit_close(&k);

    is_number(queue_kit_open(&k, folder), 0, k.error);
    e = queue_load(k.queue, id);
    ok(e && e->double_bounce);
    fail_one(&k, e, 0, false);
    t = tell(&k, e, &settings);
    is_number(t.result, DSN_NOTHING, "never a bounce of that");
    forget(&k, &t, &e);
    kit_close(&k);
}

static void
test_dsn(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    e->envelope_id = envelope_text(e, TEXT("QQ+2B314"));
    e->recipients[0].original = envelope_text(e, TEXT("rfc822;Bob+2Bx@orig.test"));
    e->recipients[1].original = envelope_text(e, TEXT("x400;/c+3Dde"));
    e->recipients[2].original = envelope_text(e, TEXT("rfc822;bad+0Aline"));
    for (unsigned i = 0; i < 3; i++)
        fail_one(&k, e, i, false);
    struct told t = tell(&k, e, &settings);
    shows(&t, "Original-Envelope-Id: QQ+314\r\n");
    shows(&t, "Original-Recipient: rfc822;Bob+x@orig.test\r\nFinal-Recipient: rfc822; "
              "bob@b.test");
    shows(&t, "Original-Recipient: x400;/c=de\r\n");
    shows(&t, "\r\n\r\nFinal-Recipient: rfc822; dan@d.test");
    ok_named(!has(&t, "line"), "one that is no xtext is left out");
    forget(&k, &t, &e);
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
    queue_settle(k->queue, e, index, CHANNEL_REMOTE, &f);
}

/* Successes that were asked for, alone and beside a failure (RFC 3461 §4.3, §6.2). */
static void
test_success(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    e->ret = RETURN_FULL;
    e->envelope_id = envelope_text(e, TEXT("E1"));
    e->recipients[0].original = envelope_text(e, TEXT("rfc822;Bob@orig.test"));
    succeed(&k, e, 0, true);
    succeed(&k, e, 1, false);
    struct told t = tell(&k, e, &settings);
    is_number(t.result, DSN_BEGUN, "a success is told");
    ok(kit_logged(&k, "sender notified of the delivery"));
    is_text(t.notice->sender, TEXT(""), "from nobody");
    field_is(&t, "Subject", "Successful Mail Delivery Report");
    shows(&t, "Original-Envelope-Id: E1\r\n");
    shows(&t, "Original-Recipient: rfc822;Bob@orig.test\r\n"
              "Final-Recipient: rfc822; bob@b.test\r\nAction: relayed\r\n"
              "Status: 2.0.0\r\nRemote-MTA: dns; mx.b.test\r\n");
    shows(&t, "Final-Recipient: rfc822; carol@c.test\r\nAction: delivered\r\n");
    ok_named(!has(&t, "dan@d.test"), "who has not got it yet is not told");
    ok_named(!has(&t, "The body."), "RET=FULL is for failures alone");
    ok(is_mail(&t));
    forget(&k, &t, NULL);
    fail_one(&k, e, 2, false);
    t = tell(&k, e, &settings);
    field_is(&t, "Subject", "Undelivered Mail Returned to Sender");
    shows(&t, "Action: relayed\r\n");
    shows(&t, "Action: delivered\r\n");
    shows(&t, "Final-Recipient: rfc822; dan@d.test\r\nAction: failed\r\n");
    ok_named(has(&t, "The body."), "and goes with one");
    forget(&k, &t, &e);

    /* A failure that nobody wants to hear of, and a success that somebody does. */
    e = accept_mail(&k, "ann@a.test", mail);
    e->ret = RETURN_FULL;
    e->recipients[2].notify = NOTIFY_SUCCESS;
    succeed(&k, e, 0, true);
    fail_one(&k, e, 2, false);
    t = tell(&k, e, &settings);
    ok(has(&t, "bob@b.test") && !has(&t, "dan@d.test") && !has(&t, "The body."));
    forget(&k, &t, &e);
    kit_close(&k);
}

static void
test_success_wanted(void)
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

static void
test_eight_bit(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e =
        accept_mail(&k, "ann@a.test", TEXT("Subject: \xc3\xbc\r\n\r\nplain\r\n"));
    e->eight_bit = true;
    fail_one(&k, e, 0, false);
    struct told t = tell(&k, e, &settings);
    ok_named(t.notice->eight_bit, "8-bit in the header");
    field_is(&t, "Content-Transfer-Encoding", "8bit");
    forget(&k, &t, &e);
    e = accept_mail(&k, "ann@a.test", TEXT("Subject: x\r\n\r\n\xc3\xbc\r\n"));
    e->eight_bit = true;
    fail_one(&k, e, 0, false);
    t = tell(&k, e, &settings);
    ok_named(!t.notice->eight_bit, "8-bit in a body that is not told");
    forget(&k, &t, NULL);
    e->ret = RETURN_FULL;
    t = tell(&k, e, &settings);
    ok_named(t.notice->eight_bit, "8-bit in a body that is");
    forget(&k, &t, &e);
    e = accept_mail(&k, "j\xc3\xbcrgen@a.test", mail);
    e->utf8 = true;
    e->priority = -3;
    fail_one(&k, e, 0, false);
    t = tell(&k, e, &settings);
    ok_named(t.notice->utf8, "SMTPUTF8");
    is_number(t.notice->priority, -3, "the priority of what it tells of");
    ok(text_starts(part(&t, 1),
                   TEXT("\r\nContent-Type: message/global-delivery-status")));
    forget(&k, &t, &e);
    e = accept_mail(&k, "ann@a.test", mail);
    e->utf8 = e->ascii_header = true;
    e->recipients[0].original =
        envelope_text(e, TEXT("utf-8;b\xc3\xb8\\x{2B}b@orig.test"));
    fail_one(&k, e, 0, false);
    t = tell(&k, e, &settings);
    ok_named(!t.notice->utf8, "SMTPUTF8 that was not needed is not needed now");
    ok(text_starts(part(&t, 1), TEXT("\r\nContent-Type: message/delivery-status")));
    shows(&t, "Original-Recipient: utf-8;b\\x{F8}\\x{2B}b@orig.test\r\n");
    forget(&k, &t, &e);
    e = accept_mail(&k, "ann@a.test", mail);
    e->utf8 = true; /* and its header is not known */
    e->recipients[0].original =
        envelope_text(e, TEXT("utf-8;b\xc3\xb8\\x{2B}b@orig.test"));
    e->recipients[0].address = envelope_text(e, TEXT("b\xc3\xb8@b.test"));
    fail_one(&k, e, 0, false);
    t = tell(&k, e, &settings);
    ok(t.notice->utf8);
    shows(&t, "Original-Recipient: utf-8;b\xc3\xb8\\x{2B}b@orig.test\r\n"
              "Final-Recipient: utf-8; b\xc3\xb8@b.test\r\n");
    forget(&k, &t, &e);
    kit_close(&k);
}

/* The original's last part is exactly this. */
static void
header_told(struct kit *k, struct text content, struct text want, const char *name)
{
    struct envelope *e = accept_mail(k, "ann@a.test", content);
    fail_one(k, e, 0, false);
    struct told t = tell(k, e, &settings);
    struct text got = part(&t, 2);
    got = text_after(got, strlen("\r\nContent-Type: text/rfc822-headers\r\n\r\n"));
    is_text(got, want, name);
    ok(is_mail(&t));
    forget(k, &t, &e);
}

static void
test_odd_headers(void)
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
    struct envelope *e = accept_mail(&k, "ann@a.test", buffer_text(&large));
    fail_one(&k, e, 0, false);
    struct told t = tell(&k, e, &settings);
    struct text got = part(&t, 2);
    got = text_after(got, strlen("\r\nContent-Type: text/rfc822-headers\r\n\r\n"
                                 "Received: by test\r\n"));
    ok_named(got.length > 50 * 1024 && got.length <= 64 * 1024, "a huge one is cut");
    ok_named(text_starts(buffer_text(&large), got), "it is a part of it");
    ok_named(got.at[got.length - 1] == '\n', "in whole lines");
    ok(is_mail(&t));
    forget(&k, &t, &e);
    buffer_free(&large);
    buffer_free(&want);
    kit_close(&k);
}

/* Peers' words cannot forge anything. */
static void
test_hostile(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    struct failure f = {
        .recipient = 0,
        .expired = false,
        .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                "no\r\n\r\n--=_x\r\nBcc: evil\x1b[2J %s", "y")};
    memset(f.outcome.text + 60, 'z', 400);
    queue_settle(k.queue, e, 0, CHANNEL_REMOTE, &f);
    struct told t = tell(&k, e, &settings);
    ok(!has(&t, "\nBcc:") && !has(&t, "\x1b") && !has(&t, "\r\n--=_x"));
    ok(is_mail(&t));
    forget(&k, &t, &e);

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
    e = queue_kit_accept(k, e, mail);
    for (unsigned i = 0; i < MANY; i++)
        fail_one(k, e, i, false);
    return e;
}

/* Many failures make one notice, in many turns; its settings need not live so long. */
static void
test_many(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = fail_many(&k);
    struct told t = {.bytes = memory_string("")};
    char hostname[] = "h.test";
    struct dsn_settings with = {.hostname = hostname, .size_limit = 2000};
    with = settings_in(&k, &with);
    k.answers = 0;
    k.stored = NULL;
    t.result = dsn_begin(&with, e, &under_way, kit_stored, &k);
    memset(hostname, 'x', sizeof(hostname) - 1);
    memset(&with, 0, sizeof(with));
    unsigned turns = 1;
    for (; under_way != NULL && turns < MANY; turns++)
        loop_turn(k.loop, 0);
    ok_named(turns >= REPORT_LISTS * MANY / IN_A_TURN, "not too many in a turn");
    take_notice(&k, &t);
    shows(&t, "Final-Recipient: rfc822; user0@b.test\r\n");
    char last[80];
    snprintf(last, sizeof(last), "Final-Recipient: rfc822; user%d@b.test\r\n",
             MANY - 1);
    ok(has(&t, last));
    ok(has(&t, "Reporting-MTA: dns; h.test\r\n"));
    ok(is_mail(&t));
    forget(&k, &t, &e);
    kit_close(&k);
}

/* One that is given up leaves nothing, and nobody hears of it. */
static void
test_drop(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = fail_many(&k);
    struct dsn_settings with = settings_in(&k, &settings);
    k.answers = 0;
    is_number(dsn_begin(&with, e, &under_way, kit_stored, &k), DSN_BEGUN,
              "it is begun");
    loop_turn(k.loop, 0);
    loop_turn(k.loop, 0);
    ok_named(under_way != NULL, "and not whole");
    dsn_drop(&under_way);
    ok(under_way == NULL);
    dsn_drop(&under_way);
    kit_turns(&k, 5);
    is_number(k.answers, 0, "nothing comes of it");
    queue_retire(k.queue, &e);
    kit_turns(&k, 3);
    ok_named(!kit_logged(&k, "sender notified"), "nobody is notified");
    kit_close(&k);
}

/* --- Delays ----------------------------------------------------------------------- */

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
    struct dsn_settings here = settings_in(k, &settings);
    t.result = dsn_begin_delay(&here, e, delays, count, &under_way, kit_stored, k);
    ok_named(k->answers == 0, "nothing is called back at once");
    take_notice(k, &t);
    return t;
}

static void
test_delay(void)
{
    struct kit k;
    is_number(queue_kit_open(&k, folder), 0, k.error);
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    e->ret = RETURN_FULL;
    e->envelope_id = envelope_text(e, TEXT("QQ+2B314"));
    e->recipients[0].original = envelope_text(e, TEXT("rfc822;Bob+2Bx@orig.test"));
    fail_one(&k, e, 2, false);
    struct told t = tell_delay(&k, e, 2);
    is_number(t.result, DSN_BEGUN, "the sender is told of a delay");
    is_text(t.notice->sender, TEXT(""), "from nobody");
    is_text(t.notice->recipients[0].address, TEXT("ann@a.test"), "the sender");
    is_number(t.notice->recipients[0].notify, NOTIFY_NEVER, "and nobody about that");
    ok(!t.notice->double_bounce && is_mail(&t));
    field_is(&t, "Subject", "Delayed Mail (still being retried)");
    field_is(&t, "Auto-Submitted", "auto-replied");
    shows(&t, "Original-Envelope-Id: QQ+314\r\n");
    shows(&t, "Original-Recipient: rfc822;Bob+x@orig.test\r\n"
              "Final-Recipient: rfc822; bob@b.test\r\nAction: delayed\r\n"
              "Status: 4.2.0\r\nRemote-MTA: dns; mx.b.test\r\n"
              "Diagnostic-Code: smtp; 450 4.2.0 come again\r\n");
    shows(&t, "Final-Recipient: rfc822; carol@c.test\r\nAction: delayed\r\n");
    shows(&t, "Will-Retry-Until: Sat, 21 Nov 2026 03:05:08 +0000\r\n");
    shows(&t, "you do not need to resend it.");
    ok_named(!has(&t, "dan@d.test") && !has(&t, "failed"), "failures are told later");
    is_text(part(&t, 2),
            TEXT("\r\nContent-Type: text/rfc822-headers\r\n\r\nReceived: by test\r\n"
                 "From: Ann <ann@a.test>\r\nSubject: a\r\n\tfolded one\r\n"),
            "the header alone, whatever RET says");
    ok(kit_logged(&k, "sender notified of the delay: "));
    forget(&k, &t, NULL);
    t = tell(&k, e, &settings);
    ok_named(has(&t, "dan@d.test") && !has(&t, "bob@b.test"), "in the bounce");
    forget(&k, &t, &e);
    kit_close(&k);
}

/* NOTIFY: without it, or with DELAY; and there must be somebody to tell. */
static void
test_delay_notify(void)
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
        struct envelope *e = accept_mail(&k, "ann@a.test", mail);
        e->recipients[0].notify = cases[i].notify;
        ok(dsn_wants_delay(&e->recipients[0]) == cases[i].told);
        struct told t = tell_delay(&k, e, 1);
        is_number(t.result, cases[i].told ? DSN_BEGUN : DSN_NOTHING, "alone");
        forget(&k, &t, NULL);
        t = tell_delay(&k, e, 3);
        ok_named(has(&t, "bob@b.test") == cases[i].told, "beside two that are told");
        ok(has(&t, "carol@c.test") && has(&t, "dan@d.test"));
        forget(&k, &t, &e);
    }
    struct envelope *e = accept_mail(&k, "ann@a.test", mail);
    struct told t = tell_delay(&k, e, 0);
    is_number(t.result, DSN_NOTHING, "nobody is late");
    forget(&k, &t, &e);
    e = accept_mail(&k, "", mail);
    t = tell_delay(&k, e, 3);
    is_number(t.result, DSN_NOTHING, "a null sender hears of no delay");
    forget(&k, &t, &e);
    kit_close(&k);
}

int
main(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    test_plain();
    test_notify();
    test_return();
    test_double();
    test_double_restart();
    test_dsn();
    test_success();
    test_success_wanted();
    test_eight_bit();
    test_odd_headers();
    test_hostile();
    test_many();
    test_drop();
    test_delay();
    test_delay_notify();
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
    return done();
}
