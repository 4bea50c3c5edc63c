/* The use of quotas, as operators see it: the largest use comes first, names of clients are escaped, at most so many of
 * them, and a request to forget. */
#include "admin/view/quota_list.h"

#include "queue/manager/manager.h"
#include "t/support/must.h"
#include "t/support/printed.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

#define BOOT  INT64_C(100000000)
#define AHEAD INT64_C(1700000000000)
enum { MANY = 1200 };

/* --- Stand-ins for the manager ----------------------------------------------------- */

static struct manager_quota quotas[MANY];
static size_t quota_count;
static char reset[100];
static bool resets;

void
manager_each_quota(struct manager *manager,
                   void (*each)(void *context, const struct manager_quota *quota),
                   void *context)
{
    (void)manager;
    for (size_t i = 0; i < quota_count; i++)
        each(context, &quotas[i]);
}

bool
manager_reset_quota(struct manager *manager, struct text who)
{
    (void)manager;
    must(text_copy(reset, sizeof(reset), who));
    return resets;
}

/* ----------------------------------------------------------------------------------- */

static struct quota limits[MANY];
static struct quota_use uses[MANY];
static char names[MANY][40];

/* limit: as in a setting. used: now. */
static void
add(const char *who, bool is_relay, const char *limit, uint32_t used)
{
    size_t i = quota_count++;
    must(i < MANY && quota_parse(text_from(limit), &limits[i]));
    snprintf(names[i], sizeof(names[i]), "%s", who);
    uses[i] = (struct quota_use){.reserved = 0};
    quota_reserve(&uses[i], used);
    quota_settle(&uses[i], used, used, BOOT);
    quotas[i] = (struct manager_quota){.who = names[i],
                                       .is_relay = is_relay,
                                       .quota = &limits[i],
                                       .use = &uses[i],
                                       .now_ms = BOOT,
                                       .ahead_ms = AHEAD};
}

static const char *
who_of(const json_t *list, size_t i)
{
    return json_string_value(json_object_get(json_array_get(list, i), "who"));
}

static json_int_t
number_of(const json_t *list, size_t i, size_t limit, const char *key)
{
    const json_t *limits_of = json_object_get(json_array_get(list, i), "limits");
    return json_integer_value(json_object_get(json_array_get(limits_of, limit), key));
}

TEST(order)
{
    size_t count;
    quota_count = 0;
    add("user:dora", false, "10/d", 0);
    add("user:carl", false, "10/d", 5);
    add("user:bob", false, "100/d,4/h", 4);
    add("user:ann", false, "10/d", 5);
    add("smtp:[192.0.2.1]:587", true, "500/d", 499);
    json_t *list = quota_list_make(NULL, QUOTA_LIST_TOP, &count);
    is_number(count, 5, "all");
    is_number(json_array_size(list), 5, "in the list");
    is_string(who_of(list, 0), "user:bob", "the hour is used up");
    is_string(who_of(list, 1), "smtp:[192.0.2.1]:587", "nearly used up");
    is_string(who_of(list, 2), "user:ann", "the same: by name");
    is_string(who_of(list, 3), "user:carl", "the same: by name");
    is_string(who_of(list, 4), "user:dora", "nothing used");
    ok(json_is_true(json_object_get(json_array_get(list, 1), "relay")));
    ok(json_is_false(json_object_get(json_array_get(list, 2), "relay")));
    is_number(number_of(list, 0, 0, "limit"), 4, "the hour's limit");
    is_number(number_of(list, 0, 0, "used"), 4, "used");
    json_int_t next = number_of(list, 0, 0, "next_ms");
    ok_named(next > BOOT + AHEAD && next <= BOOT + AHEAD + 3750000,
             "the next may go within an hour and a slot, by the wall clock");
    is_number(number_of(list, 0, 1, "limit"), 100, "the day's limit");
    is_number(number_of(list, 0, 1, "used"), 4, "used");
    is_number(number_of(list, 0, 1, "next_ms"), 0, "where something is left it is now");
    json_decref(list);
    list = quota_list_make(NULL, 2, &count);
    is_number(count, 5, "of all");
    is_number(json_array_size(list), 2, "the first two");
    is_string(who_of(list, 1), "smtp:[192.0.2.1]:587", "with most");
    json_decref(list);
}

