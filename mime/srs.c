/* Rewrites senders of forwarded mail, and unwinds them.
 *
 * All parts are those of a local part without its quotes. A local part that needs quotes
 * gets them as a whole. */
#include "mime/srs.h"

#include "base/buffer.h"
#include "base/crypto/digest.h"
#include "base/memory.h"
#include "mime/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HASH_DIGITS = 6,
    DAYS_ROUND = 1024,
    LOCAL_BYTES_MAX = 300,
    KEYED_BYTES_MAX = 1024
};

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
static const int64_t day_ms = INT64_C(24) * 60 * 60 * 1000;

struct srs {
    char *domain;
    struct secret_bytes {
        char *at;
        size_t length;
    } secrets[SRS_SECRETS_MAX];
    size_t count;
};

struct srs *
srs_new(struct text domain, const struct text *secrets, size_t count)
{
    struct srs *s = memory_new(sizeof(*s));
    s->domain = text_string(domain);
    for (; s->count < count && s->count < SRS_SECRETS_MAX; s->count++)
        s->secrets[s->count] = (struct secret_bytes){text_string(secrets[s->count]),
                                                     secrets[s->count].length};
    return s;
}

void
srs_free(struct srs **srs)
{
    struct srs *s = *srs;
    *srs = NULL;
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++) {
        digest_forget(s->secrets[i].at, s->secrets[i].length);
        free(s->secrets[i].at);
    }
    free(s->domain);
    free(s);
}

struct text
srs_domain(const struct srs *s)
{
    return text_from(s->domain);
}

bool
srs_is_blind(const struct srs *s)
{
    return s->count == 0;
}

/* --- Parts ------------------------------------------------------------------------ */

bool
srs_digits(const struct srs *s, size_t which, struct text t, unsigned count, char *out)
{
    unsigned char digest[DIGEST_SIZE];
    char lower[KEYED_BYTES_MAX];
    if (which >= s->count || !text_copy(lower, sizeof(lower), t))
        return false;
    text_lower(lower, t.length);
    digest_keyed(text_of(s->secrets[which].at, s->secrets[which].length),
                 text_of(lower, t.length), digest);
    for (unsigned i = 0; i < count; i++) {
        unsigned bit = 5 * i,
                 pair = (unsigned)digest[bit / 8] << 8 | digest[bit / 8 + 1];
        out[i] = digits[pair >> (11 - bit % 8) & 31];
    }
    return true;
}

static bool
srs_is_ours(const struct srs *s, struct text hash, struct text rest)
{
    char upper[HASH_DIGITS], made[HASH_DIGITS];
    bool good = false;
    if (hash.length != HASH_DIGITS || rest.length >= LOCAL_BYTES_MAX)
        return false;
    for (size_t i = 0; i < HASH_DIGITS; i++)
        upper[i] =
            (char)(hash.at[i] >= 'a' && hash.at[i] <= 'z' ? hash.at[i] - 'a' + 'A'
                                                          : hash.at[i]);
    for (size_t i = 0; srs_digits(s, i, rest, HASH_DIGITS, made); i++)
        good = digest_same(made, upper, HASH_DIGITS) || good;
    return good;
}

