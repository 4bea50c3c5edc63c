/* Removes what is no message from the directories where every user may write, and counts
 * it. */
#include "queue/spool/junk.h"

#include "queue/spool/spool.h"

#include <errno.h>

static bool
is_of_other(const struct spool *s, const struct disk_info *info)
{
    return s->adopts && info->owner != s->user;
}

bool
junk_is_foreign(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(SPOOL_TODO, id, path);
    return disk_inspect(s->disk, path, &info) == 0 && is_of_other(s, &info) &&
           !spool_has(s, SPOOL_INFO, id);
}

static enum junk_fate
remove_name(struct spool *s, const char *path, bool is_directory)
{
    int result = is_directory ? disk_remove_directory(s->disk, path)
                              : disk_unlink(s->disk, path);
    bool gone = result == 0 || result == -ENOENT;
    s->junk.removed += gone;
    s->junk.stuck += !gone;
    return gone ? JUNK_REMOVED : JUNK_STUCK;
}

enum junk_fate
junk_remove(struct spool *s, const char *path)
{
    struct disk_info info;
    if (disk_inspect(s->disk, path, &info) != 0 || info.kind == DISK_FILE)
        return JUNK_NONE;
    return remove_name(s, path, info.kind == DISK_DIRECTORY);
}

/* sendmail(1) links a whole file; ours may be empty after a power cut, and are kept for the
 * operator. */
enum junk_fate
junk_remove_queued(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(SPOOL_TODO, id, path);
    bool is_empty = disk_inspect(s->disk, path, &info) == 0 && info.kind == DISK_FILE &&
                    info.size == 0 && is_of_other(s, &info);
    return is_empty ? remove_name(s, path, false) : junk_remove(s, path);
}

bool
junk_takes_note(struct spool *s)
{
    bool takes = s->junk.notes < JUNK_NOTES_MAX;
    if (takes)
        s->junk.notes++;
    else
        s->junk.unnoted++;
    return takes;
}

void
junk_note_strange(struct spool *s, size_t count)
{
    s->junk.strange = count;
}

static void
tell_count(const struct spool *s, size_t count, const char *what)
{
    if (count > 0)
        log_say(s->log, LOG_LEVEL_WARNING, "queue", NULL, "%zu %s", count, what);
}

int64_t
junk_tell(struct spool *s, int64_t now_ms)
{
    struct junk *j = &s->junk;
    int64_t since_ms = now_ms - j->told_ms;
    if (j->removed + j->stuck + j->unnoted + j->strange == 0)
        return 0;
    /* A clock that was set back must not silence it. */
    if (j->has_told && since_ms >= 0 && since_ms < JUNK_TELL_MS)
        return JUNK_TELL_MS - since_ms;
    tell_count(s, j->strange, "names in todo/ that are not messages: ignored");
    tell_count(s, j->removed,
               "empty files, links, directories and the like that other users made in "
               "todo/ or mess/: removed");
    tell_count(
        s, j->stuck,
        "directories or the like in todo/ or mess/ cannot be removed: remove them "
        "by hand");
    tell_count(
        s, j->unnoted,
        "more damaged messages of other users: moved to corrupt/, without notes");
    j->removed = j->stuck = j->unnoted = j->strange = 0;
    j->has_told = true;
    j->told_ms = now_ms;
    return 0;
}
