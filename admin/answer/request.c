/* Writes and reads the operator's commands as JSON; strict, since part of a filter
 * would match other messages than meant. */
#include "admin/answer/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const words[] = {
    [MANAGER_HOLD] = "hold",   [MANAGER_RELEASE] = "release",
    [MANAGER_RETRY] = "retry", [MANAGER_BOUNCE] = "bounce",
    [MANAGER_REMOVE] = "rm",
};
enum { VERBS = sizeof(words) / sizeof(words[0]) };

bool
request_find_verb(const char *word, enum manager_verb *verb)
{
    for (int i = 0; i < VERBS; i++)
        if (strcmp(words[i], word) == 0) {
            *verb = (enum manager_verb)i;
            return true;
        }
    return false;
}

const char *
request_word(enum manager_verb verb)
{
    return words[verb];
}

/* An argument that is no UTF-8 matches nothing that JSON could carry. */
static void
put_text(json_t *request, const char *key, const char *value)
{
    if (value == NULL)
        return;
    json_t *text = json_string(value);
    json_object_set_new(request, key, text ? text : json_string("\xef\xbf\xbd"));
}

json_t *
request_write_as(const char *command, const struct filter *f)
{
    json_t *request = json_object(), *ids = json_array();
    json_object_set_new(request, "command", json_string(command));
    for (size_t i = 0; i < f->id_count; i++) {
        char name[ID_LENGTH + 1];
        id_format(f->ids[i].id, name);
        json_array_append_new(ids, json_string(name));
    }
    if (f->id_count > 0)
        json_object_set(request, "ids", ids);
    json_decref(ids);
    if (f->everything)
        json_object_set_new(request, "all", json_true());
    put_text(request, "to", f->to);
    put_text(request, "from", f->from);
    put_text(request, "place", f->place);
    if (f->older_ms >= 0)
        json_object_set_new(request, "older_ms", json_integer(f->older_ms));
    if (f->first.time_ms != 0) {
        char name[ID_LENGTH + 1];
        id_format(f->first, name);
        put_text(request, "first", name);
    }
    return request;
}

json_t *
request_write(enum manager_verb verb, const struct filter *f)
{
    return request_write_as(words[verb], f);
}

/* --- Reading ---------------------------------------------------------------------- */

static bool
read_ids(struct filter *f, const json_t *value)
{
    size_t index;
    json_t *item;
    if (!json_is_array(value) || json_array_size(value) == 0)
        return false;
    json_array_foreach (value, index, item) {
        struct id id;
        if (!json_is_string(item) ||
            !id_parse(text_from(json_string_value(item)), &id) || !filter_add_id(f, id))
            return false;
    }
    return true;
}

static bool
request_read_all(struct filter *f, const json_t *value)
{
    f->everything = json_is_true(value);
    return f->everything;
}

static bool
read_to(struct filter *f, const json_t *value)
{
    f->to = json_string_value(value);
    return f->to && f->to[0];
}

static bool
read_from(struct filter *f, const json_t *value)
{
    f->from = json_string_value(value);
    return f->from != NULL;
}

static bool
read_older(struct filter *f, const json_t *value)
{
    f->older_ms = json_integer_value(value);
    return json_is_integer(value) && f->older_ms >= 0;
}

static bool
request_read_first(struct filter *f, const json_t *value)
{
    return json_is_string(value) &&
           id_parse(text_from(json_string_value(value)), &f->first);
}

static bool
request_read_place(struct filter *f, const json_t *value)
{
    f->place = json_string_value(value);
    return f->place && filter_is_place(f->place);
}

static const struct member {
    const char *name;
    bool (*read)(struct filter *f, const json_t *value);
} members[] = {
    {"ids",      read_ids          },
    {"all",      request_read_all  },
    {"to",       read_to           },
    {"from",     read_from         },
    {"older_ms", read_older        },
    {"place",    request_read_place},
    {"first",    request_read_first},
};

static bool
read_member(struct filter *f, const char *name, const json_t *value)
{
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
        if (strcmp(members[i].name, name) == 0)
            return members[i].read(f, value);
    return strcmp(name, "command") == 0;
}

const char *
request_read_filter(const json_t *request, struct filter *f)
{
    const char *name;
    json_t *value;
    filter_clear(f);
    json_object_foreach((json_t *)(uintptr_t)request, name,
                        value) if (!read_member(f, name, value)) return "bad selection";
    return NULL;
}

const char *
request_read(const json_t *request, enum manager_verb *verb, struct filter *f)
{
    const char *word = json_string_value(json_object_get(request, "command"));
    filter_clear(f);
    if (word == NULL || !request_find_verb(word, verb))
        return "unknown command";
    const char *why = request_read_filter(request, f);
    return why == NULL && filter_is_open(f) ? "no ids, no filter and not all" : why;
}

enum request_type { REQUEST_STRING, REQUEST_STRINGS, REQUEST_INTEGER, REQUEST_BOOLEAN };

static const char *const request_type_words[] = {
    [REQUEST_STRING] = "a string",
    [REQUEST_STRINGS] = "a list of strings",
    [REQUEST_INTEGER] = "a whole number",
    [REQUEST_BOOLEAN] = "true or false",
};

