/* The files in memory: what is seen, what is kept, and the faults on command. */
#include "t/sim/disk_world.h"

#include "base/memory.h"
#include "t/sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static struct world *current;
static uint64_t boots;

/* --- Faults ---------------------------------------------------------------------- */

int
world_gate(void)
{
    struct world *w = world();
    w->calls++;
    w->changes++;
    if (w->die_at != 0 && w->calls >= w->die_at && !w->dead) {
        world_pull_all(w);
        w->dead = true;
    }
    if (w->dead)
        return -EIO;
    if (w->fail_at != 0 && w->calls == w->fail_at) {
        w->failed = true;
        return -w->fail_with;
    }
    return -w->failing;
}

void
world_changed(void)
{
    if (current->changed != NULL && !current->dead)
        current->changed(current->context);
}

/* --- Dirt ------------------------------------------------------------------------ */

void
world_clean(struct inode *inode, size_t page)
{
    if (page >= inode->dirt_count || inode->dirt[page].to == 0)
        return;
    inode->dirt[page] = (struct dirt){0};
    inode->dirty--;
}

static void
soil(struct inode *inode, size_t from, size_t to)
{
    size_t pages = (to + PAGE - 1) / PAGE;
    current->changes++;
    if (pages > inode->dirt_count) {
        inode->dirt = memory_resize(inode->dirt, pages * sizeof(*inode->dirt));
        memset(inode->dirt + inode->dirt_count, 0,
               (pages - inode->dirt_count) * sizeof(*inode->dirt));
        inode->dirt_count = pages;
    }
    while (from < to) {
        struct dirt *d = &inode->dirt[from / PAGE];
        size_t start = from % PAGE, left = PAGE - start;
        size_t end = start + (to - from < left ? to - from : left);
        if (d->to == 0) {
            *d = (struct dirt){(uint16_t)start, (uint16_t)end, false};
            inode->dirty++;
        } else {
            d->scattered = d->scattered || start > d->to || end < d->from;
            d->from = start < d->from ? (uint16_t)start : d->from;
            d->to = end > d->to ? (uint16_t)end : d->to;
        }
        from += end - start;
    }
}

/* --- Memory that is shared with a file ------------------------------------------- */

struct map {
    struct inode *inode; /* NULL: of a process that has ended */
    struct world *world;
    char *at;
    size_t size;
    unsigned users, users_of[PROCESSES_MAX];
    struct map *prev, *next;
};
static struct map *maps;

static struct map *
find_map(const struct inode *inode)
{
    struct map *m;
    DL_FOREACH (maps, m)
        if (m->inode == inode)
            return m;
    return NULL;
}

void *
world_map(struct inode *inode, size_t size)
{
    struct map *m = inode->mapped ? find_map(inode) : NULL;
    if (m != NULL) {
        assert(m->size == size);
        m->users++;
        m->users_of[current->process]++;
        return m->at;
    }
    if (inode->seen.size < size) {
        inode->seen.size = size;
        inode->changed_ms = world()->now_ms;
    }
    m = memory_new(sizeof(*m));
    *m = (struct map){.inode = inode, .world = current, .size = size, .users = 1};
    m->users_of[current->process] = 1;
    m->at = memory_new(size);
    bytes_read(&inode->seen, 0, m->at, size);
    DL_APPEND(maps, m);
    inode->mapped = true;
    return m->at;
}

void
world_unmap(void *map)
{
    struct map *m;
    DL_FOREACH (maps, m)
        if (m->at == map)
            break;
    assert(m != NULL);
    if (m->inode != NULL && !m->world->dead)
        world_pull(m->inode);
    m->users_of[m->world->process]--;
    if (--m->users > 0)
        return;
    if (m->inode != NULL)
        m->inode->mapped = false;
    DL_DELETE(maps, m);
    free(m->at);
    free(m);
}

