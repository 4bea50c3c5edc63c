/* Down-conversion of content for next hops without 8BITMIME or BINARYMIME: a first pass
 * plans, a second one converts. Both receive the same bytes and use the same parser, so
 * part numbers agree and a plan is an index. */
#include "mime/parts/downgrade.h"

#include "base/memory.h"
#include "mime/parts/encode.h"
#include "mime/parts/structure.h"
#include "mime/parts/mime_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum plan_body { PLAN_KEEP, PLAN_QUOTED, PLAN_BASE64 };

/* The conversion of one part. */
struct plan {
    enum plan_body body;
    enum structure_encoding label; /* 7BIT or 8BIT instead of the present one */
    bool relabel;
    bool add_type;    /* text/plain; charset=unknown-8bit */
    bool add_version; /* MIME-Version */
    /* its preamble or epilogue has bytes that are not allowed there */
    bool dirty;
    bool is_message, has_version;
};

struct downgrade {
    struct downgrade_way way;
    enum downgrade_verdict verdict;
    bool is_fragment; /* the message itself */
    enum downgrade_reason reason;
    struct structure *structure; /* of the pass that is under way */
    size_t planned, capacity;
    struct plan *plan; /* by part number */
    bool needed, dkim;
    bool untidy; /* there is a LF without CR */
    uint64_t size_max;
    /* Scan. */
    unsigned path[STRUCTURE_DEPTH_MAX + 1]; /* numbers of the open parts */
    /* all bytes up to the end of the part belong to it */
    bool watching;
    unsigned watched;              /* its number */
    enum downgrade_reason blocked; /* the reason not to encode it, or none */
    bool is_text, has_type;
    struct mime_counts counts, raw;
    /* Conversion. */
    void (*write)(void *context, struct text bytes);
    void *context;
    bool encoding, labelled, soft_end;
    unsigned encoded; /* number of the part that is being encoded */
    char last_in, last_out;
    size_t column;   /* of a preamble's line */
    bool outside_cr; /* its last byte was a CR, which is not written yet */
    struct encode_quoted quoted;
    struct encode_base64 base64;
};

/* --- The first pass: the plan ----------------------------------------------------- */

/* The first pass examines each part and plans its conversion.
 *
 * The whole content is scanned before MAIL, so that a message that can be converted
 * only in part is never begun at a host. Each part is counted up to its END,
 * and only then is its plan known. The maximum size of the result grows with every
 * change that is planned. A label alone never makes conversion necessary, as the bytes
 * decide: wrong labels are corrected only in a message that is converted for another
 * reason. */

enum {
    FIELDS_MAX = 150,  /* bytes of the fields that may be added to a part */
    LABEL_GROWTH = 50, /* bytes by which a label may grow */
    READABLE =
        6 /* quoted-printable for text with at most one odd byte in this number */
};

/* The first reason counts: the sender reads it. */
static void
downgrade_scan_forbid(struct downgrade *d, enum downgrade_reason reason)
{
    assert(reason != DOWNGRADE_NO_REASON);
    d->needed = true;
    if (d->reason == DOWNGRADE_NO_REASON)
        d->reason = reason;
}

static void
note_line_ends(struct downgrade *d, const struct mime_counts *t)
{
    if (t->lone_lf == 0)
        return;
    d->needed = d->untidy = true;
    d->size_max += t->lone_lf;
}

/* Bytes that the next hop does not accept anywhere. Lone LFs are not among them: as
 * line ends they become CRLF, and end_watched() adds those that are data. */
static bool
has_foreign(const struct downgrade *d, const struct mime_counts *t)
{
    return (t->high > 0 && !d->way.to_8bit) || t->nul > 0 || t->lone_cr > 0;
}

/* The capacity doubles, since a message may have many small parts. */
static struct plan *
plan_of(struct downgrade *d, unsigned number)
{
    if (number >= d->capacity) {
        size_t capacity = number < 8 ? 8 : 2 * (size_t)number;
        d->plan = memory_resize(d->plan, capacity * sizeof(d->plan[0]));
        d->capacity = capacity;
    }
    while (d->planned <= number)
        d->plan[d->planned++] = (struct plan){0};
    return &d->plan[number];
}

static struct mime_counts
mime_counts_of(struct text bytes)
{
    struct mime_counts t = {0};
    mime_counts_add(&t, bytes);
    mime_counts_end(&t);
    return t;
}

/* --- Headers */

/* Where a header line longer than DOWNGRADE_LINE_MAX can be folded: at the last
 * white space within the limit. 0: nowhere. line: without its line end. White space
 * at which a line can be folded follows a word and precedes one: else a line of
 * white space alone would result, which some software takes for the end of the
 * header. */
