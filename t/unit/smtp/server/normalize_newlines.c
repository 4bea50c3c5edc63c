/* smtp/normalize_newlines: the three rules by which a bare LF is a newline, for any cut;
 * and the result of the strict decoder. */
#include "smtp/server/normalize_newlines.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

/* --- Rules 2 and 3 ---------------------------------------------------------------- */

static struct text
repaired(struct buffer *out, struct text bytes, size_t piece)
{
    struct newlines_stream n = {.rule = NEWLINES_LF};
    buffer_clear(out);
    for (; bytes.length > 0; bytes = text_after(bytes, piece))
        normalize_stream(&n, text_before(bytes, piece), out);
    return buffer_text(out);
}

static const struct {
    struct text in, out;
} cases[] = {
    {TEXT(""),                 TEXT("")                  },
    {TEXT("a\r\n"),            TEXT("a\r\n")             },
    {TEXT("a\n"),              TEXT("a\r\n")             },
    {TEXT("\n"),               TEXT("\r\n")              },
    {TEXT("\n\n"),             TEXT("\r\n\r\n")          },
    {TEXT("\r\n\n"),           TEXT("\r\n\r\n")          },
    {TEXT("\r\r\n"),           TEXT("\r\n")              },
    {TEXT("a\r\r\r\n.\r\r\n"), TEXT("a\r\n.\r\n")         },
    {TEXT("a\r\rb\r\n"),       TEXT("a\rb\r\n")          },
    {TEXT("a\rb\n"),           TEXT("a\rb\r\n")          },
    {TEXT("a\n.\nb\n"),        TEXT("a\r\n.\r\nb\r\n")   },
    {TEXT("a\r\n.\nb\r\n"),    TEXT("a\r\n.\r\nb\r\n")   },
    {TEXT("a\n\rb"),           TEXT("a\r\n\rb")          },
    {TEXT("a\0\nb\xff\n\r\n"), TEXT("a\0\r\nb\xff\r\n\r\n")},
    {TEXT("no end"),           TEXT("no end")            },
};

/* In the content of DATA: the number of bytes behind the lone dot, SIZE_MAX when it is
 * refused, SIZE_MAX - 1 when there is none. */
static size_t
behind(struct buffer *out, struct text bytes)
{
    struct dot_decoder d;
    struct text rest = repaired(out, bytes, 3), content;
    dot_decode_start(&d);
    while (rest.length > 0)
        switch (dot_decode(&d, &rest, &content)) {
        case PROGRESS_DONE:
            return rest.length;
        case PROGRESS_BAD:
            return SIZE_MAX;
        case PROGRESS_MORE:
            if (text_find(content, '\n') != TEXT_NONE &&
                text_find(content, '\r') == TEXT_NONE)
                return 0; /* a bare LF got through: never */
            break;
        }
    return SIZE_MAX - 1;
}

/* The first line decides, as sendmail -bs has it. */
static void
first_line(void)
{
    static const struct {
        struct text in, out;
    } streams[] = {
        {TEXT("EHLO x\nDATA\n.\r\n\n"),     TEXT("EHLO x\r\nDATA\r\n.\r\n\r\n")},
        {TEXT("EHLO x\r\nDATA\n.\r\nx\n"), TEXT("EHLO x\r\nDATA\n.\r\nx\n")    },
        {TEXT("\n\r\n\n"),                  TEXT("\r\n\r\n\r\n")                },
        {TEXT("\r\n\n"),                    TEXT("\r\n\n")                      },
        {TEXT("a\rb\nc\n"),                 TEXT("a\rb\r\nc\r\n")               },
    };
    FIXTURE(buffer, out, buffer_init, buffer_free, 4096);
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
        for (size_t piece = 1; piece < 10; piece++) {
            struct newlines_stream n = {.rule = NEWLINES_FIRST};
            struct text in = streams[i].in;
            buffer_clear(&out);
            for (; in.length > 0; in = text_after(in, piece))
                normalize_stream(&n, text_before(in, piece), &out);
            is_text(buffer_text(&out), streams[i].out, "the first line decides");
        }
}

/* --- Rule 1 ----------------------------------------------------------------------- */

/* Content of DATA that comes in pieces, the first of another size; *behind is what is
 * left when it is DONE. */
static enum progress
decoded_cut(struct text bytes, size_t first, size_t piece, bool repairs,
            struct buffer *out, struct text *behind)
{
    struct newlines_content n;
    struct dot_decoder d;
    buffer_clear(out);
    normalize_content_start(&n, repairs);
    dot_decode_start(&d);
    for (size_t have = first, used = 0;; have += piece) {
        struct text input = text_after(text_before(bytes, have), used), content;
        while (input.length > 0 || normalize_has_more(&n)) {
            enum progress progress = normalize_data(&n, &d, &input, &content);
            *behind = text_after(bytes, bytes.length - text_after(bytes, have).length -
                                            input.length);
            if (progress != PROGRESS_MORE)
                return progress;
            if (!buffer_add(out, content))
                abort();
        }
        used = have;
        if (have >= bytes.length)
            return PROGRESS_MORE;
    }
}

