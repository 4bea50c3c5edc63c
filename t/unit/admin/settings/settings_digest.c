/* Settings that hosts must have in common: equal values have equal digests, and no secret is
 * in one. */
#include "admin/settings/settings_digest.h"

#include "admin/settings/options.h"
#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

enum { KEYS_MAX = 60 };

struct digests {
    char keys[KEYS_MAX][64], values[KEYS_MAX][SETTINGS_DIGEST_HEX];
    size_t count;
};

static void
add(void *context, const char *key, const char digest[SETTINGS_DIGEST_HEX])
{
    struct digests *d = context;
    snprintf(d->keys[d->count], sizeof(d->keys[0]), "%s", key);
    memcpy(d->values[d->count++], digest, SETTINGS_DIGEST_HEX);
}

static struct digests
digests_of(const char *const *arguments)
{
    struct options options = {0};
    struct digests d = {0};
    struct settings *s = settings_new(options_rows, "PETREL", &options);
    settings_read_preset(s, "local_domains=a-host.test");
    for (; *arguments != NULL; arguments++)
        settings_read_argument(s, *arguments);
    settings_apply(s);
    settings_digest_each(s, add, &d);
    settings_free(&s);
    return d;
}

/* The keys in which the two differ, with a space behind each. */
static const char *
differing(const char *one, const char *other)
{
    static char keys[500];
    struct digests a = digests_of((const char *const[]){one, NULL}), b = digests_of((const char *const[]){other, NULL});
    size_t at = 0;
    keys[0] = '\0';
    ok_named(a.count == b.count && a.count > 25, "the same settings");
    for (size_t i = 0; i < a.count; i++)
        if (strcmp(a.values[i], b.values[i]) != 0)
            at += (size_t)snprintf(keys + at, sizeof(keys) - at, "%s ", a.keys[i]);
    return keys;
}

int
main(void)
{
    struct digests d = digests_of((const char *const[]){NULL});
    for (size_t i = 0; i < d.count; i++) {
        is_number((long)strspn(d.values[i], "0123456789abcdef"), SETTINGS_DIGEST_HEX - 1, d.keys[i]);
        for (const struct setting *row = options_rows; row->key != NULL; row++)
            if (strcmp(row->key, d.keys[i]) == 0)
                ok_named(!row->secret, "is no secret");
    }
    is_string(differing("routes=* mx", "routes=* mx"), "", "equal");
    is_string(differing("routes=* mx", "routes=* smtp://a.test"), "routes ", "a route");
    is_string(differing("routes=a.test  mx\n\t* hold", "routes=a.test mx\n* hold"), "", "white space");
    is_string(differing("routes=ab c", "routes=a bc"), "routes ", "but where words end");
    is_string(differing("relay=smtp://u:pw1@a.test", "relay=smtp://u:pw2@a.test"), "", "a password does not count");
    is_string(differing("relay=smtp://u:p@1@a.test", "relay=smtp://u:2@a.test"), "", "whatever is in it");
    is_string(differing("relay=smtp://u:pw@a.test", "relay=smtp://v:pw@a.test"), "relay ", "a user does");
    is_string(differing("relay_password=one", "relay_password=two"), "", "a secret is not among them");
    struct digests set = digests_of((const char *const[]){"local_domains=a-host.test", NULL});
    for (size_t i = 0; i < d.count; i++)
        ok_named((strcmp(d.values[i], set.values[i]) == 0) == (strcmp(d.keys[i], "local_domains") != 0), "what only follows from the host counts as unset");
    is_string(differing("hostname=a.test", "hostname=b.test"), "", "nor is what each host has");
    is_string(differing("message_size_limit=10M", "message_size_limit=20M"), "message_size_limit ", "a limit");
    is_string(differing("dkim_keys=a.test s /k", "dkim_keys=b.test s /k"), "dkim_keys ", "keys");
    return done();
}
