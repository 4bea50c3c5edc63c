/* Turns over senders: fair shares, classes, costs, newcomers, jobs within, taking off.
 */
#include "sched/flow.h"

#include "base/memory.h"
#include "t/support/message_now.h"
#include "t/support/tap.h"

#include <utlist.h>

enum { LETTERS_MAX = 4000, RECIPIENTS_MAX = 200 };

struct post {
    struct destinations set;
    struct flows flows;
    struct flow_queue q;
    struct target target;
    struct sched_message *letters[LETTERS_MAX]; /* the owner is their number */
    unsigned count;
};

static struct post post;

static void
start(void)
{
    memset(&post, 0, sizeof(post));
    destinations_init(&post.set, 1);
    flow_queue_init(&post.q);
    post.target.kind = TARGET_MX;
    post.target.tls = TARGET_TLS_MAY;
    transport_params_default(&post.target.transport);
}

static void
finish(void)
{
    struct entry *rest = NULL;
    flow_queue_take(&post.flows, &post.q, NULL, &rest);
    ok_named(post.q.recipients == 0 && !post.flows.by_key,
             "nothing waits, no flow is left");
    flow_queue_free(&post.q);
    for (unsigned i = 0; i < post.count; i++)
        message_free(&post.set, &post.letters[i], 0);
    destinations_free(&post.set);
}

struct client_transaction {
    uint64_t sender;
    enum sched_class class;
    unsigned recipients; /* 0: one */
    uint64_t size;
    const char *domain; /* NULL: a.example */
    unsigned attempts;
};

/* Waits in the queue; returns its number. */
static unsigned
append_at(struct client_transaction l, uint32_t job_s)
{
    struct sched_recipient to[RECIPIENTS_MAX];
    struct sched_mail mail = {.owner = (void *)(uintptr_t)post.count,
                              .sender = l.sender,
                              .class = l.class,
                              .size = l.size};
    unsigned count = l.recipients ? l.recipients : 1;
    for (unsigned i = 0; i < count; i++)
        to[i] = (struct sched_recipient){
            i, &post.target, text_from(l.domain ? l.domain : "a.example"), 0};
    struct sched_message *m = message_new(&post.set, &mail, to, count, 0);
    struct entry *e = message_entries(m);
    m->attempts = l.attempts & 0xffffff;
    e->job.since_s = job_s;
    flow_queue_append(&post.flows, &post.q, e);
    post.letters[post.count] = m;
    return post.count++;
}

static unsigned
append(struct client_transaction l)
{
    return append_at(l, 0);
}

static unsigned cut_first, cut_count, most;

/* Serves one transaction; returns its letter. */
static unsigned
serve_at(uint32_t job_s)
{
    struct entry *e = flow_queue_cut(&post.flows, &post.q, most, &post.target.transport,
                                     job_s, &cut_first, &cut_count);
    return (unsigned)(uintptr_t)e->message->owner;
}

static unsigned
serve(void)
{
    return serve_at(0);
}

/* The senders of the next count transactions, as letters from 'A' for 1. */
static const char *
served(unsigned count)
{
    static char text[LETTERS_MAX];
    for (unsigned i = 0; i < count; i++)
        text[i] = (char)('A' + (post.letters[serve()]->sender >> 2) - 1);
    text[count] = '\0';
    return text;
}

static unsigned
count_of(const char *text, char c)
{
    unsigned count = 0;
    for (; *text; text++)
        count += *text == c;
    return count;
}

static void
append_many(struct client_transaction l, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        append(l);
}

TEST(one_sender)
{
    start();
    ok_named(!flow_queue_first(&post.q), "nothing waits");
    append_many((struct client_transaction){.sender = 1}, 10);
    is_number(post.q.recipients, 10, "ten wait");
    bool in_order = true;
    for (unsigned i = 0; i < 10; i++) {
        in_order &= flow_queue_first(&post.q) == message_entries(post.letters[i]);
        in_order &= serve() == i;
    }
    ok_named(in_order, "first in, first out");
    is_number(post.q.recipients, 0, "no more");
    ok_named(!flow_queue_first(&post.q) && !post.flows.by_key, "the flow is gone");
    finish();
}

