/* The members of JSON objects that the daemon or we ourselves have made: a missing one
 * counts as "", 0 or false. */
#ifndef ADMIN_CONTROL_JSON_FIELD_H
#define ADMIN_CONTROL_JSON_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

const char *json_field_string(const json_t *object, const char *key); /* borrowed */
int64_t json_field_number(const json_t *object, const char *key);
bool json_field_is_true(const json_t *object, const char *key);

#endif
