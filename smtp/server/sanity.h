/* Checks of what untrusted clients say of themselves, without look-ups: decisions on
 * plain values. Untrusted clients may not relay; others are not checked. */
#ifndef SMTP_SERVER_SANITY_H
#define SMTP_SERVER_SANITY_H

#include "base/net_address.h"
#include "base/outcome.h"

struct sanity_rules {
    bool helo, sender; /* sanity_helo, check_sender */
};

/* At MAIL, when it is known who may relay. helo as it was said; hostname and own are
 * ours (own may be a Unix socket). False with the refusal:
 *
 *   sanity_helo    550 5.7.1  HELO is neither a domain with a dot nor an address
 * literal 550 5.7.1  HELO is our own name or address check_sender  550 5.1.8  the
 * sender's domain has no dot: no reply would find it */
bool sanity_mail(const struct sanity_rules *rules, struct text helo, struct text sender,
                 const char *hostname, const struct net_address *own,
                 struct outcome *refusal) __attribute__((warn_unused_result));

/* At RCPT, accepted having been taken before: with check_sender a message without a
 * sender, a bounce, has one recipient: others hear 452 4.5.3 and come by themselves. */
bool sanity_recipient(const struct sanity_rules *rules, struct text sender,
                      unsigned accepted, struct outcome *refusal)
    __attribute__((warn_unused_result));

#endif
