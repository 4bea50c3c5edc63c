/* An SMTP or LMTP server session as a machine: bytes in, replies and actions out
 * (RFC 5321, 1985, 2033, 2034, 2920, 3030, 3461, 4954, 6531, 6710).
 *
 * The machine uses no socket, file or clock. Its owner calls server_step() until the
 * result is READ, sends the replies in `out`, and performs the requested action:
 *
 *   ADMIT    server_admitted()           is there space for server_expected_size()?
 *   CHECK    server_recipient_checked()  may mail for server_recipient() be taken?
 *   BEGIN    server_begun()              open a draft for server_expected_size() bytes
 *   WRITE                                append server_content() to the draft
 *   STORE    server_seal(), server_stored()  commit draft and envelope
 *   DISCARD                              drop the draft
 *   FLUSH    server_flushed()            deliver the mail for server_node() now (ETRN)
 *   SECURE   server_secured()            send out, discard all input, start TLS
 *   LOGIN    server_login_step(), perhaps server_login_work() or
 *            server_login_decide(), and
 *            server_login_answer(), perhaps later, or server_login_refused()
 *                                        process a line of AUTH
 *
 * A transaction lasts from MAIL to the one function that ends it on every path. */
#ifndef SMTP_SERVER_SERVER_H
#define SMTP_SERVER_SERVER_H

#include "queue/envelope/envelope.h"
#include "smtp/server/sasl_server.h"

struct address;
struct event_hub;
struct expansion;
struct refusal;
struct refusals;
struct senders;

/* How much of its client a Received field tells. */
enum server_received {
    SERVER_RECEIVED_FULL,
    SERVER_RECEIVED_SHORT, /* nothing */
    SERVER_RECEIVED_NONE   /* there is no field, unless the message has one, or its
                            * Message-ID was here: a loop ends by their number */
};
enum { SERVER_SEEN_MAX = 4096 }; /* hashes of a Message-ID; the last of a place stays */

/* The settings common to the sessions of a listener; borrowed, may be replaced between
 * transactions (server_is_idle). */
struct server_rules {
    const char *hostname;
    const char *postmaster_domain; /* the domain of <postmaster>; NULL: hostname */
    int64_t size_limit;            /* bytes of a message; 0 = none */
    int recipient_limit, hop_limit;
    /* Errors before 421: all refusals of untrusted clients, bad commands of others. 0 =
     * no limit. */
    int error_limit;
    /* The replies to further errors are delayed, each by error_delay_ms more than the
     * one before, at most SERVER_PENALTY_MAX_MS; 0 = no delay. */
    int soft_error_limit;
    int64_t error_delay_ms;
    /* RSET, NOOP and the like of untrusted clients since their last message; more are
     * errors. 0 = no limit. */
    int junk_limit;
    bool etrn;                     /* offered; by SMTP only */
    enum server_received received; /* of mail from clients that may relay */
    uint64_t *seen; /* for SERVER_RECEIVED_NONE: of the Message-IDs that were here */
    /* MT-PRIORITY is offered; the second: untrusted clients, too, get priorities above
     * 0. */
    bool priority, priority_of_strangers;
    /* FUTURERELEASE for submission, at most; 0: not offered. */
    int64_t future_release_s;
    const struct users *users; /* NULL: no AUTH, or... */
    /* ...another server checks: the mechanisms that it knows, as bits; NULL: there is
     * none. */
    const unsigned *remote;
    /* NULL: no sender_login and no sender_domains; From is not looked at, either. */
    const struct senders *senders;
    /* Refuses message/partial, unless the message is reassembled for a recipient. */
    bool refuses_partial;
};

enum {
    SERVER_LINE_MAX = 4096, /* a command; RFC 5321 §4.5.3.1.4 requires 512 */
    SERVER_EXCESS_MAX = 64 * 1024 * 1024, /* discarded beyond size_limit, then closed */
    SERVER_CLIENT_MAX = 56,
    SERVER_PENALTY_MAX_MS = 30000,
    SERVER_EXCESS_RECIPIENTS = 1000, /* Postfix: smtpd_recipient_overshoot_limit */
    SERVER_SECURITY_MAX = 100
};
#define SERVER_NO_UID UINT32_MAX

