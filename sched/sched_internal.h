/* Shared by sched*.c and session_events.c. Not included outside sched/. */
#ifndef SCHED_SCHED_INTERNAL_H
#define SCHED_SCHED_INTERNAL_H

#include "sched/limits/host.h"
#include "sched/message_index.h"
#include "sched/message.h"
#include "sched/session.h"

/* A message whose entries have in part entered or left their destinations. */
struct sched_part {
    struct sched_part *prev, *next;
    struct sched_message *message;
    unsigned entry; /* the next one */
    bool forced;
};

/* See sched_admission.c. */
struct admission {
    size_t recipients, small; /* of messages in memory; those of small mail among
                               * them */
    struct id *line;          /* a ring of ids that lack room, oldest first */
    size_t first, count, capacity;
};

struct sched {
    bool draining;
    struct sched_settings settings;
    const int64_t *owner_ms; /* the owner's time, as of the last call: */
    int64_t now_ms;
    uint64_t random;
    struct message_index_set known;
    struct destinations destinations;
    struct hosts *hosts;
    struct sched_session *sessions, *resting; /* resting: idle, the longest first */
    int session_count, idle_count;
    uint64_t sessions_opened;
    int active; /* messages being loaded or loaded */
    struct admission admission;
    bool old_turn;               /* deferred mail is loaded next */
    unsigned new_run;            /* new messages loaded since */
    bool recall_turn;            /* backlogged mail is loaded next */
    size_t recalling;            /* messages being loaded from the backlog of a site */
    size_t recalling_recipients; /* of these, as far as known */
    uint64_t removed; /* messages that are no more, whose ids a backlog may have */
    uint64_t swept, sweeping; /* as checked and checking of a site, for all sites */
    struct site_walk *sweep;  /* NULL: none is under way */
    struct entry *settling;   /* recipients to be settled without a session */
    struct sched_message *ending, **ending_last; /* all settled */
    int64_t (*steady_ms)(void *context); /* NULL: only a clock that goes back is seen */
    void *steady_context;
    int64_t (*stepped)(void *context);     /* or NULL */
    struct sched_part *entering, *leaving; /* messages of very many destinations */
    struct outcome outcome;                /* of the last SETTLE, or a sched_site */
};

/* A verdict; the last one ends the message's attempt. Takes the share of reason. */
void sched_message_settled(struct sched *s, struct sched_message *m, unsigned slot,
                           struct reason *reason);
/* A verdict without a session for an entry in no queue. */
void sched_entry_settle(struct sched *s, struct entry *e,
                        const struct outcome *outcome);
/* Its entries, which are in no queue, leave their destinations; then it is freed. */
void sched_message_leave(struct sched *s, struct sched_message *m);
/* The bound that mail waits for at the site, if any waits; as site_bound(). */
enum sched_bound sched_bound_now(const struct sched *s, struct site *site,
                                 int64_t *until_ms);
/* Settles all that waits at the site, or in one lane of it (for the destination `only`, if
 * that is not NULL). */
void sched_site_settle(struct sched *s, struct site *site,
                       const struct outcome *outcome);
void sched_lane_settle(struct sched *s, struct lane *lane,
                       const struct destination *only, const struct outcome *outcome);
/* --- Mail that waits on disk for a site (sched_backlog.c) ------------------------ */

/* Whether the message, which is being loaded, must wait in the backlog of its site:
 * that site has its share of the active set, or older mail waits there, perhaps for
 * a probe. */
bool sched_is_excess(struct sched *s, const struct message_index *k,
                     struct sched_message *m);
/* Puts it there, and frees it. */
void sched_backlog_excess(struct sched *s, struct message_index *k,
                          struct sched_message *m);
/* The same for a message that is deferred because its site died: it is loaded when the
 * site lives, before its due time. */
void sched_backlog_dead(struct message_index *k, struct sched_message *m);
/* The message is no more. Frees k. */
void sched_backlog_forget(struct sched *s, const struct message_index *k);
/* Forgets ids of messages that are no more, for a count that is shown: of a dead site
 * nothing else does until it lives. Looks up at most *most ids, and takes them off: for
 * all sites of a step, or of a walk over all in one turn. The rest of a large backlog is
 * looked up by the next calls, or by sched_backlog_sweep(). */
enum { SCHED_BACKLOG_CHECKED_ALL = 10000 };
void sched_backlog_check(const struct sched *s, struct site *site, size_t *most);
/* Forgets ids at the front of the backlog whose messages are not in it any longer. */
void sched_backlog_clean(struct sched *s, struct site *site);
/* The last verdict of a work: a provider's limit of our account is used up, or is not. */
void sched_quota_settled(struct sched *s, struct site *site,
                         const struct outcome *outcome);
/* The pause of a provider that has said so is over. */
void sched_quota_end(struct sched *s, struct transport *transport);
/* Settings have changed. */
void sched_quota_forget(struct sched *s);
/* The present time is known: the lead of the clock over the steady one may have changed. */
void sched_quota_tick(struct sched *s, bool is_back);
/* All quotas of next hops anew. */
void sched_quota_refresh(struct sched *s);
/* Makes all backlogged messages of the site due now. */
void sched_site_wake(struct sched *s, struct site *site);
/* Backlogged messages of a live site are loaded from now on while the site has space
 * for them, those that have waited longest first. */
void sched_site_recall(struct sched *s, struct site *site);
/* Takes the next message out of the backlog of a site that has space for it; NULL:
 * there is none. As many are recalled as leave, and sites take turns. */
struct message_index *sched_recall_next(struct sched *s);
/* A message is loaded, or cannot be. True: it was recalled. */
bool sched_recall_end(struct sched *s, struct message_index *k);
/* Makes the excess of the site's backlog due now, so that a dead site can settle it,
 * and drops ids that have left by another way. */
void sched_site_prune(struct sched *s, struct site *site);

/* --- The limit of recipients (sched_admission.c) --------------------------------------- */

/* A message comes into memory, or leaves it. */
void sched_admission_enter(struct sched *s, struct message_index *k);
void sched_admission_leave(struct sched *s, struct message_index *k);
/* Whether the message, which waits on disk, may be loaded now. */
bool sched_admission_has(const struct sched *s, const struct message_index *k);
/* It may not, and cannot stand in line. */
bool sched_admission_blocks(const struct sched *s, const struct message_index *k);
/* It stands in line from now on. */
void sched_admission_wait(struct sched *s, struct message_index *k);
/* The first message in line, if there is room for it; or NULL. */
struct message_index *sched_admission_first(struct sched *s);
/* The number of messages in line before one that is in it. */
size_t sched_admission_ahead(const struct sched *s, const struct message_index *k);
/* After a change of the limit. */
void sched_admission_count(struct sched *s);

/* Settles mail that has come to a dead site. */
void sched_settle_dead(struct sched *s, struct site *site);

/* Sessions that are not idle, which are those that session_limit counts. */
int sched_working_sessions(const struct sched *s);
/* Whether session_limit permits the site one more. */
bool sched_has_budget(const struct sched *s, const struct site *site);
/* The site that gets the next session, but not `except` (NULL: any). */
struct site *sched_next_ready(const struct sched *s, const struct site *except);

#endif
