/* The files in memory: what is seen, what is kept, and the faults on command. */
#include "t/sim/disk_world.h"

#include "base/memory.h"
#include "t/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { PAGE = 4096 };

struct world sim_disk_world;

/* --- Faults ---------------------------------------------------------------------- */

/* 0, or what this call fails with. */
int
world_gate(void)
{
    sim_disk_world.calls++;
    if (sim_disk_world.die_at != 0 && sim_disk_world.calls >= sim_disk_world.die_at)
        sim_disk_world.dead = true;
    if (sim_disk_world.dead)
        return -EIO;
    if (sim_disk_world.fail_at != 0 && sim_disk_world.calls == sim_disk_world.fail_at) {
        sim_disk_world.failed = true;
        return -sim_disk_world.fail_with;
    }
    return 0;
}

/* --- Bytes ----------------------------------------------------------------------- */

static void
bytes_resize(struct bytes *b, size_t size)
{
    if (size > b->capacity) {
        b->capacity = size + PAGE;
        b->at = memory_resize(b->at, b->capacity);
    }
    if (size > b->size)
        memset(b->at + b->size, 0, size - b->size);
    b->size = size;
}

void
world_write(struct inode *inode, size_t offset, struct text t)
{
    size_t end = offset + t.length, pages = (end + PAGE - 1) / PAGE;
    if (t.length == 0)
        return;
    if (end > inode->seen.size)
        bytes_resize(&inode->seen, end);
    memcpy(inode->seen.at + offset, t.at, t.length);
    if (pages > inode->dirty_pages) {
        inode->dirty = memory_resize(inode->dirty, pages);
        memset(inode->dirty + inode->dirty_pages, 0, pages - inode->dirty_pages);
        inode->dirty_pages = pages;
    }
    for (size_t page = offset / PAGE; page < pages; page++)
        inode->dirty[page] = 1;
    inode->changed_ms = sim_disk_world.now_ms;
}

void
world_lose(struct inode *inode)
{
    if (inode->dirty_pages > 0)
        memset(inode->dirty, 0, inode->dirty_pages);
}

/* Dirty pages reach the disk; those that an earlier failed sync dropped stay as they
 * were there. */
void
world_keep(struct inode *inode)
{
    bytes_resize(&inode->kept, inode->seen.size);
    for (size_t page = 0; page < inode->dirty_pages; page++) {
        size_t from = page * PAGE, size = inode->seen.size - from;
        if (inode->dirty[page])
            memcpy(inode->kept.at + from, inode->seen.at + from,
                   size < PAGE ? size : PAGE);
    }
    world_lose(inode);
}

/* --- Names ----------------------------------------------------------------------- */

static struct entry *
find_entry(const char *path)
{
    struct entry *e = NULL;
    HASH_FIND_STR(sim_disk_world.entries, path, e);
    return e;
}

struct inode *
world_inode(const char *path)
{
    struct entry *e = find_entry(path);
    return e != NULL ? e->seen : NULL;
}

struct entry *
world_entry(const char *path)
{
    struct entry *e = find_entry(path);
    if (e != NULL)
        return e;
    e = memory_new(sizeof(*e));
    e->path = memory_string(path);
    HASH_ADD_KEYPTR(hh, sim_disk_world.entries, e->path, strlen(e->path), e);
    return e;
}

struct inode *
world_inode_new(enum disk_kind kind, unsigned mode)
{
    struct inode *inode = memory_new(sizeof(*inode));
    inode->kind = kind;
    inode->mode = mode;
    inode->owner = sim_disk_world.user;
    inode->changed_ms = sim_disk_world.now_ms;
    LL_PREPEND(sim_disk_world.inodes, inode);
    return inode;
}

unsigned
world_links(const struct inode *inode)
{
    struct entry *e, *next;
    unsigned links = 0;
    HASH_ITER (hh, sim_disk_world.entries, e, next)
        if (e->seen == inode)
            links++;
    return links;
}

/* --- Handles --------------------------------------------------------------------- */

/* --- The sim_disk_world
 * ------------------------------------------------------------------- */

static void
inode_free(struct inode *inode)
{
    free(inode->seen.at);
    free(inode->kept.at);
    free(inode->dirty);
    free(inode);
}

