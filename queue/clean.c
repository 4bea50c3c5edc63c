/* Sweeps the spool for what the dead left. */
#include "queue/clean.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 60 * 60 * 1000, PER_TURN = 100, PAUSE_MS = 10 };
enum { PATH_MAX_HERE = SPOOL_PATH_MAX + 256, PART_LENGTH = 9 };

struct clean_row {
    struct id id;
    unsigned rooms;
};

static bool
is_old(const struct disk_info *info, int64_t now_ms)
{
    return now_ms - info->changed_ms > CLEAN_AGE_MS;
}

/* Absent counts as old. */
static bool
is_old_in(struct spool *s, enum room room, struct id id, int64_t now_ms)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(room, id, path);
    int result = disk_inspect(s->disk, path, &info);
    return result == -ENOENT || (result == 0 && is_old(&info, now_ms));
}

void
clean_leftover(struct spool *s, struct id id, int64_t now_ms)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    if (!is_old_in(s, ROOM_MESS, id, now_ms) || !is_old_in(s, ROOM_INTD, id, now_ms)) {
        log_say(s->log, LOG_LEVEL_INFO, "queue", name,
                "unfinished in mess/: left for its injector");
        return;
    }
    log_say(s->log, LOG_LEVEL_WARNING, "queue", name,
            "unfinished in mess/ for 36 hours: removed");
    (void)spool_remove(s, ROOM_INTD, id);
    (void)spool_remove(s, ROOM_MESS, id);
}

/* --- pid/ ------------------------------------------------------------------------ */

/* A daemon's (draft.h), of a part that we hold the lock on some of: it is dead. */
static bool
is_dead_draft(const struct clean *c, const char *name)
{
    struct text part = text_before(text_from(name), PART_LENGTH);
    uint64_t first, last;
    return strlen(name) > PART_LENGTH && name[PART_LENGTH] == '.' &&
           text_number(text_before(part, 4), ID_SLICES_MAX - 1, &first) &&
           text_number(text_after(part, 5), ID_SLICES_MAX - 1, &last) &&
           name[4] == '-' && first <= last &&
           slices_overlap(c->slices, (unsigned)first, (unsigned)last);
}

static void
remove_draft(struct clean *c, const char *name, const char *why)
{
    struct spool *s = c->spool;
    char path[PATH_MAX_HERE];
    snprintf(path, sizeof(path), "%s/%s", spool_room(ROOM_PID), name);
    int result = disk_unlink(s->disk, path);
    if (result < 0)
        (void)spool_trouble(s, result, NULL, "remove an old draft");
    else
        log_say(s->log, LOG_LEVEL_WARNING, "queue", NULL, "draft %s %s: removed", path,
                why);
}

static bool
sweep_dead_draft(void *context, const char *name)
{
    struct clean *c = context;
    if (is_dead_draft(c, name))
        remove_draft(c, name, "of a daemon that died");
    return true;
}

static bool
sweep_old_draft(void *context, const char *name)
{
    struct clean *c = context;
    char path[PATH_MAX_HERE];
    struct disk_info info;
    snprintf(path, sizeof(path), "%s/%s", spool_room(ROOM_PID), name);
    if (disk_inspect(c->spool->disk, path, &info) == 0 &&
        is_old(&info, loop_now_ms(c->loop)))
        remove_draft(c, name, "unfinished for 36 hours");
    return true;
}

static void
sweep_pid(struct clean *c, bool (*each)(void *context, const char *name))
{
    int result = disk_list(c->spool->disk, spool_room(ROOM_PID), each, c);
    if (result < 0)
        (void)spool_trouble(c->spool, result, NULL, "list pid/");
}

/* --- Lists ------------------------------------------------------------------------ */

static int
compare_rows(const void *a, const void *b)
{
    const struct clean_row *left = a, *right = b;
    return id_compare(left->id, right->id);
}

static void
add_row(struct clean *c, struct id id)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity > 0 ? c->capacity * 2 : 64;
        c->rows = memory_resize(c->rows, c->capacity * sizeof(*c->rows));
    }
    c->rows[c->count++] = (struct clean_row){id, ROOM_BIT(ROOM_MESS)};
}

static void
add_orphan(struct clean *c, struct id id)
{
    if (c->orphan_count == c->orphan_capacity) {
        c->orphan_capacity = c->orphan_capacity > 0 ? c->orphan_capacity * 2 : 64;
        c->orphans =
            memory_resize(c->orphans, c->orphan_capacity * sizeof(*c->orphans));
    }
    c->orphans[c->orphan_count++] = id;
}

struct listing {
    struct clean *clean;
    enum room room;
    size_t strange;
};

