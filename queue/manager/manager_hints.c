/* Small files in lock/ of other modules' hints. */
#include "queue/manager/manager_internal.h"

#include "queue/spool/spool.h"

int
manager_hint_read(const struct manager *m, const char *name, struct buffer *out)
{
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, name, path);
    return spool_read_path(queue_disk(m->queue), path, out);
}

int
manager_hint_write(const struct manager *m, const char *name, struct text text)
{
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, name, path);
    return spool_write_path(queue_disk(m->queue), path, text);
}

int
manager_hint_append(const struct manager *m, const char *name, struct text text)
{
    char path[MANAGER_HINT_MAX];
    struct disk *disk = queue_disk(m->queue);
    manager_hint_path(m, name, path);
    int file = disk_open_file(disk, path, true);
    if (file < 0)
        return file;
    int result = disk_write(disk, file, text);
    disk_close_file(disk, file);
    return result;
}