static void
collect(void)
{
    struct entry *e, *next_entry;
    struct inode *inode, *next_inode, *left = NULL;
    HASH_ITER (hh, sim_disk_world.entries, e, next_entry) {
        if (e->seen != NULL)
            e->seen->marked = true;
        if (e->kept != NULL)
            e->kept->marked = true;
        if (e->seen == NULL && e->kept == NULL) {
            HASH_DEL(sim_disk_world.entries, e);
            free(e->path);
            free(e);
        }
    }
    LL_FOREACH_SAFE (sim_disk_world.inodes, inode, next_inode) {
        bool keep = inode->marked;
        inode->marked = inode->locked = false;
        if (keep)
            LL_PREPEND(left, inode);
        else
            inode_free(inode);
    }
    sim_disk_world.inodes = left;
}

static void
begin_again(void)
{
    memset(sim_disk_world.handles, 0, sizeof(sim_disk_world.handles));
    sim_disk_world.dead = false;
    sim_disk_count_anew();
    collect();
}

void
world_make(void)
{
    if (sim_disk_world.made)
        return;
    sim_disk_world.made = true;
    sim_disk_world.now_ms = SIM_WALL_START_MS;
    sim_disk_world.space = (struct disk_space){INT64_C(1) << 40, 1000000};
}

void
sim_disk_reset(void)
{
    struct entry *e, *next;
    HASH_ITER (hh, sim_disk_world.entries, e, next)
        e->seen = e->kept = NULL;
    collect();
    sim_disk_world = (struct world){0};
    world_make();
}

uint64_t
sim_disk_calls(void)
{
    return sim_disk_world.calls;
}

void
sim_disk_count_anew(void)
{
    sim_disk_world.calls = sim_disk_world.fail_at = sim_disk_world.die_at = 0;
    sim_disk_world.failed = false;
}

void
sim_disk_fail_at(uint64_t call, int error)
{
    sim_disk_world.fail_at = call;
    sim_disk_world.fail_with = error;
}

void
sim_disk_die_at(uint64_t call)
{
    sim_disk_world.die_at = call;
}

bool
sim_disk_is_dead(void)
{
    return sim_disk_world.dead;
}

bool
sim_disk_has_failed(void)
{
    return sim_disk_world.failed;
}

void
sim_disk_restart(void)
{
    begin_again();
}

static void
lose_power(struct inode *inode)
{
    bytes_resize(&inode->seen, 0);
    bytes_resize(&inode->seen, inode->kept.size);
    if (inode->kept.size > 0)
        memcpy(inode->seen.at, inode->kept.at, inode->kept.size);
    world_lose(inode);
    inode->pulled = 0;
}

void
sim_disk_power_cut(void)
{
    struct entry *e, *next;
    struct inode *inode;
    HASH_ITER (hh, sim_disk_world.entries, e, next)
        e->seen = e->kept;
    LL_FOREACH (sim_disk_world.inodes, inode)
        lose_power(inode);
    begin_again();
}

void
sim_disk_set_time(int64_t now_ms)
{
    world_make();
    sim_disk_world.now_ms = now_ms;
}

void
sim_disk_set_user(unsigned user)
{
    sim_disk_world.user = user;
}

void
sim_disk_set_space(int64_t bytes_free, int64_t inodes_free)
{
    world_make();
    sim_disk_world.space = (struct disk_space){bytes_free, inodes_free};
}

size_t
sim_disk_count(const char *under)
{
    struct entry *e, *next;
    size_t count = 0, length = strlen(under);
    HASH_ITER (hh, sim_disk_world.entries, e, next)
        if (e->seen != NULL && e->seen->kind == DISK_FILE &&
            strncmp(e->path, under, length) == 0 &&
            (length == 0 || e->path[length] == '/'))
            count++;
    return count;
}

struct text
sim_disk_content(const char *path)
{
    struct inode *inode = world_inode(path);
    if (inode == NULL)
        return text_of(NULL, 0);
    return inode->seen.size > 0 ? text_of(inode->seen.at, inode->seen.size) : TEXT("");
}

bool
sim_disk_damage(const char *path, size_t offset)
{
    struct inode *inode = world_inode(path);
    if (inode == NULL || offset >= inode->seen.size)
        return false;
    inode->seen.at[offset] = (char)~inode->seen.at[offset];
    if (offset < inode->kept.size)
        inode->kept.at[offset] = inode->seen.at[offset];
    return true;
}

int
sim_disk_fifo_reader(const char *path)
{
    struct inode *inode = world_inode(path);
    for (int i = 0; i < HANDLES_MAX && inode != NULL; i++)
        if (sim_disk_world.handles[i].open && sim_disk_world.handles[i].inode == inode)
            return FIRST_HANDLE + i;
    return -1;
}

size_t
sim_disk_fifo_pulled(const char *path)
{
    struct inode *inode = world_inode(path);
    return inode != NULL ? inode->pulled : 0;
}
