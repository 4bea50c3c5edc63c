/* A bounded map from message to the outcome that says why it waits.
 *
 * Many messages share an outcome, so an entry has only the id and the number of a
 * cause. Causes are in the order of their last use; beyond their limit of bytes the
 * oldest are forgotten. The number of a forgotten cause is free again when its last
 * message has gone. */
#include "queue/manager/deferral_reasons.h"

#include "base/memory.h"
#include "base/crc.h"
#include "mime/date.h"
#include "queue/spool/slices.h"
#include "queue/spool/spool.h"

#include <assert.h>
#include <stdlib.h>
#include <uthash.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    TEXTS_MAX = OUTCOME_TEXT_MAX + OUTCOME_REMOTE_MAX, /* with their NULs */
    CAPACITY_MIN = 64,
    NONE = 0 /* no cause has this number */
};

/* The key of an outcome; zeroed before it is filled. */
struct cause_key {
    int code;
    char enhanced[sizeof((struct outcome *)0)->enhanced];
    char texts[TEXTS_MAX]; /* text NUL remote NUL, no longer than that */
};

struct cause {
    UT_hash_handle hh;
    unsigned number;
    size_t size;           /* bytes used of key */
    struct cause_key *key; /* allocated behind this */
};

struct cause_slot {
    struct cause *cause; /* NULL: forgotten, or free */
    unsigned holders;    /* messages; 0: free */
    unsigned next;       /* free: the next free one, or NONE */
};

struct deferral_reasons_entry {
    uint64_t time_ms : 50;
    uint64_t hash : 40, number : 24; /* NONE: the place is empty */
};
static_assert(sizeof(struct deferral_reasons_entry) == 16,
              "the size of an entry is the point");

struct deferral_reasons {
    struct deferral_reasons_entry *entries; /* by hash, with linear probing */
    size_t count, capacity, limit, hand;
    struct cause *causes; /* by key; longest unused first */
    struct cause_slot *slots;
    unsigned slot_count, slot_capacity, free;
    size_t bytes; /* of causes */
    uint64_t changes;
};

/* --- Causes ----------------------------------------------------------------------- */

static size_t
cause_key_make(const struct outcome *o, struct cause_key *key)
{
    struct text text = text_from(o->text), remote = text_from(o->remote);
    *key = (struct cause_key){.code = o->code};
    (void)!text_copy(key->enhanced, sizeof(key->enhanced), text_from(o->enhanced));
    memcpy(key->texts, text.at, text.length);
    memcpy(key->texts + text.length + 1, remote.at, remote.length);
    return offsetof(struct cause_key, texts) + text.length + remote.length + 2;
}

static size_t
cause_bytes(const struct cause *c)
{
    return sizeof(*c) + c->size;
}

/* The number of a cause stays the same while messages have it. */
static void
cause_drop(struct deferral_reasons *r, struct cause *c)
{
    r->slots[c->number].cause = NULL;
    r->bytes -= cause_bytes(c);
    HASH_DEL(r->causes, c);
    free(c);
}

static unsigned
cause_number(struct deferral_reasons *r)
{
    unsigned number = r->free;
    if (number != NONE) {
        r->free = r->slots[number].next;
        return number;
    }
    if (r->slot_count == r->slot_capacity) {
        r->slot_capacity *= 2;
        r->slots = memory_resize(r->slots, r->slot_capacity * sizeof(*r->slots));
    }
    return r->slot_count++;
}

/* Adds a holder to an equal cause, or makes a new one. Returns its number. */
static unsigned
cause_hold(struct deferral_reasons *r, const struct outcome *outcome)
{
    struct cause_key key;
    size_t size = cause_key_make(outcome, &key);
    struct cause *c;
    HASH_FIND(hh, r->causes, &key, size, c);
    if (c) {
        HASH_DEL(r->causes, c); /* to the end of the list: used last */
    } else {
        c = memory_new(sizeof(*c) + size);
        c->size = size;
        c->key = (struct cause_key *)(void *)(c + 1);
        memcpy(c->key, &key, size);
        c->number = cause_number(r);
        r->slots[c->number] = (struct cause_slot){.cause = c};
        r->bytes += cause_bytes(c);
    }
    r->slots[c->number].holders++;
    HASH_ADD_KEYPTR(hh, r->causes, c->key, c->size, c);
    while (r->bytes > DEFERRAL_REASONS_BYTES_MAX && r->causes != c)
        cause_drop(r, r->causes);
    return c->number;
}

