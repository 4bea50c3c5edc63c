/* The envelope in memory, and its forms on disk: strict to read, easy to `cat`.
 *
 * A file is a title of 16 bytes, (info: the due slot of 32,) a length line, records
 * `X<length>:<bytes>\n` in a fixed order, one `T...` record per recipient, and a
 * trailer `crc <hex>\nend\n`. The CRC is over the name of the message and all but due
 * slot and marks. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "base/memory.h"
#include "base/number.h"
#include "queue/envelope/envelope_form.h"
#include "queue/envelope/envelope_internal.h"
#include "queue/envelope/set_mark.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TITLE_SIZE = 16,
    TITLE_FORM = 14, /* where its digit stands */
    LENGTH_SIZE = 18,
    TRAILER_SIZE = 17,
    WAYS_COMPARED = 16,
    NUMBERS_MAX = 11, /* of a record */
    NUMBERS_SIZE = NUMBERS_MAX * (1 + NUMBER_SIZE),
    MARK_OPEN = 'T',
    MARK_DONE = 'D',
    PRIORITY_ZERO = 1 + ENVELOPE_PRIORITY_MAX /* added, so that no sign is written */
};

static const int64_t time_max_ms = 99999999999999;
static const struct mark_place nowhere = {CHANNEL_REMOTE, -1};

/* A title before its form. */
static const char todo_kind[] = "petrel-todo   ", info_kind[] = "petrel-info   ";

/* --- In memory ------------------------------------------------------------------- */

struct envelope *
envelope_new(void)
{
    struct envelope *e = memory_new(sizeof(*e));
    arena_init(&e->arena, ENVELOPE_BYTES_MAX);
    return e;
}

void
envelope_free(struct envelope **e)
{
    if (*e == NULL)
        return;
    arena_free(&(*e)->arena);
    free((*e)->recipients);
    free((*e)->delivery.failures);
    free(*e);
    *e = NULL;
}

bool
envelope_has_utf8_header(const struct envelope *e)
{
    return e->utf8 && !e->ascii_header;
}

bool
envelope_has_refused(const struct envelope *e)
{
    for (unsigned i = 0; i < e->count; i++)
        if (e->recipients[i].refused != RECIPIENT_GOOD)
            return true;
    return false;
}

struct text
envelope_text(struct envelope *e, struct text t)
{
    return arena_copy(&e->arena, t);
}

static bool
add_within(struct envelope *e, unsigned most, struct text address, unsigned notify,
           struct text original)
{
    assert(!e->storage.preprocessed);
    if (e->count >= most)
        return false;
    struct recipient r = {
        .address = envelope_text(e, address),
        .original = envelope_text(e, original),
        .notify = notify,
        .mark = nowhere,
    };
    if (r.address.at == NULL || r.original.at == NULL)
        return false;
    if (e->count == e->capacity) {
        e->capacity = e->capacity > 0 ? e->capacity * 2 : 4;
        e->recipients =
            memory_resize(e->recipients, e->capacity * sizeof(*e->recipients));
    }
    e->recipients[e->count++] = r;
    return true;
}

bool
envelope_add(struct envelope *e, struct text address, unsigned notify,
             struct text original)
{
    return add_within(e, ENVELOPE_RECIPIENTS_MAX, address, notify, original);
}

/* Recipients that share a way mostly stand together: only the newest ones are compared. A
 * way that is made twice costs one more transaction. */
const struct recipient_way *
envelope_way(struct envelope *e, struct text origin, struct text sender)
{
    unsigned compared = 0;
    for (const struct recipient_way *w = e->ways; w && compared < WAYS_COMPARED;
         w = w->next, compared++)
        if (text_equal(w->origin, origin) && text_equal(w->sender, sender))
            return w;
    struct recipient_way *made = arena_get(&e->arena, sizeof(*made));
    if (made == NULL)
        return NULL;
    *made = (struct recipient_way){.next = e->ways,
                                   .number = e->ways ? e->ways->number + 1 : 1,
                                   .origin = envelope_text(e, origin),
                                   .sender = envelope_text(e, sender)};
    if (made->origin.at == NULL || made->sender.at == NULL)
        return NULL;
    return e->ways = made;
}

