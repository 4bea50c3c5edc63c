/* From files to an envelope, with every check that tells a whole message from a damaged
 * one. */
#include "queue/load.h"

#include "base/crc.h"
#include "base/loop.h"
#include "base/memory.h"
#include "queue/injected.h"
#include "queue/parked.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTENT_PIECE = 64 * 1024 };

/* The file is not what it must be; all other errors are of the moment. */
static bool
is_evidence(int error)
{
    return error == -ENOENT || error == -EINVAL || error == -EFBIG ||
           error == -EACCES || error == -ENOTDIR || error == -ELOOP;
}

static enum load_result
judge(int error, const char *what, char reason[LOAD_REASON_MAX])
{
    snprintf(reason, LOAD_REASON_MAX, "%s: %s", what, strerror(-error));
    return is_evidence(error) ? LOAD_DAMAGED : LOAD_LATER;
}

static enum load_result
damaged(const char *what, char reason[LOAD_REASON_MAX])
{
    snprintf(reason, LOAD_REASON_MAX, "%s is damaged", what);
    return LOAD_DAMAGED;
}

/* --- The content ----------------------------------------------------------------- */

struct reading {
    int64_t size, size_max;
    uint32_t crc;
    int error; /* of reading, or of writing the copy: then copy_failed */
    bool copy_failed;
};

/* Little more than size_max, though the file may grow; into copy too, unless < 0. */
static void
read_content(struct spool *s, int file, int copy, struct reading *r)
{
    char *piece = memory_new(CONTENT_PIECE);
    int64_t got = 1;
    while (got > 0 && r->error == 0 && r->size <= r->size_max) {
        got = disk_read(s->disk, file, r->size, piece, CONTENT_PIECE);
        if (got < 0)
            r->error = (int)got;
        if (got <= 0)
            break;
        r->crc = crc_add(r->crc, piece, (size_t)got);
        r->size += got;
        s->bytes_read += (uint64_t)got;
        if (copy >= 0)
            r->error = disk_write(s->disk, copy, text_of(piece, (size_t)got));
        r->copy_failed = r->error != 0;
    }
    free(piece);
}

/* Nothing is wrong with the message: it is we who cannot, now. */
static enum load_result
cannot_adopt(int error, char reason[LOAD_REASON_MAX])
{
    snprintf(reason, LOAD_REASON_MAX, "copying the content: %s", strerror(-error));
    return LOAD_LATER;
}

/* The whole copy takes the place of what another user owns. */
static enum load_result
adopt(struct spool *s, int copy, struct id id, char reason[LOAD_REASON_MAX])
{
    char from[SPOOL_PATH_MAX], to[SPOOL_PATH_MAX];
    spool_path(ROOM_PID, id, from);
    spool_path(ROOM_MESS, id, to);
    int result = spool_sync(s, copy, &id);
    if (result == 0)
        result = disk_rename(s->disk, from, to);
    return result < 0 ? cannot_adopt(result, reason) : LOAD_DONE;
}

/* Written by another user, whom the daemon need not believe. */
static bool
is_foreign(const struct spool *s, const struct disk_info *info)
{
    return s->adopts && info->owner != s->user;
}

/* The file for a copy of so many bytes; < 0: not now. */
static int
start_copy(struct spool *s, struct id id, int64_t size)
{
    struct disk_space space;
    if (disk_space(s->disk, &space) == 0 && space.bytes_free - s->bytes_reserve < size)
        return -ENOSPC;
    return spool_write_new(s, ROOM_PID, id, TEXT(""), 0600, true);
}

/* All of it, also into copy unless < 0. */
static enum load_result
check_bytes(struct spool *s, int file, int copy, const struct envelope *e,
            char reason[LOAD_REASON_MAX])
{
    struct reading r = {.size_max = e->content_size};
    read_content(s, file, copy, &r);
    if (r.copy_failed)
        return cannot_adopt(r.error, reason);
    if (r.error < 0)
        return judge(r.error, "the content", reason);
    return r.size == e->content_size && r.crc == e->content_crc
               ? LOAD_DONE
               : damaged("the content", reason);
}

/* Read twice: what is damaged costs its owner nothing, and us no copy. He may change it
 * meanwhile. */
