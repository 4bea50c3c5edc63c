/* What channel.c, channel_offer.c and joins.c share. Nobody else includes this. */
#ifndef DEFRAG_CHANNEL_INSIDE_H
#define DEFRAG_CHANNEL_INSIDE_H

#include "base/loop.h"
#include "defrag/channel.h"
#include "defrag/look.h"
#include "defrag/whole.h"

#include <uthash.h>
#include <utlist.h>

/* A message that is parked. */
struct held {
    UT_hash_handle hh;
    struct id id;
    struct held *prev, *next; /* LOOKING: in the line */
    enum held_state {
        HELD_LOOKING, /* its digest is not known yet */
        HELD_WAITING, /* in a set */
        HELD_LEAVING  /* released; it passes when it is offered next */
    } state;
    bool expired; /* LEAVING: because its time was over */
    struct looking *looking;
};

/* All that is needed to put it into its set, while its digest is made. */
struct looking {
    struct look look;
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
    struct whole *whole;         /* until it is committed */
    struct envelope *envelope;   /* then, once stored */
};

struct defragmenter {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct queue *queue;
    struct channel_settings settings;
    struct look_setup look;
    struct manager_defragment plug;
    struct sets *sets;
    struct held *held, *looking;
    struct joining *making;  /* one at a time is streamed */
    struct joining *storing; /* committed */
    /* Stored; their parts have ended, but that may not be durable: the first of them
     * wait for `point`, the others for the next one. */
    struct joining *waiting, *settled;
    struct queue_point point;
    struct loop_task task;
    struct loop_timer wake, poll;
    int64_t started_ms;
    struct manager_fragments figures; /* since the start */
};

enum { CHANNEL_BUDGET = 256 * 1024 }; /* bytes in a turn */

/* Something is to be done: in the next turn. */
void channel_stir(struct defragmenter *c);
struct held *channel_find(const struct defragmenter *c, struct id id);
/* Not in the line, nor in a set. */
void channel_forget(struct defragmenter *c, struct held *h);

/* --- channel_offer.c -------------------------------------------------------------- */

enum manager_offered channel_offer(void *context, struct manager_offer *offer);
bool channel_explain(void *context, struct id id, char *out, size_t size);
/* Goes on with the digests of large fragments. True: there is more. */
bool channel_look_on(struct defragmenter *c);
void channel_looking_free(struct held *h);

/* --- joins.c ---------------------------------------------------------------------- */

/* Goes on with what is complete. True: there is more. */
bool joins_go_on(struct defragmenter *c);
void joins_stop(struct defragmenter *c);
/* Ends the parts of a whole that an earlier run has made, if they are still there. */
void joins_end_parts(struct defragmenter *c, const struct envelope *whole);

#endif
