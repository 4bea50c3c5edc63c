/* Parts, headers, bodies and delimiters of many odd messages, cut at every byte. */
#include "mime/parts/structure.h"

#include "t/support/tap.h"

#include "t/support/structure_kit.h"

/* clang-format off */
static const struct sample {
    const char *name, *content, *trace;
} samples[] = {
    {"nothing", "", "(h<text/plain>-[])"},
    {"only an empty line", "\r\n", "(h<text/plain>-[\r\n])"},
    {"a plain message", "A: b\r\nC: d\r\n e\r\n\r\nbody\r\n",
     "(f[A: b\r\n]f[C: d\r\n e\r\n]h<text/plain>-[\r\n]b[body\r\n])"},
    {"bare line feeds", "A: b\n\nbody\n", "(f[A: b\n]h<text/plain>-[\n]b[body\n])"},
    {"header without an end", "A: b", "(f[A: b]h<text/plain>-[])"},
    {"header without a body", "A: b\r\n", "(f[A: b\r\n]h<text/plain>-[])"},
    {"no header at all", "hello\r\nyou", "(!a line that is no field ends the header.h<text/plain>-[]b[hello\r\nyou])"},
    {"a continuation of nothing", " x: y\r\n\r\nz", "(!a line that is no field ends the header.h<text/plain>-[]b[ x: y\r\n\r\nz])"},
    {"an odd line in the header", "A: b\r\nodd\r\nC: d\r\n",
     "(f[A: b\r\n]!a line that is no field ends the header.h<text/plain>-[]b[odd\r\nC: d\r\n])"},
    {"an odd line without an end", "A: b\r\nodd", "(f[A: b\r\n]!a line that is no field ends the header.h<text/plain>-[]b[odd])"},
    {"lone CR at the start of a line", "A: b\r\n\rx", "(f[A: b\r\n]!a line that is no field ends the header.h<text/plain>-[]b[\rx])"},
    {"multipart", "Content-Type: multipart/mixed; boundary=b\r\n\r\npre\r\n--b\r\n\r\none\r\n--b\r\nX: y\r\n\r\ntwo\r\n\r\n--b--\r\npost\r\n",
     "(f[Content-Type: multipart/mixed; boundary=b\r\n]h<*multipart/mixed>-[\r\n]o[pre]d[\r\n--b\r\n](h<text/plain>-[\r\n]b[one])"
     "d[\r\n--b\r\n](f[X: y\r\n]h<text/plain>-[\r\n]b[two\r\n])d[\r\n--b--\r\n]o[post\r\n])"},
    {"multipart with bare line feeds", "Content-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--b--\n",
     "(f[Content-Type: multipart/mixed; boundary=b\n]h<*multipart/mixed>-[\n]d[--b\n](h<text/plain>-[\n]b[one])d[\n--b--\n])"},
    {"delimiter at the very end", "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n\n--b--",
     "(f[Content-Type: multipart/mixed; boundary=b\n]h<*multipart/mixed>-[\n]d[--b\n](h<text/plain>-[\n])d[\n--b--])"},
    {"a delimiter that opens at the very end", "Content-Type: multipart/mixed; boundary=b\n\n--b",
     "(f[Content-Type: multipart/mixed; boundary=b\n]h<*multipart/mixed>-[\n]d[--b](h<text/plain>-[])!the closing boundary is missing.)"},
    {"space behind boundaries, more CR than needed", "Content-Type: multipart/x; boundary=\"b \"\n\n--b \t\r\r\n\nx\r\r\n--b-- \n\n",
     "(f[Content-Type: multipart/x; boundary=\"b \"\n]h<*multipart/x>-[\n]d[--b \t\r\r\n](h<text/plain>-[\n]b[x\r])d[\r\n--b-- \n]o[\n])"},
    {"lines that almost delimit", "Content-Type: multipart/x; boundary=b\n\n--b\n\n--bb\n--b-\n--b---\n -- b\n--\n-\n--B\n--b x\n--b",
     "(f[Content-Type: multipart/x; boundary=b\n]h<*multipart/x>-[\n]d[--b\n](h<text/plain>-[\n]b[--bb\n--b-\n--b---\n -- b\n--\n-\n--B\n--b x])d[\n--b](h<text/plain>-[])!the closing boundary is missing.!a line begins as a delimiter, but goes on.)"},
    {"a line that begins as an outer delimiter", "Content-Type: multipart/x; boundary=a\n\n--a\nContent-Type: multipart/y; boundary=b\n\n--b\n\nx\n--a x\n--b--\n--a--",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]d[--a\n](f[Content-Type: multipart/y; boundary=b\n]h<*multipart/y>-[\n]"
     "d[--b\n](h<text/plain>-[\n]b[x\n--a x])d[\n--b--\n])d[--a--]!a line begins as a delimiter, but goes on.)"},
    {"boundary is a prefix of its parent's",
     "Content-Type: multipart/x; boundary=ab\n\n--ab\nContent-Type: multipart/y; boundary=a\n\n--a\n\n1\n--ab\n\n2\n--a\n3\n--ab--\n",
     "(f[Content-Type: multipart/x; boundary=ab\n]h<*multipart/x>-[\n]d[--ab\n](f[Content-Type: multipart/y; boundary=a\n]h<*multipart/y>-[\n]"
     "d[--a\n](h<text/plain>-[\n]b[1])!the closing boundary is missing.)d[\n--ab\n](h<text/plain>-[\n]b[2\n--a\n3])d[\n--ab--\n])"},
    {"the parent's boundary is a prefix",
     "Content-Type: multipart/x; boundary=a\n\n--a\nContent-Type: multipart/y; boundary=ab\n\n--ab\n\n1\n--ab--\n--a--\n",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]d[--a\n](f[Content-Type: multipart/y; boundary=ab\n]h<*multipart/y>-[\n]"
     "d[--ab\n](h<text/plain>-[\n]b[1])d[\n--ab--\n])d[--a--\n])"},
    {"the same boundary twice: the inner one counts first",
     "Content-Type: multipart/x; boundary=a\n\n--a\nContent-Type: multipart/y; boundary=a\n\n--a\n\n1\n--a--\n--a--\n",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]d[--a\n](f[Content-Type: multipart/y; boundary=a\n]h<*multipart/y>-[\n]"
     "d[--a\n](h<text/plain>-[\n]b[1])d[\n--a--\n])d[--a--\n])"},
    {"a boundary that ends in dashes", "Content-Type: multipart/x; boundary=a--\n\n--a--\n\n1\n--a----\n",
     "(f[Content-Type: multipart/x; boundary=a--\n]h<*multipart/x>-[\n]d[--a--\n](h<text/plain>-[\n]b[1])d[\n--a----\n])"},
    {"after the close, the boundary is text", "Content-Type: multipart/x; boundary=a\n\n--a\n\n1\n--a--\n--a\n\n2\n--a--\n",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]d[--a\n](h<text/plain>-[\n]b[1])d[\n--a--\n]o[--a\n\n2\n--a--\n])"},
    {"parts without body, header or both", "Content-Type: multipart/x; boundary=a\n\n--a\nX: y\n--a\n--a\n\n--a\n\n\n--a--",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]d[--a\n](f[X: y\n]h<text/plain>-[])d[--a\n](h<text/plain>-[])"
     "d[--a\n](h<text/plain>-[\n])d[--a\n](h<text/plain>-[\n])d[\n--a--])"},
    {"no part ever", "Content-Type: multipart/x; boundary=a\n\n--b\n",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]o[--b\n]!the boundary never comes.)"},
    {"closed before it was opened", "Content-Type: multipart/x; boundary=a\n\n--a--\nx",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]d[--a--\n]o[x])"},
    {"no boundary", "Content-Type: multipart/x\n\n--\n", "(f[Content-Type: multipart/x\n]!a boundary is missing.h<multipart/x>-[\n]b[--\n])"},
    {"empty boundary", "Content-Type: multipart/x; boundary=\"  \"\n\n--\n",
     "(f[Content-Type: multipart/x; boundary=\"  \"\n]!a boundary is missing.h<multipart/x>-[\n]b[--\n])"},
    {"a message in a message in a part",
     "Content-Type: multipart/x; boundary=a\n\n--a\nContent-Type: message/rfc822\n\nContent-Type: message/global\n\nS: t\n\nx\n--a--",
     "(f[Content-Type: multipart/x; boundary=a\n]h<*multipart/x>-[\n]d[--a\n](f[Content-Type: message/rfc822\n]h<@message/rfc822>-[\n]"
     "(f[Content-Type: message/global\n]h<@message/global>-[\n](f[S: t\n]h<text/plain>-[\n]b[x])))d[\n--a--])"},
    {"an empty message in a message", "Content-Type: message/rfc822\n\n", "(f[Content-Type: message/rfc822\n]h<@message/rfc822>-[\n](h<text/plain>-[]))"},
    {"a message in a message without any body", "Content-Type: message/rfc822", "(f[Content-Type: message/rfc822]h<@message/rfc822>-[](h<text/plain>-[]))"},
    {"an odd line that begins the inner header too", "Content-Type: message/rfc822\nodd\nS: t\n",
     "(f[Content-Type: message/rfc822\n]!a line that is no field ends the header.h<@message/rfc822>-[]"
     "(!a line that is no field ends the header.h<text/plain>-[]b[odd\nS: t\n]))"},
    {"digest", "Content-Type: Multipart/DIGEST; boundary=a\n\n--a\n\nS: t\n\nx\n--a\nContent-Type: text/html\n\ny\n--a\nodd\n--a--\n",
     "(f[Content-Type: Multipart/DIGEST; boundary=a\n]h<*multipart/digest>-[\n]d[--a\n](h<@message/rfc822>-[\n](f[S: t\n]h<text/plain>-[\n]b[x]))"
     "d[\n--a\n](f[Content-Type: text/html\n]h<text/html>-[\n]b[y])"
     "d[\n--a\n](!a line that is no field ends the header.h<@message/rfc822>-[](!a line that is no field ends the header.h<text/plain>-[]b[odd]))d[\n--a--\n])"},
    {"a digest with nothing between delimiters", "Content-Type: multipart/digest; boundary=a\n\n--a\n--a\nX: y\n--a--\n",
     "(f[Content-Type: multipart/digest; boundary=a\n]h<*multipart/digest>-[\n]d[--a\n](h<@message/rfc822>-[](h<text/plain>-[]))"
     "d[--a\n](f[X: y\n]h<@message/rfc822>-[](h<text/plain>-[]))d[--a--\n])"},
    {"messages that are not looked into", "Content-Type: message/partial; id=x; number=1\n\nContent-Type: message/rfc822\n",
     "(f[Content-Type: message/partial; id=x; number=1\n]h<message/partial>-[\n]b[Content-Type: message/rfc822\n])"},
    {"an encoded message", "Content-Type: message/rfc822\nContent-Transfer-Encoding: BASE64\n\neA==\n",
     "(f[Content-Type: message/rfc822\n]f[Content-Transfer-Encoding: BASE64\n]!a multipart or message is labelled as encoded.h<message/rfc822>-[\n]b[eA==\n])"},
    {"an encoded message/global may be", "Content-Type: message/global\nContent-Transfer-Encoding: base64\n\neA==\n",
     "(f[Content-Type: message/global\n]f[Content-Transfer-Encoding: base64\n]h<message/global>-[\n]b[eA==\n])"},
    {"two types", "Content-Type: text/html\nContent-type: multipart/x; boundary=a\n\n--a\n",
     "(f[Content-Type: text/html\n]!two fields Content-Type.f[Content-type: multipart/x; boundary=a\n]h<text/html>-[\n]b[--a\n])"},
    {"two encodings, alike and not", "Content-Transfer-Encoding: 8bit\nContent-Transfer-Encoding: (x) 8BIT\nContent-Transfer-Encoding: uu\n\n",
     "(f[Content-Transfer-Encoding: 8bit\n]f[Content-Transfer-Encoding: (x) 8BIT\n]!two different fields Content-Transfer-Encoding.f[Content-Transfer-Encoding: uu\n]h<text/plain>-[\n])"},
    {"an unknown encoding", "Content-Transfer-Encoding: uu\n\n",
     "(!Content-Transfer-Encoding is unknown.f[Content-Transfer-Encoding: uu\n]h<text/plain>-[\n])"},
    {"a type that cannot be read", "Content-Type: text\n\nx", "(f[Content-Type: text\n]!Content-Type is malformed.h<text/>-[\n]b[x])"},
    {"a delimiter in a header, with a colon", "Content-Type: multipart/x; boundary=\"a:b\"\n\n--a:b\nX: y\n z\n--a:b\n--a:b--",
     "(f[Content-Type: multipart/x; boundary=\"a:b\"\n]h<*multipart/x>-[\n]d[--a:b\n](f[X: y\n z\n]h<text/plain>-[])d[--a:b\n](h<text/plain>-[])d[--a:b--])"},
    {"a boundary in RFC 2231's form", "Content-Type: multipart/x; boundary*0=a; boundary*1=b\n\n--ab--",
     "(f[Content-Type: multipart/x; boundary*0=a; boundary*1=b\n]h<*multipart/x>-[\n]d[--ab--])"},
};
/* clang-format on */