TEST(recipients)
{
    start();
    post.target.transport.recipient_limit = 50;
    append((struct client_transaction){.sender = 1, .recipients = 120});
    append((struct client_transaction){.sender = 1, .recipients = 50});
    is_number(post.q.recipients, 170, "recipients");
    is_number(serve(), 0, "the first");
    ok_named(cut_first == 0 && cut_count == 50, "its first 50");
    is_number(post.q.recipients, 120, "less");
    serve();
    ok_named(cut_first == 50 && cut_count == 50, "the next");
    serve();
    ok_named(cut_first == 100 && cut_count == 20, "the rest of it");
    is_number(post.q.recipients, 50, "the other letter is left");
    is_number(serve(), 1, "the other letter");
    ok_named(cut_first == 0 && cut_count == 50, "whole");
    finish();
    start();
    post.target.transport.recipient_limit = 0;
    append((struct client_transaction){.sender = 1, .recipients = 200});
    serve();
    is_number(cut_count, 200, "all at once");
    finish();
}

/* A host that takes fewer at a time than its transport says. */
TEST(fewer)
{
    start();
    post.target.transport.recipient_limit = 50;
    post.target.transport.slot_cost = 0;
    append((struct client_transaction){.sender = 1, .recipients = 120});
    append((struct client_transaction){.sender = 1, .recipients = 7});
    most = 5;
    unsigned services = 0, got = 0;
    bool good = true;
    for (; post.q.recipients > 7; services++) {
        good &= serve() == 0 && cut_count == 5 && cut_first == got;
        got += cut_count;
        good &= post.q.recipients == 120 - got + 7;
    }
    ok_named(good, "five at a time, and what is left is counted");
    is_number(services, 24, "of 120");
    most = 0;
    serve();
    ok_named(cut_count == 7 && post.q.recipients == 0, "another session takes all");
    most = 1000;
    append((struct client_transaction){.sender = 1, .recipients = 60});
    serve();
    is_number(cut_count, 50, "one that takes more changes nothing");
    serve();
    most = 1;
    append((struct client_transaction){.sender = 2, .recipients = 3});
    for (unsigned i = 0; i < 3; i++) {
        is_number(post.q.recipients, 3 - i, "one at a time");
        serve();
    }
    is_number(post.q.recipients, 0, "and none is left");
    most = 0;
    finish();
}

TEST(shares)
{
    start();
    append_many((struct client_transaction){.sender = 1}, 500);
    append_many((struct client_transaction){.sender = 2}, 5);
    append_many((struct client_transaction){.sender = 3}, 500);
    is_string(served(15), "ABCABCABCABCABC", "in turn, whatever waits behind");
    is_string(served(6), "ACACAC", "until one has no more");
    finish();
}

TEST(classes)
{
    start();
    append_many((struct client_transaction){.sender = 1, .class = SCHED_CLASS_URGENT},
                500);
    append_many((struct client_transaction){.sender = 2, .class = SCHED_CLASS_NORMAL},
                500);
    append_many((struct client_transaction){.sender = 3, .class = SCHED_CLASS_BULK},
                500);
    const char *text = served(210);
    is_number(count_of(text, 'A'), 160, "urgent: 16 shares");
    is_number(count_of(text, 'B'), 40, "normal: 4");
    is_number(count_of(text, 'C'), 10, "bulk: 1, not none");
    text = served(21);
    ok_named(count_of(text, 'C') == 1 && count_of(text, 'B') == 4, "evenly");
    finish();
    start();
    append_many((struct client_transaction){.sender = 1, .class = SCHED_CLASS_BULK},
                100);
    append_many((struct client_transaction){.sender = 1, .class = SCHED_CLASS_NORMAL},
                100);
    unsigned bulk = 0;
    for (int i = 0; i < 50; i++)
        bulk += post.letters[serve()]->class == SCHED_CLASS_BULK;
    is_number(bulk, 10, "the classes of one sender are flows of their own");
    finish();
}

TEST(costs)
{
    start();
    append_many((struct client_transaction){.sender = 1, .size = 100 << 20}, 100);
    append_many((struct client_transaction){.sender = 2, .size = 1000}, 500);
    append_many((struct client_transaction){.sender = 3, .size = (3 << 20) - 1}, 500);
    const char *text = served(330);
    ok_named(abs((int)count_of(text, 'A') - 28) <= 1, "8 units at most");
    ok_named(abs((int)count_of(text, 'B') - 226) <= 1, "small mail: 1");
    ok_named(abs((int)count_of(text, 'C') - 75) <= 1, "1 for each MiB begun");
    finish();
}

