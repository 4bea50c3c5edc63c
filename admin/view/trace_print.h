/* Prints lives of messages (admin/history/life.h) for people, in local time. */
#ifndef ADMIN_VIEW_TRACE_PRINT_H
#define ADMIN_VIEW_TRACE_PRINT_H

#include "base/format_time.h"

#include <jansson.h>
#include <stdio.h>

/* One life with all its events; hints below failures. */
void trace_print_life(const json_t *life, FILE *out);
/* Its events alone. */
void trace_print_events(const json_t *life, FILE *out);
/* One line: time, id, state, sender and recipients. */
void trace_print_line(const json_t *life, FILE *out);
/* An event as it happens: time, id ("" if there is none), text. */
void trace_print_event(const json_t *event, const char *id, FILE *out);
/* An event as one of a life, which began at since_ms: with the date where it changes, which
 * day keeps ("" at first). */
void trace_print_next(const json_t *event, int64_t since_ms, char day[FORMAT_TIME_MAX],
                      FILE *out);

#endif
