/* smtp/reply: what servers say, within limits; what we say, in printable ASCII. */
#include "smtp/reply.h"

#include "t/support/tap.h"

static struct reply reply;

/* The whole stream in pieces of size; what the first reply gave and how much is left.
 */
static enum progress
parse(struct text stream, size_t size, size_t *left)
{
    struct buffer held;
    enum progress progress = PROGRESS_MORE;
    buffer_init(&held, 1 << 22);
    reply_start(&reply);
    while (progress == PROGRESS_MORE && stream.length > 0) {
        if (!buffer_add(&held, text_before(stream, size)))
            abort();
        stream = text_after(stream, size);
        struct text input = buffer_text(&held);
        progress = reply_parse(&input, &reply);
        buffer_take(&held, held.length - input.length);
    }
    *left = held.length + stream.length;
    buffer_free(&held);
    return progress;
}

static void
gives(struct text stream, int code, const char *enhanced, const char *text, size_t left)
{
    bool same = true;
    for (size_t size = 1; size <= stream.length; size++) {
        size_t rest;
        same = same && parse(stream, size, &rest) == PROGRESS_DONE && rest == left &&
               reply.code == code && strcmp(reply.enhanced, enhanced) == 0 &&
               strcmp(reply.text, text) == 0 && reply.length == strlen(text);
    }
    if (!same)
        printf("# got %d '%s' '%s'\n", reply.code, reply.enhanced, reply.text);
    ok_named(same, text);
}

static void
is_bad(struct text stream, const char *name)
{
    bool bad = true;
    size_t left;
    for (size_t size = 1; size <= stream.length && size < 50; size++)
        bad = bad && parse(stream, size, &left) == PROGRESS_BAD;
    ok_named(bad && parse(stream, stream.length, &left) == PROGRESS_BAD, name);
}

TEST(good_replies)
{
    gives(TEXT("250 Ok\r\n"), 250, "", "Ok", 0);
    gives(TEXT("250\r\n"), 250, "", "", 0);
    gives(TEXT("250 \r\n"), 250, "", "", 0);
    gives(TEXT("354 go\r\n250 x\r\n"), 354, "", "go", 7);
    gives(TEXT("250 2.1.0 sender ok\r\n"), 250, "2.1.0", "sender ok", 0);
    gives(TEXT("550 5.1.1\r\n"), 550, "5.1.1", "", 0);
    gives(TEXT("550-5.7.1 first\r\n550 5.7.1 second\r\n"), 550, "5.7.1", "first second",
          0);
    gives(TEXT("550-first\r\n550-\r\n550 third\r\n"), 550, "", "first  third", 0);
    gives(TEXT("450 4.999.999 x\r\n"), 450, "4.999.999", "x", 0);
    gives(TEXT("250 ok\n"), 250, "", "ok", 0);
    gives(TEXT("250 a\x1b\tb\x7f\r\n"), 250, "", "a??b?", 0);
    gives(TEXT("250 gr\xc3\xbc\xc3\x9f\r\n"), 250, "", "gr\xc3\xbc\xc3\x9f", 0);
    gives(TEXT("220 mx.example.org ESMTP\r\n"), 220, "", "mx.example.org ESMTP", 0);
}

/* Only a code of the right class and shape is an enhanced code; else it is text. */
TEST(no_enhanced)
{
    gives(TEXT("550 4.1.1 x\r\n"), 550, "", "4.1.1 x", 0);
    gives(TEXT("550 5.1 x\r\n"), 550, "", "5.1 x", 0);
    gives(TEXT("550 5.1.1x\r\n"), 550, "", "5.1.1x", 0);
    gives(TEXT("550 5.1234.1 x\r\n"), 550, "", "5.1234.1 x", 0);
    gives(TEXT("550 5..1 x\r\n"), 550, "", "5..1 x", 0);
    gives(TEXT("354 3.0.0 x\r\n"), 354, "", "3.0.0 x", 0);
    gives(TEXT("550 5\r\n"), 550, "", "5", 0);
}

TEST(bad_replies)
{
    is_bad(TEXT("hello\r\n"), "no code");
    is_bad(TEXT("\r\n"), "empty line");
    is_bad(TEXT("25\r\n"), "short code");
    is_bad(TEXT("2500 x\r\n"), "long code");
    is_bad(TEXT("150 x\r\n"), "class 1");
    is_bad(TEXT("600 x\r\n"), "class 6");
    is_bad(TEXT("-25 x\r\n"), "negative");
    is_bad(TEXT("250-a\r\n251 b\r\n"), "two codes");
    is_bad(TEXT("250-a\r\nQUIT\r\n"), "a line without code");
    is_bad(TEXT("250_a\r\n"), "a strange mark");
}

