/* Shared by manager*.c and delay_warning.c. No other file includes this. */
#ifndef QUEUE_MANAGER_MANAGER_INTERNAL_H
#define QUEUE_MANAGER_MANAGER_INTERNAL_H

#include "queue/manager/age_clock.h"
#include "base/loop/loop.h"
#include "queue/manager/manager.h"
#include "queue/manager/dsn.h"
#include "base/event/event.h"
#include "queue/manager/deferral_reasons.h"
#include "sched/route/copies.h"
#include "sched/limits/refusal.h"

#include <uthash.h>

/* The operator's command for a message whose attempt still runs. The last one
 * counts. */
enum pending_command {
    PENDING_NONE,
    PENDING_RETRY, /* due immediately when the attempt has ended */
    PENDING_HOLD,  /* hold/ID exists already; open recipients stay open */
    PENDING_BOUNCE,
    PENDING_REMOVE
};

/* An attempt whose recipients are being routed. */
struct routing {
    struct sched_recipient *open; /* those that need a session */
    size_t count;
    unsigned next;                 /* the next to be routed */
    unsigned done_before;          /* recipients */
    struct sched_loading *loading; /* once all are routed */
    size_t added;                  /* added to loading */
    struct outcome *verdict;       /* of all recipients: a quota that it cannot pass */
    bool queued;                   /* it takes more than one turn: see `scheduled` */
    struct active *prev, *next_queued;
};

/* A message in memory: from its acceptance or SCHED_LOAD to its end or SCHED_WAIT. */
struct active {
    struct id id;
    struct manager *manager;
    struct envelope *envelope;
    enum target_kind *kinds; /* per recipient; NULL until routed */
    char **reasons;          /* per recipient: text of the last deferral; NULL until
                              * one */
    struct outcome *
        *delays; /* per recipient, when late or early: that outcome; or NULL */
    int64_t loaded_ms;
    /* Until then open recipients that the scheduler does not have wait for other
     * fragments. INT64_MAX: none waits. */
    int64_t awaits_until_ms;
    bool *redirected; /* per recipient: redirected to a peer; NULL: none is */
    bool is_again;    /* an attempt before has deferred it */
    bool late;        /* warn the sender of deferrals in this attempt */
    int64_t warned_s; /* delivery.warned_s with the notification being committed */
    bool unread;      /* a report could not be read, and stays open */
    bool has_held;    /* a route holds some of its recipients, which stay open */
    bool holding;     /* as `warning`; then the message is held */
    bool warning;     /* a notification of this round, or the delay warning, is being
                       * committed; then the attempt ends */
    bool wanted;      /* SCHED_LOAD has come meanwhile, and is unanswered */
    bool scheduled;   /* its recipients are being routed, some in a turn, or the
                       * scheduler works on it, or it is `holding`; else it waits for
                       * SCHED_LOAD or its end */
    struct routing routing;
    struct quotas_claim *claim; /* of sendmail(1) mail that begins */
    uint32_t claimed;           /* its recipients */
    bool expired;               /* a recipient has: EVENT_LIFETIME is reported */
    bool loaned;                /* to a giver: manager_lend() */
    bool was_held;              /* then: hold/ID exists */
    bool is_changed;            /* then: it may have marks that are not written */
    bool ending;                /* its notification is being committed, or will be: */
    unsigned failing;      /* recipients before this one have the operator's bounce */
    struct loop_task fail; /* the others */
    struct dsn *notification; /* the notification or warning while it is composed; or
                            * NULL */
    enum pending_command pending;
    struct heap_due
        overdue;       /* in manager.overdue: the first end of a lifetime, or... */
    int64_t notice_ms; /* ...the next notification of the delay */
    unsigned notice_reloads; /* manager.reloads, when that was computed */
    UT_hash_handle hh;
};

struct manager_channel {
    manager_open *open;
    void *context;
};

/* Messages whose routes may have changed. */
struct rerouting {
    struct id *ids;
    size_t next, count;
    unsigned slot; /* of the next one */
};

