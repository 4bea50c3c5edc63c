/* The client's side of SMTP and LMTP (RFC 5321, RFC 2033, RFC 2920) without sockets or
 * clock.
 *
 * Replies in, commands out, events out. The owner sends client_output(), passes the
 * peer's bytes to client_next(), obeys the events, and reports a lost connection. A
 * connection carries any number of transactions, one after the other; the commands of
 * the next one may leave in one group with the final dot of the last (RFC 2920 §3.1).
 * The steps that wait for their reply form a queue, so that PIPELINING only decides
 * when the next step may be asked.
 *
 * The owner converts content that a host does not take (8-bit content without 8BITMIME,
 * binary content without BINARYMIME), if it may be converted. If it may not, 8-bit
 * content is sent unchanged, without BODY: such hosts take it, and signatures stay
 * valid. Binary content bounces (RFC 3030 §3). */
#ifndef SMTP_CLIENT_CLIENT_H
#define SMTP_CLIENT_CLIENT_H

#include "mime/parts/downgrade.h"
#include "queue/manager/activity.h"
#include "queue/envelope/envelope.h"
#include "sched/route/route.h"
#include "smtp/client/outgoing.h"
#include "smtp/client/reply_outcome.h"
#include "smtp/client/sasl_client.h"
#include "smtp/trust/signing.h"
#include "smtp/client/transcript.h"

struct client;

/* How to log in, before any mail. */
struct client_login {
    struct sasl_credentials credentials; /* sasl_client_check() has accepted them */
    unsigned allowed;                    /* mechanisms: bits (1 << sasl_mechanism) */
    bool may_be_clear;                   /* without TLS, too */
    const char *remedy;          /* the setting to check when they are refused */
    char nonce[SASL_NONCE_SIZE]; /* fresh */
};

/* The code of a host without REQUIRETLS (RFC 8689), deferred: another host may have it. */
#define CLIENT_NO_REQUIRETLS "4.7.30"

struct client_settings {
    const char *hostname; /* in EHLO */
    const struct reply_outcome_peer
        *peer; /* this and hostname live as long as the client */
    bool lmtp;
    double timeout_scale;     /* of the time-outs of RFC 5321 §4.5.3.2; > 0 */
    enum target_tls tls;      /* ENCRYPT, VERIFY: no mail before TLS */
    const char *demander;     /* of that, in errors: "DANE"; NULL: the route */
    bool is_certain;          /* TLS proves that the host is the one that is meant */
    bool is_required;         /* no mail unless it does, and the host has REQUIRETLS; of
                               * LMTP the first alone */
    const char *other_scheme; /* the one that the route may need in place of its own
                                 ("smtps"): said if the session ends before its greeting;
                                 NULL: nothing suggests it */
    bool tls_implicit; /* TLS before the greeting: the owner starts it without being
                             asked (no CLIENT_SECURE); tls is ENCRYPT or VERIFY */
    const struct client_login *login; /* NULL: no login. Lives as long as the client */
    bool tls_failed; /* the last handshake with the host failed; tls is NONE. A reply
                        that demands TLS defers the mail */
    const char *redirect_to; /* the name of one of our own hosts: it gets only
                                redirected fragments (smtp/redirect.h), never converted.
                                NULL: any other. Lives as long as the client */
    const char *to; /* in place of each recipient's address (route_recipient()); "" or
                     * NULL: it stays. Likewise */
    struct transcript *transcript; /* of the dialog; NULL: nobody wants it. Likewise */
};

struct client *client_new(const struct client_settings *settings);
void client_free(struct client **c);

/* LIMITS of RFC 9422, known since CLIENT_READY; 0 = not announced. */
struct client_limits {
    unsigned mails;               /* over this connection */
    unsigned recipients, domains; /* in one mail; domains: different ones */
};
struct client_limits client_limits(const struct client *c);

/* The bytes for the peer. The owner sends and empties them (buffer_clear) after each
 * call below. */
struct buffer *client_output(struct client *c);

