/* The users: the forms of the file, every error, and unknown names that look like
 * users. */
#include "smtp/access/tables_internal.h"
#include "smtp/access/users.h"

#include "t/support/sasl_kit.h"

#define CRYPT \
    "$6$saltsaltsaltsalt$TC.srYZRdhUNd1hUaX8BXmGPkCpq7TP8IIfBuwlVqWVsOskMwY" \
    "ShHaSiuvPe57wq5SGBJgI8u2TksJeC/Zaz50"

static void
is_mistake(const char *content, const char *want)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    struct users *users = users_new(text_from(content), "users", kit_secret, &mistakes);
    ok(users == NULL);
    is_text(buffer_text(&mistakes), text_from(want), "told with file and line");
    buffer_free(&mistakes);
    users_free(&users);
}

static void
test_read(const char *crypt)
{
    char content[1024];
    snprintf(content, sizeof(content),
             "\xef\xbb\xbf# users\n\n  \r\nalice:%s\r\nB\xc3\xb6rk@example.org:%s\n"
             "carol d:{plain} pen:cil \n",
             KIT_KEYS, crypt);
    struct users *users = kit_users(content);
    is_number(users_count(users), 3, "three");
    ok_named(!users_have_scram(users), "one has none");
    ok(sasl_kit_check(users, TEXT("alice"), TEXT("pencil")));
    ok(!sasl_kit_check(users, TEXT("alice"), TEXT("pencil\r")));
    ok(!sasl_kit_check(users, TEXT("Alice"), TEXT("pencil")));
    ok(!sasl_kit_check(users, TEXT("alice "), TEXT("pencil")));
    ok(!sasl_kit_check(users, TEXT("alic"), TEXT("pencil")));
    ok(!sasl_kit_check(users, TEXT(""), TEXT("pencil")));
    ok(!sasl_kit_check(users, TEXT("alice"), TEXT("")));
    ok(sasl_kit_check(users, TEXT("B\xc3\xb6rk@example.org"), TEXT("pencil")));
    ok(sasl_kit_check(users, TEXT("carol d"), TEXT(" pen:cil ")));
    ok(!sasl_kit_check(users, TEXT("carol d"), TEXT("pen:cil")));
    users_free(&users);
    ok(users == NULL);
    users_free(&users);
    users = kit_users("");
    ok(users_count(users) == 0 && !users_have_scram(users));
    ok(!sasl_kit_check(users, TEXT("alice"), TEXT("pencil")));
    users_free(&users);
    users = kit_users("alice:" KIT_KEYS);
    ok(users_have_scram(users));
    users_free(&users);
}

TEST(mistakes)
{
    is_mistake("\nsecret\n", "users:2: expected 'user:verifier'\n");
    is_mistake(":" KIT_KEYS, "users:1: not a valid user name\n");
    is_mistake("a\tb:" KIT_KEYS, "users:1: not a valid user name\n");
    is_mistake("a\xff:" KIT_KEYS, "users:1: not a valid user name\n");
    is_mistake(" a:" KIT_KEYS, "users:1: not a valid user name\n");
    is_mistake("a :" KIT_KEYS, "users:1: not a valid user name\n");
    is_mistake("a:secret\nb:\nc:{PLAIN}\n",
               "users:1: user 'a': neither SCRAM-SHA-256 nor SHA512-CRYPT: make a line "
               "with `petrel passwd USER`\n"
               "users:2: user 'b': neither SCRAM-SHA-256 nor SHA512-CRYPT: make a line "
               "with `petrel passwd USER`\n"
               "users:3: user 'c': the password is empty\n");
    is_mistake("a:" KIT_KEYS "\n\na:" KIT_KEYS, "users:3: user 'a': is already in line 1\n");
    is_mistake("a:$6$rounds=100000$salt$x",
               "users:1: user 'a': more than 5000 rounds: a check would take too long\n");
    char longest[200];
    memset(longest, 'x', 129);
    memcpy(longest + 129, ":y", 3);
    is_mistake(longest, "users:1: not a valid user name\n");
}

TEST(limits)
{
    struct buffer content, mistakes;
    buffer_init(&content, USERS_FILE_MAX);
    buffer_init(&mistakes, 200);
    for (int i = 0; i <= USERS_MAX; i++)
        if (!buffer_format(&content, "u%d:%s\n", i, KIT_KEYS))
            abort();
    ok(users_new(buffer_text(&content), "f", kit_secret, &mistakes) == NULL);
    is_text(buffer_text(&mistakes), TEXT("f:20001: user 'u20000': more than 20000 users\n"),
            "too many");
    buffer_clear(&content);
    buffer_clear(&mistakes);
    for (int i = 0; i <= USERS_PLAIN_MAX; i++)
        if (!buffer_format(&content, "u%d:{PLAIN}x\n", i))
            abort();
    ok(users_new(buffer_text(&content), "f", kit_secret, &mistakes) == NULL);
    is_text(buffer_text(&mistakes),
            TEXT("f:101: user 'u100': more than 100 users with {PLAIN}: make lines with "
                 "`petrel passwd USER`\n"),
            "too many in clear");
    buffer_clear(&content);
    buffer_clear(&mistakes);
    for (int i = 0; i < 1000; i++)
        if (!buffer_add(&content, TEXT("no user\n")))
            abort();
    ok(users_new(buffer_text(&content), "f", kit_secret, &mistakes) == NULL);
    ok_named(mistakes.length > 100 && mistakes.at[mistakes.length - 1] == '\n',
             "mistakes have a limit, and are whole lines");
    buffer_free(&content);
    buffer_free(&mistakes);
}

