/* Declarations that the files of journaled.h share. */
#ifndef QUEUE_JOURNAL_JOURNALED_INTERNAL_H
#define QUEUE_JOURNAL_JOURNALED_INTERNAL_H

#include "queue/journal/journaled.h"

/* The envelope and the content (none if it is large), from the disk. 0 or -errno. */
int journaled_read_form(struct journaled *y, const struct journaled_message *m,
                        struct buffer *out);
int journaled_read_bytes(struct journaled *y, const struct journaled_message *m,
                         struct buffer *out);

/* The envelope in the payload of an ACCEPT. False: it is none. */
bool journaled_split_form(struct text payload, struct text *form);

#endif