/* Bytes that differ were stored by the process. */
static void
pull(struct map *m)
{
    struct inode *inode = m->inode;
    char now[PAGE];
    for (size_t at = 0; at < m->size; at += PAGE) {
        size_t size = m->size - at < PAGE ? m->size - at : PAGE, from = 0, to = size;
        const struct page *page = bytes_page(&inode->seen, at / PAGE);
        if (page != NULL ? memcmp(page->at, m->at + at, size) == 0
                         : bytes_are_zero(m->at + at, size))
            continue;
        bytes_read(&inode->seen, at, now, size);
        while (from < to && now[from] == m->at[at + from])
            from++;
        while (to > from && now[to - 1] == m->at[at + to - 1])
            to--;
        if (from == to)
            continue;
        bytes_write(&inode->seen, at + from, text_of(m->at + at + from, to - from));
        soil(inode, at + from, at + to);
    }
}

void
world_pull(struct inode *inode)
{
    struct map *m = inode->mapped ? find_map(inode) : NULL;
    if (m != NULL && !m->world->dead)
        pull(m);
}

void
world_pull_all(struct world *w)
{
    struct map *m;
    DL_FOREACH (maps, m)
        if (m->inode != NULL && m->world == w && !w->dead)
            pull(m);
}

static void
end_maps(struct world *w)
{
    struct map *m;
    DL_FOREACH (maps, m)
        if (m->inode != NULL && m->world == w) {
            m->inode->mapped = false;
            m->inode = NULL;
        }
}

static void
end_maps_of(struct world *w, unsigned process)
{
    struct map *m;
    DL_FOREACH (maps, m) {
        if (m->inode == NULL || m->world != w)
            continue;
        m->users -= m->users_of[process];
        m->users_of[process] = 0;
        if (m->users > 0)
            continue;
        m->inode->mapped = false;
        m->inode = NULL;
    }
}

static void
push_to_map(struct inode *inode, size_t offset, struct text t)
{
    struct map *m = inode->mapped ? find_map(inode) : NULL;
    if (m != NULL && offset < m->size)
        memcpy(m->at + offset, t.at,
               t.length < m->size - offset ? t.length : m->size - offset);
}

void
world_write(struct inode *inode, size_t offset, struct text t)
{
    if (t.length == 0)
        return;
    world_pull(inode);
    bytes_write(&inode->seen, offset, t);
    soil(inode, offset, offset + t.length);
    push_to_map(inode, offset, t);
    inode->changed_ms = world()->now_ms;
    current->last = (struct last_write){inode, offset, offset + t.length};
}

/* --- Syncs ----------------------------------------------------------------------- */

/* The data of a sync, as they were when it began. */
struct capture {
    struct inode *inode;
    size_t size;
    struct captured_page {
        size_t index;
        struct page *page;
    } * pages;
    size_t page_count;
    struct captured_name {
        struct entry *entry;
        struct inode *inode;
    } * names;
    size_t name_count;
    struct last_write last;
};

static void
capture_pages(struct capture *c)
{
    struct inode *inode = c->inode;
    world_pull(inode);
    c->size = inode->seen.size;
    if (inode->dirty == 0)
        return;
    c->pages = memory_array(inode->dirty, sizeof(*c->pages));
    for (size_t i = 0; i < inode->dirt_count; i++)
        if (inode->dirt[i].to > 0)
            c->pages[c->page_count++] =
                (struct captured_page){i, page_share(bytes_page(&inode->seen, i))};
}

static void
capture_name(struct capture *c, struct entry *e)
{
    if ((c->name_count & 7) == 0)
        c->names = memory_resize(c->names, (c->name_count + 8) * sizeof(*c->names));
    c->names[c->name_count++] = (struct captured_name){e, e->seen};
}

struct capture *
world_capture(struct inode *inode, const char *directory, bool names)
{
    struct entry *e, *next;
    struct capture *c = memory_new(sizeof(*c));
    *c = (struct capture){.inode = inode, .last = current->last};
    if (inode->kind == DISK_FILE)
        capture_pages(c);
    if (directory != NULL) {
        size_t length = strlen(directory);
        DL_FOREACH2 (current->pending, e, pending_next)
            if (world_is_in(e, directory, length))
                capture_name(c, e);
    } else if (names && !inode->named && inode->links == 1 && inode->name != NULL) {
        capture_name(c, inode->name);
    } else if (names && !inode->named) {
        HASH_ITER (hh, current->entries, e, next)
            if (e->seen == inode)
                capture_name(c, e);
    }
    return c;
}

