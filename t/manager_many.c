/* A message of very many recipients: what a dead site makes of it is told in many turns,
 * and all of it is told. */
/* link: t/sim/loop.c */
#include "t/manager_world.h"

enum { RECIPIENTS = 20000, IN_A_TURN = 1000 };

struct meter {
    struct world *world;
    unsigned before, most;
};

/* Nobody is there. */
static void
fail_to_open(void *context)
{
    struct fake *f = context;
    struct world *w = f->world;
    struct outcome trouble =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "connection refused");
    DL_DELETE(w->fakes, f);
    manager_session_ended(w->manager, f->session, &trouble);
    loop_release(w->loop, free, f);
}

static void
open_in_vain(void *context, struct sched_session *session, const struct target *target,
             const char *domain)
{
    struct fake *f = memory_new(sizeof(*f));
    (void)target;
    (void)domain;
    f->world = context;
    f->session = session;
    DL_APPEND(f->world->fakes, f);
    loop_post(f->world->loop, &f->task, fail_to_open, f);
}

static unsigned
count_told(const struct world *w)
{
    static const char words[] = "status=deferred";
    unsigned count = 0;
    const char *at = w->lines.at;
    size_t left = w->lines.length;
    while (left > 0 && (at = memmem(at, left, words, sizeof(words) - 1)) != NULL) {
        count++;
        at += sizeof(words) - 1;
        left = w->lines.length - (size_t)(at - w->lines.at);
    }
    return count;
}

static void
measure(void *context)
{
    struct meter *meter = context;
    unsigned now = count_told(meter->world);
    if (now - meter->before > meter->most)
        meter->most = now - meter->before;
    meter->before = now;
}

static void
plug_all(struct world *w)
{
    manager_plug(w->manager, TARGET_SMTP, open_in_vain, w);
    loop_at_end(w->loop, LOOP_STAGE_SEND, measure, w->channel);
}

static void
send_many(struct world *w)
{
    struct buffer all;
    buffer_init(&all, 1024 * 1024);
    for (unsigned i = 0; i < RECIPIENTS; i++)
        if (!buffer_format(&all, "good%u@b.test ", i))
            abort();
    if (!buffer_add_byte(&all, '\0'))
        abort();
    world_send(w, "ann@a.test", all.at);
    buffer_free(&all);
}

int
main(void)
{
    struct world w;
    struct meter meter = {.world = &w};
    world_begin(&w, "* smtp://sink.test");
    world_stop(&w);
    w.channel = &meter;
    w.plug = plug_all;
    buffer_free(&w.lines);
    buffer_init(&w.lines, 64 * 1024 * 1024);
    world_start(&w);
    send_many(&w);
    for (unsigned i = 0; i < 20 && meter.before < RECIPIENTS; i++)
        world_turns(&w);
    is_number(meter.before, RECIPIENTS, "each recipient is deferred, once");
    ok_named(meter.most > 0 && meter.most <= IN_A_TURN, "not too many in a turn");
    is_number(sched_count(manager_sched(w.manager)).deferred, 1, "then it waits");
    world_end(&w);
    return done();
}
