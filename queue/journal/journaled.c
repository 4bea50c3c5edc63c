/* The table of journaled messages, and the payloads of the journal's records.
 *
 * A message is in the table from its ACCEPT record to its END or MOVED record. Its
 * results stay in memory as long, because the envelope is read back without them. */
#include "queue/journal/journaled.h"

#include "base/crc.h"
#include "base/memory.h"
#include "queue/spool/spool_corrupt.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CACHE_MAX = 4 * 1024 * 1024, /* bytes of contents and forms in memory */
    HEAD_SIZE = 8,
    FLAG_LARGE = 1,
    FLAG_NOTE = 2,
    NUMBER_SIZE = 4,
    MARKS_PER_RECORD = 256,
    COPIES_MAX = 8, /* of a message: files cost as much as some ten copies */
    TEXTS_PER_RECORD = 32 * 1024, /* unless a single text is longer */
    /* Above ENVELOPE_RECIPIENTS_MAX failures, and the notes that they are notified. */
    TEXTS_MAX = 88 * 1024 * 1024
};

struct journaled_results {
    unsigned *marks;
    size_t count, capacity;
    struct buffer texts;
};

/* The message stays where it was until this is durable. */
struct journaled_copy {
    struct journaled_message *message;
    struct journal_place place;
    uint64_t batch;
    struct journaled_copy *prev, *next;
};

/* --- Numbers --------------------------------------------------------------------- */

static void
journaled_put_number(char out[4], uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (char)(number >> 8 * i & 0xff);
}

static uint32_t
get_number(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;
    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 |
           (uint32_t)byte[3] << 24;
}

/* --- Contents -------------------------------------------------------------------- */

/* Open content outlives its message, so the last reference frees it. */
void
journaled_content_release(struct journaled_content **content)
{
    struct journaled_content *c = *content;
    *content = NULL;
    if (c == NULL || --c->references > 0)
        return;
    buffer_free(&c->bytes);
    free(c);
}

/* Takes ownership of the bytes. */
static struct journaled_content *
content_new(struct buffer *bytes)
{
    struct journaled_content *c = memory_new(sizeof(*c));
    c->references = 1;
    c->bytes = *bytes;
    *bytes = (struct buffer){.limit = bytes->limit};
    return c;
}

/* Most messages are delivered within a second: reading them back from disk would double
 * the work. Beyond the limit they are read back. */
static void
keep_content(struct journaled *y, struct journaled_message *m,
             struct journaled_content *c)
{
    if (y->journal == NULL || y->cached + c->bytes.length > CACHE_MAX)
        return;
    assert(m->content == NULL);
    buffer_fit(&c->bytes);
    m->content = c;
    c->references++;
    y->cached += c->bytes.length;
}

/* The bytes go when their last reader has closed them. */
static void
journaled_forget_content(struct journaled *y, struct journaled_message *m)
{
    if (m->content == NULL)
        return;
    assert(y->cached >= m->content->bytes.length);
    y->cached -= m->content->bytes.length;
    journaled_content_release(&m->content);
}

/* Caches new mail alone: content that was read back is rarely wanted again soon. */
static void
keep_form(struct journaled *y, struct journaled_message *m, struct text form)
{
    if (y->cached + form.length > CACHE_MAX)
        return;
    buffer_init(&m->form, form.length);
    bool fits = buffer_add(&m->form, form);
    assert(fits);
    y->cached += form.length;
}

static void
forget_form(struct journaled *y, struct journaled_message *m)
{
    assert(y->cached >= m->form.length);
    y->cached -= m->form.length;
    buffer_free(&m->form);
}

/* --- The table ------------------------------------------------------------------- */

struct journaled_message *
journaled_find(const struct journaled *y, struct id id)
{
    struct journaled_message *m = NULL;
    HASH_FIND(hh, y->messages, &id, sizeof(id), m);
    return m;
}

