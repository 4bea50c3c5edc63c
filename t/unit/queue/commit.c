/* Drafts and the group commit: names, batches, space. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/commit.h"

#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>

enum { LARGE = 100000 };

struct space_for_one {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct spool spool;
    struct id_set seen;
    struct journaled journaled;
    struct removal removal;
    struct drafts drafts;
    struct commits commits;
    unsigned answers, refusals, orphans;
    int code;
};

static void
on_orphan(void *context, struct id id)
{
    struct space_for_one *r = context;
    (void)id;
    r->orphans++;
}

static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct space_for_one *r = context;
    r->answers++;
    r->refusals += refusal != NULL;
    if (refusal != NULL)
        r->code = refusal->code;
    envelope_free(&e);
}

static void
start(struct space_for_one *r, const struct queue_settings *settings)
{
    char error[300] = "";
    *r = (struct space_for_one){.loop = sim_loop_new(7)};
    r->log = log_new(r->loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    buffer_init(&r->lines, 1 << 20);
    log_capture(r->log, &r->lines);
    if (spool_open(&r->spool, "/spool", false, r->log, error, sizeof(error)) != 0)
        ok_named(false, error);
    r->journaled = (struct journaled){.spool = &r->spool, .loop = r->loop, .directory = "journal/x"};
    r->removal =
        (struct removal){.spool = &r->spool, .journaled = &r->journaled, .seen = &r->seen};
    r->drafts =
        (struct drafts){.spool = &r->spool, .loop = r->loop, .settings = *settings};
    r->commits = (struct commits){.spool = &r->spool,
                                  .loop = r->loop,
                                  .seen = &r->seen,
                                  .journaled = &r->journaled,
                                  .removal = &r->removal,
                                  .orphaned = on_orphan,
                                  .context = r};
    drafts_start(&r->drafts);
    commits_start(&r->commits);
}

static void
stop(struct space_for_one *r)
{
    commits_stop(&r->commits);
    id_set_free(&r->seen);
    spool_close(&r->spool);
    log_free(&r->log);
    buffer_free(&r->lines);
    loop_free(&r->loop);
}

static const struct queue_settings plain = {.spool = "/spool", .slices = 1};

/* Commits a message of that size; its id. */
static struct id
commit(struct space_for_one *r, size_t size)
{
    static char content[LARGE];
    struct outcome refusal;
    struct queue_draft *d = draft_begin(&r->drafts, 0, false, &refusal);
    struct envelope *e = envelope_new();
    e->sender = e->envelope_id = envelope_text(e, TEXT(""));
    e->prefix = envelope_text(e, TEXT("Received: x\r\n"));
    if (d == NULL || !envelope_add(e, TEXT("a@x"), 0, TEXT("")))
        abort();
    (void)!queue_write(d, text_of(content, size));
    queue_name(d, e);
    struct id id = e->id;
    commits_add(&r->commits, &d, &e, on_stored, r);
    return id;
}

static void
test_batch(void)
{
    sim_disk_reset();
    FIXTURE(space_for_one, r, start, stop, &plain);
    for (unsigned i = 0; i < 5; i++)
        (void)commit(&r, 10);
    is_number(r.spool.syncs, 0, "nothing is synced before the end of the turn");
    uint64_t before = sim_loop_turns(r.loop);
    sim_loop_advance(r.loop, 0);
    is_number(r.spool.syncs, 11, "five messages: ten files and one directory");
    ok_named(r.answers == 5 && r.refusals == 0, "all stored");
    is_number(sim_loop_turns(r.loop) - before, 1, "in one turn");
    for (unsigned i = 0; i < 3; i++)
        (void)commit(&r, 10);
    sim_disk_count_anew();
    sim_disk_fail_at(7, ENOSPC); /* 6 syncs, then the first link */
    loop_turn(r.loop, 0);
    ok_named(r.answers == 8 && r.refusals == 1 && r.code == 452,
             "a full disk refuses one of three");
    is_number(sim_disk_count("/spool/mess"), 7, "whose files are gone");
    is_number(sim_disk_count("/spool/todo"), 7, "of all kinds");
}

/* Two processes with the same chance, time and content: the names differ nevertheless.
 */
static void
test_names(size_t size)
{
    struct space_for_one r;
    struct id ids[3];
    sim_disk_reset();
    for (unsigned i = 0; i < 3; i++) {
        start(&r, &plain);
        ids[i] = commit(&r, size);
        loop_turn(r.loop, 0);
        is_number(r.answers - r.refusals, 1, "stored");
        stop(&r);
    }
    ok_named(id_compare(ids[0], ids[1]) != 0 && id_compare(ids[1], ids[2]) != 0 &&
                 id_compare(ids[0], ids[2]) != 0,
             "a name that is taken is not taken again");
    is_number(sim_disk_count("/spool/mess"), 3, "three messages");
    is_number(sim_disk_count("/spool/pid"), 0, "no draft is left");
}

TEST(space)
{
    struct outcome refusal = {.code = 0};
    sim_disk_reset();
    FIXTURE(space_for_one, r, start, stop, &plain);
    sim_disk_count_anew();
    for (unsigned i = 0; i < 10; i++)
        ok(space_has(&r.drafts.space, 1000));
    is_number(sim_disk_calls(), 1, "the disk is asked once");
    sim_loop_advance(r.loop, 1000);
    ok(space_has(&r.drafts.space, 0));
    is_number(sim_disk_calls(), 2, "a second");
    sim_disk_set_space(16 * 1024 * 1024 + 1000, 200);
    sim_loop_advance(r.loop, 1000);
    ok_named(space_has(&r.drafts.space, 1000), "down to the reserve");
    ok_named(!space_has(&r.drafts.space, 1001), "but not below");
    ok(space_has(&r.drafts.space, -5));
    sim_disk_set_space(INT64_MAX, 199);
    sim_loop_advance(r.loop, 1000);
    ok_named(!space_has(&r.drafts.space, 0), "of inodes neither");
    ok(draft_begin(&r.drafts, 0, false, &refusal) == NULL && refusal.code == 452);
    sim_loop_advance(r.loop, 1000);
    sim_disk_count_anew();
    sim_disk_fail_at(1, ENOSYS);
    ok_named(space_has(&r.drafts.space, 0), "a disk that cannot tell is not full");
}

TEST(owners)
{
    struct space_for_one r;
    sim_disk_reset();
    start(&r, &plain);
    (void)commit(&r, 10);
    commits_ignore(&r.commits, &r);
    (void)commit(&r, 10);
    loop_turn(r.loop, 0);
    ok_named(r.answers == 1 && r.orphans == 1, "the ignoring owner hears nothing");
    (void)commit(&r, LARGE);
    stop(&r);
    is_number(sim_disk_count("/spool/mess"), 2, "what is not durable at the end goes");
}

TEST(slices)
{
    struct queue_settings settings = {.spool = "/spool", .slices = 1024, .slice = 700};
    sim_disk_reset();
    FIXTURE(space_for_one, r, start, stop, &settings);
    for (unsigned i = 0; i < 5; i++)
        is_number(id_slice(commit(&r, 10), 1024), 700, "its own slice");
}

int
main(void)
{
    test_batch();
    test_names(10);
    test_names(LARGE);
    tap_tests("");
    sim_disk_reset();
    return done();
}
