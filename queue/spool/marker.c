/* Makes, lists and removes markers. */
#include "queue/spool/marker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const directories[] = {[MARKER_AWAITING] = "defrag",
                                          [MARKER_REASSEMBLED] = "journal",
                                          [MARKER_RELEASED] = "lock"};
static const char *const kinds[] = {
    [MARKER_REASSEMBLED] = "a reassembled", [MARKER_RELEASED] = "a released"};

static void
marker_path(enum marker marker, struct id id, char path[SPOOL_PATH_MAX])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(path, SPOOL_PATH_MAX, "%s/%s", directories[marker], name);
}

/* A mark in defrag/ is only a hint, so its failures are logged once. Without one in
 * journal/ the next startup does not know that the message is a reassembled one, without
 * one in lock/ not that an operator has released it. */
static int
marker_trouble(struct spool *s, enum marker marker, struct id id, const char *verb,
               int error)
{
    char name[ID_LENGTH + 1], doing[64];
    if (kinds[marker] != NULL) {
        snprintf(doing, sizeof(doing), "%s the mark of %s message", verb,
                 kinds[marker]);
        return spool_trouble(s, error, &id, doing);
    }
    if (s->marker_failed)
        return error;
    s->marker_failed = true;
    id_format(id, name);
    log_say(s->log, LOG_LEVEL_WARNING, "queue", name,
            "cannot %s its mark in defrag/: %s; the mail is safe, and further failures "
            "of such marks are not logged",
            verb, strerror(-error));
    return error;
}

int
marker_put(struct spool *s, enum marker marker, struct id id)
{
    char path[SPOOL_PATH_MAX];
    marker_path(marker, id, path);
    int file = disk_create(s->disk, path, 0600);
    if (file >= 0)
        disk_close_file(s->disk, file);
    return file >= 0 || file == -EEXIST ? 0
                                        : marker_trouble(s, marker, id, "make", file);
}

int
marker_sync(struct spool *s, enum marker marker)
{
    int result = disk_sync_directory(s->disk, directories[marker]);
    s->syncs++;
    return result < 0 ? spool_trouble(s, result, NULL, "sync a directory") : 0;
}

void
marker_drop(struct spool *s, enum marker marker, struct id id)
{
    char path[SPOOL_PATH_MAX];
    marker_path(marker, id, path);
    int result = disk_unlink(s->disk, path);
    if (result < 0 && result != -ENOENT)
        (void)marker_trouble(s, marker, id, "remove", result);
}

bool
marker_has(struct spool *s, enum marker marker, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    marker_path(marker, id, path);
    return disk_inspect(s->disk, path, &info) == 0;
}

static bool
marker_note_name(void *context, const char *name)
{
    struct id id;
    if (id_parse(text_from(name), &id))
        id_set_add(context, id);
    return true; /* other names are journals */
}

int
marker_list(struct spool *s, struct id_set *ids)
{
    int result =
        disk_list(s->disk, directories[MARKER_REASSEMBLED], marker_note_name, ids);
    return result == -ENOENT ? 0 : result;
}
