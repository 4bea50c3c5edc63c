/* link: t/sim/dns.c */
/* The calling side of the peer door over loopback: hosts with several addresses. */
#include "smtp/peer/peer_internal.h"

#include "base/dns/dns.h"
#include "base/log/log.h"
#include "t/sim/sim_dns.h"
#include "t/support/net_world.h"
#include "t/support/peer_service.h"

#define SECRET "0123456789abcdef0123456789abcdef"

/* Two doors at one port of two addresses, and who calls. */
struct town {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct log *log;
    struct buffer said, told;
    struct service_world worlds[3];
    struct peer *caller, *doors[2];
    char name[100]; /* of both doors */
};

static void
town_log(void *context, struct text line)
{
    (void)!buffer_add(&((struct town *)context)->said, line);
}

static const char *
town_address(void *context, const char *host)
{
    (void)host;
    return ((struct town *)context)->name;
}

static struct peer *
town_peer(struct town *t, int which, const char *host, const char *at)
{
    const struct net_address listen = address(at != NULL ? at : "127.0.0.1:0");
    struct peer_settings settings = {.listen = &listen, .listen_count = at != NULL, .secret = TEXT(SECRET), .group = "mail", .message_size_limit = 1 << 20};
    char error[512] = "";

    service_start(&t->worlds[which], host);
    t->worlds[which].is_prompt = true;
    struct peer *peer = peer_new(&(struct peer_setup){.loop = t->loop, .net = t->net, .dns = t->dns, .log = t->log, .service = &t->worlds[which].service, .address = town_address, .context = t}, &settings, error, sizeof(error));
    is_string(error, "", "a peer");
    return peer;
}

static void
town_start(struct town *t)
{
    struct net_address at;
    struct net_listener_counts counts;
    char second[NET_ADDRESS_TEXT_MAX], error[512];

    memset(t, 0, sizeof(*t));
    t->loop = loop_new();
    t->net = net_new(t->loop);
    t->dns = dns_new(t->loop, TEXT(""), error, sizeof(error));
    buffer_init(&t->said, 1 << 20);
    buffer_init(&t->told, 1 << 20);
    t->log = log_new_apart(t->loop, town_log, t);
    t->caller = town_peer(t, 0, "relay1", NULL);
    t->doors[0] = town_peer(t, 1, "relay2", "127.0.0.1:0");
    ok(peer_door(t->doors[0], 0, &at, &counts));
    snprintf(second, sizeof(second), "127.0.0.2:%u", at.port);
    t->doors[1] = town_peer(t, 2, "relay3", second);
    snprintf(t->name, sizeof(t->name), "hosts.test:%u", at.port);
    sim_dns_address(t->dns, "hosts.test", "127.0.0.1");
    sim_dns_address(t->dns, "hosts.test", "127.0.0.2");
}

static void
town_finish(struct town *t)
{
    peer_free(&t->caller);
    for (int i = 0; i < 2; i++)
        peer_free(&t->doors[i]);
    for (int i = 0; i < 3; i++)
        service_finish(&t->worlds[i]);
    dns_free(&t->dns);
    net_free(&t->net);
    log_free(&t->log);
    loop_free(&t->loop);
    buffer_free(&t->said);
    buffer_free(&t->told);
}

static int64_t
town_read(void *context, int64_t offset, char *to, size_t size)
{
    (void)context;
    (void)offset;
    memset(to, 'c', size);
    return (int64_t)size;
}

static void
town_given(void *context, enum sibling_answer answer, struct id there, const struct outcome *outcome)
{
    (void)there;
    (void)!buffer_format(&((struct town *)context)->told, "%s\n", answer == SIBLING_TAKEN ? "taken" : outcome->text);
}

static void
town_give(struct town *t, const char *to)
{
    const struct sibling_calls *calls = peer_calls(t->caller);
    const struct sibling_gift gift = {.message = {.id = {1000, 5}, .sections = 8, .content = 10}, .sections = TEXT("SECTIONS"), .read = town_read, .context = t, .given = town_given};

    buffer_clear(&t->told);
    calls->give(calls->context, to, &gift);
    until(t, t->told.length > 0);
}

/* A name may lead to several hosts: the one that is meant is found, whichever comes first. */
static void
test_one_name(void)
{
    struct town t;

    town_start(&t);
    town_give(&t, "relay2");
    is_text(buffer_text(&t.told), TEXT("taken\n"), "the host at the first address");
    is_number(peer_counts(t.doors[0]).accepted + peer_counts(t.doors[1]).accepted, 1, "is the first that is called");
    town_give(&t, "relay3");
    is_text(buffer_text(&t.told), TEXT("taken\n"), "that at the second one");
    is_number(t.worlds[1].ids, 1, "no other host has its message");
    is_number(peer_counts(t.doors[1]).named, 1, "is called when the first was another");
    ok_named(t.said.length == 0 || memmem(t.said.at, t.said.length, "warning", 7) == NULL, "nothing to complain of");
    town_give(&t, "relay4");
    is_text(buffer_text(&t.told), TEXT("relay4: another host is there, relay3\n"), "one that is at none of them");
    town_finish(&t);
}

int
main(void)
{
    signal(SIGPIPE, SIG_IGN);
    test_one_name();
    return done();
}
