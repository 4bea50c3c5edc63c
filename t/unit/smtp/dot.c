/* smtp/dot: framing of content, the same however the stream is cut. */
#include "smtp/dot.h"

#include "t/support/must.h"
#include "t/support/tap.h"

/* The result of a stream in pieces of size: content, then "|D" and the count of bytes
 * left behind the end, "|M" or "|B". */
static void
decode(struct text stream, size_t first, size_t size, struct buffer *out)
{
    struct dot_decoder d;
    dot_decode_start(&d);
    buffer_clear(out);
    enum progress progress = PROGRESS_MORE;
    while (progress == PROGRESS_MORE && stream.length > 0) {
        struct text piece = text_before(stream, first), content;
        stream = text_after(stream, first);
        first = size;
        while (progress == PROGRESS_MORE && piece.length > 0) {
            size_t before = piece.length;
            progress = dot_decode(&d, &piece, &content);
            must(piece.length < before); /* it always takes something */
            must(buffer_add(out, content));
        }
        if (progress == PROGRESS_DONE)
            must(buffer_format(out, "|D%zu", piece.length + stream.length));
    }
    if (progress != PROGRESS_DONE)
        must(buffer_add(out, progress == PROGRESS_MORE ? TEXT("|M") : TEXT("|B")));
}

/* For BAD only that matters: content is thrown away. */
static bool
is_same(struct text got, struct text want)
{
    if (text_equal(want, TEXT("|B")))
        return text_ends_nocase(got, want);
    return text_equal(got, want);
}

static void
decodes(struct text stream, struct text want, const char *name)
{
    bool same = true;
    FIXTURE(buffer, out, buffer_init, buffer_free, 1 << 22);
    for (size_t size = 1; size <= stream.length && size < 40; size++) {
        for (size_t first = 1; first <= stream.length && first < 40; first++) {
            decode(stream, first, size, &out);
            same = same && is_same(buffer_text(&out), want);
        }
    }
    decode(stream, stream.length + 1, 1, &out);
    if (!is_same(buffer_text(&out), want) || !same)
        printf("# got '%.*s'\n", TEXT_ARGS(buffer_text(&out)));
    ok_named(same && is_same(buffer_text(&out), want), name);
}

static void
decoding(void)
{
    decodes(TEXT(".\r\n"), TEXT("|D0"), "empty content");
    decodes(TEXT("\r\n.\r\n"), TEXT("\r\n|D0"), "one empty line");
    decodes(TEXT("a\r\n.\r\nNOOP\r\n"), TEXT("a\r\n|D6"), "what follows is left");
    decodes(TEXT("..\r\n.\r\n"), TEXT(".\r\n|D0"), "a stuffed dot");
    decodes(TEXT("...\r\n.a\r\na.\r\n.\r\n"), TEXT("..\r\na\r\na.\r\n|D0"),
            "more dots");
    decodes(TEXT("..\r\n..\r\n.. .\r\n.\r\n"), TEXT(".\r\n.\r\n. .\r\n|D0"),
            "and more");
    decodes(TEXT("no end\r\n"), TEXT("no end\r\n|M"), "no end yet");
    decodes(TEXT("a\r\n.\r"), TEXT("a\r\n|M"), "not quite the end");
    decodes(TEXT(". \r\n.\t\r\n .\r\n.\r\n"), TEXT(" \r\n\t\r\n .\r\n|D0"),
            "blanks around");
    decodes(TEXT("\xff\x80\x1b\r\n.\r\n"), TEXT("\xff\x80\x1b\r\n|D0"),
            "other bytes pass");
}

/* SMTP smuggling: one message or a refusal. */
static void
smuggling(void)
{
    static const struct text wrong[] = {
        TEXT("a\n.\nx"),       TEXT("a\n.\r\nx"),     TEXT("a\r\n.\nx"),
        TEXT("a\r.\rx"),       TEXT("a\r.\r\nx"),     TEXT("a\r\n.\rx"),
        TEXT("a\r.\nx"),       TEXT("a\n.\rx"),       TEXT("a\r\r\n.\r\r\nx"),
        TEXT("a\r\n.\r\r\nx"), TEXT("a\n\n.\n\nx"),   TEXT("a\r\n\n.\r\nx"),
        TEXT("a\0\r\n.\r\nx"), TEXT("a\r\0\n.\r\nx"), TEXT("a\r\n\0.\r\nx"),
        TEXT("a\r\n.\0\r\nx"), TEXT("a\r\n.\r\0\nx"), TEXT(".\nx"),
        TEXT(".\rx"),          TEXT(".\r\r\nx"),      TEXT("\n.\nx"),
        TEXT("\r.\r\nx"),      TEXT(".\0\r\nx"),      TEXT("\0"),
        TEXT("..\nx"),         TEXT("..\rx"),         TEXT("..\0x"),
        TEXT("a\nb\r\n.\r\n"), TEXT("a\rb\r\n.\r\n"),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char name[40];
        snprintf(name, sizeof(name), "smuggling %zu is refused", i);
        decodes(wrong[i], TEXT("|B"), name);
    }
    decodes(TEXT("a\r\n.\x0b\r\n.\xc2\x85\r\n.\x04\r\n.\r\n"),
            TEXT("a\r\n\x0b\r\n\xc2\x85\r\n\x04\r\n|D0"), "VT, NEL and EOT are text");
}

