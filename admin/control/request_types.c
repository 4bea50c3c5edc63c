/* Compares the members of a request with a table of those of all commands. */
#include "admin/control/request_types.h"

#include "admin/control/request.h"

#include <stdio.h>
#include <string.h>

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
    {NULL,             "ids",      REQUEST_STRINGS},
    {NULL,             "all",      REQUEST_BOOLEAN},
    {NULL,             "to",       REQUEST_STRING },
    {NULL,             "from",     REQUEST_STRING },
    {NULL,             "older_ms", REQUEST_INTEGER},
    {NULL,             "place",    REQUEST_STRING },
    {NULL,             "first",    REQUEST_STRING },
    {"list",           "limit",    REQUEST_INTEGER},
    {"list",           "after",    REQUEST_STRING },
    {"list",           "bytes",    REQUEST_INTEGER},
    {"show",           "id",       REQUEST_STRING },
    {"show",           "why",      REQUEST_BOOLEAN},
    {"trace",          "q",        REQUEST_STRINGS},
    {"trace",          "since_ms", REQUEST_INTEGER},
    {"trace",          "limit",    REQUEST_INTEGER},
    {"follow",         "id",       REQUEST_STRING },
    {"state",          "id",       REQUEST_STRING },
    {"states",         "ids",      REQUEST_STRINGS},
    {"why",            "id",       REQUEST_STRING },
    {"sites",          "from",     REQUEST_INTEGER},
    {"site",           "name",     REQUEST_STRING },
    {"fragments",      "from",     REQUEST_INTEGER},
    {"quota-reset",    "who",      REQUEST_STRING },
    {"forget-limits",  "site",     REQUEST_STRING },
    {"log-level",      "level",    REQUEST_STRING },
    {"log-level",      "for_ms",   REQUEST_INTEGER},
    {"log-level",      "by",       REQUEST_STRING },
    {"unlock",         "clients",  REQUEST_STRINGS},
    {"drain",          "wait_ms",  REQUEST_INTEGER},
    {"drain",          "empty",    REQUEST_BOOLEAN},
    {"drain",          "cancel",   REQUEST_BOOLEAN},
    {"drain",          "progress", REQUEST_BOOLEAN},
    {"drain",          "keep",     REQUEST_BOOLEAN},
    {"drain",          "to",       REQUEST_STRING },
    {"page",           "access",   REQUEST_STRING },
    {"adopt",          "slice",    REQUEST_INTEGER},
    {"test",           "to",       REQUEST_STRING },
    {"test",           "from",     REQUEST_STRING },
    {"cluster-forget", "host",     REQUEST_STRING },
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
