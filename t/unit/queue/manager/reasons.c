/* Why mail waits, over a restart: written down, read back, and nothing else believed.
 */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/manager/deferral_reasons.h"

#include "base/crc.h"
#include "base/memory.h"
#include "t/support/manager_world.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

static const char PATH[] = "lock/reasons";
enum { NOW = 1700000000 };

static const int64_t now_ms = NOW * INT64_C(1000);

struct bench {
    struct disk *disk;
    struct sched *sched;
    struct deferral_reasons *from, *to;
};

static struct id
id_of(unsigned n)
{
    return (struct id){.time_ms = UINT64_C(1700000000000) + n, .hash = n * 7};
}

static void
bench_begin(struct bench *b)
{
    *b = (struct bench){0};
    sim_disk_reset();
    if (disk_open(&b->disk, "/spool", true) < 0)
        abort();
    disk_make_directory(b->disk, "lock", 0700);
    b->sched = sched_new(
        &(struct sched_settings){.active_limit = 10, .session_limit = 10, .seed = 7}, &now_ms);
    b->from = deferral_reasons_new(200000);
    b->to = deferral_reasons_new(200000);
}

static void
bench_end(struct bench *b)
{
    deferral_reasons_free(&b->from);
    deferral_reasons_free(&b->to);
    sched_free(&b->sched);
    disk_close(&b->disk);
}

static struct outcome
busy(const char *text, const char *remote)
{
    struct outcome o =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 451, "4.7.0", "%s", text);
    (void)!text_copy(o.remote, sizeof(o.remote), text_from(remote));
    return o;
}

/* It waits, due in so many seconds. */
static void
bench_add(struct bench *b, unsigned n, int due_s, const struct outcome *o)
{
    sched_add(b->sched, id_of(n), (NOW + due_s) * INT64_C(1000),
              1);
    deferral_reasons_keep(b->from, id_of(n), o);
}

static int
bench_write(struct bench *b)
{
    return reasons_write(b->disk, PATH, b->from, b->sched, true);
}

static bool
wants_all(void *context, struct id id)
{
    (void)context;
    (void)id;
    return true;
}

static bool
wants_second_slice(void *context, struct id id)
{
    (void)context;
    return id_slice(id, 2) == 1;
}

static int
bench_read(struct bench *b)
{
    deferral_reasons_free(&b->to);
    b->to = deferral_reasons_new(200000);
    return reasons_read(b->disk, PATH, b->to, wants_all, NULL);
}

static struct text
bench_file(void)
{
    return sim_disk_content("/spool/lock/reasons");
}

static void
bench_put(struct bench *b, struct text text)
{
    disk_unlink(b->disk, PATH);
    int file = disk_create(b->disk, PATH, 0600);
    disk_write(b->disk, file, text);
    disk_close_file(b->disk, file);
}

static size_t
times(struct text all, const char *word)
{
    size_t count = 0, length = strlen(word);
    for (size_t i = 0; i + length <= all.length; i++)
        count += memcmp(all.at + i, word, length) == 0;
    return count;
}

static void
note_number(void *context, struct id id, unsigned number)
{
    (void)id;
    *(unsigned *)context = number;
}

TEST(round)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome shared = busy("try again later", "mx.test[192.0.2.1]:25"),
                   odd = busy("a\nb\t\x1b[31m \xff end 00000000\n", "");
    is_number(bench_write(&b), 0, "nothing is known");
    ok_named(bench_file().at == NULL, "and no file made");
    is_number(bench_read(&b), -ENOENT, "none is read");
    for (unsigned n = 1; n <= 100; n++)
        bench_add(&b, n, 60, &shared);
    bench_add(&b, 101, 60, &odd);
    is_number(bench_write(&b), 0, "written");
    is_number(sim_disk_count(""), 1, "as one file, no draft of it");
    is_number(times(bench_file(), "try again later"), 1, "what many share stands once");
    is_number(bench_read(&b), 0, "read");
    is_number(deferral_reasons_count(b.to), 101, "all messages");
    is_string(deferral_reasons_find(b.to, id_of(1)), shared.text, "the reason of the first");
    is_string(deferral_reasons_find(b.to, id_of(100)), shared.text, "of the last");
    is_string(deferral_reasons_find(b.to, id_of(101)), odd.text, "bytes as they were");
    is_number(deferral_reasons_numbers(b.to), 3, "two reasons in memory");
    deferral_reasons_forget(b.to, id_of(101));
    unsigned number = 0;
    struct outcome back;
    deferral_reasons_each(b.to, note_number, &number);
    ok(deferral_reasons_read(b.to, number, &back));
    is_number(back.code, 451, "the code");
    is_string(back.enhanced, "4.7.0", "the enhanced code");
    is_string(back.remote, shared.remote, "and who said so");
}

