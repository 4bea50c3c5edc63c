/* The metrics are the truth (the law "truth"): what a scrape says of mail lies between two
 * answers of `status`, and counters are those of the lines of the log, since the host has
 * started. */
#ifndef T_ROOF_LAW_METRICS_H
#define T_ROOF_LAW_METRICS_H

#include "base/text.h"

/* A line of the log of the first host, without time. */
void law_metrics_line(struct text line);
void law_metrics_start(void); /* of that host */
/* Asks `status`, scrapes as a visitor (visitor.h), asks again. */
void law_metrics_ask(void);
/* Scrapes that were judged. */
unsigned law_metrics_judged(void);

#endif
