/* Messages in memory: their open recipients by destination, and the end of an attempt.
 * Internal to sched/. */
#ifndef SCHED_MESSAGE_H
#define SCHED_MESSAGE_H

#include "sched/destination.h"
#include "sched/sched.h"

#include <assert.h>

enum { MESSAGE_COST_SHIFT = 20, MESSAGE_COST_MAX = 8 }; /* in units of 1 MiB */

enum slot_state { SLOT_WAITING, SLOT_TAKEN, SLOT_DEFERRED, SLOT_DONE };

struct slot {       /* one open recipient */
    unsigned index; /* the owner's */
    enum slot_state state;
    struct reason *reason; /* DEFERRED; of its destination */
};

/* Kept small: a hundred thousand of them are in memory. */
struct sched_message {
    struct sched_message *next; /* among those whose attempt has ended */
    struct id id;
    void *owner;
    int64_t birth_ms;
    uint64_t sender; /* the flow: a hash, and the class */
    unsigned attempts : 24, class : 2, null_sender : 1, cost : 4,
        is_astray : 1; /* its route has changed during its attempt */
    unsigned count, entry_count;
    union {
        unsigned unsettled; /* slots */
        unsigned looked;    /* slots that message_expire() has checked, when all are
                             * settled */
    };
    struct slot slots[]; /* those of an entry stand together; the entries come behind */
};
static_assert(sizeof(struct sched_message) + sizeof(struct slot) +
                      sizeof(struct entry) <=
                  152,
              "the most common message must fit in 160 bytes of heap");

static inline struct entry *
message_entries(struct sched_message *m)
{
    return (struct entry *)(void *)&m->slots[m->count];
}

/* Recipients of a message that is being loaded, counted already in their
 * destinations. */
struct sched_loading {
    size_t count, most;
    bool is_grouped; /* their groups differ */
    struct found {
        struct destination *destination;
        unsigned index, group;
    } found[];
};
struct sched_loading *message_loading(size_t most);
void message_find(struct destinations *set, struct sched_loading *l,
                  const struct sched_recipient *recipient, int64_t now_ms);
/* Sorts the recipients that were found into entries: one for each destination and
 * group. The destinations count these, but
 * they do not wait there yet. */
struct sched_message *message_make(const struct sched_mail *mail,
                                   struct sched_loading *l);

/* Removes the entries from `first` to before `end` from their destinations; they must
 * be in no list. free() needs all of them removed. */
void message_leave(struct destinations *set, struct sched_message *m, unsigned first,
                   unsigned end, int64_t now_ms);
void message_free(struct destinations *set, struct sched_message **message,
                  int64_t now_ms);

struct destination *message_destination(struct sched_message *m, unsigned slot);

/* A verdict for a slot. reason NULL: done. Takes the share of reason. */
void message_settle(struct sched_message *m, unsigned slot, struct reason *reason);

/* When all slots are settled: marks the next deferred one whose lifetime is over as
 * done. False: there is no more. */
bool message_expire(struct sched_message *m, int64_t now_ms, unsigned *index,
                    struct outcome *outcome);
/* The delay until the next attempt, without jitter: the shortest of the deferred
 * recipients, by the classes of the replies. counts: it was an attempt. INT64_MAX: no
 * recipient was deferred. */
int64_t message_delay_ms(struct sched_message *m, int64_t now_ms, bool *counts);

#endif
