/* Display names: the part before <address> in From. */
#ifndef ADMIN_SENDMAIL_DISPLAY_NAME_H
#define ADMIN_SENDMAIL_DISPLAY_NAME_H

#include "base/buffer.h"

/* Trimmed, and in out, whose limit cuts it between characters. Control characters are
 * dropped, bytes that are no UTF-8 become '?'. */
struct text display_name_clean(struct text name, struct buffer *out);

/* The full name in a password entry: up to the comma, & is the login name. */
bool display_name_from_gecos(struct text gecos, struct text login, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
