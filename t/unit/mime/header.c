/* Headers cut at every byte, fields, folding, and address lists of every shape and
 * size. */
#include "mime/header.h"

#include "base/disk/disk.h"

#include "t/support/tap.h"

#include <time.h>

/* facts: f, d, m = From, Date, Message-ID were there; e = the header has ended,
 * h = there is none, 8 = a byte above 127, c = composite, M = message, p = its subtype
 * is partial. */
/* clang-format off */
static const struct sample {
    const char *header;
    unsigned received;
    const char *facts;
    size_t length;
} samples[] = {
    {"", 0, "", 0},
    {"\r\n", 0, "e", 0},
    {"\n", 0, "e", 0},
    {"\nFrom: x\n", 0, "e", 0},
    {"From: a\r\nDate: b\r\nMessage-ID: c\r\n\r\nReceived: body\r\n", 0, "fdme", 33},
    {"From: a\nDate: b\nMessage-ID: c\n\nReceived: body\n", 0, "fdme", 30},
    {"From: a\r\nDate: b\n\r\nx", 0, "fde", 17},
    {"From: a\r\n", 0, "f", 9},
    {"From: a", 0, "f", 7},
    {"From", 0, "", 4},
    {"FROM:\r\ndATE :x\r\nmessage-Id\t :y\r\n\r\n", 0, "fdme", 32},
    {"Received: a\r\n by b\r\nreceived: c\r\nDelivered-To: d\r\n\r\n", 3, "e", 50},
    {"X: a\r\n Received: b\r\n\tFrom: c\r\n\r\n", 0, "e", 30},
    {"X: a\r\n \r\n\r\nFrom: c\r\n", 0, "e", 9},
    {"Receive: a\r\nReceivedx: b\r\nX-Received: c\r\nReceived-SPF: d\r\n\r\n", 0, "e", 58},
    {"From a@b Sat\nFrom: c\n\n", 0, "feL", 21},
    {"From a@b Sat 10:00\r\n x\r\nDate: c\r\n\r\n", 0, "deL", 33},
    {">From \tx\r\nFrom: c\r\n\r\n", 0, "feL", 19},
    {">>from x", 0, "L", 8},
    {">>>>>>>>>>>>>from x\n", 0, "eh", 0},
    {"From : x\nDate: c\n\n", 0, "fde", 17},
    {"From \n\n", 0, "eL", 6},
    {"From x", 0, "L", 6},
    {"From\nX: y\n", 0, "eh", 0},
    {"Fromage x\nX: y\n", 0, "eh", 0},
    {"X: y\nFrom a@b\nDate: c\n", 0, "e", 5},
    {"From a\nFrom b\nDate: c\n", 0, "eL", 7},
    {"X: y\r\nno field\r\nFrom: a\r\n\r\n", 0, "e", 6},
    {"X: y\r\n: no name\r\nFrom: a\r\n", 0, "e", 6},
    {" From: a\r\nDate: b\r\n", 0, "eh", 0},
    {"no header\r\n", 0, "eh", 0},
    {"\rx\r\n", 0, "eh", 0},
    {"X: y\r\n\rz\r\nFrom: a\r\n", 0, "e", 6},
    {"X: y\r\nFr\xc3\xb6m: a\r\nFrom: a\r\n", 0, "e8", 6},
    {"X: \xff\xfe\r\nFrom: a\r\n\r\n", 0, "fe8", 16},
    {"X: a\rFrom: b\r\nDate: c\r\n\r\n", 0, "de", 23},
    {"A-name-longer-than-sixteen-bytes: a\r\nFrom: b\r\n\r\n", 0, "fe", 46},
    {"Date-and-a-bit-m: a\r\nMessage-IDMessage-ID: b\r\n\r\n", 0, "e", 46},
    {"X: a\r\n\r\n\xff", 0, "e", 6},
    {"X:\xff\n\n", 0, "e8", 4},
    {"Content-Type: text/plain\r\nFrom: a\r\n\r\n", 0, "fe", 35},
    {"Content-Type: multipart/mixed; boundary=x\r\n\r\n", 0, "ec", 43},
    {"content-type:MESSAGE/rfc822\n\n", 0, "ecM", 28},
    {"Content-Type:\r\n multi\r\n\tpart/x\r\nFrom: a\r\n\r\n", 0, "fec", 41},
    {"Content-Type: text\r\nX: multipart/x\r\n\r\n", 0, "e", 36},
    {"Content-Type: (odd) text/plain\r\n\r\n", 0, "ecM", 32},
    {"Content-Type: a-type-longer-than-that/plain\r\n\r\n", 0, "ecM", 45},
    {"Content-Type: text/multipart/x\r\n\r\n", 0, "e", 32},
    {"Content-Typed: multipart/x\r\nSubject: message/y\r\n\r\n", 0, "e", 48},
    {"Content-Type: message/partial\n\n", 0, "ecMp", 30},
    {"Content-Type: Message/PARTIAL; id=x\r\n\r\n", 0, "ecMp", 37},
    {"Content-Type: message\r\n /\r\n\tpartial\r\n ;id=x\r\n\r\n", 0, "ecMp", 45},
    {"Content-Type: (a/b\\)(c))message(;)/(d)partial(e)\nX: y\n\n", 0, "ecMp", 54},
    {"Content-Type: message/partially\n\n", 0, "ecM", 32},
    {"Content-Type: message/partial/x\n\n", 0, "ecM", 32},
    {"Content-Type: message/a-type-longer-than-that\n\n", 0, "ecM", 46},
    {"Content-Type: message/\nX: partial\n\n", 0, "ecM", 34},
    {"Content-Type: message; partial; x=/partial\n\n", 0, "ecM", 43},
    {"Content-Type: text/partial\n\n", 0, "e", 27},
    {"Content-Type: text/plain\nContent-Type: message/partial\n\n", 0, "ecMp", 55},
    {"Content-Type: message/partial\nContent-Type: text/plain\n\n", 0, "ecMp", 55},
    {"Content-Type: (message/partial\nX: y\n\n", 0, "ecM", 36},
    {"X: y\n\nContent-Type: message/partial\n\n", 0, "e", 5},
    {"Resent-From: a\n\n", 0, "er", 15},
    {"resent-DATE: a\nResent-Message-Id : b\n\n", 0, "erDI", 37},
    {"Resent-Bcc: a\n\n", 0, "er", 14},
    {"Resent-Message-IDs: a\nDate: b\nMessage-ID: c\n\n", 0, "edm", 44},
    {"Resent: a\n\nResent-From: a\n\n", 0, "e", 10},
    {"From:a\nFrom:b\nReceived:x\nReceived:y\n\n", 2, "fe", 36},
};
/* clang-format on */

