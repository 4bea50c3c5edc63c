/* smtp/policy: no open relay, by any spelling; what `listen` and `relay_from` may say.
 */
#include "smtp/access/policy.h"

#include "smtp/server/parameters.h"

#include "base/dns/idna.h"

#include "t/support/tap.h"

#include <sys/stat.h>
#include <unistd.h>

static struct route_table *
routes_new(const char *routes, const char *local)
{
    struct buffer mistakes;
    struct route_settings settings = {.routes = text_from(routes),
                                      .relay = TEXT(""),
                                      .local = text_from(local),
                                      .local_domains = TEXT("own.example, [192.0.2.1]"),
                                      .smtp_port = 25};
    buffer_init(&mistakes, 65536);
    transport_params_default(&settings.base);
    struct route_table *table = route_new(&settings, &mistakes);
    if (table == NULL) {
        printf("Bail out! %.*s\n", TEXT_ARGS(buffer_text(&mistakes)));
        exit(1);
    }
    buffer_free(&mistakes);
    return table;
}

static const struct path_rules strict = {.hostname = TEXT("own.example")},
                               forgiving = {true, TEXT("own.example")};

/* The reply code for RCPT TO:path; 250 taken, 501 no address. */
static int
ask_by(const struct path_rules *rules, const struct route_table *routes, bool may_relay,
       struct text argument)
{
    struct path path;
    struct outcome refusal;
    if (parameters_read_path(&argument, rules, &path) != NULL || argument.length > 0 ||
        path.address.local.length == 0)
        return 501;
    return policy_recipient(routes, may_relay, TEXT("a@b.example"), TARGET_ASKS_NOTHING, &path.address,
                            &refusal)
               ? 250
               : refusal.code;
}

static int
ask(const struct route_table *routes, bool may_relay, struct text path)
{
    return ask_by(&strict, routes, may_relay, path);
}

/* Attempts of open-relay tests; own.example is ours, ext.example is not. */
static const struct text relays[] = {
    TEXT("<user@ext.example>"),
    TEXT("user@ext.example"),
    TEXT("<user%ext.example@own.example>"),
    TEXT("<user%ext.example@[192.0.2.1]>"),
    TEXT("<user%ext.example>"),
    TEXT("<user%ext.example%own.example@own.example>"),
    TEXT("<user%ext.example%other.example@own.example>"),
    TEXT("<\"user@ext.example\">"),
    TEXT("<\"user@ext.example\"@own.example>"),
    TEXT("<\"user@ext.example\"@[192.0.2.1]>"),
    TEXT("<\"user%ext.example\"@own.example>"),
    TEXT("<\"user\\@ext.example\"@own.example>"),
    TEXT("<user\\@ext.example@own.example>"),
    TEXT("<user@ext.example@own.example>"),
    TEXT("<user@own.example@ext.example>"),
    TEXT("<@own.example:user@ext.example>"),
    TEXT("<@[192.0.2.1]:user@ext.example>"),
    TEXT("<@own.example,@other.example:user@ext.example>"),
    TEXT("<@other.example,@own.example:user@ext.example>"),
    TEXT("<@ext.example:user%ext.example@own.example>"),
    TEXT("<ext.example!user>"),
    TEXT("<ext.example!user@own.example>"),
    TEXT("<ext.example!user@[192.0.2.1]>"),
    TEXT("<own.example!ext.example!user@own.example>"),
    TEXT("<user%ext.example!x@own.example>"),
    TEXT("<\"ext.example!user\"@own.example>"),
    TEXT("<\"ext.example::user\"@own.example>"),
    TEXT("<ext::user>"),
    TEXT("<\"ext::user\"@ext.example>"),
    TEXT("<user@evilown.example>"),
    TEXT("<user@own.example.ext.example>"),
    TEXT("<user@sub.own.example>"),
    TEXT("<user@.own.example>"),
    TEXT("<user@own.example..>"),
    TEXT("<user@ext.example.>"),
    TEXT("<user@[203.0.113.9]>"),
    TEXT("<user@[IPv6:2001:db8::9]>"),
    TEXT("<user@[IPv6:::ffff:203.0.113.9]>"),
    TEXT("<user@3405803785>"),
    TEXT("<user@#3405803785>"),
    TEXT("<user@[127.0.0.1]>"),
    TEXT("<user@127.0.0.1>"),
    TEXT("<user@[IPv6:::1]>"),
    TEXT("<user@localhost>"),
    TEXT("<user@ext.example >"),
    TEXT("< user@ext.example>"),
    TEXT("<user @ext.example>"),
    TEXT("<user@ext.example\t>"),
    TEXT("<user@ext.example\r>"),
    TEXT("<user@ext.example\n@own.example>"),
    TEXT("<user@ext.example\0@own.example>"),
    TEXT("<user@ext.example\0.own.example>"),
    TEXT("<user@ext.example,user@own.example>"),
    TEXT("<user@ext.example;user@own.example>"),
    TEXT("<user@ext.example><user@own.example>"),
    TEXT("<user@own.example><user@ext.example>"),
    TEXT("Name <user@ext.example>"),
    TEXT("<user\xef\xbc\xa0"
         "ext.example@own.example.ext>"),
    TEXT("<user\xef\xbc\xa0"
         "ext.example@own.example>"),
    TEXT("<user\xef\xbc\x85"
         "ext.example@own.example>"),
    TEXT("<ext.example\xef\xbc\x81user@own.example>"),
    TEXT("<user\xef\xb9\xab"
         "ext.example@own.example>"),
    TEXT("<user@own\xe3\x80\x82"
         "example>"),
    TEXT("<user@ext\xe3\x80\x82own.example>"),
    TEXT("<|/bin/sh@own.example>"),
    TEXT("</etc/passwd@own.example>"),
    TEXT("user%ext.example"),
    TEXT("\"user@ext.example\""),
    TEXT("ext.example!user"),
    TEXT("<user@ext.example"),
    TEXT("user@ext.example>"),
    TEXT("<<user@ext.example>>"),
    TEXT("<user@own.example <user@ext.example>>"),
    TEXT("user@own.example <user@ext.example>"),
    TEXT("<user@ext.example (user@own.example)>"),
    TEXT("<@own.example:user@ext.example"),
    TEXT("<>"),
    TEXT("<@>"),
    TEXT("<user@>"),
    TEXT("<@ext.example>"),
};

