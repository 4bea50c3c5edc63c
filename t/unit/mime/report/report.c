/* Reports: every field, plain words, no byte of a peer out of its place, read by
 * another's parser. */
#include "mime/report/report.h"

#include "mime/date.h"
#include "mime/report/header_writer.h"

#include "base/buffer.h"

#include "t/support/tap.h"

#include <unistd.h>

#define HOST_REPLY(reply)                                                              \
    "host mx.b[192.0.2.1] said: " reply " (in reply to RCPT TO command)"

enum { DAY_MS = 86400000 };
static const int64_t ARRIVAL_MS = 1795230308000; /* Sat, 21 Nov 2026 03:05:08 */

static struct outcome
outcome_with(int code, const char *enhanced, const char *text, const char *remote)
{
    struct outcome o = {
        .verdict = VERDICT_FAILED, .blame = BLAME_MESSAGE, .code = code};
    text_copy(o.enhanced, sizeof(o.enhanced), text_from(enhanced));
    text_copy(o.text, sizeof(o.text), text_from(text));
    text_copy(o.remote, sizeof(o.remote), text_from(remote));
    return o;
}

static struct report
report_of(const struct report_recipient *recipients, size_t count)
{
    return (struct report){.reporting_host = TEXT("mx.a.example"),
                           .to = TEXT("joe@c.example"),
                           .from = TEXT("MAILER-DAEMON@mx.a.example"),
                           .original_sender = TEXT("joe@c.example"),
                           .id = TEXT("01JD3ZK5Q8-9F3K2C7A"),
                           .envelope_id = TEXT("QQ314159"),
                           .boundary = TEXT("01JD3ZK5Q9-1F3K2C7A/0123456789abcdef"),
                           .arrival_ms = ARRIVAL_MS,
                           .now_ms = ARRIVAL_MS + 5 * (int64_t)DAY_MS,
                           .recipients = recipients,
                           .count = count};
}

static void
collect(void *context, struct text bytes)
{
    if (!buffer_add(context, bytes))
        abort();
}

/* The whole report around the original; the caller frees. */
static void
build(const struct report *r, const char *original, struct buffer *out)
{
    struct report_place place = {0};
    buffer_init(out, 256 << 20);
    if (!report_begin(r, &place, SIZE_MAX, collect, out))
        abort();
    collect(out, text_from(original));
    report_end(r, collect, out);
}

static bool
has(const struct buffer *b, const char *part)
{
    return memmem(b->at, b->length, part, strlen(part)) != NULL;
}

static bool
has_line(const struct buffer *b, const char *line)
{
    struct text rest = buffer_text(b), found;
    while (text_cut(&rest, '\n', &found))
        if (text_equal(text_trim(found), text_from(line)))
            return true;
    return false;
}

/* Lines below 998 that end in CRLF, no CR or control elsewhere, only ASCII unless
 * allowed. */
static bool
is_clean(const struct buffer *b, bool utf8)
{
    size_t column = 0;
    for (size_t at = 0; at < b->length; at++) {
        unsigned char c = (unsigned char)b->at[at];
        bool crlf = c == '\r' && at + 1 < b->length && b->at[at + 1] == '\n';
        if (c == '\n'
                ? at == 0 || b->at[at - 1] != '\r'
                : c != '\t' && !crlf && (c < ' ' || c == 0x7f || (!utf8 && c > 0x7f)))
            return false;
        column = c == '\n' ? 0 : column + 1;
        if (column > 998)
            return false;
    }
    return b->length > 2 && b->at[b->length - 1] == '\n' &&
           (!utf8 || text_is_utf8(buffer_text(b)));
}

static bool
python_is_here(void)
{
    return system("python3 -c 'import email' >/dev/null 2>&1") == 0;
}