void
world_capture_free(struct capture **capture)
{
    struct capture *c = *capture;
    *capture = NULL;
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->page_count; i++)
        page_drop(c->pages[i].page);
    free(c->pages);
    free(c->names);
    free(c);
}

/* Not dirty any more, unless it was written meanwhile. */
static void
clean_captured(struct capture *c)
{
    for (size_t i = 0; i < c->page_count; i++)
        if (bytes_page(&c->inode->seen, c->pages[i].index) == c->pages[i].page)
            world_clean(c->inode, c->pages[i].index);
}

void
world_keep(struct capture **capture)
{
    struct capture *c = *capture;
    struct inode *inode = c->inode;
    if (c->size > inode->kept.size)
        inode->kept.size = c->size;
    for (size_t i = 0; i < c->page_count; i++)
        bytes_set_page(&inode->kept, c->pages[i].index, c->pages[i].page);
    clean_captured(c);
    for (size_t i = 0; i < c->name_count; i++) {
        c->names[i].entry->kept = c->names[i].inode;
        world_file(current, c->names[i].entry);
        if (c->names[i].inode != NULL)
            c->names[i].inode->named = true;
    }
    struct last_write *last = &current->last;
    if (inode->kind == DISK_FILE && last->inode == inode &&
        memcmp(last, &c->last, sizeof(*last)) == 0)
        *last = (struct last_write){0};
    world_capture_free(capture);
}

void
world_lose(struct capture **capture)
{
    clean_captured(*capture);
    world_capture_free(capture);
}

/* --- Names ----------------------------------------------------------------------- */

static struct entry *
find_entry(const char *path)
{
    struct entry *e = NULL;
    HASH_FIND_STR(world()->entries, path, e);
    return e;
}

struct inode *
world_inode(const char *path)
{
    struct entry *e = find_entry(path);
    return e != NULL ? e->seen : NULL;
}

static uint64_t
hash_of(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    return hash;
}

struct entry *
world_entry(const char *path)
{
    struct entry *e = find_entry(path);
    if (e != NULL)
        return e;
    size_t length = strlen(path);
    const char *slash = strrchr(path, '/');
    e = memory_new(sizeof(*e) + length + 1);
    memcpy(e->path, path, length + 1);
    e->hash = hash_of(path);
    e->parent_length = slash != NULL ? (size_t)(slash - path) : 0;
    e->number = ++current->names;
    HASH_ADD_KEYPTR(hh, current->entries, e->path, length, e);
    return e;
}

static struct directory *
find_directory(struct world *w, const char *path, size_t length)
{
    struct directory *d;
    HASH_FIND(hh, w->directories, path, length, d);
    return d;
}

static struct directory *
directory_of(struct world *w, struct entry *e)
{
    struct directory *d = find_directory(w, e->path, e->parent_length);
    if (d != NULL)
        return d;
    d = memory_new(sizeof(*d) + e->parent_length + 1);
    memcpy(d->path, e->path, e->parent_length);
    HASH_ADD_KEYPTR(hh, w->directories, d->path, e->parent_length, d);
    return d;
}

/* One that comes back has its old place. */
static void
list_entry(struct directory *d, struct entry *e)
{
    struct entry *before = d->list != NULL ? d->list->list_prev : NULL;
    while (before != NULL && before->number > e->number)
        before = before != d->list ? before->list_prev : NULL;
    DL_APPEND_ELEM2(d->list, before, e, list_prev, list_next);
}

void
world_file(struct world *w, struct entry *e)
{
    bool is_listed = e->seen != NULL || e->kept != NULL,
         is_pending = e->seen != e->kept;
    if (e->in == NULL)
        e->in = directory_of(w, e);
    if (is_listed && !e->is_listed)
        list_entry(e->in, e);
    else if (!is_listed && e->is_listed)
        DL_DELETE2(e->in->list, e, list_prev, list_next);
    if (is_pending && !e->is_pending)
        DL_APPEND2(w->pending, e, pending_prev, pending_next);
    else if (!is_pending && e->is_pending)
        DL_DELETE2(w->pending, e, pending_prev, pending_next);
    e->is_listed = is_listed;
    e->is_pending = is_pending;
}

