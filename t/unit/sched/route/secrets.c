/* Passwords for next hops: what is found for whom, and what a file may not hold. */
#include "sched/route/secrets.h"

#include "base/memory.h"
#include "t/support/tap.h"

static struct buffer mistakes;

static struct secrets *
read_table(struct text table)
{
    buffer_free(&mistakes);
    buffer_init(&mistakes, 4096);
    return secrets_new(table, &mistakes);
}

static const struct secret *
find(const struct secrets *s, const char *host, uint16_t port, const char *user)
{
    return secrets_find(s, text_from(host), port, text_from(user));
}

static void
finds(const struct secrets *s, const char *host, uint16_t port, const char *user,
      const char *want)
{
    const struct secret *found = find(s, host, port, user);
    is_text(found ? found->value : TEXT("(none)"), text_from(want), host);
}

TEST(lines)
{
    struct secrets *s = read_table(TEXT("# a comment\r\n\n  \t\n"
                                        "a.example joe  pass word \r\n"
                                        "a.example:587 joe other\n"
                                        "A.Example Jane \tj\xc3\xa4ne\n"
                                        "[192.0.2.1]:25 joe four\n"
                                        "[IPv6:2001:DB8::1] joe six\n"
                                        "b.example joe@a.example @@at\n"
                                        "c.example joe # no comment\n"
                                        "d.example joe @/run/token\n"
                                        "e.example joe x"));
    if (!ok_named(s != NULL, "a table"))
        return;
    is_text(buffer_text(&mistakes), TEXT(""), "without mistakes");
    finds(s, "a.example", 25, "joe", "pass word");
    finds(s, "A.EXAMPLE", 465, "joe", "pass word");
    finds(s, "a.example", 587, "joe", "other");
    finds(s, "a.example", 587, "Jane", "j\xc3\xa4ne");
    finds(s, "a.example", 587, "jane", "(none)");
    finds(s, "a.example", 587, "", "(none)");
    finds(s, "sub.a.example", 587, "joe", "(none)");
    finds(s, "example", 587, "joe", "(none)");
    finds(s, "192.0.2.1", 25, "joe", "four");
    finds(s, "192.0.2.1", 26, "joe", "(none)");
    finds(s, "2001:db8::1", 25, "joe", "six");
    finds(s, "b.example", 25, "joe@a.example", "@at");
    finds(s, "c.example", 25, "joe", "# no comment");
    finds(s, "d.example", 25, "joe", "/run/token");
    finds(s, "e.example", 25, "joe", "x");
    ok_named(find(s, "d.example", 25, "joe")->is_token, "a token's file");
    ok_named(!find(s, "b.example", 25, "joe@a.example")->is_token, "a password with @");
    is_string(find(s, "a.example", 25, "joe")->from, "auth_passwords", "its setting");
    ok_named(secrets_find(NULL, TEXT("a"), 1, TEXT("b")) == NULL,
             "no table, no secret");
    secrets_free(&s);
    ok(s == NULL);
    secrets_free(&s);
}

TEST(add)
{
    struct secrets *s = read_table(TEXT("a.example joe all"));
    struct text a = TEXT("a.example"), joe = TEXT("joe");
    ok_named(secrets_add(s, a, 25, joe, TEXT(" @/x "), "relay_password"),
             "one for a port beside the one for all");
    finds(s, "a.example", 25, "joe", " @/x ");
    finds(s, "a.example", 26, "joe", "all");
    ok_named(!find(s, "a.example", 25, "joe")->is_token, "as it is");
    is_string(find(s, "a.example", 25, "joe")->from, "relay_password", "its setting");
    ok_named(!secrets_add(s, a, 25, joe, TEXT("y"), "relay_password"), "not twice");
    ok_named(!secrets_add(s, a, 26, joe, TEXT(""), "relay_password"), "not empty");
    ok_named(!secrets_add(s, a, 26, joe, TEXT("a\nb"), "relay_password"), "one line");
    ok(secrets_error(TEXT("\xff")) != NULL);
    ok(secrets_error(TEXT("a b\xc3\xa4")) == NULL);
    secrets_free(&s);
}

TEST(marks)
{
    struct secret a = {.value = TEXT("/a")}, b = {.value = TEXT("/b")}, token = a;
    token.is_token = true;
    ok_named(secrets_mark(&a) == secrets_mark(&a), "one mark for one password");
    ok_named(secrets_mark(&a) != secrets_mark(&b), "another for another");
    ok_named(secrets_mark(&a) != secrets_mark(&token), "and for a token");
    ok(secrets_mark(&a) != 0);
}

