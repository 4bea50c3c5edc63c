/* Sweeps the spool for files that dead processes left. */
#include "queue/recovery/clean.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVERY_MS = 60 * 60 * 1000, PAUSE_MS = 10 };
/* Limits of a turn: disk calls, names listed, and rows that need neither. Each suspect
 * costs recovery as many calls again. */
enum { CALLS_PER_TURN = 200, NAMES_PER_TURN = 5000, ROWS_PER_TURN = 20000 };
enum {
    NAME_MAX_HERE = 256,
    PATH_MAX_HERE = SPOOL_PATH_MAX + NAME_MAX_HERE,
    DRAFTS_MAX = 8 * 1024 * 1024 /* names; the rest waits for the next hour */
};

enum {
    MESS = SPOOL_BIT(SPOOL_MESS),
    QUEUED = SPOOL_BIT(SPOOL_TODO),
    INFO = SPOOL_BIT(SPOOL_INFO)
};

static bool
is_old(const struct disk_info *info, int64_t now_ms)
{
    return now_ms - info->changed_ms > CLEAN_AGE_MS;
}

/* A missing file counts as old. */
static bool
is_old_in(struct spool *s, enum spool_dir dir, struct id id, int64_t now_ms)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(dir, id, path);
    int result = disk_inspect(s->disk, path, &info);
    return result == -ENOENT || (result == 0 && is_old(&info, now_ms));
}

/* We hold the lock on its slice. */
static bool
is_of_dead_daemon(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(SPOOL_MESS, id, path);
    return s->adopts && disk_inspect(s->disk, path, &info) == 0 &&
           info.owner == s->user && info.mode == SPOOL_DAEMON_MODE;
}

/* A failure is logged, and the next hour tries again. */
static void
remove_leftover(struct spool *s, struct id id, const char *name, const char *what)
{
    if (spool_remove(s, SPOOL_INTD, id) == 0 && spool_remove(s, SPOOL_MESS, id) == 0)
        log_say(s->log, LOG_LEVEL_WARNING, "queue", name,
                "unfinished in mess/ %s: removed", what);
}

void
clean_leftover(struct spool *s, struct id id, int64_t now_ms)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    if (is_of_dead_daemon(s, id))
        remove_leftover(s, id, name, "of a daemon that died");
    else if (is_old_in(s, SPOOL_MESS, id, now_ms) &&
             is_old_in(s, SPOOL_INTD, id, now_ms))
        remove_leftover(s, id, name, "for 36 hours");
    else
        log_say(s->log, LOG_LEVEL_INFO, "queue", name,
                "unfinished in mess/: left for its injector");
}

/* --- pid/ ------------------------------------------------------------------------ */

/* A daemon's draft (draft.h). We hold a lock on its part of the spool, so that daemon
 * is dead. */
static bool
is_dead_draft(const struct clean *c, const char *name)
{
    unsigned first, last;
    return strlen(name) > SLICES_PART_LENGTH && name[SLICES_PART_LENGTH] == '.' &&
           slices_part_read(text_before(text_from(name), SLICES_PART_LENGTH), &first,
                            &last) &&
           slices_overlap(c->slices, first, last);
}

static void
remove_draft(struct clean *c, const char *name, const char *why)
{
    struct spool *s = c->spool;
    char path[PATH_MAX_HERE];
    snprintf(path, sizeof(path), "%s/%s", spool_dir_name(SPOOL_PID), name);
    int result = disk_unlink(s->disk, path);
    if (result < 0)
        (void)spool_trouble(s, result, NULL, "remove an old draft");
    else
        log_say(s->log, LOG_LEVEL_WARNING, "queue", NULL, "draft %s %s: removed", path,
                why);
}

static bool
remove_dead_draft(void *context, const char *name)
{
    struct clean *c = context;
    if (is_dead_draft(c, name))
        remove_draft(c, name, "of a daemon that died");
    return true;
}

static bool
note_draft(void *context, const char *name)
{
    struct clean *c = context;
    return buffer_add(&c->drafts, text_of(name, strlen(name) + 1));
}

static void
list_drafts(struct clean *c, bool (*each)(void *context, const char *name))
{
    int result = disk_list(c->spool->disk, spool_dir_name(SPOOL_PID), each, c);
    if (result < 0)
        (void)spool_trouble(c->spool, result, NULL, "list pid/");
}

static void
check_draft(struct clean *c, const char *name)
{
    char path[PATH_MAX_HERE];
    struct disk_info info;
    snprintf(path, sizeof(path), "%s/%s", spool_dir_name(SPOOL_PID), name);
    if (disk_inspect(c->spool->disk, path, &info) < 0)
        return; /* it was just named, or the next hour tries again */
    if (info.kind == DISK_DIRECTORY)
        c->drafts_strange++;
    else if (is_old(&info, loop_now_ms(c->loop)))
        remove_draft(c, name, "unfinished for 36 hours");
}

static void
check_drafts(struct clean *c)
{
    for (unsigned i = 0; i < CALLS_PER_TURN && c->drafts_next < c->drafts.length; i++) {
        const char *name = c->drafts.at + c->drafts_next;
        c->drafts_next += strlen(name) + 1;
        check_draft(c, name);
    }
    if (c->drafts_next == c->drafts.length)
        spool_log_strange(c->spool, SPOOL_PID, c->drafts_strange);
}

/* --- Lists ------------------------------------------------------------------------ */

static bool
clean_note_name(void *context, const char *name)
{
    struct clean *c = context;
    struct id id;
    if (!id_parse(text_from(name), &id))
        c->strange++;
    else if (slices_have(c->slices, id))
        id_list_note(&c->names, id, SPOOL_BIT(c->dir));
    return true;
}