static bool
has(const struct sample *sample, char fact)
{
    return strchr(sample->facts, fact) != NULL;
}

static bool
is_same(const struct header_scan *s, const struct sample *want)
{
    return s->received == want->received && s->has_from == has(want, 'f') &&
           s->has_date == has(want, 'd') && s->has_message_id == has(want, 'm') &&
           s->ended == has(want, 'e') && s->headless == has(want, 'h') &&
           s->has_resent == has(want, 'r') && s->has_resent_date == has(want, 'D') &&
           s->has_resent_message_id == has(want, 'I') && s->has_eight_bit == has(want, '8') && s->composite == has(want, 'c') &&
           s->mailbox_line == has(want, 'L') && s->is_message == has(want, 'M') && s->is_partial == has(want, 'p') &&
           s->length == want->length;
}

TEST(scan)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct text t = text_from(samples[i].header);
        struct header_scan s;
        header_scan_start(&s);
        header_scan_add(&s, t);
        if (!ok_named(is_same(&s, &samples[i]), "the facts of a header"))
            printf("# %zu: received %u from %d date %d id %d ended %d length %zu\n", i,
                   s.received, s.has_from, s.has_date, s.has_message_id, s.ended,
                   s.length);
        size_t wrong = 0;
        for (size_t a = 0; a <= t.length; a++)
            for (size_t b = a; b <= t.length; b++) {
                header_scan_start(&s);
                header_scan_add(&s, text_before(t, a));
                header_scan_add(&s, text_of(t.at + a, b - a));
                header_scan_add(&s, text_after(t, b));
                wrong += !is_same(&s, &samples[i]);
            }
        header_scan_start(&s);
        for (size_t at = 0; at < t.length; at++)
            header_scan_add(&s, text_of(t.at + at, 1));
        wrong += !is_same(&s, &samples[i]);
        is_number(wrong, 0, "the same facts from every split");
    }
    struct header_scan s;
    header_scan_start(&s);
    header_scan_add(&s, TEXT("X: \0\r\nFr\0m: a\r\n"));
    ok_named(s.ended && s.length == 6, "NUL ends a name, not a value");
}

