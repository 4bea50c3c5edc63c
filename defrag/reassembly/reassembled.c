/* Gathers, streams and names a reassembled message.
 *
 * reassembled_go() does it in steps, each within a budget: it reads the envelopes of
 * all messages that serve a recipient, then the content of one message for each number.
 * The parts may change between two turns, because operators' commands and damage of the
 * disk do not wait for a reassembly. So each part is checked again when its turn comes:
 * it must exist, must not be held, and must have the checksum of its envelope. Otherwise
 * the reassembly fails, and the set is released.
 *
 * The content is written into a draft. Nothing of it exists for the queue until the
 * caller commits it. */
#include "defrag/reassembly/reassembled.h"

#include "base/crc.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "defrag/reassembly/fragment.h"
#include "defrag/reassembly/utf8_scan.h"
#include "defrag/reassembly/reassemble.h"
#include "defrag/reassembly/parts_list.h"
#include "mime/date.h"
#include "queue/envelope/set_mark.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum {
    PIECE = 64 * 1024,
    STEP_COST = 1024, /* of the budget */
    TROUBLE_MAX = OUTCOME_TEXT_MAX,
    PREFIX_MAX = 1024,
    MADE_MAX = 16 * 1024 * 1024,
    NOTIFY_BY_DEFAULT = NOTIFY_FAILURE | NOTIFY_DELAY
};

/* A message that has been gathered: its content is opened without its envelope. */
struct reassembled_known {
    UT_hash_handle hh;
    struct id id;
    int64_t content_size;
    uint32_t content_crc;
};

/* A recipient of the reassembled message. */
struct reassembled_row {
    UT_hash_handle hh;
    unsigned index;   /* in its envelope */
    size_t group;     /* the last group that serves it; 0: none yet */
    bool has_notify;  /* one part has it */
    bool all_default; /* and all have NOTIFY_DEFAULT */
};

struct reassembled {
    struct reassembled_setup setup;
    char *hostname; /* of the setup */
    struct queue *queue;
    struct envelope *envelope;
    struct reassembled_row *rows, *by_address;
    struct reassembled_known *known;
    size_t served; /* the next of reassembly->served to gather */
    size_t groups;
    unsigned depth;
    struct buffer made;

    uint32_t part;    /* the next of reassembly->parts to be opened */
    int content;      /* of the part before it; < 0: none */
    int64_t at, body; /* bytes before the body, read for the checksum alone */
    uint32_t sum, wanted;
    struct buffer outer;
    struct queue_draft *draft;
    struct reassemble machine;
    bool is_reassembling;         /* the machine is started */
    struct inspection inspection; /* of the bytes written */
    bool too_many;                /* recipients */
    bool is_refused;              /* by the queue */
    char trouble[TROUBLE_MAX];
};

static enum reassembled_result
reassembled_fail(struct reassembled *w, const char *why)
{
    snprintf(w->trouble, sizeof(w->trouble), "%s", why);
    return REASSEMBLED_FAILED;
}

const char *
reassembled_trouble(const struct reassembled *w)
{
    return w->trouble;
}

bool
reassembled_is_refused(const struct reassembled *w)
{
    return w->is_refused;
}

/* --- The envelope ----------------------------------------------------------------- */

/* The envelope of a part; the caller frees *loaded. NULL: the part is gone. */
static const struct envelope *
envelope_of(struct reassembled *w, struct id id, struct envelope **loaded)
{
    const struct envelope *active = manager_active(w->setup.manager, id);
    *loaded = active ? NULL : queue_load_envelope(w->queue, id);
    return active ? active : *loaded;
}

/* NEVER applies when all parts say so; else the union of their values. */
static void
merge_notify(struct reassembled_row *row, struct recipient *to, unsigned notify)
{
    unsigned wanted = notify == NOTIFY_DEFAULT ? NOTIFY_BY_DEFAULT : notify;
    if (!row->has_notify) {
        to->notify = notify;
        row->all_default = notify == NOTIFY_DEFAULT;
    } else if (!row->all_default || notify != NOTIFY_DEFAULT) {
        unsigned before = row->all_default ? NOTIFY_BY_DEFAULT : to->notify;
        unsigned both = (before | wanted) & ~(unsigned)NOTIFY_NEVER;
        to->notify = both != 0 ? both : NOTIFY_NEVER;
        row->all_default = false;
    }
    row->has_notify = true;
}

static void
merge_recipient(struct reassembled *w, struct reassembled_row *row,
                const struct recipient *from, bool is_first)
{
    struct recipient *to = &w->envelope->recipients[row->index];
    merge_notify(row, to, from->notify);
    if (from->original.length > 0 && (is_first || to->original.length == 0))
        to->original = envelope_text(w->envelope, from->original);
}