static size_t
downgrade_fold(struct text line)
{
    assert(line.length > DOWNGRADE_LINE_MAX);
    for (size_t at = DOWNGRADE_LINE_MAX; at > 0; at--) {
        bool space = line.at[at] == ' ' || line.at[at] == '\t';
        bool after_word = line.at[at - 1] != ' ' && line.at[at - 1] != '\t';
        if (space && after_word && text_trim(text_after(line, at)).length > 0)
            return at;
    }
    return 0;
}

/* The same steps as those of copy_field() in the second pass: size_max must count every
 * line end that it adds. */
static bool
can_fold(struct downgrade *d, struct text bytes)
{
    while (bytes.length > 0) {
        size_t end = text_find(bytes, '\n');
        struct text line = text_before(bytes, end == TEXT_NONE ? bytes.length : end);
        bytes = text_after(bytes, line.length + 1);
        if (line.length > 0 && line.at[line.length - 1] == '\r')
            line.length--;
        while (line.length > DOWNGRADE_LINE_MAX) {
            size_t at = downgrade_fold(line);
            if (at == 0)
                return false;
            line = text_after(line, at);
            d->size_max += 2;
        }
    }
    return true;
}

/* No header field can be encoded without knowledge of its syntax: 8-bit bytes in one
 * forbid the conversion. */
static void
scan_field(struct downgrade *d, const struct structure_event *e)
{
    if (e->name.length == 0) { /* not split into fields, so it cannot be folded */
        mime_counts_add(&d->raw, e->bytes);
        return;
    }
    struct mime_counts t = mime_counts_of(e->bytes);
    note_line_ends(d, &t);
    if (has_foreign(d, &t))
        downgrade_scan_forbid(d, DOWNGRADE_HEADER);
    if (t.longest > DOWNGRADE_LINE_MAX) {
        d->needed = true;
        if (!can_fold(d, e->bytes))
            downgrade_scan_forbid(d, DOWNGRADE_HEADER);
    }
    if (e->part->depth == 0 && text_equal_nocase(e->name, TEXT("dkim-signature")))
        d->dkim = true;
}

/* A header that is too long is not split into fields, so nothing in it can be
 * converted. */
static void
scan_raw(struct downgrade *d)
{
    mime_counts_end(&d->raw);
    note_line_ends(d, &d->raw);
    if (has_foreign(d, &d->raw) || d->raw.longest > DOWNGRADE_LINE_MAX)
        downgrade_scan_forbid(d, DOWNGRADE_HEADER);
    d->raw = (struct mime_counts){0};
}

/* message/global and related types may be encoded, other messages may not (RFC 6532
 * §3.5). */
static bool
is_global(const struct parameters *type)
{
    return text_equal(type->type, TEXT("message")) &&
           (text_equal(type->subtype, TEXT("global")) ||
            text_starts(type->subtype, TEXT("global-")));
}

/* The reason not to convert a part. A structure with two readings is one: the receiver
 * might choose the other. */
static enum downgrade_reason
blocked_by(const struct structure_part *part)
{
    const struct parameters *type = part->type;
    unsigned doubts = 1u << PROBLEM_TWO_TYPES | 1u << PROBLEM_TWO_ENCODINGS |
                      1u << PROBLEM_LONG_HEADER;
    /* Without an empty line the inner message's fields would become the outer's. */
    if (part->holds == STRUCTURE_MESSAGE)
        doubts |= 1u << PROBLEM_ODD_LINE;
    if ((part->problems & doubts) != 0)
        return DOWNGRADE_BROKEN;
    if (parameters_is(type, "multipart", "signed"))
        return DOWNGRADE_SIGNED;
    if (parameters_is(type, "multipart", "encrypted"))
        return DOWNGRADE_ENCRYPTED;
    if (parameters_is(type, "message", "partial"))
        return DOWNGRADE_PARTIAL;
    if (parameters_is(type, "message", "external-body"))
        return DOWNGRADE_EXTERNAL;
    if (part->encoding > ENCODING_BINARY)
        return DOWNGRADE_ENCODED;
    bool composite = text_equal(type->type, TEXT("multipart")) ||
                     text_equal(type->type, TEXT("message"));
    if (part->holds == STRUCTURE_LEAF && composite && !is_global(type))
        return DOWNGRADE_COMPOSITE;
    return DOWNGRADE_NO_REASON;
}

/* A label that claims more than is still true. high: the part has bytes above 127, or
 * is a composite one, whose inner parts may have them. */
static void
relabel(struct downgrade *d, struct plan *plan, enum structure_encoding has, bool high)
{
    bool may_8bit = d->way.to_8bit && high;
    if (has != ENCODING_BINARY && (has != ENCODING_8BIT || d->way.to_8bit))
        return;
    plan->relabel = true;
    plan->label = may_8bit ? ENCODING_8BIT : ENCODING_7BIT;
    d->size_max += LABEL_GROWTH;
}