/* The result of Python's email package: one fact a line. No single quote in it. */
static const char SCRIPT[] =
    "import sys, email, email.policy\n"
    "m = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.SMTP)\n"
    "out = open(sys.argv[1], \"w\", encoding=\"utf-8\")\n"
    "p = lambda *a: print(*a, file=out)\n"
    "p(\"type\", m.get_content_type(), m.get_param(\"report-type\"))\n"
    "p(\"header\", *sorted(k.lower() for k in m.keys()))\n"
    "for k in (\"From\", \"To\", \"Subject\", \"Auto-Submitted\"): p(k, m[k])\n"
    "defects = list(m.defects)\n"
    "for part in m.walk():\n"
    "    defects += part.defects\n"
    "    for v in part.values(): defects += getattr(v, \"defects\", [])\n"
    "p(\"defects\", defects)\n"
    "parts = m.get_payload()\n"
    "p(\"parts\", *[x.get_content_type() for x in parts])\n"
    "if parts[1].get_content_type() == \"message/delivery-status\":\n"
    "    for block in parts[1].get_payload():\n"
    "        p(\"block\")\n"
    "        for k, v in block.raw_items(): p(\" \", k + \":\", "
    "\"\".join(v.splitlines()))\n"
    "last = parts[2].get_payload()\n"
    "if parts[2].get_content_maintype() == \"message\": last = last[0].as_string()\n"
    "p(\"original\", repr(last))\n";

/* Empty when it failed; the caller frees. */
static char *
read_by_python(const struct buffer *message)
{
    char path[] = "/tmp/report-test-XXXXXX", command[sizeof(SCRIPT) + 64];
    int file = mkstemp(path);
    if (file < 0)
        return calloc(1, 1);
    snprintf(command, sizeof(command), "python3 -c '%s' %s", SCRIPT, path);
    FILE *pipe = popen(command, "w");
    if (pipe != NULL) {
        fwrite(message->at, 1, message->length, pipe);
        if (pclose(pipe) != 0)
            printf("# python failed\n");
    }
    char *facts = calloc(1, 1 << 20);
    if (facts == NULL || pread(file, facts, (1 << 20) - 1, 0) < 0)
        abort();
    close(file);
    unlink(path);
    return facts;
}

#define HEADER_FACTS                                                                   \
    "header auto-submitted content-type date from message-id mime-version subject "    \
    "to\n"                                                                             \
    "From Mail Delivery System <MAILER-DAEMON@mx.a.example>\n"

/* The path of a socket is private: it is not named. */
TEST(local_socket)
{
    static const char *const remotes[] = {"/run/dovecot/lmtp", "unix:/run/dovecot/lmtp"};
    for (size_t i = 0; i < 2; i++) {
        struct outcome full =
            outcome_with(552, "5.2.2", "552 5.2.2 Quota exceeded", remotes[i]);
        struct report_recipient recipient = {.address = TEXT("x@b.example"),
                                             .action = REPORT_FAILED,
                                             .outcome = &full};
        struct report r = report_of(&recipient, 1);
        struct buffer b;
        build(&r, "Subject: hello\r\n", &b);
        ok(is_clean(&b, false));
        ok(has_line(&b, "The local mail server replied:"));
        ok(has_line(&b, "552 5.2.2 Quota exceeded"));
        ok(!has(&b, "dovecot"));
        buffer_free(&b);
    }
}

