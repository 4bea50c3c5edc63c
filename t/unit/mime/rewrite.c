/* The header of submitted mail as it leaves. */
#include "mime/rewrite.h"

#include "t/support/tap.h"

#include <stdlib.h>

static void
must_add(struct buffer *b, const char *words)
{
    if (!buffer_add(b, text_from(words)))
        abort();
}

static void
becomes(const char *sender, const char *header, const char *want)
{
    struct rewrite r = {.hostname = TEXT("h.test"), .sender = text_from(sender)};
    struct buffer out, again;
    buffer_init(&out, 4096);
    buffer_init(&again, 4096);
    ok(rewrite_header(&r, text_from(header), &out));
    is_text(buffer_text(&out), text_from(want), want);
    ok(rewrite_header(&r, buffer_text(&out), &again));
    is_text(buffer_text(&again), text_from(want), "twice is as once");
    buffer_free(&out);
    buffer_free(&again);
}

TEST(removal)
{
    becomes("", "From: a@b\r\nBcc: c@d\r\n e@f\r\nTo: g@h\r\n",
            "From: a@b\r\nTo: g@h\r\n");
    becomes("", "Return-Path: <x@y>\r\nFrom: a@b\r\nbcc:\r\nBCC : x\r\nResent-Bcc: y\r\n",
            "From: a@b\r\n");
    becomes("", "From: a@b\r\nX-PETREL-Tag: order\r\n 17\r\nX-Petrel-Tags: e\r\n",
            "From: a@b\r\nX-Petrel-Tags: e\r\n");
    becomes("", "From: a@b\r\nX-Bcc: c@d\r\nBccs: e\r\n",
            "From: a@b\r\nX-Bcc: c@d\r\nBccs: e\r\n");
}

/* White space before a colon is obsolete, and dkimpy does not read such a field. */
TEST(odd_names)
{
    becomes("", "From : a@b\r\nSubject \t: x : y\r\n\tz : a\r\nTo : c\r\n",
            "From: a@b\r\nSubject: x : y\r\n\tz : a\r\nTo: c@h.test\r\n");
    becomes("", "From: a@b\r\nCc : <<broken\r\nX-Empty \t:\r\nBcc : x\r\n",
            "From: a@b\r\nCc: <<broken\r\nX-Empty:\r\n");
    becomes("", "From: a@b\r\nX :", "From: a@b\r\nX:");
}

TEST(from)
{
    becomes("s@x.test", "Received: by h\r\n\tid 1\r\nSubject: x\r\n",
            "Received: by h\r\n\tid 1\r\nFrom: s@x.test\r\nSubject: x\r\n");
    becomes("s@x.test", "Received: by h\r\nReceived: by i\r\n",
            "Received: by h\r\nReceived: by i\r\nFrom: s@x.test\r\n");
    becomes("", "Subject: x\r\n", "From: MAILER-DAEMON@h.test\r\nSubject: x\r\n");
    becomes("s@x.test", "", "From: s@x.test\r\n");
    becomes("s@x.test", "Received: by h", "Received: by h\r\nFrom: s@x.test\r\n");
    becomes("s@x.test", "Received: by h\r", "Received: by h\r\nFrom: s@x.test\r\n");
    becomes("s@x.test", "FROM: a@b\r\n", "FROM: a@b\r\n");
    becomes("s@x.test", "Subject: From: y\r\nFrom:\r\n", "Subject: From: y\r\nFrom: s@x.test\r\n");
}

