/* Counts the crashes of messages in a page of shared memory. */
#include "queue/spool/guard.h"

#include "base/crash.h"
#include "queue/spool/guard_internal.h"
#include "queue/spool/slices.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 32 };
static const char magic[GUARD_MAGIC_SIZE] = "PGUARD4\n";

/* --- Rows ------------------------------------------------------------------------ */

static struct guard_row *
guard_find(const struct guard *g, struct id id)
{
    struct guard_page *p = g->page;
    for (uint64_t i = 0; p != NULL && i < p->used; i++) {
        struct guard_row *row = &p->rows[i];
        if (row->ends > 0 && row->hash == id.hash && row->time_ms == id.time_ms)
            return row;
    }
    return NULL;
}

/* `used` shrinks with the last row, so that guard_enter() skips an empty table. */
static void
guard_drop(struct guard *g, struct guard_row *row)
{
    struct guard_page *p = g->page;
    if (row == NULL)
        return;
    *row = (struct guard_row){0};
    while (p->used > 0 && p->rows[p->used - 1].ends == 0)
        p->used--;
}

/* How near a row is to the limit. */
static uint32_t
guard_weight(const struct guard_row *row)
{
    return row->ends + row->crashes * (GUARD_ENDS_MAX / GUARD_CRASHES_MAX - 1);
}

/* A free row, or the one of least weight; among equals that of the oldest message. */
static struct guard_row *
guard_choose(struct guard_page *p)
{
    struct guard_row *best = &p->rows[0];
    for (unsigned i = 0; i < GUARD_ROWS; i++) {
        struct guard_row *row = &p->rows[i];
        if (guard_weight(row) < guard_weight(best) ||
            (guard_weight(row) == guard_weight(best) && row->time_ms < best->time_ms))
            best = row;
    }
    return best;
}

/* Two crashes are a pattern; a kill from outside mostly hits an innocent message. */
static bool
guard_row_is_deadly(const struct guard_row *row)
{
    return row->crashes >= GUARD_CRASHES_MAX || row->ends >= GUARD_ENDS_MAX;
}

/* Counts one more end: a crash, or a kill from outside. The counters stop at their
 * limits: more ends change nothing, and the page stays sound. */
static void
add_end(const struct guard_page *p, struct guard_row *row)
{
    if (row->ends < GUARD_ENDS_MAX)
        row->ends++;
    if (p->crashed != 0 && row->crashes < GUARD_CRASHES_MAX)
        row->crashes++;
}

static const struct guard_row *
guard_count_end(struct guard *g, struct id id)
{
    struct guard_page *p = g->page;
    struct guard_row *row = guard_find(g, id);
    if (row == NULL) {
        row = guard_choose(p);
        *row = (struct guard_row){.time_ms = id.time_ms, .hash = id.hash};
        uint64_t index = (uint64_t)(row - p->rows);
        if (p->used <= index)
            p->used = index + 1;
    }
    add_end(p, row);
    /* The daemon has ended at this message: drop_resting() must not forget it. */
    row->resting = 0;
    return row;
}

/* --- The page -------------------------------------------------------------------- */

/* A message's name has 50 bits of time and 40 of hash. */
static bool
guard_is_name(uint64_t time_ms, uint64_t hash)
{
    return time_ms >> 50 == 0 && hash >> 40 == 0;
}

/* The page is never synced: after a power cut anything may be in it. */
static bool
is_sound(const struct guard_page *p)
{
    if (memcmp(p->magic, magic, sizeof(magic)) != 0 || p->used > GUARD_ROWS ||
        !guard_is_name(p->time_ms, p->hash) || p->running > 1 || p->crashed > 1 ||
        p->unknown.ends > GUARD_ENDS_MAX || p->unknown.crashes > GUARD_CRASHES_MAX ||
        p->suspected > 1 || p->refuted > GUARD_SUSPECTS_MAX)
        return false;
    for (unsigned i = 0; i < GUARD_ROWS; i++) {
        const struct guard_row *row = &p->rows[i];
        if (row->ends > GUARD_ENDS_MAX || row->crashes > GUARD_CRASHES_MAX ||
            row->crashes > row->ends || row->resting > 1 ||
            !guard_is_name(row->time_ms, row->hash) || (i >= p->used && row->ends > 0))
            return false;
    }
    return true;
}

/* Forgets messages whose deferral went well. */
static void
drop_resting(struct guard *g)
{
    for (unsigned i = 0; i < GUARD_ROWS; i++)
        if (g->page->rows[i].resting != 0)
            guard_drop(g, &g->page->rows[i]);
}

static void
say_end(const struct guard_page *p, struct id id, const struct guard_row *row,
        struct log *log)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    if (p->crashed != 0)
        log_say(
            log, LOG_LEVEL_WARNING, "queue", name,
            "was being processed when the daemon crashed (%u of %d before quarantine)",
            row->crashes, GUARD_CRASHES_MAX);
    else
        log_say(log, LOG_LEVEL_WARNING, "queue", name,
                "was being processed when the daemon was killed (end %u of %d before "
                "quarantine)",
                row->ends, GUARD_ENDS_MAX);
}

/* The last process left its message in the page, or none. When mail is tried one
 * message at a time and the daemon still ends, the third quarantined message proves
 * that mail is not the reason. */
