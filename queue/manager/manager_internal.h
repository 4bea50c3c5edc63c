/* What manager.c, manager_begin.c, manager_attempt.c, manager_awaiting.c, delay_warning.c,
 * manager_operator.c and manager_explain.c share. Nobody else includes this. */
#ifndef QUEUE_MANAGER_INTERNAL_H
#define QUEUE_MANAGER_INTERNAL_H

#include "base/loop/loop.h"
#include "queue/manager/manager.h"
#include "queue/manager/dsn.h"
#include "queue/manager/qmail_log.h"
#include "queue/manager/deferral_reasons.h"

#include <uthash.h>

/* What the operator wants of a message whose round still runs. The last word counts. */
enum pending_command {
    PENDING_NONE,
    PENDING_RETRY, /* due at once when the round has ended */
    PENDING_HOLD,  /* hold/ID is there already; what is left open stays so */
    PENDING_BOUNCE,
    PENDING_REMOVE
};

/* A round whose recipients are being routed. */
struct beginning {
    struct sched_recipient *open; /* those that need a session */
    size_t count;
    unsigned next;                 /* to be routed */
    unsigned done_before;          /* recipients */
    struct sched_loading *loading; /* once all are routed */
    size_t added;                  /* to it */
    bool hold;                     /* a route wants that */
    bool in_line;                  /* it takes more than a turn: see `scheduled` */
    struct active *prev, *next_in_line;
};

/* A message in memory: from its acceptance or SCHED_LOAD to its end or SCHED_WAIT. */
struct active {
    struct id id;
    struct manager *manager;
    struct envelope *envelope;
    enum target_kind *kinds; /* per recipient; NULL until routed */
    char **reasons;          /* per recipient: the last deferral; NULL until one */
    unsigned *deliveries;    /* per recipient: qmail_log.h's number; NULL until one */
    struct outcome **delays; /* per recipient, when late: the same, whole; or NULL */
    int64_t loaded_ms;
    /* Open recipients that the scheduler does not have wait for other fragments until
     * then. INT64_MAX: none waits. */
    int64_t awaits_until_ms;
    bool *redirected; /* per recipient: on its way to a peer; NULL: none is */
    bool late;        /* its sender is to hear of what is deferred in this round */
    bool warning;     /* that notice is being committed; then the round ends */
    bool wanted;      /* SCHED_LOAD has come meanwhile, and is not yet answered */
    bool scheduled;   /* its recipients are being routed, some in a turn, or the
                         scheduler works on it; else it waits for SCHED_LOAD or its end */
    struct beginning beginning;
    bool ending;           /* its notice is being committed, or it will be: */
    unsigned failing;      /* recipients before it have the operator's bounce */
    struct loop_task fail; /* the others */
    struct dsn *notice;    /* either of them, while it is composed; or NULL */
    enum pending_command pending;
    UT_hash_handle hh;
};

struct manager_channel {
    manager_open *open;
    void *context;
};

struct manager {
    struct loop *loop;
    struct log *log;
    struct qmail_log sendlog;
    struct manager_settings settings;
    const struct route_table *routes;
    struct queue *queue;
    struct sched *sched;
    struct active *actives;
    struct deferral_reasons *reasons;
    uint64_t noted_reasons; /* deferral_reasons_changes() when they were written down */
    bool noted_all;         /* the start had found all then */
    const struct manager_defragment *defragment; /* or NULL */
    char explained[MANAGER_WAIT_MAX];            /* by it */
    struct id *loads; /* that the scheduler wants from the disk, in its order */
    size_t load_next, load_count, load_capacity;
    struct active *beginnings;      /* in line to be routed */
    unsigned loads_now, routed_now; /* in this turn */
    int64_t loaded_bytes;
    bool load_waits; /* for the disk, in this turn */
    struct manager_channel channels[TARGET_UNKNOWN + 1];
    struct {
        manager_watch *watch; /* NULL: no channel tells */
        void *context;
    } watches[MANAGER_WATCHES_MAX];
    size_t sessions;
    struct manager_notices notices;
    bool draining, patience_over, pumping;
    void (*drained)(void *context);
    void *drained_context;
    struct loop_timer wake, lessons, trial;
    bool careful;                 /* see guard_is_careful() */
    int64_t started_ms, trial_ms; /* monotonic */
    struct loop_task stir;
};

