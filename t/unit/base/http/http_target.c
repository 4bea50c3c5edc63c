/* Proves that a target is a path with one form and a query, and that the rest is
 * refused. */
#include "base/http/http_target.h"

#include "t/support/tap.h"

static const struct sample {
    const char *target, *outcome; /* "PATH|QUERY", or the refusal */
} samples[] = {
    {"/", "/|"},
    {"/?", "/|"},
    {"/api/queue/ID?q=a%2Fb&c", "/api/queue/ID|q=a%2Fb&c"},
    {"/%61%70i", "/api|"},
    {"/a//b/", "/a//b/|"},
    {"/a..b/...", "/a..b/...|"},
    {"/?a=../..", "/|a=../.."},
    {"/a?b?c", "/a|b?c"},
    {"/%ff%0a", "/\xff\n|"},
    {"", "400 the target is not a path"},
    {"*", "400 the target is not a path"},
    {"?a=b", "400 the target is not a path"},
    {"host:443", "400 the target is not a path"},
    {"http://host/", "400 the target is not a path"},
    {"/a#b", "400 the target is not a path"},
    {"/a?b#c", "400 the target is not a path"},
    {"/%", "400 the target has a bad escape"},
    {"/%4", "400 the target has a bad escape"},
    {"/%4g", "400 the target has a bad escape"},
    {"/%g4", "400 the target has a bad escape"},
    {"/a?%", "400 the target has a bad escape"},
    {"/a?b=%zz", "400 the target has a bad escape"},
    {"/%00", "400 the target has an escape that is not allowed"},
    {"/a?b=%00", "400 the target has an escape that is not allowed"},
    {"/a%2Fb", "400 the target has an escape that is not allowed"},
    {"/a%2fb", "400 the target has an escape that is not allowed"},
    {"/..", "400 the target has a segment of dots"},
    {"/.", "400 the target has a segment of dots"},
    {"/a/../b", "400 the target has a segment of dots"},
    {"/a/%2e%2E/b", "400 the target has a segment of dots"},
    {"/a/./b", "400 the target has a segment of dots"},
};

TEST(targets)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        static struct http_target target;
        char *copy = text_string(text_from(samples[i].target));
        const char *why = "";
        char out[200];
        unsigned status = http_target_read(text_from(copy), &target, &why);
        if (status == 0)
            snprintf(out, sizeof(out), "%.*s|%.*s", TEXT_ARGS(target.path),
                     TEXT_ARGS(target.query));
        else
            snprintf(out, sizeof(out), "%u %s", status, why);
        is_string(out, samples[i].outcome, samples[i].target);
        free(copy);
    }
}

TEST(length)
{
    static struct http_target target;
    char longest[HTTP_TARGET_MAX + 1];
    const char *why;
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    ok(http_target_read(text_of(longest, HTTP_TARGET_MAX), &target, &why) == 0);
    is_number(target.path.length, HTTP_TARGET_MAX, "the longest");
    is_number(http_target_read(text_of(longest, sizeof(longest)), &target, &why), 414,
              "one octet more");
    is_string(why, "the target is too long", "says so");
}

TEST(parameters)
{
    static struct http_parameter p;
    struct text rest = TEXT("a=1&&b&c=x+y%2Bz%26=&=e");
    ok(http_parameter_next(&rest, &p));
    is_text(p.name, TEXT("a"), "a name");
    is_text(p.value, TEXT("1"), "its value");
    ok(http_parameter_next(&rest, &p));
    is_text(p.name, TEXT("b"), "a name alone, behind an empty pair");
    is_text(p.value, TEXT(""), "has no value");
    ok(http_parameter_next(&rest, &p));
    is_text(p.value, TEXT("x y+z&="), "is decoded");
    is_number(strlen(p.room), p.value.length, "and ends with a NUL");
    ok(http_parameter_next(&rest, &p));
    is_text(p.name, TEXT(""), "no name");
    is_text(p.value, TEXT("e"), "but a value");
    ok(!http_parameter_next(&rest, &p));
    rest = TEXT("");
    ok(!http_parameter_next(&rest, &p));
}
