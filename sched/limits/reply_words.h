/* The words of a reply within the text of an outcome, for tables of phrases. Pure. */
#ifndef SCHED_LIMITS_REPLY_WORDS_H
#define SCHED_LIMITS_REPLY_WORDS_H

#include "base/outcome.h"

#include <stdint.h>

/* Lower case, a space before each word and at the end. */
struct reply_words {
    char at[OUTCOME_TEXT_MAX + 2];
    uint64_t starts[16]; /* a bit for the first two bytes of each word */
};

/* The text of the peer, without our "host x said: " and our " (in reply to y)". */
struct text reply_words_said(const char *text);
/* Addresses in angle brackets are no words: they could be anything. A ':' within a time
 * belongs to its word. text: of an outcome. */
void reply_words_make(struct reply_words *words, const char *text);
/* phrase begins with a space, so it matches from the start of a word on; it may end
 * within one, but has two bytes or more behind the space. then, unless NULL, is such a
 * phrase, too, and follows at most 40 bytes later. */
bool reply_words_have(const struct reply_words *words, const char *phrase,
                      const char *then);

#endif
