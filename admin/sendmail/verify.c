/* Looks up the routes of addresses and says where they lead. */
#include "admin/sendmail/verify.h"

#include "admin/sendmail/recipients.h"
#include "admin/settings/complaint.h"

#include <stdio.h>
#include <sysexits.h>

enum { MISTAKES_MAX = 64 * 1024 };

static void
print_target(const struct target *target)
{
    switch (target->kind) {
    case TARGET_MX:
        puts("deliverable: mx");
        break;
    case TARGET_SMTP:
    case TARGET_LMTP:
        printf("deliverable: %s ", target->kind == TARGET_SMTP ? "smtp" : "lmtp");
        if (target->host[0])
            printf("%s:%u\n", target->host, (unsigned)target->port);
        else
            printf("unix:%s\n", target->path);
        break;
    case TARGET_MAILDIR:
        printf("deliverable: maildir %s\n", target->path);
        break;
    case TARGET_HOLD:
        puts("deliverable: held until an operator releases it");
        break;
    case TARGET_DISCARD:
        puts("deliverable: discarded");
        break;
    case TARGET_ERROR:
        printf("refused: %s %s\n", target->enhanced, target->path);
        break;
    case TARGET_UNKNOWN:
        puts("refused: 5.1.1 unknown user");
        break;
    }
}

static int
verify(const struct route_table *routes, struct text normal)
{
    struct address address;
    if (!address_parse(normal, &address)) {
        printf("%.*s... refused: 5.1.3 not an address\n", TEXT_ARGS(normal));
        return EX_NOUSER;
    }
    const struct target *target = route_find(routes, &address);
    printf("%.*s... ", TEXT_ARGS(normal));
    print_target(target);
    return target->kind == TARGET_ERROR || target->kind == TARGET_UNKNOWN ? EX_NOUSER
                                                                          : 0;
}

static int
verify_list(const struct route_table *routes, const char *list, const char *hostname)
{
    int code = 0;
    struct envelope **e;
    struct recipients r = {.envelope = envelope_new(), .hostname = hostname};
    struct text given = text_from(list);
    if (text_has_control(given) || !recipients_add(&r, given) ||
        recipients_count(&r) == 0) {
        fputs("sendmail: an argument is not a mail address\n", stderr);
        code = EX_DATAERR;
    }
    for (unsigned n = 0; (e = recipients_envelope(&r, n)) != NULL; n++)
        for (unsigned i = 0; i < (*e)->count; i++) {
            int one = verify(routes, (*e)->recipients[i].address);
            code = code ? code : one;
        }
    recipients_free(&r);
    return code;
}

int
verify_addresses(int count, char **addresses, const struct options *options)
{
    struct buffer errors;
    int code = 0;
    buffer_init(&errors, MISTAKES_MAX);
    struct route_table *routes = options_routes(options, &errors);
    if (routes == NULL)
        code = EX_CONFIG;
    for (int i = 0; i < count && routes; i++) {
        int one = verify_list(routes, addresses[i], options->hostname);
        code = code ? code : one;
    }
    complaint_write(&errors);
    route_free(&routes);
    buffer_free(&errors);
    return code;
}
