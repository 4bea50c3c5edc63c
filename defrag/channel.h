/* The defragment channel: fragments of message/partial wait until all are there, and are
 * delivered as the message they were cut from (doc/defragment.md).
 *
 * A fragment is an ordinary message of the queue. When its attempt begins, the manager
 * offers those of its recipients whose route says defragment=yes:
 *
 *   reassembly/examine.c   reads the header (fragment.c) and the digest of the body
 *   reassembly/origin.c    says where it came from, and so the key of its set
 *   registry/claims.c      says which host owns the set; the fragment is sent there if
 *                          that is another host (fragment_redirect.c)
 *   set/set.c says which others belong to it, and which recipients have all of them
 *   channel.c              passes it, lets it wait or absorbs it; the timer; releases
 *   completion.c streams a complete set into a draft (reassembled.c,
 *                          reassemble.c); when the draft is durable, ends the parts;
 *                          when their ends are durable, the manager accepts the message
 *
 * Nothing is on disk but the messages themselves: a waiting fragment is due immediately
 * there, so that startup offers all of them again. A crash between the last two steps
 * leaves a reassembled message whose envelope lists its parts (parts_list.h).
 *
 * The channel never delivers, rejects or notifies. No limit, timeout or error of it
 * loses mail: a fragment that cannot be reassembled is delivered as it came. */
#ifndef DEFRAG_CHANNEL_H
#define DEFRAG_CHANNEL_H

#include "defrag/reassembly/origin.h"
#include "defrag/set/set.h"
#include "queue/manager/manager.h"
#include "sched/route/peers.h"

struct event_hub;

/* Treatment of fragments whose time is over. */
enum channel_timeout { CHANNEL_RELEASE, CHANNEL_BOUNCE, CHANNEL_HOLD };

struct channel_settings {
    const char *hostname; /* borrowed until the next settings */
    /* Says which host owns a set; NULL: this host works alone. Outlives the channel;
     * the same after a reload. */
    struct registry *registry;
    const struct peers *peers; /* borrowed until the next settings */
    struct set_limits limits;
    enum origin_keying keying; /* waiting fragments keep the key they have */
    bool keeps_subject;        /* see reassemble.h */
    enum channel_timeout on_timeout;
};

struct defragmenter;

/* Plugs itself into the manager, before the first turn, and finishes work that a crash
 * has left half done. */
struct defragmenter *channel_new(struct loop *loop, struct event_hub *events,
                                 struct manager *manager,
                                 const struct channel_settings *settings);
/* After manager_reload(). When no route says defragment any more, all fragments are
 * released. */
void channel_reload(struct defragmenter *channel,
                    const struct channel_settings *settings);
/* The registry answers again: its event `recovered`. */
void channel_recover(struct defragmenter *channel, bool is_empty);
/* Before the manager is freed. */
void channel_free(struct defragmenter **channel);

#endif
