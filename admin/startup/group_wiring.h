/* Starts the group of hosts that share limits, with the connection to its bank, and tells
 * the operator of it.
 *
 * In the status: `group`. The answer to the question `cluster` has it, too, and there also
 * `sites`, those whose limits are shared, as site_view.h has them, at most 200:
 *   name, host, egress
 *   bank      up, away or none; server, why, away_ms (0: it is not away)
 *   hosts     name, state (member or lost), own; of the others reports (its own state:
 *             running, leaving, ...), version and address (HOST:PORT of its peer door), each
 *             "" if it does not say
 *   fallback_sites   sites that go on with this host's own part
 *   asks, asked_sites, failures   questions to the bank since startup
 *   namesake  another host has our name
 * The question cluster-forget {host} frees the part of one that will not come back. */
#ifndef ADMIN_STARTUP_GROUP_WIRING_H
#define ADMIN_STARTUP_GROUP_WIRING_H

#include "admin/control/questions.h"
#include "admin/findings/findings.h"
#include "admin/startup/configuration.h"
#include "queue/group/group.h"

struct group_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct dns *dns;
    struct manager *manager;
    /* Private. */
    struct group *group; /* NULL: there is none */
    struct redis *redis;
    struct tls_client *anchors;
    bool has_lead; /* of the slices of this machine */
};

/* False with one line in error: it can never work. Without `cluster`, and without slices,
 * nothing is there. */
bool group_wiring_start(struct group_wiring *wiring, const struct configuration *c,
                        char *error, size_t size) __attribute__((warn_unused_result));
/* The connection of this process, if it is to the registry's server; else NULL. */
struct redis *group_wiring_redis(const struct group_wiring *wiring,
                                 const struct configuration *c);
void group_wiring_answer(struct group_wiring *wiring, struct questions *questions);
/* Facts may point into the group. */
void group_wiring_find(const struct group_wiring *wiring, struct finding_facts *facts);
void group_wiring_reload(struct group_wiring *wiring, const struct configuration *c);
/* Says goodbye. The registry, which may use the connection, is free already. */
void group_wiring_stop(struct group_wiring *wiring);

#endif