/* Parts of one set were trusted as far as each other; but the sender of one may not
 * have been permitted to its user. */
static void
merge_submitter(struct envelope *e, const struct envelope *from, bool is_first)
{
    struct set_mark mark;
    bool ours = from->ours;
    if (from->fragment.by_peer)
        ours = set_mark_read(from->fragment.set_mark, &mark) && mark.ours;
    e->ours = ours && (is_first || e->ours);
    e->header_needs = e->ours ? HEADER_NEEDS_ALL : 0;
    if (!e->ours)
        e->submitter = e->tag = TEXT("");
    else if (e->submitter.length == 0)
        e->submitter = envelope_text(e, from->submitter);
    if (e->ours && e->tag.length == 0)
        e->tag = envelope_text(e, from->tag);
}

static void
merge_message(struct reassembled *w, const struct envelope *from)
{
    struct envelope *e = w->envelope;
    if (e->birth_ms == 0 || from->birth_ms < e->birth_ms)
        e->birth_ms = from->birth_ms;
    /* The first one counts even if it is below the default. */
    if (from->priority > e->priority || w->groups == 1)
        e->priority = from->priority;
    if (from->tls > e->tls || w->groups == 1)
        e->tls = from->tls;
    e->eight_bit = e->eight_bit || from->eight_bit;
    e->utf8 = e->utf8 || from->utf8;
    if (parts_list_depth(from) + 1 > w->depth)
        w->depth = parts_list_depth(from) + 1;
    /* A peer does not say how far it trusted the sender; other parts with the same key
     * were trusted as far. */
    if (!from->fragment.by_peer && e->trust.length == 0 && from->trust.length > 0)
        e->trust = envelope_text(e, from->trust);
    merge_submitter(e, from, w->groups == 1);
}

static void
note_known(struct reassembled *w, const struct envelope *e)
{
    struct reassembled_known *k = memory_new(sizeof(*k));
    k->id = e->id;
    k->content_size = e->content_size;
    k->content_crc = e->content_crc;
    /* An envelope need not be loaded a second time for its content. */
    HASH_ADD(hh, w->known, id, sizeof(k->id), k);
}

static void
reassembled_note_served(struct reassembled *w, struct text address)
{
    struct reassembled_row *row;
    HASH_FIND(hh, w->by_address, address.at, address.length, row);
    assert(row != NULL);
    row->group = w->groups;
}

/* Gathers the recipients that one message serves. False: it is gone, or held by the
 * operator. */
static bool
gather_one(struct reassembled *w)
{
    const struct set_reassembly *j = w->setup.reassembly;
    struct id id = j->served[w->served].id;
    struct envelope *loaded;
    w->groups++;
    while (w->served < j->served_count && id_compare(j->served[w->served].id, id) == 0)
        reassembled_note_served(w, j->served[w->served++].recipient);
    const struct envelope *e = envelope_of(w, id, &loaded);
    if (e == NULL || e->delivery.held) {
        envelope_free(&loaded);
        return false;
    }
    unsigned *indexes = memory_array(e->count, sizeof(*indexes));
    size_t count = 0;
    merge_message(w, e);
    note_known(w, e);
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        struct reassembled_row *row;
        HASH_FIND(hh, w->by_address, r->address.at, r->address.length, row);
        /* Others of its recipients wait for parts of their own, or have ended. */
        if (r->done || row == NULL || row->group != w->groups)
            continue;
        indexes[count++] = i;
        merge_recipient(w, row, r, id_compare(id, j->parts[0]) == 0);
    }
    if (count > 0)
        parts_list_add(id, indexes, count, &w->made);
    free(indexes);
    envelope_free(&loaded);
    return count > 0;
}

/* --- The content ------------------------------------------------------------------ */

static bool
reassembled_write_some(void *context, struct text bytes)
{
    struct reassembled *w = context;
    utf8_scan_add(&w->inspection, bytes);
    return queue_write(w->draft, bytes);
}

static int64_t
size_of(const struct reassembled *w)
{
    const struct set_reassembly *j = w->setup.reassembly;
    int64_t size = (int64_t)w->outer.length;
    for (uint32_t i = 0; i < j->count; i++)
        size += j->sizes[i];
    return size;
}

/* The first part: its envelope and its header are the base of those of the reassembled
 * message. */
