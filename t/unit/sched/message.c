/* Messages: recipients by destination, expiry, delays of several transports. */
#include "sched/message.h"

#include "t/support/message_now.h"
#include "t/support/sched_world.h"

static void
expire_after(int64_t lifetime, int64_t bounce_lifetime, bool null_sender, int64_t age,
             bool expected, const char *name)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 10, 10);
    w.target.transport.lifetime_ms = lifetime;
    w.target.transport.bounce_lifetime_ms = bounce_lifetime;
    unsigned mail = world_add(&w, "a.example a.example", 0, 0);
    w.mails[mail].null_sender = null_sender;
    w.mails[mail].birth -= age;
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    channel_take(&w, c);
    struct outcome good =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    struct outcome full =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 452, "4.2.2", "mailbox full");
    snprintf(full.remote, sizeof(full.remote), "mx[192.0.2.1]:25");
    channel_settle(&w, c, 0, &good);
    channel_settle(&w, c, 1, &full);
    world_run(&w);
    const struct outcome *last = w.mails[mail].to[1].last;
    ok_named((w.mails[mail].to[1].fate == FATE_EXPIRED) == expected, name);
    ok_named(w.mails[mail].to[0].fate == FATE_SENT, "who was delivered stays so");
    if (expected) {
        ok_named(w.finishes == 1 && w.waits == 0, "the message is finished");
        ok_named(last->verdict == VERDICT_FAILED && last->code == 452 &&
                     !strcmp(last->enhanced, "4.2.2") &&
                     !strcmp(last->text, "mailbox full") &&
                     !strcmp(last->remote, "mx[192.0.2.1]:25") &&
                     last->blame == BLAME_MESSAGE,
                 "with its last outcome as it was, but FAILED");
    } else {
        ok_named(w.finishes == 0 && w.waits == 1, "the message waits");
    }
}

TEST(expiry)
{
    const int64_t day = 86400000;
    expire_after(5 * day, 5 * day, false, 5 * day - 1, false,
                 "just before its lifetime");
    expire_after(5 * day, 5 * day, false, 5 * day, true, "at its lifetime");
    expire_after(0, 0, false, 0, true, "lifetime 0: the first deferral");
    expire_after(0, 0, false, -5000, true, "even of mail born in the future");
    expire_after(5 * day, day, true, day, true, "the null sender's lifetime");
    expire_after(5 * day, day, false, day, false, "is not that of others");
    expire_after(day, 5 * day, true, day, true, "and never longer than theirs");
    expire_after(5 * day, 5 * day, false, INT64_C(1700000000000) + 9, true,
                 "a birth before 1970 is old, not an overflow");
}

TEST(dead_expiry)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.lifetime_ms = 1000000;
    world_add(&w, "dead.example dead.example", 0, 0);
    for (int i = 0; i < 20 && !w.finishes; i++) {
        world_run(&w);
        struct channel *c = world_channel(&w, "", 0);
        if (c)
            channel_refuse(&w, c);
        world_pass(&w, 100000);
    }
    is_number(w.finishes, 1, "mail for a dead site expires in the end");
    ok(w.mails[0].to[0].fate == FATE_EXPIRED && w.mails[0].to[1].fate == FATE_EXPIRED);
    ok(w.now - w.mails[0].birth >= 1000000);
    ok_named(w.mails[0].rounds == 4, "after attempts at 0, 300, 600 and 1200 s or so");
}

TEST(attempt_times)
{
    static const int64_t want_s[] = {0, 300, 600, 1200, 2400, 4800, 8800, 12800};
    int64_t start;
    bool good = true;
    FIXTURE(world, w, sched_world_start, sched_world_end, 10, 10);
    world_add(&w, "a.example", 0, 0);
    start = w.now;
    for (size_t i = 0; i < sizeof(want_s) / sizeof(*want_s); i++) {
        int64_t age = w.now - start;
        good &= age >= want_s[i] * 1000 && age <= want_s[i] * 1000 * 175 / 100;
        world_run(&w);
        struct channel *c = world_channel(&w, "", 0);
        good &= channel_take(&w, c);
        channel_answer(&w, c, VERDICT_DEFERRED, BLAME_MESSAGE);
        good &= w.mails[0].attempts == i + 1;
        channel_take(&w, c);
        w.now = w.mails[0].due;
    }
    ok_named(good,
             "B.6: attempts at 0, 300, 600, 1200, 2400, 4800, 8800 s, and jitter");
}

static struct sched_recipient
to(unsigned index, const struct target *target, const char *domain)
{
    return (struct sched_recipient){index, target, text_from(domain), 0};
}

