/* The words of a reply: what counts as one, and where a phrase matches. */
#include "sched/limits/reply_words.h"

#include "t/support/tap.h"

#include <string.h>

TEST(words)
{
    static const char *const rows[][2] = {
        {"host a said: 450-4.7.1 Too  MANY,mails!", " 450 4 7 1 too many mails "},
        {"retry at 00:05:00: soon",                 " retry at 00:05:00 soon "  },
        {"<spam@b.test>: no such user",             " no such user "            },
        {"open <spam and more",                     " open "                    },
        {"",                                        " "                         },
        {"\xc3\xa9t\xc3\xa9",                       " \xc3\xa9t\xc3\xa9 "       },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply_words w;
        struct outcome_sentence said;
        (void)outcome_sentence_read(text_from(rows[i][0]), &said);
        reply_words_make(&w, said.reply);
        is_string(w.at, rows[i][1], rows[i][0]);
    }
}

TEST(have)
{
    struct reply_words w;
    char far[200];
    reply_words_make(&w, TEXT("your mailbox, dear user, is full; respam it"));
    ok(reply_words_have(&w, " mailbox", NULL) && reply_words_have(&w, " mailb", NULL));
    ok_named(!reply_words_have(&w, " spam", NULL), "not within a word");
    ok(reply_words_have(&w, " mailbox", " full") &&
       !reply_words_have(&w, " full", " mailbox"));
    ok_named(!reply_words_have(&w, " mailman", NULL) && !reply_words_have(&w, " is fulfilled", NULL), "nor what begins like a word");
    reply_words_make(&w, text_from("a b"));
    ok_named(reply_words_have(&w, " a b", NULL) && reply_words_have(&w, " b ", NULL), "words of one byte");
    ok_named(!reply_words_have(&w, " c ", NULL) && !reply_words_have(&w, " a ", " a "), "and others");
    memset(far, 'x', sizeof(far));
    memcpy(far, "one ", 4);
    strcpy(far + 43, " two");
    reply_words_make(&w, text_from(far));
    ok_named(reply_words_have(&w, " one", " two"), "40 bytes behind");
    memset(far, 'x', sizeof(far));
    memcpy(far, "one ", 4);
    strcpy(far + 45, " two");
    reply_words_make(&w, text_from(far));
    ok_named(!reply_words_have(&w, " one", " two"), "not farther");
}

/* As long as an outcome's text can be, and longer. */
TEST(long)
{
    struct reply_words w;
    static char text[4 * OUTCOME_TEXT_MAX];
    memset(text, 'a', sizeof(text) - 1);
    reply_words_make(&w, text_from(text));
    is_number(strlen(w.at), OUTCOME_TEXT_MAX + 1, "cut");
    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        text[i] = ',';
    reply_words_make(&w, text_from(text));
    ok(strlen(w.at) <= OUTCOME_TEXT_MAX + 1);
}
