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

void
date_format(int64_t ms, char out[DATE_TEXT_MAX])
{
    /* Not strftime(): its names follow the locale. */
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)(ms / 1000);
    if (ms % 1000 < 0) /* before 1970: round down, not towards zero */
        seconds--;
    struct tm t;
    struct tm *converted = gmtime_r(&seconds, &t);
    assert(converted != NULL && t.tm_mon >= 0 && t.tm_mon < 12 && t.tm_wday < 7);
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
