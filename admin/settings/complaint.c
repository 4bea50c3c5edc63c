/* Writes error messages, with the user's argument escaped. */
#include "admin/settings/complaint.h"

#include "base/log/log.h"

#include <stdio.h>

enum { SHOWN_MAX = 1024 };

int
complaint_say(const char *program, int code, const char *what, const char *argument)
{
    struct buffer shown;
    buffer_init(&shown, SHOWN_MAX);
    (void)!log_escape(text_from(argument), &shown); /* cut when it is long */
    fprintf(stderr, "%s: %s%s%.*s\n", program, what, argument[0] ? ": " : "",
            TEXT_ARGS(buffer_text(&shown)));
    buffer_free(&shown);
    return code;
}

/* A buffer that never had anything has no bytes, not even none. */
void
complaint_write(const struct buffer *errors)
{
    struct text all = buffer_text(errors);
    fwrite(all.at, 1, all.length, stderr);
}
