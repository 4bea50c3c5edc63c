/* Reads JSON byte by byte. */
#include "base/json_stream.h"

#include <string.h>

enum json_state {
    JSON_VALUE,
    JSON_FIRST_ITEM, /* or the end of the array */
    JSON_FIRST_NAME, /* or the end of the object */
    JSON_NEXT_NAME,
    JSON_COLON,
    JSON_BEHIND, /* a value: a comma, or the end of what it is in */
    JSON_IN_STRING,
    JSON_ESCAPE,
    JSON_UNICODE,
    JSON_HALF,   /* behind a high surrogate: a backslash ... */
    JSON_HALF_U, /* ... and a u */
    JSON_IN_SCALAR,
    JSON_OVER,
    JSON_STOPPED
};

static bool
json_refuse(struct json_stream *s, const char *sentence)
{
    s->error = sentence;
    s->state = JSON_STOPPED;
    return false;
}

static bool
json_emit(struct json_stream *s, enum json_event event, struct text text)
{
    if (s->on(s->context, event, text))
        return true;
    s->state = JSON_STOPPED;
    return false;
}

static void
json_value_is_over(struct json_stream *s)
{
    s->state = s->depth > 0 ? JSON_BEHIND : JSON_OVER;
}

/* --- Strings ---------------------------------------------------------------------- */

static bool
json_flush(struct json_stream *s)
{
    struct text piece = text_of(s->piece, s->length);
    s->length = 0;
    return piece.length == 0 || json_emit(s, JSON_EVENT_PIECE, piece);
}

static bool
json_keep(struct json_stream *s, const char *bytes, size_t size)
{
    if (s->is_name && s->length + size > JSON_STREAM_NAME_MAX)
        return json_refuse(s, "a name is too long");
    memcpy(s->piece + s->length, bytes, size);
    s->length += size;
    return s->is_name || s->need > 0 || s->length + 8 <= JSON_STREAM_PIECE ||
           json_flush(s);
}

/* The first byte of a character beyond ASCII (Unicode, table 3-7). */
static bool
json_begin_character(struct json_stream *s, unsigned char c)
{
    s->low = 0x80;
    s->high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf) {
        s->need = 1;
    } else if (c >= 0xe0 && c <= 0xef) {
        s->need = 2;
        s->low = c == 0xe0 ? 0xa0 : 0x80;
        s->high = c == 0xed ? 0x9f : 0xbf;
    } else if (c >= 0xf0 && c <= 0xf4) {
        s->need = 3;
        s->low = c == 0xf0 ? 0x90 : 0x80;
        s->high = c == 0xf4 ? 0x8f : 0xbf;
    } else {
        return json_refuse(s, "a string is not UTF-8");
    }
    return true;
}

static bool
json_end_string(struct json_stream *s)
{
    struct text name = text_of(s->piece, s->length);
    if (s->is_name) {
        s->state = JSON_COLON;
        s->length = 0;
        return json_emit(s, JSON_EVENT_NAME, name);
    }
    if (!json_flush(s))
        return false;
    json_value_is_over(s);
    return json_emit(s, JSON_EVENT_STRING_END, TEXT(""));
}

static bool
json_in_string(struct json_stream *s, char c)
{
    unsigned char byte = (unsigned char)c;
    if (s->need > 0) {
        if (byte < s->low || byte > s->high)
            return json_refuse(s, "a string is not UTF-8");
        s->low = 0x80;
        s->high = 0xbf;
        s->need--;
        return json_keep(s, &c, 1);
    }
    if (c == '"')
        return json_end_string(s);
    if (c == '\\') {
        s->state = JSON_ESCAPE;
        return true;
    }
    if (byte < ' ')
        return json_refuse(s, "a control character in a string: escape it");
    return (byte < 0x80 || json_begin_character(s, byte)) && json_keep(s, &c, 1);
}

static bool
json_escape(struct json_stream *s, char c)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *found = c != '\0' ? strchr(names, c) : NULL;
    s->state = JSON_IN_STRING;
    if (found != NULL)
        return json_keep(s, &values[found - names], 1);
    if (c != 'u')
        return json_refuse(s, "an escape that is not known");
    s->state = JSON_UNICODE;
    s->digits = 0;
    s->code = 0;
    return true;
}

