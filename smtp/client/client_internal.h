/* Declarations that the files client*.c share. No other file includes this. */
#ifndef SMTP_CLIENT_CLIENT_INTERNAL_H
#define SMTP_CLIENT_CLIENT_INTERNAL_H

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
    STEP_BDAT,    /* all content in one chunk; no reply comes before the content */
    STEP_CHUNK,   /* that chunk's reply */
    STEP_LAST,    /* the empty chunk that ends it; then STEP_END */
    STEP_CONTENT, /* no reply is due, but a refusal may come */
    STEP_END,
    STEP_PROBE, /* a MAIL that no message follows */
    STEP_PROBE_RCPT,
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
    EXTENSION_XDEFRAG = 64,
    EXTENSION_REQUIRETLS = 2048
};

/* OPEN: no verdict yet; ACCEPTED: open, and the peer took its RCPT; LATER: open, and the
 * peer took others, but says that there are too many in this transaction. */
enum recipient_state {
    RECIPIENT_OPEN,
    RECIPIENT_UNFIT,
    RECIPIENT_ACCEPTED,
    RECIPIENT_LATER,
    RECIPIENT_SETTLED
};

struct awaited_reply {
    enum step_name step;
    size_t which; /* RCPT: the recipient; END in LMTP: the first it may be for */
};

/* The recipients that get the verdict. */
enum spread {
    SPREAD_NONE,
    SPREAD_ONE,
    SPREAD_UNFIT,
    SPREAD_ACCEPTED,
    SPREAD_LATER, /* no verdict: CLIENT_LATER */
    SPREAD_ALL
};

/* BODY of MAIL. */
enum body { BODY_NONE, BODY_8BITMIME, BODY_BINARYMIME };

/* A message in the machine. */
struct client_transaction {
    bool active;
    struct client_mail mail;
    unsigned char *states; /* enum recipient_state */
    size_t states_capacity;
    size_t accepted, later;
    struct outcome later_outcome; /* of the first of these */
    bool utf8;                    /* goes with SMTPUTF8 */
    enum body body;
    uint64_t size;       /* of the content sent; at least its size */
    size_t added;        /* bytes of signatures before the content; in size */
    bool preparing;      /* the owner finds out how to convert it, or signs it */
    bool converting;     /* the first of these */
    bool prepare_due;    /* CLIENT_PREPARE is due */
    bool chunked;        /* by BDAT; else by DATA */
    bool sending;        /* the owner passes its content */
    uint64_t chunk_left; /* bytes of the chunk that the peer waits for */
    bool mail_heard;     /* the reply to MAIL has come */
    bool ended;          /* no more replies come for it */
    bool unheard;        /* the connection has ended before a reply to its MAIL */

    enum spread spread;
    size_t spread_at;
    struct outcome spread_outcome;
};

/* Logging in. */
struct client_auth {
    char offered[256]; /* the parameters of AUTH; "": it is not offered */
    unsigned tried;    /* bits (1 << sasl_mechanism) */
    bool begun;        /* sasl is valid */
    bool working;
    struct sasl_client sasl;
};

struct client {
    struct client_settings settings;
    struct buffer output;
    struct reply reply; /* its lines so far */

    enum step_name next; /* the step to ask */
    size_t next_rcpt;
    struct awaited_reply waiting[CLIENT_IN_FLIGHT_MAX]; /* a ring */
    size_t first, in_flight;
    unsigned turn;

    unsigned extensions;
    uint64_t size_max; /* 0 = not known */
    struct client_limits limits;
    bool greeted;
    bool secured;   /* by TLS */
    bool broken;    /* TLS failed */
    bool lacks_tls; /* TLS was tried and refused, or failed before */
    bool secure_due, ready_due, content_due, early_due, over_due; /* events to come */
    bool probe_due;                                               /* CLIENT_PROBED */
    struct text probe_sender, probe_recipient;
    size_t probed_step; /* 1: RCPT */
    struct outcome probed;
    bool is_ahead; /* the next reply has come before its command */
    bool over;
    struct outcome end_outcome; /* since over */
    struct client_auth auth;

