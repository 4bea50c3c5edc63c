/* The hosts that a session may connect to: their order, the next one, and those that
 * are tried in parallel.
 *
 * Hosts in bad health come last. The scheduler learns here whether a host has
 * answered. */
#ifndef SMTP_CONNECT_CANDIDATES_H
#define SMTP_CONNECT_CANDIDATES_H

#include "queue/manager/manager.h"
#include "smtp/connect/mx_lookup.h"
#include "smtp/client/reply_outcome.h"

struct candidates {
    struct manager *manager;
    const struct mx_lookup_host *hosts;
    size_t count;
    size_t at; /* in order; count: none is left */
    size_t order[MX_LOOKUP_ADDRESS_MAX];
};

/* hosts are borrowed: at most MX_LOOKUP_ADDRESS_MAX, with preferences not decreasing.
 */
void candidates_start(struct candidates *c, struct manager *manager,
                      const struct mx_lookup_host *hosts, size_t count);
/* NULL: none is left. */
const struct mx_lookup_host *candidates_next(const struct candidates *c);
/* The next one has been tried. */
void candidates_pass(struct candidates *c);
/* hosts[which] becomes the next one. */
void candidates_bring_forward(struct candidates *c, size_t which);
/* Up to two that may be tried together (smtp/connect/happy_eyeballs.h): the next one,
 * and the first one after it of the other family and the same preference (hosts of a
 * list have different ones: smtp/connect/relayhosts.h). Returns their number. */
size_t candidates_race(const struct candidates *c, size_t race[2]);

/* Whether one of the hosts has that family, also one that has failed: it may answer at
 * another time. */
bool candidates_have(const struct candidates *c, enum net_family family);
/* Leaves out the hosts of that family; before the first is tried. */
void candidates_drop(struct candidates *c, enum net_family family);

/* hosts[which] greeted, took_ms after the first attempt to connect. */
void candidates_good(struct candidates *c, size_t which, int64_t took_ms);
/* hosts[which] did not greet. */
void candidates_bad(struct candidates *c, size_t which);

/* "name[ip]" and "name[ip]:port"; a literal's name is the address, a socket's its path.
 */
void candidates_name(const struct mx_lookup_host *host,
                     struct reply_outcome_peer *peer);

#endif
