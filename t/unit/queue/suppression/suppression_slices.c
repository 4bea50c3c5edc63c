/* queue/suppression/suppression_slices.c: the slices of a spool have one list of suppressed addresses, by files that
 * each writes alone; over removals, kills, files that are written anew, and another number of slices. */
/* link: t/sim/loop.c t/sim/disk.c t/sim/disk_world.c t/sim/disk_copy.c t/sim/disk_cut.c */
#include "queue/suppression/suppression_slices.h"
#include "base/log/log_internal.h"
#include "queue/spool/appended_file.h"
#include "queue/spool/slices.h"
#include "queue/suppression/suppression_record.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>

enum { SLICES_MOST = 4, ENTRIES = 3000 };

struct fixture {
    struct loop *loop;
    struct log *log;
    struct buffer lines; /* of the log */
    struct disk *disk;
    unsigned count;
    struct slice {
        struct suppression *s;
        struct suppression_slices *others;
    } slices[SLICES_MOST];
    struct suppression_settings settings;
};

static void
slice_start(struct fixture *f, unsigned i)
{
    char path[APPENDED_PATH_MAX], suffix[SLICES_SUFFIX_MAX];
    struct slice *slice = &f->slices[i];
    slices_suffix(f->count, i, suffix);
    snprintf(path, sizeof(path), "lock/suppressed%s", suffix);
    slice->s = suppression_new(f->loop, f->log, f->disk, path, &f->settings);
    slice->others = suppression_slices_new(f->loop, f->log, f->disk, slice->s, "lock/suppressed", f->count, i);
}

static void
slice_stop(struct fixture *f, unsigned i)
{
    suppression_slices_free(&f->slices[i].others);
    suppression_free(&f->slices[i].s);
}

static void
fixture_stop(struct fixture *f)
{
    for (unsigned i = 0; i < f->count; i++)
        slice_stop(f, i);
    disk_close(&f->disk);
}

static void
fixture_start(struct fixture *f, unsigned count)
{
    if (disk_open(&f->disk, "/spool", true) != 0 || disk_make_directory(f->disk, "lock", 0700) != 0)
        abort();
    (void)disk_sync_on(f->disk, f->loop);
    f->count = count;
    for (unsigned i = 0; i < count; i++)
        slice_start(f, i);
}

static void
fixture_begin(struct fixture *f, unsigned count)
{
    sim_disk_reset();
    *f = (struct fixture){.loop = sim_loop_new(1), .settings = {.is_on = true, .limit = 100000}};
    f->log = log_new(f->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&f->lines, 1 << 20);
    log_capture(f->log, &f->lines);
    fixture_start(f, count);
}

static void
fixture_end(struct fixture *f)
{
    fixture_stop(f);
    log_free(&f->log);
    loop_free(&f->loop);
    buffer_free(&f->lines);
}

/* Another number of slices. */
static void
fixture_change(struct fixture *f, unsigned count)
{
    fixture_stop(f);
    fixture_start(f, count);
}

static bool
says(const struct fixture *f, const char *words)
{
    return f->lines.length > 0 && memmem(f->lines.at, f->lines.length, words, strlen(words)) != NULL;
}

static void
wait_for_others(struct fixture *f)
{
    sim_loop_advance(f->loop, 2 * SUPPRESSION_SLICES_MS);
}

static bool
add_as(struct fixture *f, unsigned i, const char *address, enum suppression_class class, int64_t at_s)
{
    struct suppression_entry e = {.address = text_from(address), .at_s = at_s, .class = class, .strikes = 1};
    return suppression_add(f->slices[i].s, &e) == NULL;
}

static bool
add(struct fixture *f, unsigned i, const char *address)
{
    return add_as(f, i, address, SUPPRESSION_MANUAL, loop_now_ms(f->loop) / 1000);
}

static bool
slice_refuses(struct fixture *f, unsigned i, const char *address)
{
    struct outcome o;
    return suppression_refuses(f->slices[i].s, TEXT("me@a.example"), text_from(address), &o);
}

