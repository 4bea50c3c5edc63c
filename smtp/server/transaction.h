/* One mail transaction of a server session, from MAIL to its end. */
#ifndef SMTP_SERVER_TRANSACTION_H
#define SMTP_SERVER_TRANSACTION_H

#include "base/arena.h"
#include "mime/header.h"
#include "smtp/server/normalize_newlines.h"
#include "smtp/server/parameters.h"
#include "smtp/server/server.h"

enum { SUBMITTER_HEAD_MAX = 64 * 1024 }; /* From behind it is not permitted */

struct id_set;
struct transaction_answer;

struct server_transaction {
    struct envelope *envelope;     /* NULL once given away */
    struct text sender;            /* in arena: outlives the envelope, for the log */
    int64_t expected;              /* SIZE= */
    bool has_priority;             /* requested; the envelope has the granted one */
    bool priority_changed;         /* granted differs from requested */
    int64_t hold_s, hold_until_ms; /* FUTURERELEASE, as given: */
    struct text hold;
    bool by_peer;                      /* has XDEFRAG: see smtp/redirect.h */
    bool joins;                        /* fragments are reassembled for a recipient */
    unsigned given;                    /* different recipients that were accepted */
    const struct expansion *expansion; /* of the current recipient; NULL: none */
    unsigned accepted; /* RCPT commands with reply 250, repeated ones included */
    struct transaction_answer *answers, **answers_end; /* in LMTP: one for each */
    struct id_set *seen; /* hash of recipients, but for the first ones */
    struct arena arena;
    struct server_envelopes *envelopes; /* NULL: not counted */
    unsigned recipients_max; /* for more than one alias: their members count, too */
    size_t envelopes_max, counted; /* our limit in envelopes, our part of it */

    struct buffer argument;      /* of the RCPT without a reply yet */
    struct rcpt_parameters rcpt; /* its parameters: slices of argument */
    struct buffer normal;        /* its address in normal form */
    struct buffer original;      /* ORCPT, if made by us */

    bool draft;   /* open */
    bool chunked; /* BDAT */
    bool chunk_last;
    uint64_t chunk_size, chunk_left;
    struct newlines_content newlines;
    struct dot_decoder dot;
    struct dot_checker checker;
    struct header_scan header;
    bool gathers_head;
    struct buffer head;          /* then: the header */
    bool body_utf8;              /* possibly; computed only where needed */
    int64_t size;                /* of the content so far */
    const struct refusal *fault; /* of the content: the reply after its end */
    struct text content;         /* the slice to write */
    char id[ID_LENGTH + 1];      /* these three: set by transaction_seal() */
    const char *protocol;
    unsigned recipients;
};

/* Copies sender, size, flags and DSN parameters. priority: the granted one. */
struct server_transaction *transaction_new(const struct mail_parameters *parameters,
                                           int priority);
void transaction_free(struct server_transaction **t);

/* Keeps and parses the argument of RCPT until its reply. domain: of <postmaster> in the
 * envelope. by_peer: cuts the source route off, whose hop must be name. NULL, or the
 * refusal. */
const struct refusal *transaction_ask(struct server_transaction *t,
                                      struct text argument,
                                      const struct path_rules *rules, struct text name,
                                      struct text domain);
/* True: the current recipient is already in the envelope (in normal form). */
bool transaction_knows(const struct server_transaction *t);
/* Adds the current recipient, unless it is in the envelope (in normal form). NULL, or the
 * refusal: a limit of this or of all envelopes. lmtp: it will have its own answer. */
const struct refusal *transaction_accept(struct server_transaction *t, bool lmtp)
    __attribute__((warn_unused_result));

/* Counts content and scans its header; sets fault (once) when a limit is exceeded. */
void transaction_take(struct server_transaction *t, const struct server_rules *rules,
                      struct text content);
/* After the end of the content: the refusal, or NULL. */
const struct refusal *transaction_fault(const struct server_transaction *t);
/* For LMTP: calls each with the answer of every accepted RCPT, in their order: the refusal
 * of an alias that has forwarded the message before, and that of the others, which the
 * client gives again without it. False: no alias has, and nothing was called. */
bool transaction_each_loop(const struct server_transaction *t,
                           void (*each)(void *context, const struct refusal *refusal),
                           void *context);
/* True: more than SERVER_EXCESS_MAX bytes beyond the limit were discarded. */
bool transaction_is_flood(const struct server_transaction *t,
                          const struct server_rules *rules);

/* Writes the trace header into the (named) envelope and gives it away. */
struct envelope *transaction_seal(struct server_transaction *t, const struct server *s,
                                  int64_t now_ms);

#endif
