/* What makes two domains one site: the same set of mail exchangers, or the same
 * provider. Pure.
 *
 * Providers take the mail of thousands of domains, and count all of it together
 * (doc/scheduler.md "Sites"). All domains with the same hosts at the same preferences
 * are one site; of those whose hosts all match the patterns of a provider, the provider
 * is. */
#ifndef SCHED_SITE_KEY_H
#define SCHED_SITE_KEY_H

#include "base/buffer.h"
#include "base/text.h"

enum {
    SITE_KEY_KEY_MAX = 256,
    SITE_KEY_MAX = 100,  /* of one domain; more are not looked at */
    SITE_KEYS_MAX = 1000 /* patterns */
};

struct exchange_name {
    struct text name;
    unsigned preference;
};

struct site_keys;
/* "google=*.google.com,*.googlemail.com microsoft=*.protection.outlook.com": a name,
 * and patterns of host names, each a name or "*." and a suffix, which stands for names
 * that have something before it. Case and a dot at the end say nothing, here as in
 * hosts. One line per mistake is added to mistakes (may be NULL); NULL then. An empty
 * list is fine. */
struct site_keys *site_keys_new(struct text list, struct buffer *mistakes);
void site_keys_free(struct site_keys **providers);

/* The site's key: "provider:google" (the first that has them all), or "mx:" and the
 * hosts in order of preference and name, with a hash of all in the place of those for
 * which there is no space. Sorts hosts. providers may be NULL. count > 0. Returns the
 * length. */
size_t site_key_key(const struct site_keys *providers, struct exchange_name *hosts,
                    size_t count, char out[SITE_KEY_KEY_MAX]);

#endif
