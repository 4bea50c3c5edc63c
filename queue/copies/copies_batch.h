/* A batch of operations for the script that stores (copies_scripts.h), and its answer. */
#ifndef QUEUE_COPIES_COPIES_BATCH_H
#define QUEUE_COPIES_COPIES_BATCH_H

#include "base/id.h"
#include "queue/copies/copies_engine.h"
#include "queue/copies/copies_keys.h"

enum {
    COPIES_BATCH_BYTES = 512 * 1024, /* then it is full; at least one message fits */
    COPIES_BATCH_WORDS = 8192,
    COPIES_END_WORDS = 2
};

/* Zeroed before first use. */
struct copies_batch {
    struct buffer bytes; /* of the words, one behind the other */
    size_t *ends;        /* of each word */
    size_t words, capacity;
};

/* Whether that number of bytes more fits, or it has one end at most. */
bool copies_batch_has_room(const struct copies_batch *b, size_t bytes);
void copies_batch_word(struct copies_batch *b, struct text word);
/* OP ID. */
void copies_batch_operation(struct copies_batch *b, char operation, struct id id);
void copies_batch_number(struct copies_batch *b, uint64_t number);
/* A word of that size, which the caller fills. */
char *copies_batch_reserve(struct copies_batch *b, size_t size);
/* The envelope, with the number of the batch. */
void copies_batch_form(struct copies_batch *b, uint64_t batch, struct text form);

/* Takes words back, up to the mark of before. */
struct copies_mark {
    size_t words, bytes;
};
struct copies_mark copies_batch_mark(const struct copies_batch *b);
void copies_batch_return(struct copies_batch *b, struct copies_mark mark);

/* The keys and names in each call. */
struct copies_place {
    char owner[COPIES_KEY_MAX + 1], copies[COPIES_KEY_MAX + 1];
    char name[COPIES_NAME_MAX + 1]; /* HOST:IDENTITY */
    const char *host;               /* who owns them */
};
/* Sends it under that number, acknowledged, and empties it. */
void copies_batch_send(struct copies_batch *b, struct copies_engine *engine,
                       const struct copies_place *place, uint64_t number,
                       copies_answered *done, void *context);
void copies_batch_free(struct copies_batch *b);

struct copies_answer {
    uint64_t was, now;   /* 0: none */
    struct text missing; /* IDs, with spaces between them */
};
/* False: it is no answer of that script. */
bool copies_answer_read(struct text text, struct copies_answer *out);
/* The next of the missing. False: there is none. */
bool copies_answer_missing(struct copies_answer *answer, struct id *id);

#endif
