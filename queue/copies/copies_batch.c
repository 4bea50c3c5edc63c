/* Words of a batch in one buffer, and the answer to it. */
#include "queue/copies/copies_batch.h"

#include "base/memory.h"
#include "queue/copies/copies_scripts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES_MAX = 128 * 1024 * 1024, /* above the largest form and content */
    FRAME = 6,
    KEEP_MAX = 64 * 1024 /* bytes of an empty one */
};

bool
copies_batch_has_room(const struct copies_batch *b, size_t bytes)
{
    return b->words <= COPIES_END_WORDS ||
           (b->bytes.length + bytes <= COPIES_BATCH_BYTES &&
            b->words < COPIES_BATCH_WORDS);
}

static void
copies_batch_end_word(struct copies_batch *b)
{
    if (b->words == b->capacity) {
        b->capacity = b->capacity > 0 ? b->capacity * 2 : 64;
        b->ends = memory_resize(b->ends, b->capacity * sizeof(*b->ends));
    }
    b->ends[b->words++] = b->bytes.length;
}

char *
copies_batch_reserve(struct copies_batch *b, size_t size)
{
    if (b->words == 0 && b->bytes.at == NULL)
        buffer_init(&b->bytes, BYTES_MAX);
    char *at = buffer_reserve(&b->bytes, size);
    assert(at != NULL); /* COPIES_BATCH_BYTES, and one message */
    b->bytes.length += size;
    copies_batch_end_word(b);
    return at;
}

void
copies_batch_word(struct copies_batch *b, struct text word)
{
    char *at = copies_batch_reserve(b, word.length);
    if (word.length > 0)
        memcpy(at, word.at, word.length);
}

void
copies_batch_operation(struct copies_batch *b, char operation, struct id id)
{
    copies_batch_word(b, text_of(&operation, 1));
    copies_batch_word(b, text_from(ID_TEXT(id)));
}

void
copies_batch_number(struct copies_batch *b, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    copies_batch_word(b, text_from(digits));
}

void
copies_batch_form(struct copies_batch *b, uint64_t batch, struct text form)
{
    char head[24];
    int length = snprintf(head, sizeof(head), "%" PRIu64 "\n", batch);
    char *at = copies_batch_reserve(b, (size_t)length + form.length);
    memcpy(at, head, (size_t)length);
    memcpy(at + length, form.at, form.length);
}

struct copies_mark
copies_batch_mark(const struct copies_batch *b)
{
    return (struct copies_mark){b->words, b->bytes.length};
}

void
copies_batch_return(struct copies_batch *b, struct copies_mark mark)
{
    b->words = mark.words;
    b->bytes.length = mark.bytes;
}

void
copies_batch_send(struct copies_batch *b, struct copies_engine *engine,
                  const struct copies_place *place, uint64_t number,
                  copies_answered *done, void *context)
{
    char digits[24];
    struct text *words = memory_array(FRAME + b->words, sizeof(*words));
    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    words[0] = TEXT("2");
    words[1] = text_from(place->owner);
    words[2] = text_from(place->copies);
    words[3] = text_from(place->host);
    words[4] = text_from(place->name);
    words[5] = text_from(digits);
    for (size_t i = 0; i < b->words; i++) {
        size_t from = i > 0 ? b->ends[i - 1] : 0;
        words[FRAME + i] = text_of(b->bytes.at + from, b->ends[i] - from);
    }
    copies_engine_run(engine, copies_script_store, words, FRAME + b->words, true, done,
                      context);
    free(words);
    if (b->bytes.length > KEEP_MAX)
        copies_batch_free(b);
    b->words = 0;
    buffer_clear(&b->bytes);
}

void
copies_batch_free(struct copies_batch *b)
{
    buffer_free(&b->bytes);
    free(b->ends);
    *b = (struct copies_batch){0};
}

/* --- The answer ------------------------------------------------------------------- */

/* The word may be empty: there was no number. */
static bool
copies_answer_number(struct text word, uint64_t *number)
{
    *number = 0;
    return word.length == 0 || text_number(word, INT64_MAX, number);
}

bool
copies_answer_read(struct text text, struct copies_answer *out)
{
    struct text was, now;
    if (!text_cut(&text, ' ', &was) || !text_cut(&text, ' ', &now))
        return false;
    out->missing = text;
    return copies_answer_number(was, &out->was) && copies_answer_number(now, &out->now);
}

bool
copies_answer_missing(struct copies_answer *answer, struct id *id)
{
    struct text word;
    while (text_word(&answer->missing, " ", &word))
        if (id_parse(word, id))
            return true;
    return false;
}
