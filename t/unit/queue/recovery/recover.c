/* Start-up as recovery: spools made by hand, leftovers, triggers, slices. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "queue/recovery/recover.h"

#include "queue/recovery/clean.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { HOUR_MS = 3600 * 1000 };

static const char *const two[] = {"a@example.org", "b@example.net", NULL};
static struct kit kit; /* one at a time */

static void
path_of(const char *dir, struct id id, char out[100])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(out, 100, "/spool/%s/%s", dir, name);
}

static void
put(const char *path, struct text content)
{
    struct disk *disk;
    if (disk_open(&disk, "/spool", true) != 0)
        abort();
    int file = disk_create(disk, path, 0600);
    if (file < 0 || disk_write(disk, file, content) != 0 || disk_sync(disk, file) != 0)
        ok_named(false, path);
    else
        disk_close_file(disk, file);
    disk_close(&disk);
}

static void
put_in(const char *dir, struct id id, struct text content)
{
    char path[100];
    path_of(dir, id, path);
    put(path, content);
}

static void
take_away(const char *dir, struct id id)
{
    char path[100];
    struct disk *disk;
    path_of(dir, id, path);
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    is_number(disk_unlink(disk, path), 0, path);
    disk_close(&disk);
}

static bool
is_in(const char *dir, struct id id)
{
    char path[100];
    path_of(dir, id, path);
    return sim_disk_content(path).at != NULL;
}

/* A fresh world with an empty spool, closed. */
static void
fresh(void)
{
    sim_disk_reset();
    if (queue_kit_open(&kit, "/spool") != 0)
        ok_named(false, kit.error);
    kit_close(&kit);
}

/* Opens, and lets the recovery finish, at this time after the start of the simulation.
 */
static void
start_at(int64_t after_ms)
{
    sim_disk_set_time(SIM_WALL_START_MS + after_ms);
    if (queue_kit_open(&kit, "/spool") != 0)
        ok_named(false, kit.error);
    sim_loop_step_wall(kit.loop, after_ms);
    sim_loop_advance(kit.loop, 20);
}

static struct id
an_id(int64_t age_ms, unsigned char n)
{
    return id_make((uint64_t)(SIM_WALL_START_MS - age_ms),
                   (const unsigned char[]){n, (unsigned char)(n * 77), 3, 4, 5});
}

/* A message in S4, or in S5 with the first recipient done; the queue is closed again.
 */
static struct id
make_message(bool preprocessed, struct buffer *todo)
{
    if (queue_kit_open(&kit, "/spool") != 0)
        ok_named(false, kit.error);
    struct envelope *e =
        queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("content\r\n"));
    struct id id = e->id;
    char path[100];
    path_of("todo", id, path);
    if (todo != NULL && !buffer_add(todo, sim_disk_content(path)))
        abort();
    if (preprocessed) {
        queue_settle(kit.queue, e, 0, NULL);
        queue_defer(kit.queue, &e, SIM_WALL_START_MS + 5000, 2);
        kit_turns(&kit, 1);
    } else {
        envelope_free(&e);
    }
    kit_close(&kit);
    return id;
}

/* --- Leftovers ------------------------------------------------------------------- */

