/* Display names: the part before <address> in From. */
#ifndef ADMIN_SENDMAIL_DISPLAY_NAME_H
#define ADMIN_SENDMAIL_DISPLAY_NAME_H

#include "base/buffer.h"

enum { DISPLAY_NAME_SOURCE_MAX = 250, DISPLAY_NAME_WRITTEN_MAX = 1200 };

/* Writes name as a phrase of RFC 5322 §3.2.5: words as they are, a quoted string where
 * they must be quoted, encoded words (RFC 2047) for UTF-8. Control characters are
 * dropped, bytes that are no UTF-8 become '?'; bytes beyond DISPLAY_NAME_SOURCE_MAX are
 * left out. Nothing for a blank name. Needs at most DISPLAY_NAME_WRITTEN_MAX bytes;
 * false at out's limit. */
bool display_name_write(struct text name, struct buffer *out)
    __attribute__((warn_unused_result));

/* The full name in a password entry: up to the comma, & is the login name. */
bool display_name_from_gecos(struct text gecos, struct text login, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