TEST(no_open_relay)
{
    /* `local` takes any mail: only policy stands between the untrusted client and
     * it. */
    struct route_table *table = routes_new("* mx", "smtp://[198.51.100.1]");
    unsigned taken = 0;
    for (size_t i = 0; i < sizeof(relays) / sizeof(relays[0]); i++) {
        int code = ask(table, false, relays[i]);
        bool old = ask_by(&forgiving, table, false, relays[i]) == 250;
        if (code == 250 || old)
            printf("# relayed%s: %.*s\n", old ? " for an old device" : "",
                   TEXT_ARGS(relays[i]));
        taken += code == 250 || old;
        if (code != 250 && code != 501 && code != 554)
            printf("# %d: %.*s\n", code, TEXT_ARGS(relays[i]));
    }
    is_number(taken, 0, "no spelling relays for a stranger");
    is_number(ask(table, false, TEXT("<user@own.example>")), 250, "own domain");
    is_number(ask(table, false, TEXT("<user@OWN.Example>")), 250, "in any case");
    is_number(ask(table, false, TEXT("<user+tag@own.example>")), 250, "with a tag");
    is_number(ask(table, false, TEXT("<user@own.example.>")), 250, "with a dot");
    is_number(ask_by(&forgiving, table, false, TEXT("user")), 250, "its own user");
    is_number(ask(table, false, TEXT("<user@[192.0.2.1]>")), 250, "listed literal");
    is_number(ask(table, false, TEXT("<@ext.example:user@own.example>")), 250,
              "a route that leads to us is dropped");
    is_number(ask(table, false, TEXT("<postmaster>")), 250, "postmaster");
    is_number(ask(table, false, TEXT("<user@ext.example>")), 554, "relay denied");
    is_number(ask(table, true, TEXT("<user@ext.example>")), 250, "for those who may");
    is_number(ask(table, true, TEXT("<user%x@ext.example>")), 250, "in their spelling");
    route_free(&table);
}

