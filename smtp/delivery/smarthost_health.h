/* The smarthosts that mail is relayed by, and whether each takes it.
 *
 * Mail is the best proof: while it flows nobody is asked. Otherwise a probe (smarthost_probe.h)
 * goes 30 s after startup and then every `canary_interval`; after a failure 1, 2, 5 and
 * then every 10 minutes, after a refused login at the times at which mail would log in
 * again. A change is an EVENT_UPSTREAM_FAILED, its reason the code of a finding
 * (upstream_down, login_refused, sender_refused), or EVENT_UPSTREAM_OK. */
#ifndef SMTP_DELIVERY_SMARTHOST_HEALTH_H
#define SMTP_DELIVERY_SMARTHOST_HEALTH_H

#include "sched/route/route.h"
#include "smtp/delivery/smarthost_probe.h"

struct smarthost_health;

enum {
    SMARTHOST_HEALTH_MAX = 16,           /* further ones are not watched */
    SMARTHOST_HEALTH_ASK_MS = 10 * 1000, /* between probes that operators ask for */
    SMARTHOST_HEALTH_RELAY_MAX = TARGET_HOST_MAX + 8,
    SMARTHOST_HEALTH_TEXT_MAX = 512
};

struct smarthost_health_setup {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    /* The settings of a probe of the target, until it ends. */
    void (*settings)(void *context, const struct target *target,
                     struct smarthost_probe_settings *out);
    void *context;
};
struct smarthost_health *
smarthost_health_new(const struct smarthost_health_setup *setup);
void smarthost_health_free(struct smarthost_health **health);
/* At startup and reload, before the old table is freed. The state of a host stays.
 * hostname is copied. interval_ms 0: no canaries. */
void smarthost_health_use(struct smarthost_health *health,
                          const struct route_table *routes, const char *hostname,
                          int64_t interval_ms);

struct smarthost_health_view {
    char relay[SMARTHOST_HEALTH_RELAY_MAX]; /* "host:port" */
    const char *code; /* of the finding; "": it works, or is not known */
    char text[SMARTHOST_HEALTH_TEXT_MAX]; /* why it fails */
    bool is_up;                           /* or not known; refuses a sender at most */
    int64_t since_ms;                     /* of the present state; 0: not known */
    int64_t good_ms; /* of the last success; 0: none since startup */
    int64_t next_ms; /* of the next probe; 0: none */
};
/* False behind the last. */
bool smarthost_health_at(const struct smarthost_health *health, size_t index,
                         struct smarthost_health_view *view);
/* Sends a probe to each now, but for those that a login now may lock us out of, that have one
 * under way, or had one within SMARTHOST_HEALTH_ASK_MS. How many. */
size_t smarthost_health_ask(struct smarthost_health *health);
/* Copies a target whose hosts have all been down for longer than grace_ms. False: there
 * is none. */
bool smarthost_health_is_cut_off(const struct smarthost_health *health,
                                 int64_t grace_ms, struct smarthost_health_view *view);

#endif
