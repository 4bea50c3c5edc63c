/* The message of `petrel test`: short, and about nobody. */
#ifndef ADMIN_CONTROL_TEST_MESSAGE_H
#define ADMIN_CONTROL_TEST_MESSAGE_H

#include "base/buffer.h"

enum { TEST_MESSAGE_MAX = 4096 };

/* Adds a message with CRLF line ends: header with sender and recipient, and a body that
 * names host and time. Addresses are qualified and without control characters. False: it
 * does not fit. */
bool test_message_write(struct buffer *out, const char *hostname, struct text sender,
                        struct text recipient, int64_t now_ms)
    __attribute__((warn_unused_result));

#endif
