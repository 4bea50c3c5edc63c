/* Copies of the world: what if the power failed now, and then it went on. */
#include "t/sim/disk_world.h"

#include "base/memory.h"

#include <utlist.h>

static struct inode *
copy_of(const struct inode *inode)
{
    return inode != NULL ? inode->copy : NULL;
}

static void
copy_entries(struct world *copy, const struct world *from)
{
    struct entry *e, *next;
    HASH_ITER (hh, from->entries, e, next) {
        size_t length = e->hh.keylen;
        struct entry *own = memory_resize(NULL, sizeof(*own) + length + 1);
        memcpy(own, e, sizeof(*own) + length + 1);
        own->seen = copy_of(e->seen);
        own->kept = copy_of(e->kept);
        memset(&own->hh, 0, sizeof(own->hh));
        own->is_listed = own->is_pending = false;
        own->in = NULL;
        HASH_ADD_KEYPTR_BYHASHVALUE(hh, copy->entries, own->path, length, e->hh.hashv,
                                    own);
        world_file(copy, own);
    }
}

struct world *
sim_disk_copy(void)
{
    struct world *from = world(), *copy = memory_new(sizeof(*copy));
    struct inode *inode;
    world_pull_all(from);
    copy->now_ms = from->now_ms;
    copy->user = from->user;
    copy->space = from->space;
    copy->nature = from->nature;
    copy->sync_blocks = from->sync_blocks;
    copy->sync_ms = from->sync_ms;
    copy->groups = from->groups;
    copy->names = from->names;
    copy->boot = world_next_boot();
    DL_FOREACH (from->inodes, inode)
        inode->copy = world_inode_copy(copy, inode);
    copy_entries(copy, from);
    copy->last = from->last;
    copy->last.inode = copy_of(from->last.inode);
    return copy;
}

struct world *
sim_disk_exchange(struct world *other)
{
    return world_exchange(other);
}

void
sim_disk_free(struct world **w)
{
    world_free(w);
}

void
sim_disk_copy_plainly(void)
{
    struct entry *e, *next;
    struct world *w = world();
    world_pull_all(w);
    HASH_ITER (hh, w->entries, e, next) {
        if (e->seen == NULL || e->seen->kind != DISK_FILE)
            continue;
        struct inode *own = world_inode_copy(w, e->seen);
        bytes_copy(&own->kept, &own->seen);
        for (size_t i = 0; own->dirty > 0; i++)
            world_clean(own, i);
        own->named = true;
        own->links = 0;
        own->changed_ms = w->now_ms;
        world_see(e, own, world_group());
        e->kept = own;
        world_file(w, e);
    }
    w->last = (struct last_write){0};
    world_begin_again(w);
}

static uint64_t
mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t
content_digest(const struct inode *inode)
{
    const struct bytes *b = &inode->seen;
    uint64_t sum = b->size * 31 + (uint64_t)inode->kind;
    for (size_t i = 0; i < b->page_count; i++) {
        uint64_t hash = page_hash(b->pages[i]);
        if (hash != 0)
            sum += mixed(hash + i * 0x9e37);
    }
    return mixed(sum + inode->links * UINT64_C(0x51ed270b));
}

uint64_t
sim_disk_digest(void)
{
    struct entry *e, *next;
    uint64_t sum = 0;
    world_pull_all(world());
    HASH_ITER (hh, world()->entries, e, next)
        if (e->seen != NULL)
            sum += mixed(e->hash + content_digest(e->seen));
    return sum;
}

void
sim_disk_on_change(void (*changed)(void *context), void *context)
{
    world()->changed = changed;
    world()->context = context;
}
