/* Siblings: the other hosts of the group, as a host speaks with them by the peer door
 * (doc/peer-door.md). This is the contract between queue/group/ (gives and takes mail),
 * smtp/peer/ (carries it, and knows no queue) and admin/ (asks and answers questions);
 * admin/startup/ connects them. */
#ifndef QUEUE_GROUP_SIBLINGS_H
#define QUEUE_GROUP_SIBLINGS_H

#include "base/id.h"
#include "base/outcome.h"
#include "queue/envelope/envelope.h"
#include "queue/group/group_settings.h"

enum {
    SIBLING_SPOOL_MAX = 32,   /* hex digits of a spool's identity, lock/identity */
    SIBLING_VERSION_MAX = 31, /* of the program */
    SIBLING_STATE_MAX = 15,   /* running leaving closing emptying giving gone */
    SIBLING_SECTIONS_MAX = ENVELOPE_BYTES_MAX,
    SIBLING_LINE_MAX = 64 * 1024,         /* of JSON */
    SIBLING_ANSWER_MAX = 8 * 1024 * 1024, /* bytes of one answer */
    SIBLING_UNANSWERED = 64,              /* messages on a connection, and bytes: */
    SIBLING_UNANSWERED_BYTES = 16 * 1024 * 1024
};

/* The first words of each side (XPEER). */
#define SIBLING_TIME_MAX_MS INT64_C(253402300799999) /* the year 9999 */

struct sibling_hello {
    char host[GROUP_HOST_MAX + 1];
    char group[GROUP_NAME_MAX + 1];
    char spool[SIBLING_SPOOL_MAX + 1];
    int64_t run_ms;   /* when this run opened the queue */
    int64_t now_ms;   /* its clock; 0: an older version, which does not say it */
    int64_t heard_ms; /* monotonic, here: when it said so */
    char version[SIBLING_VERSION_MAX + 1];
    char state[SIBLING_STATE_MAX + 1];
};

/* The head of a message that is given (XGIVE). Behind it come `sections` bytes, the form
 * of todo/ID with the delivery state (envelope_write_given()), and the content. */
struct sibling_message {
    struct id id; /* at the giver */
    size_t sections;
    int64_t content;
    uint32_t crc; /* CRC32C of the sections and the content */
};

/* --- Calls that come in ------------------------------------------------------------ */

/* A message is durable here, as `own`, and known to the scheduler; or refusal says why
 * not: 4yz another host or later, 5yz never. Called exactly once, in a later turn or
 * within take_end(). */
typedef void sibling_taken(void *context, struct id own, const struct outcome *refusal);
struct taking; /* a message that is being read; queue/group/take.c */

/* Where the lines of an answer go. */
struct sibling_asker {
    void (*line)(void *context, struct text json); /* without a line end */
    void (*end)(void *context);
    /* Lines wait to be sent: no more before sibling_service.ask_resume(). */
    bool (*is_full)(void *context);
    void *context;
};
struct asking; /* a question that is being answered */

struct sibling_service {
    void *context;
    void (*hello)(void *context, struct sibling_hello *out);
    /* Another host has named itself. False: refusal has a reply. */
    bool (*greet)(void *context, const struct sibling_hello *caller,
                  struct outcome *refusal);
    /* NULL: refused, before a byte of it is read; the door reads and drops the bytes. */
    struct taking *(*take)(void *context, const struct sibling_hello *from,
                           const struct sibling_message *message,
                           struct outcome *refusal);
    /* First the sections, then the content, in any pieces. */
    void (*take_bytes)(struct taking *taking, struct text bytes);
    /* Every byte has come. *taking becomes NULL. */
    void (*take_end)(struct taking **taking, sibling_taken *taken, void *taken_context);
    /* The connection broke: nothing is stored. *taking becomes NULL. */
    void (*take_drop)(struct taking **taking);
    /* taken will not be called any more; the message may become durable all the same. */
    void (*take_ignore)(void *context, void *taken_context);
    /* A request of the control protocol, one line of JSON. Never NULL; never answers
     * before it has returned. */
    struct asking *(*ask)(void *context, struct text line,
                          const struct sibling_asker *asker);
    void (*ask_resume)(struct asking *asking);
    /* After end(), or because the caller has gone. *asking becomes NULL. */
    void (*ask_drop)(struct asking **asking);
};

/* --- Calls that go out ------------------------------------------------------------- */

enum sibling_answer {
    SIBLING_TAKEN,   /* 250: durable there */
    SIBLING_LATER,   /* 4yz, or no connection: another one, or later */
    SIBLING_REFUSED, /* 5yz: it stays here */
    SIBLING_LOST     /* no answer: it may be there, or not */
};
typedef void sibling_given(void *context, enum sibling_answer answer, struct id there,
                           const struct outcome *outcome);

/* A message to give. sections is borrowed during the call, the content until the answer. */
struct sibling_gift {
    struct sibling_message message;
    struct text sections;
    /* As queue_content_read(). */
    int64_t (*read)(void *context, int64_t offset, char *to, size_t size);
    void *context; /* of read, and of given */
    sibling_given *given;
};

/* A line of an answer, or its end: trouble is NULL, or says why there is no (whole)
 * answer. */
struct sibling_listener {
    void (*line)(void *context, const char *host, struct text json);
    void (*end)(void *context, const char *host, const char *trouble);
    void *context;
};

/* Another host, as the group knows it. */
struct sibling {
    const char *host, *address; /* HOST:PORT, or "": not known */
    const char *state, *version;
    const char *spool;
    bool is_lost;
};

struct sibling_calls {
    void *context;
    /* Whether the host could be given a message of that size now, without waiting for
     * answers to others. True for a host that is not connected yet. */
    bool (*has_room)(void *context, const char *host, int64_t bytes);
    /* Connects if needed. given is called exactly once, in a later turn. */
    void (*give)(void *context, const char *host, const struct sibling_gift *gift);
    /* end is called exactly once for the host, in a later turn, at the latest after
     * timeout_ms. */
    void (*ask)(void *context, const char *host, struct text line, int64_t timeout_ms,
                const struct sibling_listener *listener);
    /* No callback with that context comes any more. */
    void (*ignore)(void *context, void *callback_context);
};

#endif
