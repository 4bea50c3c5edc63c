/* Out of hold/ and corrupt/: all or nothing, with an error at any call. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/spool/release.h"

#include "base/crc.h"
#include "base/log/log_internal.h"
#include "queue/spool/load.h"
#include "queue/spool/spool_corrupt.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
#include "t/support/spool_kit.h"

#include <errno.h>

static struct log *quiet;
static struct buffer lines;

static void
put(struct spool *s, enum spool_dir dir, struct id id, struct text bytes)
{
    int file = spool_write_new(s, dir, id, bytes, true);
    if (file < 0 || spool_sync(s, file, &id) != 0)
        abort();
    disk_close_file(s->disk, file);
}

/* A deferred message with a bounce to tell, which is held: a file in most directories. */
static struct id
deferred(struct spool *s, unsigned char n)
{
    struct envelope *e = spool_kit_envelope(n);
    int files[SPOOL_PREPROCESSED_FILES];
    unsigned count;
    struct outcome failure =
        outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no");
    struct id id = e->id;
    e->recipients[1].done = true;
    e->delivery.done = 1;
    envelope_fail(
        e, &(struct failure){.recipient = 1, .expired = false, .outcome = failure});
    struct mark_place places[2];
    if (spool_write_preprocessed(s, e, &spool_kit_content, places, files, &count) != 0)
        abort();
    while (count > 0) {
        if (spool_sync(s, files[--count], &id) != 0)
            abort();
        disk_close_file(s->disk, files[count]);
    }
    put(s, SPOOL_HOLD, id, TEXT("1750000000 held by a test\n"));
    envelope_free(&e);
    return id;
}

static bool
is_whole(struct spool *s, struct id id)
{
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX];
    enum load_result result = load_message(s, id, &e, reason);
    bool whole = result == LOAD_DONE && e->count == 2 && e->delivery.failure_count == 1;
    envelope_free(&e);
    return whole;
}

TEST(held)
{
    struct spool s;
    char note[RELEASE_NOTE_MAX];
    sim_disk_reset();
    spool_kit_open(&s, quiet);
    struct id id = deferred(&s, 1);
    is_number(release_note(&s, SPOOL_HOLD, id, note), 0, "a note");
    is_string(note, "1750000000 held by a test", "without its line end");
    is_number(release_held(&s, spool_kit_id(2)), -ENOENT, "another one is not held");
    is_number(release_held(&s, id), 0, "released");
    spool_close(&s);
    sim_disk_power_cut();
    spool_kit_open(&s, quiet);
    ok_named(!spool_has(&s, SPOOL_HOLD, id) && is_whole(&s, id), "durably");
    is_number(release_held(&s, id), -ENOENT, "once");
    is_number(release_note(&s, SPOOL_HOLD, id, note), -ENOENT, "no note");
    is_string(note, "", "says nothing");
    put(&s, SPOOL_HOLD, id, TEXT(""));
    is_number(release_note(&s, SPOOL_HOLD, id, note), 0, "an empty one");
    is_string(note, "", "says nothing, too");
    static char endless[5000];
    memset(endless, 'x', sizeof(endless));
    put(&s, SPOOL_HOLD, id, text_of(endless, sizeof(endless)));
    is_number(release_note(&s, SPOOL_HOLD, id, note), 0, "a long one");
    is_number((int64_t)strlen(note), RELEASE_NOTE_MAX - 1, "is cut");
    sim_disk_count_anew();
    sim_disk_fail_at(2, EIO);
    ok_named(release_held(&s, id) < 0, "a failing disk is told");
    spool_close(&s);
}

TEST(quarantined)
{
    struct spool s;
    char note[RELEASE_NOTE_MAX], path[SPOOL_PATH_MAX];
    sim_disk_reset();
    spool_kit_open(&s, quiet);
    struct id id = deferred(&s, 1);
    is_number(release_quarantined(&s, id), -ENOENT, "nothing of it is quarantined");
    is_number(release_note(&s, SPOOL_CORRUPT, id, note), -ENOENT, "no note");
    spool_quarantine(&s, id, "a test", 5000);
    is_number(release_note(&s, SPOOL_CORRUPT, id, note), 0, "its note");
    is_string(note, "5 a test", "says when and why");
    spool_close(&s);
    sim_disk_power_cut();
    spool_kit_open(&s, quiet);
    ok_named(!spool_has(&s, SPOOL_MESS, id) && !spool_has(&s, SPOOL_INFO, id),
             "a power cut brings nothing back where it was");
    is_number(release_held(&s, id), -ENOENT, "its mark is quarantined with it");
    is_number(release_quarantined(&s, id), 0, "all comes back");
    ok(is_whole(&s, id) && spool_has(&s, SPOOL_HOLD, id));
    is_number((int64_t)sim_disk_count("/spool/corrupt"), 0,
              "nothing is left, nor the note");
    spool_close(&s);
    sim_disk_power_cut();
    spool_kit_open(&s, quiet);
    ok_named(is_whole(&s, id), "durably");

    spool_quarantine(&s, id, "again", 6000);
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(path, sizeof(path), "/spool/corrupt/%s.mess", name);
    ok(sim_disk_damage(path, 3));
    size_t quarantined = sim_disk_count("/spool/corrupt");
    is_number(release_quarantined(&s, id), -EBADMSG, "a damaged one");
    is_number((int64_t)sim_disk_count("/spool/corrupt"), (int64_t)quarantined,
              "stays, with its note");
    ok(!spool_has(&s, SPOOL_MESS, id) && !spool_has(&s, SPOOL_INFO, id));
    ok(sim_disk_damage(path, 3));
    put(&s, SPOOL_INFO, id, TEXT("somebody else"));
    is_number(release_quarantined(&s, id), -EEXIST, "its name is taken");
    is_number((int64_t)sim_disk_count("/spool/corrupt"), (int64_t)quarantined,
              "it stays");
    ok(spool_remove(&s, SPOOL_INFO, id) == 0);
    put(&s, SPOOL_MESS, id, TEXT("left by a power cut"));
    put(&s, SPOOL_INTD, id, TEXT("likewise"));
    snprintf(path, sizeof(path), "corrupt/%s.note", name);
    ok(disk_unlink(s.disk, path) == 0);
    is_number(release_note(&s, SPOOL_CORRUPT, id, note), 0, "without a note");
    is_string(note, "", "nothing is said");
    is_number(release_quarantined(&s, id), 0, "it comes back all the same");
    ok(is_whole(&s, id));
    spool_quarantine(&s, id, "no envelope", 7000);
    snprintf(path, sizeof(path), "corrupt/%s.info", name);
    ok(disk_unlink(s.disk, path) == 0);
    is_number(release_quarantined(&s, id), -EBADMSG, "an operator lost a file");
    ok(!spool_has(&s, SPOOL_MESS, id));
    spool_close(&s);
}

