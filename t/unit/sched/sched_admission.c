/* The limit of recipients in memory: what is beyond it waits on disk, in order, and
 * nothing starves. */
#include "t/support/sched_world.h"

enum { MESSAGES = 6000, LIMIT = 800, OWN = 100 /* for messages of one recipient */ };

/* Messages with numbers in their order of arrival. A loaded message stays so until the
 * test ends it: only the room it takes matters here. */
struct disk {
    struct sched *s;
    int64_t now;
    unsigned count;
    struct message {
        unsigned recipients, loads;
        bool in_memory, gone;
    } messages[MESSAGES];
    unsigned order[MESSAGES], arrived; /* in the order in which they came to memory */
    size_t recipients, most;           /* in memory; at any time */
};

static void
begin(struct disk *d, int limit)
{
    memset(d, 0, sizeof(*d));
    d->now = INT64_C(1700000000000);
    d->s = sched_new(&(struct sched_settings){
        .active_limit = 100000, .recipient_limit = limit, .session_limit = 10}, &d->now);
}

static struct id
id_at(const struct disk *d, unsigned number)
{
    return (struct id){(uint64_t)d->now + number, number};
}

static unsigned
arrive(struct disk *d, unsigned recipients, bool known)
{
    unsigned number = d->count++;
    d->messages[number].recipients = recipients;
    sched_add(d->s, id_at(d, number), d->now, 0);
    if (known)
        sched_weigh(d->s, id_at(d, number), recipients);
    return number;
}

static void
arrive_all(struct disk *d, unsigned count, unsigned recipients, bool known)
{
    while (count-- > 0)
        (void)arrive(d, recipients, known);
}

static void
run(struct disk *d)
{
    struct sched_action a;
    while (sched_next(d->s, &a)) {
        struct message *m = &d->messages[a.id.hash];
        world_must(a.verb == SCHED_LOAD && !m->in_memory && !m->gone, "it was on disk");
        m->loads++;
        if (!sched_admit(d->s, a.id, m->recipients))
            continue;
        m->in_memory = true;
        d->order[d->arrived++] = (unsigned)a.id.hash;
        d->recipients += m->recipients;
        d->most = d->recipients > d->most ? d->recipients : d->most;
    }
    world_must(sched_count(d->s).recipients == d->recipients,
               "it counts what is there");
    world_must(sched_wake_ms(d->s) == INT64_MAX, "only events make room");
}

static void
leave(struct disk *d, unsigned number)
{
    struct message *m = &d->messages[number];
    world_must(m->in_memory, "it is in memory");
    m->in_memory = false;
    m->gone = true;
    d->recipients -= m->recipients;
    sched_unloaded(d->s, id_at(d, number));
}

static unsigned
in_memory(const struct disk *d)
{
    unsigned count = 0;
    for (unsigned i = 0; i < d->count; i++)
        count += d->messages[i].in_memory;
    return count;
}

/* Until none is left: each time the one that came first leaves. */
static void
finish(struct disk *d)
{
    for (unsigned i = 0; i < d->arrived; i++) {
        if (d->messages[d->order[i]].in_memory)
            leave(d, d->order[i]);
        run(d);
    }
    is_number(d->arrived, d->count, "all of them come");
    is_number(d->recipients, 0, "and leave");
}

static bool
is_in_order(const struct disk *d)
{
    for (unsigned i = 1; i < d->arrived; i++)
        if (d->order[i] < d->order[i - 1])
            return false;
    return true;
}

static void
end(struct disk *d)
{
    sched_free(&d->s);
}

TEST(large)
{
    static struct disk d;
    begin(&d, LIMIT);
    arrive_all(&d, 20, 100, true);
    run(&d);
    is_number(in_memory(&d), 7, "as many as there is room for, but for small mail's");
    is_number(sched_count(d.s).recipients, 700, "so many recipients");
    is_number(sched_count(d.s).recipient_limit, LIMIT, "of so many");
    is_number(sched_count(d.s).incoming, 13, "the others are on disk");
    leave(&d, 3);
    run(&d);
    is_number(in_memory(&d), 7, "one leaves, one comes");
    finish(&d);
    ok_named(is_in_order(&d), "in their order");
    ok_named(d.most <= LIMIT, "never more than the limit");
    is_number(d.messages[19].loads, 1, "none is read to be put back");
    end(&d);
}

