/* Expands a recipient: to the members of its alias, or to the address that an address of
 * SRS stands for, each with its own sender. Used where mail comes in: at RCPT, when an
 * injector's message is first loaded, and for our own notifications. No I/O. */
#ifndef QUEUE_MANAGER_EXPANSION_H
#define QUEUE_MANAGER_EXPANSION_H

#include "mime/verp.h"
#include "queue/envelope/envelope.h"
#include "sched/route/aliases.h"

enum { EXPANSION_BYTES_MAX = 2 * 1024 * 1024 };

/* All borrowed. */
struct expansion_rules {
    const struct route_table *routes; /* NULL: nothing is expanded */
    struct aliases *aliases;          /* NULL: there are none */
    const struct srs *srs;            /* NULL: senders stay */
    const struct verp *verp;          /* NULL: no reports are read */
};

struct expansion_question {
    struct text address; /* of the recipient, local@domain, in normal form */
    struct text sender;  /* of the message */
    bool ours;
    int64_t now_ms;
};

enum expansion_kind {
    EXPANSION_NONE,    /* the recipient stays as it is */
    EXPANSION_ONE,     /* it is another address */
    EXPANSION_SEVERAL, /* it is several */
    EXPANSION_LIST,    /* a list with an owner */
    EXPANSION_SRS,     /* an address of SRS that was made here */
    EXPANSION_FORGED,  /* another one, or one that is too old */
    EXPANSION_UNSURE,  /* one of them: the secret of SRS cannot be read now */
    EXPANSION_RETURN,  /* reports come to it (manager_returns.c); the recipient stays */
    EXPANSION_FORGED_RETURN, /* a tagged sender that is not ours, or too old */
    EXPANSION_TOO_MANY,
    EXPANSION_EMPTY /* an alias without an address */
};

struct expansion_member {
    struct text address;
    struct text sender; /* its own; empty: that of the message */
};

/* Zeroed before first use. */
struct expansion {
    enum expansion_kind kind;
    struct expansion_member *members;
    unsigned count;
    size_t bytes; /* of the texts of its members */
    unsigned
        long_senders; /* members that keep the sender, as that of SRS is too long */
    struct arena arena;
};

/* True: nothing has an alias, so that nobody need ask. */
bool expansion_is_idle(const struct expansion_rules *rules);
/* Fills x, with members unless the kind is NONE, FORGED, UNSURE, TOO_MANY or EMPTY. */
void expansion_make(struct expansion *x, const struct expansion_rules *rules,
                    const struct expansion_question *question);
void expansion_free(struct expansion *x);

/* Whether the alias remains as a recipient, to be reported as expanded. */
bool expansion_reports(const struct expansion *x, unsigned notify, struct text sender);

/* Adds the members of x, made for the recipient, to the envelope, but for addresses that
 * `known` says are in it; then `add` is called for each that was added (both may be NULL).
 * False: a limit of the envelope is reached; some may have been added. */
struct expansion_target {
    struct envelope *envelope;
    bool (*known)(void *context, struct text address);
    bool (*added)(void *context, const struct recipient *r);
    void *context;
};
bool expansion_add(const struct expansion *x, const struct expansion_question *question,
                   unsigned notify, struct text original,
                   const struct expansion_target *target)
    __attribute__((warn_unused_result));

/* For a whole envelope, from an injector, before any recipient is marked. A recipient that
 * cannot be expanded stays, and says why: see recipient.refused. The number of addresses
 * that were looked at. was_delivered: a Delivered-To of the message has the address. */
unsigned expansion_apply(struct envelope *e, const struct expansion_rules *rules,
                         int64_t now_ms,
                         bool (*was_delivered)(void *context, struct text address),
                         void *context);

#endif