TEST(newcomer)
{
    start();
    append_many((struct client_transaction){.sender = 1}, 1000);
    served(100);
    append((struct client_transaction){.sender = 2});
    is_string(served(3), "BAA", "a newcomer waits for nobody");
    append_many((struct client_transaction){.sender = 2}, 100);
    is_string(served(6), "BABABA", "who comes back has no more than his turn");
    append_many((struct client_transaction){.sender = 3}, 3);
    append_many((struct client_transaction){.sender = 4}, 3);
    const char *text = served(8);
    ok_named(count_of(text, 'A') == 2 && count_of(text, 'B') == 2 &&
                 count_of(text, 'C') == 2 && count_of(text, 'D') == 2,
             "all in turn");
    finish();
    start();
    append_many((struct client_transaction){.sender = 1, .class = SCHED_CLASS_BULK},
                100);
    served(50);
    append_many((struct client_transaction){.sender = 2, .class = SCHED_CLASS_URGENT},
                40);
    const char *rest = served(36);
    ok_named(count_of(rest, 'A') == 2 && strncmp(rest, "BBBBBBBBBBBBBBBB", 16) == 0,
             "after it a class has its shares, the urgent first");
    finish();
    start();
    append((struct client_transaction){.sender = 1});
    append((struct client_transaction){.sender = 2, .class = SCHED_CLASS_BULK});
    append((struct client_transaction){.sender = 3, .class = SCHED_CLASS_URGENT});
    append((struct client_transaction){.sender = 4});
    is_string(served(4), "CADB", "among equals by class, then as they came");
    finish();
}

/* A sender of one letter as soon as the last is served is not better off. */
TEST(one_by_one)
{
    start();
    unsigned mine = 0;
    append_many((struct client_transaction){.sender = 1}, 300);
    append((struct client_transaction){.sender = 2});
    for (int i = 0; i < 200; i++) {
        bool is_mine = post.letters[serve()]->sender >> 2 == 2;
        mine += is_mine;
        if (is_mine)
            append((struct client_transaction){.sender = 2});
    }
    ok_named(mine >= 99 && mine <= 101, "half of the turns");
    finish();
}

/* Nor with large mail of the other's: what it costs is paid back. */
TEST(one_by_one_large)
{
    start();
    unsigned mine = 0;
    append_many((struct client_transaction){.sender = 1, .size = 3 << 20}, 100);
    append((struct client_transaction){.sender = 2});
    for (int i = 0; i < 200; i++) {
        bool is_mine = post.letters[serve()]->sender >> 2 == 2;
        mine += is_mine;
        if (is_mine)
            append((struct client_transaction){.sender = 2});
    }
    ok_named(mine >= 159 && mine <= 161, "four small ones for each of four MiB");
    finish();
}

/* New senders without end are remembered only up to a bound, and starve nobody. */
TEST(many_senders)
{
    start();
    append_many((struct client_transaction){.sender = 1}, 2);
    for (unsigned i = 0; i < 3000; i++)
        append((struct client_transaction){.sender = i + 2});
    serve();
    for (unsigned i = 0; i < 2999; i++)
        serve();
    unsigned flows = HASH_COUNT(post.flows.by_key);
    ok_named(flows > 1000 && flows < 1010, "not all of them");
    append((struct client_transaction){.sender = 2});
    append((struct client_transaction){.sender = 2999});
    append((struct client_transaction){.sender = 2999});
    ok_named(post.letters[serve()]->sender >> 2 == 3001, "the last one in turn");
    ok_named(post.letters[serve()]->sender >> 2 == 2999, "one forgotten is new");
    ok_named(post.letters[serve()]->sender >> 2 == 1, "the first has his second turn");
    finish();
    start();
    append_many((struct client_transaction){.sender = 1}, 100);
    unsigned at = 0;
    for (unsigned i = 0; i < 199; i++) {
        append((struct client_transaction){.sender = i + 2});
        at += post.letters[serve()]->sender >> 2 == 1;
    }
    ok_named(at > 0, "one new sender after the other: the first has turns, too");
    finish();
}

TEST(jobs)
{
    start();
    post.target.transport.recipient_limit = 1;
    append((struct client_transaction){.sender = 1, .recipients = 200});
    for (int i = 0; i < 20; i++)
        serve_at(0);
    unsigned small =
        append_at((struct client_transaction){.sender = 1, .recipients = 2}, 0);
    append_at((struct client_transaction){.sender = 2, .recipients = 200}, 0);
    int before = 0, at = 0, others = 0;
    for (int i = 1; i <= 40; i++) {
        unsigned number = serve_at(1);
        others += number > small;
        if (number == small && ++before == 2)
            at = i;
    }
    ok_named(at > 0 && at <= 6, "small mail passes the large one of its sender");
    is_number(others, 20, "and the other sender has had his turns");
    finish();
}

