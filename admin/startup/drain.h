/* `petrel drain`: takes the daemon out of service, and back.
 *
 *   running    mail comes and goes
 *   leaving    readiness fails; mail is accepted for drain_delay more, because load
 *              balancers lag
 *   emptying   if requested: clients get 421 4.3.2 after their transaction, deliveries go
 *              on, and deferred mail is due now and every 10 s, until none is left but
 *              held mail, quarantined mail and fragments, or the time is over
 *   closing    clients get 421 4.3.2; no session out begins, and those that run end, at
 *              the latest after drain_timeout
 *   giving     in a group: the queue goes to siblings, until nothing is left that they
 *              could take and no client sends any more, or the time is over
 *   gone       closed until SIGTERM, or until the drain is cancelled; what is left is
 *              given by another one
 *
 * Questions of the control socket:
 *   drain      {wait_ms, empty, to, keep}: begins, or {cancel}: ends, or {progress}:
 *              neither. to: the siblings that get the queue, else all; keep: nobody does.
 *              Answered by state, left (the messages by place, as `queue` of the status),
 *              sessions_in, sessions_out; and once the queue is given: given (messages
 *              that others have taken), refused and local (that stay), why (nobody takes
 *              mail now) */
#ifndef ADMIN_STARTUP_DRAIN_H
#define ADMIN_STARTUP_DRAIN_H

#include "base/loop/loop.h"
#include "queue/group/give.h"

enum drain_state {
    DRAIN_RUNNING,
    DRAIN_LEAVING,
    DRAIN_EMPTYING,
    DRAIN_CLOSING,
    DRAIN_GIVING,
    DRAIN_GONE
};
enum { DRAIN_TO_MAX = 1024 /* bytes of names */ };

struct daemon;

struct drain {
    enum drain_state state;
    bool empties, gives, manager_drained;
    bool has_given, is_giving; /* in this drain; now */
    bool has_sessions;         /* of clients, when giving began last */
    /* Monotonic: the end of emptying and giving, of closing; the next retry. */
    int64_t until_ms, closed_ms, retry_ms;
    char to[DRAIN_TO_MAX + 1];
    struct give *give;         /* since the first drain that gave; not while it stops */
    struct give_progress last; /* of this drain, when the daemon began to stop */
    bool has_stopped;
    uint64_t given_before;      /* by drains before this one */
    void (*gone)(void *daemon); /* the daemon stops then */
    struct loop_timer timer;
};

int drain_start(struct daemon *d);
/* The queue can be given: there is a peer door. */
bool drain_has_siblings(const struct daemon *d);
/* SIGTERM with `stop = hand_over`: drains and gives the queue to siblings, for wait_ms at
 * most; one that has gone gives what is left once more. gone is called once, in a later
 * turn; immediately if nothing is given. */
void drain_hand_over(struct daemon *d, int64_t wait_ms, void (*gone)(void *daemon));
/* The daemon stops: progress is still answered, and nothing else. */
void drain_stop(struct daemon *d);
/* The reason for which no mail should come, for health, status and log; NULL: it is
 * running. */
const char *drain_reason(const struct daemon *d);
/* The state as other hosts know it: running, leaving, ... */
const char *drain_word(const struct daemon *d);

#endif
