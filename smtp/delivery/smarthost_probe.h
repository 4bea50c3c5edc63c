/* Proves that a smarthost, or the hosts of a domain, take our mail, without any: connects,
 * says EHLO, STARTTLS, AUTH, MAIL FROM, perhaps RCPT TO, RSET and QUIT. A "canary". */
#ifndef SMTP_DELIVERY_SMARTHOST_PROBE_H
#define SMTP_DELIVERY_SMARTHOST_PROBE_H

#include "base/dns/dns.h"
#include "base/outcome.h"
#include "base/tls/tls.h"
#include "sched/route/route.h"

struct smarthost_probe;
struct sts_cache;
struct event_hub;
struct loop;
struct net;
struct tokens;

struct smarthost_probe_settings {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct event_hub *events; /* NULL: nobody reads */
    const char *hostname;     /* in EHLO, unless the target has a name for it */
    uint16_t smtp_port;       /* of hosts without a port */
    struct bind_address sources;
    bool skip_v4, skip_v6; /* addresses of that family are not used */
    int64_t connect_timeout_ms;
    struct tls_client *const *tls; /* the owner's variable */
    const struct secrets *secrets; /* of the target's users */
    struct tokens *tokens;         /* of accounts; NULL: there are none */
    /* For a TARGET_MX. */
    const char *domain;    /* the domain of its mail */
    const char *only;      /* the name of the one of its hosts; NULL: any of them */
    bool dane;             /* see smtp/connect/exchange.h */
    struct sts_cache *sts; /* likewise */
    const char *recipient; /* of RCPT; NULL: MAIL is the last */
};

enum smarthost_probe_verdict {
    SMARTHOST_PROBE_GOOD,  /* 2yz to MAIL, and to RCPT where it is asked */
    SMARTHOST_PROBE_DOWN,  /* no conversation up to MAIL */
    SMARTHOST_PROBE_LOGIN, /* user or password is refused, or cannot be read */
    SMARTHOST_PROBE_SENDER, /* MAIL is refused: the host works, but not for this sender */
    SMARTHOST_PROBE_TOKEN, /* there is no token yet, and the provider is being asked */
    SMARTHOST_PROBE_RECIPIENT /* RCPT is refused */
};
struct smarthost_probe_result {
    enum smarthost_probe_verdict verdict;
    const char *text;     /* the reply, or the failure; until the callback ends */
    const char *tls;      /* client_connection_tls() */
    const char *where;    /* the host that has answered, "name[ip]"; "" none */
    const char *demand;   /* exchange_describe() of it, or of `only` */
    const char *insecure; /* why TLS has failed, though mail may go without; "" */
    bool has_requiretls;  /* it has offered REQUIRETLS */
};
typedef void smarthost_probe_done(void *context,
                                  const struct smarthost_probe_result *result);

/* Host number `at` of a TARGET_SMTP, or the hosts of a domain, at each of its addresses
 * until one converses. Settings are copied; the data they point to, target and sender
 * live until done, which comes once, in a later turn. sender: of MAIL. */
struct smarthost_probe *
smarthost_probe_new(const struct smarthost_probe_settings *settings,
                    const struct target *target, size_t at, const char *sender,
                    smarthost_probe_done *done, void *context);
/* Ends the probe, also within done; done is not called any more. */
void smarthost_probe_free(struct smarthost_probe **probe);

#endif
