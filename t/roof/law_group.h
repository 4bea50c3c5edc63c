/* The limits that hosts share, as the next hops of a site see them: sessions that are
 * open, and transactions in a minute. */
#ifndef T_ROOF_LAW_GROUP_H
#define T_ROOF_LAW_GROUP_H

#include <stdbool.h>
#include <stdint.h>

enum { LAW_GROUP_SITES = 2 };

struct law_group_limits {
    unsigned rate_a_minute, burst, sessions; /* of all hosts */
    unsigned hosts;
    bool has_bank;
    bool is_forgiven; /* clocks differ */
    bool is_slow;     /* hops hear late that a session has ended */
};
void law_group_begin(unsigned site, const struct law_group_limits *limits);
/* A session at that site has begun, or ended. */
void law_group_session(unsigned site);
/* A transaction has begun. */
void law_group_transaction(unsigned site);

#endif
