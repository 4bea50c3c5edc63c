/* Every message the scheduler knows, by id and by due time, in 25 to 57 bytes each.
 *
 * Why neither uthash nor one heap node a message: a handle and a node cost 100 bytes,
 * and a queue may hold a million deferred messages. Ids sort by age and mostly arrive
 * in that order, so records of 24 bytes stand sorted in blocks of 64; a block is found
 * by binary search and stands in a heap by its earliest due record. Every operation is
 * O(log n) and a walk through one block.
 *
 * A struct known * is good until the next known_add or known_remove. */
#ifndef SCHED_KNOWN_H
#define SCHED_KNOWN_H

#include "base/heap.h"
#include "base/id.h"

struct sched_message;

enum known_place { KNOWN_WAITING, KNOWN_LOADING, KNOWN_ACTIVE };
/* New mail has had no attempt, old mail was deferred. */
enum known_age { KNOWN_NEW, KNOWN_OLD, KNOWN_AGES };

enum { KNOWN_ATTEMPTS_MAX = (1 << 24) - 1 };
/* Due when its site says so, not by time. */
#define KNOWN_PARKED_MS (INT64_MAX / 4)

struct known {
    uint64_t time_ms : 50, place : 2, forced : 1, /* ignores dead marks once */
        parked : 1;                               /* a site has its id */
    uint64_t hash : 40, attempts : 24;
    union {
        int64_t due_ms;                /* WAITING */
        struct sched_message *message; /* ACTIVE */
    };
};

struct known_block;
struct known_set {
    struct known_block **blocks; /* by id */
    size_t block_count, block_capacity;
    struct heap due[KNOWN_AGES]; /* of blocks with waiting mail of that age */
    size_t count, waiting[KNOWN_AGES];
};

void known_init(struct known_set *set);
/* The messages of active records are the caller's. */
void known_free(struct known_set *set);

struct id known_id(const struct known *k);
enum known_age known_age(const struct known *k);
bool known_is_parked(const struct known *k); /* and not due by time */

/* NULL when unknown. */
struct known *known_find(const struct known_set *set, struct id id);
/* False, and nothing changes, when it is known already. attempts is cut at its limit.
 */
bool known_add(struct known_set *set, struct id id, int64_t due_ms, unsigned attempts);
void known_remove(struct known_set *set, struct id id); /* must be known */

/* The one that has been due longest, oldest first among equals; NULL when none waits.
 */
struct known *known_first(const struct known_set *set, enum known_age age);

/* These keep the order: a record's due time, attempts and place change only here. */
void known_wait(struct known_set *set, struct known *k, int64_t due_ms,
                unsigned attempts);
void known_load(struct known_set *set, struct known *k); /* WAITING -> LOADING */
void known_activate(struct known_set *set, struct known *k,
                    struct sched_message *message); /* LOADING -> ACTIVE */

/* All waiting mail becomes due delta_ms later. */
void known_shift(struct known_set *set, int64_t delta_ms);
/* All waiting mail is due by now_ms, and forced. */
void known_force_all(struct known_set *set, int64_t now_ms);
/* each must not add or remove. */
void known_each(struct known_set *set, void (*each)(void *context, struct known *k),
                void *context);
/* Bytes allocated. */
size_t known_memory(const struct known_set *set);

#endif
