/* Content that is checked some in a turn, and copied when it is another user's: what
 * may become of the message meanwhile, and of the disk. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue.h"

#include "base/memory.h"
#include "queue/queue_operator.h"
#include "queue/spool/load.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { SIZE = 600 * 1000, BUDGET = 100 * 1000, DAEMON = 1, STRANGER = 2, SYNC_MS = 50 };

static const char *const one[] = {"a@example.org", NULL};
static const char spool[] = "/spool";
static char content[SIZE];

static void
path_in(const char *dir, struct id id, char out[80])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(out, 80, "%s/%s/%s", spool, dir, name);
}

static unsigned
owner_of(struct kit *k, struct id id)
{
    char path[80];
    struct disk_info info;
    path_in("mess", id, path);
    return disk_inspect(queue_disk(k->queue), path, &info) == 0 ? info.owner : 0;
}

/* A message by a user (the daemon's: without a daemon), and a daemon that has started.
 * Syncs in the background take SYNC_MS. */
static struct id
begin(struct kit *k, unsigned user, size_t size)
{
    struct kit injector;
    sim_disk_reset();
    sim_disk_set_user(DAEMON);
    sim_disk_set_syncing(DISK_SYNC_AIO, SYNC_MS);
    if (queue_kit_open(k, spool) != 0)
        abort();
    kit_close(k);
    sim_disk_set_user(user);
    if (kit_open_injector(&injector, spool) != 0)
        abort();
    struct envelope *e =
        queue_kit_accept(&injector, kit_envelope("s@x", one), text_of(content, size));
    struct id id = e->id;
    envelope_free(&e);
    kit_close(&injector);
    sim_disk_set_user(DAEMON);
    if (queue_kit_open(k, spool) != 0)
        abort();
    return id;
}

static void
end(struct kit *k)
{
    kit_close(k);
    is_number((int64_t)sim_disk_count("/spool/pid"), 0, "nothing is left in pid/");
}

static enum queue_check
step(struct kit *k, struct id id)
{
    int64_t budget = BUDGET;
    uint64_t before = queue_bytes_read(k->queue);
    enum queue_check result = queue_check(k->queue, id, &budget);
    if (queue_bytes_read(k->queue) - before != (uint64_t)(BUDGET - budget))
        ok_named(false, "the budget tells what was read");
    return result;
}

/* Turns until no more is to be read; how many. */
static unsigned
read_all(struct kit *k, struct id id)
{
    unsigned count = 1;
    while (step(k, id) == QUEUE_CHECK_MORE)
        count++;
    return count;
}

static bool
finish(struct kit *k, struct id id)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (step(k, id) == QUEUE_CHECKED)
            return true;
        sim_loop_advance(k->loop, 1);
    }
    return false;
}

static void
check_whole(struct kit *k, struct id id, const char *name)
{
    struct envelope *e = queue_load(k->queue, id);
    ok_named(e != NULL && kit_content_is(k, e, text_of(content, SIZE)), name);
    envelope_free(&e);
}

TEST(foreign)
{
    struct kit k;
    struct id id = begin(&k, STRANGER, SIZE);
    is_number(step(&k, id), QUEUE_CHECK_MORE, "the first piece");
    is_number((int64_t)sim_disk_count("/spool/pid"), 1, "a copy is begun");
    is_number(read_all(&k, id), SIZE / BUDGET, "one more turn finds the end");
    is_number(step(&k, id), QUEUE_CHECK_WAITS, "the copy is being synced");
    is_number(owner_of(&k, id), STRANGER, "and is not in its place before that");
    sim_loop_advance(k.loop, SYNC_MS + 10);
    is_number(step(&k, id), QUEUE_CHECKED, "done");
    is_number(owner_of(&k, id), STRANGER, "nor before the whole message is judged");
    check_whole(&k, id, "it is loaded");
    is_number(owner_of(&k, id), DAEMON, "and now ours");
    is_number((int64_t)queue_bytes_read(k.queue), SIZE, "each byte was read once");
    sim_disk_power_cut();
    kit_close(&k);
    sim_disk_set_user(DAEMON);
    if (queue_kit_open(&k, spool) != 0)
        abort();
    check_whole(&k, id, "a power cut later it is whole");
    end(&k);
}

