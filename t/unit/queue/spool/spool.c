/* The files of a message and their steps, one by one. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/spool/spool.h"

#include "base/crc.h"
#include "base/log/log_internal.h"
#include "queue/spool/due_times.h"
#include "queue/spool/load.h"
#include "queue/spool/spool_corrupt.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
#include "t/support/spool_kit.h"

#include <errno.h>

static struct log *quiet;
static struct buffer lines;

/* S4, durable. */
static struct envelope *
queued(struct spool *s, unsigned char n)
{
    struct envelope *e = spool_kit_envelope(n);
    struct buffer form;
    buffer_init(&form, SPOOL_FILE_MAX);
    envelope_write_todo(e, &form);
    int mess = spool_write_new(s, SPOOL_MESS, e->id, spool_kit_content, false);
    int intd = spool_write_new(s, SPOOL_INTD, e->id, buffer_text(&form), false);
    ok(mess >= 0 && intd >= 0 && spool_sync(s, mess, &e->id) == 0 &&
       spool_sync(s, intd, &e->id) == 0);
    disk_close_file(s->disk, mess);
    disk_close_file(s->disk, intd);
    ok(spool_enter_todo(s, e->id) == 0 &&
       spool_sync_dirs(s, SPOOL_BIT(SPOOL_TODO)) == 0);
    buffer_free(&form);
    return e;
}

TEST(names)
{
    char path[SPOOL_PATH_MAX];
    struct id id;
    spool_path(SPOOL_INFO, spool_kit_id(1), path);
    ok(strncmp(path, "info/", 5) == 0 && strlen(path) == 5 + ID_LENGTH);
    for (enum spool_dir dir = SPOOL_PID; dir < SPOOL_DIRS; dir++)
        ok(strlen(spool_dir_name(dir)) >= 3);
    ok_named(spool_corrupt_id("01JD3ZK5Q8-9F3K2C7A.note", &id), "a name in corrupt/");
    ok_named(!spool_corrupt_id("01JD3ZK5Q8-9F3K2C7A", &id), "needs a dot");
    ok(!spool_corrupt_id("", &id) && !spool_corrupt_id("README.note", &id));
}

TEST(refusals)
{
    static const struct {
        int error, code;
        const char *enhanced;
    } rows[] = {
        {-ENOSPC, 452, "4.3.1"},
        {-EDQUOT, 452, "4.3.1"},
        {-EIO,    451, "4.3.0"},
        {-EROFS,  451, "4.3.0"},
        {-EMFILE, 451, "4.3.0"},
        {-EEXIST, 451, "4.3.0"}
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome o = spool_refusal(rows[i].error);
        ok(o.verdict == VERDICT_DEFERRED && o.code == rows[i].code);
        is_string(o.enhanced, rows[i].enhanced, strerror(-rows[i].error));
    }
}

/* Remedies that make it writable. */
TEST(remedies)
{
    struct spool s = {.disk = NULL};
    char error[512];
    is_number(spool_complain(&s, "/q", "make pid", -EROFS, error, sizeof(error)),
              -EROFS, "the error is handed on");
    is_string(
        error,
        "spool /q: cannot make pid: Read-only file system (mount it read-write, or "
        "set `spool` to a directory that is writable)",
        "read-only");
    spool_complain(&s, "/q", "make pid", -ENOSPC, error, sizeof(error));
    ok_named(strstr(error, "(free space on it, or") != NULL, "full");
    spool_complain(&s, "/q", "make pid", -EACCES, error, sizeof(error));
    ok_named(strstr(error, "(make it writable for this user, or") != NULL,
             "a directory that may be anything is not to be given away");
    sim_disk_reset();
    spool_kit_open(&s, quiet);
    spool_complain(&s, "/q", "lock it", -EACCES, error, sizeof(error));
    ok_named(strstr(error, "(chown -R ") && strstr(error, " /q, or"), "a spool is");
    spool_close(&s);
}

TEST(trouble)
{
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    is_number(spool_trouble(&s, -ENOSPC, NULL, "test"), -ENOSPC,
              "says what it is told");
    is_string(s.trouble, "", "a full disk is no lasting trouble");
    struct id id = spool_kit_id(1);
    spool_trouble(&s, -EIO, &id, "test once");
    spool_trouble(&s, -EROFS, &id, "test twice");
    ok_named(strstr(s.trouble, "test once") != NULL, "the first trouble is kept");
}

TEST(trouble_stale)
{
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    spool_trouble(&s, -ESTALE, NULL, "test");
    ok_named(s.trouble[0] != '\0', "a directory that NFS has made anew stays lost");
}

static int
materialise(struct spool *s, struct envelope *e)
{
    int files[SPOOL_PREPROCESSED_FILES];
    unsigned count;
    struct mark_place places[2];
    assert(e->count == 2);
    int result = spool_write_preprocessed(s, e, NULL, places, files, &count);
    ok(places[0].offset > 0 && places[0].channel == CHANNEL_LOCAL &&
       places[1].offset > 0 && places[1].channel == CHANNEL_REMOTE);
    envelope_take_places(e, places);
    e->storage.preprocessed = false;
    while (count > 0)
        disk_close_file(s->disk, files[--count]);
    return result;
}