static enum progress
decoded(struct text bytes, size_t piece, bool repairs, struct buffer *out,
        struct text *behind)
{
    return decoded_cut(bytes, piece, piece, repairs, out, behind);
}

/* A line, and the end of the content if nothing was repaired at either end of it. */
static bool
model_line(char line[64], size_t *length, bool repaired, bool *tainted,
           struct buffer *out)
{
    bool lone = *length == 1 && line[0] == '.';
    if (lone && !repaired && !*tainted)
        return true;
    size_t skip = !lone && *length > 0 && line[0] == '.' ? 1 : 0;
    if (!buffer_add(out, text_of(line + skip, *length - skip)) ||
        !buffer_add(out, TEXT("\r\n")))
        abort();
    *length = 0;
    *tainted = repaired;
    return false;
}

/* The same said plainly. */
static enum progress
model(struct text bytes, struct buffer *out, struct text *behind)
{
    char line[64];
    size_t length = 0;
    bool tainted = false;
    buffer_clear(out);
    for (size_t at = 0; at < bytes.length;) {
        size_t crs = 0;
        while (at + crs < bytes.length && bytes.at[at + crs] == '\r')
            crs++;
        if (at + crs == bytes.length)
            return PROGRESS_MORE;
        char c = bytes.at[at + crs];
        at += crs + (crs == 0 || c == '\n');
        if (crs > 0 || c == '\n') {
            *behind = text_after(bytes, at);
            if (model_line(line, &length, crs != 1 || c != '\n', &tainted, out))
                return PROGRESS_DONE;
        } else if (c == '\0') {
            tainted = true;
        } else {
            line[length++] = c;
        }
    }
    return PROGRESS_MORE;
}

TEST(content_by_model)
{
    static const char letters[] = {'.', '.', '\r', '\n', '\n', 'x', '\0', '\r'};
    struct buffer got, want;
    unsigned ends = 0, wrong = 0;
    buffer_init(&got, 4096);
    buffer_init(&want, 4096);
    srand(1);
    for (int round = 0; round < 300000; round++) {
        char bytes[24];
        size_t length = (size_t)(rand() % (int)sizeof(bytes));
        for (size_t i = 0; i < length; i++) {
            bytes[i] = letters[rand() % (round % 4 == 0 ? 8 : 6)];
            if (bytes[i] == '\r' && i + 1 < length && rand() % 4 > 0)
                bytes[++i] = '\n';
        }
        struct text t = text_of(bytes, length), behind[2] = {t, t};
        enum progress meant = model(t, &want, &behind[0]);
        for (size_t piece = 1; piece <= 5; piece++) {
            enum progress is = decoded(t, piece, true, &got, &behind[1]);
            bool good = is == meant && (is != PROGRESS_DONE ||
                                        (behind[0].at == behind[1].at &&
                                         text_equal(buffer_text(&got), buffer_text(&want))));
            wrong += !good;
        }
        ends += meant == PROGRESS_DONE;
    }
    is_number(wrong, 0, "as the model has it, however it is cut");
    ok_named(ends > 1000, "often it came to an end");
    buffer_free(&got);
    buffer_free(&want);
}

/* --- Every short content, and every cut ------------------------------------------- */

enum { SHORT = 8 };

/* The string of 4 letters with this number. */
static struct text
short_text(char bytes[SHORT], size_t length, unsigned number)
{
    for (size_t i = 0; i < length; i++, number /= 4)
        bytes[i] = "\r\n.a"[number % 4];
    return text_of(bytes, length);
}

/* CRLF is all that ends its lines. */
static bool
is_strict(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] == '\r' ? i + 1 == t.length || t.at[i + 1] != '\n'
                            : t.at[i] == '\n' && (i == 0 || t.at[i - 1] != '\r'))
            return false;
    return true;
}

/* How many cuts of t in two (and bytes one by one) do not give what is meant. */
static unsigned
count_wrong_data(struct text t, bool repairs, struct buffer *want, struct buffer *got)
{
    unsigned wrong = 0;
    struct text behind[2] = {t, t};
    enum progress meant = repairs ? model(t, want, &behind[0])
                                  : decoded(t, SHORT, false, want, &behind[0]);
    wrong += meant == PROGRESS_DONE && !is_strict(buffer_text(want));
    for (size_t first = 1; first <= t.length + 1; first++) {
        bool each = first > t.length;
        enum progress is = decoded_cut(t, each ? 1 : first, each ? 1 : SHORT, repairs,
                                       got, &behind[1]);
        wrong += is != meant;
        wrong += meant == PROGRESS_DONE &&
                 (behind[0].at != behind[1].at || behind[0].length != behind[1].length ||
                  !text_equal(buffer_text(got), buffer_text(want)));
    }
    return wrong;
}