/* The form is one that older versions read. */
static const struct text null_sender = TEXT("<>");

bool
envelope_is_copy(const struct recipient *r)
{
    return r->way != NULL && text_equal(r->way->sender, null_sender);
}

struct text
envelope_way_sender(const struct envelope *e, const struct recipient_way *way)
{
    if (way == NULL || way->sender.length == 0)
        return e->sender;
    return text_equal(way->sender, null_sender) ? TEXT("") : way->sender;
}

bool
envelope_add_copy(struct envelope *e, struct text address)
{
    const struct recipient_way *way = envelope_way(e, address, null_sender);
    if (way == NULL ||
        !add_within(e, ENVELOPE_STORED_MAX, address, NOTIFY_NEVER, TEXT("")))
        return false;
    e->recipients[e->count - 1].way = way;
    return true;
}

void
envelope_release_at(struct envelope *e, int64_t release_ms, struct text request)
{
    e->release_ms = release_ms < time_max_ms ? release_ms : time_max_ms;
    e->release_request = envelope_text(e, text_before(request, ENVELOPE_REQUEST_MAX));
}

static bool
take_recipient(struct envelope *e, const struct recipient *from)
{
    if (!add_within(e, ENVELOPE_STORED_MAX, from->address, from->notify,
                    from->original))
        return false;
    struct recipient *r = &e->recipients[e->count - 1];
    if (from->way != NULL)
        r->way = envelope_way(e, from->way->origin, from->way->sender);
    r->expanded = from->expanded;
    r->refused = from->refused;
    r->done = from->done;
    e->delivery.done += from->done;
    return from->way == NULL || r->way != NULL;
}

bool
envelope_take_recipients(struct envelope *e, const struct envelope *from)
{
    e->count = e->delivery.done = 0;
    for (unsigned i = 0; i < from->count; i++)
        if (!take_recipient(e, &from->recipients[i]))
            return false;
    e->storage.given = from->storage.given;
    return true;
}

struct text
envelope_sender_of(const struct envelope *e, const struct recipient *r)
{
    return envelope_way_sender(e, r->way);
}

struct text
envelope_origin_of(const struct recipient *r)
{
    return r->way != NULL ? r->way->origin : TEXT("");
}

bool
envelope_is_srs(struct text sender)
{
    return sender.length > 5 &&
           (text_starts_nocase(sender, TEXT("SRS0")) ||
            text_starts_nocase(sender, TEXT("SRS1"))) &&
           strchr("=-+", sender.at[4]) != NULL;
}

struct text
envelope_notified(const struct envelope *e, const struct recipient *r)
{
    struct text sender = envelope_sender_of(e, r);
    return r->expanded || envelope_is_srs(sender) ? e->sender : sender;
}

/* --- Writing --------------------------------------------------------------------- */

/* Without printf(): a message has a dozen records. */
static size_t
write_numbers(const uint64_t *numbers, size_t count, char out[NUMBERS_SIZE])
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            out[length++] = ' ';
        length += number_write((int64_t)numbers[i], out + length);
    }
    return length;
}

static void
envelope_add_record_bytes(struct buffer *out, struct text t)
{
    bool fits = buffer_add(out, t);
    assert(fits); /* the caller's limit is above ENVELOPE_BYTES_MAX */
}

/* "LETTER1 2 3:" */
static void
envelope_add_head(struct buffer *out, char letter, const uint64_t *numbers,
                  size_t count)
{
    char head[1 + NUMBERS_SIZE] = {letter};
    size_t length = 1 + write_numbers(numbers, count, head + 1);
    head[length++] = ':';
    envelope_add_record_bytes(out, text_of(head, length));
}

