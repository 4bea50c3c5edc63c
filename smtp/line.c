/* Cuts CRLF lines off a stream; refuses other line ends. */
#include "smtp/line.h"

#include <assert.h>
#include <string.h>

static bool
is_special(char c)
{
    return c == '\r' || c == '\n' || c == '\0';
}

/* Not 0 if and only if one of the eight bytes is 0. The lowest set bit marks the first
 * such byte; the other bits may be wrong. */
static uint64_t
has_zero(uint64_t bytes)
{
    return (bytes - UINT64_C(0x0101010101010101)) & ~bytes &
           UINT64_C(0x8080808080808080);
}

static bool
has_special(const char *at)
{
    uint64_t bytes;
    memcpy(&bytes, at, sizeof(bytes));
    return (has_zero(bytes) | has_zero(bytes ^ UINT64_C(0x0d0d0d0d0d0d0d0d)) |
            has_zero(bytes ^ UINT64_C(0x0a0a0a0a0a0a0a0a))) != 0;
}

size_t
line_run(struct text t)
{
    size_t run = 0;
    while (t.length - run >= sizeof(uint64_t) && !has_special(t.at + run))
        run += sizeof(uint64_t);
    while (run < t.length && !is_special(t.at[run]))
        run++;
    return run;
}

enum progress
line_next(struct text *input, size_t limit, struct text *line, enum line_fault *fault)
{
    assert(limit > 0);
    size_t end = line_run(text_before(*input, limit + 1));
    if (end > limit) {
        *fault = LINE_TOO_LONG;
        return PROGRESS_BAD;
    }
    if (end == input->length || (input->at[end] == '\r' && end + 1 == input->length))
        return PROGRESS_MORE;
    if (input->at[end] != '\r' || input->at[end + 1] != '\n') {
        *fault = LINE_ODD;
        return PROGRESS_BAD;
    }
    *line = text_before(*input, end);
    *input = text_after(*input, end + 2);
    return PROGRESS_DONE;
}
