/* JSON of a struct: each kind of member, in the order of the table. */
#include "admin/view/members.h"

#include "t/support/tap.h"

#include <stdlib.h>

struct plain {
    bool yes;
    int number;
    unsigned count;
    int64_t large;
    size_t size;
    const char *word, *none, *peer;
    char chars[8];
};

#define ROW(member) MEMBER(struct plain, member, #member)
static const struct member rows[] = {ROW(size), ROW(yes), ROW(number), ROW(count), ROW(large),
                                     ROW(word), ROW(none), ROW(chars),
                                     MEMBER_TEXT(struct plain, peer, "said")};

int
main(void)
{
    struct plain p = {.yes = true,
                      .number = -3,
                      .count = 4000000000U,
                      .large = -5000000000,
                      .size = 6,
                      .word = "w",
                      .peer = "a\nb",
                      .chars = "c"};
    json_t *object = json_object();
    MEMBERS_PUT(object, rows, &p);
    char *text = json_dumps(object, JSON_COMPACT);
    is_string(text,
              "{\"size\":6,\"yes\":true,\"number\":-3,\"count\":4000000000,\"large\":-5000000000,"
              "\"word\":\"w\",\"chars\":\"c\",\"said\":\"a\\\\x0ab\"}",
              "all kinds");
    free(text);
    json_decref(object);
    is_number(members_number(&rows[1], &p), 1, "a truth as a number");
    is_number(members_number(&rows[2], &p), -3, "a negative number");
    is_number(members_number(&rows[3], &p), 4000000000, "a count");
    is_number(members_number(&rows[4], &p), -5000000000, "a large one");
    is_number(members_number(&rows[5], &p), 0, "a word is none");
    return done();
}