/* Makes sure that a turn comes, with the pump at its end. */
void manager_stir(struct manager *m);
/* The same from within the pump. */
void manager_turn(struct manager *m);

/* SCHED_LOAD: what is in memory is taken up at once, the rest as this turn allows. */
void manager_load(struct manager *m, struct id id);

/* --- manager_attempt.c -------------------------------------------------------------- */

struct active *manager_active_find(const struct manager *m, struct id id); /* or NULL */
/* Takes the envelope. */
struct active *manager_active_new(struct manager *m, struct envelope *e);
/* Out of memory, as it is. */
void manager_active_drop(struct active *a);
/* Out of memory, onto the disk. */
void manager_active_defer(struct active *a, int64_t due_ms, unsigned attempts);
/* Without a word to anybody but the log. */
void manager_active_remove(struct active *a);

/* Where a recipient's mail goes, and the parts of its address. NULL: it has bad syntax.
 */
const struct target *attempt_route(const struct manager *m, const struct envelope *e,
                                   const struct recipient *r, struct address *address);
/* The recipients of an request are on their way. */
void attempt_started(struct active *a, const unsigned *indexes, size_t count);
/* One verdict: log line, D mark, bounce text. */
void attempt_settle(struct active *a, unsigned index, const struct outcome *outcome,
                    bool expired, const struct timing *timing);
/* SCHED_WAIT. */
void attempt_wait(struct active *a, int64_t due_ms, unsigned attempts);
/* The rest of it, when the sender has been warned, or could not be. */
void attempt_warned(struct active *a);
/* The operator has not stepped in. */
bool attempt_goes_on(const struct active *a);
/* SCHED_FINISH, or nobody is open. */
void attempt_finish(struct active *a);
/* For a notice about it. */
struct dsn_settings attempt_notice_settings(struct manager *m);
/* At the end, when no session is left and the pump does not run any more: ends the
 * rounds that a stop has cut short as the operator wants, and turns the loop until the
 * notices are stored, or for 10 s. */
void attempt_conclude(struct manager *m);
/* The operator's bounce: everybody open fails, and the sender is told. */
void attempt_bounce(struct active *a);
/* The content of hold/ID. */
enum { HOLD_TEXT_MAX = 64 };
void attempt_hold_text(const struct manager *m, const char *why,
                       char text[HOLD_TEXT_MAX]);

/* --- manager_begin.c -------------------------------------------------------------- */

/* SCHED_LOAD for a message in memory, or from the disk, where its content has been
 * checked as far as it must be (queue_check()). */
void begin_load(struct manager *m, struct id id);
/* At the beginning of the pump's turn: goes on with those that took more than one. */
void begin_some(struct manager *m);
/* No more should be begun in this turn. */
bool begin_is_busy(const struct manager *m);
/* With new routes. */
void begin_anew(struct manager *m);
/* Its round does not begin any more. */
void begin_forget(struct active *a);

/* --- manager_awaiting.c --------------------------------------------------------------- */

/* Takes what waits for other fragments out of the recipients that are to be delivered.
 */
void manager_offer_open(struct active *a, struct sched_recipient *open, size_t *count);
/* A verdict about a recipient that was redirected. False: it is no verdict about the
 * mail; *told is what is to be said of it. */
bool manager_awaiting_answered(struct active *a, unsigned index,
                               const struct outcome *outcome, struct outcome *told);
bool awaiting_is_redirected(const struct active *a, unsigned index);
/* Brings the marker (queue/spool/marker.h) in line before the message leaves memory. */
void awaiting_note(struct active *a);
/* An operator has taken it out of their hands. */
void manager_awaiting_withdraw(struct manager *m, struct id id);
/* Nobody else is open, and the scheduler does not know the message (any more). */
void manager_await_parts(struct active *a, unsigned done_before);

/* --- delay_warning.c ------------------------------------------------------------ */

/* Whether the sender should hear of it if this recipient is deferred in the round that
 * begins. */
bool delay_warning_is_due(const struct active *a, const struct recipient *r,
                          const struct transport_params *t);
/* A deferral. */
void delay_warning_remember(struct active *a, unsigned index,
                            const struct outcome *outcome);
void delay_warning_forget(struct active *a, unsigned recipients);
/* At the end of a round that leaves recipients open. True: the notice is on its way,
 * and attempt_warned() will be called. */
bool delay_warning_start(struct active *a);

#endif
