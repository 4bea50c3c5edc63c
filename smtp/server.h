/* An SMTP or LMTP server session as a machine: bytes in, replies and wishes out
 * (RFC 5321, 1985, 2033, 2034, 2920, 3030, 3461, 6531, 6710).
 *
 * It touches no socket, file or clock. Its owner calls server_step() until that says
 * READ, sends what has gathered in `out`, and does what the machine wishes:
 *
 *   ADMIT    server_admitted()           is there room for server_expected_size()?
 *   CHECK    server_recipient_checked()  may mail for server_recipient() be taken?
 *   BEGIN    server_begun()              open a draft for server_expected_size() bytes
 *   WRITE                                append server_content() to the draft
 *   STORE    server_seal(), server_stored()  commit draft and envelope
 *   DISCARD                              drop the draft
 *   FLUSH    server_flushed()            try what waits for server_node() now (ETRN)
 *   SECURE   server_secured()            send what is in out, forget all input, then
 * TLS
 *
 * A transaction lives from MAIL to the one function that ends it, on every path. */
#ifndef SMTP_SERVER_H
#define SMTP_SERVER_H

#include "queue/envelope.h"

struct address;
struct log;
struct refusal;

/* What the sessions of a listener have in common; borrowed, may be replaced between
 * transactions (server_is_idle). */
struct server_rules {
    const char *hostname;
    int64_t size_limit; /* bytes of a message; 0 = none */
    int recipient_limit, hop_limit;
    int error_limit; /* bad commands that are answered before 421; 0 = no limit */
    bool etrn;       /* is offered; by SMTP only */
    /* MT-PRIORITY is offered; to those who may not relay above 0 only with the second:
     * else theirs counts as 0, and they are told. */
    bool priority, priority_of_strangers;
};

enum {
    SERVER_LINE_MAX = 4096, /* a command; RFC 5321 §4.5.3.1.4 asks for 512 */
    SERVER_EXCESS_MAX = 64 * 1024 * 1024, /* discarded beyond size_limit, then closed */
    SERVER_CLIENT_MAX = 56,
    SERVER_SECURITY_MAX = 100
};

enum server_stage { /* bits: the commands' table says in which of them each is legal */
                    SERVER_NEW = 1,     /* greeted; no EHLO yet */
                    SERVER_READY = 2,   /* no transaction */
                    SERVER_MAIL = 4,    /* a sender */
                    SERVER_RCPT = 8,    /* a recipient at least */
                    SERVER_CHUNKS = 16, /* between two BDATs */
                    SERVER_CHUNK = 32,  /* within the bytes of one */
                    SERVER_DATA = 64,   /* within the content of DATA */
                    SERVER_CLOSED = 128 /* the last reply is out */
};

enum server_question {
    SERVER_ASKS_NOTHING,
    SERVER_ASKS_ADMISSION,
    SERVER_ASKS_RECIPIENT,
    SERVER_ASKS_DRAFT,
    SERVER_ASKS_STORED,
    SERVER_ASKS_FLUSH,
    SERVER_ASKS_TLS
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

struct server_transaction;

struct server {
    const struct server_rules *rules;
    struct log *log;
    struct buffer *out; /* replies; shared by all sessions, the owner empties it after
                           each call */
    enum server_stage stage;
    enum server_question question;
    bool lmtp, esmtp;
    bool may_relay; /* a submission client: gets Date and Message-ID */
    bool starttls;  /* is offered; the owner's to set after the start */
    bool secure;    /* under TLS */
    bool leaving;   /* server_shut_down() within a transaction */
    bool discard;   /* a draft is to be dropped */
    int errors;
    uint64_t skip;       /* bytes of a refused chunk still to come */
    char *helo;          /* NULL before EHLO */
    char *node;          /* of an ETRN that waits for its answer, else NULL */
    struct text command; /* being run; for the log */
    struct server_transaction *transaction;
    char security[SERVER_SECURITY_MAX]; /* "TLSv1.3 with cipher ..."; "" in clear */
    char client[SERVER_CLIENT_MAX]; /* "[192.0.2.1]", "[IPv6:2001:db8::1]", "unix" */
};

/* s is zeroed memory. Writes the greeting. log may be NULL. */
void server_start(struct server *s, const struct server_rules *rules, struct log *log,
                  struct buffer *out, const char *client, bool lmtp, bool may_relay);
/* Instead: a session that only says why not (a 4yz) and closes. */
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
 * refusal NULL: there is room now; BEGIN asks again. */
void server_admitted(struct server *s, const struct outcome *refusal);

/* CHECK: valid until the answer. */
const struct address *server_recipient(const struct server *s);
/* Its sender, without <>. */
struct text server_mail_from(const struct server *s);
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

/* --- Events from outside ------------------------------------------------------ */

/* 421 and CLOSE. Never while an answer to STORE is due. */
void server_timed_out(struct server *s);
/* 421 between transactions; within one, after it. */
void server_shut_down(struct server *s);

/* No transaction: the rules may be replaced. */
bool server_is_idle(const struct server *s);
/* Content is expected: the DATA time-out applies. */
bool server_is_receiving(const struct server *s);

#endif