TEST(take)
{
    start();
    post.target.transport.recipient_limit = 2;
    for (int i = 0; i < 6; i++) {
        append((struct client_transaction){.sender = 1, .domain = "a.example"});
        append((struct client_transaction){.sender = 1, .domain = "b.example"});
        append((struct client_transaction){
            .sender = 2, .domain = "b.example", .recipients = 4});
        append((struct client_transaction){.sender = 3, .domain = "a.example"});
    }
    is_string(served(6), "ABCABC", "in turn");
    is_number(post.q.recipients, 42 - 8, "recipients");
    struct entry *taken = NULL, *e;
    const struct destination *a = message_entries(post.letters[0])->destination;
    flow_queue_take(&post.flows, &post.q, a, &taken);
    unsigned count = 0, last[4] = {0};
    bool good = true;
    DL_FOREACH (taken, e) {
        unsigned number = (unsigned)(uintptr_t)e->message->owner;
        uint64_t sender = e->message->sender >> 2;
        good &= e->destination == a && number >= last[sender];
        last[sender] = number;
        count++;
    }
    is_number(count, 5 + 4, "all of one destination");
    ok_named(good, "in order");
    is_number(post.q.recipients, 5 + 2 * 10, "the others stay: 5 of A's, 20 of B's");
    is_string(served(10), "ABABABABAB", "turns go on as they were");
    is_number(post.q.recipients, 10, "and on");
    is_string(served(5), "BBBBB", "to the end");
    finish();
}

TEST(take_order)
{
    start();
    for (int i = 0; i < 30; i++)
        append(
            (struct client_transaction){.sender = (uint64_t)i % 3 + 1,
                                        .domain = i % 2 ? "a.example" : "b.example"});
    served(6);
    struct entry *taken = NULL, *none = NULL, *e, *next;
    flow_queue_take(&post.flows, &post.q, message_entries(post.letters[1])->destination,
                    &taken);
    DL_FOREACH_SAFE (taken, e, next) {
        DL_DELETE(taken, e);
        flow_queue_append(&post.flows, &post.q, e);
    }
    is_number(post.q.recipients, 24, "as many as before");
    unsigned last[2][4] = {{0}};
    bool good = true;
    while (post.q.recipients > 0) {
        unsigned number = serve();
        uint64_t sender = post.letters[number]->sender >> 2;
        good &= number >= last[number % 2][sender];
        last[number % 2][sender] = number;
    }
    ok_named(good, "taken and brought back: the order within each is kept");
    flow_queue_take(&post.flows, &post.q, NULL, &none);
    ok_named(!none, "nothing to take");
    finish();
}

/* The account of a letter half served and taken off is that of a queue no more. */
TEST(take_begun)
{
    start();
    post.target.transport.recipient_limit = 1;
    append((struct client_transaction){.sender = 1, .recipients = 100});
    append((struct client_transaction){
        .sender = 1, .recipients = 3, .domain = "b.example"});
    for (int i = 0; i < 30; i++)
        serve_at(5);
    struct entry *taken = NULL;
    const struct destination *b = message_entries(post.letters[1])->destination;
    flow_queue_take(&post.flows, &post.q, b, &taken);
    unsigned left = (unsigned)post.q.recipients;
    ok_named(left + 3 >= 73 && left <= 73, "what was not served stays");
    unsigned served_now = 0;
    while (post.q.recipients > 0 && ++served_now < 1000)
        serve_at(6);
    is_number(served_now, left, "and is served, once");
    finish();
}

/* Its domain moves to other servers when most of it has been sent: there it needs one
 * transaction, and no jobs. */
TEST(moves_begun)
{
    struct flow_queue there;
    struct entry *moved = NULL;
    start();
    flow_queue_init(&there);
    post.target.transport.recipient_limit = 1;
    append((struct client_transaction){.sender = 4, .recipients = 20});
    for (unsigned i = 0; i < 19; i++)
        serve();
    flow_queue_take(&post.flows, &post.q, NULL, &moved);
    struct entry *e = moved;
    DL_DELETE(moved, e);
    flow_queue_append(&post.flows, &there, e);
    is_number(there.recipients, 1, "one recipient is left");
    ok(flow_queue_cut(&post.flows, &there, 0, &post.target.transport, 0, &cut_first,
                      &cut_count) == e);
    ok_named(cut_first == 19 && cut_count == 1, "and is served");
    flow_queue_free(&there);
    finish();
}

/* Counts, order within senders and destinations, and nothing served twice, at random.
 */
