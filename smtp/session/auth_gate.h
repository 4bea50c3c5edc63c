/* The gate of AUTH paces password checks, delays the replies to failures and locks
 * clients out. A listener has one gate, each session that has sent AUTH one attempt.
 *
 * A check takes up to 5 ms of the loop, or several slices of 2 ms. The gate runs one
 * check each AUTH_ATTEMPT_PACE_MS, or a slice each AUTH_ATTEMPT_SLICE_MS, and further
 * attempts wait: password guessing takes a quarter of the loop at most. A client that
 * disconnects before its check is complete has failed. Waiting clients take turns by
 * their standing (smtp/access/lockout.h): recent logins first, failures last. When the
 * queue is full, a client of better standing displaces the one of the worst, which gets
 * a 4yz reply. A malformed response is refused immediately and counts as a failure. */
#ifndef SMTP_SESSION_AUTH_GATE_H
#define SMTP_SESSION_AUTH_GATE_H

#include "smtp/access/lockout.h"
#include "smtp/server/server.h"
#include "smtp/session/dovecot_auth.h"

struct loop;

enum {
    AUTH_ATTEMPT_PACE_MS = 20,
    AUTH_ATTEMPT_SLICE_MS = 8,
    AUTH_ATTEMPT_WAITING_MAX = 50, /* then 454 */
    /* Attempts of one client in the queue; then 454. An address from which a user has
     * logged in may be that of many users. */
    AUTH_ATTEMPT_WAITING_EACH = 4,
    AUTH_ATTEMPT_WAITING_EACH_GOOD = 16
};

struct auth_gate;
struct event_hub;
/* lockout is borrowed. */
struct auth_gate *auth_gate_new(struct loop *loop, struct event_hub *events,
                                struct lockout *lockout);
/* Call it after the gate's attempts are freed. */
void auth_gate_free(struct auth_gate **gate);

struct auth_attempt;
/* Where another server checks, which is asked without a pace: it has its own. Attempts of
 * one client there are limited as those in the queue are. */
void auth_gate_ask(struct auth_gate *gate, struct dovecot_auth *dovecot);

/* server, context and the client's addresses must outlive the attempt. */
struct auth_attempt *auth_attempt_new(struct auth_gate *gate, struct server *server,
                                      const struct lockout_key *key,
                                      const struct dovecot_client *client,
                                      void (*resume)(void *context), void *context);
/* May be called at any time; resume is not called afterwards. */
void auth_attempt_free(struct auth_attempt **login);

/* Call it at SERVER_LOGIN. True: the reply is sent. False: resume is called later, when
 * the reply is sent. */
bool auth_attempt_ask(struct auth_attempt *login) __attribute__((warn_unused_result));

#endif
