/* The header of submitted mail, as it leaves (doc/outgoing.md "The header"). Pure.
 *
 * From is added where it is missing, and made anew where it is empty or cannot be parsed:
 * its text becomes the name, and the old field X-Original-From; fields that are not for
 * the next hop are removed, and white space before a colon, which is obsolete (RFC 5322
 * §4.5) and is read in different ways; addresses are replaced as the caller says, and
 * completed where they have no domain. Only addr-specs change (RFC 5322 §3.4.1): names,
 * groups, comments, encoded words and folding stay, byte for byte, and so does another
 * field that cannot be parsed. */
#ifndef MIME_REWRITE_H
#define MIME_REWRITE_H

#include "base/buffer.h"

enum {
    REWRITE_ADDRESS_MAX = 512,     /* bytes of an address and its NUL */
    REWRITE_FIELD_MAX = 64 * 1024, /* a longer value stays */
    REWRITE_ADDRESSES_MAX = 1000   /* of a field; one with more stays */
};

/* The result for an address. */
struct rewrite_answer {
    bool by_local; /* replaced as one of those that are local to their host */
    bool local;    /* it is one of those, even if another rule replaces it */
    char address[REWRITE_ADDRESS_MAX]; /* the new one; "": it stays */
};

struct rewrite {
    struct text hostname; /* ours: "@hostname" completes an address */
    struct text sender;   /* of the envelope, "" is the null path: for a missing From */
    /* NULL: none is replaced. address: in normal form, or a local part alone. */
    void (*find)(const void *table, struct text address, struct rewrite_answer *answer);
    const void *table;
    unsigned unparsed; /* set: fields that stay since they cannot be parsed; */
    struct text odd;   /* then: the name of the first of them, in the header */
    bool made_from;    /* set: instead of one that is empty or cannot be parsed */
    bool quoted_name;  /* set: "Doe, John <a@b>" has got its quotes */
    bool breaks_dkim;  /* set: addresses change that a DKIM-Signature may cover */
};

/* Appends the header (without the empty line that ends it) as it leaves. False: out's
 * limit is reached. */
bool rewrite_header(struct rewrite *r, struct text header, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
