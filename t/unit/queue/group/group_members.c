/* queue/group/group_members.c: members, lost ones, and the effects of an emptied bank or
 * an old file. */
#include "queue/group/group_members.h"

#include "base/memory.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static struct group_members members;
static struct buffer said;

static void
on_change(void *context, const char *name, enum group_change change)
{
    static const char *const words[] = {"came", "lost", "back", "left", "forgotten"};
    (void)context;
    (void)!buffer_format(&said, "%s %s;", name, words[change]);
}

/* The members by that list at that second; unless the last one is long ago there were
 * heartbeats since. */
static void
list_at(int64_t s, const char *list, const char *want, const char *name)
{
    if (s * 1000 - members.heard_ms <= 10000)
        for (int64_t at = members.heard_ms + 2000; at < s * 1000; at += 2000)
            group_members_hear(&members, at);
    buffer_clear(&said);
    bool is_list =
        group_members_read(&members, text_from(list), s * 1000, on_change, NULL);
    char *all = text_string(buffer_text(&said));
    is_string(is_list ? all : "no list", want, name);
    free(all);
}

TEST(life)
{
    group_members_init(&members, "b", 0);
    is_number(members.count, 1, "alone");
    list_at(0, " b 0 A 100 c 9000", "a came;c came;", "others are there");
    is_number(group_members_rank(&members), 1, "our rank is that of our name");
    list_at(10, "a 1000 b 0 c 19000", "c lost;", "one was not seen for ten seconds");
    is_number(group_members_lost(&members), 1, "it still counts");
    is_number(members.count, 3, "as one of three");
    list_at(20, "a 1000 b 0 c 500", "c back;", "it is back");
    list_at(30, "a gone c 500", "a left;", "one says goodbye");
    is_number(group_members_rank(&members), 0, "our rank changes");
    for (int64_t s = 40; s < 629; s += 10)
        list_at(s, "c 9000000", s == 40 ? "c lost;" : "", "one is silent for long");
    list_at(630, "c 600500", "c forgotten;", "after ten minutes it is forgotten");
    list_at(640, "d 600001 d 700000", "", "one of long ago does not come");
    is_number(members.count, 1, "alone again");
}