TEST(samples)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct text content = text_from(samples[i].content);
        struct trace whole = trace_of(content, 0, content.length);
        size_t wrong = whole.broken;
        is_text(buffer_text(&whole.text), text_from(samples[i].trace), samples[i].name);
        for (size_t first = 0; first <= content.length; first++)
            for (size_t piece = 1; piece <= content.length; piece++) {
                struct trace cut = trace_of(content, first, piece);
                wrong += cut.broken || !text_equal(buffer_text(&cut.text),
                                                   buffer_text(&whole.text));
                trace_free(&cut);
            }
        is_number(wrong, 0, "the same however it is cut");
        trace_free(&whole);
    }
}

/* --- Limits and bombs */

static struct buffer
repeat(const char *head, const char *unit, size_t count, const char *tail)
{
    struct buffer b;
    buffer_init(&b, 1 << 28);
    bool good = buffer_add(&b, text_from(head));
    for (size_t i = 0; i < count; i++)
        good = good && buffer_add(&b, text_from(unit));
    good = good && buffer_add(&b, text_from(tail));
    ok(good);
    return b;
}

struct count {
    size_t parts, ends, deepest, bytes, problems[PROBLEM_NOT_CLOSED + 1];
};

static void
count_event(void *context, const struct structure_event *e)
{
    struct count *c = context;
    c->parts += e->kind == STRUCTURE_BEGIN;
    c->ends += e->kind == STRUCTURE_END;
    c->bytes += e->bytes.length;
    c->deepest = e->part->depth > c->deepest ? e->part->depth : c->deepest;
    if (e->kind == STRUCTURE_PROBLEM)
        c->problems[e->problem]++;
}

