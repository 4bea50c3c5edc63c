/* The simulated disk keeps what it promises: what survives a power cut and in which
 * variants, syncs in the background, shared memory, locks, and copies of the world. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "t/sim/sim_disk.h"

#include "t/sim/sim.h"
#include "t/support/tap.h"

#include <errno.h>

enum { PAGE = 4096, SECTOR = 512 };

static struct disk *
begin(void)
{
    struct disk *disk;
    sim_disk_reset();
    if (disk_open(&disk, "/d", true) != 0)
        abort();
    disk_make_directory(disk, "a", 0700);
    disk_make_directory(disk, "b", 0700);
    return disk;
}

static int
put(struct disk *disk, const char *path, const char *content)
{
    int file = disk_create(disk, path, 0600);
    if (file < 0 || disk_write(disk, file, text_from(content)) < 0)
        abort();
    return file;
}

static bool
holds(const char *path, const char *content)
{
    struct text t = sim_disk_content(path);
    return content == NULL ? t.at == NULL
                           : t.at != NULL && text_equal(t, text_from(content));
}

/* The rest after a cut of the world as it is now: path with content, NULL: without. */
static bool
leaves(enum sim_cut_kind kind, size_t item, const char *path, const char *content)
{
    struct world *now = sim_disk_exchange(sim_disk_copy());
    sim_disk_cut((struct sim_cut){kind, item});
    bool good = holds(path, content);
    struct world *copy = sim_disk_exchange(now);
    sim_disk_free(&copy);
    return good;
}

TEST(syncs)
{
    struct disk *disk = begin();
    int file = put(disk, "a/1", "one");
    ok_named(leaves(SIM_CUT_NOTHING, 0, "/d/a/1", NULL), "a new file goes");
    is_number(disk_sync(disk, file), 0, "synced");
    ok_named(leaves(SIM_CUT_NOTHING, 0, "/d/a/1", "one"), "it stays with its name");
    disk_link(disk, "a/1", "b/1");
    disk_unlink(disk, "a/1");
    disk_sync(disk, file);
    ok_named(leaves(SIM_CUT_NOTHING, 0, "/d/a/1", "one") &&
                 leaves(SIM_CUT_NOTHING, 0, "/d/b/1", NULL),
             "later names wait");
    disk_sync_directory(disk, "b");
    ok_named(leaves(SIM_CUT_NOTHING, 0, "/d/a/1", "one") &&
                 leaves(SIM_CUT_NOTHING, 0, "/d/b/1", "one"),
             "for their own directory");
    int directory = disk_open_directory(disk, "a");
    is_number(disk_sync(disk, directory), 0, "a directory as a handle");
    ok(leaves(SIM_CUT_NOTHING, 0, "/d/a/1", NULL));
    is_number(disk_open_directory(disk, "a/1"), -ENOENT, "none");
    is_number(disk_open_directory(disk, "b/1"), -ENOTDIR, "a file is none");
    sim_disk_count_anew();
    disk_write_at(disk, file, 0, TEXT("ONE"));
    sim_disk_fail_at(2, EIO);
    is_number(disk_sync_data(disk, file), -EIO, "a failed sync");
    is_number(disk_sync_data(disk, file), 0, "counts as clean");
    ok_named(holds("/d/b/1", "ONE") && leaves(SIM_CUT_ALL, 0, "/d/b/1", "one"),
             "and the content is lost");
    disk_close_file(disk, directory);
    disk_close_file(disk, file);
    disk_close(&disk);
}

TEST(items)
{
    char large[2 * PAGE + 1];
    struct disk *disk = begin();
    memset(large, 'x', sizeof(large));
    large[2 * PAGE] = '\0';
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 0, "nothing is pending");
    is_number(sim_disk_cuts(SIM_CUT_RANDOM), 0, "nothing to toss for");
    int file = put(disk, "a/1", large);
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 4, "two pages, a size, a name");
    ok_named(leaves(SIM_CUT_ALL, 0, "/d/a/1", large), "all survives");
    ok_named(leaves(SIM_CUT_ALONE, 3, "/d/a/1", ""), "a name without content");
    ok_named(leaves(SIM_CUT_ALL_BUT, 3, "/d/a/1", NULL), "content without a name");
    ok_named(leaves(SIM_CUT_ALL_BUT, 2, "/d/a/1", ""), "pages without a size");
    struct world *now = sim_disk_exchange(sim_disk_copy());
    sim_disk_cut((struct sim_cut){SIM_CUT_ALL_BUT, 1});
    struct text t = sim_disk_content("/d/a/1");
    ok_named(t.length == 2 * PAGE && t.at[0] == 'x' && t.at[PAGE] == '\0',
             "a page of zeros");
    struct world *copy = sim_disk_exchange(now);
    sim_disk_free(&copy);
    disk_sync(disk, file);
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 0, "nothing is pending any more");
    disk_write_at(disk, file, 10, TEXT("x"));
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 0, "the same byte is no change");
    disk_rename(disk, "a/1", "b/2");
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 1, "a rename is one");
    ok(leaves(SIM_CUT_ALONE, 0, "/d/a/1", NULL) &&
       leaves(SIM_CUT_ALONE, 0, "/d/b/2", large));
    disk_rename(disk, "b/2", "a/3");
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 1, "two of the same file too");
    disk_unlink(disk, "a/3");
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 1, "and then its end");
    ok(leaves(SIM_CUT_ALONE, 0, "/d/a/1", NULL) &&
       leaves(SIM_CUT_NOTHING, 0, "/d/a/1", large));
    ok_named(sim_disk_cuts(SIM_CUT_RANDOM) > 1000 &&
                 (leaves(SIM_CUT_RANDOM, 1, "/d/a/1", large) ||
                  leaves(SIM_CUT_RANDOM, 1, "/d/a/1", NULL)),
             "the toss of a coin");
    disk_close_file(disk, file);
    disk_close(&disk);
}

