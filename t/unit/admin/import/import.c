/* Files become lines, lines settings: words, quotes, names of programs, next hops, limits. t/e2e/import.t has whole configurations. */
#include "admin/import/import.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static struct import im;

static void
fresh(const struct import_kind *kind, const char *content)
{
    import_free(&im);
    import_init(&im, "/etc/petrel");
    im.kind = kind;
    kind->read(&im, "/nowhere/file", text_from(content));
}

static const char *
value_of(const char *key)
{
    for (size_t i = 0; i < im.setting_count; i++)
        if (strcmp(im.settings[i].key, key) == 0)
            return import_keep(&im, buffer_text(&im.settings[i].value));
    return "";
}

static void
is_setting(const char *key, const char *wanted)
{
    ok_named(strcmp(value_of(key), wanted) == 0, key);
    if (strcmp(value_of(key), wanted) != 0)
        printf("# %s = %s\n", key, value_of(key));
}

TEST(words)
{
    struct text rest = TEXT("  one \"two three\" 'x' a=\"b c\" open\" end"), word;
    const char *const wanted[] = {"one", "two three", "x", "a=\"b c\"", "open\" end"};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        ok_named(import_word(&rest, &word) && text_equal(word, text_from(wanted[i])), wanted[i]);
    ok(!import_word(&rest, &word));
    ok(text_equal(import_unquote(TEXT(" 'a\" ")), TEXT("'a\"")));
    ok(import_is_yes(TEXT("YES")) && import_is_yes(TEXT("1")) && !import_is_yes(TEXT("no")));
}

TEST(lines)
{
    fresh(&import_postfix, "# x\na = 1\n\n  2\n# y\n 3\r\nb=\nA = 4\nlast = 5");
    ok(im.count == 4);
    ok(text_equal(import_value(&im, "a"), TEXT("4")) && im.lines[0].number == 2);
    ok(strcmp(im.lines[0].value, "1 2 3") == 0);
    ok(text_equal(import_value(&im, "last"), TEXT("5")) && import_value(&im, "no").length == 0);
    fresh(&import_postfix, "a = 1\n");
    for (int i = 0; i < IMPORT_LINES_MAX; i++)
        (void)import_add(&im, "x", 1, TEXT("y"), TEXT("z"));
    ok(im.count == IMPORT_LINES_MAX && im.lines[im.count - 1].fate == IMPORT_LEFT);
    ok(import_add(&im, "x", 1, TEXT("y"), TEXT("z")) == NULL);
}