struct entry *
world_list(const char *directory)
{
    struct directory *d = find_directory(world(), directory, strlen(directory));
    return d != NULL ? d->list : NULL;
}

bool
world_is_in(const struct entry *e, const char *directory, size_t length)
{
    return e->parent_length == length && memcmp(e->path, directory, length) == 0;
}

bool
world_has_names_in(const char *directory)
{
    struct entry *e = world_list(directory);
    while (e != NULL && e->seen == NULL)
        e = e->list_next;
    return e != NULL;
}

int
world_check_parent(const char *path)
{
    char parent[PATH_LIMIT];
    snprintf(parent, sizeof(parent), "%s", path);
    parent[strrchr(path, '/') != NULL ? strrchr(path, '/') - path : 0] = '\0';
    struct inode *in = world_inode(parent);
    bool good = parent[0] == '\0' || (in != NULL && in->kind == DISK_DIRECTORY);
    return good ? 0 : in == NULL ? -ENOENT : -ENOTDIR;
}

uint64_t
world_group(void)
{
    return ++world()->groups;
}

/* A directory's time is another one after each change. */
static void
world_touch_parent(const struct entry *e)
{
    char parent[PATH_LIMIT];
    memcpy(parent, e->path, e->parent_length);
    parent[e->parent_length] = '\0';
    struct inode *inode = world_inode(parent);
    if (inode != NULL)
        inode->changed_ms = inode->changed_ms < world()->now_ms ? world()->now_ms
                                                                : inode->changed_ms + 1;
}

void
world_see(struct entry *e, struct inode *inode, uint64_t group)
{
    if (e->seen != NULL) {
        e->seen->links--;
        e->seen->name = NULL;
    }
    e->seen = inode;
    e->group = group;
    if (inode != NULL) {
        inode->links++;
        inode->name = e;
    }
    world_file(world(), e);
    world_touch_parent(e);
}

static struct inode *
inode_new(struct world *w)
{
    struct inode *inode = memory_new(sizeof(*inode));
    DL_APPEND(w->inodes, inode);
    return inode;
}

struct inode *
world_inode_new(enum disk_kind kind, unsigned mode)
{
    struct inode *inode = inode_new(world());
    inode->kind = kind;
    inode->mode = mode;
    inode->owner = current->user;
    inode->changed_ms = current->now_ms;
    return inode;
}

struct inode *
world_inode_copy(struct world *into, const struct inode *from)
{
    struct inode *inode = inode_new(into), *prev = inode->prev, *next = inode->next;
    *inode = *from;
    inode->prev = prev;
    inode->next = next;
    inode->seen = inode->kept = (struct bytes){0};
    inode->dirt = NULL;
    inode->flat = NULL;
    inode->name = NULL;
    inode->mapped = false;
    bytes_copy(&inode->seen, &from->seen);
    bytes_copy(&inode->kept, &from->kept);
    if (from->dirty > 0) {
        inode->dirt = memory_array(from->dirt_count, sizeof(*inode->dirt));
        memcpy(inode->dirt, from->dirt, from->dirt_count * sizeof(*inode->dirt));
    } else {
        inode->dirt_count = 0;
    }
    return inode;
}

/* --- The world ------------------------------------------------------------------- */

static void
inode_free(struct inode *inode)
{
    bytes_free(&inode->seen);
    bytes_free(&inode->kept);
    free(inode->dirt);
    free(inode->flat);
    free(inode);
}

static void
collect(struct world *w)
{
    struct entry *e, *next_entry;
    struct inode *inode, *next;
    DL_FOREACH (w->inodes, inode) {
        inode->marked = false;
        inode->links = 0;
        inode->name = NULL;
    }
    HASH_ITER (hh, w->entries, e, next_entry) {
        if (e->seen != NULL) {
            e->seen->marked = true;
            e->seen->links++;
            e->seen->name = e;
        }
        world_file(w, e);
        if (e->kept != NULL)
            e->kept->marked = true;
        if (e->seen == NULL && e->kept == NULL) {
            HASH_DEL(w->entries, e);
            free(e);
        }
    }
    DL_FOREACH_SAFE (w->inodes, inode, next)
        if (!inode->marked) {
            if (w->last.inode == inode)
                w->last = (struct last_write){0};
            DL_DELETE(w->inodes, inode);
            inode_free(inode);
        }
}