TEST(torn)
{
    char three[3 * SECTOR + 1], want[3 * SECTOR + 1];
    struct disk *disk = begin();
    memset(three, 'y', sizeof(three));
    three[3 * SECTOR] = '\0';
    int file = put(disk, "a/1", "12345678");
    is_number(sim_disk_cuts(SIM_CUT_TORN), 0, "less than a sector is written whole");
    disk_sync(disk, file);
    disk_write(disk, file, text_from(three));
    is_number(sim_disk_cuts(SIM_CUT_TORN), 3, "three boundaries inside");
    memcpy(want, "12345678", 8);
    memset(want + 8, 'y', sizeof(want) - 8);
    want[SECTOR] = '\0';
    ok_named(leaves(SIM_CUT_TORN, 0, "/d/a/1", want), "up to the first");
    want[SECTOR] = 'y';
    want[2 * SECTOR] = '\0';
    ok_named(leaves(SIM_CUT_TORN, 1, "/d/a/1", want), "up to the second");
    ok_named(leaves(SIM_CUT_TORN_ALONE, 1, "/d/a/1", want), "alone as well");
    disk_sync_data(disk, file);
    is_number(sim_disk_cuts(SIM_CUT_TORN), 0, "synced, it is whole");
    memset(three, 'z', sizeof(three) - 1);
    disk_write_at(disk, file, 0, text_from(three));
    memset(want, 'z', SECTOR);
    memset(want + SECTOR, 'y', 2 * SECTOR);
    strcpy(want + 3 * SECTOR - 8, "yyyyyyyy");
    struct world *now = sim_disk_exchange(sim_disk_copy());
    sim_disk_cut((struct sim_cut){SIM_CUT_TORN, 0});
    struct text t = sim_disk_content("/d/a/1");
    ok_named(t.length == 3 * SECTOR + 8 && memcmp(t.at, want, 3 * SECTOR) == 0,
             "over old content, the old content is behind it");
    struct world *copy = sim_disk_exchange(now);
    sim_disk_free(&copy);
    disk_close_file(disk, file);
    disk_close(&disk);
}

TEST(garbage)
{
    struct disk *disk = begin();
    char two[2 * SECTOR + 1];
    memset(two, 'y', sizeof(two));
    two[2 * SECTOR] = '\0';
    int file = put(disk, "a/1", "TTTT");
    is_number(sim_disk_cuts(SIM_CUT_GARBAGE), 1, "a new page may be garbage");
    ok(leaves(SIM_CUT_ALL, 0, "/d/a/1", "TTTT") &&
       !leaves(SIM_CUT_GARBAGE, 0, "/d/a/1", "TTTT"));
    disk_sync(disk, file);
    disk_write_at(disk, file, 1, TEXT("D"));
    is_number(sim_disk_cuts(SIM_CUT_GARBAGE), 0, "a durable sector never is");
    disk_write(disk, file, text_from(two));
    disk_sync(disk, file);
    disk_write_at(disk, file, 1, TEXT("d"));
    disk_write_at(disk, file, 2 * SECTOR, TEXT("d"));
    is_number(sim_disk_cuts(SIM_CUT_GARBAGE), 0, "nor what lies between");
    disk_sync(disk, file);
    disk_write_at(disk, file, 4, text_from(two));
    is_number(sim_disk_cuts(SIM_CUT_GARBAGE), 1, "but what is written over at length");
    struct world *now = sim_disk_exchange(sim_disk_copy());
    sim_disk_cut((struct sim_cut){SIM_CUT_GARBAGE, 0});
    struct text t = sim_disk_content("/d/a/1");
    ok_named(t.length == 4 + 2 * SECTOR && memcmp(t.at, "TdTT", 4) == 0 &&
                 memcmp(t.at + 4, two, 2 * SECTOR) != 0,
             "not the bytes beside it");
    struct world *copy = sim_disk_exchange(now);
    sim_disk_free(&copy);
    disk_close_file(disk, file);
    disk_close(&disk);
}

