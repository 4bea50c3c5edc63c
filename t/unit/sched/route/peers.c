/* The hosts that share sets with us: the accepted forms, and the hosts found by
 * them. */
#include "sched/route/peers.h"

#include "t/support/tap.h"

static struct buffer mistakes;

static struct peers *
peers_of(const char *host, const char *list)
{
    struct transport_params base;
    transport_params_default(&base);
    struct peers_settings settings = {.host = text_from(host),
                                      .list = text_from(list),
                                      .smtp_port = 2525,
                                      .base = &base};
    buffer_free(&mistakes);
    buffer_init(&mistakes, 65536);
    return peers_new(&settings, &mistakes);
}

static struct net_address
address(const char *written)
{
    struct net_address a;
    if (!net_address_parse(text_from(written), 0, &a))
        abort();
    return a;
}

static bool
has(const struct peers *peers, const char *written)
{
    struct net_address a = address(written);
    return peers_have(peers, &a);
}

TEST(good)
{
    struct peers *p = peers_of("Mx1.Example.org=10.0.0.1:25",
                               "mx1.example.org=10.0.0.9, mx2=10.0.0.2,\n"
                               " mx3=[fd00::3]:26 MX4=smtp://10.0.0.4:27?tls=encrypt");
    ok(p != NULL);
    is_string(peers_own_name(p), "mx1.example.org", "names are in lower case");
    char shown[NET_ADDRESS_TEXT_MAX];
    net_address_ip(peers_own_address(p), shown);
    is_string(shown, "10.0.0.1", "our own address stands at our name");
    is_number(peers_own_address(p)->port, 0, "any port");
    ok_named(peers_find(p, TEXT("mx1.example.org")) == NULL, "we are no peer of ours");
    const struct target *t = peers_find(p, TEXT("Mx2"));
    ok(t != NULL && t->kind == TARGET_SMTP);
    is_string(t->host, "10.0.0.2", "one address");
    is_string(target_peer(t), "mx2", "and his name");
    is_number(t->port, 25, "his port");
    is_number(peers_find(p, TEXT("mx3"))->port, 26, "his port");
    is_string(peers_find(p, TEXT("mx3"))->host, "fd00::3", "IPv6");
    ok(peers_find(p, TEXT("mx4"))->tls == TARGET_TLS_ENCRYPT);
    ok(peers_find(p, TEXT("mx5")) == NULL && peers_find(p, TEXT("")) == NULL);
    ok_named(has(p, "10.0.0.2:40000"), "he is known, whatever his port");
    ok(has(p, "[fd00::3]:1"));
    ok_named(!has(p, "10.0.0.9:25"), "our own entry makes no peer");
    ok(!has(p, "10.0.0.1:25") && !has(p, "10.0.0.20:25") && !has(p, "[fd00::4]:1"));
    peers_free(&p);
    ok(p == NULL);
}

TEST(own_address)
{
    char shown[NET_ADDRESS_TEXT_MAX];
    struct peers *p = peers_of("a", "a=10.0.0.1 b=10.0.0.2");
    net_address_ip(peers_own_address(p), shown);
    is_string(shown, "10.0.0.1", "our address may stand in the list that all have");
    peers_free(&p);
    p = peers_of("a", "b=10.0.0.2");
    ok_named(peers_own_address(p) == NULL, "or nowhere");
    peers_free(&p);
    p = peers_of("a", "");
    ok_named(p != NULL && !has(p, "127.0.0.1:1"), "nobody at all");
    peers_free(&p);
}

static void
refuses(const char *host, const char *list, const char *line)
{
    struct peers *p = peers_of(host, list);
    ok_named(p == NULL, list);
    is_text(buffer_text(&mistakes), text_from(line), "one line");
    peers_free(&p);
}

#define ONE_ADDRESS                                                                    \
    "a peer needs one IP address: write NAME=ADDRESS:PORT, or "                  \
    "NAME=smtp://ADDRESS:PORT?OPTIONS\n"

#define NAME_MADE_OF "a host name has only letters, digits, '-', '_' and '.'\n"
#define TAKEN        "another host has the same address and port\n"