enum client_event_kind {
    CLIENT_SECURE,  /* start TLS, then call client_secured() or client_insecure(); no
                      input before that. RFC 3207 */
    CLIENT_READY,   /* the peer has greeted, we have logged in: client_send() may be
                      called */
    CLIENT_PREPARE, /* find out whether client_way() can convert the content, if
                       client_converts(), and sign it; then call client_prepared() */
    CLIENT_VERDICT, /* outcome for recipient which */
    CLIENT_LATER, /* the host takes no more recipients in one transaction, and has taken
                       the message for others: recipient which has no verdict, and goes in
                       another one (RFC 5321 §4.5.3.1.10). outcome: the refusal */
    CLIENT_CONTENT, /* call client_content() until all is sent, then
                       client_content_end() */
    CLIENT_EARLY,   /* the dot is written, its reply has not come: client_send() may be
                     called once before CLIENT_DONE (client_has_space) */
    CLIENT_DONE, /* every recipient has its verdict, or was LATER: client_send() may be
                    called. If it was called after CLIENT_EARLY, the events are now
                    those of that mail */
    CLIENT_PROBED, /* of client_probe(): the outcome of MAIL; which is 1: of RCPT */
    CLIENT_OVER    /* close the connection. outcome says why, end what it means */
};
/* The meaning of the end of a connection for the message in the machine. */
enum client_end {
    CLIENT_END_HOST, /* the host has refused us, or is gone, before it heard a message:
                        the message has no verdict, and the next host may take it */
    CLIENT_END_KEPT, /* a kept connection cannot be used any more. Likewise, but that
                        says nothing of the host: over a new connection to it */
    CLIENT_END_MAIL, /* each recipient has a verdict */
    CLIENT_END_IDLE  /* there was no message: nobody is to blame */
};
struct client_event {
    enum client_event_kind kind;
    size_t which; /* of indexes in struct client_mail */
    const struct outcome
        *outcome;        /* until the next call; of VERDICT, LATER, PROBED, OVER,
                                      which always have one */
    enum client_end end; /* of OVER */
};
/* Takes whole lines off *input and returns the next event; to be called until it is
 * false. Bytes left in *input must be passed again, with more after them. */
bool client_next(struct client *c, struct text *input, struct client_event *event);

/* The handshake has met all demands of tls; earlier replies of the host are forgotten
 * (RFC 3207 §4.2). Then call client_next(). */
void client_secured(struct client *c);
/* The handshake failed: why is a part of a sentence. Then call client_next(). */
void client_insecure(struct client *c, const char *why);
/* After CLIENT_OVER: whether TLS failed, from STARTTLS to the first reply under TLS. */
bool client_tls_failed(const struct client *c);
/* Whether the host has offered REQUIRETLS, under TLS. */
bool client_has_requiretls(const struct client *c);

/* While it is true something must be computed: call client_work(), which takes 2 ms at
 * most, in another turn, then client_next(). */
bool client_is_working(const struct client *c);
void client_work(struct client *c);

/* A message for count > 0 recipients envelope->recipients[indexes[...]]; both are
 * borrowed until its CLIENT_DONE or CLIENT_OVER. Only when client_has_space(): after
 * CLIENT_READY, CLIENT_DONE and CLIENT_EARLY. The commands that may leave immediately
 * are in the output when it returns. */
struct client_mail {
    const struct envelope *envelope;
    const unsigned *indexes;
    size_t count;
    const struct outgoing *outgoing; /* the form in which it leaves; NULL: as stored */
    bool sign;                       /* CLIENT_PREPARE comes for a signature, too */
};
bool client_has_space(const struct client *c);
void client_send(struct client *c, const struct client_mail *mail);
/* After CLIENT_READY, in place of a message: MAIL FROM:<sender>, and, unless it is empty,
 * RCPT TO:<recipient>; nothing more. CLIENT_PROBED follows; end the connection then. Both
 * are borrowed until that. */
void client_probe(struct client *c, struct text sender, struct text recipient);
/* Whether client_next() has an event without any input. */
bool client_has_news(const struct client *c);

/* After CLIENT_PREPARE. With CONVERTIBLE the content to come is the converted one, of
 * size_max bytes at most; otherwise the original. reason: part of a sentence, for
 * FORBIDDEN and FRAGMENT. Then call client_next(). */
bool client_converts(const struct client *c);
struct downgrade_way client_way(const struct client *c);
/* The form to sign of a message with that verdict; NOT_NEEDED if nothing was
 * scanned. */
enum signing_form client_signing_form(const struct client *c,
                                      enum downgrade_verdict verdict);
/* added: bytes of signatures that the owner passes before the content. */
void client_prepared(struct client *c, enum downgrade_verdict verdict,
                     const char *reason, uint64_t size_max, size_t added);

/* A piece of at most CLIENT_PIECE_MAX bytes: first the envelope's prefix, then the
 * content. */
enum { CLIENT_PIECE_MAX = 64 * 1024 };
void client_content(struct client *c, struct text piece);
void client_content_end(struct client *c);

/* The time within which the peer must reply (in content: take a byte); 0 = no reply is
 * awaited. The time begins anew whenever client_turn() has changed. */
int64_t client_timeout_ms(const struct client *c);
unsigned client_turn(const struct client *c);
/* The state in which the client has waited since then: GREETING, HANDSHAKE, REPLY,
 * CONTENT, PREPARE or NONE. command: that of the awaited reply ("RCPT TO"), else "". */
enum activity_kind client_activity(const struct client *c, const char **command);

/* The end, from our side; then call client_next() for the events. */
void client_lost(struct client *c);      /* the connection is gone */
void client_timed_out(struct client *c); /* client_timeout_ms() has passed */
/* The owner cannot go on: outcome is the verdict of all recipients that have none. */
void client_abandon(struct client *c, const struct outcome *outcome);
/* QUIT between transactions; otherwise nothing. */
void client_quit(struct client *c);

#endif
