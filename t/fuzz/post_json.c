/* Fuzz target: a message of members, and an address of an envelope. Cuts change nothing, contents are strings of
 * the body, an error can be told as JSON, and no value makes a field of its own or a long line. */
#include "admin/post/post_json.h"
#include "admin/post/posting.h"

#include "t/support/must.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE = 998, HEADER = 4 * 1024 * 1024 };

/* Lines end in CRLF, and only folds begin with white space: the fields, by their count. */
static size_t
fields_of(struct text t)
{
    size_t fields = 0;
    struct text line;
    while (t.length > 0) {
        size_t end = text_find(t, '\n');
        must(end != TEXT_NONE && end > 0 && t.at[end - 1] == '\r' && end <= LINE + 1);
        line = text_before(t, end - 1);
        must(memchr(line.at, '\r', line.length) == NULL && memchr(line.at, 0, line.length) == NULL);
        must(line.length > 0 && text_trim(line).length > 0);
        fields += line.at[0] != ' ' && line.at[0] != '\t';
        t = text_after(t, end + 1);
    }
    return fields;
}

static void
check_header(const struct post_json *j)
{
    struct buffer out;
    size_t fields = 2;
    buffer_init(&out, HEADER);
    bool fits = compose_mailboxes(&out, TEXT("From"), &j->from, 1);
    must(!fits || fields_of(buffer_text(&out)) == 1);
    fits = fits && compose_mailboxes(&out, TEXT("To"), j->mailboxes, j->mailbox_count);
    for (size_t i = 0; i < j->field_count; i++, fields++)
        fits = fits && compose_field(&out, j->field_names[i], j->field_values[i]);
    fits = fits && compose_field(&out, TEXT("Subject"), j->subject) && compose_field(&out, TEXT("X-Petrel-Tag"), j->tag);
    must(!fits || fields_of(buffer_text(&out)) == fields + 2);
    buffer_free(&out);
}

static void
check_structure(const struct post_json *j, struct text body)
{
    static struct compose compose;
    size_t at = 0;
    bool fits = compose_structure(&compose, j->parts, j->part_count, TEXT("0123456789abcdef"), HEADER);
    must(fits && compose.count == j->part_count + 1);
    for (size_t i = 0; i < compose.count; i++) {
        const struct compose_step *s = &compose.steps[i];
        must(s->from == at && s->to >= at && s->to <= compose.literals.length && s->part < (int)j->part_count);
        at = s->to;
        if (s->part < 0)
            continue;
        const struct post_content *c = &j->contents[s->part];
        must(c->to > c->from && c->to <= body.length && body.at[c->from] == '"' && body.at[c->to - 1] == '"');
    }
    compose_free(&compose);
}

static void
check_error(const struct post_json *j)
{
    must(j->why != NULL && j->rule != NULL && strlen(j->field) < POST_FIELD_NAME_MAX);
    must(text_is_utf8(text_from(j->field)));
}

static void
check_envelope(struct text list)
{
    static struct posting p;
    struct text one;
    size_t added = 0;
    memset(&p, 0, sizeof(p));
    buffer_init(&p.envelope, POST_ENVELOPE_MAX);
    while (list.length > 0 && text_cut(&list, ',', &one))
        added += posting_add(&p, one) == NULL;
    size_t nuls = 0;
    for (size_t i = 0; i < p.envelope.length; i++) {
        nuls += p.envelope.at[i] == '\0';
        must(p.envelope.at[i] == '\0' || (unsigned char)p.envelope.at[i] >= ' ');
    }
    must(nuls >= added && p.recipients <= POST_RECIPIENTS_MAX && (added == 0 || p.recipients + 1 >= added));
    buffer_free(&p.envelope);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct post_json whole, cut;
    struct text body = text_of(data, size), rest = body;
    post_json_start(&whole);
    post_json_start(&cut);
    bool first = post_json_add(&whole, body) && post_json_end(&whole), second = true;
    for (size_t i = 1; rest.length > 0 && second; rest = text_after(rest, i), i = i % 7 + 1)
        second = post_json_add(&cut, text_before(rest, i));
    second = second && post_json_end(&cut);
    must(first == second && whole.mailbox_count == cut.mailbox_count && whole.part_count == cut.part_count);
    must(strcmp(whole.field, cut.field) == 0);
    if (first) {
        check_header(&whole);
        check_structure(&whole, body);
    } else {
        check_error(&whole);
    }
    post_json_free(&whole);
    post_json_free(&cut);
    check_envelope(body);
    return 0;
}
