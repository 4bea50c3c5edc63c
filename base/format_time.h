/* Formats durations and times for people. */
#ifndef BASE_FORMAT_TIME_H
#define BASE_FORMAT_TIME_H

#include <stdint.h>

enum { FORMAT_TIME_MAX = 64 };

/* "250 ms", "12 s", "4 min", "3 h 12 min", "2 d 1 h"; negative counts as 0. Returns
 * out. */
const char *format_time_span(int64_t ms, char out[FORMAT_TIME_MAX]);
/* "2026-11-26 13:03:20Z", in UTC as in the log. Returns out. */
const char *format_time_at(int64_t ms, char out[FORMAT_TIME_MAX]);
/* In the local zone: "21 Nov", "12:06:15", "21 Nov 12:06:15", "21 Nov 2026 12:06:15".
 * Seconds since 1970 where there is no such time. Returns out. */
enum format_local { LOCAL_DAY, LOCAL_CLOCK, LOCAL_BOTH, LOCAL_YEAR };
const char *format_time_local(int64_t ms, enum format_local form,
                              char out[FORMAT_TIME_MAX]);
/* A time to come, in UTC, too: "14:03:20Z (in 12 s)", "2026-11-26 13:03:20Z
 * (in 4 d 23 h)"; "now" when it has come. */
const char *format_time_until(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX]);
/* A time that was: "13:03:20Z (12 s ago)". */
const char *format_time_since(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX]);

#endif
