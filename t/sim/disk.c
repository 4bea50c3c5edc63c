/* The disk's stand-in: base/disk/disk.h upon a world in memory. */
#include "t/sim/disk_world.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A sync in the background. */
struct flight {
    struct disk *disk;
    struct disk_sync *sync;
    struct capture *capture;
    uint64_t boot; /* the process that wanted it */
    unsigned process;
    struct loop_task task;
    struct loop_timer timer;
    struct flight *prev, *next, *all_prev, *all_next;
};

/* Those of all disks, and of processes that have died. */
static struct flight *all_flights;

struct disk {
    char *path;
    struct loop *loop; /* NULL: syncs block */
    struct flight *flights;
};

static void
full_path(const struct disk *disk, const char *path, char out[PATH_LIMIT])
{
    size_t length = 0, more = strlen(path);
    if (path[0] != '/' && disk != NULL) {
        length = strlen(disk->path);
        assert(length + 1 < PATH_LIMIT);
        memcpy(out, disk->path, length);
        out[length++] = '/';
    }
    assert(length + more < PATH_LIMIT);
    memcpy(out + length, path, more + 1);
    length += more;
    while (length > 1 && (out[length - 1] == '/' || !strcmp(out + length - 2, "/.")))
        out[--length] = '\0';
}

/* Nothing but when all went well. */
static int
changed(int result)
{
    if (result >= 0)
        world_changed();
    return result;
}

static struct disk_info
info_of(const struct inode *inode)
{
    return (struct disk_info){.kind = inode->kind,
                              .size = (int64_t)inode->seen.size,
                              .changed_ms = inode->changed_ms,
                              .owner = inode->owner,
                              .mode = inode->mode,
                              .links = inode->links,
                              .inode = (uint64_t)(uintptr_t)inode};
}

static int
open_handle(struct inode *inode)
{
    struct world *w = world();
    size_t i = 0;
    while (i < w->handle_count && w->handles[i].open)
        i++;
    if (i == w->handle_count) {
        w->handle_count = i > 0 ? i * 2 : 16;
        w->handles = memory_resize(w->handles, w->handle_count * sizeof(*w->handles));
        memset(w->handles + i, 0, (w->handle_count - i) * sizeof(*w->handles));
    }
    w->handles[i] =
        (struct handle){.inode = inode, .open = true, .process = w->process};
    return FIRST_HANDLE + (int)i;
}

/* NULL: of a process that has ended, which still closes what it had. */
static struct handle *
find_handle(int file)
{
    struct world *w = world();
    size_t i = (size_t)(file - FIRST_HANDLE);
    assert(file >= FIRST_HANDLE);
    return i < w->handle_count && w->handles[i].open ? &w->handles[i] : NULL;
}

static struct handle *
handle_of(int file)
{
    struct handle *handle = find_handle(file);
    assert(handle != NULL);
    return handle;
}

/* --- base/disk/disk.h: directories ---------------------------------------------------- */

static int
make_directory(const char *path, unsigned mode)
{
    int result = world_check_parent(path);
    struct inode *inode = world_inode(path);
    if (inode != NULL)
        return inode->kind == DISK_DIRECTORY ? -EEXIST : -ENOTDIR;
    if (result < 0)
        return result;
    struct entry *e = world_entry(path);
    world_see(e, world_inode_new(DISK_DIRECTORY, mode), world_group());
    e->kept = e->seen;
    world_file(world(), e);
    return changed(0);
}

int
disk_open(struct disk **disk, const char *path, bool create)
{
    char part[PATH_LIMIT];
    int result = world_gate();
    *disk = NULL;
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

static void
drop_flight(struct flight *f)
{
    loop_unpost(f->disk->loop, &f->task);
    loop_timer_stop(f->disk->loop, &f->timer);
    DL_DELETE(f->disk->flights, f);
    DL_DELETE2(all_flights, f, all_prev, all_next);
    world_capture_free(&f->capture);
    free(f);
}

void
disk_close(struct disk **disk)
{
    struct flight *f, *next;
    if (*disk == NULL)
        return;
    /* Writes in flight may be durable or not: nobody will hear. */
    DL_FOREACH_SAFE ((*disk)->flights, f, next)
        drop_flight(f);
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
    return inode != NULL && inode->owner == world()->user;
}

/* Nobody is root there. */
int
disk_give(struct disk *disk, const char *path, unsigned user, unsigned group)
{
    (void)disk, (void)path, (void)user, (void)group;
    return -EPERM;
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
        result = world_check_parent(full);
    if (result < 0)
        return result;
    struct entry *e = world_entry(full);
    world_see(e, world_inode_new(DISK_OTHER, mode), world_group());
    e->kept = e->seen;
    world_file(world(), e);
    return changed(0);
}

int
disk_sync_directory(struct disk *disk, const char *path)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    if (result < 0)
        return result;
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (inode == NULL)
        return -ENOENT;
    struct capture *capture = world_capture(inode, full, true);
    world_keep(&capture);
    return changed(0);
}

