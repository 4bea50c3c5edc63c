/* CRC32C (Castagnoli): what says that bytes on disk are the bytes we wrote. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Continues from crc (0 to start) over size bytes. "123456789" gives 0xe3069283. */
uint32_t crc_add(uint32_t crc, const void *bytes, size_t size);

#endif
