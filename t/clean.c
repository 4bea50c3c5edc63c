/* Leftovers of every kind: what goes, when, with which line; and what stays. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/clean.h"

#include "t/slices_kit.h"

#include <errno.h>

#define HOUR_MS (3600 * INT64_C(1000))

static const char *const one[] = {"a@x", NULL};
static struct kit kit;

static struct id
old_id(const struct kit *k, int64_t age_ms, uint64_t hash)
{
    return (struct id){.time_ms = (uint64_t)(loop_now_ms(k->loop) - age_ms),
                       .hash = hash};
}

/* An empty spool and its daemon. */
static void
begin(int64_t journal_size)
{
    sim_disk_reset();
    if (!slices_start(&kit, 1, 0, journal_size))
        abort();
    sim_loop_advance(kit.loop, 1000);
    buffer_clear(&kit.lines);
}

static void
plant_at(const char *path)
{
    struct disk *disk;
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    int file = disk_create(disk, path, 0600);
    if (file < 0 || disk_write(disk, file, TEXT("x")) != 0)
        abort();
    disk_close_file(disk, file);
    disk_close(&disk);
}

static void
plant(enum room room, struct id id)
{
    char path[SPOOL_PATH_MAX];
    spool_path(room, id, path);
    plant_at(path);
}

static unsigned
count_lines(const char *words)
{
    unsigned count = 0;
    struct text rest = buffer_text(&kit.lines), line;
    while (text_cut(&rest, '\n', &line))
        count += line.length > 0 &&
                 memmem(line.at, line.length, words, strlen(words)) != NULL;
    return count;
}

static size_t
files(void)
{
    return sim_disk_count("/spool/pid") + sim_disk_count("/spool/mess") +
           sim_disk_count("/spool/intd") + sim_disk_count("/spool/todo") +
           sim_disk_count("/spool/info") + sim_disk_count("/spool/local") +
           sim_disk_count("/spool/remote") + sim_disk_count("/spool/bounce") +
           sim_disk_count("/spool/hold");
}

/* The disk's clock goes with the loop's. */
static void
advance(int64_t ms)
{
    while (ms > 0) {
        int64_t step = ms < HOUR_MS / 2 ? ms : HOUR_MS / 2;
        sim_loop_advance(kit.loop, step);
        sim_disk_set_time(loop_now_ms(kit.loop));
        ms -= step;
    }
}

/* --- What goes ---------------------------------------------------------------------
 */

/* S1, S2 and S3 of injectors: until 36 hours have passed since the last change. */
static void
test_injectors(void)
{
    begin(0);
    sim_disk_set_time(loop_now_ms(kit.loop));
    struct id s2 = old_id(&kit, 0, 5), s3 = old_id(&kit, 0, 6);
    plant_at("pid/1700000000.0123456789abcdef.0");
    plant(ROOM_MESS, s2);
    plant(ROOM_MESS, s3);
    plant(ROOM_INTD, s3);
    advance(35 * HOUR_MS);
    is_number(files(), 4, "35 hours: an injector may be at it");
    is_number(kit.lines.length, 0, "not a word");
    advance(3 * HOUR_MS);
    is_number(files(), 0, "38 hours: all of it has gone");
    is_number(count_lines("unfinished in mess/ for 36 hours: removed"), 2, "told");
    is_number(count_lines("unfinished for 36 hours: removed"), 1, "each with a line");
    is_number(count_lines(""), 3, "and no other");
    kit_close(&kit);
}

/* Restored from a copy, its name is old and it is young. */
static void
test_ctime(void)
{
    begin(0);
    sim_disk_set_time(loop_now_ms(kit.loop));
    plant(ROOM_MESS, old_id(&kit, 100 * HOUR_MS, 5));
    advance(35 * HOUR_MS);
    is_number(files(), 1, "the name's age does not count");
    advance(3 * HOUR_MS);
    is_number(files(), 0, "the file's does");
    kit_close(&kit);
}

