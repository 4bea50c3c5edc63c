/* What the files of envelope.h share. */
#ifndef QUEUE_ENVELOPE_INTERNAL_H
#define QUEUE_ENVELOPE_INTERNAL_H

#include "base/id.h"

#include <stdint.h>

/* The name is part of each checksum, so a file that a damaged directory shows under
 * another name is not taken for that message. */
uint32_t envelope_crc_of_name(struct id id);

#endif
