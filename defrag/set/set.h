/* Sets of fragments: which fragments belong together, for which recipients a set is
 * complete, when a set is given up (doc/defragment.md "Sets"). Pure: (event, now) ->
 * actions.
 *
 * A set has a key, and holds messages that are its fragments. Each fragment is for some
 * recipients, which may differ between fragments. A recipient is complete when all
 * numbers are there for that recipient; recipients that become complete together share
 * one reassembled message.
 *
 * No limit, timeout or error removes a fragment: it is released, to be delivered as it
 * came. A closed set is remembered for as long as it could have been open: a repetition
 * of a reassembled fragment is absorbed, and any other fragment passes. Otherwise a
 * second set would begin that could never be complete. */
#ifndef DEFRAG_SET_SET_H
#define DEFRAG_SET_SET_H

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/crypto/tag.h"

enum {
    SET_KEY_SIZE = DIGEST_SIZE,
    SET_NUMBER_MAX = 100000,  /* regardless of the limits */
    SET_MESSAGES_MAX = 10000, /* of a set; beyond it the set is released */
    SET_NOBODY = 0            /* a sender or client without a quota */
};

struct set_limits {
    uint32_t parts;                  /* of a set; with more: not fragments */
    int64_t set_bytes;               /* bodies of a set; 0 = no limit, as below */
    size_t sets;                     /* open; beyond it the oldest is released */
    size_t sender_sets, client_sets; /* open, of one; beyond it fragments pass */
    int64_t bytes;     /* bodies of all; beyond it the oldest sets are released */
    size_t recipients; /* of all fragments held; beyond it fragments pass. As many
                          messages, at most, are on their way to other hosts.
                          Closed sets have 8 bytes for each; beyond it the oldest of
                          these are forgotten */
};

struct fragment {
    unsigned char key[SET_KEY_SIZE];
    struct id id;                   /* of the message that it is */
    uint32_t number, total;         /* from 1; total 0: it does not say */
    unsigned char digest[TAG_SIZE]; /* of its body */
    int64_t size;                   /* of its body */
    int64_t until_ms, memory_ms;    /* when its set is given up (the earliest of all its
                                       fragments' counts), and, if it begins the set, how
                                       long that is remembered then */
    uint64_t sender, client;        /* whose quota it counts for, as a hash */
    const struct text *recipients;  /* in normal form, each once */
    size_t count;
};

enum set_reason {
    SET_REASSEMBLED, /* a repetition after reassembly, for other recipients */
    SET_TIMEOUT,     /* of the set, or before */
    SET_CONFLICT,    /* two totals, or two bodies for one number */
    SET_LIMIT,       /* one of set_limits */
    SET_TROUBLE      /* reassembly has failed: sets_failed() */
};
const char *set_reason_text(enum set_reason reason);

enum set_verdict {
    SET_HOLDS,   /* it waits; the set may be complete: sets_next_reassembly() */
    SET_ABSORBS, /* all its recipients have it already */
    SET_PASSES   /* it is delivered as it is; see reason */
};
struct set_answer {
    enum set_verdict verdict;
    enum set_reason reason;
    uint32_t have, total; /* numbers of the set that are there; total 0: not known */
    /* HOLDS: indexes of recipients that have it already, for which it is absorbed; the
     * caller's array has space for fragment->count of them. */
    unsigned *absorbed;
    size_t absorbed_count;
};

struct sets;

struct sets *sets_new(const struct set_limits *limits);
/* Ends reassemblies that are under way, as if they had not begun. */
void sets_free(struct sets **sets);
/* Open sets stay, also beyond the new limits. */
void sets_limit(struct sets *sets, const struct set_limits *limits);

/* number and total are within limits->parts, the recipients at least one. Releases of
 * others that it causes come from sets_next_released(). */
void sets_add(struct sets *sets, const struct fragment *f, int64_t now_ms,
              struct set_answer *answer);

/* --- Actions ---------------------------------------------------------------------- */

/* The next message to be delivered as it is, to the recipients that are left; it has
 * left its set. False: none. */
struct set_released {
    struct id id;
    enum set_reason reason;
    unsigned char key[SET_KEY_SIZE];
};
bool sets_next_released(struct sets *sets, struct set_released *released)
    __attribute__((warn_unused_result));

