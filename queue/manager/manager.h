/* The queue manager: couples the disk (queue.h) with the order (sched.h).
 *
 * It holds the envelopes of active mail, routes their recipients, hands work to the
 * channels (SMTP, LMTP, Maildir) that mta.c set, writes down every verdict (log
 * line, D mark, bounce text), and sends bounces. It knows no socket. */
#ifndef QUEUE_MANAGER_H
#define QUEUE_MANAGER_H

#include "queue/manager/activity.h"
#include "queue/queue.h"
#include "sched/sched.h"

struct manager;

/* Opens a session for a destination: a channel. Started, never finished, before it
 * returns; it must end in exactly one manager_session_ended(). domain "" unless the
 * target is TARGET_MX. Both live as long as the session. */
typedef void manager_open(void *context, struct sched_session *session,
                          const struct target *target, const char *domain);

struct manager_settings {
    const char *hostname;
    struct queue_settings queue;
    struct sched_settings sched;
    size_t bounce_size_limit; /* a full copy of a larger message is cut to its header */
    int64_t bulk_size;        /* larger mail has fewer turns; 0: none is bulk */
    bool sender_turns;        /* at a site; else all mail is one sender's */
    bool offline;             /* an operator without a daemon: nothing is delivered */
};

/* Opens the queue and starts. routes is borrowed and may be replaced; NULL when
 * offline. 0 or a sysexits
 * code and one line in error. */
int manager_new(struct manager **manager, struct loop *loop, struct log *log,
                const struct manager_settings *settings,
                const struct route_table *routes, char *error, size_t error_size);
/* When no session is left. What operators want of mail whose delivery was cut short is
 * done before, and durable after; for bounces the loop is turned, 10 s at most. */
void manager_free(struct manager **manager);
/* Which channel serves a kind of target. DISCARD, HOLD, ERROR and UNKNOWN are the
 * manager's own. */
void manager_set_channel(struct manager *manager, enum target_kind kind,
                         manager_open *open, void *context);
void manager_reload(struct manager *manager, const struct manager_settings *settings,
                    const struct route_table *routes);
struct queue *manager_queue(struct manager *manager);
/* Stops opening sessions; drained is called once no session is left, after grace_ms at
 * the latest: what is cut off then is delivered after the next start. */
void manager_drain(struct manager *manager, int64_t grace_ms,
                   void (*drained)(void *context), void *context);

/* --- For those who accept --------------------------------------------------------- */

/* A message is stored (the queue's callback): the manager takes it over. */
void manager_accept(struct manager *manager, struct envelope **e);

/* --- For channels ----------------------------------------------------------------- */

/* What a session carries now. Valid until its last recipient is settled. */
struct delivery_request {
    struct sched_session *session;
    const struct envelope *envelope;
    const unsigned *indexes; /* into envelope->recipients */
    size_t count;
};
/* What happens to a session before it has mail is put down to the first message that
 * waits for it: between the two, as queue_enter(). */
struct id manager_enter(struct manager *manager, const struct sched_session *session);
void manager_leave(struct manager *manager, struct id before);
/* The same message, or time 0. */
struct id manager_first(const struct sched_session *session);
/* False: nothing waits; ask again when manager_has_work or end the session. A second
 * one may be taken before the first is settled; its verdicts come after those of the
 * first.
 */
bool manager_take(struct manager *manager, struct sched_session *session,
                  struct delivery_request *request);
/* Whether manager_take() would succeed now; cheap. */
bool manager_has_work(const struct manager *manager,
                      const struct sched_session *session);
/* The verdict for request->indexes[which]; each exactly once. timing may be NULL. */
struct timing { /* Postfix's delays c and d, in ms */
    int64_t connect_ms, transmit_ms;
    const char *tls; /* for the log: version/cipher/verified; NULL or "": clear text */
};
void manager_settled(struct manager *manager, const struct delivery_request *request,
                     size_t which, const struct outcome *outcome,
                     const struct timing *timing);
/* See sched_session_limit(), sched_session_found() and sched_session_is_spent(). */
void manager_session_limit(struct sched_session *session,
                           const struct session_limits *limits);
bool manager_session_found(struct manager *manager, struct sched_session *session,
                           struct text key) __attribute__((warn_unused_result));
bool manager_session_is_spent(const struct sched_session *session);
/* See sched_host_good(), sched_host_bad(), sched_hosts_order(). */
void manager_host_good(struct manager *manager, struct text address,
                       int64_t service_ms);