TEST(leftovers)
{
    struct id s2 = an_id(HOUR_MS, 1), s3 = an_id(HOUR_MS, 2);
    fresh();
    put_in("mess", s2, TEXT("half a mess"));
    put_in("mess", s3, TEXT("a message"));
    put_in("intd", s3, TEXT("half an envelope"));
    put("pid/1750000000.1.1", TEXT("draft"));
    start_at(35 * HOUR_MS);
    is_number(kit.found_count, 0, "S2 and S3 are no messages");
    ok_named(is_in("mess", s2) && is_in("mess", s3) && is_in("intd", s3),
             "after 35 hours an injector may still be at work");
    ok(sim_disk_content("/spool/pid/1750000000.1.1").at != NULL);
    ok(kit_logged(&kit, "left for its injector"));
    sim_disk_set_time(SIM_WALL_START_MS + 36 * HOUR_MS);
    put("pid/1750000000.1.2", TEXT("young draft"));
    sim_loop_advance(kit.loop, 2 * HOUR_MS);
    ok_named(!is_in("mess", s2) && !is_in("mess", s3) && !is_in("intd", s3),
             "the hourly sweep removes them after 36");
    ok(sim_disk_content("/spool/pid/1750000000.1.1").at == NULL);
    ok_named(sim_disk_content("/spool/pid/1750000000.1.2").at != NULL,
             "what is young stays");
    ok(kit_logged(&kit, "36 hours: removed"));
    kit_close(&kit);

    put_in("mess", s2, TEXT("half a mess"));
    sim_disk_restart();
    start_at(73 * HOUR_MS);
    ok_named(!is_in("mess", s2), "a start removes old ones at once");
    is_number(sim_disk_count("/spool/pid"), 0, "drafts too");
    put_in("mess", s3, TEXT("restored from a copy, with an old name"));
    sim_loop_advance(kit.loop, 3 * HOUR_MS);
    ok_named(is_in("mess", s3), "the ctime counts, not the name");
    kit_close(&kit);
}

TEST(strays)
{
    static const char *const dirs[] = {"intd",   "local", "remote",
                                        "bounce", "hold",  "defrag"};
    struct id id = an_id(0, 9);
    for (size_t i = 0; i < 6; i++) {
        fresh();
        put_in(dirs[i], id, TEXT("x"));
        start_at(0);
        ok_named(!is_in(dirs[i], id), dirs[i]);
        is_number(kit.found_count + sim_disk_count("/spool/corrupt"), 0,
                  "alone it is nothing, and goes");
        kit_close(&kit);
    }
    for (size_t i = 1; i < 5; i++) {
        fresh();
        put_in(dirs[i], id, TEXT("x"));
        put_in("mess", id, TEXT("x"));
        start_at(0);
        ok_named(!is_in(dirs[i], id) && !is_in("mess", id),
                 "with mess it is what a finished message left");
        kit_close(&kit);
    }
    fresh();
    put_in("defrag", id, TEXT(""));
    put_in("mess", id, TEXT("x"));
    start_at(0);
    ok_named(!is_in("defrag", id) && is_in("mess", id),
             "a mark tells nothing of a mess: that may be an injector's");
    kit_close(&kit);
    fresh();
    put("mess/README", TEXT("x"));
    put("todo/01JD3ZK5Q8-9F3K2C7a", TEXT("x"));
    start_at(0);
    is_number(kit.found_count, 0, "strange names are no messages");
    ok(sim_disk_content("/spool/mess/README").at != NULL &&
       kit_logged(&kit, "mess/: 1 files that are not messages"));
    kit_close(&kit);
}

/* --- Damage ---------------------------------------------------------------------- */

static void
expect_quarantined_at_start(const char *name)
{
    start_at(0);
    ok_named(kit.found_count == 0 && queue_health(kit.queue).quarantined == 1, name);
    kit_close(&kit);
    sim_disk_restart();
    start_at(0);
    ok_named(kit.found_count == 0 && queue_health(kit.queue).quarantined == 0,
             "and the next start is calm");
    kit_close(&kit);
}

static void
expect_quarantined_at_load(struct id id, const char *name)
{
    start_at(0);
    is_number(kit.found_count, 1, "it is found");
    ok_named(queue_load(kit.queue, id) == NULL && queue_health(kit.queue).quarantined == 1,
             name);
    ok_named(sim_disk_count("/spool/corrupt") >= 3, "nothing of it is deleted");
    ok_named(queue_load(kit.queue, id) == NULL && queue_health(kit.queue).quarantined == 1,
             "once");
    kit_close(&kit);
}

static void
damage(const char *dir, struct id id, size_t offset)
{
    char path[100];
    path_of(dir, id, path);
    ok_named(sim_disk_damage(path, offset), path);
}

