/* The queue, shared by its files. No other file
 * includes this header. */
#ifndef QUEUE_QUEUE_INTERNAL_H
#define QUEUE_QUEUE_INTERNAL_H

#include "queue/commit.h"
#include "queue/content.h"
#include "queue/draft.h"
#include "queue/journal/journaled.h"
#include "queue/marks.h"
#include "queue/queue_operator.h"
#include "queue/queue_barrier.h"
#include "queue/queue_fragments.h"
#include "queue/queue_listing.h"
#include "queue/recovery/clean.h"
#include "queue/recovery/recover.h"
#include "queue/recovery/removal.h"
#include "queue/recovery/share.h"
#include "queue/spool/filesystem_check.h"
#include "queue/spool/injected.h"
#include "queue/spool/load.h"
#include "queue/spool/marker.h"
#include "queue/spool/release.h"

struct queue {
    struct spool spool;
    struct loop *loop;
    struct loop *own_loop; /* an injector's, for its clock */
    struct queue_settings settings;
    struct share share;
    struct id_set seen;
    struct journaled journaled;
    struct removal removal;
    struct queue_apart_count apart;
    struct drafts drafts;
    struct commits commits;
    uint64_t picked_up; /* from sendmail(1) */
    struct marks marks;
    struct contents contents;
    struct queue_copier copier; /* context NULL: there is none */
    queue_found *found;
    void *found_context;
    struct load_check check; /* of the message that queue_load() loads next */
    struct recover recover;
    struct clean clean;
    struct filesystem_check filesystem_check;
    bool journals_read;             /* an operator's process has read all journals */
    struct adopt_journals journals; /* of all slices, if journals_read */
    uint64_t retired;
    uint64_t last_end, durable_batch; /* batches of the journal */
    bool checkpointing;               /* see queue/recovery/removal.h */
    uint64_t checkpoint_batch;
    struct queue_barrier *barriers, *barriers_over; /* over: done is to be called */
    struct loop_task barrier_check;
};

/* Removes the message from the journal, the spool, or both. */
void queue_end(struct queue *queue, struct id id, unsigned dirs);
/* The copier reads it again. */
void queue_changed(struct queue *queue, struct id id);
/* An operator's process reads all journals on its first question. */
void queue_read_journals(struct queue *queue);
/* An old journal still has the message, or may have it. */
bool queue_may_be_withheld(const struct queue *queue, struct id id);
/* The END record of the message, or its acceptance, is not durable yet. */
bool queue_is_no_message(const struct queue *queue, struct id id);
/* True while an operation of the disk is in progress, or a callback is due, that no
 * timer waits for; for tests. */
bool queue_is_busy(const struct queue *queue);

#endif
