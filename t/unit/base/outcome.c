/* An outcome is one line, within its limits, and says its verdict in one word. */
#include "base/outcome.h"
#include "t/support/tap.h"

/* The sentence is for logs; host and reply come back from it, whatever another program or
 * host has made of it. Each text is a heap block of its own, so a sanitizer sees reads beyond. */
TEST(sentences)
{
    static const struct {
        const char *text, *host, *reply;
        bool is_so;
    } all[] = {
        {"host a[b] said: 450 x (in reply to MAIL FROM command)", "a", "450 x", true},
        {"host a said: one said: two (in reply to x) (in reply to y)", "a", "one said: two (in reply to x)", true},
        {"host /run/a said: 450 (in reply to", "/run/a", "450 (in reply to", true},
        {"host [::1] said: 450", "", "450", true},
        {"host  said: 450", "", "450", true},
        {"host said: 550 5.1.1 no such user", "", "host said: 550 5.1.1 no such user", false},
        {"host said: ", "", "host said: ", false},
        {"host x said:", "", "host x said:", false},
        {"host ", "", "host ", false},
        {"it said: 450 x (in reply to y)", "", "it said: 450 x", false},
        {"lost connection", "", "lost connection", false},
        {"", "", "", false},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct outcome_sentence s;
        size_t length = strlen(all[i].text);
        char *copy = memcpy(malloc(length + 1), all[i].text, length);
        is_number(outcome_sentence_read(text_of(copy, length), &s), all[i].is_so, all[i].text);
        is_text(s.host, text_from(all[i].host), "host");
        is_text(s.reply, text_from(all[i].reply), "reply");
        free(copy);
    }
}

/* A sentence that was written is read again, cut or not; members count before words. */
TEST(reply)
{
    char words[2 * OUTCOME_TEXT_MAX];
    struct outcome_sentence s;
    struct outcome o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "%s", "");
    outcome_say_reply(&o, "mx.example[192.0.2.1]", TEXT("550 5.1.1 no "), "in reply to DATA command");
    is_string(o.text, "host mx.example[192.0.2.1] said: 550 5.1.1 no (in reply to DATA command)", "sentence");
    ok_named(outcome_reply_read(&o, &s), "a reply");
    is_text(s.host, TEXT("mx.example"), "its host");
    is_text(s.reply, TEXT("550 5.1.1 no"), "its words");
    strcpy(o.remote, "other.example[192.0.2.2]:25");
    ok_named(outcome_reply_read(&o, &s), "of another host");
    is_text(s.host, TEXT("other.example"), "the member counts");
    o.code = 0;
    ok_named(!outcome_reply_read(&o, &s), "no code, no reply");
    memset(words, 'x', sizeof(words));
    outcome_say_reply(&o, "h", text_of(words, sizeof(words)), "in reply to DATA command");
    is_number((long long)strlen(o.text), OUTCOME_TEXT_MAX - 1, "cut");
    ok_named(strstr(o.text, "x (in reply to DATA command)") != NULL, "the end is there");
}

int
main(void)
{
    tap_tests("");
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
