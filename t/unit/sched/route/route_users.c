/* Routes with users, lists of hosts, and routes for senders. */
#include "sched/route/route.h"
#include "sched/route/target.h"

#include "t/support/tap.h"
#include "t/support/target_kit.h"

static struct buffer mistakes;

static struct route_table *
table_of(struct route_settings settings)
{
    settings.smtp_port = 25;
    transport_params_default(&settings.base);
    buffer_free(&mistakes);
    buffer_init(&mistakes, 65536);
    return route_new(&settings, &mistakes);
}

static bool
says(const char *what)
{
    if (!buffer_add_byte(&mistakes, '\0'))
        abort();
    bool found = strstr(mistakes.at, what) != NULL;
    if (!found)
        printf("# said: %s\n", mistakes.at);
    return found;
}

/* --- Targets ---------------------------------------------------------------------- */

TEST(targets)
{
    static const struct {
        const char *written, *key;
    } all[] = {
        {"smtp://joe@a.example",                         "smtp:joe@[a.example]:25?tls=verify"  },
        {"smtp://joe@a.example?tls=may",                 "smtp:joe@[a.example]:25"             },
        {"smtp://joe@a.example?tls=none&auth_clear=yes",
         "smtp:joe@[a.example]:25?tls=none"                                                    },
        {"smtp://joe@127.0.0.1:2525",                    "smtp:joe@[127.0.0.1]:2525"           },
        {"smtp://joe@127.example:26",                    "smtp:joe@[127.example]:26?tls=verify"},
        {"smtp://joe@[::1]:2525",                        "smtp:joe@[::1]:2525"                 },
        {"smtp://joe@localhost?tls=none",                "smtp:joe@[localhost]:25?tls=none"    },
        {"smtps://Joe%40b.example@a.example",            "smtps:joe@b.example@[a.example]:465" },
        {"smtps://joe@b.example@a.example",              "smtps:joe@b.example@[a.example]:465" },
        {"submission://a|b.example:25|c",
         "smtp:[a]:587|[b.example]:25|[c]:587?tls=verify"                                      },
        {"smtp://A|smtp://joe@B|[::1]:26?tls=encrypt",
         "smtp:[a]:25|joe@[b]:25|[::1]:26?tls=encrypt"                                         },
        {"a|b:26",                                       "smtp:[a]:25|[b]:26"                  },
    };
    struct target t;
    char problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX];
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        if (!ok_named(target_kit_parse(all[i].written, &t, problem), all[i].written)) {
            printf("# %s\n", problem);
            continue;
        }
        size_t length = route_key(&t, TEXT("x"), key);
        is_text(text_of(key, length), text_from(all[i].key), "its queue");
    }
}

TEST(hosts)
{
    struct target t;
    char problem[TARGET_PROBLEM_MAX];
    ok(target_kit_parse("smtp://a|Joe%25%20x@B:26|smtp://c?auth=LOGIN&tls=encrypt", &t, problem));
    is_number((long)target_host_count(&t), 3, "three hosts");
    is_text(target_host(&t, 0).host, TEXT("a"), "the first");
    is_text(target_host(&t, 0).user, TEXT(""), "without user");
    is_text(target_host(&t, 1).host, TEXT("b"), "the second");
    is_text(target_host(&t, 1).user, TEXT("Joe% x"), "its user, decoded, case kept");
    is_number(target_host(&t, 1).port, 26, "its port");
    is_text(target_host(&t, 2).host, TEXT("c"), "the third");
    is_text(target_host(&t, 2).user, TEXT(""), "does not have the second's user");
    is_string(t.auth, "login", "a mechanism");
    ok(target_has_user(&t) && !t.auth_clear);
    ok(target_kit_parse("smtp://a", &t, problem) && !target_has_user(&t));
    is_number((long)target_host_count(&t), 1, "one host");
    ok(target_kit_parse("mx", &t, problem) && target_host_count(&t) == 0);
}