static void
cause_release(struct deferral_reasons *r, unsigned number)
{
    struct cause_slot *slot = &r->slots[number];
    assert(slot->holders > 0);
    if (--slot->holders > 0)
        return;
    if (slot->cause)
        cause_drop(r, slot->cause);
    slot->next = r->free;
    r->free = number;
}

/* --- Messages --------------------------------------------------------------------- */

/* The factor is 2^64 divided by the golden ratio: it spreads ids that are close
 * together. */
static size_t
entry_home(const struct deferral_reasons *r, uint64_t time_ms, uint64_t hash)
{
    uint64_t mixed = (hash ^ time_ms << 20) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed >> 32) & (r->capacity - 1);
}

/* The place of the message, or the empty place where it would be. */
static struct deferral_reasons_entry *
entry_find(const struct deferral_reasons *r, struct id id)
{
    size_t at = entry_home(r, id.time_ms, id.hash);
    for (;; at = (at + 1) & (r->capacity - 1)) {
        struct deferral_reasons_entry *e = &r->entries[at];
        if (e->number == NONE || (e->time_ms == id.time_ms && e->hash == id.hash))
            return e;
    }
}

static struct id
entry_id(const struct deferral_reasons_entry *e)
{
    return (struct id){.time_ms = e->time_ms, .hash = e->hash};
}

static void
entries_grow(struct deferral_reasons *r)
{
    struct deferral_reasons_entry *old = r->entries;
    size_t capacity = r->capacity;
    r->capacity *= 2;
    r->hand = 0;
    r->entries = memory_array(r->capacity, sizeof(*r->entries));
    for (size_t i = 0; i < capacity; i++)
        if (old[i].number != NONE)
            *entry_find(r, entry_id(&old[i])) = old[i];
    free(old);
}

/* Entries behind it close the gap, so that each is found from its home on. */
static void
entry_remove(struct deferral_reasons *r, struct deferral_reasons_entry *e)
{
    size_t mask = r->capacity - 1, gap = (size_t)(e - r->entries), at = gap;
    cause_release(r, e->number);
    for (;;) {
        at = (at + 1) & mask;
        const struct deferral_reasons_entry *next = &r->entries[at];
        if (next->number == NONE)
            break;
        size_t home = entry_home(r, next->time_ms, next->hash);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        r->entries[gap] = *next;
        gap = at;
    }
    r->entries[gap] = (struct deferral_reasons_entry){0};
    r->count--;
}

/* Makes space: forgets the message under the clock hand. */
static void
entry_evict(struct deferral_reasons *r)
{
    do
        r->hand = (r->hand + 1) & (r->capacity - 1);
    while (r->entries[r->hand].number == NONE);
    entry_remove(r, &r->entries[r->hand]);
}

/* ---------------------------------------------------------------------------------- */

struct deferral_reasons *
deferral_reasons_new(unsigned limit)
{
    struct deferral_reasons *r = memory_new(sizeof(*r));
    assert(limit > 0 && limit < 1U << 24);
    r->limit = limit;
    r->capacity = CAPACITY_MIN;
    r->entries = memory_array(r->capacity, sizeof(*r->entries));
    r->slot_capacity = CAPACITY_MIN;
    r->slots = memory_array(r->slot_capacity, sizeof(*r->slots));
    r->slot_count = NONE + 1;
    return r;
}

void
deferral_reasons_free(struct deferral_reasons **r)
{
    if (*r == NULL)
        return;
    while ((*r)->causes)
        cause_drop(*r, (*r)->causes);
    free((*r)->entries);
    free((*r)->slots);
    free(*r);
    *r = NULL;
}

void
deferral_reasons_forget(struct deferral_reasons *r, struct id id)
{
    struct deferral_reasons_entry *e = entry_find(r, id);
    if (e->number == NONE)
        return;
    entry_remove(r, e);
    r->changes++;
}

