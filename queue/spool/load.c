/* Loads an envelope from files, with every check that tells a whole message from a
 * damaged one. */
#include "queue/spool/load.h"

#include "base/crc.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/spool/injected.h"
#include "queue/spool/marker.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTENT_PIECE = 64 * 1024 };

/* Whether the file itself is wrong; all other errors are temporary. A disk that does
 * not answer is no proof of damage: such a message is tried again, and not set
 * aside. */
static bool
is_evidence(int error)
{
    return error == -ENOENT || error == -EINVAL || error == -EFBIG ||
           error == -EACCES || error == -ENOTDIR || error == -ELOOP;
}

static enum load_result
load_judge(int error, const char *what, char reason[LOAD_REASON_MAX])
{
    snprintf(reason, LOAD_REASON_MAX, "%s: %s", what, strerror(-error));
    return is_evidence(error) ? LOAD_DAMAGED : LOAD_LATER;
}

/* The daemon sets such a message aside; a command of the operator leaves it alone. */
static enum load_result
damaged(const char *what, char reason[LOAD_REASON_MAX])
{
    snprintf(reason, LOAD_REASON_MAX, "%s is damaged", what);
    return LOAD_DAMAGED;
}

/* --- The content ----------------------------------------------------------------- */

/* Reads little more than c->size, though the file may grow. True: that was all. */
static bool
read_some(struct load_check *c, int64_t *budget)
{
    struct spool *s = c->spool;
    int64_t left = c->size - c->at, got = 1;
    size_t most = left < CONTENT_PIECE ? (size_t)left + 1 : CONTENT_PIECE;
    char *piece = memory_new(most);
    while (got > 0 && c->error == 0 && c->at <= c->size && *budget > 0) {
        size_t wanted = *budget < (int64_t)most ? (size_t)*budget : most;
        got = disk_read(s->disk, c->file, c->at, piece, wanted);
        if (got < 0)
            c->error = (int)got;
        if (got <= 0)
            break;
        c->sum = crc_add(c->sum, piece, (size_t)got);
        c->at += got;
        *budget -= got;
        s->bytes_read += (uint64_t)got;
        if (c->copy >= 0)
            c->error = disk_write(s->disk, c->copy, text_of(piece, (size_t)got));
        c->copy_failed = c->error != 0;
        if (c->at == c->size && (size_t)got < wanted)
            got = 0; /* the end; its sum says whether it is whole */
    }
    free(piece);
    return got <= 0 || c->error != 0 || c->at > c->size;
}

/* A failed sync of a copy is a failed copy: it is never repeated. */
static void
take_sync(struct load_check *c, int result)
{
    c->spool->syncs++;
    if (result < 0) {
        c->error = spool_trouble(c->spool, result, &c->id, "sync a file");
        c->copy_failed = true;
    }
    c->stage = LOAD_CHECK_OVER;
}

static void
load_on_synced(void *context, int result)
{
    struct load_check *c = context;
    bool unwanted = c->stage == LOAD_CHECK_UNWANTED;
    take_sync(c, result);
    if (unwanted)
        load_check_stop(c);
}

/* The bytes have been read: makes a good copy durable. */
static void
load_end_reading(struct load_check *c, bool waits)
{
    bool good = c->error == 0 && c->at == c->size && c->sum == c->crc;
    c->stage = LOAD_CHECK_OVER;
    if (c->copy < 0 || !good)
        return;
    c->stage = LOAD_CHECK_SYNCING;
    c->sync = (struct disk_sync){.done = load_on_synced, .context = c};
    int result = waits ? disk_sync(c->spool->disk, c->copy)
                       : disk_sync_begin(c->spool->disk, c->copy, false, &c->sync);
    if (result != DISK_SYNCING)
        take_sync(c, result);
}

enum load_step
load_check_go(struct load_check *c, int64_t *budget)
{
    if (c->stage == LOAD_CHECK_READING && read_some(c, budget))
        load_end_reading(c, false);
    switch (c->stage) {
    case LOAD_CHECK_READING:
        return LOAD_STEP_MORE;
    case LOAD_CHECK_SYNCING:
    case LOAD_CHECK_UNWANTED:
        return LOAD_STEP_WAITS;
    case LOAD_CHECK_NONE:
    case LOAD_CHECK_OVER:
        break;
    }
    return LOAD_STEP_OVER;
}