static struct journaled_message *
journaled_add(struct journaled *y, struct id id, const struct journal_place *place)
{
    struct journaled_message *m = memory_new(sizeof(*m));
    m->id = id;
    m->place = *place;
    y->live += place->length;
    m->directory = y->directory;
    HASH_ADD(hh, y->messages, id, sizeof(m->id), m);
    return m;
}

static void
results_free(struct journaled_results *results)
{
    if (results == NULL)
        return;
    buffer_free(&results->texts);
    free(results->marks);
    free(results);
}

/* The only end of an entry, so that the counters agree with the table. */
void
journaled_drop(struct journaled *y, struct journaled_message *m)
{
    assert(y->live >= m->place.length);
    HASH_DEL(y->messages, m);
    y->live -= m->place.length;
    journaled_forget_content(y, m);
    forget_form(y, m);
    results_free(m->results);
    free(m);
}

static void
copy_free(struct journaled *y, struct journaled_copy *copy)
{
    copy->message->copy = NULL;
    DL_DELETE(y->copies, copy);
    free(copy);
}

static void
remember_mark(struct journaled_message *m, unsigned recipient)
{
    struct journaled_results *results = m->results;
    if (results->count == results->capacity) {
        results->capacity = results->capacity > 0 ? results->capacity * 2 : 4;
        results->marks =
            memory_resize(results->marks, results->capacity * sizeof(*results->marks));
    }
    results->marks[results->count++] = recipient;
}

static void
remember_texts(struct journaled_message *m, struct text texts)
{
    bool fits = buffer_add(&m->results->texts, texts);
    assert(fits);
}

/* Most messages have none: they are delivered to all recipients before a mark is
 * written. */
static void
need_results(struct journaled_message *m)
{
    if (m->results != NULL)
        return;
    m->results = memory_new(sizeof(*m->results));
    buffer_init(&m->results->texts, TEXTS_MAX);
}

/* --- Reading back ---------------------------------------------------------------- */

/* The parts of an ACCEPT's payload. */
struct accepted {
    struct text form, note, content;
    bool large;
};

/* False: it is longer than the rest. */
static bool
split_note(struct accepted *parts)
{
    struct text rest = parts->content;
    if (rest.length < NUMBER_SIZE)
        return false;
    uint32_t length = get_number(rest.at);
    rest = text_after(rest, NUMBER_SIZE);
    if (length < ID_LENGTH || length > rest.length)
        return false;
    parts->note = text_before(rest, length);
    parts->content = text_after(rest, length);
    return true;
}

/* Lengths come from the disk and are checked, though a checksum has covered them: a
 * wrong one would read beyond the record. */
static bool
split_payload(struct text payload, struct accepted *parts)
{
    if (payload.length < HEAD_SIZE)
        return false;
    uint32_t length = get_number(payload.at), flags = get_number(payload.at + 4);
    struct text rest = text_after(payload, HEAD_SIZE);
    if (length > rest.length || (flags & ~(uint32_t)(FLAG_LARGE | FLAG_NOTE)) != 0)
        return false;
    *parts = (struct accepted){.form = text_before(rest, length),
                               .content = text_after(rest, length),
                               .large = (flags & FLAG_LARGE) != 0};
    if ((flags & FLAG_NOTE) != 0 && !split_note(parts))
        return false;
    return !parts->large || parts->content.length == 0;
}

static bool
journaled_split_form(struct text payload, struct text *form)
{
    struct accepted parts;
    bool good = split_payload(payload, &parts);
    *form = good ? parts.form : TEXT("");
    return good;
}

/* The checksum of the content goes with the envelope, too, for content in files. */
static bool
is_whole(const struct accepted *parts, const struct envelope *e)
{
    return parts->large ||
           (parts->content.length == (size_t)e->content_size &&
            crc_add(0, parts->content.at, parts->content.length) == e->content_crc);
}

