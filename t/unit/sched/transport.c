/* Transports: one for each target with its settings, and the pauses of a transport. */
#include "sched/transport.h"

#include "t/support/tap.h"

static struct target
target_of(int concurrency)
{
    struct target target;
    memset(&target, 0, sizeof(target));
    target.kind = TARGET_MX;
    target.tls = TARGET_TLS_MAY;
    transport_params_default(&target.transport);
    target.transport.concurrency_limit = concurrency;
    return target;
}

TEST(sharing)
{
    struct transports set = {0};
    struct target one = target_of(10), same = target_of(10), other = target_of(11);
    struct transport *a = transport_open(&set, &one), *b = transport_open(&set, &other);
    ok_named(transport_open(&set, &same) == a, "the same target is one transport");
    ok_named(a != b, "another setting makes another");
    ok_named(transport_share(a) == a, "one more holder");
    is_number(HASH_COUNT(set.by_target), 2, "two of them");
    ok_named(!memcmp(&a->target, &one, sizeof(one)), "the target is copied");
    memset(&one, 1, sizeof(one));
    ok_named(!memcmp(&a->target, &same, sizeof(same)), "and is its own");
    transport_close(&set, a);
    transport_close(&set, a);
    is_number(HASH_COUNT(set.by_target), 2, "it lives while one holds it");
    is_number(a->holders, 1, "the last");
    transport_close(&set, a);
    is_number(HASH_COUNT(set.by_target), 1, "and ends with him");
    struct transport *again = transport_open(&set, &same);
    ok_named(again->holders == 1 && again->sessions == 0, "it may come again, as new");
    transport_close(&set, again);
    transport_close(&set, b);
    ok_named(!set.by_target, "all are gone");
}

TEST(no_delay)
{
    struct transports set = {0};
    struct target target = target_of(10);
    struct transport *c = transport_open(&set, &target);
    for (int i = 0; i < 3; i++)
        transport_begin(c, 1000);
    ok_named(!transport_pauses(c, 1000), "no delay, no pause, whatever runs");
    is_number(c->carrying, 3, "three run");
    for (int i = 0; i < 3; i++)
        transport_end(c);
    ok(c->carrying == 0 && c->pause_until_ms == 0);
    transport_close(&set, c);
}

TEST(delay)
{
    struct transports set = {0};
    struct target target = target_of(10);
    target.transport.transport_rate_delay_ms = 5000;
    struct transport *c = transport_open(&set, &target);
    ok_named(!transport_pauses(c, 0), "the first one may begin at any time");
    transport_begin(c, 100000);
    ok_named(transport_pauses(c, 100000), "then one at a time");
    transport_end(c);
    ok_named(transport_pauses(c, 104999), "and a pause from its beginning");
    ok_named(!transport_pauses(c, 105000), "to that of the next");
    transport_begin(c, 105000);
    ok_named(transport_pauses(c, 200000), "one that takes longer is waited for");
    transport_end(c);
    ok_named(!transport_pauses(c, 200000), "and nothing more");
    transport_close(&set, c);
}

/* The limit of an account keeps the transport, even if all destinations leave it. */
TEST(quota)
{
    struct transports set = {0};
    struct target target;
    memset(&target, 0, sizeof(target));
    struct transport *c = transport_open(&set, &target);
    transport_quota_used_up(c, 1000, 0);
    ok_named(transport_pauses(c, 3600999) && !transport_pauses(c, 3601000), "an hour");
    transport_quota_used_up(c, 2000, 7000000);
    is_number(c->quota_until_ms, 3601000, "a further refusal meanwhile does not count");
    transport_close(&set, c);
    is_number((long)HASH_COUNT(set.by_target), 1, "it stays");
    transport_quota_used_up(c, 3601000, 0);
    is_number(c->quota_until_ms, 3601000 + 7200000, "then two hours");
    transport_quota_end(&set, c);
    ok_named(set.by_target == NULL && set.last == NULL, "mail that passed ends it");
}
