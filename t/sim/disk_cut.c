/* Power cuts that leave a part of what was pending. */
#include "t/sim/disk_world.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

enum item_kind { ITEM_PAGE, ITEM_SIZE, ITEM_NAMES };
struct item {
    enum item_kind kind;
    struct inode *inode;
    size_t page;
    uint64_t group;
};
struct items {
    struct item *rows;
    size_t count, capacity;
};

static void
add(struct items *list, struct item item)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity > 0 ? list->capacity * 2 : 32;
        list->rows = memory_resize(list->rows, list->capacity * sizeof(*list->rows));
    }
    list->rows[list->count++] = item;
}

/* --- Pending changes ------------------------------------------------------------- */

static bool
differs(const struct inode *inode, size_t page)
{
    struct page *seen = bytes_page(&inode->seen, page);
    struct page *kept = bytes_page(&inode->kept, page);
    return seen != kept && page_hash(seen) != page_hash(kept);
}

static void
add_content(struct items *list, struct inode *inode)
{
    for (size_t i = 0; i < inode->dirt_count && inode->dirty > 0; i++)
        if (inode->dirt[i].to > 0 && differs(inode, i))
            add(list, (struct item){.kind = ITEM_PAGE, .inode = inode, .page = i});
    if (inode->seen.size != inode->kept.size)
        add(list, (struct item){.kind = ITEM_SIZE, .inode = inode});
}

static void
add_names(struct items *list)
{
    struct entry *e, *next;
    HASH_ITER (hh, world()->entries, e, next) {
        bool known = e->seen == e->kept;
        for (size_t i = list->count; i-- > 0 && !known;)
            known = list->rows[i].kind == ITEM_NAMES && list->rows[i].group == e->group;
        if (!known)
            add(list, (struct item){.kind = ITEM_NAMES, .group = e->group});
    }
}

static struct items
list_items(void)
{
    struct items list = {0};
    struct inode *inode;
    struct entry *e, *next;
    world_pull_all(world());
    DL_FOREACH (world()->inodes, inode)
        inode->marked = false;
    HASH_ITER (hh, world()->entries, e, next) {
        if (e->seen != NULL)
            e->seen->marked = true;
        if (e->kept != NULL)
            e->kept->marked = true;
    }
    /* A file that no version knows cannot be seen. */
    DL_FOREACH (world()->inodes, inode)
        if (inode->marked)
            add_content(&list, inode);
    add_names(&list);
    return list;
}

static void
survive(const struct item *item)
{
    struct entry *e, *next;
    switch (item->kind) {
    case ITEM_PAGE:
        bytes_set_page(&item->inode->kept, item->page,
                       bytes_page(&item->inode->seen, item->page));
        break;
    case ITEM_SIZE:
        item->inode->kept.size = item->inode->seen.size;
        break;
    case ITEM_NAMES:
        DL_FOREACH_SAFE2 (world()->pending, e, next, pending_next)
            if (e->group == item->group) {
                e->kept = e->seen;
                world_file(world(), e);
            }
        break;
    }
}

/* --- The last write -------------------------------------------------------------- */

/* Sector boundaries inside it. */
static size_t
count_tears(void)
{
    const struct last_write *last = &world()->last;
    if (last->inode == NULL)
        return 0;
    size_t first = last->from / SECTOR + 1, end = (last->to - 1) / SECTOR;
    return end >= first ? end - first + 1 : 0;
}

static size_t
tear_at(size_t item)
{
    return (world()->last.from / SECTOR + 1 + item) * SECTOR;
}

static void
copy_range(struct bytes *to, const struct bytes *from, size_t at, size_t end)
{
    char *piece = memory_new(end - at + 1);
    size_t size = to->size;
    bytes_read(from, at, piece, end - at);
    bytes_write(to, at, text_of(piece, end - at));
    to->size = size;
    free(piece);
}

/* The end of the last write never happened. */
static void
tear_off(struct bytes *before, size_t tear)
{
    const struct last_write *last = &world()->last;
    struct bytes *kept = &last->inode->kept;
    copy_range(kept, before, tear, last->to);
    if (last->to == last->inode->seen.size)
        kept->size = tear > before->size ? tear : before->size;
}

/* The beginning of the last write alone happened. */
static void
tear_alone(size_t tear)
{
    const struct last_write *last = &world()->last;
    struct bytes *kept = &last->inode->kept;
    copy_range(kept, &last->inode->seen, last->from, tear);
    if (tear > kept->size)
        kept->size = tear;
}

/* --- Garbage --------------------------------------------------------------------- */

/* A sector may hold its old or its new bytes; one written over durable bytes is written
 * whole or not at all. */
static bool
may_be_garbage(const struct item *item)
{
    if (item->kind != ITEM_PAGE)
        return false;
    const struct dirt *d = &item->inode->dirt[item->page];
    bool durable = item->page * PAGE + d->from < item->inode->kept.size;
    return !durable || (!d->scattered && d->from / SECTOR != (d->to - 1) / SECTOR);
}

