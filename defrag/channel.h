/* The defragment channel: fragments of message/partial wait until all are there, and go
 * on as one (doc/defragment.md).
 *
 * A fragment is an ordinary message of the queue. When its round begins the manager
 * offers those of its recipients whose route says defragment=yes:
 *
 *   examine.c      reads its header (fragment.c) and the digest of its body
 *   origin.c    from whom it came, and so the key of its set
 *   claims.c    which host has its set; if it is another of ours, it goes there
 *   set.c       which others belong to it; for whom they are complete
 *   channel.c   PASS, AWAIT or absorb; the timer; what is released
 *   completion.c     what is complete: reassembled.c streams it (join.c) into a draft.
 * Durable (S4)
 *               -> its parts end, durably -> it is accepted, and offered again
 *
 * Nothing is kept on disk but the messages themselves: a waiting fragment is due at
 * once there, so that a start offers all of them again. What a crash between the last
 * two steps leaves is found by the envelope of the whole, which names its parts
 * (parts_list.h).
 *
 * It never delivers, refuses or tells a sender anything, and no limit, no time-out and
 * no fault of it loses mail: a fragment that cannot be joined goes on as it is. */
#ifndef DEFRAG_CHANNEL_H
#define DEFRAG_CHANNEL_H

#include "defrag/reassembly/origin.h"
#include "defrag/set/set.h"
#include "queue/manager/manager.h"
#include "sched/route/peers.h"

struct channel_settings {
    const char *hostname; /* borrowed until the next settings */
    /* Where it is agreed with other hosts which of them has a set; NULL: we are alone.
     * Outlives the channel, and stays the same. */
    struct registry *registry;
    const struct peers *peers; /* borrowed until the next settings */
    struct set_limits limits;
    enum origin_keying keying; /* what is held keeps the key it has */
    bool keeps_subject;        /* see reassemble.h */
    enum channel_timeout {     /* what becomes of fragments whose time is over */
                           CHANNEL_RELEASE,
                           CHANNEL_BOUNCE,
                           CHANNEL_HOLD
    } on_timeout;
};

struct defragmenter;

/* Plugs itself into the manager, before its first turn: what a crash has left half done
 * is finished. */
struct defragmenter *channel_new(struct loop *loop, struct log *log,
                                 struct manager *manager,
                                 const struct channel_settings *settings);
/* After manager_reload(). When no route says defragment any more all go on at once. */
void channel_reload(struct defragmenter *channel,
                    const struct channel_settings *settings);
/* The registry answers again: what it is told of recovered(). */
void channel_recover(struct defragmenter *channel);
/* Before the manager. */
void channel_free(struct defragmenter **channel);

#endif
