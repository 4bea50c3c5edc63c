/* The body of a batch, and its signature by Standard Webhooks 1.0. Pure. */
#include "base/event/event_post_internal.h"

#include "base/crypto/base64.h"
#include "base/crypto/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECRET_PREFIX TEXT("whsec_")

enum { SIGNED_MAX = 512 * 1024, RFC3339_MAX = 40 };

/* The key of a secret: the octets that whsec_ holds, else its own. */
static bool
event_sign_read_key(struct text secret, char key[EVENT_SECRET_MAX], size_t *length)
{
    if (text_starts(secret, SECRET_PREFIX))
        return base64_decode(text_after(secret, SECRET_PREFIX.length), key,
                             EVENT_SECRET_MAX, length) &&
               *length >= EVENT_SECRET_MIN;
    if (secret.length < EVENT_SECRET_MIN || secret.length > EVENT_SECRET_MAX)
        return false;
    memcpy(key, secret.at, secret.length);
    *length = secret.length;
    return true;
}

bool
event_post_is_secret(struct text secret)
{
    struct event_key key;
    bool good = event_sign_read_key(secret, key.octets, &key.length);
    digest_forget(&key, sizeof(key));
    return good;
}

size_t
event_sign_keys(struct text secrets, struct event_key keys[EVENT_SECRETS_MAX])
{
    struct text word;
    size_t count = 0;
    while (count < EVENT_SECRETS_MAX && text_word(&secrets, ", \t\r\n", &word))
        if (event_sign_read_key(word, keys[count].octets, &keys[count].length))
            count++;
    return count;
}

static void
rfc3339(int64_t ms, char out[RFC3339_MAX])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    if (gmtime_r(&seconds, &t) == NULL ||
        strftime(out, RFC3339_MAX, "%Y-%m-%dT%H:%M:%SZ", &t) == 0)
        snprintf(out, RFC3339_MAX, "1970-01-01T00:00:00Z");
}

/* The same bytes whenever the batch is offered: its time is that of its first event. */
bool
event_sign_body(const struct event_batch *batch, struct buffer *out)
{
    char time[RFC3339_MAX];
    struct text rest = buffer_text(&batch->lines), line;
    const char *before = "";
    rfc3339(batch->time_ms, time);
    bool good = buffer_format(
        out, "{\"type\":\"petrel.events\",\"timestamp\":\"%s\",\"data\":[", time);
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        good = good && buffer_add(out, text_from(before)) && buffer_add(out, line);
        before = ",";
    }
    return good && buffer_add(out, TEXT("]}"));
}

static bool
add_signature(const struct event_key *key, struct text content, struct buffer *out)
{
    unsigned char digest[DIGEST_SIZE];
    digest_keyed(text_of(key->octets, key->length), content, digest);
    return buffer_add(out, TEXT(" v1,")) &&
           base64_encode(text_of(digest, sizeof(digest)), out);
}

bool
event_sign_fields(const char *id, int64_t now_s, struct text body,
                  const struct event_key *keys, size_t count, struct buffer *out)
{
    bool good = buffer_format(
        out, "webhook-id: %s\r\nwebhook-timestamp: %" PRId64 "\r\n", id, now_s);
    if (count == 0 || !good)
        return good;
    struct buffer content;
    buffer_init(&content, SIGNED_MAX);
    good = buffer_format(&content, "%s.%" PRId64 ".", id, now_s) &&
           buffer_add(&content, body) && buffer_add(out, TEXT("webhook-signature:"));
    for (size_t i = 0; i < count; i++)
        good = good && add_signature(&keys[i], buffer_text(&content), out);
    buffer_free(&content);
    return good && buffer_add(out, TEXT("\r\n"));
}

/* The decimal number in these places; 10000: none is there. */
static int
event_sign_number(struct text t, size_t at, size_t digits)
{
    uint64_t number;
    return text_number(text_of(t.at + at, digits), 9999, &number) ? (int)number : 10000;
}

/* IMF-fixdate alone (RFC 9110 §5.6.7), "Sun, 06 Nov 1994 08:49:37 GMT": no sender may
 * write another form. */
static int64_t
read_date(struct text value)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t = {0};
    if (value.length != 29 || !text_equal(text_after(value, 25), TEXT(" GMT")))
        return -1;
    const char *month = memmem(months, sizeof(months) - 1, value.at + 8, 3);
    t.tm_mday = event_sign_number(value, 5, 2);
    t.tm_year = event_sign_number(value, 12, 4) - 1900;
    t.tm_hour = event_sign_number(value, 17, 2);
    t.tm_min = event_sign_number(value, 20, 2);
    t.tm_sec = event_sign_number(value, 23, 2);
    if (month == NULL || (month - months) % 3 != 0 || t.tm_mday > 31 ||
        t.tm_year < 70 || t.tm_year > 8099 || t.tm_hour > 23 || t.tm_min > 59 ||
        t.tm_sec > 60)
        return -1;
    t.tm_mon = (int)((month - months) / 3);
    return (int64_t)timegm(&t) * 1000;
}

int64_t
event_sign_retry_after(struct text value, int64_t now_ms)
{
    uint64_t seconds;
    int64_t after;
    value = text_trim(value);
    if (value.length == 0)
        return -1;
    if (text_number(value, UINT32_MAX, &seconds)) {
        after = (int64_t)seconds * 1000;
    } else {
        int64_t date = read_date(value);
        if (date < 0)
            return -1;
        after = date > now_ms ? date - now_ms : 0;
    }
    return after < EVENT_RETRY_AFTER_MAX_MS ? after : EVENT_RETRY_AFTER_MAX_MS;
}
