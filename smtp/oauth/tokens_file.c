/* Files of states of accounts. */
#include "smtp/oauth/tokens_file.h"

#include "base/disk/disk.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int64_t
tokens_file_read(struct disk *spool, const char *path,
                 char content[OAUTH_STATE_MAX + 1], int64_t *changed_ms)
{
    struct disk_info info;
    int file = disk_open_file(spool, path, false);
    if (file < 0)
        return file;
    int64_t length = disk_read(spool, file, 0, content, OAUTH_STATE_MAX + 1);
    if (disk_file_info(spool, file, &info) == 0)
        *changed_ms = info.changed_ms;
    disk_close_file(spool, file);
    return length > OAUTH_STATE_MAX ? -EFBIG : length;
}

void
tokens_file_fresh(const char *path, char out[TOKENS_FILE_PATH_MAX])
{
    static const char ending[] = ".new";
    snprintf(out, TOKENS_FILE_PATH_MAX, "%.*s%s",
             TOKENS_FILE_PATH_MAX - (int)sizeof(ending), path, ending);
}

/* Content, then name. */
static int
tokens_file_name(struct disk *spool, int file, const char *path)
{
    char fresh[TOKENS_FILE_PATH_MAX];
    tokens_file_fresh(path, fresh);
    int result = disk_sync(spool, file);
    disk_close_file(spool, file);
    if (result == 0)
        result = disk_rename(spool, fresh, path);
    if (result == 0)
        result = disk_sync_directory(spool, "oauth");
    if (result == 0)
        result = disk_sync_directory(spool, "");
    return result;
}

/* A file handle, or -errno. The name is new: it must not be taken. */
static int
tokens_file_write_new(struct disk *spool, const char *path, struct text content)
{
    char fresh[TOKENS_FILE_PATH_MAX];
    tokens_file_fresh(path, fresh);
    int result = disk_make_directory(spool, "oauth", 0700);
    if (result < 0)
        return result;
    (void)disk_unlink(spool, fresh);
    int file = disk_create(spool, fresh, 0600);
    result = file >= 0 ? disk_write(spool, file, content) : file;
    if (file >= 0 && result < 0)
        disk_close_file(spool, file);
    return result < 0 ? result : file;
}

static void
tokens_file_drop(struct disk *spool, const char *path)
{
    char fresh[TOKENS_FILE_PATH_MAX];
    tokens_file_fresh(path, fresh);
    (void)disk_unlink(spool, fresh);
}

int
tokens_file_write(struct disk *spool, const char *path, struct text content)
{
    int result = tokens_file_write_new(spool, path, content);
    if (result >= 0)
        result = tokens_file_name(spool, result, path);
    if (result < 0)
        tokens_file_drop(spool, path);
    return result;
}

int
tokens_file_complete(struct disk *spool, const char *path)
{
    char fresh[TOKENS_FILE_PATH_MAX];
    tokens_file_fresh(path, fresh);
    int file = disk_open_file(spool, fresh, true);
    return file < 0 ? file : tokens_file_name(spool, file, path);
}

/* --- In the background ------------------------------------------------------------ */

/* Data to sync, in this order. */
enum tokens_step { TOKENS_CONTENT, TOKENS_NAME, TOKENS_DIRECTORY };

struct tokens_write {
    struct disk *spool;
    char path[TOKENS_FILE_PATH_MAX];
    enum tokens_step step;
    int file;
    struct disk_sync sync;
    void (*done)(void *context, int result); /* NULL: nobody waits */
    void *context;
};

static void
tokens_write_end(struct tokens_write *w, int result)
{
    void (*done)(void *context, int result) = w->done;
    void *context = w->context;
    if (result < 0)
        tokens_file_drop(w->spool, w->path);
    free(w);
    if (done != NULL)
        done(context, result);
}

/* The next step: its file as a handle, or -errno. */
static int
tokens_write_next(struct tokens_write *w)
{
    char fresh[TOKENS_FILE_PATH_MAX];
    int result = 0;
    tokens_file_fresh(w->path, fresh);
    if (w->step == TOKENS_CONTENT)
        result = disk_rename(w->spool, fresh, w->path);
    if (result < 0)
        return result;
    w->step++;
    return disk_open_directory(w->spool, w->step == TOKENS_NAME ? "oauth" : "");
}

/* One step after the other, until a sync is in the background. True: it is. */
static bool
tokens_write_go(struct tokens_write *w, int result)
{
    while (result == 0) {
        disk_close_file(w->spool, w->file);
        bool last = w->step == TOKENS_DIRECTORY;
        result = last ? 0 : tokens_write_next(w);
        if (last || result < 0) {
            tokens_write_end(w, result);
            return false;
        }
        w->file = result;
        result = disk_sync_begin(w->spool, w->file, false, &w->sync);
    }
    if (result == DISK_SYNCING)
        return true;
    disk_close_file(w->spool, w->file);
    tokens_write_end(w, result);
    return false;
}

static void
tokens_write_synced(void *context, int result)
{
    (void)tokens_write_go(context, result);
}

struct tokens_write *
tokens_file_begin(struct disk *spool, const char *path, struct text content,
                  void (*done)(void *context, int result), void *context)
{
    int file = tokens_file_write_new(spool, path, content);
    if (file < 0) {
        tokens_file_drop(spool, path);
        done(context, file);
        return NULL;
    }
    struct tokens_write *w = memory_new(sizeof(*w));
    *w = (struct tokens_write){
        .spool = spool, .file = file, .done = done, .context = context};
    (void)text_copy(w->path, sizeof(w->path), text_from(path));
    w->sync.done = tokens_write_synced;
    w->sync.context = w;
    return tokens_write_go(w, disk_sync_begin(spool, file, false, &w->sync)) ? w : NULL;
}

void
tokens_file_leave(struct tokens_write **write)
{
    if (*write != NULL)
        (*write)->done = NULL;
    *write = NULL;
}
