/* Leftovers of every kind: what goes, when, with which line; and what stays. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/recovery/clean.h"

#include "base/memory.h"
#include "queue/queue_operator.h"
#include "t/support/slices_kit.h"

#include <errno.h>

#define HOUR_MS (3600 * INT64_C(1000))

static const enum spool_dir dirs[] = {SPOOL_TODO,  SPOOL_INTD,   SPOOL_INFO,
                                      SPOOL_LOCAL, SPOOL_REMOTE, SPOOL_BOUNCE,
                                      SPOOL_HOLD,  SPOOL_DEFRAG, SPOOL_MESS};
enum { SPOOL_COUNT = sizeof(dirs) / sizeof(dirs[0]) };

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
plant(enum spool_dir dir, struct id id)
{
    char path[SPOOL_PATH_MAX];
    spool_path(dir, id, path);
    plant_at(path);
}

/* Last changed so long ago. */
static void
plant_aged(enum spool_dir dir, struct id id, int64_t age_ms)
{
    sim_disk_set_time(loop_now_ms(kit.loop) - age_ms);
    plant(dir, id);
    sim_disk_set_time(loop_now_ms(kit.loop));
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
    size_t count = sim_disk_count("/spool/pid");
    for (size_t i = 0; i < SPOOL_COUNT; i++) {
        char path[SPOOL_PATH_MAX];
        snprintf(path, sizeof(path), "/spool/%s", spool_dir_name(dirs[i]));
        count += sim_disk_count(path);
    }
    return count;
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

/* --- Removed files ----------------------------------------------------------------- */

/* S1, S2 and S3 of injectors: until 36 hours have passed since the last change. */
static void
test_injectors(void)
{
    begin(0);
    sim_disk_set_time(loop_now_ms(kit.loop));
    struct id s2 = old_id(&kit, 0, 5), s3 = old_id(&kit, 0, 6);
    plant_at("pid/1700000000.0123456789abcdef.0");
    plant(SPOOL_MESS, s2);
    plant(SPOOL_MESS, s3);
    plant(SPOOL_INTD, s3);
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
    plant(SPOOL_MESS, old_id(&kit, 100 * HOUR_MS, 5));
    advance(35 * HOUR_MS);
    is_number(files(), 1, "the name's age does not count");
    advance(3 * HOUR_MS);
    is_number(files(), 0, "the file's does");
    kit_close(&kit);
}

static const char *
verdict(unsigned has)
{
    const unsigned channels = SPOOL_BIT(SPOOL_LOCAL) | SPOOL_BIT(SPOOL_REMOTE) |
                              SPOOL_BIT(SPOOL_BOUNCE) | SPOOL_BIT(SPOOL_HOLD);
    if ((has & (SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO))) != 0)
        return "quarantined in corrupt/";
    if ((has & SPOOL_BIT(SPOOL_MESS)) != 0 && (has & channels) == 0)
        return "unfinished in mess/ for 36 hours: removed";
    return "removing files left by a finished message";
}

/* Every combination of files that makes no message; as many ids, one line each, but for
 * a mark alone. */
static void
test_orphans(bool at_start, int64_t journal_size)
{
    unsigned count = 0, wanted[3] = {0}, wrong = 0;
    begin(journal_size);
    for (unsigned mask = 1; mask < 1u << SPOOL_COUNT; mask++) {
        struct id id = old_id(&kit, 0, mask);
        unsigned has = 0;
        for (size_t i = 0; i < SPOOL_COUNT; i++)
            has |= (mask & (1u << i)) != 0 ? SPOOL_BIT(dirs[i]) : 0;
        if ((has & SPOOL_BIT(SPOOL_MESS)) != 0 &&
            (has & (SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO))) != 0)
            continue;
        for (size_t i = 0; i < SPOOL_COUNT; i++)
            if ((mask & (1u << i)) != 0)
                plant_aged(dirs[i], id, 37 * HOUR_MS);
        if (has == SPOOL_BIT(SPOOL_DEFRAG))
            continue; /* a hint goes without a word */
        wanted[verdict(has)[0] == 'q' ? 0 : verdict(has)[0] == 'u' ? 1 : 2]++;
        count++;
    }
    if (at_start) {
        kit_close(&kit);
        if (!slices_start(&kit, 1, 0, journal_size))
            abort();
        sim_loop_advance(kit.loop, 1000);
    } else {
        sim_loop_advance(kit.loop, HOUR_MS + 60 * 1000);
    }
    is_number(files(), 0, at_start ? "at start: all have gone" : "hourly: the same");
    is_number(count_lines("quarantined in corrupt/"), wanted[0], "quarantined");
    is_number(count_lines("unfinished in mess/ for 36 hours: removed"), wanted[1],
              "unfinished");
    is_number(count_lines("removing files left by a finished message"), wanted[2],
              "left");
    for (unsigned mask = 1; mask < 1u << SPOOL_COUNT; mask++) {
        char name[ID_LENGTH + 1];
        id_format(old_id(&kit, 0, mask), name);
        wrong += count_lines(name) > 1;
    }
    is_number(wrong, 0, "none with two lines");
    is_number(count_lines("queue: "), count, "one line each");
    is_number(kit.found_count, 0, "and none is mail");
    kit_close(&kit);
}

