/* A bounded map from message to the sentence that says why it waits. */
#include "queue/waiting.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <uthash.h>

struct entry {
    struct id id;
    char *sentence;
    UT_hash_handle hh;
};

struct waiting {
    struct entry *table; /* in the order of insertion */
    unsigned limit;
};

static struct entry *
find(const struct waiting *r, struct id id)
{
    struct entry *found = NULL;
    HASH_FIND(hh, r->table, &id, sizeof(id), found);
    return found;
}

struct waiting *
waiting_new(unsigned limit)
{
    struct waiting *r = memory_new(sizeof(*r));
    assert(limit > 0);
    r->limit = limit;
    return r;
}

void
waiting_free(struct waiting **r)
{
    if (*r == NULL)
        return;
    while ((*r)->table)
        waiting_forget(*r, (*r)->table->id);
    free(*r);
    *r = NULL;
}

void
waiting_forget(struct waiting *r, struct id id)
{
    struct entry *known = find(r, id);
    if (known == NULL)
        return;
    HASH_DEL(r->table, known);
    free(known->sentence);
    free(known);
}

void
waiting_keep(struct waiting *r, struct id id, const char *sentence)
{
    waiting_forget(r, id);
    if (HASH_COUNT(r->table) >= r->limit)
        waiting_forget(r, r->table->id);
    struct entry *known = memory_new(sizeof(*known));
    known->id = id;
    known->sentence = memory_string(sentence);
    HASH_ADD(hh, r->table, id, sizeof(known->id), known);
    assert(HASH_COUNT(r->table) <= r->limit);
}

const char *
waiting_find(const struct waiting *r, struct id id)
{
    const struct entry *known = find(r, id);
    return known ? known->sentence : "";
}
