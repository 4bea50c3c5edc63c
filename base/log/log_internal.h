/* A declaration for tests. */
#ifndef BASE_LOG_LOG_INTERNAL_H
#define BASE_LOG_LOG_INTERNAL_H

#include "base/log/log.h"

/* Appends the lines (with LF) to buffer instead of writing them; NULL ends that. */
void log_capture(struct log *log, struct buffer *buffer);

#endif