TEST(own)
{
    struct kit k;
    struct id id = begin(&k, DAEMON, SIZE);
    is_number(read_all(&k, id), SIZE / BUDGET + 1, "in as many turns");
    is_number((int64_t)sim_disk_count("/spool/pid"), 0, "our own is not copied");
    check_whole(&k, id, "it is loaded");
    is_number((int64_t)queue_bytes_read(k.queue), SIZE, "each byte was read once");
    check_whole(&k, id, "once more");
    is_number((int64_t)queue_bytes_read(k.queue), 2 * SIZE, "is read once more");
    end(&k);
    id = begin(&k, DAEMON, BUDGET);
    is_number(step(&k, id), QUEUE_CHECKED, "what is small needs no turn of its own");
    is_number((int64_t)queue_bytes_read(k.queue), 0, "it is read when it is loaded");
    end(&k);
}

static void
test_damaged(unsigned user)
{
    struct kit k;
    char path[80];
    struct id id = begin(&k, user, SIZE);
    path_in("mess", id, path);
    sim_disk_damage(path, SIZE / 2);
    uint64_t syncs = queue_health(k.queue).syncs;
    read_all(&k, id);
    is_number(step(&k, id), QUEUE_CHECKED, "there is nothing to wait for");
    is_number((int64_t)(queue_health(k.queue).syncs - syncs), 0,
              "what is damaged is not synced");
    ok_named(queue_load(k.queue, id) == NULL, "nor loaded");
    is_number(queue_health(k.queue).quarantined, 1, "but put aside");
    end(&k);
}

/* The envelope is another one when the content has been read. */
static void
test_envelope_changes(void)
{
    struct kit k;
    struct id id = begin(&k, STRANGER, SIZE);
    char path[80];
    struct buffer form;
    char reason[LOAD_REASON_MAX];
    struct spool s = {.disk = queue_disk(k.queue), .log = k.log};
    struct envelope *e;
    read_all(&k, id);
    if (load_envelope(&s, id, &e, reason) != LOAD_DONE)
        abort();
    e->content_crc ^= 1;
    buffer_init(&form, 100000);
    envelope_write_todo(e, &form);
    path_in("todo", id, path);
    sim_disk_set_user(STRANGER);
    disk_unlink(s.disk, path);
    int file = disk_create(s.disk, path, 0644);
    if (disk_write(s.disk, file, buffer_text(&form)) != 0)
        abort();
    disk_close_file(s.disk, file);
    sim_disk_set_user(DAEMON);
    buffer_free(&form);
    envelope_free(&e);
    ok_named(finish(&k, id), "checked");
    ok_named(queue_load(k.queue, id) == NULL, "it is damaged");
    is_number(queue_health(k.queue).quarantined, 1, "and put aside");
    end(&k);
}