TEST(failed)
{
    struct outcome unknown = outcome_with(
        550, "5.1.1", HOST_REPLY("550 5.1.1 No such user"), "mx.b[192.0.2.1]:25");
    struct outcome late = outcome_with(
        0, "4.4.1", "connection to mx.d[192.0.2.2]:25 timed out", "mx.d[192.0.2.2]:25");
    struct report_recipient recipients[] = {
        {.address = TEXT("x@b.example"),
         .original = TEXT("rfc822;y@b.example"),
         .action = REPORT_FAILED,
         .outcome = &unknown},
        {.address = TEXT("z@d.example"),
         .action = REPORT_FAILED,
         .expired = true,
         .outcome = &late   }
    };
    struct report r = report_of(recipients, 2);
    struct buffer b;
    build(&r, "Subject: hello\r\nTo: y\r\n", &b);
    ok(is_clean(&b, false));
    ok(has_line(&b, "<x@b.example>"));
    ok(has_line(&b, "There is no such mailbox."));
    ok(has_line(&b, "The mail server mx.b[192.0.2.1] replied:"));
    ok(has_line(&b, "550 5.1.1 No such user"));
    ok(has_line(&b, "<z@d.example>"));
    ok(has_line(&b, "The receiving mail server does not answer."));
    ok(has_line(&b, "connection to mx.d[192.0.2.2]:25 timed out"));
    ok(has_line(&b, "Delivery was attempted for 5 days, without success."));
    ok(has(&b, "This is the mail system at host mx.a.example.\r\n"));
    ok(has(&b, "Sat, 21 Nov 2026 03:05:08 +0000"));
    ok(has(&b, "01JD3ZK5Q8-9F3K2C7A. Its header is attached below.\r\n"));
    ok(!has(&b, "postmaster:"));
    if (!python_is_here()) {
        ok_named(true, "read by Python # SKIP no python3");
    } else {
        char *facts = read_by_python(&b);
        is_string(
            facts,
            "type multipart/report delivery-status\n" HEADER_FACTS "To joe@c.example\n"
            "Subject Undelivered Mail Returned to Sender\n"
            "Auto-Submitted auto-replied\n"
            "defects []\n"
            "parts text/plain message/delivery-status text/rfc822-headers\n"
            "block\n"
            "  Reporting-MTA: dns; mx.a.example\n"
            "  Original-Envelope-Id: QQ314159\n"
            "  Arrival-Date: Sat, 21 Nov 2026 03:05:08 +0000\n"
            "  X-Petrel-Queue-ID: 01JD3ZK5Q8-9F3K2C7A\n"
            "block\n"
            "  Original-Recipient: rfc822;y@b.example\n"
            "  Final-Recipient: rfc822; x@b.example\n"
            "  Action: failed\n"
            "  Status: 5.1.1\n"
            "  Remote-MTA: dns; mx.b\n"
            "  Diagnostic-Code: smtp; 550 5.1.1 No such user\n"
            "  Last-Attempt-Date: Thu, 26 Nov 2026 03:05:08 +0000\n"
            "block\n"
            "  Final-Recipient: rfc822; z@d.example\n"
            "  Action: failed\n"
            "  Status: 4.4.1\n"
            "  Remote-MTA: dns; mx.d\n"
            "  Diagnostic-Code: x-petrel; connection to mx.d[192.0.2.2]:25 timed out\n"
            "  Last-Attempt-Date: Thu, 26 Nov 2026 03:05:08 +0000\n"
            "original 'Subject: hello\\r\\nTo: y\\r\\n'\n",
            "a failure read by Python");
        free(facts);
    }
    buffer_free(&b);
}

TEST(delayed)
{
    struct outcome busy =
        outcome_with(451, "4.3.0", HOST_REPLY("451 try later"), "mx.b[192.0.2.1]:25");
    struct report_recipient recipient = {.address = TEXT("x@b.example"),
                                         .action = REPORT_DELAYED,
                                         .outcome = &busy,
                                         .retry_until_ms =
                                             ARRIVAL_MS + 5 * (int64_t)DAY_MS};
    struct report r = report_of(&recipient, 1);
    r.envelope_id = TEXT("");
    r.now_ms = ARRIVAL_MS + 4 * 3600000 + 10 * 60000;
    r.full = true;
    struct buffer b;
    build(&r, "Subject: hello\r\n\r\nbody\r\n", &b);
    ok(is_clean(&b, false));
    ok(has(&b, "is delayed:\r\n\r\n<x@b.example>\r\n"));
    ok(has(&b, "    Delivery was attempted for 4 hours 10 minutes and will be retried until\r\n"
               "    Thu, 26 Nov 2026 03:05:08 +0000.\r\n"));
    ok(has_line(&b, "Will-Retry-Until: Thu, 26 Nov 2026 03:05:08 +0000"));
    ok(has_line(&b, "Subject: Delayed Mail (still being retried)"));
    ok(has_line(&b, "Action: delayed"));
    ok(has_line(&b, "Status: 4.3.0"));
    ok(has_line(&b, "Content-Type: message/rfc822"));
    ok(has(&b, "It is attached below."));
    ok(!has(&b, "Original-Envelope-Id") && !has(&b, "without success"));
    if (python_is_here()) {
        char *facts = read_by_python(&b);
        ok(strstr(facts, "defects []\nparts text/plain message/delivery-status "
                         "message/rfc822\n") != NULL);
        ok(strstr(facts, "original 'Subject: hello\\r\\n\\r\\nbody\\r\\n'\n") != NULL);
        free(facts);
    }
    buffer_free(&b);
    recipient.retry_until_ms = 0;
    build(&r, "", &b);
    ok(has_line(&b, "Delivery was attempted for 4 hours 10 minutes and will be retried."));
    ok(!has(&b, "Will-Retry-Until"));
    buffer_free(&b);
}