TEST(damage)
{
    fresh();
    struct id id = make_message(false, NULL);
    take_away("mess", id);
    expect_quarantined_at_start("todo without mess is quarantined");
    fresh();
    id = make_message(true, NULL);
    take_away("mess", id);
    expect_quarantined_at_start("info without mess is quarantined");
    is_number(sim_disk_count("/spool/corrupt"), 4, "info, local, remote and a note");

    static const char *const dirs[] = {"info", "local", "remote", "mess"};
    for (size_t i = 0; i < 4; i++) {
        fresh();
        id = make_message(true, NULL);
        damage(dirs[i], id, i == 3 ? 3 : 70);
        expect_quarantined_at_load(id, "a damaged S5 is quarantined");
    }
    for (size_t i = 1; i < 3; i++) {
        fresh();
        id = make_message(true, NULL);
        take_away(dirs[i], id);
        expect_quarantined_at_load(id, "a missing channel is damage");
    }
    fresh();
    id = make_message(false, NULL);
    damage("todo", id, 70);
    expect_quarantined_at_load(id, "a damaged S4 is quarantined");
    fresh();
    id = make_message(true, NULL);
    damage("info", id, ENVELOPE_DUE_OFFSET + 3);
    start_at(0);
    ok_named(kit.found_count == 1 && kit.found[0].due_ms == 0,
             "a torn due time is now");
    struct envelope *e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 1, "and no damage");
    envelope_free(&e);
    kit_close(&kit);
}

/* A call of the disk fails, or the power, while a damaged message goes to corrupt/. Two
 * days later its content is there, with all else that was left of it. */
static unsigned
quarantine_halfway(uint64_t call, bool power)
{
    char name[ID_LENGTH + 1], in_corrupt[100], envelope[100];
    fresh();
    struct id id = make_message(false, NULL);
    id_format(id, name);
    snprintf(in_corrupt, sizeof(in_corrupt), "/spool/corrupt/%s.mess", name);
    snprintf(envelope, sizeof(envelope), "/spool/corrupt/%s.todo", name);
    damage("todo", id, 70);
    start_at(0);
    sim_disk_count_anew();
    if (power)
        sim_disk_die_at(call);
    else
        sim_disk_fail_at(call, ENOSPC);
    ok(queue_load(kit.queue, id) == NULL);
    unsigned calls = (unsigned)sim_disk_calls();
    kit_close(&kit);
    if (power)
        sim_disk_power_cut();
    sim_disk_fail_at(0, 0);
    start_at(48 * HOUR_MS);
    (void)queue_load(kit.queue, id);
    kit_close(&kit);
    start_at(96 * HOUR_MS);
    ok_named(sim_disk_content(in_corrupt).length == 9 &&
                 sim_disk_content(envelope).at != NULL,
             "it is in corrupt/, content and envelope");
    kit_close(&kit);
    return calls;
}

TEST(quarantined_halfway)
{
    for (unsigned power = 0; power < 2; power++) {
        unsigned calls = quarantine_halfway(0, power != 0);
        for (uint64_t call = 1; call <= calls; call++)
            (void)quarantine_halfway(call, power != 0);
    }
}

/* --- Between S4 and S5 ----------------------------------------------------------- */

TEST(conflicts)
{
    FIXTURE(buffer, todo, buffer_init, buffer_free, 100000);
    fresh();
    struct id id = make_message(true, &todo);
    put_in("todo", id, buffer_text(&todo));
    put_in("intd", id, buffer_text(&todo));
    start_at(0);
    ok_named(kit.found_count == 1 && kit.found[0].attempts == 2,
             "a whole S5 wins over todo");
    ok(!is_in("todo", id) && !is_in("intd", id));
    struct envelope *e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->recipients[0].done, "with its marks");
    envelope_free(&e);
    kit_close(&kit);

    static const char *const dirs[] = {"info", "local", "remote"};
    for (size_t i = 0; i < 3; i++) {
        put_in("todo", id, buffer_text(&todo));
        sim_disk_restart();
        if (i < 2)
            damage(dirs[i], id, 70);
        else
            take_away(dirs[i], id);
        start_at(0);
        is_number(kit.found_count, 1, "todo wins over a broken S5");
        ok_named(is_in("todo", id) && !is_in("info", id) && !is_in("local", id) &&
                     !is_in("remote", id),
                 dirs[i]);
        e = queue_load(kit.queue, id);
        ok(e != NULL && !e->storage.preprocessed && e->delivery.done == 0);
        envelope_free(&e);
        kit_close(&kit);
        fresh();
        buffer_clear(&todo);
        id = make_message(true, &todo);
    }
    put_in("intd", id, buffer_text(&todo));
    start_at(0);
    ok_named(!is_in("intd", id) && kit.found_count == 1, "an intd beside S5 goes");
    kit_close(&kit);
}