/* A file whose message has gone may be an injector's, while it is young. */
TEST(young_orphans)
{
    begin(4 * SEGMENT);
    for (unsigned i = 0; i < SPOOL_COUNT; i++)
        if (dirs[i] != SPOOL_TODO) /* every scan of it sees that */
            plant_aged(dirs[i], old_id(&kit, 100 * HOUR_MS, 50 + i), HOUR_MS);
    struct id mixed = old_id(&kit, 100 * HOUR_MS, 70);
    plant_aged(SPOOL_REMOTE, mixed, 100 * HOUR_MS);
    plant_aged(SPOOL_BOUNCE, mixed, HOUR_MS);
    advance(34 * HOUR_MS);
    is_number(files(), SPOOL_COUNT + 1,
              "young: all stay, and the youngest file counts");
    is_number(kit.lines.length, 0, "not a word");
    advance(3 * HOUR_MS);
    is_number(files(), 0, "old: all go");
    is_number(count_lines("queue: "), SPOOL_COUNT - 1,
              "one line each, none for a mark");
    kit_close(&kit);
}

/* --- The sweep alone ------------------------------------------------------------- */

struct alone {
    struct spool spool;
    struct loop *loop;
    struct journaled journaled;
    struct id_set seen;
    struct removal removal;
    struct slices slices;
    bool careful;
    struct clean clean;
    struct id suspects[12000];
    size_t count;
    int64_t first_ms, last_ms;
};

static void
on_suspect(void *context, struct id id)
{
    struct alone *a = context;
    a->last_ms = loop_now_ms(a->loop);
    if (a->count == 0)
        a->first_ms = a->last_ms;
    a->suspects[a->count++] = id;
}

/* Beside the daemon of `kit`, whose own sweep would come in its hour. */
static void
alone_start(struct alone *a)
{
    char error[200];
    begin(0);
    *a = (struct alone){.loop = kit.loop};
    if (spool_open(&a->spool, "/spool", false, kit.log, error, sizeof(error)) != 0)
        abort();
    slices_init(&a->slices, 1, 0);
    a->clean = (struct clean){.spool = &a->spool,
                              .loop = kit.loop,
                              .journaled = &a->journaled,
                              .seen = &a->seen,
                              .removal = &a->removal,
                              .slices = &a->slices,
                              .careful = &a->careful,
                              .suspect = on_suspect,
                              .context = a};
    queue_close(&kit.queue);
    clean_start(&a->clean);
}

static void
alone_stop(struct alone *a)
{
    clean_stop(&a->clean);
    removal_stop(&a->removal);
    id_set_free(&a->seen);
    spool_close(&a->spool);
    kit_close(&kit);
}

static bool
is_suspect(const struct alone *a, struct id id)
{
    for (size_t i = 0; i < a->count; i++)
        if (id_compare(a->suspects[i], id) == 0)
            return true;
    return false;
}