int
disk_open_directory(struct disk *disk, const char *path)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result == 0 && inode->kind != DISK_DIRECTORY)
        result = -ENOTDIR;
    if (result < 0)
        return result;
    int file = open_handle(inode);
    handle_of(file)->path = memory_string(full);
    return file;
}

/* The names as they are when it begins. */
struct disk_listing {
    char **names;
    size_t count, next;
};

int
disk_listing_open(struct disk *disk, const char *path, struct disk_listing **listing)
{
    char full[PATH_LIMIT];
    struct entry *e;
    int result = world_gate();
    *listing = NULL;
    if (result < 0)
        return result;
    full_path(disk, path, full);
    if (world_inode(full) == NULL)
        return -ENOENT;
    struct disk_listing *l = *listing = memory_new(sizeof(*l));
    size_t length = strlen(full);
    DL_FOREACH2 (world_list(full), e, list_next)
        if (e->seen != NULL) {
            l->names = memory_resize(l->names, (l->count + 1) * sizeof(*l->names));
            l->names[l->count++] = memory_string(e->path + length + 1);
        }
    return 0;
}

int
disk_listing_read(struct disk_listing *l, size_t most,
                  bool (*each)(void *context, const char *name), void *context)
{
    for (size_t i = 0; i < most; i++)
        if (l->next == l->count || !each(context, l->names[l->next++]))
            return 0;
    return 1;
}

void
disk_listing_close(struct disk_listing **listing)
{
    struct disk_listing *l = *listing;
    *listing = NULL;
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->count; i++)
        free(l->names[i]);
    free(l->names);
    free(l);
}

int
disk_list(struct disk *disk, const char *path,
          bool (*each)(void *context, const char *name), void *context)
{
    struct disk_listing *l;
    int result = disk_listing_open(disk, path, &l);
    if (result == 0)
        (void)disk_listing_read(l, SIZE_MAX, each, context);
    disk_listing_close(&l);
    return result;
}

int
disk_space(struct disk *disk, struct disk_space *space)
{
    int result = world_gate();
    (void)disk;
    *space = world()->space;
    return result;
}

int
disk_traits(struct disk *disk, const char *path, struct disk_traits *nature)
{
    int result = world_gate();
    (void)disk;
    (void)path;
    *nature = world()->nature;
    return result;
}

bool
disk_is_shared(const struct disk *disk)
{
    (void)disk;
    return world()->nature.shared;
}

/* --- base/disk/disk.h: files ---------------------------------------------------------- */

int
disk_create(struct disk *disk, const char *path, unsigned mode)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    if (result == 0)
        result = world_check_parent(full);
    if (result == 0 && world_inode(full) != NULL)
        result = -EEXIST;
    if (result < 0)
        return result;
    struct inode *inode = world_inode_new(DISK_FILE, mode);
    world_see(world_entry(full), inode, world_group());
    return changed(open_handle(inode));
}

int
disk_create_for(struct disk *disk, const char *path, unsigned reader)
{
    (void)reader;
    return disk_create(disk, path, 0640);
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
    struct handle *handle = find_handle(file);
    (void)disk;
    if (handle == NULL)
        return;
    free(handle->path);
    *handle = (struct handle){0};
}

int
disk_write_at(struct disk *disk, int file, int64_t offset, struct text bytes)
{
    bool was_dead = world()->dead;
    int result = world_gate();
    (void)disk;
    if (was_dead)
        return result;
    world_write(handle_of(file)->inode, (size_t)offset,
                result < 0 ? text_before(bytes, bytes.length / 2) : bytes);
    world_changed();
    return result;
}

int
disk_write(struct disk *disk, int file, struct text bytes)
{
    struct handle *handle = find_handle(file);
    int64_t end = handle != NULL ? (int64_t)handle->inode->seen.size : 0;
    return disk_write_at(disk, file, end, bytes);
}

