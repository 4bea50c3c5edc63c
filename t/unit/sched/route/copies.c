/* The table `copy_to`: which entries match, which addresses get a copy, what is refused. */
#include "sched/route/copies.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

/* The addresses that get a copy, with spaces between; recipients likewise. */
static const char *
copied(const char *table, const char *sender, const char *recipients)
{
    static char out[400];
    struct copies *c = copies_new(text_from(table), NULL);
    struct copies_match match = {.wanted = 0};
    struct text rest = text_from(recipients), one;
    unsigned at = 0;
    size_t used = 0;
    out[0] = '\0';
    if (c == NULL)
        return "refused";
    copies_add_sender(c, &match, text_from(sender));
    while (text_word(&rest, " ", &one))
        copies_add_recipient(c, &match, one);
    while (copies_next(c, &match, &at, &one))
        used += (size_t)snprintf(out + used, sizeof(out) - used, "%s%.*s", used > 0 ? " " : "", TEXT_ARGS(one));
    copies_free(&c);
    ok_named(c == NULL, "freed");
    return out;
}

TEST(matches)
{
    static const struct {
        const char *table, *sender, *recipients, *want;
    } rows[] = {
        {"", "me@a.test", "you@b.test", ""},
        {"# a comment\n\n", "me@a.test", "you@b.test", ""},
        {"arc@x.test", "me@a.test", "you@b.test", "arc@x.test"},
        {"arc@x.test", "", "you@b.test", "arc@x.test"},
        {"* arc@x.test", "me@a.test", "you@b.test", "arc@x.test"},
        {"sender:a.test arc@x.test", "me@a.test", "you@b.test", "arc@x.test"},
        {"sender:A.Test arc@x.test", "Me@a.test", "you@b.test", "arc@x.test"},
        {"sender:ME@a.test arc@x.test", "me@a.test", "you@b.test", "arc@x.test"},
        {"sender:a.test arc@x.test", "me@sub.a.test", "you@b.test", ""},
        {"sender:.a.test arc@x.test", "me@sub.sub.a.test", "you@b.test", "arc@x.test"},
        {"sender:.a.test arc@x.test", "me@a.test", "you@b.test", ""},
        {"sender:a.test arc@x.test", "", "you@a.test", ""},
        {"sender:a.test arc@x.test", "me@c.test", "you@a.test", ""},
        {"recipient:b.test arc@x.test", "me@a.test", "you@c.test you@b.test", "arc@x.test"},
        {"recipient:b.test arc@x.test", "me@b.test", "you@c.test", ""},
        {"recipient:you@b.test arc@x.test", "", "other@b.test", ""},
        /* Every entry counts, and each address once. */
        {"sender:a.test one@x.test\nrecipient:b.test two@x.test, recipient:b.test one@x.test\n* two@x.test", "me@a.test",
         "you@b.test", "one@x.test two@x.test"},
        {"sender:a.test Arc@x.test, recipient:b.test arc@X.test", "me@a.test", "you@b.test", "Arc@x.test"},
        /* One that is a recipient has it already; mail to such addresses alone is a copy. */
        {"arc@x.test", "me@a.test", "you@b.test ARC@x.test", ""},
        {"one@x.test, two@x.test", "me@a.test", "you@b.test one@x.test", "two@x.test"},
        {"arc@x.test", "", "arc@x.test", ""},
        {"one@x.test, two@x.test", "", "one@x.test", ""},
        {"recipient:x.test arc@x.test", "me@a.test", "arc@x.test", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_string(copied(rows[i].table, rows[i].sender, rows[i].recipients), rows[i].want, rows[i].recipients);
}

TEST(refuses)
{
    static const struct {
        const char *table, *why;
    } rows[] = {
        {"arc", "copy_to: 'arc': ends with no address user@domain\n"},
        {"* arc", "copy_to: '* arc': ends with no address"},
        {"a.test arc@x.test", "copy_to: 'a.test arc@x.test': begins with neither sender:PATTERN nor recipient:PATTERN nor *"},
        {"sender: arc@x.test", "begins with neither"},
        {"sender:* arc@x.test", "begins with neither"},
        {"sender:a@ arc@x.test", "begins with neither"},
        {"recipient:. arc@x.test", "begins with neither"},
        {"* one@x.test two@x.test", "has more than two words"},
        {"good@x.test, bad", "copy_to: 'bad'"},
        {"a@x.test,b@x.test,c@x.test,d@x.test,e@x.test,f@x.test,g@x.test,h@x.test,i@x.test,j@x.test,k@x.test,l@x.test,m@x.test,n@x.test,"
         "o@x.test,p@x.test,q@x.test",
         "copy_to: 'q@x.test': has the 17th address"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        FIXTURE(buffer, errors, buffer_init, buffer_free, 4096);
        ok(copies_new(text_from(rows[i].table), &errors) == NULL);
        ok(buffer_add_byte(&errors, '\0'));
        ok_named(strstr(errors.at, rows[i].why) != NULL, rows[i].table);
    }
}

TEST(rows)
{
    FIXTURE(buffer, table, buffer_init, buffer_free, 1 << 20);
    for (int i = 0; i < COPIES_ROWS_MAX; i++)
        (void)!buffer_format(&table, "sender:u%d@a.test arc@x.test\n", i);
    struct copies *c = copies_new(buffer_text(&table), NULL);
    ok_named(c != NULL && !copies_are_empty(c), "as many as there may be");
    copies_free(&c);
    ok(buffer_add(&table, TEXT("sender:more@a.test arc@x.test\n")));
    ok_named(copies_new(buffer_text(&table), NULL) == NULL, "and no more");
    c = copies_new(TEXT(" "), NULL);
    ok_named(copies_are_empty(c) && copies_are_empty(NULL), "none");
    copies_free(&c);
}
