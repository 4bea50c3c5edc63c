/* queue/spool/marker.c, and its marks in adopt.c, queue_listing.c and queue.c: a whole that was
 * adopted is known as one at every start until it ends. */
/* link: t/sim/loop.c */
/* link: t/sim/disk*.c */
#include "queue/queue_fragments.h"
#include "queue/queue_operator.h"
#include "queue/spool/marker.h"

#include "base/log/log_internal.h"
#include "queue/recovery/adopt.h"
#include "t/support/slices_kit.h"

#include <errno.h>

static struct kit kit; /* one at a time */

static struct id
an_id(unsigned char n)
{
    return id_make(SIM_WALL_START_MS, (const unsigned char[]){n, 2, 3, 4, 5});
}

/* --- The files -------------------------------------------------------------------- */

struct fixture {
    struct spool spool;
    struct log *log;
    struct buffer lines;
};

static void
room_open(struct fixture *r, bool with_journal)
{
    char error[200];
    sim_disk_reset();
    buffer_init(&r->lines, 10000);
    r->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log_capture(r->log, &r->lines);
    if (spool_open(&r->spool, "/spool", false, r->log, error, sizeof(error)) != 0)
        abort();
    if (with_journal && disk_make_directory(r->spool.disk, "journal", 0700) != 0)
        abort();
}

static void
room_close(struct fixture *r)
{
    spool_close(&r->spool);
    log_free(&r->log);
    buffer_free(&r->lines);
}

static size_t
listed(struct fixture *r, struct id id, bool *is_there)
{
    struct id_set ids = {0};
    is_number(marker_list(&r->spool, &ids), 0, "they are listed");
    size_t count = id_set_count(&ids);
    *is_there = id_set_has(&ids, id);
    id_set_free(&ids);
    return count;
}

TEST(files)
{
    bool is_there;
    FIXTURE(fixture, r, room_open, room_close, true);
    is_number(listed(&r, an_id(1), &is_there), 0, "none");
    is_number(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(1)), 0, "one is made");
    is_number(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(1)), 0, "twice is once");
    is_number(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(2)), 0, "another one");
    if (disk_make_directory(r.spool.disk, "journal/0000-1023", 0700) != 0)
        abort();
    is_number(listed(&r, an_id(2), &is_there), 2, "both, and no journal");
    ok(is_there);
    marker_drop(&r.spool, MARKER_REASSEMBLED, an_id(2));
    marker_drop(&r.spool, MARKER_REASSEMBLED, an_id(2));
    is_number(listed(&r, an_id(2), &is_there), 1, "one is gone");
    ok(!is_there && r.lines.length == 0);
}

TEST(durable)
{
    struct fixture r;
    char error[200];
    bool is_there;
    for (int synced = 0; synced < 2; synced++) {
        room_open(&r, true);
        ok(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(1)) == 0);
        if (synced)
            is_number(marker_sync(&r.spool, MARKER_REASSEMBLED), 0, "synced");
        spool_close(&r.spool);
        sim_disk_power_cut();
        if (spool_open(&r.spool, "/spool", false, r.log, error, sizeof(error)) != 0)
            abort();
        (void)listed(&r, an_id(1), &is_there);
        ok_named(is_there == synced, synced ? "it stays" : "else it may go");
        room_close(&r);
        /* So does that of a release. */
        room_open(&r, false);
        ok(marker_put(&r.spool, MARKER_RELEASED, an_id(1)) == 0);
        if (synced)
            is_number(marker_sync(&r.spool, MARKER_RELEASED), 0, "synced");
        spool_close(&r.spool);
        sim_disk_power_cut();
        if (spool_open(&r.spool, "/spool", false, r.log, error, sizeof(error)) != 0)
            abort();
        ok_named(marker_has(&r.spool, MARKER_RELEASED, an_id(1)) == synced, "alike");
        room_close(&r);
    }
}

TEST(trouble)
{
    struct fixture r;
    struct id_set ids = {0};
    room_open(&r, false);
    is_number(marker_list(&r.spool, &ids), 0, "no journals: none");
    ok_named(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(1)) == -ENOENT, "nor can there be one");
    ok(memmem(r.lines.at, r.lines.length, "mark of a reassembled message", 28) != NULL);
    room_close(&r);
    room_open(&r, true);
    sim_disk_count_anew();
    sim_disk_fail_at(1, ENOSPC);
    is_number(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(1)), -ENOSPC, "a full disk");
    ok_named(r.spool.trouble[0] == '\0', "is no trouble of the spool's");
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    is_number(marker_sync(&r.spool, MARKER_REASSEMBLED), -EIO, "a broken one");
    ok_named(r.spool.trouble[0] != '\0', "is");
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    is_number(marker_list(&r.spool, &ids), -EIO, "nor does it tell the names");
    ok(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(3)) == 0);
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    marker_drop(&r.spool, MARKER_REASSEMBLED, an_id(3));
    ok_named(sim_disk_count("/spool/journal") == 1, "or lets one go");
    room_close(&r);
}

/* --- A queue's -------------------------------------------------------------------- */

static bool
is_made(struct id id)
{
    struct id *ids;
    bool found = false;
    size_t count = queue_made(kit.queue, &ids);
    for (size_t i = 0; i < count; i++)
        found = found || id_compare(ids[i], id) == 0;
    free(ids);
    return found;
}

static size_t
count_made(void)
{
    struct id *ids;
    size_t count = queue_made(kit.queue, &ids);
    free(ids);
    return count;
}

