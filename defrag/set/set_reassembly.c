/* Finds the complete recipients of a set, and the parts to reassemble for them.
 *
 * Fragments may be for different recipients, so a set can be reassembled more than
 * once: recipients that become complete with the same fragment share one message, and
 * later ones get another. `served` marks a recipient, and its share of each message, as
 * soon as a reassembly has begun, so that no second one takes it. */
#include "defrag/set/set_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool
set_reassembly_is_complete(const struct set *set, const struct wanted *w)
{
    return set->total > 0 && w->count == set->total && !w->served;
}

/* Only a message that this reassembly serves: it lives until the reassembly ends, which
 * others of the same number may not. */
static void
keep_part(struct completed *j, const struct part *p)
{
    static const struct id none = {0};
    struct id *part = &j->parts[p->slot->number - 1];
    if (id_compare(*part, none) != 0)
        return;
    *part = p->id;
    j->sizes[p->slot->number - 1] = p->size;
}

static void
collect_served(const struct set *set, struct completed *j, size_t space)
{
    struct part *p;
    j->served = memory_array(space, sizeof(j->served[0]));
    j->served_parts = memory_array(space, sizeof(j->served_parts[0]));
    DL_FOREACH2 (set->parts, p, set_next) {
        for (size_t i = 0; i < p->count; i++) {
            struct wanted *w = p->needs[i].wanted;
            if (p->needs[i].served || !set_reassembly_is_complete(set, w))
                continue;
            j->served[j->view.served_count] = (struct set_served){
                .id = p->id, .recipient = text_of(w->address, w->hh.keylen)};
            j->served_parts[j->view.served_count++] = p;
            keep_part(j, p);
            p->needs[i].served = true;
        }
    }
}

void
set_reassembly_complete(struct sets *s, struct set *set)
{
    struct wanted *w, *next;
    size_t complete = 0, needs = 0;
    struct part *p;
    HASH_ITER (hh, set->wanted, w, next)
        complete += set_reassembly_is_complete(set, w);
    if (complete == 0)
        return;
    /* An upper bound: one array, filled once. */
    DL_FOREACH2 (set->parts, p, set_next)
        needs += p->count;
    struct completed *j = memory_new(sizeof(*j));
    j->set = set;
    j->parts = memory_array(set->total, sizeof(j->parts[0]));
    j->sizes = memory_array(set->total, sizeof(j->sizes[0]));
    /* Before the recipients are marked: a served one does not count as complete. */
    collect_served(set, j, needs);
    j->recipients = memory_array(complete, sizeof(j->recipients[0]));
    HASH_ITER (hh, set->wanted, w, next) {
        if (!set_reassembly_is_complete(set, w))
            continue;
        w->served = true;
        j->recipients[j->view.recipient_count++] = text_of(w->address, w->hh.keylen);
    }
    memcpy(j->view.key, set->key, SET_KEY_SIZE);
    j->view.parts = j->parts;
    j->view.sizes = j->sizes;
    j->view.count = set->total;
    j->view.recipients = j->recipients;
    j->view.served = j->served;
    set->reassemblies++;
    DL_APPEND(s->reassemblies, j);
}

void
set_reassembly_free(struct completed *j)
{
    free(j->parts);
    free(j->sizes);
    free(j->recipients);
    free(j->served);
    free(j->served_parts);
    free(j);
}

struct completed *
set_reassembly_of(const struct set_reassembly *view)
{
    /* The view is const for the channel; its owner may change it. */
    return (struct completed *)((char *)(uintptr_t)view -
                                offsetof(struct completed, view));
}
