/* Times of log lines as text, without printf(): a line has many. */
#ifndef BASE_LOG_LOG_NUMBER_H
#define BASE_LOG_LOG_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { LOG_NUMBER_SIZE = 24 };

/* As "%.2f" of ms / 1000, without a NUL and without zeros at its end, as Postfix has it:
 * "0", "1.5". Half a hundredth is rounded up, not as the binary number lies. Returns the
 * length. */
size_t log_number_seconds(int64_t ms, char out[LOG_NUMBER_SIZE]);

#endif
