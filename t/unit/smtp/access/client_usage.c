/* Usage of clients: counts, rates, and clients that are forgotten. */
#include "smtp/access/tables_internal.h"
#include "smtp/access/client_usage.h"

#include "t/support/tap.h"

struct space {
    struct client_usage *clients;
    struct client_usage_rules rules;
    struct outcome refusal;
    int64_t now_ms;
};

static void
open_room(struct space *r, const struct client_usage_settings *settings)
{
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, 4096);
    memset(r, 0, sizeof(*r));
    r->clients = client_usage_new();
    r->now_ms = 1000000;
    ok(client_usage_read(&r->rules, settings, &mistakes) && mistakes.length == 0);
}

static void
close_room(struct space *r)
{
    client_usage_free(&r->clients);
    client_usage_rules_free(&r->rules);
}

static struct net_address
at(const char *ip)
{
    struct net_address a = {.family = NET_NONE};
    if (!net_address_parse_ip(text_from(ip), &a))
        a.family = NET_UNIX;
    return a;
}

static bool
enters(struct space *r, const char *ip)
{
    struct net_address a = at(ip);
    return client_usage_entered(r->clients, &r->rules, &a, r->now_ms, &r->refusal);
}

static void
leaves(struct space *r, const char *ip)
{
    struct net_address a = at(ip);
    client_usage_left(r->clients, &a, r->now_ms);
}

static bool
takes(struct space *r, const char *ip, enum client_usage_kind kind)
{
    struct net_address a = at(ip);
    return client_usage_take(r->clients, &r->rules, &a, kind, r->now_ms, &r->refusal);
}

static void
owes(struct space *r, const char *ip, unsigned recipients)
{
    struct net_address a = at(ip);
    client_usage_owe(r->clients, &r->rules, &a, recipients, r->now_ms);
}

static bool
visits(struct space *r, const char *ip)
{
    bool entered = enters(r, ip);
    leaves(r, ip);
    return entered;
}

/* Enters until refused, each time from another network of 64 bits; how often. */
static unsigned
enters_all(struct space *r, unsigned wide, unsigned at_most)
{
    char ip[64];
    for (unsigned i = 0; i < at_most; i++) {
        snprintf(ip, sizeof(ip), "2001:db8:%x:%x::1", wide, i);
        if (!enters(r, ip)) {
            leaves(r, ip);
            return i;
        }
    }
    return at_most;
}

static void
stress(void)
{
    struct space r;
    struct net_address a = at("2001:db8:1:7::1"), b = at("192.0.2.1"),
                       here = at("unix");
    open_room(
        &r, &(struct client_usage_settings){.sessions = 20, .sessions_per_client = 5});
    is_number(enters_all(&r, 1, 16), 16, "networks of 64 bits are many");
    ok_named(!client_usage_stressed(r.clients, &r.rules), "80 %");
    ok(enters(&r, "192.0.2.1"));
    ok_named(client_usage_stressed(r.clients, &r.rules), "more");
    is_number(client_usage_weight(r.clients, &a), 16, "they count together");
    is_number(client_usage_weight(r.clients, &b), 1, "addresses of IPv4 do not");
    is_number(client_usage_weight(r.clients, &here), 0, "a Unix socket has no weight");
    ok(!enters(&r, "2001:db8:1:ffff::1"));
    is_string(r.refusal.text, "too many connections from your network, try again later",
              "and have no more than a client then");
    leaves(&r, "2001:db8:1:ffff::1");
    is_number(enters_all(&r, 2, 2), 2, "others have");
    for (unsigned i = 0; i < 8; i++) {
        char ip[64];
        snprintf(ip, sizeof(ip), "2001:db8:1:%x::1", i);
        ok_named(client_usage_stressed(r.clients, &r.rules), "stress lasts");
        leaves(&r, ip);
    }
    is_number(client_usage_sessions(r.clients), 11, "until there are less than 60 %");
    ok(!client_usage_stressed(r.clients, &r.rules));
    ok(enters(&r, "2001:db8:1:ffff::1"));
    close_room(&r);
}

