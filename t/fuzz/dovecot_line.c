/* Fuzz target: lines of Dovecot's authentication server. What is read lies within the line, a user is a valid name, and a
 * value that is escaped for the server ends neither field nor line. */
#include "smtp/access/dovecot_line.h"

#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text all = text_of(data, size), rest = all, text;
    struct buffer line;
    while (rest.length > 0 && text_cut(&rest, '\n', &text)) {
        struct dovecot_line out;
        dovecot_line_read(text, &out);
        must(out.data.length == 0 || (out.data.at >= text.at && out.data.at + out.data.length <= text.at + text.length));
        must(text_find(out.data, '\t') == TEXT_NONE);
        must(out.user[0] == '\0' || sasl_is_name(text_from(out.user)));
        must(out.verb != DOVECOT_OK || out.user[0] != '\0');
    }
    buffer_init(&line, DOVECOT_LINE_MAX);
    if (dovecot_line_add(&line, "resp", all)) {
        struct text value = text_after(buffer_text(&line), 1);
        must(text_find(value, '\t') == TEXT_NONE && text_find(value, '\n') == TEXT_NONE && text_find(value, '\0') == TEXT_NONE);
    }
    buffer_free(&line);
    return 0;
}