TEST(texts_of_refusals)
{
    struct route_table *table = routes_new("a@own.example error:5.2.1 box is closed\n"
                                           "b@own.example error:4.2.1 box is busy\n"
                                           "c@own.example hold\n"
                                           "d@own.example discard\n"
                                           "* mx",
                                           "");
    struct outcome refusal;
    struct address address;
    struct text path = TEXT("<a@own.example>");
    ok(address_judge_path(&path, &address) == NULL);
    ok(!policy_recipient(table, true, TEXT(""), TARGET_ASKS_NOTHING, &address, &refusal));
    is_number(refusal.code, 550, "error: refuses at RCPT");
    is_string(refusal.enhanced, "5.2.1", "with its enhanced code");
    is_string(refusal.text, "box is closed", "and its text");
    is_number(ask(table, false, TEXT("<b@own.example>")), 450, "error:4 is temporary");
    is_number(ask(table, false, TEXT("<c@own.example>")), 250, "hold is taken");
    is_number(ask(table, false, TEXT("<d@own.example>")), 250, "discard is taken");
    is_number(ask(table, true, TEXT("<e@own.example>")), 550,
              "unknown without `local`");
    route_free(&table);
}

/* REQUIRETLS: refused at RCPT where the settings alone say that mail would come back. */
TEST(required_tls)
{
    static const struct {
        const char *recipient;
        int code;
    } rows[] = {
        {"<a@clear.example>",  550},
        {"<a@blind.example>",  550},
        {"<a@proof.example>",  250},
        {"<a@named.example>",  250},
        {"<a@store.example>",  250},
        {"<a@shut.example>",   450},
        {"<a@ext.example>",    250},
    };
    struct route_table *table = routes_new("clear.example smtp://h.example?tls=none\n"
                                           "blind.example mx?dane=no&sts=no\n"
                                           "proof.example mx?dane=no\n"
                                           "named.example smtp://h.example\n"
                                           "store.example lmtp://127.0.0.1:24\n"
                                           "shut.example error:4.2.1 not now\n"
                                           "* mx",
                                           "");
    struct outcome refusal;
    struct address address;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text path = text_from(rows[i].recipient);
        ok(address_judge_path(&path, &address) == NULL);
        bool taken = policy_recipient(table, true, TEXT("b@b.example"), TARGET_REQUIRES_TLS, &address, &refusal);
        is_number(taken ? 250 : refusal.code, rows[i].code, rows[i].recipient);
        if (rows[i].code == 550)
            is_string(refusal.enhanced, "5.7.10", "its code");
        if (i == 0)
            is_string(refusal.text, "the sender requires TLS (REQUIRETLS), and the route has no TLS", "its words");
        taken = policy_recipient(table, true, TEXT("b@b.example"), TARGET_ASKS_NOTHING, &address, &refusal);
        is_number(taken ? 250 : refusal.code, rows[i].code == 550 ? 250 : rows[i].code, "other mail");
    }
    ok(address_judge_path(&(struct text){"<a@clear.example>", 17}, &address) == NULL);
    ok(!policy_recipient(table, false, TEXT("b@b.example"), TARGET_REQUIRES_TLS, &address, &refusal));
    is_number(refusal.code, 554, "an untrusted client learns nothing of routes");
    route_free(&table);
}

/* A domain that stays beyond ASCII cannot be looked up, but a next hop may know it. */
TEST(domains_beyond_ascii)
{
    struct text path = TEXT("<a@\xcc\x88.example>");
    struct address address;
    struct outcome refusal;
    ok(address_judge_path(&path, &address) == NULL);
    struct route_table *table = routes_new("* mx", "");
    ok(!policy_recipient(table, true, TEXT(""), TARGET_ASKS_NOTHING, &address, &refusal));
    is_number(refusal.code, 553, "refused at RCPT");
    is_string(refusal.enhanced, idna_version() != NULL ? "5.1.2" : "5.6.7", "and why");
    route_free(&table);
    table = routes_new("* smtp://[192.0.2.1]", "");
    ok(policy_recipient(table, true, TEXT(""), TARGET_ASKS_NOTHING, &address, &refusal));
    route_free(&table);
}

