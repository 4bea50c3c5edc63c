/* Makes the text of others harmless for logs, JSON and terminals. Pure. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stdbool.h>
#include <stdint.h>

/* A character that can do harm on a terminal: it moves the cursor, ends the line,
 * reverses the text or is not seen. */
bool printable_is_harmful(uint32_t code);
/* Each byte that is not printable ASCII becomes "?": for text that may be cut in the middle
 * of a character. */
void printable_make(char *string);

#endif