/* Is quarantined unread: reading it may crash the daemon. */
static bool
journaled_is_deadly(const struct journaled *y, struct id id)
{
    return y->spool != NULL && guard_is_deadly(&y->spool->guard, id);
}

/* The message that a notification reports may have left the journal: then its files
 * have the reported state. */
static void
take_note(struct journaled *y, struct text note)
{
    struct id id;
    struct journaled_message *m = NULL;
    if (note.length > 0 && id_parse(text_before(note, ID_LENGTH), &id))
        m = journaled_find(y, id);
    if (m == NULL)
        return;
    need_results(m);
    remember_texts(m, text_after(note, ID_LENGTH));
}

/* An envelope that cannot be read is damage, not an empty message. */
static bool
read_accept(struct journaled *y, const struct journal_record *record)
{
    struct accepted parts;
    struct envelope *e = envelope_new();
    bool deadly = journaled_is_deadly(y, record->id);
    bool good =
        journaled_find(y, record->id) == NULL &&
        split_payload(record->payload, &parts) &&
        (deadly || (envelope_read_todo(parts.form, record->id, e) == PROGRESS_DONE &&
                    is_whole(&parts, e)));
    if (good) {
        struct journaled_message *m = journaled_add(y, record->id, &record->place);
        m->envelope_length = (uint32_t)parts.form.length;
        if (parts.note.length > 0)
            m->note_length = (uint32_t)(NUMBER_SIZE + parts.note.length);
        take_note(y, parts.note);
        /* An envelope that is not read cannot say how many; any mark may count. */
        m->recipients = deadly ? ENVELOPE_STORED_MAX : e->count;
        m->large = parts.large;
        m->recovered = true;
        m->made = e->fragment.made_of.length > 0;
        m->due_ms = e->delivery.due_ms;
        m->attempts = e->delivery.attempts;
    }
    envelope_free(&e);
    return good;
}

/* Without the segment of its ACCEPT it is the message. */
static bool
read_copy(struct journaled *y, const struct journal_record *record)
{
    struct journaled_message *m = journaled_find(y, record->id);
    if (m == NULL)
        return read_accept(y, record);
    if (record->place.length != m->place.length)
        return false;
    m->place = record->place;
    return true;
}

/* A message of the spool has no entry: its marks are in its files. */
static void
read_mark(struct journaled *y, const struct journal_record *record)
{
    struct journaled_message *m = journaled_find(y, record->id);
    struct text payload = record->payload;
    if (m == NULL || payload.length < 4)
        return;
    uint32_t count = get_number(payload.at);
    payload = text_after(payload, 4);
    if (count > payload.length / 4)
        return;
    need_results(m);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t recipient = get_number(payload.at + (size_t)4 * i);
        if (recipient < m->recipients)
            remember_mark(m, recipient);
    }
    remember_texts(m, text_after(payload, (size_t)4 * count));
}

static bool
journaled_take_record(struct journaled *y, const struct journal_record *record)
{
    struct journaled_message *m = journaled_find(y, record->id);
    switch (record->type) {
    case RECORD_ACCEPT:
        return read_accept(y, record);
    case RECORD_COPY:
        return read_copy(y, record);
    case RECORD_MARK:
        read_mark(y, record);
        break;
    case RECORD_END:
        /* END is durable before the files go: some may be left, and recovery removes
         * them. */
        id_set_add(&y->ended, record->id);
        if (m != NULL)
            journaled_drop(y, m);
        break;
    case RECORD_MOVED:
        if (m != NULL)
            journaled_drop(y, m);
        break;
    }
    return true;
}

/* A crash while the record is read counts against its message. */
static bool
read_record(void *context, const struct journal_record *record)
{
    struct journaled *y = context;
    struct guard none = {0}, *guard = y->spool != NULL ? &y->spool->guard : &none;
    struct id before = guard_enter(guard, record->id);
    bool good = journaled_take_record(y, record);
    guard_leave(guard, before);
    return good;
}

