/* defrag/reassembly/reassemble.c: worked examples, seams, splits, bad input.
 */
#include "defrag/reassembly/reassemble.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 4, OUT_MAX = 1 << 20 };

struct result {
    struct buffer out;
    enum reassemble_trouble trouble;
    size_t space; /* bytes that may be written */
};

static bool
take(void *context, struct text bytes)
{
    struct result *r = context;
    return r->out.length + bytes.length <= r->space && buffer_add(&r->out, bytes);
}

/* parts in pieces of `step` bytes. */
static void
join(struct result *r, const char *outer, const struct text *parts, size_t count,
     size_t step)
{
    bool good = true;
    buffer_init(&r->out, OUT_MAX);
    if (r->space == 0)
        r->space = OUT_MAX;
    FIXTURE(reassemble, j, reassemble_start, reassemble_free, text_from(outer), take, r);
    for (size_t i = 0; good && i < count; i++) {
        for (size_t at = 0; good && at < parts[i].length; at += step)
            good = reassemble_add(&j, text_before(text_after(parts[i], at), step));
        if (good && i + 1 < count)
            good = reassemble_seam(&j);
    }
    good = good && reassemble_end(&j);
    r->trouble = j.trouble;
    ok_named(good == (j.trouble == REASSEMBLE_GOOD), "it says whether it went well");
}

static void
is_joined(const char *outer, const char *const *bodies, const char *wanted,
          const char *name)
{
    struct text parts[PARTS];
    size_t count = 0, longest = 1;
    for (; count < PARTS && bodies[count] != NULL; count++) {
        parts[count] = text_from(bodies[count]);
        longest = parts[count].length > longest ? parts[count].length : longest;
    }
    size_t wrong = 0;
    for (size_t step = longest; step > 0; step--) {
        struct result r = {.space = 0};
        join(&r, outer, parts, count, step);
        bool same = r.trouble == REASSEMBLE_GOOD &&
                    text_equal(buffer_text(&r.out), text_from(wanted));
        if (step == longest)
            is_text(buffer_text(&r.out), text_from(wanted), name);
        wrong += !same;
        buffer_free(&r.out);
    }
    is_number((long long)wrong, 0, "from pieces of every size");
}

#define BODIES(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(rfc)
{
    is_joined("X-Weird-Header-1: Foo\r\n"
              "From: Bill@host.com\r\n"
              "To: joe@otherhost.com\r\n"
              "Date: Fri, 26 Mar 1993 12:59:38 -0500 (EST)\r\n"
              "Subject: Audio mail (part 1 of 2)\r\n"
              "Message-ID: <id1@host.com>\r\n"
              "MIME-Version: 1.0\r\n"
              "Content-type: message/partial; id=\"ABC@host.com\";\r\n"
              "              number=1; total=2\r\n"
              "\r\n",
              BODIES("X-Weird-Header-1: Bar\r\n"
                     "X-Weird-Header-2: Hello\r\n"
                     "Message-ID: <anotherid@foo.com>\r\n"
                     "Subject: Audio mail\r\n"
                     "MIME-Version: 1.0\r\n"
                     "Content-type: audio/basic\r\n"
                     "Content-transfer-encoding: base64\r\n"
                     "\r\n"
                     "... first half of encoded audio data goes here ...\r\n",
                     "... second half of encoded audio data goes here ...\r\n"),
              "X-Weird-Header-1: Foo\r\n"
              "From: Bill@host.com\r\n"
              "To: joe@otherhost.com\r\n"
              "Date: Fri, 26 Mar 1993 12:59:38 -0500 (EST)\r\n"
              "Message-ID: <anotherid@foo.com>\r\n"
              "Subject: Audio mail\r\n"
              "MIME-Version: 1.0\r\n"
              "Content-type: audio/basic\r\n"
              "Content-transfer-encoding: base64\r\n"
              "\r\n"
              "... first half of encoded audio data goes here ...\r\n"
              "... second half of encoded audio data goes here ...\r\n",
              "check 22: E1: the RFC's own example");
}

