/* Contents that are open for reading: mess/ID, or the bytes of a journaled message, which stay
 * readable after the message has gone. content.c has queue_content_open() and its like. */
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

#endif