static void
count_last(struct guard *g, struct log *log)
{
    struct guard_page *p = g->page;
    struct id id = {p->time_ms, p->hash};
    if (id.time_ms != 0) {
        const struct guard_row *row = guard_count_end(g, id);
        say_end(p, id, row, log);
        if (p->suspected != 0 && guard_row_is_deadly(row) &&
            p->refuted < GUARD_SUSPECTS_MAX)
            p->refuted++;
    } else if (p->running != 0) {
        add_end(p, &p->unknown);
    }
    p->running = 1;
    p->crashed = 0;
    drop_resting(g);
    guard_leave(g, (struct id){0});
    if (guard_is_careful(g))
        log_say(
            log, LOG_LEVEL_WARNING, "queue", NULL,
            "the daemon ended %u times within %d seconds of its start, and no "
            "message is known to be the reason: mail is tried one message at a time",
            p->unknown.ends, GUARD_EARLY_MS / 1000);
}

/* Without the page the daemon runs as well: it only cannot tell which message crashes
 * it. */
void
guard_open(struct guard *g, struct disk *disk, struct log *log, unsigned slices,
           unsigned slice)
{
    char path[PATH_SIZE], suffix[SLICES_SUFFIX_MAX];
    assert(g->page == NULL);
    slices_suffix(slices, slice, suffix);
    snprintf(path, sizeof(path), "lock/guard%s", suffix);
    g->disk = disk;
    g->page = disk_map(disk, path, sizeof(*g->page));
    if (g->page == NULL) {
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "cannot map %s: a message that crashes the daemon cannot be found",
                path);
        return;
    }
    if (!is_sound(g->page)) {
        memset(g->page, 0, sizeof(*g->page));
        memcpy(g->page->magic, magic, sizeof(magic));
    }
    count_last(g, log);
    /* Not earlier: count_last() reads the mark of the last process there. */
    crash_mark(&g->page->crashed);
}

static void
forget_unknown(struct guard_page *p)
{
    p->unknown = (struct guard_row){0};
    p->refuted = 0;
}

/* An orderly stop is no end, for the suspect neither. The suspicions of unknown ends are
 * over with it. */
void
guard_stop(struct guard *g)
{
    if (g->page == NULL)
        return;
    guard_suspect(g, (struct id){0});
    g->page->running = 0;
    forget_unknown(g->page);
}

void
guard_survive(struct guard *g)
{
    if (g->page != NULL)
        forget_unknown(g->page);
}

/* Not for ever: a daemon that ends for another reason must deliver mail between its
 * ends. */
bool
guard_is_careful(const struct guard *g)
{
    return g->page != NULL && guard_row_is_deadly(&g->page->unknown) &&
           g->page->refuted < GUARD_SUSPECTS_MAX;
}

void
guard_close(struct guard *g)
{
    if (g->page != NULL) {
        crash_unmark(&g->page->crashed);
        disk_unmap(g->disk, g->page, sizeof(*g->page));
    }
    g->page = NULL;
}

/* --- At work --------------------------------------------------------------------- */

static void
set_at_work(struct guard *g, struct id id)
{
    g->page->time_ms = id.time_ms;
    g->page->hash = id.hash;
    g->page->suspected = id.time_ms != 0 && id_compare(id, g->suspect) == 0;
}

/* Two stores into shared memory, no system call: it brackets all work on a message. */
struct id
guard_enter(struct guard *g, struct id id)
{
    struct id before = {0};
    if (g->page == NULL)
        return before;
    before = (struct id){g->page->time_ms, g->page->hash};
    if (id.time_ms == 0)
        return before;
    struct guard_row *row = g->page->used > 0 ? guard_find(g, id) : NULL;
    /* The message is processed again, so its deferral went well. */
    if (row != NULL && row->resting != 0 && id_compare(before, id) != 0)
        guard_drop(g, row);
    set_at_work(g, id);
    return before;
}

/* The suspect counts as at work while nothing else does, so that a crash in a callback
 * without a message is charged to it. */
void
guard_leave(struct guard *g, struct id before)
{
    if (g->page != NULL)
        set_at_work(g, before.time_ms != 0 ? before : g->suspect);
}

struct id
guard_enter_none(struct guard *g)
{
    struct id before = {0};
    if (g->page == NULL)
        return before;
    before = (struct id){g->page->time_ms, g->page->hash};
    set_at_work(g, (struct id){0});
    return before;
}

void
guard_suspect(struct guard *g, struct id id)
{
    g->suspect = id;
    guard_leave(g, id);
}

/* The deferral is no proof yet: writing it may crash the daemon. The row goes when the
 * message is processed again, or at the next startup. */
void
guard_rest(struct guard *g, struct id id)
{
    struct guard_row *row = guard_find(g, id);
    if (row != NULL)
        row->resting = 1;
}

void
guard_forget(struct guard *g, struct id id)
{
    guard_drop(g, guard_find(g, id));
}

const char *
guard_reason(const struct guard *g, struct id id)
{
    const struct guard_row *row = guard_find(g, id);
    if (row == NULL || !guard_row_is_deadly(row))
        return NULL;
    return row->crashes >= GUARD_CRASHES_MAX ? "processed in two crashes of the daemon"
                                             : "processed when the daemon was killed "
                                               "six times";
}
