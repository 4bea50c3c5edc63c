/* The files of a ring: never more than the limit, in order, whole lines, with any error of the
 * disk. */
#include "admin/history/ring.h"
#include "base/id.h"
#include "base/log/log.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */

enum { LIMIT = 8000, NOW = 1750000000 };

static struct disk *disk;

static void
fresh(void)
{
    sim_disk_reset();
    ok_named(disk_open(&disk, "/spool", true) == 0 && disk_make_directory(disk, "history", 0700) == 0, "a spool");
}

/* A line of that number, 100 bytes with its LF. */
static struct text
numbered(int64_t now_ms, int number, char out[101])
{
    memset(out, ' ', 100);
    int length = snprintf(out, 101, "2025-06-15T10:00:%02d.000Z queue: event=ended, number=%d", (int)(now_ms % 60), number);
    out[length] = ' ';
    out[99] = '\n';
    return text_of(out, 100);
}

struct found {
    char names[100][RING_NAME_MAX];
    unsigned count;
};

static bool
collect(void *context, const char *name)
{
    struct found *f = context;
    if (f->count < 100)
        snprintf(f->names[f->count++], RING_NAME_MAX, "%s", name);
    return true;
}

static int
compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* All bytes of the ring's files, in order. The caller frees. */
static char *
content(const char *word, int64_t *bytes, unsigned *files)
{
    struct found f = {.count = 0};
    static char all[1 << 20];
    size_t length = 0;
    (void)disk_list(disk, "history", collect, &f);
    qsort(f.names, f.count, RING_NAME_MAX, compare);
    *files = 0;
    for (unsigned i = 0; i < f.count; i++) {
        char path[RING_NAME_MAX * 2];
        uint64_t first;
        if (!ring_read_name(f.names[i], word, &first))
            continue;
        snprintf(path, sizeof(path), "history/%s", f.names[i]);
        int file = disk_open_file(disk, path, false);
        int64_t got = disk_read(disk, file, 0, all + length, sizeof(all) - 1 - length);
        disk_close_file(disk, file);
        length += got > 0 ? (size_t)got : 0;
        ++*files;
    }
    all[length] = '\0';
    *bytes = (int64_t)length;
    return all;
}

/* Whether the lines are whole and their numbers without a gap, up to last. */
static bool
is_in_order(const char *all, int last)
{
    int number = -1;
    for (const char *at = all; *at != '\0'; at = strchr(at, '\n') + 1) {
        const char *mark = strstr(at, "number=");
        if (mark == NULL || strchr(at, '\n') == NULL)
            return false;
        int found = (int)strtol(mark + 7, NULL, 10);
        if (number >= 0 && found != number + 1)
            return false;
        number = found;
    }
    return number == last;
}

TEST(limit)
{
    struct ring ring;
    char line[101];
    int64_t bytes = 0;
    unsigned files = 0;
    bool good = true;
    fresh();
    ok(ring_open(&ring, disk, "history", "mail", LIMIT) == 0);
    for (int i = 0; i < 500; i++) {
        good = good && ring_write(&ring, NOW + i / 3, numbered(NOW + i, i, line)) == 0;
        const char *all = content("mail", &bytes, &files);
        good = good && bytes <= LIMIT && files <= RING_FILES && bytes == ring_bytes(&ring) && is_in_order(all, i);
    }
    ok_named(good, "500 lines: never above the limit, always the last ones");
    ok_named(bytes >= LIMIT - LIMIT / RING_FILES - 100, "the space is used");
    char *many = malloc(100 * 50);
    for (int i = 0; i < 50; i++)
        memcpy(many + i * 100, numbered(NOW, 500 + i, line).at, 100);
    ok(ring_write(&ring, NOW + 1000, text_of(many, 5000)) == 0);
    ok_named(is_in_order(content("mail", &bytes, &files), 549) && bytes <= LIMIT, "a large turn goes into several files");
    free(many);
    ring_close(&ring);
    ok(ring_open(&ring, disk, "history", "mail", LIMIT / 4) == 0);
    ok_named(is_in_order(content("mail", &bytes, &files), 549) && bytes <= LIMIT / 4, "a smaller limit");
    ok(ring_write(&ring, NOW + 2000, numbered(NOW, 550, line)) == 0);
    ok_named(is_in_order(content("mail", &bytes, &files), 550) && bytes <= LIMIT / 4, "goes on");
    ring_close(&ring);
    is_number(sim_disk_open_files(), 0, "nothing stays open");
    disk_close(&disk);
}

