/* base/json_field.c: members that are there, of another type, or not there; lists in order; what other hosts say. */
#include "base/json_field.h"

#include "t/support/tap.h"

#include <stdlib.h>

static void
test_fields(void)
{
    json_t *object = json_pack("{s:s, s:I, s:b, s:n}", "name", "a\xc3\xa4", "size",
                               (json_int_t)INT64_MAX, "done", 1, "nothing");
    is_string(json_field_string(object, "name"), "a\xc3\xa4", "a string");
    is_string(json_field_string(object, "size"), "", "a number is none");
    is_string(json_field_string(object, "nothing"), "", "nor is null");
    is_string(json_field_string(object, "nowhere"), "", "nor what is not there");
    is_string(json_field_string(NULL, "name"), "", "nor anything of no object");
    is_number(json_field_number(object, "size"), INT64_MAX, "a number");
    is_number(json_field_number(object, "name"), 0, "a string is none");
    is_number(json_field_number(object, "nowhere"), 0, "nor what is not there");
    ok_named(json_field_is_true(object, "done"), "true");
    ok_named(!json_field_is_true(object, "size"), "a number is not true");
    ok_named(!json_field_is_true(object, "nowhere"), "nor what is not there");
    json_decref(object);
}

static int
by_size(const json_t *a, const json_t *b)
{
    return (int)(json_field_number(a, "size") - json_field_number(b, "size"));
}

static void
test_sort(void)
{
    json_t *list = json_loads("[{\"size\":2,\"n\":1},{\"size\":1,\"n\":2},{\"size\":2,\"n\":3},"
                              "{\"size\":1,\"n\":4}]", 0, NULL);
    json_t *sorted = json_field_sort(list, by_size);
    static const int wanted[] = {2, 4, 1, 3};
    for (size_t i = 0; i < 4; i++)
        is_number(json_field_number(json_array_get(sorted, i), "n"), wanted[i], "in order, equals as they came");
    ok(json_array_size(list) == 4 && json_array_get(sorted, 3) == json_array_get(list, 2));
    json_decref(sorted);
    json_decref(list);
    sorted = json_field_sort(NULL, by_size);
    is_number(json_array_size(sorted), 0, "of nothing");
    json_decref(sorted);
}

static void
becomes(const char *from, const char *want)
{
    json_t *value = json_loads(from, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    ok_named(value != NULL, from);
    json_field_clean(value);
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    is_string(text, want, want);
    free(text);
    json_decref(value);
}

static void
test_clean(void)
{
    becomes("\"plain\"", "\"plain\"");
    becomes("\"\\u001b[2J\\u0007x\\r\\n\\t\"", "\"?[2J?x???\"");
    becomes("\"\\u007f\"", "\"?\"");
    becomes("\"\\u009b31m\"", "\"?31m\"");
    becomes("\"\\u00a0\\u00e4\\u20ac\"", "\"\xc2\xa0\xc3\xa4\xe2\x82\xac\"");
    becomes("\"a\\u2028b\\u2029c\"", "\"a?b?c\"");
    becomes("\"\\u202eexe.txt\\u202c\\u2066x\\u2069\"", "\"?exe.txt??x?\"");
    becomes("\"\\u061c\\u200e\\u200f\\u2027\\u202f\"", "\"???\xe2\x80\xa7\xe2\x80\xaf\"");
    becomes("\"a\\u0000b\"", "\"a?b\"");
    becomes("{\"a\\u202e\":1,\"b\":2}", "{\"b\":2}");
    becomes("{\"a\":[{\"b\":\"\\u001b\"},1,true,null],\"c\":\"d\"}", "{\"a\":[{\"b\":\"?\"},1,true,null],\"c\":\"d\"}");
    becomes("{\"a\\u001b\":1,\"b\":2}", "{\"b\":2}");
    becomes("[]", "[]");
    becomes("12", "12");
    json_field_clean(NULL);
}

int
main(void)
{
    test_fields();
    test_sort();
    test_clean();
    return done();
}
