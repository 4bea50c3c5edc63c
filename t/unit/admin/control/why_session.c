/* The activity of a session, as an object and in words. */
#include "admin/control/why.h"

#include "base/text.h"
#include "t/support/tap.h"

#include <string.h>

static const int64_t now = INT64_C(1700000000000);

static const char *
sentence(enum activity_kind kind, int64_t for_ms, bool has_message, const char *scheme)
{
    static char text[2000];
    struct activity a = {.kind = kind,
                         .since_ms = now - for_ms,
                         .has_message = has_message,
                         .what = "DATA",
                         .remote = "mx\x1b.test[192.0.2.1]:465",
                         .scheme = scheme};
    struct buffer out;
    buffer_init(&out, sizeof(text));
    json_t *doing = why_session(&a);
    why_explain_session(doing, now, &out);
    text_copy(text, sizeof(text), buffer_text(&out));
    buffer_free(&out);
    json_decref(doing);
    return text;
}

TEST(words)
{
    static const struct {
        enum activity_kind kind;
        const char *words;
    } cases[] = {
        {ACTIVITY_LOOK_UP,   "looking up DATA for 3 s"                               },
        {ACTIVITY_CONNECT,   "connecting to mx\\x1b.test[192.0.2.1]:465 for 3 s"     },
        {ACTIVITY_GREETING,
         "connected to mx\\x1b.test[192.0.2.1]:465, no greeting for 3 s"             },
        {ACTIVITY_HANDSHAKE, "TLS handshake with mx\\x1b.test[192.0.2.1]:465 for 3 s"},
        {ACTIVITY_REPLY,
         "waiting for the reply to DATA from mx\\x1b.test[192.0.2.1]:465 for 3 s"    },
        {ACTIVITY_CONTENT,   "sending content to mx\\x1b.test[192.0.2.1]:465 for 3 s"},
        {ACTIVITY_PREPARE,
         "preparing commands for mx\\x1b.test[192.0.2.1]:465 for 3 s"                },
        {ACTIVITY_IDLE,      "connected to mx\\x1b.test[192.0.2.1]:465, idle for 3 s"},
        {ACTIVITY_STORE,     "delivering to Maildirs in DATA for 3 s"                },
        {ACTIVITY_NONE,      "open for 3 s"                                          },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_string(sentence(cases[i].kind, 3000, false, NULL), cases[i].words,
                  "a sentence");
    is_string(
        sentence(ACTIVITY_CONTENT, 120000, true, NULL),
        "sending content to mx\\x1b.test[192.0.2.1]:465 for 2 min, with this message",
        "that of this message");
    is_string(sentence(ACTIVITY_GREETING, 40000, false, "smtps"),
              "connected to mx\\x1b.test[192.0.2.1]:465, no greeting for 40 s (does "
              "this port need smtps://?)",
              "with a question");
    is_string(sentence(ACTIVITY_IDLE, -5000, false, NULL),
              "connected to mx\\x1b.test[192.0.2.1]:465, idle for 0 s",
              "since a time to come");
}

TEST(object)
{
    struct activity a = {.kind = ACTIVITY_REPLY, .since_ms = now, .what = "DATA"};
    json_t *doing = why_session(&a);
    char *text = json_dumps(doing, JSON_COMPACT);
    is_string(text,
              "{\"doing\":\"reply\",\"since_ms\":1700000000000,\"what\":\"DATA\","
              "\"remote\":\"\",\"this_message\":false}",
              "an object");
    free(text);
    json_decref(doing);
}

/* An answer of another daemon. */
TEST(unknown)
{
    struct buffer out;
    json_t *doing = json_loads("{\"doing\":7}", 0, NULL);
    buffer_init(&out, 2000);
    why_explain_session(doing, 0, &out);
    is_text(buffer_text(&out), TEXT("open for 0 s"), "what is not known");
    buffer_free(&out);
    json_decref(doing);
}