TEST(long_lines)
{
    struct ring ring;
    static char lines[3 * 8000];
    int64_t bytes;
    unsigned files;
    fresh();
    memset(lines, 'x', sizeof(lines));
    for (int i = 1; i <= 3; i++)
        lines[i * 8000 - 1] = '\n';
    ok(ring_open(&ring, disk, "history", "refused", 32 * 1024) == 0);
    for (int i = 0; i < 10; i++)
        ok(ring_write(&ring, NOW + i, text_of(lines, sizeof(lines))) == 0);
    (void)content("refused", &bytes, &files);
    ok_named(bytes <= 32 * 1024 + 64 * 1024 && bytes > 0, "lines longer than a file's share");
    ring_close(&ring);
    disk_close(&disk);
}

static void
put(const char *path, const char *what)
{
    int file = disk_create(disk, path, 0600);
    ok_named(file >= 0 && disk_write(disk, file, text_from(what)) == 0, path);
    disk_close_file(disk, file);
}

TEST(start)
{
    struct ring ring;
    char line[101];
    int64_t bytes;
    unsigned files;
    fresh();
    put("history/mail.01M81JCPWC", "2026-11-22T12:06:15.184Z queue: event=x, number=0\n2026-11-22T12:0");
    put("history/mail.01M81JCPW", "not ours\n");
    put("history/mail.01M81JCPWI", "not ours\n");
    put("history/refused.01M81JCPWC", "another ring\n");
    put("history/note", "an operator's\n");
    ok(ring_open(&ring, disk, "history", "mail", LIMIT) == 0);
    is_number(ring.count, 1, "one file is of the ring");
    ok_named(strcmp(content("mail", &bytes, &files) + bytes - 16, "2026-11-22T12:0\n") == 0, "a torn line is ended");
    ok(ring_write(&ring, NOW, numbered(NOW, 1, line)) == 0);
    ok_named(strstr(content("mail", &bytes, &files), "number=1") != NULL && files == 1, "the last file goes on");
    is_number(bytes, ring_bytes(&ring), "its size is known");
    ring_close(&ring);
    /* The clock has gone back: names still sort as they were made. */
    ok(ring_open(&ring, disk, "history", "mail", 800) == 0);
    for (int i = 2; i < 5; i++)
        ok(ring_write(&ring, 1000, numbered(NOW, i, line)) == 0);
    const char *all = content("mail", &bytes, &files);
    ok_named(files > 1 && strstr(all, "number=3") < strstr(all, "number=4"), "after the clock has gone back");
    ring_close(&ring);
    /* More files than a ring has: somebody's copies, or an older limit. */
    for (int i = 0; i < RING_FOUND_MAX + 20; i++) {
        char id[ID_LENGTH + 1], path[RING_NAME_MAX];
        id_format((struct id){.time_ms = (uint64_t)(2000 + i)}, id);
        snprintf(path, sizeof(path), "history/mail.%.10s", id);
        put(path, "2026-11-22T12:06:15.184Z queue: event=x\n");
    }
    ok(ring_open(&ring, disk, "history", "mail", LIMIT) == 0);
    (void)content("mail", &bytes, &files);
    is_number(files, RING_FILES, "the newest stay");
    ring_close(&ring);
    disk_close(&disk);
}

/* Somebody else writes into the file: within a second lines come behind that. */
TEST(changed)
{
    struct ring r;
    struct found f = {.count = 0};
    char line[101], path[100];
    int64_t bytes;
    unsigned files;
    fresh();
    ok(ring_open(&r, disk, "history", "mail", LIMIT) == 0);
    for (int i = 0; i < 5; i++)
        ok(ring_write(&r, NOW, numbered(NOW, i, line)) == 0);
    ok(disk_list(disk, "history", collect, &f) == 0 && f.count == 1);
    snprintf(path, sizeof(path), "history/%s", f.names[0]);
    int file = disk_open_file(disk, path, true);
    ok(file >= 0 && disk_write(disk, file, text_before(numbered(NOW, 5, line), 100)) == 0);
    disk_close_file(disk, file);
    ok(ring_write(&r, NOW + 1000, numbered(NOW, 6, line)) == 0);
    ok_named(is_in_order(content("mail", &bytes, &files), 6) && bytes == 700 && ring_bytes(&r) == 700,
             "nothing is written over");
    ring_close(&r);
    disk_close(&disk);
}

