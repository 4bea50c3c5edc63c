/* What queue.c, queue_operator.c and queue_health.c share. Nobody else includes it. */
#ifndef QUEUE_QUEUE_INTERNAL_H
#define QUEUE_QUEUE_INTERNAL_H

#include "queue/recovery/clean.h"
#include "queue/commit.h"
#include "queue/content.h"
#include "queue/draft.h"
#include "queue/recovery/removal.h"
#include "queue/spool/marker.h"
#include "queue/spool/load.h"
#include "queue/marks.h"
#include "queue/spool/filesystem_check.h"
#include "queue/recovery/pickup.h"
#include "queue/queue_listing.h"
#include "queue/queue.h"
#include "queue/recovery/recover.h"
#include "queue/spool/release.h"
#include "queue/recovery/share.h"
#include "queue/journal/journaled.h"

struct queue {
    struct spool spool;
    struct loop *loop;
    struct loop *own_loop; /* an injector's, for its clock */
    struct queue_settings settings;
    struct share share;
    struct id_set seen;
    struct journaled young;
    struct removal endings;
    struct drafts drafts;
    struct commits commits;
    uint64_t picked_up; /* from sendmail(1) */
    struct marks marks;
    struct contents contents;
    struct load_check check; /* of what queue_load() is to bring next */
    struct recover recover;
    struct clean clean;
    struct filesystem_check nature;
    bool young_read;                /* an operator: the journals have been looked at */
    struct adopt_journals journals; /* then: theirs */
    queue_found *found;
    void *found_context;
    uint64_t retired;
    uint64_t last_end, durable_batch; /* batches of the journal */
    bool checkpointing;               /* when these are removed, see removal.h: */
    uint64_t checkpoint_batch;
};

/* It leaves the journal, or the spool, or both. */
void queue_end(struct queue *queue, struct id id);
/* An operator's process looks at all journals when it is first asked. */
void queue_want_young(struct queue *queue);
/* An old journal still has it, or may have it. */
bool queue_may_be_withheld(const struct queue *queue, struct id id);
/* Its END is on its way, or its acceptance. */
bool queue_is_no_message(const struct queue *queue, struct id id);

#endif
