/* json_field_clean(): control characters in what other hosts say. */
#include "admin/control/json_field.h"

#include "t/support/tap.h"

#include <stdlib.h>

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

int
main(void)
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
    return done();
}
