/* Is a message a fragment? Read from its own header alone, before anything is written
 * (RFC 2046 §5.2.2), and which set it belongs to (doc/defragment.md "Sets"). Pure.
 *
 * Only a message/partial at the top is a fragment; one within a multipart is a leaf as
 * any other. What says message/partial, but breaks its rules, is malformed: it is never
 * put into a set, whatever else becomes of it. */
#ifndef DEFRAG_FRAGMENT_H
#define DEFRAG_FRAGMENT_H

#include "base/crypto/digest.h"

enum {
    FRAGMENT_HEADER_MAX = 256 * 1024, /* bytes; a longer header is not looked into */
    FRAGMENT_ID_MAX = 512,            /* bytes; a longer id makes no fragment */
    FRAGMENT_DIGITS_MAX = 9           /* of number and total */
};

enum fragment_kind {
    FRAGMENT_NOT,       /* an ordinary message, or one that is to pass as it is */
    FRAGMENT_MALFORMED, /* message/partial against the rules */
    FRAGMENT_GOOD
};

/* What the envelope says. */
struct fragment_envelope {
    struct text sender; /* without angle brackets; empty is the null sender: never */
    bool binary;        /* BODY=BINARYMIME: has no lines to be joined at */
    uint32_t parts_max; /* of a set; more make no fragments */
};

struct fragment_reading {
    enum fragment_kind kind;
    /* One sentence for the log, a literal: why it is malformed, or no fragment although
     * it is a message/partial; of a good one what is odd about it; else NULL. */
    const char *why;
    char id[FRAGMENT_ID_MAX]; /* any bytes, byte for byte as unquoted: data, no name */
    size_t id_length;
    uint32_t number, total; /* from 1; total 0: it does not say */
    size_t body;            /* index of the body's first byte, in the message */
};

/* message: its first bytes, all of it or at least FRAGMENT_HEADER_MAX. id, number,
 * total and body are only set when kind is GOOD. */
void fragment_read(struct text message, const struct fragment_envelope *envelope,
                   struct fragment_reading *out);
struct text fragment_id(const struct fragment_reading *reading);

/* How far the sender's address can be believed: sets of different trust never mix, so
 * that nobody outside can slip a fragment into what a user sends. */
enum fragment_trust { FRAGMENT_EXTERNAL, FRAGMENT_INTERNAL, FRAGMENT_LOGIN };

/* The key of the set: SHA-256 over trust, sender (its domain in lower case) and id,
 * each with its length before it. login counts for FRAGMENT_LOGIN alone. Nothing can be
 * read from a key, and it is safe as a name. */
void fragment_key(enum fragment_trust trust, struct text login, struct text sender,
                  struct text id, unsigned char key[DIGEST_SIZE]);
/* What all keys are: SHA-256 over a byte that tells which kind it is (1: the one
 * above), and each text with its length before it. */
void fragment_hash(char kind, const struct text *texts, size_t count,
                   unsigned char key[DIGEST_SIZE]);

#endif