/* Damaged bytes are never dropped silently: an operator may want to inspect them. */
static void
save_damaged(void *context, struct text bytes, const char *where)
{
    struct journaled *y = context;
    struct spool *s = y->spool;
    char path[SPOOL_PATH_MAX];
    y->damages++;
    if (s == NULL)
        return;
    snprintf(path, sizeof(path), "%s/%.40s %.30s", spool_dir_name(SPOOL_CORRUPT),
             strrchr(y->directory, '/') != NULL ? strrchr(y->directory, '/') + 1
                                                : y->directory,
             where);
    for (char *c = path; *c != '\0'; c++)
        if (*c == ' ')
            *c = '.';
    log_say(s->log, LOG_LEVEL_ERROR, "queue", NULL,
            "journal damaged at %s: %zu bytes kept in %s", where, bytes.length, path);
    int file = disk_create(s->disk, path, 0600);
    if (file == -EEXIST)
        return; /* kept by an earlier startup */
    int result = file;
    if (file >= 0) {
        result = disk_write(s->disk, file, bytes);
        if (result == 0)
            result = disk_sync(s->disk, file);
        disk_close_file(s->disk, file);
    }
    if (result < 0)
        (void)spool_trouble(s, result, NULL, "keep damaged bytes");
}

static void
journaled_log_summary(const struct journaled *y, const struct journal_summary *summary)
{
    struct log *log = y->spool->log;
    if (summary->torn)
        log_say(log, LOG_LEVEL_INFO, "queue", NULL,
                "journal: the last batch is incomplete: discarded, its clients had no "
                "replies");
    if (y->messages != NULL)
        log_say(log, LOG_LEVEL_INFO, "queue", NULL,
                "journal: %u messages in %u segments", HASH_COUNT(y->messages),
                summary->segments);
}

static struct journal_reading
reading_of(struct journaled *y, bool keeps)
{
    return (struct journal_reading){
        .context = y, .record = read_record, .damaged = keeps ? save_damaged : NULL};
}

int
journaled_open(struct journaled *y, const struct journal_settings *settings,
               const struct journal_events *events, char *error, size_t error_size)
{
    struct journal_summary summary = {0};
    struct journal_reading reading = reading_of(y, true);
    int result = journal_open(&y->journal, y->spool, y->loop, settings, &reading,
                              events, &summary, error, error_size);
    struct journaled_message *m, *next;
    if (result < 0) {
        journaled_close(y);
        return result;
    }
    /* Their segments are needed until they have ended or moved. */
    HASH_ITER (hh, y->messages, m, next)
        journal_keep(y->journal, &m->place);
    journaled_log_summary(y, &summary);
    return 0;
}

/* Nothing is changed: the journal may be a running daemon's. */
int
journaled_read(struct journaled *y, bool keeps)
{
    struct journal_summary summary = {0};
    struct journal_reading reading = reading_of(y, keeps);
    return journal_read(y->spool->disk, y->directory, &reading, &summary);
}

void
journaled_forget_ended(struct journaled *y)
{
    id_set_free(&y->ended);
    y->ended = (struct id_set){0};
}

void
journaled_close(struct journaled *y)
{
    struct journaled_message *m, *next;
    if (y->journal != NULL)
        journal_close(&y->journal);
    while (y->copies != NULL)
        copy_free(y, y->copies);
    HASH_ITER (hh, y->messages, m, next)
        journaled_drop(y, m);
    journaled_forget_ended(y);
}

/* --- Acceptance ------------------------------------------------------------------ */

/* A record must fit into a batch with others; a larger message has its content in a
 * file, or is wholly in files. */
bool
journaled_fits(const struct journaled *y, const struct envelope *e, size_t form_length,
               bool large)
{
    size_t content = large ? 0 : (size_t)e->content_size;
    size_t limit = journal_payload_max(y->journal);
    return form_length < limit && content < limit &&
           HEAD_SIZE + form_length + content <= limit;
}

