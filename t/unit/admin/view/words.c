/* Templates: values, widths, forms, choices, sums, and what is not there. */
#include "admin/view/words.h"

#include "t/support/tap.h"

#include <string.h>

static const int64_t now = INT64_C(1700000000000); /* 22:13:20Z */

static const struct {
    const char *template, *words;
} cases[] = {
    {"plain",                              "plain"                    },
    {"{name} of {part.name}, {list.1}",    "ann of bob, two"          },
    {"<{gone}> <{count}> <{part.gone.x}>", "<> <> <>"                 },
    {"{#count} {#gone} {#name}",           "7 0 0"                    },
    {"{#count+part.more-1} {#count-now}",  "14 -1699999999993"        },
    {"<{name%5}> <{name%-5}> <{#count%3}>", "<  ann> <ann  > <  7>"   },
    {"{name%.2} {name%.9} <{name%4.1}>",   "an ann <   a>"            },
    {"{later_ms@until}",                   "22:13:32Z (in 12 s)"      },
    {"{later_ms@at}, {past_ms@at}",        "at 22:13:32Z (in 12 s), now"},
    {"{past_ms@since}",                    "22:11:20Z (2 min ago)"    },
    {"{past_ms@age} {count@span_s}",       "2 min 7 s"                },
    {"{past_ms@brief_age} {later_ms@brief_until} {#count%4}", "2m 12s    7"},
    {"{past_ms@brief_until} {gone@brief_age%8}", "0s   19675d"        },
    {"{size@size} {size@seconds}",         "1.5 MB 1500"              },
    {"{count@dash} {gone@dash%3}",         "7   -"                    },
    {"[yes:a|b][no:a|b][gone:a|b]",        "abb"                      },
    {"[name:a][empty:b][count:c][zero:d][minus:e]", "ac"              },
    {"[?zero:a|b][?gone:a|b]",             "ab"                       },
    {"[name=ann:a|b][name=an:a|b][gone=:a|b]", "aba"                  },
    {"[count>6:a|b][count>7:a|b][later_ms>now:a|b][now>later_ms:a|b]", "abab"},
    {"[yes:{name}[no:x|, [yes:{#count}|y]]|z]!", "ann, 7!"            },
    {"[no:[yes:a|b]|[yes:c|d]]: |",        "c: |"                     },
};

int
main(void)
{
    struct buffer out;
    json_t *object = json_pack(
        "{s:s,s:s,s:i,s:i,s:i,s:b,s:b,s:{s:s,s:i},s:[s,s],s:I,s:I,s:i}", "name", "ann",
        "empty", "", "count", 7, "zero", 0, "minus", -1, "yes", true, "no", false, "part",
        "name", "bob", "more", 8, "list", "one", "two", "later_ms",
        (json_int_t)(now + 12000), "past_ms", (json_int_t)(now - 120000), "size", 1500000);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        buffer_init(&out, 200);
        words_say(&out, cases[i].template, object, now);
        is_text(buffer_text(&out), text_from(cases[i].words), cases[i].template);
        buffer_free(&out);
    }
    buffer_init(&out, 5);
    words_say(&out, "abc{name}d", object, now);
    is_text(buffer_text(&out), TEXT("abcd"), "what does not fit is left out");
    buffer_free(&out);
    buffer_init(&out, 200);
    words_say(&out, "{name}[name:a|b]{#count}", NULL, now);
    is_text(buffer_text(&out), TEXT("b0"), "of no object");
    buffer_free(&out);
    json_decref(object);
    return done();
}