TEST(delivered)
{
    struct outcome fine =
        outcome_with(250, "2.0.0", "250 2.0.0 Ok", "mx.b[192.0.2.1]:25");
    struct report_recipient recipients[] = {
        {.address = TEXT("x@b.example"), .action = REPORT_DELIVERED, .outcome = &fine},
        {.address = TEXT("y@b.example"), .action = REPORT_RELAYED,   .outcome = &fine}
    };
    struct report r = report_of(recipients, 2);
    struct buffer b;
    build(&r, "", &b);
    ok(is_clean(&b, false));
    ok(has_line(&b, "Subject: Successful Mail Delivery Report"));
    ok(has_line(&b, "It was successfully delivered to:"));
    ok(has_line(&b, "Action: delivered") && has_line(&b, "Action: relayed"));
    ok(has_line(&b, "Status: 2.0.0"));
    ok(has_line(&b, "Diagnostic-Code: smtp; 250 2.0.0 Ok"));
    ok(!has(&b, "could not"));
    buffer_free(&b);
}

TEST(double)
{
    struct outcome o = outcome_with(550, "5.1.1", "unknown user", "");
    struct report_recipient recipient = {
        .address = TEXT("x@b.example"), .action = REPORT_FAILED, .outcome = &o};
    struct report r = report_of(&recipient, 1);
    r.to = TEXT("postmaster@mx.a.example");
    struct buffer b;
    build(&r, "", &b);
    ok(is_clean(&b, false));
    ok(has(&b, "This is for the postmaster"));
    ok(has(&b, "It came from <joe@c.example>\r\n"));
    ok(has_line(&b, "To: <postmaster@mx.a.example>"));
    ok(has(&b, "Subject: Undeliverable Mail, Sender Not Notified"));
    ok(!has(&b, "you on"));
    buffer_free(&b);
    r.original_sender = TEXT("");
    build(&r, "", &b);
    ok_named(has(&b, "It came from <>\r\n"), "the null sender is one as well");
    buffer_free(&b);
}

TEST(utf8)
{
    struct outcome o = outcome_with(
        550, "5.1.1", HOST_REPLY("550 5.1.1 unbekannt: J\xc3\xbcrgen \xff\xe2\x80\xae"),
        "mx.b[192.0.2.1]:25");
    struct report_recipient recipient = {
        .address = TEXT("j\xc3\xbc@b.example"), .action = REPORT_FAILED, .outcome = &o};
    struct report r = report_of(&recipient, 1);
    r.utf8 = true;
    r.to = TEXT("\xc3\xb6@c.example");
    r.original_sender = r.to;
    struct buffer b;
    build(&r, "Subject: \xc3\xbc\r\n", &b);
    ok(is_clean(&b, true));
    ok(has_line(&b, "To: <\xc3\xb6@c.example>"));
    ok(has_line(&b, "Content-Type: message/global-delivery-status"));
    ok(has_line(&b, "Content-Type: message/global-headers"));
    ok(has_line(&b, "Content-Type: text/plain; charset=utf-8"));
    ok(has_line(&b, "Final-Recipient: utf-8; j\xc3\xbc@b.example"));
    ok(has_line(&b, "Diagnostic-Code: smtp; 550 5.1.1 unbekannt: J\xc3\xbcrgen "
                    "\\xFF\\xE2\\x80\\xAE") ||
       has(&b, "J\xc3\xbcrgen"));
    ok(!has(&b, "\xe2\x80\xae"));
    buffer_free(&b);
    r.full = true;
    build(&r, "", &b);
    ok(has_line(&b, "Content-Type: message/global"));
    buffer_free(&b);

    r.utf8 = false;
    build(&r, "", &b);
    ok_named(is_clean(&b, false), "all ASCII when the original was no SMTPUTF8");
    ok(has(&b, "J\\xC3\\xBCrgen") || has(&b, "J\\xc3\\xbcrgen"));
    ok(has_line(&b, "Content-Type: message/rfc822"));
    ok(!has(&b, "8bit"));
    buffer_free(&b);
    r.eight_bit = true;
    build(&r, "Subject: x\r\n\r\n\xfc\r\n", &b);
    ok_named(
        has(&b, "MIME-Version: 1.0") &&
            has(&b, "\"\r\nContent-Transfer-Encoding: 8bit\r\n\r\n") &&
            has(&b, "message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\nSubject"),
        "an 8-bit original says so, inside and outside");
    buffer_free(&b);
}

