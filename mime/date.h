/* Dates of RFC 5322 §3.3, always in UTC, and times of RFC 3339. */
#ifndef MIME_DATE_H
#define MIME_DATE_H

#include "base/text.h"

#include <stdint.h>

enum { DATE_TEXT_MAX = 40 };

/* "Sat, 21 Nov 2026 03:05:08 +0000" */
void date_format(int64_t ms, char out[DATE_TEXT_MAX]);
/* "2026-11-21T03:05:08Z" */
void date_format_utc(int64_t ms, char out[DATE_TEXT_MAX]);
/* The same, with any offset of the zone, and perhaps a fraction of a second, which counts in
 * ms: a date-time of RFC 3339 §5.6. From the year 1970 on. */
bool date_read_utc(struct text t, int64_t *ms) __attribute__((warn_unused_result));

#endif
