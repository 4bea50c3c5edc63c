/* Detects another live process with our name. This is an error of configuration: sets
 * of both hosts would never become complete, and no log line would say so.
 *
 * Each run of a host has a number of chance, its instance, which it keeps in the
 * registry under its name for NAME_TTL_MS, and refreshes. Who finds another's there
 * cannot know yet whether that is alive: it may be what he left behind himself when he
 * was killed. Only what is refreshed after we have seen it is a namesake. */
#include "base/text.h"
#include "defrag/registry/registry_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void
registry_name_ours(struct registry_name *n)
{
    *n->other = '\0';
}

static void
registry_name_warn(struct registry *r)
{
    char place[REGISTRY_SETTING_MAX];
    registry_place_text(&r->place, place);
    log_say(
        r->setup.log, LOG_LEVEL_WARNING, "defrag", NULL,
        "another process in the registry %s has the name %s: each host needs its own "
        "defrag_host, or messages are not reassembled",
        place, r->setup.host);
}

void
registry_name_other(struct registry *r, struct text instance, int64_t born_ms)
{
    struct registry_name *n = &r->name;
    int64_t now_ms = loop_monotonic_ms(r->setup.loop);
    if (!text_equal(instance, text_from(n->other))) {
        if (!text_copy(n->other, sizeof(n->other), instance))
            *n->other = '\0'; /* no instance has a number that long */
        n->seen_ms = now_ms;
        n->born_ms = born_ms;
        n->is_told = false;
    }
    bool is_alive = born_ms == 0 ? now_ms - n->seen_ms > NAME_TTL_MS + NAME_SLACK_MS
                                 : born_ms != n->born_ms;
    if (!is_alive || n->is_told || *n->other == '\0')
        return;
    n->is_told = true;
    r->counts.namesakes++;
    registry_name_warn(r);
}

static void
on_look(void *context)
{
    struct registry *r = context;
    loop_timer_start(r->setup.loop, &r->name.look, NAME_LOOK_MS, on_look, r);
    if (breaker_is_open(&r->breaker))
        return; /* at the next time */
    if (r->dir != NULL)
        registry_dir_look(r->dir);
    else
        registry_redis_look(r->redis);
}

void
registry_name_start(struct registry *r)
{
    snprintf(r->name.instance, sizeof(r->name.instance), "%016" PRIx64,
             loop_random(r->setup.loop));
    loop_timer_start(r->setup.loop, &r->name.look, 0, on_look, r);
}

void
registry_name_stop(struct registry *r)
{
    loop_timer_stop(r->setup.loop, &r->name.look);
}
