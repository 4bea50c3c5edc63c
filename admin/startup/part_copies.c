/* Copies of mail in Redis, and their status. */
#include "admin/startup/parts.h"

#include "queue/copies/copies_keeper.h"

#include <string.h>
#include <sysexits.h>

enum {
    PART_BEHIND_MIN = 100 /* fewer are copied within a second, and are no finding */
};

int
part_copies_start(struct daemon *d)
{
    const struct configuration *c = d->configuration;
    if (c->copies.place_count == 0)
        return 0;
    d->copies.settings = c->copies;
    d->copies.anchors = tls_client_keep(c->anchors);
    d->copies.engine = copies_engine_new(
        &(struct copies_engine_setup){.loop = d->loop,
                                      .net = d->net,
                                      .dns = d->dns,
                                      .tls = d->copies.anchors,
                                      .settings = &d->copies.settings},
        d->error, DAEMON_ERROR_MAX);
    if (d->copies.engine == NULL)
        return EX_CONFIG;
    adoption_write_who(d->copies.settings.host, loop_random(d->loop), d->copies.who);
    d->copies.keeper = copies_keeper_new(
        &(struct copies_keeper_setup){.loop = d->loop,
                                      .log = d->log,
                                      .queue = manager_queue(d->manager),
                                      .manager = d->manager,
                                      .engine = d->copies.engine,
                                      .settings = &d->copies.settings,
                                      .identity = d->peer.spool,
                                      .who = d->copies.who,
                                      .fenced = part_adoption_on_fenced,
                                      .context = d});
    return 0;
}

json_t *
part_copies_status(void *context)
{
    const struct daemon *d = context;
    char server[REDIS_URL_MAX];
    if (d->copies.keeper == NULL)
        return NULL;
    struct copies_state s = copies_keeper_state(d->copies.keeper);
    struct adoption_state a = {.why = "", .host = ""};
    if (d->copies.adoption != NULL)
        a = adoption_state(d->copies.adoption);
    redis_place_text(copies_engine_server(d->copies.engine), server);
    return json_pack(
        "{s:s,s:b,s:s,s:I,s:I,s:I,s:I,s:I,s:s,s:b,s:b,s:I,s:I,s:I,s:I}", "server",
        server, "ready", s.is_ready, "why", s.why, "behind", (json_int_t)s.behind,
        "stored", (json_int_t)s.stored, "removed", (json_int_t)s.removed, "refused",
        (json_int_t)s.refused, "losses", (json_int_t)s.losses, "adopting", a.host,
        "comparing", a.is_comparing, "namesake", a.has_namesake, "adopted",
        (json_int_t)a.adopted, "recalled", (json_int_t)a.recalled, "given_up",
        (json_int_t)a.given_up, "unreadable", (json_int_t)a.unreadable);
}

void
part_copies_answer(struct daemon *d)
{
    questions_on_part(control_server_questions(d->control), "copies",
                      part_copies_status, d);
}

void
part_copies_find(const struct daemon *d, struct finding_facts *facts)
{
    if (d->copies.keeper == NULL)
        return;
    struct copies_state s = copies_keeper_state(d->copies.keeper);
    if (s.is_away)
        facts->copies_away = s.why;
    facts->copies_required = d->copies.settings.required;
    facts->copies_behind = s.behind >= PART_BEHIND_MIN ? s.behind : 0;
    facts->copies_losses = s.losses;
    if (d->copies.adoption != NULL) {
        struct adoption_state a = adoption_state(d->copies.adoption);
        facts->copies_namesake = a.has_namesake;
        facts->copies_unreadable = a.unreadable;
        facts->copies_unreadable_at = a.unreadable_at;
    }
}

void
part_copies_stop(struct daemon *d)
{
    copies_keeper_free(&d->copies.keeper);
    copies_engine_free(&d->copies.engine);
    tls_client_free(&d->copies.anchors);
    copies_settings_forget(&d->copies.settings);
}
