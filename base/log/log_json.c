/* Writes the object of a JSON line. */
#include "base/log/log_json.h"

#include "base/log/log_value.h"

#include <assert.h>
#include <string.h>

/* Cuts the longest string of the object by half of its bytes. Shorter ones than twice
 * the ellipsis stay, so that log_json_end() comes to an end. */
static bool
shorten_longest(json_t *object)
{
    const char *key, *longest = NULL;
    json_t *value;
    size_t length = strlen(LOG_ELLIPSIS);
    json_object_foreach(object, key, value)
    {
        if (json_string_length(value) > 2 * length) {
            length = json_string_length(value) / 2;
            longest = key;
        }
    }
    if (longest == NULL)
        return false;
    value = json_object_get(object, longest);
    struct buffer shorter;
    buffer_init(&shorter, length + strlen(LOG_ELLIPSIS));
    struct text t = text_of(json_string_value(value), json_string_length(value));
    bool added = buffer_add(&shorter, text_before(t, log_value_whole(t, length)));
    assert(added);
    log_value_end_cut(&shorter);
    struct text made = buffer_text(&shorter);
    json_string_setn(value, made.at, made.length);
    buffer_free(&shorter);
    return true;
}

void
log_json_end(json_t **object, struct buffer *line)
{
    size_t flags = JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12);
    size_t length = json_dumpb(*object, NULL, 0, flags);
    while (length > line->limit - line->length && shorten_longest(*object))
        length = json_dumpb(*object, NULL, 0, flags);
    char *at = buffer_reserve(line, length);
    if (at != NULL)
        line->length += json_dumpb(*object, at, length, flags);
    json_decref(*object);
    *object = NULL;
}
