/* Drafts become messages: written, named, and made durable together at the end of a
 * turn. */
#include "queue/accept.h"

#include "base/crc.h"
#include "base/memory.h"
#include "base/tls.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CONTENT_BUFFER = 64 * 1024, /* a smaller message costs one write */
    NAME_TRIES = 100000,        /* on average `slices` of them are needed */
    SPACE_EVERY_MS = 1000,
    BYTES_RESERVE = 16 * 1024 * 1024,
    INODES_RESERVE = 200
};

struct queue_draft {
    struct accept *accept;
    struct buffer content; /* not yet written */
    int file;              /* -1: no file yet */
    char path[SPOOL_PATH_MAX];
    bool named;
    struct id id;
    int64_t size;
    uint32_t crc;
    bool refused;
    struct outcome refusal;
};

struct commit {
    struct queue_draft *draft;
    struct envelope *envelope;
    int intd; /* handle, -1: none */
    bool linked, ignored;
    queue_stored *stored;
    void *context;
    struct commit *prev, *next;
};

/* --- Space ----------------------------------------------------------------------- */

bool
accept_has_space(struct accept *a, int64_t size)
{
    int64_t now = loop_monotonic_ms(a->loop);
    if (!a->space_known || now - a->space_asked_ms >= SPACE_EVERY_MS) {
        a->space_known = true;
        a->space_asked_ms = now;
        int result = disk_space(a->spool->disk, &a->space);
        if (result < 0) {
            (void)spool_trouble(a->spool, result, NULL, "ask for free space");
            a->space = (struct disk_space){INT64_MAX, INT64_MAX};
        }
    }
    return a->space.bytes_free - a->settings.bytes_reserve >= (size > 0 ? size : 0) &&
           a->space.inodes_free >= a->settings.inodes_reserve;
}

/* --- A draft --------------------------------------------------------------------- */

static void
refuse(struct queue_draft *d, struct outcome refusal)
{
    if (!d->refused)
        d->refusal = refusal;
    d->refused = true;
}

static void
fail(struct queue_draft *d, int error, const char *doing)
{
    refuse(d, spool_refusal(spool_trouble(d->accept->spool, error,
                                          d->named ? &d->id : NULL, doing)));
}

static void
draft_free(struct queue_draft *d)
{
    if (d->file >= 0)
        disk_close_file(d->accept->spool->disk, d->file);
    buffer_free(&d->content);
    free(d);
}

/* Takes away what has been written; the error, if any, is the sweeper's. */
static void
draft_erase(struct queue_draft *d)
{
    struct spool *s = d->accept->spool;
    if (d->path[0] == '\0')
        return;
    int result = disk_unlink(s->disk, d->path);
    if (result < 0 && result != -ENOENT)
        (void)spool_trouble(s, result, d->named ? &d->id : NULL, "remove a draft");
}

/* S1: a nameless message that outgrew its buffer. */
static void
make_pid_file(struct queue_draft *d)
{
    struct accept *a = d->accept;
    int file = -EEXIST;
    while (file == -EEXIST) {
        snprintf(d->path, sizeof(d->path), "%s/%" PRId64 ".%016" PRIx64 ".%" PRIu64,
                 spool_room(ROOM_PID), loop_now_ms(a->loop) / 1000,
                 loop_random(a->loop), a->counter++);
        file = disk_create(a->spool->disk, d->path, a->spool->file_mode);
    }
    if (file < 0) {
        d->path[0] = '\0';
        fail(d, file, "make a draft");
        return;
    }
    d->file = file;
}

static void
flush_content(struct queue_draft *d)
{
    if (d->refused || d->content.length == 0)
        return;
    assert(d->file >= 0);
    int result = disk_write(d->accept->spool->disk, d->file, buffer_text(&d->content));
    if (result < 0)
        fail(d, result, "write a message");
    buffer_clear(&d->content);
}

struct queue_draft *
accept_begin(struct accept *a, int64_t size_expected, struct outcome *refusal)
{
    if (a->spool->trouble[0] != '\0') {
        *refusal = spool_refusal(-EIO);
        return NULL;
    }
    if (!accept_has_space(a, size_expected)) {
        *refusal = spool_refusal(-ENOSPC);
        return NULL;
    }
    struct queue_draft *d = memory_new(sizeof(*d));
    d->accept = a;
    d->file = -1;
    buffer_init(&d->content, CONTENT_BUFFER);
    return d;
}

bool
queue_write(struct queue_draft *d, struct text bytes)
{
    assert(!d->named);
    struct accept *a = d->accept;
    d->crc = crc_add(d->crc, bytes.at, bytes.length);
    d->size += (int64_t)bytes.length;
    /* The wire holds this limit itself; here it is for what comes from the command
     * line. */
    if (a->at_once && a->settings.message_size_limit > 0 &&
        d->size > a->settings.message_size_limit)
        refuse(d, outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 552, "5.3.4",
                               "Message is too large"));
    while (!d->refused && bytes.length > 0) {
        size_t room = CONTENT_BUFFER - d->content.length;
        bool fits = buffer_add(&d->content, text_before(bytes, room));
        assert(fits);
        bytes = text_after(bytes, room);
        if (bytes.length == 0)
            break;
        if (d->file < 0)
            make_pid_file(d);
        flush_content(d);
    }
    return !d->refused;
}

