/* The scheduler decides which message is delivered next, over which session. Pure:
 * (event, now) -> actions; no I/O, no clock. It never reads a file or opens a
 * connection.
 *
 * The terms are Postfix's (doc/scheduler.md). A *destination* stands for all mail for
 * one next hop; its *entries* are the recipients of one message there. A *site* is the
 * set of servers behind one or more destinations: it has the queue and the *window* of
 * allowed parallel sessions. Unlike Postfix, sessions come first and mail is bound
 * late: SCHED_OPEN asks for a session, and sched_take() gives it mail after the
 * greeting, so a connection that fails costs no message an attempt.
 *
 * The way of a message: sched_add (known, on disk) -> SCHED_LOAD when it is due and the
 * active set has space -> sched_loaded with its open recipients -> one verdict per
 * recipient, through a session (sched_settled) or by the scheduler itself
 * (SCHED_SETTLE: dead site, expired) -> SCHED_WAIT (leaves memory, due again later) or
 * SCHED_FINISH (no recipient is open).
 *
 * The time is the owner's, who changes it between turns alone. When it goes back by a second
 * or more, all waiting times move along. The owner feeds events, then calls sched_work() once
 * and sched_next() until it returns false; and again at sched_wake_ms(). */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "base/id.h"
#include "base/outcome.h"
#include "sched/route/route.h"

struct sched;
struct sched_message;
struct sched_session;
struct bank_question;
struct bank_grant;

/* New mail and due deferred mail are loaded in turn. When the active set is full new
 * mail goes first, at most three times in a row. */
struct sched_settings {
    int active_limit;    /* messages in memory, 20000 */
    int session_limit;   /* delivery sessions, 500; with idle ones twice that */
    int site_share;      /* percent of the active set that one site may have; 0 = all */
    uint64_t seed;       /* for jitter */
    int recipient_limit; /* recipients of the messages in memory, 40000; 0: no limit */
};

/* now_ms: borrowed; read at each call. */
struct sched *sched_new(const struct sched_settings *settings, const int64_t *now_ms);
void sched_free(struct sched **s);
/* After a reload of the settings. */
void sched_change(struct sched *s, const struct sched_settings *settings);
/* After a reload of the routes. Where only the limits of a route are others (see
 * route_successor()) they hold from now on, for mail and sessions that are there, too.
 * Mail on disk that waits for a next hop to which no route leads any more is due now, to be
 * routed anew; for mail in memory see sched_enter_again(). */
void sched_rerouted(struct sched *s, const struct route_table *was,
                    const struct route_table *now);
/* The token of OAuth2 with which we log in somewhere. Sites for which one is awaited get no
 * session. When all logins of a site have failed to get one, its mail is deferred with
 * why, which does not count as an attempt, until there is one. */
enum sched_token {
    SCHED_TOKEN_NONE, /* it needs none */
    SCHED_TOKEN_THERE,
    SCHED_TOKEN_AWAITED, /* will come soon, or fail */
    SCHED_TOKEN_FAILED
};
struct sched_login {
    struct text host, user;
    uint16_t port; /* 0: all ports that have no login of their own */
};
void sched_set_token(struct sched *s, const struct sched_login *login,
                     enum sched_token token, const char *why);

/* From now on there is no SCHED_LOAD and no SCHED_OPEN; running sessions end normally.
 * sched_cancel_drain() undoes it. */
void sched_drain(struct sched *s);
void sched_cancel_drain(struct sched *s);

/* --- Events ---------------------------------------------------------------------- */

/* A durable message. attempts: those already made (deferred before). Fresh mail has
 * due_ms <= now. Adding a known id does nothing. */
void sched_add(struct sched *s, struct id id, int64_t due_ms, unsigned attempts);
/* The number of its recipients, delivered ones too, when that is known before it is
 * loaded: it is not loaded before there is room for them. */
void sched_weigh(struct sched *s, struct id id, size_t recipients);
/* Whether a message with that number of recipients would be loaded without delay. */
bool sched_has_room(const struct sched *s, size_t recipients);