/* text in every place that a peer can fill. */
static void
is_harmless(struct text peer, const char *name)
{
    struct outcome o = {.verdict = VERDICT_FAILED, .code = 550};
    text_copy(o.enhanced, sizeof(o.enhanced), TEXT("5.1.1"));
    text_copy(o.text, sizeof(o.text), peer);
    text_copy(o.remote, sizeof(o.remote), peer);
    struct outcome replied =
        outcome_with(550, "5.1.1", HOST_REPLY(""), "mx.b[192.0.2.1]:25");
    snprintf(replied.text, sizeof(replied.text), "host mx.b said: 550 %.*s",
             TEXT_ARGS(peer));
    struct outcome odd = o;
    text_copy(odd.enhanced, sizeof(odd.enhanced), peer);
    struct report_recipient recipients[] = {
        {.address = peer, .original = peer, .action = REPORT_FAILED, .outcome = &o},
        {.address = peer,
         .action = REPORT_FAILED,
         .outcome = &replied,
         .expired = true},
        {.address = TEXT("a@b"), .action = REPORT_FAILED,                 .outcome = &odd                  }
    };
    for (int utf8 = 0; utf8 < 2; utf8++) {
        struct report r = report_of(recipients, 3);
        r.utf8 = utf8;
        r.envelope_id = peer;
        r.original_sender = peer;
        r.to = peer;
        r.id = peer;
        r.boundary = TEXT("01JD3ZK5Q9\"\r\nX-Injected: 1");
        struct buffer b;
        build(&r, "", &b);
        ok_named(is_clean(&b, utf8), name);
        bool marked = false;
        struct text rest = buffer_text(&b), line;
        size_t fences = 0;
        while (text_cut(&rest, '\n', &line)) {
            marked = marked || text_starts_nocase(line, TEXT("X-Injected"));
            fences += text_starts(line, TEXT("--"));
        }
        ok_named(!marked, "... no header of theirs");
        is_number(fences, 4, "... no part of theirs");
        if (python_is_here() && !utf8) {
            char *facts = read_by_python(&b);
            ok_named(strstr(facts, "parts text/plain message/delivery-status "
                                   "text/rfc822-headers\n") != NULL,
                     "... three parts for Python");
            size_t blocks = 0;
            for (char *at = facts; (at = strstr(at, "\nblock\n")) != NULL; at++)
                blocks++;
            is_number(blocks, 4, "... four blocks of fields");
            ok_named(strstr(facts, "\n  X-Injected") == NULL, "... none of theirs");
            free(facts);
        }
        buffer_free(&b);
    }
}

