/* defrag/channel*.c, joins.c: what becomes of fragments, sets and joins when something
 * ends before its time: the daemon, a message, a route, another instance. */
/* link: t/sim/loop.c */
#include "t/channel_world.h"

#define ROUTES "z smtp://h\n* smtp://h?defragment=yes&notices=2h"
#define ONE    "Subject: whole\r\n\r\none\r\n"
#define TWO    "two\r\n"
#define WHOLE  "From: a@x\r\nSubject: whole\r\n\r\none\r\ntwo\r\n"

enum { LARGE = 3 * 1000 * 1000 };

/* What is larger than 4096 bytes is a file, and looked into and joined in pieces. */
static void
begin(struct stage *s)
{
    stage_begin(s, ROUTES);
    s->w.settings.queue.journal_size = 4 * 1024 * 1024;
    s->w.settings.queue.journal_message_max = 4096;
    stage_restart(s);
}

static char *
large_body(void)
{
    char *body = memory_array(LARGE + 1, 1);
    memset(body, 'x', LARGE);
    memcpy(body + LARGE - 2, "\r\n", 3);
    return body;
}

/* As stage_part(), but nothing comes of it yet. */
static void
send_only(struct stage *s, const char *recipients, unsigned number, const char *body)
{
    struct buffer b;
    buffer_init(&b, 64 * 1024 * 1024);
    if (!buffer_format(&b,
                       "From: a@x\r\nContent-Type: message/partial; id=\"i\"; "
                       "number=%u; total=3\r\n\r\n",
                       number) ||
        !buffer_add(&b, text_from(body)))
        abort();
    stage_send(s, "a@x", recipients, buffer_text(&b));
    buffer_free(&b);
}

/* --- The daemon ------------------------------------------------------------------- */

/* At every turn of a join, and then of its storing. */
static void
test_stop_while_joining(void)
{
    char *body = large_body();
    unsigned in_the_middle = 0;
    for (int turns = 1; turns < 60; turns += 4) {
        struct stage s;
        begin(&s);
        stage_part(&s, "i", 3, 3, body);
        stage_part(&s, "i", 2, 3, body);
        sim_loop_advance(s.w.loop, 1000);
        send_only(&s, "b@y", 1, ONE);
        for (int i = 0; i < turns; i++)
            loop_turn(s.w.loop, 0);
        in_the_middle += world_files(&s.w, "pid") > 0;
        stage_restart(&s);
        sim_loop_advance(s.w.loop, 5000);
        if (s.count != 1 || !world_is_empty(&s.w))
            is_number(s.count, 1, "not joined");
        stage_end(&s);
    }
    ok_named(in_the_middle > 2, "stopped in the middle of a join it is made again");
    free(body);
}

int
main(void)
{
    test_stop_while_joining();
    return done();
}
