/* GNU Mailman's own tests of its queue, reworded, replayed on ours: with a journal and
 * without. (SB11 is t/unit/queue/spool/guard.c's, SB14
 * t/unit/queue/spool/slices.c's.) */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue_listing.h"
#include "queue/queue_operator.h"

#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>
#include <sysexits.h>

enum { MESSAGES = 3 };

static const char spool[] = "/spool";
static const char *const two[] = {"a@example.org", "b@example.net", NULL};
static struct kit kit;
static bool journal;

static void
start(void)
{
    struct queue_settings settings = {.spool = spool, .slices = 1};
    if (journal) {
        settings.journal_size = 4 * 65536;
        settings.journal_segment = 65536;
        settings.journal_message_max = 4096;
    }
    if (kit_open_with(&kit, &settings) != 0)
        ok_named(false, kit.error);
    sim_loop_advance(kit.loop, 10);
}

static size_t
files_of_messages(void)
{
    static const char *const dirs[] = {
        "/spool/pid",   "/spool/mess",   "/spool/intd",   "/spool/todo", "/spool/info",
        "/spool/local", "/spool/remote", "/spool/bounce", "/spool/hold"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        count += sim_disk_count(dirs[i]);
    return count;
}

struct list {
    struct id ids[10];
    size_t count;
};

static bool
note(void *context, struct id id, enum queue_place place)
{
    struct list *l = context;
    (void)place;
    if (l->count < 10)
        l->ids[l->count++] = id;
    return true;
}

static struct list
list(void)
{
    struct list l = {.count = 0};
    is_number(queue_each(kit.queue, note, &l), 0, "the queue is listed");
    return l;
}

static struct envelope *
enqueue(const char *content)
{
    struct envelope *e = kit_envelope("sender@example.org", two);
    e->envelope_id = envelope_text(e, TEXT("QQ314159"));
    e->ret = RETURN_HEADERS;
    e->eight_bit = true;
    return queue_kit_accept(&kit, e, text_from(content));
}

static void
finish(struct envelope **e)
{
    queue_retire(kit.queue, e);
    sim_loop_advance(kit.loop, 300);
}

static void
test_basics(void)
{
    sim_disk_reset();
    start();
    struct envelope *e = enqueue("Subject: one\r\n\r\nbody\r\n");
    ok_named(e != NULL && files_of_messages() == (journal ? 0 : 3) &&
                 sim_disk_count("/spool/pid") == 0,
             "SB02: what belongs to it, and no other file");
    struct list l = list();
    ok_named(l.count == 1 && id_compare(l.ids[0], e->id) == 0,
             "SB03: its name is what a listing returns");
    struct envelope *again = queue_load(kit.queue, e->id);
    ok_named(again != NULL &&
                 kit_content_is(&kit, again, TEXT("Subject: one\r\n\r\nbody\r\n")),
             "SB04: the identical message");
    ok_named(again->count == 2 && again->delivery.done == 0 &&
                 text_equal(again->sender, TEXT("sender@example.org")) &&
                 text_equal(again->envelope_id, TEXT("QQ314159")) &&
                 again->ret == RETURN_HEADERS && again->eight_bit && !again->utf8 &&
                 text_equal(again->recipients[1].address, TEXT("b@example.net")),
             "SB06: and what is known about it");
    envelope_free(&again);
    finish(&e);
    ok_named(files_of_messages() == 0 && list().count == 0, "SB05: finished is empty");
    kit_close(&kit);
}

static void
test_many(void)
{
    struct envelope *e[MESSAGES];
    struct id ids[MESSAGES];
    sim_disk_reset();
    start();
    for (unsigned i = 0; i < MESSAGES; i++) {
        e[i] = enqueue("x\r\n");
        ids[i] = e[i]->id;
        sim_loop_advance(kit.loop, 5);
    }
    struct list l = list();
    bool same = l.count == MESSAGES;
    for (unsigned i = 0; same && i < MESSAGES; i++)
        same = id_compare(l.ids[i], ids[i]) == 0;
    ok_named(same, "SB07: three are listed, the first one first");
    for (unsigned i = 0; i < MESSAGES; i++)
        envelope_free(&e[i]);

    for (unsigned restart = 0; restart < 2; restart++) {
        sim_disk_restart();
        kit_close(&kit);
        start();
        same = kit.found_count == MESSAGES;
        for (unsigned i = 0; same && i < MESSAGES; i++)
            same = id_compare(kit.found[i].id, ids[i]) == 0;
        ok_named(same, restart == 0 ? "SB09: what was in work is ready again"
                                    : "SB10: and once more");
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        e[i] = queue_load(kit.queue, ids[i]);
        finish(&e[i]);
    }
    ok_named(files_of_messages() == 0 && list().count == 0, "SB08: each ends");
    kit_close(&kit);
    sim_disk_restart();
    start();
    is_number(kit.found_count, 0, "and stays so");
    kit_close(&kit);
}

static void
test_trouble(void)
{
    sim_disk_reset();
    start();
    struct envelope *e = enqueue("x\r\n");
    struct id id = e->id;
    queue_defer(kit.queue, &e, 1, 1);
    sim_loop_advance(kit.loop, 50);
    e = queue_load(kit.queue, id);
    /* With a journal its END comes first; then the first of its files. */
    sim_disk_count_anew();
    sim_disk_fail_at(journal ? 4 : 1, EPERM);
    finish(&e);
    ok_named(sim_disk_has_failed() && kit_logged(&kit, "cannot remove a file"),
             "SB12: a file that cannot be removed is told, with the cause");
    queue_close(&kit.queue);
    kit_close(&kit);

    sim_disk_reset();
    start();
    e = enqueue("x\r\n");
    id = e->id;
    envelope_free(&e);
    queue_quarantine(kit.queue, id, "for a test");
    sim_loop_advance(kit.loop, 300);
    ok_named(files_of_messages() == 0 && sim_disk_count("/spool/corrupt") >= 2,
             "SB13: what was never in work can be preserved, too");
    kit_close(&kit);
}

static void
test_second(void)
{
    struct queue *second;
    struct queue_settings settings = {.spool = spool, .slices = 1};
    char error[300] = "";
    sim_disk_reset();
    start();
    is_number(queue_open(&second, kit.loop, kit.log, &settings, kit_found, &kit, error,
                         sizeof(error)),
              EX_TEMPFAIL, "MA01: a second one is refused");
    ok_named(strstr(error, "another petrel runs on it") != NULL, "and told why");
    kit_close(&kit);
}

int
main(void)
{
    for (unsigned way = 0; way < 2; way++) {
        journal = way == 1;
        test_basics();
        test_many();
        test_trouble();
        test_second();
    }
    sim_disk_reset();
    return done();
}