TEST(doubt)
{
    group_members_init(&members, "b", 0);
    list_at(0, "a 0 b 0 c 0", "a came;c came;", "three");
    list_at(5, "b 0", "", "a bank that was emptied makes nobody go");
    list_at(10, "a 0 b 0 c 0", "", "they are there again");
    list_at(3600, "b 0", "", "time in which no list came does not count");
    list_at(3605, "b 0 a 1", "", "... for anybody");
    list_at(3610, "b 0 a 1", "c lost;", "from then on it does");
    static const char *const lists[] = {
        "a",     "a b",    "a -1",    "a 1 b",
        "a 1.5", "[x] 12", "a 1 ? 1", "a 99999999999999999999"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        list_at(3615, lists[i], "no list", lists[i]);
    is_number(members.count, 3, "which change nothing");
    group_members_init(&members, "own", 0);
    FIXTURE(buffer, many, buffer_init, buffer_free, 1 << 20);
    for (int i = 0; i < GROUP_HOSTS_MAX; i++)
        (void)!buffer_format(&many, "host%d 0 ", i);
    (void)!group_members_read(&members, buffer_text(&many), 0, on_change, NULL);
    is_number(members.count, GROUP_HOSTS_MAX, "too many are not taken");
    ok_named(group_members_rank(&members) == GROUP_HOSTS_MAX - 1, "we are among them");
    (void)!buffer_format(&many, "more 0");
    ok_named(!group_members_read(&members, buffer_text(&many), 0, on_change, NULL),
             "the bank lists no more than that");
}

/* Redis goes shortly before a list is due, and is back after some seconds: the others have
 * had no chance to say that they are there. */
TEST(silence)
{
    group_members_init(&members, "b", 0);
    list_at(0, "a 0 b 0", "a came;", "two");
    for (int64_t s = 2; s < 10; s += 2)
        group_members_hear(&members, s * 1000);
    list_at(21, "a 14000 b 0 c 14500", "c came;", "a short silence makes nobody lost");
    list_at(31, "a 24000 b 0 c 500", "a lost;", "one that does not come back then is");
    list_at(41, "a 0 b 0 c 500", "a back;", "until it is there");
    list_at(51, "a 0 b 0 c 9500 d 12000", "d came;d lost;",
            "without a silence it is at once");
}

/* It may be cut off. */
TEST(late)
{
    group_members_init(&members, "b", 0);
    list_at(0, "a 0 b 0 c 0 d 0", "a came;c came;d came;", "four");
    list_at(2, "a 2900 b 0 c 2000 d 100", "", "all were seen");
    is_number(group_members_late(&members) + members.old, 0, "lately");
    list_at(4, "a 3000 b 0 c 500 d gone", "d left;", "one was not seen for three seconds");
    is_number(group_members_late(&members), 1, "it is late");
    is_number(members.old, 1, "of the list");
    list_at(8, "b 0 c 500", "", "a bank that was emptied");
    is_number(group_members_late(&members), 0, "makes nobody late");
    list_at(10, "a 9900 b 0 c 500", "", "not yet lost");
    is_number(group_members_late(&members), 1, "late again");
    list_at(12, "a 11900 b 0 c 500", "a lost;", "lost");
    is_number(group_members_late(&members), 0, "is not late");
    is_number(members.old, 1, "but old");
}

TEST(file)
{
    FIXTURE(buffer, file, buffer_init, buffer_free, 1 << 16);
    group_members_init(&members, "b", 0);
    group_members_add(&members, TEXT("c"), 0);
    group_members_add(&members, TEXT("A"), 0);
    group_members_add(&members, TEXT("a"), 0);
    group_members_add(&members, TEXT("not a name"), 0);
    group_members_write(&members, "mail", &file);
    char *text = text_string(buffer_text(&file));
    is_string(text, "mail\na\nb\nc\n", "the file");
    free(text);
    ok_named(group_members_forget(&members, TEXT("C")), "one is removed");
    ok_named(!group_members_forget(&members, TEXT("c")), "once");
    ok_named(!group_members_forget(&members, TEXT("b")), "we are not");
    group_members_init(&members, "d", 0);
    group_members_recall(&members, "other", buffer_text(&file), 0);
    is_number(members.count, 1, "that of another group is ignored");
    group_members_recall(&members, "mail", buffer_text(&file), 0);
    is_number(members.count, 4, "our own is not");
    group_members_recall(&members, "mail", TEXT("mail\n\n\377\nx"), 0);
    is_number(members.count, 4, "a damaged one adds nobody");
}

/* By an operator, while the bank cannot be told. */
TEST(forgotten)
{
    char name[16];
    FIXTURE(buffer, file, buffer_init, buffer_free, 1 << 16);
    group_members_init(&members, "b", 0);
    group_members_add(&members, TEXT("a"), 0);
    group_members_add(&members, TEXT("c"), 0);
    (void)!group_members_forget(&members, TEXT("A"));
    list_at(1, "a 100 c 0", "", "a list does not bring it back");
    group_members_write(&members, "mail", &file);
    is_text(buffer_text(&file), TEXT("mail\nb\nc\nforgotten a\n"), "it is in the file");
    group_members_init(&members, "b", 0);
    group_members_recall(&members, "mail", buffer_text(&file), 0);
    is_number(members.count, 2, "from which it does not come back");
    list_at(1, "a 100 c 0", "", "nor from a list then");
    group_members_forgotten(&members);
    group_members_forgotten(&members);
    list_at(2, "a 100 c 0", "a came;", "until the bank knows");
    for (int i = 0; i < GROUP_FORGOTTEN_MAX + 1; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        group_members_add(&members, text_from(name), 0);
        (void)!group_members_forget(&members, text_from(name));
    }
    is_number(members.forgotten_count, GROUP_FORGOTTEN_MAX, "there is a limit");
    is_string(members.forgotten[0], "x1", "beyond which the oldest is lost");
}

/* Descriptions of the hosts of a group: they come from another machine, so anything may
 * come. */

static void
test_round(void)
{
    struct group_self self = {.address = "10.0.0.1:4650", .spool = "aabb", .state = "running", .version = "0.1.0", .waiting = 7, .suppress_limit = 90};
    char info[GROUP_INFO_MAX], line[GROUP_INFO_MAX + 100];
    struct group_siblings s = {.all = NULL};
    const struct group_self *read;

    group_siblings_write(&self, "0123456789abcdef", info);
    is_string(info, "{\"version\":\"0.1.0\",\"run\":\"0123456789abcdef\",\"address\":\"10.0.0.1:4650\",\"spool\":\"aabb\",\"state\":\"running\",\"waiting\":7,\"suppress_limit\":90}", "JSON");
    snprintf(line, sizeof(line), "relay2 {}\nRelay1 %s\n", info);
    group_siblings_read(&s, text_from(line));
    read = group_siblings_find(&s, "relay1");
    is_number(read != NULL ? read->suppress_limit : -1, 90, "a limit");
    ok(read != NULL && memcmp(read, &self, sizeof(self)) == 0);
    ok(group_siblings_find(&s, "relay2") != NULL && group_siblings_find(&s, "relay3") == NULL);
    group_siblings_read(&s, TEXT(""));
    ok_named(s.count == 0, "each list replaces the last");
    group_siblings_free(&s);
}

static void
test_longest(void)
{
    struct group_self self = {.waiting = 1000000000, .suppress_limit = 10000000};
    char info[GROUP_INFO_MAX];

    memset(self.address, 'a', sizeof(self.address) - 1);
    memset(self.spool, 'f', sizeof(self.spool) - 1);
    memset(self.state, 's', sizeof(self.state) - 1);
    memset(self.version, '9', sizeof(self.version) - 1);
    group_siblings_write(&self, "0123456789abcdef", info);
    ok_named(strlen(info) > 300 && info[strlen(info) - 1] == '}', "the longest fits");
}

static void
test_odd(void)
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

int
main(void)
{
    buffer_init(&said, 1 << 20);
    tap_tests("");
    buffer_free(&said);
    test_round();
    test_longest();
    test_odd();
    return done();
}