struct manager {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct manager_settings settings;
    const struct route_table *routes;
    struct aliases *aliases;
    const struct srs *srs;
    const struct verp *verp; /* NULL: no reports are read */
    struct manager_returns returns;
    int64_t blind_since_ms; /* while srs is blind: since when, in this daemon */
    struct queue *queue;
    struct sched *sched;
    struct active *actives;
    struct age_clock age;
    int64_t wait_max_ms; /* longer ones are not of our making */
    size_t recipients;   /* of these */
    struct deferral_reasons *reasons;
    uint64_t noted_reasons; /* deferral_reasons_changes() when they were written */
    bool noted_all;         /* startup had found all messages by then */
    const struct manager_defragment *defragment; /* or NULL */
    char explained[MANAGER_WAIT_MAX];            /* its explanation */
    struct id *loads; /* to be loaded from the disk, in the scheduler's order */
    size_t load_next, load_count, load_capacity;
    struct active *unrouted; /* waiting to be routed */
    struct rerouting rerouting;
    unsigned loads_now, routed_now; /* in this turn */
    int64_t loaded_bytes;
    bool load_waits; /* for the disk, in this turn */
    struct manager_channel channels[TARGET_UNKNOWN + 1];
    struct {
        manager_watch *watch; /* NULL: unused */
        void *context;
    } watches[MANAGER_WATCHES_MAX];
    size_t sessions;
    struct manager_notifications notifications;
    bool draining, patience_over, running, is_concluded;
    bool leaves, is_paused; /* why it drains */
    bool has_actions;       /* the last run has left some for the next turn */
    void (*drained)(void *context);
    void *drained_context;
    struct loop_timer wake, site_cache, trial;
    struct copies *copies;
    struct manager_copied copied;
    struct manager_required required;
    struct quotas *quotas;
    struct loop_timer quotas_timer;
    bool quotas_changed;          /* since they were written, at: */
    int64_t quotas_written_ms;    /* monotonic; 0: never */
    int quotas_error;             /* why not, as it was logged; 0: they were */
    bool careful;                 /* see guard_is_careful() */
    int64_t started_ms, trial_ms; /* monotonic */
    struct refusal_logged {
        uint32_t key; /* of class and host */
        int64_t ms;   /* 0: unused */
    } refusals_logged[64];
    struct suppression *suppression;   /* NULL: suppress is off */
    struct suppression_slices *slices; /* NULL: we are the only one, or it is off */
    struct refusers *refusers;         /* NULL: nobody has refused us */
    struct lost_reports *lost_reports; /* NULL: there was none */
    struct loop_task wake_task;
    unsigned reloads;
    struct heap overdue; /* of messages that the scheduler has */
    struct loop_timer overdue_timer;
    struct loop_timer sweep;
    int64_t swept_ms; /* monotonic: when the last sweep ended; 0: none has */
};

/* --- age_clock.c ------------------------------------------------------------------ */

/* Before the first mail is found, and after the scheduler's clock is there. */
void manager_clock_start(struct manager *m);
/* After routes or settings have changed. */
void manager_clock_limit(struct manager *m);
/* Sets the birth, read from the disk, by the clock as it is now: not in the future, from
 * which a lifetime would count. */
void manager_clock_set_birth(const struct manager *m, struct envelope *e);
/* When it could have been delivered first: its age, for its lifetime and for notices, counts
 * from then on. Mail that waits for its release has none. */
int64_t manager_clock_begun_ms(const struct manager *m, const struct envelope *e,
                               int64_t now_ms);
/* A due time of the disk: one farther ahead than any that we could have set is of another
 * clock, and counts as now. */
int64_t manager_clock_due_ms(const struct manager *m, int64_t due_ms);

/* Ensures that a turn comes, with manager_run() at its end. */
void manager_wake(struct manager *m);
/* Likewise from within manager_run(). */
void manager_turn(struct manager *m);
/* The scheduler has the message, the least lifetime of its recipients is that, or
 * INT64_MAX; it is freed (manager_overdue.c). */
void manager_overdue_watch(struct active *a, int64_t lifetime_ms);
void manager_overdue_forget(struct active *a);
void manager_overdue_stop(struct manager *m);

/* Whether a message with that number of recipients may stay in memory until SCHED_LOAD, which
 * then comes soon. Else it waits on disk. */
bool manager_has_room(const struct manager *m, unsigned recipients);
/* SCHED_LOAD: a message in memory is taken up immediately, others as this turn
 * allows. */
void manager_load(struct manager *m, struct id id);

/* A message that stays in todo/ leaves memory, and is loaded again at due_ms. why is kept,
 * and logged unless its first words have been (is_known). */
void begin_wait(struct active *a, const struct outcome *why, bool is_known,
                int64_t due_ms);

/* --- manager_quotas.c: mail of sendmail(1) ---------------------------------------- */

/* Mail of sendmail(1) is counted when it is first loaded, with its recipients as they were
 * given: an alias is one. The claim is open until the
 * attempt has begun. */