static bool
json_keep_code(struct json_stream *s, unsigned code)
{
    char b[4] = {0};
    size_t size = text_write_character(code, b);
    return json_keep(s, b, size);
}

static bool
json_unicode(struct json_stream *s, char c)
{
    int digit = text_hex_digit(c);
    if (digit < 0)
        return json_refuse(s, "an escape that is not known");
    s->code = s->code * 16 + (unsigned)digit;
    if (++s->digits < 4)
        return true;
    bool high = s->code >= 0xd800 && s->code <= 0xdbff,
         low = s->code >= 0xdc00 && s->code <= 0xdfff;
    if (s->code == 0)
        return json_refuse(s, "a NUL in a string");
    if (low != (s->surrogate > 0))
        return json_refuse(s, "half a character in a string");
    s->state = JSON_IN_STRING;
    if (high) {
        s->surrogate = s->code;
        s->state = JSON_HALF;
        return true;
    }
    unsigned code =
        low ? 0x10000 + ((s->surrogate - 0xd800) << 10) + (s->code - 0xdc00) : s->code;
    s->surrogate = 0;
    return json_keep_code(s, code);
}

static bool
json_half(struct json_stream *s, char c)
{
    if (c != (s->state == JSON_HALF ? '\\' : 'u'))
        return json_refuse(s, "half a character in a string");
    s->state = s->state == JSON_HALF ? JSON_HALF_U : JSON_UNICODE;
    s->digits = 0;
    s->code = 0;
    return true;
}

/* --- Scalars ---------------------------------------------------------------------- */

static bool
json_is_number(struct text t)
{
    if (t.length > 0 && t.at[0] == '-')
        t = text_after(t, 1);
    size_t digits = text_digits(t);
    if (digits == 0 || (digits > 1 && t.at[0] == '0'))
        return false;
    t = text_after(t, digits);
    if (t.length > 0 && t.at[0] == '.') {
        digits = text_digits(text_after(t, 1));
        if (digits == 0)
            return false;
        t = text_after(t, digits + 1);
    }
    if (t.length > 0 && (t.at[0] == 'e' || t.at[0] == 'E')) {
        t = text_after(t, 1);
        if (t.length > 0 && (t.at[0] == '+' || t.at[0] == '-'))
            t = text_after(t, 1);
        digits = text_digits(t);
        return digits > 0 && digits == t.length;
    }
    return t.length == 0;
}

static bool
json_end_scalar(struct json_stream *s)
{
    struct text t = text_of(s->piece, s->length);
    s->length = 0;
    if (!text_equal(t, TEXT("true")) && !text_equal(t, TEXT("false")) &&
        !text_equal(t, TEXT("null")) && !json_is_number(t))
        return json_refuse(s, "a value that is none");
    json_value_is_over(s);
    return json_emit(s, JSON_EVENT_SCALAR, t);
}

static bool
json_is_of_scalar(char c)
{
    return text_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           c == '-' || c == '+' || c == '.';
}

static bool
json_in_scalar(struct json_stream *s, char c)
{
    if (s->length == JSON_STREAM_SCALAR_MAX)
        return json_refuse(s, "a number is too long");
    s->piece[s->length++] = c;
    return true;
}

/* --- Structure -------------------------------------------------------------------- */

static bool
json_begin_string(struct json_stream *s, bool is_name)
{
    s->is_name = is_name;
    s->state = JSON_IN_STRING;
    s->length = 0;
    return is_name || json_emit(s, JSON_EVENT_STRING, TEXT(""));
}

static bool
json_open(struct json_stream *s, bool object)
{
    if (s->depth == JSON_STREAM_DEPTH_MAX)
        return json_refuse(s, "values are nested too deep");
    s->in_object[s->depth++] = object;
    s->state = object ? JSON_FIRST_NAME : JSON_FIRST_ITEM;
    return json_emit(s, object ? JSON_EVENT_OBJECT : JSON_EVENT_ARRAY, TEXT(""));
}

