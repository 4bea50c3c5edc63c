/* Declarations that client_connection*.c share. No other file includes this. */
#ifndef SMTP_DELIVERY_CLIENT_CONNECTION_INTERNAL_H
#define SMTP_DELIVERY_CLIENT_CONNECTION_INTERNAL_H

#include "base/loop/loop.h"
#include "smtp/delivery/client_connection.h"
#include "smtp/client/reader.h"
#include "smtp/deadline.h"

/* Two time-outs exclude each other: `deadline` is that of the awaited reply, the
 * time-out of the socket that of the next byte of content. Within content
 * `content_timer` demands the least rate in addition: a peer that takes a byte now and
 * then would otherwise hold the session as long as it likes. */
struct client_connection {
    struct client_connection_settings settings;
    char *hostname, *redirect_to, *site;
    struct transcript *transcript; /* NULL: nobody keeps it */
    int64_t begun_ms;              /* since 1970 */
    client_connection_happened *on_event;
    void *context;
    struct net_connection *connection; /* NULL: closed */
    struct client *client;
    bool pumping, closed;
    bool lost;     /* the peer has closed */
    bool securing; /* from CLIENT_SECURE to the end of the handshake */
    char tls[160];
    unsigned turn;     /* client_turn() of the deadline */
    int64_t turned_ms; /* monotonic: its beginning */
    struct loop_timer deadline;
    /* The least rate within content: bytes sent so far, and taken at the last check. */
    struct deadline content_deadline;
    struct deadline_rules content_rules;
    int64_t said, taken;
    struct loop_timer content_timer;
    struct loop_task task;
    void (*pump)(void *context); /* the work of task */

    const struct envelope *envelope; /* of the mail under way */
    struct id mails[2];        /* sent and not done: the one under way, and the next */
    struct outgoing *forms[2]; /* of these; NULL: as stored */
    unsigned mail_count;
    bool in_content;
    struct reader reader;
    struct downgrade *downgrade; /* while the content is scanned or converted */
    enum downgrade_verdict verdict;
    struct signing_pass *signing; /* of the mail under way; NULL: unsigned */
    bool hashing;                 /* the content is read for it */
    struct loop_task scan;
};

/* A crash from now on is attributed to the mail under way. */
struct id client_connection_enter(struct client_connection *s);
void client_connection_leave(struct client_connection *s, struct id before);
/* Sends the machine's output. */
void client_connection_flush(struct client_connection *s);

/* --- client_connection_content.c: reads, signs, converts and sends content ---------- */

/* Before MAIL: reads all content, a part in each turn, if it may have to be converted,
 * or is to be signed. client_prepared() is called then, or client_abandon(). */
void client_connection_prepare(struct client_connection *s);
/* Only mail that is ours. */
bool client_connection_signs(const struct client_connection *s,
                             const struct envelope *e);
void client_connection_start_content(struct client_connection *s);
/* Content goes into the socket's buffer up to a limit; NET_DRAINED continues. So a
 * large message takes a bounded amount of memory, however slowly the peer reads. */
void client_connection_pump_content(struct client_connection *s);
/* Bytes that the socket has taken since the last call; the kernel holds some of them. */
int64_t client_connection_newly_taken(struct client_connection *s);
/* Each byte that is taken begins the time-out anew; this deadline it does not move. */
void client_connection_watch_content(struct client_connection *s);
void client_connection_forget_content(struct client_connection *s);

#endif