/* Fields that may need work before the next hop: b: a bare address, v: a private
 * field. */
static const struct {
    const char *header, *facts;
} needs[] = {
    {"From: root\n\n", "b"},
    {"From:\n\n", "b"},
    {"From: <>\nTo: a@b.test\n\n", "b"},
    {"Subject: x\nFrom: Joe <>\nTo: a@b.test\n\n", "b"},
    {"From: <a@b.test> x\n\n", "b"},
    {"From: <<a@b.test>>\n\n", "b"},
    {"From: a@b@c.test\n\n", "b"},
    {"From: \"Web <a@b.test>\n\n", "b"},
    {"From: Doe, John <a@b.test>\n\n", "b"},
    {"From: Joe <a@b.test> (x), <@r.test:c@d.test>\n\n", ""},
    {"To: <>\nFrom: a@b.test\nSubject:\n\n", ""},
    {"From: root (Cron Daemon)\n\n", "b"},
    {"From: Cron <root>\r\n\r\n", "b"},
    {"From: \"Cron, a@b\" <root>\n\n", "b"},
    {"From: root (a@b)\n\n", "b"},
    {"From: (a, b; c:) <a@b>\n\n", ""},
    {"From: a@b.test\n\n", ""},
    {"From: Ann <a@b.test>\nTo: c@d.test, e@f.test\n\n", ""},
    {"To: c@d.test,\r\n bob,\r\n e@f.test\r\n\r\n", "b"},
    {"To: c@d.test,\n bob", "b"},
    {"To: c@d.test, bob\n", "b"},
    {"Cc: alice\n\n", "b"},
    {"Reply-To: alice\n\n", "b"},
    {"Sender: alice\n\n", "b"},
    {"Resent-From: alice\n\n", "b"},
    {"RESENT-TO: alice\n\n", "b"},
    {"To: undisclosed-recipients:;\n\n", ""},
    {"To: friends: a@b.test, c;\n\n", "b"},
    {"To: friends: a@b.test;, d@e.test\n\n", ""},
    {"To: \"a\\\"b, c\" <a@b.test>\n\n", ""},
    {"To: (a\\) b (c), d) a@b.test\n\n", ""},
    {"To: a@[(], bob\n\n", "b"},
    {"To: a@[b, c(d]\n\n", ""},
    {"To: a@[\\], b], c@d.test\n\n", ""},
    {"To:\n\n", ""},
    {"To: , ,\n\n", ""},
    {"To: <>\n\n", ""},
    {"Subject: root, alice\n\n", ""},
    {"X-To: root\nResent-Date: today\n\n", ""},
    {"To: (never closed\nCc: bob\n\n", "b"},
    {"To: \"never closed\nCc: bob\n\n", "b"},
    {"Subject: x\n\nTo: bob\nBcc: x\n", ""},
    {"Bcc: a@b.test\n\n", "v"},
    {"bcc:\n\n", "v"},
    {"Resent-Bcc: a@b.test\n\n", "v"},
    {"Return-Path: <a@b.test>\nFrom: x\n\n", "vb"},
    {"X-Bcc: a\nReturn: x\n\n", ""},
    {"Subject : x\n\n", "o"},
    {"From: x@y\nX-Any\t \t: x\n\n", "o"},
    {"Subject: a : b\n c : d\n\nX : y\n", ""},
    {"x-petrel-tag: t\n\n", "v"},
    {"X-Petrel-Tags: t\nX-Petrel: x\n\n", ""},
};

static bool
is_needed(const struct header_scan *s, const char *facts)
{
    return header_scan_has_bare(s) == (strchr(facts, 'b') != NULL) &&
           s->has_private == (strchr(facts, 'v') != NULL) &&
           s->has_odd_name == (strchr(facts, 'o') != NULL);
}