TEST(mailboxes)
{
    char directory[] = "/tmp/petrel-policy-XXXXXX", path[64], local[96];
    if (mkdtemp(directory) == NULL)
        abort();
    snprintf(path, sizeof(path), "%s/anna", directory);
    if (mkdir(path, 0700) != 0)
        abort();
    snprintf(local, sizeof(local), "maildir:%s/%%u", directory);
    struct route_table *table = routes_new("* mx", local);
    is_number(ask(table, false, TEXT("<anna@own.example>")), 250,
              "a mailbox that exists");
    is_number(ask(table, false, TEXT("<\"anna\"@own.example>")), 250, "quoted");
    is_number(ask(table, false, TEXT("<bob@own.example>")), 550, "one that does not");
    is_number(ask(table, true, TEXT("<bob@own.example>")), 550,
              "not for friends either");
    is_number(ask(table, true, TEXT("<\"..\"@own.example>")), 550, "no way up");
    is_number(ask(table, true, TEXT("<\"anna/../anna\"@own.example>")), 550,
              "nor around");
    is_number(ask(table, true, TEXT("<\"\"@own.example>")), 501, "nor the parent");
    route_free(&table);
    rmdir(path);
    rmdir(directory);
}

static bool
may(const char *networks, const char *client)
{
    struct policy policy;
    struct net_address address;
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    bool good = policy_read(&policy, text_from(networks), false, &mistakes);
    if (!good || !net_address_parse(text_from(client), 25, &address))
        abort();
    bool answer = policy_may_relay(&policy, &address);
    policy_free(&policy);
    buffer_free(&mistakes);
    return answer;
}

static void
networks(void)
{
    const char *preset = "127.0.0.0/8, ::1";
    ok(may(preset, "127.0.0.1"));
    ok(may(preset, "127.255.0.1"));
    ok(may(preset, "[::1]:25"));
    ok(!may(preset, "128.0.0.1"));
    ok(!may(preset, "[::2]:25"));
    ok(!may(preset, "[fe80::1]:25"));
    ok(may(preset, "[::ffff:127.0.0.1]:25"));
    ok(!may(preset, "[::ffff:10.0.0.1]:25"));
    ok(!may("", "127.0.0.1"));
    ok(may("", "unix:/run/x"));
    ok(may("10.0.0.0/8\n192.168.1.0/24", "192.168.1.255"));
    ok(!may("10.0.0.0/8\n192.168.1.0/24", "192.168.2.0"));
}

/* The mistakes of relay_from, or "" when there are none. */
static const char *
complaint(const char *networks_text, bool open)
{
    static char text[4096];
    struct policy policy;
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    bool good = policy_read(&policy, text_from(networks_text), open, &mistakes);
    text_copy(text, sizeof(text), buffer_text(&mistakes));
    ok_named(good == (text[0] == '\0'), networks_text);
    policy_free(&policy);
    buffer_free(&mistakes);
    return text;
}

static void
bad_networks(void)
{
    ok(strstr(complaint("0.0.0.0/0", false), "relay_from: '0.0.0.0/0'") != NULL);
    ok(strstr(complaint("10.0.0.0/8 ::/0", false), "allow_open_relay") != NULL);
    is_string(complaint("0.0.0.0/0, ::/0", true), "", "allowed when asked for");
    ok(strstr(complaint("10.0.0.1/8", false), "write 10.0.0.0/8") != NULL);
    ok(strstr(complaint("example.org", false), "not a network") != NULL);
    ok(strstr(complaint("10.0.0.0/33", true), "not a network") != NULL);
    is_string(complaint("", false), "", "nobody");
}

static const char *
etrn_complaint(struct policy *policy, const char *etrn)
{
    static char text[1024];
    struct buffer mistakes;
    buffer_init(&mistakes, 4 << 20);
    bool good = policy_read(policy, TEXT(""), false, &mistakes) &&
                policy_read_etrn(policy, text_from(etrn), &mistakes);
    text_copy(text, sizeof(text), buffer_text(&mistakes));
    ok(good == (mistakes.length == 0));
    buffer_free(&mistakes);
    return text;
}