TEST(bad)
{
    refuses("a b", "", "defrag_host: 'a b': " NAME_MADE_OF);
    refuses("[10.0.0.1]", "", "defrag_host: '[10.0.0.1]': " NAME_MADE_OF);
    refuses("a b=10.0.0.1", "",
            "defrag_host: 'a b=10.0.0.1': a host name must precede '='\n");
    refuses("a=b.example", "",
            "defrag_host: 'a=b.example': '=' must be followed by the local IP address of "
            "connections to the others\n");
    refuses("a", "10.0.0.2:25=b",
            "defrag_peers: '10.0.0.2:25=b': a host name must precede '='\n");
    refuses("a", "b", "defrag_peers: 'b': write NAME=ADDRESS:PORT\n");
    refuses("a", "b=mx.example", "defrag_peers: 'b=mx.example': " ONE_ADDRESS);
    refuses("a", "b=mx", "defrag_peers: 'b=mx': " ONE_ADDRESS);
    refuses("a", "b=lmtp://10.0.0.2",
            "defrag_peers: 'b=lmtp://10.0.0.2': " ONE_ADDRESS);
    refuses("a", "b=smtp://u@10.0.0.2",
            "defrag_peers: 'b=smtp://u@10.0.0.2': " ONE_ADDRESS);
    refuses("a", "b=smtp://10.0.0.2|10.0.0.3",
            "defrag_peers: 'b=smtp://10.0.0.2|10.0.0.3': " ONE_ADDRESS);
    refuses("a", "b=10.0.0.2 B=10.0.0.3",
            "defrag_peers: 'B=10.0.0.3': duplicate name\n");
    refuses("a", "b=10.0.0.2 c=10.0.0.2", "defrag_peers: 'c=10.0.0.2': " TAKEN);
    refuses("a", "a=10.0.0.2:26 c=10.0.0.2:26",
            "defrag_peers: 'c=10.0.0.2:26': " TAKEN);
    refuses("a", "c=smtp://10.0.0.2:26 a=10.0.0.2:26",
            "defrag_peers: 'a=10.0.0.2:26': " TAKEN);
    struct peers *p = peers_of("a=10.0.0.2", "a=10.0.0.2:26 b=10.0.0.2:27");
    ok_named(p != NULL, "hosts at one address have ports of their own");
    peers_free(&p);
    p = peers_of("a", "b=smtp://10.0.0.2?nonsense=1, c=");
    ok_named(p == NULL, "every mistake has its line");
    size_t lines = 0;
    for (size_t i = 0; i < mistakes.length; i++)
        lines += mistakes.at[i] == '\n';
    is_number(lines, 2, "so many");
}

TEST(many)
{
    FIXTURE(buffer, list, buffer_init, buffer_free, 65536);
    for (int i = 0; i <= PEERS_MAX; i++)
        if (!buffer_format(&list, "h%d=10.0.%d.%d ", i, i / 256, i % 256))
            abort();
    if (!buffer_add_byte(&list, '\0'))
        abort();
    refuses("a", list.at, "defrag_peers: 'h256=10.0.1.0': too many hosts (at most 256)\n");
}

/* --- In the table of routes ------------------------------------------------------- */

static void
count_peers(void *context, const struct target *target)
{
    unsigned *count = context;
    *count += target_peer(target) != NULL;
}

TEST(table)
{
    struct route_settings settings = {.defrag_host = TEXT("a"),
                                      .defrag_peers =
                                          TEXT("b=10.0.0.2 c=10.0.0.3:26?tls=verify")};
    char key[ROUTE_KEY_MAX];
    unsigned count = 0;
    FIXTURE(buffer, wrong, buffer_init, buffer_free, 65536);
    settings.smtp_port = 25;
    transport_params_default(&settings.base);
    struct route_table *table = route_new(&settings, &wrong);
    const struct target *b = peers_find(route_peers(table), TEXT("b"));
    const struct target *c = peers_find(route_peers(table), TEXT("c"));
    route_key(b, TEXT("example.org"), key);
    is_string(key, "defrag:b:[10.0.0.2]:25", "a queue of its own");
    route_key(c, TEXT("example.org"), key);
    is_string(key, "defrag:c:[10.0.0.3]:26?tls=verify", "with its demands");
    route_each_target(table, count_peers, &count);
    is_number(count, 2, "so many");
    ok(route_demands_verify(table));
    struct target kept;
    memcpy(&kept, b, sizeof(kept));
    ok_named(route_leads_to(table, &kept), "the table leads to its peers");
    settings.defrag_peers = TEXT("b=10.0.0.4");
    struct route_table *fresh = route_new(&settings, &wrong);
    ok_named(!route_leads_to(fresh, &kept), "until they have moved");
    ok(!route_demands_verify(fresh));
    route_free(&fresh);
    settings.defrag_peers = TEXT("b");
    ok(route_new(&settings, &wrong) == NULL);
    settings.defrag_host = TEXT("");
    fresh = route_new(&settings, &wrong);
    ok_named(route_peers(fresh) == NULL, "without a name of ours nobody is");
    route_free(&fresh);
    route_free(&table);
}

int
main(void)
{
    tap_tests("");
    buffer_free(&mistakes);
    return done();
}