static uint64_t
random_next(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

static void
make_garbage(const struct item *item)
{
    char piece[PAGE];
    const struct dirt *d = &item->inode->dirt[item->page];
    size_t size = item->inode->kept.size;
    uint64_t state = item->page + d->to;
    for (size_t i = 0; i < PAGE; i++)
        piece[i] = (char)random_next(&state);
    bytes_write(&item->inode->kept, item->page * PAGE + d->from,
                text_of(piece, (size_t)(d->to - d->from)));
    item->inode->kept.size = size;
}

static const struct item *
garbage_item(const struct items *list, size_t which)
{
    for (size_t i = 0; i < list->count; i++)
        if (may_be_garbage(&list->rows[i]) && which-- == 0)
            return &list->rows[i];
    return NULL;
}

/* --- The cut --------------------------------------------------------------------- */

const char *
sim_cut_name(enum sim_cut_kind kind)
{
    static const char *const names[SIM_CUT_KINDS] = {
        [SIM_CUT_NOTHING] = "nothing survives",
        [SIM_CUT_ALL] = "all survives",
        [SIM_CUT_ALONE] = "one survives",
        [SIM_CUT_ALL_BUT] = "all but one survive",
        [SIM_CUT_TORN] = "torn",
        [SIM_CUT_TORN_ALONE] = "torn, alone",
        [SIM_CUT_GARBAGE] = "garbage",
        [SIM_CUT_RANDOM] = "some survive"};
    return names[kind];
}

size_t
sim_disk_cuts(enum sim_cut_kind kind)
{
    struct items list = list_items();
    size_t count = 1;
    switch (kind) {
    case SIM_CUT_NOTHING:
    case SIM_CUT_ALL:
    case SIM_CUT_KINDS:
        break;
    case SIM_CUT_ALONE:
    case SIM_CUT_ALL_BUT:
        count = list.count;
        break;
    case SIM_CUT_TORN:
    case SIM_CUT_TORN_ALONE:
        count = count_tears();
        break;
    case SIM_CUT_GARBAGE:
        for (count = 0; garbage_item(&list, count) != NULL;)
            count++;
        break;
    case SIM_CUT_RANDOM:
        count = list.count > 0 ? SIZE_MAX : 0;
        break;
    }
    free(list.rows);
    return count;
}

static bool
does_survive(struct sim_cut cut, size_t item, uint64_t *state)
{
    switch (cut.kind) {
    case SIM_CUT_ALONE:
        return item == cut.item;
    case SIM_CUT_ALL_BUT:
        return item != cut.item;
    case SIM_CUT_ALL:
    case SIM_CUT_TORN:
    case SIM_CUT_GARBAGE:
        return true;
    case SIM_CUT_RANDOM:
        return (random_next(state) & 1) != 0;
    case SIM_CUT_NOTHING:
    case SIM_CUT_TORN_ALONE:
    case SIM_CUT_KINDS:
        break;
    }
    return false;
}

void
sim_disk_cut(struct sim_cut cut)
{
    struct items list = list_items();
    struct inode *torn = world()->last.inode;
    struct bytes before = {0};
    uint64_t state = cut.item;
    const struct item *garbage =
        cut.kind == SIM_CUT_GARBAGE ? garbage_item(&list, cut.item) : NULL;
    assert(cut.kind == SIM_CUT_RANDOM || cut.item < sim_disk_cuts(cut.kind));
    if (cut.kind == SIM_CUT_TORN)
        bytes_copy(&before, &torn->kept);
    for (size_t i = 0; i < list.count; i++)
        if (does_survive(cut, i, &state))
            survive(&list.rows[i]);
    if (cut.kind == SIM_CUT_TORN)
        tear_off(&before, tear_at(cut.item));
    if (cut.kind == SIM_CUT_TORN_ALONE)
        tear_alone(tear_at(cut.item));
    if (garbage != NULL)
        make_garbage(garbage);
    bytes_free(&before);
    free(list.rows);
    sim_disk_power_cut();
}

void
sim_disk_settle(void)
{
    struct inode *inode;
    struct entry *e, *next;
    struct world *w = world();
    world_pull_all(w);
    if (w->settled == w->changes)
        return;
    w->settled = w->changes;
    DL_FOREACH_SAFE2 (w->pending, e, next, pending_next) {
        e->kept = e->seen;
        world_file(w, e);
    }
    DL_FOREACH (world()->inodes, inode) {
        for (size_t i = 0; i < inode->dirt_count && inode->dirty > 0; i++) {
            if (inode->dirt[i].to > 0)
                bytes_set_page(&inode->kept, i, bytes_page(&inode->seen, i));
            world_clean(inode, i);
        }
        inode->kept.size = inode->seen.size;
    }
    w->last.inode = NULL;
}