/* No text in an outcome makes the file unreadable. */
TEST(odd_outcomes)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome o = busy("", "");
    bench_add(&b, 1, 1, &o);
    o.code = 99;
    memcpy(o.enhanced, "2.x.y", 6);
    memset(o.text, '%', sizeof(o.text) - 1);
    memset(o.remote, '\n', sizeof(o.remote) - 1);
    bench_add(&b, 2, 1, &o);
    memset(o.enhanced, '7', sizeof(o.enhanced) - 1);
    bench_add(&b, 3, 1, &o);
    is_number(bench_write(&b), 0, "written");
    is_number(bench_read(&b), 0, "read");
    is_number(deferral_reasons_count(b.to), 3, "all of them");
    is_string(deferral_reasons_find(b.to, id_of(3)), o.text, "the longest text");
}

/* Only of what waits. */
TEST(gone)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome o = busy("busy", "");
    for (unsigned n = 1; n <= 3; n++)
        bench_add(&b, n, 60, &o);
    sched_forget(b.sched, id_of(2));
    is_number(reasons_write(b.disk, PATH, b.from, b.sched, false), 0,
              "the start has not found all");
    is_number(bench_read(&b), 0, "read");
    is_number(deferral_reasons_count(b.to), 3, "then all are kept");
    is_number(bench_write(&b), 0, "it has");
    is_number(deferral_reasons_count(b.from), 2, "what does not wait is forgotten");
    is_number(bench_read(&b), 0, "read");
    is_string(deferral_reasons_find(b.to, id_of(2)), "", "also in the file");
    is_string(deferral_reasons_find(b.to, id_of(3)), "busy", "not the others");
    sched_forget(b.sched, id_of(1));
    sched_forget(b.sched, id_of(3));
    is_number(bench_write(&b), 0, "none waits");
    is_number(sim_disk_count(""), 0, "no file");
}

TEST(count)
{
    enum { MORE = 20 };
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome o = busy("busy", "");
    for (unsigned n = 0; n < REASONS_COUNT_MAX + MORE; n++)
        bench_add(&b, n, (int)(REASONS_COUNT_MAX + MORE - n), &o);
    is_number(bench_write(&b), 0, "more than the limit");
    ok_named(times(text_before(bench_file(), 100), "left out 20\n") == 1,
             "the file says how many are left out");
    is_number(bench_read(&b), 0, "read");
    is_number(deferral_reasons_count(b.to), REASONS_COUNT_MAX, "as many as allowed");
    is_string(deferral_reasons_find(b.to, id_of(MORE - 1)), "", "due last, left out");
    is_string(deferral_reasons_find(b.to, id_of(MORE)), "busy", "due before it, kept");
    is_string(deferral_reasons_find(b.to, id_of(REASONS_COUNT_MAX + MORE - 1)), "busy",
              "due first, kept");
}

TEST(size)
{
    enum { COUNT = 18000 };
    char text[OUTCOME_TEXT_MAX];
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome shared = busy("shared", "");
    for (unsigned n = 0; n < COUNT; n++) {
        snprintf(text, sizeof(text), "%0470u", n);
        struct outcome o = busy(text, "");
        bench_add(&b, n, (int)n + 1, &o);
    }
    bench_add(&b, COUNT, 0, &shared);
    is_number(bench_write(&b), 0, "too many bytes");
    ok_named(bench_file().length <= REASONS_SIZE_MAX, "the file keeps to its limit");
    ok_named(bench_file().length > REASONS_SIZE_MAX / 4 * 3, "and is well filled");
    is_number(bench_read(&b), 0, "it can be read");
    is_string(deferral_reasons_find(b.to, id_of(COUNT)), "shared", "it has what is due first");
}

