/* Takes messages out of hold/ and corrupt/ when an operator says so. */
#include "queue/spool/release.h"

#include "queue/spool/load.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* In the order in which they go back. */
static const enum room returning[] = {ROOM_QUEUED, ROOM_INFO,   ROOM_INTD, ROOM_LOCAL,
                                      ROOM_REMOTE, ROOM_BOUNCE, ROOM_HOLD, ROOM_MESS};
enum { RETURNING = sizeof(returning) / sizeof(returning[0]) };

static void
quarantined_path(struct id id, const char *suffix, char out[SPOOL_PATH_MAX])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    int length = snprintf(out, SPOOL_PATH_MAX, "%s/%s.%s", spool_room(ROOM_CORRUPT),
                          name, suffix);
    assert(length > 0 && length < SPOOL_PATH_MAX);
}

int
release_held(struct spool *s, struct id id)
{
    if (!spool_has(s, ROOM_HOLD, id))
        return -ENOENT;
    int result = spool_remove(s, ROOM_HOLD, id);
    return result < 0 ? result : spool_sync_rooms(s, ROOM_BIT(ROOM_HOLD));
}

/* --- Out of corrupt/ -------------------------------------------------------------- */

/* Which rooms it has files of in corrupt/. */
static int
quarantined_rooms(struct spool *s, struct id id, unsigned *found)
{
    *found = 0;
    for (size_t i = 0; i < RETURNING; i++) {
        char path[SPOOL_PATH_MAX];
        struct disk_info info;
        quarantined_path(id, spool_room(returning[i]), path);
        int result = disk_inspect(s->disk, path, &info);
        if (result == 0)
            *found |= ROOM_BIT(returning[i]);
        else if (result != -ENOENT)
            return spool_trouble(s, result, &id, "look into corrupt/");
    }
    return *found == 0 ? -ENOENT : 0;
}

static int
release_move(struct spool *s, struct id id, enum room room, bool back)
{
    char home[SPOOL_PATH_MAX], quarantined[SPOOL_PATH_MAX];
    spool_path(room, id, home);
    quarantined_path(id, spool_room(room), quarantined);
    int result = back ? disk_rename(s->disk, quarantined, home)
                      : disk_rename(s->disk, home, quarantined);
    if (result < 0)
        return spool_trouble(s, result, &id, "move a file out of corrupt/");
    s->unsynced[room] = true;
    return 0;
}

/* Moved ones return to corrupt/, mess first. */
static void
quarantine_again(struct spool *s, struct id id, unsigned moved)
{
    for (size_t i = RETURNING; i-- > 0;)
        if ((moved & ROOM_BIT(returning[i])) != 0)
            (void)release_move(s, id, returning[i], false);
    (void)disk_sync_directory(s->disk, spool_room(ROOM_CORRUPT));
}

static int
take_back(struct spool *s, struct id id, unsigned rooms, unsigned *moved)
{
    int result = 0;
    *moved = 0;
    for (size_t i = 0; i < RETURNING && result == 0; i++) {
        enum room room = returning[i];
        if ((rooms & ROOM_BIT(room)) == 0)
            continue;
        /* A content by itself is nobody's: the rest must have come before it. */
        if (room == ROOM_MESS)
            result = spool_sync_rooms(s, *moved);
        if (result == 0)
            result = release_move(s, id, room, true);
        if (result == 0)
            *moved |= ROOM_BIT(room);
    }
    if (result == 0)
        result = disk_sync_directory(s->disk, spool_room(ROOM_MESS));
    return result == 0 ? spool_sync_rooms(s, *moved) : result;
}

static int
release_check(struct spool *s, struct id id)
{
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX], name[ID_LENGTH + 1];
    enum load_result result = load_message(s, id, &e, reason);
    envelope_free(&e);
    switch (result) {
    case LOAD_DONE:
        return 0;
    case LOAD_LATER:
        return -EIO;
    case LOAD_GONE:
        snprintf(reason, sizeof(reason), "there is neither todo nor info");
        break;
    case LOAD_DAMAGED:
        break;
    }
    id_format(id, name);
    log_say(s->log, LOG_LEVEL_WARNING, "queue", name, "stays in corrupt/: %s", reason);
    return -EBADMSG;
}

static void
drop_note(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    quarantined_path(id, "note", path);
    int result = disk_unlink(s->disk, path);
    if (result < 0 && result != -ENOENT)
        (void)spool_trouble(s, result, &id, "remove a note");
    (void)disk_sync_directory(s->disk, spool_room(ROOM_CORRUPT));
}

int
release_quarantined(struct spool *s, struct id id)
{
    unsigned rooms, there, moved;
    int result = quarantined_rooms(s, id, &rooms);
    if (result == 0)
        result = spool_rooms(s, id, &there);
    if (result < 0)
        return result;
    /* A content by itself is what a power cut has left of its way to corrupt/. */
    if ((there & ~ROOM_BIT(ROOM_MESS)) != 0)
        return -EEXIST;
    result = take_back(s, id, rooms, &moved);
    if (result == 0)
        result = release_check(s, id);
    if (result < 0)
        quarantine_again(s, id, moved);
    else
        drop_note(s, id);
    return result;
}

/* --- Notes ------------------------------------------------------------------------ */

static int
read_note(struct spool *s, const char *path, char note[RELEASE_NOTE_MAX])
{
    int file = disk_open_file(s->disk, path, false);
    if (file < 0)
        return file;
    int64_t got = disk_read(s->disk, file, 0, note, RELEASE_NOTE_MAX - 1);
    disk_close_file(s->disk, file);
    if (got < 0)
        return (int)got;
    note[got] = '\0';
    note[strcspn(note, "\n")] = '\0';
    return 0;
}

int
release_note(struct spool *s, enum room room, struct id id, char note[RELEASE_NOTE_MAX])
{
    char path[SPOOL_PATH_MAX];
    unsigned rooms;
    assert(room == ROOM_HOLD || room == ROOM_CORRUPT);
    note[0] = '\0';
    if (room == ROOM_HOLD)
        spool_path(room, id, path);
    else
        quarantined_path(id, "note", path);
    int result = read_note(s, path, note);
    if (result == -ENOENT && room == ROOM_CORRUPT)
        return quarantined_rooms(s, id, &rooms);
    return result;
}
