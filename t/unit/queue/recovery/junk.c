/* Junk of other users in todo/ costs the daemon neither lines, nor inodes, nor turns, and
 * mail beside it is found. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "queue/spool/junk.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { DAEMON = 1, STRANGER = 2, MANY = 1500, NAMES = 20000, SYNCS_OF_TURN = 12 };

static const char *const one[] = {"a@example.org", NULL};
static const char trigger[] = "/spool/lock/trigger";
static struct kit kit;
static unsigned made; /* ids */

static void
begin(void)
{
    sim_disk_reset();
    sim_disk_set_user(DAEMON);
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    sim_loop_advance(kit.loop, 100);
}

static struct disk *
as_stranger(void)
{
    struct disk *disk;
    sim_disk_set_user(STRANGER);
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    return disk;
}

static void
leave(struct disk **disk)
{
    disk_close(disk);
    sim_disk_set_user(DAEMON);
}

static struct id
next_path(const char *dir, char path[80])
{
    char name[ID_LENGTH + 1];
    made++;
    struct id id = id_make((uint64_t)SIM_WALL_START_MS - made,
                           (const unsigned char[]){made & 255, made >> 8 & 255, 3, 4, 5});
    id_format(id, name);
    snprintf(path, 80, "%s/%s", dir, name);
    return id;
}

/* Files of a stranger in todo/ with this content. */
static void
plant(unsigned count, struct text content)
{
    char path[80];
    struct disk *disk = as_stranger();
    for (unsigned i = 0; i < count; i++) {
        next_path("todo", path);
        int file = disk_create(disk, path, 0600);
        if (file < 0 || disk_write(disk, file, content) != 0)
            abort();
        disk_close_file(disk, file);
    }
    leave(&disk);
}

static void
pull(int64_t then_ms)
{
    sim_loop_ready(kit.loop, sim_disk_fifo_reader(trigger), LOOP_READ);
    sim_loop_advance(kit.loop, then_ms);
}

/* How often the log has these words. */
static unsigned
lines_with(const char *words)
{
    unsigned count = 0;
    struct text line, rest = buffer_text(&kit.lines);
    while (text_cut(&rest, '\n', &line))
        count += memmem(line.at, line.length, words, strlen(words)) != NULL;
    return count;
}

static void
submit(void)
{
    struct kit injector;
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    struct envelope *e = queue_kit_accept(&injector, kit_envelope("", one), TEXT("mail"));
    envelope_free(&e);
    kit_close(&injector);
}

TEST(empty)
{
    begin();
    plant(MANY, TEXT(""));
    submit();
    pull(99);
    is_number(kit.found_count, 1, "mail beside empty files is found");
    is_number(sim_disk_count("/spool/todo"), 1, "they are removed");
    is_number(sim_disk_count("/spool/corrupt"), 0, "and leave nothing");
    is_number(lines_with("todo/ or mess/"), 1, "one line tells");
    ok_named(kit_logged(&kit, "1500 empty files, links"), "how many there were");
    for (unsigned i = 0; i < 100; i++) {
        plant(3, TEXT(""));
        pull(500);
    }
    is_number(lines_with("todo/ or mess/"), 1, "no more within a minute");
    sim_loop_advance(kit.loop, JUNK_TELL_MS);
    is_number(lines_with("todo/ or mess/"), 2, "then the others");
    ok_named(kit_logged(&kit, "300 empty files, links"), "with their number");
    sim_loop_advance(kit.loop, 2 * JUNK_TELL_MS);
    is_number(lines_with("todo/ or mess/"), 2, "and nothing when there is nothing");
    is_number(sim_disk_count("/spool/corrupt"), 0, "still nothing is kept");
    kit_close(&kit);
}

TEST(kinds)
{
    char path[80], full[80], inside[100];
    struct disk_info info;
    begin();
    struct disk *disk = as_stranger();
    next_path("todo", path);
    if (disk_make_directory(disk, path, 0700) != 0)
        abort();
    next_path("todo", path);
    if (disk_make_fifo(disk, path, 0600) != 0)
        abort();
    next_path("todo", full);
    snprintf(inside, sizeof(inside), "%s/file", full);
    if (disk_make_directory(disk, full, 0700) != 0)
        abort();
    disk_close_file(disk, disk_create(disk, inside, 0600));
    leave(&disk);
    pull(200);
    is_number(disk_inspect(queue_disk(kit.queue), path, &info), -ENOENT, "a FIFO is removed");
    is_number(disk_inspect(queue_disk(kit.queue), full, &info), 0, "a full directory stays");
    ok_named(kit_logged(&kit, "2 empty files, links"), "the others do not");
    ok_named(kit_logged(&kit, "1 directories or the like in todo/ or mess/ cannot be"),
             "which is told");
    ok_named(!kit_logged(&kit, "quarantined"), "nothing else is claimed");
    is_number(sim_disk_count("/spool/corrupt"), 0, "nor tried");
    for (unsigned i = 0; i < 100; i++)
        pull(2000);
    is_number(lines_with("cannot be removed"), 1, "once");
    kit_close(&kit);
}

