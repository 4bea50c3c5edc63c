/* The results of connections of clients, since startup: for metrics. */
#ifndef SMTP_SESSION_SESSION_COUNTS_H
#define SMTP_SESSION_SESSION_COUNTS_H

#include "smtp/reply.h"

/* Why a connection got no session. */
enum session_refused {
    SESSION_REFUSED_SESSIONS,        /* too many in all */
    SESSION_REFUSED_CLIENT_SESSIONS, /* of its address or network */
    SESSION_REFUSED_RATE,
    SESSION_REFUSED_LOCKOUT,
    SESSION_REFUSED_PROXY, /* no PROXY header, or from a peer that may not send one */
    SESSION_REFUSED_DRAINING,
    SESSION_REFUSED_DESCRIPTORS, /* it waits in the kernel */
    SESSION_REFUSED_OTHER,
    SESSION_REFUSED_REASONS
};
const char *session_refused_word(enum session_refused reason);

enum { SESSION_ACCEPT_BOUNDS = 8 };
struct session_counts {
    uint64_t opened, logins;
    uint64_t refused[SESSION_REFUSED_REASONS];
    /* From the end of content to its 250, by session_accept_bounds_s; the last: beyond. */
    uint64_t accepts[SESSION_ACCEPT_BOUNDS + 1];
    int64_t accept_sum_us;
};
extern const double session_accept_bounds_s[SESSION_ACCEPT_BOUNDS];

void session_counts_refuse(struct session_counts *counts,
                           const struct refusal *refusal);
void session_counts_accept(struct session_counts *counts, int64_t took_us);

#endif
