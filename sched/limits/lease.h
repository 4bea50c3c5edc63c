/* A host's part of the shared limits of a site: leases from a bank, or without one an exact
 * part of its own. Pure.
 *
 * The transactions of a lease are spent at an even pace until the next one may come,
 * and unspent ones go back with the next question. A host that is far below its
 * equal part is not held up: it goes at the pace of that part, and wants as much again
 * in advance. A host that got less than it wanted asks again, once; one that got all,
 * whenever that is in use and more mail waits. A lease is counted from the moment the
 * question was sent, so it ends here no later than in the bank. It outlasts its period
 * a little, so that an answer is there before it ends: transactions a quarter of a
 * period, sessions one.
 *
 * A host that the bank has not seen for some seconds may have been cut off: before the
 * bank frees its sessions the others take no more than they have, and of the rate no more
 * than without it. So it may go on with its own part.
 *
 * A bank that takes over may not know what the one before has given last. Until those
 * leases have ended no host takes more sessions than it had, or its own part.
 *
 * A bank that does not answer stops nothing: when the lease has ended the host goes on with
 * its own part, which no other host has. doc/scheduler.md "A group of hosts". */
#ifndef SCHED_LIMITS_LEASE_H
#define SCHED_LIMITS_LEASE_H

#include "sched/limits/bank.h"
#include "sched/limits/bucket.h"

enum {
    LEASE_PERIOD_MS = BANK_PERIOD_US / 1000,
    LEASE_AGAIN_MS = LEASE_PERIOD_MS / 4, /* if it got less than it wanted, */
    LEASE_SOON_MS = LEASE_PERIOD_MS / 20, /* or all, and more mail came */
    LEASE_FAR = 10,                       /* a tenth of its equal part: no pace */
    LEASE_PATIENCE_MS = 250,              /* for an answer */
    LEASE_RETRY_MS = 1000,                /* after a question without an answer */
    LEASE_DOUBT_MS = 2 * LEASE_PERIOD_MS, /* after another bank has taken over */
    LEASE_TURN_MS = 30000, /* then another host gets a session that many want */
    LEASE_SLOT_MS = 60000, /* the same without a bank */
    LEASE_SLOT_END_MS = 10000
};

/* The group, and its limits of a site. */
struct lease_terms {
    struct rate rate;  /* amount 0: none */
    int sessions;      /* 0: no limit */
    bool is_strict;    /* else the own part may be had without a question */
    bool has_bank;     /* it answers, as far as is known */
    int members, lost; /* >= 1, >= 0; a lost host may still use its part */
    int late;          /* < members: those that may be lost */
    int index;         /* of this host among all of them */
    int64_t doubt_ms;  /* until then the bank may not know all leases */
};

/* The counts and wishes of the site. */
struct lease_load {
    size_t works, senders; /* that wait */
    int open, need;        /* sessions; with those that it would like */
};

struct lease {     /* zeroed: new */
    bool is_asked; /* and not answered */
    bool is_again, is_own;
    bool is_refused;        /* its second question fell short */
    int64_t sent_ms;        /* of the last question */
    int64_t due_ms;         /* of the next; 0: none */
    int64_t retry_ms;       /* not before it */
    int64_t failed_ms;      /* when the last without an answer was sent; 0: none */
    int64_t end_ms;         /* of the period of the last answer; 0: there was none */
    int want, tokens, used; /* transactions */
    int used_asked, open_asked; /* when the last question was sent */
    struct rate pace;
    struct bucket bucket;
    int busy; /* the most that was needed since the first question of the period */
    int need, sessions, counted, before;
    int unmet;         /* hosts */
    unsigned behind;   /* periods in a row without a session */
    int64_t seated_ms; /* has a session that others want, since; 0: has none */
    int yields;        /* questions in which it gives its session away */
};

/* The load may have changed: a site with mail asks immediately. */
void lease_update(struct lease *l, int64_t now_ms, const struct lease_terms *t,
                  const struct lease_load *load);
/* When it wants to ask; INT64_MAX: when lease_update() or an answer says so. */
int64_t lease_ask_ms(const struct lease *l, const struct lease_terms *t);
/* False: it has nothing to ask any more. Else the question, which lease_granted() or
 * lease_failed() answers. */
bool lease_ask(struct lease *l, int64_t now_ms, const struct lease_terms *t,
               const struct lease_load *load, uint64_t *random,
               struct bank_question *question) __attribute__((warn_unused_result));
void lease_granted(struct lease *l, const struct lease_terms *t,
                   const struct bank_grant *grant, uint64_t *random);
/* There is no answer. The bank may have counted the question: later questions in the
 * same period give nothing back again, and claim only certain counts. */
void lease_failed(struct lease *l, int64_t now_ms);

/* Sessions that it may have; INT_MAX: no limit. is_new: to open one more. */
int lease_sessions(const struct lease *l, int64_t now_ms, const struct lease_terms *t,
                   bool is_new);
/* When the next transaction may begin, as bucket_ready_ms(); an answer may change it. */
int64_t lease_ready_ms(struct lease *l, int64_t now_ms, const struct lease_terms *t);
/* How many may begin until then, as bucket_passes(). */
uint32_t lease_passes(const struct lease *l, int64_t now_ms, int64_t until_ms,
                      const struct lease_terms *t);
void lease_take(struct lease *l, int64_t now_ms, const struct lease_terms *t);
/* The earliest time after now_ms at which lease_sessions() may change by itself. */
int64_t lease_wake_ms(const struct lease *l, int64_t now_ms,
                      const struct lease_terms *t);
/* The clock was set by delta_ms. */
void lease_shift(struct lease *l, int64_t delta_ms);

#endif