/* --- In the background ----------------------------------------------------------- */

struct heard {
    struct disk_sync sync;
    int count, result;
};

static void
on_done(void *context, int result)
{
    struct heard *h = context;
    h->count++;
    h->result = result;
}

static struct heard *
listen(struct heard *h)
{
    *h = (struct heard){.sync = {.done = on_done}, .result = 99};
    h->sync.context = h;
    return h;
}

TEST(background)
{
    struct heard h;
    struct loop *loop = sim_loop_new(1);
    struct disk *disk = begin();
    int file = put(disk, "a/1", "one");
    is_number(disk_sync_way(disk), DISK_SYNC_BLOCKS, "at first syncs block");
    is_number(disk_sync_begin(disk, file, true, &listen(&h)->sync), 0, "are over");
    is_number(h.count, 0, "and nobody is called");
    is_number(disk_sync_on(disk, loop), DISK_SYNC_AIO, "then they do not");
    disk_write_at(disk, file, 0, TEXT("two"));
    is_number(disk_sync_begin(disk, file, false, &listen(&h)->sync), DISK_SYNCING,
              "one begins");
    disk_write_at(disk, file, 1, TEXT("!"));
    ok_named(leaves(SIM_CUT_NOTHING, 0, "/d/a/1", NULL), "nothing is durable yet");
    ok_named(leaves(SIM_CUT_ALL, 0, "/d/a/1", "t!o"), "but may be");
    loop_turn(loop, 0);
    ok(h.count == 1 && h.result == 0);
    ok_named(leaves(SIM_CUT_NOTHING, 0, "/d/a/1", "two"),
             "durable is what was there when it began");
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 1, "what came later is pending");

    sim_disk_set_syncing(DISK_SYNC_AIO, 5);
    disk_link(disk, "a/1", "b/1");
    int directory = disk_open_directory(disk, "b");
    disk_sync_begin(disk, directory, false, &listen(&h)->sync);
    disk_link(disk, "a/1", "b/2");
    sim_loop_advance(loop, 4);
    ok(h.count == 0 && leaves(SIM_CUT_NOTHING, 0, "/d/b/1", NULL));
    sim_loop_advance(loop, 1);
    ok_named(h.count == 1 && leaves(SIM_CUT_NOTHING, 0, "/d/b/1", "two") &&
                 leaves(SIM_CUT_NOTHING, 0, "/d/b/2", NULL),
             "a directory's names, 5 ms later");

    sim_disk_count_anew();
    sim_disk_fail_at(2, EIO);
    disk_sync_begin(disk, file, true, &listen(&h)->sync);
    sim_loop_advance(loop, 5);
    ok_named(h.count == 1 && h.result == -EIO, "it may fail in the end");
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 1, "and loses the content, not the name");
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    is_number(disk_sync_begin(disk, file, true, &listen(&h)->sync), -EIO, "or at once");

    disk_write_at(disk, file, 0, TEXT("end"));
    disk_sync_begin(disk, file, true, &listen(&h)->sync);
    sim_disk_power_cut();
    sim_loop_advance(loop, 5);
    ok_named(h.count == 1 && h.result == -EIO && holds("/d/b/1", "two"),
             "a cut ends it");
    disk_close_file(disk, directory);
    disk_close_file(disk, file);
    file = disk_open_file(disk, "b/1", true);
    disk_sync_begin(disk, file, true, &listen(&h)->sync);
    disk_close_file(disk, file);
    disk_close(&disk);
    loop_turn(loop, 10);
    is_number(h.count, 0, "nobody hears after the end");
    loop_free(&loop);
}

/* --- Memory and locks ------------------------------------------------------------ */