/* Reads and frees it; every byte must be told, and every part end. */
static struct count
read_bomb(struct buffer *b, size_t piece)
{
    struct count c = {.parts = 0};
    struct structure *s = structure_new(count_event, &c);
    for (struct text t = buffer_text(b); t.length > 0; t = text_after(t, piece))
        structure_add(s, text_before(t, piece));
    structure_end(s);
    structure_free(&s);
    is_number(c.bytes, b->length, "every byte is told");
    is_number(c.ends, c.parts, "every part ends");
    buffer_free(b);
    return c;
}

TEST(depth)
{
    struct buffer b = repeat("", "Content-Type: message/rfc822\n\n", 5000, "S: t\n\nx\n");
    struct count c = read_bomb(&b, 4096);
    is_number(c.deepest, STRUCTURE_DEPTH_MAX, "5,000 messages in one another");
    is_number(c.problems[PROBLEM_TOO_DEEP], 1, "and it is told");
    buffer_init(&b, 1 << 24);
    bool good = true;
    for (int i = 0; i < 5000; i++)
        good = good && buffer_format(&b, "Content-Type: multipart/x; boundary=b%d\n\n--b%d\n", i, i);
    for (int i = 5000; i-- > 0;)
        good = good && buffer_format(&b, "\n--b%d--\n", i);
    ok(good);
    c = read_bomb(&b, 1000);
    is_number(c.deepest, STRUCTURE_DEPTH_MAX, "5,000 nested multiparts");
    is_number(c.parts, STRUCTURE_DEPTH_MAX + 1, "as many parts as levels");
    is_number(c.problems[PROBLEM_NOT_CLOSED], 0, "all that were looked into are closed");
}

