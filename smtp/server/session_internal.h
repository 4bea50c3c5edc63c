/* What session.c, session_tls.c and session_crowd.c share; nobody else includes it. */
#ifndef SMTP_SERVER_SESSION_INTERNAL_H
#define SMTP_SERVER_SESSION_INTERNAL_H

#include "base/loop/loop.h"
#include "smtp/server/normalize_newlines.h"
#include "smtp/server/session.h"

enum { SESSION_TLS_SHARE = 4 }; /* an untrusted client has a fourth of the places */

enum session_handshake {
    SESSION_NO_HANDSHAKE, /* not begun, or over */
    SESSION_AWAITS_HELLO, /* the client may begin its handshake; nothing came yet */
    SESSION_SHAKES
};

struct server_session {
    struct server server;
    struct session_host *host;
    struct session_rules *rules;
    const struct route_table *routes; /* whose peers are known; perhaps gone */
    char *defrag_host;                /* see server.h */
    struct net_connection
        *connection; /* NULL: gone while its message is being stored */
    struct queue_draft *draft;
    struct net_address peer;
    struct server_session *prev, *next;
    struct loop_task hanging_up; /* of one that was refused */
    char *held;                  /* a reply that is said when the penalty is over */
    struct loop_timer penalty;
    struct deadline patience;
    struct loop_timer slow;
    int64_t timeout_ms; /* as set last */
    bool trusted;
    struct session_options options;
    struct auth_attempt *login; /* NULL before the first AUTH */
    bool normalizes;            /* all its input, on its way to the machine: */
    struct newlines_stream newlines;
    struct buffer normalized;
    enum session_handshake handshake;
    int64_t handshake_ms; /* when it began, monotonic */
    char *greeting;       /* said by TLS when the handshake is over */
    struct server_session *shaking_prev, *shaking_next; /* in the host's list */
    int64_t active_ms;                            /* it has said something, monotonic */
    struct server_session *idle_prev, *idle_next; /* in the host's list */
    bool tls;                                     /* counted in tls_count */
    bool ended;                                   /* the peer sends no more */
    bool storing; /* the queue has its message and will call */
    bool pumping;
};

/* --- session.c ------------------------------------------------------------------- */

/* What the machine has said goes to the connection, if there still is one. */
void session_send(struct server_session *s);
/* The connection goes; the session stays while the queue may still call it. */
void session_hang_up(struct server_session *s, bool politely);
/* The only end; its connection is gone. */
void session_end(struct server_session *s);
void session_time_out(struct server_session *s);

/* --- session_crowd.c ------------------------------------------------------------- */

/* It may relay or has logged in, is one of our hosts, speaks LMTP or came by a Unix
 * socket: it never gives way, and is not hurried. */
bool session_is_trusted(const struct server_session *s);
/* Under stress, and untrusted. */
bool session_is_hurried(const struct server_session *s);
/* timeout_ms (0 = none), or less when it is hurried. */
int64_t session_hurry_ms(const struct server_session *s, int64_t timeout_ms);
struct deadline_rules session_patience(const struct server_session *s);
/* Looks again when the client has had its time. */
void session_be_patient(struct server_session *s);
/* The time-out that fits what it does now. */
void session_set_timeout(struct server_session *s);
/* The row of idle ones: it has just said something, and goes to the end. */
void session_enter_row(struct server_session *s);
void session_leave_row(struct server_session *s);
/* The untrusted session, of those by TLS or of all, that is idle longest and whose
 * client has at least `others` sessions; NULL: none gives way. */
struct server_session *session_find_idle(const struct session_host *host, bool tls,
                                         size_t others);
/* It hears 421 and ends. */
void session_give_way(struct server_session *s);

/* --- session_tls.c --------------------------------------------------------------- */

/* Nobody can begin TLS now: there is no place and nobody gives way. */
bool session_tls_is_full(const struct server_session *s);
/* From now on the client speaks TLS: what it has sent in clear is forgotten. */
void session_await_hello(struct server_session *s);
/* The same from the first byte: what has come is TLS already. */
void session_await_first_hello(struct server_session *s);
/* 1 or more: how long the handshake may still take. */
int64_t session_handshake_left_ms(const struct server_session *s);
/* While it awaits the hello: an event of its connection. The session may end. */
void session_await_event(struct server_session *s, enum net_event event);
/* NET_SECURED, or the end of the session. */
void session_end_handshake(struct server_session *s);
/* Its place is free; the session ends. */
void session_leave_tls(struct server_session *s);

#endif
