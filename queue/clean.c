/* Sweeps pid/ and mess/ for what dead injectors left. */
#include "queue/clean.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { EVERY_MS = 60 * 60 * 1000, PER_TURN = 500, PAUSE_MS = 10 };

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

static bool
sweep_pid_file(void *context, const char *name)
{
    struct clean *c = context;
    struct spool *s = c->spool;
    char path[SPOOL_PATH_MAX + 256];
    struct disk_info info;
    snprintf(path, sizeof(path), "%s/%s", spool_room(ROOM_PID), name);
    if (disk_inspect(s->disk, path, &info) < 0 || !is_old(&info, loop_now_ms(c->loop)))
        return true;
    int result = disk_unlink(s->disk, path);
    if (result < 0)
        (void)spool_trouble(s, result, NULL, "remove an old draft");
    else
        log_say(s->log, LOG_LEVEL_WARNING, "queue", NULL,
                "draft %s unfinished for 36 hours: removed", path);
    return true;
}

static void
sweep_pid(struct clean *c)
{
    int result = disk_list(c->spool->disk, spool_room(ROOM_PID), sweep_pid_file, c);
    if (result < 0)
        (void)spool_trouble(c->spool, result, NULL, "list pid/");
}

/* --- mess/ ----------------------------------------------------------------------- */

static bool
note_mess_file(void *context, const char *name)
{
    struct clean *c = context;
    struct id id;
    /* The name tells the age without asking the disk; the ctime decides below. */
    if (!id_parse(text_from(name), &id) || !slices_have(c->slices, id) ||
        (int64_t)id.time_ms > loop_now_ms(c->loop) - CLEAN_AGE_MS)
        return true;
    if (c->count == c->capacity) {
        c->capacity = c->capacity > 0 ? c->capacity * 2 : 64;
        c->list = memory_resize(c->list, c->capacity * sizeof(*c->list));
    }
    c->list[c->count++] = id;
    return true;
}

static void
sweep_mess_slice(void *context)
{
    struct clean *c = context;
    for (unsigned i = 0; i < PER_TURN && c->next < c->count; i++) {
        struct id id = c->list[c->next++];
        unsigned rooms, others = ~(ROOM_BIT(ROOM_MESS) | ROOM_BIT(ROOM_INTD));
        if (young_find(c->young, id) == NULL &&
            spool_rooms(c->spool, id, &rooms) == 0 && rooms != 0 &&
            (rooms & others) == 0)
            clean_leftover(c->spool, id, loop_now_ms(c->loop));
    }
    if (c->next < c->count) {
        loop_timer_start(c->loop, &c->more, PAUSE_MS, sweep_mess_slice, c);
        return;
    }
    free(c->list);
    c->list = NULL;
    c->count = c->capacity = c->next = 0;
}

static void
sweep_all(void *context)
{
    struct clean *c = context;
    loop_timer_start(c->loop, &c->hourly, EVERY_MS, sweep_all, c);
    sweep_pid(c);
    if (c->list != NULL || *c->careful)
        return; /* the last sweep is still at work */
    int result = disk_list(c->spool->disk, spool_room(ROOM_MESS), note_mess_file, c);
    if (result < 0)
        (void)spool_trouble(c->spool, result, NULL, "list mess/");
    sweep_mess_slice(c);
}

static void
sweep_first(void *context)
{
    struct clean *c = context;
    sweep_pid(c);
    loop_timer_start(c->loop, &c->hourly, EVERY_MS, sweep_all, c);
}

/* --- Start and stop -------------------------------------------------------------- */

void
clean_start(struct clean *c)
{
    assert(c->spool != NULL && c->loop != NULL);
    loop_timer_start(c->loop, &c->hourly, 0, sweep_first, c);
}

void
clean_stop(struct clean *c)
{
    loop_timer_stop(c->loop, &c->hourly);
    loop_timer_stop(c->loop, &c->more);
    free(c->list);
    c->list = NULL;
}
