/* A message that is being posted: its envelope, its key, and its answer. For the files of
 * this room. */
#ifndef ADMIN_POST_POSTING_H
#define ADMIN_POST_POSTING_H

#include "admin/post/post_door.h"
#include "admin/post/post_records.h"
#include "base/crypto/digest.h"
#include "smtp/session/session_post.h"

enum {
    POST_ENVELOPE_MAX = 64 * 1024,
    POST_IDEMPOTENCY_MAX = 255,
    POST_TURN_RECIPIENTS = 40 /* that are routed in a turn: an alias may be long */
};

struct post_object;

struct post_door {
    struct post_setup setup;
    char spool[80];         /* of a body that is read twice: post_spool.h */
    struct post_keys *keys; /* NULL: none */
    struct post_records *records;
    struct posting *orphans; /* their clients have gone; they are being stored */
};

struct post_refusals {
    json_t *list; /* NULL: none */
    size_t count;
    struct outcome first; /* the first that is for ever, or the first */
};

struct posting {
    struct post_door *door;
    struct http_exchange *exchange;
    struct post_keys *keys; /* a use */
    char name[POST_KEY_NAME_MAX + 1];
    struct session_post *post; /* NULL: not begun */
    struct digest digest;      /* of all that the client has said */
    struct buffer envelope;    /* sender, then recipients, each with a NUL */
    size_t recipients;
    int64_t send_at_ms; /* 0, or one of the past: now */
    size_t at;          /* in the envelope: MAIL and RCPT were said of what is before */
    struct post_refusals refusals;
    bool utf8;
    bool has_key; /* of idempotency */
    bool pending; /* it is being stored, and so is its record */
    unsigned char key[POST_DIGEST_SIZE];
    struct posting *prev, *next; /* of orphans */
    struct post_object *object;  /* of JSON; NULL: the message comes whole */
};

/* Adds an address, without brackets. NULL, or why not. The first is the sender. */
const char *posting_add(struct posting *p, struct text address);
/* MAIL. False: the exchange has its answer. */
bool posting_begin(struct posting *p, int64_t size);
/* Then RCPT, for POST_TURN_RECIPIENTS of them. MORE: there are others; BAD: the exchange
 * has its answer. */
enum progress posting_go_on(struct posting *p);
/* Reads Idempotency-Key. False: the exchange has its answer. */
bool posting_read_key(struct posting *p);
/* A message was posted with the key: only the body is to be compared. */
bool posting_is_known(const struct posting *p);
/* The content is complete; the exchange gets its answer. */
void posting_end(struct posting *p);
/* Now, or when it is stored. */
void posting_free(void *posting);

#endif