/* A byte less, or another one: nothing of it is believed. */
TEST(damage)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome one = busy("one", "a[::1]:25"), two = busy("two", "");
    bench_add(&b, 1, 60, &one);
    bench_add(&b, 2, 60, &two);
    is_number(bench_write(&b), 0, "written");
    size_t size = bench_file().length;
    char *good = memory_new(size + 1);
    memcpy(good, bench_file().at, size);
    unsigned believed = 0, added = 0;
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            good[i] = (char)(good[i] ^ 1 << bit);
            bench_put(&b, text_of(good, size));
            believed += bench_read(&b) != -EILSEQ;
            added += deferral_reasons_count(b.to);
            good[i] = (char)(good[i] ^ 1 << bit);
        }
    is_number(believed, 0, "each bit counts");
    for (size_t i = 0; i < size; i++) {
        bench_put(&b, text_of(good, i));
        believed += bench_read(&b) != -EILSEQ;
        added += deferral_reasons_count(b.to);
    }
    is_number(believed, 0, "and each byte");
    is_number(added, 0, "nothing is taken");
    bench_put(&b, text_of(good, size + 1));
    is_number(bench_read(&b), -EILSEQ, "one byte more");
    bench_put(&b, text_of(good, size));
    is_number(bench_read(&b), 0, "as it was");
    free(good);
}

/* Well summed, and yet not what we write. */
TEST(forged)
{
#define ONE "450 4.2.0 1 0\nx\n"
#define ID  "01HF7YAT00-0000000E"
    static const struct {
        const char *body;
        int result;
    } pages[] = {
        {"petrel reasons 1\noutcomes 1 messages 1 left out 0\n" ONE ID " 1\n",           0      },
        {"petrel reasons 1\noutcomes 0 messages 0 left out 0\n",                         0      },
        {"petrel reasons 1\noutcomes 1 messages 1 left out 99999999999\n" ONE ID " 1\n",
         -EILSEQ                                                                                },
        {"",                                                                             -EILSEQ},
        {"petrel reasons 1\n",                                                           -EILSEQ},
        {"petrel reasons 2\noutcomes 0 messages 0 left out 0\n",                         -EILSEQ},
        {"petrel reasons 1\noutcomes 1 messages 0 left out\n" ONE,                       -EILSEQ},
        {"petrel reasons 1\noutcomes 4000000000 messages 0 left out 0\n",                -EILSEQ},
        {"petrel reasons 1\noutcomes 0 messages 100001 left out 0\n",                    -EILSEQ},
        {"petrel reasons 1\noutcomes 2 messages 1 left out 0\n" ONE ID " 1\n",           -EILSEQ},
        {"petrel reasons 1\noutcomes 1 messages 2 left out 0\n" ONE ID " 1\n",           -EILSEQ},
        {"petrel reasons 1\noutcomes 1 messages 1 left out 0\n" ONE ID " 0\n",           -EILSEQ},
        {"petrel reasons 1\noutcomes 1 messages 1 left out 0\n" ONE ID " 2\n",           -EILSEQ},
        {"petrel reasons 1\noutcomes 1 messages 1 left out 0\n" ONE ID " 1 1\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 1 left out 0\n" ONE "../x 1\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n450 4.2.0 480 0\nx\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n450 4.2.0 9 0\nx\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n450 4.2.0 1 320\nx\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n450 2.0.0 1 0\nx\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n450 4.2.1000 1 0\nx\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n99 4.2.0 1 0\nx\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n600 4.2.0 1 0\nx\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n450 4.2.0 1 0\nxy\n",
         -EILSEQ                                                                                },
        {"petrel reasons 1\noutcomes 1 messages 0 left out 0\n-1 4.2.0 1 0\nx\n",
         -EILSEQ                                                                                },
    };
    struct buffer text;
    char name[40];
    FIXTURE(bench, b, bench_begin, bench_end);
    buffer_init(&text, 1000);
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
        buffer_clear(&text);
        (void)!buffer_format(&text, "%send %08" PRIx32 "\n", pages[i].body,
                             crc_add(0, pages[i].body, strlen(pages[i].body)));
        bench_put(&b, buffer_text(&text));
        snprintf(name, sizeof(name), "a forged file, %zu", i);
        is_number(bench_read(&b), pages[i].result, name);
    }
    static const char nul[] =
        "petrel reasons 1\noutcomes 1 messages 0 left out 0\n450 4.2.0 2 0\nx\0\n";
    buffer_clear(&text);
    (void)!buffer_add(&text, text_of(nul, sizeof(nul) - 1));
    (void)!buffer_format(&text, "end %08" PRIx32 "\n", crc_add(0, nul, sizeof(nul) - 1));
    bench_put(&b, buffer_text(&text));
    is_number(bench_read(&b), -EILSEQ, "a NUL in a text");
    buffer_free(&text);
}

