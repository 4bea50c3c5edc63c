/* Facts about large smarthosts that their replies lack. Pure. Limits are not among them:
 * rates are learnt. */
#ifndef SCHED_ROUTE_PROVIDER_FACTS_H
#define SCHED_ROUTE_PROVIDER_FACTS_H

#include "base/text.h"

struct provider_facts {
    const char *host;  /* "smtp.example.com"; "*" within: any characters */
    const char *name;  /* of the provider, for people */
    bool keeps_sender; /* our envelope sender, which SPF is about; else it is its own */
    const char *include; /* of SPF, for senders that are kept; "": its pages tell */
    const char *user;    /* how it must be, in words; "": an address */
    const char *setup;   /* where it tells the records of our domain, in words */
};

/* NULL: nothing is known. host: in any case. */
const struct provider_facts *provider_facts_find(struct text host);
/* All of them; NULL behind the last. */
const struct provider_facts *provider_facts_at(size_t index);

#endif
