/* Drafts: content that is being written, and the names of messages (S1, S2).
 *
 * Content that fits into a journal record stays in memory; larger content, and all
 * content without a journal, is a file in pid/ and then in mess/. */
#ifndef QUEUE_DRAFT_H
#define QUEUE_DRAFT_H

#include "base/loop/loop.h"
#include "queue/queue.h"
#include "queue/spool/space.h"
#include "queue/spool/spool.h"

struct queue_health;

struct drafts {
    struct spool *spool;
    struct loop *loop;
    struct queue_settings settings;
    size_t memory_max; /* content of one draft without a file; 0 = none */
    bool synchronous;  /* an injector: no end of turn follows */

    uint64_t counter;
    size_t in_memory; /* bytes of all drafts */
    struct space space;
    int64_t named_ms; /* the time in the last name */
    struct queue_draft *list;
};

struct queue_draft {
    struct drafts *drafts;
    struct buffer content; /* not yet written */
    int file;              /* -1: no file yet */
    char path[SPOOL_PATH_MAX];
    bool named;
    bool own; /* our own mail: accepted while the disk is too full for new mail */
    struct id id;
    int64_t size;
    uint32_t crc;
    bool taken;         /* from another host: queue_takes() */
    struct id reported; /* the message whose failures it reports: queue_reports() */
    struct buffer reports;
    bool refused;
    struct outcome *refusal; /* NULL: not refused */
    struct queue_draft *prev, *next;
};

/* The caller sets the members from spool to synchronous before. */
void drafts_start(struct drafts *a);
void drafts_stop(struct drafts *a);
/* A message that is being written or stored: a scan must not judge its files. */
bool drafts_have(const struct drafts *a, struct id id);
/* Fills in the spool's path, space and reserve, and the reason when mail is refused. */
void drafts_health(struct drafts *a, struct queue_health *health);

/* Behind queue_admits() and queue_begin(). own: our own mail. */
bool drafts_admit(struct drafts *a, int64_t size_expected, bool own,
                  struct outcome *refusal);
struct queue_draft *draft_begin(struct drafts *a, int64_t size_expected, bool own,
                                struct outcome *refusal);
/* The first refusal counts. */
void draft_refuse(struct queue_draft *d, struct outcome refusal);
/* Writes the content of a named draft in memory to mess/ID, not synced. */
void draft_want_file(struct queue_draft *d);
/* Removes the draft's files; those that cannot be removed are left to clean.h. */
void draft_erase(struct queue_draft *d);
void draft_free(struct queue_draft *d);

#endif
