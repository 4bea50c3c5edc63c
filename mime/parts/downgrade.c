/* The second pass of down-conversion: executes the plan of the first.
 *
 * It parses the content again and writes each event as it is, or converted. Both passes
 * receive the same bytes and use the same parser, so part numbers agree and a plan is
 * an index. No decision is made here: the next hop has MAIL with the maximum size
 * before the first byte is written. */
#include "mime/parts/downgrade.h"

#include "mime/parts/downgrade_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- Writing */

static void
emit(struct downgrade *d, struct text bytes)
{
    if (bytes.length == 0)
        return;
    d->last_out = bytes.at[bytes.length - 1];
    d->soft_end = false;
    d->write(d->context, bytes);
}

static void
emit_coded(void *context, struct text bytes)
{
    emit(context, bytes);
}

static void
feed_encoder(struct downgrade *d, struct text bytes)
{
    if (d->plan[d->encoded].body == PLAN_QUOTED)
        quoted_add(&d->quoted, bytes);
    else
        base64_lines_add(&d->base64, bytes);
}

/* Adds a CR to each lone LF; last_in is the byte before these. Nearly all content has
 * none: then the scan has not set `untidy`, and nothing is searched. */
static void
with_line_ends(struct downgrade *d, struct text bytes,
               void (*put)(struct downgrade *d, struct text bytes))
{
    size_t start = 0, at = 0;
    while (d->untidy && at < bytes.length) {
        size_t end = text_find(text_after(bytes, at), '\n');
        if (end == TEXT_NONE)
            break;
        at += end;
        if ((at > 0 ? bytes.at[at - 1] : d->last_in) != '\r') {
            put(d, text_of(bytes.at + start, at - start));
            put(d, TEXT("\r"));
            start = at;
        }
        at++;
    }
    put(d, text_after(bytes, start));
}

static void
copy(struct downgrade *d, struct text bytes)
{
    with_line_ends(d, bytes, emit);
}

/* --- Headers */

/* Folds lines that are too long, at the same places as the scan, which counted the
 * added bytes. A field without a place to fold was forbidden there. */
static void
copy_field(struct downgrade *d, struct text bytes)
{
    while (bytes.length > DOWNGRADE_LINE_MAX) {
        size_t end = text_find(bytes, '\n');
        struct text whole =
            text_before(bytes, end == TEXT_NONE ? bytes.length : end + 1);
        struct text line = text_before(bytes, end);
        if (line.length > 0 && line.at[line.length - 1] == '\r')
            line.length--;
        size_t at = line.length > DOWNGRADE_LINE_MAX ? downgrade_fold(line) : 0;
        if (at > 0) {
            emit(d, text_before(line, at));
            emit(d, TEXT("\r\n"));
            bytes = text_after(bytes, at);
        } else {
            copy(d, whole);
            bytes = text_after(bytes, whole.length);
            d->last_in = '\n';
        }
    }
    copy(d, bytes);
}

/* A second field is dropped: two labels that agree are one. */
static void
write_label(struct downgrade *d, const struct plan *plan)
{
    enum structure_encoding label = plan->body == PLAN_QUOTED   ? ENCODING_QUOTED
                                    : plan->body == PLAN_BASE64 ? ENCODING_BASE64
                                                                : plan->label;
    const char *name = structure_encoding_name(label);
    if (!d->labelled) {
        emit(d, TEXT("Content-Transfer-Encoding: "));
        emit(d, text_from(name));
        emit(d, TEXT("\r\n"));
    }
    d->labelled = true;
}

/* Bytes without a name are from a header too long to be parsed, which the scan examined
 * as a whole. */
static void
convert_field(struct downgrade *d, const struct structure_event *e)
{
    const struct plan *plan = &d->plan[e->part->number];
    if ((plan->relabel || plan->body != PLAN_KEEP) &&
        text_equal_nocase(e->name, TEXT("content-transfer-encoding")))
        write_label(d, plan);
    else if (e->name.length == 0)
        copy(d, e->bytes);
    else
        copy_field(d, e->bytes);
}

/* New fields come last in the header, so that all present ones keep their order. */
static void
convert_header(struct downgrade *d, const struct structure_event *e)
{
    const struct plan *plan = &d->plan[e->part->number];
    if (plan->add_version)
        emit(d, TEXT("MIME-Version: 1.0\r\n"));
    if (plan->add_type)
        emit(d, TEXT("Content-Type: text/plain; charset=unknown-8bit\r\n"));
    if (plan->body != PLAN_KEEP)
        write_label(d, plan);
    copy(d, e->bytes);
    if (plan->body == PLAN_KEEP)
        return;
    if (e->bytes.length == 0) /* a body's odd line ended the header */
        emit(d, TEXT("\r\n"));
    d->encoding = true;
    d->encoded = e->part->number;
    if (plan->body == PLAN_QUOTED)
        quoted_start(&d->quoted, emit_coded, d);
    else
        base64_lines_start(&d->base64, emit_coded, d);
}

/* --- Bodies */

/* In binary content a lone LF is data; in other content it is a line end. */
static void
encode_bytes(struct downgrade *d, struct text bytes)
{
    if (d->way.from_binary)
        feed_encoder(d, bytes);
    else
        with_line_ends(d, bytes, feed_encoder);
}