TEST(map)
{
    struct disk *disk = begin();
    char *map = disk_map(disk, "a/m", 6000);
    ok(map != NULL && map[5999] == '\0');
    map[0] = 'm';
    map[5000] = 'n';
    struct text t = sim_disk_content("/d/a/m");
    ok_named(t.length == 6000 && t.at[0] == 'm' && t.at[5000] == 'n',
             "stored is written");
    is_number(sim_disk_cuts(SIM_CUT_ALONE), 4, "and pending");
    ok_named(leaves(SIM_CUT_NOTHING, 0, "/d/a/m", NULL), "a power cut forgets it");
    ok_named(disk_map(disk, "a/m", 6000) == map, "the same memory for a second one");
    int file = disk_open_file(disk, "a/m", true);
    disk_write_at(disk, file, 1, TEXT("o"));
    ok_named(map[1] == 'o', "a write is seen there");
    disk_sync(disk, file);
    map[2] = 'p';
    disk_unmap(disk, map, 6000);
    sim_disk_restart();
    map[3] = 'q';
    disk_unmap(disk, map, 6000);
    disk_close_file(disk, file);
    t = sim_disk_content("/d/a/m");
    ok_named(t.at[2] == 'p' && t.at[3] == '\0',
             "a kill keeps it, and a dead process stores nothing");
    map = disk_map(disk, "a/m", 6000);
    ok(map != NULL && map[2] == 'p');
    sim_disk_die_at(sim_disk_calls() + 1);
    map[4] = 'r';
    disk_sync_directory(disk, "a");
    map[5] = 's';
    disk_unmap(disk, map, 6000);
    sim_disk_restart();
    t = sim_disk_content("/d/a/m");
    ok_named(t.at[4] == 'r' && t.at[5] == '\0', "up to its death");
    sim_disk_power_cut();
    t = sim_disk_content("/d/a/m");
    ok_named(t.at[1] == 'o' && t.at[2] == '\0', "synced it survives a power cut");
    ok_named(disk_map(disk, "none/m", 10) == NULL, "where nothing can be made");
    disk_close(&disk);
}

TEST(locks)
{
    struct disk *disk = begin(), *other;
    disk_open(&other, "/d", false);
    int first = disk_lock(disk, "lock", 0, 4);
    int second = disk_lock(other, "lock", 4, 4);
    ok(first >= 0 && second >= 0);
    is_number(disk_lock(other, "lock", 3, 1), -EWOULDBLOCK, "taken");
    is_number(disk_lock(disk, "lock", 0, 1), -EWOULDBLOCK, "by ourselves too");
    is_number(disk_lock(disk, "lock", 2, 100), -EWOULDBLOCK, "one of them is enough");
    disk_close_file(disk, first);
    first = disk_lock(other, "lock", 0, 4);
    ok_named(first >= 0, "free again");
    sim_disk_restart();
    ok_named(disk_lock(disk, "lock", 0, 8) >= 0, "a dead process has no lock");
    is_number(disk_lock(disk, "no/lock", 0, 1), -ENOENT, "nowhere");
    is_number(disk_lock(disk, "a", 0, 1), -EINVAL, "no file");
    disk_close(&other);
    disk_close(&disk);
}

/* --- Copies ---------------------------------------------------------------------- */

static void
count_change(void *context)
{
    ++*(int *)context;
}

TEST(copies)
{
    int changes = 0;
    struct disk_info info;
    struct disk *disk = begin(), *there;
    int file = put(disk, "a/1", "one");
    disk_sync(disk, file);
    disk_link(disk, "a/1", "b/1");
    uint64_t digest = sim_disk_digest();
    struct world *now = sim_disk_exchange(sim_disk_copy());
    ok_named(sim_disk_digest() == digest, "a copy is the same");
    disk_open(&there, "/d", false);
    int own = disk_open_file(there, "b/1", true);
    disk_write(there, own, TEXT("+"));
    ok_named(holds("/d/a/1", "one+"), "links are links");
    ok(sim_disk_digest() != digest);
    sim_disk_copy_plainly();
    disk_unlink(there, "a/1");
    ok(disk_inspect(there, "b/1", &info) == 0 && info.links == 1);
    sim_disk_power_cut();
    ok_named(holds("/d/a/1", "one+") && holds("/d/b/1", "one+"),
             "a plain copy is durable, and no name is a link");
    disk_close_file(there, own);
    disk_close(&there);
    struct world *copy = sim_disk_exchange(now);
    sim_disk_free(&copy);
    ok_named(sim_disk_digest() == digest && holds("/d/b/1", "one"),
             "what happens in the copy stays there");
    sim_disk_on_change(count_change, &changes);
    disk_write(disk, file, TEXT("!"));
    disk_inspect(disk, "b/1", &info);
    disk_sync(disk, file);
    disk_unlink(disk, "b/none");
    disk_unlink(disk, "b/1");
    is_number(changes, 3, "the hook hears of what changed");
    disk_close_file(disk, file);
    disk_close(&disk);
    sim_disk_reset();
}

int
main(void)
{
    struct disk_traits nature = {.type = "tmpfs", .forgets = true}, said;
    tap_tests("");
    sim_disk_set_nature(&nature);
    ok(disk_traits(NULL, "x", &said) == 0 && said.forgets);
    sim_disk_set_syncing(DISK_SYNC_BLOCKS, 0);
    struct loop *loop = sim_loop_new(1);
    struct disk *disk;
    disk_open(&disk, "/e", true);
    is_number(disk_sync_on(disk, loop), DISK_SYNC_BLOCKS, "where it is refused");
    disk_close(&disk);
    loop_free(&loop);
    return done();
}
