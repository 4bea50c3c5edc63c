/* The name of a message: `<time>-<hash>`, e.g. 01JD3ZK5Q8-9F3K2C7A
 * (doc/dev/design.md "Names").
 *
 * Ten characters of Crockford base32 for milliseconds since the epoch, a hyphen, eight
 * for 40 bits of hash. Sorting names is first-in-first-out; the hash's top bits are
 * the slice. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/text.h"

enum { ID_LENGTH = 19, ID_HASH_BITS = 40, ID_SLICES_MAX = 1024 };

struct id {
    uint64_t time_ms; /* 50 bits */
    uint64_t hash;    /* ID_HASH_BITS */
};

struct id id_make(uint64_t time_ms, const unsigned char digest[5]);
/* Writes ID_LENGTH characters and a NUL; returns out. */
char *id_format(struct id id, char out[ID_LENGTH + 1]);
/* The id as text, which lives until the block around it ends. */
#define ID_TEXT(id) id_format((id), (char[ID_LENGTH + 1]){0})
/* Upper case only, exactly ID_LENGTH characters: one name has one spelling. */
bool id_parse(struct text t, struct id *id);
/* As people write it: in any case, with or without its hyphen, as some logs have it. */
bool id_read(struct text t, struct id *id) __attribute__((warn_unused_result));
/* < 0, 0, > 0; oldest first. */
int id_compare(struct id a, struct id b);
/* Its slice of slices (a power of two, 1..ID_SLICES_MAX): the hash's top bits. */
unsigned id_slice(struct id id, unsigned slices);

#endif