static void
free_handles(struct world *w)
{
    for (size_t i = 0; i < w->handle_count; i++)
        free(w->handles[i].path);
    free(w->handles);
    w->handles = NULL;
    w->handle_count = 0;
}

uint64_t
world_next_boot(void)
{
    return ++boots;
}

void
world_begin_again(struct world *w)
{
    free_handles(w);
    end_maps(w);
    w->dead = false;
    w->boot = world_next_boot();
    w->calls = w->fail_at = w->die_at = 0;
    w->failed = false;
    collect(w);
}

struct world *
world_new(void)
{
    struct world *w = memory_new(sizeof(*w));
    w->now_ms = SIM_WALL_START_MS;
    w->space = (struct disk_space){INT64_C(1) << 40, 1000000, INT64_C(1) << 40, 0};
    w->nature = (struct disk_traits){.type = "ext4", .sync_us = 500};
    w->boot = world_next_boot();
    return w;
}

struct world *
world(void)
{
    if (current == NULL)
        current = world_new();
    return current;
}

struct world *
world_exchange(struct world *other)
{
    struct world *before = world();
    current = other;
    return before;
}

void
world_free(struct world **world)
{
    struct world *w = *world;
    struct entry *e, *next_entry;
    struct inode *inode, *next;
    *world = NULL;
    if (w == NULL)
        return;
    free_handles(w);
    end_maps(w);
    struct directory *d, *next_directory;
    HASH_ITER (hh, w->entries, e, next_entry) {
        HASH_DEL(w->entries, e);
        free(e);
    }
    HASH_ITER (hh, w->directories, d, next_directory) {
        HASH_DEL(w->directories, d);
        free(d);
    }
    DL_FOREACH_SAFE (w->inodes, inode, next)
        inode_free(inode);
    free(w);
}

/* --- t/sim/sim_disk.h ------------------------------------------------------------ */

void
sim_disk_reset(void)
{
    world_free(&current);
    (void)world();
}

uint64_t
sim_disk_calls(void)
{
    return world()->calls;
}

void
sim_disk_count_anew(void)
{
    struct world *w = world();
    w->calls = w->fail_at = w->die_at = 0;
    w->failed = false;
}

void
sim_disk_fail_at(uint64_t call, int error)
{
    world()->fail_at = call;
    world()->fail_with = error;
}

void
sim_disk_fail_calls(int error)
{
    world()->failing = error;
}

void
sim_disk_fail_syncs(unsigned count, int error)
{
    world()->syncs_failing = count;
    world()->syncs_fail_with = error;
}

void
sim_disk_die_at(uint64_t call)
{
    world()->die_at = call;
}

bool
sim_disk_is_dead(void)
{
    return world()->dead;
}

bool
sim_disk_has_failed(void)
{
    return world()->failed;
}

void
sim_disk_restart(void)
{
    world_pull_all(world());
    world_begin_again(world());
}

void
sim_disk_enter(unsigned process)
{
    assert(process < PROCESSES_MAX);
    world()->process = process;
}

void
sim_disk_end_process(unsigned process)
{
    struct world *w = world();
    bool others = false;
    for (size_t i = 0; i < w->handle_count; i++) {
        struct handle *h = &w->handles[i];
        others = others || (h->open && h->process != process);
    }
    if (!others) {
        sim_disk_restart();
        return;
    }
    world_pull_all(w);
    for (size_t i = 0; i < w->handle_count; i++) {
        struct handle *h = &w->handles[i];
        if (!h->open || h->process != process)
            continue;
        free(h->path);
        *h = (struct handle){0};
    }
    end_maps_of(w, process);
    w->dead = w->failed = false;
    w->fail_at = w->die_at = 0;
}

void
sim_disk_power_cut(void)
{
    struct entry *e, *next;
    struct inode *inode;
    struct world *w = world();
    HASH_ITER (hh, w->entries, e, next)
        e->seen = e->kept;
    DL_FOREACH (w->inodes, inode) {
        bytes_resize(&inode->kept, inode->kept.size);
        bytes_copy(&inode->seen, &inode->kept);
        for (size_t i = 0; inode->dirty > 0; i++)
            world_clean(inode, i);
        inode->pulled = 0;
    }
    w->last = (struct last_write){0};
    world_begin_again(w);
}

