/* base/json_write.c: any bytes become JSON in UTF-8, and a buffer's limit is said. */
#include "base/json_write.h"
#include "t/support/tap.h"

#include <jansson.h>

static struct buffer out;

static struct text
written(struct text before, struct text value)
{
    struct json_writer w = {&out, false};
    buffer_clear(&out);
    json_put_string(&w, before, value);
    ok_named(!w.full, "there is room");
    return buffer_text(&out);
}

TEST(strings)
{
    static const struct {
        struct text value, json;
    } rows[] = {
        {TEXT(""),                            TEXT("\"\"")                                },
        {TEXT("a b~<>/'"),                    TEXT("\"a b~<>/'\"")                        },
        {TEXT("\"\\"),                        TEXT("\"\\\"\\\\\"")                        },
        {TEXT("a\n\x1f\x7f"),                 TEXT("\"a\\u000a\\u001f\\u007f\"")          },
        {TEXT("\0"),                          TEXT("\"\xef\xbf\xbd\"")                    },
        {TEXT("\xc3\xa4\xf0\x9f\x90\xa6z"),   TEXT("\"\xc3\xa4\xf0\x9f\x90\xa6z\"")       },
        {TEXT("\xff\xc3"),                    TEXT("\"\xef\xbf\xbd\xef\xbf\xbd\"")        },
        {TEXT("\xed\xa0\x80"),                TEXT("\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"")},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        is_text(written(TEXT(""), rows[i].value), rows[i].json, "a string");
    is_text(written(TEXT(",\"k\":"), TEXT("v")), TEXT(",\"k\":\"v\""), "behind a key");
    for (int c = 1; c < 128; c++) {
        char byte = (char)c;
        struct text made = written(TEXT(""), text_of(&byte, 1));
        json_t *read = json_loadb(made.at, made.length, JSON_DECODE_ANY, NULL);
        ok_named(json_string_length(read) == 1 && json_string_value(read)[0] == byte, "ASCII is read as it was");
        json_decref(read);
    }
}

TEST(others)
{
    struct json_writer w = {&out, false};
    buffer_clear(&out);
    json_put_number(&w, TEXT("["), -12);
    json_put_list(&w, TEXT(","), TEXT("a,\",c"));
    json_put_list(&w, TEXT(","), text_of(NULL, 0));
    json_put(&w, TEXT("]"));
    is_text(buffer_text(&out), TEXT("[-12,[\"a\",\"\\\"\",\"c\"],[]]"), "numbers and lists");
}

/* Each limit: what is written is the beginning, and the end says that it is not all. */
TEST(limits)
{
    static const struct text values[] = {TEXT("plain"), TEXT("\"\n\xff\xc3\xa4"), TEXT("")};
    for (size_t i = 0; i < 3; i++) {
        size_t whole = written(TEXT("{"), values[i]).length;
        for (size_t limit = 0; limit <= whole; limit++) {
            FIXTURE(buffer, small, buffer_init, buffer_free, limit);
            struct json_writer w = {&small, false};
            json_put_string(&w, TEXT("{"), values[i]);
            json_put(&w, TEXT(""));
            ok_named(w.full == (limit < whole) && small.length <= limit, "a limit");
        }
    }
}

int
main(void)
{
    buffer_init(&out, 1000);
    tap_tests("");
    buffer_free(&out);
    return done();
}
