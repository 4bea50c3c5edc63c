/* queue/suppression/suppression_list.c: entries, their removal, and the memory that they take. */
/* link: t/sim/loop.c */
#include "queue/suppression/suppression_list.h"
#include "t/support/tap.h"

static bool
put(struct suppression_list *list, const char *address, const char *domain, enum suppression_class class,
    const char *reason)
{
    struct suppression_entry e = {.address = text_from(address),
                                  .domain = text_from(domain),
                                  .reason = text_from(reason),
                                  .at_s = 1000,
                                  .class = class};
    return suppression_list_put(list, &e);
}

TEST(entries)
{
    struct suppression_list list;
    struct suppression_entry e;
    suppression_list_init(&list, 7);
    ok_named(!suppression_list_get(&list, TEXT("a@b.example"), TEXT(""), &e), "an empty list has nothing");
    ok(put(&list, "a@b.example", "", SUPPRESSION_HARD, "550 5.1.1 no"));
    ok(put(&list, "a@b.example", "c.example", SUPPRESSION_COMPLAINT, ""));
    ok(put(&list, "a@b.example", "", SUPPRESSION_MANUAL, "550 5.1.1 no"));
    is_number(list.count, 2, "one for each address and domain");
    ok(suppression_list_get(&list, TEXT("a@b.example"), TEXT(""), &e));
    is_number(e.class, SUPPRESSION_MANUAL, "the last counts");
    is_text(e.reason, TEXT("550 5.1.1 no"), "with its reason");
    ok(put(&list, "a@b.example", "", SUPPRESSION_NONE, ""));
    ok_named(!suppression_list_get(&list, TEXT("a@b.example"), TEXT(""), &e), "one is removed");
    ok(suppression_list_get(&list, TEXT("a@b.example"), TEXT("c.example"), &e));
    ok(put(&list, "a@b.example", "", SUPPRESSION_HARD, ""));
    is_number(list.count, 2, "and comes back");
    ok(put(&list, "nobody@b.example", "", SUPPRESSION_NONE, ""));
    is_number(list.count, 2, "one that is not there cannot be removed");
    char longer[SUPPRESSION_ADDRESS_MAX + 2];
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    ok_named(!put(&list, longer, "", SUPPRESSION_HARD, ""), "an address that is too long is refused");
    suppression_list_free(&list);
}

/* Many come and go: each question has the answer of a plain table. */
TEST(many)
{
    enum { NAMES = 600 };
    struct suppression_list list;
    struct suppression_entry e;
    enum suppression_class want[NAMES] = {SUPPRESSION_NONE};
    unsigned chance = 1, bad = 0;
    size_t count = 0;
    suppression_list_init(&list, 3);
    for (int i = 0; i < 20000; i++) {
        char address[40];
        chance = chance * 1103515245 + 12345;
        unsigned n = chance / 65536 % NAMES;
        snprintf(address, sizeof(address), "n%u@d%u.example", n, n % 7);
        want[n] = chance / 7 % 3 == 0 ? SUPPRESSION_HARD : SUPPRESSION_NONE;
        bad += !put(&list, address, "", want[n], "x");
    }
    for (unsigned n = 0; n < NAMES; n++) {
        char address[40];
        snprintf(address, sizeof(address), "n%u@d%u.example", n, n % 7);
        bool there = suppression_list_get(&list, text_from(address), TEXT(""), &e);
        bad += there != (want[n] != SUPPRESSION_NONE);
        count += want[n] != SUPPRESSION_NONE;
    }
    is_number(bad, 0, "20,000 changes leave what they say");
    is_number(list.count, count, "and their number");
    size_t at = 0, walked = 0;
    while (suppression_list_next(&list, &at, &e))
        walked++;
    is_number(walked, count, "a walk meets each");
    ok_named(list.used < 64 * (size_t)NAMES, "those removed leave no holes for ever");
    suppression_list_free(&list);
}

TEST(memory)
{
    struct suppression_list list;
    suppression_list_init(&list, 9);
    bool good = true;
    for (int i = 0; i < 100000; i++) {
        char address[64], reason[64];
        snprintf(address, sizeof(address), "first.lastname%d@company%d.example", i, i % 900);
        snprintf(reason, sizeof(reason), "550 5.1.1 words of host %d", i % 900);
        good = put(&list, address, "", SUPPRESSION_HARD, reason) && good;
    }
    ok(good);
    is_number(list.count, 100000, "100,000 entries");
    ok_named(suppression_list_memory(&list) < 8u << 20, "take less than 8 MB");

    struct suppression_entry e;
    ok(suppression_list_get(&list, TEXT("first.lastname99899@company899.example"), TEXT(""), &e));
    is_text(e.reason, TEXT("550 5.1.1"), "beyond the limit of reasons there are only codes");
    suppression_list_free(&list);
}

TEST(reasons_end)
{
    struct suppression_list list;
    struct suppression_entry e;
    suppression_list_init(&list, 9);
    for (int i = 0; i < 1000; i++) {
        char address[64], reason[64];
        snprintf(address, sizeof(address), "a%d@b.example", i);
        snprintf(reason, sizeof(reason), "%d words", i);
        ok_named(put(&list, address, "", SUPPRESSION_MANUAL, reason), "any number of reasons");
    }
    is_number(list.reason_count, SUPPRESSION_REASONS_MAX, "but not all are kept");
    ok(suppression_list_get(&list, TEXT("a999@b.example"), TEXT(""), &e));
    is_text(e.reason, TEXT(""), "the last have none");
    suppression_list_free(&list);
}