struct sched_recipient {
    unsigned index;              /* the owner's */
    const struct target *target; /* copied into the destination if that is new */
    struct text domain;          /* of the recipient, for the key */
    unsigned group; /* recipients of one transaction have the same: one sender */
};
/* The sender and size of the mail. Senders take turns at a site; a class gets a larger
 * or smaller share of them. */
enum sched_class {
    SCHED_CLASS_NORMAL,
    SCHED_CLASS_URGENT,
    SCHED_CLASS_BULK,
    SCHED_CLASSES
};
struct sched_mail {
    void *owner;      /* comes back in actions */
    int64_t birth_ms; /* decides expiry */
    bool null_sender; /* chooses the bounce lifetime */
    enum sched_class class;
    uint64_t sender; /* a hash of the sender that takes turns */
    uint64_t size;   /* of the content, bytes */
};
/* The hash of an envelope sender. Text of VERP and extensions behind a "+" or "=" in
 * the local part is ignored, so that a list is one sender. The null sender is one,
 * too. */
uint64_t sched_sender(struct text address);
/* The envelope has been read: the number of its recipients, delivered ones too, counts
 * until the message leaves memory. False: there is no room for them, and the message
 * stays on disk until there is; no other answer to SCHED_LOAD may follow. */
bool sched_admit(struct sched *s, struct id id, size_t recipients)
    __attribute__((warn_unused_result));
/* Answers SCHED_LOAD with the open recipients, at least one: add them, some in a turn, then
 * load or drop all. sched_loaded() takes ownership of loading. NULL: the sites of the message
 * have more than their share of a full active set; it stays on disk, and is loaded again when
 * they have less. */
struct sched_loading *sched_loading_new(size_t most);
void sched_loading_add(struct sched *s, struct sched_loading *loading,
                       const struct sched_recipient *recipient);
void sched_loading_drop(struct sched *s, struct sched_loading **loading);
struct sched_message *sched_loaded(struct sched *s, struct id id,
                                   const struct sched_mail *mail,
                                   struct sched_loading **loading);
/* Answers SCHED_LOAD: the message is gone, held or damaged, or has no open
 * recipient. */
void sched_unloaded(struct sched *s, struct id id);

/* Gives a greeted session its next transaction: open recipients of one message.
 * False: nothing waits for it. It may send QUIT, or keep the connection for a moment
 * and ask again; it counts in the window until sched_session_ended. indexes is valid
 * until the work is settled. While one work waits for its last verdicts a session may
 * take a second one, whose verdicts come after those of the first. */
enum {
    /* A host that has answered a dot within this time gets the next message with the
     * next dot; a slow one does not, since that message waits for its answer. */
    SCHED_PROMPT_MS = 200
};
struct sched_work {
    struct sched_message *message;
    void *owner;
    const unsigned *indexes;
    size_t count;
};
bool sched_take(struct sched *s, struct sched_session *session,
                struct sched_work *work);
/* Whether sched_take would succeed as of the last event: cheap, for sessions kept open.
 * Without an event it becomes true at sched_wake_ms() at the earliest.
 * A session that got false is idle: it counts in its window and gets new work before
 * another is opened there, but does not count in session_limit, so that it blocks no
 * other site. */
bool sched_has_work(const struct sched *s, const struct sched_session *session);
/* The owner of a message that waits at the session's site, perhaps the next one; NULL:
 * none waits. */
void *sched_session_first(const struct sched_session *session);

/* The servers of a session's domain are known, before it connects: key names the set
 * (sched/site_key.h). Domains with the same set share one site, to which all mail that
 * waits for the domain moves. False: that site is dead or has no space for the session,
 * or the session belongs to old settings; end it without trouble. */
bool sched_session_found(struct sched *s, struct sched_session *session,
                         struct text key) __attribute__((warn_unused_result));