int64_t
queue_draft_size(const struct queue_draft *d)
{
    return d->size;
}

void
queue_discard(struct queue_draft **draft)
{
    if (*draft == NULL)
        return;
    draft_erase(*draft);
    draft_free(*draft);
    *draft = NULL;
}

/* --- Its name -------------------------------------------------------------------- */

static struct id
make_id(struct accept *a, struct text form, int64_t now_ms)
{
    unsigned char digest[TLS_DIGEST_SIZE];
    struct buffer all;
    buffer_init(&all, form.length + 64);
    bool fits = buffer_add(&all, form) &&
                buffer_format(&all, "%" PRId64 " %" PRIu64 " %016" PRIx64, now_ms,
                              a->counter++, loop_random(a->loop));
    assert(fits);
    tls_digest(buffer_text(&all), digest);
    buffer_free(&all);
    return id_make((uint64_t)now_ms, digest);
}

/* S2: the name is ours once its file in mess/ is there. */
static int
take_name(struct queue_draft *d, struct id id)
{
    struct spool *s = d->accept->spool;
    char path[SPOOL_PATH_MAX];
    spool_path(ROOM_MESS, id, path);
    if (d->refused)
        return 0;
    if (d->file < 0) {
        int file = disk_create(s->disk, path, s->file_mode);
        if (file < 0)
            return file;
        d->file = file;
    } else {
        int result = disk_link(s->disk, d->path, path);
        if (result < 0)
            return result;
        /* What fails here is a second name, which the sweeper removes. */
        result = disk_unlink(s->disk, d->path);
        if (result < 0)
            (void)spool_trouble(s, result, &id, "remove a draft's first name");
    }
    memcpy(d->path, path, sizeof(path));
    return 0;
}

void
queue_name(struct queue_draft *d, struct envelope *e)
{
    assert(!d->named);
    struct accept *a = d->accept;
    const struct queue_settings *settings = &a->settings;
    int64_t now_ms = loop_now_ms(a->loop);
    struct buffer form;
    int result = -EEXIST;
    e->id = (struct id){0};
    if (e->birth_ms == 0)
        e->birth_ms = now_ms;
    e->content_size = d->size;
    e->content_crc = d->crc;
    buffer_init(&form, SPOOL_FILE_MAX);
    envelope_write_todo(e, &form);
    for (unsigned i = 0; i < NAME_TRIES && result == -EEXIST; i++) {
        d->id = make_id(a, buffer_text(&form), now_ms);
        if (id_slice(d->id, settings->slices) == settings->slice)
            result = take_name(d, d->id);
    }
    buffer_free(&form);
    d->named = true;
    e->id = d->id;
    if (result < 0)
        fail(d, result, "make a message file");
    flush_content(d);
    buffer_free(&d->content);
}

/* --- Commit ---------------------------------------------------------------------- */

/* S3 */
static void
write_intd(struct commit *c)
{
    struct spool *s = c->draft->accept->spool;
    struct buffer form;
    if (c->draft->refused)
        return;
    buffer_init(&form, SPOOL_FILE_MAX);
    envelope_write_todo(c->envelope, &form);
    int file = spool_write_new(s, ROOM_INTD, c->draft->id, buffer_text(&form),
                               s->file_mode, false);
    buffer_free(&form);
    if (file < 0)
        refuse(c->draft, spool_refusal(file));
    else
        c->intd = file;
}

static void
sync_files(struct commit *c)
{
    struct queue_draft *d = c->draft;
    struct spool *s = d->accept->spool;
    if (d->refused)
        return;
    int result = spool_sync(s, d->file, &d->id);
    if (result == 0)
        result = spool_sync(s, c->intd, &d->id);
    if (result < 0)
        refuse(d, spool_refusal(result));
}

/* S4, in the eyes of everybody but a power cut. */
static void
link_todo(struct commit *c)
{
    struct queue_draft *d = c->draft;
    if (d->refused)
        return;
    c->linked = true;
    seen_add(d->accept->seen, d->id);
    int result = spool_enter_todo(d->accept->spool, d->id);
    if (result < 0)
        refuse(d, spool_refusal(result));
}

static void
sync_todo(struct accept *a, struct commit *commits)
{
    struct commit *c;
    int result = spool_sync_rooms(a->spool, ROOM_BIT(ROOM_QUEUED));
    DL_FOREACH (commits, c) {
        if (!c->linked || c->draft->refused)
            continue;
        int own = result;
        /* Other users may not open todo/ to sync it; their file's sync takes the new
         * name along (spec/queue.md §4.1). */
        if (result == -EACCES)
            own = spool_sync(a->spool, c->intd, &c->draft->id);
        if (own < 0)
            refuse(c->draft, spool_refusal(own));
    }
}

static void
undo(struct commit *c)
{
    struct queue_draft *d = c->draft;
    struct spool *s = d->accept->spool;
    if (c->linked)
        (void)spool_remove(s, ROOM_QUEUED, d->id);
    if (c->intd >= 0)
        (void)spool_remove(s, ROOM_INTD, d->id);
    draft_erase(d);
    seen_remove(d->accept->seen, d->id);
}

