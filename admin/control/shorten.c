/* Cuts lists until they fit. */
#include "admin/control/shorten.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORTEN_NAME_MAX = 64 };

static void
shorten_cut(json_t *object, const char *borrowed, size_t kept)
{
    char name[SHORTEN_NAME_MAX], more[SHORTEN_NAME_MAX + sizeof("_more")];
    snprintf(name, sizeof(name), "%s", borrowed);
    snprintf(more, sizeof(more), "%s_more", name);
    const json_t *list = json_object_get(object, name);
    size_t count = json_array_size(list);
    json_int_t cut =
        json_integer_value(json_object_get(object, more)) + (json_int_t)(count - kept);
    json_t *shorter = json_array();
    for (size_t i = 0; i < kept; i++)
        json_array_append(shorter, json_array_get(list, i));
    json_object_set_new(object, name, shorter);
    json_object_set_new(object, more, json_integer(cut));
}

/* --- Lists that are too long alone ------------------------------------------------ */

/* How many of the first items take at most that many bytes. */
static size_t
shorten_count(const json_t *list, size_t most)
{
    size_t count = json_array_size(list), kept = 0, bytes = 0;
    for (; kept < count; kept++) {
        bytes += 1 + json_dumpb(json_array_get(list, kept), NULL, 0,
                                JSON_COMPACT | JSON_ENCODE_ANY);
        if (bytes > most)
            break;
    }
    return kept;
}

/* False: there is none. */
static bool
shorten_one(json_t *object, size_t most)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        size_t kept = shorten_count(value, most);
        if (kept < json_array_size(value) && strlen(name) < SHORTEN_NAME_MAX) {
            shorten_cut(object, name, kept); /* it ends the walk */
            return true;
        }
    }
    return false;
}

/* First of all: then the work is bounded by the kept items, not by those cut. */
static void
shorten_long(json_t *object, size_t most)
{
    while (shorten_one(object, most) ||
           shorten_one(json_object_get(object, "why"), most)) {
    }
}

/* --- Lists that are too long together --------------------------------------------- */

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

/* False: nothing is left to be cut. */
static bool
shorten_some(json_t *object)
{
    struct shorten_list longest = {.name = NULL};
    shorten_find(object, &longest);
    shorten_find(json_object_get(object, "why"), &longest);
    if (longest.name == NULL)
        return false;
    size_t count = json_array_size(json_object_get(longest.object, longest.name));
    shorten_cut(longest.object, longest.name, count / 2);
    return true;
}

char *
shorten_write(json_t *object, size_t most)
{
    shorten_long(object, most);
    char *text = json_dumps(object, JSON_COMPACT);
    if (text != NULL && strlen(text) > most) {
        free(text);
        shorten_long(object, most - most / 8); /* the rest is for other members */
        text = json_dumps(object, JSON_COMPACT);
    }
    while (text != NULL && strlen(text) > most) {
        free(text);
        text = shorten_some(object) ? json_dumps(object, JSON_COMPACT) : NULL;
    }
    json_decref(object);
    return text;
}