/* local_domains are own.example and [192.0.2.1]. */
static void
flushes(void)
{
    static const struct {
        const char *etrn, *routes, *local, *domain;
        bool may;
    } rows[] = {
        {"relay",             "own.example smtp://h.test", "",           "own.example",      true },
        {"relay",             "own.example smtp://h.test", "",           "OWN.example",      true },
        {"relay",             "own.example lmtp://h:24",   "",           "own.example",      true },
        {"relay",             "own.example mx",            "",           "own.example",      true },
        {"relay",             "* smtp://h.test",           "",           "own.example",      true },
        {"relay",             "* mx",                      "",           "own.example",      false},
        {"relay",             "* mx",                      "smtp://h.t", "own.example",      true },
        {"relay",             "* smtp://h.test",           "maildir:/x", "own.example",      false},
        {"relay",             "own.example hold",          "",           "own.example",      false},
        {"relay",             "own.example discard",       "",           "own.example",      false},
        {"relay",             "own.example error:5.1.1 x", "",           "own.example",      false},
        {"relay",             "x.example smtp://h.test",   "",           "x.example",        false},
        {"relay",             "* smtp://h.test",           "",           "x.example",        false},
        {"relay",             "* smtp://h.test",           "",           "sub.own.example",  false},
        {"relay",             "* smtp://h.test",           "",           "own.example.test", false},
        {"relay x.example",   "x.example smtp://h.test",   "",           "x.example",        true },
        {"x.example",         "* smtp://h.test",           "",           "own.example",      false},
        {"y.test, X.Example", "* mx",                      "",           "x.eXample",        true },
        {"x.example",         "* mx",                      "",           "a.x.example",      false},
        {"x.example",         "* mx",                      "",           "ax.example",       false},
        {".x.example",        "* mx",                      "",           "a.x.example",      true },
        {".x.example",        "* mx",                      "",           "a.b.x.example",    true },
        {".x.example",        "* mx",                      "",           "x.example",        false},
        {".x.example",        "* mx",                      "",           "ax.example",       false},
        {"off",               "* smtp://h.test",           "",           "own.example",      false},
        {"",                  "* smtp://h.test",           "",           "own.example",      false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct policy policy;
        char name[200];
        struct route_table *routes = routes_new(rows[i].routes, rows[i].local);
        is_string(etrn_complaint(&policy, rows[i].etrn), "", rows[i].etrn);
        snprintf(name, sizeof(name), "etrn = %s, routes = %s, local = %s: %s",
                 rows[i].etrn, rows[i].routes, rows[i].local, rows[i].domain);
        ok_named(policy_may_flush(&policy, routes, text_from(rows[i].domain)) ==
                     rows[i].may,
                 name);
        ok(policy_flushes(&policy) ==
           (rows[i].etrn[0] != '\0' && strcmp(rows[i].etrn, "off") != 0));
        policy_free(&policy);
        route_free(&routes);
    }
}

static void
bad_flushes(void)
{
    static char many[1025 * 10 + 1];
    static const char *const bad[] = {"off, relay", "relay off",  "x..y",
                                      ".",          "@x.example", "u@x.example",
                                      "#q",         "x.example."};
    struct policy policy;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_named(strncmp(etrn_complaint(&policy, bad[i]), "etrn: '", 7) == 0, bad[i]);
        policy_free(&policy);
    }
    ok(strstr(etrn_complaint(&policy, "yes..no relay off"),
              "'off': must be the only value") != NULL);
    policy_free(&policy);
    for (int i = 0; i < 1025; i++)
        snprintf(many + strlen(many), 11, "d%04d.org ", i);
    is_string(etrn_complaint(&policy, many), "etrn: 'd1024.org': too many domains\n",
              "1024 domains");
    ok(!policy_may_flush(&policy, NULL, TEXT("d1024.org")));
    ok(policy_may_flush(&policy, NULL, TEXT("d1023.org")));
    policy_free(&policy);
}