TEST(sorting)
{
    struct target quick = {.kind = TARGET_MX, .tls = TARGET_TLS_MAY},
                  slow = {.kind = TARGET_MAILDIR};
    transport_params_default(&quick.transport);
    transport_params_default(&slow.transport);
    slow.transport.minimal_backoff_ms = 900000;
    slow.transport.lifetime_ms = 1000;
    FIXTURE(destinations, set, destinations_init, destinations_free, 1);
    const struct sched_recipient recipients[] = {
        to(10, &quick, "a.example"), to(11, &slow, "b.example"),
        to(12, &quick, "c.example"), to(13, &quick, "A.example"),
        to(14, &slow, "c.example"),  to(15, &quick, "a.example")};
    struct sched_message *m =
        message_new(&set, &(struct sched_mail){.birth_ms = 5000}, recipients, 6, 0);
    struct entry *entries = message_entries(m);
    is_number(m->entry_count, 3, "three destinations");
    static const unsigned order[] = {10, 13, 15, 11, 14, 12};
    bool good = true;
    for (unsigned i = 0; i < 6; i++)
        good &= m->slots[i].index == order[i] && m->slots[i].state == SLOT_WAITING;
    ok_named(good, "recipients of one stand together, in their order");
    ok(entries[0].count == 3 && entries[1].count == 2 && entries[2].count == 1);
    ok(entries[1].first == 3 && entries[2].first == 5);
    for (unsigned i = 0; i < 3; i++)
        is_number(entries[i].destination->entries, 1, "counted once in each");

    struct destination *maildir = entries[1].destination;
    struct outcome full = world_trouble(VERDICT_DEFERRED, "quota"), got;
    message_settle(m, 3, reason_open(&maildir->reasons, &full));
    for (unsigned i = 0; i < 6; i++)
        if (i != 3 && i != 0)
            message_settle(m, i, NULL);
    message_settle(m, 0, reason_open(&entries[0].destination->reasons, &full));
    ok(m->unsettled == 0);
    bool counts;
    is_number(message_delay_ms(m, 5500, &counts), 300000,
              "the shorter of two transports' delays");
    unsigned index;
    ok_named(!message_expire(m, 5500, &index, &got), "nobody has expired");
    ok(counts);
    m->looked = 0;
    ok_named(message_expire(m, 6000, &index, &got) && index == 11,
             "each by the lifetime of its own transport");
    ok(!message_expire(m, 6000, &index, &got));
    ok_named(message_delay_ms(m, 6000, &counts) == 300000, "the other waits on");
    message_free(&set, &m, 6000);
    ok(m == NULL);
    is_number(maildir->entries, 0, "released");
}

TEST(same_index)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 10, 10);
    world_add(&w, "a.example a.example a.example a.example a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    struct outcome good =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    static const size_t order[] = {3, 0, 4, 2, 1};
    channel_take(&w, c);
    for (int i = 0; i < 5; i++)
        channel_settle(&w, c, order[i], &good);
    world_run(&w);
    is_number(w.finishes, 1, "verdicts may come in any order");
    ok_named(c->work.indexes[0] == 0 && c->work.indexes[4] == 4,
             "the indexes outlive the message");
}

static unsigned
take_turns(struct sched *s)
{
    unsigned turns = 1;
    while (sched_work(s))
        turns++;
    return turns;
}

TEST(many_recipients)
{
    enum { MANY = 50000 };
    int64_t now = 1000;
    struct sched *s = sched_new(&(struct sched_settings){
        .active_limit = 10, .session_limit = 10000, .seed = 1}, &now);
    struct target target = {.kind = TARGET_MX, .tls = TARGET_TLS_MAY};
    struct sched_recipient *recipients = memory_array(MANY, sizeof(*recipients));
    char(*domains)[24] = memory_array(MANY, sizeof(*domains));
    struct sched_action a;
    unsigned settled = 0, opens = 0;
    transport_params_default(&target.transport);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(domains[i], sizeof(*domains), "d%u.example", i % 5000);
        recipients[i] = to(i, &target, domains[i]);
    }
    sched_add(s, (struct id){1, 1}, 0, 0);
    bool finished = false;
    struct outcome nowhere = world_trouble(VERDICT_FAILED, "no such domain");
    while (!finished && sched_next(s, &a)) {
        switch (a.verb) {
        case SCHED_LOAD:
            sched_loaded_now(s, a.id, &(struct sched_mail){0}, recipients, MANY);
            is_number(take_turns(s), 5000 / SCHED_ENTRIES_PER_TURN,
                      "its destinations get it in so many turns");
            break;
        case SCHED_OPEN:
            opens++;
            sched_session_ended(s, a.session, &nowhere);
            break;
        case SCHED_SETTLE:
            settled += a.outcome->verdict == VERDICT_FAILED;
            break;
        case SCHED_WAIT:
            abort();
        case SCHED_FINISH:
            finished = true;
            break;
        }
    }
    ok_named(finished, "a message with 50000 recipients in 5000 domains");
    is_number(opens, 5000, "one session a domain");
    is_number(settled, MANY, "and a verdict each");
    is_number(take_turns(s), 5000 / SCHED_ENTRIES_PER_TURN,
              "they forget it in as many");
    sched_free(&s);
    free(recipients);
    free(domains);
}

