/* One connection to one of the addresses of a destination: its IPv6 and IPv4 addresses
 * race (RFC 8305, "happy eyeballs").
 *
 * Addresses are tried in the order given, one at a time. If one has not answered within
 * its head start, an address of the other family and the same preference is tried in
 * parallel; a backup host does not race with a main one. At most one attempt of a
 * family is under way. */
#ifndef SMTP_CONNECT_HAPPY_EYEBALLS_H
#define SMTP_CONNECT_HAPPY_EYEBALLS_H

#include "base/loop/loop.h"
#include "smtp/connect/mx_lookup.h"
#include "sched/route/bind_address.h"

struct net_connection;
struct net;
struct happy_eyeballs;

enum { HAPPY_EYEBALLS_HEAD_START_MS = 250 }; /* RFC 8305 §5 */

struct happy_eyeballs_settings {
    struct loop *loop;
    struct net *net;
    const struct bind_address *sources; /* source addresses */
    int64_t timeout_ms;                 /* for each address */
    int64_t head_start_ms;
};

enum happy_eyeballs_event_kind {
    HAPPY_EYEBALLS_TRYING, /* for the log; happy_eyeballs_free() is forbidden in it */
    HAPPY_EYEBALLS_CONNECTED, /* connection is the owner's: net_attach() it now */
    HAPPY_EYEBALLS_FAILED,    /* why */
    HAPPY_EYEBALLS_BEATEN,    /* no answer within its head start, and another address
                                 has answered: CONNECTED follows */
    HAPPY_EYEBALLS_OVER       /* no address is left */
};
struct happy_eyeballs_event {
    enum happy_eyeballs_event_kind kind;
    size_t which; /* of hosts; not of OVER */
    struct net_connection *connection;
    int64_t started_ms; /* monotonic; not of OVER */
    const char *why;    /* until the event ends */
    int error;          /* errno of FAILED; 0: it had another cause */
};
typedef void happy_eyeballs_happened(void *context,
                                     const struct happy_eyeballs_event *event);

/* Tries hosts[order[0..count-1]], whose preferences do not decrease, except that those
 * in bad health are at the end. Both arrays and settings->sources are borrowed until
 * happy_eyeballs_free(). happy_eyeballs_go_on() begins. Events except TRYING come from
 * a later turn on. */
struct happy_eyeballs *
happy_eyeballs_new(const struct happy_eyeballs_settings *settings,
                   const struct mx_lookup_host *hosts, const size_t *order,
                   size_t count, happy_eyeballs_happened *on_event, void *context);
/* Begins; after CONNECTED, to a host that proved unusable, tries the other addresses.
 * False: none is left, and OVER does not come. */
bool happy_eyeballs_go_on(struct happy_eyeballs *d) __attribute__((warn_unused_result));
/* The attempt that lasts longest. False: none is under way. */
bool happy_eyeballs_now(const struct happy_eyeballs *d, size_t *which,
                        int64_t *started_ms);
/* Also within an event. No event comes any more. */
void happy_eyeballs_free(struct happy_eyeballs **d);

#endif
