/* The scheduler's parts among themselves. Internal to sched/. */
#ifndef SCHED_SCHED_INTERNAL_H
#define SCHED_SCHED_INTERNAL_H

#include "sched/limits/host.h"
#include "sched/message_index.h"
#include "sched/message.h"
#include "sched/session.h"

/* A message some of whose entries have entered their destinations, or left them. */
struct sched_part {
    struct sched_part *prev, *next;
    struct sched_message *message;
    unsigned entry; /* the next one */
    bool forced;
};

struct sched {
    bool draining;
    struct sched_settings settings;
    int64_t now_ms;
    uint64_t random;
    struct message_index_set known;
    struct destinations destinations;
    struct hosts *hosts;
    struct sched_session *sessions;
    int session_count, idle_count;
    int active;             /* messages being loaded or loaded */
    bool old_turn;          /* deferred mail is loaded next */
    unsigned new_run;       /* new messages loaded since */
    struct entry *settling; /* recipients to be settled without a session */
    struct sched_message *ending, **ending_last; /* all settled */
    struct sched_part *entering, *leaving; /* messages of very many destinations */
    struct outcome outcome;                /* of the last SETTLE, or a sched_site */
};

/* Time goes on. */
void sched_tick(struct sched *s, int64_t now_ms);
/* A verdict; the message ends with its last. Takes the share of reason. */
void sched_message_settled(struct sched *s, struct sched_message *m, unsigned slot,
                           struct reason *reason);
/* All that waits at the site gets outcome; only: of one destination. */
void sched_site_settle(struct sched *s, struct site *site,
                       const struct destination *only, const struct outcome *outcome);
/* What is backlogged there is due now. */
void sched_site_wake(struct sched *s, struct site *site, size_t count);
/* The same where backlogged mail has come with its domain, and nothing else would wake
 * it.
 */
void sched_site_recall(struct sched *s, struct site *site);
/* Of the mail backlogged there what is its excess is due now: a dead site settles it.
 * Of that which went another way, or came due by itself and left, nothing stays. */
void sched_site_prune(struct sched *s, struct site *site);
/* Mail has come to a site that is dead. */
void sched_settle_dead(struct sched *s, struct site *site);

/* Sessions that are not idle: those that session_limit counts. */
int sched_working_sessions(const struct sched *s);
/* Whether session_limit lets it have one more. */
bool sched_has_budget(const struct sched *s, const struct site *site);
/* The site that gets the next session. */
struct site *sched_next_ready(const struct sched *s);

#endif
