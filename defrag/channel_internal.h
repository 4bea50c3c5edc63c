/* The channel is one object, struct defragmenter, in five files; no other includes
 * this. Each owns a stage in the life of a fragment, and calls the others where the stage
 * changes:
 *
 *   channel_offer.c       answers the manager's offers: examines a fragment, enters it
 *                         into its set, and explains it to operators
 *   fragment_redirect.c   fragments whose set another host owns (HELD_SENT)
 *   completion.c          complete sets: the reassembled message, its parts, a crash in
 *                         between
 *   channel.c             construction, the one task that drives all of them
 *                         (channel_work()), the log line of a release, the timer
 *
 * Work is done in channel_work(), in a turn of its own: every change calls
 * channel_stir(). Within an offer nothing of another message is changed. A struct held is
 * one fragment that the channel knows; its state says which file's it is:
 *
 *   HELD_LOOKING -> HELD_WAITING -> (reassembled, forgotten)
 *          |              |
 *          |              +-> HELD_LEAVING   released: it passes when offered next
 *          +-> HELD_SENT ----^               (not taken there, or late)
 */
#ifndef DEFRAG_CHANNEL_INTERNAL_H
#define DEFRAG_CHANNEL_INTERNAL_H

#include "base/heap.h"
#include "base/log/log.h"
#include "base/event/event.h"
#include "base/loop/loop.h"
#include "defrag/channel.h"
#include "defrag/closed_file.h"
#include "defrag/reassembly/examine.h"
#include "defrag/registry/claims.h"
#include "defrag/reassembly/reassembled.h"
#include "queue/queue_barrier.h"
#include "queue/envelope/set_mark.h"

#include <uthash.h>
#include <utlist.h>

/* A fragment that the channel knows. */
struct held {
    UT_hash_handle hh;
    struct id id;
    struct held *prev, *next; /* LOOKING, overdue or withdrawn: in that list */
    enum held_state {
        HELD_LOOKING, /* its digest is not known yet */
        HELD_WAITING, /* in a set */
        HELD_SENT,    /* on its way to the host that owns its set */
        HELD_LEAVING  /* released; it passes when it is offered next */
    } state;
    bool expired;      /* LEAVING: because its time was over */
    bool is_overdue;   /* LEAVING: its time was over at startup; to be held */
    bool is_withdrawn; /* WAITING: by an operator, during reassembly */
    bool by_peer;      /* a peer has sent it: never redirected again */
    unsigned depth;
    unsigned char key[DIGEST_SIZE]; /* by_peer, or since it was examined */
    /* SENT: to which host, until when; recipients that the host has not accepted in the
     * attempt under way. */
    char *host;
    struct heap_due timer;
    size_t untaken;
    struct examining *examining;
};

/* The facts that its set needs, while the digest of its body is computed. */
struct examining {
    struct examine examine;
    int64_t until_ms, memory_ms;
    struct text sender, trust;
    struct text *recipients; /* sorted, each once */
    size_t count;
    struct buffer texts; /* of all these */
    /* The set's answer. If it came after the offer, the next offer returns it. */
    struct set_answer answer;
    bool answered;
};

/* A reassembled message on its way into the queue. */
struct reassembling {
    struct reassembling *prev, *next;
    struct defragmenter *channel;
    const struct set_reassembly *reassembly; /* NULL: its parts are settled */
    struct reassembled *message;             /* until it is committed */
    struct envelope *envelope;               /* then, once stored */
};

/* Reassembled messages of earlier runs, whose parts are being ended. */
struct finishing {
    struct id *ids; /* NULL: none */
    size_t count, at;
    struct envelope *envelope; /* of the one before `at`... */
    struct text rest;          /* ...its parts that are left */
    bool found;                /* parts */
    int64_t since_ms;
};

struct defragmenter {
    struct loop *loop;
    struct event_hub *events;
    struct log *log; /* of these */
    struct manager *manager;
    struct queue *queue;
    struct channel_settings settings;
    struct examine_setup examine;
    struct manager_defragment plug;
    struct sets *sets;
    struct closed_file closed;
    struct claims *claims; /* NULL: no other hosts */
    struct heap redirects; /* SENT, by timer */
    char mark[SET_MARK_SIZE];
    struct held *held, *examining, *overdue, *withdrawn;
    struct reassembling *making;  /* one at a time is streamed */
    struct reassembling *storing; /* committed */
    struct reassembling *refused; /* by the queue: begun anew when `again` fires... */
    struct reassembling *renewed; /* ...or now */
    /* Stored; their parts are settled, but perhaps not durably: the first of them
     * wait for `ends`, the others for the next barrier. */
    struct reassembling *waiting, *settled;
    struct queue_barrier ends;
    struct loop_task task;
    /* Parts of messages that earlier runs reassembled are settled, not durably. */
    bool is_ending;
    struct finishing finishing;
    struct queue_barrier parts_ended;
    struct loop_timer wake, again;
    int64_t started_ms, release_ms; /* release_ms: of the next release, monotonic */
    uint64_t adoptions;             /* queue_adoptions() that have been handled */
    uint64_t retention;             /* manager_retention_mark() of the routes */
    bool has_adopted; /* offers may be reassembled messages with parts left */
    struct manager_fragments figures; /* since startup */
};

