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

/* --- Eight bytes at a time: each line has many values ------------------------------ */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
#define TOP_BITS   EACH(0x80)

/* Whether a byte is below n, at most 128. */
static uint64_t
word_has_less(uint64_t word, unsigned n)
{
    return (word - EACH(n)) & ~word & TOP_BITS;
}

static uint64_t
word_has(uint64_t word, char c)
{
    return word_has_less(word ^ EACH((unsigned char)c), 1);
}

/* Neither below `first`, nor DEL, nor beyond ASCII. */
static uint64_t
word_has_odd(uint64_t word, unsigned first)
{
    return word_has_less(word, first) | ((word + EACH(1)) & TOP_BITS) |
           (word & TOP_BITS);
}

static uint64_t
word_load(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

static void
word_store(char *to, uint64_t word)
{
    memcpy(to, &word, sizeof(word));
}

/* 1 to 7 bytes, some of them perhaps twice. Returns a word that has them. */
static uint64_t
word_copy_short(struct text t, char *to)
{
    uint32_t first, last;
    if (t.length < sizeof(first)) {
        unsigned char a = (unsigned char)t.at[0], b = (unsigned char)t.at[t.length / 2],
                      c = (unsigned char)t.at[t.length - 1];
        to[0] = (char)a;
        to[t.length / 2] = (char)b;
        to[t.length - 1] = (char)c;
        return EACH('a') << 24 | (uint64_t)c << 16 | (uint64_t)b << 8 | a;
    }
    memcpy(&first, t.at, sizeof(first));
    memcpy(&last, t.at + t.length - sizeof(last), sizeof(last));
    memcpy(to, &first, sizeof(first));
    memcpy(to + t.length - sizeof(last), &last, sizeof(last));
    return (uint64_t)last << 32 | first;
}

/* Copies t; whether has_odd() finds something in it. */
static inline bool
text_copy_odd(struct text t, char *to, uint64_t (*has_odd)(uint64_t word))
{
    uint64_t odd = 0, word;
    if (t.length == 0)
        return false;
    if (t.length < sizeof(odd))
        return has_odd(word_copy_short(t, to)) != 0;
    for (size_t i = 0; i + sizeof(odd) < t.length; i += sizeof(odd)) {
        word = word_load(t.at + i);
        word_store(to + i, word);
        odd |= has_odd(word);
    }
    word = word_load(t.at + t.length - sizeof(odd));
    word_store(to + t.length - sizeof(odd), word);
    return (odd | has_odd(word)) != 0;
}

static inline uint64_t
word_is_not_plain(uint64_t word)
{
    return word_has_odd(word, ' ');
}

/* '<' and '>' differ in one bit. */
static inline uint64_t
word_is_not_simple(uint64_t word)
{
    return word_has_odd(word, ' ' + 1) | word_has(word, ',') |
           word_has(word | EACH('<' ^ '>'), '>');
}

bool
log_value_copy_plain(struct text t, char *to)
{
    return !text_copy_odd(t, to, word_is_not_plain);
}

bool
log_value_copy_simple(struct text t, char *to)
{
    return !text_copy_odd(t, to, word_is_not_simple);
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
