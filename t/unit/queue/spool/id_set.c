/* The set of ids. */
#include "queue/spool/id_set.h"

#include "t/support/tap.h"

static struct id
an_id(unsigned n)
{
    return (struct id){.time_ms = 1750000000000 + n / 16, .hash = n * 7919};
}

int
main(void)
{
    struct id_set seen = {0};
    unsigned wrong = 0;
    ok_named(!id_set_has(&seen, an_id(1)), "empty at first");
    id_set_remove(&seen, an_id(1));
    for (unsigned i = 0; i < 5000; i++)
        id_set_add(&seen, an_id(i));
    for (unsigned i = 0; i < 10000; i++)
        wrong += id_set_has(&seen, an_id(i)) != (i < 5000);
    is_number(wrong, 0, "what was added is there, and nothing else");
    is_number((int64_t)id_set_count(&seen), 5000, "and counted");
    id_set_add(&seen, an_id(7));
    id_set_remove(&seen, an_id(7));
    ok_named(!id_set_has(&seen, an_id(7)), "added twice, removed once: gone");
    ok(id_set_has(&seen, an_id(8)));
    ok_named(!id_set_report(&seen, an_id(7)), "what is not there is not told");
    ok_named(id_set_report(&seen, an_id(8)) && !id_set_report(&seen, an_id(8)), "the rest once");
    id_set_free(&seen);
    ok_named(!id_set_has(&seen, an_id(8)), "empty at last");
    return done();
}