/* Without space for it the note is written afterwards, in a record of its own. */
static bool
has_note(const struct journaled *y, const struct journaled_note *note, size_t length)
{
    return note->failures.length > 0 && journaled_find(y, note->of) != NULL &&
           HEAD_SIZE + length + NUMBER_SIZE + ID_LENGTH + note->failures.length <=
               journal_payload_max(y->journal);
}

enum journal_appended
journaled_accept(struct journaled *y, const struct envelope *e, struct text form,
                 struct buffer *content, const struct journaled_note *note, bool own,
                 uint64_t *batch)
{
    char head[HEAD_SIZE], of[NUMBER_SIZE + ID_LENGTH + 1];
    struct journal_place place = {0};
    struct text bytes = content != NULL ? buffer_text(content) : TEXT("");
    bool noted = has_note(y, note, form.length + bytes.length);
    size_t length = noted ? ID_LENGTH + note->failures.length : 0;
    journaled_put_number(head, (uint32_t)form.length);
    journaled_put_number(head + 4, (content == NULL ? FLAG_LARGE : 0U) |
                                       (noted ? FLAG_NOTE : 0U));
    journaled_put_number(of, (uint32_t)length);
    id_format(note->of, of + NUMBER_SIZE);
    struct text pieces[] = {text_of(head, sizeof(head)), form,
                            text_of(of, noted ? NUMBER_SIZE + ID_LENGTH : 0),
                            noted ? note->failures : TEXT(""), bytes};
    enum journal_appended result =
        journal_accept(y->journal, e->id, pieces, sizeof(pieces) / sizeof(pieces[0]),
                       own, &place, batch);
    if (result != JOURNAL_APPENDED)
        return result;
    struct journaled_message *m = journaled_add(y, e->id, &place);
    m->envelope_length = (uint32_t)form.length;
    m->note_length = noted ? (uint32_t)(NUMBER_SIZE + length) : 0;
    m->recipients = e->count;
    m->large = content == NULL;
    m->is_new = true;
    m->due_ms = e->delivery.due_ms;
    m->attempts = e->delivery.attempts;
    keep_form(y, m, form);
    if (content != NULL) {
        struct journaled_content *c = content_new(content);
        keep_content(y, m, c);
        journaled_content_release(&c);
    }
    return result;
}

/* --- Loading --------------------------------------------------------------------- */

static int
read_payload(struct journaled *y, const struct journaled_message *m, uint32_t offset,
             size_t size, struct buffer *out)
{
    buffer_init(out, size + 1);
    char *directory = buffer_reserve(out, size > 0 ? size : 1);
    assert(directory != NULL);
    int64_t got = journal_read_place(y->spool->disk, m->directory, &m->place, offset,
                                     directory, size);
    if (got >= 0 && (size_t)got < size)
        got = -ENODATA; /* the file has become shorter */
    if (got < 0) {
        buffer_free(out);
        return (int)got;
    }
    out->length = size;
    return 0;
}

static int
journaled_read_form(struct journaled *y, const struct journaled_message *m,
                    struct buffer *out)
{
    return read_payload(y, m, HEAD_SIZE, m->envelope_length, out);
}

static int
journaled_read_bytes(struct journaled *y, const struct journaled_message *m,
                     struct buffer *out)
{
    uint32_t before = HEAD_SIZE + m->envelope_length + m->note_length;
    return read_payload(y, m, before, m->place.length - before, out);
}

static void
lay_marks_over(const struct journaled_message *m, struct envelope *e)
{
    for (size_t i = 0; m->results != NULL && i < m->results->count; i++) {
        if (m->results->marks[i] >= e->count)
            continue; /* it was not read then */
        struct recipient *r = &e->recipients[m->results->marks[i]];
        if (!r->done)
            e->delivery.done++;
        r->done = true;
    }
    if (m->results != NULL)
        envelope_read_failures(buffer_text(&m->results->texts), e);
}