TEST(seams)
{
    is_joined("From: a@b\r\n",
              BODIES("Subject: long\r\nX-A: 1\r\n", "MIME-Version: 1.0\r\n"
                                                    "Content-Type: text/plain\r\n"
                                                    "\r\nhello\r\n"),
              "From: a@b\r\nSubject: long\r\nMIME-Version: 1.0\r\n"
              "Content-Type: text/plain\r\n\r\nhello\r\n",
              "check 17: E3: a header over the seam");
    is_joined("", BODIES("Subject: a\r\n b\r\n", " c\r\n", "\r\nbody\r\n"),
              "Subject: a\r\n b\r\n c\r\n\r\nbody\r\n",
              "check 17: the seam within a folded field");
    is_joined("", BODIES("Subject: a\r\n", "\r\n", "body\r\n"),
              "Subject: a\r\n\r\nbody\r\n", "check 17: the empty line is a part");
    is_joined("", BODIES("\r\nline1\r\n\r\n", "\r\nline2\r\n"),
              "\r\nline1\r\n\r\n\r\nline2\r\n", "check 18: E4: blank lines stay");
    is_joined("", BODIES("\r\n...abc", "def\r\n"), "\r\n...abc\r\ndef\r\n",
              "check 20: E5: a lost line end is put back");
    is_joined("", BODIES("\r\nabc\r", "def"), "\r\nabc\r\ndef",
              "half a line end, too; the last part stays as it is");
    is_joined("", BODIES("Subject: a", "\r\nb\r\n"), "Subject: a\r\n\r\nb\r\n",
              "within the header, too");
    is_joined("", BODIES("\r\na\r\n", "", ".\r\n..\r\n", "From x\r\n"),
              "\r\na\r\n.\r\n..\r\nFrom x\r\n",
              "check 19: check 21: an empty part; dots and From stay");
}

TEST(fields)
{
    is_joined("Received: by x\r\nDisposition-Notification-To: x@evil\r\n"
              "List-Id: <l>\r\ncontent-language: de\r\nOriginal-Recipient: rfc822;o\r\n"
              "Disposition-Notification-Options: x\r\nENCRYPTED: no\r\nX: 1\r\n",
              BODIES("disposition-notification-to: a@b\r\nFrom: inner@b\r\n"
                     "Content-Weird: 1\r\n\r\nx\r\n"),
              "Received: by x\r\nList-Id: <l>\r\nX: 1\r\n"
              "disposition-notification-to: a@b\r\nContent-Weird: 1\r\n\r\nx\r\n",
              "check 25: E6: notices are asked for within only");
    is_joined("Disposition-Notification-To: x@evil\r\nX: 1\r\n",
              BODIES("Subject: s\r\n\r\nx\r\n"), "X: 1\r\nSubject: s\r\n\r\nx\r\n",
              "check 25: E6: or not at all");
    is_joined("Subject: outer\r\nMessage-ID: <o>\r\nX: 1\r\n",
              BODIES("From: x@y\r\n\r\nx\r\n"), "X: 1\r\n\r\nx\r\n",
              "check 26: nothing is made up for what is not within");
    is_joined("X: 1\r\nSubject: o\r\n", BODIES("\r\nplain text\r\n"),
              "X: 1\r\n\r\nplain text\r\n", "check 27: E10: no header within");
    is_joined("X:\r\n folded\r\n\tand more\r\nSubject:\r\n gone\r\n",
              BODIES("Subject:\r\n it\r\n is\r\n\r\n"),
              "X:\r\n folded\r\n\tand more\r\nSubject:\r\n it\r\n is\r\n\r\n",
              "folds stay");
    is_joined("X: 1\r\n", BODIES("Subject : s\r\nSubject-X: t\r\n\r\n"),
              "X: 1\r\nSubject : s\r\n\r\n", "a blank before the colon; a longer name");
    is_joined("X: 1\n", BODIES("Subject: s\n\nb\n"), "X: 1\nSubject: s\n\r\nb\n",
              "other line ends stay");
    is_joined("X: 1", BODIES("Subject: s"), "X: 1\r\nSubject: s\r\n\r\n",
              "no line end at the end of headers");
    is_joined("X: 1\r\n", BODIES(""), "X: 1\r\n\r\n", "nothing within");
}

/* RFC 1521's fragmenters left it outside. */
TEST(subject)
{
    static const struct {
        const char *inner, *wanted;
    } rows[] = {
        {"X: 2\r\n\r\nb\r\n",           "X: 1\r\nSubject: outer\r\n more\r\n\r\nb\r\n"},
        {"\r\nb\r\n",                   "X: 1\r\nSubject: outer\r\n more\r\n\r\nb\r\n"},
        {"subject: inner\r\n\r\nb\r\n", "X: 1\r\nsubject: inner\r\n\r\nb\r\n"         },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct result r = {.space = OUT_MAX};
        struct reassemble j;
        buffer_init(&r.out, OUT_MAX);
        reassemble_start(&j, TEXT("X: 1\r\nMessage-ID: <o>\r\nSubject: outer\r\n more\r\n"),
                   take, &r);
        j.keeps_subject = true;
        ok(reassemble_add(&j, text_from(rows[i].inner)) && reassemble_end(&j));
        is_text(buffer_text(&r.out), text_from(rows[i].wanted),
                "check 26: the outer Subject, where it may be kept");
        reassemble_free(&j);
        buffer_free(&r.out);
    }
}

