/* The header of submitted mail, as it leaves: From is added where it is missing, fields
 * that are not for the next hop are removed. Pure.
 *
 * What is not changed stays as it is, byte for byte: folding, case, comments. */
#ifndef MIME_REWRITE_H
#define MIME_REWRITE_H

#include "base/buffer.h"

struct rewrite {
    struct text hostname; /* ours */
    struct text sender;   /* of the envelope, "" is the null path: for a missing From */
};

/* Appends the header (without the empty line that ends it) as it leaves. False: out's
 * limit is reached. */
bool rewrite_header(const struct rewrite *r, struct text header, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
