/* The peer door and its neighbours. */
#include "admin/startup/peer_wiring.h"

#include "admin/control/listing.h"
#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "queue/manager/manager.h"
#include "queue/queue_operator.h"
#include "queue/spool/spool_identity.h"
#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

enum { REFUSED_MS = 60 * 1000, REFUSED_LINES = 10 };

/* --- Our description ------------------------------------------------------------------ */

static void
peer_wiring_hello(void *context, struct sibling_hello *out)
{
    const struct peer_wiring *w = context;
    *out = (struct sibling_hello){.run_ms = w->run_ms,
                                  .now_ms = loop_now_ms(w->loop),
                                  .heard_ms = loop_monotonic_ms(w->loop),
                                  .version = PETREL_VERSION};
    memcpy(out->host, w->host, sizeof(out->host));
    memcpy(out->group, w->group_name, sizeof(out->group));
    memcpy(out->spool, w->spool, sizeof(out->spool));
    (void)!text_copy(out->state, sizeof(out->state), text_from(w->state(w->context)));
}

/* A host with wrong settings comes again all the time. */
static bool
peer_wiring_may_complain(struct peer_wiring *w)
{
    int64_t now_ms = loop_monotonic_ms(w->loop);
    if (w->refused == 0 || now_ms - w->refused_ms >= REFUSED_MS) {
        w->refused_ms = now_ms;
        w->refused = 0;
    }
    return w->refused < REFUSED_LINES && ++w->refused > 0;
}

static bool
peer_wiring_greet(void *context, const struct sibling_hello *caller,
                  struct outcome *refusal)
{
    struct peer_wiring *w = context;
    const char *why = NULL;
    if (w->is_closed(w->context))
        return outcome_refuse(refusal, 421, "4.3.2", "this host stops");
    if (strcmp(caller->group, w->group_name) != 0)
        why = "this is another group";
    else if (strcmp(caller->host, w->host) == 0)
        why =
            strcmp(caller->spool, w->spool) == 0
                ? "that is this host itself"
                : "that is the name of this host: each host needs its own cluster_host";
    if (why == NULL)
        return true;
    if (peer_wiring_may_complain(w))
        log_say(w->log, LOG_LEVEL_WARNING, "peer", NULL,
                "%s of group %s is refused: %s", caller->host, caller->group, why);
    return outcome_refuse(refusal, 554, "5.7.1", why);
}

static void
peer_wiring_describe(void *context, struct group_self *self)
{
    const struct peer_wiring *w = context;
    struct sched_counts counts = sched_count(manager_sched(w->manager));
    memcpy(self->address, w->address, sizeof(self->address));
    memcpy(self->spool, w->spool, sizeof(self->spool));
    (void)!text_copy(self->state, sizeof(self->state), text_from(w->state(w->context)));
    self->waiting = (size_t)(counts.incoming + counts.active + counts.deferred);
}

/* --- Calls, each to the one whose it is ------------------------------------------------ */

static struct taking *
peer_wiring_take(void *context, const struct sibling_hello *from,
                 const struct sibling_message *message, struct outcome *refusal)
{
    const struct peer_wiring *w = context;
    return w->take.take(w->take.context, from, message, refusal);
}

static void
peer_wiring_take_ignore(void *context, void *taken_context)
{
    const struct peer_wiring *w = context;
    w->take.take_ignore(w->take.context, taken_context);
}

static struct asking *
peer_wiring_ask(void *context, struct text line, const struct sibling_asker *asker)
{
    const struct peer_wiring *w = context;
    return w->ask.ask(w->ask.context, line, asker);
}

static void
peer_wiring_connect(struct peer_wiring *w)
{
    w->door = (struct sibling_service){
        .context = w, .hello = peer_wiring_hello, .greet = peer_wiring_greet};
    if (w->take.take != NULL) {
        w->door.take = peer_wiring_take;
        w->door.take_bytes = w->take.take_bytes;
        w->door.take_end = w->take.take_end;
        w->door.take_drop = w->take.take_drop;
        w->door.take_ignore = peer_wiring_take_ignore;
    }
    if (w->ask.ask != NULL) {
        w->door.ask = peer_wiring_ask;
        w->door.ask_resume = w->ask.ask_resume;
        w->door.ask_drop = w->ask.ask_drop;
    }
}

/* --- Where the others are -------------------------------------------------------------- */

struct finding {
    const char *host;
    const struct net_address *ip;
    char *out;
    bool found;
};

static bool
peer_wiring_match_host(void *context, const struct sibling *s)
{
    struct finding *f = context;
    if (strcmp(s->host, f->host) != 0)
        return true;
    snprintf(f->out, GROUP_ADDRESS_MAX + 1, "%s", s->address);
    f->found = true;
    return false;
}

static const char *
peer_wiring_address(void *context, const char *host)
{
    struct peer_wiring *w = context;
    struct finding f = {.host = host, .out = w->found};
    if (*w->group != NULL)
        group_siblings(*w->group, peer_wiring_match_host, &f);
    return f.found ? w->found : NULL;
}

static bool
peer_wiring_match_ip(void *context, const struct sibling *s)
{
    struct finding *f = context;
    struct net_address at;
    if (!net_address_parse(text_from(s->address), 0, &at))
        return true;
    at.port = f->ip->port;
    f->found = net_address_equal(&at, f->ip);
    return !f->found;
}

