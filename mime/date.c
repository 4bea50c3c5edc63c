/* Dates of message headers and reports. */
#include "mime/date.h"

#include "base/number.h"

#include <assert.h>
#include <string.h>
#include <time.h>

static char *
date_add(char *at, const char *word)
{
    size_t length = strlen(word);
    memcpy(at, word, length);
    return at + length;
}

/* Four digits, or more for a clock beyond all reason. */
static size_t
write_year(int64_t year, char *at)
{
    if (year < 0 || year > 9999)
        return number_write(year, at);
    number_write_digits((uint64_t)year, 10, 4, at);
    return 4;
}

static void
date_split(int64_t ms, struct tm *t)
{
    time_t seconds = (time_t)(ms / 1000);
    if (ms % 1000 < 0) /* before 1970: round down, not towards zero */
        seconds--;
    struct tm *converted = gmtime_r(&seconds, t);
    assert(converted != NULL && t->tm_mon >= 0 && t->tm_mon < 12 && t->tm_wday < 7);
}

void
date_format(int64_t ms, char out[DATE_TEXT_MAX])
{
    /* Not strftime(): its names follow the locale. */
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm t;
    date_split(ms, &t);
    /* Not printf(): each message has a date. */
    char *at = date_add(out, days[t.tm_wday]);
    at = date_add(at, ", ");
    at += number_write(t.tm_mday, at);
    at = date_add(at, " ");
    at = date_add(at, months[t.tm_mon]);
    at = date_add(at, " ");
    at += write_year((int64_t)t.tm_year + 1900, at);
    memcpy(at, " ..:..:.. +0000", sizeof(" ..:..:.. +0000"));
    number_write_digits((uint64_t)t.tm_hour, 10, 2, at + 1);
    number_write_digits((uint64_t)t.tm_min, 10, 2, at + 4);
    number_write_digits((uint64_t)t.tm_sec, 10, 2, at + 7);
}

/* --- RFC 3339 --------------------------------------------------------------------- */

void
date_format_utc(int64_t ms, char out[DATE_TEXT_MAX])
{
    struct tm t;
    date_split(ms, &t);
    char *at = out + write_year((int64_t)t.tm_year + 1900, out);
    memcpy(at, "-..-..T..:..:..Z", sizeof("-..-..T..:..:..Z"));
    const int parts[] = {t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        number_write_digits((uint64_t)parts[i], 10, 2, at + 1 + 3 * i);
}

/* Digits, and the byte behind them: one of these, or none if that is "". */
static bool
take_digits(struct text *rest, size_t count, int most, const char *behind, int *out)
{
    uint64_t number = 0;
    size_t taken = count + (behind[0] != '\0' ? 1 : 0);
    if (rest->length < taken ||
        !text_number(text_before(*rest, count), (uint64_t)most, &number) ||
        (taken > count && strchr(behind, rest->at[count]) == NULL))
        return false;
    *out = (int)number;
    *rest = text_after(*rest, taken);
    return true;
}

static bool
take_fraction(struct text *rest, int64_t *ms)
{
    size_t digits = 0;
    int64_t unit = 100;
    if (!text_starts(*rest, TEXT(".")))
        return true;
    *rest = text_after(*rest, 1);
    for (; digits < rest->length && text_is_digit(rest->at[digits]);
         digits++, unit /= 10)
        *ms += (rest->at[digits] - '0') * unit;
    *rest = text_after(*rest, digits);
    return digits > 0;
}

static bool
take_zone(struct text rest, int64_t *ms)
{
    bool ahead = text_starts(rest, TEXT("+"));
    int hours = 0, minutes = 0;
    if (text_equal_nocase(rest, TEXT("Z")))
        return true;
    if (!ahead && !text_starts(rest, TEXT("-")))
        return false;
    rest = text_after(rest, 1);
    if (!take_digits(&rest, 2, 23, ":", &hours) ||
        !take_digits(&rest, 2, 59, "", &minutes) || rest.length > 0)
        return false;
    *ms += (ahead ? -1 : 1) * (hours * 60 + minutes) * INT64_C(60000);
    return true;
}

bool
date_read_utc(struct text t, int64_t *ms)
{
    int year, month, day, hour, minute, second;
    int64_t apart_ms = 0;
    if (!take_digits(&t, 4, 9999, "-", &year) || !take_digits(&t, 2, 12, "-", &month) ||
        !take_digits(&t, 2, 31, "Tt", &day) || !take_digits(&t, 2, 23, ":", &hour) ||
        !take_digits(&t, 2, 59, ":", &minute) || !take_digits(&t, 2, 60, "", &second) ||
        !take_fraction(&t, &apart_ms) || !take_zone(t, &apart_ms) || year < 1970 ||
        month == 0 || day == 0)
        return false;
    struct tm split = {.tm_year = year - 1900,
                       .tm_mon = month - 1,
                       .tm_mday = day,
                       .tm_hour = hour,
                       .tm_min = minute,
                       .tm_sec = second};
    int64_t seconds = (int64_t)timegm(&split);
    *ms = seconds * 1000 + apart_ms;
    return second == 60 || (split.tm_mday == day && split.tm_mon == month - 1);
}
