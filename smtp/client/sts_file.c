/* Writes and reads policies that are kept. Every value is checked: a file can be damaged,
 * and a policy says which hosts to trust. */
#include "smtp/client/sts_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1 };

bool
sts_line_write(struct buffer *out, const struct sts_line *line)
{
    const struct sts_policy *p = &line->policy;
    return buffer_format(out, "%d %.*s %s %s %" PRId64 " %u%s%s\n", VERSION,
                         TEXT_ARGS(line->domain), line->id, sts_mode_word(p->mode),
                         line->fetched_ms, p->max_age_s,
                         p->patterns[0] != '\0' ? " " : "", p->patterns);
}

static bool
sts_line_has_patterns(struct text patterns, enum sts_mode mode)
{
    struct text pattern, rest = patterns;
    if (patterns.length > STS_PATTERNS_MAX)
        return false;
    while (text_word(&rest, " ", &pattern))
        if (!sts_is_pattern(pattern))
            return false;
    return (patterns.length == 0) == (mode == STS_MODE_NONE);
}

bool
sts_line_read(struct text text, struct sts_line *out)
{
    struct text version, id, mode, fetched, age;
    uint64_t number, fetched_ms, age_s;
    memset(out, 0, sizeof(*out));
    bool good = text_word(&text, " ", &version) &&
                text_word(&text, " ", &out->domain) && text_word(&text, " ", &id) &&
                text_word(&text, " ", &mode) && text_word(&text, " ", &fetched) &&
                text_word(&text, " ", &age) && text_number(version, VERSION, &number) &&
                number == VERSION && sts_is_pattern(out->domain) &&
                out->domain.at[0] != '*' && sts_is_id(id) &&
                sts_mode_read(mode, &out->policy.mode) &&
                text_number(fetched, INT64_MAX / 2, &fetched_ms) &&
                text_number(age, STS_AGE_MAX_S, &age_s);
    text = text_trim(text);
    if (!good || !sts_line_has_patterns(text, out->policy.mode))
        return false;
    text_copy(out->id, sizeof(out->id), id);
    out->fetched_ms = (int64_t)fetched_ms;
    out->policy.max_age_s = (unsigned)age_s;
    out->policy.patterns = text_string(text);
    return true;
}