TEST(kinds)
{
    static const struct {
        const char *path, *content, *kind;
    } cases[] = {
        {"/etc/postfix/main.cf", "", "postfix"},         {"x", "relayhost = a\nmydestination =\n", "postfix"},
        {"/home/a/.msmtprc", "", "msmtp"},               {"x", "account a\nhost b\nfrom c@d\n", "msmtp"},
        {"/etc/nullmailer/", "", "nullmailer"},          {"x", "mailhub=a\nAuthUser=b\n", "ssmtp"},
        {"x", "SMARTHOST a\nSECURETRANSFER\n", "dma"},   {"x", "listen on lo0\naction a relay\n", "opensmtpd"},
        {"x", "dc_smarthost='a'\n", "exim"},             {"x", "hello\n", NULL},
        {"x", "", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct import_kind *kind = import_guess(cases[i].path, text_from(cases[i].content));
        ok_named(cases[i].kind == NULL ? kind == NULL : kind != NULL && strcmp(kind->name, cases[i].kind) == 0,
                 cases[i].content);
    }
    ok(import_named(TEXT("Postfix")) == &import_postfix && import_named(TEXT("sendmail")) == NULL);
}

TEST(next_hops)
{
    static const struct {
        const char *host, *port, *user;
        enum import_tls tls;
        const char *options, *url;
    } cases[] = {
        {"a.test", "", "", IMPORT_TLS_MAY, "", "smtp://a.test"},
        {"a.test", "25", "", IMPORT_TLS_ENCRYPT, "mx=yes", "smtp://a.test?tls=encrypt&mx=yes"},
        {"a.test", "", "u", IMPORT_TLS_MAY, "", "smtp+starttls://u@a.test"},
        {"a.test", "587", "u@b", IMPORT_TLS_MAY, "", "submission://u%40b@a.test"},
        {"a.test", "2525", "", IMPORT_TLS_START, "", "submission://a.test:2525"},
        {"a.test", "smtps", "u", IMPORT_TLS_FIRST, "", "smtps://u@a.test"},
        {"::1", "2525", "u", IMPORT_TLS_MAY, "", "smtp://u@[::1]:2525"},
        {"localhost", "", "u", IMPORT_TLS_MAY, "", "smtp://u@localhost"},
        {"192.0.2.1", "", "u", IMPORT_TLS_MAY, "", "smtp+starttls://u@[192.0.2.1]"},
    };
    fresh(&import_postfix, "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct import_hop hop = {.host = text_from(cases[i].host), .port = text_from(cases[i].port), .user = text_from(cases[i].user),
                                 .password = TEXT("@p"), .tls = cases[i].tls, .options = text_from(cases[i].options)};
        const char *url = import_target(&im, &hop);
        ok_named(strcmp(url, cases[i].url) == 0, url);
    }
    ok(strstr(import_keep(&im, buffer_text(&im.passwords)), "a.test:587 u@b @@p\n") != NULL);
    struct import_hop hop;
    ok(import_split_host(TEXT("[a]:submission"), &hop) && text_equal(hop.host, TEXT("a")));
    ok(!import_split_host(TEXT("[a"), &hop) && !import_split_host(TEXT(""), &hop) && !import_split_host(TEXT("a:x"), &hop));
    ok(!import_split_host(TEXT("[a]b"), &hop) && !import_split_host(TEXT("a:70000"), &hop));
    hop = (struct import_hop){.host = TEXT("a"), .user = TEXT("u")};
    (void)import_target(&im, &hop);
    ok(im.lacks_password != NULL);
}

TEST(fates)
{
    fresh(&import_postfix, "myhostname = a.test\nx = 1\nsmtp_sasl_auth_enable = yes\nhome_mailbox = mbox\n"
                           "myorigin = $myhostname\nmaximal_queue_lifetime = 3\nbounce_queue_lifetime = 3h\n"
                           "smtp_tls_CAfile = \001\n");
    import_run(&im);
    import_settle(&im);
    static const enum import_fate wanted[] = {IMPORT_TAKEN,    IMPORT_UNKNOWN, IMPORT_NEEDLESS, IMPORT_LEFT,
                                              IMPORT_NEEDLESS, IMPORT_TAKEN,   IMPORT_TAKEN,    IMPORT_LEFT};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
        ok_named(im.lines[i].fate == wanted[i], im.lines[i].name);
    is_setting("hostname", "a.test");
    is_setting("maximal_queue_lifetime", "3d");
    is_setting("bounce_queue_lifetime", "3h");
    is_setting("listen", "0.0.0.0:25\n[::]:25");
}

TEST(circles_and_tables)
{
    fresh(&import_postfix, "a = $b$b\nb = ${a}$(a)\nmyhostname = x$a.test\n");
    import_run(&im);
    is_setting("hostname", "x.test");
    import_put(&im, NULL, "routes", "a.test mx");
    import_put(&im, NULL, "routes", "a.test hold");
    import_put(&im, &im.lines[0], "relay", "smtp://a");
    import_put(&im, NULL, "relay", "smtp://b");
    import_put(&im, NULL, "relay", "smtp://a");
    is_setting("routes", "a.test mx");
    is_setting("relay", "smtp://a,\nsmtp://b");
    im.settings[0].error = "wrong";
    im.lines[2].setting = im.settings[0].key;
    import_settle(&im);
    ok(im.lines[2].fate == IMPORT_LEFT && strcmp(im.lines[2].why, "wrong") == 0);
    struct buffer out;
    buffer_init(&out, 64 * 1024);
    import_write(&im, &out);
    struct text all = buffer_text(&out);
    ok(memmem(all.at, all.length, "\nhostname", 9) == NULL);
    ok(memmem(all.at, all.length, "relay =\n    smtp://a,\n    smtp://b\n", 35) != NULL);
    buffer_free(&out);
    import_free(&im);
    im = (struct import){0};
}

