/* Reads MTA-STS records and policies: RFC 8461 §3.1, §3.2, §4.1. */
#include "smtp/trust/sts.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 32,
    LABEL_MAX = 63,
    HOST_MAX = 253,
    PATTERNS_EACH_MAX = 1024,
    LINE_VERSION = 1
};

static const char *const sts_modes[] = {"none", "testing", "enforce"};

const char *
sts_mode_word(enum sts_mode mode)
{
    return sts_modes[mode];
}

bool
sts_mode_read(struct text word, enum sts_mode *mode)
{
    for (unsigned i = 0; i < sizeof(sts_modes) / sizeof(sts_modes[0]); i++)
        if (text_equal(word, text_from(sts_modes[i]))) {
            *mode = (enum sts_mode)i;
            return true;
        }
    return false;
}

/* --- Names ------------------------------------------------------------------------ */

static bool
sts_is_alnum(char c)
{
    return text_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
sts_is_label(struct text label)
{
    if (label.length == 0 || label.length > LABEL_MAX)
        return false;
    for (size_t i = 0; i < label.length; i++)
        if (!sts_is_alnum(label.at[i]) && label.at[i] != '-' && label.at[i] != '_')
            return false;
    return true;
}

bool
sts_is_pattern(struct text pattern)
{
    struct text label;
    if (text_starts(pattern, TEXT("*.")))
        pattern = text_after(pattern, 2);
    if (pattern.length == 0 || pattern.length > HOST_MAX)
        return false;
    while (text_cut(&pattern, '.', &label))
        if (!sts_is_label(label))
            return false;
    return true;
}

static bool
sts_matches_one(struct text pattern, struct text host)
{
    if (!text_starts(pattern, TEXT("*.")))
        return text_equal_nocase(pattern, host);
    size_t dot = text_find(host, '.');
    return dot != TEXT_NONE && dot > 0 &&
           text_equal_nocase(text_after(pattern, 1), text_after(host, dot));
}

bool
sts_matches(const char *patterns, struct text host)
{
    struct text rest = text_from(patterns), pattern;
    if (host.length > 1 && host.at[host.length - 1] == '.')
        host.length--;
    while (text_word(&rest, " ", &pattern))
        if (sts_matches_one(pattern, host))
            return true;
    return false;
}

/* --- Record ----------------------------------------------------------------------- */

bool
sts_is_id(struct text id)
{
    for (size_t i = 0; i < id.length; i++)
        if (!sts_is_alnum(id.at[i]))
            return false;
    return id.length > 0 && id.length <= STS_ID_MAX;
}

static bool
sts_read_id(struct text value, char id[STS_ID_MAX + 1])
{
    return sts_is_id(value) && text_copy(id, STS_ID_MAX + 1, value);
}

/* Fields after the version; the first id counts. */
static bool
sts_read_fields(struct text rest, char id[STS_ID_MAX + 1])
{
    struct text field;
    while (text_cut(&rest, ';', &field)) {
        field = text_trim(field);
        if (text_starts(field, TEXT("id=")))
            return sts_read_id(text_after(field, 3), id);
    }
    return false;
}

/* "v=STSv1", and not "v=STSv10": blanks and ";" follow. */
static bool
sts_take_version(struct text *record)
{
    if (!text_starts(*record, TEXT("v=STSv1")))
        return false;
    struct text rest = text_after(*record, 7);
    while (rest.length > 0 && text_is_blank(rest.at[0]))
        rest = text_after(rest, 1);
    if (rest.length == 0 || rest.at[0] != ';')
        return false;
    *record = text_after(rest, 1);
    return true;
}

bool
sts_read_record(const struct text *texts, size_t count, char id[STS_ID_MAX + 1])
{
    struct text fields = {0};
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        struct text record = texts[i];
        if (sts_take_version(&record)) {
            fields = record;
            found++;
        }
    }
    return found == 1 && sts_read_fields(fields, id);
}

/* --- Policy ----------------------------------------------------------------------- */

/* Keys seen: of a second one of the same key all but mx are ignored. */
struct sts_reading {
    struct text patterns[PATTERNS_EACH_MAX];
    size_t count;
    bool has_version, has_mode, has_age;
    enum sts_mode mode;
    uint64_t age_s;
};

static const char *
sts_take_mx(struct sts_reading *r, struct text value)
{
    if (!sts_is_pattern(value))
        return "an mx of it is not the name of a host";
    if (r->count == PATTERNS_EACH_MAX)
        return "it has too many mx";
    r->patterns[r->count++] = value;
    return NULL;
}

