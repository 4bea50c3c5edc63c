/* `petrel mime`: the structure of a message, and its conversion for older hops. */
#ifndef ADMIN_COMMAND_MIME_H
#define ADMIN_COMMAND_MIME_H

#include "base/text.h"

#include <jansson.h>

/* {size, to_7bit, message}: to_7bit is {verdict, reason, size_max}; message is the part
 * {type, parameters, encoding, header_at, body_at, end_at, problems, parts} with those
 * in it; of Content-Disposition, when there is one, disposition and
 * disposition_parameters; of a leaf in base64 or quoted-printable, decoded_size; as
 * people read them, where they are there: subject (of messages), description, filename
 * (of Content-Disposition, else Content-Type's name). Offsets in bytes. Bytes that are
 * not UTF-8, and controls, are escaped. */
json_t *mime_describe(struct text content);

/* `mime [--convert] FILE`: prints the structure as JSON, or the content as a hop
 * without 8BITMIME would get it; "-" is standard input. arguments behind "mime".
 * Returns a sysexits code: EX_NOINPUT when the file cannot be read, EX_DATAERR when it
 * may not be converted. */
int command_mime(int count, char **arguments);

#endif
