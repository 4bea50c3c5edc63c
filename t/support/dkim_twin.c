/* The canonical body as a text: line by line, then the empty lines at its end cut. */
#include "t/support/dkim_twin.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static size_t
find_crlf(struct text t)
{
    for (size_t i = 0; i + 1 < t.length; i++)
        if (t.at[i] == '\r' && t.at[i + 1] == '\n')
            return i;
    return t.length;
}

/* The end of out behind the line. */
static char *
reduce_line(struct text line, char *out)
{
    while (line.length > 0 && text_is_blank(line.at[line.length - 1]))
        line.length--;
    for (size_t i = 0; i < line.length; i++) {
        bool blank = text_is_blank(line.at[i]);
        if (blank && i > 0 && text_is_blank(line.at[i - 1]))
            continue;
        *out++ = blank ? ' ' : line.at[i];
    }
    return out;
}

void
dkim_twin_body(struct text body, unsigned char out[DIGEST_SIZE])
{
    char *canonical = memory_new(body.length + 3), *end = canonical;
    while (body.length > 0) {
        struct text line = text_before(body, find_crlf(body));
        body = text_after(body, line.length + 2);
        end = reduce_line(line, end);
        *end++ = '\r';
        *end++ = '\n';
    }
    while (end - canonical >= 4 && memcmp(end - 4, "\r\n\r\n", 4) == 0)
        end -= 2;
    if (end - canonical == 2)
        end = canonical;
    digest_plain(text_of(canonical, (size_t)(end - canonical)), out);
    free(canonical);
}
