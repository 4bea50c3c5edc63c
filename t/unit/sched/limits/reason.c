/* Shared outcomes: equal ones once, others apart, freed with the last holder. */
#include "sched/limits/reason.h"

#include "t/support/tap.h"

static struct outcome
say(const char *text)
{
    return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 421, "4.3.2", "%s", text);
}

TEST(sharing)
{
    struct reason *list = NULL;
    struct outcome busy = say("busy"), other, back;
    struct reason *a = reason_open(&list, &busy), *b = reason_open(&list, &busy);
    ok_named(a == b, "equal outcomes are one");
    other = busy;
    other.code = 450;
    struct reason *c = reason_open(&list, &other);
    ok_named(c != a, "another code");
    other = busy;
    other.blame = BLAME_MESSAGE;
    struct reason *d = reason_open(&list, &other);
    ok_named(d != a, "another blame");
    snprintf(busy.remote, sizeof(busy.remote), "mx[192.0.2.1]:25");
    struct reason *e = reason_open(&list, &busy);
    ok_named(e != a, "another host");
    reason_read(e, &back);
    is_string(back.text, "busy", "text");
    is_string(back.remote, "mx[192.0.2.1]:25", "remote");
    is_string(back.enhanced, "4.3.2", "enhanced code");
    ok(back.code == 421 && back.verdict == VERDICT_DEFERRED &&
       back.blame == BLAME_SITE);
    is_number(reason_verdict(e), VERDICT_DEFERRED, "verdict");
    struct reason *f = reason_share(a);
    struct reason **all[] = {&a, &b, &c, &d, &e, &f};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        reason_close(&list, all[i]);
    ok(list == NULL && a == NULL);
    reason_close(&list, &a);
    ok_named(list == NULL, "no reason is closed without harm");
}

TEST(boundary)
{
    struct reason *list = NULL;
    struct outcome one = say("ab"), two = say("a"), back;
    snprintf(two.remote, sizeof(two.remote), "b");
    struct reason *a = reason_open(&list, &one), *b = reason_open(&list, &two);
    ok_named(a != b, "text and remote do not run together");
    reason_close(&list, &a);
    reason_close(&list, &b);
    memset(one.text, 't', sizeof(one.text) - 1);
    memset(one.remote, 'r', sizeof(one.remote) - 1);
    one.text[sizeof(one.text) - 1] = one.remote[sizeof(one.remote) - 1] = '\0';
    a = reason_open(&list, &one);
    reason_read(a, &back);
    is_string(back.text, one.text, "the longest text");
    is_string(back.remote, one.remote, "the longest remote");
    reason_close(&list, &a);
    two = say("");
    a = reason_open(&list, &two);
    reason_read(a, &back);
    is_string(back.text, "", "no text");
    reason_close(&list, &a);
}

TEST(many)
{
    struct reason *list = NULL, *held[200];
    bool good = true;
    for (int i = 0; i < 200; i++) {
        char text[32];
        snprintf(text, sizeof(text), "greylisted %d", i);
        struct outcome o = say(text);
        held[i] = reason_open(&list, &o);
    }
    for (int i = 0; i < 200; i++) {
        struct outcome back;
        char text[32];
        snprintf(text, sizeof(text), "greylisted %d", i);
        reason_read(held[i], &back);
        good &= strcmp(back.text, text) == 0;
    }
    ok_named(good, "200 different ones");
    for (int i = 0; i < 200; i++)
        reason_close(&list, &held[i]);
    ok(list == NULL);
}
