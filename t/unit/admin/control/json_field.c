/* admin/control/json_field.c: members that are there, of another type, or not there. */
#include "admin/control/json_field.h"

#include "t/support/tap.h"

int
main(void)
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
    return done();
}
