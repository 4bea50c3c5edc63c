/* The peer door of this host: start, our description, status, stop. It connects the group,
 * which knows the other hosts, with the modules that take their mail and answer their
 * questions.
 *
 * In the status: `peer`, absent without a secret:
 *   address    where others reach us; "": they cannot
 *   spool      the identity of our spool
 *   accepted, named, pushed_out, turned_away     connections since startup (peer.h) */
#ifndef ADMIN_STARTUP_PEER_WIRING_H
#define ADMIN_STARTUP_PEER_WIRING_H

#include "admin/control/questions.h"
#include "admin/startup/configuration.h"
#include "queue/group/group.h"
#include "smtp/peer/peer.h"

struct peer_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct dns *dns;
    struct manager *manager;
    struct group *const *group; /* it is NULL: there is none */
    /* running, leaving, ...: sibling_hello.state. */
    const char *(*state)(void *context);
    /* The daemon stops: nobody is let in. */
    bool (*is_closed)(void *context);
    void *context;
    /* The taker of mail (take_serve()), and the answerer of questions: the calls and the
     * context of each. take.take NULL: no mail is taken; ask.ask NULL: nothing is
     * answered. */
    struct sibling_service take, ask;

    /* Private. */
    struct sibling_service door; /* the view of the peer */
    struct peer *peer;           /* NULL: there is none */
    char spool[SIBLING_SPOOL_MAX + 1];
    char address[GROUP_ADDRESS_MAX + 1];
    char configured[GROUP_ADDRESS_MAX + 1]; /* cluster_address */
    char found[GROUP_ADDRESS_MAX + 1];
    char group_name[GROUP_NAME_MAX + 1], host[GROUP_HOST_MAX + 1];
    int64_t run_ms;
    int64_t refused_ms; /* a minute's begin, and lines on refused hosts in it */
    unsigned refused;
};

/* False with one line in error: it can never work. Without a group or a secret nothing is
 * there. As the user to whom the spool belongs. */
bool peer_wiring_prepare(struct peer_wiring *wiring, const struct configuration *c,
                         char *error, size_t size) __attribute__((warn_unused_result));
/* Binds addresses: before the sandbox is entered. */
bool peer_wiring_start(struct peer_wiring *wiring, const struct configuration *c,
                       char *error, size_t size) __attribute__((warn_unused_result));
void peer_wiring_answer(struct peer_wiring *wiring, struct questions *questions);
/* As peer_door(); there may be no peer. */
bool peer_wiring_door(const struct peer_wiring *wiring, size_t index,
                      struct net_address *address, struct net_listener_counts *counts);
/* Other secrets, other peers. */
void peer_wiring_reload(struct peer_wiring *wiring, const struct configuration *c);
/* The calls that go out; NULL: there is no peer. */
const struct sibling_calls *peer_wiring_calls(const struct peer_wiring *wiring);
/* Says goodbye; before the modules that take mail and answer questions are freed. */
void peer_wiring_stop(struct peer_wiring *wiring);

#endif
