/* Makes CRLF of bare LF in a stream. */
#include "smtp/repair.h"

#include <assert.h>

void
repair_lines(struct repair *r, struct text bytes, struct buffer *out)
{
    while (bytes.length > 0) {
        size_t at = text_find(bytes, '\n');
        struct text line = text_before(bytes, at == TEXT_NONE ? bytes.length : at);
        if (line.length > 0)
            r->after_cr = line.at[line.length - 1] == '\r';
        bool fits = buffer_add(out, line);
        if (at != TEXT_NONE) {
            fits = fits && buffer_add(out, r->after_cr ? TEXT("\n") : TEXT("\r\n"));
            r->after_cr = false;
        }
        assert(fits);
        bytes = text_after(bytes, at == TEXT_NONE ? bytes.length : at + 1);
    }
}
