/* JSON of bounded size: a message may have very many recipients, a status very many rows. */
#ifndef ADMIN_CONTROL_SHORTEN_H
#define ADMIN_CONTROL_SHORTEN_H

#include <jansson.h>
#include <stddef.h>

/* Writes the object in at most `most` octets, and frees it. A longer one lacks the last
 * items of its longest lists, and of those of its member `why`; for each list NAME that
 * lacks some NAME_more counts them. NULL: without its lists it is too long, too, or it
 * cannot be written as JSON. The caller frees the text. */
char *shorten_write(json_t *object, size_t most);

#endif
