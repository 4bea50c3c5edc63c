/* Source addresses: read, written, combined. */
#include "sched/route/bind_address.h"

#include "t/support/tap.h"

#include <string.h>

static struct bind_address
read_list(const char *list)
{
    struct bind_address s;
    ok_named(bind_address_read(&s, text_from(list), NULL), list);
    return s;
}

static void
is_written(const struct bind_address *s, const char *want, const char *what)
{
    char text[BIND_ADDRESS_TEXT_MAX];
    bind_address_format(s, text);
    is_string(text, want, what);
}

TEST(read)
{
    struct text word = TEXT("");
    struct bind_address s = read_list("");
    is_written(&s, "", "none");
    s = read_list("192.0.2.1");
    is_written(&s, "192.0.2.1", "one");
    s = read_list("2001:db8::1 192.0.2.1");
    is_written(&s, "192.0.2.1,2001:db8::1", "both");
    s = read_list("255.255.255.255,2001:db8:1111:2222:3333:4444:5555:6666");
    is_written(&s, "255.255.255.255,2001:db8:1111:2222:3333:4444:5555:6666",
               "the longest");
    ok(bind_address_parse(&s, TEXT("192.0.2.1,::1"), &word) == NULL);
    is_string(bind_address_parse(&s, TEXT("192.0.2.1,192.0.2.2"), &word),
              "a second address of its family", "two");
    is_text(word, TEXT("192.0.2.2"), "which");
    is_string(bind_address_parse(&s, TEXT("host.test"), &word), "not an IP address",
              "a name");
}

TEST(for)
{
    struct bind_address s = read_list("2001:db8::1");
    struct net_address a, want;
    ok(net_address_parse_ip(TEXT("2001:db8::1"), &want));
    ok(bind_address_for(&s, NET_IPV6, &a) && net_address_equal(&a, &want) &&
       a.port == 0);
    ok(!bind_address_for(&s, NET_IPV4, &a) && !bind_address_for(&s, NET_UNIX, &a) &&
       !bind_address_for(&s, NET_NONE, &a));
}

TEST(complete)
{
    struct bind_address s = read_list("192.0.2.1"), both = read_list("192.0.2.9,::9");
    bind_address_complete(&s, &both);
    is_written(&s, "192.0.2.1,::9", "its own address stays");
    s = read_list("");
    bind_address_complete(&s, &both);
    is_written(&s, "192.0.2.9,::9", "both");
}
