/* Says from the header alone whether a message is a fragment (RFC 2046 §5.2.2), and which
 * set it belongs to (doc/defragment.md "Sets"). Pure.
 *
 * Only a message/partial at the top is a fragment; one within a multipart is a leaf like
 * any other. A message/partial that breaks the rules is malformed, and never part of a
 * set. */
#ifndef DEFRAG_REASSEMBLY_FRAGMENT_H
#define DEFRAG_REASSEMBLY_FRAGMENT_H

#include "base/crypto/digest.h"

enum {
    FRAGMENT_HEADER_MAX = 256 * 1024, /* bytes; a longer header is not examined */
    FRAGMENT_ID_MAX = 512,            /* bytes; with a longer id not a fragment */
    FRAGMENT_DIGITS_MAX = 9           /* of number and total */
};

enum fragment_kind {
    FRAGMENT_NOT,       /* an ordinary message, or one that is to pass as it is */
    FRAGMENT_MALFORMED, /* message/partial against the rules */
    FRAGMENT_GOOD
};

/* From the envelope, and the limit. */
struct fragment_envelope {
    struct text sender; /* without angle brackets; empty: null sender, no fragment */
    bool binary;        /* BODY=BINARYMIME: no lines, no fragment */
    uint32_t parts_max; /* a larger number or total: no fragment */
};

struct fragment_reading {
    enum fragment_kind kind;
    /* One literal sentence for the log, or NULL: why it is malformed, why it is not a
     * fragment although it is a message/partial, or the oddity of a good one. */
    const char *why;
    char id[FRAGMENT_ID_MAX]; /* any bytes, unquoted */
    size_t id_length;
    uint32_t number, total; /* from 1; total 0: not stated */
    size_t body;            /* index of the body's first byte, in the message */
};

/* message: its first bytes, all of it or at least FRAGMENT_HEADER_MAX. id, number,
 * total and body are only set when kind is GOOD. */
void fragment_read(struct text message, const struct fragment_envelope *envelope,
                   struct fragment_reading *out);
struct text fragment_id(const struct fragment_reading *reading);

/* How far the sender's address can be trusted. Sets of different trust never mix: an
 * untrusted client cannot add a fragment to the message of a user. */
enum fragment_trust { FRAGMENT_EXTERNAL, FRAGMENT_INTERNAL, FRAGMENT_LOGIN };

/* The key of the set: SHA-256 over trust, sender (its domain in lower case) and id,
 * each with its length before it. login counts for FRAGMENT_LOGIN alone. A key
 * reveals nothing, and is safe as a name. */
void fragment_key(enum fragment_trust trust, struct text login, struct text sender,
                  struct text id, unsigned char key[DIGEST_SIZE]);
/* The form of all keys: SHA-256 over a byte for the kind (1: fragment_key()), and each
 * text with its length before it. */
void fragment_hash(char kind, const struct text *texts, size_t count,
                   unsigned char key[DIGEST_SIZE]);

#endif
