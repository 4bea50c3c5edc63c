/* Texts of another host on their way to a terminal: its bytes could move the cursor, change
 * the title or worse. */
#ifndef ADMIN_CONTROL_JSON_PRINTABLE_H
#define ADMIN_CONTROL_JSON_PRINTABLE_H

#include <jansson.h>

/* Turns each harmful character (printable_is_harmful()) in the strings of the value, at any depth,
 * into "?". Members with one in their names go. The value may be NULL. */
void json_printable(json_t *value);

#endif
