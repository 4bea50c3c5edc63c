/* Makes outcomes, in one place so that every member is set. */
#include "base/outcome.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct outcome outcome_no_trouble = {.verdict = VERDICT_DELIVERED,
                                           .blame = BLAME_NONE,
                                           .enhanced = "2.0.0",
                                           .text = "no more mail for this session"};

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

#define SENTENCE_HOST  "host "
#define SENTENCE_SAID  " said: "
#define SENTENCE_REPLY " (in reply to "

void
outcome_say_reply(struct outcome *o, const char *where, struct text reply,
                  const char *answered)
{
    char head[OUTCOME_REMOTE_MAX + 16], tail[96];
    snprintf(head, sizeof(head), SENTENCE_HOST "%s" SENTENCE_SAID, where);
    snprintf(tail, sizeof(tail), " (%s)", answered);
    size_t fixed = strlen(head) + strlen(tail);
    assert(fixed < sizeof(o->text));
    reply = text_trim(text_before(reply, sizeof(o->text) - 1 - fixed));
    snprintf(o->text, sizeof(o->text), "%s%.*s%s", head, TEXT_ARGS(reply), tail);
}

/* The last end of a sentence: a host may quote others. */
static struct text
outcome_without_tail(struct text reply)
{
    struct text tail = TEXT(SENTENCE_REPLY);
    for (size_t at = reply.length; at-- > 0;)
        if (text_starts(text_after(reply, at), tail))
            return text_before(reply, at);
    return reply;
}

bool
outcome_sentence_read(struct text text, struct outcome_sentence *s)
{
    struct text said = TEXT(SENTENCE_SAID);
    *s = (struct outcome_sentence){TEXT(""), outcome_without_tail(text)};
    if (!text_starts(text, TEXT(SENTENCE_HOST)))
        return false;
    text = text_after(text, strlen(SENTENCE_HOST));
    for (size_t at = 0; at < text.length; at++)
        if (text_starts(text_after(text, at), said)) {
            struct text where = text_before(text, at);
            s->host = text_before(where, text_find(where, '['));
            s->reply = outcome_without_tail(text_after(text, at + said.length));
            return true;
        }
    return false;
}

bool
outcome_reply_read(const struct outcome *o, struct outcome_sentence *s)
{
    struct text remote = text_from(o->remote);
    bool is_reply = outcome_sentence_read(text_from(o->text), s);
    if (o->remote[0] != '\0')
        s->host = text_before(remote, text_find(remote, '['));
    return is_reply && o->code != 0;
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