TEST(odd_line)
{
    is_joined("X: 1\r\n", BODIES("Subject: s\r\nthis is no field\r\n\r\nb\r\n"),
              "X: 1\r\nSubject: s\r\n\r\nthis is no field\r\n\r\nb\r\n",
              "a line that is no field is the body's first");
    is_joined("X: 1\r\n", BODIES("Subject: s\r\nno field"),
              "X: 1\r\nSubject: s\r\n\r\nno field", "at the end, too");
}

static void
is_trouble(const char *bodies, enum reassemble_trouble trouble, const char *name)
{
    struct text part = text_from(bodies);
    for (size_t step = 1; step <= part.length; step += part.length - 1) {
        struct result r = {.space = 0};
        join(&r, "X: 1\r\n", &part, 1, step);
        is_number(r.trouble, trouble, name);
        is_number((long long)r.out.length, 0, "nothing was written");
        buffer_free(&r.out);
        if (part.length < 2)
            break;
    }
}

TEST(trouble)
{
    is_trouble("this is no header\r\n\r\n", REASSEMBLE_NO_HEADER, "check 28: no header");
    is_trouble(" continued\r\n\r\n", REASSEMBLE_NO_HEADER, "a continuation of nothing");
    is_trouble("garbage", REASSEMBLE_NO_HEADER, "without any line end");
    is_trouble("\x80\x81: x\r\n", REASSEMBLE_NO_HEADER, "no name");
    ok_named(strlen(reassemble_trouble_text(REASSEMBLE_NO_HEADER)) > 0 &&
                 strcmp(reassemble_trouble_text(REASSEMBLE_LONG_HEADER),
                        reassemble_trouble_text(REASSEMBLE_NO_WRITE)) != 0,
             "each has its words");
}

/* REASSEMBLE_HEADER_MAX bytes of header are taken, one more is not. */
TEST(long)
{
    for (int over = 0; over < 2; over++) {
        size_t length = REASSEMBLE_HEADER_MAX - 2 + (size_t)over;
        char *header = malloc(length + 2 + 1000);
        memset(header, 'x', length);
        memcpy(header, "Subject: ", 9);
        memcpy(header + length - 2, "\r\n\r\n", 4);
        memset(header + length + 2, 'b', 1000);
        for (size_t step = 1 << 12; step <= 1 << 20; step <<= 8) {
            struct text part = text_of(header, length + 2 + 1000);
            struct result r = {.space = 0};
            join(&r, "X: 1\r\n", &part, 1, step);
            is_number(r.trouble, over ? REASSEMBLE_LONG_HEADER : REASSEMBLE_GOOD, "the limit");
            is_number((long long)r.out.length,
                      over ? 0 : (long long)(part.length + strlen("X: 1\r\n")),
                      "all or nothing");
            buffer_free(&r.out);
        }
        free(header);
    }
    char *endless = malloc(REASSEMBLE_HEADER_MAX * 2);
    memset(endless, 'x', REASSEMBLE_HEADER_MAX * 2);
    memcpy(endless, "X:", 2);
    struct text part = text_of(endless, REASSEMBLE_HEADER_MAX * 2);
    struct result r = {.space = 0};
    join(&r, "", &part, 1, 1000);
    is_number(r.trouble, REASSEMBLE_LONG_HEADER, "a field without an end");
    buffer_free(&r.out);
    free(endless);
}

TEST(no_write)
{
    struct text parts[2] = {TEXT("Subject: s\r\n\r\nbody\r\n"), TEXT("more\r\n")};
    for (size_t space = 1; space < 36; space++) {
        struct result r = {.space = space};
        join(&r, "X: 12345\r\n", parts, 2, 7);
        is_number(r.trouble, r.out.length < 36 && space < 36 ? REASSEMBLE_NO_WRITE : REASSEMBLE_GOOD,
                  "a failure to write ends it");
        ok_named(r.out.length <= space, "at once");
        buffer_free(&r.out);
    }
    struct result r = {.space = 36};
    join(&r, "X: 12345\r\n", parts, 2, 7);
    is_number(r.trouble, REASSEMBLE_GOOD, "with room it goes well");
    is_number((long long)r.out.length, 36, "to the last byte");
    buffer_free(&r.out);
}