TEST(needs)
{
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        struct text t = text_from(needs[i].header);
        struct header_scan s;
        header_scan_start(&s);
        header_scan_add(&s, t);
        ok_named(is_needed(&s, needs[i].facts), needs[i].header);
        size_t wrong = 0;
        for (size_t at = 0; at <= t.length; at++) {
            header_scan_start(&s);
            header_scan_add(&s, text_before(t, at));
            header_scan_add(&s, text_after(t, at));
            wrong += !is_needed(&s, needs[i].facts);
        }
        is_number((int64_t)wrong, 0, "the same from every split");
    }
}

/* The tag of a message, from every split. */
TEST(tag)
{
    static const struct {
        const char *header, *tag;
    } rows[] = {
        {"X-Petrel-Tag: order 17\r\n\r\n", "order 17"},
        {"From: a\nX-PETREL-TAG:\t \n  a\n\tb  \n\n", "a b"},
        {"X-Petrel-Tag: one\nX-Petrel-Tag: two\n\n", "one"},
        {"X-Petrel-Tag:\nX-Petrel-Tag: two\n\n", ""},
        {"X-Petrel-Tag: a\x01\x7f\xc3\xa4" "b\"\\\n\n", "ab\"\\"},
        {"X-Petrel-Tags: x\n\nX-Petrel-Tag: in the body\n", ""},
        {"X-Petrel-Tag : unfinished", "unfinished"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct text t = text_from(rows[i].header);
        for (size_t at = 0; at <= t.length; at++) {
            struct header_scan s;
            header_scan_start(&s);
            header_scan_add(&s, text_before(t, at));
            header_scan_add(&s, text_after(t, at));
            if (!text_equal(header_scan_tag(&s), text_from(rows[i].tag)))
                is_text(header_scan_tag(&s), text_from(rows[i].tag), rows[i].header);
        }
        ok_named(true, rows[i].header);
    }
    struct header_scan s;
    header_scan_start(&s);
    header_scan_add(&s, TEXT("X-Petrel-Tag: "));
    for (int i = 0; i < 1000; i++)
        header_scan_add(&s, TEXT("0123456789"));
    is_number((int64_t)header_scan_tag(&s).length, HEADER_TAG_MAX, "a long one is cut");
}

TEST(tls_required)
{
    static const struct {
        const char *header;
        bool waives;
    } rows[] = {
        {"TLS-Required: No\r\n\r\n", true},
        {"a: b\ntls-required:no\nc: d\n\n", true},
        {"TLS-REQUIRED:\r\n \tNO \r\nx: y\r\n\r\n", true},
        {"TLS-Required : No\n\n", true},
        {"TLS-Required: No", true},
        {"TLS-Required: No\nTLS-Required: No\n\n", false},
        {"TLS-Required: Yes\nTLS-Required: No\n\n", false},
        {"TLS-Required: Yes\n\n", false},
        {"TLS-Required: None\n\n", false},
        {"TLS-Required: N\n\n", false},
        {"TLS-Required: n o\n\n", false},
        {"TLS-Required: N\r\n o\r\n\r\n", false},
        {"TLS-Required: N\to\n\n", false},
        {"TLS-Required: No\r\n \r\nx: y\r\n\r\n", true},
        {"TLS-Required: No o\n\n", false},
        {"TLS-Required:\n\n", false},
        {"TLS-Required: No (really)\n\n", false},
        {"X-TLS-Required: No\n\n", false},
        {"TLS-Requiredx: No\n\n", false},
        {"Subject: x\n\nTLS-Required: No\n", false},
        {"Subject: x\n TLS-Required: No\n\n", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct header_scan s;
        struct text all = text_from(rows[i].header);
        header_scan_start(&s);
        for (size_t at = 0; at < all.length; at++)
            header_scan_add(&s, text_of(all.at + at, 1));
        ok_named(header_scan_waives_tls(&s) == rows[i].waives, rows[i].header);
    }
}

TEST(next)
{
    struct text rest =
        TEXT("A: b\r\nSubject : x\r\n\ty\r\n z\r\nE:\r\nL:1\n 2\n\r\nbody");
    struct header_field f;
    ok(header_next(&rest, &f));
    is_text(f.name, TEXT("A"), "name");
    is_text(f.value, TEXT(" b"), "value");
    is_text(f.whole, TEXT("A: b\r\n"), "whole, line end included");
    ok(header_next(&rest, &f));
    is_text(f.name, TEXT("Subject"), "name without the space before the colon");
    is_text(f.value, TEXT(" x\r\n\ty\r\n z"), "folded value");
    is_text(f.whole, TEXT("Subject : x\r\n\ty\r\n z\r\n"), "all lines of it");
    ok(header_next(&rest, &f));
    is_text(f.value, TEXT(""), "an empty value");
    ok(header_next(&rest, &f));
    is_text(f.value, TEXT("1\n 2"), "LF ends lines as well");
    ok(!header_next(&rest, &f));
    is_text(rest, TEXT("body"), "the empty line is cut off");

    static const char *const odd[] = {
        "no field\r\n\r\n", " a: b\r\n", ": x\n", "From a b: c\n", "\rx", "a", "a ",
        "\xc3\xbc: x\n",    "a\rb: c"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        rest = text_from(odd[i]);
        ok(!header_next(&rest, &f));
        is_text(rest, text_from(odd[i]), "a line that is no field stays");
    }
    rest = TEXT("");
    ok(!header_next(&rest, &f) && rest.length == 0);
    rest = TEXT("a:b");
    ok(header_next(&rest, &f));
    is_text(f.value, TEXT("b"), "a last line without its end");
    is_number(rest.length, 0, "nothing is left");
    rest = TEXT("a:b\r\n c");
    ok(header_next(&rest, &f));
    is_text(f.value, TEXT("b\r\n c"), "a last continuation without its end");
    rest = TEXT("a:\0b\r\nc:d");
    ok(header_next(&rest, &f) && f.value.length == 2);
}

/* header_next() and header_scan agree on where a header ends. */
TEST(agreement)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct text t = text_from(samples[i].header), rest = t;
        struct header_field f;
        header_skip_mailbox_line(&rest);
        size_t length = t.length - rest.length;
        unsigned received = 0;
        ok_named((length > 0) == has(&samples[i], 'L'), "a mailbox's line");
        while (header_next(&rest, &f)) {
            length += f.whole.length;
            received += text_equal_nocase(f.name, TEXT("received")) ||
                        text_equal_nocase(f.name, TEXT("delivered-to"));
        }
        if (has(&samples[i], 'e'))
            is_number(length, samples[i].length, "fields up to the end");
        is_number(received, samples[i].received, "the same fields");
    }
}

