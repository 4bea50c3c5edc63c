/* queue/group/group_settings.c: what each setting may be, and one clear line if it is
 * not. */
#include "queue/group/group_settings.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static struct group_settings read_;
static struct buffer errors;

static bool
reads(struct group_texts texts)
{
    group_settings_free(&read_);
    buffer_clear(&errors);
    return group_settings_read(&texts, &read_, &errors);
}

static const struct group_texts good = {.cluster = TEXT("Mail"),
                                        .host = TEXT("Relay1"),
                                        .redis = TEXT("none"),
                                        .egress = TEXT("shared"),
                                        .slices = 1};

static void
wrong(struct group_texts texts, const char *line)
{
    bool is_good = reads(texts);
    char *all = text_string(buffer_text(&errors));
    ok_named(!is_good, line);
    is_string(all, line, "is what is said");
    free(all);
}

TEST(good)
{
    struct group_texts t = good;
    ok_named(reads((struct group_texts){.host = TEXT("["), .redis = TEXT("x")}),
             "without a cluster nothing else is read");
    is_string(read_.name, "", "... and there is none");
    ok_named(reads(t), "a group without a bank");
    is_string(read_.name, "mail", "its name");
    is_string(read_.host, "relay1", "our name");
    is_number(read_.place_count, 0, "no bank");
    ok_named(read_.shares_addresses, "addresses are shared");
    t.egress = TEXT("own");
    ok_named(reads(t) && !read_.shares_addresses, "an address of our own");
    t = good;
    t.egress = TEXT("nat2");
    t.peers = TEXT("relay2=10.0.0.2:4650, RELAY1=10.0.0.1:4650\n relay3=c.example");
    ok_named(reads(t), "peers");
    is_number(read_.peer_count, 2, "but for ourselves");
    is_string(read_.peers[1], "relay3", "by their names");
    is_string(read_.addresses[0], "10.0.0.2:4650", "and where they are");
    is_string(read_.addresses[1], "c.example:4650", "by custom at port 4650");
    is_string(read_.egress, "nat2", "and a name of the address");
}

/* Slices of one machine need neither Redis nor a name. */
TEST(slices)
{
    struct group_texts t = good;
    t.slices = 4;
    t.slice = 1;
    t.egress = TEXT("own");
    ok_named(reads(t) && read_.has_lead, "slices without Redis have a bank");
    is_string(read_.host, "relay1.1", "each slice is a host");
    is_number(read_.peer_count, 3, "and knows the others");
    is_string(read_.peers[0], "relay1.0", "by their names");
    is_string(read_.peers[2], "relay1.3", "all of them");
    ok_named(read_.shares_addresses, "which have one address");
    t.peers = TEXT("relay1.0=127.0.0.1 relay1.3=127.0.0.1");
    ok_named(reads(t) && read_.has_lead && read_.peer_count == 3,
             "peers that are slices are no other machines");
    t.peers = TEXT("relay1.0=127.0.0.1 relay2.0=10.0.0.2");
    ok_named(reads(t) && !read_.has_lead && read_.peer_count == 2 &&
                 !read_.shares_addresses,
             "with another machine each has its own part");
    if (*redis_version() != '\0') {
        t.peers = TEXT("");
        t.redis = TEXT("redis://a");
        ok_named(reads(t) && !read_.has_lead && read_.peer_count == 0, "Redis");
    }
    t = (struct group_texts){.host = TEXT("["), .redis = TEXT("x"), .slices = 2};
    ok_named(reads(t) && read_.has_lead, "without a cluster nothing else is read");
    is_string(read_.name, "slices", "they are a group");
    is_string(read_.host, "slice.0", "of slices");
    is_string(read_.peers[0], "slice.1", "alone");
    t.slices = 512;
    ok_named(reads(t) && read_.name[0] == '\0', "too many to be one");
    t = good;
    t.slices = 512;
    ok_named(reads(t) && !read_.has_lead, "with a name, too");
}