/* How many do. */
static unsigned
refuse(struct fixture *f, const char *address)
{
    unsigned count = 0;
    for (unsigned i = 0; i < f->count; i++)
        count += slice_refuses(f, i, address);
    return count;
}

static size_t
size_of(const char *path)
{
    return sim_disk_content(path).length;
}

TEST(one_list)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 4);
    ok(add(&f, 1, "x@b.example"));
    is_number(refuse(&f, "x@b.example"), 1, "the slice that has heard it");
    wait_for_others(&f);
    is_number(refuse(&f, "x@b.example"), 4, "all, a moment later");
    is_number(suppression_remove(f.slices[3].s, TEXT("x@b.example")), 1, "it is removed at another");
    wait_for_others(&f);
    is_number(refuse(&f, "x@b.example"), 0, "at all");
    ok(add(&f, 0, "x@b.example"));
    wait_for_others(&f);
    is_number(refuse(&f, "x@b.example"), 4, "and it may come back");
    fixture_change(&f, 4);
    is_number(refuse(&f, "x@b.example"), 4, "a restart changes nothing");
}

TEST(slice_that_was_down)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 2);
    ok(add(&f, 0, "y@b.example"));
    wait_for_others(&f);
    slice_stop(&f, 1);
    ok(add(&f, 0, "x@b.example"));
    is_number(suppression_remove(f.slices[0].s, TEXT("y@b.example")), 1, "one goes meanwhile");
    wait_for_others(&f);
    slice_start(&f, 1);
    ok_named(slice_refuses(&f, 1, "x@b.example"), "it knows before its first turn");
    ok_named(!slice_refuses(&f, 1, "y@b.example"), "what was removed, too");
}

TEST(doubt_is_its_own)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 2);
    struct suppression_entry e;
    ok(!suppression_note(f.slices[0].s, TEXT("me@a.example"), TEXT("x@b.example"), SUPPRESSION_DOUBTFUL, TEXT("550 no"), &e));
    wait_for_others(&f);
    is_number(suppression_count(f.slices[1].s).entries, 0, "a bounce that may mean nothing is counted by one");
    for (int i = 0; i < 2; i++)
        (void)!suppression_note(f.slices[0].s, TEXT("me@a.example"), TEXT("x@b.example"), SUPPRESSION_DOUBTFUL, TEXT("550 no"), &e);
    wait_for_others(&f);
    is_number(refuse(&f, "x@b.example"), 2, "the third tells all");
}