static void
unfolds_to(struct text value, const char *want)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 1000);
    ok(header_unfold(value, &out));
    is_text(buffer_text(&out), text_from(want), "unfolded");
}

TEST(unfold)
{
    unfolds_to(TEXT(""), "");
    unfolds_to(TEXT(" a"), " a");
    unfolds_to(TEXT("a\r\n b"), "a b");
    unfolds_to(TEXT("a\r\n\tb"), "a\tb");
    unfolds_to(TEXT("a\n  b"), "a  b");
    unfolds_to(TEXT("a \r\n \r\n b"), "a   b");
    unfolds_to(TEXT("a\r\nb"), "a b");
    unfolds_to(TEXT("a\rb\nc"), "a b c");
    unfolds_to(TEXT("a\r\n"), "a");
    unfolds_to(TEXT("\r\n a"), " a");
    FIXTURE(buffer, out, buffer_init, buffer_free, 4);
    ok(buffer_add(&out, TEXT("xx")));
    ok(!header_unfold(TEXT("a\r\n b"), &out));
    is_text(buffer_text(&out), TEXT("xx"), "nothing is added at the limit");
    ok(header_unfold(TEXT("a\r\n "), &out));
}

static void
collect(void *context, const struct address_place *place)
{
    struct buffer *out = context;
    if (!buffer_format(out, "%s%.*s", out->length > 0 ? "|" : "", TEXT_ARGS(place->mailbox)))
        abort();
}