/* One that is empty or cannot be parsed counts as missing; its text stays. */
TEST(unreadable_from)
{
    becomes("s@x.test", "From: <>\r\nTo: a@b\r\n", "From: s@x.test\r\nX-Original-From: <>\r\nTo: a@b\r\n");
    becomes("s@x.test", "From: \r\n\t\r\nTo: a@b\r\n", "From: s@x.test\r\nTo: a@b\r\n");
    becomes("s@x.test", "From: Backup Job\r\n",
            "From: \"Backup Job\" <s@x.test>\r\nX-Original-From: Backup Job\r\n");
    becomes("", "From: Backup Job\r\n",
            "From: \"Backup Job\" <MAILER-DAEMON@h.test>\r\nX-Original-From: Backup Job\r\n");
    becomes("s@x.test", "From: \"Web <a@o.test>\r\n",
            "From: \"\\\"Web <a@o.test>\" <s@x.test>\r\nX-Original-From: \"Web <a@o.test>\r\n");
    becomes("s@x.test", "From: Web (prod <a@o.test>\r\n",
            "From: \"Web (prod <a@o.test>\" <s@x.test>\r\nX-Original-From: Web (prod <a@o.test>\r\n");
    becomes("s@x.test", "From: A\r\n\tB\xfc \x01\\<\r\n",
            "From: \"A B? ?\\\\<\" <s@x.test>\r\nX-Original-From: A\r\n\tB\xfc \x01\\<\r\n");
    becomes("s@x.test", "From: B\xc3\xbcro Backup\r\n",
            "From: \"B\xc3\xbcro Backup\" <s@x.test>\r\nX-Original-From: B\xc3\xbcro Backup\r\n");
    becomes("s@x.test", "From: undisclosed:;\r\n",
            "From: \"undisclosed:;\" <s@x.test>\r\nX-Original-From: undisclosed:;\r\n");
    becomes("s@x.test", "From: no one here", "From: \"no one here\" <s@x.test>\r\nX-Original-From: no one here");
    /* A dot behind the domain means nothing. */
    becomes("s@x.test", "From: Joe <a@o.test.>\r\nTo: b@o.test., c\r\n",
            "From: Joe <a@o.test>\r\nTo: b@o.test, c@h.test\r\n");
    becomes("s@x.test", "From: a..b@docomo.test\r\n", "From: a..b@docomo.test\r\n");
    /* A person, not a list. */
    becomes("s@x.test", "From: Doe, John <a@o.test>\r\n", "From: \"Doe, John\" <a@o.test>\r\n");
    becomes("s@x.test", "From: Doe Jr., J. <a@o.test>\r\n", "From: \"Doe Jr., J.\" <a@o.test>\r\n");
    becomes("s@x.test", "From: =?utf-8?q?D=C3=B6?=, J <a@o.test>\r\n", "From: =?utf-8?q?D=C3=B6?= J <a@o.test>\r\n");
    becomes("s@x.test", "From: root, Joe <a@o.test>, b@o.test\r\n", "From: root@h.test, Joe <a@o.test>, b@o.test\r\n");
}

TEST(long_from)
{
    struct rewrite r = {.hostname = TEXT("h.test"), .sender = TEXT("s@x.test")};
    struct buffer in, out;
    buffer_init(&in, 4096);
    buffer_init(&out, 8192);
    must_add(&in, "From: ");
    for (int i = 0; i < 400; i++)
        must_add(&in, i % 7 == 0 ? " \"" : "\xc3\xbc");
    must_add(&in, "\r\n");
    ok(rewrite_header(&r, buffer_text(&in), &out) && r.made_from);
    struct text rest = buffer_text(&out), line;
    ok(text_cut(&rest, '\n', &line) && line.length < 500 && text_is_utf8(line));
    ok(text_ends_nocase(line, TEXT("\" <s@x.test>\r")));
    buffer_free(&in);
    buffer_free(&out);
}

/* h.test and bare names are local, and inside.test, for which there is a row of its own; example.test
 * becomes everybody's; keep.test stays. */