TEST(huge)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    size_t size = 2 * REASONS_SIZE_MAX;
    char *huge = memory_new(size);
    memset(huge, '\n', size);
    bench_put(&b, text_of(huge, size));
    is_number(bench_read(&b), -EFBIG, "a huge file is not read to its end");
    free(huge);
}

TEST(slices)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome o = busy("busy", "");
    struct id first = {.time_ms = 1, .hash = 1},
              second = {.time_ms = 1, .hash = UINT64_C(1) << 39};
    sched_add(b.sched, first, NOW, 1);
    sched_add(b.sched, second, NOW, 1);
    deferral_reasons_keep(b.from, first, &o);
    deferral_reasons_keep(b.from, second, &o);
    is_number(bench_write(&b), 0, "of both slices");
    is_number(reasons_read(b.disk, PATH, b.to, wants_second_slice, NULL), 0, "read");
    is_string(deferral_reasons_find(b.to, first), "", "not of the other's");
    is_string(deferral_reasons_find(b.to, second), "busy", "of its own");
}

/* Each call of the disk fails once: the file is the old one or the new one. */
TEST(faults)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome o = busy("old", ""), n = busy("new", "");
    bench_add(&b, 1, 60, &o);
    is_number(bench_write(&b), 0, "written");
    deferral_reasons_keep(b.from, id_of(1), &n);
    unsigned call = 1, bad = 0;
    for (;; call++) {
        sim_disk_count_anew();
        sim_disk_fail_at(call, EIO);
        int result = bench_write(&b);
        if (!sim_disk_has_failed())
            break;
        sim_disk_fail_at(0, 0);
        bad += bench_read(&b) != 0;
        const char *found = deferral_reasons_find(b.to, id_of(1));
        bad += strcmp(found, "new") != 0 && (result == 0 || strcmp(found, "old") != 0);
    }
    ok_named(call > 3, "several calls have failed");
    is_number(bad, 0, "no failure leaves half a file");
    sim_disk_fail_at(0, 0);
    is_number(bench_read(&b), 0, "at last it is read");
    is_string(deferral_reasons_find(b.to, id_of(1)), "new", "and is the new one");
}

/* --- The manager ------------------------------------------------------------------ */

static void
manager_bench_begin(struct world *w)
{
    sim_disk_reset();
    manager_world_begin(w, "* smtp://127.0.0.1:25");
}

static struct text
file_of(const struct world *w, const char *name)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/lock/%s", w->folder, name);
    return sim_disk_content(path);
}

TEST(restart)
{
    FIXTURE(world, w, manager_bench_begin, manager_world_end);
    world_deliver(&w, "ann@a.test", "later@b.test");
    is_string(manager_reason(w.manager, w.id, 0), "come again", "deferred");
    world_restart(&w);
    is_string(manager_reason(w.manager, w.id, 0), "come again", "after a clean stop");
    world_deliver(&w, "ann@a.test", "site@b.test");
    ok_named(times(file_of(&w, "reasons"), "site is down") == 0, "not yet written");
    sim_loop_advance(w.loop, 61000);
    ok_named(times(file_of(&w, "reasons"), "site is down") == 1, "within a minute");
    ok(manager_operate(w.manager, MANAGER_REMOVE, w.id, (char[MANAGER_WHY_MAX]){""}) ==
       MANAGER_DONE);
    world_restart(&w);
    ok_named(times(file_of(&w, "reasons"), "site is down") == 0, "removed: not kept");
    ok_named(times(file_of(&w, "reasons"), "come again") == 1, "the other is");
    w.all_good = true;
    manager_retry_all(w.manager);
    world_turns(&w);
    world_restart(&w);
    ok_named(file_of(&w, "reasons").at == NULL, "no file when nothing waits");
    ok_named(!world_logged(&w, "is ignored"), "no warning");
}

