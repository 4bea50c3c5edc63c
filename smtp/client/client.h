/* The client's side of SMTP and LMTP (RFC 5321, RFC 2033, RFC 2920) without sockets or
 * clock.
 *
 * Replies in, commands out, events out. The owner sends client_output(), gives
 * what the peer said to client_next(), does what the events ask for, and tells when the
 * line breaks. Any number of transactions over one connection, one after the other; but
 * the next one may be announced in one group with the final dot of the last (RFC 2920
 * §3.1). The steps that wait for their reply stand in a queue, so that PIPELINING is
 * only a matter of when the next step may be asked.
 *
 * What a host cannot take as it is (8-bit content without 8BITMIME, binary content
 * without BINARYMIME) the owner converts, if it may be converted. If it may not, 8-bit
 * content goes as it is, without BODY: such hosts take it, and signatures stay good.
 * Binary content bounces (RFC 3030 §3). */
#ifndef SMTP_CLIENT_H
#define SMTP_CLIENT_H

#include "mime/downgrade.h"
#include "queue/manager/activity.h"
#include "queue/envelope.h"
#include "sched/route/route.h"
#include "smtp/client/reply_outcome.h"
#include "smtp/client/sasl_client.h"

struct client;

/* How to log in, before any mail is spoken of. */
struct client_login {
    struct sasl_credentials credentials; /* without sasl_client_mistake() */
    unsigned allowed;                    /* mechanisms: bits (1 << sasl_mechanism) */
    bool may_be_clear;                   /* without TLS, too */
    const char *remedy; /* what the user looks at when they are refused: a setting */
    char nonce[SASL_NONCE_SIZE]; /* fresh */
};

struct client_settings {
    const char *hostname; /* in EHLO */
    const struct reply_outcome_peer
        *peer; /* this and hostname live as long as the client */
    bool lmtp;
    double timeout_scale; /* of the time-outs of RFC 5321 §4.5.3.2; > 0 */
    enum target_tls tls;  /* ENCRYPT, VERIFY: no mail is spoken of before TLS */
    bool tls_implicit;    /* TLS before the greeting: the owner starts it without being
                             asked (no CLIENT_SECURE); tls is ENCRYPT or VERIFY */
    const struct client_login *login; /* NULL: we do not. Lives as long as the client */
    bool tls_failed; /* the host offers TLS, but the last handshake failed; tls is
                        NONE: a host that insists on TLS only defers */
    const char *redirect_to; /* one of our own hosts, by that name: nothing but what
                                smtp/redirect.h tells of goes there, never converted.
                                NULL: another. Lives as long as the client */
};

struct client *client_new(const struct client_settings *settings);
void client_free(struct client **c);

/* LIMITS of RFC 9422, since CLIENT_READY; 0 = not announced. */
struct client_limits {
    unsigned mails;               /* over this connection */
    unsigned recipients, domains; /* in one mail; of different domains */
};
struct client_limits client_limits(const struct client *c);

/* What to send to the peer. The owner empties it (buffer_clear) after each call below.
 */
struct buffer *client_output(struct client *c);

enum client_event_kind {
    CLIENT_SECURE, /* start TLS, then say client_secured() or client_insecure(). Give it
                      no input before. RFC 3207 */
    CLIENT_READY,  /* the peer has greeted, we have logged in: client_send() may be
                      called */
    CLIENT_PREPARE, /* find out how the content can be converted, in the way of
                       client_way(), then say client_prepared() */
    CLIENT_VERDICT, /* outcome for recipient which */
    CLIENT_CONTENT, /* call client_content() until all is sent, then
                       client_content_end() */
    CLIENT_EARLY, /* the dot is said, its answer is not yet there: client_send() may be
                     called once, from now on until CLIENT_DONE (client_has_space) */
    CLIENT_DONE,  /* every recipient has its verdict: client_send() may be called,
                     unless it was after CLIENT_EARLY: then it is that mail's turn, of
                     which all events tell from now on */
    CLIENT_AGAIN, /* a kept connection is of no use any more; no recipient has a
                     verdict:   send the message over a new one. CLIENT_OVER follows. */
    CLIENT_OVER   /* close the connection. outcome says why when the peer never greeted.
                   */
};
struct client_event {
    enum client_event_kind kind;
    size_t which;                  /* of indexes in struct client_mail */
    const struct outcome *outcome; /* until the next call; NULL when there is none */
};
/* Takes whole lines off *input and tells what has happened; call it until it is false.
 * What it leaves in *input must be given again, with more behind it. */
bool client_next(struct client *c, struct text *input, struct client_event *event);

/* The handshake is done, with all that tls demands; what the host said before is
 * forgotten (RFC 3207 §4.2). Then ask client_next(). */
void client_secured(struct client *c);
/* It failed: why is a part of a sentence. Then ask client_next(). */
void client_insecure(struct client *c, const char *why);
/* Once it is over: it was TLS that failed, from STARTTLS to the first reply under TLS.
 */
bool client_tls_failed(const struct client *c);

/* There is something to compute, of 2 ms at most: say client_work() in another turn,
 * then ask client_next(); as long as this is true. */
bool client_is_working(const struct client *c);
void client_work(struct client *c);

/* A message for count > 0 recipients envelope->recipients[indexes[...]]; both are
 * borrowed until its CLIENT_DONE or CLIENT_OVER. Only when client_has_space(): after
 * CLIENT_READY, CLIENT_DONE and CLIENT_EARLY. What may be sent immediately is in the
 * output when it returns. */
struct client_mail {
    const struct envelope *envelope;
    const unsigned *indexes;
    size_t count;
};
bool client_has_space(const struct client *c);
void client_send(struct client *c, const struct client_mail *mail);
/* Whether client_next() has an event to tell without any input. */
bool client_has_news(const struct client *c);

/* After CLIENT_PREPARE. The content that is given later is the converted one if verdict
 * says CONVERTIBLE, of size_max bytes at most; else as it is. reason: part of a
 * sentence, for FORBIDDEN and FRAGMENT. Then ask client_next(). */
struct downgrade_way client_way(const struct client *c);
void client_prepared(struct client *c, enum downgrade_verdict verdict,
                     const char *reason, uint64_t size_max);

/* A piece of at most CLIENT_PIECE_MAX bytes: first the envelope's prefix, then the
 * content. */
enum { CLIENT_PIECE_MAX = 64 * 1024 };
void client_content(struct client *c, struct text piece);
void client_content_end(struct client *c);

/* How long the peer may take from now for what it owes (in content: without taking any
 * byte); 0 = it owes nothing. It begins anew whenever client_turn() has changed. */
int64_t client_timeout_ms(const struct client *c);
unsigned client_turn(const struct client *c);
/* What is waited for since then, for people: GREETING, HANDSHAKE, REPLY, CONTENT,
 * PREPARE or NONE. command: whose reply it is ("RCPT TO"), else "". */
enum activity_kind client_activity(const struct client *c, const char **command);

/* The end, from our side; then ask client_next() for the events. */
void client_lost(struct client *c);      /* the connection is gone */
void client_timed_out(struct client *c); /* the peer owed something for too long */
/* The owner cannot go on: the verdict for all that have none. */
void client_abandon(struct client *c, const struct outcome *outcome);
/* QUIT, when it is between transactions; otherwise nothing. */
void client_quit(struct client *c);

#endif