static void
find(const void *table, struct text address, struct rewrite_answer *answer)
{
    (void)table;
    *answer = (struct rewrite_answer){.local = false};
    answer->by_local = text_find(address, '@') == TEXT_NONE ||
                       text_ends_nocase(address, TEXT("@h.test"));
    answer->local = answer->by_local || text_ends_nocase(address, TEXT("@inside.test"));
    const char *to = answer->by_local                                      ? "alerts@z.test"
                     : text_ends_nocase(address, TEXT("@keep.test"))    ? ""
                     : text_ends_nocase(address, TEXT("@inside.test"))  ? "relay@relay.test"
                     : text_ends_nocase(address, TEXT("@relay.test"))   ? "relay@relay.test"
                     : text_ends_nocase(address, TEXT("@example.test")) ? "relay@relay.test"
                                                                        : "";
    snprintf(answer->address, sizeof(answer->address), "%s", to);
}

static void
changes(bool with_table, const char *header, const char *want)
{
    struct rewrite r = {.hostname = TEXT("h.test"),
                        .sender = TEXT("s@example.test"),
                        .find = with_table ? find : NULL};
    struct buffer out, again;
    buffer_init(&out, 1024 * 1024);
    buffer_init(&again, 1024 * 1024);
    ok(rewrite_header(&r, text_from(header), &out));
    is_text(buffer_text(&out), text_from(want), want);
    ok(rewrite_header(&r, buffer_text(&out), &again));
    is_text(buffer_text(&again), text_from(want), "twice is as once");
    buffer_free(&out);
    buffer_free(&again);
}