static bool
json_close(struct json_stream *s, char c)
{
    bool object = s->depth > 0 && s->in_object[s->depth - 1];
    if (s->depth == 0 || c != (object ? '}' : ']'))
        return json_refuse(s, "a bracket in the wrong place");
    s->depth--;
    json_value_is_over(s);
    return json_emit(s, object ? JSON_EVENT_OBJECT_END : JSON_EVENT_ARRAY_END,
                     TEXT(""));
}

static bool
json_begin_value(struct json_stream *s, char c)
{
    if (c == '"')
        return json_begin_string(s, false);
    if (c == '{' || c == '[')
        return json_open(s, c == '{');
    if (!json_is_of_scalar(c))
        return json_refuse(s, "no value where one is expected");
    s->state = JSON_IN_SCALAR;
    return json_in_scalar(s, c);
}

static bool
json_structure(struct json_stream *s, char c)
{
    switch ((enum json_state)s->state) {
    case JSON_FIRST_ITEM:
        if (c == ']')
            return json_close(s, c);
        return json_begin_value(s, c);
    case JSON_VALUE:
        return json_begin_value(s, c);
    case JSON_FIRST_NAME:
    case JSON_NEXT_NAME:
        if (c == '}' && s->state == JSON_FIRST_NAME)
            return json_close(s, c);
        return c == '"' ? json_begin_string(s, true)
                        : json_refuse(s, "no name where one is expected");
    case JSON_COLON:
        s->state = JSON_VALUE;
        return c == ':' || json_refuse(s, "no colon behind a name");
    case JSON_BEHIND:
        if (c != ',')
            return json_close(s, c);
        s->state = s->in_object[s->depth - 1] ? JSON_NEXT_NAME : JSON_VALUE;
        return true;
    case JSON_OVER:
    case JSON_IN_STRING:
    case JSON_ESCAPE:
    case JSON_UNICODE:
    case JSON_HALF:
    case JSON_HALF_U:
    case JSON_IN_SCALAR:
    case JSON_STOPPED:
        break;
    }
    return json_refuse(s, "something behind the value");
}

static bool
json_byte(struct json_stream *s, char c)
{
    switch ((enum json_state)s->state) {
    case JSON_IN_STRING:
        return json_in_string(s, c);
    case JSON_ESCAPE:
        return json_escape(s, c);
    case JSON_UNICODE:
        return json_unicode(s, c);
    case JSON_HALF:
    case JSON_HALF_U:
        return json_half(s, c);
    case JSON_IN_SCALAR:
        if (json_is_of_scalar(c))
            return json_in_scalar(s, c);
        return json_end_scalar(s) && json_byte(s, c);
    case JSON_STOPPED:
        return false;
    case JSON_VALUE:
    case JSON_FIRST_ITEM:
    case JSON_FIRST_NAME:
    case JSON_NEXT_NAME:
    case JSON_COLON:
    case JSON_BEHIND:
    case JSON_OVER:
        break;
    }
    return text_is_space(c) || json_structure(s, c);
}

/* --- public ----------------------------------------------------------------------- */

void
json_stream_start(struct json_stream *s,
                  bool (*on)(void *context, enum json_event event, struct text text),
                  void *context)
{
    *s = (struct json_stream){.on = on, .context = context, .state = JSON_VALUE};
}

enum progress
json_stream_add(struct json_stream *s, struct text bytes)
{
    for (size_t i = 0; i < bytes.length; i++, s->at++)
        if (!json_byte(s, bytes.at[i]))
            return PROGRESS_BAD;
    return s->state == JSON_OVER ? PROGRESS_DONE : PROGRESS_MORE;
}

enum progress
json_stream_end(struct json_stream *s)
{
    if (s->state == JSON_IN_SCALAR && s->depth == 0)
        (void)json_end_scalar(s);
    if (s->state != JSON_OVER && s->state != JSON_STOPPED)
        (void)json_refuse(s, "it ends too early");
    return s->state == JSON_OVER ? PROGRESS_DONE : PROGRESS_BAD;
}
