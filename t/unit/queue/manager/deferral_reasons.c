/* Proves that reasons are kept, shared, replaced and forgotten, within their limits. */
#include "queue/manager/deferral_reasons.h"

#include "t/support/tap.h"

static struct id
id_of(uint64_t n)
{
    return (struct id){.time_ms = n, .hash = n * 7};
}

static void
keep(struct deferral_reasons *r, struct id id, const char *text)
{
    struct outcome o =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 451, "4.7.0", "%s", text);
    deferral_reasons_keep(r, id, &o);
}

TEST(few)
{
    struct deferral_reasons *r = deferral_reasons_new(3);
    is_string(deferral_reasons_find(r, id_of(1)), "", "nothing is known at first");
    deferral_reasons_forget(r, id_of(1));
    is_number(deferral_reasons_changes(r), 0, "and nothing has changed");
    keep(r, id_of(1), "host down");
    keep(r, id_of(2), "greylisted");
    keep(r, id_of(1), "host still down");
    is_string(deferral_reasons_find(r, id_of(1)), "host still down", "a newer reason replaces");
    is_string(deferral_reasons_find(r, id_of(2)), "greylisted", "others stay");
    is_number(deferral_reasons_changes(r), 3, "three changes");
    keep(r, id_of(3), "three");
    keep(r, id_of(4), "four");
    is_number(deferral_reasons_count(r), 3, "another one makes room");
    is_string(deferral_reasons_find(r, id_of(4)), "four", "the newest is there");
    deferral_reasons_forget(r, id_of(4));
    is_string(deferral_reasons_find(r, id_of(4)), "", "forgotten");
    is_number(deferral_reasons_count(r), 2, "two are left");
    deferral_reasons_free(&r);
    ok(r == NULL);
    deferral_reasons_free(&r);
}

static void
remember_number(void *context, struct id id, unsigned number)
{
    unsigned *numbers = context;
    numbers[id.time_ms] = number;
}

/* Equal in everything but one part: not the same reason. */
TEST(parts)
{
    struct deferral_reasons *r = deferral_reasons_new(10);
    struct outcome o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 451, "4.7.0", "%s",
                                    "busy"),
                   back;
    unsigned n[8] = {0};
    deferral_reasons_keep(r, id_of(1), &o);
    deferral_reasons_keep(r, id_of(2), &o);
    o.code = 421;
    deferral_reasons_keep(r, id_of(3), &o);
    memcpy(o.enhanced, "4.7.1", 6);
    deferral_reasons_keep(r, id_of(4), &o);
    memcpy(o.remote, "a[::1]:25", 10);
    deferral_reasons_keep(r, id_of(5), &o);
    memset(o.text, 'x', sizeof(o.text) - 1);
    memset(o.remote, 'y', sizeof(o.remote) - 1);
    deferral_reasons_keep(r, id_of(6), &o);
    deferral_reasons_each(r, remember_number, n);
    is_number(n[1], n[2], "equal ones are one");
    ok_named(n[2] != n[3] && n[3] != n[4] && n[4] != n[5] && n[5] != n[6],
             "code, enhanced code, remote and text make a difference");
    is_number(deferral_reasons_numbers(r), 6, "five, and the number that none has");
    ok(deferral_reasons_read(r, n[5], &back));
    is_number(back.code, 421, "the code");
    is_string(back.enhanced, "4.7.1", "the enhanced code");
    is_string(back.text, "busy", "the text");
    is_string(back.remote, "a[::1]:25", "the remote");
    ok(deferral_reasons_read(r, n[6], &back));
    is_number(strlen(back.text), OUTCOME_TEXT_MAX - 1, "the longest text");
    is_number(strlen(back.remote), OUTCOME_REMOTE_MAX - 1, "the longest remote");
    deferral_reasons_forget(r, id_of(1));
    is_string(deferral_reasons_find(r, id_of(2)), "busy", "kept for the other");
    deferral_reasons_free(&r);
}

/* Against an array: kept, replaced and forgotten as chance will have it. */
TEST(many)
{
    enum { IDS = 3000, STEPS = 60000, TEXTS = 50 };
    static unsigned have[IDS];
    struct deferral_reasons *r = deferral_reasons_new(IDS);
    uint64_t random = 1;
    unsigned count = 0, wrong = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned n = (unsigned)(random >> 33) % IDS,
                 text = (unsigned)(random >> 50) % TEXTS;
        struct id id = {.time_ms = n / 3, .hash = n % 3}; /* crowded */
        char sentence[20];
        snprintf(sentence, sizeof(sentence), "%u", text);
        count -= have[n] > 0;
        if (text == 0)
            deferral_reasons_forget(r, id);
        else
            keep(r, id, sentence);
        have[n] = text;
        count += text > 0;
    }
    is_number(deferral_reasons_count(r), count, "as many as there should be");
    ok_named(deferral_reasons_numbers(r) <= TEXTS + 1, "numbers are used again");
    for (unsigned n = 0; n < IDS; n++) {
        struct id id = {.time_ms = n / 3, .hash = n % 3};
        char sentence[20] = "";
        if (have[n])
            snprintf(sentence, sizeof(sentence), "%u", have[n]);
        wrong += strcmp(deferral_reasons_find(r, id), sentence) != 0;
    }
    is_number(wrong, 0, "each with its own");
    deferral_reasons_free(&r);
}

TEST(memory)
{
    enum { IDS = 100000 };
    struct deferral_reasons *r = deferral_reasons_new(2 * IDS);
    for (uint64_t i = 0; i < IDS; i++)
        keep(r, (struct id){.time_ms = 1700000000000 + i, .hash = i * 7919},
             i % 2 ? "connection refused" : "no route to host");
    is_number(deferral_reasons_count(r), IDS, "100,000 messages");
    ok_named(deferral_reasons_memory(r) < IDS * 22, "in 21 bytes each");
    deferral_reasons_free(&r);
}

/* Peers that say something new each time. */
TEST(bytes)
{
    enum { IDS = 30000 };
    struct deferral_reasons *r = deferral_reasons_new(IDS);
    char text[OUTCOME_TEXT_MAX];
    keep(r, id_of(IDS), "often used");
    for (unsigned i = 0; i < IDS; i++) {
        snprintf(text, sizeof(text), "%0400u", i);
        keep(r, id_of(i), text);
        keep(r, id_of(IDS + i % 2), "often used");
    }
    is_number(deferral_reasons_count(r), IDS, "all messages that the limit allows");
    ok_named(deferral_reasons_memory(r) < DEFERRAL_REASONS_BYTES_MAX + 4 * 1024 * 1024,
             "not all reasons");
    is_string(deferral_reasons_find(r, id_of(IDS - 1)), text, "the last one is there");
    is_string(deferral_reasons_find(r, id_of(IDS + 1)), "often used", "and what is in use");
    is_string(deferral_reasons_find(r, id_of(0)), "", "not the first");
    for (unsigned i = 0; i < 2 * IDS; i++)
        deferral_reasons_forget(r, id_of(i));
    is_number(deferral_reasons_count(r), 0, "none is left");
    keep(r, id_of(1), "one");
    is_string(deferral_reasons_find(r, id_of(1)), "one", "and it goes on");
    deferral_reasons_free(&r);
}
