/* The table of counters: each has a name of its own, or a metric, and stands in its part. */
/* link: t/sim/loop.c */
#include "admin/view/counters.h"

#include "t/support/manager_world.h"

#include <stdlib.h>
#include <string.h>

TEST(rows)
{
    const struct counter *a, *b;
    for (size_t i = 0; (a = counters_at(i)) != NULL; i++) {
        ok(a->member.name != NULL || a->family != NULL);
        ok((a->family == NULL) == (a->label == NULL));
        for (size_t k = 0; (b = counters_at(k)) != a; k++) {
            if (a->member.name != NULL && b->member.name != NULL)
                ok(strcmp(a->part, b->part) != 0 || strcmp(a->member.name, b->member.name) != 0);
            if (a->family != NULL && b->family != NULL)
                ok(strcmp(a->family, b->family) != 0 || strcmp(a->label, b->label) != 0);
        }
    }
}

TEST(parts)
{
    struct counters c;
    FIXTURE(world, w, manager_world_begin, manager_world_end, "held.test hold\n* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test");
    world_deliver(&w, "ann@a.test", "x@held.test");
    counters_read(w.manager, &c);
    json_t *status = json_object(), *queue = counters_part("queue", &c);
    char *text = json_dumps(queue, JSON_COMPACT);
    is_string(text,
              "{\"incoming\":0,\"active\":0,\"deferred\":1,\"hold\":1,\"corrupt\":0,\"defrag\":0}",
              "messages by place");
    free(text);
    counters_put(status, &c);
    ok(json_equal(json_object_get(status, "queue"), queue));
    is_string(json_string_value(json_object_get(status, "version")), PETREL_VERSION,
              "of the status itself");
    is_number(json_integer_value(json_object_get(json_object_get(status, "totals"), "stored")),
              2, "of another part");
    json_decref(status);
    json_decref(queue);
}