TEST(steps)
{
    unsigned marks[] = {0, 1}, dirs;
    char reason[LOAD_REASON_MAX];
    struct envelope *read = NULL;
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    struct envelope *e = queued(&s, 1);
    ok_named(spool_write_new(&s, SPOOL_MESS, e->id, TEXT("x"), false) == -EEXIST,
             "a name is taken once");
    ok(spool_dirs_of(&s, e->id, &dirs) == 0);
    is_number(dirs,
              SPOOL_BIT(SPOOL_MESS) | SPOOL_BIT(SPOOL_INTD) | SPOOL_BIT(SPOOL_TODO),
              "S4");
    is_number(load_message(&s, e->id, &read, reason), LOAD_DONE, "loaded");
    envelope_free(&read);
    is_number(load_preprocessed(&s, e->id, &read, reason), LOAD_GONE, "not S5");

    is_number(materialise(&s, e), 0, "materialised");
    is_number(materialise(&s, e), 0, "twice is no harm");
    is_number(load_preprocessed(&s, e->id, &read, reason), LOAD_DONE, "S5 is whole");
    envelope_free(&read);
    is_number(spool_leave_todo(&s, e->id, false), 0, "todo goes");
    e->storage.preprocessed = true;
    ok(!spool_has(&s, SPOOL_TODO, e->id) && !spool_has(&s, SPOOL_INTD, e->id));
    ok_named(spool_sync_dirs(&s, ~0u) == 0 && !s.unsynced[SPOOL_TODO] &&
                 !s.unsynced[SPOOL_INFO],
             "directories are synced");
    uint64_t syncs = s.syncs;
    ok_named(spool_sync_dirs(&s, ~0u) == 0 && s.syncs == syncs,
             "what has not changed is not synced");

    struct buffer texts;
    struct outcome o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.0.0", "no");
    buffer_init(&texts, 10000);
    envelope_fail(e, &(struct failure){.recipient = 1, .expired = false, .outcome = o});
    envelope_write_failure(e, &e->delivery.failures[0], &texts);
    e->recipients[0].done = e->recipients[1].done = true;
    is_number(spool_append_failures(&s, e->id, buffer_text(&texts)), 0, "told");
    is_number(spool_mark(&s, e, marks, 2), 0, "marked");
    is_number(spool_append_failures(&s, e->id, buffer_text(&texts)), 0, "once more");
    is_number(spool_mark(&s, e, marks, 2), 0, "twice is no harm");
    e->delivery.due_ms = 77;
    e->delivery.attempts = 3;
    is_number(spool_write_due(&s, e), 0, "due");
    is_number(load_message(&s, e->id, &read, reason), LOAD_DONE, "loaded");
    ok(read != NULL && read->delivery.done == 2 && read->delivery.failure_count == 1);
    int64_t due_ms;
    unsigned attempts;
    struct due_times due = {0};
    due_times_take(&due, &s, e->id, &due_ms, &attempts);
    ok_named(due_ms == 77 && attempts == 3, "the due time by itself");
    envelope_free(&read);
    is_number(spool_remove_in(&s, e->id, spool_places_of(e)), 0, "retired");
    is_number(sim_disk_count("/spool"), 0, "nothing is left");
    is_number(load_message(&s, e->id, &read, reason), LOAD_GONE, "gone");
    ok(read == NULL);
    buffer_free(&texts);
    envelope_free(&e);
}

/* Files of an older attempt are gone durably before others of the same name are written: one
 * of them could come back beside these. */
TEST(scrap)
{
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    struct envelope *e = queued(&s, 1);
    is_number(materialise(&s, e), 0, "the first attempt");
    is_number(spool_sync_preprocessed(&s, e->id), 0, "durable");
    is_number(spool_sync_dirs(&s, ~0u), 0, "names, too");
    is_number(materialise(&s, e), 0, "another attempt");
    sim_disk_power_cut();
    is_number(sim_disk_count("/spool/info") + sim_disk_count("/spool/local") +
                  sim_disk_count("/spool/remote"),
              0, "nothing of the first is back");
    envelope_free(&e);
}

/* The host ended between the two: the recipient was tried again, and has his mail. */
TEST(text_without_mark)
{
    struct envelope *read = NULL;
    struct buffer texts;
    char reason[LOAD_REASON_MAX];
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    struct envelope *e = queued(&s, 2);
    struct outcome o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.0.0", "no");
    is_number(materialise(&s, e), 0, "files");
    is_number(spool_remove(&s, SPOOL_TODO, e->id), 0, "S5");
    buffer_init(&texts, 10000);
    envelope_fail(e, &(struct failure){.recipient = 1, .expired = false, .outcome = o});
    envelope_write_failure(e, &e->delivery.failures[0], &texts);
    is_number(spool_append_failures(&s, e->id, buffer_text(&texts)), 0, "told");
    is_number(load_message(&s, e->id, &read, reason), LOAD_DONE, "loaded");
    read->delivery.failure_count = 0; /* it is tried again */
    is_number(spool_remove_in(&s, e->id, spool_places_of(read)), 0, "retired");
    is_number(sim_disk_count("/spool/bounce"), 0, "the text is gone, too");
    buffer_free(&texts);
    envelope_free(&read);
    envelope_free(&e);
}

