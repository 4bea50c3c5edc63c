/* The gate of AUTH: when a password may be checked, how late a failure is told, who is
 * locked out. One gate for all sessions of a listener, one login for each session that
 * has said AUTH.
 *
 * A check takes up to 5 ms of the loop, or several slices of 2 ms. So there is one each
 * LOGIN_PACE_MS, a slice each LOGIN_SLICE_MS, and more wait in a row: guessing takes a
 * quarter of the loop at most. A client that leaves before its check is over has
 * failed, too. The clients in the row
 * (see smtp/server/lockout.h) take turns: first those that have logged in lately, last
 * those that have failed. When it is full, a client with a better claim takes the place
 * of the one with the worst, which is told to try later. What is malformed is answered
 * at once, and counts as a failure. */
#ifndef SMTP_LOGIN_H
#define SMTP_LOGIN_H

#include "smtp/server/lockout.h"
#include "smtp/server/server.h"

struct loop;

enum {
    LOGIN_PACE_MS = 20,
    LOGIN_SLICE_MS = 8,
    LOGIN_WAITING_MAX = 50, /* then 454 */
    /* Of one client in the row; then 454. Many users may be behind an address from
     * which one has logged in. */
    LOGIN_WAITING_EACH = 4,
    LOGIN_WAITING_EACH_GOOD = 16
};

struct login_gate;
struct login_gate *login_gate_new(struct loop *loop, struct log *log);
/* After its logins. */
void login_gate_free(struct login_gate **gate);
/* See lockout_set_limit(). */
void login_gate_set_limit(struct login_gate *gate, int failure_limit);
bool login_gate_is_locked(const struct login_gate *gate, const struct lockout_key *key);

struct login;
/* server, and context of resume, outlive it. */
struct login *login_new(struct login_gate *gate, struct server *server,
                        const struct lockout_key *key, void (*resume)(void *context),
                        void *context);
/* Any time; resume comes no more. */
void login_free(struct login **login);

/* At SERVER_LOGIN. True: it is answered. False: resume will be called when it is, not
 * before this returns. */
bool login_ask(struct login *login) __attribute__((warn_unused_result));

#endif