/* A file whose message has gone, of each kind. */
static void
test_orphans(bool at_start)
{
    static const struct {
        enum room room;
        const char *says;
    } rows[] = {
        {ROOM_QUEUED, "parked in corrupt/"                   },
        {ROOM_INFO,   "parked in corrupt/"                   },
        {ROOM_LOCAL,  "removing what a finished message left"},
        {ROOM_REMOTE, "removing what a finished message left"},
        {ROOM_BOUNCE, "removing what a finished message left"},
        {ROOM_HOLD,   "removing what a finished message left"},
        {ROOM_INTD,   "removing what a finished message left"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(i % 2 == 0 ? 0 : 4 * SEGMENT);
        plant(rows[i].room, old_id(&kit, 50 * HOUR_MS, 40 + i));
        if (at_start) {
            kit_close(&kit);
            if (!slices_start(&kit, 1, 0, 0))
                abort();
            sim_loop_advance(kit.loop, 1000);
        } else {
            advance(2 * HOUR_MS);
        }
        ok_named(files() == 0, spool_room(rows[i].room));
        is_number(count_lines(rows[i].says), 1, "one line");
        is_number(count_lines("01J"), 1, "and no other about it");
        kit_close(&kit);
    }
}

static void
test_strange_names(void)
{
    begin(0);
    plant_at("info/README");
    plant_at("info/core");
    plant_at("mess/.swp");
    advance(HOUR_MS + HOUR_MS / 2);
    is_number(count_lines("info/: 2 files that are no messages: left alone"), 1,
              "told");
    is_number(count_lines("mess/: 1 files that are no messages: left alone"), 1,
              "told");
    is_number(files(), 3, "and left alone");
    kit_close(&kit);
}

/* A daemon's own drafts, of whatever number of slices it was. */
static void
test_dead_drafts(void)
{
    begin(0);
    plant_at("pid/0000-1023.1700000000.0123456789abcdef.0");
    plant_at("pid/0512-1023.1700000000.0123456789abcdef.1");
    plant_at("pid/0000-0511.1700000000.0123456789abcdef.2");
    plant_at("pid/1700000000.0123456789abcdef.3");
    plant_at("pid/0000-9999.x");
    plant_at("pid/0000-1023");
    kit_close(&kit);
    if (!slices_start(&kit, 2, 1, 0))
        abort();
    is_number(sim_disk_count("/spool/pid"), 4, "who has our part is dead");
    is_number(count_lines("of a daemon that died: removed"), 2, "told");
    kit_close(&kit);
    if (!slices_start(&kit, 2, 0, 0))
        abort();
    is_number(sim_disk_count("/spool/pid"), 3, "the other's by its successor");
    kit_close(&kit);
}

/* And that is how they are named. */
static void
test_own_draft(void)
{
    struct outcome refusal;
    static char bytes[300000];
    memset(bytes, 'x', sizeof(bytes));
    begin(0);
    struct queue_draft *draft = queue_begin(kit.queue, 0, &refusal);
    if (draft == NULL || !queue_write(draft, text_of(bytes, sizeof(bytes))))
        abort();
    is_number(sim_disk_count("/spool/pid"), 1, "a draft");
    advance(3 * HOUR_MS);
    is_number(sim_disk_count("/spool/pid"), 1, "is not swept while it is written");
    sim_disk_restart();
    queue_discard(&draft);
    kit_close(&kit);
    if (!slices_start(&kit, 1, 0, 0))
        abort();
    is_number(sim_disk_count("/spool/pid"), 0, "at once when its daemon has died");
    kit_close(&kit);
}

/* --- What stays --------------------------------------------------------------------
 */

/* Mail in every state, for days. */
static void
test_living(int64_t journal_size)
{
    struct id ids[5];
    begin(journal_size);
    for (int i = 0; i < 5; i++) {
        static char large[20000];
        memset(large, 'x', sizeof(large));
        struct text content = i == 1 ? text_of(large, sizeof(large)) : TEXT("x\r\n");
        struct envelope *e = kit_accept(&kit, kit_envelope("s@x", one), content);
        ids[i] = e->id;
        if (i == 2 && queue_hold(kit.queue, e, "for a test", true) != 0)
            abort();
        if (i == 3)
            queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 99 * HOUR_MS, 1);
        else
            envelope_free(&e);
    }
    advance(1000);
    queue_park(kit.queue, ids[4], "for a test");
    buffer_clear(&kit.lines);
    kit.found_count = 0;
    size_t before = files(), corrupt = sim_disk_count("/spool/corrupt");
    advance(100 * HOUR_MS);
    is_number(files(), (int64_t)before, "nothing of it goes");
    is_number(sim_disk_count("/spool/corrupt"), (int64_t)corrupt, "nor is parked");
    is_number(kit.found_count, 0, "nor reported again");
    is_number(kit.lines.length, 0, "not a word");
    unsigned wrong = 0;
    for (int i = 0; i < 4; i++) {
        struct envelope *e = queue_load(kit.queue, ids[i]);
        wrong += e == NULL;
        envelope_free(&e);
    }
    is_number(wrong, 0, "all of it can be delivered");
    kit_close(&kit);
}