/* Before sched_session_found(): the demand of the session's domain for the TLS of
 * sessions that carry its mail. The number is complete: two demands are equal only if a
 * session that has proven the one has proven the other. 0, as without this call: none. A
 * session that is greeted has proven the demand found for its own domain, and carries
 * mail with that demand, or with none.
 *
 * It holds for that time, and until sched_ask_again() or another target. Then the domain
 * has a site of its own again when mail for it is loaded, so that a session looks it up
 * anew, even if other sessions could carry its mail. valid_ms 0: without an end of its
 * own. */
void sched_session_demand(struct sched *s, struct sched_session *session,
                          uint64_t demand, int64_t valid_ms);

/* Settings that decide which demands count have changed. */
void sched_ask_again(struct sched *s);

/* The health of a server address, at any site: greeted after service_ms, or failed
 * (refused, never answered, or hung up). See sched/limits/host.h. */
void sched_host_good(struct sched *s, struct text address, int64_t service_ms);
void sched_host_bad(struct sched *s, struct text address);
/* The order in which a new session tries addresses: hosts_order(). */
void sched_hosts_order(struct sched *s, const struct text *addresses, const int *groups,
                       size_t count, size_t *order);

/* The limits of the host that has greeted (RFC 9422): for each later sched_take, until
 * another connection sets them again. */
struct session_limits {
    unsigned recipients; /* per transaction; 0 = as the transport says */
    unsigned mails;      /* on this connection; 0 = no limit */
};
void sched_session_limit(struct sched_session *session,
                         const struct session_limits *limits);
/* Its host took that number of recipients in a transaction, and said that the others were
 * too many: the site gets no more in one for an hour. */
void sched_session_takes(struct sched *s, struct sched_session *session,
                         unsigned recipients);

/* It has carried as many messages as the transport or the host allows, or its place is
 * needed for other mail, which may come in any turn of an idle one: sched_take will
 * always return false, and its owner ends it in this turn. */
bool sched_session_is_spent(const struct sched_session *session);

/* A verdict for one recipient of the session's oldest work. DEFERRED with BLAME_SITE is
 * negative feedback for the site, DEFERRED with BLAME_MESSAGE none, others positive
 * (once per work, the worst counts). */
void sched_settled(struct sched *s, struct sched_session *session, unsigned index,
                   const struct outcome *outcome);
/* The session does not carry the work taken last: outcome for all its recipients. */
void sched_waive(struct sched *s, struct sched_session *session,
                 const struct outcome *outcome);

/* The session is over; every recipient taken must be settled before. why is never NULL:
 * no session ends without an outcome.
 *
 * DELIVERED (outcome_no_trouble): nothing is wrong, its mail is done. DEFERRED with
 * BLAME_MESSAGE: we have ended it, or could not use it. With both the site pauses for a
 * second if the session was never greeted.
 *
 * DEFERRED otherwise: all addresses were tried. If it was never greeted that is negative
 * feedback; a site with no greeted session left is dead immediately (an adaptive one that
 * has greeted: after the fifth such end in a row), and its mail is settled with why. If
 * it was greeted the verdicts of its work have said that already; without another
 * greeted session the site pauses for a second.
 *
 * Trouble before the servers of the domain are found is of the domain alone, which gets a
 * site of its own. With BLAME_DEMAND a host has not proven the demand that was found:
 * that says nothing of the site; mail with the same demand is settled with why, and
 * deferred for some time. FAILED: nobody can ever deliver there (NXDOMAIN, null MX); its
 * mail is settled FAILED. Of a greeted session, with BLAME_MESSAGE, it is a word on one
 * message. */
void sched_session_ended(struct sched *s, struct sched_session *session,
                         const struct outcome *why);

/* --- Actions --------------------------------------------------------------------- */

