/* Reads the content of a message from the queue, prefix first, in pieces, and checks it
 * against the checksum of storing. */
#ifndef SMTP_CLIENT_CONTENT_READER_H
#define SMTP_CLIENT_CONTENT_READER_H

#include "smtp/client/outgoing.h"

enum { CONTENT_READER_PIECE = 32 * 1024 };

struct content_reader { /* zeroed before its first use; private to content_reader.c */
    struct queue *queue;
    const struct envelope *envelope; /* borrowed while open */
    const struct outgoing *outgoing; /* likewise; NULL: as it is stored */
    bool open;
    int handle;
    size_t prefix_read;
    int64_t offset;
    uint32_t crc;
    char piece[CONTENT_READER_PIECE];
};

/* False: not open, with *why. outgoing: the form in which it leaves; or NULL. */
bool content_reader_open(struct content_reader *c, struct queue *queue,
                         const struct envelope *e, const struct outgoing *outgoing,
                         const char **why) __attribute__((warn_unused_result));
/* MORE: *piece is the next one, valid until the next call. DONE: all was read, and is
 * as it was stored. BAD: it is not, or cannot be read: *why. */
enum progress content_reader_read(struct content_reader *c, struct text *piece,
                                  const char **why) __attribute__((warn_unused_result));
/* Does nothing if it is not open. */
void content_reader_close(struct content_reader *c);

#endif
