/* Finds the route, gives it the token, and sends the canary. */
#include "admin/startup/commands.h"

#include "base/http/http_call.h"
#include "smtp/oauth/tokens.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/net/net.h"
#include "smtp/delivery/smarthost_probe.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { TRIAL_MS = 60 * 1000, TRIAL_TURN_MS = 200, TRIAL_ERROR_MAX = 512 };

struct login_trial {
    const struct oauth_account *account;
    const struct target *target; /* NULL: no route logs in there */
    size_t at;
    struct smarthost_probe *canary;
    bool over;
    int code;
};

/* A route_each_target(). An account without a port is for each. */
static void
login_trial_find(void *context, const struct target *target)
{
    struct login_trial *t = context;
    const struct oauth_account *a = t->account;
    if (t->target != NULL || target->kind != TARGET_SMTP)
        return;
    for (size_t at = 0; at < target_host_count(target); at++) {
        const struct target_host host = target_host(target, at);
        if (!text_equal_nocase(host.host, text_from(a->host)) ||
            !text_equal(host.user, text_from(a->user)) ||
            (a->port != 0 && a->port != host.port))
            continue;
        t->target = target;
        t->at = at;
        return;
    }
}

static void
login_trial_done(void *context, const struct smarthost_probe_result *result)
{
    struct login_trial *t = context;
    const char *host = t->account->host;
    switch (result->verdict) {
    case SMARTHOST_PROBE_GOOD:
        printf("%s accepts the login.\n", host);
        break;
    case SMARTHOST_PROBE_SENDER:
    case SMARTHOST_PROBE_RECIPIENT: /* none is asked */
        printf("%s accepts the login, but refuses mail from %s: %s\n", host,
               t->account->user, result->text);
        break;
    case SMARTHOST_PROBE_LOGIN:
    case SMARTHOST_PROBE_TOKEN: /* it was refused */
        fprintf(stderr, "petrel oauth: %s refuses the login, which is kept: %s\n", host,
                result->text);
        t->code = EX_NOPERM;
        break;
    case SMARTHOST_PROBE_DOWN:
        fprintf(stderr,
                "petrel oauth: the login is kept, but %s could not be asked whether it "
                "accepts it: %s\n",
                host, result->text);
        break;
    }
    smarthost_probe_free(&t->canary);
    t->over = true;
}

/* A tokens_settings.changed. */
static void
login_trial_ignore(void *context, const struct tokens_view *view)
{
    (void)context;
    (void)view;
}

static void
login_trial_wait(struct login_trial *t, struct loop *loop)
{
    int64_t end_ms = loop_monotonic_ms(loop) + TRIAL_MS;
    while (!t->over && loop_monotonic_ms(loop) < end_ms)
        loop_turn(loop, TRIAL_TURN_MS);
    if (!t->over)
        fprintf(stderr, "petrel oauth: the login is kept, but %s does not answer\n",
                t->account->host);
    smarthost_probe_free(&t->canary);
}

static void
login_trial_ask(struct login_trial *t, const struct configuration *c, struct loop *loop,
                struct net *net, struct dns *dns, struct tokens *tokens)
{
    const struct options *o = &c->options;
    struct smarthost_probe_settings settings = {
        .loop = loop,
        .net = net,
        .dns = dns,
        .hostname = o->hostname,
        .smtp_port = (uint16_t)o->delivery.smtp_port,
        .connect_timeout_ms = o->delivery.connect_timeout_ms,
        .tls = &c->anchors,
        .secrets = route_secrets(c->routes),
        .tokens = tokens};
    (void)!bind_address_read(&settings.sources, o->delivery.smtp_bind, NULL);
    t->canary = smarthost_probe_new(&settings, t->target, t->at, t->account->user,
                                    login_trial_done, t);
    login_trial_wait(t, loop);
}

int
login_trial_run(void *configuration, const struct oauth_account *account,
                struct disk *spool)
{
    const struct configuration *c = configuration;
    struct login_trial t = {.account = account};
    char error[TRIAL_ERROR_MAX];
    route_each_target(c->routes, login_trial_find, &t);
    if (t.target == NULL) {
        printf("No route logs in at %s as %s yet.\n", account->host, account->user);
        return 0;
    }
    struct loop *loop = loop_new();
    struct dns *dns =
        dns_new(loop, text_from(c->options.dns_servers), error, sizeof(error));
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    if (dns != NULL) {
        struct net *net = net_new(loop);
        struct http_caller *http = http_caller_new(&(struct http_caller_settings){
            .loop = loop, .net = net, .dns = dns, .tls = &c->anchors});
        struct tokens *tokens =
            tokens_new(&(struct tokens_settings){.loop = loop,
                                                 .log = log,
                                                 .spool = spool,
                                                 .http = http,
                                                 .changed = login_trial_ignore});
        tokens_set(tokens, account, 1);
        login_trial_ask(&t, c, loop, net, dns, tokens);
        tokens_free(&tokens);
        http_caller_free(&http);
        dns_free(&dns);
        net_free(&net);
    }
    log_free(&log);
    loop_free(&loop);
    return t.code;
}
