/* smtp/networks: lists of networks, good and bad. */
#include "smtp/access/networks.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

static bool
has(const struct networks *n, const char *ip)
{
    struct net_address a;
    return net_address_parse_ip(text_from(ip), &a) && networks_have(n, &a);
}

TEST(lists)
{
    struct networks n = {0};
    struct net_address file = {.family = NET_UNIX, .path = "/run/x"};
    FIXTURE(buffer, said, buffer_init, buffer_free, 4096);
    ok_named(!has(&n, "127.0.0.1"), "an empty list has nobody");
    ok(networks_read(&n, "key", TEXT("10.0.0.0/8,192.0.2.1\n 2001:db8::/32"), "why",
                     &said));
    ok(n.count == 3 && said.length == 0);
    ok(has(&n, "10.255.0.1") && has(&n, "192.0.2.1") && has(&n, "2001:db8:5::1"));
    ok(has(&n, "::ffff:10.0.0.1"));
    ok(!has(&n, "11.0.0.1") && !has(&n, "192.0.2.2") && !has(&n, "2001:db9::1"));
    ok(!networks_have(&n, &file));
    networks_free(&n);
    ok(n.count == 0 && n.list == NULL);
    ok(networks_read(&n, "key", TEXT(" "), "why", &said) && n.count == 0);
    networks_free(&n);
    ok(networks_read(&n, "key", TEXT("0.0.0.0/0 ::/0"), NULL, &said));
    ok(has(&n, "203.0.113.9") && has(&n, "2001:db8::1"));
    networks_free(&n);
}

/* In whatever way all of the Internet, or nearly all, is written. */
TEST(open_lists)
{
    static const struct {
        const char *list, *largest;
    } all[] = {
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"::/0", "::/0"},
        {"::0/0", "::/0"},
        {"0:0:0:0:0:0:0:0/0", "::/0"},
        {"[::]/0", "::/0"},
        {"0.0.0.0/1,128.0.0.0/1", "0.0.0.0/1"},
        {"::/1 8000::/1", "::/1"},
        {"2000::/3", "2000::/3"},
        {"2000::/4 3000::/4", "2000::/4"},
        {"0.0.0.0/1", "0.0.0.0/1"},
        {"128.0.0.0/1", "128.0.0.0/1"},
        {"64.0.0.0/4,80.0.0.0/4,96.0.0.0/6", "64.0.0.0/4"},
        {"127.0.0.0/8, ::1", ""},
        {"", ""},
        {"10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 224.0.0.0/3", ""},
        {"fc00::/7 fe80::/10 ::/3 4000::/2 8000::/1", ""},
        {"64.0.0.0/4 64.0.0.0/4 64.0.0.0/5 64.1.0.0/16 72.0.0.0/5", ""}, /* each once */
        {"2001:db8::/32 2000::/6", ""},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct networks n = {0};
        char want[200];
        FIXTURE(buffer, said, buffer_init, buffer_free, 4096);
        bool is_open = all[i].largest[0] != '\0';
        ok_named(networks_read(&n, "key", text_from(all[i].list), NULL, &said), all[i].list);
        is_number(networks_open(&n) != NULL, is_open, all[i].list);
        networks_free(&n);
        is_number(networks_read(&n, "key", text_from(all[i].list), "is too much", &said), !is_open, "an error");
        snprintf(want, sizeof(want), "key: '%s': %sis too much\n", all[i].largest,
                 strstr(all[i].largest, "/0") ? "" : "with the networks beside it ");
        is_text(buffer_text(&said), text_from(is_open ? want : ""), "that names the largest");
        networks_free(&n);
    }
}

TEST(mistakes)
{
    struct networks n = {0};
    struct buffer said, many;
    buffer_init(&said, 4096);
    buffer_init(&many, 64 * 1024);
    ok(!networks_read(&n, "key", TEXT("here, 10.0.0.1/8, ::/0, 10.0.0.0/8"),
                      "is too much", &said));
    is_text(buffer_text(&said),
            TEXT("key: 'here': not a network (ADDRESS or ADDRESS/BITS)\n"
                 "key: '10.0.0.1/8': has bits behind the mask: write 10.0.0.0/8\n"
                 "key: '::/0': is too much\n"),
            "a line for each mistake");
    ok_named(n.count == 2 && has(&n, "10.0.0.1"), "what is right is kept");
    networks_free(&n);
    buffer_clear(&said);
    bool added = true;
    for (int i = 0; i < NETWORKS_MAX; i++)
        added = buffer_format(&many, "10.0.%d.%d ", i / 256, i % 256) && added;
    ok(added && networks_read(&n, "key", buffer_text(&many), NULL, &said));
    networks_free(&n);
    ok(buffer_add(&many, TEXT("10.9.9.9")));
    ok(!networks_read(&n, "key", buffer_text(&many), NULL, &said));
    is_text(buffer_text(&said), TEXT("key: '10.9.9.9': too many networks\n"),
            "a limit");
    is_number(n.count, NETWORKS_MAX, "that is kept");
    networks_free(&n);
    buffer_free(&said);
    buffer_free(&many);
}