/* clang-format off */
static const struct list {
    const char *text, *mailboxes;
    size_t broken;
} lists[] = {
    {"", "", 0},
    {"  \t ", "", 0},
    {"a@b", "a@b", 0},
    {" a@b ", "a@b", 0},
    {"a@b, c@d", "a@b|c@d", 0},
    {"a@b,c@d,e@f", "a@b|c@d|e@f", 0},
    {",a@b,, ,c@d,", "a@b|c@d", 0},
    {"joe", "joe", 0},
    {"joe, \"the boss\"", "joe|\"the boss\"", 0},
    {"Joe <a@b>", "a@b", 0},
    {"<a@b>", "a@b", 0},
    {"Joe Q. Public <a@b>, x@y", "a@b|x@y", 0},
    {"\"Doe, John\" <a@b>, c@d", "a@b|c@d", 0},
    {"\"a <x@y>\" <a@b>", "a@b", 0},
    {"\"a \\\" , x@y\" <a@b>", "a@b", 0},
    {"\"q\"<a@b>", "a@b", 0},
    {"Joe<a@b>", "a@b", 0},
    {"me@home.org <a@b>", "a@b", 0},
    {"me@home <a@b>, x@y", "a@b|x@y", 0},
    {"\"joe doe\"@b", "\"joe doe\"@b", 0},
    {"\"a,b\"@c, d@e", "\"a,b\"@c|d@e", 0},
    {"<\"a>b\"@c>", "\"a>b\"@c", 0},
    {"=?utf-8?Q?J=C3=BCrgen=2C_X?= <a@b>", "a@b", 0},
    {"=?iso-8859-1?B?SvxyZ2Vu?= =?us-ascii?Q?_Y?= <a@b>, c@d", "a@b|c@d", 0},
    {"J\xc3\xbcrgen <j\xc3\xbc@b>", "j\xc3\xbc@b", 0},
    {"J\xfcrgen <j@b>", "j@b", 0},
    {"(comment) a@b", "a@b", 0},
    {"a@b (Joe)", "a@b", 0},
    {"a@b (Joe, x@y)", "a@b", 0},
    {"a@b (a (nested, <x@y>) comment), c@d", "a@b|c@d", 0},
    {"a@b (a \\) \\( \\\\), c@d", "a@b|c@d", 0},
    {"a (x) . (y) b (z) @ (1) c (2) . (3) d", "a.b@c.d", 0},
    {"a @ b . c", "a@b.c", 0},
    {"Joe < a @ b >", "a@b", 0},
    {"Joe <(x)a@b(y)> (z)", "a@b", 0},
    {"Group: a@b, c@d;", "a@b|c@d", 0},
    {"Group: a@b, Joe <c@d>;, e@f", "a@b|c@d|e@f", 0},
    {"x@y, A Group:a@b;, \"B,\":c@d,e@f;", "x@y|a@b|c@d|e@f", 0},
    {"undisclosed-recipients:;", "", 0},
    {"undisclosed-recipients: ;, a@b", "a@b", 0},
    {"Group: a@b, c@d", "a@b|c@d", 0},
    /* its ; forgotten */
    {"a@b; c@d", "a@b|c@d", 0},
    /* as some mail readers separate */
    {"<@r1,@r2:a@b>, c@d", "a@b|c@d", 0},
    {"Joe <@[1.2.3.4],@r2 : a@b>", "a@b", 0},
    {"a@[1.2.3.4], b@[IPv6:::1]", "a@[1.2.3.4]|b@[IPv6:::1]", 0},
    {"[list] Joe <a@b>", "a@b", 0},
    {"<joe>", "joe", 0},
    /* broken ones go, their neighbours stay */
    {"a@b Cc: c@d", "c@d", 1},
    {"\"a@b\": c@d;", "c@d", 0},
    {"a@b, c d, e@f", "a@b|e@f", 1},
    {"a@b, c@d e@f, g@h", "a@b|g@h", 1},
    {"a@b, <c@d, e@f", "a@b|e@f", 1},
    {"a@b, c@d>, e@f", "a@b|e@f", 1},
    {"<a@b> c, d@e", "d@e", 1},
    {"<a@b> <c@d>, e@f", "e@f", 1},
    {"<<a@b>>, e@f", "e@f", 1},
    {"<>, a@b", "a@b", 1},
    {"Joe <>, a@b", "a@b", 1},
    {"@, a@, @b, c@d", "c@d", 3},
    {"a@b@c, d@e", "d@e", 1},
    {"a..b@c, .d@e, f@g..h, i@j", "a..b@c|.d@e|i@j", 1},
    {"a@b., ..@c, d@e", "a@b.|d@e", 1},
    {"a@b), c@d", "c@d", 1},
    {"a@b, ), c@d", "a@b|c@d", 1},
    {"a@b], c@d", "c@d", 1},
    {"a@[1.2.3], c@d", "c@d", 1},
    {"a@[1.2.3.4, c@d", "", 1},
    {"\"open, a@b", "", 1},
    {"x@y, \"open\\", "x@y", 1},
    {"x@y, (open, a@b", "x@y", 1},
    {"x@y (open \\", "", 1},
    {"\"a\"b@c, d@e", "d@e", 1},
    {"a\"b\"@c, d@e", "d@e", 1},
    {"\"\"@c, d@e", "d@e", 1},
    {"<@r a@b>, c@d", "c@d", 1},
    {"<@r>, c@d", "c@d", 1},
    {"<@r:>, c@d", "c@d", 1},
    {"<a b@c>, d@e", "d@e", 1},
    {":, a@b", "a@b", 1},
    {"a: b: c@d, e@f;, g@h", "c@d|e@f|g@h", 1},
    {"<a:b@c>, d@e", "d@e", 1},
    {"a\x01@b, c@d", "c@d", 1},
    {"\xff@b, c@d", "c@d", 1},
    {"a@b\xe3\x80\x82"
     "c, c@d", "c@d", 1},
};
/* clang-format on */

