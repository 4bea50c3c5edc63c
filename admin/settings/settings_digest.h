/* Digests of the settings that the hosts of a group must have in common, so that a view of
 * all hosts shows which of them differs.
 *
 * Nothing secret is in them: rows that are secrets are not among them, and passwords in URLs
 * are omitted before. White space does not count. Pure. */
#ifndef ADMIN_SETTINGS_SETTINGS_DIGEST_H
#define ADMIN_SETTINGS_SETTINGS_DIGEST_H

#include "base/settings/settings.h"

enum { SETTINGS_DIGEST_HEX = 12 + 1 };

/* Calls each for every setting of those, with its digest: 48 bits of SHA-256, in hex. */
void settings_digest_each(const struct settings *s,
                          void (*each)(void *context, const char *key,
                                       const char digest[SETTINGS_DIGEST_HEX]),
                          void *context);

#endif
