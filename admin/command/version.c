/* `petrel version`: the parts of this binary. */
#include "admin/command/command.h"

#include "base/json_field.h"
#include "admin/view/status.h"
#include "base/crypto/sign.h"
#include "base/dns/dns.h"
#include "base/dns/idna.h"
#include "base/loop/loop.h"
#include "base/sandbox/sandbox.h"
#include "base/tls/tls.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

/* A library, and the feature that a build without it lacks. */
struct part {
    const char *version, *feature; /* version NULL or "": not there */
};

/* No date: the same source makes the same binary. */
#ifdef __clang__
#define BUILT "C11, " __VERSION__
#else
#define BUILT "C11, gcc " __VERSION__
#endif

static bool
part_is_there(const struct part *part)
{
    return part->version != NULL && part->version[0] != '\0';
}

int
command_version(int count, char **arguments, const char *redis)
{
    bool json = count == 1 && strcmp(arguments[0], "--json") == 0;
    if (count > 0 && !json) {
        fputs("usage: petrel version [--json]\n", stderr);
        return EX_USAGE;
    }
    char dns[80], filter[80];
    struct sandbox_state offer;
    sandbox_offer(&offer);
    const char *seccomp = sandbox_version(filter, sizeof(filter));
    snprintf(dns, sizeof(dns), "c-ares %s", dns_version());
    const struct part parts[] = {
        {loop_version(),             NULL     },
        {dns,                        NULL     },
        {tls_version(),              NULL     },
        {"jansson " JANSSON_VERSION, NULL     },
        {seccomp,                    "seccomp"},
        {idna_version(),             "idna"   },
        {redis,                      "redis"  },
        {sign_ed25519_version(),     "ed25519"},
    };
    enum { PARTS = sizeof(parts) / sizeof(*parts) };
    if (!json) {
        printf("petrel %s (%s)\n", PETREL_VERSION, BUILT);
        for (size_t i = 0; i < PARTS; i++)
            if (part_is_there(&parts[i]))
                printf("%s\n", parts[i].version);
        if (offer.missing[0])
            printf("sandbox: this system lacks: %s\n", offer.missing);
        return 0;
    }
    json_t *libraries = json_array(), *features = json_array();
    for (size_t i = 0; i < PARTS; i++) {
        if (!part_is_there(&parts[i]))
            continue;
        json_array_append_new(libraries, json_string(parts[i].version));
        if (parts[i].feature != NULL)
            json_array_append_new(features, json_string(parts[i].feature));
    }
    json_t *all = json_pack("{s:s,s:s,s:o,s:o,s:o}", "version", PETREL_VERSION, "build",
                            BUILT, "libraries", libraries, "features", features,
                            "sandbox", status_sandbox(&offer));
    json_field_print(all);
    json_decref(all);
    return 0;
}