int64_t
disk_read(struct disk *disk, int file, int64_t offset, char *to, size_t size)
{
    int result = world_gate();
    (void)disk;
    if (result < 0)
        return result;
    struct inode *inode = handle_of(file)->inode;
    if (inode->kind == DISK_OTHER) {
        size_t got = inode->pulled < size ? inode->pulled : size;
        memset(to, '!', got);
        inode->pulled -= got;
        return (int64_t)got;
    }
    if (inode->kind == DISK_DIRECTORY)
        return -EISDIR;
    world_pull(inode);
    if ((size_t)offset >= inode->seen.size)
        return 0;
    size_t rest = inode->seen.size - (size_t)offset;
    rest = rest < size ? rest : size;
    if (inode->worn > 0 && (size_t)offset < inode->worn * PAGE &&
        (size_t)offset + rest > (inode->worn - 1) * PAGE)
        return -EIO;
    bytes_read(&inode->seen, (size_t)offset, to, rest);
    return (int64_t)rest;
}

int64_t
disk_peek(struct disk *disk, const char *path, char *to, size_t size, int *file)
{
    int opened = disk_open_file(disk, path, false);
    if (opened < 0)
        return opened;
    if (world()->cold) {
        *file = opened;
        return -EAGAIN;
    }
    int64_t got = disk_read(disk, opened, 0, to, size);
    disk_close_file(disk, opened);
    return got;
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

/* --- base/disk/disk.h: syncs ---------------------------------------------------------- */

static struct capture *
capture_of(int file, bool data_only)
{
    struct handle *handle = handle_of(file);
    return world_capture(handle->inode, handle->path, !data_only);
}

static int
finish_sync(struct capture *capture, int result)
{
    struct world *w = world();
    if (result >= 0 && w->syncs_failing > 0) {
        w->syncs_failing--;
        result = -w->syncs_fail_with;
    }
    if (result < 0) {
        world_lose(&capture);
        return result;
    }
    world_keep(&capture);
    return changed(0);
}

static int
sync_now(int file, bool data_only)
{
    int result = world_gate();
    return world()->dead ? result : finish_sync(capture_of(file, data_only), result);
}

int
disk_sync_data(struct disk *disk, int file)
{
    (void)disk;
    return sync_now(file, true);
}

int
disk_sync(struct disk *disk, int file)
{
    (void)disk;
    return sync_now(file, false);
}

enum disk_syncing
disk_sync_on(struct disk *disk, struct loop *loop)
{
    if (!world()->sync_blocks)
        disk->loop = loop;
    return disk_sync_way(disk);
}

enum disk_syncing
disk_sync_way(const struct disk *disk)
{
    return disk->loop != NULL ? DISK_SYNC_AIO : DISK_SYNC_BLOCKS;
}

static void
land(void *context)
{
    struct flight *f = context;
    struct disk_sync *sync = f->sync;
    int result = -EIO;
    /* The world may have lost the process meanwhile, and what it knew of it. */
    if (f->boot == world()->boot) {
        result = world_gate();
        if (!world()->dead) {
            struct capture *capture = f->capture;
            f->capture = NULL;
            result = finish_sync(capture, result);
        }
    }
    drop_flight(f);
    sync->done(sync->context, result);
}

static int64_t
draw_sync_ms(struct world *w)
{
    if (w->sync_spread_ms == 0)
        return w->sync_ms;
    /* Knuth's MMIX generator; its upper half is the better one */
    w->sync_chance =
        w->sync_chance * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return w->sync_ms + (int64_t)((w->sync_chance >> 33) % (uint64_t)w->sync_spread_ms);
}

int
disk_sync_begin(struct disk *disk, int file, bool data_only, struct disk_sync *sync)
{
    if (disk->loop == NULL)
        return sync_now(file, data_only);
    int result = world_gate();
    if (world()->dead)
        return result;
    struct capture *capture = capture_of(file, data_only);
    if (result < 0)
        return finish_sync(capture, result);
    struct flight *f = memory_new(sizeof(*f));
    *f = (struct flight){.disk = disk, .sync = sync, .capture = capture};
    f->boot = world()->boot;
    f->process = world()->process;
    DL_APPEND(disk->flights, f);
    DL_APPEND2(all_flights, f, all_prev, all_next);
    int64_t sync_ms = draw_sync_ms(world());
    if (sync_ms > 0)
        loop_timer_start(disk->loop, &f->timer, sync_ms, land, f);
    else
        loop_post(disk->loop, &f->task, land, f);
    return DISK_SYNCING;
}

void
disk_sync_begin_many(struct disk *disk, const int *files, bool data_only,
                     struct disk_sync *const *syncs, int *results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        results[i] = disk_sync_begin(disk, files[i], data_only, syncs[i]);
}

size_t
sim_disk_syncs(void)
{
    const struct flight *f;
    size_t count = 0;
    DL_FOREACH2 (all_flights, f, all_next)
        count += f->process == world()->process && f->boot == world()->boot;
    return count;
}

void
disk_sync_wait(struct disk *disk)
{
    while (disk->flights != NULL) {
        struct flight *first = disk->flights;
        loop_timer_stop(disk->loop, &first->timer);
        loop_unpost(disk->loop, &first->task);
        land(first);
    }
}

/* --- base/disk/disk.h: names ---------------------------------------------------------- */

int
disk_link(struct disk *disk, const char *from, const char *to)
{
    char source[PATH_LIMIT], target[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, from, source);
    full_path(disk, to, target);
    struct inode *inode = world_inode(source);
    if (result == 0)
        result = world_check_parent(target);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result == 0 && world_inode(target) != NULL)
        result = -EEXIST;
    if (result < 0)
        return result;
    world_see(world_entry(target), inode, world_group());
    inode->changed_ms = world()->now_ms;
    return changed(0);
}