void manager_host_bad(struct manager *manager, struct text address);
void manager_hosts_order(struct manager *manager, const struct text *addresses,
                         const int *groups, size_t count, size_t *order);
/* See sched_session_ended(). Every request must be settled before. */
void manager_session_ended(struct manager *manager, struct sched_session *session,
                           const struct outcome *trouble);

/* What the channel's open sessions do that are at the site: each is called once for
 * each; has_message is about that message. Asked only when an operator asks. */
typedef void manager_saw(void *context, const struct activity *activity);
typedef void manager_watch(void *context, const struct sched_site *site,
                           struct id message, manager_saw *each, void *each_context);
/* Of one channel, which is known by its context (no NULL); MANAGER_WATCHES_MAX of them.
 * watch NULL: unplugged. */
enum { MANAGER_WATCHES_MAX = 2 };
void manager_set_watch(struct manager *manager, manager_watch *watch, void *context);
/* See sched_session_is_at(). */
bool manager_session_is_at(const struct sched_session *session,
                           const struct sched_site *site);

/* --- For who puts fragments together ---------------------------------------------- */

/* A message whose round begins, and those of its open recipients whose target says
 * defragment (perhaps none: then this is only told so that it knows). */
struct manager_offer {
    const struct envelope *envelope;
    const unsigned *indexes; /* into envelope->recipients */
    size_t count;
    int64_t retention_ms;   /* half of the first of `notices`, the shortest of theirs */
    int64_t until_ms;       /* AWAIT: the answer */
    bool *absorbed;         /* of count: those that are settled as delivered */
    struct outcome outcome; /* SETTLE: theirs */
    const struct target *target; /* REDIRECT: a peer of the table of routes... */
    struct text set_mark;        /* ...and what he is told of it; copied */
};
enum manager_offered {
    MANAGER_PASS, /* it goes on as any other */
    /* Those that were offered, but for the absorbed, wait until until_ms, or until
     * manager_resume(). They are offered again whenever the message is loaded. */
    MANAGER_AWAIT,
    MANAGER_AWAIT_ALL, /* the whole message waits */
    MANAGER_SETTLE,    /* those that were offered */
    /* Those that were offered go to another host of ours, whose set they belong to.
     * While he does not answer they are tried again, as any mail. */
    MANAGER_REDIRECT
};
enum { MANAGER_WAIT_MAX = 600 };
struct manager_fragments {
    size_t sets, messages;    /* that wait */
    int64_t bytes, oldest_ms; /* of their bodies; birth, 0 = none waits */
    /* Since startup; all count fragments, but `reassembled` counts messages. */
    uint64_t waited, reassembled, absorbed;
    uint64_t timed_out, conflicts, limited, malformed, failed;
    uint64_t redirected, returned; /* to another host; refused there */
    bool is_shared, is_down;       /* a registry is used; it does not answer */
    size_t alone;                  /* sets begun while it did not answer */
    uint64_t namesakes;            /* other hosts found to use our name */
};
struct manager_defragment {
    enum manager_offered (*offer)(void *context, struct manager_offer *offer);
    /* An operator holds it, or does away with it: others do not wait for it any more.
     */
    void (*withdrawn)(void *context, struct id id);
    /* What a message waits for, in one line. False: nothing. */
    bool (*explain)(void *context, struct id id, char *out, size_t size);
    /* What became of a recipient that was redirected: the other host has it, or will
     * not take it. Then it is offered again at once, to go on as it is. */
    void (*redirected)(void *context, struct id id, bool taken);
    void (*count)(void *context, struct manager_fragments *out);
    void *context;
};
/* channel is borrowed; NULL: none. */
void manager_set_defragment(struct manager *manager,
                            const struct manager_defragment *channel);
/* Whether any route still asks for it. */
bool manager_defragments(const struct manager *manager);
/* Makes a message that waits for other fragments due now. False: it is not to be
 * delivered any more: it is gone, or held by the operator. */
bool manager_resume(struct manager *manager, struct id id);
/* The same, so much later: so that several go in an order of their own. */
bool manager_resume_after(struct manager *manager, struct id id, int64_t delay_ms);
/* The outcome for recipients that waited for other fragments; those that are done already, or are
 * none, are left out. The caller has entered (queue_enter()) the message because of
 * which it says so. False: there is no such message. */
