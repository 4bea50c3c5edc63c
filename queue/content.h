/* Contents that are open for reading: mess/ID, or the bytes of young mail. */
#ifndef QUEUE_CONTENT_H
#define QUEUE_CONTENT_H

#include "queue/journal/journaled.h"

struct open_content;
struct contents {
    struct spool *spool;
    struct journaled *young;
    struct open_content *rows;
    int count, unused; /* unused: first of the free rows, -1: none */
};

/* spool and young are the caller's to set before. */
void contents_start(struct contents *c);
void contents_stop(struct contents *c);

/* Behind queue_content_open and so on. Bytes that are open stay, whatever becomes of
 * the message. */
int contents_open(struct contents *c, struct id id);
int64_t contents_read(struct contents *c, int content, int64_t offset, char *to,
                      size_t size);
struct text contents_bytes(const struct contents *c, int content);
void contents_close(struct contents *c, int content);

#endif
