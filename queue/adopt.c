/* Moves the mail of foreign journals into the spool. */
#include "queue/adopt.h"

#include "base/memory.h"
#include "queue/load.h"
#include "queue/mover.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char above[] = "journal", lock_path[] = "lock/adopt";

struct old_room {
    unsigned first, last;
    char path[ADOPT_ROOM_MAX];
};
struct rooms {
    struct old_room *rows;
    size_t count;
};

struct adoption {
    struct spool *spool;
    struct young young; /* of one room, only read */
    struct mover mover;
    struct adopted *result;
};

void
adopt_room(unsigned first, unsigned count, char room[ADOPT_ROOM_MAX])
{
    snprintf(room, ADOPT_ROOM_MAX, "%s/%04u-%04u", above, first, first + count - 1);
}

/* Exactly what adopt_room() writes. */
static bool
read_room(const char *name, struct old_room *room)
{
    struct text t = text_from(name);
    uint64_t first, last;
    if (t.length != 9 || !text_number(text_before(t, 4), ID_SLICES_MAX - 1, &first) ||
        !text_number(text_after(t, 5), ID_SLICES_MAX - 1, &last) || first > last)
        return false;
    room->first = (unsigned)first;
    room->last = (unsigned)last;
    adopt_room(room->first, room->last - room->first + 1, room->path);
    return strcmp(strchr(room->path, '/') + 1, name) == 0;
}

static bool
note_room(void *context, const char *name)
{
    struct rooms *all = context;
    struct old_room room;
    if (!read_room(name, &room))
        return true;
    all->rows = memory_resize(all->rows, (all->count + 1) * sizeof(*all->rows));
    all->rows[all->count++] = room;
    return true;
}

/* --- One message ----------------------------------------------------------------- */

/* A start that was killed may have moved it already. */
static bool
is_there(struct adoption *a, struct id id)
{
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX];
    bool whole = load_message(a->spool, id, &e, reason) == LOAD_DONE && e->preprocessed;
    envelope_free(&e);
    return whole && spool_sync_preprocessed(a->spool, id) == 0;
}

static void
park(struct adoption *a, struct young_message *m, const char *reason)
{
    if (young_park(&a->young, m) < 0)
        a->result->again = true;
    else
        spool_park(a->spool, m->id, reason, loop_now_ms(a->young.loop));
}

static void
prepare(struct adoption *a, struct young_message *m)
{
    bool later = false;
    char reason[LOAD_REASON_MAX];
    unsigned rooms;
    int error = 0;
    struct move move = {.young = true, .owned = true};
    if (is_there(a, m->id))
        return;
    if (spool_rooms(a->spool, m->id, &rooms) < 0) {
        a->result->again = true;
        return;
    }
    if (m->large && (rooms & ROOM_BIT(ROOM_MESS)) == 0) {
        park(a, m, "the content is missing");
        return;
    }
    move.envelope = young_load(&a->young, m, &later, reason, sizeof(reason));
    if (move.envelope == NULL && !later) {
        park(a, m, reason);
        return;
    }
    if (move.envelope != NULL && !m->large)
        move.content = young_read_content(&a->young, m, &error);
    if (move.envelope == NULL || (!m->large && move.content == NULL)) {
        envelope_free(&move.envelope);
        a->result->again = true;
        return;
    }
    a->mover.moves[a->mover.count++] = move;
}

static void
nothing(void *context)
{
    (void)context;
}

static void
move_all(struct adoption *a)
{
    if (a->mover.count == 0)
        return;
    if (!mover_start(&a->mover))
        disk_sync_wait(a->spool->disk);
    for (unsigned i = 0; i < a->mover.count; i++) {
        struct move *move = &a->mover.moves[i];
        if (move->result < 0)
            a->result->again = true;
        else
            a->result->messages++;
        envelope_free(&move->envelope);
    }
    a->mover.count = 0;
}

static void
remove_ended(void *context, struct id id)
{
    struct adoption *a = context;
    unsigned rooms;
    if (spool_rooms(a->spool, id, &rooms) < 0 ||
        (rooms != 0 && spool_remove_all(a->spool, id) < 0))
        a->result->again = true;
}

/* --- One room -------------------------------------------------------------------- */

struct names {
    char (*rows)[SPOOL_PATH_MAX];
    size_t count;
    const char *room;
};

static bool
note_file(void *context, const char *name)
{
    struct names *all = context;
    if (strlen(name) > 16)
        return true;
    all->rows = memory_resize(all->rows, (all->count + 1) * sizeof(*all->rows));
    snprintf(all->rows[all->count++], SPOOL_PATH_MAX, "%s/%s", all->room, name);
    return true;
}

