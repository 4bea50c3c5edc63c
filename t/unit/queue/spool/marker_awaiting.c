/* queue/spool/marker.c, and marks in queue.c, marks.c, recover.c, queue_listing.c, clean.c: a mark
 * is a hint, made and lost without harm. */
/* link: t/sim/loop.c */
/* link: t/sim/disk*.c */
#include "queue/spool/marker.h"

#include "base/log/log_internal.h"
#include "base/memory.h"
#include "queue/queue_fragments.h"
#include "queue/queue_operator.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { HOUR_MS = 3600 * 1000 };

static struct kit kit;    /* one at a time */
static int64_t passed_ms; /* in the runs before */

static const char *const two[] = {"a@x", "b@x", NULL};

/* --- The files -------------------------------------------------------------------- */

static void
plant(enum spool_dir dir, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk *disk;
    if (disk_open(&disk, "/spool", true) != 0)
        abort();
    spool_path(dir, id, path);
    int file = disk_create(disk, path, 0600);
    if (file >= 0)
        disk_close_file(disk, file);
    disk_close(&disk);
}

static bool
is_in(enum spool_dir dir, struct id id)
{
    char path[SPOOL_PATH_MAX], absolute[SPOOL_PATH_MAX + 10];
    spool_path(dir, id, path);
    snprintf(absolute, sizeof(absolute), "/spool/%s", path);
    return sim_disk_content(absolute).at != NULL;
}

static struct id
an_id(unsigned char n)
{
    return id_make(SIM_WALL_START_MS, (const unsigned char[]){n, 2, 3, 4, 5});
}

TEST(files)
{
    struct spool s;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    char error[200];
    FIXTURE(buffer, lines, buffer_init, buffer_free, 10000);
    log_capture(log, &lines);
    sim_disk_reset();
    is_number(spool_open(&s, "/spool", false, log, error, sizeof(error)), 0, "open");
    ok_named(!marker_has(&s, MARKER_AWAITING, an_id(1)), "none");
    s.unsynced[SPOOL_DEFRAG] = false;
    ok(marker_put(&s, MARKER_AWAITING, an_id(1)) == 0 && marker_has(&s, MARKER_AWAITING, an_id(1)));
    ok_named(marker_put(&s, MARKER_AWAITING, an_id(1)) == 0, "twice is once");
    is_number(sim_disk_count("/spool/defrag"), 1, "a file");
    ok_named(!s.unsynced[SPOOL_DEFRAG], "nobody waits for its name");
    marker_drop(&s, MARKER_AWAITING, an_id(1));
    marker_drop(&s, MARKER_AWAITING, an_id(1));
    ok_named(!marker_has(&s, MARKER_AWAITING, an_id(1)) && lines.length == 0, "gone, without a word");
    for (int i = 0; i < 3; i++) {
        static const int errors[] = {ENOSPC, EIO, EROFS};
        sim_disk_count_anew();
        sim_disk_fail_at(1, errors[i]);
        ok_named(marker_put(&s, MARKER_AWAITING, an_id(2)) < 0, strerror(errors[i]));
        sim_disk_fail_at(0, 0);
    }
    (void)marker_put(&s, MARKER_AWAITING, an_id(3));
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    marker_drop(&s, MARKER_AWAITING, an_id(3));
    ok_named(marker_has(&s, MARKER_AWAITING, an_id(3)), "it stays when the disk says so");
    ok_named(s.trouble[0] == '\0', "and the spool is healthy all the same");
    unsigned told = 0;
    for (size_t i = 0; i < lines.length; i++)
        told += lines.at[i] == '\n';
    is_number(told, 1, "one line for all of it");
    ok(memmem(lines.at, lines.length, "No space left", 13) != NULL);
    (void)marker_put(&s, MARKER_AWAITING, an_id(4));
    plant(SPOOL_MESS, an_id(4));
    is_number(spool_remove_all(&s, an_id(4)), 0, "what ends");
    ok_named(!is_in(SPOOL_DEFRAG, an_id(4)), "has no mark");
    spool_close(&s);
    log_free(&log);
}

