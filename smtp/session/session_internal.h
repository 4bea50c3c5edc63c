/* Declarations that session*.c share. No other file includes this. */
#ifndef SMTP_SESSION_SESSION_INTERNAL_H
#define SMTP_SESSION_SESSION_INTERNAL_H

#include "base/loop/loop.h"
#include "smtp/server/normalize_newlines.h"
#include "smtp/session/session.h"

enum {
    SESSION_TLS_SHARE = 4
}; /* an untrusted client gets at most a fourth of the places */

enum session_handshake {
    SESSION_NO_HANDSHAKE, /* not begun, or complete */
    SESSION_AWAITS_HELLO, /* no byte of the handshake received yet */
    SESSION_SHAKES
};

struct server_session {
    struct server server;
    struct session_host *host;
    struct session_rules *rules;
    const struct route_table
        *routes;       /* of the look-up of peers; may be freed, only compared */
    char *defrag_host; /* see server.h */
    struct net_connection
        *connection; /* NULL: closed while its message is being stored */
    struct queue_draft *draft;
    struct net_address peer;
    struct server_session *prev, *next;
    struct loop_task hanging_up; /* of a refused session */
    int64_t sealed_us;           /* loop_clock_us() at the end of content */
    bool logged_in;              /* is counted */
    char *held;                  /* a reply delayed until the penalty is over */
    struct loop_timer penalty;
    struct quotas_claim *claim; /* of the transaction's recipients; NULL: none */
    struct deadline patience;
    struct loop_timer slow;
    int64_t timeout_ms; /* as set last */
    bool trusted;
    struct session_options options;
    struct auth_attempt *login; /* NULL before the first AUTH */
    bool normalizes;            /* all input passes through the next two */
    struct newlines_stream newlines;
    struct buffer normalized;
    enum session_handshake handshake;
    int64_t handshake_ms; /* when it began, monotonic */
    char *greeting;       /* sent by TLS after the handshake */
    struct server_session *shaking_prev, *shaking_next; /* in the host's list */
    int64_t active_ms;                            /* of its last input, monotonic */
    struct server_session *idle_prev, *idle_next; /* in the host's list */
    struct id stored; /* the message to which the reply waits */
    bool paced;
    struct server_session *paced_prev, *paced_next; /* in the host's list */
    bool tls;                                       /* counted in tls_count */
    bool ended;                                     /* the peer sends no more */
    bool storing; /* the client waits for the reply to its message */
    bool pumping;
    unsigned expanded; /* members of aliases in this turn */
    struct loop_task rest;
    /* A posted message has these four (session_post.c); NULL: there is a connection. */
    void (*durable)(struct server_session *s);
    void (*answered)(struct server_session *s, const struct outcome *refusal);
    const struct senders *senders; /* instead of those of the rules */
    struct text mark;              /* of its envelope */
};

/* --- session.c ------------------------------------------------------------------- */

/* Passes the replies of the machine to the connection, if it is still open. */
void session_send(struct server_session *s);
/* Closes the connection; the session stays while the queue may still call it. */
void session_hang_up(struct server_session *s, bool politely);
/* The content is complete: names, seals and commits the message. */
void session_store(struct server_session *s);
void session_describe_client(const struct net_address *peer,
                             char out[SERVER_CLIENT_MAX]);
/* The only end of a session; its connection is closed. */
void session_end(struct server_session *s);

/* Replies to the message of the session and goes on with it; refusal NULL: it is
 * stored. */
void session_answer(struct server_session *s, const struct outcome *refusal);

/* The rest of the time for a TLS handshake, at least 1. */
int64_t session_handshake_left_ms(const struct server_session *s);

/* --- session_gate.c -------------------------------------------------------------- */

/* Answer ADMIT and CHECK. */
void session_admit(struct server_session *s);
void session_check(struct server_session *s);
/* The transaction is over: a message with that number of recipients is stored, or (0)
 * none is. */
void session_settle(struct server_session *s, unsigned sent);

/* --- session_load.c -------------------------------------------------------------- */

/* The message, which is stored, is with the manager. True: session_answer() is called
 * later. */
bool session_pace(struct server_session *s, struct id id);
/* The session waits for its turn no longer; false: it did not wait. */
bool session_pace_leave(struct server_session *s);
/* The hook of LOOP_ANSWER_SESSIONS; context: the host. */
void session_pace_some(void *host);

/* True: the client may relay, has logged in, is one of our hosts, or uses LMTP or a Unix
 * socket. Such a session is never ended for another and has no stress limits. */
bool session_is_trusted(const struct server_session *s);
/* True: untrusted, under stress. */
bool session_is_hurried(const struct server_session *s);
/* timeout_ms (0 = none), or less for a hurried session. */
int64_t session_hurry_ms(const struct server_session *s, int64_t timeout_ms);
struct deadline_rules session_patience(const struct server_session *s);
/* Starts the timer of the client's deadline. */
void session_arm_deadline(struct server_session *s);
/* Sets the time-out for the current stage. */
void session_set_timeout(struct server_session *s);
/* The session has got input and goes to the end of its list of idle sessions. */
void session_enter_row(struct server_session *s);
/* Before s->tls changes. */
void session_leave_row(struct server_session *s);
/* The untrusted session, of those with TLS or of all, that is idle longest and whose
 * client has at least `others` sessions; NULL: none. */
struct server_session *session_find_idle(struct session_host *host, bool tls,
                                         size_t others);
/* Sends 421 and ends the session. */
void session_give_way(struct server_session *s);

#endif
