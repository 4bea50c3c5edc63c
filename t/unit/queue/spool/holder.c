/* A spool that other hosts may mount: the daemon whose lock another one has taken meanwhile
 * answers no mail, and ends. On a local disk nothing is written or asked. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/spool/holder.h"

#include "queue/queue.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/queue_kit.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>

static struct kit kit;
static const char path[] = "lock/holder.0000-1023";

static void
begin(bool shared, int64_t journal_size)
{
    sim_disk_reset();
    sim_disk_set_nature(&(struct disk_traits){.type = "nfs", .shared = shared, .sync_us = 500});
    ok_named(kit_open_with(&kit, &(struct queue_settings){.spool = "/spool", .host = "relay1", .slices = 1,
                                                          .message_size_limit = 1 << 20, .journal_size = journal_size}) == 0,
             "a daemon");
}

/* Another host had the lock when this one was cut off. */
static void
put(const char *word)
{
    struct disk *disk;
    ok(disk_open(&disk, "/spool", false) == 0);
    int file = disk_open_file(disk, path, true);
    ok(file >= 0 && disk_write_at(disk, file, 0, text_from(word)) == 0);
    disk_close_file(disk, file);
    disk_close(&disk);
}

static bool
accepts(void)
{
    static const char *const to[] = {"b@example.org", NULL};
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("a@example.org", to), TEXT("Subject: x\r\n\r\nx\r\n"));
    bool good = e != NULL;
    envelope_free(&e);
    return good;
}

static void
lose(int64_t journal_size)
{
    begin(true, journal_size);
    ok(accepts());
    char host[HOLDER_HOST_MAX + 1];
    holder_host(queue_disk(kit.queue), "0000-1023", host);
    is_string(host, "relay1", "others can read who has it");
    put("0123456789abcdef relay2\n");
    size_t files = sim_disk_count("/spool/todo") + sim_disk_count("/spool/mess");
    ok_named(!accepts(), "mail is refused when another one has taken the spool");
    is_number((int64_t)(sim_disk_count("/spool/todo") + sim_disk_count("/spool/mess") - files), journal_size > 0 ? 1 : 2,
              "and its files are the other one's now: nothing is removed");
    uint64_t calls = sim_disk_calls();
    kit_turns(&kit, 2);
    is_number((int64_t)(sim_disk_calls() - calls), 0, "nor is anything written");
    ok(queue_is_lost(kit.queue));
    ok(sim_loop_is_stopped(kit.loop));
    ok(kit_logged(&kit, "another petrel has taken the spool, on relay2: this one ends, and writes nothing more"));
    kit_close(&kit);
}

TEST(lost)
{
    lose(16 << 20);
    lose(0);
}

TEST(idle)
{
    begin(true, 16 << 20);
    put("0123456789abcdef relay2\n");
    sim_loop_advance(kit.loop, HOLDER_CHECK_MS + 100);
    ok_named(queue_is_lost(kit.queue), "a daemon without mail learns it, too");
    kit_close(&kit);
}

TEST(torn)
{
    begin(true, 16 << 20);
    put("0123");
    ok_named(!accepts() && queue_is_lost(kit.queue), "another word that is not whole is another word");
    kit_close(&kit);
}

/* A file system that does not answer is no other daemon. */
TEST(away)
{
    begin(true, 16 << 20);
    struct holder *h = &(struct holder){0};
    struct disk *disk = queue_disk(kit.queue);
    is_number(holder_take(h, disk, kit.loop, kit.log, "0001-0001", "relay1"), 0, "another part");
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    ok(!holder_is_ours(h) && !h->is_lost);
    sim_disk_fail_at(0, 0);
    ok_named(holder_is_ours(h), "when it is back the spool is still ours");
    holder_stop(h);
    unsigned refused = 0;
    for (uint64_t call = 1; call <= 8; call++) {
        struct holder other = {0};
        sim_disk_count_anew();
        sim_disk_fail_at(call, ENOSPC);
        int error = holder_take(&other, disk, kit.loop, kit.log, "0002-0002", "relay1");
        refused += error == -ENOSPC;
        ok_named(error == 0 || error == -ENOSPC, "a start with the word, or none");
        sim_disk_fail_at(0, 0);
        ok(holder_is_ours(&other));
        holder_stop(&other);
    }
    ok_named(refused >= 5, "none without it");
    kit_close(&kit);
}

TEST(another_host)
{
    begin(true, 16 << 20);
    int64_t began_ms = loop_monotonic_ms(kit.loop);
    struct holder h = {0};
    put("0123456789abcdef relay2\n");
    is_number(holder_take(&h, queue_disk(kit.queue), kit.loop, kit.log, "0000-1023", "relay1"), 0, "behind another host");
    ok_named(loop_monotonic_ms(kit.loop) - began_ms >= HOLDER_CACHE_MS, "a start waits for its own cache");
    began_ms = loop_monotonic_ms(kit.loop);
    holder_stop(&h);
    is_number(holder_take(&h, queue_disk(kit.queue), kit.loop, kit.log, "0000-1023", "relay1"), 0, "behind ourselves");
    ok_named(loop_monotonic_ms(kit.loop) - began_ms < HOLDER_CACHE_MS, "it does not");
    holder_stop(&h);
    kit_close(&kit);
}

TEST(local)
{
    begin(false, 16 << 20);
    ok(accepts());
    struct disk_info info;
    is_number(disk_inspect(queue_disk(kit.queue), path, &info), -ENOENT, "a local disk has no such file");
    kit_close(&kit);
}