enum sched_verb {
    SCHED_LOAD,   /* id: answer with sched_admit() and, if that is true, sched_loaded();
                     or with sched_unloaded(); now or later */
    SCHED_OPEN,   /* session, target, domain: open one; ends in sched_session_ended() */
    SCHED_SETTLE, /* message, owner, index, outcome: verdict without a session; expired
                     says that the lifetime is over (outcome is FAILED then) */
    SCHED_WAIT,   /* id, owner, due_ms, attempts: write them down; it is unloaded, and
                     loaded before due_ms only when a dead site that it is for lives */
    SCHED_FINISH  /* id, owner: no recipient is open; the message is forgotten */
};
struct sched_action {
    enum sched_verb verb;
    struct id id;
    void *owner;
    struct sched_session *session;
    const struct target *target; /* OPEN: lives as long as the session */
    const char *domain; /* OPEN: the same; "" when the target is not TARGET_MX */
    unsigned index;
    const struct outcome *outcome; /* SETTLE: until the next call */
    const char *site; /* SETTLE: as sched_session_site(); NULL: expired, or nowhere */
    bool expired;
    int64_t due_ms;
    unsigned attempts;
};
bool sched_next(struct sched *s, struct sched_action *action);
/* To be called once in each turn, before sched_next(): does a piece of the work for
 * messages with very many destinations. True: there is more; another turn should
 * follow. */
enum { SCHED_ENTRIES_PER_TURN = 1000 };
bool sched_work(struct sched *s);
/* The time at which something will be due without an event; INT64_MAX = never. */
int64_t sched_wake_ms(const struct sched *s);

/* --- Questions and commands ------------------------------------------------------- */

enum sched_place { SCHED_UNKNOWN, SCHED_INCOMING, SCHED_ACTIVE, SCHED_DEFERRED };
struct sched_state {
    enum sched_place place;
    int64_t due_ms;
    unsigned attempts;
    bool loading;    /* ACTIVE, but not yet answered by sched_loaded() */
    bool backlogged; /* its site wakes it when it lives, perhaps before due_ms */
    bool excess;     /* beyond the share of its site, which wakes it; ignore due_ms */
    bool lacks_room; /* no room now for it, or for mail before it; ignore due_ms */
};
struct sched_state sched_find(const struct sched *s, struct id id);
/* Due now; loading it revives dead sites. Does nothing for active mail, which is being
 * tried. False: unknown. */
bool sched_retry(struct sched *s, struct id id);
/* The same, due at due_ms unless it is sooner anyway. */
bool sched_retry_at(struct sched *s, struct id id, int64_t due_ms);
/* All mail is due now and no site is dead. */
void sched_retry_all(struct sched *s);
/* Forgets what the site of that key (as struct sched_site has it, case does not matter)
 * has taught, under all transports: rate, ceiling, latency, window, death, suspended
 * demands, the account's limit there. False: there is no such site. */
bool sched_forget_limits(struct sched *s, const char *key)
    __attribute__((warn_unused_result));
/* Forgets a message that is not active (removed or held by the operator). False: active
 * or unknown. */
bool sched_forget(struct sched *s, struct id id);
/* The same for active mail that no session has: its attempt ends without a verdict, and
 * the owner hears no more of it. False: a session has some of it, its verdicts are on
 * their way, or it is being loaded; ask again. */
bool sched_withdraw(struct sched *s, struct id id) __attribute__((warn_unused_result));
/* After a change of the routes: looks at the recipients of an active message that wait,
 * from *slot (0 at first) on, at most `most` of them, until one is astray: true then. *slot
 * is UINT_MAX when all have been seen. target: where it waits. */
typedef bool sched_is_astray(void *context, unsigned index,
                             const struct target *target);
bool sched_seek_astray(const struct sched *s, struct id id, unsigned *slot,
                       unsigned most, sched_is_astray *is_astray, void *context)
    __attribute__((warn_unused_result));
/* The message leaves its sites, to enter them again as if it had just been loaded. */
enum sched_again {
    SCHED_AGAIN_NOW,   /* the answer to SCHED_LOAD follows; it has room, and keeps it */
    SCHED_AGAIN_LATER, /* ask again in the next turn */
    SCHED_AGAIN_NEVER /* it is not active; or sessions have had some of it, and SCHED_WAIT
                        * comes when these have ended */
};
enum sched_again sched_enter_again(struct sched *s, struct id id)
    __attribute__((warn_unused_result));
