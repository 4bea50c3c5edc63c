/* SMTP replies: parsed line by line within limits, composed in printable ASCII. */
#include "smtp/reply.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { WRITTEN_MAX = 510 }; /* RFC 5321 §4.5.3.1.5, without CRLF */

void
reply_start(struct reply *reply)
{
    reply->code = 0;
    reply->enhanced[0] = reply->text[0] = '\0';
    reply->length = 0;
    reply->lines = 0;
    reply->is_too_long = false;
    reply->starts[0] = 0;
}

/* The length of "d.ddd.ddd" at the start of t that fits code, or 0 (RFC 2034 §4). */
static size_t
enhanced_length(struct text t, int code)
{
    size_t at = 1;
    if (t.length == 0 || t.at[0] != (char)('0' + code / 100) || code / 100 == 3)
        return 0;
    for (int part = 0; part < 2; part++) {
        if (at >= t.length || t.at[at++] != '.')
            return 0;
        size_t first = at;
        while (at < t.length && text_is_digit(t.at[at]) && at - first < 3)
            at++;
        if (at == first)
            return 0;
    }
    return at == t.length || t.at[at] == ' ' ? at : 0;
}

/* The text goes to logs, bounces and terminals: control characters of a hostile server
 * must not. */
static void
reply_keep(struct reply *reply, struct text t)
{
    t = text_before(t, REPLY_TEXT_MAX - reply->length);
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.at[i];
        reply->text[reply->length++] = c < 0x20 || c == 0x7f ? '?' : t.at[i];
    }
    reply->text[reply->length] = '\0';
}

static void
keep_line(struct reply *reply, struct text t)
{
    size_t length = enhanced_length(t, reply->code);
    if (length > 0) {
        if (reply->enhanced[0] == '\0')
            text_copy(reply->enhanced, sizeof(reply->enhanced), text_before(t, length));
        t = text_after(t, length + 1);
    }
    if (reply->lines > 0)
        reply_keep(reply, TEXT(" "));
    reply->starts[reply->lines++] = (uint16_t)reply->length;
    reply_keep(reply, t);
}

/* DONE for the last line of a reply. All lines of a reply have one code (RFC 5321
 * §4.2.1). A server that changes it within a reply may answer another command than we
 * think. */
static enum progress
parse_line(struct reply *reply, struct text line)
{
    uint64_t code = 0;
    if (!text_number(text_before(line, 3), 599, &code) || line.length < 3 || code < 200)
        return PROGRESS_BAD;
    char mark = line.length > 3 ? line.at[3] : ' ';
    reply->is_too_long = reply->lines == REPLY_LINES_MAX;
    if ((mark != ' ' && mark != '-') || reply->is_too_long ||
        (reply->lines > 0 && reply->code != (int)code))
        return PROGRESS_BAD;
    reply->code = (int)code;
    keep_line(reply, text_after(line, 4));
    return mark == '-' ? PROGRESS_MORE : PROGRESS_DONE;
}

/* A bare LF ends a line, too: servers are read more leniently than clients, for a reply
 * cannot hide a message. */
enum progress
reply_parse(struct text *input, struct reply *reply)
{
    for (;;) {
        size_t end = text_find(text_before(*input, REPLY_LINE_MAX + 2), '\n');
        reply->is_too_long = end == TEXT_NONE && input->length >= REPLY_LINE_MAX + 2;
        if (end == TEXT_NONE)
            return reply->is_too_long ? PROGRESS_BAD : PROGRESS_MORE;
        struct text line = text_before(*input, end);
        *input = text_after(*input, end + 1);
        if (line.length > 0 && line.at[line.length - 1] == '\r')
            line.length--;
        reply->is_too_long = line.length > REPLY_LINE_MAX;
        enum progress progress =
            reply->is_too_long ? PROGRESS_BAD : parse_line(reply, line);
        if (progress != PROGRESS_MORE)
            return progress;
    }
}

struct text
reply_text(const struct reply *reply)
{
    return text_of(reply->text, reply->length);
}

/* Lines are kept by their beginnings, so that the text can be shown as one and read as
 * several. */
bool
reply_next_line(const struct reply *reply, unsigned *at, struct text *line)
{
    if (*at >= reply->lines)
        return false;
    size_t start = reply->starts[*at], end = reply->length;
    /* The space between lines is in neither; it is absent where the text was truncated. */
    if (*at + 1 < reply->lines && reply->starts[*at + 1] > start &&
        (size_t)reply->starts[*at + 1] - 1 < end)
        end = (size_t)reply->starts[*at + 1] - 1;
    *line = text_of(reply->text + start, end - start);
    *at += 1;
    return true;
}

bool
reply_keyword(const struct reply *reply, struct text keyword, struct text *parameters)
{
    struct text line, word;
    unsigned at = 1;
    while (reply_next_line(reply, &at, &line)) {
        if (!text_word(&line, " ", &word) || !text_equal_nocase(word, keyword))
            continue;
        if (parameters != NULL)
            *parameters = text_trim(line);
        return true;
    }
    return false;
}

/* Writes code, mark and enhanced code; returns their length. */
static size_t
write_head(char line[WRITTEN_MAX + 1], int code, char mark, const char *enhanced)
{
    struct text more = text_from(enhanced);
    assert(code >= 200 && code <= 599 && more.length < REPLY_ENHANCED_MAX);
    for (int at = 2, left = code; at >= 0; at--, left /= 10)
        line[at] = (char)('0' + left % 10);
    line[3] = mark;
    if (more.length == 0)
        return 4;
    memcpy(line + 4, more.at, more.length);
    line[4 + more.length] = ' ';
    return 4 + more.length + 1;
}

/* Nothing of a client that we repeat can end the line: bytes other than printable ASCII
 * become question marks. */
static void __attribute__((format(printf, 5, 0)))
reply_write_line(struct buffer *out, int code, char mark, const char *enhanced,
                 const char *format, va_list list)
{
    char line[WRITTEN_MAX + 1];
    size_t head = write_head(line, code, mark, enhanced);
    if (strchr(format, '%') == NULL)
        text_copy(line + head, sizeof(line) - head, text_from(format));
    else
        vsnprintf(line + head, sizeof(line) - head, format, list);
    size_t length = head + strlen(line + head);
    for (size_t i = 0; i < length; i++)
        if (line[i] < 0x20 || line[i] > 0x7e)
            line[i] = '?';
    bool added =
        buffer_add(out, text_of(line, length)) && buffer_add(out, TEXT("\r\n"));
    assert(added);
}

void
reply_write(struct buffer *out, int code, const char *enhanced, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    reply_write_line(out, code, ' ', enhanced, format, list);
    va_end(list);
}

void
reply_write_more(struct buffer *out, int code, const char *enhanced, const char *format,
                 ...)
{
    va_list list;
    va_start(list, format);
    reply_write_line(out, code, '-', enhanced, format, list);
    va_end(list);
}