/* The copy has a name in pid/ until it replaces the content; without one nobody would
 * remove it. */
void
load_check_stop(struct load_check *c)
{
    bool syncs = c->stage == LOAD_CHECK_SYNCING || c->stage == LOAD_CHECK_UNWANTED;
    if (c->stage == LOAD_CHECK_NONE)
        return;
    if (c->copy >= 0 && !c->is_nameless)
        (void)spool_remove(c->spool, SPOOL_PID, c->id);
    c->is_nameless = true;
    /* A sync in flight needs the open files: load_on_synced() stops the check again. */
    c->stage = syncs ? LOAD_CHECK_UNWANTED : LOAD_CHECK_NONE;
    if (syncs)
        return;
    disk_close_file(c->spool->disk, c->file);
    if (c->copy >= 0)
        disk_close_file(c->spool->disk, c->copy);
}

/* Nothing is wrong with the message: we cannot load it now. */
static enum load_result
cannot_adopt(int error, char reason[LOAD_REASON_MAX])
{
    snprintf(reason, LOAD_REASON_MAX, "copying the content: %s", strerror(-error));
    return LOAD_LATER;
}

/* Puts the whole copy in place of the file that another user owns. From here on the
 * content is ours, and its owner can change it no more. A crash before leaves the file
 * as it was. */
static enum load_result
load_adopt(struct load_check *c, char reason[LOAD_REASON_MAX])
{
    char from[SPOOL_PATH_MAX], to[SPOOL_PATH_MAX];
    spool_path(SPOOL_PID, c->id, from);
    spool_path(SPOOL_MESS, c->id, to);
    int result = disk_rename(c->spool->disk, from, to);
    c->is_nameless = result == 0;
    return result < 0 ? cannot_adopt(result, reason) : LOAD_DONE;
}

/* Whether another user wrote the file, whom the daemon need not trust. */
static bool
is_foreign(const struct spool *s, const struct disk_info *info)
{
    return s->adopts && info->owner != s->user;
}

/* Opens a file for a copy of this size; < 0: not now. */
static int
start_copy(struct spool *s, struct id id, int64_t size)
{
    struct disk_space space;
    /* The copy leaves the reserve of the disk alone, as new mail does. */
    if (disk_space(s->disk, &space) == 0 && space.bytes_free - s->bytes_reserve < size)
        return -ENOSPC;
    return spool_write_new(s, SPOOL_PID, id, TEXT(""), true);
}

/* Starts the check of open content; takes ownership of the file. Another user's content
 * is copied while it is checked, so that the checked bytes are delivered. */
static void
start_reading(struct load_check *c, struct spool *s, int file, bool foreign,
              const struct envelope *e)
{
    *c = (struct load_check){.spool = s,
                             .id = e->id,
                             .stage = LOAD_CHECK_READING,
                             .size = e->content_size,
                             .crc = e->content_crc,
                             .file = file,
                             .copy = -1,
                             .foreign = foreign};
    if (!foreign)
        return;
    c->copy = start_copy(s, e->id, e->content_size);
    if (c->copy >= 0)
        return;
    c->error = c->copy;
    c->copy_failed = true;
    c->stage = LOAD_CHECK_OVER;
}

/* Whether the content that was read matches the envelope, which may have been replaced
 * meanwhile. */
static enum load_result
judge_bytes(struct load_check *c, bool foreign, const struct envelope *e,
            char reason[LOAD_REASON_MAX])
{
    if (c->copy_failed)
        return cannot_adopt(c->error, reason);
    if (c->error < 0)
        return load_judge(c->error, "the content", reason);
    if (c->at != e->content_size || c->sum != e->content_crc)
        return damaged("the content", reason);
    return foreign ? load_adopt(c, reason) : LOAD_DONE;
}

struct content {
    int file;
    unsigned owner; /* of todo/ID, if there is no S5 */
    bool injected, foreign;
};

