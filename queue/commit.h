/* Commits: how a named draft becomes durable, together with all others of a turn (S2 to
 * S4, or the journal), and how its owner gets the answer.
 *
 *   in the journal   envelope and content are one record; settled with its batch
 *   large            mess/ID is synced in the background; then the envelope is a record
 *   in files         without a journal, beside a daemon, or when the envelope alone is
 *                    too large for a record: intd, todo (qmail's way, made durable) */
#ifndef QUEUE_COMMIT_H
#define QUEUE_COMMIT_H

#include "queue/draft.h"
#include "queue/queue_copier.h"
#include "queue/recovery/removal.h"
#include "queue/spool/id_set.h"
#include "queue/journal/journaled.h"

struct commit;

struct commits {
    struct spool *spool;
    struct loop *loop;
    struct id_set *seen;
    struct journaled *journaled;
    struct removal *removal;
    bool synchronous; /* an injector: no end of turn follows */
    bool gathers;     /* then: until commits_gathered() */
    const struct queue_copier *copier;
    /* A durable message is refused, since it has no copy: it ends. */
    void (*withdrawn)(void *context, struct id id);
    /* The owner of the message went away before it was durable. */
    void (*orphaned)(void *context, struct id id);
    void *context;

    uint64_t stored;
    struct commit *files;    /* for the end of this turn */
    struct commit *syncing;  /* large: the content */
    struct commit *blocked;  /* wait for space in the journal */
    struct commit *appended; /* in a batch, oldest first */
    struct commit *copying;  /* durable here; the copier has not answered */
    struct commit *done;     /* to be answered */
    struct loop_task wake;
};

/* The caller sets the members from spool to context before. */
void commits_start(struct commits *c);
/* Calls no more callbacks; removes messages that are not durable. */
void commits_stop(struct commits *c);

/* Behind the functions of queue.h with these names. */
void commits_add(struct commits *c, struct queue_draft **draft, struct envelope **e,
                 queue_stored *stored, void *context);
void commits_gathered(struct commits *c);
void commits_ignore(struct commits *c, void *context);

/* Behind queue_copied(). */
void commits_copied(struct commits *all, struct commit *c,
                    const struct outcome *refusal);

/* True while the message is being made durable and its owner has no answer. O(n). */
bool commits_have(const struct commits *c, struct id id);
/* True while the message is durable and its copy is not. O(n) of those. */
bool commits_wait_for_copy(const struct commits *c, struct id id);
/* True when some have no answer yet. */
bool commits_are_under_way(const struct commits *c);
/* True when all have been answered but those that wait for space; for tests. */
bool commits_are_quiet(const struct commits *c);

/* The events of journal.h: settled (again: after an error, journal_again()), space. */
void commits_settled(struct commits *c, uint64_t batch, int error, uint64_t again);
void commits_resume(struct commits *c);

#endif
