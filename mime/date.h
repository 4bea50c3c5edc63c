/* Dates of RFC 5322 §3.3, always in UTC. */
#ifndef MIME_DATE_H
#define MIME_DATE_H

#include <stdint.h>

enum { DATE_TEXT_MAX = 40 };

/* "Sat, 21 Nov 2026 03:05:08 +0000" */
void date_format(int64_t ms, char out[DATE_TEXT_MAX]);

#endif
