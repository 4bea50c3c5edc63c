/* Writes and reads the JSON of XPEER. */
#include "smtp/peer/peer_hello.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

bool
peer_hello_write(const struct sibling_hello *h, struct buffer *out)
{
    bool added;
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:I,s:I,s:s,s:s}", "host", h->host, "group", h->group,
                  "spool", h->spool, "run", (json_int_t)h->run_ms, "now",
                  (json_int_t)h->now_ms, "version", h->version, "state", h->state);
    char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(object);
    added = text != NULL && strlen(text) <= PEER_HELLO_MAX &&
            buffer_add(out, text_from(text));
    free(text);
    return added;
}

/* The text of a member, of bytes that are all in `of`. */
static bool
peer_hello_take(const json_t *object, const char *key, const char *of, char *to,
                size_t size)
{
    const json_t *member = json_object_get(object, key);
    struct text value = text_of(json_string_value(member), json_string_length(member));
    if (value.length == 0 || value.length >= size)
        return false;
    text_copy(to, size, value);
    return strlen(to) == value.length && strspn(to, of) == value.length;
}

static bool
peer_hello_take_all(const json_t *object, struct sibling_hello *out)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const char version[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-+~_:";
    const json_t *run = json_object_get(object, "run");
    char host[GROUP_HOST_MAX + 1], group[GROUP_NAME_MAX + 1];
    out->run_ms = json_integer_value(run);
    out->now_ms = json_integer_value(json_object_get(object, "now"));
    if (out->now_ms < 0 || out->now_ms > SIBLING_TIME_MAX_MS)
        return false;
    return json_is_integer(run) && out->run_ms >= 0 &&
           peer_hello_take(object, "host", version, host, sizeof(host)) &&
           group_name_read(text_from(host), out->host, sizeof(out->host)) &&
           peer_hello_take(object, "group", version, group, sizeof(group)) &&
           group_name_read(text_from(group), out->group, sizeof(out->group)) &&
           peer_hello_take(object, "spool", hex, out->spool, sizeof(out->spool)) &&
           peer_hello_take(object, "version", version, out->version,
                           sizeof(out->version)) &&
           peer_hello_take(object, "state", letters, out->state, sizeof(out->state));
}

bool
peer_hello_read(struct text json, struct sibling_hello *out)
{
    json_t *object;
    bool good;
    *out = (struct sibling_hello){.run_ms = 0};
    if (json.length == 0 || json.length > PEER_HELLO_MAX)
        return false;
    object = json_loadb(json.at, json.length, JSON_REJECT_DUPLICATES, NULL);
    good = json_is_object(object) && peer_hello_take_all(object, out);
    json_decref(object);
    return good;
}
