/* Which route a login is tried at: none, another user's, another port's. Replies of the host:
 * t/e2e/oauth_login.t. */
#include "admin/startup/commands.h"

#include "t/support/must.h"
#include "t/support/tap.h"

#include <string.h>

static struct configuration configuration;

static void
not_tried(const char *routes, uint16_t port, const char *what)
{
    struct buffer errors;
    struct oauth_account account = {.host = "127.0.0.1", .user = "joe", .port = port};
    buffer_init(&errors, 1000);
    configuration.routes = route_new(&(struct route_settings){.routes = text_from(routes), .without_secrets = true, .smtp_port = 25}, &errors);
    must(configuration.routes != NULL);
    /* Without a spool: nothing is opened when no route is found. */
    is_number(login_trial_run(&configuration, &account, NULL), 0, what);
    route_free(&configuration.routes);
}

int
main(void)
{
    not_tried("* mx", 0, "no smarthost");
    not_tried("* smtp://127.0.0.1:25", 0, "without a user");
    not_tried("* smtp://jane@127.0.0.1:25", 0, "of another user");
    not_tried("* smtp://joe@127.0.0.2:25", 0, "at another host");
    not_tried("* smtp://joe@127.0.0.1:25", 587, "at another port");
    not_tried("* smtp://a.test|jane@127.0.0.1:25|joe@b.test:26", 0, "nor in a list");
    return done();
}
