/* A line of the history: TIME PROGRAM: [ID: ]key=value, key=value (remark)
 *
 * A value that begins with '<' and ends with the first '>' is atomic; within others ", "
 * and " (" do not occur. The first key is `event`. Bytes of peers are escaped as in the
 * log (log.h), and stay so here. Pure. */
#ifndef ADMIN_HISTORY_HISTORY_LINE_H
#define ADMIN_HISTORY_HISTORY_LINE_H

#include "base/id.h"

/* Borrowed from the line. */
struct history_line {
    int64_t time_ms;
    struct text program;
    struct id id; /* all 0: none */
    struct text event;
    struct text fields; /* all of them, for history_line_field() */
};
struct history_field {
    struct text key; /* empty: value is the remark */
    struct text value;
};

/* line: without its LF. False: it is not one of ours, or torn. */
bool history_line_read(struct text line, struct history_line *out)
    __attribute__((warn_unused_result));
/* The time and the id alone; the id is all 0 if there is none. */
bool history_line_glance(struct text line, int64_t *time_ms, struct id *id)
    __attribute__((warn_unused_result));
/* Cuts the next field off *fields. False at the end. */
bool history_line_field(struct text *fields, struct history_field *field);
/* The value of that key, or an empty text; "": the remark. */
struct text history_line_value(const struct history_line *line, const char *key);
/* 2025-01-31T23:59:59.123Z; -1: it is not one. */
int64_t history_line_time(struct text t);

#endif