/* The directory of an older release's spool is missing. */
TEST(old_spool)
{
    struct spool s;
    char error[200];
    sim_disk_reset();
    sim_disk_fail_at(2 + SPOOL_DEFRAG, EACCES); /* disk_open(), then one for each directory */
    is_number(spool_open(&s, "/spool", true, NULL, error, sizeof(error)), 0,
              "an injector does without");
    ok_named(sim_disk_has_failed(), "indeed");
    spool_close(&s);
    sim_disk_reset();
    sim_disk_fail_at(2 + SPOOL_DEFRAG, EACCES);
    ok_named(spool_open(&s, "/spool", false, NULL, error, sizeof(error)) < 0 &&
                 strstr(error, "defrag") != NULL,
             "a daemon does not");
}

/* --- A queue's -------------------------------------------------------------------- */

static struct envelope *in_use;

static struct envelope *
which_in_use(void *context, struct id id)
{
    (void)context;
    return in_use != NULL && id_compare(in_use->id, id) == 0 ? in_use : NULL;
}

static void
begin_slice(int64_t journal_size, unsigned slices, unsigned slice)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = slices,
                                      .slice = slice,
                                      .message_size_limit = 1000000,
                                      .journal_size = journal_size,
                                      .journal_segment = 65536,
                                      .journal_message_max = 10000,
                                      .in_use = which_in_use};
    kit = (struct kit){.loop = sim_loop_new(7)};
    sim_loop_step_wall(kit.loop, passed_ms);
    kit.log = log_new(kit.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&kit.lines, 16 * 1024 * 1024);
    log_capture(kit.log, &kit.lines);
    if (queue_open(&kit.queue, kit.loop, kit.log, &settings, kit_found, &kit, kit.error,
                   sizeof(kit.error)) != 0)
        ok_named(false, kit.error);
    sim_loop_advance(kit.loop, 1000);
}

static void
begin(int64_t journal_size)
{
    begin_slice(journal_size, 1, 0);
}

static void
end_run(void)
{
    passed_ms = loop_now_ms(kit.loop) - SIM_WALL_START_MS;
    kit_close(&kit);
    sim_disk_restart();
}

/* S5, due `after_ms` from now; waiting for parts, or not. */
static struct id
put_aside(int64_t after_ms, bool awaits)
{
    struct envelope *e =
        queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("content\r\n"));
    struct id id = e->id;
    queue_wait(kit.queue, e, awaits);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + after_ms, 0);
    sim_loop_advance(kit.loop, 1000);
    return id;
}

TEST(young)
{
    sim_disk_reset();
    begin(1024 * 1024);
    struct envelope *e =
        queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("content\r\n"));
    struct id id = e->id;
    sim_disk_count_anew();
    queue_wait(kit.queue, e, true);
    envelope_free(&e);
    is_number(sim_disk_calls(), 0, "young mail asks nothing of the disk");
    e = queue_load(kit.queue, id);
    ok_named(e->fragment.awaits_parts, "but it is known");
    queue_wait(kit.queue, e, false);
    envelope_free(&e);
    e = queue_load(kit.queue, id);
    ok_named(!e->fragment.awaits_parts, "so is the end of it");
    queue_wait(kit.queue, e, true);
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/defrag"), 0, "and it ends without a mark");
    end_run();
}