void
deferral_reasons_keep(struct deferral_reasons *r, struct id id,
                      const struct outcome *outcome)
{
    /* Held before the old cause is released, so that an equal one is not made anew. */
    unsigned number = cause_hold(r, outcome);
    struct deferral_reasons_entry *e = entry_find(r, id);
    r->changes++;
    if (e->number != NONE) {
        cause_release(r, e->number);
        e->number = number & ((1U << 24) - 1);
        return;
    }
    if (r->count == r->limit)
        entry_evict(r);
    /* A search ends at an empty place, so some must remain. */
    if (r->count + 1 > r->capacity / 8 * 7)
        entries_grow(r);
    e = entry_find(r, id);
    e->time_ms = id.time_ms & ((UINT64_C(1) << 50) - 1);
    e->hash = id.hash & ((UINT64_C(1) << 40) - 1);
    e->number = number & ((1U << 24) - 1);
    r->count++;
    assert(r->count <= r->limit);
}

const char *
deferral_reasons_find(const struct deferral_reasons *r, struct id id)
{
    const struct deferral_reasons_entry *e = entry_find(r, id);
    const struct cause *c = e->number == NONE ? NULL : r->slots[e->number].cause;
    return c ? c->key->texts : "";
}

const char *
deferral_reasons_release(int64_t release_ms, char out[DEFERRAL_RELEASE_MAX])
{
    char date[DATE_TEXT_MAX];
    date_format_utc(release_ms, date);
    snprintf(out, DEFERRAL_RELEASE_MAX, DEFERRAL_RELEASE "%s, as its sender asked",
             date);
    return out;
}

int
deferral_reasons_code(const struct deferral_reasons *r, struct id id)
{
    const struct deferral_reasons_entry *e = entry_find(r, id);
    const struct cause *c = e->number == NONE ? NULL : r->slots[e->number].cause;
    return c != NULL ? c->key->code : 0;
}

unsigned
deferral_reasons_count(const struct deferral_reasons *r)
{
    return (unsigned)r->count;
}

uint64_t
deferral_reasons_changes(const struct deferral_reasons *r)
{
    return r->changes;
}

size_t
deferral_reasons_memory(const struct deferral_reasons *r)
{
    return sizeof(*r) + r->capacity * sizeof(*r->entries) +
           r->slot_capacity * sizeof(*r->slots) + r->bytes +
           (r->causes ? HASH_OVERHEAD(hh, r->causes) : 0);
}

unsigned
deferral_reasons_numbers(const struct deferral_reasons *r)
{
    return r->slot_count;
}

void
deferral_reasons_each(const struct deferral_reasons *r,
                      void (*each)(void *context, struct id id, unsigned number),
                      void *context)
{
    for (size_t i = 0; i < r->capacity; i++)
        if (r->entries[i].number != NONE)
            each(context, entry_id(&r->entries[i]), r->entries[i].number);
}

bool
deferral_reasons_read(const struct deferral_reasons *r, unsigned number,
                      struct outcome *outcome)
{
    assert(number != NONE && number < r->slot_count);
    const struct cause *c = r->slots[number].cause;
    if (!c)
        return false;
    const struct cause_key *key = c->key;
    const char *remote = key->texts + strlen(key->texts) + 1;
    *outcome = (struct outcome){
        .verdict = VERDICT_DEFERRED, .blame = BLAME_MESSAGE, .code = key->code};
    memcpy(outcome->enhanced, key->enhanced, sizeof(outcome->enhanced));
    (void)!text_copy(outcome->text, sizeof(outcome->text), text_from(key->texts));
    (void)!text_copy(outcome->remote, sizeof(outcome->remote), text_from(remote));
    return true;
}

enum {
    NUMBER_MAX = 10, /* digits */
    LINE_MAX_SIZE = ID_LENGTH + NUMBER_MAX + 2,
    TRAILER_SIZE = 13,      /* "end ", eight hex digits, LF */
    READ_MARGIN = 64 << 10, /* spool_read_path() asks for pieces */
    READ_ALL_MAX = 1000000, /* messages, of all slices */
    FRAME_SIZE = 200        /* title and trailer */
};

/* --- Writing the file ------------------------------------------------------------ */

struct reasons_row {
    struct id id;
    int64_t due_ms;
    unsigned number; /* deferral_reasons.h's */
};

struct reasons_page {
    struct sched *sched;
    bool knows_all;
    struct reasons_row *rows;
    size_t count;
    struct id *strangers;
    size_t stranger_count;
    const struct deferral_reasons *reasons;
    unsigned *numbers; /* by the number of deferral_reasons.h: the file's number, 0 =
                        * not yet in it */
    unsigned outcomes, messages;
    struct buffer heads, lines;
};