TEST(limits)
{
    size_t left;
    FIXTURE(buffer, stream, buffer_init, buffer_free, 1 << 22);
    for (int i = 0; i < 128; i++)
        if (!buffer_format(&stream,
                           "250%cline %03d of text that is somewhat longer\r\n",
                           i == 127 ? ' ' : '-', i))
            abort();
    is_number(parse(buffer_text(&stream), 100, &left), PROGRESS_DONE, "128 lines");
    is_number(reply.length, REPLY_TEXT_MAX, "4 KiB of text are kept");
    unsigned at = 0, lines = 0;
    struct text line;
    while (reply_next_line(&reply, &at, &line))
        lines++;
    is_number(lines, 128, "all lines are there, the last ones empty");
    buffer_clear(&stream);
    for (int i = 0; i < 129; i++)
        if (!buffer_format(&stream, "250-%d\r\n", i))
            abort();
    is_bad(buffer_text(&stream), "129 lines");
    ok(reply.is_too_long);
    is_bad(TEXT("nonsense\r\n"), "no reply");
    ok_named(!reply.is_too_long, "which has another reason");
    buffer_clear(&stream);
    if (!buffer_add(&stream, TEXT("250 ")))
        abort();
    while (stream.length < REPLY_LINE_MAX)
        if (!buffer_add_byte(&stream, 'x'))
            abort();
    if (!buffer_add(&stream, TEXT("\r\n")))
        abort();
    is_number(parse(buffer_text(&stream), 7, &left), PROGRESS_DONE, "the longest line");
    stream.length -= 2;
    if (!buffer_add(&stream, TEXT("x\r\n")))
        abort();
    is_bad(buffer_text(&stream), "a longer line");
    ok(reply.is_too_long);
    stream.length -= 2;
    if (!buffer_add(&stream, TEXT("xxxxxxxx")))
        abort();
    is_bad(buffer_text(&stream), "a line without end");
    ok(reply.is_too_long);
}

TEST(keywords)
{
    struct text parameters = TEXT("?"), line;
    size_t left;
    unsigned at = 0;
    parse(TEXT("250-mx.example.org SIZE 5\r\n250-PIPELINING\r\n250-size  1000 \r\n"
               "250-AUTH PLAIN LOGIN\r\n250 8BITMIME\r\n"),
          3, &left);
    ok(reply_keyword(&reply, TEXT("PIPELINING"), NULL));
    ok(reply_keyword(&reply, TEXT("SIZE"), &parameters));
    is_text(parameters, TEXT("1000"),
            "the first line is no keyword; blanks are trimmed");
    ok(reply_keyword(&reply, TEXT("auth"), &parameters));
    is_text(parameters, TEXT("PLAIN LOGIN"), "several parameters");
    ok(reply_keyword(&reply, TEXT("8BITMIME"), &parameters));
    is_text(parameters, TEXT(""), "none");
    ok(!reply_keyword(&reply, TEXT("8BIT"), NULL));
    ok(!reply_keyword(&reply, TEXT("PLAIN"), NULL));
    ok(!reply_keyword(&reply, TEXT("mx.example.org"), NULL));
    ok(reply_next_line(&reply, &at, &line));
    is_text(line, TEXT("mx.example.org SIZE 5"), "lines come as they were");
    parse(TEXT("250 mx.example.org\r\n"), 3, &left);
    ok(!reply_keyword(&reply, TEXT("SIZE"), NULL));
}

TEST(composing)
{
    char big[1000];
    FIXTURE(buffer, out, buffer_init, buffer_free, 1 << 16);
    reply_write(&out, 250, "2.0.0", "Ok: queued as %s", "X");
    reply_write_more(&out, 250, NULL, "SIZE %d", 5);
    reply_write(&out, 220, "", "hi");
    is_text(buffer_text(&out),
            TEXT("250 2.0.0 Ok: queued as X\r\n250-SIZE 5\r\n220 hi\r\n"),
            "three replies");
    buffer_clear(&out);
    reply_write(&out, 550, "5.1.1", "a\r\nb\x1b\x7f\xc3\xa9 %s", "\n250 ok");
    is_text(buffer_text(&out), TEXT("550 5.1.1 a??b???? ?250 ok\r\n"),
            "peer bytes cannot make another reply");
    buffer_clear(&out);
    memset(big, 'x', sizeof(big));
    reply_write(&out, 550, "5.1.1", "%.*s", (int)sizeof(big), big);
    is_number(out.length, 512, "512 bytes at most, RFC 5321 4.5.3.1.5");
}
