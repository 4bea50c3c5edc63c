/* The TLS policy of an outgoing connection: decided here alone (pure).
 *
 * Every connection of smtp/client/delivery.h asks here. What a destination itself
 * publishes (DANE, MTA-STS) would be more input; the trust anchors (tls_ca today) more
 * output. */
#ifndef SMTP_SECURITY_H
#define SMTP_SECURITY_H

#include "base/tls/tls.h"
#include "queue/manager/activity.h"
#include "sched/route/route.h"

enum { SECURITY_NAMES_MAX = 2 };

struct security_question {
    const struct target *target;
    const char *host; /* as we found it: by MX, or the target's own */
    bool has_failed;  /* a handshake with it did, in this session */
    bool needs_tls;   /* we log in there, never in cleartext */
};

/* Texts are borrowed from the question. */
struct security {
    enum target_tls level;
    bool implicit;
    bool fallen_back;   /* level is NONE because has_failed */
    bool may_fall_back; /* after a failed handshake: one attempt in cleartext */
    struct text host;   /* the name to send (SNI) */
    /* VERIFY: one of these must be the certificate's. */
    struct text names[SECURITY_NAMES_MAX];
    size_t name_count;
};

/* The names of VERIFY: the host of the target, be it a name or an address. For a target
 * by MX the host that the MX record names: that record is not proven by anything, so
 * this shows that the host is who its name says, not that it is the domain's. The
 * domain's own name cannot be taken, since a connection carries the mail of all domains
 * with the same hosts. smtp://HOST?mx=yes takes HOST as well.
 * Of a list of hosts each has to show its own name. */
void security_decide(const struct security_question *question, struct security *out);

/* For net_start_tls(); not for level NONE. */
struct tls_client_options security_tls_options(const struct security *security);

/* The scheme of a route that the host at this port may want in place of the one that it
 * has, for people: the connection looks as if each side waited for the other to begin.
 * NULL: it does not look so. */
const char *security_other_scheme(const struct security *security, unsigned port,
                                  enum activity_kind kind, int64_t waited_ms);

#endif