void
sim_disk_set_time(int64_t now_ms)
{
    world()->now_ms = now_ms;
}

void
sim_disk_set_user(unsigned user)
{
    world()->user = user;
}

void
sim_disk_set_space(int64_t bytes_free, int64_t inodes_free)
{
    world()->space =
        (struct disk_space){bytes_free, inodes_free, bytes_free, inodes_free};
}

void
sim_disk_set_nature(const struct disk_traits *nature)
{
    world()->nature = *nature;
}

void
sim_disk_set_syncing(enum disk_syncing way, int64_t sync_ms)
{
    world()->sync_blocks = way == DISK_SYNC_BLOCKS;
    world()->sync_ms = sync_ms;
}

void
sim_disk_set_sync_spread(int64_t spread_ms, uint64_t seed)
{
    world()->sync_spread_ms = spread_ms;
    world()->sync_chance = seed;
}

void
sim_disk_set_cold(bool cold)
{
    world()->cold = cold;
}

size_t
sim_disk_open_files(void)
{
    size_t count = 0;
    for (size_t i = 0; i < world()->handle_count; i++)
        count +=
            world()->handles[i].open && world()->handles[i].process == world()->process;
    return count;
}

const char *
sim_disk_open_file(void)
{
    struct entry *e, *next;
    for (size_t i = 0; i < world()->handle_count; i++) {
        const struct handle *h = &world()->handles[i];
        if (h->process != world()->process)
            continue;
        if (h->open && h->path != NULL)
            return h->path;
        HASH_ITER (hh, world()->entries, e, next)
            if (h->open && e->seen == h->inode)
                return e->path;
    }
    return "";
}

size_t
sim_disk_count(const char *under)
{
    struct entry *e, *next;
    size_t count = 0, length = strlen(under);
    HASH_ITER (hh, world()->entries, e, next)
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
    world_pull(inode);
    if (inode->seen.size == 0)
        return TEXT("");
    inode->flat = memory_resize(inode->flat, inode->seen.size);
    bytes_read(&inode->seen, 0, inode->flat, inode->seen.size);
    return text_of(inode->flat, inode->seen.size);
}

bool
sim_disk_damage(const char *path, size_t offset)
{
    struct inode *inode = world_inode(path);
    char byte;
    if (inode == NULL || offset >= inode->seen.size)
        return false;
    world_pull(inode);
    bytes_read(&inode->seen, offset, &byte, 1);
    byte = (char)~byte;
    bytes_write(&inode->seen, offset, text_of(&byte, 1));
    push_to_map(inode, offset, text_of(&byte, 1));
    if (offset < inode->kept.size)
        bytes_write(&inode->kept, offset, text_of(&byte, 1));
    return true;
}

bool
sim_disk_wear(const char *path, size_t offset)
{
    struct inode *inode = world_inode(path);
    if (inode == NULL || offset >= inode->seen.size)
        return false;
    inode->worn = offset / PAGE + 1;
    return true;
}

int
sim_disk_fifo_reader(const char *path)
{
    struct inode *inode = world_inode(path);
    struct world *w = world();
    for (size_t i = 0; i < w->handle_count && inode != NULL; i++)
        if (w->handles[i].open && w->handles[i].inode == inode)
            return FIRST_HANDLE + (int)i;
    return -1;
}

size_t
sim_disk_fifo_pulled(const char *path)
{
    struct inode *inode = world_inode(path);
    return inode != NULL ? inode->pulled : 0;
}

/* There are no links to follow. */
int
disk_look(const char *path, struct disk_info *info)
{
    return disk_inspect(NULL, path, info);
}

/* Nobody waits here. */
int
disk_read_regular(const char *path, size_t limit, char **content, size_t *length)
{
    return disk_read_whole(path, limit, content, length);
}

/* Nothing takes time here. */
const struct disk_pace *
disk_pace(const struct disk *disk)
{
    static const struct disk_pace none;
    (void)disk;
    return &none;
}
