/* Clients that hand mail in: by SMTP in every manner, or as sendmail(1) on the same
 * disk. */
#ifndef T_ROOF_CLIENT_H
#define T_ROOF_CLIENT_H

#include "t/roof/model.h"

#include <stdint.h>

/* How clients of this run are; in a thousand. */
struct client_manners {
    unsigned pipelining, bdat, slow, cut, injects, null_sender, notify, tls, dsn, auth,
        split;
    unsigned hold;         /* FUTURERELEASE */
    unsigned requires;     /* REQUIRETLS, of those under TLS */
    unsigned messages_max; /* of a session */
    bool small; /* most messages have one recipient, and all little content */
};
void client_set_manners(const struct client_manners *manners);
/* The longest time of FUTURERELEASE. */
enum { CLIENT_HOLD_MS = 10 * 60 * 1000 };
/* Each of them goes to one of so many hosts of a group; 0: to the only one. */
void client_set_hosts(unsigned count);
/* One begins with these messages, as soon as now. */
void client_begin(unsigned first, unsigned count);
/* That are not over. */
unsigned clients_open(void);
/* Those that have not begun, because the host is down, begin when it is up. */

#endif