/* --- At any moment -----------------------------------------------------------------
 */

static bool
is_at(struct id id, const char *dir, const char *suffix)
{
    char name[ID_LENGTH + 1], path[100];
    id_format(id, name);
    snprintf(path, sizeof(path), "/spool/%s/%s%s", dir, name, suffix);
    return sim_disk_content(path).at != NULL;
}

/* Nothing is lost, and the only content is never in mess/ without what says that it is
 * mail: it would be swept. */
static bool
is_safe(struct id id)
{
    bool info = is_at(id, "info", ""), mess = is_at(id, "mess", "");
    bool quarantined = is_at(id, "corrupt", ".mess");
    return (info || is_at(id, "corrupt", ".info")) && (quarantined || (mess && info));
}

struct cutting {
    struct id id;
    unsigned cuts, bad;
};

static void
on_change(void *context)
{
    struct cutting *c = context;
    for (int kind = 0; kind < SIM_CUT_RANDOM; kind++) {
        size_t items = sim_disk_cuts((enum sim_cut_kind)kind);
        for (size_t item = 0; item < items; item++) {
            struct world *copy = sim_disk_copy(), *now = sim_disk_exchange(copy);
            sim_disk_cut((struct sim_cut){(enum sim_cut_kind)kind, item});
            c->cuts++;
            c->bad += !is_safe(c->id);
            copy = sim_disk_exchange(now);
            sim_disk_free(&copy);
        }
    }
}

static void
test_power_cuts(bool damaged)
{
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    struct cutting c = {.id = deferred(&s, 1)};
    if (damaged) {
        char name[ID_LENGTH + 1], path[100];
        id_format(c.id, name);
        snprintf(path, sizeof(path), "/spool/mess/%s", name);
        ok(sim_disk_damage(path, 0));
    }
    spool_quarantine(&s, c.id, "a test", 5000);
    if (spool_sync_dirs(&s, ~0u) != 0)
        abort();
    sim_disk_on_change(on_change, &c);
    is_number(release_quarantined(&s, c.id), damaged ? -EBADMSG : 0,
              "released, or not");
    sim_disk_on_change(NULL, NULL);
    ok_named(c.cuts > 20, "power cuts");
    is_number(c.bad, 0, "after none of them anything is missing");
    printf("# %u cuts\n", c.cuts);
}

/* Every call fails once, or is the last one: all is there, or all is quarantined. */
static void
test_faults(void)
{
    unsigned bad = 0, calls = 0;
    for (int deadly = 0; deadly < 2; deadly++)
        for (uint64_t call = 1; call < 60; call++) {
            struct spool s;
            sim_disk_reset();
            spool_kit_open(&s, quiet);
            struct id id = deferred(&s, 1);
            spool_quarantine(&s, id, "a test", 5000);
            sim_disk_count_anew();
            if (deadly)
                sim_disk_die_at(call);
            else
                sim_disk_fail_at(call, EIO);
            int result = release_quarantined(&s, id);
            bool happened = deadly ? sim_disk_is_dead() : sim_disk_has_failed();
            spool_close(&s);
            sim_disk_restart();
            spool_kit_open(&s, quiet);
            calls += happened;
            bad += !is_safe(id);
            bad += result == 0 && !is_whole(&s, id);
            spool_close(&s);
        }
    ok_named(calls > 40, "calls that failed");
    is_number(bad, 0, "nothing is lost");
}

int
main(void)
{
    struct loop *loop = NULL;
    quiet = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    buffer_init(&lines, 16 * 1024 * 1024);
    log_capture(quiet, &lines);
    tap_tests("");
    test_power_cuts(false);
    test_power_cuts(true);
    test_faults();
    log_free(&quiet);
    buffer_free(&lines);
    return done();
}