/* Not asked for what another recipient was told. */
TEST(recipients)
{
    FIXTURE(world, w, manager_bench_begin, manager_world_end);
    world_deliver(&w, "ann@a.test", "later@b.test site@c.test");
    w.stalled = true;
    manager_retry_all(w.manager);
    world_turns(&w);
    ok_named(manager_active(w.manager, w.id) != NULL, "it is tried again");
    ok_named(manager_reason(w.manager, w.id, 1)[0] != '\0',
             "meanwhile the last attempt tells");
    world_restart(&w);
    ok_named(manager_reason(w.manager, w.id, 1)[0] != '\0', "also after a stop");
}

TEST(ignored)
{
    char path[100];
    FIXTURE(world, w, manager_bench_begin, manager_world_end);
    world_deliver(&w, "ann@a.test", "later@b.test");
    world_stop(&w);
    snprintf(path, sizeof(path), "%s/lock/reasons", w.folder);
    ok_named(sim_disk_damage(path, 30), "a byte is damaged");
    w.stalled = true;
    manager_world_start(&w);
    is_string(manager_reason(w.manager, w.id, 0), "", "no reason is believed");
    ok_named(world_logged(&w, "ignored lock/reasons: damaged"), "a warning");
    is_number(times(buffer_text(&w.lines), "ignored lock/reasons"), 1, "one line");
}

TEST(suffix)
{
    FIXTURE(world, w, manager_bench_begin, manager_world_end);
    world_stop(&w);
    w.settings.queue.slices = 2;
    w.settings.queue.slice = 1;
    manager_world_start(&w);
    for (int i = 0; i < 20; i++)
        world_deliver(&w, "ann@a.test", "later@b.test");
    world_restart(&w);
    ok_named(times(file_of(&w, "reasons.0512-1023"), "come again") == 1,
             "each slice has a file of its own");
    is_string(manager_reason(w.manager, w.id, 0), "come again", "and reads it");
}

/* Without a daemon. */
TEST(all)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct outcome one = busy("one", ""), two = busy("two", ""), old = busy("old", "");
    deferral_reasons_free(&b.to);
    b.to = reasons_read_all(b.disk);
    is_number(deferral_reasons_count(b.to), 0, "there is none");
    bench_add(&b, 1, 1, &one);
    is_number(bench_write(&b), 0, "of the only slice");
    bench_add(&b, 1, 1, &two);
    bench_add(&b, 2, 1, &two);
    disk_rename(b.disk, PATH, "lock/reasons.0000-0511");
    is_number(bench_write(&b), 0, "of another run");
    disk_rename(b.disk, PATH, "lock/reasons.0512-1023");
    bench_add(&b, 3, 1, &old);
    bench_add(&b, 4, 1, &old);
    is_number(bench_write(&b), 0, "of no slice");
    disk_rename(b.disk, PATH, "lock/reasons.new");
    disk_link(b.disk, "lock/reasons.new", "lock/reasons.0512-1023.new");
    disk_link(b.disk, "lock/reasons.new", "lock/reasons.0000-0000-0000-0000");
    bench_put(&b, TEXT("nonsense"));
    deferral_reasons_free(&b.to);
    b.to = reasons_read_all(b.disk);
    is_number(deferral_reasons_count(b.to), 2, "of both, without drafts and damage");
    ok(deferral_reasons_find(b.to, id_of(1))[0] != '\0');
    is_string(deferral_reasons_find(b.to, id_of(2)), "two", "the other");
}