/* --- Many ------------------------------------------------------------------------ */

TEST(slices_of_turns)
{
    enum { MANY = 1200 };
    fresh();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    for (unsigned i = 0; i < MANY; i++) {
        struct envelope *e = queue_kit_accept(&kit, kit_envelope("", two), TEXT("x"));
        envelope_free(&e);
    }
    kit_close(&kit);
    sim_disk_restart();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    is_number(kit.found_count, 0, "nothing inside queue_open");
    kit_turns(&kit, 1);
    ok_named(kit.found_count > 0 && kit.found_count <= 500,
             "a turn reports at most 500");
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("", two), TEXT("young"));
    ok_named(e != NULL, "mail is taken meanwhile");
    sim_loop_advance(kit.loop, 10);
    is_number(kit.found_count, MANY, "all are found, and the young one is not");
    ok(kit_entry(&kit, e->id) == NULL);
    bool ordered = true;
    for (size_t i = 1; i < kit.found_count; i++)
        ordered &= id_compare(kit.found[i - 1].id, kit.found[i].id) < 0;
    ok_named(ordered, "oldest first");
    sim_loop_advance(kit.loop, 2 * HOUR_MS);
    is_number(kit.found_count, MANY, "and never again");
    envelope_free(&e);
    kit_close(&kit);
}

/* Due times come from the device, more at a time than are asked for together, for two
 * kinds of messages. */
TEST(cold)
{
    enum { MANY = 130 };
    struct id ids[MANY];
    unsigned wrong = 0;
    fresh();
    for (unsigned i = 0; i < MANY; i++) {
        ids[i] = make_message(i % 3 > 0, NULL);
        if (i % 3 == 2)
            put_in("defrag", ids[i], TEXT(""));
    }
    sim_disk_restart();
    sim_disk_set_cold(true);
    start_at(0);
    is_number(kit.found_count, MANY, "what is not in memory is found");
    for (unsigned i = 0; i < MANY; i++) {
        const struct queue_entry *entry = kit_entry(&kit, ids[i]);
        wrong += entry == NULL || entry->attempts != (i % 3 > 0 ? 2 : 0) ||
                 (i % 3 > 0 && entry->due_ms != SIM_WALL_START_MS + 5000);
    }
    is_number(wrong, 0, "each with its due time");
    for (size_t i = 1; i < kit.found_count; i++)
        wrong += i != MANY / 3 &&
                 id_compare(kit.found[i - 1].id, kit.found[i].id) > 0;
    is_number(wrong, 0, "fragments and others in their order");
    size_t open = sim_disk_open_files();
    sim_disk_set_cold(false);
    kit_close(&kit);
    sim_disk_restart();
    start_at(0);
    is_number((int64_t)open, (int64_t)sim_disk_open_files(), "no file stays open");
    kit_close(&kit);
}

/* A directory of more names than a turn lists: the others wait for the next turns. */
enum { STRANGE = 12000 };

static void
put_strange(const char *dir)
{
    struct disk *disk;
    char path[40];
    if (disk_open(&disk, "/spool", true) != 0)
        abort();
    for (unsigned i = 0; i < STRANGE; i++) {
        snprintf(path, sizeof(path), "%s/strange%u", dir, i);
        disk_close_file(disk, disk_create(disk, path, 0600));
    }
    disk_close(&disk);
}