/* The lifetime of active mail may be over: recipients that no session has or will have
 * soon, and whose lifetime is over (0 is none), are settled, and fail. When to ask again:
 * now_ms, after the actions that there are; INT64_MAX: never. */
int64_t sched_overdue(struct sched *s, struct id id)
    __attribute__((warn_unused_result));
/* Recipients of active mail that no session has or will have soon are settled as deferred:
 * their sender is to be notified. False: not now, or more are left; ask again. */
bool sched_interrupt(struct sched *s, struct id id) __attribute__((warn_unused_result));
/* The number of transactions that wait with the message at its most crowded site, of
 * the sites of its first four domains. 0: it does not wait for its turn: it has left,
 * waits for its next attempt, or its sites are dead or wait for a rate. Unless it is in
 * memory, all new mail on disk counts. */
size_t sched_crowd(const struct sched *s, struct id id);
struct sched_counts {
    size_t incoming, active, deferred, sessions, destinations, sites, dead;
    size_t idle;       /* sessions that are idle */
    size_t recipients; /* of active messages */
    size_t active_limit, recipient_limit, session_limit;
    uint64_t direct_greetings; /* of sites found by MX, since startup */
    uint64_t sessions_opened;  /* since startup */
};
struct sched_counts sched_count(const struct sched *s);
/* The limit that keeps a site from more sessions or mail now; reported by the function
 * that decides. */
enum sched_bound {
    SCHED_BOUND_NONE,            /* all that waits is being served */
    SCHED_BOUND_DEAD,            /* none of its servers answers */
    SCHED_BOUND_TOKEN,           /* it lacks a token to log in; reason says more */
    SCHED_BOUND_QUOTA,           /* a quota, or the provider's limit, is used up */
    SCHED_BOUND_PROBE,           /* it was dead; one session tries */
    SCHED_BOUND_TRANSPORT_DELAY, /* transport_rate_delay */
    SCHED_BOUND_RATE_DELAY,      /* destination_rate_delay */
    SCHED_BOUND_RATE,            /* destination_rate */
    SCHED_BOUND_LEARNT_RATE,     /* its replies asked us to slow down */
    SCHED_BOUND_LEASE_RATE,      /* our part of the group's rate */
    SCHED_BOUND_WINDOW,
    SCHED_BOUND_CEILING,   /* it refused more sessions */
    SCHED_BOUND_LEASE,     /* our part of the group's sessions */
    SCHED_BOUND_PROOF,     /* as many as it may have, and none has proven the demand */
    SCHED_BOUND_CONGESTED, /* a session waits long for its greeting */
    SCHED_BOUND_PAUSE,     /* after a session that failed */
    SCHED_BOUND_BUDGET,    /* delivery_session_limit is reached */
    SCHED_BOUNDS
};
const char *sched_bound_word(enum sched_bound bound);
enum { SCHED_MEMBERS_MAX = 5 };
struct sched_site {
    const char *key;
    bool is_direct;                           /* found by MX, not named by a route */
    const struct transport_params *transport; /* its settings */
    const struct target *target;              /* the same, and where it leads */
    int window, sessions, limit;
    int busy;                 /* sessions that carry mail */
    int idle;                 /* found no mail to carry */
    int greeting;             /* not yet greeted */
    int ceiling;              /* sessions it was seen to accept; 0 = not known */
    int64_t ceiling_probe_ms; /* one more is tried then; INT64_MAX: not by time */
    int destinations;
    const char *members[SCHED_MEMBERS_MAX]; /* some of them; NULL behind the last */
    size_t waiting;                         /* recipients */
    int64_t waits_s;                        /* time in memory of the next message */
    size_t backlogged;        /* messages on disk until it lives or has space */
    int64_t crowded_since_ms; /* alive, and has had a backlog since then; 0: has none */
    int64_t latency_ms;
    unsigned rate;         /* learnt, messages in 1000 s; 0 = none */
    int64_t rate_since_ms; /* the first refusal since there was none */
    unsigned failures;     /* sessions that never greeted since the last that did */
    bool probing;          /* perhaps alive again: one session tries */
    int64_t dead_until_ms; /* 0 = alive */
    int64_t dead_since_ms; /* it has not worked since then; 0 = it works */
    enum sched_bound bound;
    int64_t bound_until_ms; /* INT64_MAX: until an event */
    uint32_t quota;         /* the one that is used up, and its period; 0: none */
    const char *quota_period;
    int hosts;                    /* that share its limits; 0: none */
    int lease_tokens;             /* ours of the transactions in five seconds, and */
    int shared_tokens;            /* all of them; 0: no rate */
    int lease_sessions;           /* ours of the sessions */
    const struct outcome *reason; /* of its death, or why it lacks a token; NULL */
};
/* Ids of removed messages stay in backlogs until they are looked up; this is the most
 * that one question or step looks up. */
