/* What the files client*.c share. Nobody else includes this. */
#ifndef SMTP_CLIENT_INTERNAL_H
#define SMTP_CLIENT_INTERNAL_H

#include "smtp/client/client.h"
#include "smtp/dot.h"

enum { CLIENT_IN_FLIGHT_MAX = 128 }; /* steps that wait for their reply */

enum step_name {
    STEP_HANDSHAKE, /* nothing is asked or heard: the owner starts TLS */
    STEP_GREETING,
    STEP_EHLO,
    STEP_LHLO,
    STEP_HELO,
    STEP_STARTTLS,
    STEP_AUTH,
    STEP_RESPONSE, /* to a challenge of AUTH */
    STEP_RSET,
    STEP_MAIL,
    STEP_RCPT,
    STEP_DATA,
    STEP_BDAT,    /* all content in one chunk, without a reply to wait for before it */
    STEP_CHUNK,   /* that chunk's reply */
    STEP_LAST,    /* the empty chunk that ends it; then STEP_END */
    STEP_CONTENT, /* nothing is owed, but a refusal may come */
    STEP_END,
    STEP_NONE
};

enum extension {
    EXTENSION_DSN = 256,
    EXTENSION_CHUNKING = 512,
    EXTENSION_BINARYMIME = 1024,
    EXTENSION_PIPELINING = 1,
    EXTENSION_8BITMIME = 2,
    EXTENSION_SMTPUTF8 = 4,
    EXTENSION_SIZE = 8,
    EXTENSION_MT_PRIORITY = 16,
    EXTENSION_STARTTLS = 32,
    EXTENSION_XDEFRAG = 64
};

/* OPEN: no verdict yet; ACCEPTED: open, and the peer took its RCPT. */
enum recipient_state {
    RECIPIENT_OPEN,
    RECIPIENT_UNFIT,
    RECIPIENT_ACCEPTED,
    RECIPIENT_SETTLED
};

struct awaited_reply {
    enum step_name step;
    size_t which; /* RCPT: the recipient; END in LMTP: the first that it may be about */
};

/* Who gets the verdict that is being handed out. */
enum spread { SPREAD_NONE, SPREAD_ONE, SPREAD_UNFIT, SPREAD_ALL };

/* What MAIL says of the content. */
enum body { BODY_UNTOLD, BODY_8BITMIME, BODY_BINARYMIME };

/* A message in the machine. */
struct client_transaction {
    bool active;
    struct client_mail mail;
    unsigned char *states; /* enum recipient_state */
    size_t states_capacity;
    size_t accepted;
    bool utf8; /* goes with SMTPUTF8 */
    enum body body;
    uint64_t size;       /* of what goes; no less */
    bool preparing;      /* the owner finds out how to convert it */
    bool prepare_due;    /* and needs its event */
    bool chunked;        /* goes by BDAT; else by DATA */
    bool sending;        /* the owner is giving us its content */
    uint64_t chunk_left; /* bytes of the chunk that the peer waits for */
    bool mail_heard;     /* MAIL, or what stood for it, was answered */
    bool ended;          /* no reply will be about it any more */
    bool again;          /* for another connection: CLIENT_AGAIN is due */

    enum spread spread;
    size_t spread_at;
    struct outcome spread_outcome;
};

/* Logging in. */
struct client_auth {
    char offered[256]; /* what stands behind AUTH; "": it is not offered */
    unsigned tried;    /* bits (1 << sasl_mechanism) */
    bool begun;        /* sasl is there */
    bool working;
    struct sasl_client sasl;
};

struct client {
    struct client_settings settings;
    struct buffer output;
    struct reply reply; /* as far as it has come */

    enum step_name next; /* to ask */
    size_t next_rcpt;
    struct awaited_reply waiting[CLIENT_IN_FLIGHT_MAX]; /* a ring */
    size_t first, in_flight;
    unsigned turn;

    unsigned extensions;
    uint64_t size_max; /* 0 = not known */
    struct client_limits limits;
    bool greeted;
    bool secured;   /* by TLS */
    bool broken;    /* it was TLS that failed */
    bool lacks_tls; /* we tried to have it */
    bool secure_due, ready_due, content_due, early_due, over_due; /* events to come */
    bool over;
    bool has_trouble;
    struct outcome trouble;
    struct client_auth auth;

    /* The second is only there while the first waits for the answer to its dot. */
    struct client_transaction slots[2];
    unsigned front; /* of slots: that whose replies come */
    unsigned transactions;
    bool needs_reset; /* the peer may still be in the last transaction */
    struct dot_encoder dot;
};

/* A step: how it is asked, what its reply does. The reply that heard() gets is never
 * 421 and has the class that the step may have (see wants_more). */
struct step {
    const char *doing; /* for people */
    int timeout_s;     /* RFC 5321 §4.5.3.2 */
    bool barrier;      /* nothing is asked behind it until its reply is there */
    bool wants_more;   /* a 3yz reply is the good one, and 2yz is none */
    void (*ask)(struct client *c);
    void (*heard)(struct client *c, const struct awaited_reply *w,
                  const struct reply *reply);
};
extern const struct step client_steps[]; /* by enum step_name */

/* A line to the peer. */
void client_command(struct client *c, const char *verb, struct text argument);
/* The transaction whose replies come. */
struct client_transaction *client_front(struct client *c);
/* The queue of steps that wait for their reply. */
void client_put(struct client *c, enum step_name step, size_t which);
void client_take(struct client *c);
/* outcome for recipient at (ONE), or from recipient at on. */
void client_hand_out(struct client_transaction *l, enum spread to, size_t at,
                     struct outcome outcome);
/* No more is said or heard. What has no verdict yet gets this one; but a kept
 * connection that breaks or is refused at MAIL says nothing about the message, which
 * goes elsewhere. */
void client_end(struct client *c, struct outcome outcome);
void client_protocol_error(struct client *c, const char *doing, const char *what);
/* The same after a reply that leaves the peer able to listen. */
void client_end_politely(struct client *c, struct outcome outcome);
/* The peer has introduced itself: TLS, or what stands in its place. */
void client_introduced(struct client *c);
/* Bytes came where only TLS may come. */
void client_injected(struct client *c, size_t count);
/* Lost or timed out: whether TLS is to blame for it. */
bool client_is_securing(const struct client *c);
void client_ask_tls(struct client *c);
void client_heard_tls(struct client *c, const struct awaited_reply *w,
                      const struct reply *reply);
/* What follows the introduction and TLS: AUTH if we have a login, then it has greeted.
 */
void client_log_in(struct client *c);
void client_note_mechanisms(struct client *c, const struct reply *reply);
void client_present(struct client *c);
void client_respond(struct client *c);
void client_heard_auth_reply(struct client *c, const struct awaited_reply *w,
                             const struct reply *reply);
void client_auth_free(struct client *c);
/* From a refusal, before anybody sees it: some hosts repeat the line that they do not
 * like, and replies stand in logs and bounces. */
void client_hide_secrets(struct client *c);
/* The first recipient from at on that can be asked for, or the count of all. */
size_t client_next_rcpt(const struct client_transaction *l, size_t at);
/* All bytes of the chunk are said: now its reply is owed. */
void client_end_chunk(struct client *c);
/* The content is said: the lone dot, or what comes behind a chunk. */
void client_finish_content(struct client *c);

#endif