enum manager_quota_verdict {
    MANAGER_QUOTA_PASSES,
    MANAGER_QUOTA_WAITS, /* it has left memory, and is due when it may pass */
    MANAGER_QUOTA_NEVER  /* it has too many recipients */
};
enum manager_quota_verdict manager_quota_take(struct active *a, struct outcome *never);
/* Its recipients count, or (goes is false) it is loaded again later. */
void manager_quota_settle(struct active *a, bool goes);
bool manager_quota_waits(const struct manager *m, struct id id);
/* Quotas have changed: mail that waits for them is due. */
void manager_quota_retry(struct manager *m);
/* --- manager_aliases.c ------------------------------------------------------------ */

/* A message that was loaded, and will be delivered: in place of aliases their members, if
 * an injector wrote it and none of its recipients has a mark. */
void manager_expand(struct manager *m, struct envelope *e);
/* True: an answer about a recipient is in memory alone (struct recipient). If the message
 * leaves memory now, it has to stay in todo/, where it is expanded again. */
bool manager_must_expand(const struct envelope *e);
/* The same for one that waited in memory, as an operator has released it: unknown addresses
 * may be known now. */
void manager_expand_again(struct active *a);
/* True: an address of SRS cannot be verified now. The message waits (begin_wait()) in todo/,
 * where it can still be expanded, until there is a secret, and for its lifetime at most;
 * for an hour, if others wait with that address and the sender can be notified. */
bool manager_unsure_waits(struct active *a);
bool manager_is_unsure(const struct manager *m, struct id id);

/* --- manager_returns.c ------------------------------------------------------------ */

/* Reads a report, unless the recipient is none of that kind, or the message is other mail
 * that can go on: false, and it is routed. True: *outcome is its verdict. */
bool manager_read_return(struct active *a, unsigned index, struct outcome *outcome);

/* --- manager_quotas.c ------------------------------------------------------------- */

void manager_quotas_set(struct manager *m, struct text table);
void manager_quotas_read(struct manager *m);
/* If something has changed; also before the time. */
void manager_quotas_write(struct manager *m);

/* --- manager_release.c ------------------------------------------------------------ */

/* A message with a time of release (RFC 4865) that has not come, and that no operator has
 * released. */
bool release_is_ahead(const struct manager *m, const struct envelope *e);
/* True: it waits for that, and has left memory. */
bool manager_release_waits(struct active *a);
/* One that did so when it was loaded last. */
bool manager_is_scheduled(const struct manager *m, struct id id);

/* --- manager_copies.c ------------------------------------------------------------- */

void manager_copies_set(struct manager *m, struct text table);
/* A verdict, which counts if the recipient is a copy. */
void manager_copy_settled(struct manager *m, const struct envelope *e,
                          const struct recipient *r, const struct outcome *outcome);

/* --- manager_attempt.c ------------------------------------------------------------ */

struct active *manager_active_find(const struct manager *m, struct id id); /* or NULL */
/* Takes ownership of the envelope. */
struct active *manager_active_new(struct manager *m, struct envelope *e);
/* Frees it from memory; nothing else changes. */
void manager_active_drop(struct active *a);
/* Moves it from memory to the disk. */
void manager_active_defer(struct active *a, int64_t due_ms, unsigned attempts);
/* Nothing is left to do. */
void manager_active_retire(struct active *a);
/* Removes the message; only the log says so. */
void manager_active_remove(struct active *a);

/* A message that was accepted: counted if it has REQUIRETLS. */
void attempt_count_accepted(struct manager *m, const struct envelope *e);
/* The target of a recipient, and the parts of its address. NULL: bad syntax. */
const struct target *attempt_route(const struct manager *m, const struct envelope *e,
                                   const struct recipient *r, struct address *address);
/* One verdict: log line, D mark, bounce text. */
void attempt_settle(struct active *a, unsigned index, const struct outcome *outcome,
                    bool expired, const struct timing *timing);
/* SCHED_WAIT. */
void attempt_wait(struct active *a, int64_t due_ms, unsigned attempts);
/* The rest of SCHED_WAIT, when the sender has been notified, or could not be. */
void attempt_warned(struct active *a);
/* Whether no command of the operator ends the attempt. */
bool attempt_goes_on(const struct active *a);
/* SCHED_FINISH, or no recipient is open. */
void attempt_finish(struct active *a);
/* A notification of the round, or a delay warning, is being committed: dsn_begin() said
 * DSN_BEGUN; its callback ends that. */
void attempt_notification_begun(struct active *a);
void attempt_notification_ended(struct active *a);
/* The settings of a notification. */
struct dsn_settings attempt_dsn_settings(struct manager *m);
/* At the end, when no session is left and manager_run() no longer comes: ends the attempts
 * that a stop has cut off as the operator commanded, and turns the loop until the
 * notifications are stored, for at most 10 s. */
