/* The door for the hosts of a group: our description, and the modules that take mail, give
 * it, and answer questions. */
#include "admin/startup/parts.h"

#include "admin/view/listing.h"
#include "admin/control/sibling_ask.h"
#include "queue/queue_operator.h"
#include "queue/spool/spool_identity.h"

#include <assert.h>
#include <string.h>
#include <sysexits.h>

enum { REFUSED_MS = 60 * 1000, REFUSED_LINES = 10 };

/* --- Our description ------------------------------------------------------------------ */

static void
part_peer_hello(void *context, struct sibling_hello *out)
{
    const struct daemon *d = context;
    *out = (struct sibling_hello){.run_ms = d->peer.run_ms,
                                  .now_ms = loop_now_ms(d->loop),
                                  .heard_ms = loop_monotonic_ms(d->loop),
                                  .version = PETREL_VERSION};
    memcpy(out->host, d->started->group.host, sizeof(out->host));
    memcpy(out->group, d->started->group.name, sizeof(out->group));
    memcpy(out->spool, d->peer.spool, sizeof(out->spool));
    (void)!text_copy(out->state, sizeof(out->state), text_from(daemon_state(context)));
}

/* A host with wrong settings comes again all the time. */
static bool
part_peer_may_complain(struct daemon *d)
{
    int64_t now_ms = loop_monotonic_ms(d->loop);
    if (d->peer.refused == 0 || now_ms - d->peer.refused_ms >= REFUSED_MS) {
        d->peer.refused_ms = now_ms;
        d->peer.refused = 0;
    }
    return d->peer.refused < REFUSED_LINES && ++d->peer.refused > 0;
}

static bool
part_peer_greet(void *context, const struct sibling_hello *caller,
                struct outcome *refusal)
{
    struct daemon *d = context;
    const char *why = NULL;
    if (d->draining > 0)
        return outcome_refuse(refusal, 421, "4.3.2", "this host stops");
    if (strcmp(caller->group, d->started->group.name) != 0)
        why = "this is another group";
    else if (strcmp(caller->host, d->started->group.host) == 0)
        why =
            strcmp(caller->spool, d->peer.spool) == 0
                ? "that is this host itself"
                : "that is the name of this host: each host needs its own cluster_host";
    if (why == NULL)
        return true;
    if (part_peer_may_complain(d))
        log_say(d->log, LOG_LEVEL_WARNING, "peer", NULL,
                "%s of group %s is refused: %s", caller->host, caller->group, why);
    return outcome_refuse(refusal, 554, "5.7.1", why);
}

static void
part_peer_describe(void *context, struct group_self *self)
{
    const struct daemon *d = context;
    struct sched_counts counts = sched_count(manager_sched(d->manager));
    memcpy(self->address, d->peer.address, sizeof(self->address));
    memcpy(self->spool, d->peer.spool, sizeof(self->spool));
    (void)!text_copy(self->state, sizeof(self->state),
                     text_from(daemon_state(context)));
    self->waiting = (size_t)(counts.incoming + counts.active + counts.deferred);
}

/* --- Calls, each to the one whose it is ------------------------------------------------ */

static struct taking *
part_peer_take(void *context, const struct sibling_hello *from,
               const struct sibling_message *message, struct outcome *refusal)
{
    const struct daemon *d = context;
    return d->peer.gifts.take(d->peer.gifts.context, from, message, refusal);
}

static void
part_peer_take_ignore(void *context, void *taken_context)
{
    const struct daemon *d = context;
    d->peer.gifts.take_ignore(d->peer.gifts.context, taken_context);
}

static struct asking *
part_peer_ask(void *context, struct text line, const struct sibling_asker *asker)
{
    const struct daemon *d = context;
    return sibling_ask(control_server_service(d->control), line, asker);
}

static void
part_peer_connect(struct daemon *d)
{
    struct sibling_service *door = &d->peer.door;
    take_serve(d->peer.take, &d->peer.gifts);
    *door = d->peer.gifts;
    door->context = d;
    door->hello = part_peer_hello;
    door->greet = part_peer_greet;
    door->take = part_peer_take;
    door->take_ignore = part_peer_take_ignore;
    door->ask = part_peer_ask;
    door->ask_resume = sibling_ask_resume;
    door->ask_drop = sibling_ask_drop;
}

/* --- Where the others are -------------------------------------------------------------- */

struct finding {
    const char *host;
    const struct net_address *ip;
    char *out;
    bool found;
};

static bool
part_peer_match_host(void *context, const struct sibling *s)
{
    struct finding *f = context;
    if (strcmp(s->host, f->host) != 0)
        return true;
    snprintf(f->out, GROUP_ADDRESS_MAX + 1, "%s", s->address);
    f->found = true;
    return false;
}

static const char *
part_peer_address(void *context, const char *host)
{
    struct daemon *d = context;
    struct finding f = {.host = host, .out = d->peer.found};
    part_group_siblings(d, part_peer_match_host, &f);
    return f.found ? d->peer.found : NULL;
}

static bool
part_peer_match_ip(void *context, const struct sibling *s)
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
part_peer_is_sibling(void *context, const struct net_address *address)
{
    struct daemon *d = context;
    struct net_address plain = *address;
    struct finding f = {.ip = &plain};
    net_address_unmap(&plain);
    part_group_siblings(d, part_peer_match_ip, &f);
    return f.found;
}

