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

enum { HASH_DIGITS = 6, DAY_DIGITS = 2, DAYS_ROUND = 1024, LOCAL_BYTES_MAX = 300 };

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

static void
srs_hash(const struct secret_bytes *secret, struct text rest, char out[HASH_DIGITS])
{
    unsigned char digest[DIGEST_SIZE];
    char lower[LOCAL_BYTES_MAX];
    (void)text_copy(lower, sizeof(lower), rest);
    text_lower(lower, strlen(lower));
    digest_keyed(text_of(secret->at, secret->length), text_from(lower), digest);
    uint32_t bits = (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 |
                    (uint32_t)digest[2] << 8 | digest[3];
    for (unsigned i = 0; i < HASH_DIGITS; i++)
        out[i] = digits[bits >> (27 - 5 * i) & 31];
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
    for (size_t i = 0; i < s->count; i++) {
        srs_hash(&s->secrets[i], rest, made);
        good = digest_same(made, upper, HASH_DIGITS) || good;
    }
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

static bool
srs_is_young(struct text day, int64_t now_ms)
{
    int high = day.length == DAY_DIGITS ? srs_digit(day.at[0]) : -1;
    int low = day.length == DAY_DIGITS ? srs_digit(day.at[1]) : -1;
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
    bool good = local.length > 0 && buffer_add_byte(&quoted, '"');
    for (size_t i = 0; good && i < local.length; i++)
        good =
            (strchr("\"\\", local.at[i]) == NULL || buffer_add_byte(&quoted, '\\')) &&
            buffer_add_byte(&quoted, local.at[i]);
    good = good && buffer_add_byte(&quoted, '"') && quoted.length <= ADDRESS_MAX;
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
    if (rest.length >= LOCAL_BYTES_MAX || srs_is_blind(s))
        return false;
    srs_hash(&s->secrets[0], rest, hash);
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
    char rest[LOCAL_BYTES_MAX];
    int64_t day = now_ms / day_ms % DAYS_ROUND;
    bool good = srs_read(sender, &local, &domain);
    if (good && srs_shorten(buffer_text(&local), domain, rest) > 0) {
        good = srs_sign(s, "SRS1", text_from(rest), out);
    } else if (good) {
        int length = snprintf(rest, sizeof(rest), "%c%c=%.*s=%.*s",
                              digits[day >> 5 & 31], digits[day & 31],
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
