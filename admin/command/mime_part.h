/* The parts of a message as JSON, with the texts for people in their headers. */
#ifndef ADMIN_COMMAND_MIME_PART_H
#define ADMIN_COMMAND_MIME_PART_H

#include "base/text.h"

#include <jansson.h>

/* The message as admin/command/mime.h's mime_describe() has it. */
json_t *mime_part_describe(struct text content);

#endif