/* The same of a chunk, whose every byte is content. */
static unsigned
count_wrong_chunk(struct text t, struct buffer *want, struct buffer *got)
{
    unsigned wrong = 0;
    buffer_clear(want);
    for (size_t i = 0; i < t.length; i++) {
        bool ends = t.at[i] == '\n' || (t.at[i] == '\r' && (i + 1 == t.length ||
                                                           (t.at[i + 1] != '\r' &&
                                                            t.at[i + 1] != '\n')));
        if (t.at[i] != '\r' && !ends && !buffer_add(want, text_of(t.at + i, 1)))
            abort();
        if (ends && !buffer_add(want, TEXT("\r\n")))
            abort();
    }
    for (size_t first = 1; first <= t.length + 1; first++) {
        struct newlines_content n;
        struct dot_checker c = {.after_cr = false};
        struct text in = t, chunk, slice;
        bool good = true;
        size_t piece = first > t.length ? 1 : first;
        buffer_clear(got);
        normalize_content_start(&n, true);
        for (; in.length > 0 && good; piece = first > t.length ? 1 : SHORT) {
            chunk = text_before(in, piece);
            in = text_after(in, chunk.length);
            while (chunk.length > 0 && good)
                good = normalize_chunk(&n, &c, &chunk, &slice) && buffer_add(got, slice);
        }
        good = good && buffer_add(got, normalize_chunk_end(&n));
        wrong += !good || !text_equal(buffer_text(got), buffer_text(want));
    }
    return wrong;
}

/* And of a stream. */
static unsigned
count_wrong_stream(struct text t, enum newlines rule, struct buffer *want,
                   struct buffer *got)
{
    unsigned wrong = 0;
    struct newlines_stream whole = {.rule = rule};
    buffer_clear(want);
    normalize_stream(&whole, t, want);
    for (size_t first = 0; first <= t.length; first++) {
        struct newlines_stream n = {.rule = rule};
        buffer_clear(got);
        normalize_stream(&n, text_before(t, first), got);
        normalize_stream(&n, text_after(t, first), got);
        wrong += !text_equal(buffer_text(got), buffer_text(want)) || n.rule != whole.rule;
    }
    return wrong;
}

TEST(everything_short)
{
    struct buffer got, want;
    unsigned strict = 0, repaired_wrong = 0, chunk = 0, stream = 0, count = 1;
    buffer_init(&got, 4096);
    buffer_init(&want, 4096);
    for (size_t length = 0; length <= SHORT; length++, count *= 4)
        for (unsigned number = 0; number < count; number++) {
            char bytes[SHORT];
            struct text t = short_text(bytes, length, number);
            strict += count_wrong_data(t, false, &want, &got);
            repaired_wrong += count_wrong_data(t, true, &want, &got);
            chunk += count_wrong_chunk(t, &want, &got);
            stream += count_wrong_stream(t, NEWLINES_LF, &want, &got) +
                      count_wrong_stream(t, NEWLINES_FIRST, &want, &got);
        }
    is_number(strict, 0, "all short contents, in all cuts: strict");
    is_number(repaired_wrong, 0, "repaired");
    is_number(chunk, 0, "as chunks");
    is_number(stream, 0, "as streams");
    buffer_free(&got);
    buffer_free(&want);
}