/* In the journal of one that was killed: a whole, and another message. */
static struct id
make_whole(void)
{
    static const char *const one[] = {"a@x", NULL};
    sim_disk_reset();
    if (!slices_start(&kit, 1, 0, 4 * SEGMENT))
        abort();
    struct envelope *e = kit_envelope("s@x", one);
    e->fragment.made_of = envelope_text(e, TEXT("1\n01JD3ZK5Q8-9F3K2C7A 0\n"));
    e = queue_kit_accept(&kit, e, TEXT("whole\r\n"));
    struct id id = e->id;
    envelope_free(&e);
    e = queue_kit_accept(&kit, kit_envelope("s@x", one), TEXT("other\r\n"));
    envelope_free(&e);
    sim_disk_restart();
    kit_close(&kit);
    return id;
}

static size_t
marks(void)
{
    size_t count = sim_disk_count("/spool/journal");
    for (unsigned slices = 1; slices <= 4; slices *= 2)
        for (unsigned i = 0; i < slices; i++) {
            char dir[ADOPT_PATH_MAX], path[ADOPT_PATH_MAX + 10];
            adopt_journal_path(slices, i, dir);
            snprintf(path, sizeof(path), "/spool/%s", dir);
            count -= sim_disk_count(path);
        }
    return count;
}

TEST(life)
{
    struct id id = make_whole();
    is_number(marks(), 0, "young mail has none");
    for (int i = 0; i < 4; i++) {
        ok(slices_start(&kit, 1, 0, i < 2 ? 0 : 4 * SEGMENT));
        is_number(marks(), 1, "a whole that is files has one");
        ok_named(is_made(id) && count_made() == 1, "and every start knows it");
        sim_disk_restart();
        kit_close(&kit);
    }
    ok(slices_start(&kit, 1, 0, 0));
    struct envelope *e = queue_load(kit.queue, id);
    if (e == NULL)
        abort();
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 1000);
    is_number(marks(), 0, "it goes with the message");
    ok(!is_made(id));
    kit_close(&kit);
    id = make_whole();
    ok(slices_start(&kit, 1, 0, 0));
    ok(queue_remove(kit.queue, id));
    sim_loop_advance(kit.loop, 1000);
    is_number(marks(), 0, "also with one that an operator removes");
    kit_close(&kit);
}

/* Files that a power cut has brought back, or kept. */
TEST(stray)
{
    struct id id = make_whole();
    struct fixture r;
    char error[200];
    if (spool_open(&r.spool, "/spool", false, NULL, error, sizeof(error)) != 0)
        abort();
    ok(marker_put(&r.spool, MARKER_REASSEMBLED, an_id(9)) == 0);
    spool_close(&r.spool);
    ok(slices_start(&kit, 1, 0, 4 * SEGMENT));
    is_number(marks(), 1, "a mark without a message");
    ok_named(is_made(id) && count_made() == 1, "is nobody's");
    is_number(marks(), 0, "and goes");
    kit_close(&kit);
}

/* Adopted by one whose message it is not. */
TEST(slices)
{
    struct id id = make_whole();
    for (unsigned n = 2; n >= 1; n--)
        for (unsigned slice = n; slice-- > 0;) {
            ok(slices_start(&kit, n, slice, 4 * SEGMENT));
            if (queue_handles(kit.queue, id))
                ok_named(is_made(id), "who handles it knows it");
            sim_disk_restart();
            kit_close(&kit);
        }
    is_number(marks(), 1, "it is still there");
}

enum fault { KILLED, WITHOUT_POWER, BROKEN, FULL, FAULTS };
static const char *const faults[] = {"killed", "without power", "EIO", "ENOSPC"};

static bool
adopt_badly(enum fault fault, uint64_t at)
{
    sim_disk_count_anew();
    if (fault < BROKEN)
        sim_disk_die_at(at);
    else
        sim_disk_fail_at(at, fault == BROKEN ? EIO : ENOSPC);
    (void)slices_start(&kit, 1, 0, 0);
    bool happened = sim_disk_is_dead() || sim_disk_has_failed();
    kit_close(&kit);
    if (fault == WITHOUT_POWER)
        sim_disk_power_cut();
    else
        sim_disk_restart();
    return happened;
}

/* Before the queue looks at what it has found, as the channel does. */
static bool
start_asking(struct id id, bool journal)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .journal_size = journal ? 4 * SEGMENT : 0,
                                      .journal_segment = SEGMENT,
                                      .journal_message_max = 8192};
    kit = (struct kit){.loop = loop_new()};
    kit.log = log_new(kit.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&kit.lines, 1024 * 1024);
    log_capture(kit.log, &kit.lines);
    return queue_open(&kit.queue, kit.loop, kit.log, &settings, kit_found, &kit,
                      kit.error, sizeof(kit.error)) == 0 &&
           is_made(id);
}

/* At every call of the adoption. */
TEST(faults)
{
    for (enum fault fault = KILLED; fault < FAULTS; fault++) {
        char words[80];
        unsigned unknown = 0;
        uint64_t at = 1;
        for (bool more = true; more && at < 2000; at++) {
            struct id id = make_whole();
            more = adopt_badly(fault, at);
            unknown += !start_asking(id, at % 2 == 0);
            kit_close(&kit);
        }
        snprintf(words, sizeof(words), "%s at each of %u calls: the next start knows it",
                 faults[fault], (unsigned)at - 2);
        ok_named(unknown == 0 && at > 30, words);
    }
}

int
main(void)
{
    tap_tests("");
    sim_disk_reset();
    return done();
}