TEST(age)
{
    struct ring ring;
    char line[101];
    int64_t bytes;
    unsigned files;
    fresh();
    put("history/mail.0000000001", "2025-06-15T10:00:00.000Z queue: event=x\n");
    put("history/mail.0000000002", "2025-06-15T10:00:00.000Z queue: event=x\n2025-06-15T12:00:00.000Z queue: event=x\n");
    put("history/mail.0000000003", "damaged\n2025-06-15T10:30:00.000Z queue: event=x\n2025-06-");
    put("history/mail.0000000004", "2025-06-15T13:00:00.000Z queue: event=x\n");
    ok(ring_open(&ring, disk, "history", "mail", LIMIT) == 0);
    int64_t eleven = INT64_C(1749985200000);
    ring_expire(&ring, eleven);
    (void)content("mail", &bytes, &files);
    is_number(files, 2, "files go by the time of their last line");
    ok(disk_unlink(disk, "history/mail.0000000004") == 0);
    ring_expire(&ring, eleven);
    is_number(ring.count, 1, "a file that somebody has removed is forgotten");
    ok(ring_write(&ring, NOW, numbered(NOW, 1, line)) == 0);
    ok_named(strstr(content("mail", &bytes, &files), "number=1") != NULL, "and a new one is begun");
    ring_expire(&ring, INT64_MAX);
    is_number(ring_bytes(&ring), 0, "the last one goes, too");
    ok(ring_write(&ring, NOW, numbered(NOW, 2, line)) == 0);
    ok(is_in_order(content("mail", &bytes, &files), 2));
    ring_close(&ring);
    disk_close(&disk);
}

/* Each call of the disk fails once: what was written before stays, lines stay whole but for the failed one, and
 * the ring goes on. */
TEST(faults)
{
    bool good = true, over = false;
    for (uint64_t call = 1; !over && call < 1000; call++) {
        struct ring ring;
        char line[101];
        int64_t bytes;
        unsigned files;
        sim_disk_reset();
        (void)disk_open(&disk, "/spool", true);
        (void)disk_make_directory(disk, "history", 0700);
        int file = disk_create(disk, "history/mail.0000000001", 0600);
        (void)disk_write(disk, file, TEXT("torn"));
        disk_close_file(disk, file);
        sim_disk_count_anew();
        sim_disk_fail_at(call, 28);
        int error = ring_open(&ring, disk, "history", "mail", 1600);
        for (int i = 0; error == 0 && i < 60; i++)
            (void)ring_write(&ring, NOW + i, numbered(NOW, i, line));
        over = !sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        if (error != 0) {
            ring_close(&ring);
            error = ring_open(&ring, disk, "history", "mail", 1600);
        }
        good = good && error == 0 && ring_write(&ring, NOW + 60, numbered(NOW, 60, line)) == 0;
        const char *all = content("mail", &bytes, &files);
        good = good && bytes <= 1600 + 400 && files <= RING_FILES + 1 && all[bytes - 1] == '\n' &&
               strstr(all, "number=60") != NULL;
        const char *last = strstr(all, "number=60");
        while (last > all && last[-1] != '\n')
            last--;
        good = good && strncmp(last, "2025-", 5) == 0;
        ring_close(&ring);
        disk_close(&disk);
    }
    ok_named(good && over, "each call of the disk fails once");
}

/* Somebody else's file has the last name that there is: names behind it would not fit. */
TEST(last_name)
{
    struct ring r;
    char line[101];
    struct disk_info info;
    fresh();
    int file = disk_create(disk, "history/mail.ZZZZZZZZZZ", 0600);
    ok(file >= 0 && disk_write(disk, file, TEXT("x\n")) == 0);
    disk_close_file(disk, file);
    is_number(ring_open(&r, disk, "history", "mail", LIMIT), 0, "it opens");
    int error = 0;
    for (int i = 0; i < 200 && error == 0; i++)
        error = ring_write(&r, NOW, numbered(NOW, i, line));
    is_number(error, 0, "it writes");
    ok_named(ring_bytes(&r) > LIMIT / 2 && ring_bytes(&r) <= LIMIT, "as much as it may");
    ok_named(disk_inspect(disk, "history/mail.ZZZZZZZZZZ", &info) == 0, "the file is not its own");
    ring_close(&r);
    disk_close(&disk);
}

/* --- With a tail ------------------------------------------------------------------ */

enum { TURN = 3, /* lines */ SMALL = 1600 };

static int
resume(struct ring *ring, struct tail *tail, int64_t limit)
{
    tail_open(tail, disk, "lock/history.mail", 20000, "1");
    return ring_resume(ring, disk, "history", "mail", limit, tail, NOW);
}