TEST(lists)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        FIXTURE(buffer, out, buffer_init, buffer_free, 10000);
        size_t broken = address_list_read(text_from(lists[i].text), collect, NULL, &out);
        is_text(buffer_text(&out), text_from(lists[i].mailboxes), lists[i].text);
        is_number(broken, lists[i].broken, "... its broken entries");
    }
    FIXTURE(buffer, out, buffer_init, buffer_free, 1000);
    is_number(address_list_read(TEXT("a\0@b, c@d"), collect, NULL, &out), 1, "NUL breaks one");
    is_text(buffer_text(&out), TEXT("c@d"), "and not the next");
}

static void
count_one(void *context, const struct address_place *place)
{
    size_t *count = context;
    *count += place->mailbox.length > 0;
}

/* head, count times unit, tail: what is found, in less than a second. */
static void
is_found(const char *head, const char *unit, size_t count, const char *tail,
         size_t found, size_t broken, const char *name)
{
    FIXTURE(buffer, b, buffer_init, buffer_free, 64 << 20);
    bool fits = buffer_add(&b, text_from(head));
    for (size_t i = 0; i < count; i++)
        fits = fits && buffer_add(&b, text_from(unit));
    ok(fits && buffer_add(&b, text_from(tail)));
    size_t seen = 0;
    clock_t start = clock();
    is_number(address_list_read(buffer_text(&b), count_one, NULL, &seen), broken, name);
    is_number(seen, found, name);
    ok_named(clock() - start < CLOCKS_PER_SEC, "... in time");
}

TEST(bombs)
{
    is_found("", "Some One <someone@example.com>, ", 20000, "", 20000, 0,
             "20,000 addresses");
    is_found("", "a@b,", 1000000, "", 1000000, 0, "a million addresses");
    is_found("", "(", 1000000, "", 0, 1, "a million open comments");
    is_found("a@b ", "(((()))) ", 200000, ", c@d", 2, 0, "many nested comments");
    is_found("", "(", 20000, "", 0, 1, "20,000 open comments");
    is_found("", "g:", 20000, "a@b", 1, 19999, "20,000 nested groups");
    is_found("", "g:a@b;", 20000, "", 20000, 0, "20,000 groups");
    is_found("", "<", 1000000, "", 0, 1, "a million <");
    is_found("", "<,", 500000, "a@b", 1, 500000, "half a million open paths");
    is_found("", "[", 1000000, "", 0, 1, "a million [");
    is_found("", "\"", 1000001, "", 0, 1, "a million quotes");
    is_found("", "\\", 1000000, "", 0, 1, "a million backslashes");
    is_found("<@a", ",@a", 300000, ":b@c>", 1, 0, "a very long route");
    is_found("<@a", ",@a", 300000, "", 0, 1, "a very long route that does not end");
    is_found("", "word ", 300000, "<a@b>", 1, 0, "a very long name");
    is_found("", "word ", 300000, "", 0, 1, "a very long name without address");
    is_found("", "a", 1000000, "@b, c@d", 1, 1, "a megabyte of local part");
    is_found("<", "a", 1000000, "@b>, c@d", 1, 1, "the same in brackets");
    is_found("\"", "a", 1000000, "\"@b, c@d", 1, 1, "the same in quotes");
    is_found("a@", "b.", 500000, "c, c@d", 1, 1, "a megabyte of domain");
}

