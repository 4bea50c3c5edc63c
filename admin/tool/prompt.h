/* Asks a person on the terminal. */
#ifndef ADMIN_TOOL_PROMPT_H
#define ADMIN_TOOL_PROMPT_H

#include "base/text.h"

enum { PROMPT_LINE_MAX = 8 * 1024 }; /* the address of a login is long */

enum prompt_result {
    PROMPT_GOOD,
    PROMPT_LONG,        /* more than a line has; all of it was read */
    PROMPT_ENDED,       /* the end of the input */
    PROMPT_INTERRUPTED, /* ^C at a hidden prompt; otherwise the signal ends us */
};

/* Whether a person can be asked: standard input is a terminal. */
bool prompt_is_possible(void);
/* A line of standard input without its end, into line; the question is on standard
 * error. hides: it is not shown. */
enum prompt_result prompt_ask(const char *question, bool hides,
                              char line[PROMPT_LINE_MAX], struct text *out);

#endif
