/* resolve: one look-up of base/dns/dns.h, for tests against other people's name servers.
 *
 *   resolve SERVERS auto|yes|no mx|address|txt|tlsa|ptr NAME
 * Prints "trusted" or "untrusted", then "found", "no data", "no name" or "try again",
 * then "secure" or "insecure", and a line for each record, or the reason. */
#include "base/dns/dns.h"
#include "base/loop/loop.h"

#include <stdio.h>
#include <string.h>

struct lookup {
    struct loop *loop;
    const char *type;
};

static bool
is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void
print_record(const struct dns_answer *a, const char *type, size_t i)
{
    char ip[NET_ADDRESS_TEXT_MAX];
    if (is(type, "mx")) {
        printf("%u %s\n", a->mx[i].preference, a->mx[i].host);
    } else if (is(type, "address")) {
        net_address_ip(&a->addresses[i], ip);
        printf("%s\n", ip);
    } else if (is(type, "txt")) {
        printf("%.*s\n", TEXT_ARGS(a->texts[i]));
    } else if (is(type, "ptr")) {
        printf("%s\n", a->hosts[i]);
    } else {
        printf("%u %u %u ", a->tlsa[i].usage, a->tlsa[i].selector, a->tlsa[i].matching);
        for (size_t at = 0; at < a->tlsa[i].data.length; at++)
            printf("%02x", (unsigned char)a->tlsa[i].data.at[at]);
        printf("\n");
    }
}

static void
print_answer(void *context, const struct dns_answer *answer)
{
    static const char *const statuses[] = {"found", "no data", "no name", "try again"};
    const struct lookup *lookup = context;
    printf("%s %s\n%s", statuses[answer->status], answer->secure ? "secure" : "insecure",
           answer->reason);
    if (answer->status != DNS_FOUND)
        printf("\n");
    for (size_t i = 0; i < answer->count; i++)
        print_record(answer, lookup->type, i);
    loop_stop(lookup->loop);
}

static bool
look_up(struct dns *dns, struct lookup *lookup, const char *name)
{
    static const struct {
        const char *type;
        struct dns_query *(*find)(struct dns *dns, const char *name, dns_answered *done,
                                  void *context);
    } kinds[] = {
        {"mx",      dns_find_mx       },
        {"address", dns_find_addresses},
        {"txt",     dns_find_texts    },
        {"tlsa",    dns_find_tlsa     },
    };
    struct net_address address;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (is(lookup->type, kinds[i].type))
            return kinds[i].find(dns, name, print_answer, lookup) != NULL;
    return is(lookup->type, "ptr") &&
           net_address_parse_ip(text_from(name), &address) &&
           dns_find_hosts(dns, &address, print_answer, lookup) != NULL;
}

int
main(int argc, char **argv)
{
    char error[200];
    if (argc != 5) {
        fprintf(stderr,
                "usage: resolve SERVERS auto|yes|no mx|address|txt|tlsa|ptr NAME\n");
        return 64;
    }
    struct lookup lookup = {loop_new(), argv[3]};
    struct dns *dns = dns_new(lookup.loop, text_from(argv[1]), error, sizeof(error));
    if (dns == NULL) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    dns_set_trust(dns, is(argv[2], "yes")  ? DNS_TRUST_YES
                       : is(argv[2], "no") ? DNS_TRUST_NO
                                           : DNS_TRUST_AUTO);
    printf("%s\n", dns_is_trusted(dns) ? "trusted" : "untrusted");
    if (look_up(dns, &lookup, argv[4]))
        loop_run(lookup.loop);
    dns_free(&dns);
    loop_free(&lookup.loop);
    return 0;
}
