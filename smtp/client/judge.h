/* What a reply, a silence or a broken line means for a recipient (pure). */
#ifndef SMTP_JUDGE_H
#define SMTP_JUDGE_H

#include "smtp/reply.h"

/* Whom we talk to, as shown in outcomes. */
struct judge_peer {
    char where[OUTCOME_REMOTE_MAX];  /* "host[ip]", or the path of a Unix socket */
    char remote[OUTCOME_REMOTE_MAX]; /* "host[ip]:port", or the path */
};

/* 2yz delivered, 4yz deferred, 5yz failed; a 3yz must not come here. answered: "in
 * reply to MAIL FROM command". DEFERRED blames the site for 421 and for 450, 451 and
 * 452 with 4.7.x, which mean "slow down". The enhanced code is made up by class when
 * there was none. */
struct outcome judge_reply(const struct judge_peer *peer, const struct reply *reply,
                           const char *answered);
/* To RCPT: 552 means 452, too many recipients (RFC 5321 §4.5.3.1.10). */
struct outcome judge_rcpt(const struct judge_peer *peer, const struct reply *reply,
                          const char *answered);
/* Before mail was spoken of: whatever was said, the site is to blame and mail waits. */
struct outcome judge_handshake(const struct judge_peer *peer, const struct reply *reply,
                               const char *answered);
/* doing: "sending MAIL FROM". */
struct outcome judge_lost(const struct judge_peer *peer, const char *doing);
struct outcome judge_timed_out(const struct judge_peer *peer, const char *doing);
struct outcome judge_protocol(const struct judge_peer *peer, const char *doing,
                              const char *what);
/* TLS is demanded and is not to be had: why is a sentence, enhanced "4.7.4" or "4.7.5".
 */
struct outcome judge_insecure(const struct judge_peer *peer, const char *enhanced,
                              const char *why);
/* Nothing was asked: the message cannot go to this host. */
struct outcome judge_unfit(const struct judge_peer *peer, const char *enhanced,
                           const char *why);

#endif