/* Checks all but its bytes; on success the file is open. */
static enum load_result
judge_content(struct spool *s, struct content *c, const struct envelope *e,
              char reason[LOAD_REASON_MAX])
{
    struct disk_info info;
    int result = disk_file_info(s->disk, c->file, &info);
    if (result < 0)
        return load_judge(result, "the content", reason);
    c->foreign = is_foreign(s, &info);
    /* Two links: an injector died between link and unlink of its pid name. */
    if (c->foreign && (info.links > 2 || (c->injected && info.owner != c->owner))) {
        snprintf(reason, LOAD_REASON_MAX,
                 "content and envelope are not of one owner (%u, %u; %u links)",
                 info.owner, c->owner, info.links);
        return LOAD_DAMAGED;
    }
    /* A sparse file of any size costs nothing to make, but hours to read. */
    if (c->foreign && s->foreign_max > 0 && info.size > s->foreign_max) {
        snprintf(reason, LOAD_REASON_MAX,
                 "the content is larger than message_size_limit");
        return LOAD_DAMAGED;
    }
    return info.size == e->content_size ? LOAD_DONE : damaged("the content", reason);
}

/* The open file is checked, not its name, behind which another file may stand a moment
 * later. */
static enum load_result
open_content(struct spool *s, struct content *c, const struct envelope *e,
             char reason[LOAD_REASON_MAX])
{
    char path[SPOOL_PATH_MAX];
    spool_path(SPOOL_MESS, e->id, path);
    c->file = disk_open_file(s->disk, path, false);
    if (c->file < 0)
        return load_judge(c->file, "the content", reason);
    enum load_result result = judge_content(s, c, e, reason);
    if (result != LOAD_DONE)
        disk_close_file(s->disk, c->file);
    return result;
}

/* check: finished, or NULL: then all is read here. Only a foreign file has a copy,
 * which then replaces it. */
static enum load_result
check_content(struct spool *s, const struct envelope *e, struct content *c,
              struct load_check *check, char reason[LOAD_REASON_MAX])
{
    struct load_check now;
    int64_t budget = INT64_MAX;
    enum load_result result = open_content(s, c, e, reason);
    if (result != LOAD_DONE)
        return result;
    /* A check of the other kind does not count: a foreign file needs a copy. */
    if (check != NULL && c->foreign == check->foreign) {
        disk_close_file(s->disk, c->file);
        return judge_bytes(check, c->foreign, e, reason);
    }
    start_reading(&now, s, c->file, c->foreign, e);
    if (now.stage == LOAD_CHECK_READING && read_some(&now, &budget))
        load_end_reading(&now, true);
    result = judge_bytes(&now, c->foreign, e, reason);
    load_check_stop(&now);
    return result;
}

/* --- S4 -------------------------------------------------------------------------- */

/* Another user wrote the envelope: times, flags and trace lines that only the daemon
 * may give are taken from it. */
static enum load_result
distrust(const struct spool *s, struct envelope *e, unsigned owner,
         char reason[LOAD_REASON_MAX])
{
    int64_t now = s->loop != NULL ? loop_now_ms(s->loop) : (int64_t)e->id.time_ms;
    const char *why = injected_take(e, owner, now);
    if (why == NULL)
        return LOAD_DONE;
    snprintf(reason, LOAD_REASON_MAX, "the envelope cannot be trusted: %s", why);
    return LOAD_DAMAGED;
}

/* sendmail(1) may be newer than a daemon that has not been restarted yet. */
static enum load_result
load_unreadable(struct text form, char reason[LOAD_REASON_MAX])
{
    if (!envelope_is_newer(form))
        return damaged("the envelope", reason);
    snprintf(reason, LOAD_REASON_MAX,
             "a newer version of Petrel wrote the envelope: start that version, then "
             "release the message");
    return LOAD_DAMAGED;
}