static const struct {
    const char *written, *says;
} bad[] = {
    {"smtp://@a",                    "the user before @"              },
    {"smtp://joe%4@a",               "badly encoded"                  },
    {"smtp://joe%zz@a",              "badly encoded"                  },
    {"smtp://joe%00@a",              "badly encoded"                  },
    {"smtp://joe%0a@a",              "badly encoded"                  },
    {"smtp://joe%ff@a",              "badly encoded"                  },
    {"smtp://joe:hush@a",            "no password is allowed here"    },
    {"lmtp://joe@a",                 "LMTP has no AUTH"               },
    {"lmtp://a|b",                   "only SMTP hosts can form a list"},
    {"smtp://a|smtps://b",           "one scheme: smtp://"            },
    {"smtps://a|smtp://b",           "one scheme: smtps://"           },
    {"smtp://a?tls=may|smtp://b",    "after the last host"            },
    {"smtp://a|",                    "is not a host name"             },
    {"smtp://|a",                    "is not a host name"             },
    {"smtp://a|b|c|d|e|f|g|h|i",     "more than 8 hosts"              },
    {"mx|a",                         "mx is not a host"               },
    {"smtp://a|b?mx=yes&auth=plain", "auth options need a user"       },
    {"smtp://a?auth_clear=yes",      "auth options need a user"       },
    {"smtp://joe@a?auth=cram-md5",   "use auth=plain, login"          },
    {"smtp://joe@a?authx=1",         "use auth=plain, login"          },
    {"smtp://joe@a?auth_clear=x",    "use yes or no"                  },
    {"smtp://joe@a?mx=yes",          "must not decide which host gets"},
    {"smtp://joe@a?tls=none",        "sent in cleartext"              },
    {"smtp://a|joe@b?tls=none",      "sent in cleartext"              },
    {"smtps://joe@a?tls=none",       "contradicts"                    },
};

TEST(bad_targets)
{
    struct target t;
    char problem[TARGET_PROBLEM_MAX], many[3000] = "smtp://a";
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        ok_named(!target_kit_parse(bad[i].written, &t, problem), bad[i].written);
        if (!ok_named(strstr(problem, bad[i].says) != NULL, bad[i].says))
            printf("# said: %s\n", problem);
    }
    for (int i = 0; i < 6; i++) {
        strcat(many, "|");
        for (int j = 0; j < 4; j++)
            strcat(many, "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij.");
        strcat(many, "example");
    }
    ok_named(!target_kit_parse(many, &t, problem), "names that do not fit");
    is_string(problem, "the names in it are too long", "and why");
    char user[200] = "smtp://";
    memset(user + 7, 'u', SECRETS_USER_MAX);
    strcpy(user + 7 + SECRETS_USER_MAX, "@a");
    ok_named(target_kit_parse(user, &t, problem), "the longest user");
    strcpy(user + 7 + SECRETS_USER_MAX, "u@a");
    ok_named(!target_kit_parse(user, &t, problem), "one more byte");
}

/* The key of a long list is cut, never too long, and another list is another target. */
TEST(long_key)
{
    struct target t;
    char problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX], many[1600] = "smtps://a";
    for (int i = 0; i < 7; i++) {
        strcat(many, "|");
        for (int j = 0; j < 2; j++)
            strcat(many, "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij.");
        strcat(many, "example.example.example.exam");
    }
    if (ok_named(target_kit_parse(many, &t, problem), "as long as can be"))
        ok(route_key(&t, TEXT(""), key) < ROUTE_KEY_MAX);
}

/* --- Passwords -------------------------------------------------------------------- */