static bool
reassembled_begin_content(struct reassembled *w, const struct envelope *first,
                          struct text header)
{
    struct envelope *e = w->envelope;
    struct outcome refusal;
    e->sender = envelope_text(e, first->sender);
    e->envelope_id = envelope_text(e, first->envelope_id);
    e->ret = first->ret;
    if (!buffer_add(&w->outer, first->prefix) || !buffer_add(&w->outer, header))
        return false;
    w->draft = queue_begin_own(w->queue, size_of(w), &refusal);
    if (w->draft == NULL) {
        w->is_refused = true;
        reassembled_fail(w, refusal.text);
        return false;
    }
    utf8_scan_start(&w->inspection);
    reassemble_start(&w->machine, buffer_text(&w->outer), reassembled_write_some, w);
    w->machine.keeps_subject = w->setup.keeps_subject;
    w->is_reassembling = true;
    return true;
}

/* The first part's header, which ends where its body starts. */
static bool
open_first(struct reassembled *w, const struct envelope *e)
{
    size_t size = (size_t)w->body;
    struct text bytes = queue_content_bytes(w->queue, w->content);
    char *start = bytes.at != NULL ? NULL : memory_array(size + 1, 1);
    if (start != NULL) {
        int64_t got = queue_content_read(w->queue, w->content, 0, start, size);
        bytes = text_of(start, got > 0 ? (size_t)got : 0);
    }
    bool good = bytes.length >= size &&
                reassembled_begin_content(w, e, text_before(bytes, size));
    free(start);
    return good;
}

/* The envelope is needed of the first part, and of each part that serves recipients. */
static bool
open_part(struct reassembled *w)
{
    struct id id = w->setup.reassembly->parts[w->part];
    struct envelope *loaded = NULL, stub = {.id = id, .sender = w->envelope->sender};
    const struct envelope *e = &stub;
    struct reassembled_known *k = NULL;
    HASH_FIND(hh, w->known, &id, sizeof(id), k);
    if (w->part == 0 || k == NULL)
        e = envelope_of(w, id, &loaded);
    else
        stub.content_size = k->content_size, stub.content_crc = k->content_crc;
    w->content = e == NULL ? -1 : queue_content_open(w->queue, e);
    w->body = e == NULL ? -1 : e->content_size - w->setup.reassembly->sizes[w->part];
    w->at = 0;
    w->sum = 0;
    w->wanted = e == NULL ? 0 : e->content_crc;
    /* The size of the body is that of its examination: the part before it must still be
     * a header. */
    bool good = w->content >= 0 && w->body >= 0 && w->body <= FRAGMENT_HEADER_MAX;
    if (good && w->part == 0)
        good = open_first(w, e);
    envelope_free(&loaded);
    w->part++;
    return good;
}

static void
close_part(struct reassembled *w)
{
    if (w->content >= 0)
        queue_content_close(w->queue, w->content);
    w->content = -1;
}

/* Reads the next bytes of the open part; *got 0: there are no more. */
static bool
copy_piece(struct reassembled *w, size_t *got)
{
    char piece[PIECE];
    struct text bytes = queue_content_bytes(w->queue, w->content);
    if (bytes.at != NULL) {
        bytes = text_before(text_after(bytes, (size_t)w->at), PIECE);
    } else {
        int64_t read =
            queue_content_read(w->queue, w->content, w->at, piece, sizeof(piece));
        if (read < 0)
            return false;
        bytes = text_of(piece, (size_t)read);
    }
    *got = bytes.length;
    /* Over the header, too: the checksum is of the whole content. */
    w->sum = crc_add(w->sum, bytes.at, bytes.length);
    size_t header = w->at < w->body ? (size_t)(w->body - w->at) : 0;
    w->at += (int64_t)bytes.length;
    bytes = text_after(bytes, header < bytes.length ? header : bytes.length);
    return bytes.length == 0 || reassemble_add(&w->machine, bytes);
}

/* The part may have been damaged since it was examined. */
static bool
reassembled_end_part(struct reassembled *w)
{
    close_part(w);
    return w->sum == w->wanted;
}

static bool
is_last(const struct reassembled *w)
{
    return w->part == w->setup.reassembly->count;
}

static enum reassembled_result
content_trouble(struct reassembled *w)
{
    if (w->trouble[0] != '\0')
        return REASSEMBLED_FAILED;
    w->is_refused = w->is_reassembling && w->machine.trouble == REASSEMBLE_NO_WRITE;
    if (w->is_reassembling && w->machine.trouble != REASSEMBLE_GOOD)
        return reassembled_fail(w, reassemble_trouble_text(w->machine.trouble));
    return reassembled_fail(w, "a part cannot be read");
}

/* --- Its name --------------------------------------------------------------------- */

static void
add_trace(struct reassembled *w)
{
    struct envelope *e = w->envelope;
    char id[ID_LENGTH + 1], date[DATE_TEXT_MAX], prefix[PREFIX_MAX];
    id_format(e->id, id);
    date_format(loop_now_ms(w->setup.loop), date);
    int length =
        snprintf(prefix, sizeof(prefix),
                 "Received: by %s (Petrel)\r\n"
                 "\tid %s (reassembled from %u fragments);\r\n\t%s\r\n",
                 w->setup.hostname, id, (unsigned)w->setup.reassembly->count, date);
    assert(length > 0 && length < PREFIX_MAX);
    e->prefix = envelope_text(e, text_from(prefix));
}

