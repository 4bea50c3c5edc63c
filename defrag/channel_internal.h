/* What channel.c, channel_offer.c, fragment_redirect.c and completion.c share. Nobody
 * else includes this. */
#ifndef DEFRAG_CHANNEL_INTERNAL_H
#define DEFRAG_CHANNEL_INTERNAL_H

#include "base/heap.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "defrag/channel.h"
#include "defrag/reassembly/examine.h"
#include "defrag/registry/claims.h"
#include "defrag/reassembly/reassembled.h"
#include "queue/queue_barrier.h"
#include "queue/set_mark.h"

#include <uthash.h>
#include <utlist.h>

/* A fragment that waits for the others. */
struct held {
    UT_hash_handle hh;
    struct id id;
    struct held *prev, *next; /* LOOKING, overdue or withdrawn: in the line */
    enum held_state {
        HELD_LOOKING, /* its digest is not known yet */
        HELD_WAITING, /* in a set */
        HELD_SENT,    /* on its way to the host that joins it */
        HELD_LEAVING  /* released; it passes when it is offered next */
    } state;
    bool expired;      /* LEAVING: because its time was over */
    bool is_overdue;   /* LEAVING: it was when the start found it; to be held */
    bool is_withdrawn; /* WAITING: while its set was being joined */
    bool by_peer;      /* another host has sent it to us: here it stays */
    unsigned depth;
    unsigned char key[DIGEST_SIZE]; /* by_peer, or since it was looked into */
    /* SENT: where to, and until when. Of the attempt under way: for how many recipients
     * that host has not taken it. */
    char *host;
    int64_t until_ms;
    size_t untaken;
    struct heap_node timer;
    struct looking *looking;
};

/* All that is needed to put it into its set, while its digest is made. */
struct looking {
    struct examine look;
    int64_t until_ms, memory_ms;
    struct text sender, trust;
    struct text *recipients; /* sorted, each once */
    size_t count;
    struct buffer texts; /* of all these */
    /* The set's answer, when it came after the offer: told with the next one. */
    struct set_answer answer;
    bool answered;
};

/* A whole on its way. */
struct joining {
    struct joining *prev, *next;
    struct defragmenter *channel;
    const struct set_join *join; /* NULL: its parts have been told */
    struct reassembled *whole;   /* until it is committed */
    struct envelope *envelope;   /* then, once stored */
};

struct defragmenter {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct queue *queue;
    struct channel_settings settings;
    struct examine_setup look;
    struct manager_defragment plug;
    struct sets *sets;
    struct claims *owners; /* NULL: no other hosts */
    struct heap journeys;  /* SENT, by until_ms */
    char mark[SET_MARK_SIZE];
    struct held *held, *looking, *overdue, *withdrawn;
    struct joining *making;  /* one at a time is streamed */
    struct joining *storing; /* committed */
    struct joining *refused; /* by the queue: to be made again when `again` fires... */
    struct joining *renewed; /* ...or now */
    /* Stored; their parts have ended, but that may not be durable: the first of them
     * wait for `ends`, the others for the next barrier. */
    struct joining *waiting, *settled;
    struct queue_barrier ends;
    struct loop_task task;
    /* Parts of wholes that earlier runs have made have ended; that is not durable. */
    bool is_ending;
    struct queue_barrier parts_ended;
    struct loop_timer wake, again;
    int64_t started_ms;
    uint64_t adoptions; /* the queue's, that have been looked through */
    bool has_adopted;   /* there may be wholes of others whose parts have not ended */
    struct manager_fragments figures; /* since the start */
};

enum {
    CHANNEL_BUDGET = 256 * 1024,  /* bytes in a turn */
    CHANNEL_MOMENT_MS = 60 * 1000 /* what waits, or is being joined, is told before */
};

/* Begins a line about a message of that set: the same `set` at all hosts. A key
 * of zeros is not known yet, and left out. */
void channel_log_start(struct log_line *line, const struct defragmenter *c,
                       struct id id, const unsigned char key[DIGEST_SIZE]);
/* Something is to be done: in the next turn. */
void channel_stir(struct defragmenter *c);
struct held *channel_find(const struct defragmenter *c, struct id id);
/* It goes on as it is, after so long; or what else its time says. It may be gone then.
 */
void channel_let_leave(struct defragmenter *c, struct held *h, enum set_reason reason,
                       int64_t delay_ms);
/* Not in the line, nor in a set. */
void channel_forget(struct defragmenter *c, struct held *h);
/* A join has ended: what was withdrawn meanwhile leaves its set. */
void channel_forget_withdrawn(struct defragmenter *c);

/* --- channel_offer.c -------------------------------------------------------------- */

enum manager_offered channel_offer(void *context, struct manager_offer *offer);
bool channel_explain(void *context, struct id id, char *out, size_t size);
/* Goes on with the digests of large fragments. True: there is more. */
bool channel_look_on(struct defragmenter *c);
void channel_looking_free(struct held *h);

/* --- fragment_redirect.c
 * ------------------------------------------------------------------- */

/* Its set may be another host's: then it is SENT. ttl_ms: of our claim. */
bool fragment_redirect_starts(struct defragmenter *c, struct held *h, int64_t until_ms,
                              int64_t ttl_ms);
/* What is to be done with one that is SENT. */
enum manager_offered fragment_redirect_goes_on(struct defragmenter *c, struct held *h,
                                               struct manager_offer *o);
/* It is not SENT any more. */
void fragment_redirect_ends(struct defragmenter *c, struct held *h);
/* manager_defragment's. */
void fragment_redirect_answered(void *context, struct id id, bool taken);
/* claims_setup's. */
void fragment_redirect_other(void *context, const unsigned char key[DIGEST_SIZE],
                             const char *host);
/* Those whose time is over go on as they are. When the next one's is; INT64_MAX: none.
 */
int64_t fragment_redirect_tick(struct defragmenter *c, int64_t now_ms);
void fragment_redirect_init(struct defragmenter *c);

/* --- completion.c
 * ---------------------------------------------------------------------- */

/* Goes on with what is complete. True: there is more. */
bool completion_go_on(struct defragmenter *c);
void completion_stop(struct defragmenter *c);
/* An adopted journal may have had wholes whose parts have not ended:
 * completion_finish() is to come before any of these is looked into. */
bool completion_are_unfinished(const struct defragmenter *c);
/* Ends the parts of all wholes that are found half done. Not within an offer. Until
 * that is durable (is_ending) none of these wholes may go on: a power cut could leave
 * the parts without it. */
void completion_finish(struct defragmenter *c);
/* Ends the parts of a whole that an earlier run has made, if they are still there. */
void completion_end_parts(struct defragmenter *c, const struct envelope *whole);

#endif
