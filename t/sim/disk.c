/* The disk's stand-in: base/disk.h upon a world in memory. */
#include "t/sim/disk_world.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct disk {
    char *path;
};

static void
full_path(const struct disk *disk, const char *path, char out[PATH_LIMIT])
{
    if (path[0] == '/' || disk == NULL)
        snprintf(out, PATH_LIMIT, "%s", path);
    else
        snprintf(out, PATH_LIMIT, "%s/%s", disk->path, path);
    size_t length = strlen(out);
    while (length > 1 && out[length - 1] == '/')
        out[--length] = '\0';
}

/* Length of the directory part; 0 for the root and for names without one. */
static size_t
parent_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) : 0;
}

static bool
is_in(const char *path, const char *directory)
{
    size_t length = parent_length(path);
    return length == strlen(directory) && strncmp(path, directory, length) == 0;
}

/* 0 when something can be made there. */
static int
check_parent(const char *path)
{
    char parent[PATH_LIMIT];
    size_t length = parent_length(path);
    if (length == 0)
        return 0;
    snprintf(parent, sizeof(parent), "%.*s", (int)length, path);
    struct inode *inode = world_inode(parent);
    return inode == NULL ? -ENOENT : inode->kind == DISK_DIRECTORY ? 0 : -ENOTDIR;
}

static struct disk_info
info_of(const struct inode *inode)
{
    return (struct disk_info){.kind = inode->kind,
                              .size = (int64_t)inode->seen.size,
                              .changed_ms = inode->changed_ms,
                              .owner = inode->owner,
                              .links = world_links(inode)};
}

static int
open_handle(struct inode *inode)
{
    for (int i = 0; i < HANDLES_MAX; i++)
        if (!sim_disk_world.handles[i].open) {
            sim_disk_world.handles[i] = (struct handle){.inode = inode, .open = true};
            return FIRST_HANDLE + i;
        }
    return -EMFILE;
}

static struct handle *
handle_of(int file)
{
    assert(file >= FIRST_HANDLE && file < FIRST_HANDLE + HANDLES_MAX);
    struct handle *handle = &sim_disk_world.handles[file - FIRST_HANDLE];
    /* After a restart the dead process still closes what it had. */
    assert(handle->open || sim_disk_world.dead);
    return handle;
}

/* --- base/disk.h: directories ---------------------------------------------------- */

static int
make_directory(const char *path, unsigned mode)
{
    int result = check_parent(path);
    struct inode *inode = world_inode(path);
    if (inode != NULL)
        return inode->kind == DISK_DIRECTORY ? -EEXIST : -ENOTDIR;
    if (result < 0)
        return result;
    struct entry *e = world_entry(path);
    e->seen = e->kept = world_inode_new(DISK_DIRECTORY, mode);
    e->seen->named = true;
    return 0;
}

int
disk_open(struct disk **disk, const char *path, bool create)
{
    char part[PATH_LIMIT];
    int result = world_gate();
    *disk = NULL;
    world_make();
    for (const char *at = path; create && result == 0 && *at != '\0';) {
        const char *slash = strchr(at + 1, '/');
        at = slash != NULL ? slash : at + strlen(at);
        snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
        result = make_directory(part, 0711);
        if (result == -EEXIST)
            result = 0;
    }
    full_path(NULL, path, part);
    struct inode *inode = world_inode(part);
    if (result < 0)
        return result;
    if (inode == NULL || inode->kind != DISK_DIRECTORY)
        return inode == NULL ? -ENOENT : -ENOTDIR;
    *disk = memory_new(sizeof(**disk));
    (*disk)->path = memory_string(part);
    return 0;
}

void
disk_close(struct disk **disk)
{
    if (*disk == NULL)
        return;
    free((*disk)->path);
    free(*disk);
    *disk = NULL;
}

const char *
disk_path(const struct disk *disk)
{
    return disk->path;
}

bool
disk_is_owner(const struct disk *disk)
{
    struct inode *inode = world_inode(disk->path);
    return inode != NULL && inode->owner == sim_disk_world.user;
}