bool manager_settle_awaiting(struct manager *manager, struct id id,
                             const unsigned *indexes, size_t count,
                             const struct outcome *outcome);

/* --- For operators ---------------------------------------------------------------- */

struct sched *manager_sched(struct manager *manager);
/* What operators do to a message; each durable when it is done, but for bounce and
 * remove: those within 100 ms (queue_settle), a bounce once its notice is stored. Of
 * two commands while a delivery runs the last counts. */
enum manager_verb {
    MANAGER_HOLD, /* hold/ID: not delivered, not retried, never expires, until: */
    /* Due now; it passes the routes that say hold, its marks in hold/ or corrupt/ go.
     * What is in corrupt/ must be whole again. A fragment that waits for others goes on
     * as it is. */
    MANAGER_RELEASE,
    MANAGER_RETRY,  /* due now */
    MANAGER_BOUNCE, /* every open recipient fails with 5.0.0, and the sender is told */
    MANAGER_REMOVE  /* without telling anybody; also what is held or in corrupt/ */
};
enum manager_result {
    MANAGER_DONE,
    MANAGER_LATER,   /* when the delivery that runs ends, or a stop cuts it */
    MANAGER_ALREADY, /* it is held, or is not, as was wanted */
    MANAGER_UNKNOWN, /* no such message */
    MANAGER_ENDING,  /* all is decided; its bounce is being written, then it is gone */
    MANAGER_DAMAGED, /* it is in corrupt/, where only RELEASE and REMOVE reach it */
    MANAGER_REFUSED  /* why is set, and nothing has changed */
};
enum { MANAGER_WHY_MAX = 200 };
enum manager_result manager_operate(struct manager *manager, enum manager_verb verb,
                                    struct id id, char why[MANAGER_WHY_MAX]);
/* REMOVE, of a message that queue_each() has just found, not in HOLD nor CORRUPT: the
 * same with fewer looks at the disk. */
enum manager_result manager_remove_listed(struct manager *manager, struct id id,
                                          char why[MANAGER_WHY_MAX]);
/* HOLD, by another than the operator: by stands in its reason and
 * in the log, in at most 30 bytes. */
enum manager_result manager_hold(struct manager *manager, struct id id, const char *by,
                                 char why[MANAGER_WHY_MAX]);
/* Everything that waits is due now. */
void manager_retry_all(struct manager *manager);
/* Whether it is of a slice of ours. */
bool manager_handles(const struct manager *manager, struct id id);
bool manager_is_offline(const struct manager *manager);
/* Notices since the start: begun, and stored or refused since. */
struct manager_notices {
    uint64_t begun, ended;
};
struct manager_notices manager_notices(const struct manager *manager);
/* The envelope of active mail (borrowed), or NULL: load it from the queue. */
const struct envelope *manager_active(struct manager *manager, struct id id);
/* Why a recipient was deferred last, "" if not known: kept in memory, and over a
 * restart (queue/manager/reasons.h), for 200,000 waiting messages, one reason a
 * message. */
const char *manager_reason(struct manager *manager, struct id id, unsigned recipient);

/* False: nobody puts fragments together. */
bool manager_fragments(struct manager *manager, struct manager_fragments *out);
/* It waits for other fragments: manager_reason() tells for which, and behind that why
 * it was deferred. */
bool manager_is_awaiting(struct manager *manager, struct id id);

/* What the open recipients of a message wait for, by next hop: of what is being tried
 * as the scheduler has it, else as its first MANAGER_EXPLAIN_MAX recipients would be
 * routed now. Not offline. */
enum { MANAGER_EXPLAIN_MAX = 1000 };
struct manager_wait {
    const char *destination;       /* "hold" and so on when there is no next hop */
    unsigned open;                 /* recipients, of which: */
    unsigned waiting, taken;       /* in memory; taken: a session has them */
    unsigned deferred;             /* until the next round */
    int64_t expires_ms;            /* they fail then */
    const struct sched_site *site; /* NULL: nothing is known of it now */
};
void manager_explain(struct manager *manager, const struct envelope *e,
                     void (*each)(void *context, const struct manager_wait *wait),
                     void *context);
/* What the sessions at a site do, within the each of manager_explain(). Looks at all
 * sessions. */
void manager_activities(struct manager *manager, const struct sched_site *site,
                        struct id message, manager_saw *each, void *context);

#endif