TEST(large_directory)
{
    fresh();
    struct id old = make_message(false, NULL), fragment = make_message(true, NULL);
    put_in("defrag", fragment, TEXT(""));
    put_strange("info");
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    kit_turns(&kit, 2);
    is_number(kit.found_count, 0, "nothing is judged by a partial listing");
    ok_named(!queue_has_found_all(kit.queue), "nor is all found");
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("", two), TEXT("young"));
    ok_named(e != NULL, "mail is taken between its pieces");
    sim_loop_advance(kit.loop, 20);
    is_number(kit.found_count, 2, "all are found, and the young one is not");
    ok_named(kit_entry(&kit, old) != NULL && kit_entry(&kit, fragment) != NULL,
             "those that were there");
    ok_named(id_compare(kit.found[0].id, fragment) == 0, "the marked one before older ones");
    ok_named(kit_logged(&kit, "info/: 12000 files that are not messages"),
             "each name was met once");
    ok_named(queue_has_found_all(kit.queue), "and that was all");
    envelope_free(&e);
    kit_close(&kit);
}

static const struct queue_settings journaled = {.spool = "/spool",
                                                .slices = 1,
                                                .journal_size = 4 * 65536,
                                                .journal_segment = 65536,
                                                .journal_message_max = 8192};

/* A message of the journal whose files are whole, in the moment before MOVED is written. */
static struct id
make_moved(const struct queue_settings *settings)
{
    sim_disk_reset();
    if (kit_open_with(&kit, settings) != 0)
        abort();
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("x"));
    struct id id = e->id;
    queue_defer(kit.queue, &e, 1000, 1);
    kit_turns(&kit, 2);
    struct world *moved = sim_disk_copy();
    kit_close(&kit);
    struct world *closed = sim_disk_exchange(moved);
    sim_disk_free(&closed);
    ok(sim_disk_count("/spool/info") == 1);
    if (kit_open_with(&kit, settings) != 0)
        abort();
    return id;
}

/* An operator may name a message before startup has found it: whether journal or files
 * have it is clear before it gets a result, which would be written to the other. */
TEST(loaded_before_found)
{
    struct id id = make_moved(&journaled);
    struct envelope *e = queue_load(kit.queue, id);
    queue_settle(kit.queue, e, 0, NULL);
    ok(queue_may_notify(kit.queue, e));
    kit_turns(&kit, 10);
    is_number(kit.found_count, 1, "it is found, too");
    queue_defer(kit.queue, &e, 2000, 2);
    sim_loop_advance(kit.loop, 1000);
    kit_close(&kit);
    if (kit_open_with(&kit, &journaled) != 0)
        abort();
    kit_turns(&kit, 10);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->recipients[0].done && !e->recipients[1].done,
             "nobody gets it twice");
    envelope_free(&e);
    kit_close(&kit);
}

/* The disk fails while that is judged, at startup or when it is loaded: it is judged later,
 * and when it has ended none of its files is left. */
TEST(moved_judged_later)
{
    for (unsigned call = 1; call < 40; call++) {
        bool loads = call % 2 == 0;
        struct id id = make_moved(&journaled);
        sim_disk_count_anew();
        sim_disk_fail_at(call / 2 + 1, EIO);
        struct envelope *e = loads ? queue_load(kit.queue, id) : NULL;
        if (loads && e != NULL)
            queue_settle(kit.queue, e, 0, NULL);
        if (!loads)
            kit_turns(&kit, 10);
        sim_disk_fail_at(0, 0);
        sim_loop_advance(kit.loop, 130 * 1000);
        ok(kit.found_count > 0);
        if (e == NULL)
            e = queue_load(kit.queue, id);
        ok(e != NULL);
        queue_retire(kit.queue, &e);
        sim_loop_advance(kit.loop, 1000);
        is_number(sim_disk_count("/spool/info") + sim_disk_count("/spool/mess"), 0,
                  "it does not come back");
        kit_close(&kit);
    }
}

/* A call of the disk fails while an ended message is removed: that is tried again, also at
 * a stop, for a startup would take what is left for a message. */
static void
refuse_removal(const struct queue_settings *settings, uint64_t call, bool stops)
{
    sim_disk_reset();
    if (kit_open_with(&kit, settings) != 0)
        abort();
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("x"));
    struct id id = e->id;
    if (settings->journal_size > 0) {
        queue_defer(kit.queue, &e, 1000, 1);
        sim_loop_advance(kit.loop, 1000);
        e = queue_load(kit.queue, id);
    }
    sim_disk_count_anew();
    sim_disk_fail_at(call, EIO);
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 2 * 1000);
    ok_named(queue_load(kit.queue, id) == NULL, "it is no message");
    sim_disk_fail_at(0, 0);
    if (!stops)
        sim_loop_advance(kit.loop, 11 * 1000);
    kit_close(&kit);
    is_number(sim_disk_count("/spool/todo") + sim_disk_count("/spool/info"), 0,
              "it goes later");
}