/* NULL: good, or nothing that counts. */
static const char *
sts_take_field(struct sts_reading *r, struct text key, struct text value)
{
    if (text_equal(key, TEXT("mx")))
        return sts_take_mx(r, value);
    if (text_equal(key, TEXT("version")) && !r->has_version) {
        r->has_version = true;
        return text_equal(value, TEXT("STSv1")) ? NULL : "its version is not STSv1";
    }
    if (text_equal(key, TEXT("mode")) && !r->has_mode) {
        r->has_mode = true;
        return sts_mode_read(value, &r->mode)
                   ? NULL
                   : "its mode is not enforce, testing or none";
    }
    if (text_equal(key, TEXT("max_age")) && !r->has_age) {
        r->has_age = true;
        return text_number(value, STS_AGE_MAX_S, &r->age_s)
                   ? NULL
                   : "its max_age is not a number from 0 to 31557600";
    }
    return NULL;
}

static bool
sts_is_key(struct text key)
{
    if (key.length == 0 || key.length > KEY_MAX || !sts_is_alnum(key.at[0]))
        return false;
    for (size_t i = 1; i < key.length; i++)
        if (!sts_is_alnum(key.at[i]) && strchr("_-.", key.at[i]) == NULL)
            return false;
    return true;
}

static const char *
sts_take_line(struct sts_reading *r, struct text line)
{
    if (line.length > 0 && line.at[line.length - 1] == '\r')
        line.length--;
    line = text_trim(line);
    if (line.length == 0)
        return NULL;
    size_t colon = text_find(line, ':');
    if (colon == TEXT_NONE || !sts_is_key(text_before(line, colon)))
        return "a line of it is not \"key: value\"";
    return sts_take_field(r, text_before(line, colon),
                          text_trim(text_after(line, colon + 1)));
}

static int
sts_compare(const void *a, const void *b)
{
    const struct text *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    for (size_t i = 0; i < shorter; i++) {
        int left = x->at[i] | 0x20, right = y->at[i] | 0x20;
        if (left != right)
            return left - right;
    }
    return (x->length > y->length) - (x->length < y->length);
}

static const char *
sts_write_patterns(struct sts_reading *r, struct sts_policy *out)
{
    struct buffer list;
    const char *why = NULL;
    buffer_init(&list, STS_PATTERNS_MAX);
    qsort(r->patterns, r->count, sizeof(r->patterns[0]), sts_compare);
    for (size_t i = 0; i < r->count && why == NULL; i++)
        if ((i == 0 || !text_equal_nocase(r->patterns[i], r->patterns[i - 1])) &&
            !buffer_format(&list, "%s%.*s", list.length > 0 ? " " : "",
                           TEXT_ARGS(r->patterns[i])))
            why = "it has too many mx";
    text_lower(list.at, list.length);
    if (why == NULL)
        out->patterns = text_string(buffer_text(&list));
    buffer_free(&list);
    return why;
}

static const char *
sts_read_lines(struct sts_reading *r, struct text file)
{
    const char *why = NULL;
    struct text line;
    while (why == NULL && text_cut(&file, '\n', &line))
        why = sts_take_line(r, line);
    if (why != NULL)
        return why;
    if (!r->has_version)
        return "it has no version";
    if (!r->has_mode)
        return "it has no mode";
    if (!r->has_age)
        return "it has no max_age";
    if (r->count == 0 && r->mode != STS_MODE_NONE)
        return "it has no mx";
    return NULL;
}

bool
sts_policy_read(struct text file, struct sts_policy *out, const char **why)
{
    struct sts_reading *r = memory_new(sizeof(*r));
    memset(out, 0, sizeof(*out));
    *why = file.length > STS_POLICY_MAX ? "it is too long" : sts_read_lines(r, file);
    /* Without a demand its hosts mean nothing. */
    if (r->mode == STS_MODE_NONE)
        r->count = 0;
    if (*why == NULL)
        *why = sts_write_patterns(r, out);
    out->mode = r->mode;
    out->max_age_s = (unsigned)r->age_s;
    free(r);
    return *why == NULL;
}

void
sts_policy_free(struct sts_policy *policy)
{
    free(policy->patterns);
    policy->patterns = NULL;
}

/* --- Lines of the file ------------------------------------------------------------- */

bool
sts_line_write(struct buffer *out, const struct sts_line *line)
{
    const struct sts_policy *p = &line->policy;
    return buffer_format(out, "%d %.*s %s %s %" PRId64 " %u%s%s\n", LINE_VERSION,
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

/* Every value is checked: a file can be damaged, and a policy says which hosts to trust. */
bool
sts_line_read(struct text text, struct sts_line *out)
{
    struct text version, id, mode, fetched, age;
    uint64_t number, fetched_ms, age_s;
    memset(out, 0, sizeof(*out));
    bool good = text_word(&text, " ", &version) &&
                text_word(&text, " ", &out->domain) && text_word(&text, " ", &id) &&
                text_word(&text, " ", &mode) && text_word(&text, " ", &fetched) &&
                text_word(&text, " ", &age) &&
                text_number(version, LINE_VERSION, &number) && number == LINE_VERSION &&
                sts_is_pattern(out->domain) && out->domain.at[0] != '*' &&
                sts_is_id(id) && sts_mode_read(mode, &out->policy.mode) &&
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