/* Ten on each side of 36 hours. */
TEST(age_of_suspects)
{
    enum { SIDE = 10, PAUSES = 10 };
    static struct alone a;
    unsigned wrong = 0;
    alone_start(&a);
    int64_t from_ms = loop_now_ms(kit.loop), look_ms = from_ms + HOUR_MS + PAUSES * 10;
    for (int i = -SIDE; i <= SIDE; i++) {
        sim_disk_set_time(look_ms - CLEAN_AGE_MS + i);
        plant(i % 2 != 0 ? SPOOL_REMOTE : SPOOL_MESS,
              (struct id){5, (uint64_t)(i + 50)});
    }
    advance(HOUR_MS + 1000);
    is_number(a.first_ms, look_ms, "looked at when the test believes");
    is_number(a.last_ms, look_ms, "all in one turn");
    for (int i = -SIDE; i <= SIDE; i++)
        wrong += is_suspect(&a, (struct id){5, (uint64_t)(i + 50)}) != (i < 0);
    is_number(wrong, 0, "36 hours and a millisecond is old, 36 hours is not");
    is_number(a.count, SIDE, "each is told once");
    alone_stop(&a);
}

TEST(age_of_drafts)
{
    enum { SIDE = 5 };
    static struct alone a;
    alone_start(&a);
    sim_loop_advance(kit.loop, 100);
    int64_t look_ms = loop_now_ms(kit.loop) - 100 + HOUR_MS + 10;
    for (int i = -SIDE; i <= SIDE; i++) {
        char path[SPOOL_PATH_MAX];
        sim_disk_set_time(look_ms - CLEAN_AGE_MS + i);
        snprintf(path, sizeof(path), "pid/1.0123456789abcdef.%d", i + SIDE);
        plant_at(path);
    }
    advance(HOUR_MS + 1000);
    is_number(sim_disk_count("/spool/pid"), SIDE + 1, "drafts: the same limit");
    is_number(count_lines("unfinished for 36 hours: removed"), SIDE, "one line each");
    ok(sim_disk_content("/spool/pid/1.0123456789abcdef.4").at == NULL);
    ok(sim_disk_content("/spool/pid/1.0123456789abcdef.5").at != NULL);
    alone_stop(&a);
}

TEST(age_of_unfinished)
{
    static struct alone a;
    struct id id = {1, 1};
    alone_start(&a);
    sim_disk_set_time(1000);
    plant(SPOOL_MESS, id);
    sim_disk_set_time(2000);
    plant(SPOOL_INTD, id);
    clean_leftover(&a.spool, id, 2000 + (int64_t)CLEAN_AGE_MS);
    is_number(files(), 2, "36 hours: left");
    is_number(count_lines("left for its injector"), 1, "told");
    clean_leftover(&a.spool, id, 2001 + (int64_t)CLEAN_AGE_MS);
    is_number(files(), 0, "and a millisecond: removed");
    is_number(count_lines("unfinished in mess/ for 36 hours: removed"), 1, "told");
    alone_stop(&a);
}

/* Messages that the daemon knows end in their own way. */
TEST(known)
{
    static struct alone a;
    struct id in_todo = {1, 1}, ending = {1, 2}, moving = {1, 3}, other = {1, 4};
    struct journaled_message *m = memory_new(sizeof(*m));
    alone_start(&a);
    m->id = moving;
    HASH_ADD(hh, a.journaled.messages, id, sizeof(m->id), m);
    id_set_add(&a.seen, in_todo);
    removal_add(&a.removal, ending, 1);
    plant_aged(SPOOL_TODO, in_todo, 50 * HOUR_MS);
    plant_aged(SPOOL_MESS, ending, 50 * HOUR_MS);
    plant_aged(SPOOL_MESS, moving, 50 * HOUR_MS);
    plant_aged(SPOOL_REMOTE, moving, 50 * HOUR_MS);
    plant_aged(SPOOL_MESS, other, 50 * HOUR_MS);
    sim_loop_advance(kit.loop, HOUR_MS + 1000);
    is_number(a.count, 1, "seen, ending and young ones are no suspects");
    ok(is_suspect(&a, other));
    HASH_DEL(a.journaled.messages, m);
    free(m);
    alone_stop(&a);
}