/* mess/ first, then the others. */
static enum spool_dir
dir_after(enum spool_dir dir)
{
    return dir == SPOOL_MESS       ? SPOOL_TODO
           : dir + 1 == SPOOL_MESS ? SPOOL_DIRS
                                   : dir + 1;
}

/* False: the disk failed; the next hour tries again. */
static bool
clean_list_names(struct clean *c)
{
    int result = 0;
    if (c->listing == NULL) {
        c->strange = 0;
        result = disk_listing_open(c->spool->disk, spool_dir_name(c->dir), &c->listing);
    }
    if (result == 0)
        result = disk_listing_read(c->listing, NAMES_PER_TURN, clean_note_name, c);
    if (result > 0)
        return true;
    disk_listing_close(&c->listing);
    if (result < 0) {
        (void)spool_trouble(c->spool, result, NULL, "list a directory");
        return false;
    }
    id_list_sort(&c->names);
    spool_log_strange(c->spool, c->dir, c->strange);
    c->dir = dir_after(c->dir);
    return true;
}

/* --- Judgement -------------------------------------------------------------------- */

/* See recover.c: mess is made first and removed last; todo or info makes it a
 * message. */
static bool
is_message(unsigned dirs)
{
    return (dirs & MESS) != 0 && (dirs & (QUEUED | INFO)) != 0;
}

static bool
is_known(const struct clean *c, struct id id)
{
    return journaled_find(c->journaled, id) != NULL || id_set_has(c->seen, id) ||
           removal_have(c->removal, id);
}

/* A listing is outdated when its turn comes, so the files are checked again; mess last,
 * because it is made first. False: nothing is left, or not all is old, or the disk
 * failed. */
static bool
ask_files(struct clean *c, struct id id, unsigned *dirs)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    bool old = true;
    *dirs = 0;
    for (enum spool_dir dir = SPOOL_TODO; old && dir <= SPOOL_MESS; dir++) {
        spool_path(dir, id, path);
        int result = disk_inspect(c->spool->disk, path, &info);
        if (result == 0)
            *dirs |= SPOOL_BIT(dir);
        old = result == -ENOENT || (result == 0 && is_old(&info, loop_now_ms(c->loop)));
    }
    return old && *dirs != 0;
}

static void
check_some(struct clean *c)
{
    unsigned calls = 0, dirs;
    for (unsigned i = 0; i < ROWS_PER_TURN && calls < CALLS_PER_TURN; i++) {
        if (c->next == c->names.count)
            return;
        const struct id_list_row *row = &c->names.rows[c->next++];
        struct id id = id_list_id(row);
        if (is_message(row->dirs) || is_known(c, id))
            continue;
        calls += SPOOL_MESS - SPOOL_TODO + 1;
        if (ask_files(c, id, &dirs) && !is_message(dirs))
            c->suspect(c->context, id);
    }
}

/* --- The sweep -------------------------------------------------------------------- */

static void
end_sweep(struct clean *c)
{
    buffer_free(&c->drafts);
    disk_listing_close(&c->listing);
    id_list_free(&c->names);
    c->next = 0;
    c->sweeping = false;
}

static bool
has_drafts(const struct clean *c)
{
    return c->drafts_next < c->drafts.length;
}

static void
bite(void *context)
{
    struct clean *c = context;
    bool good = true;
    if (has_drafts(c))
        check_drafts(c);
    /* Files may belong to messages of a journal that could not be adopted yet. */
    else if (*c->careful)
        good = false;
    else if (c->dir != SPOOL_DIRS)
        good = clean_list_names(c);
    else
        check_some(c);
    if (good && (has_drafts(c) || c->dir != SPOOL_DIRS || c->next < c->names.count))
        loop_timer_start(c->loop, &c->more, PAUSE_MS, bite, c);
    else
        end_sweep(c);
}

/* directory: the first to be listed after pid/; SPOOL_DIRS: none. */
static void
clean_sweep(struct clean *c, enum spool_dir dir)
{
    if (c->sweeping)
        return; /* the last sweep is still at work */
    c->sweeping = true;
    c->drafts_next = c->drafts_strange = 0;
    c->dir = dir;
    list_drafts(c, note_draft);
    loop_timer_start(c->loop, &c->more, PAUSE_MS, bite, c);
}

static void
sweep_all(void *context)
{
    struct clean *c = context;
    loop_timer_start(c->loop, &c->hourly, EVERY_MS, sweep_all, c);
    clean_sweep(c, SPOOL_MESS);
}

static void
sweep_first(void *context)
{
    struct clean *c = context;
    loop_timer_start(c->loop, &c->hourly, EVERY_MS, sweep_all, c);
    clean_sweep(c, SPOOL_DIRS);
}

/* --- Start and stop -------------------------------------------------------------- */

void
clean_start(struct clean *c)
{
    assert(c->spool != NULL && c->loop != NULL && c->suspect != NULL);
    assert(c->journaled != NULL && c->seen != NULL && c->removal != NULL);
    buffer_init(&c->drafts, DRAFTS_MAX);
    /* Before this daemon makes drafts: their names look like those of a dead one. */
    list_drafts(c, remove_dead_draft);
    loop_timer_start(c->loop, &c->hourly, 0, sweep_first, c);
}

void
clean_stop(struct clean *c)
{
    loop_timer_stop(c->loop, &c->hourly);
    loop_timer_stop(c->loop, &c->more);
    end_sweep(c);
}