/* A reason of a message that startup has not found yet is kept: it may still be
 * found. */
static void
reasons_collect(void *context, struct id id, unsigned number)
{
    struct reasons_page *p = context;
    struct sched_state state = sched_find(p->sched, id);
    if (state.place == SCHED_UNKNOWN && p->knows_all) {
        p->strangers[p->stranger_count++] = id;
        return;
    }
    /* Active messages and those not yet found may be asked for first. */
    int64_t due_ms = state.place == SCHED_DEFERRED ? state.due_ms : 0;
    p->rows[p->count++] = (struct reasons_row){id, due_ms, number};
}

/* The size of the file is limited: messages that are due last are left out. */
static int
reasons_sooner(const void *a, const void *b)
{
    const struct reasons_row *x = a, *y = b;
    if (x->due_ms != y->due_ms)
        return x->due_ms < y->due_ms ? -1 : 1;
    return id_compare(x->id, y->id);
}

static size_t
reasons_left(const struct reasons_page *p)
{
    return REASONS_SIZE_MAX - FRAME_SIZE - p->heads.length - p->lines.length;
}

/* Whether the code is a deferral or a failure (RFC 3463 §2). */
static bool
reasons_is_enhanced(struct text t)
{
    struct text class, subject, detail;
    uint64_t number;
    return text_cut(&t, '.', &class) && text_cut(&t, '.', &subject) &&
           text_cut(&t, '.', &detail) && t.at == NULL &&
           (text_equal(class, TEXT("4")) || text_equal(class, TEXT("5"))) &&
           text_number(subject, 999, &number) && text_number(detail, 999, &number);
}

static bool
reasons_is_code(int64_t code)
{
    return code == 0 || (code >= 200 && code <= 599);
}

/* The file's number of an outcome; 0: no space, or it was forgotten. */
static unsigned
reasons_put_outcome(struct reasons_page *p, unsigned number)
{
    struct outcome o;
    char head[80];
    if (p->numbers[number] != 0)
        return p->numbers[number];
    if (!deferral_reasons_read(p->reasons, number, &o))
        return 0;
    int length = snprintf(
        head, sizeof(head), "%d %s %zu %zu\n", reasons_is_code(o.code) ? o.code : 0,
        reasons_is_enhanced(text_from(o.enhanced)) ? o.enhanced : "4.0.0",
        strlen(o.text), strlen(o.remote));
    size_t size = (size_t)length + strlen(o.text) + strlen(o.remote) + 1;
    if (size + LINE_MAX_SIZE > reasons_left(p))
        return 0;
    (void)!buffer_format(&p->heads, "%s%s%s\n", head, o.text, o.remote);
    return p->numbers[number] = ++p->outcomes;
}

/* Reasons that do not fit are counted in the file, and forgotten: they are a hint. */
static void
reasons_put_message(struct reasons_page *p, const struct reasons_row *row)
{
    char name[ID_LENGTH + 1];
    if (p->messages == REASONS_COUNT_MAX || reasons_left(p) < LINE_MAX_SIZE)
        return;
    unsigned number = reasons_put_outcome(p, row->number);
    if (number == 0)
        return;
    id_format(row->id, name);
    if (buffer_format(&p->lines, "%s %u\n", name, number))
        p->messages++;
}

/* As a whole, with a checksum: a reader takes all of it or nothing. */
static int
reasons_put_file(struct disk *disk, const char *path, const struct reasons_page *p)
{
    struct buffer all;
    buffer_init(&all, REASONS_SIZE_MAX);
    bool good =
        buffer_format(&all, "petrel reasons 1\noutcomes %u messages %u left out %zu\n",
                      p->outcomes, p->messages, p->count - p->messages) &&
        buffer_add(&all, buffer_text(&p->heads)) &&
        buffer_add(&all, buffer_text(&p->lines)) &&
        buffer_format(&all, "end %08" PRIx32 "\n", crc_add(0, all.at, all.length));
    int result = good ? spool_write_path(disk, path, buffer_text(&all)) : -EFBIG;
    buffer_free(&all);
    return result;
}