void
envelope_add_record(struct buffer *out, char letter, struct text bytes)
{
    const uint64_t length = bytes.length;
    envelope_add_head(out, letter, &length, 1);
    envelope_add_record_bytes(out, bytes);
    envelope_add_record_bytes(out, TEXT("\n"));
}

/* The record of a recipient; returns the offset of its mark. */
static size_t
envelope_add_recipient(struct buffer *out, unsigned index, const struct recipient *r)
{
    size_t mark = out->length;
    const uint64_t numbers[] = {index, r->notify, r->address.length,
                                r->original.length};
    envelope_add_head(out, MARK_OPEN, numbers, 4);
    envelope_add_record_bytes(out, r->address);
    envelope_add_record_bytes(out, r->original);
    envelope_add_record_bytes(out, TEXT("\n"));
    if (r->way != NULL) /* else an older version can read it */
        envelope_add_record(out, 'A', r->way->origin);
    if (r->way != NULL && r->way->sender.length > 0)
        envelope_add_record(out, 'R', r->way->sender);
    if (r->expanded)
        envelope_add_record(out, 'X', TEXT(""));
    return mark;
}

uint32_t
envelope_crc_of_name(struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    return crc_add(0, name, ID_LENGTH);
}

static void
format_trailer(uint32_t crc, char out[TRAILER_SIZE + 1])
{
    memcpy(out, "crc ........\nend\n", TRAILER_SIZE + 1);
    number_write_digits(crc, 16, 8, out + 4);
}

static void
format_length(size_t size, char out[LENGTH_SIZE + 1])
{
    memcpy(out, "length ..........\n", LENGTH_SIZE + 1);
    number_write_digits(size, 10, 10, out + 7);
}

static char
own_form(void)
{
    return (char)('0' + envelope_form());
}

/* This form, or an earlier one. */
static bool
envelope_is_title(struct text bytes, const char *kind)
{
    return bytes.length >= TITLE_SIZE && memcmp(bytes.at, kind, TITLE_FORM) == 0 &&
           bytes.at[TITLE_FORM] >= '1' && bytes.at[TITLE_FORM] <= own_form() &&
           bytes.at[TITLE_FORM + 1] == '\n';
}

/* The CRC of the name and the title, without the due slot. */
static uint32_t
crc_of_title(struct id id, const char *title)
{
    return crc_add(envelope_crc_of_name(id), title, TITLE_SIZE);
}

/* Where the length line stands in a file of this kind. */
static size_t
length_offset(const char *kind)
{
    return kind == info_kind ? ENVELOPE_DUE_OFFSET + ENVELOPE_DUE_SIZE : TITLE_SIZE;
}

static void
envelope_begin_file(struct buffer *out, const struct envelope *e, const char *kind)
{
    const char form[] = {own_form(), '\n'};
    assert(out->length == 0 && strlen(kind) == TITLE_FORM);
    envelope_add_record_bytes(out, text_from(kind));
    envelope_add_record_bytes(out, text_of(form, sizeof(form)));
    if (length_offset(kind) > TITLE_SIZE) {
        char due[ENVELOPE_DUE_SIZE];
        envelope_write_due(e, due);
        envelope_add_record_bytes(out, text_of(due, sizeof(due)));
    }
    envelope_add_record_bytes(out, TEXT("length 0000000000\n"));
}

/* Fills in the length and the trailer. Marks must still be open. A file without its
 * trailer, or of another length, was cut off. */
static void
envelope_end_file(struct buffer *out, struct id id, const char *kind)
{
    char length[LENGTH_SIZE + 1], trailer[TRAILER_SIZE + 1];
    size_t at = length_offset(kind);
    format_length(out->length + TRAILER_SIZE, length);
    memcpy(out->at + at, length, LENGTH_SIZE);
    uint32_t crc = crc_of_title(id, out->at);
    crc = crc_add(crc, out->at + at, out->length - at);
    format_trailer(crc, trailer);
    envelope_add_record_bytes(out, text_from(trailer));
}

