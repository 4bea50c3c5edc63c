/* One joined message on its way into the queue: gathers the envelopes of its parts,
 * streams their bodies into a draft, some in a turn (spec/defrag-mime.md §1.10, §2.3).
 */
#ifndef DEFRAG_WHOLE_H
#define DEFRAG_WHOLE_H

#include "defrag/set/set.h"
#include "queue/manager/manager.h"

struct whole;

enum whole_result {
    WHOLE_MORE, /* whole_go() again, in a later turn */
    WHOLE_DONE, /* draft and envelope can be taken */
    WHOLE_FAILED
};

struct whole_setup {
    struct manager *manager;
    struct loop *loop;
    const char *hostname;        /* outlives it */
    bool keeps_subject;          /* see join.h */
    const struct set_join *join; /* the same */
};

struct whole *whole_new(const struct whole_setup *setup);
void whole_free(struct whole **whole);
/* budget: bytes, about. */
enum whole_result whole_go(struct whole *whole, size_t budget);
/* FAILED: why, in one line. */
const char *whole_trouble(const struct whole *whole);
/* FAILED: a new whole may have more luck, later: the disk is full, or the like. */
bool whole_is_refused(const struct whole *whole);
/* Once, after DONE: named, with its trace and made_of; the caller's. */
void whole_take(struct whole *whole, struct queue_draft **draft,
                struct envelope **envelope);

#endif