TEST(small)
{
    static struct disk d;
    begin(&d, LIMIT);
    arrive_all(&d, 1000, 1, true);
    run(&d);
    is_number(in_memory(&d), LIMIT, "small mail alone has all of the limit");
    finish(&d);
    ok_named(is_in_order(&d), "and comes in its order");
    is_number(d.most, LIMIT, "never more than the limit");
    end(&d);
}

TEST(passing)
{
    static struct disk d;
    begin(&d, LIMIT);
    arrive_all(&d, 10, 100, true);
    arrive_all(&d, 150, 1, true);
    run(&d);
    is_number(in_memory(&d), 7 + OWN, "small mail passes, up to its part");
    ok_named(!d.messages[7].in_memory && d.messages[10].in_memory,
             "it passes large mail");
    ok_named(!sched_has_room(d.s, 1), "for more there is no room now");
    leave(&d, 10);
    run(&d);
    is_number(in_memory(&d), 7 + OWN, "small mail for small mail");
    ok(!d.messages[7].in_memory);
    leave(&d, 0);
    run(&d);
    ok_named(d.messages[7].in_memory, "large mail for large mail");
    finish(&d);
    ok_named(d.most <= LIMIT, "never more than the limit");
    end(&d);
}

/* For each small message that leaves another comes, for ever. */
TEST(no_starvation)
{
    static struct disk d;
    unsigned left = 0;
    begin(&d, LIMIT);
    arrive_all(&d, LIMIT, 1, true);
    run(&d);
    unsigned large = arrive(&d, 500, true);
    while (!d.messages[large].in_memory && left < MESSAGES - LIMIT - 2) {
        leave(&d, d.order[left++]);
        (void)arrive(&d, 1, true);
        run(&d);
    }
    is_number(left, 500, "it waits only for those that were there");
    ok_named(d.most <= LIMIT, "never more than the limit");
    finish(&d);
    end(&d);
}

TEST(larger_than_the_limit)
{
    static struct disk d;
    begin(&d, LIMIT);
    unsigned other = arrive(&d, 300, true), huge = arrive(&d, 5000, true),
             next = arrive(&d, 200, true);
    run(&d);
    ok_named(d.messages[other].in_memory && !d.messages[huge].in_memory,
             "it waits while other large mail is in memory");
    ok_named(!d.messages[next].in_memory && !sched_has_room(d.s, 200),
             "what came later waits behind it");
    leave(&d, other);
    arrive_all(&d, 150, 1, true);
    run(&d);
    ok_named(d.messages[huge].in_memory, "then it comes");
    is_number(in_memory(&d), 1 + OWN, "with the small mail's part beside it");
    ok_named(!d.messages[next].in_memory, "but no large mail");
    finish(&d);
    is_number((long)d.most, 5000 + OWN, "the limit is exceeded by it alone");
    end(&d);
}

TEST(unknown)
{
    static struct disk d;
    unsigned most = 0, loads = 0;
    begin(&d, LIMIT);
    arrive_all(&d, 50, 100, false);
    run(&d);
    is_number(in_memory(&d), 7, "what turns out too large goes back to disk");
    ok_named(d.most <= LIMIT, "never more than the limit");
    for (unsigned i = 0; i < 50; i++) /* nothing leaves */
        run(&d);
    for (unsigned i = 0; i < d.count; i++)
        loads += d.messages[i].loads;
    is_number(loads, 50, "it is not read again without room");
    finish(&d);
    for (unsigned i = 0; i < d.count; i++)
        most = d.messages[i].loads > most ? d.messages[i].loads : most;
    is_number(most, 2, "but once, when it stays");
    ok(is_in_order(&d));
    end(&d);
}

/* Its number is not known, and it is small: it keeps its place before those that are due
 * with it. */
TEST(unknown_small)
{
    static struct disk d;
    begin(&d, 8000); /* small: up to ten */
    arrive_all(&d, 1200, 10, false);
    run(&d);
    is_number(sched_count(d.s).recipients, 8000, "the whole limit");
    finish(&d);
    ok(d.most <= 8000);
    end(&d);
}

