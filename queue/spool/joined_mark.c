/* Makes, lists and removes the marks of joined messages from adopted journals. */
#include "queue/spool/joined_mark.h"

#include <errno.h>
#include <stdio.h>

static const char dir[] = "journal";

static void
mark_path(struct id id, char path[SPOOL_PATH_MAX])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(path, SPOOL_PATH_MAX, "%s/%s", dir, name);
}

int
joined_mark_put(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    mark_path(id, path);
    int file = disk_create(s->disk, path, 0600);
    if (file >= 0)
        disk_close_file(s->disk, file);
    if (file >= 0 || file == -EEXIST)
        return 0;
    return spool_trouble(s, file, &id, "mark a joined message");
}

int
joined_mark_sync(struct spool *s)
{
    int result = disk_sync_directory(s->disk, dir);
    s->syncs++;
    return result < 0 ? spool_trouble(s, result, NULL, "sync a directory") : 0;
}

void
joined_mark_drop(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    mark_path(id, path);
    int result = disk_unlink(s->disk, path);
    if (result < 0 && result != -ENOENT)
        (void)spool_trouble(s, result, &id, "remove the mark of a joined message");
}

static bool
joined_mark_note_name(void *context, const char *name)
{
    struct id id;
    if (id_parse(text_from(name), &id))
        id_set_add(context, id);
    return true; /* the others are journals */
}

int
joined_mark_list(struct spool *s, struct id_set *ids)
{
    int result = disk_list(s->disk, dir, joined_mark_note_name, ids);
    return result == -ENOENT ? 0 : result;
}
