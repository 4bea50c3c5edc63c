/* The defragment channel upon a disk that fails at every call behind the acceptance of
 * the last part: what is complete is joined a little later, and nothing is lost. */
/* link: t/sim/loop.c */
/* link: t/sim/disk*.c */
#include "t/support/channel_world.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { POINTS_MAX = 400, MINUTE_MS = 60 * 1000 };

#define ROUTES "* smtp://h?defragment=yes&notices=2h"
#define WHOLE  "From: a@x\r\nSubject: whole\r\n\r\none\r\ntwo\r\n"
#define ONE    "Subject: whole\r\n\r\none\r\n"
#define TWO    "two\r\n"

static void
begin(struct stage *s, int64_t journal, int64_t message_max)
{
    stage_begin(s, ROUTES);
    stage_stop(s);
    sim_disk_reset();
    s->w.settings.queue.journal_size = journal;
    s->w.settings.queue.journal_segment = 65536;
    s->w.settings.queue.journal_message_max = message_max;
    manager_world_start(&s->w);
}

/* Goes on until the last part is accepted; then all calls count. */
static void
accept_parts(struct stage *s)
{
    stage_part(s, "i", 1, 2, ONE);
    stage_put(s, "a@x", "b@y", "i", 2, 2, TWO);
    for (int i = 0; i < 100 && !s->w.accepted; i++)
        loop_turn(s->w.loop, 0);
    if (!s->w.accepted)
        abort();
    sim_disk_count_anew();
}

/* Each part that went on by itself, once. */
static unsigned
parts(const struct stage *s, const char *number)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->count; i++) {
        const struct buffer *b = &s->delivered[i].content;
        count += memmem(b->at, b->length, number, strlen(number)) != NULL;
    }
    return count;
}

/* False: there is no such call. */
static bool
try(int64_t journal, int64_t message_max, uint64_t call, int error, unsigned *late,
    unsigned *wrong)
{
    struct stage s;
    begin(&s, journal, message_max);
    accept_parts(&s);
    sim_disk_fail_at(call, error);
    sim_loop_advance(s.w.loop, 5000);
    bool there = sim_disk_has_failed();
    if (there && s.count == 0)
        ++*late;
    sim_loop_advance(s.w.loop, 5 * MINUTE_MS);
    /* A disk that has failed a sync is not trusted before the next start. */
    if (s.count == 0)
        stage_restart(&s);
    sim_loop_advance(s.w.loop, 2 * STAGE_HALF_MS);
    bool once = (stage_wholes(&s, WHOLE) == 1 && s.count == 1) ||
                (stage_wholes(&s, WHOLE) == 0 && parts(&s, "number=1") == 1 &&
                 parts(&s, "number=2") == 1 && s.count == 2);
    /* Parts that cannot be read are not reassembled; a whole that is not stored is,
     * later. */
    bool waited = world_logged(&s.w, "are not reassembled yet");
    if (!once || (error == ENOSPC && waited && stage_wholes(&s, WHOLE) != 1)) {
        printf("# call %llu, error %d: %u wholes of %u\n%.*s\n",
               (unsigned long long)call, error, stage_wholes(&s, WHOLE), s.count,
               TEXT_ARGS(buffer_text(&s.w.lines)));
        ++*wrong;
    }
    stage_end(&s);
    return there;
}

static void
test_errors(int64_t journal, int64_t message_max, int error, const char *name)
{
    unsigned late = 0, wrong = 0;
    uint64_t call = 1;
    while (call < POINTS_MAX && wrong == 0 &&
           try(journal, message_max, call, error, &late, &wrong))
        call++;
    printf("# %s: %llu calls, %u times later\n", name, (unsigned long long)call, late);
    is_number(wrong, 0, name);
    ok_named(late > 0, "some are joined later");
    ok_named(call > 5 && call < POINTS_MAX, "all of them were tried");
}

/* The queue takes nothing for a while: the parts wait, within their time. */
static void
test_full(void)
{
    for (int how = 0; how < 3; how++) {
        struct stage s;
        begin(&s, 0, 0);
        accept_parts(&s);
        stage_stop(&s);
        sim_disk_set_space(-1, -1);
        manager_world_start(&s.w);
        is_number(s.count, 0, "the disk is full");
        ok(world_logged(&s.w, "are not reassembled yet, retry in 60 s: Insufficient system"));
        sim_loop_advance(s.w.loop, 10 * MINUTE_MS);
        is_number(s.count, 0, "they wait");
        is_number(stage_figures(&s).messages, 2, "in their set");
        if (how == 0) {
            sim_disk_set_space(INT64_MAX, INT64_MAX);
            sim_loop_advance(s.w.loop, MINUTE_MS);
            is_number(stage_wholes(&s, WHOLE), 1, "until there is room");
        } else if (how == 1) {
            is_number(world_operate(&s.w, MANAGER_REMOVE), MANAGER_DONE, "a part goes");
            sim_loop_advance(s.w.loop, MINUTE_MS);
            is_number(parts(&s, "number=1"), 1, "so the other does");
        } else {
            sim_loop_advance(s.w.loop, STAGE_HALF_MS);
            is_number(s.count, 2, "or until their time is over");
            is_number(parts(&s, "number=1") + parts(&s, "number=2"), 2, "as they are");
        }
        is_number(stage_figures(&s).messages, 0, "nobody waits");
        stage_end(&s);
        sim_disk_set_space(INT64_MAX, INT64_MAX);
    }
}

int
main(void)
{
    test_errors(0, 0, ENOSPC, "files, no space");
    test_errors(1024 * 1024, 10000, ENOSPC, "journal, no space");
    test_errors(1024 * 1024, 1, ENOSPC, "contents in files, no space");
    test_errors(0, 0, EIO, "files, an error");
    test_errors(1024 * 1024, 10000, EIO, "journal, an error");
    test_full();
    return done();
}
