/* Durable events: kept on disk until a program has them (doc/events.md).
 *
 * A reader of the hub. An event is a line of DIRECTORY/NNNNNNNN, some 1 MiB a file, in
 * order. The lines of a turn are written at its end and synced in the background, before
 * their effects: results of deliveries pass the gate of the hub (base/gate.h) once their
 * events are durable. They wait for EVENT_GATE_MS at most; then the events count as lost,
 * although the disk may still take them, and mail goes on.
 *
 * DIRECTORY/done has the place up to which the program has taken the events, and the end
 * of the batch under way: after a restart the same batch is offered again. Older files
 * are removed. */
#ifndef BASE_EVENT_EVENT_SPOOL_H
#define BASE_EVENT_EVENT_SPOOL_H

#include "base/disk/disk.h"
#include "base/loop/loop.h"
#include "base/event/event_record.h"

enum {
    EVENT_FILE_BYTES = 1024 * 1024,
    EVENT_GATE_MS = 1000,
    EVENT_GATHERED_MAX = 8 * 1024 * 1024, /* that the disk has not taken; in memory */
    EVENT_BATCH_BYTES = 256 * 1024 - 256, /* of lines */
    EVENT_BATCH_ANY = 1000000,            /* as many as these bytes hold */
    EVENT_SLOTS = 65536                   /* deferrals that are remembered */
};

struct event_spool_settings {
    struct loop *loop;
    struct event_hub *hub;
    struct disk *disk;     /* borrowed, synced in the background or not */
    const char *directory; /* below it: "events", "events/0000-0511"; made if missing */
    const char *host;
    uint64_t kinds;    /* of EVENT_RECORD_KINDS */
    int64_t bytes_max; /* beyond it the oldest file goes */
};

struct event_spool;
/* 0 or -errno; nothing is read then. Copies the strings. */
int event_spool_open(struct event_spool **spool,
                     const struct event_spool_settings *settings);
/* Writes its events, and no longer reads. */
void event_spool_close(struct event_spool **spool);
/* A reload: host, kinds and bytes_max. */
void event_spool_set(struct event_spool *spool,
                     const struct event_spool_settings *settings);

/* --- For the module that hands them over (event_post.h) ----------------------------- */

/* more: there may be more to offer, or a step is over; from the loop. */
void event_spool_on_more(struct event_spool *spool, void (*more)(void *context),
                         void *context);

enum event_offer {
    EVENT_OFFER_NONE,  /* no event waits */
    EVENT_OFFER_FEW,   /* fewer than asked for: more may come */
    EVENT_OFFER_WHOLE, /* a batch is complete */
    EVENT_OFFER_BUSY   /* `done` is being written: `more` will be called */
};
/* events: of a batch. */
enum event_offer event_spool_offer(const struct event_spool *spool, unsigned events);

struct event_batch {
    char id[EVENT_ID_MAX]; /* of its first event */
    int64_t time_ms;       /* of that */
    unsigned count;
    struct buffer lines;
};
/* Reads the batch under way, or makes one of at most that number of events. True: it is
 * there, and `done` knows its extent. False: call again at `more`. The caller owns the
 * buffer: it initialises and frees it. */
bool event_spool_batch(struct event_spool *spool, unsigned events,
                       struct event_batch *batch);
/* The batch that event_spool_batch() has given last is taken. */
void event_spool_taken(struct event_spool *spool);

struct event_spool_figures {
    uint64_t kept, lost; /* since startup */
    uint64_t pending_bytes;
    bool failing; /* mail does not wait for the disk */
};
struct event_spool_figures event_spool_figures(const struct event_spool *spool);

#endif
