/* The queue manager couples the disk (queue.h) with the scheduler (sched.h).
 *
 * It holds the envelopes of active mail, routes their recipients, hands work to the
 * channels (SMTP, LMTP, Maildir) that mta.c set, records every verdict (log line, D
 * mark, bounce text), and sends bounces. It never opens a socket.
 *
 * An *attempt* of a message begins when the message is loaded and its recipients are
 * routed, and ends when each open recipient has a verdict. */
#ifndef QUEUE_MANAGER_MANAGER_H
#define QUEUE_MANAGER_MANAGER_H

#include "queue/manager/activity.h"
#include "queue/queue.h"
#include "queue/queue_operator.h"
#include "queue/suppression/suppression.h"
#include "sched/route/quotas.h"
#include "sched/sched.h"

enum { MANAGER_COPY_SIZE = 320 };

struct aliases;
struct event_hub;
struct manager;
struct srs;

/* A channel: opens a session for a destination. It starts the session but never
 * finishes it before it returns, and ends it with exactly one manager_session_ended().
 * domain is "" unless the target is TARGET_MX. target and domain live as long as the
 * session. */
typedef void manager_open(void *context, struct sched_session *session,
                          const struct target *target, const char *domain);

struct manager_settings {
    const char *hostname;
    struct queue_settings queue;
    struct sched_settings sched;
    size_t bounce_size_limit; /* bounces have only the header of a larger message */
    int64_t bulk_size;        /* larger mail gets fewer turns; 0: no mail is bulk */
    bool tls_required_header; /* "TLS-Required: No" counts (RFC 8689) */
    bool sender_turns;        /* at a site; else all mail counts as one sender's */
    struct text quotas;       /* sched/route/quotas.h; only read by new and reload */
    struct text copy_to;      /* sched/route/copies.h; likewise */
    struct suppression_settings suppression;
    bool offline; /* an operator without a daemon: nothing is delivered */
};

/* Opens the queue and starts. routes is borrowed and may be replaced; NULL when
 * offline. Returns 0, or a sysexits code with one line in error. */
int manager_new(struct manager **manager, struct loop *loop, struct event_hub *events,
                const struct manager_settings *settings,
                const struct route_table *routes, char *error, size_t error_size);
/* To be called when no session is left. Commands of operators for mail whose delivery
 * was cut short are carried out, durably; for bounces the loop is turned, 10 s at most.
 * Its events still come; after it none do. */
void manager_conclude(struct manager *manager);
/* Concludes it unless that is done. */
void manager_free(struct manager **manager);
/* Sets the channel for a kind of target. The manager itself serves DISCARD, HOLD, ERROR
 * and UNKNOWN. */
void manager_set_channel(struct manager *manager, enum target_kind kind,
                         manager_open *open, void *context);
void manager_reload(struct manager *manager, const struct manager_settings *settings,
                    const struct route_table *routes);
struct queue *manager_queue(struct manager *manager);
/* For questions, and for what a channel tells of its sessions and of hosts. An event that may
 * have actions goes through the manager, which has a turn follow. */
struct sched *manager_sched(struct manager *manager);
/* Stops opening sessions. Calls drained once no session is left, after grace_ms at the
 * latest; deliveries cut off then are repeated after the next startup. */
void manager_drain(struct manager *manager, int64_t grace_ms,
                   void (*drained)(void *context), void *context);
/* Undoes it; drained is not called any more. */
void manager_cancel_drain(struct manager *manager);
/* No delivery begins, and no host is given mail; what is under way goes on, and the messages
 * stay in the queue. */
void manager_pause(struct manager *manager, bool is_paused);
bool manager_is_paused(const struct manager *manager);
/* Since one of these: no delivery begins. */
bool manager_is_draining(const struct manager *manager);

/* The aliases, by which mail of injectors and our own notifications are expanded; both
 * borrowed, and NULL: none. They may be replaced at any time. */
void manager_set_aliases(struct manager *manager, struct aliases *aliases,
                         const struct srs *srs);

/* --- Reports that come back (manager_returns.c) ----------------------------------- */