/* The envelope is as it was accepted; marks and failures since then are applied to
 * it. */
struct envelope *
journaled_load(struct journaled *y, struct journaled_message *m, bool *later,
               char *reason, size_t reason_size)
{
    struct buffer read = {0};
    int result = 0;
    *later = false;
    if (m->form.length == 0)
        result = journaled_read_form(y, m, &read);
    if (result < 0) {
        *later = result != -ENODATA;
        snprintf(reason, reason_size, "its record in the journal: %s",
                 strerror(-result));
        return NULL;
    }
    struct text form = buffer_text(m->form.length > 0 ? &m->form : &read);
    struct envelope *e = envelope_new();
    if (envelope_read_todo(form, m->id, e) != PROGRESS_DONE) {
        snprintf(reason, reason_size, "its record in the journal is damaged");
        envelope_free(&e);
    } else {
        lay_marks_over(m, e);
    }
    buffer_free(&read);
    return e;
}

struct journaled_content *
journaled_read_content(struct journaled *y, struct journaled_message *m, int *error)
{
    struct buffer bytes;
    assert(!m->large);
    if (m->content != NULL) {
        m->content->references++;
        return m->content;
    }
    *error = journaled_read_bytes(y, m, &bytes);
    if (*error < 0)
        return NULL;
    struct journaled_content *c = content_new(&bytes);
    keep_content(y, m, c);
    return c;
}

/* --- Its course ------------------------------------------------------------------ */

/* The marks stay in memory, too: the envelope may be read back before the message
 * ends. */
static void
add_some_results(struct journaled *y, struct journaled_message *m,
                 const struct journaled_mark *marks, size_t count, struct text texts)
{
    struct buffer payload;
    char number[4];
    buffer_init(&payload, 4 + 4 * count + texts.length);
    journaled_put_number(number, (uint32_t)count);
    bool fits = buffer_add(&payload, text_of(number, 4));
    for (size_t i = 0; i < count; i++) {
        journaled_put_number(number, marks[i].recipient);
        fits = fits && buffer_add(&payload, text_of(number, 4));
        remember_mark(m, marks[i].recipient);
    }
    fits = fits && buffer_add(&payload, texts);
    assert(fits);
    remember_texts(m, texts);
    journal_mark(y->journal, m->id, buffer_text(&payload));
    buffer_free(&payload);
}

/* A record must fit into a segment, so the results of many recipients become
 * several. */
void
journaled_add_results(struct journaled *y, struct journaled_message *m,
                      const struct journaled_mark *marks, size_t count,
                      struct text texts)
{
    need_results(m);
    while (count > 0) {
        size_t some = 0, length = 0;
        while (some < count && some < MARKS_PER_RECORD &&
               (some == 0 || length + marks[some].text_length <= TEXTS_PER_RECORD))
            length += marks[some++].text_length;
        add_some_results(y, m, marks, some, text_before(texts, length));
        marks += some;
        count -= some;
        texts = text_after(texts, length);
    }
}

/* Mail with marks moves to files: the marks would have to be copied, too. So does mail
 * that waits for an operator or for other fragments, perhaps for days, and mail that
 * was copied so often that files cost less. */
static bool
may_copy(const struct journaled_message *m)
{
    return m->results == NULL && !m->is_new && !m->recovered && !m->held &&
           !m->awaits_parts && m->copies < COPIES_MAX;
}

bool
journaled_copy(struct journaled *y, struct journaled_message *m)
{
    struct journaled_copy copy = {.message = m};
    struct buffer payload;
    if (m->copy != NULL)
        return true;
    if (!may_copy(m) || read_payload(y, m, 0, m->place.length, &payload) < 0)
        return false;
    bool copied = journal_copy(y->journal, m->id, buffer_text(&payload), &copy.place,
                               &copy.batch);
    buffer_free(&payload);
    if (!copied)
        return false;
    m->copy = memory_new(sizeof(*m->copy));
    *m->copy = copy;
    m->copies++;
    DL_APPEND(y->copies, m->copy);
    return true;
}

