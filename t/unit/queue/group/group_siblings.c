/* Descriptions of the hosts of a group: they come from another machine, so anything may
 * come. */
#include "queue/group/group_siblings.h"

#include "base/memory.h"
#include "t/support/tap.h"

TEST(round)
{
    struct group_self self = {.address = "10.0.0.1:4650", .spool = "aabb", .state = "running", .version = "0.1.0", .waiting = 7};
    char info[GROUP_INFO_MAX], line[GROUP_INFO_MAX + 100];
    struct group_siblings s = {.all = NULL};
    const struct group_self *read;

    group_siblings_write(&self, "0123456789abcdef", info);
    is_string(info, "{\"version\":\"0.1.0\",\"run\":\"0123456789abcdef\",\"address\":\"10.0.0.1:4650\",\"spool\":\"aabb\",\"state\":\"running\",\"waiting\":7}", "JSON");
    snprintf(line, sizeof(line), "relay2 {}\nRelay1 %s\n", info);
    group_siblings_read(&s, text_from(line));
    read = group_siblings_find(&s, "relay1");
    ok(read != NULL && memcmp(read, &self, sizeof(self)) == 0);
    ok(group_siblings_find(&s, "relay2") != NULL && group_siblings_find(&s, "relay3") == NULL);
    group_siblings_read(&s, TEXT(""));
    ok_named(s.count == 0, "each list replaces the last");
    group_siblings_free(&s);
}

TEST(longest)
{
    struct group_self self = {.waiting = 1000000000};
    char info[GROUP_INFO_MAX];

    memset(self.address, 'a', sizeof(self.address) - 1);
    memset(self.spool, 'f', sizeof(self.spool) - 1);
    memset(self.state, 's', sizeof(self.state) - 1);
    memset(self.version, '9', sizeof(self.version) - 1);
    group_siblings_write(&self, "0123456789abcdef", info);
    ok_named(strlen(info) > 300 && info[strlen(info) - 1] == '}', "the longest fits");
}

TEST(odd)
{
    static const char *const odd[] = {"", " ", "relay1", "relay1 ", "relay/1 {}", " {}", "a b {}"};
    static const char *const empty[] = {
        "relay1 [", "relay1 7", "relay1 {\"address\":7}", "relay1 {\"address\":\"a\\u001b[2J\"}", "relay1 {\"address\":\"a b\"}",
        "relay1 {\"address\":\"a\",\"address\":\"b\"}", "relay1 {\"address\":\"\\u0000\"}", "relay1 {\"state\":\"seventeen-bytes-0\",\"waiting\":-5}"};
    struct group_siblings s = {.all = NULL};
    struct buffer many;

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        group_siblings_read(&s, text_from(odd[i]));
        ok(s.count == 0 || i == 6);
    }
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        const struct group_self *self;
        group_siblings_read(&s, text_from(empty[i]));
        self = group_siblings_find(&s, "relay1");
        ok_named(self != NULL && self->address[0] == '\0' && self->state[0] == '\0' && self->waiting == 0, "what is not understood is empty");
    }
    buffer_init(&many, 1 << 20);
    for (int i = 0; i < 1000; i++)
        ok(buffer_format(&many, "host%d {}\n", i));
    group_siblings_read(&s, buffer_text(&many));
    is_number(s.count, GROUP_HOSTS_MAX, "not more than a group has");
    buffer_free(&many);
    group_siblings_free(&s);
}