TEST(tls)
{
    struct net_address a = at("192.0.2.1"), b = at("192.0.2.2"), here = at("unix");
    FIXTURE(space, r, open_room, close_room,
              &(struct client_usage_settings){.sessions = 4, .sessions_per_client = 4});
    ok(enters(&r, "192.0.2.1") && enters(&r, "192.0.2.1") && enters(&r, "192.0.2.2"));
    client_usage_secured(r.clients, &a, true);
    client_usage_secured(r.clients, &a, true);
    client_usage_secured(r.clients, &here, true);
    is_number(client_usage_tls(r.clients, &a), 2, "TLS sessions of a client");
    is_number(client_usage_tls(r.clients, &b), 0, "of it alone");
    is_number(client_usage_tls(r.clients, &here), 0, "Unix sockets are nobody's");
    client_usage_secured(r.clients, &a, false);
    client_usage_secured(r.clients, &here, false);
    is_number(client_usage_tls(r.clients, &a), 1, "that have not ended");
    client_usage_secured(r.clients, &a, false);
}

static void
crowds(void)
{
    FIXTURE(space, r, open_room, close_room,
              &(struct client_usage_settings){.sessions = 4, .sessions_per_client = 2});
    ok(enters(&r, "192.0.2.1") && enters(&r, "192.0.2.1"));
    ok(!enters(&r, "192.0.2.1"));
    is_number(r.refusal.code, 421, "a third is refused");
    is_string(r.refusal.enhanced, "4.7.0", "for policy");
    is_string(r.refusal.text, "too many connections from your address", "and why");
    is_number(client_usage_sessions(r.clients), 3, "it counts until it has left");
    leaves(&r, "192.0.2.1");
    ok(enters(&r, "2001:db8::1") && enters(&r, "2001:db8:0:1::1"));
    ok_named(!enters(&r, "192.0.2.9"), "a fifth of all");
    is_string(r.refusal.text, "too many connections, try again later", "is refused, too");
    leaves(&r, "192.0.2.9");
    leaves(&r, "2001:db8:0:1::1");
    ok_named(enters(&r, "2001:db8::ffff:2"), "two of one network of 64 bits");
    leaves(&r, "192.0.2.1");
    ok_named(!enters(&r, "2001:db8::3:4:5:6"), "a third of it");
    is_string(r.refusal.text, "too many connections from your address", "and why");
    is_number(client_usage_known(r.clients), 3,
              "clients and their networks of 48 bits are known while they are here");
}

TEST(unix_sockets)
{
    struct client_usage_settings s = {.sessions = 3, .sessions_per_client = 1};
    for (int i = 0; i < CLIENT_USAGE_KINDS; i++)
        s.each[i] = s.all[i] = TEXT("1/d");
    FIXTURE(space, r, open_room, close_room, &s);
    ok(enters(&r, "unix") && enters(&r, "unix") && enters(&r, "unix"));
    for (int i = 0; i < 3; i++)
        ok(takes(&r, "unix", CLIENT_USAGE_MESSAGE) &&
           takes(&r, "unix", CLIENT_USAGE_RECIPIENT));
    ok_named(!enters(&r, "unix"), "but they are sessions");
    is_number(client_usage_known(r.clients), 0, "nobody is known by a Unix socket");
}

TEST(session_rates)
{
    struct client_usage_settings s = {.sessions = 100, .sessions_per_client = 100};
    s.each[CLIENT_USAGE_SESSION] = TEXT("6/m,burst=3");
    FIXTURE(space, r, open_room, close_room, &s);
    ok(visits(&r, "192.0.2.1") && visits(&r, "192.0.2.1") && visits(&r, "192.0.2.1"));
    ok_named(!visits(&r, "192.0.2.1"), "a fourth at once is too much");
    is_number(r.refusal.code, 421, "421");
    is_string(r.refusal.enhanced, "4.7.0", "4.7.0");
    is_string(r.refusal.text,
              "too many connections from your address, try again in 10 s", "when");
    ok_named(visits(&r, "192.0.2.2"), "another may");
    r.now_ms += 9500;
    ok(!visits(&r, "192.0.2.1"));
    is_string(r.refusal.text,
              "too many connections from your address, try again in 1 s", "rounded up");
    r.now_ms += 500;
    ok_named(visits(&r, "192.0.2.1"), "what was refused did not count");
    ok(!visits(&r, "192.0.2.1"));
    ok_named(!visits(&r, "::ffff:192.0.2.1"), "by whatever name");
    r.now_ms += 10000;
    ok(visits(&r, "::ffff:192.0.2.1") && !visits(&r, "192.0.2.1"));
    r.now_ms += 60000;
    ok(visits(&r, "192.0.2.7"));
    is_number(client_usage_known(r.clients), 1, "rested clients are forgotten");
}