static bool
peer_wiring_is_sibling(void *context, const struct net_address *address)
{
    struct peer_wiring *w = context;
    struct net_address plain = *address;
    struct finding f = {.ip = &plain};
    net_address_unmap(&plain);
    if (*w->group != NULL)
        group_siblings(*w->group, peer_wiring_match_ip, &f);
    return f.found;
}

/* --- Start, reload, stop --------------------------------------------------------------- */

/* cluster_address, or that of the first door that says where it is. */
static void
peer_wiring_find_address(struct peer_wiring *w)
{
    struct net_listener_counts counts;
    struct net_address at;
    memcpy(w->address, w->configured, sizeof(w->address));
    for (size_t i = 0; w->address[0] == '\0' && peer_door(w->peer, i, &at, &counts);
         i++) {
        char text[NET_ADDRESS_TEXT_MAX];
        net_address_format(&at, text);
        if ((at.family == NET_IPV4 || at.family == NET_IPV6) &&
            !net_address_is_wildcard(&at))
            snprintf(w->address, sizeof(w->address), "%s", text);
    }
}

static void
peer_wiring_log(const struct peer_wiring *w)
{
    struct net_listener_counts counts;
    struct net_address at;
    char text[NET_ADDRESS_TEXT_MAX];
    for (size_t i = 0; peer_door(w->peer, i, &at, &counts); i++) {
        net_address_format(&at, text);
        log_say(w->log, LOG_LEVEL_INFO, "main", NULL,
                "listening on %s for hosts of the group %s", text, w->group_name);
    }
    if (peer_door(w->peer, 0, &at, &counts) && w->address[0] == '\0')
        log_say(w->log, LOG_LEVEL_WARNING, "peer", NULL,
                "other hosts cannot find this one: set cluster_address");
}

static bool
peer_wiring_identify(struct peer_wiring *w, char *error, size_t size)
{
    struct disk *spool = queue_disk(manager_queue(w->manager));
    const uint64_t random[2] = {loop_random(w->loop), loop_random(w->loop)};
    static_assert((int)SPOOL_IDENTITY_DIGITS == (int)SIBLING_SPOOL_MAX, "one size");
    int result = spool_identity(spool, random, w->spool);
    if (result != 0)
        snprintf(error, size, "lock/identity of the spool: %s", disk_explain(result));
    return result == 0;
}

static bool
peer_wiring_is_wanted(const struct peer_wiring *w, const struct peer_settings *settings)
{
    return *w->group != NULL && text_trim(settings->secret).length > 0;
}

bool
peer_wiring_prepare(struct peer_wiring *w, const struct configuration *c, char *error,
                    size_t size)
{
    const struct peer_settings settings = configuration_peer(c);
    return !peer_wiring_is_wanted(w, &settings) || peer_wiring_identify(w, error, size);
}

bool
peer_wiring_start(struct peer_wiring *w, const struct configuration *c, char *error,
                  size_t size)
{
    const struct peer_settings settings = configuration_peer(c);
    if (!peer_wiring_is_wanted(w, &settings))
        return true;
    w->run_ms = loop_now_ms(w->loop);
    memcpy(w->group_name, c->group.name, sizeof(w->group_name));
    memcpy(w->host, c->group.host, sizeof(w->host));
    memcpy(w->configured, c->group.address, sizeof(w->configured));
    peer_wiring_connect(w);
    w->peer = peer_new(&(struct peer_setup){.loop = w->loop,
                                            .net = w->net,
                                            .dns = w->dns,
                                            .log = w->log,
                                            .service = &w->door,
                                            .address = peer_wiring_address,
                                            .is_sibling = peer_wiring_is_sibling,
                                            .context = w},
                       &settings, error, size);
    if (w->peer == NULL)
        return false;
    peer_wiring_find_address(w);
    peer_wiring_log(w);
    group_describe(*w->group, peer_wiring_describe, w);
    return true;
}

bool
peer_wiring_door(const struct peer_wiring *w, size_t index, struct net_address *address,
                 struct net_listener_counts *counts)
{
    return w->peer != NULL && peer_door(w->peer, index, address, counts);
}

void
peer_wiring_reload(struct peer_wiring *w, const struct configuration *c)
{
    const struct peer_settings settings = configuration_peer(c);
    if (w->peer != NULL)
        peer_reload(w->peer, &settings);
}

static json_t *
peer_wiring_status(void *context)
{
    const struct peer_wiring *w = context;
    if (w->peer == NULL)
        return NULL;
    struct peer_counts counts = peer_counts(w->peer);
    return json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "address", w->address, "spool",
                     w->spool, "accepted", (json_int_t)counts.accepted, "named",
                     (json_int_t)counts.named, "pushed_out",
                     (json_int_t)counts.pushed_out, "turned_away",
                     (json_int_t)counts.turned_away);
}

void
peer_wiring_answer(struct peer_wiring *w, struct questions *questions)
{
    questions_on_part(questions, "peer", peer_wiring_status, w);
}

const struct sibling_calls *
peer_wiring_calls(const struct peer_wiring *w)
{
    return w->peer != NULL ? peer_calls(w->peer) : NULL;
}

void
peer_wiring_stop(struct peer_wiring *w)
{
    if (w->peer != NULL && *w->group != NULL)
        group_describe(*w->group, NULL, NULL);
    peer_free(&w->peer);
}