    /* The second is used only while the first waits for the reply to its dot. */
    struct client_transaction slots[2];
    unsigned front; /* the slot whose replies come */
    unsigned transactions;
    bool needs_reset; /* the last transaction may still be open at the peer */
    struct dot_encoder dot;
};

/* A step: its command, and the effect of its reply. heard() never gets a 421, and only
 * replies of a class that the step may have. */
struct step {
    const char *command; /* for people; "": none */
    const char *doing;   /* "while ..." in log and reports */
    int timeout_s;       /* RFC 5321 §4.5.3.2 */
    bool barrier;        /* no further step is asked until its reply has come */
    void (*ask)(struct client *c);
    void (*heard)(struct client *c, const struct awaited_reply *w,
                  const struct reply *reply);
};
extern const struct step client_steps[]; /* by enum step_name */

/* Sends a line. */
void client_command(struct client *c, const char *verb, struct text argument);
/* The transaction whose replies come. */
struct client_transaction *client_front(struct client *c);
/* The queue of steps that wait for their reply. */
void client_put(struct client *c, enum step_name step, size_t which);
void client_take(struct client *c);
/* outcome is for recipient `at` (ONE), or for those from `at` on. */
void client_hand_out(struct client_transaction *l, enum spread to, size_t at,
                     struct outcome outcome);
/* Ends the conversation. Recipients without a verdict get this one; but a kept
 * connection that is lost or refused at MAIL says nothing about the message, which goes
 * over another one. */
void client_end(struct client *c, struct outcome outcome);
/* Before the greeting: asks whether the route has the wrong scheme for the port. */
void client_wonder(const struct client *c, struct outcome *outcome);
/* Ends the conversation with a host that breaks the protocol. */
void client_protocol_error(struct client *c, const char *doing, const char *what);
/* client_end(), with QUIT if no reply is awaited. */
void client_end_politely(struct client *c, struct outcome outcome);
/* EHLO, LHLO or HELO has succeeded: TLS is next, or the step that follows without
 * it. */
void client_introduced(struct client *c);
/* Bytes came where only TLS may begin. */
void client_injected(struct client *c, size_t count);
/* Whether a lost connection or a time-out now is a failure of TLS. */
bool client_is_securing(const struct client *c);
void client_ask_tls(struct client *c);
void client_heard_tls(struct client *c, const struct awaited_reply *w,
                      const struct reply *reply);
void client_note_mechanisms(struct client *c, const struct reply *reply);
void client_present(struct client *c);
void client_respond(struct client *c);
void client_heard_auth_reply(struct client *c, const struct awaited_reply *w,
                             const struct reply *reply);
void client_auth_free(struct client *c);
/* From a refusal, before it is used: some hosts repeat the refused line, and replies
 * appear in logs and bounces. */
void client_hide_secrets(struct client *c);
/* The first recipient from `at` on that needs a RCPT, or the number of all. */
size_t client_next_rcpt(const struct client_transaction *l, size_t at);
/* All bytes of the chunk are written: its reply is due. */
void client_end_chunk(struct client *c);
/* The content is written: the final dot, or the last chunk, follows. */
void client_finish_content(struct client *c);

/* --- client_mail.c: whether and in which form a message can go to the host -------- */

/* Chooses the form of the transaction for this host. NULL, or why the host cannot get
 * the message, with the code of RFC 3463. */
const char *client_choose_form(const struct client *c, struct client_transaction *l,
                               const char **enhanced);
/* Chooses the form once the verdict on conversion for this host is known. NULL, or why, as
 * from client_choose_form(). */
const char *client_change_form(const struct client *c, struct client_transaction *l,
                               enum downgrade_verdict verdict, uint64_t size_max,
                               const char **enhanced);
/* The parameters of EHLO's keyword LIMITS; invalid ones are ignored. */
struct client_limits client_read_limits(struct text parameters);
/* Whether it may be sent in a command: no control byte, not too long. */
bool client_is_sendable(struct text address);

/* Whether the host is certain, and protects mail further as its sender requires (RFC 8689). */
bool client_keeps_required(const struct client *c);
void client_say_mail(struct client *c, const struct client_transaction *l);
void client_say_rcpt(struct client *c, const struct client_transaction *l,
                     const struct recipient *r);

#endif