/* -1: no digit. */
static int
srs_digit(char c)
{
    char upper = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    const char *at = upper != '\0' ? strchr(digits, upper) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

void
srs_day(int64_t now_ms, char out[SRS_DAY_DIGITS])
{
    int64_t day = now_ms / day_ms % DAYS_ROUND;
    out[0] = digits[day >> 5 & 31];
    out[1] = digits[day & 31];
}

bool
srs_is_young(struct text day, int64_t now_ms)
{
    int high = day.length == SRS_DAY_DIGITS ? srs_digit(day.at[0]) : -1;
    int low = day.length == SRS_DAY_DIGITS ? srs_digit(day.at[1]) : -1;
    int64_t today = now_ms / day_ms % DAYS_ROUND;
    int64_t age = (today - (high * 32 + low) + DAYS_ROUND) % DAYS_ROUND;
    /* A clock that was a day ahead when it was made. */
    return high >= 0 && low >= 0 && (age <= SRS_DAYS_MAX || age == DAYS_ROUND - 1);
}

/* "SRS0" or "SRS1" (in any case) and a separator in front: the rest, from the separator
 * on. Empty: no such prefix. */
static struct text
behind_prefix(struct text local, const char *prefix)
{
    bool good = local.length > 5 && text_starts_nocase(local, text_from(prefix)) &&
                strchr("=-+", local.at[4]) != NULL;
    return good ? text_after(local, 4) : TEXT("");
}

/* The part up to the next =. False: there is none. */
static bool
srs_cut(struct text *rest, struct text *part)
{
    size_t at = text_find(*rest, '=');
    if (at == TEXT_NONE)
        return false;
    *part = text_before(*rest, at);
    *rest = text_after(*rest, at + 1);
    return true;
}

/* LOCAL@DOMAIN in normal form, LOCAL without quotes. False: it is no address. */
static bool
srs_write(struct text local, struct text domain, char out[SRS_ADDRESS_MAX])
{
    struct buffer quoted, normal;
    buffer_init(&quoted, 2 * LOCAL_BYTES_MAX + 2);
    buffer_init(&normal, SRS_ADDRESS_MAX - 1);
    bool good = local.length > 0 && buffer_add_quoted(&quoted, local) &&
                quoted.length <= ADDRESS_MAX;
    struct address address = {.local = buffer_text(&quoted), .domain = domain}, parsed;
    good = good && address_write(&address, &normal) && normal.length <= ADDRESS_MAX &&
           address_parse(buffer_text(&normal), &parsed) &&
           text_copy(out, SRS_ADDRESS_MAX, buffer_text(&normal));
    buffer_free(&quoted);
    buffer_free(&normal);
    return good;
}

/* The parts of an address; the local part without its quotes. */
static bool
srs_read(struct text address, struct buffer *local, struct text *domain)
{
    struct address parsed;
    buffer_init(local, LOCAL_BYTES_MAX);
    if (!address_parse(address, &parsed))
        return false;
    *domain = parsed.domain;
    return address_write_local(&parsed, local);
}

/* --- Forward ---------------------------------------------------------------------- */

static bool
srs_sign(const struct srs *s, const char *prefix, struct text rest,
         char out[SRS_ADDRESS_MAX])
{
    char hash[HASH_DIGITS], local[LOCAL_BYTES_MAX];
    if (rest.length >= LOCAL_BYTES_MAX || !srs_digits(s, 0, rest, HASH_DIGITS, hash))
        return false;
    int length = snprintf(local, sizeof(local), "%s=%.*s=%.*s", prefix, HASH_DIGITS,
                          hash, TEXT_ARGS(rest));
    return length > 0 && (size_t)length < sizeof(local) &&
           srs_write(text_of(local, (size_t)length), text_from(s->domain), out);
}

/* The text after the hash of SRS1: for another host's SRS1 the text there, for its SRS0
 * the host, and the rest with its separator. Length 0: it is neither. */
static size_t
srs_shorten(struct text local, struct text domain, char rest[LOCAL_BYTES_MAX])
{
    struct text foreign = behind_prefix(local, "SRS1"), hash;
    if (foreign.length > 0) {
        foreign = text_after(foreign, 1);
        return srs_cut(&foreign, &hash) && text_find(foreign, '=') != TEXT_NONE &&
                       text_copy(rest, LOCAL_BYTES_MAX, foreign)
                   ? foreign.length
                   : 0;
    }
    foreign = behind_prefix(local, "SRS0");
    if (foreign.length == 0)
        return 0;
    int length = snprintf(rest, LOCAL_BYTES_MAX, "%.*s=%.*s", TEXT_ARGS(domain),
                          TEXT_ARGS(foreign));
    return length > 0 && length < LOCAL_BYTES_MAX ? (size_t)length : 0;
}

bool
srs_forward(const struct srs *s, struct text sender, int64_t now_ms,
            char out[SRS_ADDRESS_MAX])
{
    struct buffer local;
    struct text domain;
    char rest[LOCAL_BYTES_MAX], day[SRS_DAY_DIGITS];
    bool good = srs_read(sender, &local, &domain);
    if (good && srs_shorten(buffer_text(&local), domain, rest) > 0) {
        good = srs_sign(s, "SRS1", text_from(rest), out);
    } else if (good) {
        srs_day(now_ms, day);
        int length = snprintf(rest, sizeof(rest), "%.*s=%.*s=%.*s", SRS_DAY_DIGITS, day,
                              TEXT_ARGS(domain), TEXT_ARGS(buffer_text(&local)));
        good = length > 0 && (size_t)length < sizeof(rest) &&
               srs_sign(s, "SRS0", text_from(rest), out);
    }
    buffer_free(&local);
    return good;
}

/* --- Back ------------------------------------------------------------------------- */

static bool
srs_unwind0(const struct srs *s, struct text rest, int64_t now_ms,
            char out[SRS_ADDRESS_MAX])
{
    struct text hash, day, domain;
    rest = text_after(rest, 1);
    return srs_cut(&rest, &hash) && srs_is_ours(s, hash, rest) &&
           srs_cut(&rest, &day) && srs_is_young(day, now_ms) &&
           srs_cut(&rest, &domain) && srs_write(rest, domain, out);
}

static bool
srs_unwind1(const struct srs *s, struct text rest, char out[SRS_ADDRESS_MAX])
{
    struct text hash, domain;
    char local[LOCAL_BYTES_MAX];
    rest = text_after(rest, 1);
    if (!srs_cut(&rest, &hash) || !srs_is_ours(s, hash, rest) ||
        !srs_cut(&rest, &domain) || rest.length < 2)
        return false;
    int length = snprintf(local, sizeof(local), "SRS0%.*s", TEXT_ARGS(rest));
    return length > 0 && (size_t)length < sizeof(local) &&
           strchr("=-+", local[4]) != NULL &&
           srs_write(text_of(local, (size_t)length), domain, out);
}

/* SRS1 of an address that we had made before another host came between: SRS0 of ours is
 * behind it, which has a hash and an age of its own. */
static enum srs_answer
srs_unwind_twice(const struct srs *s, struct text rest, int64_t now_ms,
                 char out[SRS_ADDRESS_MAX])
{
    char first[SRS_ADDRESS_MAX];
    struct buffer local;
    struct text domain;
    if (!srs_unwind1(s, rest, first))
        return SRS_BAD;
    bool good = srs_read(text_from(first), &local, &domain);
    if (good && text_equal_nocase(domain, text_from(s->domain)))
        good = srs_unwind0(s, behind_prefix(buffer_text(&local), "SRS0"), now_ms, out);
    else
        good = good && text_copy(out, SRS_ADDRESS_MAX, text_from(first));
    buffer_free(&local);
    return good ? SRS_GOOD : SRS_BAD;
}

enum srs_answer
srs_back(const struct srs *s, struct text address, int64_t now_ms,
         char out[SRS_ADDRESS_MAX])
{
    struct buffer local;
    struct text domain;
    enum srs_answer answer = SRS_NO;
    if (srs_read(address, &local, &domain) &&
        text_equal_nocase(domain, text_from(s->domain))) {
        struct text zero = behind_prefix(buffer_text(&local), "SRS0");
        struct text one = behind_prefix(buffer_text(&local), "SRS1");
        if (srs_is_blind(s))
            answer = zero.length + one.length > 0 ? SRS_BLIND : SRS_NO;
        else if (zero.length > 0)
            answer = srs_unwind0(s, zero, now_ms, out) ? SRS_GOOD : SRS_BAD;
        else if (one.length > 0)
            answer = srs_unwind_twice(s, one, now_ms, out);
    }
    buffer_free(&local);
    return answer;
}
