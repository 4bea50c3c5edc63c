/* Takes messages out of hold/ and corrupt/ when an operator says so. */
#include "queue/spool/release.h"

#include "queue/spool/load.h"
#include "queue/spool/spool_corrupt.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The order in which files go back. */
static const enum spool_dir returning[] = {SPOOL_TODO,  SPOOL_INFO,   SPOOL_INTD,
                                           SPOOL_LOCAL, SPOOL_REMOTE, SPOOL_BOUNCE,
                                           SPOOL_HOLD,  SPOOL_MESS};
enum { RETURNING = sizeof(returning) / sizeof(returning[0]) };

/* Durable before the operator is notified: a crash must not hold it again. */
int
release_held(struct spool *s, struct id id)
{
    if (!spool_has(s, SPOOL_HOLD, id))
        return -ENOENT;
    int result = spool_remove(s, SPOOL_HOLD, id);
    return result < 0 ? result : spool_sync_dirs(s, SPOOL_BIT(SPOOL_HOLD));
}

/* --- Out of corrupt/ -------------------------------------------------------------- */

static int
release_move(struct spool *s, struct id id, enum spool_dir dir, bool back)
{
    char home[SPOOL_PATH_MAX], quarantined[SPOOL_PATH_MAX];
    spool_path(dir, id, home);
    spool_corrupt_path(id, spool_dir_name(dir), quarantined);
    int result = back ? disk_rename(s->disk, quarantined, home)
                      : disk_rename(s->disk, home, quarantined);
    if (result < 0)
        return spool_trouble(s, result, &id, "move a file out of corrupt/");
    s->unsynced[dir] = true;
    return 0;
}

/* Moves files back to corrupt/, mess first. */
static void
quarantine_again(struct spool *s, struct id id, unsigned moved)
{
    for (size_t i = RETURNING; i-- > 0;)
        if ((moved & SPOOL_BIT(returning[i])) != 0)
            (void)release_move(s, id, returning[i], false);
    (void)disk_sync_directory(s->disk, spool_dir_name(SPOOL_CORRUPT));
}

static int
take_back(struct spool *s, struct id id, unsigned dirs, unsigned *moved)
{
    int result = 0;
    *moved = 0;
    for (size_t i = 0; i < RETURNING && result == 0; i++) {
        enum spool_dir dir = returning[i];
        if ((dirs & SPOOL_BIT(dir)) == 0)
            continue;
        /* Content alone belongs to no message: the rest must be there before it. */
        if (dir == SPOOL_MESS)
            result = spool_sync_dirs(s, *moved);
        if (result == 0)
            result = release_move(s, id, dir, true);
        if (result == 0)
            *moved |= SPOOL_BIT(dir);
    }
    if (result == 0)
        result = disk_sync_directory(s->disk, spool_dir_name(SPOOL_MESS));
    return result == 0 ? spool_sync_dirs(s, *moved) : result;
}

/* The message is read as for a delivery. One that is still damaged goes back, so that
 * the daemon does not quarantine it again. */
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

/* Last: as long as the note stands the operator can see why it was set aside. */
static void
drop_note(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    spool_corrupt_path(id, "note", path);
    int result = disk_unlink(s->disk, path);
    if (result < 0 && result != -ENOENT)
        (void)spool_trouble(s, result, &id, "remove a note");
    (void)disk_sync_directory(s->disk, spool_dir_name(SPOOL_CORRUPT));
}

int
release_quarantined(struct spool *s, struct id id)
{
    unsigned dirs, there, moved;
    int result = spool_corrupt_dirs(s, id, &dirs);
    if (result == 0)
        result = spool_dirs_of(s, id, &there);
    if (result < 0)
        return result;
    /* A power cut that interrupts a move to corrupt/ leaves what makes no message. */
    if ((there & ~(SPOOL_BIT(SPOOL_MESS) | SPOOL_BIT(SPOOL_INTD))) != 0)
        return -EEXIST;
    result = take_back(s, id, dirs, &moved);
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
    int64_t got = disk_read_at(s->disk, path, 0, note, RELEASE_NOTE_MAX - 1);
    if (got < 0)
        return (int)got;
    note[got] = '\0';
    note[strcspn(note, "\n")] = '\0';
    return 0;
}

int
release_note(struct spool *s, enum spool_dir dir, struct id id,
             char note[RELEASE_NOTE_MAX])
{
    char path[SPOOL_PATH_MAX];
    unsigned dirs;
    assert(dir == SPOOL_HOLD || dir == SPOOL_CORRUPT);
    note[0] = '\0';
    if (dir == SPOOL_HOLD)
        spool_path(dir, id, path);
    else
        spool_corrupt_path(id, "note", path);
    int result = read_note(s, path, note);
    if (result == -ENOENT && dir == SPOOL_CORRUPT)
        return spool_corrupt_dirs(s, id, &dirs);
    return result;
}
