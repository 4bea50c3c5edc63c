/* Escapes bytes of peers for logs and terminals. */
#include "base/log/log_internal.h"

#include "base/printable.h"

#include <assert.h>
#include <stdio.h>

bool
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