/* Two flags share one number. Older files have only the first. The form stays readable
 * for older builds: flags were added to a number that they know. */
static unsigned
bits(bool first, bool second)
{
    return (first ? 1U : 0U) | (second ? 2U : 0U);
}

static bool
is_set_mark(struct text t)
{
    struct set_mark mark;
    return set_mark_read(t, &mark);
}

static void
add_submission(struct buffer *out, const struct envelope *e)
{
    bool fits = buffer_format(out, "O%zu:%u ", e->submitter.length + 2,
                              e->header_needs & HEADER_NEEDS_ALL);
    assert(fits);
    envelope_add_record_bytes(out, e->submitter);
    envelope_add_record_bytes(out, TEXT("\n"));
}

static const struct text tls_waived = TEXT("waived"), tls_required = TEXT("required");

static void
add_release(struct buffer *out, const struct envelope *e)
{
    char made[NUMBER_SIZE + 1];
    size_t length = number_write(e->release_ms, made);
    made[length++] = ' ';
    bool fits = buffer_format(out, "W%zu:", length + e->release_request.length);
    assert(fits);
    envelope_add_record_bytes(out, text_of(made, length));
    envelope_add_record_bytes(out, e->release_request);
    envelope_add_record_bytes(out, TEXT("\n"));
}

/* local, remote: recipients in each channel; a todo file counts all as local. failures:
 * in bounce/ID, at the least. */
static void
add_particulars(struct buffer *out, const struct envelope *e, int64_t birth_ms,
                unsigned local, unsigned remote, unsigned failures)
{
    const uint64_t numbers[] = {(uint64_t)birth_ms,
                                (uint64_t)e->content_size,
                                e->content_crc,
                                (uint64_t)e->ret,
                                bits(e->eight_bit, e->binary),
                                bits(e->utf8, e->ascii_header),
                                e->double_bounce,
                                local,
                                remote,
                                failures,
                                (uint64_t)(e->priority + PRIORITY_ZERO)};
    size_t count = sizeof(numbers) / sizeof(*numbers);
    char made[NUMBERS_SIZE];
    assert(abs(e->priority) <= ENVELOPE_PRIORITY_MAX && count <= NUMBERS_MAX);
    if (e->priority == 0) /* then an older version can read it */
        count--;
    envelope_add_record(out, 'M', text_of(made, write_numbers(numbers, count, made)));
    envelope_add_record(out, 'F', e->sender);
    envelope_add_record(out, 'E', e->envelope_id);
    envelope_add_record(out, 'P', e->prefix);
    if (e->fragment.made_of.length > 0) /* else an older version can read it */
        envelope_add_record(out, 'J', e->fragment.made_of);
    if (e->trust.length > 0)
        envelope_add_record(out, 'C', e->trust);
    assert(!e->fragment.by_peer || is_set_mark(e->fragment.set_mark));
    if (e->fragment.by_peer)
        envelope_add_record(out, 'S', e->fragment.set_mark);
    if (e->ours)
        add_submission(out, e);
    if (e->message_id.length > 0)
        envelope_add_record(out, 'I', e->message_id);
    if (e->tag.length > 0)
        envelope_add_record(out, 'G', e->tag);
    if (e->posted.length > 0)
        envelope_add_record(out, 'K', e->posted);
    if (e->release_ms > 0) /* else an older version can read it */
        add_release(out, e);
    if (e->tls != ENVELOPE_TLS_PLAIN) /* likewise */
        envelope_add_record(
            out, 'Z', e->tls == ENVELOPE_TLS_REQUIRED ? tls_required : tls_waived);
    envelope_add_moves(e, out);
}

static const char *
channel_kind(enum channel channel)
{
    return channel == CHANNEL_LOCAL ? "petrel-local  " : "petrel-remote ";
}

