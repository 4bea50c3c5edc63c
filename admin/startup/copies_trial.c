/* A connection to the servers of copies that is closed again. */
#include "admin/startup/copies_trial.h"

#include "base/dns/dns.h"
#include "base/loop/loop.h"
#include "base/net/net.h"
#include "queue/copies/copies_engine.h"

#include <stdio.h>
#include <string.h>

enum { COPIES_TRIAL_MS = 2000, COPIES_TRIAL_TURN_MS = 50 };

static enum copies_trial
copies_trial_ask(struct loop *loop, struct copies_engine *engine,
                 char why[COPIES_TRIAL_WHY_MAX])
{
    int64_t end_ms = loop_monotonic_ms(loop) + COPIES_TRIAL_MS;
    char before[COPIES_WHY_MAX];
    snprintf(before, sizeof(before), "%s", copies_engine_why(engine));
    while (strcmp(copies_engine_why(engine), before) == 0 &&
           loop_monotonic_ms(loop) < end_ms)
        loop_turn(loop, COPIES_TRIAL_TURN_MS);
    snprintf(why, COPIES_TRIAL_WHY_MAX, "%s", copies_engine_why(engine));
    if (copies_engine_is_ready(engine))
        return COPIES_TRIAL_GOOD;
    return copies_engine_is_unfit(engine) ? COPIES_TRIAL_UNFIT : COPIES_TRIAL_AWAY;
}

static enum copies_trial
copies_trial_connect(const struct configuration *c, struct loop *loop, struct dns *dns,
                     struct tls_client *tls, char why[COPIES_TRIAL_WHY_MAX])
{
    enum copies_trial trial = COPIES_TRIAL_AWAY;
    struct net *net = net_new(loop);
    struct copies_engine *engine = copies_engine_new(
        &(struct copies_engine_setup){
            .loop = loop, .net = net, .dns = dns, .tls = tls, .settings = &c->copies},
        why, COPIES_TRIAL_WHY_MAX);
    if (engine != NULL)
        trial = copies_trial_ask(loop, engine, why);
    copies_engine_free(&engine);
    net_free(&net);
    return trial;
}

enum copies_trial
copies_trial(struct configuration *c, char why[COPIES_TRIAL_WHY_MAX])
{
    why[0] = '\0';
    if (c->copies.place_count == 0)
        return COPIES_TRIAL_GOOD;
    bool is_early = c->anchors == NULL;
    if (is_early && !configuration_trust(c, NULL, why, COPIES_TRIAL_WHY_MAX))
        return COPIES_TRIAL_AWAY;
    enum copies_trial trial = COPIES_TRIAL_AWAY;
    struct loop *loop = loop_new();
    struct dns *dns =
        dns_new(loop, text_from(c->options.dns_servers), why, COPIES_TRIAL_WHY_MAX);
    if (dns != NULL)
        trial = copies_trial_connect(c, loop, dns, c->anchors, why);
    dns_free(&dns);
    if (is_early)
        tls_client_free(&c->anchors);
    loop_free(&loop);
    return trial;
}