void
journaled_settled(struct journaled *y, uint64_t batch, int error)
{
    struct journaled_copy *copy, *next;
    /* In the order of their batches. */
    DL_FOREACH_SAFE (y->copies, copy, next) {
        struct journaled_message *m = copy->message;
        if (copy->batch > batch)
            break;
        if (error == 0) {
            journal_leave(y->journal, &m->place, batch);
            m->place = copy->place;
        }
        copy_free(y, copy);
    }
}

/* END and MOVED never wait for space: without them no segment would become free. */
uint64_t
journaled_end(struct journaled *y, struct journaled_message *m, enum record_type type)
{
    assert(type == RECORD_END || type == RECORD_MOVED);
    uint64_t batch = m->refused ? journal_end_refused(y->journal, m->id, &m->place)
                                : journal_end(y->journal, m->id, &m->place, type);
    if (m->copy != NULL) {
        /* Its place counts in the newer segment, too. */
        journal_leave(y->journal, &m->copy->place, batch);
        copy_free(y, m->copy);
    }
    journaled_drop(y, m);
    return batch;
}

/* --- Quarantine: from the journal to corrupt/ ------------------------------------ */

/* The spool's files first: a mess/ID that a move left incomplete must not replace the
 * content. Until both are durable the journal has everything. */
static int
put_corrupt(struct journaled *y, const struct journaled_message *m,
            struct text envelope, struct text content, const char *reason)
{
    struct spool *s = y->spool;
    spool_quarantine(s, m->id, reason, loop_now_ms(y->loop));
    int result = spool_put_corrupt(s, m->id, SPOOL_TODO, envelope);
    if (result == 0 && !m->large)
        result = spool_put_corrupt(s, m->id, SPOOL_MESS, content);
    return result == 0 ? disk_sync_directory(s->disk, spool_dir_name(SPOOL_CORRUPT))
                       : result;
}

enum { REASON_SIZE = 160 };

/* S4 would deliver again to recipients that are done; S5 has their marks. A process
 * that delivered has read this envelope, so reading it does not crash the daemon. Its
 * recipients are not routed, since that may be what crashes: all are in remote/.
 * -EBADMSG: it cannot be read. */
static int
make_preprocessed(struct journaled *y, struct journaled_message *m)
{
    char reason[REASON_SIZE];
    int files[SPOOL_PREPROCESSED_FILES], result = 0;
    unsigned count = 0;
    bool later = false;
    struct envelope *e = journaled_load(y, m, &later, reason, sizeof(reason));
    if (e == NULL)
        return later ? -EIO : -EBADMSG;
    struct journaled_content *content =
        m->large ? NULL : journaled_read_content(y, m, &result);
    struct text bytes = content != NULL ? buffer_text(&content->bytes) : TEXT("");
    struct mark_place *places = memory_array(e->count + 1, sizeof(*places));
    queue_is_local *is_local = y->spool->is_local;
    y->spool->is_local = NULL;
    if (result == 0)
        result = spool_write_preprocessed(y->spool, e, content != NULL ? &bytes : NULL,
                                          places, files, &count);
    y->spool->is_local = is_local;
    free(places);
    while (count > 0)
        disk_close_file(y->spool->disk, files[--count]);
    if (result == 0)
        result = spool_sync_preprocessed(y->spool, m->id);
    journaled_content_release(&content);
    envelope_free(&e);
    return result;
}

int
journaled_quarantine(struct journaled *y, struct journaled_message *m,
                     const char *reason)
{
    struct buffer envelope, content;
    int result = m->results != NULL ? make_preprocessed(y, m) : -EBADMSG;
    if (result == 0)
        spool_quarantine(y->spool, m->id, reason, loop_now_ms(y->loop));
    if (result != -EBADMSG)
        return result;
    result = journaled_read_form(y, m, &envelope);
    if (result < 0)
        return result;
    result = journaled_read_bytes(y, m, &content);
    if (result == 0) {
        result =
            put_corrupt(y, m, buffer_text(&envelope), buffer_text(&content), reason);
        buffer_free(&content);
    }
    buffer_free(&envelope);
    return result;
}