static enum load_result
copy_bytes(struct spool *s, int file, const struct envelope *e,
           char reason[LOAD_REASON_MAX])
{
    int copy = start_copy(s, e->id, e->content_size);
    if (copy < 0)
        return cannot_adopt(copy, reason);
    enum load_result result = check_bytes(s, file, copy, e, reason);
    if (result == LOAD_DONE)
        result = adopt(s, copy, e->id, reason);
    disk_close_file(s->disk, copy);
    if (result != LOAD_DONE)
        (void)spool_remove(s, ROOM_PID, e->id);
    return result;
}

static enum load_result
check_open_content(struct spool *s, int file, const struct envelope *e, bool injected,
                   unsigned owner, char reason[LOAD_REASON_MAX])
{
    struct disk_info info;
    int result = disk_file_info(s->disk, file, &info);
    if (result < 0)
        return judge(result, "the content", reason);
    bool foreign = is_foreign(s, &info);
    /* Two: an injector died between link and unlink of its pid name. */
    if (foreign && (info.links > 2 || (injected && info.owner != owner))) {
        snprintf(reason, LOAD_REASON_MAX,
                 "content and envelope are not of one owner (%u, %u; %u links)",
                 info.owner, owner, info.links);
        return LOAD_DAMAGED;
    }
    /* A sparse file of any size costs nothing to make, but hours to read. */
    if (foreign && s->foreign_max > 0 && info.size > s->foreign_max) {
        snprintf(reason, LOAD_REASON_MAX,
                 "the content is larger than message_size_limit");
        return LOAD_DAMAGED;
    }
    if (info.size != e->content_size)
        return damaged("the content", reason);
    enum load_result checked = check_bytes(s, file, -1, e, reason);
    return checked == LOAD_DONE && foreign ? copy_bytes(s, file, e, reason) : checked;
}

static enum load_result
check_content(struct spool *s, const struct envelope *e, bool injected, unsigned owner,
              char reason[LOAD_REASON_MAX])
{
    char path[SPOOL_PATH_MAX];
    spool_path(ROOM_MESS, e->id, path);
    int file = disk_open_file(s->disk, path, false);
    if (file < 0)
        return judge(file, "the content", reason);
    enum load_result result = check_open_content(s, file, e, injected, owner, reason);
    disk_close_file(s->disk, file);
    return result;
}

/* --- S4 -------------------------------------------------------------------------- */

static enum load_result
distrust(const struct spool *s, struct envelope *e, char reason[LOAD_REASON_MAX])
{
    int64_t now = s->loop != NULL ? loop_now_ms(s->loop) : (int64_t)e->id.time_ms;
    const char *why = injected_take(e, now);
    if (why == NULL)
        return LOAD_DONE;
    snprintf(reason, LOAD_REASON_MAX, "the envelope is not to be believed: %s", why);
    return LOAD_DAMAGED;
}

static enum load_result
read_todo(struct spool *s, struct envelope *e, struct id id, unsigned *owner,
          char reason[LOAD_REASON_MAX])
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    struct buffer form;
    spool_path(ROOM_QUEUED, id, path);
    int result = disk_inspect(s->disk, path, &info);
    if (result == -ENOENT)
        return LOAD_GONE;
    if (result < 0)
        return judge(result, "the envelope", reason);
    *owner = info.owner;
    if (info.kind != DISK_FILE || info.size > SPOOL_FILE_MAX ||
        (is_foreign(s, &info) && info.links > 2))
        return damaged("the envelope", reason);
    buffer_init(&form, SPOOL_FILE_MAX);
    result = spool_read(s, ROOM_QUEUED, id, &form);
    enum load_result judged = LOAD_DONE;
    if (result < 0)
        judged = judge(result, "the envelope", reason);
    else if (envelope_read_todo(buffer_text(&form), id, e) != PROGRESS_DONE)
        judged = damaged("the envelope", reason);
    else if (is_foreign(s, &info))
        judged = distrust(s, e, reason);
    buffer_free(&form);
    return judged;
}

/* --- S5 -------------------------------------------------------------------------- */

static enum load_result
read_channel(struct spool *s, struct envelope *e, struct id id, enum channel channel,
             struct buffer *form, char reason[LOAD_REASON_MAX])
{
    enum room room = channel == CHANNEL_LOCAL ? ROOM_LOCAL : ROOM_REMOTE;
    int result = spool_read(s, room, id, form);
    if (result == -ENOENT)
        return LOAD_DONE; /* nobody, or missing: is_complete() tells */
    if (result < 0)
        return judge(result, spool_room(room), reason);
    return envelope_read_channel(buffer_text(form), id, channel, e) == PROGRESS_DONE
               ? LOAD_DONE
               : damaged(spool_room(room), reason);
}