/* Until each journal is adopted, only drafts are swept. */
TEST(careful)
{
    static struct alone a;
    alone_start(&a);
    a.careful = true;
    plant_aged(SPOOL_MESS, (struct id){1, 1}, 50 * HOUR_MS);
    sim_disk_set_time(0);
    plant_at("pid/1.2.3");
    sim_loop_advance(kit.loop, HOUR_MS + 1000);
    is_number(a.count, 0, "careful: no suspects");
    is_number(sim_disk_count("/spool/pid"), 0, "but drafts go");
    a.careful = false;
    sim_loop_advance(kit.loop, HOUR_MS);
    is_number(a.count, 1, "later there are");
    alone_stop(&a);
}

/* A name that was listed, and whose message came to its end or its mess meanwhile. */
TEST(old_listing)
{
    static struct alone a;
    struct id gone = {1, 1}, whole = {1, 2};
    alone_start(&a);
    plant_aged(SPOOL_INFO, gone, 50 * HOUR_MS);
    plant_aged(SPOOL_INFO, whole, 50 * HOUR_MS);
    sim_loop_advance(kit.loop, HOUR_MS + 85);
    is_number((int64_t)a.clean.names.count, 2, "both have been listed");
    (void)!spool_remove(&a.spool, SPOOL_INFO, gone);
    plant_aged(SPOOL_MESS, whole, 50 * HOUR_MS);
    sim_loop_advance(kit.loop, 1000);
    is_number(a.count, 0, "asked again before they are suspects");
    alone_stop(&a);
}

/* More names than a turn lists: the others wait for the next turns. */
TEST(large_directory)
{
    static struct alone a;
    enum { MANY = 12000 };
    alone_start(&a);
    for (uint64_t i = 1; i <= MANY; i++)
        plant_aged(SPOOL_MESS, (struct id){i, 1}, 50 * HOUR_MS);
    sim_loop_advance(kit.loop, HOUR_MS + 15);
    ok_named(a.clean.names.count > 0 && a.clean.names.count < MANY,
             "a turn lists a part of a large directory");
    sim_loop_advance(kit.loop, HOUR_MS / 2);
    is_number(a.count, MANY, "in the end each name is a suspect once");
    is_number((int64_t)id_list_memory(&a.clean.names), 0, "and nothing is kept");
    alone_stop(&a);
}

TEST(strange_names)
{
    begin(0);
    plant_at("info/README");
    plant_at("info/core");
    plant_at("mess/.swp");
    struct disk *disk;
    if (disk_open(&disk, "/spool", false) != 0 ||
        disk_make_directory(disk, "pid/odd", 0700) != 0)
        abort();
    disk_close(&disk);
    advance(HOUR_MS + HOUR_MS / 2);
    is_number(count_lines("pid/: 1 files that are not messages: ignored"), 1,
              "a directory among drafts");
    is_number(count_lines("info/: 2 files that are not messages: ignored"), 1, "told");
    is_number(count_lines("mess/: 1 files that are not messages: ignored"), 1, "told");
    is_number(files(), 3, "and left alone");
    kit_close(&kit);
}

/* A daemon's own drafts, for any number of slices then. */
TEST(dead_drafts)
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
TEST(own_draft)
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

/* --- Kept files -------------------------------------------------------------------- */

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
        struct envelope *e = queue_kit_accept(&kit, kit_envelope("s@x", one), content);
        ids[i] = e->id;
        if (i == 2 && queue_hold(kit.queue, e, "for a test", true) != 0)
            abort();
        if (i == 3)
            queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 99 * HOUR_MS, 1);
        else
            envelope_free(&e);
    }
    advance(1000);
    queue_quarantine(kit.queue, ids[4], "for a test");
    buffer_clear(&kit.lines);
    kit.found_count = 0;
    size_t before = files(), corrupt = sim_disk_count("/spool/corrupt");
    advance(100 * HOUR_MS);
    is_number(files(), (int64_t)before, "nothing of it goes");
    is_number(sim_disk_count("/spool/corrupt"), (int64_t)corrupt, "nor is quarantined");
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
    plant(SPOOL_REMOTE, theirs);
    plant(SPOOL_MESS, (struct id){theirs.time_ms, theirs.hash + 1});
    advance(40 * HOUR_MS);
    is_number(files(), 2, "left alone");
    kit_close(&kit);
}