/* A line that would let more clients relay, or mail go with less TLS, is left to the operator. */
TEST(nothing_weaker)
{
    static const struct {
        const struct import_kind *kind;
        const char *content, *key, *value;
        enum import_fate fate; /* of the first line */
    } cases[] = {
        {&import_opensmtpd, "match from src 192.0.2.0/24 for domain b.test action \"r\"\naction \"r\" relay\n", "relay_from", "", IMPORT_LEFT},
        {&import_opensmtpd, "match from src 192.0.2.0/24 auth for any action \"r\"\naction \"r\" relay\n", "relay_from", "", IMPORT_LEFT},
        {&import_opensmtpd, "match from src 192.0.2.5 for any reject\n", "relay_from", "", IMPORT_LEFT},
        {&import_opensmtpd, "match from any for any reject\n", "relay_from", "", IMPORT_NEEDLESS},
        {&import_opensmtpd, "listen on 192.0.2.1 port 25 tls-require pki x\n", "listen", "", IMPORT_LEFT},
        {&import_opensmtpd, "listen on 192.0.2.1 smtps tls-require verify pki x\n", "listen", "", IMPORT_LEFT},
        {&import_opensmtpd, "listen on 192.0.2.1 smtps tls-require pki x\n", "listen", "192.0.2.1:465?tls", IMPORT_TAKEN},
        {&import_opensmtpd, "listen on 192.0.2.1 tls pki x\n", "listen", "192.0.2.1:25", IMPORT_TAKEN},
        {&import_opensmtpd, "match from src 192.0.2.0/24 for any action \"r\"\naction \"r\" relay\n", "relay_from",
         "127.0.0.0/8\n::1\n192.0.2.0/24", IMPORT_TAKEN},
        {&import_postfix, "mynetworks = !10.0.0.5, 10.0.0.0/8\n", "relay_from", "", IMPORT_LEFT},
        {&import_postfix, "mynetworks = 10.0.0.0/8\nsmtpd_relay_restrictions = permit_sasl_authenticated, reject\n", "relay_from", "",
         IMPORT_LEFT},
        {&import_postfix, "mynetworks = 10.0.0.0/8\nsmtpd_relay_restrictions = permit_mynetworks, reject\n", "relay_from", "10.0.0.0/8",
         IMPORT_TAKEN},
        {&import_postfix, "inet_interfaces = inside.a.test\n", "listen", "", IMPORT_LEFT},
        {&import_postfix, "smtp_tls_security_level = encrypt\n", "relay", "", IMPORT_LEFT},
        {&import_postfix, "smtp_tls_security_level = dane-only\nrelayhost = [a.test]\n", "relay", "smtp://a.test", IMPORT_LEFT},
        {&import_postfix, "smtp_tls_security_level = encrypt\nrelayhost = [a.test]\n", "relay", "smtp://a.test?tls=encrypt", IMPORT_TAKEN},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        fresh(cases[i].kind, cases[i].content);
        import_run(&im);
        ok_named(im.lines[0].fate == cases[i].fate, cases[i].content);
        is_setting(cases[i].key, cases[i].value);
    }
}

/* Each form that ssmtp itself reads: a password must not be taken for a name. */
TEST(ssmtp_separators)
{
    fresh(&import_ssmtp, "mailhub a.test\nAuthUser = me\nAuthPass\tsec=ret\nUseTLS==yes\n");
    ok(text_equal(import_value(&im, "mailhub"), TEXT("a.test")) && text_equal(import_value(&im, "AuthUser"), TEXT("me")));
    ok(text_equal(import_value(&im, "AuthPass"), TEXT("sec=ret")) && text_equal(import_value(&im, "UseTLS"), TEXT("yes")));
}
