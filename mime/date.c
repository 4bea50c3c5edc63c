/* Dates of message headers and reports. */
#include "mime/date.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

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
    int length = snprintf(out, DATE_TEXT_MAX, "%s, %d %s %04lld %02d:%02d:%02d +0000",
                          days[t.tm_wday], t.tm_mday, months[t.tm_mon],
                          (long long)t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
    assert(length > 0 && length < DATE_TEXT_MAX);
}
