/* The operator's commands on very many messages, beside a disk that does not keep up:
 * how many ends are on their way at most, and when the rest is left. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "admin/answer/operation.h"

#include "base/crc.h"
#include "queue/queue_operator.h"
#include "queue/spool/spool.h"
#include "t/support/manager_world.h"
#include "t/sim/sim_disk.h"

enum { MORE = 100, MANY = QUEUE_REMOVALS_MAX + MORE, GIVE_UP_MS = 60 * 1000 };

struct bench {
    struct world w;
    struct operation *operation;
    unsigned active; /* in delivery, and so removed when that ends */
    unsigned told, removed, ended;
    char error[200];
};

static void
put(struct spool *s, enum spool_dir space, struct id id, struct text bytes)
{
    int file = spool_write_new(s, space, id, bytes, false);
    if (file < 0)
        abort();
    disk_close_file(s->disk, file);
}

/* Files, as sendmail(1) leaves them, but not synced: that takes long there. */
static void
plant(const struct world *w)
{
    struct spool s;
    char error[200];
    struct buffer form;
    struct text content = TEXT("content\r\n");
    if (spool_open(&s, w->folder, true, w->log, error, sizeof(error)) != 0)
        abort();
    buffer_init(&form, SPOOL_FILE_MAX);
    for (unsigned i = 0; i < MANY; i++) {
        struct envelope *e = envelope_new();
        e->id = (struct id){.time_ms = (uint64_t)loop_now_ms(w->loop), .hash = i};
        e->birth_ms = loop_now_ms(w->loop);
        e->sender = envelope_text(e, TEXT("ann@a.test"));
        e->envelope_id = e->prefix = envelope_text(e, TEXT(""));
        e->content_size = (int64_t)content.length;
        e->content_crc = crc_add(0, content.at, content.length);
        if (!envelope_add(e, TEXT("x@b.test"), NOTIFY_DEFAULT, TEXT("")))
            abort();
        buffer_clear(&form);
        envelope_write_todo(e, &form);
        put(&s, SPOOL_MESS, e->id, content);
        put(&s, SPOOL_TODO, e->id, buffer_text(&form));
        envelope_free(&e);
    }
    buffer_free(&form);
    spool_close(&s);
}

static unsigned
waiting(const struct world *w)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/todo", w->folder);
    return (unsigned)sim_disk_count(path);
}

static void
bench_begin(struct bench *b, bool offline)
{
    *b = (struct bench){0};
    sim_disk_reset();
    manager_world_begin(&b->w, "* smtp://sink.test");
    world_stop(&b->w);
    plant(&b->w);
    b->w.stalled = true;
    b->w.background = true;
    b->w.settings.offline = offline;
    b->active = offline ? 0 : 1;
    b->w.settings.sched.active_limit = 1;
    b->w.settings.queue.journal_size = 64 * 1024 * 1024;
    manager_world_start(&b->w);
}

static void
bench_end(struct bench *b)
{
    operation_free(&b->operation);
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    manager_world_end(&b->w);
}

static void
on_told(void *context, struct id id, int code, const char *text)
{
    struct bench *b = context;
    (void)id;
    b->told++;
    b->removed += code == 0 && strcmp(text, "removed") == 0;
}

static void
on_ended(void *context, const char *error)
{
    struct bench *b = context;
    b->ended++;
    snprintf(b->error, sizeof(b->error), "%s", error ? error : "");
}

static void
remove_all(struct bench *b)
{
    struct filter all = {.everything = true, .older_ms = -1};
    struct operation_events events = {.context = b, .told = on_told, .ended = on_ended};
    b->operation =
        operation_new(b->w.loop, b->w.log, b->w.manager, MANAGER_REMOVE, &all, &events);
}

/* No sync comes to its end; for less than a minute. */
static void
test_slow(bool offline)
{
    FIXTURE(bench, b, bench_begin, bench_end, offline);
    is_number(waiting(&b.w), MANY, "all of them are files");
    sim_disk_set_syncing(DISK_SYNC_AIO, GIVE_UP_MS - 1000);
    remove_all(&b);
    sim_loop_advance(b.w.loop, GIVE_UP_MS - 2000);
    is_number(b.told, QUEUE_REMOVALS_MAX + b.active,
              "no more ends than these are on their way");
    is_number((int64_t)queue_removals(manager_queue(b.w.manager)), QUEUE_REMOVALS_MAX,
              "which is what is counted");
    is_number(waiting(&b.w), MANY, "no file goes before its end is durable");
    is_number(b.ended, 0, "it waits");
    sim_disk_set_syncing(DISK_SYNC_AIO, 1);
    sim_loop_advance(b.w.loop, 30 * 1000);
    is_number(b.ended, 1, "when the disk comes back all is done");
    is_string(b.error, "", "without an error");
    is_number(b.told, MANY, "each once");
    is_number(b.removed, MANY - b.active, "each but what is in delivery");
    sim_loop_advance(b.w.loop, 10 * 1000);
    is_number(waiting(&b.w), b.active, "no other file is left");
}

static void
test_stuck(bool offline)
{
    FIXTURE(bench, b, bench_begin, bench_end, offline);
    sim_disk_set_syncing(DISK_SYNC_AIO, 10 * GIVE_UP_MS);
    remove_all(&b);
    sim_loop_advance(b.w.loop, GIVE_UP_MS - 1000);
    is_number(b.ended, 0, "a minute is not over");
    sim_loop_advance(b.w.loop, 2000);
    is_number(b.ended, 1, "then it ends");
    is_string(b.error,
              "the disk cannot store removals: the remaining messages were left",
              "and says why");
    is_number(b.removed, QUEUE_REMOVALS_MAX, "some are removed");
    sim_disk_set_syncing(DISK_SYNC_AIO, 1);
    sim_loop_advance(b.w.loop, 11 * GIVE_UP_MS);
    is_number(b.told, QUEUE_REMOVALS_MAX + b.active, "the others never");
    is_number(waiting(&b.w), MORE, "they are there yet");
    is_number(b.ended, 1, "it has ended once");
}

/* A daemon has other work: a thousand names in a turn. */
static void
test_listing(void)
{
    unsigned turns = 0;
    FIXTURE(bench, b, bench_begin, bench_end, false);
    remove_all(&b);
    while (b.told == 0 && turns++ < 100)
        loop_turn(b.w.loop, 0);
    ok_named(b.told > 0 && turns > MANY / 1000, "names are read in several turns");
    sim_loop_advance(b.w.loop, 60 * 1000);
    is_number(b.removed, MANY - b.active, "then each is removed");
    operation_free(&b.operation);
    remove_all(&b); /* a client that leaves while they are read */
    loop_turn(b.w.loop, 0);
}

int
main(void)
{
    test_listing();
    for (int offline = 0; offline < 2; offline++) {
        test_slow(offline);
        test_stuck(offline);
    }
    return done();
}