static void
envelope_begin_todo(const struct envelope *e, struct buffer *out)
{
    envelope_begin_file(out, e, todo_kind);
    add_particulars(out, e, e->birth_ms, e->count, 0, 0);
    for (unsigned i = 0; i < e->count; i++)
        envelope_add_recipient(out, i, &e->recipients[i]);
}

void
envelope_write_todo(const struct envelope *e, struct buffer *out)
{
    envelope_begin_todo(e, out);
    envelope_end_file(out, e->id, todo_kind);
}

bool
envelope_write_given(const struct envelope *e, struct buffer *out)
{
    envelope_begin_todo(e, out);
    bool fits = envelope_add_state(e, out);
    envelope_end_file(out, e->id, todo_kind);
    return fits;
}

/* It says how many recipients local/ID and remote/ID must have, so that a missing file is
 * noticed. */
void
envelope_write_info(const struct envelope *e, unsigned local, struct buffer *out)
{
    envelope_begin_file(out, e, info_kind);
    add_particulars(out, e, e->birth_ms - e->birth_moved_ms, local, e->count - local,
                    e->delivery.failure_count);
    envelope_end_file(out, e->id, info_kind);
}

/* The checksum is that of open marks. Marks are set behind it, because they are
 * overwritten in place later. Without recipients there is no file. */
static void
write_channel(const struct envelope *e, enum channel channel, struct mark_place *places,
              struct buffer *out)
{
    const char *kind = channel_kind(channel);
    bool is_empty = true;
    for (unsigned i = 0; i < e->count; i++) {
        if (places[i].channel != channel)
            continue;
        if (is_empty)
            envelope_begin_file(out, e, kind);
        is_empty = false;
        size_t offset = envelope_add_recipient(out, i, &e->recipients[i]);
        assert(offset <= INT32_MAX);
        places[i].offset = (int32_t)offset;
    }
    if (is_empty)
        return;
    envelope_end_file(out, e->id, kind);
    for (unsigned i = 0; i < e->count; i++)
        if (places[i].channel == channel && e->recipients[i].done)
            out->at[places[i].offset] = MARK_DONE;
}

void
envelope_write_channels(const struct envelope *e, struct mark_place *places,
                        struct buffer *local, struct buffer *remote)
{
    write_channel(e, CHANNEL_LOCAL, places, local);
    write_channel(e, CHANNEL_REMOTE, places, remote);
}

void
envelope_take_places(struct envelope *e, const struct mark_place *places)
{
    for (unsigned i = 0; i < e->count; i++)
        e->recipients[i].mark = places[i];
    e->storage.preprocessed = true;
}

/* --- Reading --------------------------------------------------------------------- */

struct text
envelope_take(struct reading *r, size_t size)
{
    if (r->bad || size > r->end - r->at) {
        r->bad = true;
        return TEXT("");
    }
    struct text taken = text_of(r->all.at + r->at, size);
    r->at += size;
    return taken;
}

uint64_t
envelope_take_number(struct reading *r, char until, uint64_t max)
{
    uint64_t value = 0;
    struct text rest = text_of(r->all.at + r->at, r->end - r->at);
    size_t length = text_find(text_before(rest, 24), until);
    if (length == TEXT_NONE || !text_number(text_before(rest, length), max, &value)) {
        r->bad = true;
        return 0;
    }
    (void)envelope_take(r, length + 1);
    return value;
}

struct text
envelope_take_record(struct reading *r, char letter)
{
    struct text first = envelope_take(r, 1);
    if (r->bad || first.at[0] != letter) {
        r->bad = true;
        return TEXT("");
    }
    size_t length = (size_t)envelope_take_number(r, ':', ENVELOPE_BYTES_MAX);
    struct text bytes = envelope_take(r, length);
    if (!text_equal(envelope_take(r, 1), TEXT("\n")))
        r->bad = true;
    return bytes;
}

