/* A delay in seconds, or up to a date. */
#include "base/http/http_retry.h"

#include <string.h>
#include <time.h>

/* The decimal number in these places; 10000: none is there. */
static int
http_retry_number(struct text t, size_t at, size_t digits)
{
    uint64_t number;
    return text_number(text_of(t.at + at, digits), 9999, &number) ? (int)number : 10000;
}

/* IMF-fixdate alone (RFC 9110 §5.6.7), "Sun, 06 Nov 1994 08:49:37 GMT": no sender may
 * write another form. */
static int64_t
http_retry_date(struct text value)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm t = {0};
    if (value.length != 29 || !text_equal(text_after(value, 25), TEXT(" GMT")))
        return -1;
    const char *month = memmem(months, sizeof(months) - 1, value.at + 8, 3);
    t.tm_mday = http_retry_number(value, 5, 2);
    t.tm_year = http_retry_number(value, 12, 4) - 1900;
    t.tm_hour = http_retry_number(value, 17, 2);
    t.tm_min = http_retry_number(value, 20, 2);
    t.tm_sec = http_retry_number(value, 23, 2);
    if (month == NULL || (month - months) % 3 != 0 || t.tm_mday > 31 ||
        t.tm_year < 70 || t.tm_year > 8099 || t.tm_hour > 23 || t.tm_min > 59 ||
        t.tm_sec > 60)
        return -1;
    t.tm_mon = (int)((month - months) / 3);
    return (int64_t)timegm(&t) * 1000;
}

int64_t
http_retry_after_ms(struct text value, int64_t now_ms, int64_t most_ms)
{
    uint64_t seconds;
    int64_t after;
    value = text_trim(value);
    if (value.length == 0)
        return -1;
    if (text_number(value, UINT32_MAX, &seconds)) {
        after = (int64_t)seconds * 1000;
    } else {
        int64_t date = http_retry_date(value);
        if (date < 0)
            return -1;
        after = date > now_ms ? date - now_ms : 0;
    }
    return after < most_ms ? after : most_ms;
}
