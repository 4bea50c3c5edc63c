/* The outcome of a reply, a time-out or a lost connection for a recipient (pure). */
#ifndef SMTP_CLIENT_REPLY_OUTCOME_H
#define SMTP_CLIENT_REPLY_OUTCOME_H

#include "smtp/reply.h"

/* The next hop, as shown in outcomes. */
struct reply_outcome_peer {
    char where[OUTCOME_REMOTE_MAX];  /* "host[ip]", or the path of a Unix socket */
    char remote[OUTCOME_REMOTE_MAX]; /* "host[ip]:port", or the path */
    unsigned port;                   /* 0: it has none */
};

/* 2yz delivered, 4yz deferred, 5yz failed; a 3yz must not come here. answered: "in
 * reply to MAIL FROM command". DEFERRED blames the site for 421 and for 450, 451 and
 * 452 with 4.7.x, which mean "slow down". A reply without an enhanced code gets that of
 * its class. */
struct outcome reply_outcome_reply(const struct reply_outcome_peer *peer,
                                   const struct reply *reply, const char *answered);
/* To RCPT: 552 means 452, too many recipients (RFC 5321 §4.5.3.1.10). */
struct outcome reply_outcome_rcpt(const struct reply_outcome_peer *peer,
                                  const struct reply *reply, const char *answered);
/* Before MAIL: for any reply the site is blamed and the mail waits. */
struct outcome reply_outcome_handshake(const struct reply_outcome_peer *peer,
                                       const struct reply *reply, const char *answered);
/* The outcome, deferred, whatever the reply meant. */
struct outcome reply_outcome_waits(struct outcome outcome);
/* The outcome of a host that we have logged in to: a refusal of the login, of the
 * sender, or for the limit of the account is about our settings, not about the mail,
 * which waits until they are corrected. */
struct outcome reply_outcome_by_account(struct outcome outcome);
/* doing: "sending MAIL FROM". */
struct outcome reply_outcome_lost(const struct reply_outcome_peer *peer,
                                  const char *doing);
struct outcome reply_outcome_timed_out(const struct reply_outcome_peer *peer,
                                       const char *doing);
struct outcome reply_outcome_protocol(const struct reply_outcome_peer *peer,
                                      const char *doing, const char *what);
/* TLS is demanded and not available; why: a sentence; enhanced: "4.7.4" or "4.7.5". */
struct outcome reply_outcome_insecure(const struct reply_outcome_peer *peer,
                                      const char *enhanced, const char *why);
/* The message cannot go to this host, which was not asked. */
struct outcome reply_outcome_unfit(const struct reply_outcome_peer *peer,
                                   const char *enhanced, const char *why);

#endif