bool
envelope_stands_there(const struct reading *r, char letter)
{
    return !r->bad && r->at < r->end && r->all.at[r->at] == letter;
}

/* Older files lack it. */
static struct text
take_optional(struct reading *r, char letter)
{
    return envelope_stands_there(r, letter) ? envelope_take_record(r, letter)
                                            : TEXT("");
}

static void
take_set_mark(struct reading *r, struct envelope *e)
{
    e->fragment.by_peer = envelope_stands_there(r, 'S');
    struct text mark = take_optional(r, 'S');
    e->fragment.set_mark = envelope_text(e, mark);
    if (e->fragment.by_peer && !is_set_mark(mark))
        r->bad = true;
}

/* Its first byte is a digit, then a space: HEADER_NEEDS_... . */
static void
take_submission(struct reading *r, struct envelope *e)
{
    struct text needs, submitter;
    e->ours = envelope_stands_there(r, 'O');
    if (!e->ours)
        return;
    submitter = envelope_take_record(r, 'O');
    uint64_t number = 0;
    if (!text_cut(&submitter, ' ', &needs) || needs.length != 1 ||
        !text_number(needs, HEADER_NEEDS_ALL, &number))
        r->bad = true;
    e->header_needs = (unsigned)number;
    e->submitter = envelope_text(e, submitter);
    r->bad = r->bad || e->submitter.at == NULL;
}

static struct text
take_limited(struct reading *r, struct envelope *e, char letter, size_t max)
{
    struct text bytes = take_optional(r, letter);
    struct text kept = envelope_text(e, bytes);
    r->bad = r->bad || bytes.length > max || kept.at == NULL;
    return kept;
}

static void
take_release(struct reading *r, struct envelope *e)
{
    struct text request, time;
    uint64_t ms = 0;
    if (!envelope_stands_there(r, 'W'))
        return;
    request = envelope_take_record(r, 'W');
    if (!text_cut(&request, ' ', &time) ||
        !text_number(time, (uint64_t)time_max_ms, &ms) || ms == 0 ||
        request.length > ENVELOPE_REQUEST_MAX) {
        r->bad = true;
        return;
    }
    envelope_release_at(e, (int64_t)ms, request);
    r->bad = r->bad || e->release_request.at == NULL;
}

static void
take_tls(struct reading *r, struct envelope *e)
{
    if (!envelope_stands_there(r, 'Z'))
        return;
    struct text wish = envelope_take_record(r, 'Z');
    bool requires = text_equal(wish, tls_required);
    e->tls = requires ? ENVELOPE_TLS_REQUIRED : ENVELOPE_TLS_WAIVED;
    r->bad = r->bad || (!requires && !text_equal(wish, tls_waived));
}

static struct reading
begin_reading(struct text bytes, struct id id, const char *kind)
{
    struct reading r = {.all = bytes};
    size_t at = length_offset(kind);
    char length[LENGTH_SIZE + 1];
    if (bytes.length < at + LENGTH_SIZE + TRAILER_SIZE ||
        !envelope_is_title(bytes, kind)) {
        r.bad = true;
        return r;
    }
    format_length(bytes.length, length);
    /* A file that was cut off fails here, before a record is read. */
    r.bad = !text_starts(text_after(bytes, at), text_from(length));
    r.crc = crc_of_title(id, bytes.at);
    r.counted = at;
    r.at = at + LENGTH_SIZE;
    r.end = bytes.length - TRAILER_SIZE;
    return r;
}

static enum progress
envelope_end_reading(struct reading *r)
{
    if (r->bad || r->at != r->end)
        return PROGRESS_BAD;
    char trailer[TRAILER_SIZE + 1];
    r->crc = crc_add(r->crc, r->all.at + r->counted, r->end - r->counted);
    format_trailer(r->crc, trailer);
    return text_equal(text_after(r->all, r->end), text_from(trailer)) ? PROGRESS_DONE
                                                                      : PROGRESS_BAD;
}

