/* Reassembles fragments: merges two headers, passes the bodies through.
 *
 * Only the header within is buffered. The header of the message cannot be written
 * before it is complete: it shows whether there are fields at all, and a Subject. It
 * may end in any fragment, so a header_scan looks for its end across pieces and seams.
 * Everything behind is passed on unchanged. */
#include "defrag/reassembly/reassemble.h"

#include <assert.h>

/* True: fields of that name are taken from the inner header. */
static bool
is_inner(struct text name)
{
    static const struct text names[] = {
        TEXT("Subject"),
        TEXT("Message-ID"),
        TEXT("Encrypted"),
        TEXT("MIME-Version"),
        TEXT("Disposition-Notification-To"),
        TEXT("Disposition-Notification-Options"),
        TEXT("Original-Recipient"),
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (text_equal_nocase(name, names[i]))
            return true;
    return text_starts_nocase(name, TEXT("Content-"));
}

static bool
reassemble_fail(struct reassemble *j, enum reassemble_trouble trouble)
{
    if (j->trouble == REASSEMBLE_GOOD)
        j->trouble = trouble;
    return false;
}

static bool
reassemble_put(struct reassemble *j, struct text bytes)
{
    return bytes.length == 0 || j->write(j->context, bytes) ||
           reassemble_fail(j, REASSEMBLE_NO_WRITE);
}

/* The last field of a header may end with the message. */
static bool
put_field(struct reassemble *j, struct text whole)
{
    return reassemble_put(j, whole) &&
           (text_ends_nocase(whole, TEXT("\n")) || reassemble_put(j, TEXT("\r\n")));
}

/* The scan decides at a line end, which a single line may lack. */
static bool
is_no_header(struct text t)
{
    struct header_field field;
    struct text rest = t;
    return !header_next(&rest, &field) && rest.length == t.length;
}

static bool
is_subject(const struct header_field *field)
{
    return text_equal_nocase(field->name, TEXT("Subject"));
}

static bool
has_subject(struct text header)
{
    struct header_field field;
    bool found = false;
    while (!found && header_next(&header, &field))
        found = is_subject(&field);
    return found;
}

static bool
put_outer(struct reassemble *j, bool with_subject)
{
    struct header_field field;
    struct text rest = j->outer;
    while (header_next(&rest, &field))
        if ((!is_inner(field.name) || (with_subject && is_subject(&field))) &&
            !put_field(j, field.whole))
            return false;
    return true;
}

/* Leaves in *header the rest after the fields. */
static bool
put_inner(struct reassemble *j, struct text *header)
{
    struct header_field field;
    while (header_next(header, &field))
        if (is_inner(field.name) && !put_field(j, field.whole))
            return false;
    return true;
}

/* A line that is not a field ends the header, too, and begins the body. */
static bool
reassemble_write_header(struct reassemble *j)
{
    struct text rest = buffer_text(&j->inner);
    if (j->scan.headless || (rest.length > 0 && is_no_header(rest)))
        return reassemble_fail(j, REASSEMBLE_NO_HEADER);
    j->has_header = true;
    return put_outer(j, j->keeps_subject && !has_subject(rest)) &&
           put_inner(j, &rest) && reassemble_put(j, TEXT("\r\n")) &&
           reassemble_put(j, rest);
}

void
reassemble_start(struct reassemble *j, struct text outer, reassemble_write *write,
                 void *context)
{
    *j = (struct reassemble){.outer = outer, .write = write, .context = context};
    buffer_init(&j->inner, REASSEMBLE_HEADER_MAX);
    header_scan_start(&j->scan);
}

bool
reassemble_add(struct reassemble *j, struct text bytes)
{
    if (j->trouble != REASSEMBLE_GOOD)
        return false;
    if (bytes.length > 0) {
        j->has_last = true;
        j->last = bytes.at[bytes.length - 1];
    }
    if (j->has_header)
        return reassemble_put(j, bytes);
    header_scan_add(&j->scan, bytes);
    if (!buffer_add(&j->inner, bytes)) {
        /* Bytes after the header are not part of it. */
        size_t before = j->inner.length;
        size_t space = REASSEMBLE_HEADER_MAX - before;
        if (!j->scan.ended || j->scan.length + 2 > REASSEMBLE_HEADER_MAX)
            return reassemble_fail(j, REASSEMBLE_LONG_HEADER);
        bool fits = buffer_add(&j->inner, text_before(bytes, space));
        assert(fits);
        return reassemble_write_header(j) &&
               reassemble_put(j, text_after(bytes, space));
    }
    return !j->scan.ended || reassemble_write_header(j);
}

bool
reassemble_seam(struct reassemble *j)
{
    /* A CR that is there already is half of the line end. */
    struct text end = j->last == '\r' ? TEXT("\n") : TEXT("\r\n");
    /* An empty body has no line to end. */
    if (j->has_last && j->last != '\n' && !reassemble_add(j, end))
        return false;
    j->has_last = false;
    return j->trouble == REASSEMBLE_GOOD;
}

bool
reassemble_end(struct reassemble *j)
{
    if (j->trouble == REASSEMBLE_GOOD && !j->has_header) /* it is all header */
        return reassemble_write_header(j);
    return j->trouble == REASSEMBLE_GOOD;
}

void
reassemble_free(struct reassemble *j)
{
    buffer_free(&j->inner);
}

const char *
reassemble_trouble_text(enum reassemble_trouble trouble)
{
    switch (trouble) {
    case REASSEMBLE_GOOD:
        break;
    case REASSEMBLE_NO_HEADER:
        return "its first line is no header field";
    case REASSEMBLE_LONG_HEADER:
        return "the header within is too long";
    case REASSEMBLE_NO_WRITE:
        return "it cannot be stored";
    }
    return "nothing";
}
