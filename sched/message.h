/* Messages in memory: their open recipients by destination, and the end of a round.
 * Internal to sched/. */
#ifndef SCHED_MESSAGE_H
#define SCHED_MESSAGE_H

#include "sched/destination.h"
#include "sched/sched.h"

enum slot_state { SLOT_WAITING, SLOT_TAKEN, SLOT_DEFERRED, SLOT_DONE };

struct slot {       /* one open recipient */
    unsigned index; /* the owner's */
    enum slot_state state;
    struct reason *reason; /* DEFERRED; of its destination */
};

struct sched_message {
    struct sched_message *prev, *next; /* among those whose round has ended */
    struct id id;
    void *owner;
    int64_t birth_ms;
    bool null_sender;
    unsigned attempts;
    unsigned count, entry_count;
    unsigned unsettled, deferred; /* slots */
    unsigned at_slot, at_entry;   /* message_expire() */
    struct entry *entries;
    struct slot slots[]; /* those of an entry stand together */
};

/* Sorts the recipients into entries, which are counted in their destinations but do not
 * wait there yet. */
struct sched_message *message_new(struct destinations *set,
                                  const struct sched_recipient *recipients,
                                  size_t count);
/* Its entries must be in no list. */
void message_free(struct destinations *set, struct sched_message **message,
                  int64_t now_ms);

/* A verdict for a slot of entry. reason NULL: done. Takes the share. */
void message_settle(struct sched_message *m, unsigned slot, struct reason *reason);

/* When all slots are settled: the next deferred one whose lifetime is over, which is
 * done then. False: no more. */
bool message_expire(struct sched_message *m, int64_t now_ms, unsigned *index,
                    struct outcome *outcome);
/* Until the next attempt, without jitter: the shortest of the destinations that
 * deferred. */
int64_t message_delay_ms(const struct sched_message *m, int64_t now_ms);

#endif