enum { SCHED_BACKLOG_CHECKED = 1000 };
/* A step of a sweep over all sites; false: it was the last one. */
bool sched_backlog_sweep(struct sched *s);
/* Nothing was removed since a sweep began that has ended. */
bool sched_backlog_is_swept(const struct sched *s);
/* A site that has died or works again since the last call, the oldest first; false:
 * there is none. It is dead from its first death until a transaction shows that it works,
 * however often it is probed meanwhile. */
enum {
    SITE_CHANGES_MAX = 64, /* that wait; further ones are only counted */
    SITE_CHANGE_NAME_MAX = 256
};
struct site_change {
    char site[SITE_CHANGE_NAME_MAX]; /* its key, cut if it is longer */
    bool is_dead;
    int64_t dead_ms;    /* works again: how long it was dead; else 0 */
    struct outcome why; /* of its death */
};
bool sched_site_change(struct sched *s, struct site_change *out);
/* Few members of every site, in no order: for sums over very many sites, and to choose
 * those that sched_look() then shows in ten times the time. */
struct site;
struct sched_glance {
    struct site *site; /* for sched_look(), in the same turn */
    const char *key;
    size_t waiting, backlogged;
    int sessions, busy;
    bool fails, is_crowded; /* dead_since_ms, crowded_since_ms are not 0 */
    bool is_slowed;         /* rate is not 0 */
    bool is_shared;         /* with other hosts of the group */
};
void sched_glance(const struct sched *s,
                  void (*each)(void *context, const struct sched_glance *glance),
                  void *context);
/* Its backlog is as sched_glance() has counted it. */
void sched_look(const struct sched *s, struct site *site,
                void (*each)(void *context, const struct sched_site *site),
                void *context);
/* All members of every site in steps, for a daemon that has other work: sites that are
 * there from begin to end are met once, others perhaps. False: none is left. A walk may outlive the
 * scheduler, and finds none then. */
struct sched_walk;
struct sched_walk *sched_walk_begin(struct sched *s);
bool sched_walk_step(struct sched_walk *walk, size_t most,
                     void (*each)(void *context, const struct sched_site *site),
                     void *context);
/* The same for sites that are not to be seen: adds to *passed. */
bool sched_walk_pass(struct sched_walk *walk, size_t most, size_t *passed);
void sched_walk_end(struct sched_walk **walk); /* NULL inside: nothing */

/* The learnt state of sites, to be kept over a restart. each is called for one site at
 * a time, which is valid during the call; sched_recall() takes them back before the
 * first mail is added. */
struct site_state;
void sched_remember(const struct sched *s,
                    void (*each)(void *context, const struct site_state *site),
                    void *context);
void sched_recall(struct sched *s, const struct site_state *site);

/* Likewise the use of the quotas of next hops; key: as route_key() has it, without a
 * domain. Their times are those of a clock that no step sets; sched_quota_ahead_ms()
 * has the lead of the other one. */
struct sched_quota {
    const char *key;
    const struct quota *quota; /* of today; NULL: no mail is on its way there now */
    const struct quota_use *use;
};
void sched_quotas(const struct sched *s,
                  void (*each)(void *context, const struct sched_quota *quota),
                  void *context);