/* A loading that comes to nothing leaves nothing at its destinations. */
TEST(loading_dropped)
{
    int64_t now = 1000;
    struct sched *s = sched_new(&(struct sched_settings){
        .active_limit = 10, .session_limit = 10000, .seed = 1}, &now);
    struct target target = {.kind = TARGET_MX, .tls = TARGET_TLS_MAY};
    struct sched_recipient recipients[] = {to(0, &target, "a.example"),
                                           to(1, &target, "b.example"),
                                           to(2, &target, "a.example")};
    struct sched_action a;
    transport_params_default(&target.transport);
    sched_add(s, (struct id){1, 1}, 0, 0);
    ok(sched_next(s, &a) && a.verb == SCHED_LOAD);
    struct sched_loading *l = sched_loading_new(3);
    for (unsigned i = 0; i < 3; i++)
        sched_loading_add(s, l, &recipients[i]);
    sched_loading_drop(s, &l);
    ok(l == NULL);
    sched_loading_drop(s, &l);
    sched_unloaded(s, a.id);
    ok_named(!sched_next(s, &a), "nothing is to be done");
    /* An end with something there would be an assertion. */
    sched_free(&s);
}

/* An end while it enters its destinations, or leaves them. */
TEST(end_in_between)
{
    enum { COUNT = 3 * SCHED_ENTRIES_PER_TURN };
    struct target target = {.kind = TARGET_MX, .tls = TARGET_TLS_MAY};
    struct sched_recipient *recipients = memory_array(COUNT, sizeof(*recipients));
    char(*domains)[24] = memory_array(COUNT, sizeof(*domains));
    transport_params_default(&target.transport);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(domains[i], sizeof(*domains), "d%u.example", i);
        recipients[i] = to(i, &target, domains[i]);
    }
    struct outcome nowhere = world_trouble(VERDICT_FAILED, "no such domain");
    for (unsigned turns = 0; turns < 7; turns++) {
        int64_t now = 1000;
        struct sched *s = sched_new(&(struct sched_settings){
            .active_limit = 10, .session_limit = 10000, .seed = 1}, &now);
        struct sched_action a;
        unsigned ended = 0;
        sched_add(s, (struct id){1, 1}, 0, 0);
        ok(sched_next(s, &a) && a.verb == SCHED_LOAD);
        sched_loaded_now(s, a.id, &(struct sched_mail){0}, recipients, COUNT);
        for (unsigned i = 0; i < turns; i++) {
            (void)sched_work(s);
            while (sched_next(s, &a))
                if (a.verb == SCHED_OPEN)
                    sched_session_ended(s, a.session, &nowhere);
                else
                    ended += a.verb == SCHED_FINISH;
        }
        is_number(ended, turns >= 3, "it ends when it has entered all of them");
        sched_free(&s);
    }
    free(recipients);
    free(domains);
}

TEST(free_in_flight)
{
    struct world w;
    sched_world_start(&w, 100, 100);
    for (int i = 0; i < 10; i++)
        world_add(&w, "a.example b.example b.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    channel_take(&w, c);
    struct outcome full = world_trouble(VERDICT_DEFERRED, "full");
    channel_settle(&w, c, 0, &full);
    channel_take(&w, world_channel(&w, "a.example", 1));
    struct outcome refused = world_trouble(VERDICT_DEFERRED, "refused");
    sched_session_ended(w.s, world_channel(&w, "b.example", 0)->session,
                        &refused);
    sched_world_end(&w);
    ok_named(w.s == NULL, "freed in the middle of everything (the sanitizers watch)");
}

/* Recipients with another sender are a work of their own, though they go to the same
 * destination. */
TEST(groups)
{
    struct target target = {.kind = TARGET_MX, .tls = TARGET_TLS_MAY};
    transport_params_default(&target.transport);
    FIXTURE(destinations, set, destinations_init, destinations_free, 1);
    struct sched_recipient recipients[] = {
        to(10, &target, "a.example"), to(11, &target, "b.example"),
        to(12, &target, "a.example"), to(13, &target, "a.example"),
        to(14, &target, "a.example"), to(15, &target, "b.example")};
    recipients[2].group = recipients[4].group = recipients[5].group = 2;
    recipients[3].group = 1;
    struct sched_message *m =
        message_new(&set, &(struct sched_mail){.birth_ms = 5000}, recipients, 6, 0);
    struct entry *entries = message_entries(m);
    static const unsigned order[] = {10, 11, 13, 12, 14, 15};
    static const unsigned counts[] = {1, 1, 1, 2, 1};
    bool good = m->entry_count == 5;
    for (unsigned i = 0, first = 0; good && i < 5; first += counts[i], i++)
        good = entries[i].count == counts[i] && entries[i].first == first;
    ok_named(good, "an entry for each destination and group");
    for (unsigned i = 0; i < 6; i++)
        good &= m->slots[i].index == order[i];
    ok_named(good, "recipients of one stand together");
    is_number(entries[0].destination->entries, 3, "counted once for each entry");
    is_number(entries[1].destination->entries, 2, "at the other, too");
    ok(entries[0].destination == entries[3].destination);
    for (unsigned i = 0; i < 6; i++)
        message_settle(m, i, NULL);
    message_free(&set, &m, 0);
}