static void
content(void)
{
    static const struct {
        struct text in, out;
        enum progress progress;
    } contents[] = {
        {TEXT("a\nb\r\n.\r\n"),        TEXT("a\r\nb\r\n"),           PROGRESS_DONE},
        {TEXT("a\n.\nb\r\n.\r\n"),    TEXT("a\r\n.\r\nb\r\n"),     PROGRESS_DONE},
        {TEXT("a\n.\r\nb\r\n.\r\n"), TEXT("a\r\n.\r\nb\r\n"),     PROGRESS_DONE},
        {TEXT("a\r\n.\nb\r\n.\r\n"), TEXT("a\r\n.\r\nb\r\n"),     PROGRESS_DONE},
        {TEXT(".\n\r\n.\r\n"),        TEXT(".\r\n\r\n"),            PROGRESS_DONE},
        {TEXT("a\n..b\n..\n\r\n.\r\n"), TEXT("a\r\n.b\r\n.\r\n\r\n"), PROGRESS_DONE},
        {TEXT("a\n.\n"),               TEXT("a\r\n.\r\n"),           PROGRESS_MORE},
        {TEXT("a\n.\r\n"),            TEXT("a\r\n.\r\n"),           PROGRESS_MORE},
        {TEXT("a\r.\r\n"),            TEXT("a\r\n.\r\n"),           PROGRESS_MORE},
        {TEXT("a\rb\r.\r\n.\r\n"),   TEXT("a\r\nb\r\n.\r\n"),    PROGRESS_DONE},
        {TEXT("a\r\r\n.\r\r\n.\r\n"), TEXT("a\r\n.\r\n.\r\n"),  PROGRESS_MORE},
        {TEXT("a\r\n.\r\r\n.\r\n"), TEXT("a\r\n.\r\n.\r\n"),    PROGRESS_MORE},
        {TEXT("a\r\r.\r\n\r\n.\r\n"), TEXT("a\r\n.\r\n\r\n"), PROGRESS_DONE},
        {TEXT("a\n.\r\r\n"),         TEXT("a\r\n.\r\n"),           PROGRESS_MORE},
        {TEXT("a\0b\r\n.\r\n"),      TEXT("ab\r\n"),              PROGRESS_DONE},
        {TEXT("a\r\n\0.\r\n"),       TEXT("a\r\n.\r\n"),           PROGRESS_MORE},
        {TEXT("a\r\n.\0\r\n"),       TEXT("a\r\n.\r\n"),           PROGRESS_MORE},
        {TEXT("a\r\n.\0x\r\n.\r\n"), TEXT("a\r\nx\r\n"),         PROGRESS_DONE},
        {TEXT("a\r\n.\r\0\n.\r\n"), TEXT("a\r\n.\r\n\r\n.\r\n"), PROGRESS_MORE},
        {TEXT("a\r\0\n.\r\n"),       TEXT("a\r\n\r\n.\r\n"),      PROGRESS_MORE},
    };
    struct text behind;
    FIXTURE(buffer, out, buffer_init, buffer_free, 4096);
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++)
        for (size_t piece = 1; piece < 8; piece++) {
            enum progress progress =
                decoded(contents[i].in, piece, true, &out, &behind);
            ok(progress == contents[i].progress);
            is_text(buffer_text(&out), contents[i].out, "content");
            if (memchr(contents[i].in.at, '\n', 2) != NULL)
                ok(decoded(contents[i].in, piece, false, &out, &behind) == PROGRESS_BAD);
        }
}

static void
chunks(void)
{
    static const struct {
        struct text in, out;
        bool good;
    } all[] = {
        {TEXT("a\nb\r\n\n.\n"), TEXT("a\r\nb\r\n\r\n.\r\n"), true },
        {TEXT("\n"),              TEXT("\r\n"),                    true },
        {TEXT("a\rb"),            TEXT("a\r\nb"),                  true },
        {TEXT("a\n\rb\r"),        TEXT("a\r\n\r\nb\r\n"),        true },
        {TEXT("a\0\r\r\r\n"),     TEXT("a\r\n"),                   true },
    };
    FIXTURE(buffer, out, buffer_init, buffer_free, 4096);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (size_t piece = 1; piece < 8; piece++) {
            struct newlines_content n;
            struct dot_checker c = {.after_cr = false};
            struct text in = all[i].in, chunk, slice;
            bool good = true;
            buffer_clear(&out);
            normalize_content_start(&n, true);
            for (; in.length > 0 && good; in = text_after(in, piece))
                for (chunk = text_before(in, piece); chunk.length > 0 && good;)
                    good = normalize_chunk(&n, &c, &chunk, &slice) &&
                           buffer_add(&out, slice);
            ok(good == all[i].good && buffer_add(&out, normalize_chunk_end(&n)));
            if (good)
                is_text(buffer_text(&out), all[i].out, "a chunk");
        }
}

int
main(void)
{
    struct buffer out;
    buffer_init(&out, 4096);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t piece = 1; piece < 8; piece++)
            is_text(repaired(&out, cases[i].in, piece), cases[i].out, "repaired");
    is_number(behind(&out, TEXT("x\n.\nQUIT\n")), 6, "LF . LF ends a message");
    is_number(behind(&out, TEXT("x\n.\r\nQUIT\n")), 6, "LF . CRLF, too");
    is_number(behind(&out, TEXT("x\r\n.\nQUIT\n")), 6, "CRLF . LF, too");
    is_number(behind(&out, TEXT("x\n..\ny\n.\n")), 0, "stuffing is as ever");
    is_number(behind(&out, TEXT("x\r.\r\n")), SIZE_MAX, "a bare CR is refused");
    is_number(behind(&out, TEXT("x\n.\r\r\nQUIT")), 4, "CR CR LF is one line end");
    is_number(behind(&out, TEXT("x\0\n.\n")), SIZE_MAX, "NUL is refused");
    is_number(behind(&out, TEXT("x\n.x\n")), SIZE_MAX - 1, "no end");
    buffer_free(&out);
    first_line();
    content();
    tap_tests("");
    chunks();
    return done();
}
