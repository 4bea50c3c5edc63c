/* Proves that a smarthost, or the hosts of a domain, take our mail, without any: connects,
 * says EHLO, STARTTLS, AUTH, MAIL FROM, perhaps RCPT TO, RSET and QUIT. A "canary". */
#ifndef SMTP_DELIVERY_CANARY_H
#define SMTP_DELIVERY_CANARY_H

#include "base/dns/dns.h"
#include "base/outcome.h"
#include "base/tls/tls.h"
#include "sched/route/route.h"

struct canary;
struct sts_cache;
struct event_hub;
struct loop;
struct net;
struct tokens;

struct canary_settings {
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

enum canary_verdict {
    CANARY_GOOD,     /* 2yz to MAIL, and to RCPT where it is asked */
    CANARY_DOWN,     /* no conversation up to MAIL */
    CANARY_LOGIN,    /* user or password is refused, or cannot be read */
    CANARY_SENDER,   /* MAIL is refused: the host works, but not for this sender */
    CANARY_TOKEN,    /* there is no token yet, and the provider is being asked */
    CANARY_RECIPIENT /* RCPT is refused */
};
struct canary_result {
    enum canary_verdict verdict;
    const char *text;     /* the reply, or the failure; until the callback ends */
    const char *tls;      /* client_connection_tls() */
    const char *where;    /* the host that has answered, "name[ip]"; "" none */
    const char *demand;   /* exchange_describe() of it, or of `only` */
    const char *insecure; /* why TLS has failed, though mail may go without; "" */
};
typedef void canary_done(void *context, const struct canary_result *result);

/* Host number `at` of a TARGET_SMTP, or the hosts of a domain, at each of its addresses
 * until one converses. Settings are copied; the data they point to, target and sender
 * live until done, which comes once, in a later turn. sender: of MAIL. */
struct canary *canary_new(const struct canary_settings *settings,
                          const struct target *target, size_t at, const char *sender,
                          canary_done *done, void *context);
/* Also within done. Before it done does not come. */
void canary_free(struct canary **canary);

#endif