TEST(injection)
{
    is_harmless(TEXT("x\r\nX-Injected: 1"), "CRLF");
    is_harmless(TEXT("x\nX-Injected: 1\n\n"), "LF");
    is_harmless(TEXT("x\rX-Injected: 1"), "CR");
    is_harmless(TEXT("x\r\n\r\nX-Injected: 1\r\n.\r\nMAIL FROM:<>\r\n"),
                "an end of data");
    is_harmless(TEXT("x\0\r\nX-Injected: 1"), "NUL");
    is_harmless(TEXT("\r\n--=_01JD3ZK5Q9\r\n"), "a boundary");
    is_harmless(TEXT("\x1b[2J\x07\x08\x7f\x9b\xff\xfe\xc3"),
                "terminal controls and 8-bit");
    is_harmless(TEXT("\xe2\x80\xa8X-Injected: 1\xc2\x85X-Injected: 1"),
                "Unicode line ends");
    is_harmless(TEXT("%s%n%d%1000000s"), "formats");
    is_harmless(TEXT(">\r\nX-Injected: 1\t "), "the end of an address");
    is_harmless(TEXT(" \t  X-Injected:"), "only a header's name");
    is_harmless(
        TEXT("a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i "
             "j k X-Injected: 1 l m n o p q r s t u v w x y z X-Injected: 1"),
        "words that fold before a header's name");
    char *words = malloc(20000);
    if (words == NULL)
        abort();
    memset(words, 'w', 20000);
    is_harmless(text_of(words, 2000), "a word of 2000 bytes");
    is_harmless(text_of(words, 20000), "a word of 20,000 bytes");
    memset(words, 0xfc, 20000);
    is_harmless(text_of(words, 2000), "2000 bytes of Latin-1");
    for (size_t i = 0; i + 1 < 20000; i += 2)
        memcpy(words + i, "\xc3\xbc", 2);
    is_harmless(text_of(words, 2000), "1000 umlauts");
    is_harmless(text_of(words + 1, 1999), "cut in their middle");
    memset(words, '\0', 20000);
    is_harmless(text_of(words, 2000), "2000 NULs");
    memset(words, ' ', 20000);
    is_harmless(text_of(words, 2000), "2000 spaces");
    free(words);
}

/* The text and the fields for one outcome. */
static void
says(struct outcome o, const char *line, const char *name)
{
    struct report_recipient recipient = {
        .address = TEXT("x@b"), .action = REPORT_FAILED, .outcome = &o};
    struct report r = report_of(&recipient, 1);
    struct buffer b;
    build(&r, "", &b);
    if (!ok_named(has_line(&b, line), name))
        printf("# %s\n%.*s", line, TEXT_ARGS(buffer_text(&b)));
    buffer_free(&b);
}

TEST(outcomes)
{
    struct outcome o = outcome_with(552, "5.2.2", HOST_REPLY("552 5.2.2 full (quota)"),
                                    "mx.b[192.0.2.1]:25");
    says(o, "The mailbox is full.", "the reason");
    says(o, "Diagnostic-Code: smtp; 552 5.2.2 full (quota)",
         "the peer's brackets stay");
    says(outcome_with(550, "5.7.1", "host x said: 550 spam", "x[::1]:25"),
         "Diagnostic-Code: smtp; 550 spam", "a reply without our tail");
    says(outcome_with(550, "5.7.1", "spam", "x[::1]:25"),
         "Diagnostic-Code: smtp; 550 spam", "a code in front when the text has none");
    says(outcome_with(550, "5.7.1", "550", "x[::1]:25"), "Diagnostic-Code: smtp; 550",
         "a code alone");
    says(outcome_with(550, "5.7.1", "spam", "x[::1]:25"), "Remote-MTA: dns; x",
         "the host's name");
    says(outcome_with(550, "5.7.1", "spam", "[::1]:25"), "Remote-MTA: dns; [::1]",
         "or its address");
    says(outcome_with(550, "5.7.1", "spam", "x[::1]:25"),
         "The message was rejected for reasons of policy or security.",
         "a policy");
    says(outcome_with(550, "5.1.10", "null MX", ""),
         "The domain of this address accepts no mail.", "1.10 is not 1.1");
    says(outcome_with(550, "5.1.15", "x", ""), "There is a problem with the address.",
         "nor is 1.15");
    says(outcome_with(550, "5.1.2", "not found", ""),
         "Diagnostic-Code: x-petrel; not found", "our own verdict is not the peer's");
    says(outcome_with(0, "5.0.0", "x", ""), "The message could not be delivered.",
         "no reason known");
    says(outcome_with(554, "5.0.0", "x", "m[::1]:25"),
         "The receiving system refused the message.", "no reason given");
    static const char *const bad[] = {"",      "x",     "5",      "5.1",      "5.1.1.1",
                                      "6.1.1", "5..1",  "5.1.",   "5.1000.1", "5.1.x",
                                      "511",   "5,1,1", "5.-1.1", "5.1.1 "};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        says(outcome_with(550, bad[i], "x", ""), "Status: 5.0.0",
             "an odd enhanced code");
    says(outcome_with(550, "5.999.123", "x", ""), "Status: 5.999.123", "three digits");

    o = outcome_with(550, "5.1.1", "host /var/run/lmtp said: 550 no", "/var/run/lmtp");
    struct report_recipient recipient = {
        .address = TEXT("x@b"), .action = REPORT_FAILED, .outcome = &o};
    struct report r = report_of(&recipient, 1);
    struct buffer b;
    build(&r, "", &b);
    ok_named(!has(&b, "/var/run"), "our own paths stay with us");
    ok(has_line(&b, "Diagnostic-Code: smtp; 550 no"));
    buffer_free(&b);
}