static void
leave(struct ring *ring, struct tail *tail)
{
    ring_close(ring);
    tail_close(tail);
    disk_close(&disk);
}

static void
fresh_tail(void)
{
    sim_disk_reset();
    (void)disk_open(&disk, "/spool", true);
    (void)disk_make_directory(disk, "history", 0700);
    (void)disk_make_directory(disk, "lock", 0700);
}

/* Turns until the process is killed at that call: the lines so far. */
static int
live_until(uint64_t call)
{
    struct ring ring;
    struct tail tail;
    char line[101];
    int said = 0;
    (void)resume(&ring, &tail, SMALL);
    sim_disk_count_anew();
    sim_disk_die_at(call);
    while (!sim_disk_is_dead() && said < 20 * TURN) {
        for (int i = 0; i < TURN; i++)
            said += tail_put(&tail, numbered(NOW, said, line));
        (void)ring_write(&ring, NOW + said, tail_lines(&tail));
        tail_clear(&tail);
    }
    leave(&ring, &tail);
    return said;
}

/* Another process, which is killed as well at a call of its own, 0: is not. */
static bool
resume_until(uint64_t call)
{
    struct ring ring;
    struct tail tail;
    sim_disk_restart();
    (void)disk_open(&disk, "/spool", false);
    sim_disk_count_anew();
    sim_disk_die_at(call);
    (void)resume(&ring, &tail, SMALL);
    bool is_killed = sim_disk_is_dead();
    leave(&ring, &tail);
    return is_killed;
}

TEST(kills)
{
    bool good = true, over = false;
    unsigned kills = 0;
    for (uint64_t call = 1; !over && good; call++) {
        bool over_again = false;
        for (uint64_t again = 1; !over_again && good; again++, kills++) {
            int64_t bytes;
            unsigned files;
            fresh_tail();
            int said = live_until(call);
            over = said == 20 * TURN;
            over_again = !resume_until(again);
            (void)resume_until(0);
            sim_disk_restart();
            (void)disk_open(&disk, "/spool", false);
            good = is_in_order(content("mail", &bytes, &files), said - 1) && bytes >= SMALL / 2 - 200;
            good = good || said < SMALL / 200;
            disk_close(&disk);
        }
    }
    ok_named(good && kills > 100, "a kill at each call, also of the next process: each line is there, once");
}

/* A write that a kill has cut. */
TEST(cut)
{
    for (size_t cut = 0; cut <= 300; cut += 50) {
        struct ring ring;
        struct tail tail;
        char lines[3][101], path[RING_NAME_MAX], id[ID_LENGTH + 1];
        int64_t bytes;
        unsigned files;
        fresh_tail();
        id_format((struct id){.time_ms = NOW}, id);
        snprintf(path, sizeof(path), "history/mail.%.10s", id);
        tail_open(&tail, disk, "lock/history.mail", 20000, "1");
        for (int i = 0; i < 3; i++)
            ok(tail_put(&tail, numbered(NOW, i, lines[i])));
        int file = disk_create(disk, path, 0600);
        ok(disk_write(disk, file, TEXT("before\n")) == 0);
        tail_set_mark(&tail, NOW, (int64_t)strlen("before\n"), tail_lines(&tail).at);
        ok(disk_write(disk, file, text_before(tail_lines(&tail), cut)) == 0);
        disk_close_file(disk, file);
        tail_close(&tail);
        ok(resume(&ring, &tail, 1 << 20) == 0);
        const char *all = content("mail", &bytes, &files);
        ok_named(bytes == 307 && is_in_order(all + strlen("before\n"), 2), "its rest is written");
        is_number(tail_lines(&tail).length, 0, "and nothing is left");
        leave(&ring, &tail);
    }
}

/* The rest is not behind what it belongs to any more. */
TEST(emptied)
{
    struct ring ring;
    struct tail tail;
    char line[101];
    int64_t bytes;
    unsigned files;
    fresh_tail();
    put("history/mail.0000000001", "torn");
    tail_open(&tail, disk, "lock/history.mail", 20000, "1");
    ok(tail_put(&tail, numbered(NOW, 0, line)));
    tail_set_mark(&tail, 1, 4000, tail_lines(&tail).at);
    tail_close(&tail);
    ok(resume(&ring, &tail, 1 << 20) == 0);
    const char *all = content("mail", &bytes, &files);
    ok_named(strncmp(all, "torn\n2025-", 10) == 0 && bytes == 105, "a file that is shorter: all lines, on lines of their own");
    leave(&ring, &tail);
}