TEST(parts)
{
    static const char head[] = "Content-Type: multipart/x; boundary=b\n\n";
    struct buffer b = repeat(head, "--b\n", 100000, "--b--\n");
    struct count c = read_bomb(&b, 777);
    is_number(c.parts, STRUCTURE_PARTS_MAX, "100,000 empty parts");
    is_number(c.problems[PROBLEM_TOO_MANY_PARTS], 1, "and it is told");
    b = repeat(head, "--b\n\nx\n", STRUCTURE_PARTS_MAX - 1, "--b--\n");
    c = read_bomb(&b, 777);
    is_number(c.parts, STRUCTURE_PARTS_MAX, "as many parts as may be");
    is_number(c.problems[PROBLEM_TOO_MANY_PARTS], 0, "is no problem");
}

TEST(long_headers)
{
    struct buffer b = repeat("X: ", "y", 1 << 20, "\nContent-Type: text/html\n\nbody\n");
    struct count c = read_bomb(&b, 5000);
    is_number(c.problems[PROBLEM_LONG_HEADER], 1, "a field of a megabyte");
    b = repeat("", "X: y\n", 300000, "\nbody\n");
    c = read_bomb(&b, 5000);
    is_number(c.problems[PROBLEM_LONG_HEADER], 1, "300,000 fields");
    b = repeat("Content-Type: multipart/x; boundary=\"", "b", 1 << 20, "\"\n\n--b\n");
    c = read_bomb(&b, 5000);
    is_number(c.problems[PROBLEM_LONG_HEADER], 1, "a boundary of a megabyte");
    b = repeat("Content-Type: multipart/x; boundary=\"", "b", STRUCTURE_BOUNDARY_MAX + 1,
               "\"\n\n--b\n");
    c = read_bomb(&b, 5000);
    is_number(c.problems[PROBLEM_LONG_BOUNDARY], 1, "a boundary one byte too long");
}

