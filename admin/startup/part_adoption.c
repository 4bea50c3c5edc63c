/* Copies of hosts that are lost: taken by themselves, or by an operator's order. */
#include "admin/startup/parts.h"

#include <string.h>

void
part_adoption_on_fenced(void *context, const char *owner)
{
    const struct daemon *d = context;
    if (d->copies.adoption != NULL)
        adoption_fenced(d->copies.adoption, owner);
}

/* A group without Redis hears nobody. */
static bool
part_adoption_is_heard(void *context, const char *host)
{
    const struct daemon *d = context;
    if (d->group.group == NULL || d->group.redis == NULL)
        return false;
    const struct group_members *members = group_state(d->group.group).members;
    for (size_t i = 0; i < members->count; i++)
        if (strcmp(members->all[i].name, host) == 0)
            return !members->all[i].is_lost;
    return false;
}

static json_t *
answer_cluster_adopt(void *context, const json_t *request)
{
    const struct daemon *d = context;
    const char *host = json_string_value(json_object_get(request, "host"));
    char why[ADOPTION_WHY_MAX];
    if (d->copies.adoption == NULL)
        return questions_refuse("this host keeps no copies: copies is not set");
    if (host == NULL || !adoption_order(d->copies.adoption, text_from(host), why))
        return questions_refuse(host == NULL ? "no host is named" : why);
    return json_pack("{s:b}", "ok", true);
}

int
part_adoption_start(struct daemon *d)
{
    questions_on(control_server_questions(d->control), "cluster-adopt",
                 answer_cluster_adopt, d);
    if (d->copies.keeper == NULL)
        return 0;
    part_peer_take_mail(d);
    d->copies.adoption =
        adoption_new(&(struct adoption_setup){.loop = d->loop,
                                              .log = d->log,
                                              .events = d->events,
                                              .manager = d->manager,
                                              .take = d->peer.take,
                                              .engine = d->copies.engine,
                                              .keeper = d->copies.keeper,
                                              .settings = &d->copies.settings,
                                              .identity = d->peer.spool,
                                              .who = d->copies.who,
                                              .is_heard = part_adoption_is_heard,
                                              .closed = daemon_leaves,
                                              .context = d});
    return 0;
}

void
part_adoption_reload(struct daemon *d, struct configuration *fresh)
{
    if (d->copies.adoption != NULL)
        adoption_reload(d->copies.adoption, fresh->copies.adopt_after_ms);
}

void
part_adoption_stop(struct daemon *d)
{
    adoption_free(&d->copies.adoption);
}
