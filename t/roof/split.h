/* A message that its client cuts into fragments (message/partial, RFC 2046 §5.2.2), for one
 * recipient: in order or not, doubled, contradictory, with one missing. It arrives whole,
 * once; or, if it cannot be whole, as the fragments that were given. */
#ifndef T_ROOF_SPLIT_H
#define T_ROOF_SPLIT_H

#include "t/roof/model.h"

/* Routes wait so long for fragments. */
#define SPLIT_OPTIONS "defragment=yes&notices=20m"

enum { SPLIT_PARTS_MAX = 6, SPLIT_GIVEN_MAX = 8 };

struct split {
    unsigned parts;
    struct buffer contents[SPLIT_PARTS_MAX + 1]; /* the last: a contradiction */
    unsigned given[SPLIT_GIVEN_MAX];             /* of contents, as they are given */
    unsigned given_count, left;                  /* left: without an end */
    bool is_doubled, is_contradictory;
    unsigned acked, maybe;          /* bits of parts */
    int64_t begun_ms, acked_ms;     /* acked_ms: the last one */
    unsigned seen[SPLIT_PARTS_MAX]; /* by the recipient, as fragments */
};

/* The message was drawn, and has one recipient. */
void split_draw(struct model_message *m);
/* One that was given has ended. */
void split_ended(struct model_message *m, unsigned given, enum model_state how);
/* The clock, or the disk, may end the wait early from now on. */
void split_forgive(void);
/* A line of the first host's log: behind a contradiction no fragment of the set waits. */
void split_line(struct text line);

/* Nothing in this run keeps fragments that are all there from being one message. */
void split_demand(void);

/* For the model. False: not at all, or not all fragments of it. */
bool split_has_arrived(const struct model_rcpt *r);
void split_stored(struct model_rcpt *r, struct text content);
void split_judge(const struct model_rcpt *r);

#endif