/* One message a second for each, two for all. */
TEST(message_rates)
{
    struct client_usage_settings s = {
        .sessions = 100, .sessions_per_client = 100, .exempt = TEXT("10.0.0.0/8, ::1")};
    s.each[CLIENT_USAGE_MESSAGE] = TEXT("1/s");
    s.all[CLIENT_USAGE_MESSAGE] = TEXT("2/s");
    s.each[CLIENT_USAGE_RECIPIENT] = TEXT("10/h,burst=2");
    FIXTURE(space, r, open_room, close_room, &s);
    ok(enters(&r, "192.0.2.1") && enters(&r, "192.0.2.2") && enters(&r, "192.0.2.3") &&
       enters(&r, "10.1.1.1"));
    ok(takes(&r, "192.0.2.1", CLIENT_USAGE_MESSAGE));
    ok(!takes(&r, "192.0.2.1", CLIENT_USAGE_MESSAGE));
    is_number(r.refusal.code, 450, "450");
    is_string(r.refusal.enhanced, "4.7.1", "4.7.1");
    is_string(r.refusal.text, "too many messages from your address, try again in 1 s",
              "which limit");
    ok_named(takes(&r, "192.0.2.2", CLIENT_USAGE_MESSAGE), "the second of all");
    ok(!takes(&r, "192.0.2.3", CLIENT_USAGE_MESSAGE));
    is_string(r.refusal.text, "too many messages, try again in 1 s",
              "the limit of all is another");
    for (int i = 0; i < 50; i++)
        if (!takes(&r, "10.1.1.1", CLIENT_USAGE_MESSAGE))
            ok_named(false, "an exempt client is held back");
    r.now_ms += 500;
    ok_named(takes(&r, "192.0.2.3", CLIENT_USAGE_MESSAGE),
             "what an exempt one sent does not count for the others");
    ok(takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT));
    ok(takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT));
    ok(!takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT));
    is_string(r.refusal.text,
              "too many recipients from your address, try again in 360 s",
              "recipients");
    leaves(&r, "192.0.2.1");
    ok(enters(&r, "192.0.2.1"));
    ok_named(!takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT),
             "a new session is the same client");
}

/* Members of an alias, all accepted at once. */
TEST(owed)
{
    struct client_usage_settings s = {
        .sessions = 100, .sessions_per_client = 100, .exempt = TEXT("10.0.0.0/8")};
    s.each[CLIENT_USAGE_RECIPIENT] = TEXT("60/m,burst=5");
    FIXTURE(space, r, open_room, close_room, &s);
    ok(enters(&r, "192.0.2.1") && enters(&r, "192.0.2.2") && enters(&r, "10.1.1.1"));
    ok(takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT));
    owes(&r, "192.0.2.1", 100);
    ok_named(!takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT), "members count, too");
    is_string(r.refusal.text,
              "too many recipients from your address, try again in 96 s", "all of them");
    ok(takes(&r, "192.0.2.1", CLIENT_USAGE_MESSAGE));
    ok_named(takes(&r, "192.0.2.2", CLIENT_USAGE_RECIPIENT), "another may");
    owes(&r, "192.0.2.2", 3);
    ok_named(takes(&r, "192.0.2.2", CLIENT_USAGE_RECIPIENT), "members take what is there");
    ok(!takes(&r, "192.0.2.2", CLIENT_USAGE_RECIPIENT));
    r.now_ms += 50 * 1000;
    for (int i = 0; i < 50; i++, r.now_ms += 500)
        ok(!takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT));
    r.now_ms += 23 * 1000;
    ok_named(takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT), "when its rate has made up");
    ok(takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT));
    ok_named(!takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT), "and not by the burst, too");
    owes(&r, "10.1.1.1", 100);
    ok_named(takes(&r, "10.1.1.1", CLIENT_USAGE_RECIPIENT), "nobody who is exempt");
    for (int i = 0; i < 3; i++)
        owes(&r, "192.0.2.1", UINT32_MAX);
    ok(!takes(&r, "192.0.2.1", CLIENT_USAGE_RECIPIENT));
}

