/* Moves damaged messages to corrupt/, and removes them there. */
#include "queue/spool/spool_corrupt.h"

#include "queue/spool/marker.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void
spool_corrupt_path(struct id id, const char *suffix, char out[SPOOL_PATH_MAX])
{
    spool_path(SPOOL_CORRUPT, id, out);
    size_t length = strlen(out);
    snprintf(out + length, SPOOL_PATH_MAX - length, ".%s", suffix);
}

bool
spool_corrupt_id(const char *name, struct id *id)
{
    struct text t = text_from(name);
    return t.length > ID_LENGTH && t.at[ID_LENGTH] == '.' &&
           id_parse(text_before(t, ID_LENGTH), id);
}

static void
write_note(struct spool *s, struct id id, const char *reason, int64_t now_ms)
{
    char path[SPOOL_PATH_MAX];
    struct buffer note;
    spool_corrupt_path(id, "note", path);
    buffer_init(&note, 1024);
    bool fits = buffer_format(&note, "%" PRId64 " %.500s\n", now_ms / 1000, reason);
    assert(fits);
    int file = disk_create(s->disk, path, SPOOL_OWN_MODE);
    if (file == -EEXIST)
        file = disk_open_file(s->disk, path, true);
    int result = file;
    if (file >= 0) {
        result = disk_write(s->disk, file, buffer_text(&note));
        if (result == 0)
            result = disk_sync(s->disk, file);
        s->syncs++;
        disk_close_file(s->disk, file);
    }
    if (result < 0)
        (void)spool_trouble(s, result, &id, "write a note");
    buffer_free(&note);
}

/* mess/ID moves first, todo/ID and info/ID last: a crash or an error in between leaves a
 * message, perhaps without content, which the next startup quarantines again. False: not
 * all could be moved. */
static bool
move_files(struct spool *s, struct id id, unsigned *moved)
{
    char from[SPOOL_PATH_MAX], to[SPOOL_PATH_MAX];
    bool good = true;
    for (size_t left = SPOOL_LEAVING; good && left > 0; left--) {
        enum spool_dir dir = spool_leaving[left - 1];
        spool_path(dir, id, from);
        spool_corrupt_path(id, spool_dir_name(dir), to);
        enum junk_fate fate = junk_remove(s, from);
        int result = fate == JUNK_NONE ? disk_rename(s->disk, from, to) : -ENOENT;
        good = good && fate != JUNK_STUCK;
        if (result == 0) {
            s->unsynced[dir] = true;
            *moved |= SPOOL_BIT(dir);
        } else if (result != -ENOENT) {
            (void)spool_trouble(s, result, &id, "move a file to corrupt/");
            good = false;
        }
    }
    return good;
}

/* Both ends: a message that came back where it was would be delivered, and again when an
 * operator releases the other one. */
static void
sync_corrupt(struct spool *s, struct id id, unsigned moved)
{
    int result = disk_sync_directory(s->disk, spool_dir_name(SPOOL_CORRUPT));
    s->syncs++;
    if (result == 0)
        (void)spool_sync_dirs(s, moved);
    if (result < 0)
        (void)spool_trouble(s, result, &id, "sync corrupt/");
}

/* Without a note nothing is synced, either: what comes back after a power cut is moved
 * again. */
void
spool_quarantine(struct spool *s, struct id id, const char *reason, int64_t now_ms)
{
    char name[ID_LENGTH + 1];
    bool noted = !junk_is_foreign(s, id) || junk_takes_note(s);
    id_format(id, name);
    if (noted)
        write_note(s, id, reason, now_ms);
    marker_drop(s, MARKER_AWAITING, id);
    marker_drop(s, MARKER_RELEASED, id);
    unsigned dirs = 0;
    bool moved = move_files(s, id, &dirs);
    if (noted) {
        sync_corrupt(s, id, dirs);
        log_say(s->log, LOG_LEVEL_ERROR, "queue", name, "%s: %s",
                moved ? "quarantined in corrupt/" : "cannot be quarantined", reason);
    }
    s->quarantined++;
}

int
spool_corrupt_dirs(struct spool *s, struct id id, unsigned *found)
{
    *found = 0;
    for (size_t i = 0; i < SPOOL_LEAVING; i++) {
        char path[SPOOL_PATH_MAX];
        struct disk_info info;
        spool_corrupt_path(id, spool_dir_name(spool_leaving[i]), path);
        int result = disk_inspect(s->disk, path, &info);
        if (result == 0)
            *found |= SPOOL_BIT(spool_leaving[i]);
        else if (result != -ENOENT)
            return spool_trouble(s, result, &id, "look into corrupt/");
    }
    return *found == 0 ? -ENOENT : 0;
}

bool
spool_quarantine_rest(struct spool *s, struct id id)
{
    unsigned there, moved = 0;
    int result = spool_corrupt_dirs(s, id, &there);
    if (result == -ENOENT || (there & SPOOL_BIT(SPOOL_MESS)) != 0)
        return false;
    if (result == 0) {
        (void)move_files(s, id, &moved);
        sync_corrupt(s, id, moved);
    }
    return true;
}

int
spool_put_corrupt(struct spool *s, struct id id, enum spool_dir dir, struct text bytes)
{
    char path[SPOOL_PATH_MAX];
    spool_corrupt_path(id, spool_dir_name(dir), path);
    int file = disk_create(s->disk, path, SPOOL_OWN_MODE), result = file;
    if (file == -EEXIST) { /* left by an attempt that a crash cut off */
        result = disk_unlink(s->disk, path);
        if (result == 0)
            result = file = disk_create(s->disk, path, SPOOL_OWN_MODE);
    }
    if (file >= 0) {
        result = disk_write(s->disk, file, bytes);
        if (result == 0)
            result = disk_sync(s->disk, file);
        s->syncs++;
        disk_close_file(s->disk, file);
    }
    return result < 0 ? spool_trouble(s, result, &id, "keep a damaged message") : 0;
}

static bool
erase_path(struct spool *s, struct id id, const char *path)
{
    int result = disk_unlink(s->disk, path);
    if (result < 0 && result != -ENOENT)
        (void)spool_trouble(s, result, &id, "remove a file");
    return result == 0;
}

bool
spool_erase_corrupt(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    bool found = false;
    for (size_t i = 0; i < SPOOL_LEAVING; i++) {
        spool_corrupt_path(id, spool_dir_name(spool_leaving[i]), path);
        found |= erase_path(s, id, path);
    }
    spool_corrupt_path(id, "note", path);
    found |= erase_path(s, id, path);
    return found;
}