/* The cause of the move: a deferral, or the journal, which has no directory. */
TEST(moving)
{
    enum { MANY = 200 };
    static char content[8000];
    sim_disk_reset();
    memset(content, 'x', sizeof(content));
    begin(512 * 1024);
    struct id id = put_aside(0, true);
    ok_named(is_in(SPOOL_DEFRAG, id) && is_in(SPOOL_INFO, id), "a deferral marks it");
    struct envelope *e = queue_load(kit.queue, id);
    ok_named(e->fragment.awaits_parts, "which is read");
    sim_disk_count_anew();
    queue_wait(kit.queue, e, true);
    is_number(sim_disk_calls(), 0, "and not made again");
    queue_wait(kit.queue, e, false);
    ok_named(!is_in(SPOOL_DEFRAG, id), "it goes at once");
    queue_wait(kit.queue, e, true);
    ok_named(is_in(SPOOL_DEFRAG, id), "and comes at once");
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 1000);
    ok_named(!is_in(SPOOL_DEFRAG, id), "and ends with it");
    unsigned marks = 0, files = 0;
    struct id ids[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        e = queue_kit_accept(&kit, kit_envelope("s@x", two),
                       text_of(content, sizeof(content)));
        ids[i] = e->id;
        if (i % 2 == 0)
            queue_wait(kit.queue, e, true);
        envelope_free(&e);
        sim_loop_advance(kit.loop, 200);
    }
    for (unsigned i = 0; i < MANY; i++) {
        files += is_in(SPOOL_INFO, ids[i]);
        marks += is_in(SPOOL_DEFRAG, ids[i]);
        if (is_in(SPOOL_DEFRAG, ids[i]) != (is_in(SPOOL_INFO, ids[i]) && i % 2 == 0))
            ok_named(false, "the wrong mark");
    }
    ok_named(files > 20 && marks >= files / 2 - 1, "those that waited are marked");
    end_run();
}

/* The queue's S4, which may have no journal, moves as well. */
TEST(without_journal)
{
    sim_disk_reset();
    begin(0);
    struct id id = put_aside(0, true);
    ok_named(is_in(SPOOL_DEFRAG, id) && is_in(SPOOL_INFO, id), "marked");
    struct envelope *e = queue_load(kit.queue, id);
    queue_wait(kit.queue, e, false);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + HOUR_MS, 1);
    sim_loop_advance(kit.loop, 1000);
    ok_named(!is_in(SPOOL_DEFRAG, id) && is_in(SPOOL_INFO, id), "and not any more");
    end_run();
}

/* It changes its mind while it moves. */
TEST(while_moving)
{
    sim_disk_reset();
    begin(1024 * 1024);
    struct envelope *e =
        queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("content\r\n"));
    struct id id = e->id;
    queue_wait(kit.queue, e, true);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop), 0);
    in_use = e = queue_load(kit.queue, id); /* not written yet */
    ok_named(e != NULL && e->fragment.awaits_parts, "what is to be written is told");
    queue_wait(kit.queue, e, false);
    sim_loop_advance(kit.loop, 1000);
    ok_named(is_in(SPOOL_INFO, id) && !is_in(SPOOL_DEFRAG, id), "the last word counts");
    queue_wait(kit.queue, e, true);
    ok_named(is_in(SPOOL_DEFRAG, id), "also of one that has moved under its owner");
    in_use = NULL;
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/defrag") + sim_disk_count("/spool/mess"), 0,
              "gone");
    end_run();
}

/* --- The start -------------------------------------------------------------------- */

TEST(order)
{
    enum { EACH = 4 };
    struct id plain[EACH], marked[EACH];
    sim_disk_reset();
    begin(1024 * 1024);
    for (unsigned i = 0; i < EACH; i++) {
        plain[i] = put_aside(0, false);
        marked[i] = put_aside(1500, true);
    }
    struct id later = put_aside(HOUR_MS, true);
    sim_loop_advance(kit.loop, 5000);
    end_run();
    begin(1024 * 1024);
    is_number(kit.found_count, 2 * EACH + 1, "all are found");
    unsigned wrong = 0;
    for (unsigned i = 0; i < EACH; i++)
        wrong += id_compare(kit.found[i].id, marked[i]) != 0 ||
                 id_compare(kit.found[EACH + 1 + i].id, plain[i]) != 0;
    is_number(wrong, 0, "marked ones first, in the order of their ids");
    ok_named(id_compare(kit.found[EACH].id, later) == 0 &&
                 kit.found[EACH].due_ms > loop_now_ms(kit.loop),
             "a mark makes nothing due");
    end_run();
}