/* Acts of others on the message while it is read, or while its copy is synced. */
static void
test_meanwhile(bool syncing)
{
    struct kit k;
    struct id id = begin(&k, STRANGER, SIZE);
    syncing ? (void)read_all(&k, id) : (void)step(&k, id);
    queue_remove(k.queue, id);
    ok_named(finish(&k, id), "removed");
    ok_named(queue_load(k.queue, id) == NULL, "it is gone");
    is_number((int64_t)sim_disk_count("/spool/mess"), 0, "and does not come back");
    end(&k);

    id = begin(&k, STRANGER, SIZE);
    syncing ? (void)read_all(&k, id) : (void)step(&k, id);
    queue_quarantine(k.queue, id, "by hand");
    ok_named(finish(&k, id), "put aside");
    ok_named(queue_load(k.queue, id) == NULL, "it is gone");
    is_number((int64_t)sim_disk_count("/spool/mess"), 0, "and does not come back");
    is_number((int64_t)sim_disk_count("/spool/corrupt"), 4, "it is where it was put");
    end(&k);

    id = begin(&k, STRANGER, SIZE);
    syncing ? (void)read_all(&k, id) : (void)step(&k, id);
    check_whole(&k, id, "somebody needs it now");
    is_number(owner_of(&k, id), DAEMON, "and has copied it");
    is_number(step(&k, id), syncing ? QUEUE_CHECK_WAITS : QUEUE_CHECK_MORE,
              "it is begun anew when the disk has answered");
    ok_named(finish(&k, id), "checked");
    check_whole(&k, id, "and loaded");
    end(&k);

    id = begin(&k, STRANGER, SIZE);
    syncing ? (void)read_all(&k, id) : (void)step(&k, id);
    end(&k);
    is_number((int64_t)sim_disk_count("/spool/mess"), 1, "a stop changes nothing else");
}

/* Every call of the disk fails, or is the last one, or is followed by a power cut. */
static void
test_fault(int error, bool power)
{
    unsigned lost = 0, left = 0;
    uint64_t call = 0;
    bool happened = true;
    while (happened) {
        struct kit k;
        struct envelope *e = NULL;
        struct id id = begin(&k, STRANGER, SIZE);
        sim_disk_count_anew();
        call++;
        error != 0 ? sim_disk_fail_at(call, error) : sim_disk_die_at(call);
        if (finish(&k, id))
            e = queue_load(k.queue, id);
        happened = error != 0 ? sim_disk_has_failed() : sim_disk_is_dead();
        envelope_free(&e);
        if (error != 0) {
            sim_disk_fail_at(0, 0);
            kit_close(&k);
            left += sim_disk_count("/spool/pid") > 0;
        } else {
            power ? sim_disk_power_cut() : sim_disk_restart();
            kit_close(&k);
        }
        sim_disk_set_user(DAEMON);
        if (queue_kit_open(&k, spool) != 0)
            abort();
        sim_loop_advance(k.loop, 1000);
        e = queue_load(k.queue, id);
        lost += e == NULL || !kit_content_is(&k, e, text_of(content, SIZE));
        envelope_free(&e);
        kit_close(&k);
        left += sim_disk_count("/spool/pid") > 0;
    }
    printf("# %s: %u calls\n",
           error == EIO      ? "EIO"
           : error == ENOSPC ? "ENOSPC"
           : power           ? "power cut"
                             : "killed",
           (unsigned)call - 1);
    ok_named(call > 20, "some calls");
    is_number(lost, 0, "it is always there, and whole");
    is_number(left, 0, "and nothing else is");
}

static void
test_space(void)
{
    struct kit k;
    struct id id = begin(&k, STRANGER, SIZE);
    sim_disk_set_space(SIZE - 1, 1000);
    is_number(step(&k, id), QUEUE_CHECKED, "no room for a copy");
    ok_named(queue_load(k.queue, id) == NULL, "it waits");
    is_number(queue_health(k.queue).quarantined, 0, "unharmed");
    is_number((int64_t)queue_bytes_read(k.queue), 0, "and unread");
    ok(kit_logged(&k, "cannot read the message now: copying the content: No space left"));
    sim_disk_set_space(INT64_C(1) << 40, 1000000);
    ok_named(finish(&k, id), "checked later");
    check_whole(&k, id, "and loaded");
    end(&k);
}

int
main(void)
{
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (char)('a' + i * 7 % 26);
    tap_tests("");
    test_damaged(STRANGER);
    test_damaged(DAEMON);
    test_envelope_changes();
    test_meanwhile(false);
    test_meanwhile(true);
    test_fault(EIO, false);
    test_fault(ENOSPC, false);
    test_fault(0, false);
    test_fault(0, true);
    test_space();
    return done();
}
