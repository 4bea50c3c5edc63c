/* The scheduler: who is next. Pure: (event, now) -> actions; no I/O, no clock.
 *
 * Vocabulary is Postfix's (doc/scheduler.md): a *destination* is a queue of *entries*
 * (recipients of one message for one next hop) with a *window* of allowed parallel
 * sessions. Beyond Postfix, sessions come first and mail is bound late: SCHED_OPEN asks
 * for a session, sched_take() gives it mail once it has greeted, so a connection that
 * fails costs no message an attempt.
 *
 * A message's way: sched_add (known, on disk) -> SCHED_LOAD when due and the active set
 * has space -> sched_loaded with its open recipients -> per recipient a verdict, through
 * a session (sched_settled) or by the scheduler itself (SCHED_SETTLE: dead site,
 * expired) -> SCHED_WAIT (leaves memory, due again later) or SCHED_FINISH (no recipient
 * is open).
 *
 * When now_ms goes back by a second or more, everything that waits moves along.
 * The owner feeds events with the loop's time and then calls sched_next() until it is
 * false (sched_work() once before); and again at sched_wake_ms(). */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "base/id.h"
#include "base/outcome.h"
#include "sched/route/route.h"

struct sched;
struct sched_message;
struct sched_session;

/* New mail and deferred mail that is due are loaded in turn; when the active set is
 * full new mail goes first, three times in a row at most. */
struct sched_settings {
    int active_limit;  /* messages in memory, 20000 */
    int session_limit; /* sessions out in all, 500; with idle ones twice that */
    int site_share;    /* of the active set that one site may have, percent; 0 = all */
    uint64_t seed;     /* for jitter */
};

struct sched *sched_new(const struct sched_settings *settings);
void sched_free(struct sched **s);
/* A reload. */
void sched_change(struct sched *s, const struct sched_settings *settings);
/* And of the routes: what waits for a next hop to which none of them leads any more is
 * due now, to be routed anew; so is, at the end of its round, what is in memory for it.
 */
void sched_rerouted(struct sched *s, int64_t now_ms, const struct route_table *routes);
/* From now on neither SCHED_LOAD nor SCHED_OPEN: what runs comes to its end. For good.
 */
void sched_drain(struct sched *s);

/* --- Events ---------------------------------------------------------------------- */

/* A durable message. attempts: rounds already made (deferred before). fresh mail has
 * due_ms <= now. Adding a known id does nothing. */
void sched_add(struct sched *s, int64_t now_ms, struct id id, int64_t due_ms,
               unsigned attempts);

struct sched_recipient {
    unsigned index;              /* the owner's */
    const struct target *target; /* copied into the destination if that is new */
    struct text domain;          /* of the recipient, for the key */
};
/* Whose mail it is, and how much: senders take turns at a site, a class has its share
 * more or less of them. */
enum sched_class { SCHED_NORMAL, SCHED_URGENT, SCHED_BULK, SCHED_CLASSES };
struct sched_mail {
    void *owner;      /* comes back in actions */
    int64_t birth_ms; /* decides expiry */
    bool null_sender; /* chooses the bounce lifetime */
    enum sched_class class;
    uint64_t sender; /* a hash of who is to have his turn */
    uint64_t size;   /* of the content, bytes */
};
/* Of an envelope sender: what VERP and extensions put behind a "+" or "=" in the local
 * part is cut off, so that a list is one sender. The null sender is one, too. */
uint64_t sched_sender(struct text address);
/* Answers SCHED_LOAD with the recipients that are not done. count > 0. NULL: the sites
 * it is for have more than their share of a full active set; it is as before the load,
 * and comes again when they have less. */
struct sched_message *sched_loaded(struct sched *s, int64_t now_ms, struct id id,
                                   const struct sched_mail *mail,
                                   const struct sched_recipient *recipients,
                                   size_t count);
/* The same in pieces, for a message with very many recipients: each is added, some in a
 * turn, and then all are loaded, or dropped. sched_loaded_all() takes the loading. */
struct sched_loading *sched_loading_new(size_t most);
void sched_loading_add(struct sched *s, int64_t now_ms, struct sched_loading *loading,
                       const struct sched_recipient *recipient);
void sched_loading_drop(struct sched *s, int64_t now_ms,
                        struct sched_loading **loading);
struct sched_message *sched_loaded_all(struct sched *s, int64_t now_ms, struct id id,
                                       const struct sched_mail *mail,
                                       struct sched_loading **loading);
/* Answers SCHED_LOAD: gone, held, damaged, or nothing open. */
void sched_unloaded(struct sched *s, int64_t now_ms, struct id id);

