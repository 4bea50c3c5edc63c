/* Whole numbers as text, without printf(): a message has dozens. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

enum { NUMBER_SIZE = 20 };

/* Decimal, without a NUL. Returns the length. */
size_t number_write(int64_t value, char out[NUMBER_SIZE]);
/* The last `count` digits, with leading zeros, without a NUL. radix: 10, or 16 in lower
 * case. */
void number_write_digits(uint64_t value, unsigned radix, size_t count, char *out);

#endif
