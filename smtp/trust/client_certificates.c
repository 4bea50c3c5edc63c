/* Collects the pairs of the targets, and reads them. */
#include "smtp/trust/client_certificates.h"

#include <stdio.h>
#include <string.h>

struct client_certificates_found {
    struct tls_pair *pairs;
    size_t count;
    bool more;
};

static void
client_certificates_add(void *context, const struct target *target)
{
    struct client_certificates_found *found = context;
    struct tls_pair pair;
    if (!target_certificate(target, &pair.certificate, &pair.key))
        return;
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->pairs[i].certificate, pair.certificate) == 0 &&
            strcmp(found->pairs[i].key, pair.key) == 0)
            return;
    if (found->count == TLS_PAIRS_MAX)
        found->more = true;
    else
        found->pairs[found->count++] = pair;
}

size_t
client_certificates_list(const struct route_table *routes,
                         struct tls_pair pairs[TLS_PAIRS_MAX])
{
    struct client_certificates_found found = {.pairs = pairs};
    route_each_target(routes, client_certificates_add, &found);
    return found.count;
}

bool
client_certificates_read(const struct route_table *routes, struct tls_client *client,
                         char *error, size_t error_size)
{
    struct tls_pair pairs[TLS_PAIRS_MAX];
    struct client_certificates_found found = {.pairs = pairs};
    char why[TLS_ERROR_MAX];
    route_each_target(routes, client_certificates_add, &found);
    if (found.more)
        snprintf(error, error_size,
                 "routes: more than %d different cert=", TLS_PAIRS_MAX);
    for (size_t i = 0; !found.more && i < found.count; i++) {
        struct tls_client *with =
            tls_client_read_own(client, &pairs[i], why, sizeof(why));
        if (with == NULL) {
            snprintf(error, error_size, "routes: cert=%s: %s", pairs[i].certificate,
                     why);
            return false;
        }
        tls_client_take_own(client, &with);
    }
    return !found.more;
}