/* A body of quoted-printable may end within a line. If that is the end of the content,
 * too, a soft line break ends the line, which adds no data. */
static void
end_encoding(struct downgrade *d)
{
    d->encoding = false;
    if (d->plan[d->encoded].body == PLAN_BASE64)
        base64_lines_end(&d->base64);
    else if (quoted_end(&d->quoted) > 0)
        d->soft_end = true;
}

static void
end_outside_line(struct downgrade *d)
{
    emit(d, TEXT("\r\n"));
    d->column = 0;
}

static void
put_outside(struct downgrade *d, char c)
{
    if (d->column == DOWNGRADE_LINE_MAX)
        end_outside_line(d);
    if (c == '\0' || c == '\r' || ((unsigned char)c >= 0x80 && !d->way.to_8bit))
        c = '?';
    emit(d, text_of(&c, 1));
    d->column++;
}

/* Bytes outside parts cannot be encoded: they are replaced, since no reader displays
 * them. A CR waits for the byte behind it, which may be in the next piece. */
static void
copy_outside(struct downgrade *d, struct text bytes)
{
    for (size_t i = 0; i < bytes.length; i++) {
        char c = bytes.at[i];
        if (d->outside_cr && c != '\n') /* not a line end */
            put_outside(d, '\r');
        d->outside_cr = c == '\r';
        if (c == '\n')
            end_outside_line(d);
        else if (c != '\r')
            put_outside(d, c);
    }
}

/* No byte comes behind a CR that waits. */
static void
downgrade_end_outside(struct downgrade *d)
{
    if (d->outside_cr)
        put_outside(d, '\r');
    d->outside_cr = false;
}

static void
convert_outside(struct downgrade *d, const struct structure_event *e)
{
    if (d->plan[e->part->number].dirty)
        copy_outside(d, e->bytes);
    else
        copy(d, e->bytes);
}

/* A delimiter right behind the header of an inner message, which is encoded now, has
 * no line end before it. */
static void
convert_delimiter(struct downgrade *d, const struct structure_event *e)
{
    if (d->last_out != '\n' && e->bytes.at[0] == '-')
        emit(d, TEXT("\r\n"));
    copy(d, e->bytes);
    d->column = 0;
}

static void
convert_kind(struct downgrade *d, const struct structure_event *e)
{
    switch (e->kind) {
    case STRUCTURE_BEGIN:
        d->labelled = false;
        break;
    case STRUCTURE_FIELD:
        convert_field(d, e);
        break;
    case STRUCTURE_HEADER:
        convert_header(d, e);
        d->column = 0;
        break;
    case STRUCTURE_OUTSIDE:
        convert_outside(d, e);
        break;
    case STRUCTURE_DELIMITER:
        convert_delimiter(d, e);
        break;
    case STRUCTURE_BODY:
        copy(d, e->bytes);
        break;
    case STRUCTURE_END:
    case STRUCTURE_PROBLEM:
        break;
    }
}

/* While a part is encoded, all events up to its END are its bytes: those of a
 * message/global have a structure of their own. */
static void
convert_event(void *context, const struct structure_event *e)
{
    struct downgrade *d = context;
    if (e->bytes.length > 0 && e->kind != STRUCTURE_OUTSIDE)
        downgrade_end_outside(d);
    if (e->part->number >= d->planned) /* other content than in the scan */
        copy(d, e->bytes);
    else if (!d->encoding)
        convert_kind(d, e);
    else if (e->kind == STRUCTURE_END && e->part->number == d->encoded)
        end_encoding(d);
    else
        encode_bytes(d, e->bytes);
    if (e->bytes.length > 0)
        d->last_in = e->bytes.at[e->bytes.length - 1];
}

static void
downgrade_stop(struct downgrade *d)
{
    if (d->encoding && d->plan[d->encoded].body == PLAN_BASE64)
        base64_lines_free(&d->base64);
    d->encoding = false;
    structure_free(&d->structure);
}

/* The plan stays valid, so the conversion can be started again from the first byte. */
void
downgrade_start(struct downgrade *d, void (*write)(void *context, struct text bytes),
                void *context)
{
    assert(d->verdict == DOWNGRADE_CONVERTIBLE);
    downgrade_stop(d);
    d->write = write;
    d->context = context;
    d->labelled = d->soft_end = d->outside_cr = false;
    d->last_in = d->last_out = '\n';
    d->column = 0;
    d->structure = structure_new(convert_event, d);
}

void
downgrade_add(struct downgrade *d, struct text piece)
{
    structure_add(d->structure, piece);
}

void
downgrade_end(struct downgrade *d)
{
    structure_end(d->structure);
    structure_free(&d->structure);
    downgrade_end_outside(d);
    if (d->last_out == '\n')
        return;
    emit(d, d->soft_end ? TEXT("=\r\n") : TEXT("\r\n"));
}

void
downgrade_free(struct downgrade **d)
{
    if (*d == NULL)
        return;
    downgrade_stop(*d);
    free((*d)->plan);
    free(*d);
    *d = NULL;
}
