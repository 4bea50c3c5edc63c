/* Escapes and cuts values. */
#include "base/log/log_value.h"

#include "base/log/log.h"
#include "base/printable.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Adds \xNN for each byte of a character; false at out's limit. */
static bool
log_escape_bytes(struct text t, struct buffer *out)
{
    char escaped[4 * 4 + 1];
    assert(t.length <= 4);
    for (size_t i = 0; i < t.length; i++)
        snprintf(escaped + 4 * i, 5, "\\x%02x", (unsigned char)t.at[i]);
    return buffer_add(out, text_of(escaped, 4 * t.length));
}

bool
log_escape(struct text t, struct buffer *out)
{
    while (t.length > 0) {
        /* The usual case: a run of plain ASCII is added in one piece. */
        size_t run = 0;
        while (run < t.length && t.at[run] >= 0x20 && t.at[run] < 0x7f)
            run++;
        size_t left = out->limit - out->length;
        if (!buffer_add(out, text_before(t, run < left ? run : left)) || run > left)
            return false;
        t = text_after(t, run);
        if (t.length == 0)
            break;
        uint32_t code;
        size_t length = text_character(t, &code);
        bool pass = length > 0 && !printable_is_harmful(code);
        struct text bytes = text_before(t, length > 0 ? length : 1);
        if (pass ? !buffer_add(out, bytes) : !log_escape_bytes(bytes, out))
            return false;
        t = text_after(t, bytes.length);
    }
    return true;
}

size_t
log_value_whole(struct text t, size_t size)
{
    if (t.length <= size)
        return t.length;
    while (size > 0 && ((unsigned char)t.at[size] & 0xc0) == 0x80)
        size--;
    for (size_t back = 1; back <= 3 && back <= size; back++)
        if (t.at[size - back] == '\\' && t.at[size - back + 1] == 'x')
            return size - back;
    return size;
}

void
log_value_end_cut(struct buffer *b)
{
    size_t space =
        b->limit > strlen(LOG_ELLIPSIS) ? b->limit - strlen(LOG_ELLIPSIS) : 0;
    b->length = log_value_whole(buffer_text(b), space);
    if (!buffer_add(b, TEXT(LOG_ELLIPSIS)))
        b->length = 0;
}

/* Whether a byte is below first, no printable ASCII, or one that divides fields. No exit
 * before the end: each line has many values, and nearly all of them are plain. */
static inline bool
log_value_copy(struct text t, char *to, unsigned char first, bool is_simple)
{
    bool odd = false;
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.at[i];
        to[i] = t.at[i];
        odd |=
            c < first || c > '~' || (is_simple && (c == ',' || c == '<' || c == '>'));
    }
    return odd;
}

bool
log_value_copy_plain(struct text t, char *to)
{
    return !log_value_copy(t, to, ' ', false);
}

bool
log_value_copy_simple(struct text t, char *to)
{
    return !log_value_copy(t, to, ' ' + 1, true);
}

/* --- Guards ----------------------------------------------------------------------- */

static bool
has_bytes(struct text t, struct text bytes)
{
    return t.length > 0 && memchr(t.at, bytes.at[0], t.length) != NULL &&
           memmem(t.at, t.length, bytes.at, bytes.length) != NULL;
}

static bool
is_bracketed(struct text t)
{
    return t.length >= 2 && t.at[0] == '<' && t.at[t.length - 1] == '>' &&
           text_find(t, '>') == t.length - 1;
}

static bool
is_open(struct text t)
{
    return text_starts(t, TEXT("<")) && text_find(t, '>') == TEXT_NONE;
}

enum log_guard
log_value_guard(struct text t, bool is_read_back)
{
    if (is_bracketed(t))
        return LOG_GUARD_NOTHING;
    if (is_read_back && has_bytes(t, TEXT(" (")))
        return LOG_GUARD_SPACE;
    if (has_bytes(t, TEXT(", ")))
        return LOG_GUARD_COMMA;
    return is_open(t) ? LOG_GUARD_OPEN : LOG_GUARD_NOTHING;
}

enum log_guard
log_value_guard_remark(struct text t)
{
    return has_bytes(t, TEXT("), ")) ? LOG_GUARD_COMMA : LOG_GUARD_NOTHING;
}

/* Sentences of ours have no fields. */
enum log_guard
log_value_guard_sentence(struct text t)
{
    for (; t.length > 2; t = text_after(t, 1)) {
        size_t end = 2;
        if (t.at[0] != ',' || t.at[1] != ' ')
            continue;
        while (end < t.length &&
               ((t.at[end] >= 'a' && t.at[end] <= 'z') || t.at[end] == '_'))
            end++;
        if (end > 2 && end < t.length && t.at[end] == '=')
            return LOG_GUARD_COMMA;
    }
    return LOG_GUARD_NOTHING;
}

static bool
is_guarded(struct text t, enum log_guard guard)
{
    return text_starts(t, TEXT(", ")) ||
           (guard == LOG_GUARD_SPACE && text_starts(t, TEXT(" (")));
}

static bool
escape_guarded(struct text t, enum log_guard guard, struct buffer *out)
{
    bool whole = true;
    if (guard == LOG_GUARD_NOTHING)
        return log_escape(t, out);
    while (whole && t.length > 0) {
        size_t run = 0;
        while (run < t.length && !is_guarded(text_after(t, run), guard))
            run++;
        whole = log_escape(text_before(t, run), out);
        t = text_after(t, run);
        whole = whole && log_escape_bytes(text_before(t, 1), out);
        t = text_after(t, 1);
    }
    return whole;
}

void
log_value_build(struct buffer *value, struct text t, size_t limit, enum log_guard guard)
{
    buffer_init(value, limit);
    if (!escape_guarded(t, guard, value))
        log_value_end_cut(value);
}

void
log_value_build_field(struct buffer *value, struct text t, size_t limit,
                      enum log_guard guard)
{
    log_value_build(value, t, limit, guard);
    if (!is_open(buffer_text(value)))
        return;
    if (is_bracketed(t)) { /* its end was cut off */
        value->limit++;
        (void)!buffer_add_byte(value, '>');
        return;
    }
    buffer_clear(value);
    if (!log_escape_bytes(text_before(t, 1), value) ||
        !escape_guarded(text_after(t, 1), guard, value))
        log_value_end_cut(value);
}
