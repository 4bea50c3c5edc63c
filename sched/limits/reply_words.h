/* The words of a reply of a host, for tables of phrases. Pure. */
#ifndef SCHED_LIMITS_REPLY_WORDS_H
#define SCHED_LIMITS_REPLY_WORDS_H

#include "base/outcome.h"

#include <stdint.h>

/* Lower case, a space before each word and at the end. */
struct reply_words {
    char at[OUTCOME_TEXT_MAX + 2];
    uint64_t starts[16]; /* a bit for the first two bytes of each word */
};

/* Addresses in angle brackets are no words: they could be anything. A ':' within a time
 * belongs to its word. reply: of struct outcome_sentence; it is cut at OUTCOME_TEXT_MAX. */
void reply_words_make(struct reply_words *words, struct text reply);
/* phrase begins with a space, so it matches from the start of a word on; it may end
 * within one, but has two bytes or more behind the space. then, unless NULL, is such a
 * phrase, too, and follows at most 40 bytes later. */
bool reply_words_have(const struct reply_words *words, const char *phrase,
                      const char *then);

#endif
