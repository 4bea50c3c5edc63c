/* The look-ups of the daemon are those that the settings say. */
#include "admin/startup/name_servers.h"

#include "base/loop/loop.h"
#include "t/support/tap.h"

#include <string.h>

int
main(void)
{
    struct loop *loop = loop_new();
    char error[200] = "", servers[] = "127.0.0.1", nonsense[] = "nonsense", no[] = "no",
         yes[] = "yes";
    struct options o = {.dns_servers = nonsense, .dns_trust = no};
    ok(name_servers_start(loop, NULL, &o, error, sizeof(error)) == NULL);
    ok_named(strstr(error, "nonsense") != NULL, "a wrong name server is an error");
    o.dns_servers = servers;
    struct dns *dns = name_servers_start(loop, NULL, &o, error, sizeof(error));
    ok(dns != NULL && !dns_is_trusted(dns));
    o.dns_trust = yes;
    name_servers_reload(dns, &o);
    ok_named(dns_is_trusted(dns), "a reload changes the trust");
    dns_free(&dns);
    loop_free(&loop);
    return done();
}