/* The memory of the envelopes of all sessions until their messages are stored; a
 * recipient beyond the limit gets 452 4.3.1. SERVER_ENVELOPE_FREE of each envelope is not
 * counted, so that an ordinary message always has space. The limit for untrusted clients
 * is lower, which reserves space for trusted ones. */
struct server_envelopes {
    size_t bytes;
};
enum {
    SERVER_ENVELOPE_FREE = 16 * 1024, /* some 80 recipients */
    SERVER_ENVELOPES_UNTRUSTED_MAX = 16 * 1024 * 1024,
    SERVER_ENVELOPES_MAX = 32 * 1024 * 1024
};

enum server_stage {                      /* bits, for the table of commands */
                    SERVER_NEW = 1,      /* greeted; no EHLO yet */
                    SERVER_READY = 2,    /* no transaction */
                    SERVER_MAIL = 4,     /* a sender */
                    SERVER_RCPT = 8,     /* at least one recipient */
                    SERVER_CHUNKS = 16,  /* between two BDATs */
                    SERVER_CHUNK = 32,   /* within the bytes of one */
                    SERVER_DATA = 64,    /* within the content of DATA */
                    SERVER_CLOSED = 128, /* the last reply is written */
                    SERVER_SASL = 256    /* within AUTH: awaits its next line */
};

enum server_question {
    SERVER_ASKS_NOTHING,
    SERVER_ASKS_ADMISSION,
    SERVER_ASKS_RECIPIENT,
    SERVER_ASKS_DRAFT,
    SERVER_ASKS_STORED,
    SERVER_ASKS_FLUSH,
    SERVER_ASKS_TLS,
    SERVER_ASKS_LOGIN
};

/* The conditions of the offer of AUTH, which is made before a login only. */
enum server_auth {
    SERVER_AUTH_NO,
    SERVER_AUTH_SECURE, /* under TLS */
    SERVER_AUTH_CLEAR   /* in cleartext, too: a loopback client or an old device */
};

enum server_action {
    SERVER_READ,  /* call again with more input */
    SERVER_GO_ON, /* a command has its reply; call again */
    SERVER_ADMIT,
    SERVER_CHECK,
    SERVER_BEGIN,
    SERVER_WRITE,
    SERVER_STORE,
    SERVER_DISCARD,
    SERVER_FLUSH,
    SERVER_SECURE,
    SERVER_LOGIN,
    SERVER_WAIT, /* the machine waits for an answer of the owner */
    SERVER_CLOSE /* send out and close; the result of all further calls */
};

/* The result of ETRN for a node (RFC 1985 §5.3). */
enum server_flush {
    SERVER_FLUSH_STARTED, /* delivery begins now or soon */
    SERVER_FLUSH_RECENT,  /* delivery was started a moment ago */
    SERVER_FLUSH_UNABLE,  /* not possible now */
    SERVER_FLUSH_DENIED   /* not permitted for this node */
};

/* The session's offer to its client, from the settings and the place of the listener. */
struct server_offer {
    bool may_relay; /* even without AUTH: see server_may_relay() */
    bool starttls;
    bool auth_required;   /* before mail */
    bool legacy : 1;      /* an old device: AUTH=, AUTH after HELO, no chunks */
    bool unannounced : 1; /* MAIL is taken without EHLO: an old device, sendmail -bs */
    enum server_auth auth;
    /* Our name among our own hosts. The client is one of them and may pass fragments on
     * with XDEFRAG; NULL: it is not. Borrowed. */
    const char *defrag_host;
};

/* Temporary limits under load. */
struct server_load {
    bool tls_full;  /* no STARTTLS now: 454, and 421 to the EHLO of untrusted clients */
    bool hurried;   /* limits errors and junk to one each */
    uint32_t now_s; /* the wall clock */
};

struct server_transaction;
struct server_login;

