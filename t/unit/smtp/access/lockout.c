/* smtp/lockout: the keys of clients, growing delays and lock-outs, forgetting, a table
 * that does not grow. */
#include "smtp/access/tables_internal.h"
#include "smtp/access/lockout.h"

#include "t/support/tap.h"

static struct lockout_key
key_of(const char *ip)
{
    struct net_address a;
    if (!net_address_parse_ip(text_from(ip), &a))
        abort();
    return lockout_key(&a, 7);
}

static bool
same(struct lockout_key a, struct lockout_key b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

TEST(keys)
{
    struct net_address here = {.family = NET_UNIX};
    ok_named(same(key_of("192.0.2.1"), key_of("192.0.2.1")), "an address is itself");
    ok_named(!same(key_of("192.0.2.1"), key_of("192.0.2.2")), "and no other");
    ok_named(same(key_of("2001:db8:1:2::1"), key_of("2001:db8:1:2:ffff::9")),
             "a /64 is one client");
    ok_named(!same(key_of("2001:db8:1:2::1"), key_of("2001:db8:1:3::1")), "two are two");
    ok_named(!same(lockout_key(&here, 0), lockout_key(&here, 1)),
             "at a Unix socket users count");
    ok_named(!same(lockout_key(&here, 0), key_of("0.0.0.0")), "families differ");
}

TEST(delays)
{
    static const int64_t want[] = {1000, 2000, 4000, 8000, 10000, 10000};
    struct lockout *l = lockout_new();
    struct lockout_key key = key_of("192.0.2.1"), other = key_of("192.0.2.2");
    lockout_set_limit(l, 0);
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
        is_number(lockout_failed(l, &key, 1000).delay_ms, want[i], "it grows");
    is_number(lockout_failed(l, &other, 1000).delay_ms, 1000, "for others it does not");
    for (int i = 0; i < 100; i++)
        (void)lockout_failed(l, &key, 1000);
    is_number(lockout_left_ms(l, &key, 1000), 0, "0: nobody is locked out");
    is_number(lockout_failed(l, &key, 1000 + LOCKOUT_WINDOW_MS).failures, 107,
              "within the window");
    is_number(lockout_failed(l, &key, 1001 + LOCKOUT_WINDOW_MS).failures, 1,
              "behind it they start again");
    lockout_free(&l);
    ok(l == NULL);
    lockout_free(&l);
}

/* Fails until locked; for how long. */
static int64_t
lock(struct lockout *l, const struct lockout_key *key, int64_t now_ms, int limit)
{
    for (int i = 1; i < limit; i++)
        if (lockout_failed(l, key, now_ms).locked_ms != 0)
            return -1;
    return lockout_failed(l, key, now_ms).locked_ms;
}

static void
locks(void)
{
    struct lockout *l = lockout_new();
    struct lockout_key key = key_of("192.0.2.1"), other = key_of("192.0.2.2");
    int64_t now = 5000, longest = 0;
    lockout_set_limit(l, 10);
    is_number(lock(l, &key, now, 10), LOCKOUT_FIRST_MS, "the tenth locks out");
    is_number(lockout_left_ms(l, &key, now), LOCKOUT_FIRST_MS, "from now on");
    is_number(lockout_left_ms(l, &other, now), 0, "nobody else");
    is_number(lockout_left_ms(l, &key, now + LOCKOUT_FIRST_MS - 1), 1, "to the end");
    is_number(lockout_left_ms(l, &key, now + LOCKOUT_FIRST_MS), 0, "and no longer");
    now += LOCKOUT_FIRST_MS;
    is_number(lock(l, &key, now, 10), 2 * LOCKOUT_FIRST_MS, "twice as long then");
    lockout_set_limit(l, 0);
    is_number(lockout_left_ms(l, &key, now), 0, "a limit taken away frees all");
    lockout_set_limit(l, 10);
    for (int i = 0; i < 12; i++) {
        now += LOCKOUT_LONGEST_MS;
        longest = lock(l, &key, now, 10);
    }
    is_number(longest, LOCKOUT_LONGEST_MS, "there is an end to it");
    now += LOCKOUT_MEMORY_MS + 1;
    is_number(lock(l, &key, now, 10), LOCKOUT_FIRST_MS, "forgotten after a day");
    lockout_free(&l);
}

static void
crowd(void)
{
    struct lockout *l = lockout_new();
    struct net_address a = {.family = NET_IPV4};
    struct lockout_key first = lockout_key(&a, 0), second;
    lockout_set_limit(l, 1);
    (void)lockout_failed(l, &first, 1);
    a.ip[3] = 1;
    second = lockout_key(&a, 0);
    (void)lockout_failed(l, &second, 2);
    (void)lockout_failed(l, &first, 3);
    for (unsigned i = 2; i <= LOCKOUT_CLIENTS_MAX; i++) {
        a.ip[2] = (unsigned char)(i >> 8);
        a.ip[3] = (unsigned char)i;
        struct lockout_key key = lockout_key(&a, 0);
        (void)lockout_failed(l, &key, 4);
    }
    is_number(lockout_clients(l), LOCKOUT_CLIENTS_MAX, "the table is bounded");
    is_number(lockout_left_ms(l, &second, 5), 0, "the oldest failure is forgotten");
    ok_named(lockout_left_ms(l, &first, 5) > 0, "others are not");
    lockout_free(&l);
}

static void
standings(void)
{
    struct lockout *l = lockout_new();
    struct lockout_key key = key_of("192.0.2.1"), other = key_of("192.0.2.2");
    int64_t now = 1000;
    lockout_set_limit(l, 10);
    is_number(lockout_standing(l, &key, now), LOCKOUT_UNKNOWN, "new");
    lockout_passed(l, &key, now);
    is_number(lockout_standing(l, &key, now), LOCKOUT_GOOD, "has logged in");
    is_number(lockout_standing(l, &other, now), LOCKOUT_UNKNOWN, "another has not");
    (void)lockout_failed(l, &key, now + 1);
    is_number(lockout_standing(l, &key, now + 1), LOCKOUT_UNKNOWN, "and failed since");
    lockout_passed(l, &key, now + 2);
    is_number(lockout_standing(l, &key, now + 2), LOCKOUT_GOOD, "and logged in again");
    is_number(lockout_standing(l, &key, now + 2 + LOCKOUT_GOOD_MS), LOCKOUT_GOOD, "known");
    is_number(lockout_standing(l, &key, now + 3 + LOCKOUT_GOOD_MS), LOCKOUT_UNKNOWN,
              "for some hours");
    (void)lockout_failed(l, &other, now);
    is_number(lockout_standing(l, &other, now + LOCKOUT_WINDOW_MS), LOCKOUT_SUSPECT,
              "has failed");
    is_number(lockout_standing(l, &other, now + 1 + LOCKOUT_WINDOW_MS), LOCKOUT_UNKNOWN,
              "long ago");
    for (int i = 0; i < 10; i++)
        (void)lockout_failed(l, &other, now);
    is_number(lockout_standing(l, &other, now + LOCKOUT_MEMORY_MS), LOCKOUT_SUSPECT,
              "was locked out");
    is_number(lockout_standing(l, &other, now + 1 + LOCKOUT_MEMORY_MS), LOCKOUT_UNKNOWN,
              "long ago, too");
    lockout_free(&l);
}

/* The table of those that have logged in does not grow, either. */
static void
many_good(void)
{
    struct lockout *l = lockout_new();
    struct lockout_key first = key_of("203.0.113.1"), second = key_of("203.0.113.2");
    char ip[32];
    lockout_passed(l, &first, 1000);
    lockout_passed(l, &second, 1000);
    lockout_passed(l, &first, 1000);
    for (int i = 0; i < LOCKOUT_GOOD_MAX - 1; i++) {
        snprintf(ip, sizeof(ip), "10.0.%d.%d", i / 256, i % 256);
        struct lockout_key key = key_of(ip);
        lockout_passed(l, &key, 1000);
    }
    is_number(lockout_standing(l, &second, 1000), LOCKOUT_UNKNOWN, "the oldest goes");
    is_number(lockout_standing(l, &first, 1000), LOCKOUT_GOOD, "and no other");
    lockout_free(&l);
}

TEST(names)
{
    static const char *const rows[][2] = {
        {"192.0.2.1",         "192.0.2.1"        },
        {"2001:db8:1:2::7",   "2001:db8:1:2::/64"},
        {"2001:db8:1:2::/64", "2001:db8:1:2::/64"},
        {"uid 1000",          "uid 1000"         },
        {"uid 4294967295",    "uid 4294967295"   },
    };
    static const char *const bad[] = {"", "x", "uid", "uid ", "uid x", "uid 4294967296", "192.0.2.1/64", "192.0.2.1/32", "/64", "192.0.2.1:25", "[::1]", "a.test"};
    struct lockout_key key;
    char out[LOCKOUT_TEXT_MAX];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ok(lockout_key_parse(text_from(rows[i][0]), &key));
        lockout_key_format(&key, out);
        is_string(out, rows[i][1], rows[i][0]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!lockout_key_parse(text_from(bad[i]), &key), bad[i]);
}

TEST(lists_and_forgives)
{
    struct lockout *l = lockout_new();
    struct lockout_key first = key_of("192.0.2.1"), second = key_of("192.0.2.2"), once = key_of("192.0.2.3");
    struct lockout_entry entries[2];
    is_number(lockout_list(l, 0, entries, 2), 0, "an empty list");
    lockout_set_limit(l, 2);
    for (int i = 0; i < 2; i++) {
        (void)lockout_failed(l, &first, 1000);
        (void)lockout_failed(l, &second, 2000);
    }
    (void)lockout_failed(l, &once, 3000);
    is_number(lockout_list(l, 3000, entries, 2), 2, "those that are locked out");
    ok_named(same(entries[0].key, second) && same(entries[1].key, first), "the latest first");
    is_number(entries[0].left_ms, LOCKOUT_FIRST_MS - 1000, "how long");
    is_number(entries[0].lockouts, 1, "how often");
    is_number(lockout_list(l, 3000, entries, 1), 2, "one fits, two are counted");
    is_number(lockout_list(l, 1000 + LOCKOUT_FIRST_MS, entries, 2), 1, "some time later one is over");
    ok(lockout_forgive(l, &first, 3000));
    is_number(lockout_left_ms(l, &first, 3000), 0, "it is forgiven");
    ok_named(!lockout_forgive(l, &first, 3000) && !lockout_forgive(l, &once, 3000), "others were not locked out");
    is_number(lockout_failed(l, &once, 3000).failures, 1, "their failures are forgotten, too");
    is_number(lockout_list(l, 3000, entries, 2), 1, "one is left");
    lockout_set_limit(l, 0);
    is_number(lockout_list(l, 3000, entries, 2), 0, "without a limit none is locked out");
    lockout_free(&l);
}

int
main(void)
{
    tap_tests("");
    locks();
    crowd();
    standings();
    many_good();
    return done();
}