/* Others' slices are their daemons' business. */
static void
test_other_slices(void)
{
    sim_disk_reset();
    if (!slices_start(&kit, 2, 0, 4 * SEGMENT))
        abort();
    struct id theirs = old_id(&kit, 50 * HOUR_MS, UINT64_C(1) << 39);
    plant(ROOM_REMOTE, theirs);
    plant(ROOM_MESS, (struct id){theirs.time_ms, theirs.hash + 1});
    advance(40 * HOUR_MS);
    is_number(files(), 2, "left alone");
    kit_close(&kit);
}

/* --- Bites and faults --------------------------------------------------------------
 */

static void
test_many(void)
{
    enum { MANY = 3000 };
    begin(0);
    for (unsigned i = 0; i < MANY; i++) {
        plant(ROOM_REMOTE, old_id(&kit, 50 * HOUR_MS + i, i));
        plant(ROOM_MESS, old_id(&kit, 60 * HOUR_MS + i, i));
    }
    sim_disk_set_time(loop_now_ms(kit.loop) - 40 * HOUR_MS);
    sim_disk_count_anew();
    uint64_t most = 0, last = 0;
    for (int64_t ms = 0; ms < HOUR_MS + 60 * 1000; ms += 5) {
        if (ms == 0)
            sim_loop_advance(kit.loop, HOUR_MS - 2000);
        sim_loop_advance(kit.loop, 5);
        if (sim_disk_calls() - last > most)
            most = sim_disk_calls() - last;
        last = sim_disk_calls();
        if (ms > 10 * 1000)
            break;
    }
    is_number(sim_disk_count("/spool/remote"), 0, "all orphans have gone");
    ok_named(most < 8000, "some in each turn");
    printf("# %u calls in a turn at most\n", (unsigned)most);
    kit_close(&kit);
}

/* Whatever the disk does not answer, nothing goes that should not. */
static void
test_faults(void)
{
    unsigned wrong = 0, at = 0;
    for (bool failed = true; failed && at < 500; at++) {
        begin(0);
        struct envelope *e = kit_accept(&kit, kit_envelope("s@x", one), TEXT("x\r\n"));
        struct id id = e->id;
        queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 99 * HOUR_MS, 1);
        advance(1000);
        plant(ROOM_REMOTE, old_id(&kit, 50 * HOUR_MS, 1));
        plant(ROOM_MESS, old_id(&kit, 50 * HOUR_MS, 2));
        sim_disk_count_anew();
        sim_disk_fail_at(at + 1, EIO);
        advance(2 * HOUR_MS);
        failed = sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        e = queue_load(kit.queue, id);
        wrong += e == NULL;
        envelope_free(&e);
        kit_close(&kit);
    }
    printf("# %u calls\n", at);
    is_number(wrong, 0, "EIO at every call: mail stays");
    ok(at > 20);
}

int
main(void)
{
    test_injectors();
    test_ctime();
    test_orphans(true);
    test_orphans(false);
    test_strange_names();
    test_dead_drafts();
    test_own_draft();
    test_living(0);
    test_living(4 * SEGMENT);
    test_other_slices();
    test_many();
    test_faults();
    sim_disk_reset();
    return done();
}