/* Pending changes that belonged to one of the two belong to both now. */
static void
join_groups(uint64_t from, uint64_t into)
{
    struct entry *e;
    DL_FOREACH2 (world()->pending, e, pending_next)
        if (e->group == from)
            e->group = into;
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
        result = world_check_parent(target);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result < 0)
        return result;
    struct entry *old = world_entry(source), *new = world_entry(target);
    uint64_t group = world_group();
    if (old != new) {
        join_groups(old->group, group);
        join_groups(new->group, group);
        world_see(new, inode, group);
        world_see(old, NULL, group);
    }
    inode->changed_ms = world()->now_ms;
    return changed(0);
}

static int
remove_name(struct disk *disk, const char *path, bool directory)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    struct inode *inode = world_inode(full);
    if (result == 0 && inode == NULL)
        result = -ENOENT;
    if (result == 0 && (inode->kind == DISK_DIRECTORY) != directory)
        result = directory ? -ENOTDIR : -EISDIR;
    if (result == 0 && directory && world_has_names_in(full))
        result = -ENOTEMPTY;
    if (result < 0)
        return result;
    world_see(world_entry(full), NULL, world_group());
    inode->changed_ms = world()->now_ms;
    return changed(0);
}

int
disk_unlink(struct disk *disk, const char *path)
{
    return remove_name(disk, path, false);
}

int
disk_remove_directory(struct disk *disk, const char *path)
{
    return remove_name(disk, path, true);
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

/* --- base/disk/disk.h: locks, FIFOs, settings ----------------------------------------- */

static bool
is_locked(const struct inode *inode, unsigned first, unsigned count)
{
    const struct world *w = world();
    for (size_t i = 0; i < w->handle_count; i++) {
        const struct handle *h = &w->handles[i];
        if (h->open && h->inode == inode && h->lock_count > 0 &&
            first < h->lock_first + h->lock_count && h->lock_first < first + count)
            return true;
    }
    return false;
}

int
disk_lock(struct disk *disk, const char *path, unsigned first, unsigned count)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    assert(count > 0);
    full_path(disk, path, full);
    if (result == 0)
        result = world_check_parent(full);
    if (result < 0)
        return result;
    struct entry *e = world_entry(full);
    if (e->seen == NULL) {
        world_see(e, world_inode_new(DISK_FILE, 0600), world_group());
        e->kept = e->seen;
        world_file(world(), e);
        world_changed();
    }
    if (e->seen->kind != DISK_FILE)
        return -EINVAL;
    if (is_locked(e->seen, first, count))
        return -EWOULDBLOCK;
    int file = open_handle(e->seen);
    handle_of(file)->lock_first = first;
    handle_of(file)->lock_count = count;
    return file;
}

void *
disk_map(struct disk *disk, const char *path, size_t size)
{
    char full[PATH_LIMIT];
    int result = world_gate();
    full_path(disk, path, full);
    if (result == 0)
        result = world_check_parent(full);
    if (result < 0)
        return NULL;
    struct entry *e = world_entry(full);
    if (e->seen == NULL)
        world_see(e, world_inode_new(DISK_FILE, 0600), world_group());
    if (e->seen->kind != DISK_FILE)
        return NULL;
    void *map = world_map(e->seen, size);
    world_changed();
    return map;
}

void
disk_unmap(struct disk *disk, void *map, size_t size)
{
    (void)disk;
    (void)size;
    if (map != NULL)
        world_unmap(map);
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
    *content = text_string(sim_disk_content(path));
    *length = inode->seen.size;
    return 0;
}
