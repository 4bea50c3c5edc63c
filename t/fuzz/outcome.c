/* Fuzz target: the text of an outcome, as a file or another host words it. What it is taken
 * apart into lies within it, and classes and hints follow for any text. */
#include "base/outcome.h"
#include "sched/limits/refusal.h"
#include "sched/limits/reply_class.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must_lie_within(struct text part, struct text whole)
{
    must(part.length == 0 ||
         (part.at >= whole.at && part.at + part.length <= whole.at + whole.length));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome_sentence said;
    char hint[REFUSAL_HINT_MAX];
    struct text text = text_of(data, size);
    (void)outcome_sentence_read(text, &said);
    must_lie_within(said.host, text);
    must_lie_within(said.reply, text);
    char *string = strndup((const char *)data, size);
    enum refusal_class class = refusal_classify_text(string);
    must(class < REFUSAL_CLASSES);
    (void)!refusal_hint_text(string, hint);
    struct outcome o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 450, "4.0.0", "%s", string);
    must(refusal_classify(&o) < REFUSAL_CLASSES);
    (void)reply_class_classify(&o);
    must(reply_class_asked_ms(&o) >= 0);
    free(string);
    return 0;
}
