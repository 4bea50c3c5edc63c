/* The lines of lock/sts: one for each policy that is kept. Pure. */
#ifndef SMTP_CLIENT_STS_FILE_H
#define SMTP_CLIENT_STS_FILE_H

#include "base/buffer.h"
#include "smtp/client/sts.h"

struct sts_line {
    struct text domain;
    char id[STS_ID_MAX + 1];
    int64_t fetched_ms; /* since the epoch */
    struct sts_policy policy;
};

/* "1 DOMAIN ID MODE FETCHED_MS MAX_AGE PATTERN..." LF. False: no space. */
bool sts_line_write(struct buffer *out, const struct sts_line *line)
    __attribute__((warn_unused_result));
/* False, with nothing to free: not such a line. Else the policy is to be freed; the
 * domain is borrowed. */
bool sts_line_read(struct text text, struct sts_line *out)
    __attribute__((warn_unused_result));

#endif
