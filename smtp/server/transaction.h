/* One mail transaction of a server session: what MAIL begins and one function ends.
 * Only server.c uses it. */
#ifndef SMTP_SERVER_TRANSACTION_H
#define SMTP_SERVER_TRANSACTION_H

#include "base/arena.h"
#include "mime/header.h"
#include "smtp/server/normalize_newlines.h"
#include "smtp/server/parameters.h"
#include "smtp/server/server.h"

struct id_set;

struct server_transaction {
    struct envelope *envelope; /* NULL once given away */
    struct text sender;        /* in arena: outlives the envelope, for the log */
    int64_t expected;          /* SIZE= */
    bool has_priority;         /* asked for; the envelope knows what it got */
    bool priority_changed;     /* ...which is not that */
    bool by_peer;              /* has XDEFRAG: see smtp/redirect.h */
    bool joins;                /* fragments, on the way to a recipient at least */
    unsigned accepted;         /* RCPTs answered with 250, repeated ones included */
    struct id_set *seen;       /* hash of recipients */
    struct arena arena;
    struct server_envelopes *envelopes; /* NULL: nobody counts */
    size_t envelopes_max, counted;      /* of it: its limit for us, our part */

    struct buffer argument;      /* of the RCPT that waits for its answer... */
    struct rcpt_parameters rcpt; /* ...and what it says: slices of argument */
    struct buffer normal;        /* its address in normal form */
    struct buffer original;      /* ORCPT, when we make it */

    bool draft;   /* one is open */
    bool chunked; /* BDAT */
    bool chunk_last;
    uint64_t chunk_size, chunk_left;
    struct newlines_content newlines;
    struct dot_decoder dot;
    struct dot_checker checker;
    struct header_scan header;
    bool body_utf8;              /* perhaps; only looked at where it matters */
    int64_t size;                /* of the content so far */
    const struct refusal *fault; /* found in the content: the answer after its end */
    struct text content;         /* the slice to write */
    char id[ID_LENGTH + 1];      /* these three since the envelope was sealed */
    const char *protocol;
    unsigned recipients;
};

/* Takes sender, size, flags and DSN wishes from parameters (copied). priority is what
 * is granted of theirs. */
struct server_transaction *transaction_new(const struct mail_parameters *parameters,
                                           int priority);
void transaction_free(struct server_transaction **t);

/* Keeps the argument of RCPT until its answer: rcpt then describes it, as it was said;
 * the envelope has <postmaster> at domain. by_peer: without the route, which must be to
 * name. */
const struct refusal *transaction_ask(struct server_transaction *t,
                                      struct text argument, struct text name,
                                      struct text domain);
/* True when the recipient in question is one already (in normal form). */
bool transaction_knows(const struct server_transaction *t);
/* Adds the recipient in question. NULL, or why not: a limit of the envelope, or of all
 * of them. */
const struct refusal *transaction_add(struct server_transaction *t)
    __attribute__((warn_unused_result));

/* Counts content, scans its header; sets fault (once) when a limit is passed. */
void transaction_take(struct server_transaction *t, const struct server_rules *rules,
                      struct text content);
/* The content is whole: what is wrong with it, or NULL. */
const struct refusal *transaction_fault(const struct server_transaction *t);
/* More was sent beyond the limit than is worth discarding. */
bool transaction_is_flood(const struct server_transaction *t,
                          const struct server_rules *rules);

/* Writes the trace header into the (named) envelope and gives it away. */
struct envelope *transaction_seal(struct server_transaction *t, const struct server *s,
                                  int64_t now_ms);

#endif