/* The bytes behind this header belong to the part alone (`watching`), or to its inner
 * parts, which have plans of their own. A part that must not be converted is watched as
 * a whole, with all parts in it. */
static void
scan_header(struct downgrade *d, const struct structure_event *e)
{
    const struct structure_part *part = e->part;
    struct plan *plan = plan_of(d, part->number);
    struct mime_counts t = mime_counts_of(e->bytes);
    note_line_ends(d, &t);
    scan_raw(d);
    plan->is_message = part->is_message;
    plan->has_version = part->has_version;
    d->path[part->depth] = part->number;
    d->blocked = blocked_by(part);
    d->is_fragment =
        d->is_fragment || (part->depth == 0 && d->blocked == DOWNGRADE_PARTIAL);
    d->counts = (struct mime_counts){0};
    d->watching = part->holds == STRUCTURE_LEAF || d->blocked != DOWNGRADE_NO_REASON ||
                  is_global(part->type);
    if (!d->watching) {
        relabel(d, plan, part->encoding, true);
        return;
    }
    d->watched = part->number;
    d->is_text = text_equal(part->type->type, TEXT("text")) ||
                 (part->problems & 1u << PROBLEM_BROKEN_TYPE) != 0;
    d->has_type = part->has_type;
}

/* --- Bodies */

/* RFC 2045 §4: only with MIME-Version have the fields that are added a meaning. It
 * belongs to the header of the innermost message that contains the part. */
static void
add_version(struct downgrade *d, unsigned depth)
{
    while (!d->plan[d->path[depth]].is_message)
        depth--;
    struct plan *message = &d->plan[d->path[depth]];
    if (!message->has_version && !message->add_version)
        d->size_max += FIELDS_MAX;
    message->add_version = !message->has_version;
}

/* Base64 makes four bytes of three, quoted-printable three of each odd byte: up to one
 * odd byte in six the readable form is not longer. */
static void
downgrade_scan_encode(struct downgrade *d, struct plan *plan, unsigned depth)
{
    const struct mime_counts *t = &d->counts;
    uint64_t odd =
        t->high + t->nul + t->lone_cr + (d->way.from_binary ? t->lone_lf : 0);
    uint64_t bytes = t->bytes + (d->way.from_binary ? 0 : t->lone_lf), size;
    d->needed = true;
    if (d->is_text && odd <= t->bytes / READABLE) {
        plan->body = PLAN_QUOTED;
        /* Kept line ends are not special bytes. */
        size = encode_quoted_size_max(bytes, t->special - 2 * (t->lines - t->lone_lf),
                                      t->lines);
    } else {
        plan->body = PLAN_BASE64;
        size = encode_base64_size(bytes);
    }
    /* 8-bit text without a type has an unknown charset (RFC 1428); the default would be
     * US-ASCII, which is false. */
    plan->add_type = !d->has_type && t->high > 0;
    d->size_max += (size > t->bytes ? size - t->bytes : 0) + FIELDS_MAX;
    add_version(d, depth);
}

/* A part that cannot be converted is no obstacle if it needs no conversion. */
static void
end_watched(struct downgrade *d, const struct structure_part *part)
{
    struct plan *plan = &d->plan[part->number];
    struct mime_counts *t = &d->counts;
    d->watching = false;
    mime_counts_end(t);
    note_line_ends(d, t);
    bool bad = has_foreign(d, t) || t->longest > DOWNGRADE_LINE_MAX ||
               (d->way.from_binary && t->lone_lf > 0);
    if (bad && d->blocked != DOWNGRADE_NO_REASON)
        downgrade_scan_forbid(d, d->blocked);
    else if (bad)
        downgrade_scan_encode(d, plan, part->depth);
    else if (d->blocked != DOWNGRADE_BROKEN)
        relabel(d, plan, part->encoding, t->high > 0);
    *t = (struct mime_counts){0};
}

/* Bytes outside parts can be replaced, unless they are the whole content or would then
 * become a field. */
static void
end_outside(struct downgrade *d, const struct structure_part *part)
{
    struct mime_counts *t = &d->counts;
    unsigned lost =
        1u << PROBLEM_NO_PARTS | 1u << PROBLEM_TOO_MANY_PARTS | 1u << PROBLEM_ODD_LINE;
    mime_counts_end(t);
    note_line_ends(d, t);
    if (has_foreign(d, t) || t->longest > DOWNGRADE_LINE_MAX) {
        d->needed = d->plan[part->number].dirty = true;
        d->size_max += 2 * (t->bytes / DOWNGRADE_LINE_MAX);
    }
    *t = (struct mime_counts){0};
    if (d->plan[part->number].dirty && (part->problems & lost) != 0)
        downgrade_scan_forbid(d, DOWNGRADE_BROKEN);
}

