/* One part of the settings in each turn. */
#include "admin/startup/reload.h"

static void
reload_go_on(void *context)
{
    struct reload *r = context;
    if (configuration_go_on(r->fresh))
        r->done(r->context);
    else
        loop_post(r->loop, &r->task, reload_go_on, r);
}

void
reload_begin(struct reload *r, const struct options_sources *sources)
{
    reload_stop(r);
    r->fresh = configuration_begin(sources);
    reload_go_on(r);
}

void
reload_stop(struct reload *r)
{
    if (r->fresh == NULL)
        return;
    loop_unpost(r->loop, &r->task);
    configuration_free(&r->fresh);
}
