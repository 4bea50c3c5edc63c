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

enum { PARTS_MAX = 8 };

/* No date: the same source makes the same binary. */
#ifdef __clang__
#define BUILT "C11, " __VERSION__
#else
#define BUILT "C11, gcc " __VERSION__
#endif

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
    sandbox_version(filter, sizeof(filter));
    snprintf(dns, sizeof(dns), "c-ares %s", dns_version());
    const char *parts[PARTS_MAX] = {loop_version(), dns, tls_version(),
                                    "jansson " JANSSON_VERSION, filter};
    size_t part_count = 5;
    json_t *features = json_array();
    if (idna_version() != NULL) {
        parts[part_count++] = idna_version();
        json_array_append_new(features, json_string("idna"));
    }
    if (*redis != '\0') {
        parts[part_count++] = redis;
        json_array_append_new(features, json_string("redis"));
    }
    if (sign_ed25519_version()[0] != '\0') {
        parts[part_count++] = sign_ed25519_version();
        json_array_append_new(features, json_string("ed25519"));
    }
    if (!json) {
        printf("petrel %s (%s)\n", PETREL_VERSION, BUILT);
        for (size_t i = 0; i < part_count; i++)
            printf("%s\n", parts[i]);
        if (offer.missing[0])
            printf("sandbox: this system lacks: %s\n", offer.missing);
        json_decref(features);
        return 0;
    }
    json_t *libraries = json_array();
    for (size_t i = 0; i < part_count; i++)
        json_array_append_new(libraries, json_string(parts[i]));
    json_t *all = json_pack("{s:s,s:s,s:o,s:o,s:o}", "version", PETREL_VERSION, "build",
                            BUILT, "libraries", libraries, "features", features,
                            "sandbox", status_sandbox(&offer));
    json_field_print(all);
    json_decref(all);
    return 0;
}
