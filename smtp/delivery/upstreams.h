/* The smarthosts that mail is relayed by, and whether each takes it.
 *
 * Mail is the best proof: while it flows nobody is asked. Otherwise a canary (canary.h)
 * goes 30 s after startup and then every `canary_interval`; after a failure 1, 2, 5 and
 * then every 10 minutes, after a refused login at the times at which mail would log in
 * again. A change is an EVENT_UPSTREAM_FAILED, its reason the code of a finding
 * (upstream_down, login_refused, sender_refused), or EVENT_UPSTREAM_OK. */
#ifndef SMTP_DELIVERY_UPSTREAMS_H
#define SMTP_DELIVERY_UPSTREAMS_H

#include "sched/route/route.h"
#include "smtp/delivery/canary.h"

struct upstreams;

enum {
    UPSTREAMS_MAX = 16,           /* further ones are not watched */
    UPSTREAMS_ASK_MS = 10 * 1000, /* between canaries that operators ask for */
    UPSTREAMS_RELAY_MAX = TARGET_HOST_MAX + 8,
    UPSTREAMS_TEXT_MAX = 512
};

struct upstreams_setup {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    /* The settings of a canary to the target, until it ends. */
    void (*canary)(void *context, const struct target *target,
                   struct canary_settings *out);
    void *context;
};
struct upstreams *upstreams_new(const struct upstreams_setup *setup);
void upstreams_free(struct upstreams **upstreams);
/* At startup and reload, before the old table is freed. The state of a host stays.
 * hostname is copied. interval_ms 0: no canaries. */
void upstreams_use(struct upstreams *upstreams, const struct route_table *routes,
                   const char *hostname, int64_t interval_ms);

struct upstream_view {
    char relay[UPSTREAMS_RELAY_MAX]; /* "host:port" */
    const char *code;                /* of the finding; "": it works, or is not known */
    char text[UPSTREAMS_TEXT_MAX];   /* why it fails */
    bool is_up;                      /* or not known; refuses a sender at most */
    int64_t since_ms;                /* of the present state; 0: not known */
    int64_t good_ms;                 /* of the last success; 0: none since startup */
    int64_t next_ms;                 /* of the next canary; 0: none */
};
/* False behind the last. */
bool upstreams_at(const struct upstreams *upstreams, size_t index,
                  struct upstream_view *view);
/* A canary to each now, but for those that a login now may lock us out of, that have one
 * under way, or had one within UPSTREAMS_ASK_MS. How many. */
size_t upstreams_ask(struct upstreams *upstreams);
/* Copies a target whose hosts have all been down for longer than grace_ms. False: there
 * is none. */
bool upstreams_is_cut_off(const struct upstreams *upstreams, int64_t grace_ms,
                          struct upstream_view *view);

#endif