/* Every recipient that info counted has been read. */
static bool
is_complete(const struct envelope *e)
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
    int result = spool_read(s, ROOM_INFO, id, form);
    if (result == -ENOENT)
        return LOAD_GONE;
    if (result < 0)
        return judge(result, "info", reason);
    if (envelope_read_info(buffer_text(form), id, e) != PROGRESS_DONE)
        return damaged("info", reason);
    /* Most are remote alone: one that has all leaves nothing to look for. */
    enum load_result judged = read_channel(s, e, id, CHANNEL_REMOTE, form, reason);
    if (judged == LOAD_DONE && !is_complete(e))
        judged = read_channel(s, e, id, CHANNEL_LOCAL, form, reason);
    if (judged != LOAD_DONE)
        return judged;
    if (!is_complete(e))
        return damaged("local or remote is missing, or", reason);
    result = spool_read(s, ROOM_BOUNCE, id, form);
    if (result == 0)
        envelope_read_failures(buffer_text(form), e);
    else if (result != -ENOENT)
        return judge(result, "bounce", reason);
    /* A recipient that is done by a failure which nobody would tell. */
    if (e->failure_count < e->failures_told)
        return damaged("bounce", reason);
    return LOAD_DONE;
}

static enum load_result
finish(enum load_result result, struct envelope *made, struct envelope **e)
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
    return finish(result, made, e);
}

enum load_result
load_moved(struct spool *s, struct id id, struct envelope **e,
           char reason[LOAD_REASON_MAX])
{
    struct envelope *made = NULL;
    *e = NULL;
    enum load_result result = load_preprocessed(s, id, &made, reason);
    if (result == LOAD_DONE)
        result = check_content(s, made, false, 0, reason);
    return made != NULL ? finish(result, made, e) : result;
}

/* sendmail(1) and not the daemon, which has no journal then. */
static bool
is_injected(const struct spool *s, const struct envelope *e, unsigned owner)
{
    static const char mark[] = " (Petrel, from userid "; /* admin/submission.c */
    struct text first = text_before(e->prefix, text_find(e->prefix, '\n'));
    return owner != s->user ||
           (text_starts(first, TEXT("Received: by ")) &&
            memmem(first.at, first.length, mark, strlen(mark)) != NULL);
}

static enum load_result
load(struct spool *s, struct id id, bool whole, struct envelope **e,
     char reason[LOAD_REASON_MAX])
{
    unsigned owner = 0;
    bool injected = false;
    struct envelope *made = NULL;
    *e = NULL;
    enum load_result result = load_preprocessed(s, id, &made, reason);
    if (result == LOAD_GONE ||
        (result == LOAD_DAMAGED && spool_has(s, ROOM_QUEUED, id))) {
        made = envelope_new();
        result = read_todo(s, made, id, &owner, reason);
        injected = true;
    }
    if (result == LOAD_DONE && whole)
        result = check_content(s, made, injected, owner, reason);
    if (result == LOAD_DONE && injected) {
        made->injected = is_injected(s, made, owner);
        made->injector = owner;
    }
    if (result == LOAD_DONE && whole)
        made->held = spool_has(s, ROOM_HOLD, id);
    if (result == LOAD_DONE && whole)
        made->parked = made->preprocessed && parked_has(s, id);
    return made != NULL ? finish(result, made, e) : result;
}

enum load_result
load_message(struct spool *s, struct id id, struct envelope **e,
             char reason[LOAD_REASON_MAX])
{
    return load(s, id, true, e, reason);
}

enum load_result
load_envelope(struct spool *s, struct id id, struct envelope **e,
              char reason[LOAD_REASON_MAX])
{
    return load(s, id, false, e, reason);
}

void
load_due(struct spool *s, struct id id, int64_t *due_ms, unsigned *attempts)
{
    char path[SPOOL_PATH_MAX], head[ENVELOPE_DUE_OFFSET + ENVELOPE_DUE_SIZE];
    struct envelope e = {0};
    spool_path(ROOM_INFO, id, path);
    int file = disk_open_file(s->disk, path, false);
    if (file >= 0) {
        int64_t got = disk_read(s->disk, file, 0, head, sizeof(head));
        if (got == (int64_t)sizeof(head))
            envelope_read_due(text_of(head, sizeof(head)), id, &e);
        disk_close_file(s->disk, file);
    }
    *due_ms = e.due_ms;
    *attempts = e.attempts;
}