/* What a greeted session may carry in one transaction: open recipients of one message.
 * False: nothing waits for it (it may say QUIT, or keep the connection for a moment and
 * ask again: the session still counts in the window until sched_session_ended). indexes
 * is valid until the work is settled. While one work waits for its last verdicts a
 * session may take a second one, whose verdicts come after those of the first. */
struct sched_work {
    struct sched_message *message;
    void *owner;
    const unsigned *indexes;
    size_t count;
};
bool sched_take(struct sched *s, int64_t now_ms, struct sched_session *session,
                struct sched_work *work);
/* Whether sched_take would succeed as of the last event: cheap, for sessions kept open.
 * One that got false is idle: it still counts in its window and is given new work
 * before another is opened there, but not in session_limit, so that it stops nobody
 * elsewhere. */
bool sched_has_work(const struct sched *s, const struct sched_session *session);
/* The owner of a message that waits where the session leads, the next one perhaps;
 * NULL: none does. */
void *sched_session_first(const struct sched_session *session);

/* The servers of a session's domain are known, before it connects: key names the set
 * (sched/site_key.h). Domains with the same set share one site, to which all that
 * waits for the domain moves. False: that site has no space for the session, or is dead,
 * or the session is one of settings that are no more; end it, without trouble. */
bool sched_session_found(struct sched *s, int64_t now_ms, struct sched_session *session,
                         struct text key) __attribute__((warn_unused_result));

/* The health of a server address, of whatever site: greeted after service_ms, or failed
 * (it refused, never answered, or hung up). See sched/limits/host.h. */
void sched_host_good(struct sched *s, int64_t now_ms, struct text address,
                     int64_t service_ms);
void sched_host_bad(struct sched *s, int64_t now_ms, struct text address);
/* The order in which a new session tries them: hosts_order(). */
void sched_hosts_order(struct sched *s, int64_t now_ms, const struct text *addresses,
                       const int *groups, size_t count, size_t *order);

/* What the host that has greeted takes (RFC 9422): for each sched_take from now on,
 * until it is said again, of another connection. */
struct session_limits {
    unsigned recipients; /* in a transaction; 0 = as the transport says */
    unsigned mails;      /* over this connection; 0 = no limit */
};
void sched_session_limit(struct sched_session *session,
                         const struct session_limits *limits);

/* It has carried as many as the transport or the host allows: sched_take will say no
 * for ever. */
bool sched_session_is_spent(const struct sched_session *session);

/* A verdict for one recipient of the session's oldest work. DEFERRED with BLAME_SITE is
 * negative feedback for the destination, DEFERRED with BLAME_MESSAGE none, others
 * positive (once per work, the worst counts). */
void sched_settled(struct sched *s, int64_t now_ms, struct sched_session *session,
                   unsigned index, const struct outcome *outcome);
/* The work taken last is not carried after all: outcome for all its recipients. */
void sched_waive(struct sched *s, int64_t now_ms, struct sched_session *session,
                 const struct outcome *outcome);

/* The session is over; every recipient taken must be settled before. trouble NULL = a
 * normal end. DEFERRED: it never greeted (all addresses tried): negative feedback; a
 * destination with no greeted session left is dead at once (an adaptive one that has
 * greeted: after the fifth such end in a row), its mail is settled with trouble.
 * FAILED: nobody can ever deliver there (NXDOMAIN, null MX): its mail is settled
 * FAILED. */
void sched_session_ended(struct sched *s, int64_t now_ms, struct sched_session *session,
                         const struct outcome *trouble);

/* --- Actions --------------------------------------------------------------------- */

enum sched_verb {
    SCHED_LOAD,   /* id: answer with sched_loaded() or sched_unloaded(), now or later */
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
    bool expired;
    int64_t due_ms;
    unsigned attempts;
};
bool sched_next(struct sched *s, int64_t now_ms, struct sched_action *action);
/* To be called once in each turn, before sched_next(): a piece of what is to be done
 * for messages with very many destinations. True: there is more; a turn should follow.
 */
enum { SCHED_ENTRIES_PER_TURN = 1000 };
bool sched_work(struct sched *s, int64_t now_ms);
/* When something will be due without an event; INT64_MAX = never. */
int64_t sched_wake_ms(const struct sched *s);

/* --- Questions and commands ------------------------------------------------------- */

enum sched_place { SCHED_UNKNOWN, SCHED_INCOMING, SCHED_ACTIVE, SCHED_DEFERRED };
struct sched_state {
    enum sched_place place;
    int64_t due_ms;
    unsigned attempts;
    bool loading;    /* ACTIVE, but not yet answered by sched_loaded() */
    bool backlogged; /* its site wakes it, before due_ms perhaps: when it lives */
    bool excess;     /* ... when it has less of the active set; due_ms says nothing */
};
struct sched_state sched_find(const struct sched *s, struct id id);
/* Due now; dead destinations are revived when it is loaded. Nothing for active mail, it
 * is being tried. False: unknown. */
