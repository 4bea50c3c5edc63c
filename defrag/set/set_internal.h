/* Declarations that the files of sets share. Internal to defrag/set/. */
#ifndef DEFRAG_SET_SET_INTERNAL_H
#define DEFRAG_SET_SET_INTERNAL_H

#include "base/heap.h"
#include "defrag/set/set.h"

#include <uthash.h>
#include <utlist.h>

/* A recipient of a set, and the numbers that it has. */
struct wanted {
    UT_hash_handle hh;
    uint64_t *numbers; /* bits */
    size_t words;
    uint32_t count;
    bool served; /* reassembled for it, or being so */
    char address[];
};

/* One recipient of one message. */
struct need {
    struct wanted *wanted;
    bool served;
};

struct part {
    UT_hash_handle hh;        /* of all messages, by id */
    struct part *prev, *next; /* of the slot */
    struct part *set_prev, *set_next;
    struct set *set;
    struct slot *slot;
    struct id id;
    uint32_t total; /* that it states */
    int64_t size;
    size_t left, count; /* needs not served; all */
    struct need needs[];
};

/* A number of a set. */
struct slot {
    UT_hash_handle hh;
    uint32_t number;
    unsigned char digest[TAG_SIZE];
    struct part *parts;
};

struct quota {
    UT_hash_handle hh;
    uint64_t whose;
    size_t sets;
};

enum set_state { SET_OPEN, SET_DONE, SET_GIVEN_UP };

struct set {
    UT_hash_handle hh;
    unsigned char key[SET_KEY_SIZE];
    enum set_state state;
    uint32_t total, highest, have;
    struct slot *slots;
    struct wanted *wanted;
    struct part *parts;
    int64_t bytes, memory_ms, birth_ms;
    size_t messages; /* parts */
    uint64_t sender, client;
    /* Closed: the sorted hashes of recipients that have all numbers, and their size. */
    uint64_t *served;
    size_t served_count, closed_bytes;
    unsigned reassemblies; /* under way: it is not given up meanwhile... */
    bool is_doomed;        /* ...but then */
    enum set_reason doom;
    enum set_reason reason; /* closed: why */
    struct heap_due timer;
    struct set *prev, *next; /* open, or closed: oldest first */
};

struct completed {
    struct set_reassembly view;
    struct set *set;
    struct completed *prev, *next;
    struct id *parts;
    int64_t *sizes;
    struct text *recipients;
    struct set_served *served;
    struct part **served_parts; /* of served */
};

struct release {
    struct release *prev, *next;
    struct set_released view;
};

struct closure {
    struct closure *next;
    struct set_closed view;
};

struct sets {
    struct set_limits limits;
    struct set *by_key, *open, *closed;
    struct part *by_id;
    struct quota *senders, *clients;
    struct heap timers;
    struct completed *reassemblies, *taken; /* not yet taken; under way */
    struct release *releases;
    struct closure *closures;
    size_t open_count, closed_count, closed_bytes, messages, recipients, release_count;
    int64_t bytes;
};

/* --- set_parts.c ------------------------------------------------------------------ */

/* NULL: not a recipient of the set. */
struct wanted *set_wanted_find(struct set *set, struct text address);
bool set_wanted_has(const struct wanted *w, uint32_t number);
/* Sets or clears the number, which was not so before. */
void set_wanted_put(struct wanted *w, uint32_t number, bool there);

struct slot *set_slot_find(struct set *set, uint32_t number);

/* Adds a message for its recipients except the absorbed ones (indexes in order). */
void set_part_keep(struct sets *s, struct set *set, const struct fragment *f,
                   const unsigned *absorbed, size_t absorbed_count);
/* Removes the message from the set; its recipients keep the numbers that they have. */
void set_part_free(struct sets *s, struct part *p);
/* For a closed set: replaces its recipients by hashes. Returns its bytes then. */
size_t set_compact(struct set *set);
/* Closed: on a collision of hashes another recipient loses a fragment of its own
 * set. */
bool set_has_served(const struct set *set, struct text address);
/* Frees all numbers and recipients; no message is left. */
void set_forget_numbers(struct set *set);

#endif