enum {
    CHANNEL_BUDGET = 256 * 1024, /* bytes in a turn */
    CHANNEL_RELEASES = 100,      /* in a turn, of each kind: a hold syncs a file */
    CHANNEL_MOMENT_MS =
        60 * 1000, /* margin of the manager's timer: the channel acts first */
    CHANNEL_OVERDUE_MS =
        5 * 1000 /* from startup: the rest of an overdue set is loaded */
};

/* An event about a message of that set; `set` is the same at all hosts. A key of zeros: it
 * is not known. Reported by event_tell(). */
enum { FRAGMENT_FIELDS_MAX = 8, CHANNEL_SET_NAME = 13 };
struct fragment_event {
    struct event event;
    struct event_field fields[FRAGMENT_FIELDS_MAX];
    char set[CHANNEL_SET_NAME];
};
void channel_event_start(struct fragment_event *f, struct id id,
                         const unsigned char key[DIGEST_SIZE]);
/* value is borrowed until the event is reported. */
void channel_event_add(struct fragment_event *f, const char *key,
                       enum event_field_kind kind, struct text value);
void channel_event_add_number(struct fragment_event *f, const char *key,
                              int64_t number);
/* Runs channel_work() in the next turn. */
void channel_stir(struct defragmenter *c);
struct held *channel_find(const struct defragmenter *c, struct id id);
/* Releases h after delay_ms; on SET_TIMEOUT as defrag_on_timeout says. May free h. */
void channel_let_leave(struct defragmenter *c, struct held *h, enum set_reason reason,
                       int64_t delay_ms);
/* Frees h, which is in no set. */
void channel_forget(struct defragmenter *c, struct held *h);
/* A reassembly has ended: fragments withdrawn meanwhile leave their sets. */
void channel_forget_withdrawn(struct defragmenter *c);

/* --- channel_offer.c -------------------------------------------------------------- */

enum manager_offered channel_offer(void *context, struct manager_offer *offer);
bool channel_explain(void *context, struct id id, char *out, size_t size);
/* The host that owns the set, in words. */
const char *channel_owner(const struct defragmenter *c,
                          const unsigned char key[DIGEST_SIZE]);
/* Continues with the digests of large fragments. True: there is more. */
bool channel_examine_on(struct defragmenter *c);
void channel_examining_free(struct held *h);

/* --- fragment_redirect.c ---------------------------------------------------------- */

/* True: another host owns its set, and h is SENT. ttl_ms: of this host's claim. */
bool fragment_redirect_starts(struct defragmenter *c, struct held *h, int64_t until_ms,
                              int64_t ttl_ms);
/* The answer to an offer of a fragment that is SENT. */
enum manager_offered fragment_redirect_goes_on(struct defragmenter *c, struct held *h,
                                               struct manager_offer *o);
/* h is SENT: it goes on as it is then, at the latest. */
void fragment_redirect_shorten(struct defragmenter *c, struct held *h,
                               int64_t until_ms);
/* Ends the detour of a fragment that is SENT. */
void fragment_redirect_ends(struct defragmenter *c, struct held *h);
/* manager_defragment's. */
void fragment_redirect_answered(void *context, struct id id, bool taken);
/* claims_setup's. */
void fragment_redirect_other(void *context, const unsigned char key[DIGEST_SIZE],
                             const char *host);
/* Releases some of those whose time is over. Returns when the next is due; INT64_MAX:
 * none. */
int64_t fragment_redirect_tick(struct defragmenter *c, int64_t now_ms);

/* --- completion.c ----------------------------------------------------------------- */

/* Continues the reassembly of complete sets. True: there is more. */
bool completion_go_on(struct defragmenter *c);
/* A whole is being made or stored of the set of h. */
bool completion_is_making(const struct defragmenter *c, const struct held *h);
void completion_stop(struct defragmenter *c);
/* Startup has found, or an adopted journal may hold, reassembled messages whose parts
 * have not ended: no set is reassembled before completion_finish() has ended them. */
bool completion_are_unfinished(const struct defragmenter *c);
/* The message may be such a part: it came before. */
bool completion_may_end(const struct defragmenter *c, struct id id);
/* Ends some of the parts of all reassembled messages that a crash has left. Not within
 * an offer. None of these messages may be delivered until that is durable (is_ending):
 * a power cut could remove a message and leave its parts. */
void completion_finish(struct defragmenter *c);
/* Ends those parts that are left of a reassembled message; is_new: of this run. */
void completion_settle_parts(struct defragmenter *c, const struct envelope *reassembled,
                             bool is_new);

#endif
