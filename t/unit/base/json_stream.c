/* JSON in any cuts: what is read, and what is refused; compared with jansson. */
#include "base/json_stream.h"

#include "base/buffer.h"
#include "t/support/tap.h"

#include <jansson.h>

/* Events as text: strings in <>, names in (). */
static bool
on(void *context, enum json_event event, struct text text)
{
    static const char *const begins[] = {"{", "}", "[", "]", "(", "<", "", ">", "'"};
    static const char *const ends[] = {"", "", "", "", ")", "", "", "", "'"};
    struct buffer *out = context;
    if (event == JSON_EVENT_PIECE && text.length > JSON_STREAM_PIECE)
        abort();
    if (event == JSON_EVENT_PIECE && !text_is_utf8(text))
        abort();
    return buffer_add(out, text_from(begins[event])) && buffer_add(out, text) && buffer_add(out, text_from(ends[event]));
}

static enum progress
read_json(struct text t, size_t piece, struct buffer *out, struct json_stream *s)
{
    json_stream_start(s, on, out);
    for (; t.length > 0; t = text_after(t, piece))
        if (json_stream_add(s, text_before(t, piece)) == PROGRESS_BAD)
            return PROGRESS_BAD;
    return json_stream_end(s);
}

/* clang-format off */
static const struct {
    const char *json, *events;
} good[] = {
    {"{}", "{}"},
    {" [ ] ", "[]"},
    {"\"\"", "<>"},
    {"-0.5e+10", "'-0.5e+10'"},
    {"true ", "'true'"},
    {"{\"a\":1,\"b\":[\"x\",null,{\"c\":false}],\"\":\"y\"}", "{(a)'1'(b)[<x>'null'{(c)'false'}]()<y>}"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "<\"\\/\b\f\n\r\t>"},
    {"\"\\u0041\\u00fc\\u20AC\\ud83d\\ude00\"", "<A\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80>"},
    {"\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf\"", "<\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf>"},
    {"[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]", "[[[[[[[[[[[[[[[['1']]]]]]]]]]]]]]]]"},
};
static const struct {
    const char *json, *error;
} bad[] = {
    {"", "ends too early"}, {"{", "ends too early"}, {"\"x", "ends too early"}, {"[1,", "ends too early"}, {"tru", "none"},
    {"01", "none"}, {"1.", "none"}, {"-", "none"}, {"1e", "none"}, {"+1", "none"}, {"1e5x", "none"}, {"NaN", "none"},
    {"{}x", "behind"}, {"{} {}", "behind"}, {"1 2", "behind"},
    {"{a:1}", "no name"}, {"{\"a\"1}", "no colon"}, {"{\"a\":}", "no value"}, {"{\"a\":1,}", "no name"}, {"[1,]", "no value"},
    {"[1 2]", "bracket"}, {"[1}", "bracket"}, {"{\"a\":1]", "bracket"}, {"]", "no value"},
    {"\"\n\"", "control"}, {"\"\x01\"", "control"}, {"\"\\x\"", "escape"}, {"\"\\u12g4\"", "escape"},
    {"\"\\u0000\"", "NUL"}, {"\"\\ud800\"", "half"}, {"\"\\ud800x\"", "half"}, {"\"\\ud800\\n\"", "half"},
    {"\"\\ud800\\u0041\"", "half"}, {"\"\\ud800\\ud800\"", "half"}, {"\"\\udc00\"", "half"},
    {"\"\xff\"", "UTF-8"}, {"\"\xc3\"", "UTF-8"}, {"\"\xc0\x80\"", "UTF-8"}, {"\"\xed\xa0\x80\"", "UTF-8"}, {"\"\xf5\x80\x80\x80\"", "UTF-8"},
    {"\"\xe2\x82\"", "UTF-8"}, {"\"\xc3\\n\"", "UTF-8"},
    {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "deep"},
};
/* clang-format on */

TEST(values)
{
    struct json_stream s;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        for (size_t piece = 1; piece < 5; piece++) {
            struct buffer out;
            buffer_init(&out, 10000);
            ok_named(read_json(text_from(good[i].json), piece, &out, &s) == PROGRESS_DONE, good[i].json);
            is_text(buffer_text(&out), text_from(good[i].events), "its events");
            buffer_free(&out);
        }
}

TEST(refused)
{
    struct json_stream s;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (size_t piece = 1; piece < 4; piece++) {
            struct buffer out;
            buffer_init(&out, 10000);
            ok_named(read_json(text_from(bad[i].json), piece, &out, &s) == PROGRESS_BAD, bad[i].json);
            ok_named(s.error != NULL && strstr(s.error, bad[i].error) != NULL, s.error);
            buffer_free(&out);
            json_t *theirs = json_loads(bad[i].json, JSON_DECODE_ANY, NULL);
            ok_named(theirs == NULL || strcmp(bad[i].error, "deep") == 0, "jansson refuses it, too");
            json_decref(theirs);
        }
}

TEST(long_strings)
{
    enum { COUNT = 5000 };
    static char json[8 * COUNT], want[8 * COUNT];
    struct json_stream s;
    struct buffer out;
    char *at = json, *to = want;
    *at++ = '"';
    *to++ = '<';
    for (int i = 0; i < COUNT; i++) {
        const char *one = i % 3 == 0 ? "\xe2\x82\xac" : i % 3 == 1 ? "\\u20ac" : "x";
        at += sprintf(at, "%s", one);
        to += sprintf(to, "%s", i % 3 == 2 ? "x" : "\xe2\x82\xac");
    }
    *at++ = '"';
    *to++ = '>';
    buffer_init(&out, sizeof(want));
    ok(read_json(text_of(json, (size_t)(at - json)), 1000, &out, &s) == PROGRESS_DONE);
    is_text(buffer_text(&out), text_of(want, (size_t)(to - want)), "in pieces of whole characters");
    buffer_free(&out);
    memset(json, 'n', 400);
    memcpy(json, "{\"", 2);
    buffer_init(&out, 10000);
    ok(read_json(text_of(json, 400), 7, &out, &s) == PROGRESS_BAD && strstr(s.error, "name is too long") != NULL);
    memset(json, '1', 400);
    ok(read_json(text_of(json, 400), 7, &out, &s) == PROGRESS_BAD && strstr(s.error, "number is too long") != NULL);
    buffer_free(&out);
}

TEST(the_caller_stops_it)
{
    struct json_stream s;
    struct buffer out;
    buffer_init(&out, 3);
    ok(read_json(TEXT("[\"abc\"]"), 1, &out, &s) == PROGRESS_BAD && s.error == NULL);
    ok(json_stream_end(&s) == PROGRESS_BAD && s.error == NULL);
    buffer_free(&out);
}
