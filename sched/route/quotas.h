/* The table `quotas`: the number of recipients that each sender may send to. Pure.
 *
 * Lines, or entries with commas between them, "WHO LIMIT[,LIMIT]..."; # begins a comment
 * line. WHO is of one of five kinds: user:NAME or user:* (each user of a login by itself);
 * uid:N or uid:* (each local user); sender:ADDRESS, sender:DOMAIN or sender:* (each sender
 * address by itself); domain:DOMAIN or domain:* (each sender domain as a whole); all. For
 * each kind the first entry that matches counts, and all kinds apply. LIMIT is as in
 * sched/limits/quota.h.
 *
 * Recipients are counted, by name ("user:alice", "sender:bob@example.org", "all"). Times
 * are of any clock that does not go back. */
#ifndef SCHED_ROUTE_QUOTAS_H
#define SCHED_ROUTE_QUOTAS_H

#include "base/buffer.h"
#include "base/outcome.h"
#include "sched/limits/quota.h"

enum {
    QUOTAS_ROWS_MAX = 10000,
    /* Names that are counted; beyond it those with the least use are forgotten. */
    QUOTAS_NAMES_MAX = 10000,
    QUOTAS_NAME_MAX = 600
};
#define QUOTAS_NO_UID UINT32_MAX

enum quotas_kind {
    QUOTAS_USER,
    QUOTAS_UID,
    QUOTAS_SENDER,
    QUOTAS_DOMAIN,
    QUOTAS_ALL,
    QUOTAS_KINDS
};

struct quotas;

struct quotas *quotas_new(void);
/* No claim may be open. */
void quotas_free(struct quotas **quotas);
/* Replaces the table; counts stay. False with one line per error ("quotas: 'ENTRY':
 * ..."); then nothing changes. */
bool quotas_set(struct quotas *quotas, struct text table, struct buffer *errors)
    __attribute__((warn_unused_result));
/* True: the table is empty. */
bool quotas_are_empty(const struct quotas *quotas);

/* The sender of a message. */
struct quotas_sender {
    struct text user;    /* of the login; empty: none */
    uint32_t uid;        /* of a local user, or QUOTAS_NO_UID */
    struct text address; /* in normal form; empty: the null sender, of no sender's or
                          * domain's quota */
};
/* The recipients of a message that is under way. Zeroed: none yet. */
struct quotas_claim {
    struct quotas_part {
        struct quotas_name *name; /* NULL: no quota of that kind */
        uint32_t count;
    } parts[QUOTAS_KINDS];
};
/* Why it is refused. */
struct quotas_refusal {
    char name[QUOTAS_NAME_MAX];
    struct outcome outcome; /* DEFERRED, 450 4.7.1; FAILED, 550 5.7.1: this message can
                             * never pass */
    int64_t ready_ms;       /* when it may pass; INT64_MAX: never */
    bool first;             /* of a window: the operator should know */
};
/* Reserves count recipients more. False: nothing is reserved. */
bool quotas_take(struct quotas *quotas, const struct quotas_sender *sender,
                 uint32_t count, int64_t now_ms, struct quotas_claim *claim,
                 struct quotas_refusal *refusal) __attribute__((warn_unused_result));
/* The message is stored, with that number of recipients, or (0) it is not. The claim is
 * zeroed. */
void quotas_settle(struct quotas *quotas, struct quotas_claim *claim, uint32_t sent,
                   int64_t now_ms);

/* --- For operators, and over a restart --------------------------------------------- */

/* Forgets the use of the name; mail under way counts from now. False: nothing is
 * counted of it. */
bool quotas_reset(struct quotas *quotas, struct text name);
struct quotas_state {
    const char *name;
    const struct quota *quota;
    const struct quota_use *use;
};
/* Each name that has used something in the longest of its periods, in no order. */
void quotas_each(const struct quotas *quotas, int64_t now_ms,
                 void (*each)(void *context, const struct quotas_state *state),
                 void *context);
/* The use of a name, to be restored; NULL: it has no quota, or there is no space. */
struct quota_use *quotas_recall(struct quotas *quotas, struct text name);
/* For an error: "3h 20m" until then. */
enum { QUOTAS_TIME_MAX = 40 };
void quotas_format_time(int64_t ms, char out[QUOTAS_TIME_MAX]);

#endif