static void
priorities(void)
{
    static const struct {
        const char *text;
        bool good, offered, all;
    } rows[] = {
        {"off",      true,  false, false},
        {"trusted",  true,  true,  false},
        {" ALL ",    true,  true,  true },
        {"",         false, false, false},
        {"yes",      false, false, false},
        {"all, off", false, false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct policy policy = {0};
        FIXTURE(buffer, mistakes, buffer_init, buffer_free, 4096);
        bool good = policy_read_priority(&policy, text_from(rows[i].text), &mistakes);
        char complaint[80] = "";
        if (!rows[i].good)
            snprintf(complaint, sizeof(complaint),
                     "mt_priority: '%s': say off, trusted or all\n", rows[i].text);
        ok_named(good == rows[i].good, rows[i].text);
        is_text(buffer_text(&mistakes), text_from(complaint), "what it says");
        ok(policy.priority == rows[i].offered && policy.priority_of_all == rows[i].all);
    }
}

/* The number of endpoints, or -1; mistakes in text. */
static int
listens(const char *listen, char *text, size_t size, struct endpoint *first)
{
    struct endpoint *endpoints;
    struct buffer mistakes;
    size_t count;
    buffer_init(&mistakes, 65536);
    bool good = policy_endpoints_read(text_from(listen), &endpoints, &count, &mistakes);
    text_copy(text, size, buffer_text(&mistakes));
    if (count > 0)
        *first = endpoints[0];
    buffer_free(&mistakes);
    free(endpoints);
    return good ? (int)count : -1;
}

/* Required logins, the users of a socket, and the clients that could reach it. */
static void
doors(void)
{
    static const char *const bad[] = {
        "mode=",     "mode=66", "mode=0188", "mode=06600", "mode=000",
        "mode=1777", "uid=",    "uid=root",  "uid=-1",     "uid=4294967295"};
    static const struct {
        const char *at;
        bool public;
    } addresses[] = {
        {"127.0.0.1:25",     false},
        {"[::1]:25",         false},
        {"10.1.2.3:25",      false},
        {"172.31.0.1:25",    false},
        {"192.168.1.5:25",   false},
        {"[fd00::1]:25",     false},
        {"[fe80::1]:25",     false},
        {"169.254.1.1:25",   false},
        {"unix:/x",          false},
        {"0.0.0.0:25",       true },
        {"[::]:25",          true },
        {"192.0.2.1:25",     true },
        {"172.32.0.1:25",    true },
        {"[2001:db8::1]:25", true },
    };
    char text[8192], listen[8192] = "", one[64];
    struct endpoint first;
    is_number(
        listens("1.2.3.4:5?auth=required&profile=legacy", text, sizeof(text), &first),
        1, "AUTH, legacy");
    ok(first.auth == ENDPOINT_AUTH_REQUIRED && first.legacy);
    is_number(listens("1.2.3.4:5?auth=no", text, sizeof(text), &first), 1, "no AUTH");
    ok(first.auth == ENDPOINT_AUTH_NO && !first.legacy && first.users.mode == 0);
    is_number(listens("1.2.3.4:5?auth=maybe", text, sizeof(text), &first), -1, "maybe");
    ok(strstr(text, "say auth=required, auth=offered or auth=no") != NULL);
    is_number(listens("unix:/x?mode=0660&uid=0&uid=1000", text, sizeof(text), &first),
              1, "who may use a socket");
    ok(first.users.mode == 0660 && first.users.uid_count == 2 && first.users.uids[0] == 0 &&
       first.users.uids[1] == 1000);
    is_number(listens("unix:/x?mode=600", text, sizeof(text), &first), 1, "mode");
    ok(first.users.mode == 0600 && first.users.uid_count == 0);
    is_number(listens("1.2.3.4:5?mode=0660", text, sizeof(text), &first), -1,
              "no file");
    is_number(listens("1.2.3.4:5?uid=0", text, sizeof(text), &first), -1, "no user");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(one, sizeof(one), "unix:/x?%s", bad[i]);
        is_number(listens(one, text, sizeof(text), &first), -1, bad[i]);
    }
    strcpy(listen, "unix:/x?");
    for (int i = 0; i < NET_USERS_MAX + 1; i++)
        strcat(listen, "&uid=1");
    is_number(listens(listen, text, sizeof(text), &first), -1, "too many users");
    ok(strstr(text, "too many user ids") != NULL);
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        is_number(listens(addresses[i].at, text, sizeof(text), &first), 1,
                  "an address");
        ok_named(policy_endpoint_is_public(&first) == addresses[i].public,
                 addresses[i].at);
    }
}

