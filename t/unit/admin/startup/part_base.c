/* The look-ups of the daemon are those that the settings say. */
#include "admin/startup/parts.h"

#include "t/support/tap.h"

#include <string.h>
#include <sysexits.h>

int
main(void)
{
    char servers[] = "127.0.0.1", nonsense[] = "nonsense";
    struct configuration c = {.options = {.dns_servers = nonsense, .dns_trust = DNS_TRUST_NO}};
    struct daemon d = {.loop = loop_new(), .configuration = &c};
    is_number(part_dns_start(&d), EX_CONFIG, "a wrong name server is an error");
    ok_named(strstr(d.error, "nonsense") != NULL, "which is named");
    c.options.dns_servers = servers;
    is_number(part_dns_start(&d), 0, "a good one");
    ok(!dns_is_trusted(d.dns));
    c.options.dns_trust = DNS_TRUST_YES;
    part_dns_reload(&d, &c);
    ok_named(dns_is_trusted(d.dns), "a reload changes the trust");
    part_dns_stop(&d);
    loop_free(&d.loop);
    return done();
}