TEST(folds)
{
    struct buffer b, out;
    buffer_init(&b, 64 << 20);
    buffer_init(&out, 64 << 20);
    bool fits = buffer_add(&b, TEXT("To:"));
    for (size_t i = 0; i < 20000; i++)
        fits = fits && buffer_add(&b, TEXT("\r\n a@b,"));
    for (size_t i = 0; i < 20000; i++)
        fits = fits && buffer_add(&b, TEXT("\r\nX: y"));
    ok(fits && buffer_add(&b, TEXT("\r\n\r\n")));
    clock_t start = clock();
    struct text rest = buffer_text(&b);
    struct header_field f;
    ok(header_next(&rest, &f) && header_unfold(f.value, &out));
    size_t seen = 0;
    address_list_read(buffer_text(&out), count_one, NULL, &seen);
    is_number(seen, 20000, "20,000 folds");
    size_t fields = 0;
    while (header_next(&rest, &f))
        fields++;
    is_number(fields, 20000, "20,000 fields");
    struct header_scan s;
    header_scan_start(&s);
    header_scan_add(&s, buffer_text(&b));
    ok(s.ended && s.length == b.length - 2);
    ok_named(clock() - start < CLOCKS_PER_SEC, "... in time");
    buffer_free(&b);
    buffer_free(&out);
}

/* In any noise each mailbox is whole and printable, and nothing crashes. */
static void
check_mailbox(void *context, const struct address_place *place)
{
    size_t *wrong = context;
    *wrong +=
        place->mailbox.length == 0 || text_has_control(place->mailbox) || !text_is_utf8(place->mailbox);
}

TEST(noise)
{
    static const char alphabet[] = "ab@.,:;<>()[]\"\\ \t\r\n1=?\xc3\xbc";
    uint64_t seed = 7;
    size_t wrong = 0;
    for (unsigned round = 0; round < 200000; round++) {
        char noise[32];
        size_t length = round % sizeof(noise);
        for (size_t i = 0; i < length; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            noise[i] = alphabet[(seed >> 33) % (sizeof(alphabet) - 1)];
        }
        address_list_read(text_of(noise, length), check_mailbox, NULL, &wrong);
    }
    is_number(wrong, 0, "no odd mailbox out of noise");
}

/* Any message of the corpus: scanning and cutting agree, lists do not crash. */
static bool
check_message(struct text message, size_t *mailboxes)
{
    struct header_scan s;
    header_scan_start(&s);
    for (size_t at = 0; at < message.length; at += 7)
        header_scan_add(&s, text_before(text_after(message, at), 7));
    struct text rest = message;
    struct header_field f;
    header_skip_mailbox_line(&rest);
    size_t length = message.length - rest.length;
    bool has_from = false;
    struct buffer out;
    buffer_init(&out, 1 << 20);
    while (header_next(&rest, &f)) {
        length += f.whole.length;
        has_from = has_from || text_equal_nocase(f.name, TEXT("from"));
        buffer_clear(&out);
        if (!header_unfold(f.value, &out) ||
            text_find(buffer_text(&out), '\n') != TEXT_NONE)
            return false;
        if (text_equal_nocase(f.name, TEXT("to")) ||
            text_equal_nocase(f.name, TEXT("cc")))
            address_list_read(buffer_text(&out), count_one, NULL, mailboxes);
    }
    buffer_free(&out);
    return (!s.ended || s.length == length) && s.has_from == has_from;
}

TEST(corpus)
{
    const char *corpus = getenv("PETREL_CORPUS");
    unsigned messages = 0, good = 0;
    size_t mailboxes = 0;
    for (unsigned number = 1; number < 100; number++) {
        char path[4096], *content;
        size_t length;
        snprintf(path, sizeof(path), "%s/cpython/msg_%02u.txt",
                 corpus == NULL ? "../shared/corpus" : corpus, number);
        if (disk_read_whole(path, 1 << 20, &content, &length) != 0)
            continue;
        messages++;
        bool same = check_message(text_of(content, length), &mailboxes);
        if (!same)
            printf("# %s\n", path);
        good += same;
        free(content);
    }
    if (messages == 0) {
        ok_named(true, "no corpus here # SKIP");
        return;
    }
    is_number(good, messages, "messages of a corpus");
    ok_named(mailboxes > messages / 2, "have addresses");
}