TEST(long_line)
{
    static struct disk d;
    begin(&d, LIMIT);
    arrive_all(&d, MESSAGES - 1, 350, true);
    (void)arrive(&d, 1, true);
    run(&d);
    is_number(in_memory(&d), 2, "two of them have room");
    is_number(sched_ahead(d.s, id_at(&d, 10)), 8, "so many stand before the next");
    ok_named(!d.messages[MESSAGES - 1].in_memory,
             "small mail waits behind a full line");
    finish(&d);
    unsigned small = 0;
    while (d.order[small] != MESSAGES - 1)
        small++;
    ok_named(small < MESSAGES - 4000, "until the line has an end");
    end(&d);
}

TEST(commands)
{
    static struct disk d;
    begin(&d, LIMIT);
    arrive_all(&d, 6, 350, true);
    run(&d);
    struct sched_state state = sched_find(d.s, id_at(&d, 3));
    ok_named(state.place == SCHED_INCOMING && state.lacks_room && !state.excess,
             "it waits for room");
    is_number(state.due_ms, d.now, "and is due");
    ok(!sched_find(d.s, id_at(&d, 0)).lacks_room);
    ok_named(sched_retry(d.s, id_at(&d, 3)), "a retry");
    sched_retry_all(d.s);
    run(&d);
    is_number(in_memory(&d), 2, "makes no room");
    ok_named(sched_find(d.s, id_at(&d, 3)).lacks_room, "it stands in line as before");
    is_number(sched_ahead(d.s, id_at(&d, 3)), 1, "at its place");
    ok_named(sched_forget(d.s, id_at(&d, 2)), "the one before it is held");
    d.messages[2].gone = true;
    is_number(sched_ahead(d.s, id_at(&d, 3)), 0, "and stands in no line");
    leave(&d, 0);
    run(&d);
    ok(d.messages[3].in_memory);
    sched_change(d.s, &(struct sched_settings){.active_limit = 100000,
                                               .recipient_limit = 4 * LIMIT,
                                               .session_limit = 10});
    run(&d);
    is_number(in_memory(&d), 4, "a larger limit lets all in");
    sched_change(d.s, &(struct sched_settings){.active_limit = 100000,
                                               .recipient_limit = 1,
                                               .session_limit = 10});
    (void)arrive(&d, 2, true);
    (void)arrive(&d, 1, true);
    run(&d);
    is_number(in_memory(&d), 5, "with the least limit small mail still has its part");
    leave(&d, 1);
    leave(&d, 3);
    leave(&d, 4);
    leave(&d, 5);
    run(&d);
    is_number(in_memory(&d), 2, "and large mail comes when all large mail has left");
    sched_change(d.s,
                 &(struct sched_settings){.active_limit = 100000, .session_limit = 10});
    arrive_all(&d, 10, 5000, false);
    run(&d);
    is_number(in_memory(&d), 12, "without a limit all come");
    end(&d);
}

/* It is not in line, and is not read before it either. */
TEST(behind_small)
{
    static struct disk d;
    begin(&d, 1);
    arrive_all(&d, 2, 1, true);
    (void)arrive(&d, 2, true);
    run(&d);
    is_number(in_memory(&d), 1, "there is room for one");
    ok_named(sched_find(d.s, id_at(&d, 1)).lacks_room &&
                 sched_find(d.s, id_at(&d, 2)).lacks_room,
             "both others lack room: the second stands behind the first");
    finish(&d);
    end(&d);
}

/* Held and released, it stands in line anew. */
TEST(many_commands)
{
    static struct disk d;
    begin(&d, LIMIT);
    arrive_all(&d, 5, 350, true);
    run(&d);
    for (int i = 0; i < 10000; i++) {
        world_must(sched_forget(d.s, id_at(&d, 3)), "it is held");
        sched_add(d.s, id_at(&d, 3), d.now, 0);
        sched_weigh(d.s, id_at(&d, 3), 350);
        run(&d);
    }
    is_number(in_memory(&d), 2, "it waits");
    (void)arrive(&d, 1, true);
    run(&d);
    ok_named(d.messages[5].in_memory, "the line is not full of it");
    ok_named(sched_ahead(d.s, id_at(&d, 4)) <= 2, "nor does it delay the others");
    finish(&d);
    end(&d);
}