/* Both change the address in one second; then nobody writes any more. */
TEST(same_second)
{
    static const struct {
        enum suppression_class one, other;
        unsigned refusing;
    } rows[] = {
        {SUPPRESSION_HARD, SUPPRESSION_HARD, 2},
        {SUPPRESSION_HARD, SUPPRESSION_COMPLAINT, 2},
        {SUPPRESSION_HARD, SUPPRESSION_REMOVED, 0},
        {SUPPRESSION_REMOVED, SUPPRESSION_REMOVED, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (unsigned turned = 0; turned < 2; turned++) {
            FIXTURE(fixture, f, fixture_begin, fixture_end, 2);
            int64_t now_s = loop_now_ms(f.loop) / 1000;
            for (unsigned n = 0; n < 2; n++) {
                struct suppression_entry e = {.address = TEXT("x@b.example"),
                                              .at_s = now_s,
                                              .class = n == turned ? rows[i].one : rows[i].other,
                                              .strikes = SUPPRESSION_REMOVED_STRIKES};
                suppression_learn(f.slices[n].s, &e, false);
            }
            wait_for_others(&f);
            wait_for_others(&f);
            is_number(refuse(&f, "x@b.example"), rows[i].refusing, "both come to the same end");
            size_t size = size_of("/spool/lock/suppressed.0000-0511") + size_of("/spool/lock/suppressed.0512-1023");
            sim_loop_advance(f.loop, 60 * 1000);
            is_number(size_of("/spool/lock/suppressed.0000-0511") + size_of("/spool/lock/suppressed.0512-1023"), size,
                      "and to an end");
            fixture_change(&f, 2);
            is_number(refuse(&f, "x@b.example"), rows[i].refusing, "after a restart, too");
        }
}

/* Thousands of changes of few addresses, and thousands of addresses. */
TEST(written_anew)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 2);
    char address[40];
    ok(add(&f, 0, "first@b.example"));
    wait_for_others(&f);
    size_t open = sim_disk_open_files();
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(address, sizeof(address), "x%d@b.example", i % 50);
        if (!add(&f, 0, address) || suppression_remove(f.slices[0].s, text_from(address)) != 1)
            abort();
        if (i % 100 == 0)
            loop_turn(f.loop, 0);
    }
    sim_loop_advance(f.loop, 100);
    ok_named(size_of("/spool/lock/suppressed.0000-0511") < ENTRIES * 40, "the file was written anew");
    for (int i = 0; i < 3 * ENTRIES; i++) {
        snprintf(address, sizeof(address), "y%d@b.example", i);
        if (!add(&f, 0, address))
            abort();
    }
    ok(add(&f, 0, "last@b.example"));
    wait_for_others(&f);
    is_number(refuse(&f, "first@b.example") + refuse(&f, "last@b.example"), 4, "it is followed, though it is longer than the old one");
    is_number(refuse(&f, "x1@b.example"), 0, "with what it says");
    is_number(suppression_count(f.slices[1].s).entries, 3 * ENTRIES + 2, "many are read in several turns");
    is_number(sim_disk_open_files(), open, "no file is left open");
}

static void
append(struct fixture *f, const char *path, const char *text)
{
    int file = disk_open_file(f->disk, path, true);
    if (file < 0 || disk_write(f->disk, file, text_from(text)) != 0)
        abort();
    disk_close_file(f->disk, file);
}

TEST(half_a_line)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 2);
    struct buffer line;
    struct suppression_entry e = {.address = TEXT("x@b.example"), .at_s = loop_now_ms(f.loop) / 1000, .class = SUPPRESSION_HARD};
    buffer_init(&line, SUPPRESSION_LINE_MAX + 1);
    ok(add(&f, 0, "w@b.example"));
    wait_for_others(&f);
    ok(suppression_record_write(&e, &line) && buffer_add_byte(&line, '\0'));
    char *rest = line.at + 20, kept = *rest;
    *rest = '\0';
    append(&f, "lock/suppressed.0000-0511", line.at);
    wait_for_others(&f);
    ok_named(!slice_refuses(&f, 1, "x@b.example"), "half a line waits");
    *rest = kept;
    append(&f, "lock/suppressed.0000-0511", rest);
    wait_for_others(&f);
    ok_named(slice_refuses(&f, 1, "x@b.example"), "for its other half");
    append(&f, "lock/suppressed.0000-0511", "nonsense\n");
    append(&f, "lock/suppressed.0000-0511", line.at + 1);
    ok(add(&f, 0, "y@b.example"));
    wait_for_others(&f);
    ok_named(slice_refuses(&f, 1, "y@b.example"), "one that is damaged is passed over");
    buffer_free(&line);
}

TEST(shared_by_redis)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 2);
    suppression_share(f.slices[1].s);
    ok(add(&f, 0, "x@b.example"));
    wait_for_others(&f);
    ok_named(!slice_refuses(&f, 1, "x@b.example"), "Redis says it in an order; files are not read");
}

TEST(kills)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 2);
    ok(add(&f, 0, "x@b.example"));
    loop_turn(f.loop, 0);
    sim_disk_die_at(sim_disk_calls() + 1);
    fixture_stop(&f);
    sim_disk_restart();
    log_free(&f.log);
    loop_free(&f.loop);
    f.loop = sim_loop_new(1);
    f.log = log_new(f.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log_capture(f.log, &f.lines);
    fixture_start(&f, 2);
    is_number(refuse(&f, "x@b.example"), 2, "what a slice has written before a kill both know after it");
}

