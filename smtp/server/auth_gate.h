/* The gate of AUTH: when a password may be checked, how late a failure is answered, and
 * which clients are locked out. One gate for all sessions of a listener, one login for
 * each session that has sent AUTH.
 *
 * A check takes up to 5 ms of the loop, or several slices of 2 ms. So there is one each
 * AUTH_ATTEMPT_PACE_MS, a slice each AUTH_ATTEMPT_SLICE_MS, and further logins wait:
 * guessing takes a quarter of the loop at most. A client that leaves before its check
 * is over has failed, too. Waiting clients (see smtp/server/lockout.h) take turns: first
 * those that have logged in lately, last those that have failed. When the queue is full,
 * a client with a better claim takes the place of the one with the worst, which gets a
 * 4yz reply. A malformed response is answered immediately, and counts as a failure. */
#ifndef SMTP_SERVER_AUTH_GATE_H
#define SMTP_SERVER_AUTH_GATE_H

#include "smtp/server/lockout.h"
#include "smtp/server/server.h"

struct loop;

enum {
    AUTH_ATTEMPT_PACE_MS = 20,
    AUTH_ATTEMPT_SLICE_MS = 8,
    AUTH_ATTEMPT_WAITING_MAX = 50, /* then 454 */
    /* Of one client in the row; then 454. Many users may be behind an address from
     * which one has logged in. */
    AUTH_ATTEMPT_WAITING_EACH = 4,
    AUTH_ATTEMPT_WAITING_EACH_GOOD = 16
};

struct auth_gate;
struct auth_gate *auth_gate_new(struct loop *loop, struct log *log);
/* After its logins. */
void auth_gate_free(struct auth_gate **gate);
/* See lockout_set_limit(). */
void auth_gate_set_limit(struct auth_gate *gate, int failure_limit);
bool auth_gate_is_locked(const struct auth_gate *gate, const struct lockout_key *key);

struct auth_attempt;
/* server, and context of resume, outlive it. */
struct auth_attempt *auth_attempt_new(struct auth_gate *gate, struct server *server,
                                      const struct lockout_key *key,
                                      void (*resume)(void *context), void *context);
/* Any time; resume comes no more. */
void auth_attempt_free(struct auth_attempt **login);

/* At SERVER_LOGIN. True: it is answered. False: resume will be called when it is, not
 * before this returns. */
bool auth_attempt_ask(struct auth_attempt *login) __attribute__((warn_unused_result));

#endif