static void
endpoints(void)
{
    char text[8192], listen[8192] = "";
    struct endpoint first;
    is_number(listens("127.0.0.1:2525", text, sizeof(text), &first), 1, "one");
    ok(first.address.family == NET_IPV4 && first.address.port == 2525 && !first.lmtp);
    is_number(listens("[::1]:25, 0.0.0.0:25\nunix:/run/petrel.sock", text, sizeof(text),
                      &first),
              3, "three");
    is_number(listens("unix:/run/x?lmtp", text, sizeof(text), &first), 1, "LMTP");
    ok(first.lmtp && first.address.family == NET_UNIX);
    is_string(first.address.path, "/run/x", "the options are no part of the path");
    is_number(listens("1.2.3.4:5?starttls=no&auth=no&lmtp", text, sizeof(text), &first),
              1, "options of this version");
    is_number(listens("1.2.3.4:5?auth=offered", text, sizeof(text), &first), 1,
              "offered");
    ok(first.no_starttls == false && first.tls == false);
    is_number(listens("1.2.3.4:5?peer", text, sizeof(text), &first), 1, "a peer door");
    ok(first.peer);
    is_number(
        listens("1.2.3.4:5?peer&tls, 1.2.3.4:6?proxy&peer", text, sizeof(text), &first),
        -1, "with other options");
    is_string(text,
              "listen: '1.2.3.4:5?peer&tls': peer has TLS of its own, and no other "
              "option beside it\n"
              "listen: '1.2.3.4:6?proxy&peer': peer has TLS of its own, and no other "
              "option beside it\n",
              "which do not fit");
    is_number(listens("unix:/tmp/x?peer", text, sizeof(text), &first), -1,
              "of a Unix socket");
    is_string(
        text,
        "listen: 'unix:/tmp/x?peer': peer is for addresses that other hosts reach\n",
        "which no other host reaches");
    is_number(listens("1.2.3.4:5?starttls=no", text, sizeof(text), &first), 1, "clear");
    ok(first.no_starttls && !first.tls);
    is_number(listens("1.2.3.4:5?tls", text, sizeof(text), &first), 1, "TLS");
    ok(!first.no_starttls && first.tls);
    is_number(listens("1.2.3.4:5?proxy&tls", text, sizeof(text), &first), 1, "proxy");
    ok(first.proxy && first.tls);
    is_number(listens("1.2.3.4:5?starttls=yes", text, sizeof(text), &first), 1, "both");
    ok(!first.no_starttls && !first.tls && !first.proxy);
    is_number(listens("[::1]:5?tls&share&auth=required", text, sizeof(text), &first), 1,
              "shared");
    ok(first.shared && first.tls && first.auth == ENDPOINT_AUTH_REQUIRED);
    is_number(listens("unix:/s?share", text, sizeof(text), &first), -1,
              "a Unix socket");
    ok(strstr(text, "listen: 'share': only allowed for ADDRESS:PORT\n") != NULL);
    is_number(listens("fd:smtp?share", text, sizeof(text), &first), -1, "a passed one");
    is_number(listens("127.0.0.1:0?share", text, sizeof(text), &first), -1, "any port");
    ok(strstr(text, "listen: 'share': needs the number of a port, the same for all "
                    "that share it\n") != NULL);
    is_number(listens("1.2.3.4:5?lmpt", text, sizeof(text), &first), -1,
              "unknown option");
    ok(strstr(text, "listen: 'lmpt': unknown option; write lmtp, tls, ") != NULL);
    is_number(
        listens("1.2.3.4:5?auth=required&tls&auth=no", text, sizeof(text), &first), -1,
        "an option given twice");
    ok(strstr(text, "listen: 'auth=no': given twice\n") != NULL);
    is_number(listens("unix:/s?uid=1&mode=0600&uid=2", text, sizeof(text), &first), 1,
              "user ids");
    is_number(listens("1.2.3.4", text, sizeof(text), &first), -1, "no port");
    is_number(listens("example.org:25", text, sizeof(text), &first), -1, "a name");
    is_number(listens("x, y?z", text, sizeof(text), &first), -1, "several mistakes");
    ok(strstr(text, "'x'") && strstr(text, "'y?z'") && strstr(text, "'z'"));
    for (int i = 0; i < ENDPOINTS_MAX + 1; i++)
        strcat(listen, "127.0.0.1:25 ");
    is_number(listens(listen, text, sizeof(text), &first), -1, "too many");
    is_number(listens("", text, sizeof(text), &first), 0, "none");
}