/* The next set of this host that has ended, why, and the time for which it is
 * remembered; 0: it is not. False: none. */
struct set_closed {
    unsigned char key[SET_KEY_SIZE];
    int64_t memory_ms;
    enum set_reason reason;
};
bool sets_next_closed(struct sets *sets, struct set_closed *closed)
    __attribute__((warn_unused_result));

/* --- Ended sets, over a restart --------------------------------------------------- */

/* Remembers a set that an earlier run has ended, at that time: its fragments pass, also
 * repetitions. Before the first sets_add(), oldest first; the same key may come again, and
 * the last one counts. */
void sets_recall(struct sets *sets, const struct set_closed *closed, int64_t ended_ms);
/* Calls each() for the newest `most` of the sets that are remembered, oldest first. */
void sets_each_closed(const struct sets *sets, size_t most,
                      void (*each)(void *context, const struct set_closed *closed,
                                   int64_t ended_ms),
                      void *context);

/* A complete set of fragments. Everything in it lives until sets_reassembled() or
 * sets_failed(). */
struct set_served { /* this recipient no longer needs that message */
    struct id id;
    struct text recipient;
};
struct set_reassembly {
    unsigned char key[SET_KEY_SIZE];
    const struct id *parts; /* one for each number from 1 on */
    const int64_t *sizes;   /* of their bodies */
    uint32_t count;
    const struct text *recipients;
    size_t recipient_count;
    const struct set_served *served;
    size_t served_count;
};
/* NULL: none. Each must end, in any order and at any time, with one of the next two. */
const struct set_reassembly *sets_next_reassembly(struct sets *sets);
/* The reassembled message is durable: its recipients no longer need the parts. */
void sets_reassembled(struct sets *sets, const struct set_reassembly *reassembly,
                      int64_t now_ms);
/* The set cannot be reassembled, and is released. */
void sets_failed(struct sets *sets, const struct set_reassembly *reassembly,
                 int64_t now_ms);

/* --- Time, and the operator ------------------------------------------------------- */

/* When sets_tick() is due; INT64_MAX: never. */
int64_t sets_wake_ms(const struct sets *sets);
/* Gives up sets that are due. Its work is bounded: while sets_wake_ms() is not later
 * than now_ms it is to be called again, when the releases have been taken. */
void sets_tick(struct sets *sets, int64_t now_ms);
/* The set of the message, if it is open, ends then at the latest. */
void sets_shorten(struct sets *sets, struct id id, int64_t until_ms);
/* Takes the message out of its set: an operator has removed it, or it is to be delivered
 * now. A set without a reassembly ends with its last message. False: it was in no set,
 * or is being reassembled. */
bool sets_forget(struct sets *sets, struct id id) __attribute__((warn_unused_result));

struct sets_count {
    size_t open, closed, messages;
    int64_t bytes, oldest_ms; /* first birth in the oldest open set; 0 = none */
};
struct sets_count sets_count(const struct sets *sets);

/* Calls each() for at most count open sets, oldest first, but for the first `from` of
 * them. Returns their number. */
struct set_info {
    unsigned char key[SET_KEY_SIZE];
    struct id first;       /* a message of it; all 0: it is ending */
    struct text recipient; /* one of them; borrowed */
    size_t recipients, messages;
    uint32_t have, total, highest;
    int64_t bytes, birth_ms, until_ms;
    bool reassembling;
};
size_t sets_list(const struct sets *sets, size_t from, size_t count,
                 void (*each)(void *context, const struct set_info *set),
                 void *context);
/* Describes the set that holds a message. False: none does. */
struct set_view {
    uint32_t have, total, highest;
    int64_t until_ms;
    bool reassembling;
    unsigned char key[SET_KEY_SIZE];
};
bool sets_find(const struct sets *sets, struct id id, struct set_view *view);
/* Calls each() for every message of the set; each() may forget that message. */
void sets_each_part(const struct sets *sets, const unsigned char key[SET_KEY_SIZE],
                    void (*each)(void *context, struct id id), void *context);
/* True: a set of that key is open or remembered. */
bool sets_have(const struct sets *sets, const unsigned char key[SET_KEY_SIZE]);
/* True: the set has that number (see sets_find()). */
bool sets_has(const struct sets *sets, const unsigned char key[SET_KEY_SIZE],
              uint32_t number);

#endif
