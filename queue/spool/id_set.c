/* A set of message ids. */
#include "queue/spool/id_set.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>

struct id_set_id {
    struct id id;
    bool reported;
    UT_hash_handle hh;
};

static struct id_set_id *
id_set_find(const struct id_set *set, struct id id)
{
    struct id_set_id *found = NULL;
    HASH_FIND(hh, set->ids, &id, sizeof(id), found);
    return found;
}

void
id_set_add(struct id_set *set, struct id id)
{
    if (id_set_find(set, id) != NULL)
        return;
    struct id_set_id *added = memory_new(sizeof(*added));
    added->id = id;
    HASH_ADD(hh, set->ids, id, sizeof(added->id), added);
}

void
id_set_remove(struct id_set *set, struct id id)
{
    struct id_set_id *found = id_set_find(set, id);
    if (found == NULL)
        return;
    HASH_DEL(set->ids, found);
    free(found);
}

bool
id_set_report(struct id_set *set, struct id id)
{
    struct id_set_id *found = id_set_find(set, id);
    bool first = found != NULL && !found->reported;
    if (first)
        found->reported = true;
    return first;
}

bool
id_set_has(const struct id_set *set, struct id id)
{
    return id_set_find(set, id) != NULL;
}

size_t
id_set_count(const struct id_set *set)
{
    return HASH_COUNT(set->ids);
}

void
id_set_each(const struct id_set *set, void (*each)(void *context, struct id id),
            void *context)
{
    struct id_set_id *one, *next;
    HASH_ITER (hh, set->ids, one, next)
        each(context, one->id);
}

void
id_set_free(struct id_set *set)
{
    struct id_set_id *each, *next;
    HASH_ITER (hh, set->ids, each, next) {
        HASH_DEL(set->ids, each);
        free(each);
    }
}