/* An envelope of another user without content, or of any octets: it is the other's inode
 * that is kept, not ours. */
TEST(notes)
{
    begin();
    plant(MANY, TEXT("not an envelope"));
    submit();
    pull(2000);
    is_number(kit.found_count, 1, "mail beside damaged messages is found");
    is_number(sim_disk_count("/spool/todo"), 1, "they are moved");
    is_number(sim_disk_count("/spool/corrupt"), MANY + JUNK_NOTES_MAX, "some with a note");
    is_number(lines_with("quarantined"), JUNK_NOTES_MAX, "and a line");
    ok_named(kit_logged(&kit, "1400 more damaged messages of other users"),
             "the others are counted");
    kit_close(&kit);
}

/* The content is a directory: the envelope is kept, and what cannot be moved goes. */
TEST(content)
{
    char path[80];
    struct disk_info info;
    begin();
    plant(1, TEXT("not an envelope"));
    made--;
    struct disk *disk = as_stranger();
    struct id id = next_path("mess", path);
    if (disk_make_directory(disk, path, 0700) != 0)
        abort();
    leave(&disk);
    pull(200);
    is_number(kit.found_count, 1, "a message with content is found");
    ok_named(queue_load(kit.queue, id) == NULL, "and cannot be loaded");
    is_number(sim_disk_count("/spool/corrupt"), 2, "envelope and note are in corrupt/");
    is_number(disk_inspect(queue_disk(kit.queue), path, &info), -ENOENT, "no more in mess/");
    is_number(lines_with("cannot"), 0, "nothing failed");
    kit_close(&kit);
}

/* A directory of the name of a message that is ours. */
TEST(beside_ours)
{
    char path[80], name[ID_LENGTH + 1];
    begin();
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("", one), TEXT("ours"));
    id_format(e->id, name);
    queue_defer(kit.queue, &e, 1, 1);
    sim_loop_advance(kit.loop, 1000);
    is_number(sim_disk_count("/spool/info"), 1, "a message in S5");
    kit_close(&kit);
    struct disk *disk = as_stranger();
    snprintf(path, sizeof(path), "todo/%s", name);
    if (disk_make_directory(disk, path, 0700) != 0)
        abort();
    snprintf(path, sizeof(path), "todo/%s/file", name);
    disk_close_file(disk, disk_create(disk, path, 0600));
    leave(&disk);
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    sim_loop_advance(kit.loop, 100);
    is_number(kit.found_count, 1, "is found beside a directory of its name");
    is_number(lines_with("cannot be removed"), 1, "which stays");
    kit_close(&kit);
}

TEST(work)
{
    uint64_t before, most = 0;
    begin();
    plant(MANY, TEXT("not an envelope"));
    sim_loop_ready(kit.loop, sim_disk_fifo_reader(trigger), LOOP_READ);
    for (unsigned i = 0; i < 200; i++) {
        before = queue_health(kit.queue).syncs;
        kit_turns(&kit, 1);
        uint64_t some = queue_health(kit.queue).syncs - before;
        most = some > most ? some : most;
    }
    ok_named(most > 0 && most <= SYNCS_OF_TURN, "few syncs in a turn");
    is_number(sim_disk_count("/spool/todo"), 0, "until all is done");
    kit_close(&kit);
}

static void
put_names(unsigned count)
{
    char path[80];
    struct disk *disk = as_stranger();
    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "todo/strange%u", i);
        disk_close_file(disk, disk_create(disk, path, 0600));
    }
    leave(&disk);
}

TEST(names)
{
    begin();
    put_names(1);
    for (unsigned i = 0; i < 100; i++)
        pull(100);
    is_number(lines_with("1 names in todo/ that are not"), 1, "one line in 10 s");
    for (unsigned i = 0; i < 600; i++)
        pull(100);
    is_number(lines_with("1 names in todo/ that are not"), 2, "two in 70 s");
    kit_close(&kit);

    begin();
    put_names(NAMES);
    pull(100); /* a scan that finds them */
    pull(10);
    submit();
    for (unsigned i = 0; i < 9; i++)
        pull(100);
    is_number(kit.found_count, 0, "many names are not listed ten times a second");
    pull(200);
    is_number(kit.found_count, 1, "but each second, so that mail is found");
    kit_close(&kit);
}
