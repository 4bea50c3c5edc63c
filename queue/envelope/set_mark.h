/* The mark of a fragment's set, sent from one of our hosts to another as the value of
 * the MAIL parameter XDEFRAG: "KEY;DEPTH;EPOCH", with an "o" behind it for mail that is
 * ours (envelope.ours) (pure; doc/defragment.md "Hosts"). */
#ifndef QUEUE_ENVELOPE_SET_MARK_H
#define QUEUE_ENVELOPE_SET_MARK_H

#include "base/crypto/digest.h"

enum {
    SET_MARK_DEPTH_MAX = 3, /* one digit */
    SET_MARK_EPOCH_DIGITS = 12,
    SET_MARK_LENGTH_MAX = 2 * DIGEST_SIZE + 1 + 1 + 1 + SET_MARK_EPOCH_DIGITS + 1,
    SET_MARK_SIZE = SET_MARK_LENGTH_MAX + 1
};
#define SET_MARK_EPOCH_MAX_S INT64_C(999999999999)

struct set_mark {
    unsigned char key[DIGEST_SIZE];
    unsigned depth;  /* number of times that its message was reassembled */
    int64_t epoch_s; /* since 1970: its first arrival at any of our hosts */
    bool ours;
};

/* NUL-terminated; depth and epoch_s are within their limits. */
void set_mark_write(const struct set_mark *mark, char out[SET_MARK_SIZE]);
/* 64 lower-case hexadecimal digits, one of 0 to 3, 1 to 12 decimal digits, two
 * semicolons, perhaps an "o": nothing else. False leaves *mark undefined. */
bool set_mark_read(struct text t, struct set_mark *mark)
    __attribute__((warn_unused_result));

#endif
