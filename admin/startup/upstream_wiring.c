/* Connects the smarthosts with requests about them. */
#include "admin/startup/upstream_wiring.h"

#include "admin/control/listing.h"

#include <stdio.h>

/* A questions_on_part(). NULL: there are none. */
static json_t *
upstream_wiring_status(void *context)
{
    const struct upstream_wiring *w = context;
    struct upstream_view v;
    json_t *list = NULL;
    for (size_t i = 0; upstreams_at(w->upstreams, i, &v); i++) {
        list = list != NULL ? list : json_array();
        json_array_append_new(list, json_pack("{s:s,s:b,s:s,s:o,s:I,s:I,s:I}", "relay",
                                              v.relay, "up", v.is_up, "code", v.code,
                                              "text", listing_text(text_from(v.text)),
                                              "since_ms", (json_int_t)v.since_ms,
                                              "success_ms", (json_int_t)v.good_ms,
                                              "next_ms", (json_int_t)v.next_ms));
    }
    return list;
}

/* A questions_on(): canaries go now. The status has their results. */
static json_t *
upstream_wiring_ask(void *context, const json_t *request)
{
    const struct upstream_wiring *w = context;
    json_t *list = upstream_wiring_status(context);
    (void)request;
    size_t count = upstreams_ask(w->upstreams);
    return json_pack("{s:b,s:I,s:o}", "ok", true, "asked", (json_int_t)count,
                     "upstreams", list != NULL ? list : json_array());
}

bool
upstream_wiring_check(const struct upstream_wiring *w, struct health_check *check)
{
    struct upstream_view view;
    if (!w->is_condition)
        return false;
    *check = (struct health_check){
        .name = "upstream",
        .good = !upstreams_is_cut_off(w->upstreams, w->grace_ms, &view)};
    if (!check->good)
        snprintf(check->why, sizeof(check->why), "%.60s: %.90s", view.relay, view.text);
    return true;
}

void
upstream_wiring_reload(struct upstream_wiring *w, const struct configuration *c)
{
    const struct options *o = &c->options;
    w->is_condition = options_ready_needs_upstream(o);
    w->grace_ms = o->canary_grace_ms;
    upstreams_use(w->upstreams, c->routes, o->hostname, o->canary_interval_ms);
}

static void
upstream_wiring_canary(void *context, const struct target *target,
                       struct canary_settings *out)
{
    delivery_canary(context, target, out);
}

void
upstream_wiring_start(struct upstream_wiring *w, const struct configuration *c)
{
    w->upstreams =
        upstreams_new(&(struct upstreams_setup){.loop = w->loop,
                                                .log = w->log,
                                                .events = w->events,
                                                .canary = upstream_wiring_canary,
                                                .context = w->delivery});
    questions_on_part(w->questions, "upstreams", upstream_wiring_status, w);
    questions_on(w->questions, "canary", upstream_wiring_ask, w);
    upstream_wiring_reload(w, c);
}

void
upstream_wiring_stop(struct upstream_wiring *w)
{
    upstreams_free(&w->upstreams);
}