/* --- Bites and faults --------------------------------------------------------------
 */

/* So many that a turn would be long; others are served meanwhile. */
static void
test_many(void)
{
    enum { MANY = 5000 };
    char path[SPOOL_PATH_MAX];
    begin(4 * SEGMENT);
    int fifo = sim_disk_fifo_reader("/spool/lock/trigger");
    for (unsigned i = 0; i < MANY; i++) {
        plant_aged(SPOOL_REMOTE, old_id(&kit, 0, i), 40 * HOUR_MS);
        plant_aged(SPOOL_MESS, old_id(&kit, 1000, i), 40 * HOUR_MS);
        plant_aged(SPOOL_MESS, old_id(&kit, 2000, i), HOUR_MS);
        snprintf(path, sizeof(path), "pid/1.2.%u", i);
        sim_disk_set_time(0);
        plant_at(path);
    }
    sim_disk_set_time(loop_now_ms(kit.loop));
    sim_loop_advance(kit.loop, HOUR_MS - 5000);
    uint64_t most = 0, last = sim_disk_calls();
    unsigned steps = 0;
    for (; steps < 60000 && (steps % 100 != 0 || files() > MANY); steps++) {
        sim_loop_advance(kit.loop, 2);
        if (sim_disk_calls() - last > most)
            most = sim_disk_calls() - last;
        last = sim_disk_calls();
    }
    is_number(files(), MANY, "10,000 leftovers and 5000 drafts have gone");
    is_number(sim_disk_count("/spool/mess"), MANY, "young ones not");
    ok_named(most < 900, "some in each turn");
    printf("# %u calls between two timers at most, %u ms\n", (unsigned)most,
           steps * 2 - 5000);
    is_number(sim_disk_fifo_reader("/spool/lock/trigger"), fifo, "the FIFO stays");
    kit_close(&kit);
}

/* Mail in several states, and what an injector is at. */
struct living {
    struct id ids[3];
};

static void
make_living(struct living *l)
{
    static char large[20000];
    memset(large, 'x', sizeof(large));
    for (unsigned i = 0; i < 3; i++) {
        struct text content = i == 1 ? text_of(large, sizeof(large)) : TEXT("x\r\n");
        struct envelope *e = queue_kit_accept(&kit, kit_envelope("s@x", one), content);
        l->ids[i] = e->id;
        if (i == 0)
            queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 99 * HOUR_MS, 1);
        else if (i == 2 && queue_hold(kit.queue, e, "for a test", true) != 0)
            abort();
        else
            envelope_free(&e);
        if (e != NULL)
            envelope_free(&e);
    }
    advance(1000);
}

static unsigned
count_dead(const struct living *l)
{
    unsigned dead = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct envelope *e = queue_load(kit.queue, l->ids[i]);
        int content = e != NULL ? queue_content_open(kit.queue, e) : -1;
        dead += content < 0;
        if (content >= 0)
            queue_content_close(kit.queue, content);
        envelope_free(&e);
    }
    return dead;
}

/* With any error of the disk, nothing goes that should not. */
static void
test_faults(int64_t journal_size, int error)
{
    unsigned wrong = 0, left = 0, at = 0;
    for (bool failed = true; failed && at < 1000; at++) {
        struct living living;
        begin(journal_size);
        sim_disk_set_time(loop_now_ms(kit.loop));
        make_living(&living);
        size_t mail = files();
        plant_aged(SPOOL_MESS, old_id(&kit, 50 * HOUR_MS, 7), HOUR_MS);
        plant_at("pid/1.2.3");
        size_t young = files();
        plant_aged(SPOOL_REMOTE, old_id(&kit, 50 * HOUR_MS, 1), 50 * HOUR_MS);
        plant_aged(SPOOL_MESS, old_id(&kit, 50 * HOUR_MS, 2), 50 * HOUR_MS);
        plant_aged(SPOOL_INTD, old_id(&kit, 50 * HOUR_MS, 2), 50 * HOUR_MS);
        plant_aged(SPOOL_INFO, old_id(&kit, 50 * HOUR_MS, 3), 50 * HOUR_MS);
        sim_disk_count_anew();
        sim_disk_fail_at(at + 1, error);
        sim_loop_advance(kit.loop, HOUR_MS + 60 * 1000);
        failed = sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        wrong += files() < young || young != mail + 2;
        wrong += count_dead(&living);
        sim_loop_advance(kit.loop, 2 * HOUR_MS);
        left += files() != young;
        wrong += count_dead(&living);
        kit_close(&kit);
    }
    printf("# %u calls\n", at);
    is_number(wrong, 0, "a fault at every call: mail and what is young stay");
    is_number(left, 0, "and the next hours take the rest");
    ok(at > 20 && at < 1000);
}

