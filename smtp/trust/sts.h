/* MTA-STS (RFC 8461): reads the TXT record and the policy of a domain, and compares mail
 * hosts with it. Pure; anybody writes them. */
#ifndef SMTP_TRUST_STS_H
#define SMTP_TRUST_STS_H

#include "base/buffer.h"

enum {
    STS_ID_MAX = 32,
    STS_POLICY_MAX = 64 * 1024,  /* octets of the file */
    STS_PATTERNS_MAX = 8 * 1024, /* of all its mx together; more: it is malformed */
    STS_AGE_MAX_S = 31557600
};
enum sts_mode { STS_MODE_NONE, STS_MODE_TESTING, STS_MODE_ENFORCE };

struct sts_policy {
    enum sts_mode mode;
    unsigned max_age_s;
    /* Lower case, sorted, each once, with a space between: equal policies have equal
     * ones. Never NULL after sts_policy_read(); "" for mode none. */
    char *patterns;
};

/* The id of the one record of texts that begins with v=STSv1. False: there is none,
 * several, or one without a valid id, which is as if there were none. */
bool sts_read_record(const struct text *texts, size_t count, char id[STS_ID_MAX + 1])
    __attribute__((warn_unused_result));

/* False: *why is a sentence for people, and there is nothing to free. */
bool sts_policy_read(struct text file, struct sts_policy *out, const char **why)
    __attribute__((warn_unused_result));
void sts_policy_free(struct sts_policy *policy);

bool sts_is_id(struct text id);
/* Whether a pattern of a policy: "host" or "*.host", where "*" is exactly one label. */
bool sts_is_pattern(struct text pattern);
/* Whether host matches one of the patterns, in any case, without regard to its last dot.
 */
bool sts_matches(const char *patterns, struct text host);

/* "none", "testing", "enforce". */
const char *sts_mode_word(enum sts_mode mode);
/* False: another word. */
bool sts_mode_read(struct text word, enum sts_mode *mode)
    __attribute__((warn_unused_result));

/* --- Lines of lock/sts: one for each policy that is kept ---------------------------- */

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