bool sched_retry(struct sched *s, int64_t now_ms, struct id id);
/* The same, but due then, unless it is sooner anyway. */
bool sched_retry_at(struct sched *s, int64_t now_ms, struct id id, int64_t due_ms);
/* Everything is due now and no destination is dead. */
void sched_retry_all(struct sched *s, int64_t now_ms);
/* Forgets a message that is not active (removed or held by the operator). False: it is
 * active or unknown. */
bool sched_forget(struct sched *s, struct id id);
struct sched_counts {
    size_t incoming, active, deferred, sessions, destinations, sites, dead;
    size_t idle; /* of the sessions */
    size_t active_limit, session_limit;
};
struct sched_counts sched_count(const struct sched *s);
/* What keeps a site from more sessions or mail now; told by what decides it. */
enum sched_bound {
    SCHED_BOUND_NONE,            /* nothing: all that waits is being served */
    SCHED_BOUND_DEAD,            /* no server of it answers */
    SCHED_BOUND_PROBE,           /* it was; one session tries */
    SCHED_BOUND_TRANSPORT_DELAY, /* transport_rate_delay */
    SCHED_BOUND_RATE_DELAY,      /* destination_rate_delay */
    SCHED_BOUND_RATE,            /* destination_rate */
    SCHED_BOUND_LEARNT_RATE,     /* it told us to slow down */
    SCHED_BOUND_WINDOW,
    SCHED_BOUND_CEILING,   /* it refused more sessions */
    SCHED_BOUND_CONGESTED, /* a session waits long for its greeting */
    SCHED_BOUND_PAUSE,     /* after a session that failed */
    SCHED_BOUND_BUDGET,    /* all sessions are out */
    SCHED_BOUNDS
};
const char *sched_bound_word(enum sched_bound bound);
enum { SCHED_MEMBERS_MAX = 5 };
struct sched_site {
    const char *key;
    const struct transport_params *transport; /* what is configured */
    int window, sessions, limit;
    int busy;                 /* sessions that carry mail */
    int idle;                 /* that asked for mail in vain */
    int greeting;             /* not yet greeted */
    int ceiling;              /* sessions it was seen to bear; 0 = not known */
    int64_t ceiling_probe_ms; /* then one more is tried; INT64_MAX: not by time */
    int destinations;
    const char *members[SCHED_MEMBERS_MAX]; /* some of them; NULL behind the last */
    size_t waiting;                         /* recipients */
    int64_t waits_s;   /* what is next there has waited so long in memory */
    size_t backlogged; /* messages on disk until it lives or has space */
    int64_t latency_ms;
    unsigned rate;         /* learnt, messages in 1000 s; 0 = none */
    unsigned failures;     /* sessions that never greeted, since one did */
    bool probing;          /* alive again, perhaps: one session tries */
    int64_t dead_until_ms; /* 0 = alive */
    int64_t dead_since_ms; /* it has not worked since then; 0 = it does */
    enum sched_bound bound;
    int64_t bound_until_ms;       /* INT64_MAX: until something happens */
    const struct outcome *reason; /* of its death; NULL */
};
/* Every site, in no order. */
void sched_sites(const struct sched *s,
                 void (*each)(void *context, const struct sched_site *site),
                 void *context);

/* What was learnt of sites, to be kept over a restart: told one by one, valid during
 * the call; and given back before the first mail is added. */
struct site_state;
void sched_remember(const struct sched *s,
                    void (*each)(void *context, const struct site_state *site),
                    void *context);
void sched_recall(struct sched *s, const struct site_state *site);

/* What the recipients of an active message wait for, by destination. */
struct sched_wait {
    const char *destination;
    unsigned waiting, taken; /* recipients; taken: a session has them */
    unsigned deferred;       /* until the next round */
    int64_t expires_ms;
    const struct sched_site *site;
};
/* False: unknown. Nothing is told of a message that is not active: see sched_find. */
bool sched_explain(const struct sched *s, struct id id,
                   void (*each)(void *context, const struct sched_wait *wait),
                   void *context);
/* The site of a next hop as it is now; each is called once, or not: nothing is known
 * of it. */
void sched_look(const struct sched *s, const struct target *target, struct text domain,
                void (*each)(void *context, const struct sched_site *site),
                void *context);
/* Whether it is one of the site; within the each of the two above. */
bool sched_session_is_at(const struct sched_session *session,
                         const struct sched_site *site);
/* Messages that are due and loaded before this one, which waits: of its age. It looks
 * at every message, some milliseconds for a million. */
size_t sched_ahead(struct sched *s, struct id id);

#endif
