/* Fuzz target: the joiner. However bodies are cut into pieces, the result is that of a
 * reading of RFC 2046 §5.2.2.1 in memory, line by line; and where it cannot be written
 * to the end, the first bytes of that. */
#include "defrag/reassembly/reassemble.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 22, SEAM = 0xfe };

/* --- The rules, plainly */

static struct text
first_line(struct text t)
{
    size_t end = text_find(t, '\n');
    return text_before(t, end == TEXT_NONE ? t.length : end + 1);
}

static bool
is_empty_line(struct text line)
{
    return text_equal(line, TEXT("\n")) || text_equal(line, TEXT("\r\n"));
}

/* RFC 5322 §2.2, with §4.5's white space before the colon. */
static struct text
field_name(struct text line)
{
    size_t colon = text_find(line, ':');
    struct text name = text_before(line, colon == TEXT_NONE ? 0 : colon);
    while (name.length > 0 &&
           (name.at[name.length - 1] == ' ' || name.at[name.length - 1] == '\t'))
        name.length--;
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.at[i] <= ' ' || (unsigned char)name.at[i] >= 0x7f)
            return TEXT("");
    return name;
}

static bool
is_inner(struct text name)
{
    static const char *const names[] = {
        "subject", "message-id", "encrypted", "mime-version",
        "disposition-notification-to", "disposition-notification-options",
        "original-recipient"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (text_equal_nocase(name, text_from(names[i])))
            return true;
    return text_equal_nocase(text_before(name, 8), TEXT("content-"));
}

/* Copies the fields of one kind; returns what is behind the header. */
static struct text
copy_fields(struct text header, bool inner, struct buffer *to)
{
    while (header.length > 0) {
        struct text line = first_line(header), name = field_name(line);
        if (is_empty_line(line))
            return text_after(header, line.length);
        if (name.length == 0)
            return header;
        struct text rest = text_after(header, line.length), field = line;
        while (rest.length > 0 && (rest.at[0] == ' ' || rest.at[0] == '\t')) {
            struct text more = first_line(rest);
            field.length += more.length;
            rest = text_after(rest, more.length);
        }
        if (is_inner(name) == inner) {
            must(buffer_add(to, field));
            if (field.at[field.length - 1] != '\n')
                must(buffer_add(to, TEXT("\r\n")));
        }
        header = rest;
    }
    return header;
}

/* False: it begins with what is no header. */
static bool
join_plainly(struct text outer, struct text bodies, struct buffer *to)
{
    struct buffer joined;
    struct text body, rest = bodies;
    buffer_init(&joined, OUT_MAX);
    while (text_cut(&rest, (char)SEAM, &body)) {
        must(buffer_add(&joined, body));
        char last = body.length > 0 ? body.at[body.length - 1] : '\n';
        if (rest.at != NULL && last != '\n')
            must(buffer_add(&joined, last == '\r' ? TEXT("\n") : TEXT("\r\n")));
    }
    struct text whole = buffer_text(&joined), line = first_line(whole);
    bool good = whole.length == 0 || is_empty_line(line) || field_name(line).length > 0;
    if (good) {
        copy_fields(outer, false, to);
        struct text behind = copy_fields(whole, true, to);
        must(buffer_add(to, TEXT("\r\n")) && buffer_add(to, behind));
    }
    buffer_free(&joined);
    return good;
}

/* --- The joiner */

struct sink {
    struct buffer out;
    size_t space;
};

static bool
take(void *context, struct text bytes)
{
    struct sink *s = context;
    must(bytes.length > 0);
    if (bytes.length > s->space - s->out.length)
        return false;
    must(buffer_add(&s->out, bytes));
    return true;
}

/* steps: the sizes of pieces, over and over. */
static enum reassemble_trouble
join(struct text outer, struct text bodies, struct text steps, struct sink *to)
{
    struct reassemble j;
    struct text body, rest = bodies;
    size_t step = 0;
    bool good = true;
    reassemble_start(&j, outer, take, to);
    while (good && text_cut(&rest, (char)SEAM, &body)) {
        while (good && body.length > 0) {
            size_t length = (unsigned char)steps.at[step++ % steps.length] + 1u;
            good = reassemble_add(&j, text_before(body, length));
            body = text_after(body, length);
        }
        if (good && rest.at != NULL)
            good = reassemble_seam(&j);
    }
    good = good && reassemble_end(&j);
    must(good == (j.trouble == REASSEMBLE_GOOD));
    reassemble_free(&j);
    return j.trouble;
}

static void
check(struct text outer, struct text bodies, struct text steps, size_t space)
{
    struct buffer wanted;
    struct sink sink = {.space = space};
    buffer_init(&wanted, OUT_MAX);
    buffer_init(&sink.out, OUT_MAX);
    bool is_message = join_plainly(outer, bodies, &wanted);
    enum reassemble_trouble trouble = join(outer, bodies, steps, &sink);
    must((trouble == REASSEMBLE_NO_HEADER) == !is_message);
    must(trouble != REASSEMBLE_GOOD || sink.out.length == wanted.length);
    must(trouble != REASSEMBLE_NO_WRITE || wanted.length > space);
    must(text_starts(buffer_text(&wanted), buffer_text(&sink.out)));
    buffer_free(&wanted);
    buffer_free(&sink.out);
}

/* Four bytes of sizes, one of how much is the outer header, one of space; then header
 * and bodies, with a byte SEAM at each seam. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 6)
        return 0;
    char *copy = malloc(size);
    must(copy != NULL);
    memcpy(copy, data, size);
    struct text all = text_of(copy, size), content = text_after(all, 6);
    struct text outer = text_before(content, content.length * data[4] / 255);
    struct text bodies = text_after(content, outer.length);
    bodies.at = bodies.length > 0 ? bodies.at : copy;
    check(outer, bodies, text_before(all, 4), data[5] == 255 ? SIZE_MAX : data[5]);
    check(outer, bodies, text_before(all, 4), SIZE_MAX);
    free(copy);
    return 0;
}
