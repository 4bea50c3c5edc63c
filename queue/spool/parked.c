/* Makes and removes the marks of messages that wait for other fragments. */
#include "queue/spool/parked.h"

#include <errno.h>
#include <string.h>

/* Not spool_trouble(): a mark may fail without making the spool unhealthy. */
static void
tell_once(struct spool *s, struct id id, const char *doing, int error)
{
    char name[ID_LENGTH + 1];
    if (s->mark_told)
        return;
    s->mark_told = true;
    id_format(id, name);
    log_say(s->log, LOG_LEVEL_WARNING, "queue", name,
            "cannot %s its mark in defrag/: %s; the mail is safe, and no more is said "
            "of such marks",
            doing, strerror(-error));
}

bool
parked_put(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    spool_path(SPOOL_DEFRAG, id, path);
    int file = disk_create(s->disk, path, 0600);
    if (file >= 0)
        disk_close_file(s->disk, file);
    else if (file != -EEXIST)
        tell_once(s, id, "make", file);
    return file >= 0 || file == -EEXIST;
}

void
parked_drop(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    spool_path(SPOOL_DEFRAG, id, path);
    int result = disk_unlink(s->disk, path);
    if (result < 0 && result != -ENOENT)
        tell_once(s, id, "remove", result);
}

bool
parked_has(struct spool *s, struct id id)
{
    return spool_has(s, SPOOL_DEFRAG, id);
}
