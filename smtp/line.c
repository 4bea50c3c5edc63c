/* Cuts CRLF lines off a stream and refuses everything that only looks like one. */
#include "smtp/line.h"

#include <assert.h>

static bool
is_special(char c)
{
    return c == '\r' || c == '\n' || c == '\0';
}

enum progress
line_next(struct text *input, size_t limit, struct text *line, enum line_fault *fault)
{
    assert(limit > 0);
    size_t end = 0;
    while (end < input->length && end <= limit && !is_special(input->at[end]))
        end++;
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