static void
marker_path(const char *room, char path[SPOOL_PATH_MAX])
{
    snprintf(path, SPOOL_PATH_MAX, "%s/moved", room);
}

static bool
has_marker(struct adoption *a, const char *room)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    marker_path(room, path);
    return disk_inspect(a->spool->disk, path, &info) == 0;
}

/* From here on the segments do not count: half of them would bring ended mail back. */
static int
put_marker(struct adoption *a, const char *room)
{
    char path[SPOOL_PATH_MAX];
    marker_path(room, path);
    int file = disk_create(a->spool->disk, path, 0600);
    if (file == -EEXIST)
        return 0;
    if (file < 0)
        return file;
    int result = disk_sync(a->spool->disk, file);
    disk_close_file(a->spool->disk, file);
    return result == 0 ? disk_sync_directory(a->spool->disk, room) : result;
}

static int
remove_files(struct adoption *a, const char *room)
{
    char marker[SPOOL_PATH_MAX];
    struct names all = {.room = room};
    marker_path(room, marker);
    int result = disk_list(a->spool->disk, room, note_file, &all);
    for (size_t i = 0; i < all.count && result == 0; i++)
        if (strcmp(all.rows[i], marker) != 0)
            result = disk_unlink(a->spool->disk, all.rows[i]);
    free(all.rows);
    if (result == 0)
        result = disk_sync_directory(a->spool->disk, room);
    return result == 0 ? disk_unlink(a->spool->disk, marker) : result;
}

static void
remove_segments(struct adoption *a, const char *room)
{
    int result = put_marker(a, room);
    if (result == 0)
        result = remove_files(a, room);
    if (result < 0) {
        (void)spool_trouble(a->spool, result, NULL, "remove an old journal");
        a->result->again = true;
    }
}

static bool
is_empty(struct adoption *a, const char *room)
{
    struct names all = {.room = room};
    int result = disk_list(a->spool->disk, room, note_file, &all);
    free(all.rows);
    return result == 0 && all.count == 0;
}

static void
adopt(struct adoption *a, const struct old_room *room)
{
    struct young_message *m, *next;
    unsigned before = a->result->messages;
    if (has_marker(a, room->path)) {
        remove_segments(a, room->path);
        return;
    }
    a->young =
        (struct young){.spool = a->spool, .loop = a->young.loop, .room = room->path};
    int result = young_read(&a->young, true);
    if (result < 0) {
        (void)spool_trouble(a->spool, result, NULL, "read an old journal");
        a->result->again = true;
        return;
    }
    seen_each(&a->young.ended, remove_ended, a);
    HASH_ITER (hh, a->young.messages, m, next) {
        prepare(a, m);
        if (a->mover.count == MOVER_MAX)
            move_all(a);
    }
    move_all(a);
    young_close(&a->young);
    if (!a->result->again && spool_sync_rooms(a->spool, ~0u) < 0)
        a->result->again = true;
    if (!a->result->again)
        remove_segments(a, room->path);
    a->result->rooms++;
    log_say(a->spool->log, a->result->again ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "queue",
            NULL, "%s: %u messages moved to files%s", room->path,
            a->result->messages - before,
            a->result->again ? "; the rest waits for the next start" : "");
}

static void
adopt_alone(struct adoption *a, const struct old_room *room)
{
    if (is_empty(a, room->path))
        return;
    int lock =
        disk_lock(a->spool->disk, lock_path, room->first, room->last - room->first + 1);
    if (lock == -EWOULDBLOCK) {
        a->result->busy = true;
    } else if (lock < 0) {
        (void)spool_trouble(a->spool, lock, NULL, "lock an old journal");
        a->result->again = true;
    } else {
        adopt(a, room);
        disk_close_file(a->spool->disk, lock);
    }
}

struct adopted
adopt_journals(struct spool *s, struct loop *loop, unsigned first, unsigned count,
               const char *own)
{
    struct adopted result = {0};
    struct rooms all = {0};
    struct adoption a = {.spool = s, .young = {.loop = loop}, .result = &result};
    a.mover = (struct mover){.spool = s, .done = nothing};
    int listed = disk_list(s->disk, above, note_room, &all);
    if (listed < 0 && listed != -ENOENT) {
        (void)spool_trouble(s, listed, NULL, "list journal/");
        result.again = true;
    }
    for (size_t i = 0; i < all.count; i++) {
        const struct old_room *room = &all.rows[i];
        bool common = room->first < first + count && first <= room->last;
        bool is_own = own != NULL && strcmp(room->path, own) == 0;
        if (common && (!is_own || has_marker(&a, room->path)))
            adopt_alone(&a, room);
    }
    free(all.rows);
    return result;
}
