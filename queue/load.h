/* Reads a message back from its files and says whether they are whole.
 *
 * Changes nothing but this: when spool.adopts, content that another user owns is copied
 * while it is checked and the copy takes its place. He could change it, or put a link
 * to a stranger's file there, between any check and its delivery. */
#ifndef QUEUE_LOAD_H
#define QUEUE_LOAD_H

#include "queue/spool.h"

enum load_result {
    LOAD_DONE,
    LOAD_GONE,    /* neither todo nor info */
    LOAD_DAMAGED, /* what is there cannot be trusted: reason says why */
    LOAD_LATER    /* the disk did not answer: nothing is known */
};
enum { LOAD_REASON_MAX = 160 };

/* S4 or S5 (which counts when both are there and it is whole); content size and CRC are
 * checked. *e only when done. */
enum load_result load_message(struct spool *s, struct id id, struct envelope **e,
                              char reason[LOAD_REASON_MAX]);
/* The same but for the content, which is not looked at, and for held and parked: for
 * who lists many. */
enum load_result load_envelope(struct spool *s, struct id id, struct envelope **e,
                               char reason[LOAD_REASON_MAX]);
/* The S5 files alone, without content: whether a message that has todo too is
 * preprocessed. */
enum load_result load_preprocessed(struct spool *s, struct id id, struct envelope **e,
                                   char reason[LOAD_REASON_MAX]);
/* S5 alone, content included: what young mail becomes. A todo of that name is another's
 * doing, and not looked at. */
enum load_result load_moved(struct spool *s, struct id id, struct envelope **e,
                            char reason[LOAD_REASON_MAX]);
/* Due time and attempts from the head of info/ID; now and 0 when it cannot be read. */
void load_due(struct spool *s, struct id id, int64_t *due_ms, unsigned *attempts);

#endif