TEST(reply)
{
    static const char host[] = "y[::1]:25";
    says(outcome_with(0, "4.4.2", "550 x", "y"), "Diagnostic-Code: x-petrel; 550 x",
         "no code, no reply");
    says(outcome_with(550, "5.1.1", "550 x", ""), "Diagnostic-Code: x-petrel; 550 x",
         "no peer, no reply");
    says(outcome_with(550, "5.1.1", "550 my b said: no (in reply to x)", host),
         "Diagnostic-Code: smtp; 550 my b said: no (in reply to x)",
         "a reply that looks like ours stays whole");
    says(outcome_with(550, "5.1.1", "host a said: 550 c said: d", host),
         "Diagnostic-Code: smtp; 550 c said: d", "cut once");
    says(outcome_with(550, "5.1.1", "host a said: ", host),
         "Diagnostic-Code: x-petrel; host a said:", "nothing said");
}

static void
lasts(int64_t ms, const char *words)
{
    struct outcome o = outcome_with(0, "4.4.1", "timeout", "");
    struct report_recipient recipient = {.address = TEXT("x@b"),
                                         .action = REPORT_FAILED,
                                         .expired = true,
                                         .outcome = &o};
    struct report r = report_of(&recipient, 1);
    r.now_ms = r.arrival_ms + ms;
    struct buffer b;
    build(&r, "", &b);
    char line[100];
    snprintf(line, sizeof(line), "Delivery was attempted for %s, without success.", words);
    ok_named(has_line(&b, line), line);
    buffer_free(&b);
}

TEST(durations)
{
    lasts(-5, "1 second");
    lasts(0, "1 second");
    lasts(2000, "2 seconds");
    lasts(60000, "1 minute");
    lasts(61999, "1 minute 1 second");
    lasts(3600000, "1 hour");
    lasts(3659000, "1 hour");
    lasts(3720000, "1 hour 2 minutes");
    lasts(DAY_MS, "1 day");
    lasts(5 * (int64_t)DAY_MS + 3600000 + 60000, "5 days 1 hour");
}

static size_t
count_lines(struct text rest, struct text start)
{
    size_t found = 0;
    for (struct text line; text_cut(&rest, '\n', &line);)
        found += text_starts(line, start);
    return found;
}

TEST(many)
{
    enum { MANY = 20000 };
    struct outcome o = outcome_with(550, "5.1.1", HOST_REPLY("550 no"), "mx[::1]:25");
    struct report_recipient *recipients = calloc(MANY, sizeof(*recipients));
    if (recipients == NULL)
        abort();
    for (size_t i = 0; i < MANY; i++)
        recipients[i] =
            (struct report_recipient){.address = TEXT("someone@example.com"),
                                      .action = REPORT_FAILED,
                                      .outcome = &o};
    struct report r = report_of(recipients, MANY);
    struct buffer b;
    build(&r, "", &b);
    ok(is_clean(&b, false));
    is_number(count_lines(buffer_text(&b), TEXT("Final-Recipient: ")), MANY,
              "20,000 recipients");
    buffer_free(&b);
    free(recipients);
}