static enum load_result
read_todo(struct spool *s, struct envelope *e, struct id id, unsigned *owner,
          char reason[LOAD_REASON_MAX])
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    struct buffer form;
    spool_path(SPOOL_TODO, id, path);
    int result = disk_inspect(s->disk, path, &info);
    if (result == -ENOENT)
        return LOAD_GONE;
    if (result < 0)
        return load_judge(result, "the envelope", reason);
    *owner = info.owner;
    /* Two links are the names in intd/ and todo/. */
    if (info.kind != DISK_FILE || info.size > SPOOL_FILE_MAX ||
        (is_foreign(s, &info) && info.links > 2))
        return damaged("the envelope", reason);
    buffer_init(&form, SPOOL_FILE_MAX);
    result = spool_read(s, SPOOL_TODO, id, &form);
    enum load_result judged = LOAD_DONE;
    if (result < 0)
        judged = load_judge(result, "the envelope", reason);
    else if (envelope_read_todo(buffer_text(&form), id, e) != PROGRESS_DONE)
        judged = load_unreadable(buffer_text(&form), reason);
    else if (is_foreign(s, &info))
        judged = distrust(s, e, *owner, reason);
    buffer_free(&form);
    return judged;
}

/* --- S5 -------------------------------------------------------------------------- */

static enum load_result
read_channel(struct spool *s, struct envelope *e, struct id id, enum channel channel,
             struct buffer *form, char reason[LOAD_REASON_MAX])
{
    enum spool_dir dir = channel == CHANNEL_LOCAL ? SPOOL_LOCAL : SPOOL_REMOTE;
    int result = spool_read(s, dir, id, form);
    if (result == -ENOENT)
        return LOAD_DONE; /* no recipients, or missing: is_complete() decides */
    if (result < 0)
        return load_judge(result, spool_dir_name(dir), reason);
    return envelope_read_channel(buffer_text(form), id, channel, e) == PROGRESS_DONE
               ? LOAD_DONE
               : damaged(spool_dir_name(dir), reason);
}

/* Whether every recipient that info counted has been read. */
static bool
load_is_complete(const struct envelope *e)
{
    for (unsigned i = 0; i < e->count; i++)
        if (e->recipients[i].address.at == NULL)
            return false;
    return true;
}

static enum load_result
read_preprocessed(struct spool *s, struct envelope *e, struct id id,
                  struct buffer *form, char reason[LOAD_REASON_MAX])
{
    int result = spool_read(s, SPOOL_INFO, id, form);
    if (result == -ENOENT)
        return LOAD_GONE;
    if (result < 0)
        return load_judge(result, "info", reason);
    if (envelope_read_info(buffer_text(form), id, e) != PROGRESS_DONE)
        return damaged("info", reason);
    /* Most messages have only remote recipients: when one file has all, the other is
     * not looked for. */
    enum load_result judged = read_channel(s, e, id, CHANNEL_REMOTE, form, reason);
    if (judged == LOAD_DONE && !load_is_complete(e))
        judged = read_channel(s, e, id, CHANNEL_LOCAL, form, reason);
    if (judged != LOAD_DONE)
        return judged;
    if (!load_is_complete(e))
        return damaged("local or remote is missing, or", reason);
    result = spool_read(s, SPOOL_BOUNCE, id, form);
    e->storage.has_texts = result == 0;
    if (result == 0)
        envelope_read_failures(buffer_text(form), e);
    else if (result != -ENOENT)
        return load_judge(result, "bounce", reason);
    /* A failed recipient without its text would be forgotten without a notification. */
    if (e->delivery.failure_count < e->storage.failures_recorded)
        return damaged("bounce", reason);
    return LOAD_DONE;
}

static enum load_result
load_finish(enum load_result result, struct envelope *made, struct envelope **e)
{
    if (result == LOAD_DONE)
        *e = made;
    else
        envelope_free(&made);
    return result;
}

enum load_result
load_preprocessed(struct spool *s, struct id id, struct envelope **e,
                  char reason[LOAD_REASON_MAX])
{
    struct buffer form;
    struct envelope *made = envelope_new();
    *e = NULL;
    buffer_init(&form, SPOOL_FILE_MAX);
    enum load_result result = read_preprocessed(s, made, id, &form, reason);
    buffer_free(&form);
    return load_finish(result, made, e);
}