TEST(none)
{
    size_t count;
    quota_count = 0;
    json_t *list = quota_list_make(NULL, QUOTA_LIST_ALL, &count);
    is_number(count, 0, "none");
    is_number(json_array_size(list), 0, "an empty list");
    struct printed p;
    printed_begin(&p);
    quota_list_print(list, 0);
    is_string(printed_end(&p), "", "prints nothing");
    json_decref(list);
}

TEST(many)
{
    quota_count = 0;
    for (int i = 0; i < MANY; i++) {
        char who[40];
        snprintf(who, sizeof(who), "user:u%04d", i);
        add(who, false, "2000/d", (uint32_t)(i * 7919 % MANY));
    }
    json_t *answer = quota_list_answer(NULL);
    const json_t *list = json_object_get(answer, "quotas");
    bool sorted = true;
    for (size_t i = 1; i < json_array_size(list); i++)
        sorted = sorted &&
                 number_of(list, i, 0, "used") <= number_of(list, i - 1, 0, "used");
    ok_named(sorted, "who has used most comes first");
    ok(json_is_true(json_object_get(answer, "ok")));
    is_number(json_integer_value(json_object_get(answer, "count")), MANY,
              "all are counted");
    is_number(json_array_size(list), QUOTA_LIST_ALL, "a thousand are listed");
    json_decref(answer);
}

/* A sender address may be anything. */
TEST(hostile_names)
{
    size_t count;
    quota_count = 0;
    add("sender:\033[2J\n\xff\xfe@x", false, "1/d", 1);
    json_t *list = quota_list_make(NULL, QUOTA_LIST_ALL, &count);
    const char *who = who_of(list, 0);
    ok_named(who != NULL && text_starts(text_from(who), TEXT("sender:")), "a text");
    ok_named(who != NULL && !text_has_control(text_from(who)), "without controls");
    char *dumped = json_dumps(list, 0);
    ok_named(dumped != NULL, "valid UTF-8");
    free(dumped);
    json_decref(list);
}

TEST(reset)
{
    json_t *request = json_pack("{s:s}", "who", "user:ann");
    for (int i = 0; i < 2; i++) {
        resets = i == 0;
        json_t *answer = quota_list_reset(NULL, request);
        is_string(reset, "user:ann", "forgotten");
        ok(json_is_true(json_object_get(answer, "ok")));
        ok(json_is_true(json_object_get(answer, "reset")) == resets);
        json_decref(answer);
    }
    json_decref(request);
    static const char *const bad[] = {"{}", "{\"who\": 7}", "{\"who\": null}", "[]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        reset[0] = '\0';
        request = json_loads(bad[i], 0, NULL);
        json_t *answer = quota_list_reset(NULL, request);
        ok_named(json_is_false(json_object_get(answer, "ok")), bad[i]);
        is_string(json_string_value(json_object_get(answer, "error")), "who is missing",
                  bad[i]);
        is_string(reset, "", "nothing is forgotten");
        json_decref(answer);
        json_decref(request);
    }
}

TEST(print)
{
    size_t count;
    struct printed p;
    quota_count = 0;
    add("user:ann", false, "100/d,4/h", 4);
    json_t *list = quota_list_make(NULL, QUOTA_LIST_ALL, &count);
    printed_begin(&p);
    quota_list_print(list, BOOT + AHEAD);
    const char *got = printed_end(&p);
    ok_named(strstr(got, "quotas     recipients used:\n") == got, got);
    ok(strstr(got, "  user:ann ") != NULL);
    ok(strstr(got, "4 of         4 an hour; next ") != NULL);
    ok_named(strstr(got, "4 of       100 a day\n") != NULL,
             "without a time: it is now");
    json_decref(list);
}