/* Delimiters are copied. Their bytes are a parameter of the header, too, so neither can
 * be changed alone. */
static void
scan_delimiter(struct downgrade *d, const struct structure_event *e)
{
    struct mime_counts t = mime_counts_of(e->bytes);
    end_outside(d, e->part);
    note_line_ends(d, &t);
    if (has_foreign(d, &t) || t.longest > DOWNGRADE_LINE_MAX)
        downgrade_scan_forbid(d, DOWNGRADE_BROKEN);
}

static void
scan_event(void *context, const struct structure_event *e)
{
    struct downgrade *d = context;
    if (e->kind == STRUCTURE_BEGIN) {
        plan_of(d, e->part->number);
        return;
    }
    if (d->watching) {
        if (e->kind == STRUCTURE_END && e->part->number == d->watched)
            end_watched(d, e->part);
        else
            mime_counts_add(&d->counts, e->bytes);
        return;
    }
    switch (e->kind) {
    case STRUCTURE_FIELD:
        scan_field(d, e);
        break;
    case STRUCTURE_HEADER:
        scan_header(d, e);
        break;
    case STRUCTURE_OUTSIDE:
        mime_counts_add(&d->counts, e->bytes);
        break;
    case STRUCTURE_DELIMITER:
        scan_delimiter(d, e);
        break;
    case STRUCTURE_END:
        end_outside(d, e->part);
        break;
    case STRUCTURE_BEGIN:
    case STRUCTURE_BODY:
    case STRUCTURE_PROBLEM:
        break;
    }
}

struct downgrade *
downgrade_new(const struct downgrade_way *way)
{
    struct downgrade *d = memory_new(sizeof(*d));
    d->way = *way;
    d->structure = structure_new(scan_event, d);
    d->size_max = 2; /* a last line end */
    return d;
}

void
downgrade_scan(struct downgrade *d, struct text piece)
{
    d->size_max += piece.length;
    structure_add(d->structure, piece);
}

/* A fragment has a verdict of its own, since even a hop without conversion must not get
 * it as it is (RFC 2046 §5.2.2). */
enum downgrade_verdict
downgrade_scan_end(struct downgrade *d)
{
    structure_end(d->structure);
    structure_free(&d->structure);
    assert(!d->watching && (d->needed || d->reason == DOWNGRADE_NO_REASON));
    if (d->reason == DOWNGRADE_PARTIAL && d->is_fragment)
        d->verdict = DOWNGRADE_FRAGMENT;
    else if (d->reason != DOWNGRADE_NO_REASON)
        d->verdict = DOWNGRADE_FORBIDDEN;
    else
        d->verdict = d->needed ? DOWNGRADE_CONVERTIBLE : DOWNGRADE_NOT_NEEDED;
    return d->verdict;
}

enum downgrade_reason
downgrade_reason(const struct downgrade *d)
{
    return d->reason;
}

const char *
downgrade_reason_text(const struct downgrade *d)
{
    static const char *const texts[] = {
        [DOWNGRADE_NO_REASON] = "",
        [DOWNGRADE_HEADER] =
            "a header field has bytes that no hop without 8BITMIME takes",
        [DOWNGRADE_SIGNED] = "the message is signed",
        [DOWNGRADE_ENCRYPTED] = "the message is encrypted",
        [DOWNGRADE_PARTIAL] = "the message is a fragment of another (partial)",
        [DOWNGRADE_EXTERNAL] = "the message refers to external content (external-body)",
        [DOWNGRADE_COMPOSITE] = "a part of the message cannot be looked into",
        [DOWNGRADE_ENCODED] = "a part of the message is labelled as encoded already",
        [DOWNGRADE_BROKEN] = "the MIME structure of the message is broken"};
    return texts[d->reason];
}

bool
downgrade_breaks_dkim(const struct downgrade *d)
{
    return d->dkim;
}

uint64_t
downgrade_size_max(const struct downgrade *d)
{
    return d->size_max;
}

/* --- The second pass: conversion ------------------------------------------------- */

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
        encode_quoted_add(&d->quoted, bytes);
    else
        encode_base64_add(&d->base64, bytes);
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
        encode_quoted_start(&d->quoted, emit_coded, d);
    else
        encode_base64_start(&d->base64, emit_coded, d);
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
        encode_base64_end(&d->base64);
    else if (encode_quoted_end(&d->quoted) > 0)
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
        encode_base64_free(&d->base64);
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