enum load_result
load_moved(struct spool *s, struct id id, bool whole, struct envelope **e,
           char reason[LOAD_REASON_MAX])
{
    struct content content = {0};
    struct envelope *made = NULL;
    *e = NULL;
    enum load_result result = load_preprocessed(s, id, &made, reason);
    if (result == LOAD_DONE && whole)
        result = check_content(s, made, &content, NULL, reason);
    return made != NULL ? load_finish(result, made, e) : result;
}

/* Whether sendmail(1) has written it and not a daemon without a journal. */
static bool
is_injected(const struct spool *s, const struct envelope *e, unsigned owner)
{
    static const char mark[] =
        " (Petrel, from userid "; /* admin/sendmail/submission.c */
    struct text first = text_before(e->prefix, text_find(e->prefix, '\n'));
    return owner != s->user ||
           (text_starts(first, TEXT("Received: by ")) &&
            memmem(first.at, first.length, mark, strlen(mark)) != NULL);
}

/* Loads S4 or S5; *content: the owner of the content. */
static enum load_result
read_envelope(struct spool *s, struct id id, struct envelope **e,
              struct content *content, char reason[LOAD_REASON_MAX])
{
    struct envelope *made = NULL;
    *content = (struct content){0};
    *e = NULL;
    enum load_result result = load_preprocessed(s, id, &made, reason);
    /* Beside todo/ID a damaged S5 was never complete: todo/ID is the authority until it
     * is. */
    if (result == LOAD_GONE ||
        (result == LOAD_DAMAGED && spool_has(s, SPOOL_TODO, id))) {
        made = envelope_new();
        content->injected = true;
        result = read_todo(s, made, id, &content->owner, reason);
    }
    if (result == LOAD_DONE && content->injected) {
        made->storage.in_todo = true;
        /* Another host has given it: there it was counted. */
        made->storage.injected =
            made->moved.given == 0 && is_injected(s, made, content->owner);
        made->storage.injector = content->owner;
    }
    return made != NULL ? load_finish(result, made, e) : result;
}

enum load_result
load_checked(struct spool *s, struct id id, struct load_check *check,
             struct envelope **e, char reason[LOAD_REASON_MAX])
{
    struct content content;
    enum load_result result = read_envelope(s, id, e, &content, reason);
    if (result == LOAD_DONE)
        result = check_content(s, *e, &content, check, reason);
    if (result != LOAD_DONE) {
        envelope_free(e);
        return result;
    }
    load_places(s, *e);
    return LOAD_DONE;
}

enum load_result
load_message(struct spool *s, struct id id, struct envelope **e,
             char reason[LOAD_REASON_MAX])
{
    return load_checked(s, id, NULL, e, reason);
}

enum load_result
load_envelope(struct spool *s, struct id id, struct envelope **e,
              char reason[LOAD_REASON_MAX])
{
    struct content content;
    return read_envelope(s, id, e, &content, reason);
}

void
load_places(struct spool *s, struct envelope *e)
{
    e->delivery.held = spool_has(s, SPOOL_HOLD, e->id);
    e->fragment.awaits_parts =
        e->storage.preprocessed && marker_has(s, MARKER_AWAITING, e->id);
    if (e->storage.in_todo && marker_has(s, MARKER_RELEASED, e->id))
        e->delivery.released = true;
}

bool
load_check_start(struct load_check *c, struct spool *s, struct id id, int64_t budget)
{
    char path[SPOOL_PATH_MAX], reason[LOAD_REASON_MAX];
    struct disk_info info;
    struct content content;
    struct envelope *e = NULL;
    assert(c->stage == LOAD_CHECK_NONE);
    spool_path(SPOOL_MESS, id, path);
    if (disk_inspect(s->disk, path, &info) == 0 && info.size <= budget &&
        !is_foreign(s, &info))
        return false; /* nearly always: load_message() reads it in this turn */
    /* load_message() finds the same fault and judges it. */
    if (read_envelope(s, id, &e, &content, reason) != LOAD_DONE)
        return false;
    bool begun = open_content(s, &content, e, reason) == LOAD_DONE;
    if (begun)
        start_reading(c, s, content.file, content.foreign, e);
    envelope_free(&e);
    return begun;
}
