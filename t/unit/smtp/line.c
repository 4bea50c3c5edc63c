/* smtp/line: CRLF and nothing else ends a line, wherever the stream is cut. */
#include "smtp/line.h"

#include "base/buffer.h"
#include "t/support/must.h"
#include "t/support/tap.h"

/* The result of a stream: "[line]..." and then M, L (too long) or O (odd). Fed in steps
 * of size bytes. */
static void
run(struct text stream, size_t limit, size_t size, struct buffer *out)
{
    FIXTURE(buffer, held, buffer_init, buffer_free, 1 << 20);
    buffer_clear(out);
    enum progress progress = PROGRESS_MORE;
    enum line_fault fault = LINE_TOO_LONG;
    while (progress != PROGRESS_BAD && stream.length > 0) {
        must(buffer_add(&held, text_before(stream, size)));
        stream = text_after(stream, size);
        struct text input = buffer_text(&held), line;
        while ((progress = line_next(&input, limit, &line, &fault)) == PROGRESS_DONE)
            must(buffer_format(out, "[%.*s]", TEXT_ARGS(line)));
        buffer_take(&held, held.length - input.length);
    }
    const char *end = progress != PROGRESS_BAD ? "M" : fault == LINE_ODD ? "O" : "L";
    must(buffer_add(out, text_from(end)));
}

static void
gives(struct text stream, size_t limit, const char *want, const char *name)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 1 << 20);
    bool same = true;
    for (size_t size = 1; size <= stream.length; size++) {
        run(stream, limit, size, &out);
        if (!text_equal(buffer_text(&out), text_from(want))) {
            printf("# cut at %zu: %.*s\n", size, TEXT_ARGS(buffer_text(&out)));
            same = false;
        }
    }
    ok_named(same, name);
}

TEST(leaves_input_alone)
{
    struct text line, input = TEXT("NOOP"), whole = TEXT("NOOP\r\nQUIT\r\n");
    enum line_fault fault;
    ok(line_next(&input, 512, &line, &fault) == PROGRESS_MORE);
    is_number(input.length, 4, "MORE takes nothing");
    input = TEXT("a\nb");
    ok(line_next(&input, 512, &line, &fault) == PROGRESS_BAD);
    is_number(input.length, 3, "BAD takes nothing");
    ok(line_next(&whole, 512, &line, &fault) == PROGRESS_DONE);
    is_text(line, TEXT("NOOP"), "the line is without its end");
    is_text(whole, TEXT("QUIT\r\n"), "the rest stays");
    input = TEXT("");
    ok(line_next(&input, 512, &line, &fault) == PROGRESS_MORE);
}

/* The slow way to say what line_run() says. */
static size_t
run_by_bytes(struct text t)
{
    size_t run = 0;
    while (run < t.length && t.at[run] != '\r' && t.at[run] != '\n' &&
           t.at[run] != '\0')
        run++;
    return run;
}

/* Every byte at every place, before and behind those that could be taken for special
 * because of what stands beside them. */
TEST(run)
{
    static const char beside[] = {'x',    '\x01', '\x0b', '\x0c', '\x0e', '\x80',
                                  '\x8d', '\xff', '\r',   '\n',   '\0'};
    char bytes[27];
    unsigned wrong = 0;
    for (size_t start = 0; start < 9; start++)
        for (size_t length = 0; start + length <= sizeof(bytes); length++)
            for (size_t at = 0; at < length; at++)
                for (int byte = 0; byte < 256; byte++) {
                    memset(bytes, 'x', sizeof(bytes));
                    bytes[start + at] = (char)byte;
                    struct text t = text_of(bytes + start, length);
                    wrong += line_run(t) != run_by_bytes(t);
                    for (size_t i = 0; at + 1 < length && i < sizeof(beside); i++) {
                        bytes[start + at + 1] = beside[i];
                        wrong += line_run(t) != run_by_bytes(t);
                    }
                }
    is_number(wrong, 0, "a run ends at the first CR, LF or NUL and nowhere else");
    ok(line_run(TEXT("")) == 0);
}

int
main(void)
{
    tap_tests("");
    gives(TEXT("EHLO a\r\nMAIL\r\n\r\nQ"), 20, "[EHLO a][MAIL][]M",
          "lines in one stream");
    gives(TEXT("a\r"), 20, "M", "a CR at the end waits");
    gives(TEXT("a\nb\r\n"), 20, "O", "bare LF");
    gives(TEXT("\n"), 20, "O", "bare LF alone");
    gives(TEXT("a\rb\r\n"), 20, "O", "bare CR");
    gives(TEXT("ok\r\na\r\r\n"), 20, "[ok]O", "doubled CR");
    gives(TEXT("ok\r\n\n"), 20, "[ok]O", "doubled LF");
    gives(TEXT("a\0b\r\n"), 20, "O", "NUL");
    gives(TEXT("a\r\0\n"), 20, "O", "NUL between CR and LF");
    gives(TEXT("\xc2\x85\r\n"), 20, "[\xc2\x85]M", "NEL is no line end");
    gives(TEXT("12345678\r\nx"), 8, "[12345678]M", "exactly the limit");
    gives(TEXT("123456789\r\nx"), 8, "L", "one above the limit");
    gives(TEXT("123456789012345678901234567890"), 8, "L", "no end at all");
    gives(TEXT("12345678\n"), 8, "O", "odd at the limit");
    gives(TEXT("123456789\n"), 8, "L", "too long comes before odd behind it");
    return done();
}