/* Long headers must be cut alike, too. */
TEST(long_headers_cut)
{
    static const char *const units[] = {"y", "\n y", "z\nX: "};
    static const size_t pieces[] = {1, 2, 1000, 65536};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct buffer b = repeat("A: b\nX: ", units[i], STRUCTURE_HEADER_MAX,
                                 "\nC: d\n e\nodd\n");
        struct trace whole = trace_of(buffer_text(&b), 0, b.length);
        for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
            struct trace cut = trace_of(buffer_text(&b), 7, pieces[p]);
            ok_named(!cut.broken &&
                         text_equal(buffer_text(&cut.text), buffer_text(&whole.text)),
                     "a long header is the same however it is cut");
            trace_free(&cut);
        }
        trace_free(&whole);
        buffer_free(&b);
    }
}

/* As long as may be, and one more: white space behind counts too. */
TEST(boundaries)
{
    struct buffer boundary = repeat("", "b", STRUCTURE_BOUNDARY_MAX, "");
    struct buffer space = repeat("", " ", STRUCTURE_PADDING_MAX, "");
    struct text name = buffer_text(&boundary), blank = buffer_text(&space);
    struct buffer b;
    buffer_init(&b, 1 << 20);
    ok(buffer_format(&b, "Content-Type: multipart/x; boundary=%.*s\n\n--%.*s%.*s\r\n\nx\n"
                         "--%.*s--\n",
                     TEXT_ARGS(name), TEXT_ARGS(name), TEXT_ARGS(blank), TEXT_ARGS(name)));
    struct count c = read_bomb(&b, 1);
    is_number(c.parts, 2, "the longest boundary with the most white space");
    is_number(c.problems[PROBLEM_NOT_CLOSED], 0, "is found at both ends");
    ok(buffer_format(&b, "Content-Type: multipart/x; boundary=b\n\n--b\n\nx\n--b%.*s %5000s\n"
                         "y\n--b--\n",
                     TEXT_ARGS(blank), ""));
    struct trace whole = trace_of(buffer_text(&b), 0, b.length);
    struct trace cut = trace_of(buffer_text(&b), 0, 1);
    is_text(buffer_text(&whole.text), buffer_text(&cut.text),
            "too much white space, cut or not");
    is_number(whole.begun, 2, "it is no delimiter");
    trace_free(&whole);
    trace_free(&cut);
    buffer_free(&b);
    buffer_free(&boundary);
    buffer_free(&space);
}

/* Megabytes of what a line may begin with, under 90 boundaries. */
TEST(lines)
{
    static const char *const units[] = {"\n", "\r\n", "--\n",     "--b\n ",
                                        "-",  "\r",   "--b0 \n-", "----------------\n"};
    FIXTURE(buffer, head, buffer_init, buffer_free, 1 << 20);
    bool good = true;
    for (int level = 0; level < 90; level++)
        good = good && buffer_format(&head, "Content-Type: multipart/x; boundary=b%dx\n\n--b%dx\n",
                                     level, level);
    good = good && buffer_add(&head, TEXT("\n\0"));
    ok(good);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        struct buffer b = repeat(head.at, units[i], 300000, "\n--b0x--\n");
        struct count c = read_bomb(&b, 30000);
        is_number(c.parts, 91, "the body of a deep part is read in time");
        is_number(c.problems[PROBLEM_NOT_CLOSED], 89, "and the outermost boundary ends it");
    }
}