/* Without reasons there is no file. */
static int
reasons_put(struct disk *disk, const char *path, struct reasons_page *p)
{
    qsort(p->rows, p->count, sizeof(*p->rows), reasons_sooner);
    for (size_t i = 0; i < p->count; i++)
        reasons_put_message(p, &p->rows[i]);
    int result =
        p->messages > 0 ? reasons_put_file(disk, path, p) : disk_unlink(disk, path);
    return result == -ENOENT ? 0 : result;
}

int
reasons_write(struct disk *disk, const char *path, struct deferral_reasons *reasons,
              struct sched *sched, bool knows_all)
{
    unsigned count = deferral_reasons_count(reasons);
    struct reasons_page p = {
        .sched = sched,
        .knows_all = knows_all,
        .reasons = reasons,
        .rows = memory_array(count + 1, sizeof(*p.rows)),
        .strangers = memory_array(count + 1, sizeof(*p.strangers)),
        .numbers = memory_array(deferral_reasons_numbers(reasons), sizeof(*p.numbers)),
    };
    buffer_init(&p.heads, REASONS_SIZE_MAX);
    buffer_init(&p.lines, REASONS_SIZE_MAX);
    deferral_reasons_each(reasons, reasons_collect, &p);
    int result = reasons_put(disk, path, &p);
    /* Not during the walk: a removal moves other entries. */
    for (size_t i = 0; i < p.stranger_count; i++)
        deferral_reasons_forget(reasons, p.strangers[i]);
    buffer_free(&p.heads);
    buffer_free(&p.lines);
    free(p.numbers);
    free(p.strangers);
    free(p.rows);
    return result;
}

/* --- Reading the file ------------------------------------------------------------ */

struct reasons_reader {
    struct text rest;
    struct outcome *outcome; /* of the last one read */
    struct text *outcomes;   /* each from its first line on */
    uint64_t outcome_count, message_count;
};

/* A line has the right number of fields, separated by one blank each. */
static bool
reasons_number(struct text *line, uint64_t max, uint64_t *value)
{
    struct text field;
    return text_cut(line, ' ', &field) && text_number(field, max, value);
}

static bool
reasons_take(struct text *rest, size_t length, char *to, size_t size)
{
    struct text t = text_before(*rest, length);
    if (t.length < length || length >= size || text_find(t, '\0') != TEXT_NONE)
        return false;
    *rest = text_after(*rest, length);
    return text_copy(to, size, t);
}

static bool
reasons_take_outcome(struct text *rest, struct outcome *o)
{
    struct text line, enhanced;
    uint64_t code, text, remote;
    *o = (struct outcome){.verdict = VERDICT_DEFERRED, .blame = BLAME_MESSAGE};
    bool good = text_cut(rest, '\n', &line) && reasons_number(&line, 599, &code) &&
                text_cut(&line, ' ', &enhanced) && reasons_is_enhanced(enhanced) &&
                text_copy(o->enhanced, sizeof(o->enhanced), enhanced) &&
                reasons_number(&line, OUTCOME_TEXT_MAX - 1, &text) &&
                reasons_number(&line, OUTCOME_REMOTE_MAX - 1, &remote) &&
                line.at == NULL && reasons_is_code((int64_t)code) &&
                reasons_take(rest, (size_t)text, o->text, sizeof(o->text)) &&
                reasons_take(rest, (size_t)remote, o->remote, sizeof(o->remote)) &&
                text_starts(*rest, TEXT("\n"));
    if (!good)
        return false;
    o->code = (int)code;
    *rest = text_after(*rest, 1);
    return true;
}

static bool
reasons_take_message(const struct reasons_reader *r, struct text *rest, struct id *id,
                     uint64_t *number)
{
    struct text line, name;
    return text_cut(rest, '\n', &line) && text_cut(&line, ' ', &name) &&
           id_parse(name, id) && reasons_number(&line, r->outcome_count, number) &&
           line.at == NULL && *number > 0;
}

/* "outcomes N messages N left out N" */
static bool
reasons_take_title(struct reasons_reader *r)
{
    static const struct text words[] = {TEXT("outcomes"), TEXT("messages"),
                                        TEXT("left"), TEXT("out")};
    struct text title, line, word;
    uint64_t left;
    if (!text_cut(&r->rest, '\n', &title) ||
        !text_equal(title, TEXT("petrel reasons 1")) ||
        !text_cut(&r->rest, '\n', &line))
        return false;
    return text_cut(&line, ' ', &word) && text_equal(word, words[0]) &&
           reasons_number(&line, REASONS_COUNT_MAX, &r->outcome_count) &&
           text_cut(&line, ' ', &word) && text_equal(word, words[1]) &&
           reasons_number(&line, REASONS_COUNT_MAX, &r->message_count) &&
           text_cut(&line, ' ', &word) && text_equal(word, words[2]) &&
           text_cut(&line, ' ', &word) && text_equal(word, words[3]) &&
           reasons_number(&line, UINT32_MAX, &left) && line.at == NULL;
}

