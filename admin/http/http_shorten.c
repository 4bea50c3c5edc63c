/* Cuts lists until they fit. */
#include "admin/http/http_shorten.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORTEN_NAME_MAX = 64 };

struct shorten_list {
    json_t *object;
    const char *name; /* borrowed; NULL: none is found */
    size_t length;
};

static void
shorten_find(json_t *object, struct shorten_list *longest)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        size_t length =
            json_array_size(value) > 0 ? json_dumpb(value, NULL, 0, JSON_COMPACT) : 0;
        if (length > longest->length && strlen(name) < SHORTEN_NAME_MAX)
            *longest = (struct shorten_list){object, name, length};
    }
}

/* Halves it, since the lengths of its items are not known. */
static void
shorten_halve(const struct shorten_list *l)
{
    char name[SHORTEN_NAME_MAX], more[SHORTEN_NAME_MAX + sizeof("_more")];
    snprintf(name, sizeof(name), "%s", l->name);
    snprintf(more, sizeof(more), "%s_more", name);
    const json_t *list = json_object_get(l->object, name);
    size_t count = json_array_size(list), kept = count / 2;
    json_int_t cut = json_integer_value(json_object_get(l->object, more)) +
                     (json_int_t)(count - kept);
    json_t *shorter = json_array();
    for (size_t i = 0; i < kept; i++)
        json_array_append(shorter, json_array_get(list, i));
    json_object_set_new(l->object, name, shorter);
    json_object_set_new(l->object, more, json_integer(cut));
}

/* False: nothing is left to be cut. */
static bool
shorten_some(json_t *object)
{
    struct shorten_list longest = {.name = NULL};
    shorten_find(object, &longest);
    shorten_find(json_object_get(object, "why"), &longest);
    if (longest.name != NULL)
        shorten_halve(&longest);
    return longest.name != NULL;
}

char *
http_shorten_write(json_t *object, size_t most)
{
    char *text = json_dumps(object, JSON_COMPACT);
    while (text != NULL && strlen(text) > most) {
        free(text);
        text = shorten_some(object) ? json_dumps(object, JSON_COMPACT) : NULL;
    }
    json_decref(object);
    return text;
}
