/* Finds the D marks of a message that became S5 while its envelope was in use. */
#include "queue/marks_place.h"

#include "queue/spool/load.h"

#include <assert.h>
#include <errno.h>

/* Whether the message became S5 while e was in use, so that e does not say so. */
bool
marks_are_outdated(const struct marks *m, const struct envelope *e)
{
    return !e->storage.preprocessed && journaled_find(m->journaled, e->id) == NULL &&
           !id_set_has(m->seen, e->id) && !spool_has(m->spool, SPOOL_TODO, e->id);
}

/* Both have the same recipients in the same order: the caller has compared them. */
void
marks_take_offsets(struct envelope *e, const struct envelope *from)
{
    assert(e->count == from->count);
    for (unsigned i = 0; i < e->count; i++) {
        e->recipients[i].channel = from->recipients[i].channel;
        e->recipients[i].mark_offset = from->recipients[i].mark_offset;
    }
    e->storage.preprocessed = true;
}

/* An envelope from before S5 lacks the offsets at which the D marks are written. */
int
marks_bring_up_to_date(struct marks *m, struct envelope *e)
{
    struct envelope *found = NULL;
    char reason[LOAD_REASON_MAX];
    enum load_result result = load_preprocessed(m->spool, e->id, &found, reason);
    if (result != LOAD_DONE)
        return result == LOAD_LATER ? -EAGAIN : -ENOENT;
    bool same = found->count == e->count; /* else the files were changed from outside */
    if (same)
        marks_take_offsets(e, found);
    envelope_free(&found);
    return same ? 0 : -ENOENT;
}