struct server {
    const struct server_rules *rules;
    struct event_hub *events;           /* NULL: nobody reads */
    struct refusals *refusals;          /* limits their log lines; NULL: no limit */
    struct server_envelopes *envelopes; /* of all sessions; NULL: not counted */
    struct buffer *out; /* replies; shared by all sessions, emptied by the owner after
                           each call */
    enum server_stage stage;
    enum server_question question;
    struct server_offer offer;
    struct server_load load;
    unsigned uid; /* of a client at a Unix socket, SERVER_NO_UID for others */
    bool lmtp, esmtp;
    bool secure;        /* under TLS */
    bool certified : 1; /* user is by the client's certificate, not by AUTH */
    bool leaving : 1;   /* server_shut_down() within a transaction */
    bool discard : 1;   /* the owner must drop the draft */
    bool told;          /* EVENT_CONNECTED */
    bool late;    /* the owner must delay out by server_penalty_ms() and reset this */
    bool hushed;  /* after AUTH: an unknown command may be a password */
    bool probing; /* an untrusted client probes for addresses of users: replies are
                     delayed from the first error on */
    int errors, junk;
    int excess;                 /* recipients beyond recipient_limit */
    char *user;                 /* that has logged in, or NULL */
    struct server_login *login; /* NULL outside AUTH */
    uint64_t skip;              /* bytes of a refused chunk still to come */
    char *helo;                 /* NULL before EHLO */
    const char *protocol;       /* instead of that of SMTP; or NULL */
    char *node;                 /* of an ETRN without a reply yet, else NULL */
    struct text command;        /* the current one; for the log */
    struct server_transaction *transaction;
    struct server_verbs *verbs;         /* NULL before the first command */
    char security[SERVER_SECURITY_MAX]; /* "TLSv1.3 with cipher ..."; "" in clear */
    char client[SERVER_CLIENT_MAX]; /* "[192.0.2.1]", "[IPv6:2001:db8::1]", "unix" */
    enum sasl_mechanism mechanism;  /* of the login */
};

/* s must be zeroed. Writes the greeting. events may be NULL. */
void server_start(struct server *s, const struct server_rules *rules,
                  struct event_hub *events, struct buffer *out, const char *client,
                  bool lmtp, bool may_relay);
/* Replaces rules and offer: after server_start(), and later while server_is_idle().
 * Only `legacy` may change at any time. */
void server_set_offer(struct server *s, const struct server_rules *rules,
                      const struct server_offer *offer);
/* Call it before server_step() when the load has changed. */
void server_set_load(struct server *s, const struct server_load *load);
/* Instead of server_start(): the session sends the refusal and closes. */
void server_start_refusing(struct server *s, const struct server_rules *rules,
                           struct event_hub *events, struct buffer *out,
                           const char *client, const struct refusal *refusal);
/* The owner drops an open draft. */
void server_free(struct server *s);

/* Takes complete commands or content off *input and returns the next action. Content
 * slices point into input. */
enum server_action server_step(struct server *s, struct text *input)
    __attribute__((warn_unused_result));

/* --- Actions ------------------------------------------------------------------ */

/* ADMIT, at MAIL: lack of space is reported before the content (RFC 1870 §6). refusal
 * NULL: there is space now; BEGIN asks again. */
void server_admitted(struct server *s, const struct outcome *refusal);

/* ADMIT, CHECK: the sender as received, without <>; empty: the null sender. */
struct text server_sender(const struct server *s);
/* CHECK: whether the sender requires TLS of each hop (REQUIRETLS). Notifications do not:
 * they would be lost. */
bool server_requires_tls(const struct server *s);
/* ADMIT, CHECK: the number of accepted recipients. */
unsigned server_accepted(const struct server *s);
/* Until server_stored(): the number of different ones, as they were given. */
unsigned server_given(const struct server *s);

/* CHECK: valid until the answer. */
const struct address *server_recipient(const struct server *s);
/* Call it before server_recipient_checked() if fragments are reassembled for the
 * recipient. */
void server_recipient_joins(struct server *s);
/* The recipient in normal form, with a domain. */
struct text server_recipient_normal(const struct server *s);
/* Call it before server_recipient_checked() if the members of an alias take the place of
 * the recipient; borrowed until then. */
void server_recipient_expands(struct server *s, const struct expansion *expansion);
/* refusal NULL: accepted. Returns how many recipients the message has more, members of
 * aliases included. A refusal too many ends the session, and the transaction with it. */