TEST(random)
{
    static unsigned given[LETTERS_MAX], sizes[LETTERS_MAX];
    uint64_t random = 3;
    size_t recipients = 0;
    bool good = true;
    start();
    memset(given, 0, sizeof(given));
    post.target.transport.recipient_limit = 3;
    post.target.transport.slot_cost = 2;
    for (uint32_t step = 0; step < 12000; step++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned chance = (unsigned)(random >> 40);
        if (post.count < LETTERS_MAX && chance % 3 == 0) {
            unsigned size = chance % 50 ? 1 + chance / 3 % 8 : 100;
            sizes[post.count] = size;
            append_at((struct client_transaction){.sender = 1 + chance / 7 % 5,
                                                  .class = chance / 11 % 3,
                                                  .recipients = size,
                                                  .size = chance % 5 ? 0 : 4u << 20},
                      step / 10);
            recipients += size;
        } else if (post.q.recipients > 0) {
            most = chance / 13 % 4;
            unsigned number = serve_at(step / 10);
            good &= most == 0 || cut_count <= most;
            good &= cut_count >= 1 && cut_count <= 3 && cut_first == given[number];
            given[number] += cut_count;
            good &= given[number] <= sizes[number];
            recipients -= cut_count;
        }
        good &= recipients == post.q.recipients &&
                (post.q.recipients == 0) == (recipients == 0) &&
                (post.q.recipients == 0) == !flow_queue_first(&post.q);
    }
    most = 0;
    while (post.q.recipients > 0) {
        unsigned number = serve_at(2000);
        given[number] += cut_count;
    }
    for (unsigned i = 0; i < post.count; i++)
        good &= given[i] == sizes[i];
    ok_named(good && post.count > 1000, "every recipient is served once");
    finish();
}

static uint64_t
sender(const char *address)
{
    return sched_sender(text_from(address));
}

TEST(sender)
{
    uint64_t list = sender("list@example.org");
    ok(sender("LIST@Example.ORG") == list);
    ok_named(sender("list+bounces-bob=example.net@example.org") == list, "VERP");
    ok_named(sender("list=bob@example.org") == list, "with the other sign");
    ok_named(sender("list+@example.org") == list, "an empty extension");
    ok_named(sender("list-bob@example.org") != list, "not every sign is one");
    ok(sender("list@example.com") != list);
    ok(sender("lists@example.org") != list);
    ok(sender("") == sender("") && sender("") != list);
    ok_named(sender("+bob@example.org") == sender("=alice@example.org"),
             "nothing before it is a sender, too");
    ok_named(sender("+bob@example.org") != sender(""), "not the null sender");
    ok_named(sender("list@a+b.example") != sender("list@a+c.example") ||
                 sender("list@a+b.example") == sender("list@a"),
             "whatever stands in the domain: no trap");
}

/* New mail goes first; mail that was deferred before has an eighth, in its own order. */
TEST(ages)
{
    start();
    for (unsigned i = 0; i < 6; i++)
        append((struct client_transaction){.sender = 1, .attempts = 1 + i});
    append_many((struct client_transaction){.sender = 2}, 15);
    append((struct client_transaction){.sender = 3, .attempts = 1});
    is_string(served(16), "BBBBBBBABBBBBBBC", "one in eight, and senders within each");
    ok(flow_queue_has_sender(&post.flows, &post.q, post.letters[20]));
    is_string(served(1), "B", "of a sender in order");
    ok_named(!flow_queue_has_sender(&post.flows, &post.q, post.letters[20]),
             "no new mail of that sender is left");
    ok(flow_queue_has_sender(&post.flows, &post.q, post.letters[0]));
    is_string(served(3), "AAA", "with one age alone it has every turn");
    append((struct client_transaction){.sender = 4});
    is_string(served(2), "DA", "new mail waits for no turn of a flush");
    append_many((struct client_transaction){.sender = 5}, 20);
    served(16);
    append((struct client_transaction){.sender = 1, .attempts = 1});
    is_string(served(2), "AE",
              "new mail alone lets old mail wait for one turn at most");
    finish();
}

TEST(ages_are_apart)
{
    start();
    append((struct client_transaction){.sender = 1});
    append((struct client_transaction){.sender = 1, .attempts = 3});
    struct sched_message m = {.sender = 1 << 2, .attempts = 0};
    ok(flow_queue_has_sender(&post.flows, &post.q, &m));
    served(1);
    ok_named(!flow_queue_has_sender(&post.flows, &post.q, &m), "of the same age alone");
    m.attempts = 9;
    ok(flow_queue_has_sender(&post.flows, &post.q, &m));
    finish();
}
