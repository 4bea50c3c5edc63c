/* The parts of a reassembled message, as its envelope lists them (made_of): so that a
 * crash between its commit and the end of its parts loses and duplicates nothing.
 *
 *   DEPTH\n           how often it was reassembled, this time included
 *   ID INDEX...\n     a part, and those of its recipients that were taken over
 */
#ifndef DEFRAG_REASSEMBLY_PARTS_LIST_H
#define DEFRAG_REASSEMBLY_PARTS_LIST_H

#include "queue/envelope/envelope.h"

enum { PARTS_LIST_DEPTH_MAX = 3 };

void parts_list_begin(unsigned depth, struct buffer *out);
/* indexes of recipients, at least one. */
void parts_list_add(struct id id, const unsigned *indexes, size_t count,
                    struct buffer *out);

/* How often a message was reassembled, here or at a host that sent it here. */
unsigned parts_list_depth(const struct envelope *e);
/* The parts, one by one; *rest is all of made_of at first. The caller frees
 * indexes. False: no more. */
bool parts_list_next(struct text *rest, struct id *id, unsigned **indexes,
                     size_t *count) __attribute__((warn_unused_result));

#endif
