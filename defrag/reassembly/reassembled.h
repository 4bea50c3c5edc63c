/* One joined message on its way into the queue: gathers the envelopes of its parts,
 * streams their bodies into a draft, some in a turn (doc/defragment.md "Reassembly").
 */
#ifndef DEFRAG_REASSEMBLED_H
#define DEFRAG_REASSEMBLED_H

#include "defrag/set/set.h"
#include "queue/manager/manager.h"

struct reassembled;

enum reassembled_result {
    REASSEMBLED_MORE, /* reassembled_go() again, in a later turn */
    REASSEMBLED_DONE, /* draft and envelope can be taken */
    REASSEMBLED_FAILED
};

struct reassembled_setup {
    struct manager *manager;
    struct loop *loop;
    const char *hostname;        /* outlives it */
    bool keeps_subject;          /* see reassemble.h */
    const struct set_join *join; /* the same */
};

struct reassembled *reassembled_new(const struct reassembled_setup *setup);
void reassembled_free(struct reassembled **whole);
/* budget: bytes, about. */
enum reassembled_result reassembled_go(struct reassembled *whole, size_t budget);
/* FAILED: why, in one line. */
const char *reassembled_trouble(const struct reassembled *whole);
/* FAILED: a new whole may have more luck, later: the disk is full, or the like. */
bool reassembled_is_refused(const struct reassembled *whole);
/* Once, after DONE: named, with its trace and made_of; the caller's. */
void reassembled_take(struct reassembled *whole, struct queue_draft **draft,
                      struct envelope **envelope);

#endif