static const struct request_member {
    const char *command; /* NULL: of all that select messages (request.h) */
    const char *name;
    enum request_type type;
} request_members[] = {
    {NULL,              "ids",       REQUEST_STRINGS},
    {NULL,              "all",       REQUEST_BOOLEAN},
    {NULL,              "to",        REQUEST_STRING },
    {NULL,              "from",      REQUEST_STRING },
    {NULL,              "older_ms",  REQUEST_INTEGER},
    {NULL,              "place",     REQUEST_STRING },
    {NULL,              "first",     REQUEST_STRING },
    {"list",            "limit",     REQUEST_INTEGER},
    {"list",            "after",     REQUEST_STRING },
    {"list",            "bytes",     REQUEST_INTEGER},
    {"show",            "id",        REQUEST_STRING },
    {"show",            "why",       REQUEST_BOOLEAN},
    {"trace",           "q",         REQUEST_STRINGS},
    {"trace",           "since_ms",  REQUEST_INTEGER},
    {"trace",           "limit",     REQUEST_INTEGER},
    {"follow",          "id",        REQUEST_STRING },
    {"state",           "id",        REQUEST_STRING },
    {"states",          "ids",       REQUEST_STRINGS},
    {"why",             "id",        REQUEST_STRING },
    {"sites",           "from",      REQUEST_INTEGER},
    {"site",            "name",      REQUEST_STRING },
    {"fragments",       "from",      REQUEST_INTEGER},
    {"quota-reset",     "who",       REQUEST_STRING },
    {"forget-limits",   "site",      REQUEST_STRING },
    {"log-level",       "level",     REQUEST_STRING },
    {"log-level",       "for_ms",    REQUEST_INTEGER},
    {"log-level",       "by",        REQUEST_STRING },
    {"unlock",          "clients",   REQUEST_STRINGS},
    {"drain",           "wait_ms",   REQUEST_INTEGER},
    {"drain",           "empty",     REQUEST_BOOLEAN},
    {"drain",           "cancel",    REQUEST_BOOLEAN},
    {"drain",           "progress",  REQUEST_BOOLEAN},
    {"drain",           "keep",      REQUEST_BOOLEAN},
    {"drain",           "to",        REQUEST_STRING },
    {"page",            "access",    REQUEST_STRING },
    {"adopt",           "slice",     REQUEST_INTEGER},
    {"test",            "to",        REQUEST_STRING },
    {"test",            "from",      REQUEST_STRING },
    {"cluster-forget",  "host",      REQUEST_STRING },
    {"cluster-adopt",   "host",      REQUEST_STRING },
    {"suppress-list",   "from",      REQUEST_INTEGER},
    {"suppress-list",   "limit",     REQUEST_INTEGER},
    {"suppress-list",   "q",         REQUEST_STRING },
    {"suppress-add",    "lines",     REQUEST_STRINGS},
    {"suppress-remove", "addresses", REQUEST_STRINGS},
};

static const char *
request_type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "a whole number";
    case JSON_REAL:
        return "a number with a fraction or an exponent";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}

/* NULL, or the member with a wrong type: the value, or the first such item of a
 * list. */
static const json_t *
request_type_find_wrong(const json_t *value, enum request_type type)
{
    size_t index;
    json_t *item;
    switch (type) {
    case REQUEST_STRING:
        return json_is_string(value) ? NULL : value;
    case REQUEST_INTEGER:
        return json_is_integer(value) ? NULL : value;
    case REQUEST_BOOLEAN:
        return json_is_boolean(value) ? NULL : value;
    case REQUEST_STRINGS:
        break;
    }
    if (!json_is_array(value))
        return value;
    json_array_foreach (value, index, item)
        if (!json_is_string(item))
            return item;
    return NULL;
}

static bool
request_member_check(const json_t *value, const char *name, enum request_type type,
                     char why[REQUEST_TYPES_WHY_MAX])
{
    const json_t *wrong = value ? request_type_find_wrong(value, type) : NULL;
    if (wrong == NULL)
        return true;
    snprintf(why, REQUEST_TYPES_WHY_MAX, "%s must be %s, %s %s", name,
             request_type_words[type], wrong == value ? "not" : "but has",
             request_type_of(wrong));
    return false;
}

static bool
request_has_member(const char *command, const struct request_member *member)
{
    enum manager_verb verb;
    if (member->command != NULL)
        return strcmp(member->command, command) == 0;
    return request_find_verb(command, &verb) || strcmp(command, "list") == 0;
}

bool
request_types_check(const json_t *request, char why[REQUEST_TYPES_WHY_MAX])
{
    const json_t *name = json_object_get(request, "command");
    if (!json_is_object(request)) {
        snprintf(why, REQUEST_TYPES_WHY_MAX, "a request must be a JSON object");
        return false;
    }
    if (!request_member_check(json_object_get(request, "cluster"), "cluster",
                              REQUEST_BOOLEAN, why))
        return false;
    if (name == NULL || !request_member_check(name, "command", REQUEST_STRING, why))
        return name == NULL;
    for (size_t i = 0; i < sizeof(request_members) / sizeof(request_members[0]); i++) {
        const struct request_member *member = &request_members[i];
        if (request_has_member(json_string_value(name), member) &&
            !request_member_check(json_object_get(request, member->name), member->name,
                                  member->type, why))
            return false;
    }
    return true;
}
