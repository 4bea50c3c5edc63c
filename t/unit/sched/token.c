/* Whether the logins of a target have tokens. */
#include "sched/token.h"

#include "sched/route/target.h"
#include "t/support/tap.h"

static struct target
target_of(const char *written)
{
    struct transport_params base;
    struct target target;
    char problem[TARGET_PROBLEM_MAX];
    transport_params_default(&base);
    if (!target_parse(text_from(written), 25, &base, &target, problem))
        abort();
    return target;
}

static bool
set(struct token_table *t, const char *host, uint16_t port, const char *user,
    enum sched_token token, const char *why)
{
    struct sched_login login = {text_from(host), text_from(user), port};
    return token_table_set(t, &login, token, why);
}

static void
is_found(const struct token_table *t, const char *target, enum sched_token token,
         const char *expected)
{
    const char *why;
    struct target parsed = target_of(target);
    is_number(token_table_find(t, &parsed, &why), token, target);
    is_string(why, expected, "its words");
}

TEST(logins)
{
    struct token_table t = {0};
    is_found(&t, "smtps://joe@a.test", SCHED_TOKEN_THERE, "");
    ok(set(&t, "a.test", 0, "joe", SCHED_TOKEN_FAILED, "one"));
    ok_named(!set(&t, "A.test", 0, "joe", SCHED_TOKEN_FAILED, "one"), "nothing new");
    ok_named(set(&t, "a.test", 0, "joe", SCHED_TOKEN_FAILED, "two"), "other words");
    is_found(&t, "smtps://joe@A.TEST", SCHED_TOKEN_FAILED, "two");
    is_found(&t, "smtps://Joe@a.test", SCHED_TOKEN_THERE, "");
    is_found(&t, "smtps://joe@b.test", SCHED_TOKEN_THERE, "");
    is_found(&t, "smtp://a.test", SCHED_TOKEN_THERE, "");
    is_found(&t, "mx", SCHED_TOKEN_THERE, "");
    ok(set(&t, "a.test", 465, "joe", SCHED_TOKEN_THERE, ""));
    is_found(&t, "smtps://joe@a.test", SCHED_TOKEN_THERE, "");
    is_found(&t, "submission://joe@a.test", SCHED_TOKEN_FAILED, "two");
    ok(set(&t, "a.test", 465, "joe", SCHED_TOKEN_NONE, ""));
    ok(!set(&t, "a.test", 465, "joe", SCHED_TOKEN_NONE, ""));
    is_found(&t, "smtps://joe@a.test", SCHED_TOKEN_FAILED, "two");
    token_table_clear(&t);
    is_found(&t, "smtps://joe@a.test", SCHED_TOKEN_THERE, "");
}

TEST(lists)
{
    static const char list[] = "smtps://joe@a.test|jim@b.test";
    struct token_table t = {0};
    ok(set(&t, "b.test", 465, "jim", SCHED_TOKEN_FAILED, "b"));
    is_found(&t, list, SCHED_TOKEN_THERE, "b");
    ok(set(&t, "a.test", 465, "joe", SCHED_TOKEN_AWAITED, "a"));
    is_found(&t, list, SCHED_TOKEN_AWAITED, "a");
    ok(set(&t, "a.test", 465, "joe", SCHED_TOKEN_FAILED, "a"));
    is_found(&t, list, SCHED_TOKEN_FAILED, "a");
    is_found(&t, "smtps://joe@a.test|c.test", SCHED_TOKEN_THERE, "a");
    token_table_clear(&t);
}

TEST(limits)
{
    struct token_table t = {0};
    char long_user[400];
    memset(long_user, 'u', sizeof(long_user) - 1);
    long_user[sizeof(long_user) - 1] = '\0';
    ok_named(!set(&t, "a.test", 0, long_user, SCHED_TOKEN_FAILED, "x"),
             "no target has such a user");
    char words[2 * OUTCOME_TEXT_MAX];
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    ok(set(&t, "a.test", 0, "joe", SCHED_TOKEN_FAILED, words));
    ok_named(!set(&t, "a.test", 0, "joe", SCHED_TOKEN_FAILED, words), "cut, the same");
    token_table_clear(&t);
}
