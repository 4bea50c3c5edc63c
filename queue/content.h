/* Contents that are open for reading: mess/ID, or the bytes of a journaled message. */
#ifndef QUEUE_CONTENT_H
#define QUEUE_CONTENT_H

#include "queue/journal/journaled.h"

struct open_content;
struct contents {
    struct spool *spool;
    struct journaled *journaled;
    struct open_content *rows;
    int count, unused; /* unused: first of the free rows, -1: none */
};

/* The caller sets the members spool and journaled before. */
void contents_start(struct contents *c);
void contents_stop(struct contents *c);

/* Behind queue_content_open() and its like. Open bytes stay readable after the message
 * has gone. */
int contents_open(struct contents *c, struct id id);
int64_t contents_read(struct contents *c, int content, int64_t offset, char *to,
                      size_t size);
struct text contents_bytes(const struct contents *c, int content);
void contents_close(struct contents *c, int content);

#endif