/* The number is kept while deferred mail waits for its next attempt. */
TEST(deferred)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 1);
    sched_change(w.s, &(struct sched_settings){.active_limit = 100,
                                               .session_limit = 1,
                                               .recipient_limit = 10});
    for (int i = 0; i < 5; i++)
        (void)world_add(&w, "a.test a.test a.test a.test", 0, 0);
    world_run(&w);
    is_number(w.loads, 2, "two have room");
    for (struct channel *c; w.waits < 5 && (c = world_channel(&w, "", 0));) {
        channel_take(&w, c);
        channel_answer(&w, c, VERDICT_DEFERRED, BLAME_MESSAGE);
    }
    is_number(w.waits, 5, "all are deferred");
    is_number((long)sched_count(w.s).recipients, 0, "and leave memory");
    unsigned loads = w.loads;
    world_pass(&w, INT64_C(3600) * 1000);
    is_number(w.loads, loads + 2, "two come again, the others are not read");
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
    is_number(w.finishes, 5, "all are delivered");
}

/* Large mail for a site that is slow leaves room for that of another, and mail that was
 * recalled does not take it back. */
static void
test_share(int share, unsigned of_slow, unsigned of_other)
{
    unsigned slow = 0, other = 0;
    FIXTURE(world, w, sched_world_start, sched_world_end, 10000, 10);
    sched_change(w.s, &(struct sched_settings){.active_limit = 10000,
                                               .session_limit = 10,
                                               .site_share = share,
                                               .recipient_limit = 160});
    for (int i = 0; i < 40; i++)
        (void)world_add(&w, "a.test a.test a.test a.test a.test a.test a.test a.test", 0,
                        0);
    for (int i = 0; i < 5; i++)
        (void)world_add(&w, "b.test b.test b.test b.test b.test b.test b.test b.test", 0,
                        0);
    world_run(&w);
    for (unsigned i = 0; i < w.count; i++)
        *(i < 40 ? &slow : &other) += w.mails[i].loaded;
    is_number(slow, of_slow, "of the slow site");
    is_number(other, of_other, "of the other one");
    ok(sched_count(w.s).recipients <= 160);
    for (struct channel *c; (c = world_channel(&w, "b.test", 0));)
        channel_drain(&w, c);
    world_run(&w);
    slow = 0;
    for (unsigned i = 0; i < 40; i++)
        slow += w.mails[i].loaded;
    is_number(slow, of_slow, "not more of it later");
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
    is_number(w.finishes, 45, "all are delivered");
}

static unsigned
draw(uint64_t *state, unsigned below)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(*state >> 33) % below;
}

/* Sizes, arrivals and ends at random: the limit holds, large mail keeps its order, and
 * all of it comes. */
static void
test_random(void)
{
    static struct disk d;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t random = seed;
        int limit = 1 + (int)draw(&random, 2000);
        unsigned largest = 2 + draw(&random, (unsigned)limit * 3 / 2);
        begin(&d, limit);
        for (int i = 0; i < 2000; i++) {
            if (draw(&random, 2) && d.count < 1000)
                (void)arrive(&d, 1 + draw(&random, draw(&random, 2) ? 2 : largest),
                             draw(&random, 3) > 0);
            unsigned which = d.arrived ? d.order[draw(&random, d.arrived)] : 0;
            if (d.arrived && d.messages[which].in_memory)
                leave(&d, which);
            run(&d);
        }
        finish(&d);
        size_t own = limit >= 16 ? (size_t)limit / 8 : 1;
        size_t most = largest > (size_t)limit - own ? largest + own : (size_t)limit;
        ok_named(d.most <= most, "the limit holds");
        for (unsigned i = 0; i < d.count; i++)
            world_must(d.messages[i].loads <= 2, "none is read three times");
        end(&d);
    }
}

int
main(void)
{
    tap_tests("");
    test_share(50, 11, 5);
    test_share(0, 17, 0);
    test_random();
    return done();
}
