/* A line of style json. */
#ifndef BASE_LOG_LOG_JSON_H
#define BASE_LOG_LOG_JSON_H

#include "base/buffer.h"

#include <jansson.h>

/* Adds the object, without LF, and frees it. Such a line is never cut; its values are,
 * until it is within the buffer's limit. */
void log_json_end(json_t **object, struct buffer *line);

#endif