/* Makes all of them durable, or says why not. */
static void
sync_commits(struct accept *a, struct commit *commits)
{
    struct commit *c;
    DL_FOREACH (commits, c)
        sync_files(c);
    /* A failed sync is fatal for its whole batch (spec/queue.md §4.4). */
    if (a->spool->trouble[0] != '\0')
        DL_FOREACH (commits, c)
            refuse(c->draft, spool_refusal(-EIO));
    DL_FOREACH (commits, c)
        link_todo(c);
    sync_todo(a, commits);
    DL_FOREACH (commits, c) {
        if (c->draft->refused)
            undo(c);
        if (c->intd >= 0)
            disk_close_file(a->spool->disk, c->intd);
        c->intd = -1;
    }
}

/* The owner hears, and c is gone. */
static void
answer(struct accept *a, struct commit *c)
{
    struct outcome refusal = c->draft->refusal;
    bool refused = c->draft->refused;
    struct id id = c->draft->id;
    if (refused || c->ignored)
        envelope_free(&c->envelope);
    if (!refused)
        a->stored++;
    draft_free(c->draft);
    if (!c->ignored)
        c->stored(c->context, c->envelope, refused ? &refusal : NULL);
    else if (!refused)
        a->orphaned(a->context, id);
    free(c);
}

static void
answer_all(struct accept *a)
{
    /* One at a time: an owner may ask to be ignored while another one hears. */
    while (a->synced != NULL) {
        struct commit *first = a->synced;
        DL_DELETE(a->synced, first);
        answer(a, first);
    }
}

static void
at_stage_sync(void *context)
{
    struct accept *a = context;
    loop_unpost(a->loop, &a->stir);
    if (a->waiting == NULL)
        return;
    sync_commits(a, a->waiting);
    DL_CONCAT(a->synced, a->waiting);
    a->waiting = NULL;
}

static void
at_stage_answer(void *context)
{
    answer_all(context);
}

static void
nothing(void *context)
{
    (void)context;
}

void
accept_commit(struct queue_draft **draft, struct envelope **e, queue_stored *stored,
              void *context)
{
    struct queue_draft *d = *draft;
    struct accept *a = d->accept;
    assert(d->named && id_compare(d->id, (*e)->id) == 0 && stored != NULL);
    struct commit *c = memory_new(sizeof(*c));
    *c = (struct commit){.draft = d, .envelope = *e, .intd = -1};
    c->stored = stored;
    c->context = context;
    *draft = NULL;
    *e = NULL;
    write_intd(c);
    if (a->at_once) {
        DL_APPEND(a->synced, c);
        sync_commits(a, c);
        bool stored_well = !c->draft->refused;
        answer_all(a);
        if (stored_well) /* without a daemon it finds the message when it starts */
            (void)!disk_pull_fifo(a->spool->disk, spool_trigger);
        return;
    }
    DL_APPEND(a->waiting, c);
    /* It may be past the stage of this turn already: then another one must come. */
    loop_post(a->loop, &a->stir, nothing, a);
}

static void
ignore_in(struct commit *list, void *context)
{
    struct commit *c;
    DL_FOREACH (list, c)
        if (c->context == context)
            c->ignored = true;
}

void
accept_ignore(struct accept *a, void *context)
{
    ignore_in(a->waiting, context);
    ignore_in(a->synced, context);
}

/* --- Start and stop -------------------------------------------------------------- */

void
accept_start(struct accept *a)
{
    struct queue_settings *settings = &a->settings;
    assert(settings->slices > 0 && settings->slice < settings->slices);
    if (settings->bytes_reserve <= 0)
        settings->bytes_reserve = BYTES_RESERVE;
    if (settings->inodes_reserve <= 0)
        settings->inodes_reserve = INODES_RESERVE;
    if (a->at_once)
        return;
    loop_at_end(a->loop, LOOP_STAGE_SYNC, at_stage_sync, a);
    loop_at_end(a->loop, LOOP_STAGE_ANSWER, at_stage_answer, a);
}

static void
drop(struct commit *c, bool keep)
{
    if (!keep) {
        refuse(c->draft, spool_refusal(-EIO));
        undo(c);
    }
    if (c->intd >= 0)
        disk_close_file(c->draft->accept->spool->disk, c->intd);
    envelope_free(&c->envelope);
    draft_free(c->draft);
    free(c);
}

void
accept_stop(struct accept *a)
{
    struct commit *c, *next;
    if (!a->at_once) {
        loop_at_end_remove(a->loop, LOOP_STAGE_SYNC, at_stage_sync, a);
        loop_at_end_remove(a->loop, LOOP_STAGE_ANSWER, at_stage_answer, a);
        loop_unpost(a->loop, &a->stir);
    }
    DL_FOREACH_SAFE (a->waiting, c, next)
        drop(c, false);
    DL_FOREACH_SAFE (a->synced, c, next)
        drop(c, !c->draft->refused);
    a->waiting = a->synced = NULL;
}
