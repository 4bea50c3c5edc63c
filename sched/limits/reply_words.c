/* Finds phrases in replies. */
#include "sched/limits/reply_words.h"

#include <string.h>

enum { GAP_MAX = 40 };

static bool
is_word_byte(struct text t, size_t i)
{
    unsigned char c = (unsigned char)t.at[i];
    if (c == ':') /* in a time */
        return i > 0 && i + 1 < t.length && text_is_digit(t.at[i - 1]) &&
               text_is_digit(t.at[i + 1]);
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || text_is_digit((char)c) ||
           c >= 0x80;
}

static unsigned
start_of(const char *word)
{
    return ((unsigned char)word[0] * 37U + (unsigned char)word[1]) % 1024;
}

static void
note_starts(struct reply_words *w, size_t length)
{
    memset(w->starts, 0, sizeof(w->starts));
    for (size_t i = 0; i + 1 < length; i++)
        if (w->at[i] == ' ')
            w->starts[start_of(w->at + i + 1) / 64] |= 1ULL
                                                       << start_of(w->at + i + 1) % 64;
}

/* Tables have hundreds of phrases: most of them need no search. */
static bool
may_have(const struct reply_words *w, const char *phrase)
{
    unsigned start = start_of(phrase + 1);
    return w->starts[start / 64] >> start % 64 & 1;
}

void
reply_words_make(struct reply_words *w, struct text reply)
{
    struct text t = text_before(reply, OUTCOME_TEXT_MAX - 1);
    size_t length = 0;
    w->at[length++] = ' ';
    for (size_t i = 0; i < t.length; i++) {
        if (t.at[i] == '<') { /* an address; if not closed, it ends the text */
            size_t end = text_find(text_after(t, i), '>');
            i = end == TEXT_NONE ? t.length - 1 : i + end;
        } else if (is_word_byte(t, i)) {
            w->at[length++] = t.at[i];
            continue;
        }
        if (w->at[length - 1] != ' ')
            w->at[length++] = ' ';
    }
    if (w->at[length - 1] != ' ')
        w->at[length++] = ' ';
    text_lower(w->at, length);
    w->at[length] = '\0';
    note_starts(w, length);
}

bool
reply_words_have(const struct reply_words *w, const char *phrase, const char *then)
{
    if (!may_have(w, phrase) || (then != NULL && !may_have(w, then)))
        return false;
    for (const char *at = w->at; (at = strstr(at, phrase)) != NULL; at++) {
        if (then == NULL)
            return true;
        const char *rest = at + strlen(phrase), *second = strstr(rest, then);
        if (second != NULL && second - rest <= GAP_MAX)
            return true;
    }
    return false;
}
