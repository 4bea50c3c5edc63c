/* A set of message ids. */
#include "queue/spool/seen.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>

struct seen_id {
    struct id id;
    bool told;
    UT_hash_handle hh;
};

static struct seen_id *
seen_find(const struct seen *seen, struct id id)
{
    struct seen_id *found = NULL;
    HASH_FIND(hh, seen->ids, &id, sizeof(id), found);
    return found;
}

void
seen_add(struct seen *seen, struct id id)
{
    if (seen_find(seen, id) != NULL)
        return;
    struct seen_id *added = memory_new(sizeof(*added));
    added->id = id;
    HASH_ADD(hh, seen->ids, id, sizeof(added->id), added);
}

void
seen_remove(struct seen *seen, struct id id)
{
    struct seen_id *found = seen_find(seen, id);
    if (found == NULL)
        return;
    HASH_DEL(seen->ids, found);
    free(found);
}

bool
seen_tell(struct seen *seen, struct id id)
{
    struct seen_id *found = seen_find(seen, id);
    bool first = found != NULL && !found->told;
    if (first)
        found->told = true;
    return first;
}

bool
seen_has(const struct seen *seen, struct id id)
{
    return seen_find(seen, id) != NULL;
}

size_t
seen_count(const struct seen *seen)
{
    return HASH_COUNT(seen->ids);
}

void
seen_each(const struct seen *seen, void (*each)(void *context, struct id id),
          void *context)
{
    struct seen_id *one, *next;
    HASH_ITER (hh, seen->ids, one, next)
        each(context, one->id);
}

void
seen_free(struct seen *seen)
{
    struct seen_id *each, *next;
    HASH_ITER (hh, seen->ids, each, next) {
        HASH_DEL(seen->ids, each);
        free(each);
    }
}