/* A client may say SMTPUTF8 without need; the content was examined. */
static void
reassembled_note_bytes(struct reassembled *w)
{
    struct envelope *e = w->envelope;
    struct inspection *i = &w->inspection;
    utf8_scan_end(i);
    e->eight_bit = e->eight_bit || i->eight_bit;
    e->ascii_header = e->utf8 && !i->utf8 && !i->unsure;
    e->utf8 = e->utf8 || i->utf8;
}

static enum reassembled_result
reassembled_finish(struct reassembled *w)
{
    struct envelope *e = w->envelope;
    struct buffer made;
    if (!reassemble_end(&w->machine))
        return content_trouble(w);
    reassembled_note_bytes(w);
    buffer_init(&made, MADE_MAX + 16);
    /* The depth is known only now: it is that of the deepest part, plus one. */
    parts_list_begin(w->depth, &made);
    bool fits = buffer_add(&made, buffer_text(&w->made));
    assert(fits);
    e->fragment.made_of = envelope_text(e, buffer_text(&made));
    buffer_free(&made);
    if (e->fragment.made_of.at == NULL)
        return reassembled_fail(w, "its parts are too many to be noted");
    queue_name(w->draft, e);
    add_trace(w);
    return REASSEMBLED_DONE;
}

enum reassembled_result
reassembled_go(struct reassembled *w, size_t budget)
{
    size_t used = 0, got = 0;
    if (w->too_many)
        return reassembled_fail(w, "all together its parts have too many recipients");
    /* Steps without bytes have a cost, too: a set may have 100000 small parts. */
    for (; used < budget; used += STEP_COST + got) {
        got = 0;
        if (w->served < w->setup.reassembly->served_count) {
            if (!gather_one(w))
                return reassembled_fail(w, "a part is gone, or held");
        } else if (w->content < 0) {
            if (!open_part(w))
                return content_trouble(w);
        } else if (!copy_piece(w, &got)) {
            return content_trouble(w);
        } else if (got == 0) {
            if (!reassembled_end_part(w))
                return reassembled_fail(w, "a part is damaged");
            if (is_last(w))
                return reassembled_finish(w);
            /* Not behind the last one: the message ends as its last fragment does. */
            if (!reassemble_seam(&w->machine))
                return content_trouble(w);
        }
    }
    return REASSEMBLED_MORE;
}

/* ---------------------------------------------------------------------------------- */

struct reassembled *
reassembled_new(const struct reassembled_setup *setup)
{
    struct reassembled *w = memory_new(sizeof(*w));
    const struct set_reassembly *j = setup->reassembly;
    assert(j->count > 0 && j->recipient_count > 0 && j->served_count > 0);
    w->setup = *setup;
    w->setup.hostname = w->hostname = memory_string(setup->hostname);
    w->queue = manager_queue(setup->manager);
    w->content = -1;
    w->envelope = envelope_new();
    buffer_init(&w->made, MADE_MAX);
    buffer_init(&w->outer, ENVELOPE_BYTES_MAX);
    w->rows = memory_array(j->recipient_count, sizeof(*w->rows));
    for (size_t i = 0; i < j->recipient_count; i++) {
        struct reassembled_row *row = &w->rows[i];
        w->too_many =
            w->too_many || !envelope_add(w->envelope, j->recipients[i], 0, TEXT(""));
        row->index = (unsigned)i;
        HASH_ADD_KEYPTR(hh, w->by_address, j->recipients[i].at, j->recipients[i].length,
                        row);
    }
    return w;
}

void
reassembled_take(struct reassembled *w, struct queue_draft **draft,
                 struct envelope **envelope)
{
    *draft = w->draft;
    *envelope = w->envelope;
    w->draft = NULL;
    w->envelope = NULL;
}

void
reassembled_free(struct reassembled **message)
{
    struct reassembled *w = *message;
    struct reassembled_known *k, *next;
    if (w == NULL)
        return;
    close_part(w);
    if (w->is_reassembling) {
        reassemble_free(&w->machine);
        utf8_scan_end(&w->inspection);
    }
    queue_discard(&w->draft);
    envelope_free(&w->envelope);
    HASH_CLEAR(hh, w->by_address);
    HASH_ITER (hh, w->known, k, next) {
        HASH_DEL(w->known, k);
        free(k);
    }
    free(w->rows);
    buffer_free(&w->made);
    buffer_free(&w->outer);
    free(w->hostname);
    free(w);
    *message = NULL;
}
