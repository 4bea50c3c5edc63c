/* An SMTP or LMTP server session as a machine: bytes in, replies and actions out
 * (RFC 5321, 1985, 2033, 2034, 2920, 3030, 3461, 4954, 6531, 6710).
 *
 * It touches no socket, file or clock. Its owner calls server_step() until that says
 * READ, sends what has gathered in `out`, and does what the machine asks for:
 *
 *   ADMIT    server_admitted()           is there space for server_expected_size()?
 *   CHECK    server_recipient_checked()  may mail for server_recipient() be taken?
 *   BEGIN    server_begun()              open a draft for server_expected_size() bytes
 *   WRITE                                append server_content() to the draft
 *   STORE    server_seal(), server_stored()  commit draft and envelope
 *   DISCARD                              drop the draft
 *   FLUSH    server_flushed()            try what waits for server_node() now (ETRN)
 *   SECURE   server_secured()            send what is in out, forget all input; TLS
 *   LOGIN    server_login_step(), perhaps server_login_work(), and
 *            server_login_answer(), perhaps later, or server_login_refused()
 *                                        a line of AUTH is there
 *
 * A transaction lives from MAIL to the one function that ends it, on every path. */
#ifndef SMTP_SERVER_SERVER_H
#define SMTP_SERVER_SERVER_H

#include "queue/envelope.h"
#include "smtp/server/sasl_server.h"

struct address;
struct log;
struct refusal;
struct refusals;

/* What the sessions of a listener have in common; borrowed, may be replaced between
 * transactions (server_is_idle). */
struct server_rules {
    const char *hostname;
    const char *postmaster_domain; /* <postmaster> is at that; NULL: at hostname */
    int64_t size_limit;            /* bytes of a message; 0 = none */
    int recipient_limit, hop_limit;
    /* Errors (what is refused to untrusted clients, of others bad commands) that are
     * answered before 421; 0 = no limit. */
    int error_limit;
    /* Errors beyond the first of these are answered late, each a delay later than the
     * one before, SERVER_PENALTY_MAX_MS at most; 0 = immediately. */
    int soft_error_limit;
    int64_t error_delay_ms;
    /* RSET, NOOP and the like of untrusted clients since their last message; more are errors. 0
     * = no limit */
    int junk_limit;
    bool etrn; /* is offered; by SMTP only */
    /* MT-PRIORITY is offered. Clients that may not relay get more than 0 only with the
     * second; else 0, as the reply says. */
    bool priority, priority_of_strangers;
    const struct users *users; /* NULL: there is no AUTH */
    /* message/partial, unless one of the recipients has it joined. */
    bool refuses_partial;
};

enum {
    SERVER_LINE_MAX = 4096, /* a command; RFC 5321 §4.5.3.1.4 asks for 512 */
    SERVER_EXCESS_MAX = 64 * 1024 * 1024, /* discarded beyond size_limit, then closed */
    SERVER_CLIENT_MAX = 56,
    SERVER_PENALTY_MAX_MS = 30000,
    SERVER_EXCESS_RECIPIENTS = 1000, /* Postfix: smtpd_recipient_overshoot_limit */
    SERVER_SECURITY_MAX = 100
};
#define SERVER_NO_UID UINT32_MAX

/* What the envelopes of all sessions take together until their messages are stored: a
 * recipient beyond it hears 452 4.3.1. What is free for each is not counted, so an
 * ordinary message always has space, and untrusted clients leave others theirs. */
struct server_envelopes {
    size_t bytes;
};
enum {
    SERVER_ENVELOPE_FREE = 16 * 1024, /* some 80 recipients */
    SERVER_ENVELOPES_UNTRUSTED_MAX = 16 * 1024 * 1024,
    SERVER_ENVELOPES_MAX = 32 * 1024 * 1024
};

