/* Declarations that the files of envelope.h share. */
#ifndef QUEUE_ENVELOPE_ENVELOPE_INTERNAL_H
#define QUEUE_ENVELOPE_ENVELOPE_INTERNAL_H

#include "base/buffer.h"
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

struct text envelope_take_record(struct reading *r, char letter);
/* Whether a record of that letter is next. */
bool envelope_stands_there(const struct reading *r, char letter);
void envelope_add_record(struct buffer *out, char letter, struct text bytes);

struct envelope;

/* --- envelope_state.c: the state of the message, in todo/ID ---------------------- */

/* The record of envelope_write_given(). False: it would be too long. */
bool envelope_add_state(const struct envelope *e, struct buffer *out)
    __attribute__((warn_unused_result));
/* Reads it, behind all recipients, if it is there. */
void envelope_take_state(struct reading *r, struct envelope *e);
/* The records of `moved`, if the message has moved. */
void envelope_add_moves(const struct envelope *e, struct buffer *out);
void envelope_take_moves(struct reading *r, struct envelope *e);

#endif
