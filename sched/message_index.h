/* The index of all messages that the scheduler knows, by id and by due time, in 25 to
 * 57 bytes each.
 *
 * Why neither uthash nor one heap node per message: a handle and a node cost 100 bytes,
 * and a queue may hold a million deferred messages. Ids sort by age and mostly arrive
 * in that order, so records of 24 bytes stand sorted in blocks of 64. Binary search
 * finds a block, and a heap orders blocks by their earliest due record. Every operation
 * is O(log n) and a walk through one block.
 *
 * A struct message_index * is valid until the next message_index_add or
 * message_index_remove. */
#ifndef SCHED_MESSAGE_INDEX_H
#define SCHED_MESSAGE_INDEX_H

#include "base/heap.h"
#include "base/id.h"

struct sched_message;

enum message_index_place {
    MESSAGE_INDEX_WAITING,
    MESSAGE_INDEX_LOADING,
    MESSAGE_INDEX_ACTIVE
};
/* New mail has had no attempt, old mail was deferred. */
enum message_index_age { MESSAGE_INDEX_NEW, MESSAGE_INDEX_OLD, MESSAGE_INDEX_AGES };

enum {
    MESSAGE_INDEX_ATTEMPTS_MAX = (1 << 14) - 1,
    MESSAGE_INDEX_RECIPIENTS_MAX = (1 << 16) - 1
};
/* Due when its site wakes it, or when there is room for it, not by time. */
#define MESSAGE_INDEX_BACKLOGGED_MS (INT64_MAX / 4)

struct message_index {
    uint64_t time_ms : 50, attempts : 14;
    uint64_t hash : 40, recipients : 16, /* of its envelope; 0: not known */
        place : 2, forced : 1,           /* ignores dead marks once */
        backlogged : 1,                  /* a site recalls it */
        listed : 1,                      /* and has its id, perhaps only that */
        was_listed : 1,                  /* ever: another site may have it, too */
        recalled : 1,                    /* it comes from there */
        queued : 1;                      /* sched_admission.c has its id */
    union {
        int64_t due_ms;                /* WAITING */
        struct sched_message *message; /* ACTIVE */
    };
};

struct message_index_block;
struct message_index_set {
    struct message_index_block **blocks; /* sorted by id */
    size_t block_count, block_capacity;
    struct heap due[MESSAGE_INDEX_AGES]; /* of blocks with waiting mail of that age */
    size_t count, waiting[MESSAGE_INDEX_AGES];
};

void message_index_init(struct message_index_set *set);
/* The messages of active records are the caller's. */
void message_index_free(struct message_index_set *set);

struct id message_index_id(const struct message_index *k);
enum message_index_age message_index_age(const struct message_index *k);
bool
message_index_is_backlogged(const struct message_index *k); /* and not due by time */

/* NULL when unknown. */
struct message_index *message_index_find(const struct message_index_set *set,
                                         struct id id);
/* False, and nothing changes: it is known already. attempts is capped at its limit. */
bool message_index_add(struct message_index_set *set, struct id id, int64_t due_ms,
                       unsigned attempts);
void message_index_remove(struct message_index_set *set,
                          struct id id); /* must be known */

/* The one that has been due longest, the oldest among equals; NULL when none waits. */
struct message_index *message_index_first(const struct message_index_set *set,
                                          enum message_index_age age);

/* These keep the order: a record's due time, attempts and place change only here. */
void message_index_wait(struct message_index_set *set, struct message_index *k,
                        int64_t due_ms, unsigned attempts);
void message_index_load(struct message_index_set *set,
                        struct message_index *k); /* WAITING -> LOADING */
void message_index_activate(struct message_index_set *set, struct message_index *k,
                            struct sched_message *message); /* LOADING -> ACTIVE */

/* Makes all waiting mail due delta_ms later. */
void message_index_shift(struct message_index_set *set, int64_t delta_ms);
/* Makes all waiting mail due by now_ms, and forced. */
void message_index_force_all(struct message_index_set *set, int64_t now_ms);
/* The first ids, oldest first, at most `most` of them; returns their number. */
size_t message_index_oldest(const struct message_index_set *set, struct id *ids,
                            size_t most);
/* each must not add or remove. */
void message_index_each(struct message_index_set *set,
                        void (*each)(void *context, struct message_index *k),
                        void *context);

/* For the tests of message_index.c. No other file includes this. */

/* Bytes allocated. */
size_t message_index_memory(const struct message_index_set *set);

#endif
