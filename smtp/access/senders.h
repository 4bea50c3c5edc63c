/* The sender addresses that a client may use: `sender_login` and `sender_domains`. Pure. */
#ifndef SMTP_ACCESS_SENDERS_H
#define SMTP_ACCESS_SENDERS_H

#include "base/buffer.h"
#include "base/outcome.h"

enum {
    SENDERS_MAX = 100000,       /* patterns of sender_login */
    SENDERS_DOMAINS_MAX = 10000 /* of sender_domains */
};

struct senders;

/* login: lines of "USER PATTERN..."; a pattern is user@domain, domain, .domain (its
 * sub-domains) or *; # starts a comment line. domains: a list of domain and .domain.
 * Either may be empty: no restriction. NULL with one line per error. */
struct senders *senders_new(struct text login, struct text domains,
                            struct buffer *errors);
void senders_free(struct senders **senders);

/* user: the user of the login, or NULL; trusted: the client may relay without a login.
 * sender: in normal form, "" for the null sender, which is always permitted. False with
 * the refusal:
 *   a user may only use addresses of the lines of that user (553 5.7.1);
 *   an untrusted client without a login may not use an address of any user; the pattern
 *   "*" does not count (553 5.7.1);
 *   users and trusted clients may only use sender_domains (550 5.7.1).
 * The case of letters is ignored, except in user names. */
bool senders_permit(const struct senders *senders, const char *user, bool trusted,
                    struct text sender, struct outcome *refusal)
    __attribute__((warn_unused_result));

#endif