/* --- HELO and envelope ---------------------------------------------------------------- */

/* smtp/check: what a stranger says of itself. */

static struct outcome refusal;

static bool
mail(bool check_helo, bool check_sender, const char *helo, const char *sender)
{
    struct policy_checks rules = {check_helo, check_sender};
    struct net_address own;
    if (!net_address_parse(TEXT("198.51.100.1:25"), 0, &own))
        return false;
    refusal = (struct outcome){.code = 0};
    return policy_check_mail(&rules, text_from(helo), text_from(sender), "mx.example.org",
                      &own, &refusal) == (refusal.code == 0) &&
           refusal.code == 0;
}

static void
helos(void)
{
    static const char *const good[] = {"client.example",      "a.b.c.example",
                                       "[192.0.2.1]",         "[IPv6:2001:db8::1]",
                                       "[ipv6:2001:db8::1]",  "xn--bcher-kva.example",
                                       "MX.example.org.test", "mail.mx.example.org"};
    static const char *const bad[] = {
        "localhost",   "DESKTOP-4711",      "192.0.2.1",      "2001:db8::1",
        "[192.0.2]",   "[2001:db8::1]",     "[IPv6:1.2.3.4]", "[",
        "[]",          "client..example",   ".example",       "client_.example!",
        "a b.example", "[192.0.2.1] extra", "[IPv6:]",        "friend"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ok_named(mail(true, false, good[i], "a@b.example"), good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_named(!mail(true, false, bad[i], "a@b.example"), bad[i]);
        ok(refusal.code == 550 && strcmp(refusal.enhanced, "5.7.1") == 0);
        ok_named(mail(false, true, bad[i], "a@b.example"), "only when it is told to");
    }
    static const char *const ours[] = {"mx.example.org", "MX.Example.ORG",
                                       "[198.51.100.1]", "[IPv6:::ffff:198.51.100.1]"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        ok_named(!mail(true, false, ours[i], ""), ours[i]);
        is_string(refusal.text, "HELO names this host, not yours", "is ours");
        ok(mail(false, false, ours[i], ""));
    }
}

static void
senders(void)
{
    ok(mail(true, true, "c.example", ""));
    ok(mail(true, true, "c.example", "a@b.example"));
    ok(mail(true, true, "c.example", "\"a@b\"@b.example"));
    ok(mail(true, true, "c.example", "a@[192.0.2.1]"));
    static const char *const bad[] = {"a@localhost", "a@b", "a", "\"a@b.example\"@b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ok_named(!mail(false, true, "c.example", bad[i]), bad[i]);
        ok(refusal.code == 550 && strcmp(refusal.enhanced, "5.1.8") == 0);
        ok(mail(true, false, "c.example", bad[i]));
    }
}

static void
bounces(void)
{
    struct policy_checks on = {.sender = true}, off = {.helo = true};
    ok(policy_check_recipient(&on, TEXT(""), 0, &refusal));
    ok(!policy_check_recipient(&on, TEXT(""), 1, &refusal));
    is_number(refusal.code, 452, "the sender's host asks again for the others");
    is_string(refusal.enhanced, "4.5.3", "as for too many recipients");
    ok(policy_check_recipient(&on, TEXT("a@b.example"), 50, &refusal));
    ok(policy_check_recipient(&off, TEXT(""), 50, &refusal));
}

static void
sanity_tests(void)
{
    helos();
    senders();
    bounces();
}


int
main(void)
{
    tap_tests("");
    networks();
    bad_networks();
    flushes();
    bad_flushes();
    priorities();
    endpoints();
    doors();
    sanity_tests();
    return done();
}
