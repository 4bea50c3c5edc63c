/* The bank of a group of hosts: leases of transactions and sessions of a shared site, for
 * a period each. Pure.
 *
 * Time is the bank's, in periods of BANK_PERIOD_US. Transactions are counted by GCRA as in
 * sched/limits/bucket.h; an unknown bucket is empty. A period's transactions are divided among
 * those that ask by the weights of the period before; the rest goes to hosts that ask again. One
 * that wants little then gets one in advance. Transactions given back of the last period count as
 * far as the burst allows, so that no window has more than the rate, the burst, and one for each
 * host. Sessions are counted by generations: those of this period and of the last one. So nothing
 * is swept, and the sessions of a dead host are free after one to two periods. doc/scheduler.md
 * "A group of hosts" has the reasons.
 *
 * bank_script[] is the same in Lua, for Redis. Both compute with doubles, in the same
 * order, and give the same answers: t/unit/sched/limits/bank_redis.c. */
#ifndef SCHED_LIMITS_BANK_H
#define SCHED_LIMITS_BANK_H

#include "base/text.h"

enum {
    BANK_PERIOD_US = 5000000,
    BANK_FORGET_US = 60000000, /* a site that nobody asks for is forgotten */
    BANK_AHEAD_PERIODS = 2,    /* a site's time may be ahead; beyond: it is new */
    BANK_SITES_MAX = 100000,   /* beyond: that which was asked for longest ago */
    BANK_KEY_MAX = 32,
    BANK_WEIGHT_MAX = 1000,
    BANK_HOSTS_MAX = 256,
    BANK_COUNT_MAX = 1000000 /* of each other number of a question */
};

/* The question of one host about one site. One of another process must be sound. */
struct bank_question {
    double interval_us; /* of a transaction; 0: no rate; else >= 1 */
    int burst;          /* >= 1 */
    int limit;          /* of sessions; 0: none */
    int want, weight;   /* transactions; senders that wait here, >= 1 */
    int again;          /* 1: not the first question in this period; 0: it is */
    int back;           /* transactions granted before and not used */
    int before;         /* sessions counted for this host in the last period; 0: none */
    int had;            /* counted in this period; -1: the first question in it */
    int open, need;     /* sessions open now, and wanted */
    double chance;      /* at random, in [0, 1) */
    int hosts;          /* of the group, >= 1 */
};

struct bank_grant {
    int tokens;      /* transactions */
    int sessions;    /* the host may have, and */
    int counted;     /* the count for it: sessions that outlive a smaller lease */
    int unmet;       /* hosts that had fewer sessions than they wanted, last period */
    int64_t left_us; /* until the end of the period */
};

/* Another process may have made it. */
bool bank_question_is_sound(const struct bank_question *question);
bool bank_grant_is_sound(const struct bank_grant *grant);

struct bank;

struct bank *bank_new(void);
void bank_free(struct bank **bank);
/* A copy of its present state, for a simulation of a bank that takes its place
 * later. */
struct bank *bank_copy(const struct bank *bank);

/* The site's key is cut to BANK_KEY_MAX. now_us may go back; the site's time does not, but
 * for one that is more than BANK_AHEAD_PERIODS ahead, which is forgotten. */
struct bank_grant bank_ask(struct bank *bank, struct text key, int64_t now_us,
                           const struct bank_question *question);
size_t bank_sites(const struct bank *bank);

/* The bank in Lua, for Redis or Valkey: the twin of bank.c.
 *
 * KEYS: sites. ARGV: the period in us, the time in ms after which a site is forgotten,
 * the number of hosts, now in us (0: the server's time); then for each key the members of
 * struct bank_question from interval_us to chance, in that order, true as 1. The answer
 * has the five numbers of struct bank_grant for each key. */
extern const char bank_script[];

#endif