/* That clock: never set, at most a second off. Before the first mail is added, and
 * before the use is restored. Else a clock that is set forward is taken for time. */
void sched_quota_clock(struct sched *s, int64_t (*steady_ms)(void *context),
                       void *context);
/* After that. stepped: the clock was set by a second or more, ahead or back; returns by how
 * much births of mail move, which is as old as before, or 0. Births that are not in the
 * scheduler are the caller's, who gives the context of that clock. It calls nothing of this
 * header. */
void sched_on_step(struct sched *s, int64_t (*stepped)(void *context));
/* Advances the scheduler's time, as events do: a step until now calls `stepped`. */
void sched_tick(struct sched *s);
bool sched_has_quotas(const struct sched *s);
int64_t sched_quota_ahead_ms(const struct sched *s);
/* The targets that pause because a provider has said that the account has reached its
 * limit: as route_key() has them, and how long yet. */
void sched_quota_pauses(const struct sched *s,
                        void (*each)(void *context, const char *target,
                                     int64_t left_ms),
                        void *context);
/* The use of a next hop, to be restored or (with the time of now) forgotten. */
struct quota_use *sched_quota_recall(struct sched *s, struct text key);
bool sched_quota_reset(struct sched *s, struct text key);

/* --- A group of hosts -------------------------------------------------------------- */

/* Hosts that share limits, and the sites that share them: logins always, addresses
 * perhaps. Without a group, as without this call, nothing is shared. */
struct sched_group {
    int members, lost;     /* we are one; lost ones may still use their parts */
    int late;              /* members that may be lost: not seen for some seconds */
    int index;             /* our rank among all of them, from 0 */
    bool has_bank;         /* it answers, as far as is known */
    bool shares_addresses; /* else sites where we log in alone */
};
void sched_members(struct sched *s, const struct sched_group *group); /* NULL: none */

/* The sites whose limits the group shares. */
size_t sched_shared_sites(const struct sched *s);

/* A site that asks the bank. site: as in site_memory.h; the same on all hosts. */
struct sched_wish {
    const char *site;
    bool is_account; /* where we log in */
    const struct bank_question *question;
};
/* Hands out wishes, `most` at a time; sched_granted() answers each. Returns their number.
 * To be called after sched_next() has returned false. */
size_t sched_wishes(struct sched *s, size_t most,
                    void (*each)(void *context, const struct sched_wish *wish),
                    void *context);
/* NULL: there was no answer. */
void sched_granted(struct sched *s, const char *site, const struct bank_grant *grant);

/* The wait of an active message's recipients, by destination. */
struct sched_wait {
    const char *destination;
    unsigned waiting, taken; /* recipients; taken: a session has them */
    unsigned deferred;       /* until the next attempt */
    int64_t expires_ms;
    const struct sched_site *site;
};
/* False: unknown. Says nothing of a message that is not active: see sched_find. */
bool sched_explain(const struct sched *s, struct id id,
                   void (*each)(void *context, const struct sched_wait *wait),
                   void *context);
/* Calls each once for the site of a next hop as it is now, or not at all if nothing is
 * known of it. *checked_most: ids of backlogs that may still be looked up for this
 * question. */
void sched_find_site(const struct sched *s, const struct target *target,
                     struct text domain, size_t *checked_most,
                     void (*each)(void *context, const struct sched_site *site),
                     void *context);
/* The name of the session's site; borrowed until the next call about the session. */
const char *sched_session_site(const struct sched_session *session);
/* Whether the session is one of the site's; within the callback of the two above. */
bool sched_session_is_at(const struct sched_session *session,
                         const struct sched_site *site);
/* The oldest known messages, oldest first, at most `most` of them; returns their
 * number. */
size_t sched_oldest(const struct sched *s, struct id *ids, size_t most);
/* The number of messages of the same age that are due and loaded before this one, which
 * waits. Looks at every message: some milliseconds for a million. */
size_t sched_ahead(struct sched *s, struct id id);

#endif