/* An injector at work while others sweep: never half there. */
TEST(injector_at_work)
{
    static char large[300000];
    struct outcome refusal;
    struct kit injector;
    memset(large, 'x', sizeof(large));
    begin(4 * SEGMENT);
    sim_disk_set_time(loop_now_ms(kit.loop));
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    struct queue_draft *draft = queue_begin(injector.queue, 0, &refusal);
    struct envelope *e = kit_envelope("s@x", one);
    if (draft == NULL || !queue_write(draft, text_of(large, sizeof(large))))
        abort();
    advance(24 * HOUR_MS);
    is_number(sim_disk_count("/spool/pid"), 1, "its draft is there after a day");
    queue_name(draft, e);
    struct id id = e->id;
    advance(3 * HOUR_MS);
    is_number(sim_disk_count("/spool/mess"), 1, "its content after another");
    queue_commit(&draft, &e, kit_stored, &injector);
    ok(!injector.refused && injector.answers == 1);
    advance(HOUR_MS);
    is_number(kit.found_count, 1, "then it is mail, reported once");
    e = queue_load(kit.queue, id);
    ok(e != NULL && kit_content_is(&kit, e, text_of(large, sizeof(large))));
    envelope_free(&e);
    is_number(count_lines("removed"), 0, "nothing was swept");
    kit_close(&injector);
    kit_close(&kit);
}

/* --- A daemon that died -------------------------------------------------------------- */

static struct text
content_of(size_t size)
{
    static char bytes[100 * 1024];
    memset(bytes, 'x', sizeof(bytes));
    return text_of(bytes, size);
}

/* Kills the process at its n-th call of the disk while it stores a message, and starts the
 * daemon. False: it had no such call. */
static bool
die_storing(bool injector, size_t size, uint64_t n)
{
    struct kit k;
    begin(0);
    if (injector) {
        kit_close(&kit);
        if (kit_open_injector(&k, "/spool") != 0)
            abort();
    }
    struct kit *storing = injector ? &k : &kit;
    struct envelope *e = kit_envelope("s@x", one);
    sim_disk_count_anew();
    sim_disk_die_at(n);
    if (!kit_commit(storing, e, content_of(size)))
        envelope_free(&e);
    if (!injector)
        kit_turns(storing, 3);
    bool died = sim_disk_is_dead();
    kit_close(storing);
    sim_disk_restart();
    if (!slices_start(&kit, 1, 0, 0))
        abort();
    sim_loop_advance(kit.loop, 1000);
    return died;
}

/* Files without a 250 go with the next start; what may have one is a message. */
static void
test_killed(size_t size)
{
    unsigned wrong = 0, gone = 0;
    uint64_t n = 1;
    for (bool died = true; died; n++) {
        died = die_storing(false, size, n);
        size_t todo = sim_disk_count("/spool/todo"),
               mess = sim_disk_count("/spool/mess");
        bool good = todo == kit.found_count && mess == todo &&
                    sim_disk_count("/spool/intd") == todo &&
                    sim_disk_count("/spool/pid") == 0;
        wrong += !good || todo > 1 || (!died && todo != 1);
        gone += count_lines("unfinished in mess/ of a daemon that died: removed");
        if (!good)
            printf("# call %d: todo %zu, mess %zu, found %zu\n", (int)n, todo, mess,
                   kit.found_count);
        kit_close(&kit);
    }
    is_number(wrong, 0, "killed at any call: nothing is left but the message");
    ok(n > 5 && gone > 2);
}