TEST(strays)
{
    sim_disk_reset();
    begin(1024 * 1024);
    struct id young, held = put_aside(0, true), marked = put_aside(0, true);
    struct envelope *e =
        queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("content\r\n"));
    young = e->id;
    envelope_free(&e);
    e = queue_load(kit.queue, held);
    is_number(queue_hold(kit.queue, e, "held\n", true), 0, "held");
    envelope_free(&e);
    end_run();
    plant(SPOOL_DEFRAG, young);
    plant(SPOOL_DEFRAG, an_id(9));
    plant(SPOOL_DEFRAG, held);
    begin(1024 * 1024);
    ok_named(!is_in(SPOOL_DEFRAG, an_id(9)), "a mark alone goes at the start");
    ok_named(!is_in(SPOOL_DEFRAG, young), "that of young mail too");
    ok_named(!is_in(SPOOL_DEFRAG, held), "and that of what is held");
    ok_named(is_in(SPOOL_DEFRAG, marked), "S5 keeps it");
    ok_named(kit_entry(&kit, young) != NULL && kit_entry(&kit, marked) != NULL &&
                 kit_entry(&kit, held) == NULL,
             "mail is what it was");
    ok_named(!kit_logged(&kit, "removing what"), "no word of it");
    end_run();
}

/* --- Lists ------------------------------------------------------------------------ */

struct list {
    struct queue_row {
        struct id id;
        enum queue_place place;
    } rows[20];
    unsigned count;
};

static bool
note(void *context, struct id id, enum queue_place place)
{
    struct list *l = context;
    if (l->count == 20)
        abort();
    l->rows[l->count].id = id;
    l->rows[l->count++].place = place;
    return true;
}

static void
is_listed(const struct list *l, struct id id, enum queue_place place, const char *name)
{
    unsigned found = 0, wrong = 0;
    for (unsigned i = 0; i < l->count; i++) {
        found += id_compare(l->rows[i].id, id) == 0;
        wrong += id_compare(l->rows[i].id, id) == 0 && l->rows[i].place != place;
    }
    ok_named(found == 1 && wrong == 0, name);
}

TEST(list)
{
    struct list l = {0};
    sim_disk_reset();
    begin(1024 * 1024);
    struct id marked = put_aside(0, true), plain = put_aside(0, false),
              held = put_aside(0, true);
    struct envelope *e =
        queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("content\r\n"));
    struct id young = e->id;
    envelope_free(&e);
    plant(SPOOL_DEFRAG, young);
    plant(SPOOL_DEFRAG, an_id(9));
    plant(SPOOL_HOLD, held);
    is_number(queue_each(kit.queue, note, &l), 0, "listed");
    is_number(l.count, 4, "each once, and no stray mark");
    is_listed(&l, marked, QUEUE_DEFRAG, "a fragment");
    is_listed(&l, plain, QUEUE_DEFERRED, "no fragment");
    is_listed(&l, held, QUEUE_HOLD, "hold/ is stronger");
    is_listed(&l, young, QUEUE_INCOMING, "young mail is young");
    end_run();
    struct kit asks;
    if (kit_open_injector(&asks, "/spool") != 0)
        ok_named(false, asks.error);
    l.count = 0;
    is_number(queue_each(asks.queue, note, &l), 0, "also without a daemon");
    is_number(l.count, 4, "the same");
    is_listed(&l, marked, QUEUE_DEFRAG, "the same fragment");
    e = queue_load(asks.queue, marked);
    ok_named(e != NULL && e->fragment.awaits_parts, "its envelope tells");
    envelope_free(&e);
    kit_close(&asks);
}

/* Nothing of a slice that is not ours is touched. */
TEST(slices)
{
    struct id ids[16];
    unsigned kept = 0, gone = 0;
    sim_disk_reset();
    begin(0);
    end_run();
    for (unsigned char i = 0; i < 16; i++) {
        ids[i] = an_id((unsigned char)(i * 16));
        plant(SPOOL_DEFRAG, ids[i]);
    }
    begin_slice(0, 2, 1);
    for (unsigned i = 0; i < 16; i++) {
        bool own = id_slice(ids[i], 2) == 1;
        gone += own && !is_in(SPOOL_DEFRAG, ids[i]);
        kept += !own && is_in(SPOOL_DEFRAG, ids[i]);
    }
    is_number(gone, 8, "its own strays go");
    is_number(kept, 8, "the other's stay");
    end_run();
}