TEST(passwords)
{
    struct route_settings s = {
        .routes = TEXT("a.example smtp://joe@b.example|jim@c.example:26"),
        .passwords = TEXT("b.example joe one\nc.example:26 jim two\n")};
    struct route_table *t = table_of(s);
    ok_named(t != NULL, "every user has a password");
    struct address address;
    ok(address_parse(TEXT("x@a.example"), &address));
    struct target first = *route_find(t, &address), second;
    ok(first.secret != 0 && first.more[0].secret != 0 &&
       first.secret != first.more[0].secret);
    ok(secrets_find(route_secrets(t), TEXT("c.example"), 26, TEXT("jim")) != NULL);
    ok(secrets_find(route_secrets(t), TEXT("b.example"), 25, TEXT("jim")) == NULL);
    ok_named(route_leads_to(t, &first), "the table leads there");
    route_free(&t);
    s.passwords = TEXT("b.example joe one\nc.example:26 jim three\n");
    t = table_of(s);
    memcpy(&second, route_find(t, &address), sizeof(second));
    ok_named(memcmp(&first, &second, sizeof(first)) != 0,
             "with another password it is another target");
    ok(!route_leads_to(t, &first) && route_leads_to(t, &second));
    route_free(&t);
    s.passwords = TEXT("b.example joe one\nc.example jimmy two\nb.example jim x");
    ok(table_of(s) == NULL);
    ok(says("no password for the user jim at c.example; put a line 'c.example jim "
            "PASSWORD' into the file that auth_passwords names, or an account into "
            "oauth\n"));
    s.passwords = TEXT("b.example");
    ok(table_of(s) == NULL && says("auth_passwords: line 1: write HOST"));
    s.passwords = TEXT("");
    s.without_secrets = true;
    t = table_of(s);
    ok_named(t != NULL, "who needs no secrets misses none");
    route_free(&t);
    s = (struct route_settings){.local = TEXT("smtp://joe@b.example"),
                                .sender_routes = TEXT("x@y smtp://jim@b.example")};
    ok(table_of(s) == NULL);
    ok(says("sender_routes: 'x@y smtp://jim@b.example': no password for the user jim"));
    ok(says("local: 'smtp://joe@b.example': no password for the user joe"));
    s = (struct route_settings){.routes = TEXT("a.b smtp://joe:hush@c x@y u:hush@z,\n"
                                               "d.e smtps://u:hush/@c")};
    ok(table_of(s) == NULL && !text_equal(buffer_text(&mistakes), TEXT("")));
    ok_named(says("routes: 'a.b smtp://joe:*@c") && !strstr(mistakes.at, "//joe:hush"),
             "a password in a route is not told again");
}

TEST(accounts)
{
    struct address address;
    struct target first, second;
    ok(address_parse(TEXT("x@a.example"), &address));
    struct secrets_account accounts[2] = {
        {TEXT("b.example"), TEXT("joe"), 0,  TEXT("one")},
        {TEXT("b.example"), TEXT("joe"), 26, TEXT("two")}
    };
    struct route_settings s = {.relay = TEXT("smtps://joe@b.example"),
                               .accounts = accounts,
                               .account_count = 2};
    struct route_table *t = table_of(s);
    ok_named(t != NULL, "a user with an account needs no password");
    memcpy(&first, route_find(t, &address), sizeof(first));
    const struct secret *secret =
        secrets_find(route_secrets(t), TEXT("b.example"), 465, TEXT("joe"));
    ok_named(secret && secret->is_account && !secret->is_token, "it is an account");
    route_free(&t);
    accounts[0].name = TEXT("three");
    t = table_of(s);
    memcpy(&second, route_find(t, &address), sizeof(second));
    ok_named(memcmp(&first, &second, sizeof(first)) != 0,
             "with another account it is another target");
    route_free(&t);
    s.passwords = TEXT("B.example:465 joe one");
    ok(table_of(s) == NULL &&
       says("oauth: the user joe at b.example has a second line, "
            "here or in auth_passwords: remove one\n"));
    s.passwords = TEXT("b.example:465 Joe one\nc.example joe two");
    t = table_of(s);
    ok_named(t != NULL, "other users and hosts may have a password");
    route_free(&t);
    s.passwords = TEXT("");
    s.relay_password = TEXT("x");
    accounts[0].port = 465;
    ok(table_of(s) == NULL && says("remove relay_password"));
    s.account_count = 0;
    s.passwords = TEXT("");
    s.relay_password = TEXT("");
    ok(table_of(s) == NULL && says("names, or an account into oauth, or set relay_"));
}

