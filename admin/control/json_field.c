/* Reads members of JSON objects. */
#include "admin/control/json_field.h"

const char *
json_field_string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

int64_t
json_field_number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

bool
json_field_is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}
