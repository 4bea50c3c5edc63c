/* Checks of HELO and envelope of untrusted clients, without look-ups: decisions on plain
 * values. Clients that may relay are not checked. */
#ifndef SMTP_ACCESS_SANITY_H
#define SMTP_ACCESS_SANITY_H

#include "base/net_address.h"
#include "base/outcome.h"

struct sanity_rules {
    bool helo, sender; /* check_helo, check_sender */
};

/* At MAIL, after AUTH. helo: as received; hostname and own: our name and address (own may
 * be a Unix socket). False with the refusal:
 *
 *   check_helo    550 5.7.1  HELO is neither a domain with a dot nor an address literal
 *                 550 5.7.1  HELO is our own name or address
 *   check_sender  550 5.1.8  the domain of the sender has no dot: replies would fail */
bool sanity_mail(const struct sanity_rules *rules, struct text helo, struct text sender,
                 const char *hostname, const struct net_address *own,
                 struct outcome *refusal) __attribute__((warn_unused_result));

/* At RCPT, after accepted recipients: with check_sender, a message with the null sender
 * (a bounce) has one recipient; the others get 452 4.5.3, and the client sends them
 * separately. */
bool sanity_recipient(const struct sanity_rules *rules, struct text sender,
                      unsigned accepted, struct outcome *refusal)
    __attribute__((warn_unused_result));

#endif
