/* Which sender addresses a client may use: `sender_login` and `sender_domains`. Pure.
 */
#ifndef SMTP_SERVER_SENDERS_H
#define SMTP_SERVER_SENDERS_H

#include "base/buffer.h"
#include "base/outcome.h"

enum {
    SENDERS_MAX = 100000,       /* patterns of sender_login */
    SENDERS_DOMAINS_MAX = 10000 /* of sender_domains */
};

struct senders;

/* login: lines of "USER PATTERN...", a pattern being user@domain, domain, .domain (its
 * sub-domains) or *; # starts a comment line. domains: a list of domain and .domain.
 * Either may be empty: no restriction. One line per error, and NULL then. */
struct senders *senders_new(struct text login, struct text domains,
                            struct buffer *errors);
void senders_free(struct senders **senders);

/* user: the one that logged in, or NULL; trusted: may relay without a login. sender: in normal
 * form, "" for the null sender, which everybody may use. False with the refusal:
 *   a user may only use the addresses of the user's lines (553 5.7.1);
 *   who has not logged in, and is not trusted, may not use what stands in anybody's,
 *   which "*" does not count as (553 5.7.1);
 *   users and trusted clients may only use sender_domains (550 5.7.1).
 * Letters are compared in any case, except in the names of users. */
bool senders_permit(const struct senders *senders, const char *user, bool trusted,
                    struct text sender, struct outcome *refusal)
    __attribute__((warn_unused_result));

#endif
