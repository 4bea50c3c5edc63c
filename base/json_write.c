/* Writes JSON. */
#include "base/json_write.h"

#include <string.h>

void
json_put(struct json_writer *w, struct text piece)
{
    w->full = w->full || !buffer_add(w->out, piece);
}

void
json_put_number(struct json_writer *w, struct text before, int64_t value)
{
    json_put(w, before);
    w->full = w->full || !buffer_add_number(w->out, value);
}

/* The first character of rest; returns its length. */
static size_t
json_put_character(struct json_writer *w, struct text rest)
{
    unsigned char c = (unsigned char)rest.at[0];
    uint32_t code;
    if (c != '\0' && (c < ' ' || c == 0x7f)) {
        w->full = w->full || !buffer_format(w->out, "\\u%04x", c);
        return 1;
    }
    if (c == '"' || c == '\\')
        json_put(w, TEXT("\\"));
    size_t length = c < 0x80 ? 1 : text_character(rest, &code);
    if (length == 0 || c == '\0') {        /* many readers of JSON cannot have a NUL */
        json_put(w, TEXT("\xef\xbf\xbd")); /* U+FFFD */
        return 1;
    }
    json_put(w, text_before(rest, length));
    return length;
}

/* Nearly all values are plain: printable ASCII that JSON does not escape. */
static size_t
json_plain_length(struct text t)
{
    size_t plain = 0;
    while (plain < t.length && t.at[plain] >= ' ' && t.at[plain] <= '~' &&
           t.at[plain] != '"' && t.at[plain] != '\\')
        plain++;
    return plain;
}

void
json_put_escaped(struct json_writer *w, struct text value)
{
    while (value.length > 0 && !w->full) {
        size_t plain = json_plain_length(value);
        json_put(w, text_before(value, plain));
        value = text_after(value, plain);
        if (value.length > 0)
            value = text_after(value, json_put_character(w, value));
    }
}

/* One reservation and two copies each, no printf(). */
void
json_put_string(struct json_writer *w, struct text before, struct text value)
{
    size_t size = before.length + value.length + 2;
    if (json_plain_length(value) < value.length) {
        json_put(w, before);
        json_put(w, TEXT("\""));
        json_put_escaped(w, value);
        json_put(w, TEXT("\""));
        return;
    }
    char *at = w->full ? NULL : buffer_reserve(w->out, size);
    w->full = at == NULL;
    if (w->full)
        return;
    memcpy(at, before.at, before.length);
    at += before.length;
    *at++ = '"';
    if (value.length > 0)
        memcpy(at, value.at, value.length);
    at[value.length] = '"';
    w->out->length += size;
}

void
json_put_list(struct json_writer *w, struct text before, struct text list)
{
    struct text item, between = TEXT("");
    json_put(w, before);
    json_put(w, TEXT("["));
    while (text_cut(&list, ',', &item)) {
        json_put_string(w, between, item);
        between = TEXT(",");
    }
    json_put(w, TEXT("]"));
}