/* Reports that come to the addresses of verp are read, not delivered, when the message is
 * routed: the verdict `delivered` follows their event (EVENT_BOUNCED_LATER,
 * EVENT_COMPLAINED), so that a crash may repeat an event and never loses one. Other mail
 * to these addresses goes where the routes lead, if a mailbox or a host of a local domain
 * is there. verp: borrowed; NULL: nothing is read. May be replaced at any time. */
struct verp;
void manager_set_verp(struct manager *manager, const struct verp *verp);

/* Why a report counts for nothing. */
enum manager_forged {
    MANAGER_FORGED_UNTAGGED,  /* there is no tag in it */
    MANAGER_FORGED_TAG,       /* a tag that is not ours, or too old; also at RCPT */
    MANAGER_FORGED_RECIPIENT, /* it is not about the recipient of its tag */
    MANAGER_FORGED_REASONS
};
extern const char *const manager_forged_words[MANAGER_FORGED_REASONS];
/* Since startup. */
struct manager_returns {
    uint64_t bounced, delayed, complained;
    uint64_t positive; /* delivered, relayed, expanded; not-spam */
    uint64_t others;   /* automatic replies, and other mail that is no report */
    uint64_t forged[MANAGER_FORGED_REASONS];
};
const struct manager_returns *manager_returns(const struct manager *manager);
/* One at RCPT. */
void manager_forged_return(struct manager *manager, enum manager_forged why);

/* --- For acceptors ---------------------------------------------------------------- */

/* A message of this host, about to be named: in place of its aliases their members, as in
 * an injector's message. */
void manager_expand_own(struct manager *manager, struct envelope *e);

/* A message that was accepted here, named, and about to be committed: adds the recipients
 * of `copy_to`. Not for our own mail, and mail of another host of the group. Mail of
 * injectors gets them when it is loaded. */
void manager_copy(struct manager *manager, struct envelope *e);
/* Copies since startup. */
struct manager_copied {
    uint64_t delivered, failed;
    int64_t failed_ms; /* monotonic: the last one that failed, for: */
    char failed_to[MANAGER_COPY_SIZE];
};
struct manager_copied manager_copied(const struct manager *manager);

/* Mail with REQUIRETLS since startup: messages accepted, and recipients that came back
 * because no host could give such TLS. */
struct manager_required {
    uint64_t accepted, returned;
};
struct manager_required manager_required(const struct manager *manager);

/* A message is stored (the queue's callback): the manager takes ownership of it. */
void manager_accept(struct manager *manager, struct envelope **e);

/* Clients are paced while mail comes faster than it leaves (doc/scheduler.md "Pace"): the
 * reply to a message waits while too much other mail waits with it. Mail that cannot
 * leave now, because its site is dead or has a rate, counts only while it waits to
 * become files. Calm: no message is crowded. The second is to be asked once the turn of
 * manager_accept() is over; alone: the client has no other session, and waits only for
 * twice as much. */
bool manager_is_calm(const struct manager *manager);
bool manager_is_crowded(const struct manager *manager, struct id id, bool alone);

/* The quotas of senders, by loop_monotonic_ms(). */
struct quotas *manager_quotas(struct manager *manager);
/* Something was counted: it will be written, once a minute at most. */
void manager_note_quotas(struct manager *manager);
/* Each name and each next hop that has used something of its quota, in no order. */
struct manager_quota {
    const char *who; /* as in `quotas`, or a next hop as route_key() has it */
    bool is_relay;
    const struct quota *quota;
    const struct quota_use *use;
    int64_t now_ms, ahead_ms; /* times in use: the lead of loop_now_ms() */
};
void manager_each_quota(struct manager *manager,
                        void (*each)(void *context, const struct manager_quota *quota),
                        void *context);
/* Forgets the use; mail that waits for it is due. False: nothing is counted. */
bool manager_reset_quota(struct manager *manager, struct text who);
/* EVENT_QUOTA, if it is the first refusal of a window. */
void manager_tell_quota(struct manager *manager, const struct quotas_refusal *refusal);

/* Whether a recipient of mail from sender, both as addresses, is not to be accepted, since
 * it is suppressed; *refusal is 550 5.1.1. */
bool manager_suppresses(struct manager *manager, struct text sender,
                        struct text recipient, struct outcome *refusal);
/* The same was found out later, by a report that came as mail: suppression_note(), and
 * EVENT_SUPPRESSED. Nothing while suppress is off. sender: the address or domain whose mail
 * it was. */