/* --- Mail that other hosts gave -------------------------------------------------- */

struct taken_row {
    char *came;
    struct id id;
};

/* A ring, once it is full. */
struct taken_list {
    struct journaled *journaled;
    struct taken_row *rows;
    size_t count, capacity, most, oldest;
    bool posted; /* marks of posted mail, not places of given mail */
};

static void
taken_add(struct taken_list *l, const struct envelope *e)
{
    bool counts = l->posted ? e->posted.length > 0 : e->moved.given > 0;
    if (!counts || l->most == 0)
        return;
    struct taken_row row = {text_string(l->posted ? e->posted : e->moved.came), e->id};
    if (l->count == l->most) {
        free(l->rows[l->oldest].came);
        l->rows[l->oldest] = row;
        l->oldest = (l->oldest + 1) % l->most;
        return;
    }
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? l->capacity * 2 : 64;
        l->rows = memory_resize(l->rows, l->capacity * sizeof(*l->rows));
    }
    l->rows[l->count++] = row;
}

/* Most mail was given by nobody, and is not read. A batch that has failed is left out by
 * the journal: its hosts were refused, and give the message again. */
static void
taken_read(struct taken_list *l, const struct journal_record *record)
{
    struct text form;
    if (!journaled_split_form(record->payload, &form) || form.length == 0 ||
        memmem(form.at, form.length, l->posted ? "\nK" : "\nH", 2) == NULL)
        return;
    struct envelope *e = envelope_new();
    if (envelope_read_todo(form, record->id, e) == PROGRESS_DONE)
        taken_add(l, e);
    envelope_free(&e);
}

/* It was refused behind its record, and is not known. */
static void
taken_forget(struct taken_list *l, struct id id)
{
    for (size_t i = 0; i < l->count; i++)
        if (id_compare(l->rows[i].id, id) == 0) {
            free(l->rows[i].came);
            l->rows[i].came = NULL;
        }
}

static bool
taken_record(void *context, const struct journal_record *record)
{
    struct taken_list *l = context;
    struct guard *guard = &l->journaled->spool->guard;
    struct id before = guard_enter(guard, record->id);
    if (record->type == RECORD_ACCEPT || record->type == RECORD_COPY)
        taken_read(l, record);
    else if (record->type == RECORD_END && record->payload.length > 0)
        taken_forget(l, record->id);
    guard_leave(guard, before);
    return true;
}

static void
taken_each(struct journaled *y, size_t most, bool posted,
           void (*each)(void *context, const char *text, struct id id), void *context)
{
    struct taken_list list = {.journaled = y, .most = most, .posted = posted};
    struct journal_summary summary;
    struct journal_reading reading = {
        .context = &list, .record = taken_record, .with_past = true};
    /* Errors: the records read so far count, and the rest may be taken twice. */
    if (y->journal != NULL)
        (void)journal_read(y->spool->disk, y->directory, &reading, &summary);
    for (size_t i = 0; i < list.count; i++) {
        const struct taken_row *row = &list.rows[(list.oldest + i) % list.count];
        if (row->came != NULL)
            each(context, row->came, row->id);
        free(row->came);
    }
    free(list.rows);
}

void
journaled_each_taken(struct journaled *y, size_t most,
                     void (*each)(void *context, const char *came, struct id id),
                     void *context)
{
    taken_each(y, most, false, each, context);
}

void
journaled_each_posted(struct journaled *y, size_t most,
                      void (*each)(void *context, const char *mark, struct id id),
                      void *context)
{
    taken_each(y, most, true, each, context);
}