/* The mark at the reading point; the recipient is counted as open either way. */
static bool
envelope_take_mark(struct reading *r)
{
    static const char open = MARK_OPEN;
    struct text mark = envelope_take(r, 1);
    if (r->bad || (mark.at[0] != MARK_OPEN && mark.at[0] != MARK_DONE)) {
        r->bad = true;
        return false;
    }
    size_t offset = r->at - 1;
    r->crc = crc_add(r->crc, r->all.at + r->counted, offset - r->counted);
    r->crc = crc_add(r->crc, &open, 1);
    r->counted = r->at;
    return mark.at[0] == MARK_DONE;
}

static void
take_particulars(struct reading *r, struct envelope *e, unsigned *local,
                 unsigned *remote)
{
    uint64_t number[11] = {[10] = PRIORITY_ZERO};
    struct text fields = envelope_take_record(r, 'M'), field;
    size_t count = 0;
    while (!r->bad && text_cut(&fields, ' ', &field))
        if (count == 11 || !text_number(field, INT64_MAX, &number[count++]))
            r->bad = true;
    /* Version 0.1 had nine; the eleventh is there when it is not 0. */
    if (count < 9 || number[1] > INT64_MAX / 2 || number[2] > UINT32_MAX ||
        number[3] > RETURN_FULL || number[4] > bits(true, true) ||
        number[5] > bits(true, true) || number[7] > ENVELOPE_STORED_MAX ||
        number[8] > ENVELOPE_STORED_MAX ||
        number[7] + number[8] > ENVELOPE_STORED_MAX || number[10] == 0 ||
        number[10] > PRIORITY_ZERO + ENVELOPE_PRIORITY_MAX)
        r->bad = true;
    e->sender = envelope_text(e, envelope_take_record(r, 'F'));
    e->envelope_id = envelope_text(e, envelope_take_record(r, 'E'));
    e->prefix = envelope_text(e, envelope_take_record(r, 'P'));
    e->fragment.made_of = envelope_text(e, take_optional(r, 'J'));
    e->trust = envelope_text(e, take_optional(r, 'C'));
    take_set_mark(r, e);
    take_submission(r, e);
    e->message_id = take_limited(r, e, 'I', ENVELOPE_MESSAGE_ID_MAX);
    e->tag = take_limited(r, e, 'G', ENVELOPE_TAG_MAX);
    e->posted = take_limited(r, e, 'K', ENVELOPE_POSTED_MAX);
    take_release(r, e);
    take_tls(r, e);
    envelope_take_moves(r, e);
    if (r->bad || e->sender.at == NULL || e->envelope_id.at == NULL ||
        e->prefix.at == NULL || e->fragment.made_of.at == NULL || e->trust.at == NULL ||
        e->fragment.set_mark.at == NULL) {
        r->bad = true;
        return;
    }
    /* Keeps sums with it from overflowing. */
    e->birth_ms = number[0] < (uint64_t)time_max_ms ? (int64_t)number[0] : time_max_ms;
    e->content_size = (int64_t)number[1];
    e->content_crc = (uint32_t)number[2];
    e->ret = (enum envelope_return)number[3];
    e->eight_bit = (number[4] & 1) != 0;
    e->binary = (number[4] & 2) != 0;
    e->utf8 = (number[5] & 1) != 0;
    e->ascii_header = (number[5] & 2) != 0;
    e->double_bounce = number[6] != 0;
    *local = (unsigned)number[7];
    *remote = (unsigned)number[8];
    e->priority = (int)number[10] - PRIORITY_ZERO;
    e->storage.failures_recorded =
        number[9] < UINT32_MAX ? (unsigned)number[9] : UINT32_MAX;
}

/* Behind a recipient: the alias, the recipient's own sender, and whether it is itself an
 * alias that has been expanded. */
