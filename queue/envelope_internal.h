/* What the files of envelope.h share. */
#ifndef QUEUE_ENVELOPE_INTERNAL_H
#define QUEUE_ENVELOPE_INTERNAL_H

#include "base/id.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name is part of each checksum, so a file that a damaged directory shows under
 * another name is not taken for that message. */
uint32_t envelope_crc_of_name(struct id id);

/* A file that is being read; `bad` stays set once it is set. */
struct reading {
    struct text all;
    size_t at, end; /* end: of the records */
    uint32_t crc;   /* of the bytes before `counted` */
    size_t counted;
    bool bad;
};

/* The next size bytes; bad, and "", when they are not there. */
struct text envelope_take(struct reading *r, size_t size);
/* A decimal number and the byte behind it. */
uint64_t envelope_take_number(struct reading *r, char until, uint64_t max);

#endif
