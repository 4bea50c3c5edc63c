/* Puts times into words for the operator. */
#include "base/format_time.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { CLOCK_MAX = 32, FAR_MS = 12 * 3600 * 1000 };

const char *
format_time_span(int64_t ms, char out[FORMAT_TIME_MAX])
{
    int64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60;
    if (ms <= 0)
        snprintf(out, FORMAT_TIME_MAX, "0 s");
    else if (seconds == 0)
        snprintf(out, FORMAT_TIME_MAX, "%" PRId64 " ms", ms);
    else if (seconds < 60)
        snprintf(out, FORMAT_TIME_MAX, "%" PRId64 " s", seconds);
    else if (minutes < 60)
        snprintf(out, FORMAT_TIME_MAX, "%" PRId64 " min", minutes);
    else if (hours < 24)
        snprintf(out, FORMAT_TIME_MAX, "%" PRId64 " h %" PRId64 " min", hours,
                 minutes % 60);
    else
        snprintf(out, FORMAT_TIME_MAX, "%" PRId64 " d %" PRId64 " h", hours / 24,
                 hours % 24);
    return out;
}

static const char *
clock_of(int64_t ms, bool with_date, char out[CLOCK_MAX])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm utc;
    size_t length = 0;
    if (gmtime_r(&seconds, &utc))
        length = with_date ? strftime(out, CLOCK_MAX, "%Y-%m-%d %H:%M:%SZ", &utc)
                           : strftime(out, CLOCK_MAX, "%H:%M:%SZ", &utc);
    if (length == 0)
        snprintf(out, CLOCK_MAX, "%" PRId64, ms / 1000);
    return out;
}

const char *
format_time_at(int64_t ms, char out[FORMAT_TIME_MAX])
{
    char at[CLOCK_MAX];
    snprintf(out, FORMAT_TIME_MAX, "%s", clock_of(ms, true, at));
    return out;
}

const char *
format_time_local(int64_t ms, enum format_local form, char out[FORMAT_TIME_MAX])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm local;
    size_t length = 0;
    if (localtime_r(&seconds, &local) == NULL)
        length = 0;
    else if (form == LOCAL_DAY)
        length = strftime(out, FORMAT_TIME_MAX, "%d %b", &local);
    else if (form == LOCAL_CLOCK)
        length = strftime(out, FORMAT_TIME_MAX, "%H:%M:%S", &local);
    else if (form == LOCAL_BOTH)
        length = strftime(out, FORMAT_TIME_MAX, "%d %b %H:%M:%S", &local);
    else
        length = strftime(out, FORMAT_TIME_MAX, "%d %b %Y %H:%M:%S", &local);
    if (length == 0)
        snprintf(out, FORMAT_TIME_MAX, "%" PRId64, (int64_t)seconds);
    return out;
}

const char *
format_time_until(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    char span[FORMAT_TIME_MAX], at[CLOCK_MAX];
    if (ms <= now_ms)
        snprintf(out, FORMAT_TIME_MAX, "now");
    else
        snprintf(out, FORMAT_TIME_MAX, "%s (in %.30s)",
                 clock_of(ms, ms - now_ms > FAR_MS, at),
                 format_time_span(ms - now_ms, span));
    return out;
}

const char *
format_time_since(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    char span[FORMAT_TIME_MAX], at[CLOCK_MAX];
    snprintf(out, FORMAT_TIME_MAX, "%s (%.26s ago)",
             clock_of(ms, now_ms - ms > FAR_MS, at),
             format_time_span(now_ms - ms, span));
    return out;
}
