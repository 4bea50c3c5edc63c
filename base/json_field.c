/* Reads members of JSON objects. */
#include "base/json_field.h"

#include "base/memory.h"
#include "base/printable.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void
json_field_print(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    putchar('\n');
}

void
json_field_print_line(const json_t *value)
{
    json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    putchar('\n');
}

struct json_field_row {
    json_t *value;
    size_t index;
};

static int
json_field_compare(const void *a, const void *b, void *context)
{
    const struct json_field_row *x = a, *y = b;
    int (*const *compare)(const json_t *a, const json_t *b) = context;
    int order = (*compare)(x->value, y->value);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

json_t *
json_field_sort(const json_t *array, int (*compare)(const json_t *a, const json_t *b))
{
    size_t count = json_array_size(array);
    struct json_field_row *rows = memory_array(count + 1, sizeof(*rows));
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct json_field_row){json_array_get(array, i), i};
    qsort_r(rows, count, sizeof(*rows), json_field_compare, &compare);
    for (size_t i = 0; i < count; i++)
        json_array_append(sorted, rows[i].value);
    free(rows);
    return sorted;
}

static bool
json_field_is_clean(struct text t)
{
    uint32_t code;
    for (size_t length; t.length > 0; t = text_after(t, length)) {
        length = text_character(t, &code);
        if (length == 0 || printable_is_harmful(code))
            return false;
    }
    return true;
}

static void
json_field_clean_string(json_t *value)
{
    struct text from = text_of(json_string_value(value), json_string_length(value));
    if (json_field_is_clean(from))
        return;
    char *text = memory_new(from.length), *to = text;
    while (from.length > 0) {
        uint32_t code;
        size_t length = text_character(from, &code);
        bool is_harmful = length == 0 || printable_is_harmful(code);
        struct text character = text_before(from, length > 0 ? length : 1);
        if (is_harmful)
            *to++ = '?';
        else
            to = mempcpy(to, character.at, character.length);
        from = text_after(from, character.length);
    }
    json_string_setn_nocheck(value, text, (size_t)(to - text));
    free(text);
}

static void
json_field_clean_object(json_t *object)
{
    void *iterator = json_object_iter(object);
    while (iterator != NULL) {
        const char *key = json_object_iter_key(iterator);
        json_t *member = json_object_iter_value(iterator);
        iterator = json_object_iter_next(object, iterator);
        if (json_field_is_clean(text_from(key)))
            json_field_clean(member);
        else
            json_object_del(object, key);
    }
}

/* Jansson reads no value that is deeper than 2048. */
void
json_field_clean(json_t *value)
{
    if (json_is_string(value))
        json_field_clean_string(value);
    else if (json_is_object(value))
        json_field_clean_object(value);
    else
        for (size_t i = 0; i < json_array_size(value); i++)
            json_field_clean(json_array_get(value, i));
}
