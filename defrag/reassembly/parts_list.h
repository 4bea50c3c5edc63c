/* What a joined message was made of, as its envelope keeps it (made_of): so that a
 * crash between its acceptance and the end of its parts neither loses nor doubles
 * anything.
 *
 *   DEPTH\n           how many joins lie within, this one included
 *   ID INDEX...\n     a part, and which of its recipients the whole has taken over
 */
#ifndef DEFRAG_PARTS_LIST_H
#define DEFRAG_PARTS_LIST_H

#include "queue/envelope.h"

enum { PARTS_LIST_DEPTH_MAX = 3 };

void parts_list_begin(unsigned depth, struct buffer *out);
/* indexes of recipients, at least one. */
void parts_list_add(struct id id, const unsigned *indexes, size_t count,
                    struct buffer *out);

/* 0: it is as it was received. */
unsigned parts_list_depth(struct text made_of);
/* The same of a message, also of one that another host joined and sent to us. */
unsigned parts_list_depth_of(const struct envelope *e);
/* The parts, one by one; *rest is all of made_of at first. indexes are the caller's to
 * free. False: no more. */
bool parts_list_next(struct text *rest, struct id *id, unsigned **indexes,
                     size_t *count) __attribute__((warn_unused_result));

#endif
