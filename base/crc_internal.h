/* Functions that crc.c exports for its test alone. */
#ifndef BASE_CRC_INTERNAL_H
#define BASE_CRC_INTERNAL_H

#include "base/crc.h"

/* crc_add() without the CRC instruction of the processor. */
uint32_t crc_add_by_tables(uint32_t crc, const void *bytes, size_t size);

#endif
