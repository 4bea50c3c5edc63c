/* The body in pieces of any size is the message as a mailbox gets it, each time. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/poster/poster_body.h"

#include "t/sim/sim_disk.h"
#include "t/support/manager_world.h"

#include <errno.h>

TEST(pieces)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* hold");
    world_deliver(&w, "ann@a.test", "bob@h.test");
    struct queue *queue = manager_queue(w.manager);
    struct envelope *e = queue_load(queue, w.id);
    struct poster_body body;
    ok(e != NULL && poster_body_open(&body, queue, e, TEXT("")));
    is_number(body.size, (long)strlen("Subject: x\r\n\r\nbody\r\n"), "its size is known");
    for (size_t size = 1; size < 30; size++) {
        FIXTURE(buffer, all, buffer_init, buffer_free, 1000);
        struct buffer piece;
        buffer_init(&piece, size);
        poster_body_rewind(&body);
        do {
            buffer_clear(&piece);
            ok(poster_body_next(&body, &piece) && buffer_add(&all, buffer_text(&piece)));
        } while (piece.length > 0);
        is_text(buffer_text(&all), TEXT("Subject: x\r\n\r\nbody\r\n"), "the message");
        buffer_free(&piece);
    }
    /* Shorter than the envelope says. */
    struct buffer piece;
    buffer_init(&piece, 1000);
    poster_body_rewind(&body);
    body.size += 5;
    ok(poster_body_next(&body, &piece));
    ok_named(piece.length == 26 ? !poster_body_next(&body, &piece) : true, "it cannot be read");
    buffer_free(&piece);
    poster_body_close(&body);
    envelope_free(&e);
    world_stop(&w);
}

/* A disk that fails once while the header is read: no body, rather than one without its fields. */
TEST(header_unread)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* hold");
    world_deliver(&w, "ann@a.test", "bob@h.test");
    struct queue *queue = manager_queue(w.manager);
    struct envelope *e = queue_load(queue, w.id);
    struct poster_body body;
    unsigned refused = 0;
    for (unsigned call = 1; call <= 5; call++) {
        sim_disk_fail_at(sim_disk_calls() + call, EIO);
        bool opened = poster_body_open(&body, queue, e, TEXT("\"id\":\"x\","));
        refused += !opened;
        ok_named(!opened || text_starts_nocase(buffer_text(&body.head), TEXT("Subject: x")),
                 "all fields, or none");
        poster_body_close(&body);
    }
    ok(refused >= 2);
    sim_disk_fail_at(0, 0);
    envelope_free(&e);
    world_stop(&w);
}
