/* The order in which policies of MTA-STS are forgotten when there are too many. Pure.
 *
 * The least valuable goes first, and among equals the least recently used: a domain that
 * has only failed, then a policy that demands nothing, then one that mail has met once.
 * So a flood of domains costs none of the policies that mail is under. Those are at most
 * four fifths of all: the one used least recently goes back to those met once, so that
 * new ones find space. */
#ifndef SMTP_CLIENT_STS_RANKS_H
#define SMTP_CLIENT_STS_RANKS_H

#include "base/text.h"

enum sts_value {
    STS_VALUE_FAILED,
    STS_VALUE_NONE,
    STS_VALUE_TESTING,
    STS_VALUE_ENFORCE,
    STS_VALUE_USED, /* enforce, and asked for again */
    STS_VALUES
};

struct sts_place {
    struct sts_place *prev, *next;
    enum sts_value value;
    size_t bytes;
    bool is_ranked;
    void *owner;
};

/* All zero: nothing is ranked. */
struct sts_ranks {
    size_t count_max, bytes_max;
    size_t count, bytes;
    struct sts_rank {
        struct sts_place *places; /* the least recently used first */
        size_t count, bytes;
    } of[STS_VALUES];
};

/* It has been used now. */
void sts_ranks_put(struct sts_ranks *ranks, struct sts_place *place,
                   enum sts_value value, size_t bytes);
/* Allowed for one that is not ranked. */
void sts_ranks_remove(struct sts_ranks *ranks, struct sts_place *place);
bool sts_ranks_are_full(const struct sts_ranks *ranks); /* something must go */
/* The least valuable one; the next behind it; NULL: there is none. */
struct sts_place *sts_ranks_first(const struct sts_ranks *ranks);
struct sts_place *sts_ranks_after(const struct sts_ranks *ranks,
                                  const struct sts_place *place);

#endif