enum server_stage { /* bits: the commands' table says in which of them each is legal */
                    SERVER_NEW = 1,      /* greeted; no EHLO yet */
                    SERVER_READY = 2,    /* no transaction */
                    SERVER_MAIL = 4,     /* a sender */
                    SERVER_RCPT = 8,     /* a recipient at least */
                    SERVER_CHUNKS = 16,  /* between two BDATs */
                    SERVER_CHUNK = 32,   /* within the bytes of one */
                    SERVER_DATA = 64,    /* within the content of DATA */
                    SERVER_CLOSED = 128, /* the last reply is out */
                    SERVER_SASL = 256    /* within AUTH: its next line comes */
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

/* Where AUTH is offered; always only to who may still need it. */
enum server_auth {
    SERVER_AUTH_NO,
    SERVER_AUTH_SECURE, /* under TLS */
    SERVER_AUTH_CLEAR   /* in clear, too: nobody can listen, or it cannot be helped */
};

enum server_action {
    SERVER_READ,  /* come again when there is more input */
    SERVER_GO_ON, /* a command is answered; call again */
    SERVER_ADMIT,
    SERVER_CHECK,
    SERVER_BEGIN,
    SERVER_WRITE,
    SERVER_STORE,
    SERVER_DISCARD,
    SERVER_FLUSH,
    SERVER_SECURE,
    SERVER_LOGIN,
    SERVER_WAIT, /* a question is open: only its answer helps */
    SERVER_CLOSE /* send what is in out and close; the answer from now on */
};

/* What becomes of the mail for a node (RFC 1985 §5.3). */
enum server_flush {
    SERVER_FLUSH_STARTED, /* it is due now, or soon */
    SERVER_FLUSH_RECENT,  /* that was so already, a moment ago */
    SERVER_FLUSH_UNABLE,  /* not now */
    SERVER_FLUSH_DENIED   /* we do not do that for this node */
};

/* The session's offer to its client, from the settings and the place of the listener. */
struct server_offer {
    bool may_relay; /* even without AUTH: see server_may_relay() */
    bool starttls;
    bool auth_required; /* before mail */
    bool legacy;        /* an old device: AUTH=, AUTH after HELO, no chunks */
    enum server_auth auth;
    /* Our name among our own hosts, of which the client is one: it may pass fragments
     * on with XDEFRAG. NULL: it is not. Borrowed. */
    const char *defrag_host;
};

/* Limits that the load of the daemon imposes for the moment. */
struct server_load {
    bool tls_full; /* no STARTTLS now: 454, and 421 to the EHLO of untrusted clients */
    bool hurried;  /* one error and one junk command, whatever the rules say */
};

struct server_transaction;
struct server_login;

struct server {
    const struct server_rules *rules;
    struct log *log;
    struct refusals *refusals; /* limits lines about them; NULL: all are written */
    struct server_envelopes *envelopes; /* of all sessions; NULL: nobody counts */
    struct buffer *out; /* replies; shared by all sessions, the owner empties it after
                           each call */
    enum server_stage stage;
    enum server_question question;
    struct server_offer offer;
    struct server_load load;
    unsigned uid; /* of a client at a Unix socket, SERVER_NO_UID for others */
    bool lmtp, esmtp;
    bool secure;  /* under TLS */
    bool leaving; /* server_shut_down() within a transaction */
    bool discard; /* a draft is to be dropped */
    bool late;    /* what is in out is to be said server_penalty_ms() from now; the
                     owner sets it back */
    bool hushed;  /* after AUTH: what is no command may be a password */
    bool probing; /* an untrusted client asks which addresses are users': late from
                     the first error on */
    int errors, junk;
    int excess;                    /* recipients beyond what a message may have */
    enum sasl_mechanism mechanism; /* by which user has logged in */
    char *user;                    /* who has, or NULL */
    struct server_login *login;    /* while AUTH goes on */
    uint64_t skip;                 /* bytes of a refused chunk still to come */
    char *helo;                    /* NULL before EHLO */
    char *node;                    /* of an ETRN that waits for its answer, else NULL */
    struct text command;           /* being run; for the log */
    struct server_transaction *transaction;
    char security[SERVER_SECURITY_MAX]; /* "TLSv1.3 with cipher ..."; "" in clear */
    char client[SERVER_CLIENT_MAX]; /* "[192.0.2.1]", "[IPv6:2001:db8::1]", "unix" */
};

/* s is zeroed memory. Writes the greeting. log may be NULL. */
void server_start(struct server *s, const struct server_rules *rules, struct log *log,
                  struct buffer *out, const char *client, bool lmtp, bool may_relay);
/* Replaces rules and offer: after server_start(), and later while server_is_idle().
 * Only `legacy` may change at any time. */
void server_set_offer(struct server *s, const struct server_rules *rules,
                      const struct server_offer *offer);
/* Before server_step(), when the load has changed. */
void server_set_load(struct server *s, const struct server_load *load);
/* Instead: a session that only says why not and closes. */
void server_start_refusing(struct server *s, const struct server_rules *rules,
                           struct log *log, struct buffer *out, const char *client,
                           const struct refusal *refusal);
/* A draft that is still open is the owner's to drop. */
void server_free(struct server *s);

/* Takes what it can use off *input and says what is next. Content slices point into
 * input. */
enum server_action server_step(struct server *s, struct text *input)
    __attribute__((warn_unused_result));

/* --- Wishes ------------------------------------------------------------------- */

/* ADMIT, at MAIL, so that a client hears early that it must come later (RFC 1870 §6).
 * refusal NULL: there is space now; BEGIN asks again. */
void server_admitted(struct server *s, const struct outcome *refusal);

/* ADMIT, CHECK: as it was said, without <>; empty: none. */
struct text server_sender(const struct server *s);
/* ADMIT, CHECK: recipients that were taken. */
unsigned server_accepted(const struct server *s);

/* CHECK: valid until the answer. */
const struct address *server_recipient(const struct server *s);
/* Before the next, if its mail is joined when it comes in fragments. */
void server_recipient_joins(struct server *s);
/* refusal NULL: taken. */
void server_recipient_checked(struct server *s, const struct outcome *refusal);

/* ADMIT, BEGIN: what the client has declared, or 0. */
int64_t server_expected_size(const struct server *s);
/* refusal NULL: a draft is open. */
void server_begun(struct server *s, const struct outcome *refusal);

/* WRITE: until the input is consumed. */
struct text server_content(const struct server *s);

/* STORE: the envelope, to be named; then server_seal() composes the lines that go
 * before the content and gives the envelope away; then the answer: refusal NULL = it is
 * durable. */
struct envelope *server_envelope(struct server *s);
struct envelope *server_seal(struct server *s, int64_t now_ms);
void server_stored(struct server *s, const struct outcome *refusal);

/* FLUSH, until the answer: "example.org", or "@example.org" for its sub-domains too; in
 * lower case. */
const char *server_node(const struct server *s);
void server_flushed(struct server *s, enum server_flush answer);

/* SECURE: after the handshake nothing that was said before counts (RFC 3207 §4.2).
 * Also, unasked, for a connection that begins with TLS. */
void server_secured(struct server *s, const char *version, const char *cipher);

/* How late what is said late has to be. */
int server_penalty_ms(const struct server *s);
/* LOGIN: the answer may take as long as it likes; until then the client is not read.
 * Once for each LOGIN: reads the line, in less than 0.1 ms. nonce: sasl_nonce(), fresh.
 * A failure is logged here, so that a client that does not wait for the answer is
 * known, too. The rules may not be replaced before the end of AUTH (server_is_idle). */
enum sasl_result server_login_step(struct server *s, const char *nonce)
    __attribute__((warn_unused_result));
/* After SASL_UNFINISHED, before an answer: a slice of the check of a password, up to
 * 5 ms; again after the same, in another turn. */
enum sasl_result server_login_work(struct server *s)
    __attribute__((warn_unused_result));
void server_login_answer(struct server *s);
/* Instead of one or both of these: AUTH is over; with 421 the session is. */
void server_login_refused(struct server *s, const struct refusal *refusal);
/* The user has no rights any more. */
void server_forget_user(struct server *s);

/* Neither may relay nor speaks LMTP. */
bool server_is_untrusted(const struct server *s);
/* By may_relay or by AUTH: a submission client, who gets Date and Message-ID, too. */
bool server_may_relay(const struct server *s);
/* ADMIT, CHECK: mail of one of our hosts that passes a fragment on: it was judged there
 * and may go to anybody. */
bool server_is_redirect(const struct server *s);

/* --- Events from outside ------------------------------------------------------ */

/* 421 and CLOSE. Never while an answer to STORE is due. */
void server_timed_out(struct server *s);
/* The same for another reason. */
void server_give_way(struct server *s, const struct refusal *why);
/* 421 between transactions; within one, after it. */
void server_shut_down(struct server *s);

/* No transaction and no AUTH: the rules may be replaced. */
bool server_is_idle(const struct server *s);
/* Content is expected: the DATA time-out applies. */
bool server_is_receiving(const struct server *s);

#endif