void manager_suppress(struct manager *manager, struct text sender,
                      struct text recipient, enum suppression_class class,
                      struct text reason);
/* The list; NULL: suppress is off. Also offline. */
struct suppression *manager_suppression(struct manager *manager);

/* --- For channels ----------------------------------------------------------------- */

/* The current work of a session. Valid until its last recipient has a verdict. */
struct delivery_request {
    struct sched_session *session;
    const struct envelope *envelope;
    const unsigned *indexes; /* into envelope->recipients */
    size_t count;
};
/* A crash in a session that has no mail yet is attributed to the first message that
 * waits for it: bracket the work with these two, as with queue_enter(). */
struct id manager_enter(struct manager *manager, const struct sched_session *session);
void manager_leave(struct manager *manager, struct id before);
/* That message, or one with time 0. */
struct id manager_first(const struct sched_session *session);
/* False: nothing waits; ask again when manager_has_work(), or end the session. A second
 * request may be taken before the first is settled; its verdicts come after those of
 * the first. */
bool manager_take(struct manager *manager, struct sched_session *session,
                  struct delivery_request *request);
/* Whether manager_take() would succeed now; cheap. Each cause (mail, a verdict, a
 * command, the time at which a pause ends) brings a turn of the loop; a
 * hook behind LOOP_ANSWER_MANAGER sees it in that turn. */
bool manager_has_work(const struct manager *manager,
                      const struct sched_session *session);
/* The verdict for request->indexes[which]; exactly one for each. timing may be NULL. */
struct timing { /* Postfix's delays c and d, in ms */
    int64_t connect_ms, transmit_ms;
    const char *tls;  /* for the log: version/cipher/verified; NULL or "": cleartext */
    struct text dkim; /* for the log: "DOMAIN/SELECTOR,..." that signed it; or empty */
    struct text sender; /* likewise: with which it left; empty: the envelope's */
    const char *site;   /* set by the manager */
};
void manager_settled(struct manager *manager, const struct delivery_request *request,
                     size_t which, const struct outcome *outcome,
                     const struct timing *timing);
/* See sched_session_found(). */
bool manager_session_found(struct manager *manager, struct sched_session *session,
                           struct text key) __attribute__((warn_unused_result));
/* See sched_session_ended(). Every request must be settled before. */
void manager_session_ended(struct manager *manager, struct sched_session *session,
                           const struct outcome *why);

/* Reports the activity of the channel's open sessions at the site: each is called once
 * for every session; has_message refers to message. Called only when an operator
 * asks. */
typedef void manager_saw(void *context, const struct activity *activity);
typedef void manager_watch(void *context, const struct sched_site *site,
                           struct id message, manager_saw *each, void *each_context);
/* Sets or replaces (watch NULL: removes) the watch of a channel, which its context
 * identifies (not NULL). At most MANAGER_WATCHES_MAX channels. */
enum { MANAGER_WATCHES_MAX = 3 };
void manager_set_watch(struct manager *manager, manager_watch *watch, void *context);
/* --- For a group of hosts --------------------------------------------------------- */

/* See sched_members(). */
struct sched_group;
struct sched_wish;
struct bank_grant;
void manager_group(struct manager *manager, const struct sched_group *group);
/* See sched_wishes(): in a hook behind LOOP_ANSWER_MANAGER. */
size_t manager_wishes(struct manager *manager, size_t most,
                      void (*each)(void *context, const struct sched_wish *wish),
                      void *context);
/* See sched_granted(). */
void manager_granted(struct manager *manager, const char *site,
                     const struct bank_grant *grant);
/* Mail that goes to another host (queue/group/give.h). A loan is a message that is in no
 * session: it is not delivered, and no command changes it, until it comes back or has been
 * given away. The envelope has its state of this moment, also the part that is in memory
 * alone; it is borrowed, and valid as long as the loan. */