TEST(relay_password)
{
    struct address address;
    ok(address_parse(TEXT("x@a.example"), &address));
    struct route_settings s = {.relay = TEXT("submission://joe@b.example"),
                               .relay_password = TEXT(" hu sh ")};
    struct route_table *t = table_of(s);
    ok_named(t != NULL, "relay_password is for relay");
    const struct secret *secret =
        secrets_find(route_secrets(t), TEXT("b.example"), 587, TEXT("joe"));
    ok(secret && text_equal(secret->value, TEXT(" hu sh ")));
    is_string(secret ? secret->from : "", "relay_password", "its setting");
    route_free(&t);
    s.relay = TEXT("smtps://a.example, joe@b.example:466,\n smtps://c.example");
    t = table_of(s);
    ok_named(t != NULL, "of a list with one user, too");
    is_number((long)target_host_count(route_find(t, &address)), 3, "three hosts");
    ok(secrets_find(route_secrets(t), TEXT("b.example"), 466, TEXT("joe")) != NULL);
    ok_named(!secrets_find(route_secrets(t), TEXT("c.example"), 465, TEXT("joe")),
             "and for no other host of it");
    route_free(&t);
    s.relay = TEXT("smtps://joe@a.example, joe@b.example");
    ok(table_of(s) == NULL && says("relay_password is for one user, but relay has 2"));
    s.relay = TEXT("smtps://a.example");
    ok(table_of(s) == NULL && says("relay_password is set, but no user"));
    s.relay = TEXT("");
    ok(table_of(s) == NULL && says("relay_password is set, but relay is not"));
    s.relay = TEXT("smtps://joe@a.example");
    s.relay_password = TEXT("a\tb");
    ok(table_of(s) == NULL && says("relay_password has control characters"));
    s.relay_password = TEXT("x");
    s.passwords = TEXT("a.example:465 joe y");
    ok(table_of(s) == NULL && says("remove relay_password"));
    s.relay_password = s.passwords = TEXT("");
    ok(table_of(s) == NULL && says("or set relay_password or relay_password_file"));
    s.relay = TEXT("smtps://a|b, c");
    t = table_of(s);
    ok(t && target_host_count(route_find(t, &address)) == 3);
    route_free(&t);
    s.relay = TEXT("error:5.7.1 no, nothing");
    t = table_of(s);
    is_string(t ? route_find(t, &address)->path : "", "no, nothing", "no list at all");
    route_free(&t);
}

/* --- Senders ---------------------------------------------------------------------- */

static void
goes(const struct route_table *t, const char *sender, const char *recipient,
     const char *want)
{
    struct address address = {.local = text_from(recipient)};
    if (strchr(recipient, '@') && !address_parse(text_from(recipient), &address))
        abort();
    const struct target *found = route_find_from(t, text_from(sender), &address, false);
    const char *where = found->kind == TARGET_SMTP      ? found->host
                        : found->kind == TARGET_MX      ? "mx"
                        : found->kind == TARGET_HOLD    ? "hold"
                        : found->kind == TARGET_UNKNOWN ? "unknown"
                                                        : found->path;
    char name[200];
    snprintf(name, sizeof(name), "<%s> to %s", sender, recipient);
    is_string(where, want, name);
}

