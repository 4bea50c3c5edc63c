/* The members of JSON objects that the daemon or we ourselves have made: a missing one
 * counts as "", 0 or false. */
#ifndef BASE_JSON_FIELD_H
#define BASE_JSON_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

const char *json_field_string(const json_t *object, const char *key); /* borrowed */
int64_t json_field_number(const json_t *object, const char *key);
bool json_field_is_true(const json_t *object, const char *key);
/* On standard output: indented for people, or as a line for programs. */
void json_field_print(const json_t *value);
void json_field_print_line(const json_t *value);
/* A copy of the array in that order, equals as they came; its elements are the same. */
json_t *json_field_sort(const json_t *array,
                        int (*compare)(const json_t *a, const json_t *b));

/* For texts of another host on their way to a terminal, where they could move the cursor,
 * change the title or worse: turns each harmful character (printable_is_harmful()) in the
 * strings of the value, at any depth, into "?". Members with one in their names go. The
 * value may be NULL. */
void json_field_clean(json_t *value);

#endif