/* Each wrong end at offsets where read buffers end. */
TEST(smuggling_far_out)
{
    static char stream[20000];
    static const size_t offsets[] = {4094,  4095,  4096,  4097,
                                     16382, 16383, 16384, 16385};
    unsigned bad = 0;
    FIXTURE(buffer, out, buffer_init, buffer_free, 1 << 16);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        memset(stream, 'x', sizeof(stream));
        memcpy(stream + offsets[i], "\r\n.\n", 4);
        decode(text_of(stream, sizeof(stream)), 4096, 4096, &out);
        bad += text_ends_nocase(buffer_text(&out), TEXT("|B"));
    }
    is_number(bad, 8, "refused across the borders of read buffers");
}

TEST(checking)
{
    static const struct {
        struct text stream;
        bool good, end;
    } cases[] = {
        {TEXT(""),           true,  true },
        {TEXT("a\r\n.\r\n"), true,  true },
        {TEXT("no end"),     true,  true },
        {TEXT("a\r"),        true,  false},
        {TEXT("a\rb"),       false, true },
        {TEXT("a\nb"),       false, true },
        {TEXT("\n"),         false, true },
        {TEXT("a\0"),        false, true },
        {TEXT("a\r\0"),      false, true },
        {TEXT("a\r\r\n"),    false, true },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text t = cases[i].stream;
        bool same = true;
        for (size_t cut = 0; cut <= t.length; cut++) {
            struct dot_checker c = {.after_cr = false};
            bool good =
                dot_check(&c, text_before(t, cut)) && dot_check(&c, text_after(t, cut));
            same = same && good == cases[i].good &&
                   (!good || dot_check_end(&c) == cases[i].end);
        }
        ok_named(same, "chunks are as strict, wherever they are cut");
    }
}

static void
encodes(struct text content, struct text want, const char *name)
{
    bool same = true;
    FIXTURE(buffer, out, buffer_init, buffer_free, 1 << 16);
    for (size_t cut = 0; cut <= content.length; cut++) {
        for (size_t second = cut; second <= content.length; second++) {
            struct dot_encoder e;
            dot_encode_start(&e);
            buffer_clear(&out);
            must(dot_encode(&e, text_before(content, cut), &out));
            must(dot_encode(&e, text_before(text_after(content, cut), second - cut),
                            &out));
            must(dot_encode(&e, text_after(content, second), &out));
            must(dot_encode_end(&e, &out));
            same = same && text_equal(buffer_text(&out), want);
        }
    }
    if (!same)
        printf("# got '%.*s'\n", TEXT_ARGS(buffer_text(&out)));
    ok_named(same, name);
}

TEST(encoding)
{
    encodes(TEXT(""), TEXT(".\r\n"), "nothing");
    encodes(TEXT("a\r\n"), TEXT("a\r\n.\r\n"), "a line");
    encodes(TEXT("a"), TEXT("a\r\n.\r\n"), "an open line is ended");
    encodes(TEXT(".\r\n..\r\na.\r\n.b"), TEXT("..\r\n...\r\na.\r\n..b\r\n.\r\n"),
            "dots");
    encodes(TEXT("\r\n\r\n"), TEXT("\r\n\r\n.\r\n"), "empty lines");
    encodes(TEXT("a\n.\nb\n"), TEXT("a\r\n..\r\nb\r\n.\r\n"), "bare LF");
    encodes(TEXT("a\r.\rb"), TEXT("a\r\n..\r\nb\r\n.\r\n"), "bare CR");
    encodes(TEXT("a\r\r\n.\r"), TEXT("a\r\n\r\n..\r\n.\r\n"), "CR before CRLF");
    encodes(TEXT("\0.\0\r\0\n\0.\r\n"), TEXT("..\r\n..\r\n.\r\n"), "NUL is left out");
}

/* For any bytes only CRLF goes out, and our own server takes it as one message. */
TEST(round_trip)
{
    static const char alphabet[] = ".\r\nab\0";
    struct buffer out, back;
    uint64_t seed = 42;
    unsigned wrong = 0;
    buffer_init(&out, 1 << 16);
    buffer_init(&back, 1 << 16);
    for (int i = 0; i < 20000; i++) {
        char bytes[24];
        size_t length = 0;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        for (uint64_t rest = seed; length < (seed >> 59) % 24; rest /= 6)
            bytes[length++] = alphabet[(rest >> 13) % 6];
        struct dot_encoder e;
        dot_encode_start(&e);
        buffer_clear(&out);
        must(dot_encode(&e, text_of(bytes, length), &out) && dot_encode_end(&e, &out));
        decode(buffer_text(&out), 5, 3, &back);
        wrong += !text_ends_nocase(buffer_text(&back), TEXT("|D0"));
        wrong += out.length > 2 * length + 5;
    }
    is_number(wrong, 0, "20,000 random contents end where they must");
    buffer_free(&out);
    buffer_free(&back);
}

TEST(limits)
{
    struct dot_encoder e;
    FIXTURE(buffer, out, buffer_init, buffer_free, 4);
    dot_encode_start(&e);
    ok(!dot_encode(&e, TEXT("abcdef"), &out));
    buffer_clear(&out);
    dot_encode_start(&e);
    ok(dot_encode(&e, TEXT("ab"), &out) && !dot_encode_end(&e, &out));
}

int
main(void)
{
    decoding();
    smuggling();
    tap_tests("");
    return done();
}