/* Where nothing can be nothing is removed: each question costs a system call. */
TEST(places)
{
    static const unsigned always = SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO) |
                                   SPOOL_BIT(SPOOL_HOLD) | SPOOL_BIT(SPOOL_MESS);
    struct envelope *e = envelope_new();
    ok(envelope_add(e, TEXT("a@b.test"), 0, TEXT("")));
    is_number(spool_places_of(e), SPOOL_ANYWHERE, "not in S5: anywhere");
    e->storage.preprocessed = true;
    is_number(spool_places_of(e), always | SPOOL_BIT(SPOOL_REMOTE), "in S5");
    e->recipients[0].mark.channel = CHANNEL_LOCAL;
    is_number(spool_places_of(e), always | SPOOL_BIT(SPOOL_LOCAL), "a local recipient");
    e->storage.failures_recorded = 1;
    e->fragment.awaits_parts = e->delivery.released = true;
    is_number(spool_places_of(e),
              always | SPOOL_BIT(SPOOL_LOCAL) | SPOOL_BIT(SPOOL_BOUNCE) |
                  SPOOL_BIT(SPOOL_DEFRAG) | SPOOL_BIT(SPOOL_LOCK),
              "failures and marks");
    envelope_free(&e);
}

TEST(read_errors)
{
    struct envelope *read = NULL;
    char reason[LOAD_REASON_MAX];
    unsigned later = 0, done = 0, other = 0;
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    struct envelope *e = queued(&s, 1);
    for (unsigned at = 1; at <= 12; at++) {
        sim_disk_count_anew();
        sim_disk_fail_at(at, EIO);
        enum load_result result = load_message(&s, e->id, &read, reason);
        later += result == LOAD_LATER;
        done += result == LOAD_DONE;
        other += result != LOAD_LATER && result != LOAD_DONE;
        envelope_free(&read);
    }
    ok_named(later >= 6 && done > 0 && other == 0,
             "a disk that does not answer is no evidence of damage");
    envelope_free(&e);
}

/* At any moment at which quarantining dies, the content is in mess/ or in corrupt/. */
TEST(quarantine)
{
    unsigned lost = 0, at = 0, calls = 0;
    struct spool s;
    for (unsigned power = 0; power < 2; power++)
        for (at = 0; at <= calls; at++) {
            sim_disk_reset();
            spool_kit_open(&s, quiet);
            struct envelope *e = queued(&s, 1);
            sim_disk_count_anew();
            sim_disk_die_at(at);
            spool_quarantine(&s, e->id, "a test", 5000);
            calls = at == 0 ? (unsigned)sim_disk_calls() : calls;
            spool_close(&s);
            if (power)
                sim_disk_power_cut();
            else
                sim_disk_restart();
            char name[ID_LENGTH + 1], path[100];
            id_format(e->id, name);
            snprintf(path, sizeof(path), "/spool/corrupt/%s.mess", name);
            bool moved = sim_disk_content(path).length == 9;
            snprintf(path, sizeof(path), "/spool/mess/%s", name);
            lost += !moved && sim_disk_content(path).length != 9;
            snprintf(path, sizeof(path), "/spool/corrupt/%s.note", name);
            if (at == 0)
                is_text(sim_disk_content(path), TEXT("5 a test\n"), "the note");
            envelope_free(&e);
        }
    ok_named(lost == 0 && calls > 5, "quarantining loses no content at any call");
}

TEST(erase)
{
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    struct envelope *e = queued(&s, 1), *other = queued(&s, 2);
    spool_quarantine(&s, e->id, "one", 0);
    spool_quarantine(&s, e->id, "two", 0);
    is_number(s.quarantined, 2, "counted");
    ok(spool_erase_corrupt(&s, e->id));
    ok(!spool_erase_corrupt(&s, e->id));
    is_number(sim_disk_count("/spool"), 3, "another message stays");
    is_number(spool_remove_all(&s, other->id), 0, "until it goes");
    is_number(sim_disk_count("/spool"), 0, "nothing is left");
    envelope_free(&e);
    envelope_free(&other);
}

TEST(stubborn_todo)
{
    sim_disk_reset();
    FIXTURE(spool, s, spool_kit_open, spool_close, quiet);
    struct envelope *e = queued(&s, 1);
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    ok(spool_remove_all(&s, e->id) < 0);
    is_number(sim_disk_count("/spool"), 3, "while todo stays, all stays");
    ok(spool_remove_all(&s, e->id) == 0);
    is_number(sim_disk_count("/spool"), 0, "then all goes");
    envelope_free(&e);
}

int
main(void)
{
    quiet = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&lines, 1 << 24);
    log_capture(quiet, &lines);
    tap_tests("");
    log_free(&quiet);
    buffer_free(&lines);
    sim_disk_reset();
    return done();
}