unsigned server_recipient_checked(struct server *s, const struct outcome *refusal);

/* ADMIT, BEGIN: the SIZE that the client has declared, or 0. */
int64_t server_expected_size(const struct server *s);
/* refusal NULL: a draft is open. */
void server_begun(struct server *s, const struct outcome *refusal);

/* WRITE: valid until the input is consumed. */
struct text server_content(const struct server *s);

/* STORE: the owner sets the id of the envelope; then server_seal() composes the trace
 * header and gives the envelope away; then server_stored() reports the result, refusal
 * NULL: the message is durable, and server_tell_accepted() has said so. */
struct envelope *server_envelope(struct server *s);
struct envelope *server_seal(struct server *s, int64_t now_ms);
void server_tell_accepted(struct server *s, struct id id);
void server_stored(struct server *s, const struct outcome *refusal);

/* FLUSH: "example.org", or "@example.org" with its sub-domains, in lower case; valid
 * until server_flushed(). */
const char *server_node(const struct server *s);
void server_flushed(struct server *s, enum server_flush answer);

/* SECURE: the handshake is complete; resets the session (RFC 3207 §4.2). Also called
 * without SECURE for a connection that begins with TLS. */
void server_secured(struct server *s, const char *version, const char *cipher);

/* After server_secured(): the client has a certificate, and the rights of a login with
 * that name. AUTH may replace it. */
void server_certified(struct server *s, const char *name);

/* The delay of late replies. */
int server_penalty_ms(const struct server *s);
/* LOGIN: call it once for each LOGIN; it takes less than 0.1 ms. The owner may delay the
 * answer; until then no input is read. nonce: sasl_nonce(), fresh. A failure is logged
 * here, before its delayed reply, because the client may disconnect earlier. The rules
 * must not be replaced before the end of AUTH (server_is_idle). */
enum sasl_result server_login_step(struct server *s, const char *nonce)
    __attribute__((warn_unused_result));
/* After SASL_UNFINISHED: a slice of the password check, up to 5 ms. When the result is
 * SASL_UNFINISHED again, call it in a later turn of the loop. */
enum sasl_result server_login_work(struct server *s)
    __attribute__((warn_unused_result));
/* Instead of it, where another server checks (server_login_is_remote()). */
bool server_login_is_remote(const struct server *s);
struct text server_login_response(const struct server *s,
                                  enum sasl_mechanism *mechanism);
enum sasl_result server_login_decide(struct server *s, enum sasl_result result,
                                     struct text text)
    __attribute__((warn_unused_result));
void server_login_answer(struct server *s);
/* Instead of these calls: ends AUTH with the refusal; a 421 ends the session. */
void server_login_refused(struct server *s, const struct refusal *refusal);
/* Revokes the login. */
void server_forget_user(struct server *s);

/* True: the client may not relay and does not use LMTP. */
bool server_is_untrusted(const struct server *s);
/* By may_relay or by AUTH: a submission client; its messages get Date and Message-ID. */
bool server_may_relay(const struct server *s);
/* True: the client sends its own mail, or is an old device. What it means counts, where
 * the form is wrong (smtp/server/parameters.h). */
bool server_forgives(const struct server *s);
/* ADMIT, CHECK: a fragment passed on by one of our hosts, which has checked its
 * recipients: all are permitted. */
bool server_is_redirect(const struct server *s);

/* --- Events (base/event/event.h) -------------------------------------------------- */

/* After the first offer: a client that may relay is reported with its first command that
 * no probe of a monitor sends. */
void server_tell_start(struct server *s);
/* The session ends. Call it before server_free(). */
void server_tell_end(struct server *s);

/* --- Events from outside ------------------------------------------------------ */

/* 421 and CLOSE. Must not be called during STORE. */
void server_timed_out(struct server *s);
/* The session ends with this reply. Must not be called during STORE. */
void server_give_way(struct server *s, const struct refusal *why);
/* 421 between transactions; within one, after it. */
void server_shut_down(struct server *s);

/* No transaction and no AUTH: the rules may be replaced. */
bool server_is_idle(const struct server *s);
/* Content is expected: the DATA time-out applies. */
bool server_is_receiving(const struct server *s);

#endif
