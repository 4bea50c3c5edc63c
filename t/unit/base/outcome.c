/* An outcome is one line, within its limits, and says its verdict in one word. */
#include "base/outcome.h"
#include "t/support/tap.h"

int
main(void)
{
    struct outcome sent = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0",
                                       "Ok: queued as %s", "ABC");
    ok(sent.verdict == VERDICT_DELIVERED && sent.blame == BLAME_NONE);
    is_number(sent.code, 250, "the code");
    is_string(sent.enhanced, "2.0.0", "the enhanced code");
    is_string(sent.text, "Ok: queued as ABC", "the text");
    is_string(sent.remote, "", "nobody said it yet");

    struct outcome lines = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                        "%s", "no such\r\nuser\nhere");
    is_string(lines.text, "no such  user here", "several lines become one");

    char text[2 * OUTCOME_TEXT_MAX];
    size_t wrong = 0;
    for (size_t length = 0; length < sizeof(text); length++) {
        memset(text, 'x', sizeof(text));
        text[length] = '\0';
        struct outcome made =
            outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "%s", text);
        size_t want = length < OUTCOME_TEXT_MAX ? length : OUTCOME_TEXT_MAX - 1;
        wrong += strlen(made.text) != want;
    }
    is_number(wrong, 0, "a text of any length is cut at the limit");

    struct outcome odd =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.123.456789012", "x");
    is_number(strlen(odd.enhanced), sizeof(odd.enhanced) - 1, "a code too long is cut");

    is_string(outcome_word(VERDICT_DELIVERED), "sent", "delivered is sent");
    is_string(outcome_word(VERDICT_DEFERRED), "deferred", "deferred is deferred");
    is_string(outcome_word(VERDICT_FAILED), "bounced", "failed is bounced");
    return done();
}