TEST(removal_refused)
{
    static const struct queue_settings files = {.spool = "/spool", .slices = 1};
    for (uint64_t call = 1; call < 12; call++)
        for (unsigned i = 0; i < 4; i++)
            refuse_removal(i < 2 ? &files : &journaled, call, i % 2 != 0);
}

/* The disk fails in the middle: what was listed counts for nothing, and a minute later
 * the listing begins anew. */
TEST(large_directory_fails)
{
    fresh();
    (void)make_message(false, NULL);
    put_strange("info");
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    kit_turns(&kit, 2);
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    sim_loop_advance(kit.loop, 20);
    ok_named(sim_disk_has_failed() && kit.found_count == 0, "nothing is judged");
    sim_loop_advance(kit.loop, 60 * 1000);
    is_number(kit.found_count, 1, "a minute later all is found");
    kit_close(&kit);
}

/* A stop in the middle leaves nothing open. */
TEST(large_directory_stops)
{
    fresh();
    (void)make_message(false, NULL);
    put_strange("todo");
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    kit_turns(&kit, 1);
    kit_close(&kit);
    is_number(kit.found_count, 0, "stopped while it lists");
}

/* Mail of an injector is found while todo/ has more names than a turn lists, and once. */
TEST(large_scan)
{
    FIXTURE(buffer, todo, buffer_init, buffer_free, 1 << 16);
    fresh();
    struct id id = make_message(false, &todo);
    take_away("todo", id);
    take_away("intd", id);
    take_away("mess", id); /* the daemon's, else */
    put_in("mess", id, TEXT("content\r\n"));
    put_strange("todo");
    start_at(0);
    is_number(kit.found_count, 0, "no message yet");
    put_in("todo", id, buffer_text(&todo));
    sim_loop_ready(kit.loop, sim_disk_fifo_reader("/spool/lock/trigger"), LOOP_READ);
    kit_turns(&kit, 1);
    is_number(kit.found_count, 0, "the scan takes several turns");
    sim_loop_advance(kit.loop, 20);
    is_number(kit.found_count, 1, "then it is found");
    sim_loop_ready(kit.loop, sim_disk_fifo_reader("/spool/lock/trigger"), LOOP_READ);
    sim_loop_advance(kit.loop, 2000);
    is_number(kit.found_count, 1, "and never again");
    kit_close(&kit);
}