void attempt_conclude(struct manager *m);
/* The operator's bounce: all open recipients fail, and the sender is notified. */
void attempt_bounce(struct active *a);
/* The content of hold/ID. */
enum { HOLD_TEXT_MAX = 64 };
void attempt_hold_text(const struct manager *m, const char *why,
                       char text[HOLD_TEXT_MAX]);

/* --- manager_begin.c -------------------------------------------------------------- */

/* EVENT_LOADED: for the first time in the active queue. */
void begin_tell_loaded(const struct manager *m, const struct envelope *e);
/* SCHED_LOAD for a message in memory, or from the disk, where its content has been
 * checked as required (queue_check()). */
void begin_load(struct manager *m, struct id id);
/* At the beginning of manager_run(): continues those that took more than one turn. */
void begin_some(struct manager *m);
/* Whether no more should be begun in this turn. */
bool begin_is_busy(const struct manager *m);
/* Routes anew after a change of routes. */
void begin_anew(struct manager *m);
/* Only recipients that a route holds are left. */
void begin_hold(struct active *a);
/* Settles the recipients that are none (struct recipient: refused). */
void begin_settle_refused(struct active *a);
/* Settles that open recipient as failed; an alias as expanded, since its members fail in its
 * place. */
void begin_settle_failed(struct active *a, unsigned index,
                         const struct outcome *outcome);
/* Stops the beginning of its attempt. */
void begin_forget(struct active *a);

/* After a change of routes. */
void manager_reroute_begin(struct manager *m);
/* In each turn, behind begin_some(). True: there is more. */
bool manager_reroute_some(struct manager *m);
void manager_reroute_stop(struct manager *m);

/* --- manager_awaiting.c ----------------------------------------------------------- */

/* Removes recipients that wait for other fragments from those to be delivered. */
void manager_offer_open(struct active *a, struct sched_recipient *open, size_t *count);
/* A verdict for a redirected recipient. False: it is not a verdict about the mail, and
 * *reported replaces it. */
bool manager_awaiting_answered(struct active *a, unsigned index,
                               const struct outcome *outcome, struct outcome *reported);
bool awaiting_is_redirected(const struct active *a, unsigned index);
/* Whether members of aliases wait that todo/ does not have: the message must become S5. */
bool awaiting_names_members(const struct active *a);
/* Updates the marker (queue/spool/marker.h) before the message leaves memory. */
void awaiting_note(struct active *a);
/* An operator has withdrawn it from reassembly. */
void manager_awaiting_withdraw(struct manager *m, struct id id);
/* All open recipients wait, and the scheduler does not know the message (any
 * longer). */
void manager_await_parts(struct active *a, unsigned done_before);

/* --- delay_warning.c ------------------------------------------------------------ */

/* Whether the sender is to be warned if this recipient is deferred in the attempt that
 * begins. */
bool delay_warning_is_due(const struct active *a, const struct recipient *r,
                          const struct target *t);
/* When the sender is to be notified next of the recipient's delay; INT64_MAX: never. */
int64_t delay_warning_next_ms(const struct active *a, const struct recipient *r,
                              const struct target *t);
/* A deferral. */
void delay_warning_remember(struct active *a, unsigned index,
                            const struct outcome *outcome);
void delay_warning_forget(struct active *a, unsigned recipients);
/* At the end of an attempt that leaves recipients open. True: the warning is being
 * sent, and attempt_warned() will be called. */
bool delay_warning_start(struct active *a);

/* --- manager_suppression.c -------------------------------------------------------- */

/* Opens, changes or closes the list, as the settings say. */
void manager_suppress_follow(struct manager *m);
void manager_suppress_end(struct manager *m);
/* Whether a recipient that is routed to that kind of target is not to be tried; *refusal
 * says why. */
bool manager_suppress_now(struct active *a, unsigned index, enum target_kind kind,
                          struct outcome *refusal);
/* A verdict about a recipient. */
void manager_suppress_hear(struct active *a, unsigned index,
                           const struct outcome *outcome);
/* True: the session must not have the work. */
bool manager_suppress_work(struct active *a, const struct sched_work *work);

/* --- refusals.c ------------------------------------------------------------------- */

/* A verdict: warns of a refusal that an operator can end, notes a receiver that refuses this
 * host or its mail as such, and notifications that cannot reach anybody. Without refusals it
 * costs nothing. */
void refusals_note(struct manager *m, const struct envelope *e,
                   const struct outcome *outcome);

#endif