TEST(senders)
{
    struct route_settings s = {
        .routes = TEXT("partner.example smtp://partner, x@y.example hold, * mx"),
        .sender_routes = TEXT("joe@corp.example smtp://joes\n"
                              "corp.example smtp://corp\n.corp.example smtp://subs\n"
                              "<> smtp://bounces, direct.example mx\n"
                              "held.example hold, bad.example error:5.7.1 not you\n"),
        .relay = TEXT("smtp://relay"),
        .local = TEXT("maildir:/mail/%u"),
        .local_domains = TEXT("here.example")};
    struct route_table *t = table_of(s);
    if (!ok_named(t != NULL, "a table"))
        return;
    goes(t, "joe@corp.example", "a@b.example", "joes");
    goes(t, "JOE@Corp.Example", "a@b.example", "joes");
    goes(t, "joe+x@corp.example", "a@b.example", "corp");
    goes(t, "jim@corp.example", "a@b.example", "corp");
    goes(t, "jim@a.corp.example", "a@b.example", "subs");
    goes(t, "jim@other.example", "a@b.example", "relay");
    goes(t, "jim@direct.example", "a@b.example", "mx");
    goes(t, "jim@held.example", "a@b.example", "hold");
    goes(t, "jim@bad.example", "a@b.example", "not you");
    goes(t, "", "a@b.example", "bounces");
    goes(t, "postmaster", "a@b.example", "relay");
    goes(t, "no address", "a@b.example", "relay");
    goes(t, "jim@corp.example", "a@partner.example", "partner");
    goes(t, "jim@corp.example", "x@y.example", "hold");
    goes(t, "jim@corp.example", "a@here.example", "/mail/%u");
    goes(t, "", "postmaster", "/mail/%u");
    struct address address;
    ok(address_parse(TEXT("a@b.example"), &address));
    is_string(route_find(t, &address)->host, "relay", "of no sender in particular");
    is_string(route_find_from(t, TEXT("jim@held.example"), &address, true)->host,
              "relay", "what was released passes a sender's hold");
    is_string(route_find_from(t, TEXT("x@nowhere.example"), &address, true)->host,
              "relay", "as ever");
    route_free(&t);
}

TEST(more_senders)
{
    struct route_settings s = {.sender_routes = TEXT("a.example smtp://one\n"
                                                     "* smtp://all, b.example hold"),
                               .relay = TEXT("smtp://relay"),
                               .local_domains = TEXT("here.example")};
    struct route_table *t = table_of(s);
    goes(t, "x@a.example", "c@d.example", "one");
    goes(t, "x@b.example", "c@d.example", "all");
    goes(t, "", "c@d.example", "all");
    goes(t, "no address", "c@d.example", "all");
    goes(t, "x@a.example", "c@here.example", "one");
    route_free(&t);
    s.sender_routes = TEXT("* mx, a.example hold");
    t = table_of(s);
    goes(t, "x@a.example", "c@d.example", "mx");
    goes(t, "x@a.example", "c@here.example", "relay");
    route_free(&t);
    s.relay = TEXT("");
    t = table_of(s);
    goes(t, "x@a.example", "c@here.example", "unknown");
    route_free(&t);
    s = (struct route_settings){.sender_routes =
                                    TEXT("<x> hold, a@ hold, a.example hold, "
                                         "A.example mx, <> hold, <> mx, b")};
    ok(table_of(s) == NULL);
    ok(says(
        "sender_routes: '<x> hold': invalid pattern; use user@domain, domain, .domain "
        "(sub-domains), <> (bounces) or *\n"));
    ok(says("sender_routes: 'a@ hold': invalid pattern"));
    ok(says("sender_routes: 'A.example mx': duplicate pattern"));
    ok(says("sender_routes: '<> mx': duplicate pattern"));
    ok(says("sender_routes: 'b': no target"));
    s = (struct route_settings){.routes = TEXT("<> hold")};
    ok(table_of(s) == NULL &&
       says("routes: '<> hold': invalid pattern; use user@domain, "
            "domain, .domain (sub-domains) or *\n"));
    buffer_free(&mistakes);
}