/* --- Start, reload, stop --------------------------------------------------------------- */

/* cluster_address, or that of the first door that says where it is. */
static void
part_peer_find_address(struct daemon *d)
{
    struct net_listener_counts counts;
    struct net_address at;
    (void)!text_copy(d->peer.address, sizeof(d->peer.address),
                     text_from(d->started->group.address));
    for (size_t i = 0;
         d->peer.address[0] == '\0' && peer_door(d->peer.peer, i, &at, &counts); i++) {
        char text[NET_ADDRESS_TEXT_MAX];
        net_address_format(&at, text);
        if ((at.family == NET_IPV4 || at.family == NET_IPV6) &&
            !net_address_is_wildcard(&at))
            snprintf(d->peer.address, sizeof(d->peer.address), "%s", text);
    }
}

static void
part_peer_log(const struct daemon *d)
{
    struct net_listener_counts counts;
    struct net_address at;
    char text[NET_ADDRESS_TEXT_MAX];
    for (size_t i = 0; peer_door(d->peer.peer, i, &at, &counts); i++) {
        net_address_format(&at, text);
        log_say(d->log, LOG_LEVEL_INFO, "main", NULL,
                "listening on %s for hosts of the group %s", text,
                d->started->group.name);
    }
    if (peer_door(d->peer.peer, 0, &at, &counts) && d->peer.address[0] == '\0')
        log_say(d->log, LOG_LEVEL_WARNING, "peer", NULL,
                "other hosts cannot find this one: set cluster_address");
}

static bool
part_peer_is_wanted(const struct daemon *d)
{
    return d->group.group != NULL &&
           text_trim(configuration_peer(d->configuration).secret).length > 0;
}

int
part_identity_start(struct daemon *d)
{
    const uint64_t random[2] = {loop_random(d->loop), loop_random(d->loop)};
    static_assert((int)SPOOL_IDENTITY_DIGITS == (int)SIBLING_SPOOL_MAX, "one size");
    if (!part_peer_is_wanted(d) && d->configuration->copies.place_count == 0)
        return 0;
    int result =
        spool_identity(queue_disk(manager_queue(d->manager)), random, d->peer.spool);
    if (result != 0)
        snprintf(d->error, DAEMON_ERROR_MAX, "lock/identity of the spool: %s",
                 disk_explain(result));
    return result == 0 ? 0 : EX_CONFIG;
}

static json_t *
part_peer_status(void *context)
{
    const struct daemon *d = context;
    if (d->peer.peer == NULL)
        return NULL;
    struct peer_counts counts = peer_counts(d->peer.peer);
    return json_pack("{s:s,s:s,s:I,s:I,s:I,s:I}", "address", d->peer.address, "spool",
                     d->peer.spool, "accepted", (json_int_t)counts.accepted, "named",
                     (json_int_t)counts.named, "pushed_out",
                     (json_int_t)counts.pushed_out, "turned_away",
                     (json_int_t)counts.turned_away);
}

void
part_peer_take_mail(struct daemon *d)
{
    if (d->peer.take != NULL)
        return;
    d->peer.take = take_new(&(struct take_setup){
        .loop = d->loop,
        .events = d->events,
        .manager = d->manager,
        .message_size_limit = d->configuration->options.message_size_limit,
        .closed = daemon_leaves,
        .context = d});
}

static bool
part_peer_open(struct daemon *d)
{
    const struct peer_settings settings = configuration_peer(d->configuration);
    struct part_peer *p = &d->peer;
    p->run_ms = loop_now_ms(d->loop);
    part_peer_connect(d);
    p->peer = peer_new(&(struct peer_setup){.loop = d->loop,
                                            .net = d->net,
                                            .dns = d->dns,
                                            .log = d->log,
                                            .service = &p->door,
                                            .address = part_peer_address,
                                            .is_sibling = part_peer_is_sibling,
                                            .context = d},
                       &settings, d->error, DAEMON_ERROR_MAX);
    return p->peer != NULL;
}

int
part_peer_start(struct daemon *d)
{
    part_group_answer(d);
    part_copies_answer(d);
    questions_on_part(control_server_questions(d->control), "peer", part_peer_status,
                      d);
    if (!part_peer_is_wanted(d))
        return 0;
    part_peer_take_mail(d);
    if (!part_peer_open(d))
        return net_passed_is_missing(d->net) ? EX_CONFIG : EX_UNAVAILABLE;
    part_peer_find_address(d);
    part_peer_log(d);
    group_describe(d->group.group, part_peer_describe, d);
    d->peer.give = (struct give_setup){.loop = d->loop,
                                       .events = d->events,
                                       .manager = d->manager,
                                       .calls = peer_calls(d->peer.peer),
                                       .host = d->started->group.host,
                                       .siblings = part_group_siblings,
                                       .context = d};
    return 0;
}

/* Other secrets, other peers. */
void
part_peer_reload(struct daemon *d, struct configuration *fresh)
{
    const struct peer_settings settings = configuration_peer(fresh);
    if (d->peer.peer != NULL)
        peer_reload(d->peer.peer, &settings);
    if (d->peer.take != NULL)
        take_reload(d->peer.take, fresh->options.message_size_limit);
}

void
part_peer_stop(struct daemon *d)
{
    if (d->peer.peer != NULL)
        group_describe(d->group.group, NULL, NULL);
    peer_free(&d->peer.peer);
    take_free(&d->peer.take);
}