/* In pieces of any size it is what it is in one. */
TEST(pieces)
{
    enum { COUNT = 12 };
    struct outcome o = outcome_with(450, "4.2.2", HOST_REPLY("450 full"), "mx[::1]:25");
    struct report_recipient recipients[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        recipients[i] = (struct report_recipient){.address = TEXT("x@b.example"),
                                                  .action = (enum report_action)(i % 5),
                                                  .outcome = &o};
    struct report r = report_of(recipients, COUNT);
    struct buffer whole, pieces;
    build(&r, "", &whole);
    for (size_t most = 1; most <= COUNT + 1; most++) {
        struct report_place place = {0};
        size_t calls = 0, crowded = 0, before = 0;
        buffer_init(&pieces, 1 << 20);
        for (bool ended = false; !ended && calls < 1000; calls++) {
            before = pieces.length;
            ended = report_begin(&r, &place, most, collect, &pieces);
            struct text piece = text_after(buffer_text(&pieces), before);
            crowded += count_lines(piece, TEXT("<x@b")) > most ||
                       count_lines(piece, TEXT("Final-Recipient: ")) > most;
        }
        report_end(&r, collect, &pieces);
        ok_named(text_equal(buffer_text(&pieces), buffer_text(&whole)),
                 "pieces make the whole");
        is_number(calls, (REPORT_LISTS * COUNT + most - 1) / most, "so many of them");
        is_number(crowded, 0, "none has more recipients than it may");
        buffer_free(&pieces);
    }
    buffer_free(&whole);
}

/* Folding at every width: the words come through, joined by one space. */
TEST(folding)
{
    char words[400];
    size_t wrong = 0;
    for (size_t length = 1; length < sizeof(words); length++) {
        for (size_t i = 0; i < length; i++)
            words[i] = i % 7 == 6 || i % 31 == 3 ? ' ' : 'w';
        struct buffer b, want;
        buffer_init(&b, 4096);
        buffer_init(&want, 4096);
        struct header_writer e;
        header_writer_start(&e, false, collect, &b);
        header_writer_put_words(&e, text_of(words, length), "\t");
        header_writer_end(&e);
        struct text rest = text_of(words, length), word, line;
        while (text_word(&rest, " ", &word))
            if (!buffer_format(&want, "%s%.*s", want.length > 0 ? " " : "",
                               TEXT_ARGS(word)))
                abort();
        size_t column = 0;
        rest = buffer_text(&b);
        while (text_cut(&rest, '\n', &line))
            column = line.length > column ? line.length : column;
        wrong += column > HEADER_WRITER_FOLD + 1; /* and the CR */
        for (size_t at = 0; at + 2 < b.length; at++)
            if (memcmp(b.at + at, "\r\n\t", 3) == 0) {
                memmove(b.at + at + 1, b.at + at + 3, b.length - at - 3);
                b.at[at] = ' ';
                b.length -= 2;
            }
        wrong += !text_equal(buffer_text(&b), buffer_text(&want));
        buffer_free(&b);
        buffer_free(&want);
    }
    is_number(wrong, 0, "folded lines hold the words and stay short");
}

static bool
hint_of(const struct outcome *outcome, char out[REPORT_HINT_MAX])
{
    if (strstr(outcome->text, "5.7.26") == NULL)
        return false;
    snprintf(out, REPORT_HINT_MAX, "publish a DKIM record\r\nX-Not: a field");
    return true;
}

/* The hint stands below the server's reply, as one line of text. */
TEST(hint)
{
    struct outcome outcome =
        outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.7.26",
                     "host mx.example[192.0.2.1] said: 550 5.7.26 unauthenticated");
    struct report_recipient recipient = {.address = TEXT("a@b.example"),
                                         .action = REPORT_FAILED,
                                         .outcome = &outcome};
    struct report r = report_of(&recipient, 1);
    struct buffer out;
    build(&r, "", &out);
    ok_named(!has(&out, "Hint:"), "no hints");
    buffer_free(&out);
    r.hint = hint_of;
    build(&r, "", &out);
    ok_named(has(&out, "unauthenticated\r\n    Hint: publish a DKIM record"), "a hint");
    ok_named(!has(&out, "\r\nX-Not:"), "which cannot add a field");
    buffer_free(&out);
    outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no such user");
    build(&r, "", &out);
    ok_named(!has(&out, "Hint:"), "none for this reply");
    buffer_free(&out);
}
