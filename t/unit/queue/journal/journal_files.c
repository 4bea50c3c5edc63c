/* The journal on a real disk with the real loop: its files and their modes, syncs in the
 * background and those that block, and what another process reads. */
#include "queue/journal/journal.h"

#include "t/support/tap.h"

#include <sys/stat.h>
#include <unistd.h>

struct real {
    struct disk *disk;
    struct spool spool;
    struct log *log;
    struct loop *loop;
    struct journal *journal;
    uint64_t settled;
    unsigned records;
};

static void
on_settled(void *context, uint64_t batch, int error)
{
    struct real *r = context;
    if (error == 0 && batch == r->settled + 1)
        r->settled = batch;
}

static bool
on_record(void *context, const struct journal_record *record)
{
    struct real *r = context;
    r->records += text_equal(record->payload, TEXT("on a real disk"));
    return true;
}

static int
open_real(struct real *r, const char *home, bool background)
{
    struct journal_settings settings = {
        .directory = "journal/0000-0511", .segment_size = (size_t)16 * JOURNAL_BLOCK, .segments = 4};
    struct journal_reading reading = {.context = r, .record = on_record};
    struct journal_events events = {.context = r, .settled = on_settled};
    struct journal_summary summary;
    char error[200];
    *r = (struct real){.loop = loop_new()};
    if (disk_open(&r->disk, home, false) != 0)
        abort();
    if (background)
        (void)disk_sync_on(r->disk, r->loop);
    r->log = log_new(r->loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    r->spool = (struct spool){.disk = r->disk, .log = r->log};
    return journal_open(&r->journal, &r->spool, r->loop, &settings, &reading, &events,
                        &summary, error, sizeof(error));
}

static void
close_real(struct real *r)
{
    journal_close(&r->journal);
    disk_close(&r->disk);
    log_free(&r->log);
    loop_free(&r->loop);
}

static unsigned
mode_of(const char *home, const char *name)
{
    char path[120];
    struct stat status;
    snprintf(path, sizeof(path), "%s/%s", home, name);
    return lstat(path, &status) == 0 ? status.st_mode & 07777 : 0;
}

static void
accept_some(struct real *r, unsigned count)
{
    struct text text = TEXT("on a real disk");
    struct journal_place place;
    uint64_t batch = 0;
    for (unsigned i = 0; i < count; i++) {
        ok(journal_accept(r->journal, (struct id){.time_ms = i + 1}, &text, 1, false, &place, &batch) ==
           JOURNAL_APPENDED);
        int64_t end_ms = loop_monotonic_ms(r->loop) + 60000;
        while (r->settled < batch && loop_monotonic_ms(r->loop) < end_ms)
            loop_turn(r->loop, 100);
        ok_named(r->settled == batch, "durable");
    }
    char bytes[14];
    ok(journal_read_place(r->disk, "journal/0000-0511", &place, 0, bytes, 14) == 14 &&
       memcmp(bytes, text.at, 14) == 0);
}

static void
remove_all(const char *home)
{
    char path[120];
    for (unsigned i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s/journal/0000-0511/%04u", home, i);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/journal/0000-0511", home);
    rmdir(path);
    snprintf(path, sizeof(path), "%s/journal", home);
    rmdir(path);
    ok_named(rmdir(home) == 0, "nothing else is left");
}

int
main(void)
{
    char home[] = "/tmp/petrel-journal-XXXXXX";
    struct real r;
    if (mkdtemp(home) == NULL)
        abort();
    is_number(open_real(&r, home, true), 0, "opens");
    is_number(mode_of(home, "journal"), 0700, "the directory is ours alone");
    is_number(mode_of(home, "journal/0000-0511"), 0700, "all of it");
    is_number(mode_of(home, "journal/0000-0511/0000"), 0600, "and the files");
    is_number(mode_of(home, "journal/0000-0511/0001"), 0600, "both");
    accept_some(&r, 3);
    close_real(&r);
    is_number(open_real(&r, home, false), 0, "opens again, with syncs that block");
    is_number(r.records, 3, "all is read");
    r.settled = 3;
    accept_some(&r, 2);
    close_real(&r);
    is_number(open_real(&r, home, true), 0, "and again");
    is_number(r.records, 5, "all is read");
    close_real(&r);
    remove_all(home);
    return done();
}
