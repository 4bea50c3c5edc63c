/* One connection to one of the addresses of a destination: its IPv6 and IPv4 addresses
 * race (RFC 8305, "happy eyeballs").
 *
 * Addresses are tried in the order given, one at a time; but when one has not answered
 * within its head start, an address of the other family gets its chance beside it, if
 * it is of the same preference: a backup host is no rival of a main one. At most one
 * attempt of a family is under way. */
#ifndef SMTP_DIALING_H
#define SMTP_DIALING_H

#include "base/loop.h"
#include "smtp/client/exchange.h"
#include "smtp/client/sources.h"

struct dialing;

enum { DIALING_HEAD_START_MS = 250 }; /* RFC 8305 §5 */

struct dialing_settings {
    struct loop *loop;
    struct net *net;
    const struct sources *sources; /* where connections go out from */
    int64_t timeout_ms;            /* for each address */
    int64_t head_start_ms;
};

enum dialing_event_kind {
    DIALING_TRYING,    /* for the log: not a time for dialing_free() */
    DIALING_CONNECTED, /* connection is the owner's: net_attach() it now */
    DIALING_FAILED,    /* why */
    DIALING_BEATEN,    /* it had its head start and did not answer; CONNECTED follows */
    DIALING_OVER       /* no address is left */
};
struct dialing_event {
    enum dialing_event_kind kind;
    size_t which; /* of hosts; not of OVER */
    struct net_connection *connection;
    int64_t started_ms; /* monotonic; not of OVER */
    const char *why;    /* until the event ends */
};
typedef void dialing_happened(void *context, const struct dialing_event *event);

/* Tries hosts[order[0..count-1]], whose preferences do not decrease but at the end,
 * where those in bad health stand; both arrays and settings->sources are borrowed
 * until dialing_free(). Begins with dialing_go_on(). Events come from a later turn on,
 * but for TRYING. */
struct dialing *dialing_new(const struct dialing_settings *settings,
                            const struct exchange_host *hosts, const size_t *order,
                            size_t count, dialing_happened *on_event, void *context);
/* After CONNECTED: tries what is left, because that host was of no use. False: nothing
 * is, and no OVER comes. */
bool dialing_go_on(struct dialing *d) __attribute__((warn_unused_result));
/* The attempt that lasts longest. False: none is under way. */
bool dialing_now(const struct dialing *d, size_t *which, int64_t *started_ms);
/* Also within an event. No event comes any more. */
void dialing_free(struct dialing **d);

#endif
