/* Proves that reasons are kept, replaced and forgotten oldest first at the limit. */
#include "queue/waiting.h"

#include "t/tap.h"

static struct id
id_of(uint64_t n)
{
    return (struct id){.time_ms = n, .hash = n * 7};
}

int
main(void)
{
    struct waiting *r = waiting_new(3);
    is_string(waiting_find(r, id_of(1)), "", "nothing is known at first");
    waiting_forget(r, id_of(1));
    waiting_keep(r, id_of(1), "host down");
    waiting_keep(r, id_of(2), "greylisted");
    waiting_keep(r, id_of(1), "host still down");
    is_string(waiting_find(r, id_of(1)), "host still down", "a newer reason replaces");
    is_string(waiting_find(r, id_of(2)), "greylisted", "others stay");
    waiting_keep(r, id_of(3), "three");
    waiting_keep(r, id_of(4), "four");
    is_string(waiting_find(r, id_of(2)), "", "the oldest entry makes room");
    is_string(waiting_find(r, id_of(1)), "host still down", "a replaced one is young");
    is_string(waiting_find(r, id_of(4)), "four", "the newest is there");
    waiting_forget(r, id_of(4));
    is_string(waiting_find(r, id_of(4)), "", "forgotten");
    waiting_free(&r);
    ok(r == NULL);
    waiting_free(&r);
    return done();
}
