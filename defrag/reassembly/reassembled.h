/* One reassembled message on its way into the queue: gathers the envelopes of its parts
 * and streams their bodies into a draft, in several turns (doc/defragment.md
 * "Reassembly"). */
#ifndef DEFRAG_REASSEMBLY_REASSEMBLED_H
#define DEFRAG_REASSEMBLY_REASSEMBLED_H

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
    const char *hostname;                    /* copied: a reload may replace it */
    bool keeps_subject;                      /* see reassemble.h */
    const struct set_reassembly *reassembly; /* outlives it */
};

struct reassembled *reassembled_new(const struct reassembled_setup *setup);
void reassembled_free(struct reassembled **message);
/* budget: bytes, approximately. */
enum reassembled_result reassembled_go(struct reassembled *message, size_t budget);
/* FAILED: why, in one line. */
const char *reassembled_trouble(const struct reassembled *message);
/* FAILED: another attempt may succeed later, as after a full disk. */
bool reassembled_is_refused(const struct reassembled *message);
/* Once, after DONE: hands over the draft, which has its name, and the envelope with its
 * trace field and made_of. */
void reassembled_take(struct reassembled *message, struct queue_draft **draft,
                      struct envelope **envelope);

#endif