TEST(slices_of_hash)
{
    enum { MANY = 200, SLICES = 4 };
    unsigned all = 0, wrong = 0;
    fresh();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    for (unsigned i = 0; i < MANY; i++) {
        struct envelope *e = queue_kit_accept(&kit, kit_envelope("", two), TEXT("x"));
        envelope_free(&e);
    }
    kit_close(&kit);
    struct queue *queues[SLICES];
    struct kit *kits = calloc(SLICES, sizeof(*kits));
    for (unsigned i = 0; i < SLICES; i++) {
        struct queue_settings settings = {
            .spool = "/spool", .slices = SLICES, .slice = i};
        kits[i].loop = loop_new();
        kits[i].log = log_new(kits[i].loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
        is_number(queue_open(&queues[i], kits[i].loop, kits[i].log, &settings,
                             kit_found, &kits[i], kits[i].error, sizeof(kits[i].error)),
                  0, "each slice has its own lock");
        kits[i].queue = queues[i];
        sim_loop_advance(kits[i].loop, 10);
        all += (unsigned)kits[i].found_count;
        for (size_t n = 0; n < kits[i].found_count; n++)
            wrong += id_slice(kits[i].found[n].id, SLICES) != i;
        struct envelope *e = queue_kit_accept(&kits[i], kit_envelope("", two), TEXT("y"));
        ok_named(e != NULL && id_slice(e->id, SLICES) == i,
                 "what a slice accepts is its own");
        envelope_free(&e);
    }
    is_number(all, MANY, "together they find all");
    is_number(wrong, 0, "each its own");
    for (unsigned i = 0; i < SLICES; i++)
        kit_close(&kits[i]);
    free(kits);
}

/* --- Injectors ------------------------------------------------------------------- */

static void
pull(void)
{
    sim_loop_ready(kit.loop, sim_disk_fifo_reader("/spool/lock/trigger"), LOOP_READ);
    sim_loop_advance(kit.loop, 1);
}

TEST(trigger)
{
    struct kit injector;
    fresh();
    start_at(0);
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    ok(queue_has_daemon(injector.queue));
    struct envelope *e = queue_kit_accept(&injector, kit_envelope("", two), TEXT("one"));
    struct id first = e->id;
    envelope_free(&e);
    ok_named(sim_disk_fifo_pulled("/spool/lock/trigger") > 0, "the injector pulls");
    pull();
    ok_named(kit.found_count == 1 && kit_entry(&kit, first) != NULL, "it is found");
    is_number(sim_disk_fifo_pulled("/spool/lock/trigger"), 0, "the trigger is emptied");
    pull();
    is_number(kit.found_count, 1, "only once");
    e = queue_kit_accept(&injector, kit_envelope("", two), TEXT("two"));
    envelope_free(&e);
    pull();
    is_number(kit.found_count, 1, "scans are 100 ms apart");
    sim_loop_advance(kit.loop, 100);
    is_number(kit.found_count, 2, "then the next is found");
    sim_loop_advance(kit.loop, 100);
    e = queue_kit_accept(&injector, kit_envelope("", two), TEXT("three"));
    envelope_free(&e);
    sim_loop_advance(kit.loop, 24 * 60 * 1000);
    is_number(kit.found_count, 2, "without the trigger");
    sim_loop_advance(kit.loop, 2 * 60 * 1000);
    is_number(kit.found_count, 3, "a scan comes every 25 minutes");

    e = queue_load(kit.queue, first);
    queue_settle(kit.queue, e, 0, NULL);
    queue_defer(kit.queue, &e, 1, 1);
    sim_loop_advance(kit.loop, 26 * 60 * 1000);
    is_number(kit.found_count, 3, "what became S5 is not reported again");
    char path[100];
    path_of("todo", first, path);
    put(path, TEXT("a forged envelope"));
    sim_loop_advance(kit.loop, 26 * 60 * 1000);
    is_number(kit.found_count, 3, "nor because somebody puts a todo there");
    e = queue_load(kit.queue, first);
    ok_named(e != NULL && e->delivery.done == 1, "which changes nothing");
    envelope_free(&e);
    kit_close(&injector);
    kit_close(&kit);
}

TEST(held)
{
    fresh();
    struct id id = make_message(false, NULL);
    put_in("hold", id, TEXT("for a reason"));
    start_at(0);
    sim_loop_advance(kit.loop, 30 * 60 * 1000);
    is_number(kit.found_count, 0, "held mail is not reported, by no scan");
    struct envelope *e = queue_load(kit.queue, id);
    ok(e != NULL && e->delivery.held);
    queue_retire(kit.queue, &e);
    is_number(sim_disk_count("/spool/hold") + sim_disk_count("/spool/mess"), 0,
              "retired with its hold");
    kit_close(&kit);
}

/* An owner goes away between commit and answer. */
TEST(orphan)
{
    fresh();
    start_at(0);
    ok(kit_commit(&kit, kit_envelope("", two), TEXT("x")));
    queue_commit_ignore(kit.queue, &kit);
    sim_loop_advance(kit.loop, 5);
    ok_named(kit.answers == 0 && kit.found_count == 1,
             "the message is reported instead");
    struct envelope *e = queue_load(kit.queue, kit.found[0].id);
    ok(e != NULL);
    envelope_free(&e);
    ok(kit_commit(&kit, kit_envelope("", two), TEXT("y")));
    kit_close(&kit);
    is_number(sim_disk_count("/spool/mess"), 1,
              "what was not answered when the queue closes is taken back");
}
