/* The hosts that a session may connect to: their order, the next one, and those that
 * are tried in parallel.
 *
 * Hosts in bad health come last. The scheduler learns here whether a host has
 * answered. */
#ifndef SMTP_CONNECT_ADDRESS_RACE_H
#define SMTP_CONNECT_ADDRESS_RACE_H

#include "queue/manager/manager.h"
#include "smtp/connect/mx_lookup.h"
#include "smtp/client/reply_outcome.h"

struct address_race {
    struct manager *manager;
    const struct mx_lookup_host *hosts;
    size_t count;
    size_t at; /* in order; count: none is left */
    size_t order[MX_LOOKUP_ADDRESS_MAX];
};

/* hosts are borrowed: at most MX_LOOKUP_ADDRESS_MAX, with preferences not decreasing.
 */
void address_race_start(struct address_race *c, struct manager *manager,
                        const struct mx_lookup_host *hosts, size_t count);
/* NULL: none is left. */
const struct mx_lookup_host *address_race_next(const struct address_race *c);
/* The next one has been tried. */
void address_race_pass(struct address_race *c);
/* hosts[which] becomes the next one. */
void address_race_bring_forward(struct address_race *c, size_t which);
/* Up to two that may be tried together (smtp/connect/happy_eyeballs.h): the next one,
 * and the first one after it of the other family and the same preference (hosts of a
 * list have different ones: smtp/connect/mx_lookup.h). Returns their number. */
size_t address_race_pair(const struct address_race *c, size_t race[2]);

/* Whether one of the hosts has that family, also one that has failed: it may answer at
 * another time. */
bool address_race_have(const struct address_race *c, enum net_family family);
/* Leaves out the hosts of that family; before the first is tried. */
void address_race_drop(struct address_race *c, enum net_family family);

/* hosts[which] greeted, took_ms after the first attempt to connect. */
void address_race_good(struct address_race *c, size_t which, int64_t took_ms);
/* hosts[which] did not greet. */
void address_race_bad(struct address_race *c, size_t which);

/* Writes "name[ip]" and "name[ip]:port"; a literal's name is the address, a socket's its path.
 */
void address_race_name(const struct mx_lookup_host *host,
                       struct reply_outcome_peer *peer);

#endif