/* Mail of cron, PHP and logwatch, without any table. */
TEST(completed)
{
    static const char *const rows[][2] = {
        {"From: root (Cron Daemon)\r\nTo: root\r\n",
         "From: root@h.test (Cron Daemon)\r\nTo: root@h.test\r\n"},
        {"From: \"Cron\r\n Daemon\" <root>\r\n", "From: \"Cron\r\n Daemon\" <root@h.test>\r\n"},
        {"From: =?utf-8?q?Cr=C3=B6n?= <root>\r\n", "From: =?utf-8?q?Cr=C3=B6n?= <root@h.test>\r\n"},
        {"From: a@b\r\nTo: alice, b@c.test,\r\n\t(see) bob (x, y),\r\n <carl>\r\n",
         "From: a@b\r\nTo: alice@h.test, b@c.test,\r\n\t(see) bob@h.test (x, y),\r\n <carl@h.test>\r\n"},
        {"From: a@b\r\nCc: friends: ann, bob@c.test;, undisclosed:;\r\n",
         "From: a@b\r\nCc: friends: ann@h.test, bob@c.test;, undisclosed:;\r\n"},
        {"From: \"a b\"\r\n", "From: \"a b\"@h.test\r\n"},
        {"From: a . b\r\n", "From: a.b@h.test\r\n"},
        {"From: a@b\r\nReply-To:root\r\nSender:\r\n root\r\n",
         "From: a@b\r\nReply-To:root@h.test\r\nSender:\r\n root@h.test\r\n"},
        {"From: a@b\r\nSubject: root, bob\r\nX-From: root\r\n",
         "From: a@b\r\nSubject: root, bob\r\nX-From: root\r\n"},
        {"From: root", "From: root@h.test"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        changes(false, rows[i][0], rows[i][1]);
}

TEST(replaced)
{
    static const char *const rows[][2] = {
        {"From: root (Cron Daemon)\r\n",
         "From: \"root@h.test\" <alerts@z.test> (Cron Daemon)\r\n"},
        {"From: <root@h.test>\r\n", "From: \"root@h.test\" <alerts@z.test>\r\n"},
        {"From: Cron <root@h.test>\r\n", "From: Cron <alerts@z.test>\r\n"},
        {"From: \"o\\\"k\"@h.test\r\n",
         "From: \"\\\"o\\\\\\\"k\\\"@h.test\" <alerts@z.test>\r\n"},
        /* Replies go to the author, if that address is known outside. */
        {"From: Ann <ann@example.test>\r\nTo: bob@x.test\r\n",
         "From: Ann <relay@relay.test>\r\nReply-To: ann@example.test\r\nTo: bob@x.test\r\n"},
        {"From: ann@example.test\r\nReply-To: list@x.test\r\n",
         "From: \"ann@example.test\" <relay@relay.test>\r\nReply-To: list@x.test\r\n"},
        {"From: a@keep.test\r\nTo: root\r\nCc: b@example.test, root@h.test\r\n",
         "From: a@keep.test\r\nTo: alerts@z.test\r\nCc: b@example.test, alerts@z.test\r\n"},
        /* A Sender that equals From goes. */
        {"From: ann@example.test\r\nReply-To: x@x.test\r\nSender: bob@example.test\r\n",
         "From: \"ann@example.test\" <relay@relay.test>\r\nReply-To: x@x.test\r\n"},
        {"From: a@keep.test\r\nSender: a@keep.test\r\n",
         "From: a@keep.test\r\nSender: a@keep.test\r\n"},
        {"From: a@keep.test\r\nSender: <bob@example.test>\r\n",
         "From: a@keep.test\r\nSender: <relay@relay.test>\r\n"},
        {"From: relay@relay.test\r\n", "From: relay@relay.test\r\n"},
        {"From: \"relay\"@RELAY.test\r\n", "From: \"relay\"@RELAY.test\r\n"},
        {"From: G: ann@example.test, root;\r\n",
         "From: G: \"ann@example.test\" <relay@relay.test>, \"root@h.test\" <alerts@z.test>;\r\n"
         "Reply-To: ann@example.test\r\n"},
        {"From: a@keep.test\r\nErrors-To: root\r\nReturn-Receipt-To: <ann@example.test>\r\n"
         "Disposition-Notification-To: x@example.test\r\nResent-From: root\r\n"
         "Resent-To: ann@example.test\r\n",
         "From: a@keep.test\r\nErrors-To: alerts@z.test\r\nReturn-Receipt-To: "
         "<relay@relay.test>\r\nDisposition-Notification-To: relay@relay.test\r\n"
         "Resent-From: alerts@z.test\r\nResent-To: ann@example.test\r\n"},
        {"From: <@route.test:root@h.test>\r\n", "From: \"root@h.test\" <alerts@z.test>\r\n"},
        {"Subject: x\r\n",
         "From: \"s@example.test\" <relay@relay.test>\r\nReply-To: s@example.test\r\nSubject: x\r\n"},
        {"From: r\xc3\xbc@h.test\r\n", "From: alerts@z.test\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        changes(true, rows[i][0], rows[i][1]);
}

TEST(odd)
{
    static const char *const values[] = {
        "Cron Daemon", "root, <", "a@b@c", "(never closed root", "\"never closed", "<root> x",
        "a b@h.test", "root;;<<", "@", "a@", "x: y: root;;",
    };
    char header[200];
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct rewrite r = {.hostname = TEXT("h.test"), .find = find};
        FIXTURE(buffer, out, buffer_init, buffer_free, 4096);
        snprintf(header, sizeof(header), "From: a@keep.test\r\nReply-To: %s\r\nTo: root\r\n", values[i]);
        ok(rewrite_header(&r, text_from(header), &out));
        snprintf(header, sizeof(header), "From: a@keep.test\r\nReply-To: %s\r\nTo: alerts@z.test\r\n", values[i]);
        is_text(buffer_text(&out), text_from(header), "it stays, the others do not");
        is_number(r.unparsed, 1, "and is counted");
        is_text(r.odd, TEXT("Reply-To"), "by name");
        ok(!r.made_from);
    }
}

/* A field of this many addresses, each this long. */
static void
large(unsigned count, size_t each, bool stays)
{
    struct buffer header, out;
    struct rewrite r = {.hostname = TEXT("h.test"), .find = find};
    bool good;
    buffer_init(&header, 1024 * 1024);
    buffer_init(&out, 1024 * 1024);
    good = buffer_add(&header, TEXT("From: a@keep.test\r\nTo: "));
    for (unsigned i = 0; i < count && good; i++) {
        good = buffer_format(&header, "%s%0*u", i > 0 ? ",\r\n " : "", (int)each, i);
    }
    ok(good && buffer_add(&header, TEXT("\r\n")) &&
       rewrite_header(&r, buffer_text(&header), &out));
    ok_named(text_equal(buffer_text(&header), buffer_text(&out)) == stays, "by its size");
    is_number(r.unparsed, stays, "counted");
    buffer_free(&header);
    buffer_free(&out);
}

TEST(sizes)
{
    large(REWRITE_ADDRESSES_MAX, 5, false);
    large(REWRITE_ADDRESSES_MAX + 1, 5, true);
    large(900, 60, false);
    large(990, 64, true); /* above 64 KiB */
}

TEST(limit)
{
    static const char header[] = "From: a@b\r\nTo: c@d\r\n";
    struct rewrite r = {.hostname = TEXT("h.test")};
    for (size_t limit = 0; limit < sizeof(header) - 1; limit++) {
        FIXTURE(buffer, out, buffer_init, buffer_free, limit);
        ok_named(!rewrite_header(&r, text_from(header), &out), "no space");
    }
}

/* An address as others may write it is replaced, and nothing that only looks like one. */
TEST(odd_addresses)
{
    static const char *const rows[][2] = {
        {"From: =?utf-8?q?root=40h=2Etest?= <root@h.test>\r\n", "From: =?utf-8?q?root=40h=2Etest?= <alerts@z.test>\r\n"},
        {"From: \"root@h.test\" <a@keep.test>\r\n", "From: \"root@h.test\" <a@keep.test>\r\n"},
        {"From: a@keep.test (root@h.test (root))\r\n", "From: a@keep.test (root@h.test (root))\r\n"},
        {"From: a@keep.test\r\nTo: root@h.test: root, b@x.test;\r\n", NULL},
        {"From: a@keep.test\r\nTo: \"a,b@h.test\" <root>, c@x.test\r\n",
         "From: a@keep.test\r\nTo: \"a,b@h.test\" <alerts@z.test>, c@x.test\r\n"},
        {"From: <@relay.test:root@h.test>\r\n", NULL},
        {"From: root@h.test\r\nFrom: b@h.test\r\n", NULL},
        {"From: (unclosed <root@h.test>\r\n", NULL},
        {"From: \"unclosed <root@h.test>\r\n", NULL},
        {"From: <root@h.test\r\n", "From: \"<root@h.test\" <relay@relay.test>\r\nReply-To: s@example.test\r\nX-Original-From: <root@h.test\r\n"},
        {"From:\r\n\t\r\n root\r\n\t(x)\r\n", NULL},
        /* Answers go where their author wants them: no other pattern than "local" counts there. */
        {"From: ann@example.test\r\nReply-To: bob@example.test, root\r\n",
         "From: \"ann@example.test\" <relay@relay.test>\r\nReply-To: bob@example.test, alerts@z.test\r\n"},
        /* Nobody outside can reply to an address that is local, whichever pattern has matched. */
        {"From: Ann <ann@inside.test>\r\nTo: bob@inside.test, root\r\n",
         "From: Ann <relay@relay.test>\r\nTo: bob@inside.test, alerts@z.test\r\n"},
        {"From: ann@keep.test\r\nReply-To: bob@inside.test, Carl <carl@example.test>\r\n",
         "From: ann@keep.test\r\nReply-To: relay@relay.test, Carl <carl@example.test>\r\n"},
        {"From: ann@inside.test, ann@example.test\r\n",
         "From: \"ann@inside.test\" <relay@relay.test>, \"ann@example.test\" <relay@relay.test>\r\nReply-To: ann@example.test\r\n"},
        {"From: ann@example.test, bob@example.test\r\nSender: ann@example.test\r\n", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rewrite r = {.hostname = TEXT("h.test"), .sender = TEXT("s@example.test"), .find = find};
        struct buffer out, again;
        buffer_init(&out, 4096);
        buffer_init(&again, 4096);
        ok(rewrite_header(&r, text_from(rows[i][0]), &out));
        if (rows[i][1] != NULL)
            is_text(buffer_text(&out), text_from(rows[i][1]), rows[i][0]);
        ok(rewrite_header(&r, buffer_text(&out), &again));
        is_text(buffer_text(&again), buffer_text(&out), "twice is as once");
        buffer_free(&out);
        buffer_free(&again);
    }
}

static size_t
longest_line(struct text t)
{
    size_t longest = 0;
    struct text line;
    while (t.length > 0 && text_cut(&t, '\n', &line))
        longest = line.length > longest ? line.length : longest;
    return longest - 1; /* without its CR */
}

/* A name that is inserted counts, too. */
TEST(long_name)
{
    struct rewrite r = {.hostname = TEXT("h.test"), .find = find};
    struct buffer in, out;
    buffer_init(&in, 4096);
    buffer_init(&out, 4096);
    must_add(&in, "From: ");
    while (in.length < 920)
        must_add(&in, "(comment) ");
    must_add(&in, "one.of.sixty.four.bytes.before.the.at.sign.or.nearly.as.many.x@example.test\r\n");
    ok(rewrite_header(&r, buffer_text(&in), &out));
    ok(memmem(out.at, out.length, "sign.or.nearly.as.many.x@example.test\" <relay@relay.test>\r\n", 59) != NULL);
    ok_named(longest_line(buffer_text(&out)) <= 998, "no line is too long");
    buffer_free(&in);
    buffer_free(&out);
}

/* A name of one word that is longer than any mailbox is a name, too. */
TEST(name_beyond_mailbox)
{
    static const unsigned lengths[] = {250, 253, 254, 255, 400, 900};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char name[1000], header[1100], want[1100];
        memset(name, 'n', lengths[i]);
        name[lengths[i]] = '\0';
        snprintf(header, sizeof(header), "From: \"%s\" <root@h.test>\r\n", name);
        snprintf(want, sizeof(want), "From: \"%s\" <alerts@z.test>\r\n", name);
        changes(true, header, want);
    }
}

/* A field of that many bare names in one line. */
static void
many_names(struct buffer *b, unsigned count)
{
    buffer_clear(b);
    must_add(b, "From: a@keep.test\r\nTo: n");
    for (unsigned i = 1; i < count; i++)
        must_add(b, ", n");
    must_add(b, "\r\n");
}

/* Lines that grow are folded; the names are complete, all of them; a line of 998 that stays is as
 * it was. Beyond 1,000 addresses a field stays. */
TEST(long_lines)
{
    static const unsigned counts[] = {10, 70, 300, 1000, 1001, 10000};
    struct buffer in, out, again;
    buffer_init(&in, 1024 * 1024);
    buffer_init(&out, 1024 * 1024);
    buffer_init(&again, 1024 * 1024);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (int with_table = 0; with_table < 2; with_table++) {
            struct rewrite r = {.hostname = TEXT("h.test"), .find = with_table ? find : NULL};
            many_names(&in, counts[i]);
            buffer_clear(&out);
            buffer_clear(&again);
            ok(rewrite_header(&r, buffer_text(&in), &out));
            ok(rewrite_header(&r, buffer_text(&out), &again));
            is_text(buffer_text(&again), buffer_text(&out), "twice is as once");
            if (counts[i] > 1000) {
                is_text(buffer_text(&out), buffer_text(&in), "stays");
                is_number(r.unparsed, 1, "and is reported");
                continue;
            }
            ok_named(longest_line(buffer_text(&out)) <= 998, "no line is too long");
            unsigned found = 0;
            for (size_t at = 0; at < out.length; at++)
                found += out.at[at] == '@';
            is_number(found, counts[i] + 1, "each name has its domain");
            size_t whole = strlen("To: ") + counts[i] * strlen(with_table ? "alerts@z.test" : "n@h.test") + 2 * (counts[i] - 1);
            is_number(memmem(out.at, out.length, "\r\n ", 3) != NULL, whole > 998, "folded only if it must be");
        }
    buffer_free(&in);
    buffer_free(&out);
    buffer_free(&again);
}