/* One of the daemon's user may still be at work. */
static void
test_killed_injector(void)
{
    unsigned kept = 0, wrong = 0;
    uint64_t n = 1;
    for (bool died = true; died; n++) {
        died = die_storing(true, 100, n);
        size_t todo = sim_disk_count("/spool/todo");
        kept += todo == 0 && sim_disk_count("/spool/mess") == 1;
        wrong += count_lines("removed") > 0;
        kit_close(&kit);
    }
    ok(kept > 2);
    is_number(wrong, 0, "files of an injector stay");
}

/* The listing sees what this process writes meanwhile. */
static void
test_draft_while_listed(void)
{
    struct outcome refusal;
    sim_disk_reset();
    struct queue_settings settings = {.spool = "/spool", .slices = 1};
    if (kit_open_with(&kit, &settings) != 0)
        abort();
    struct queue_draft *draft = queue_begin(kit.queue, 5, &refusal);
    struct envelope *e = kit_envelope("s@x", one);
    (void)!queue_write(draft, TEXT("hello"));
    queue_name(draft, e);
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/mess"), 1, "a draft with a name stays");
    queue_commit(&draft, &e, kit_stored, &kit);
    sim_loop_advance(kit.loop, 1000);
    ok(!kit.refused && kit.stored != NULL &&
       kit_content_is(&kit, kit.stored, TEXT("hello")));
    kit_close(&kit);
}

/* So does that of another daemon, which lives; when it has died its next one removes it. */
static void
test_draft_of_other_slice(void)
{
    struct outcome refusal;
    static struct kit other;
    sim_disk_reset();
    if (!slices_start(&other, 2, 1, 0))
        abort();
    struct queue_draft *draft = queue_begin(other.queue, 5, &refusal);
    struct envelope *e = kit_envelope("s@x", one);
    (void)!queue_write(draft, TEXT("hello"));
    queue_name(draft, e);
    if (!slices_start(&kit, 2, 0, 0))
        abort();
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/mess"), 1, "a draft of another slice stays");
    kit_close(&kit);
    envelope_free(&e);
    sim_disk_count_anew();
    sim_disk_die_at(1);
    queue_discard(&draft);
    kit_close(&other);
    sim_disk_restart();
    is_number(sim_disk_count("/spool/mess"), 1, "it dies");
    if (!slices_start(&kit, 4, 1, 0))
        abort();
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/mess"), 1, "and no daemon of its id runs");
    kit_close(&kit);
    if (!slices_start(&kit, 1, 0, 4 * SEGMENT))
        abort();
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/mess"), 0, "until one does, of other settings");
    kit_close(&kit);
}

/* A large content of the journal may belong to a record that was damaged. */
static void
test_large_of_journal(void)
{
    struct outcome refusal;
    begin(4 * SEGMENT);
    struct queue_draft *draft = queue_begin(kit.queue, 0, &refusal);
    struct envelope *e = kit_envelope("s@x", one);
    (void)!queue_write(draft, content_of(20000));
    queue_name(draft, e);
    envelope_free(&e);
    sim_disk_count_anew();
    sim_disk_die_at(1);
    queue_discard(&draft);
    kit_close(&kit);
    sim_disk_restart();
    if (!slices_start(&kit, 1, 0, 4 * SEGMENT))
        abort();
    sim_disk_set_time(loop_now_ms(kit.loop));
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/mess"), 1, "large content of the journal stays");
    advance(38 * HOUR_MS);
    is_number(sim_disk_count("/spool/mess"), 0, "for 36 hours");
    kit_close(&kit);
}

int
main(void)
{
    test_killed(100);
    test_killed(80 * 1024);
    test_killed_injector();
    test_draft_while_listed();
    test_draft_of_other_slice();
    test_large_of_journal();
    test_injectors();
    test_ctime();
    for (int i = 0; i < 4; i++)
        test_orphans(i % 2 == 0, i < 2 ? 0 : 4 * SEGMENT);
    tap_tests("");
    test_living(0);
    test_living(4 * SEGMENT);
    test_other_slices();
    test_many();
    test_faults(0, EIO);
    test_faults(4 * SEGMENT, EIO);
    test_faults(4 * SEGMENT, ENOSPC);
    sim_disk_reset();
    return done();
}