/* Checks and removes the trailer. */
static bool
reasons_check_sum(struct text all, struct text *body)
{
    char trailer[TRAILER_SIZE + 1];
    if (all.length < TRAILER_SIZE)
        return false;
    *body = text_before(all, all.length - TRAILER_SIZE);
    snprintf(trailer, sizeof(trailer), "end %08" PRIx32 "\n",
             crc_add(0, body->at, body->length));
    return text_equal(text_after(all, body->length), text_from(trailer));
}

/* The whole file is checked before any of it is trusted. */
static bool
reasons_parse(struct reasons_reader *r, struct text all, struct text *lines)
{
    struct id id;
    uint64_t number;
    struct outcome o;
    if (!reasons_check_sum(all, &r->rest) || !reasons_take_title(r))
        return false;
    r->outcomes = memory_array((size_t)r->outcome_count + 1, sizeof(*r->outcomes));
    for (uint64_t i = 1; i <= r->outcome_count; i++) {
        r->outcomes[i] = r->rest;
        if (!reasons_take_outcome(&r->rest, &o))
            return false;
    }
    *lines = r->rest;
    for (uint64_t i = 0; i < r->message_count; i++)
        if (!reasons_take_message(r, &r->rest, &id, &number))
            return false;
    return r->rest.length == 0;
}

static void
reasons_add(const struct reasons_reader *r, struct text lines,
            struct deferral_reasons *reasons,
            bool (*wants)(void *context, struct id id), void *context)
{
    struct id id;
    uint64_t number;
    struct outcome o;
    for (uint64_t i = 0; i < r->message_count; i++) {
        if (!reasons_take_message(r, &lines, &id, &number) || !wants(context, id))
            continue;
        struct text outcome = r->outcomes[number];
        if (reasons_take_outcome(&outcome, &o))
            deferral_reasons_keep(reasons, id, &o);
    }
}

int
reasons_read(struct disk *disk, const char *path, struct deferral_reasons *reasons,
             bool (*wants)(void *context, struct id id), void *context)
{
    struct buffer all;
    struct text lines;
    struct reasons_reader r = {0};
    buffer_init(&all, REASONS_SIZE_MAX + READ_MARGIN);
    int result = spool_read_path(disk, path, &all);
    if (result == 0 && !reasons_parse(&r, buffer_text(&all), &lines))
        result = -EILSEQ;
    if (result == 0)
        reasons_add(&r, lines, reasons, wants, context);
    free(r.outcomes);
    buffer_free(&all);
    return result;
}

/* --- All slices ------------------------------------------------------------------- */

struct reasons_search {
    struct disk *disk;
    struct deferral_reasons *found;
};

static bool
reasons_want_any(void *context, struct id id)
{
    (void)context;
    (void)id;
    return true;
}

/* "reasons", "reasons.FIRST-LAST", but no draft of either. */
static bool
reasons_read_entry(void *context, const char *name)
{
    static const struct text base = TEXT("reasons");
    const struct reasons_search *s = context;
    struct text suffix;
    char path[SPOOL_PATH_MAX];
    if (!text_starts(text_from(name), base))
        return true;
    suffix = text_after(text_from(name), base.length);
    if (suffix.length > 0 && (suffix.length >= SLICES_SUFFIX_MAX ||
                              strspn(suffix.at, ".-0123456789") < suffix.length))
        return true;
    snprintf(path, sizeof(path), "lock/%.30s", name);
    (void)!reasons_read(s->disk, path, s->found, reasons_want_any, NULL);
    return true;
}

struct deferral_reasons *
reasons_read_all(struct disk *disk)
{
    struct reasons_search s = {.disk = disk,
                               .found = deferral_reasons_new(READ_ALL_MAX)};
    (void)!disk_list(disk, "lock", reasons_read_entry, &s);
    return s.found;
}