/* A stranger's keys: the same each time, other ones for each name, none that a password
 * proves, of a shape that a user has. */
static void
test_decoys(const char *crypt)
{
    char content[1024];
    struct verifier a, b, alice;
    struct users *users = kit_users("alice:" KIT_KEYS);
    ok(users_scram(users, TEXT("alice"), &alice));
    ok(!users_scram(users, TEXT("mallory"), &a));
    ok(!users_scram(users, TEXT("mallory"), &b));
    ok_named(memcmp(&a, &b, sizeof(a)) == 0, "the same for a name");
    ok(!users_scram(users, TEXT("mallort"), &b));
    ok_named(memcmp(a.salt, b.salt, VERIFIER_SALT) != 0, "others for another");
    ok(a.kind == VERIFIER_SCRAM && a.iterations == alice.iterations &&
       a.salt_length == alice.salt_length);
    ok(memcmp(a.salt, alice.salt, a.salt_length) != 0);
    ok(memcmp(a.stored_key, alice.stored_key, DIGEST_SIZE) != 0);
    users_free(&users);

    unsigned char other[DIGEST_SIZE] = "another";
    struct buffer mistakes;
    buffer_init(&mistakes, 100);
    users = users_new(TEXT("alice:" KIT_KEYS), "f", other, &mistakes);
    ok(!users_scram(users, TEXT("mallory"), &b));
    ok_named(memcmp(a.salt, b.salt, VERIFIER_SALT) != 0, "by the secret");
    users_free(&users);
    buffer_free(&mistakes);

    snprintf(content, sizeof(content), "alice:%s\n", crypt);
    users = kit_users(content);
    ok_named(!users_scram(users, TEXT("alice"), &a), "a crypt has no keys");
    ok(a.kind == VERIFIER_SCRAM && a.iterations == VERIFIER_ITERATIONS &&
       a.salt_length == VERIFIER_SALT);
    users_free(&users);
    users = kit_users("");
    ok(!users_scram(users, TEXT("alice"), &a));
    ok(a.iterations == VERIFIER_ITERATIONS && a.salt_length == VERIFIER_SALT);
    users_free(&users);
}

/* A line as `petrel passwd` makes it, for "pencil". Static memory, one at a time. */
static const char *
dear_line(const char *name)
{
    static char line[VERIFIER_WRITTEN_MAX + 100];
    struct verifier v;
    struct buffer out;
    buffer_init(&out, VERIFIER_WRITTEN_MAX);
    verifier_make(&v, TEXT("pencil"), TEXT("salt salt"), VERIFIER_ITERATIONS);
    ok(verifier_write(&v, &out));
    snprintf(line, sizeof(line), "%s:%.*s\n", name, TEXT_ARGS(buffer_text(&out)));
    buffer_free(&out);
    return line;
}

static enum verifier_finding
starts(const struct users *users, const char *name, const char *password)
{
    struct users_check c;
    return users_check_start(users, text_from(name), text_from(password), &c);
}

static void
test_again(void)
{
    char content[1024];
    snprintf(content, sizeof(content), "%s", dear_line("alice"));
    strcat(content, dear_line("bob"));
    struct users *users = kit_users(content);
    ok(starts(users, "alice", "pencil") == VERIFIER_UNFINISHED);
    ok(!sasl_kit_check(users, TEXT("alice"), TEXT("pencils")));
    ok(starts(users, "alice", "pencils") == VERIFIER_UNFINISHED);
    ok(sasl_kit_check(users, TEXT("alice"), TEXT("pencil")));
    ok_named(starts(users, "alice", "pencil") == VERIFIER_RIGHT, "known from before");
    ok(starts(users, "alice", "pencils") == VERIFIER_UNFINISHED);
    ok_named(starts(users, "bob", "pencil") == VERIFIER_UNFINISHED, "of alice alone");
    ok(starts(users, "mallory", "pencil") == VERIFIER_UNFINISHED);
    ok(!sasl_kit_check(users, TEXT("mallory"), TEXT("pencil")));
    ok(starts(users, "mallory", "pencil") == VERIFIER_UNFINISHED);
    users_free(&users);
}

/* By the work that is done, not by a clock. */
static void
test_costs(const char *crypt)
{
    const char *lines[] = {KIT_KEYS, crypt};
    for (size_t i = 0; i < 2; i++) {
        char content[1024];
        struct users_check user, stranger;
        snprintf(content, sizeof(content), "alice:%s\n", lines[i]);
        struct users *users = kit_users(content);
        ok(users_check_start(users, TEXT("alice"), TEXT("wrong"), &user) ==
           users_check_start(users, TEXT("mallory"), TEXT("wrong"), &stranger));
        ok_named(user.check.verifier.kind == stranger.check.verifier.kind &&
                     user.check.verifier.iterations == stranger.check.verifier.iterations,
                 "a stranger costs the same");
        is_string(user.check.verifier.crypt, stranger.check.verifier.crypt, "work");
        users_free(&users);
    }
}

int
main(void)
{
    static const char crypt[] = CRYPT;
    test_read(crypt);
    tap_tests("");
    test_decoys(crypt);
    test_again();
    test_costs(crypt);
    return done();
}
