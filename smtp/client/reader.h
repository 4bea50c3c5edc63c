/* The content of a message as it lies in the queue, prefix first, piece by piece, and
 * whether it is what was stored. */
#ifndef SMTP_READER_H
#define SMTP_READER_H

#include "queue/queue.h"

enum { READER_PIECE = 32 * 1024 };

struct reader { /* zero the struct before first use; the rest is reader.c's own */
    struct queue *queue;
    const struct envelope *envelope; /* borrowed while open */
    bool open;
    int handle;
    size_t prefix_read;
    int64_t offset;
    uint32_t crc;
    char piece[READER_PIECE];
};

/* False: *why says what is wrong, and it is not open. */
bool reader_open(struct reader *c, struct queue *queue, const struct envelope *e,
                 const char **why) __attribute__((warn_unused_result));
/* MORE: *piece is the next one, valid until the next call. DONE: that was all, and what
 * was stored. BAD: *why says what is wrong with it. */
enum progress reader_read(struct reader *c, struct text *piece, const char **why)
    __attribute__((warn_unused_result));
/* Nothing when it is not open. */
void reader_close(struct reader *c);

#endif