static void
envelope_take_way(struct reading *r, struct envelope *e, struct recipient *made)
{
    bool has_way = envelope_stands_there(r, 'A');
    if (!has_way && envelope_stands_there(r, 'R'))
        r->bad = true;
    struct text origin = take_optional(r, 'A'), sender = take_optional(r, 'R');
    if (has_way && !r->bad) {
        made->way = envelope_way(e, origin, sender);
        r->bad = origin.length == 0 || made->way == NULL;
    }
    made->expanded = envelope_stands_there(r, 'X');
    if (take_optional(r, 'X').length > 0)
        r->bad = true;
}

/* Stores one recipient at its index, which must be empty. */
static void
envelope_take_recipient(struct reading *r, struct envelope *e, struct recipient made)
{
    made.done = envelope_take_mark(r);
    uint64_t index = envelope_take_number(r, ' ', ENVELOPE_STORED_MAX);
    made.notify = (unsigned)envelope_take_number(r, ' ', UINT32_MAX);
    size_t address = (size_t)envelope_take_number(r, ' ', ENVELOPE_BYTES_MAX);
    size_t original = (size_t)envelope_take_number(r, ':', ENVELOPE_BYTES_MAX);
    made.address = envelope_text(e, envelope_take(r, address));
    made.original = envelope_text(e, envelope_take(r, original));
    if (!text_equal(envelope_take(r, 1), TEXT("\n")) || index >= e->count ||
        e->recipients[index].address.at != NULL || made.address.at == NULL ||
        made.original.at == NULL)
        r->bad = true;
    envelope_take_way(r, e, &made);
    if (r->bad)
        return;
    e->recipients[index] = made;
    if (made.done)
        e->delivery.done++;
}

static void
make_places(struct envelope *e, unsigned count)
{
    assert(e->count == 0);
    free(e->recipients);
    e->recipients = memory_array(count > 0 ? count : 1, sizeof(*e->recipients));
    e->count = e->capacity = count;
}

bool
envelope_is_newer(struct text bytes)
{
    return bytes.length >= TITLE_SIZE && memcmp(bytes.at, todo_kind, TITLE_FORM) == 0 &&
           bytes.at[TITLE_FORM] > own_form() && bytes.at[TITLE_FORM] <= '9';
}

enum progress
envelope_read_todo(struct text bytes, struct id id, struct envelope *e)
{
    struct reading r = begin_reading(bytes, id, todo_kind);
    unsigned count = 0, none = 0;
    if (!r.bad)
        take_particulars(&r, e, &count, &none);
    if (r.bad || none != 0)
        return PROGRESS_BAD;
    e->id = id;
    make_places(e, count);
    struct recipient made = {.mark = nowhere};
    for (unsigned i = 0; i < count && !r.bad; i++)
        envelope_take_recipient(&r, e, made);
    /* Only S5 has marks in place. */
    r.bad = r.bad || e->delivery.done > 0;
    envelope_take_state(&r, e);
    return envelope_end_reading(&r);
}

enum progress
envelope_read_info(struct text bytes, struct id id, struct envelope *e)
{
    struct reading r = begin_reading(bytes, id, info_kind);
    unsigned local = 0, remote = 0;
    if (!r.bad)
        take_particulars(&r, e, &local, &remote);
    if (envelope_end_reading(&r) != PROGRESS_DONE)
        return PROGRESS_BAD;
    e->id = id;
    e->storage.preprocessed = true;
    make_places(e, local + remote);
    envelope_read_due(bytes, id, e);
    return PROGRESS_DONE;
}

enum progress
envelope_read_channel(struct text bytes, struct id id, enum channel channel,
                      struct envelope *e)
{
    assert(e->storage.preprocessed);
    struct reading r = begin_reading(bytes, id, channel_kind(channel));
    while (!r.bad && r.at < r.end)
        envelope_take_recipient(&r, e,
                                (struct recipient){
                                    .mark = {channel, (int32_t)r.at}
        });
    return envelope_end_reading(&r);
}