/* A client that sends all of its hour together has sent no more than it may. */
TEST(at_once)
{
    struct client_usage_settings s = {.sessions = 100, .sessions_per_client = 100};
    s.each[CLIENT_USAGE_MESSAGE] = TEXT("100/h");
    FIXTURE(space, r, open_room, close_room, &s);
    ok(enters(&r, "192.0.2.1"));
    unsigned taken = 0;
    while (taken < 200 && takes(&r, "192.0.2.1", CLIENT_USAGE_MESSAGE))
        taken++;
    is_number(taken, 100, "without ,burst= as many at once as the rate says");
    r.now_ms += 36000;
    ok_named(takes(&r, "192.0.2.1", CLIENT_USAGE_MESSAGE),
             "and then one after the other");
    ok(!takes(&r, "192.0.2.1", CLIENT_USAGE_MESSAGE));
}

/* In the long run exactly what was set. */
TEST(long_run)
{
    struct client_usage_settings s = {.sessions = 100, .sessions_per_client = 100};
    s.each[CLIENT_USAGE_MESSAGE] = TEXT("100/m,burst=1");
    FIXTURE(space, r, open_room, close_room, &s);
    ok(enters(&r, "192.0.2.1"));
    unsigned taken = 0;
    for (int i = 0; i < 600000; i += 7, r.now_ms += 7)
        taken += takes(&r, "192.0.2.1", CLIENT_USAGE_MESSAGE);
    printf("# %u in 10 minutes of 100/m\n", taken);
    ok(taken >= 985 && taken <= 1001);
}

static const char *
number_ip(unsigned i)
{
    static char ip[32];
    snprintf(ip, sizeof(ip), "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255, i & 255);
    return ip;
}

TEST(bounded)
{
    struct client_usage_settings s = {.sessions = 100, .sessions_per_client = 100};
    s.each[CLIENT_USAGE_SESSION] = TEXT("1/d");
    FIXTURE(space, r, open_room, close_room, &s);
    ok(enters(&r, "192.0.2.1"));
    for (unsigned i = 0; i < CLIENT_USAGE_IDLE_MAX + 1000; i++, r.now_ms++)
        if (!visits(&r, number_ip(i)))
            ok_named(false, "a new client is held back");
    is_number(client_usage_known(r.clients), CLIENT_USAGE_IDLE_MAX + 1,
              "so many are remembered");
    ok_named(!visits(&r, number_ip(CLIENT_USAGE_IDLE_MAX + 999)), "the last of them");
    ok_named(!visits(&r, number_ip(1000)), "the first that is left");
    ok_named(visits(&r, number_ip(0)), "who left first is forgotten");
    ok_named(!enters(&r, "192.0.2.1"), "who is here is not");
}

static void
mistakes(void)
{
    struct client_usage_rules rules = {0};
    struct client_usage_settings s = {.sessions = 1,
                                      .exempt = TEXT("10.0.0.0/8, nowhere")};
    FIXTURE(buffer, said, buffer_init, buffer_free, 4096);
    s.each[CLIENT_USAGE_RECIPIENT] = TEXT("many");
    s.all[CLIENT_USAGE_SESSION] = TEXT("5/x");
    s.all[CLIENT_USAGE_MESSAGE] = TEXT("none");
    ok(!client_usage_read(&rules, &s, &said));
    bool added = buffer_add_byte(&said, '\0');
    ok(added && strstr(said.at, "client_recipient_rate: 'many': is none of N/s") &&
       strstr(said.at, "\nrate_exempt: 'nowhere': not a network") &&
       strstr(said.at, "server_session_rate: '5/x'"));
    ok(strstr(said.at, "server_message_rate") == NULL);
    client_usage_rules_free(&rules);
}

int
main(void)
{
    crowds();
    stress();
    tap_tests("");
    mistakes();
    return done();
}