static bool
note_name(void *context, const char *name)
{
    struct listing *l = context;
    struct clean *c = l->clean;
    struct clean_row wanted = {0}, *row = NULL;
    if (!id_parse(text_from(name), &wanted.id)) {
        l->strange++;
    } else if (!slices_have(c->slices, wanted.id)) {
        return true;
    } else if (l->room == ROOM_MESS) {
        add_row(c, wanted.id);
    } else {
        if (c->count > 0)
            row = bsearch(&wanted, c->rows, c->count, sizeof(wanted), compare_rows);
        if (row != NULL)
            row->rooms |= ROOM_BIT(l->room);
        else
            add_orphan(c, wanted.id);
    }
    return true;
}

/* False: the disk did not tell; the next hour is near. */
static bool
list_room(struct clean *c, enum room room)
{
    struct listing l = {.clean = c, .room = room};
    int result = disk_list(c->spool->disk, spool_room(room), note_name, &l);
    if (result < 0) {
        (void)spool_trouble(c->spool, result, NULL, "list a directory");
        return false;
    }
    spool_tell_strange(c->spool, room, l.strange);
    if (room == ROOM_MESS && c->count > 0)
        qsort(c->rows, c->count, sizeof(*c->rows), compare_rows);
    return true;
}

/* --- Judgement -------------------------------------------------------------------- */

/* A listing is old when its turn comes: the files are asked again. */
static void
look_at_orphan(struct clean *c, struct id id)
{
    unsigned rooms;
    if (young_find(c->young, id) == NULL && spool_rooms(c->spool, id, &rooms) == 0 &&
        rooms != 0 && (rooms & ROOM_BIT(ROOM_MESS)) == 0)
        c->orphan(c->context, id);
}

/* The name tells the age without asking the disk; the ctime decides below. */
static void
look_at_row(struct clean *c, const struct clean_row *row)
{
    unsigned rooms, others = ~(ROOM_BIT(ROOM_MESS) | ROOM_BIT(ROOM_INTD));
    int64_t now_ms = loop_now_ms(c->loop);
    if ((row->rooms & others) == 0 &&
        (int64_t)row->id.time_ms <= now_ms - CLEAN_AGE_MS &&
        young_find(c->young, row->id) == NULL &&
        spool_rooms(c->spool, row->id, &rooms) == 0 && rooms != 0 &&
        (rooms & others) == 0)
        clean_leftover(c->spool, row->id, now_ms);
}

static void
look_at_some(struct clean *c)
{
    for (unsigned i = 0; i < PER_TURN && c->orphan_next < c->orphan_count; i++)
        look_at_orphan(c, c->orphans[c->orphan_next++]);
    for (unsigned i = 0; i < PER_TURN && c->next < c->count; i++)
        look_at_row(c, &c->rows[c->next++]);
}

/* --- The sweep -------------------------------------------------------------------- */

static void
end_sweep(struct clean *c)
{
    free(c->rows);
    free(c->orphans);
    c->rows = NULL;
    c->orphans = NULL;
    c->count = c->capacity = c->next = 0;
    c->orphan_count = c->orphan_capacity = c->orphan_next = 0;
    c->sweeping = false;
}

/* One room, or some files: so that nobody waits for it. */
static void
bite(void *context)
{
    struct clean *c = context;
    bool good = !*c->careful;
    if (good && c->room == ROOM_MESS) {
        good = list_room(c, ROOM_MESS);
        c->room = ROOM_QUEUED;
    } else if (good && c->room < ROOM_MESS) {
        good = list_room(c, (enum room)c->room);
        c->room = c->room + 1 == ROOM_MESS ? ROOMS : c->room + 1;
    } else if (good) {
        look_at_some(c);
    }
    bool more =
        c->room != ROOMS || c->next < c->count || c->orphan_next < c->orphan_count;
    if (good && more)
        loop_timer_start(c->loop, &c->more, PAUSE_MS, bite, c);
    else
        end_sweep(c);
}

static void
sweep_all(void *context)
{
    struct clean *c = context;
    loop_timer_start(c->loop, &c->hourly, EVERY_MS, sweep_all, c);
    sweep_pid(c, sweep_old_draft);
    if (c->sweeping)
        return; /* the last one is still at work */
    c->sweeping = true;
    c->room = ROOM_MESS;
    bite(c);
}

static void
sweep_first(void *context)
{
    struct clean *c = context;
    sweep_pid(c, sweep_old_draft);
    loop_timer_start(c->loop, &c->hourly, EVERY_MS, sweep_all, c);
}

/* --- Start and stop -------------------------------------------------------------- */

void
clean_start(struct clean *c)
{
    assert(c->spool != NULL && c->loop != NULL && c->orphan != NULL);
    sweep_pid(c, sweep_dead_draft);
    loop_timer_start(c->loop, &c->hourly, 0, sweep_first, c);
}

void
clean_stop(struct clean *c)
{
    loop_timer_stop(c->loop, &c->hourly);
    loop_timer_stop(c->loop, &c->more);
    end_sweep(c);
}
