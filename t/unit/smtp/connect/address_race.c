/* smtp/connect/address_race.c: order, turns, races, reports of health. */
#include "smtp/connect/address_race.h"

#include "t/support/tap.h"

#include <string.h>

/* --- A stand-in for the manager --------------------------------------------------- */

struct manager {
    bool backwards;
    char told[300];
    size_t asked;
    int groups[8];
};

struct sched *
manager_sched(struct manager *m)
{
    return (struct sched *)m;
}

void
sched_host_good(struct sched *s, struct text address, int64_t took_ms)
{
    struct manager *m = (struct manager *)s;
    size_t length = strlen(m->told);
    snprintf(m->told + length, sizeof(m->told) - length, "good %.*s %lld;",
             TEXT_ARGS(address), (long long)took_ms);
}

void
sched_host_bad(struct sched *s, struct text address)
{
    struct manager *m = (struct manager *)s;
    size_t length = strlen(m->told);
    snprintf(m->told + length, sizeof(m->told) - length, "bad %.*s;",
             TEXT_ARGS(address));
}

void
sched_hosts_order(struct sched *s, const struct text *addresses, const int *groups,
                    size_t count, size_t *order)
{
    struct manager *m = (struct manager *)s;
    (void)addresses;
    m->asked = count;
    for (size_t i = 0; i < count; i++) {
        order[i] = m->backwards ? count - 1 - i : i;
        m->groups[i] = groups[i];
    }
}

/* -----------------------------------------------------------------------------------
 */

static struct mx_lookup_host
host(unsigned preference, const char *name, const char *address)
{
    struct mx_lookup_host h = {.preference = preference};
    text_copy(h.name, sizeof(h.name), text_from(name));
    if (!net_address_parse(text_from(address), 25, &h.address))
        abort();
    return h;
}

static const char *
next_name(const struct address_race *c)
{
    const struct mx_lookup_host *h = address_race_next(c);
    return h == NULL ? "none" : h->name;
}

TEST(turns)
{
    struct manager m = {.backwards = true};
    struct mx_lookup_host hosts[] = {host(1, "a", "192.0.2.1"),
                                    host(2, "b", "192.0.2.2"),
                                    host(7, "c", "192.0.2.3")};
    struct address_race c;
    address_race_start(&c, &m, hosts, 3);
    ok(m.asked == 3 && m.groups[0] == 1 && m.groups[2] == 7);
    is_string(next_name(&c), "c", "the order is the scheduler's");
    address_race_bring_forward(&c, 0);
    is_string(next_name(&c), "a", "brought forward");
    address_race_pass(&c);
    is_string(next_name(&c), "c", "the others stay in order");
    address_race_bring_forward(&c, 2);
    is_string(next_name(&c), "c", "it is the next already");
    address_race_pass(&c);
    is_string(next_name(&c), "b", "to the last");
    address_race_pass(&c);
    is_string(next_name(&c), "none", "then none is left");
}

TEST(race)
{
    struct manager m = {.backwards = false};
    struct mx_lookup_host hosts[] = {
        host(1, "a", "192.0.2.1"),     host(1, "a", "192.0.2.2"),
        host(1, "a", "[2001:db8::1]"), host(1, "a", "[2001:db8::2]"),
        host(2, "b", "192.0.2.3"),     host(3, "b", "[2001:db8::3]")};
    struct address_race c;
    size_t race[2];
    address_race_start(&c, &m, hosts, 6);
    ok_named(address_race_pair(&c, race) == 2 && race[0] == 0 && race[1] == 2,
             "the first of the other family");
    address_race_bring_forward(&c, 3);
    ok_named(address_race_pair(&c, race) == 2 && race[0] == 3 && race[1] == 0,
             "whichever is the first");
    for (int i = 0; i < 3; i++)
        address_race_pass(&c);
    ok_named(address_race_pair(&c, race) == 1 && race[0] == 2, "none is as good");
    address_race_pass(&c);
    ok_named(address_race_pair(&c, race) == 1 && race[0] == 4,
             "a backup is no rival of the main one");
    address_race_pass(&c);
    ok_named(address_race_pair(&c, race) == 1 && race[0] == 5, "the last is alone");
}

TEST(health)
{
    struct manager m = {.backwards = false};
    struct mx_lookup_host hosts[] = {host(1, "a", "192.0.2.1:26"),
                                    host(1, "b", "[2001:db8::1]:27")};
    struct address_race c;
    address_race_start(&c, &m, hosts, 2);
    address_race_bad(&c, 1);
    address_race_good(&c, 0, 17);
    is_string(m.told, "bad [2001:db8::1]:27;good 192.0.2.1:26 17;",
              "by address and port");
}

static void
is_named(const char *name, const char *address, const char *where, const char *remote)
{
    struct mx_lookup_host h = host(1, name, address);
    struct reply_outcome_peer peer;
    memset(&peer, 0, sizeof(peer));
    address_race_name(&h, &peer);
    is_string(peer.where, where, where);
    is_string(peer.remote, remote, remote);
}

TEST(names)
{
    is_named("mx.x.test", "192.0.2.1:26", "mx.x.test[192.0.2.1]",
             "mx.x.test[192.0.2.1]:26");
    is_named("mx.x.test", "[2001:db8::1]:25", "mx.x.test[2001:db8::1]",
             "mx.x.test[2001:db8::1]:25");
    is_named("[192.0.2.1]", "192.0.2.1:25", "192.0.2.1[192.0.2.1]",
             "192.0.2.1[192.0.2.1]:25");
    is_named("", "unix:/run/lmtp", "/run/lmtp", "/run/lmtp");
}