enum manager_lent {
    MANAGER_LENT,
    MANAGER_LEND_MORE,  /* its content is being checked: call again in a later turn */
    MANAGER_LEND_BUSY,  /* a session has it, its notification is being made, or the disk
                         * does not answer */
    MANAGER_LEND_STAYS, /* it is for a Maildir or a Unix socket, or cannot be judged */
    MANAGER_LEND_DAMAGED, /* it is in corrupt/ */
    MANAGER_LEND_GONE
};
struct manager_loan {
    const struct envelope *envelope;
    uint64_t set; /* of a fragment that waited for others: the same for all; else 0 */
};
/* Reads at most *budget bytes of content, and subtracts them. */
enum manager_lent manager_lend(struct manager *manager, struct id id, int64_t *budget,
                               struct manager_loan *loan);
bool manager_is_lent(const struct manager *manager, struct id id);
/* The loan ends: it is known as before, with its due time and attempts. */
void manager_take_back(struct manager *manager, struct id id);
/* The loan ends: host has it, durably, as `there`. Here it ends. */
void manager_give_away(struct manager *manager, struct id id, const char *host,
                       struct id there);
/* While nothing is delivered: mail that was about to be loaded waits again. */
void manager_rest_loads(struct manager *manager);
/* The birth to store for mail that is to be taken over, which has this one by our clock: by the
 * clock of its day, as that of our own mail is. */
int64_t manager_clock_written_ms(const struct manager *manager, int64_t birth_ms);
/* A message that another host gave is stored (queue_takes()): it is known with its due
 * time, unless it is held. */
void manager_take_over(struct manager *manager, struct envelope **e, const char *hold);
/* The path of a file in lock/, with the suffix of our slices. */
enum { MANAGER_HINT_MAX = 64 };
void manager_hint_path(const struct manager *manager, const char *name,
                       char out[MANAGER_HINT_MAX]);
/* That file, whole, as spool_read_path() does; written anew; or its end. Not synced, but by
 * manager_hint_sync(). 0 or -errno; append: -ENOENT without a file, which it does not make. */
int manager_hint_read(const struct manager *manager, const char *name,
                      struct buffer *out);
int manager_hint_write(const struct manager *manager, const char *name,
                       struct text text);
int manager_hint_append(const struct manager *manager, const char *name,
                        struct text text);
int manager_hint_sync(const struct manager *manager, const char *name);
void manager_hint_drop(const struct manager *manager, const char *name);

/* --- For the reassembly of fragments ---------------------------------------------- */

/* A message whose attempt begins, with those of its open recipients whose target says
 * defragment (perhaps none: then the channel is only informed). */