int
disk_make_directory(struct disk *disk, const char *path, unsigned mode)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    if (result < 0)
        return result;
    full_path(disk, path, full);
    result = make_directory(full, mode);
    return result == -EEXIST ? 0 : result;
}

int
disk_make_fifo(struct disk *disk, const char *path, unsigned mode)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (result == 0 && inode != NULL)
        return inode->kind == DISK_OTHER ? 0 : -EEXIST;
    if (result == 0)
        result = check_parent(full);
    if (result < 0)
        return result;
    struct entry *e = world_entry(full);
    e->seen = e->kept = world_inode_new(DISK_OTHER, mode);
    return 0;
}

int
disk_sync_directory(struct disk *disk, const char *path)
{
    char full[PATH_LIMIT];
    struct entry *e, *next;
    int result = world_gate();
    if (result < 0)
        return result;
    full_path(disk, path, full);
    if (world_inode(full) == NULL)
        return -ENOENT;
    HASH_ITER (hh, sim_disk_world.entries, e, next)
        if (is_in(e->path, full)) {
            e->kept = e->seen;
            if (e->kept != NULL)
                e->kept->named = true;
        }
    return 0;
}

int
disk_list(struct disk *disk, const char *path,
          bool (*each)(void *context, const char *name), void *context)
{
    char full[PATH_LIMIT];
    struct entry *e, *next;
    int result = world_gate();
    if (result < 0)
        return result;
    full_path(disk, path, full);
    if (world_inode(full) == NULL)
        return -ENOENT;
    /* Names that go meanwhile keep their entry, with nothing seen. */
    HASH_ITER (hh, sim_disk_world.entries, e, next)
        if (e->seen != NULL && is_in(e->path, full) &&
            !each(context, e->path + strlen(full) + 1))
            break;
    return 0;
}

int
disk_space(struct disk *disk, struct disk_space *space)
{
    int result = world_gate();
    (void)disk;
    *space = sim_disk_world.space;
    return result;
}

/* --- base/disk.h: files ---------------------------------------------------------- */

int
disk_create(struct disk *disk, const char *path, unsigned mode)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    if (result == 0)
        result = check_parent(full);
    if (result == 0 && world_inode(full) != NULL)
        result = -EEXIST;
    if (result < 0)
        return result;
    struct entry *e = world_entry(full);
    e->seen = world_inode_new(DISK_FILE, mode);
    return open_handle(e->seen);
}

int
disk_open_file(struct disk *disk, const char *path, bool for_writing)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    (void)for_writing;
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result == 0 && inode->kind != DISK_FILE)
        result = -EINVAL;
    return result < 0 ? result : open_handle(inode);
}

void
disk_close_file(struct disk *disk, int file)
{
    struct handle *handle = handle_of(file);
    (void)disk;
    if (handle->holds_lock)
        handle->inode->locked = false;
    *handle = (struct handle){0};
}

int
disk_write_at(struct disk *disk, int file, int64_t offset, struct text bytes)
{
    struct inode *inode = handle_of(file)->inode;
    bool was_dead = sim_disk_world.dead;
    int result = world_gate();
    (void)disk;
    if (!was_dead)
        world_write(inode, (size_t)offset,
                    result < 0 ? text_before(bytes, bytes.length / 2) : bytes);
    return result;
}

int
disk_write(struct disk *disk, int file, struct text bytes)
{
    return disk_write_at(disk, file, (int64_t)handle_of(file)->inode->seen.size, bytes);
}

int64_t
disk_read(struct disk *disk, int file, int64_t offset, char *to, size_t size)
{
    struct inode *inode = handle_of(file)->inode;
    int result = world_gate();
    (void)disk;
    if (result < 0)
        return result;
    if (inode->kind == DISK_OTHER) {
        size_t got = inode->pulled < size ? inode->pulled : size;
        memset(to, '!', got);
        inode->pulled -= got;
        return (int64_t)got;
    }
    if ((size_t)offset >= inode->seen.size)
        return 0;
    struct text rest = text_before(
        text_after(text_of(inode->seen.at, inode->seen.size), (size_t)offset), size);
    memcpy(to, rest.at, rest.length);
    return (int64_t)rest.length;
}

