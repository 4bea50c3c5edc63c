/* Sites whose limits a group of hosts shares. Internal to sched/; sched.h has
 * sched_members(), sched_wishes() and sched_granted().
 *
 * A site of a domain has no lease before its servers are known: the servers share a limit,
 * not the domains. Its sessions carry no mail before. Nothing of this exists without a
 * group. */
#ifndef SCHED_SITE_LEASE_H
#define SCHED_SITE_LEASE_H

#include "sched/limits/lease.h"
#include "sched/site.h"

struct site_lease {
    UT_hash_handle hh;              /* in the group's, by name, unless it is apart */
    struct site_lease *prev, *next; /* those that want to ask */
    struct site *site; /* whose route has the limits; a member, the newest */
    struct site
        *sites; /* members: also those of former routes, until their mail is gone */
    int open;   /* sessions of all of them at the last update */
    const struct site_group *group;
    struct lease lease;
    bool is_due;
    bool is_apart; /* another site has the name: own parts, no bank */
    char name[];   /* the key of site_memory.h */
};

struct site_group {
    struct sched_group hosts;
    int64_t doubt_ms; /* until then: lease.h */
    struct site_lease *by_name, *due;
};

void site_group_free(struct sites *set);
void site_group_shift(struct sites *set, int64_t delta_ms);
/* For a new site, which has a lease now if its limits are shared. */
void site_lease_join(struct sites *set, struct site *site);
void site_lease_leave(struct sites *set, struct site *site);
/* Joins or leaves, as its route says now. */
void site_lease_change(struct sites *set, struct site *site);

/* The rest is for sites with a lease. */
/* Sessions, or the time of the next transaction, if that is less, or later. */
int site_lease_limit(const struct site *site, int64_t now_ms, bool is_new, int allowed);
int64_t site_lease_delay(struct site *site, int64_t now_ms, int64_t ready_ms);
uint32_t site_lease_passes(const struct site *site, int64_t now_ms, int64_t until_ms);
void site_lease_take(struct site *site, int64_t now_ms);
/* Whether it asks, and which sessions are over the lease. */
void site_lease_update(struct sites *set, struct site *site, int64_t now_ms);
int64_t site_lease_wake_ms(const struct site *site, int64_t now_ms);
void site_lease_shift(const struct site *site, int64_t delta_ms);
void site_lease_view(const struct site *site, int64_t now_ms, struct sched_site *view);

#endif
