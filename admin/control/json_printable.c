/* Takes control characters out of JSON. */
#include "admin/control/json_printable.h"

#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a control character there: C0 and DEL have one, C1 has two. 0: it is none. */
static size_t
json_printable_control(const char *at)
{
    unsigned char first = (unsigned char)at[0], second = (unsigned char)at[1];
    if (first < ' ' || first == 0x7f)
        return 1;
    return first == 0xc2 && second < 0xa0 ? 2 : 0;
}

static bool
json_printable_is(const char *text)
{
    while (*text != '\0' && json_printable_control(text) == 0)
        text++;
    return *text == '\0';
}

static void
json_printable_string(json_t *value)
{
    const char *from = json_string_value(value);
    if (json_printable_is(from))
        return;
    char *text = memory_string(from), *to = text;
    for (from = text; *from != '\0';) {
        size_t control = json_printable_control(from);
        *to++ = control > 0 ? '?' : *from;
        from += control > 0 ? control : 1;
    }
    *to = '\0';
    json_string_set_nocheck(value, text);
    free(text);
}

static void
json_printable_object(json_t *object)
{
    void *iterator = json_object_iter(object);
    while (iterator != NULL) {
        const char *key = json_object_iter_key(iterator);
        json_t *member = json_object_iter_value(iterator);
        iterator = json_object_iter_next(object, iterator);
        if (json_printable_is(key))
            json_printable(member);
        else
            json_object_del(object, key);
    }
}

/* Jansson reads no value that is deeper than 2048. */
void
json_printable(json_t *value)
{
    if (json_is_string(value))
        json_printable_string(value);
    else if (json_is_object(value))
        json_printable_object(value);
    else
        for (size_t i = 0; i < json_array_size(value); i++)
            json_printable(json_array_get(value, i));
}