static const struct {
    const char *line, *says;
} bad[] = {
    {"a.example",                  "write HOST[:PORT] USER PASSWORD"    },
    {"a.example joe",              "the password is missing"            },
    {"a.example joe \t ",          "the password is missing"            },
    {"a.example:0 joe secret",     "begin with the host"                },
    {"a.example:65536 joe secret", "begin with the host"                },
    {"a.example: joe:secret x",    "begin with the host"                },
    {"a.example:x joe secret",     "begin with the host"                },
    {":25 joe secret",             "begin with the host"                },
    {"::1 joe secret",             "begin with the host"                },
    {"[::1 joe secret",            "begin with the host"                },
    {"[] joe secret",              "begin with the host"                },
    {"[::1]25 joe secret",         "begin with the host"                },
    {"a..b joe secret",            "begin with the host"                },
    {"smtp://a joe secret",        "begin with the host"                },
    {"joe@a.example joe secret",   "begin with the host"                },
    {"a.example joe @secret",      "absolute path"                      },
    {"a.example joe @",            "absolute path"                      },
    {"a.example joe sec\002ret",   "control characters"                 },
    {"a.example joe sec\xffret",   "not UTF-8"                          },
    {"a.example j\001oe secret",   "user's name"                        },
    {"a.example j\xc3 secret",     "user's name"                        },
    {"ok.example joe secret",      "a line above for this host and user"},
};

TEST(bad_lines)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        FIXTURE(buffer, table, buffer_init, buffer_free, 4096);
        if (!buffer_format(&table, "# 1\nOK.example joe x\n%s\n", bad[i].line))
            abort();
        struct secrets *s = read_table(buffer_text(&table));
        ok_named(s == NULL, bad[i].line);
        if (!buffer_add_byte(&mistakes, '\0'))
            abort();
        ok_named(
            strstr(mistakes.at, bad[i].says) != NULL &&
                text_starts(buffer_text(&mistakes), TEXT("auth_passwords: line 3: ")),
            bad[i].says);
        ok_named(strstr(mistakes.at, "secret") == NULL, "without the secret");
    }
}

TEST(limits)
{
    char line[2000] = "a.example joe ";
    memset(line + 14, 'x', SECRETS_PASSWORD_MAX);
    struct secrets *s = read_table(text_from(line));
    ok_named(s != NULL, "the longest password");
    secrets_free(&s);
    line[14 + SECRETS_PASSWORD_MAX] = 'x';
    ok_named(read_table(text_from(line)) == NULL, "one more byte");
    memset(line, 0, sizeof(line));
    memcpy(line, "a.example ", 10);
    memset(line + 10, 'u', SECRETS_USER_MAX);
    memcpy(line + 10 + SECRETS_USER_MAX, " x", 2);
    s = read_table(text_from(line));
    ok_named(s != NULL, "the longest user");
    secrets_free(&s);
    memcpy(line + 10 + SECRETS_USER_MAX, "u x", 3);
    ok_named(read_table(text_from(line)) == NULL, "one more byte");
    memset(line, 'h', 300);
    memcpy(line + 300, " u x", 5);
    ok_named(read_table(text_from(line)) == NULL, "a host that is none");
    ok_named(read_table(text_of("a.example joe a\0b", 17)) == NULL, "a NUL byte");
}

/* For any bytes it ends, and says so when it takes nothing. */
TEST(noise)
{
    static const char letters[] = "a.:@/[] \t\r\n#\\\"'%\x01\xff\xc3\xa4"
                                  "019";
    uint64_t random = 12345;
    unsigned silent = 0;
    for (int round = 0; round < 3000; round++) {
        char noise[120];
        size_t length = 0;
        for (; length < sizeof(noise); length++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            noise[length] = letters[(random >> 33) % (sizeof(letters) - 1)];
        }
        struct secrets *s = read_table(text_of(noise, length));
        silent += (s == NULL) != (mistakes.length > 0);
        secrets_free(&s);
    }
    is_number(silent, 0, "noise is told, or taken");
}

TEST(full)
{
    struct buffer table;
    buffer_init(&table, 1 << 20);
    for (int i = 0; i < 1000; i++)
        if (!buffer_add(&table, TEXT("x\n")))
            abort();
    ok_named(read_table(buffer_text(&table)) == NULL, "more mistakes than can be told");
    buffer_free(&table);
    buffer_free(&mistakes);
}

static void
note_file(void *context, const char *path)
{
    char *all = context;
    strcat(all, path);
    strcat(all, "\n");
}

/* The files that the sandbox has to leave readable, behind a byte order mark; no password is taken for a path. */
TEST(files)
{
    char all[200] = "";
    FIXTURE(buffer, wrong, buffer_init, buffer_free, 1000);
    struct secrets *s = secrets_new(TEXT("\xef\xbb\xbf"
                                         "a.test joe @/run/token\nb.test jim @@/x\n"
                                         "c.test ann /etc/passwd\n"),
                                    &wrong);
    secrets_each_file(s, note_file, all);
    is_string(all, "/run/token\n", "the files of tokens");
    secrets_each_file(NULL, note_file, all);
    is_string(all, "/run/token\n", "and no others");
    secrets_free(&s);
}
