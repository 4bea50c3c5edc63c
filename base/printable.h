/* Makes the text of others harmless for logs, JSON and terminals. Pure. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include "base/text.h"

/* A character that can do harm on a terminal: it moves the cursor, ends the line,
 * reverses the text or is not seen. */
bool printable_is_harmful(uint32_t code);
/* Whether the text is UTF-8 without such characters. */
bool printable_is(struct text t);
/* Each byte of such a character, or of none, becomes a blank. */
void printable_clean(char *string);
/* Each byte that is not printable ASCII becomes "?": for text that may be cut in the middle
 * of a character. */
void printable_make(char *string);

#endif