TEST(redis)
{
    struct group_texts t = good;
    if (*redis_version() == '\0')
        return;
    t.redis = TEXT("redis://a.example redis://[::1]:7000/2");
    t.redis_password = TEXT("secret");
    ok_named(reads(t), "a list of servers");
    is_number(read_.place_count, 2, "two");
    is_string(read_.places[1].password, "secret", "with one password");
    t.redis = TEXT("redis://:pw@a.example");
    wrong(t, "cluster_redis: write the password in cluster_redis_password_file or "
             "cluster_redis_password, not here\n");
    t = good;
    t.redis = TEXT("redis://petrel@a.example");
    wrong(t, "cluster_redis: a user needs cluster_redis_password\n");
    t.redis = TEXT("a.example");
    wrong(t, "cluster_redis: it must be redis://host or rediss://host\n");
    t.redis = TEXT(" , ");
    wrong(t, "cluster_redis: no server: write none if there is no Redis\n");
    t.redis = TEXT("redis://a redis://b redis://c redis://d redis://e redis://f "
                   "redis://g redis://h redis://i");
    wrong(t, "cluster_redis: at most 8 servers\n");
}

TEST(wrong)
{
    struct group_texts t = good;
    t.cluster = TEXT("my mail");
    wrong(t, "cluster: 'my mail': at most 63 letters, digits, '-', '_' and '.'\n");
    t = good;
    t.host = TEXT("[10.0.0.1]");
    wrong(t, "cluster_host: '[10.0.0.1]': set it to a name of this host: letters, "
             "digits, '-', '_' and '.'\n");
    t = good;
    t.egress = TEXT("account");
    wrong(t, "cluster_egress: 'account': shared, own, or a name of the address that "
             "hosts share\n");
    t = good;
    t.peers = TEXT("relay2");
    wrong(t, "cluster_peers: 'relay2': write NAME=ADDRESS:PORT; a name has only "
             "letters, digits, '-', '_' and '.'\n");
    static const char *const bad[] = {"b=@@@", "b=a:0",     "b=a:x",      "b=a:65536",
                                      "b=a:",  "b=:4650",   "b=[a]:4650", "b=[::1",
                                      "b=::1", "b=[::1]99", "b=a:1:2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        t.peers = text_from(bad[i]);
        ok_named(!reads(t), bad[i]);
    }
    t.peers = TEXT("");
    t.address = TEXT("10.0.0.1:65536");
    wrong(t, "cluster_address: '10.0.0.1:65536': not an address where other hosts reach this one (HOST:PORT)\n");
    t.address = TEXT("relay1.example");
    t.peers = TEXT("b=[::1]:4651 c=[::1] d=d.test:1");
    ok_named(reads(t), "where others reach us");
    is_string(read_.address, "relay1.example:4650", "a name will do");
    is_string(read_.addresses[0], "[::1]:4651", "IPv6");
    is_string(read_.addresses[1], "[::1]:4650", "without a port");
    is_string(read_.addresses[2], "d.test:1", "a name with a port");
    group_settings_free(&read_);
    t.address = TEXT("2001:db8::1");
    t.peers = TEXT("");
    ok_named(reads(t), "an IPv6 address as Kubernetes has it");
    is_string(read_.address, "[2001:db8::1]:4650", "gets its brackets");
    group_settings_free(&read_);
    t.address = TEXT("");
    t.peers = TEXT("b=[::1]:4650 c=[::1] d=d.test");
    ok_named(reads(t), "addresses with and without a port");
    t.peers = TEXT("relay2=10.0.0.2 Relay2=10.0.0.3");
    wrong(t, "cluster_peers: 'Relay2=10.0.0.3': duplicate name\n");
}

int
main(void)
{
    buffer_init(&errors, 1 << 16);
    tap_tests("");
    group_settings_free(&read_);
    buffer_free(&errors);
    return done();
}
