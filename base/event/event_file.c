/* Appends events to a file of another program's. */
#include "base/event/event_post_internal.h"

#include <errno.h>

static void
file_end(struct event_file_target *t, int result)
{
    t->busy = false;
    if (result < 0)
        event_file_close(t); /* its content is unknown: opened anew */
    t->done(t->context, result);
}

static void
on_file_synced(void *context, int result)
{
    file_end(context, result);
}

/* Half a line is left by a full disk, or by a crash: without its end the next event would
 * be part of it. */
static int
event_file_end_line(struct event_file_target *t)
{
    struct disk_info info;
    char last = '\n';
    int result = disk_file_info(t->disk, t->file, &info);
    if (result < 0 || info.size == 0)
        return result;
    int64_t got = disk_read(t->disk, t->file, info.size - 1, &last, 1);
    if (got < 0)
        return (int)got;
    return last == '\n' ? 0 : disk_write(t->disk, t->file, TEXT("\n"));
}

/* Renamed or removed by a program that rotates it, perhaps without a word: the file
 * written to now may be compressed already, or gone. */
static bool
event_file_has_moved(const struct event_file_target *t)
{
    struct disk_info ours, named;
    int result = disk_inspect(t->disk, t->path, &named);
    if (result < 0)
        return result == -ENOENT;
    return disk_file_info(t->disk, t->file, &ours) == 0 && ours.inode != named.inode;
}

static int
file_open(struct event_file_target *t)
{
    if (t->file >= 0)
        return 0;
    int file = disk_open_file(t->disk, t->path, true);
    if (file == -ENOENT)
        file = disk_create(t->disk, t->path, 0640);
    t->file = file;
    return file < 0 ? file : event_file_end_line(t);
}

void
event_file_append(struct event_file_target *t, struct text lines)
{
    if (t->file >= 0 && event_file_has_moved(t))
        event_file_close(t);
    t->busy = true;
    int result = file_open(t);
    if (result == 0)
        result = disk_write(t->disk, t->file, lines);
    t->sync = (struct disk_sync){.done = on_file_synced, .context = t};
    if (result == 0)
        result = disk_sync_begin(t->disk, t->file, false, &t->sync);
    if (result != DISK_SYNCING)
        file_end(t, result);
}

void
event_file_close(struct event_file_target *t)
{
    if (t->busy)
        disk_sync_wait(t->disk);
    if (t->file >= 0)
        disk_close_file(t->disk, t->file);
    t->file = -1;
}