/* --- Another number of slices -------------------------------------------------------- */

TEST(another_number)
{
    static const unsigned counts[] = {1, 4, 2, 1, 2, 4, 1};
    FIXTURE(fixture, f, fixture_begin, fixture_end, 1);
    char address[40];
    ok(add(&f, 0, "gone@b.example"));
    for (unsigned n = 0; n < sizeof(counts) / sizeof(counts[0]); n++) {
        fixture_change(&f, counts[n]);
        wait_for_others(&f);
        is_number(refuse(&f, "gone@b.example"), n < 3 ? counts[n] : 0, "what was removed stays so");
        for (unsigned i = 0; i < n; i++) {
            snprintf(address, sizeof(address), "x%u@b.example", i);
            is_number(refuse(&f, address), counts[n], "all know all");
        }
        snprintf(address, sizeof(address), "x%u@b.example", n);
        ok(add(&f, counts[n] - 1, address)); /* the others are stopped before they hear it */
        if (n == 2)
            is_number(suppression_remove(f.slices[0].s, TEXT("gone@b.example")), 1, "one is removed");
        sim_loop_advance(f.loop, 1000);
        is_number(sim_disk_count("/spool/lock"), counts[n], "no other file is left");
    }
}

TEST(foreign)
{
    FIXTURE(fixture, f, fixture_begin, fixture_end, 1);
    ok(add(&f, 0, "x@b.example"));
    loop_turn(f.loop, 0);
    if (disk_write_new(f.disk, "lock/suppressed.0000-0511", 0600, TEXT("a poem\n")) != 0 ||
        disk_write_new(f.disk, "lock/suppressed.0512-1023", 0600, TEXT("")) != 0 ||
        disk_write_new(f.disk, "lock/suppressed.0000-0255.new", 0600, TEXT("")) != 0 ||
        disk_write_new(f.disk, "lock/suppressed-list", 0600, TEXT("")) != 0)
        abort();
    fixture_change(&f, 4);
    is_number(refuse(&f, "x@b.example"), 4, "files that are none of ours are passed over");
    ok(says(&f, "lock/suppressed.0000-0511: damaged, or not written by Petrel: it is lock/suppressed.0000-0511.bad now"));
    ok(says(&f, "lock/suppressed, of another number of slices: taken over; damaged lines: 0"));
    is_text(sim_disk_content("/spool/lock/suppressed.0000-0511.bad"), TEXT("a poem\n"), "and kept");
}

/* From one to two slices with the n-th call failing, or the last. */
static uint64_t
change_with(uint64_t fail_at, uint64_t die_at)
{
    struct fixture f;
    fixture_begin(&f, 1);
    ok(add(&f, 0, "x@b.example"));
    fixture_stop(&f);
    sim_disk_count_anew();
    if (fail_at > 0)
        sim_disk_fail_at(fail_at, EIO);
    if (die_at > 0)
        sim_disk_die_at(die_at);
    fixture_start(&f, 2);
    wait_for_others(&f);
    fixture_stop(&f);
    uint64_t calls = sim_disk_calls();
    sim_disk_fail_calls(0);
    sim_disk_power_cut();
    log_free(&f.log);
    loop_free(&f.loop);
    f.loop = sim_loop_new(1);
    f.log = log_new(f.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log_capture(f.log, &f.lines);
    fixture_start(&f, 2);
    wait_for_others(&f);
    is_number(refuse(&f, "x@b.example"), 2, "the next start knows it");
    fixture_end(&f);
    return calls;
}

TEST(each_call_fails)
{
    uint64_t calls = change_with(0, 0);
    ok(calls > 10);
    for (uint64_t n = 3; n <= calls; n++) /* the directories are there */
        (void)change_with(n, 0);
    for (uint64_t n = 3; n <= calls; n++)
        (void)change_with(0, n);
}
