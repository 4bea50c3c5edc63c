/* CRC32C (Castagnoli): detects corruption of data on disk. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues from crc (0 to start) over size bytes. "123456789" gives 0xe3069283. */
uint32_t crc_add(uint32_t crc, const void *bytes, size_t size);
/* The sum of some bytes behind others, from the sums of both. */
uint32_t crc_join(uint32_t first, uint32_t second, uint64_t second_size);
/* crc_add() without the CRC instruction of the processor. */
uint32_t crc_add_by_tables(uint32_t crc, const void *bytes, size_t size);

#endif
