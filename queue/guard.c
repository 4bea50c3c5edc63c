/* Counts the crashes of messages in a page of shared memory. */
#include "queue/guard.h"

#include "queue/slices.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 32 };

static const char magic[8] = "PGUARD3\n";
const char guard_reason[] = "at work in two crashes of the daemon";

struct guard_row {
    uint64_t time_ms, hash;
    uint32_t crashes; /* 0: free */
    uint32_t resting; /* deferred since */
};

/* Stores are seen by the next process in the order in which they are written here. */
struct guard_page {
    char magic[sizeof(magic)];
    volatile uint64_t time_ms, hash; /* at work; two zeros: none */
    uint32_t running;                /* nobody has stopped it in order */
    uint32_t unknown; /* early ends, one after another, with nothing at work */
    volatile uint32_t suspected; /* what is at work is the suspect */
    uint32_t refuted; /* suspects that were quarantined, and it ended again */
    uint64_t used;    /* rows up to the last one that is not free */
    struct guard_row rows[GUARD_ROWS];
};
_Static_assert(sizeof(struct guard_page) <= 4096, "one page");

/* --- Rows ------------------------------------------------------------------------ */

static struct guard_row *
find(const struct guard *g, struct id id)
{
    struct guard_page *p = g->page;
    for (uint64_t i = 0; p != NULL && i < p->used; i++) {
        struct guard_row *row = &p->rows[i];
        if (row->crashes > 0 && row->hash == id.hash && row->time_ms == id.time_ms)
            return row;
    }
    return NULL;
}

static void
drop(struct guard *g, struct guard_row *row)
{
    struct guard_page *p = g->page;
    if (row == NULL)
        return;
    *row = (struct guard_row){0};
    while (p->used > 0 && p->rows[p->used - 1].crashes == 0)
        p->used--;
}

/* A free one, or that of the fewest crashes; of these the oldest message's. */
static struct guard_row *
choose(struct guard_page *p)
{
    struct guard_row *best = &p->rows[0];
    for (unsigned i = 0; i < GUARD_ROWS; i++) {
        struct guard_row *row = &p->rows[i];
        if (row->crashes < best->crashes ||
            (row->crashes == best->crashes && row->time_ms < best->time_ms))
            best = row;
    }
    return best;
}

static unsigned
count_crash(struct guard *g, struct id id)
{
    struct guard_page *p = g->page;
    struct guard_row *row = find(g, id);
    if (row == NULL) {
        row = choose(p);
        *row = (struct guard_row){.time_ms = id.time_ms, .hash = id.hash};
        uint64_t index = (uint64_t)(row - p->rows);
        if (p->used <= index)
            p->used = index + 1;
    }
    if (row->crashes < GUARD_CRASHES_MAX)
        row->crashes++;
    row->resting = 0;
    return row->crashes;
}

/* --- The page -------------------------------------------------------------------- */

/* A message's name has 50 bits of time and 40 of hash. */
static bool
is_name(uint64_t time_ms, uint64_t hash)
{
    return time_ms >> 50 == 0 && hash >> 40 == 0;
}

static bool
is_sound(const struct guard_page *p)
{
    if (memcmp(p->magic, magic, sizeof(magic)) != 0 || p->used > GUARD_ROWS ||
        !is_name(p->time_ms, p->hash) || p->running > 1 ||
        p->unknown > GUARD_UNKNOWN_MAX || p->suspected > 1 ||
        p->refuted > GUARD_SUSPECTS_MAX)
        return false;
    for (unsigned i = 0; i < GUARD_ROWS; i++) {
        const struct guard_row *row = &p->rows[i];
        if (row->crashes > GUARD_CRASHES_MAX || row->resting > 1 ||
            !is_name(row->time_ms, row->hash) || (i >= p->used && row->crashes > 0))
            return false;
    }
    return true;
}

/* Those that came through their deferral. */
static void
drop_resting(struct guard *g)
{
    for (unsigned i = 0; i < GUARD_ROWS; i++)
        if (g->page->rows[i].resting != 0)
            drop(g, &g->page->rows[i]);
}

static void
count_last(struct guard *g, struct log *log)
{
    struct guard_page *p = g->page;
    struct id id = {p->time_ms, p->hash};
    char name[ID_LENGTH + 1];
    if (id.time_ms != 0) {
        unsigned crashes = count_crash(g, id);
        id_format(id, name);
        log_say(
            log, LOG_LEVEL_WARNING, "queue", name,
            "was at work when the daemon died: crash %u of the %d after which it is "
            "quarantined",
            crashes, GUARD_CRASHES_MAX);
        if (p->suspected != 0 && crashes >= GUARD_CRASHES_MAX &&
            p->refuted < GUARD_SUSPECTS_MAX)
            p->refuted++;
    } else if (p->running != 0 && p->unknown < GUARD_UNKNOWN_MAX) {
        p->unknown++;
    }
    p->running = 1;
    drop_resting(g);
    guard_leave(g, (struct id){0});
    if (guard_is_careful(g))
        log_say(
            log, LOG_LEVEL_WARNING, "queue", NULL,
            "the daemon died twice within %d seconds of its start, and no message is "
            "known to be the reason: mail is tried one message at a time",
            GUARD_EARLY_MS / 1000);
}

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
                "cannot map %s: a message that crashes the daemon is not noticed",
                path);
        return;
    }
    if (!is_sound(g->page)) {
        memset(g->page, 0, sizeof(*g->page));
        memcpy(g->page->magic, magic, sizeof(magic));
    }
    count_last(g, log);
}

void
guard_stop(struct guard *g)
{
    if (g->page != NULL)
        g->page->running = g->page->unknown = g->page->refuted = 0;
}

void
guard_survive(struct guard *g)
{
    if (g->page != NULL)
        g->page->unknown = g->page->refuted = 0;
}

bool
guard_is_careful(const struct guard *g)
{
    return g->page != NULL && g->page->unknown >= GUARD_UNKNOWN_MAX &&
           g->page->refuted < GUARD_SUSPECTS_MAX;
}

void
guard_close(struct guard *g)
{
    if (g->page != NULL)
        disk_unmap(g->disk, g->page, sizeof(*g->page));
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

struct id
guard_enter(struct guard *g, struct id id)
{
    struct id before = {0};
    if (g->page == NULL)
        return before;
    before = (struct id){g->page->time_ms, g->page->hash};
    if (id.time_ms == 0)
        return before;
    struct guard_row *row = g->page->used > 0 ? find(g, id) : NULL;
    /* It is taken up again: its deferral went well. */
    if (row != NULL && row->resting != 0 && id_compare(before, id) != 0)
        drop(g, row);
    set_at_work(g, id);
    return before;
}

void
guard_leave(struct guard *g, struct id before)
{
    if (g->page != NULL)
        set_at_work(g, before.time_ms != 0 ? before : g->suspect);
}

struct id
guard_enter_nobody(struct guard *g)
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

void
guard_rest(struct guard *g, struct id id)
{
    struct guard_row *row = find(g, id);
    if (row != NULL)
        row->resting = 1;
}

void
guard_forget(struct guard *g, struct id id)
{
    drop(g, find(g, id));
}

unsigned
guard_crashes(const struct guard *g, struct id id)
{
    const struct guard_row *row = find(g, id);
    return row != NULL ? row->crashes : 0;
}
