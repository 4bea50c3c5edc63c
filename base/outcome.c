/* Makes outcomes, in one place so that every member is set. */
#include "base/outcome.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct outcome
outcome_make(enum verdict verdict, enum blame blame, int code, const char *enhanced,
             const char *format, ...)
{
    assert(enhanced != NULL && enhanced[0] != '\0');
    assert((verdict == VERDICT_DELIVERED) == (blame == BLAME_NONE));
    struct outcome made = {.verdict = verdict, .blame = blame, .code = code};
    text_copy(made.enhanced, sizeof(made.enhanced), text_from(enhanced));
    va_list list;
    va_start(list, format);
    vsnprintf(made.text, sizeof(made.text), format, list);
    va_end(list);
    /* One line: a multi-line reply arrives with its line ends. */
    for (char *at = made.text; *at != '\0'; at++)
        if (*at == '\r' || *at == '\n')
            *at = ' ';
    return made;
}

bool
outcome_refuse(struct outcome *refusal, int code, const char *enhanced,
               const char *text)
{
    *refusal = outcome_make(code < 500 ? VERDICT_DEFERRED : VERDICT_FAILED,
                            BLAME_MESSAGE, code, enhanced, "%s", text);
    return false;
}

const char *
outcome_word(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_DELIVERED:
        return "sent";
    case VERDICT_DEFERRED:
        return "deferred";
    case VERDICT_FAILED:
        return "bounced";
    }
    abort(); /* a verdict that does not exist */
}