int
disk_file_info(struct disk *disk, int file, struct disk_info *info)
{
    int result = world_gate();
    (void)disk;
    if (result == 0)
        *info = info_of(handle_of(file)->inode);
    return result;
}

int
disk_sync_data(struct disk *disk, int file)
{
    struct inode *inode = handle_of(file)->inode;
    int result = world_gate();
    (void)disk;
    if (result == 0)
        world_keep(inode);
    else if (!sim_disk_world.dead)
        world_lose(inode);
    return result;
}

int
disk_sync(struct disk *disk, int file)
{
    struct inode *inode = handle_of(file)->inode;
    struct entry *e, *next;
    int result = disk_sync_data(disk, file);
    if (result < 0 || inode->named)
        return result;
    HASH_ITER (hh, sim_disk_world.entries, e, next)
        if (e->seen == inode) {
            e->kept = inode;
            inode->named = true;
        }
    return 0;
}

int
disk_link(struct disk *disk, const char *from, const char *to)
{
    char source[PATH_LIMIT], target[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, from, source);
    full_path(disk, to, target);
    struct inode *inode = world_inode(source);
    if (result == 0)
        result = check_parent(target);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result == 0 && world_inode(target) != NULL)
        result = -EEXIST;
    if (result < 0)
        return result;
    world_entry(target)->seen = inode;
    inode->changed_ms = sim_disk_world.now_ms;
    return 0;
}

int
disk_rename(struct disk *disk, const char *from, const char *to)
{
    char source[PATH_LIMIT], target[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, from, source);
    full_path(disk, to, target);
    struct inode *inode = world_inode(source);
    if (result == 0)
        result = check_parent(target);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result < 0)
        return result;
    world_entry(target)->seen = inode;
    if (strcmp(source, target) != 0)
        world_entry(source)->seen = NULL;
    inode->changed_ms = sim_disk_world.now_ms;
    return 0;
}

int
disk_unlink(struct disk *disk, const char *path)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result == 0 && inode->kind == DISK_DIRECTORY)
        result = -EISDIR;
    if (result < 0)
        return result;
    world_entry(full)->seen = NULL;
    inode->changed_ms = sim_disk_world.now_ms;
    return 0;
}

int
disk_inspect(struct disk *disk, const char *path, struct disk_info *info)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (result < 0)
        return result;
    if (inode == NULL)
        return -ENOENT;
    *info = info_of(inode);
    return 0;
}

/* --- base/disk.h: locks, FIFOs, settings ----------------------------------------- */

int
disk_lock(struct disk *disk, const char *path)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    if (result == 0)
        result = check_parent(full);
    if (result < 0)
        return result;
    struct entry *e = world_entry(full);
    if (e->seen == NULL)
        e->seen = e->kept = world_inode_new(DISK_FILE, 0600);
    if (e->seen->locked)
        return -EWOULDBLOCK;
    int file = open_handle(e->seen);
    if (file < 0)
        return file;
    e->seen->locked = handle_of(file)->holds_lock = true;
    return file;
}

int
disk_open_fifo(struct disk *disk, const char *path)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (result < 0)
        return result;
    if (inode == NULL)
        return -ENOENT;
    return inode->kind == DISK_OTHER ? open_handle(inode) : -EINVAL;
}

int
disk_pull_fifo(struct disk *disk, const char *path)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    if (result < 0)
        return result;
    if (world_inode(full) == NULL)
        return -ENOENT;
    if (sim_disk_fifo_reader(full) < 0)
        return -ENXIO;
    world_inode(full)->pulled++;
    return 0;
}

int
disk_read_whole(const char *path, size_t limit, char **content, size_t *length)
{
    int result = world_gate();
    struct inode *inode = world_inode(path);
    if (result < 0)
        return result;
    if (inode == NULL)
        return -ENOENT;
    if (inode->seen.size > limit)
        return -EFBIG;
    *content = text_string(text_of(inode->seen.at, inode->seen.size));
    *length = inode->seen.size;
    return 0;
}