struct manager_offer {
    const struct envelope *envelope;
    const unsigned *indexes; /* into envelope->recipients */
    size_t count;
    int64_t retention_ms;        /* half of the first of `notices`, the shortest */
    int64_t until_ms;            /* AWAIT: the answer */
    bool *absorbed;              /* [count]: settled as delivered */
    struct outcome outcome;      /* SETTLE: for all of them */
    const struct target *target; /* REDIRECT: a peer of the table of routes... */
    struct text set_mark;        /* ...and its name for the set; copied */
};
enum manager_offered {
    MANAGER_PASS, /* it is delivered as any other */
    /* The offered recipients, except the absorbed ones, wait until until_ms or
     * manager_resume(). They are offered again whenever the message is loaded. */
    MANAGER_AWAIT,
    MANAGER_AWAIT_ALL, /* the whole message waits */
    MANAGER_SETTLE,    /* settles the offered recipients */
    /* The offered recipients go to another of our hosts, which owns the set. While it
     * does not answer they are retried, as any mail. */
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
/* A set of fragments that waits. */
enum { MANAGER_SET_NUMBERS = 100, MANAGER_SET_LOOKS = 1000 };
struct manager_set {
    char name[13];         /* as in the log */
    struct id first;       /* one of its messages; all 0: it is ending */
    struct text recipient; /* one of them; borrowed, as owner */
    const char *owner;     /* the host that reassembles it */
    size_t recipients, messages;
    uint32_t have, total; /* numbers; total 0: not known */
    int64_t bytes, since_ms, until_ms;
    bool is_reassembling;
    /* Those up to MANAGER_SET_LOOKS, as far as there is room. */
    uint32_t there[MANAGER_SET_NUMBERS], missing[MANAGER_SET_NUMBERS];
    size_t there_count, missing_count;
};
typedef void manager_set_saw(void *context, const struct manager_set *set);
struct manager_defragment {
    enum manager_offered (*offer)(void *context, struct manager_offer *offer);
    /* An operator holds or removes it: others do not wait for it any longer. */
    void (*withdrawn)(void *context, struct id id);
    /* Writes in one line why a message waits. False: it does not. */
    bool (*explain)(void *context, struct id id, char *out, size_t size);
    /* The result of a redirected recipient: the other host has taken it, or refuses it.
     * A refused one is offered again immediately, to be delivered unchanged. */
    void (*redirected)(void *context, struct id id, bool taken);
    void (*count)(void *context, struct manager_fragments *out);
    size_t (*list)(void *context, size_t from, size_t count, manager_set_saw *each,
                   void *each_context); /* manager_list_sets(); NULL: none */
    /* A whole is being made of its set now: the message stays here meanwhile. NULL: no. */
    bool (*reassembles)(void *context, struct id id);
    /* A number for the set of a fragment that waits; 0: it is in none. NULL: likewise. */
    uint64_t (*set)(void *context, struct id id);
    void *context;
};
/* channel is borrowed; NULL removes it. */
void manager_set_defragment(struct manager *manager,
                            const struct manager_defragment *channel);
/* Whether any route asks for reassembly. */
bool manager_defragments(const struct manager *manager);
/* Another number after a change of the time for which routes let fragments wait. */
uint64_t manager_retention_mark(const struct manager *manager);
/* Makes a message that waits for other fragments due now. False: it is not to be
 * delivered: it is gone, or held by the operator. */
bool manager_resume(struct manager *manager, struct id id);
/* The same after delay_ms, so that several are loaded in a chosen order. */
bool manager_resume_after(struct manager *manager, struct id id, int64_t delay_ms);
/* The outcome for recipients that waited for other fragments; those already done, and
 * invalid indexes, are ignored. The caller has entered (queue_enter()) the message that
 * caused it. False: there is no such message. */
bool manager_settle_awaiting(struct manager *manager, struct id id,
                             const unsigned *indexes, size_t count,
                             const struct outcome *outcome);

/* --- For operators ---------------------------------------------------------------- */

/* Commands of operators for a message. Each is durable when done, except bounce and
 * remove: remove within 100 ms (queue_settle), bounce once its notification is stored.
 * The last of two commands during a delivery counts. */
enum manager_verb {
    MANAGER_HOLD, /* hold/ID: not delivered, not retried, never expires */
    /* Due now; it ignores routes that say hold, and its marks in hold/ or corrupt/ go.
     * Mail in corrupt/ must be intact again. A fragment that waits for others is
     * delivered unchanged. */
    MANAGER_RELEASE,
    MANAGER_RETRY,  /* due now */
    MANAGER_BOUNCE, /* all open recipients fail with 5.0.0; the sender is notified */
    MANAGER_REMOVE  /* without any notification; also held or quarantined mail */
};
enum manager_result {
    MANAGER_DONE,
    MANAGER_LATER,   /* when the running delivery ends, or a stop cuts it off */
    MANAGER_ALREADY, /* it is held already, or is not held */
    MANAGER_UNKNOWN, /* no such message */
    MANAGER_ENDING,  /* it has ended, and its bounce is being written */
    MANAGER_DAMAGED, /* it is in corrupt/, where only RELEASE and REMOVE work */
    MANAGER_REFUSED  /* why is set; nothing has changed */
};
enum { MANAGER_WHY_MAX = 200 };
enum manager_result manager_operate(struct manager *manager, enum manager_verb verb,
                                    struct id id, char why[MANAGER_WHY_MAX]);
/* REMOVE for a message that queue_each() has just found, not in HOLD nor CORRUPT: needs
 * fewer accesses to the disk. */
enum manager_result manager_remove_listed(struct manager *manager, struct id id,
                                          char why[MANAGER_WHY_MAX]);
/* HOLD by another than the operator: `by` appears in its reason and in the log, at most
 * 30 bytes. */
enum manager_result manager_hold(struct manager *manager, struct id id, const char *by,
                                 char why[MANAGER_WHY_MAX]);
/* A sched_set_token(). */
void manager_set_token(struct manager *manager, const struct sched_login *login,
                       enum sched_token token, const char *why);
/* Makes all waiting mail due now. */
void manager_retry_all(struct manager *manager);
/* sched_forget_limits() */
bool manager_forget_limits(struct manager *manager, const char *site)
    __attribute__((warn_unused_result));
/* Whether the id is in our slices. */
bool manager_handles(const struct manager *manager, struct id id);
bool manager_is_offline(const struct manager *manager);
/* Notifications since startup: begun, and stored or refused. */
struct manager_notifications {
    uint64_t begun, ended;
};
struct manager_notifications manager_notifications(const struct manager *manager);
/* The envelope of active mail (borrowed), or NULL: load it from the queue. */
const struct envelope *manager_active(struct manager *manager, struct id id);
/* Why a recipient was last deferred, "" if not known: kept in memory, and over a
 * restart (queue/manager/deferral_reasons.h), for 200,000 waiting messages, one reason per
 * message. */
const char *manager_reason(struct manager *manager, struct id id, unsigned recipient);

/* False: no channel reassembles fragments. */
bool manager_fragments(struct manager *manager, struct manager_fragments *out);
/* Calls each() for at most count sets, oldest first, but for the first `from` of them;
 * between two calls sets come and go. Returns their number. */
size_t manager_list_sets(struct manager *manager, size_t from, size_t count,
                         manager_set_saw *each, void *context);
/* Whether it waits for other fragments: then manager_reason() says for which, followed
 * by the last deferral. */
bool manager_is_awaiting(struct manager *manager, struct id id);

/* queue_peek() of a daemon. What cannot be read any more is quarantined, and is waiting mail no
 * longer. */
struct envelope *manager_peek(struct manager *manager, struct id id,
                              enum queue_place place);
/* Mail by its place, as `queue ls` has it; queue_count_apart() has hold and corrupt. To
 * the scheduler fragments that wait are mail that is not yet due, most of them new, some
 * deferred; and a message that is held while it is delivered is active. */
struct manager_places {
    size_t incoming, active, deferred, defrag;
};
struct manager_places manager_count(struct manager *manager);

/* The oldest mail. Held mail is not in it, nor are fragments that wait for others. */
struct manager_oldest {
    int64_t birth_ms;  /* as its id says; 0: there is none */
    int64_t behind_ms; /* of the oldest that waits for anything but a 4yz reply, other
                        * than 421, of its receiver */
    struct id behind;
};
/* Looks at MANAGER_OLDEST_MAX messages: behind more fragments, or more refused mail,
 * nothing is seen. Cheap. */
enum { MANAGER_OLDEST_MAX = 1000 };
void manager_find_oldest(struct manager *manager, struct manager_oldest *out);

/* The host that has refused notifications of failed mail last, with its reply, if it has
 * taken none since; for a week. */
void manager_lost_reports(const struct manager *manager,
                          void (*each)(void *context, const char *host,
                                       const char *what),
                          void *context);
/* Receivers that refuse this host, or its mail for a lack of its own (refusal classes
 * auth, ptr and reputation): MANAGER_REFUSERS_MAX at most, those refused last. One ends
 * six hours after its last refusal, or one hour if it has taken mail since. */
enum { MANAGER_REFUSERS_MAX = 16 };
void manager_refusers(const struct manager *manager,
                      void (*each)(void *context, const char *receiver,
                                   const char *what),
                      void *context);

/* Explains by next hop why the open recipients of a message wait: as the scheduler has
 * active mail; otherwise by the routes that its first MANAGER_EXPLAIN_MAX recipients
 * would take now. Not offline. */
enum { MANAGER_EXPLAIN_MAX = 1000 };
struct manager_wait {
    const char *destination;       /* "hold" and the like if there is no next hop */
    unsigned open;                 /* recipients; among them: */
    unsigned waiting, taken;       /* in memory; taken: a session has them */
    unsigned deferred;             /* until the next attempt */
    int64_t expires_ms;            /* they fail then */
    const struct sched_site *site; /* NULL: nothing is known of it now */
};
void manager_explain(struct manager *manager, const struct envelope *e,
                     void (*each)(void *context, const struct manager_wait *wait),
                     void *context);
/* Reports the activities of the sessions at a site, within the callback of
 * manager_explain(). Examines all sessions. */
void manager_activities(struct manager *manager, const struct sched_site *site,
                        struct id message, manager_saw *each, void *context);

#endif
