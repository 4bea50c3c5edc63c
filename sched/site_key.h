/* Which domains are one site: those with the same set of mail exchangers, or the same
 * provider. Pure.
 *
 * Providers take the mail of thousands of domains, and apply their limits to all of it
 * together (doc/scheduler.md "Sites"). All domains with the same hosts at the same
 * preferences are one site. If all hosts match the patterns of a provider, the provider
 * is the site. */
#ifndef SCHED_SITE_KEY_H
#define SCHED_SITE_KEY_H

#include "base/buffer.h"
#include "base/text.h"

enum {
    SITE_KEY_KEY_MAX = 256,
    SITE_KEY_MAX = 100,  /* hosts of one domain; others are ignored */
    SITE_KEYS_MAX = 1000 /* patterns */
};

struct exchange_name {
    struct text name;
    unsigned preference;
};

struct site_keys;
/* "google=*.google.com,*.googlemail.com microsoft=*.protection.outlook.com": a name,
 * and patterns of host names. A pattern is a name, or "*." and a suffix, which needs at
 * least one label before it. Case and a final dot are ignored, here and in hosts. Adds
 * one line per error to `errors` (or NULL), and returns NULL then. An empty list is
 * valid. */
struct site_keys *site_keys_new(struct text list, struct buffer *errors);
void site_keys_free(struct site_keys **providers);

/* The site's key: "provider:google" (the first that matches all hosts), or "mx:" and
 * the hosts in order of preference and name; a hash of all replaces those that do not
 * fit. Sorts hosts. providers may be NULL. count > 0. Returns the length. */
size_t site_key_key(const struct site_keys *providers, struct exchange_name *hosts,
                    size_t count, char out[SITE_KEY_KEY_MAX]);

#endif
