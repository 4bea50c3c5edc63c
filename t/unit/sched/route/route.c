/* Routes: patterns, precedence, local domains, targets, keys, and a message for each
 * mistake. */
#include "sched/route/route.h"
#include "sched/route/target.h"

#include "base/dns/idna.h"

#include "t/support/tap.h"

static struct buffer mistakes;

static struct route_table *
table_with(const char *routes, const char *relay, const char *local,
           const char *local_domains)
{
    struct route_settings settings = {.routes = text_from(routes),
                                      .relay = text_from(relay),
                                      .local = text_from(local),
                                      .local_domains = text_from(local_domains),
                                      .smtp_port = 2525};
    transport_params_default(&settings.base);
    buffer_free(&mistakes);
    buffer_init(&mistakes, 65536);
    return route_new(&settings, &mistakes);
}

static struct route_table *
table_of(const char *routes)
{
    return table_with(routes, "", "", "");
}

static const struct target *
find(const struct route_table *table, const char *mailbox)
{
    struct address address = {.local = text_from(mailbox)};
    if (strchr(mailbox, '@') && !address_parse(text_from(mailbox), &address))
        abort();
    return route_find(table, &address);
}

/* The route's target told by its error text: "" for others. */
static void
goes_to(const struct route_table *table, const char *mailbox, const char *want)
{
    is_string(find(table, mailbox)->path, want, mailbox);
}

TEST(patterns)
{
    struct route_table *t = table_of("joe@example.org error:5.1.1 joe\n"
                                     "example.org error:5.1.1 domain\n"
                                     ".example.org error:5.1.1 sub\n"
                                     ".a.example.org error:5.1.1 never\n"
                                     "Plus+tag@Example.COM error:5.1.1 plus\n"
                                     "\"a b\"@example.com error:5.1.1 quoted\n"
                                     "\"c,d\"@example.com error:5.1.1 comma\n"
                                     "[192.0.2.1] error:5.1.1 literal\n"
                                     "* error:5.1.1 all\n"
                                     "late.example error:5.1.1 late");
    ok(t != NULL);
    is_text(buffer_text(&mistakes), TEXT(""), "no mistakes");
    goes_to(t, "joe@example.org", "joe");
    goes_to(t, "JOE@EXAMPLE.ORG", "joe");
    goes_to(t, "\"joe\"@example.org", "joe");
    goes_to(t, "jane@example.org", "domain");
    goes_to(t, "joe+x@example.org", "domain");
    goes_to(t, "jane@Example.Org", "domain");
    goes_to(t, "joe@a.example.org", "sub");
    goes_to(t, "joe@b.a.Example.org", "sub");
    goes_to(t, "joe@notexample.org", "all");
    goes_to(t, "joe@example.org.example", "all");
    goes_to(t, "joe@org", "all");
    goes_to(t, "plus+tag@example.com", "plus");
    goes_to(t, "plus@example.com", "all");
    goes_to(t, "\"a b\"@example.com", "quoted");
    goes_to(t, "\"c,d\"@example.com", "comma");
    goes_to(t, "joe@[192.0.2.1]", "literal");
    goes_to(t, "joe@[192.0.2.2]", "all");
    goes_to(t, "joe@late.example", "all");
    route_free(&t);
    ok(t == NULL);
    route_free(&t);
}

/* Patterns and local domains may be written with U-labels: addresses come with
 * A-labels. */
TEST(labels)
{
    struct route_table *t =
        table_with("joe@b\xc3\xbc"
                   "cher.example error:5.1.1 joe\n"
                   "B\xc3\x9c"
                   "CHER.example error:5.1.1 domain\n"
                   ".b\xc3\xbc"
                   "cher.example error:5.1.1 sub\n"
                   "* error:5.1.1 all",
                   "", "", "M\xc3\x9cLL.example xn--mll-hoa.example");
    bool built_in = idna_version() != NULL;
    ok(t != NULL);
    goes_to(t, "joe@xn--bcher-kva.example", built_in ? "joe" : "all");
    goes_to(t, "ann@xn--bcher-kva.example", built_in ? "domain" : "all");
    goes_to(t, "ann@x.xn--bcher-kva.example", built_in ? "sub" : "all");
    ok(route_is_local_domain(t, TEXT("xn--mll-hoa.example")));
    route_free(&t);
}

TEST(order)
{
    struct route_table *t = table_of(".b.c error:5.1.1 one, \n a.b.c hold\n"
                                     "x@a.b.c discard,d mx ,, e  hold");
    goes_to(t, "x@a.b.c", "one,");
    is_number(find(t, "x@e")->kind, TARGET_HOLD, "blanks and commas between entries");
    route_free(&t);
    t = table_of("  b.c hold ,\t.b.c discard,x@b.c mx\r\n\n,\n .c hold");
    ok(t != NULL);
    is_number(find(t, "x@b.c")->kind, TARGET_HOLD, "the first that matches wins");
    is_number(find(t, "x@a.b.c")->kind, TARGET_DISCARD, "a sub-domain");
    is_number(find(t, "x@d.c")->kind, TARGET_HOLD, "a later line");
    is_number(find(t, "x@d")->kind, TARGET_MX, "what nothing matches goes by MX");
    is_number(find(t, "x@d")->port, 2525, "to smtp_port");
    route_free(&t);
    t = table_of("user@b.c discard\nb.c hold\n* error:5.7.1 no, not at all, sorry");
    is_number(find(t, "user@b.c")->kind, TARGET_DISCARD, "address before domain");
    goes_to(t, "a@d", "no, not at all, sorry");
    is_string(find(t, "a@d")->enhanced, "5.7.1", "its code");
    route_free(&t);
    t = table_of("");
    is_number(find(t, "a@d")->kind, TARGET_MX, "an empty table: MX");
    route_free(&t);
}

TEST(local)
{
    struct route_table *t =
        table_with("list@here.example error:5.1.1 list\n* mx", "", "maildir:/mail/%u",
                   "Here.example, also.example\n  third.example");
    ok(t != NULL);
    goes_to(t, "joe@here.example", "/mail/%u");
    goes_to(t, "joe@HERE.EXAMPLE", "/mail/%u");
    goes_to(t, "joe@third.example", "/mail/%u");
    goes_to(t, "list@here.example", "list");
    is_number(find(t, "joe@there.example")->kind, TARGET_MX, "others by MX");
    is_number(find(t, "joe@x.here.example")->kind, TARGET_MX,
              "a sub-domain is not local");
    is_number(find(t, "postmaster")->kind, TARGET_MAILDIR, "bare postmaster is local");
    ok(route_is_local_domain(t, TEXT("ALSO.example")));
    ok(!route_is_local_domain(t, TEXT("example")));
    ok(!route_is_local_domain(t, TEXT("")));
    route_free(&t);

    t = table_with("* mx", "", "", "here.example");
    is_number(find(t, "joe@here.example")->kind, TARGET_UNKNOWN,
              "no local target and * mx: unknown");
    is_number(find(t, "Postmaster")->kind, TARGET_UNKNOWN, "postmaster too");
    route_free(&t);
    t = table_with("", "", "", "here.example");
    is_number(find(t, "joe@here.example")->kind, TARGET_UNKNOWN, "the same without *");
    route_free(&t);
    t = table_with("", "smart.example", "", "here.example");
    is_string(find(t, "joe@here.example")->host, "smart.example",
              "a smarthost takes all");
    is_string(find(t, "postmaster")->host, "smart.example", "postmaster as well");
    route_free(&t);
    t = table_with("* lmtp://store.example", "", "", "here.example");
    is_number(find(t, "joe@here.example")->kind, TARGET_LMTP, "an LMTP host too");
    route_free(&t);
    t = table_with("* discard", "", "", "here.example");
    is_number(find(t, "joe@here.example")->kind, TARGET_DISCARD,
              "* discard takes local mail too");
    route_free(&t);
    t = table_with("* mx\nhere.example hold", "", "maildir:/m/%u", "here.example");
    is_number(find(t, "joe@here.example")->kind, TARGET_MAILDIR,
              "behind * never matches");
    route_free(&t);
    t = table_with("postmaster@here.example hold", "", "", "here.example");
    is_number(find(t, "postmaster")->kind, TARGET_HOLD,
              "bare postmaster is looked up with the first local domain");
    route_free(&t);
    t = table_with("", "", "maildir:/m/%u", "");
    is_number(find(t, "postmaster")->kind, TARGET_MAILDIR, "and without any: local");
    is_number(find(t, "a@b")->kind, TARGET_MX, "the rest is not");
    route_free(&t);
}

/* Mail that an operator has released looks for the next route. */
static void
past_hold(const char *routes, const char *local, const char *mailbox,
          enum target_kind want)
{
    struct address address;
    struct route_table *t = table_with(routes, "", local, "here.example");
    if (t == NULL || !address_parse(text_from(mailbox), &address))
        abort();
    is_number(route_find_from(t, TEXT(""), &address, true)->kind, want, mailbox);
    route_free(&t);
}

TEST(past_hold)
{
    past_hold("a.example hold\n* discard", "", "x@a.example", TARGET_DISCARD);
    past_hold("x@a.example hold\na.example discard\n* mx", "", "x@a.example",
              TARGET_DISCARD);
    past_hold("b.a.example hold\n.a.example hold\n.example discard\n* mx", "",
              "x@b.a.example", TARGET_DISCARD);
    past_hold("* hold", "", "x@a.example", TARGET_MX);
    past_hold("* hold\na.example discard", "", "x@a.example", TARGET_DISCARD);
    past_hold("a.example error:5.1.1 no\n* hold", "", "x@a.example", TARGET_ERROR);
    past_hold("here.example hold", "maildir:/m/%u", "x@here.example", TARGET_MAILDIR);
    past_hold("here.example hold", "", "x@here.example", TARGET_UNKNOWN);
    past_hold("* hold", "hold", "x@here.example", TARGET_UNKNOWN);
    past_hold("* discard", "hold", "x@here.example", TARGET_DISCARD);
}

TEST(relay)
{
    struct route_table *t =
        table_with("a.example hold\n* mx", "[192.0.2.9]:2526", "", "");
    ok(t != NULL);
    is_string(find(t, "x@b.example")->host, "192.0.2.9",
              "relay replaces the default * mx");
    is_number(find(t, "x@b.example")->port, 2526, "its port");
    is_number(find(t, "x@a.example")->kind, TARGET_HOLD, "routes come first");
    route_free(&t);
    t = table_with("* hold", "smart.example", "", "");
    ok(t == NULL);
    is_text(
        buffer_text(&mistakes),
        TEXT("relay: 'smart.example': routes sends * elsewhere, so this never matches; "
             "remove one of them\n"),
        "a relay that is never reached is a mistake");
}

static bool
parse(const char *written, struct target *t, char problem[TARGET_PROBLEM_MAX])
{
    struct transport_params base;
    transport_params_default(&base);
    base.recipient_limit = 77;
    problem[0] = '\0';
    return target_parse(text_from(written), 2525, &base, t, problem);
}

TEST(hosts)
{
    static const struct {
        const char *written, *host;
        enum target_kind kind;
        int port;
        const char *key;
    } good[] = {
        {"smtp://mail.example.:26",  "mail.example", TARGET_SMTP, 26,    "smtp:[mail.example]:26"},
        {"smtp://mail.example",      "mail.example", TARGET_SMTP, 25,
         "smtp:[mail.example]:25"                                                                },
        {"SMTP://Mail.Example:587",  "mail.example", TARGET_SMTP, 587,
         "smtp:[mail.example]:587"                                                               },
        {"mail.example",             "mail.example", TARGET_SMTP, 25,    "smtp:[mail.example]:25"},
        {"mailhost:2525",            "mailhost",     TARGET_SMTP, 2525,  "smtp:[mailhost]:2525"  },
        {"[192.0.2.1]",              "192.0.2.1",    TARGET_SMTP, 25,    "smtp:[192.0.2.1]:25"   },
        {"192.0.2.1:26",             "192.0.2.1",    TARGET_SMTP, 26,    "smtp:[192.0.2.1]:26"   },
        {"[::1]",                    "::1",          TARGET_SMTP, 25,    "smtp:[::1]:25"         },
        {"[IPv6:2001:DB8::1]:65535", "2001:db8::1",  TARGET_SMTP, 65535,
         "smtp:[2001:db8::1]:65535"                                                              },
        {"[mail.example]:1",         "mail.example", TARGET_SMTP, 1,     "smtp:[mail.example]:1" },
        {"smtp://[::1]:24",          "::1",          TARGET_SMTP, 24,    "smtp:[::1]:24"         },
        {"smtp://d.example?mx=yes",  "d.example",    TARGET_SMTP, 25,    "smtp:d.example:25"     },
        {"smtp://d.example?mx=no",   "d.example",    TARGET_SMTP, 25,    "smtp:[d.example]:25"   },
        {"lmtp://store",             "store",        TARGET_LMTP, 24,    "lmtp:[store]:24"       },
        {"lmtp://127.0.0.1:2003",    "127.0.0.1",    TARGET_LMTP, 2003,
         "lmtp:[127.0.0.1]:2003"                                                                 },
        {"smtp://a?tls=may",         "a",            TARGET_SMTP, 25,    "smtp:[a]:25"           },
        {"a:26?tls=none&initial=1",  "a",            TARGET_SMTP, 26,    "smtp:[a]:26?tls=none"  },
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        struct target t;
        char problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX];
        ok_named(parse(good[i].written, &t, problem), good[i].written);
        is_string(t.host, good[i].host, "host");
        is_number(t.kind, good[i].kind, "kind");
        is_number(t.port, good[i].port, "port");
        is_number(t.transport.recipient_limit, 77, "settings of all transports");
        size_t length = route_key(&t, TEXT("other.example"), key);
        is_text(text_of(key, length), text_from(good[i].key), "key");
        is_number(strlen(key), length, "the key ends in NUL");
    }
}

/* Level, port and key of each scheme, and what ?tls= makes of them. */
TEST(tls)
{
    static const struct {
        const char *written;
        enum target_tls tls;
        bool implicit;
        int port;
        const char *key;
    } all[] = {
        {"mx",                                      TARGET_TLS_MAY,     false, 2525, "smtp:other.example"         },
        {"mx?tls=may",                              TARGET_TLS_MAY,     false, 2525, "smtp:other.example"         },
        {"mx?tls=none",                             TARGET_TLS_NONE,    false, 2525, "smtp:other.example?tls=none"},
        {"mx?tls=encrypt",                          TARGET_TLS_ENCRYPT, false, 2525,
         "smtp:other.example?tls=encrypt"                                                                         },
        {"mx?TLS=Verify",                           TARGET_TLS_VERIFY,  false, 2525,
         "smtp:other.example?tls=verify"                                                                          },
        {"a.example",                               TARGET_TLS_MAY,     false, 25,   "smtp:[a.example]:25"        },
        {"smtp://a.example",                        TARGET_TLS_MAY,     false, 25,   "smtp:[a.example]:25"        },
        {"smtp://a.example:587?tls=verify",         TARGET_TLS_VERIFY,  false, 587,
         "smtp:[a.example]:587?tls=verify"                                                                        },
        {"smtp://a.example?mx=yes&tls=verify",      TARGET_TLS_VERIFY,  false, 25,
         "smtp:a.example:25?tls=verify"                                                                           },
        {"smtp+starttls://a.example",               TARGET_TLS_VERIFY,  false, 25,
         "smtp:[a.example]:25?tls=verify"                                                                         },
        {"submission://a.example",                  TARGET_TLS_VERIFY,  false, 587,
         "smtp:[a.example]:587?tls=verify"                                                                        },
        {"Submission+STARTTLS://a.example",         TARGET_TLS_VERIFY,  false, 587,
         "smtp:[a.example]:587?tls=verify"                                                                        },
        {"submission://a.example:2587?tls=encrypt", TARGET_TLS_ENCRYPT, false, 2587,
         "smtp:[a.example]:2587?tls=encrypt"                                                                      },
        {"smtps://a.example",                       TARGET_TLS_VERIFY,  true,  465,  "smtps:[a.example]:465"      },
        {"submissions://[::1]",                     TARGET_TLS_VERIFY,  true,  465,  "smtps:[::1]:465"            },
        {"smtps://a.example:26?tls=encrypt",        TARGET_TLS_ENCRYPT, true,  26,
         "smtps:[a.example]:26?tls=encrypt"                                                                       },
        {"lmtp://a.example",                        TARGET_TLS_NONE,    false, 24,   "lmtp:[a.example]:24"        },
        {"lmtp://a.example?tls=may",                TARGET_TLS_MAY,     false, 24,
         "lmtp:[a.example]:24?tls=may"                                                                            },
        {"lmtp://a.example?tls=verify",             TARGET_TLS_VERIFY,  false, 24,
         "lmtp:[a.example]:24?tls=verify"                                                                         },
        {"lmtp://unix:/a?tls=none",                 TARGET_TLS_NONE,    false, 0,    "lmtp:unix:/a"               },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        struct target t;
        char problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX];
        ok_named(parse(all[i].written, &t, problem), all[i].written);
        is_number(t.tls, all[i].tls, "its level");
        is_number(t.tls_implicit, all[i].implicit, "from the first byte or not");
        is_number(t.port, all[i].port, "its port");
        route_key(&t, TEXT("other.example"), key);
        is_string(key, all[i].key, "its queue");
    }
    is_string(target_tls_word(TARGET_TLS_ENCRYPT), "encrypt", "a level has a word");
}

static void
defragments(const char *routes, const char *relay, const char *local, bool want)
{
    struct route_table *t = table_with(routes, relay, local, "");
    ok_named(t && route_defragments(t) == want, routes);
    route_free(&t);
}

/* Wherever the target stands. */
TEST(defragments)
{
    defragments("* smtp://b", "", "", false);
    defragments("a.example mx?defragment=yes\n* smtp://b", "", "", true);
    defragments("a.example mx", "smtp://b?defragment=yes", "", true);
    defragments("a.example mx", "", "maildir:/m/%u?defragment=yes", true);
    defragments("a.example mx?defragment=no", "", "", false);
}

static void
demands(const char *routes, const char *relay, const char *local, bool want)
{
    struct route_table *t = table_with(routes, relay, local, "");
    ok_named(t && route_demands_verify(t) == want, routes);
    route_free(&t);
}

TEST(demands)
{
    demands("", "", "", false);
    demands("a.example mx?tls=encrypt\n* smtp://b", "", "lmtp://c", false);
    demands("a.example mx\nb.example mx?tls=verify", "", "", true);
    demands("* hold\nb.example smtps://c", "", "", true);
    demands("", "submission://a", "", true);
    demands("", "", "lmtp://c?tls=verify", true);
}

TEST(others)
{
    struct target t;
    char problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX];
    ok(parse("lmtp://unix:/run/LMTP.sock", &t, problem) && t.kind == TARGET_LMTP);
    is_string(t.path, "/run/LMTP.sock", "a socket's path");
    is_string(t.host, "", "has no host");
    route_key(&t, TEXT(""), key);
    is_string(key, "lmtp:unix:/run/LMTP.sock", "and keeps its case in the key");
    ok(parse("mx?concurrency=3&recipients=9", &t, problem) && t.kind == TARGET_MX);
    ok(t.look_up_mx && t.transport.concurrency_limit == 3);
    is_number(t.transport.recipient_limit, 9, "an option overrides the base");
    route_key(&t, TEXT("Example.ORG"), key);
    is_string(key, "smtp:example.org", "the key of a domain");
    ok(parse("maildir:/var/Mail/%d/%u/100%%?create=yes", &t, problem));
    is_string(t.path, "/var/Mail/%d/%u/100%%", "a Maildir's path as written");
    ok(t.create && t.kind == TARGET_MAILDIR);
    is_string(t.users, "/etc/passwd", "yes: for the users of the system");
    ok(parse("maildir:/m/%u?create=all", &t, problem) && t.create);
    is_string(t.users, "", "for all");
    ok(parse("maildir:/m/%u?create=/etc/names&timeout_scale=2", &t, problem) && t.create);
    is_string(t.users, "/etc/names", "for some");
    ok(parse("maildir:/m/%u?create=no", &t, problem) && !t.create);
    ok(!parse("maildir:/m/%u?create=maybe", &t, problem));
    ok_named(strstr(problem, "use yes, no, all or the path of a file") != NULL, problem);
    route_key(&t, TEXT("a"), key);
    is_string(key, "maildir", "one queue for all Maildirs");
    ok(parse("maildir:/var/mail/all", &t, problem) && !t.create);
    ok(parse("hold", &t, problem) && t.kind == TARGET_HOLD);
    ok(parse("Discard", &t, problem) && t.kind == TARGET_DISCARD);
    ok(parse("error:5.1.1 No such user, sorry?", &t, problem) &&
       t.kind == TARGET_ERROR);
    is_string(t.path, "No such user, sorry?", "error text");
    is_string(t.enhanced, "5.1.1", "error code");
    ok(parse("error:4.300.299", &t, problem));
    is_string(t.path, "mail for this address is not accepted", "a text of our own");
    ok(parse("smtp://a?timeout_scale=0.5", &t, problem) && t.timeout_scale == 0.5);
    ok(parse("smtp://a?timeout_scale=12.34", &t, problem) && t.timeout_scale > 12.339);
    ok(parse("smtp://a", &t, problem) && t.timeout_scale == 1.0);
    ok(parse("smtp://a?defragment=no", &t, problem) && !t.defragment);
    is_number(t.notices_ms, INT64_C(4) * 24 * 3600 * 1000, "notices, unless said");
    ok(parse("mx?defragment=yes&notices=2h,8d", &t, problem) && t.defragment);
    is_number(t.notices_ms, 2 * 3600 * 1000, "the first of them");
    ok(parse("maildir:/m/%u?defragment=yes", &t, problem) && t.defragment);
    ok(parse("lmtp://unix:/run/l?defragment=yes", &t, problem) && t.defragment);
    ok(parse("lmtp://unix:/run/l?verp=yes", &t, problem) && t.transport.verp == 0);
    ok(parse("mx?verp=yes", &t, problem) && t.transport.verp == 1);
    ok(parse("smtp://a?minimal_backoff=1s&maximal_backoff=1s", &t, problem));
}

/* The URL, the key and the parts of a web application. */
TEST(web_application)
{
    struct target t;
    char problem[TARGET_PROBLEM_MAX], key[ROUTE_KEY_MAX], url[TARGET_URL_MAX];
    ok(parse("https://joe%40x@App.example/In/Bound?auth=bearer&sign=key&private=yes&concurrency=2", &t, problem) &&
       t.kind == TARGET_HTTP);
    target_url(&t, url);
    is_string(url, "https://app.example:443/In/Bound", "the URL has no user and no options");
    is_text(target_user(&t), TEXT("joe@x"), "the user");
    is_text(target_signer(&t), TEXT("key"), "the name of a key");
    ok(t.is_private && t.tls_implicit && t.transport.concurrency_limit == 2);
    is_string(t.auth, "bearer", "a token");
    route_key(&t, TEXT("a"), key);
    is_string(key, "https:joe@x@[app.example]:443/In/Bound", "the key keeps the case of the path");
    ok(parse("http://[::1]:8080", &t, problem));
    target_url(&t, url);
    is_string(url, "http://[::1]:8080/", "a path of its own, an address in brackets");
    ok(parse("http://u@127.0.0.1/", &t, problem));
    ok_named(parse("http://u@10.1.1.1/?auth_clear=yes", &t, problem), problem);
    ok(parse("http://app:81/x?private=no&auth=basic", &t, problem) && !t.is_private);
}

/* Users and keys need a line of their own. */
TEST(web_secrets)
{
    static const struct {
        const char *passwords, *why;
    } rows[] = {
        {"app.example joe x\napp.example key whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", NULL},
        {"app.example joe @/run/token\napp.example key a-secret-of-24-octets-00", NULL},
        {"app.example joe x", "no password for the user key at app.example"},
        {"app.example key a-secret-of-24-octets-00", "no password for the user joe at app.example"},
        {"app.example joe x\napp.example key short", "key at app.example signs: its secret needs 24"},
        {"app.example joe x\napp.example key @/run/key", "key at app.example signs: write its secret"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        FIXTURE(buffer, errors, buffer_init, buffer_free, 10000);
        struct route_settings settings = {.routes = TEXT("* https://joe@app.example/x?sign=key"),
                                          .passwords = text_from(rows[i].passwords),
                                          .smtp_port = 25};
        transport_params_default(&settings.base);
        struct route_table *table = route_new(&settings, &errors);
        ok_named((table != NULL) == (rows[i].why == NULL), rows[i].passwords);
        if (rows[i].why != NULL)
            ok_named(memmem(errors.at, errors.length, rows[i].why, strlen(rows[i].why)) != NULL, rows[i].why);
        route_free(&table);
    }
}

/* Where mail for an address goes, and to whom. */
TEST(redirect)
{
    static const struct {
        const char *sender, *address, *host, *to;
    } rows[] = {
        {"", "x@any.example", "dev.test", "T@dev.example"},
        {"", "x@good.example", "good.test", ""},
        {"", "x@a.sub.example", "", ""},
        {"", "x@sub.example", "dev.test", "T@dev.example"},
        {"", "Ann@Net.example", "", ""},
        {"", "bob@net.example", "dev.test", "T@dev.example"},
        {"", "t@dev.example", "dev.test", ""},
        {"", "x@mx.example", "", "t@else.example"}, /* whose way is not `* redirect` again */
        {"", "t@else.example", "dev.test", "T@dev.example"},
        {"app@out.example", "x@any.example", "dev.test", "T@dev.example"},
        {"app@in.example", "x@any.example", "", "in@else.example"},
    };
    FIXTURE(buffer, errors, buffer_init, buffer_free, 10000);
    struct route_settings settings = {
        .routes = TEXT("dev.example smtp://dev.test\ngood.example smtp://good.test\n"
                       "mx.example redirect:t@else.example\n"
                       "* redirect:T@DEV.example?allow=good.example,.sub.example,ann@net.example"),
        .sender_routes = TEXT("in.example redirect:in@else.example"),
        .smtp_port = 25};
    transport_params_default(&settings.base);
    struct route_table *table = route_new(&settings, &errors);
    ok_named(table != NULL, "redirects");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct address address;
        ok(address_parse(text_from(rows[i].address), &address));
        const struct target *t = route_find_from(table, text_from(rows[i].sender), &address, false);
        is_string(t->host, rows[i].host, rows[i].address);
        is_string(t->to, rows[i].to, "  to");
        is_text(route_recipient(t, TEXT("own")), rows[i].to[0] != '\0' ? text_from(rows[i].to) : TEXT("own"), "  recipient");
        ok(t->to[0] == '\0' || t->transport.recipient_limit == 1);
    }
    route_free(&table);
    /* A smarthost is the way, and never that to a recipient. */
    struct address any;
    ok(address_parse(TEXT("x@any.example"), &any));
    settings.routes = TEXT("* redirect:t@dev.example?allow=good.example");
    settings.sender_routes = TEXT("");
    settings.relay = TEXT("smtp://relay.test");
    table = route_new(&settings, &errors);
    const struct target *t = table != NULL ? route_find(table, &any) : NULL;
    ok(t != NULL);
    is_string(t->to, "t@dev.example", "with a relay");
    is_string(t->host, "relay.test", "by which it goes");
    ok(address_parse(TEXT("x@good.example"), &any));
    t = route_find(table, &any);
    is_string(t->host, "relay.test", "others, too");
    is_string(t->to, "", "to themselves");
    route_free(&table);
}

static const struct {
    const char *written, *says;
} bad[] = {
    {"smtps://a.example?tls=may",        "tls=may contradicts smtps://"      },
    {"smtps://a.example?tls=none",       "or smtp://HOST:465?tls=none"       },
    {"submission://a?tls=may",           "or smtp://HOST:587?tls=may"        },
    {"submission+starttls://a?tls=none", "never sends in cleartext"         },
    {"submissions://a?tls=none",         "contradicts submissions://"        },
    {"smtp+starttls://a?tls=may",        "or smtp://HOST:25?tls=may"         },
    {"smtps+starttls://a",               "unknown target"                    },
    {"lmtps://a",                        "unknown target"                    },
    {"smtps://unix:/a",                  "is not a port"                        },
    {"lmtp://unix:/a?tls=verify",        "a Unix socket is not a network"    },
    {"lmtp://a+starttls",                "is not a host name"                   },
    {"maildir:/mail?tls=may",            "unknown here"                      },
    {"hold?tls=may",                     "have no options"                   },
    {"joe@a.example",                    "for AUTH write smtp://USER@HOST"   },
    {"smtp://a?tls=",                    "use none, may, encrypt or verify"  },
    {"smtp://a?tls=yes",                 "use none, may, encrypt or verify"  },
    {"",                                 "unknown target"                    },
    {"maildri:/x",                       "unknown target"                    },
    {"/var/mail/x",                      "unknown target"                    },
    {"http://a.example/",                "write https://"                    },
    {"http://192.0.2.1/x",               "write https://"                    },
    {"https:///x",                       "is not a host name"                },
    {"https://a.example/a b",            "must be encoded"                   },
    {"https://a.example/a#b",            "has a fragment"                    },
    {"https://a.example:0/",             "is not a port"                     },
    {"https://a.example|https://b.example/", "is not"                        },
    {"https://a:b@a.example/",           "no password is allowed here"       },
    {"https://a.example/?tls=none",      "unknown here"                      },
    {"https://a.example/?form=json",     "unknown here"                      },
    {"https://a.example/?sign=",         "use a name that auth_passwords has"},
    {"https://u@a.example/?auth=digest", "use basic or bearer"               },
    {"https://a.example/?auth=bearer",   "need a user"                       },
    {"https://a.example/?private=2",     "use yes or no"                     },
    {"http://u@10.1.1.1/",               "sent in cleartext"                 },
    {"smtp://a?sign=key",               "unknown here"                      },
    {"smtp://",                          "is not a host name"                   },
    {"smtp://a b",                       "is not a host name"                   },
    {"smtp://a..b",                      "is not a host name"                   },
    {"smtp://a/",                        "is not a host name"                   },
    {"smtp://a:",                        "is not a port"                        },
    {"smtp://a:0",                       "is not a port"                        },
    {"smtp://a:65536",                   "is not a port"                        },
    {"smtp://a:2x",                      "is not a port"                        },
    {"a:smtp",                           "is not a port"                        },
    {"::1",                              "put an IPv6 address in brackets"   },
    {"2001:db8::1",                      "put an IPv6 address in brackets"   },
    {"[::1",                             "']' is missing"                    },
    {"[]",                               "no address or name"                },
    {"[::g]",                            "no address or name"                },
    {"[1.2.3.4]x",                       "is not a port"                        },
    {"lmtp://unix:run/x",                "must be absolute"                  },
    {"lmtp://unix:",                     "must be absolute"                  },
    {"maildir:mail/%u",                  "must be absolute"                  },
    {"maildir:/",                        "must be absolute"                  },
    {"maildir:/mail/%x",                 "only %u (user), %d (domain) and %%"},
    {"maildir:/mail/%",                  "only %u (user), %d (domain) and %%"},
    {"maildir:/mail/\001",               "control characters"                },
    {"maildir:/mail?create=maybe",       "use yes, no, all or the path"      },
    {"smtp://a?create=yes",              "unknown here"                      },
    {"lmtp://a?mx=yes",                  "unknown here"                      },
    {"smtp://a?mx=2",                    "use yes or no"                     },
    {"smtp://a?quota=2/d..9/d+in+3d+since+2026-02-30", "or for a ramp 200/d..50000/d+in+30d+since+2026-12-01"},
    {"smtp://a?concurency=1",            "unknown here or its value is invalid"  },
    {"smtp://a?concurrency=x",           "'concurrency=x'"                   },
    {"smtp://a?concurrency",             "write NAME=VALUE"                  },
    {"smtp://a?",                        "write NAME=VALUE"                  },
    {"smtp://a?initial=1&",              "write NAME=VALUE"                  },
    {"smtp://a?timeout_scale=0",         "0.01 to 1000"                      },
    {"smtp://a?timeout_scale=",          "0.01 to 1000"                      },
    {"smtp://a?timeout_scale=1001",      "0.01 to 1000"                      },
    {"smtp://a?timeout_scale=1.234",     "0.01 to 1000"                      },
    {"smtp://a?defragment=maybe",        "use yes or no"                     },
    {"smtp://a?rate=100",                "rate"                              },
    {"smtp://a?notices=8d,4d",           "times that rise"                   },
    {"smtp://a?notices=1s",              "times that rise"                   },
    {"smtp://a?notices=",                "times that rise"                   },
    {"smtp://a?minimal_backoff=2h",      "shorter than minimal_backoff"      },
    {"error:",                           "error:5.1.1"                       },
    {"error:no",                         "error:5.1.1"                       },
    {"error:2.0.0 fine",                 "error:5.1.1"                       },
    {"error:5.1 x",                      "error:5.1.1"                       },
    {"error:5.1.1.1 x",                  "error:5.1.1"                       },
    {"error:5..1 x",                     "error:5.1.1"                       },
    {"error:5.1.1000 x",                 "error:5.1.1"                       },
    {"error:5.1.1 a\tb\001",             "control characters"                },
    {"hold?x=1",                         "have no options"                   },
};

TEST(bad_targets)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct target t;
        char problem[TARGET_PROBLEM_MAX];
        ok_named(!parse(bad[i].written, &t, problem), bad[i].written);
        if (!ok_named(strstr(problem, bad[i].says) != NULL, bad[i].says))
            printf("# said: %s\n", problem);
    }
}

TEST(long_targets)
{
    struct target t;
    char problem[TARGET_PROBLEM_MAX], path[2000] = "maildir:/";
    memset(path + 9, 'x', TARGET_PATH_MAX - 2);
    ok_named(parse(path, &t, problem), "the longest path");
    path[9 + TARGET_PATH_MAX - 2] = 'x';
    ok_named(!parse(path, &t, problem), "one more");
    ok(strstr(problem, "too long") != NULL);
    memset(path, 'a', sizeof(path) - 1);
    ok_named(!parse(path, &t, problem), "a host of 1999 letters");
    path[0] = '[';
    path[1998] = ']';
    ok_named(!parse(path, &t, problem), "in brackets too");
    memcpy(path, "error:5.1.1 ", 12);
    ok_named(!parse(path, &t, problem), "an error text without end");
    memcpy(path, "smtp://a?", 9);
    ok_named(!parse(path, &t, problem), "an option without end");
    ok(strlen(problem) < TARGET_PROBLEM_MAX);
}

/* A list in an option of a route: a comma within an entry has no blank behind it. */
TEST(lists)
{
    static const char *const lists[] = {
        "a.test smtp://x?rate=10/s,burst=2&notices=4h,1d,3d, b.test mx\n* hold",
        "a.test smtp://x?rate=10/s,burst=2&notices=4h,1d,3d,b.test mx\n* hold",
        "a.test smtp://x?notices=4h,1d,3d&rate=10/s,burst=2\nb.test mx,* hold",
        "a.test smtp://x?rate=10/s,burst=2&notices=4h,1d,3d , b.test mx,,* hold,",
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        struct route_table *t = table_with(lists[i], "", "", "");
        is_text(buffer_text(&mistakes), TEXT(""), lists[i]);
        const struct target *a = find(t, "u@a.test");
        ok(a->transport.rate.amount == 10 && a->transport.rate.burst == 2);
        is_number(a->notice_count, 3, "all of the list");
        ok(a->notices[0] == 4 * 3600000 && a->notices[2] == 3 * 24 * 3600000);
        ok(find(t, "u@b.test")->kind == TARGET_MX);
        ok(find(t, "u@c.test")->kind == TARGET_HOLD);
        route_free(&t);
    }
    static const struct {
        const char *routes, *says;
    } wrong[] = {
        {"a.test smtp://x?notices=4h, 1d",    "'1d': no target; a list in an option is "},
        {"a smtp://x?rate=10/s, burst=2",     "'burst=2': no target; a list in an option"},
        {"a.test smtp://x?notices=4h,1d b mx", "text after the target"                   },
        {"a.test smtp://x?notices=1d,4h",     "use up to 9 times that rise"              },
        {"a.test smtp://x,y",                 "'a.test smtp://x,y': "                    },
        {"a.test smtp://x, y.test",           "'y.test': no target; write PATTERN"       },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct route_table *t = table_with(wrong[i].routes, "", "", "");
        ok(t == NULL);
        ok_named(strstr(buffer_text(&mistakes).at, wrong[i].says) != NULL, wrong[i].says);
    }
}

/* Behind `relay`, too; hosts are separated before the options alone. */
TEST(relay_lists)
{
    struct route_table *t =
        table_with("", "smtp://a.example, smtp://b.example?rate=10/s,burst=2", "", "");
    is_text(buffer_text(&mistakes), TEXT(""), "no error");
    const struct target *a = find(t, "u@a.test");
    is_number(target_host_count(a), 2, "two hosts");
    ok(a->transport.rate.amount == 10 && a->transport.rate.burst == 2);
    route_free(&t);
    t = table_with("", "smtp://a.example?rate=10/s,burst=2, smtp://b.example", "", "");
    ok(t == NULL);
    ok_named(strstr(buffer_text(&mistakes).at, "options go after the last host") != NULL,
             "no host follows the options");
}

TEST(notices)
{
    struct target t;
    char problem[TARGET_PROBLEM_MAX];
    ok(parse("mx", &t, problem));
    ok_named(target_notice_ms(&t, 0) == INT64_MAX, "none unless told so");
    is_number(t.notices_ms, 4 * 24 * 3600000, "fragments: 4 days");
    ok(parse("mx?delay_warning=5h", &t, problem));
    is_number(target_notice_ms(&t, 0), 5 * 3600000, "delay_warning is the only one");
    ok(target_notice_ms(&t, 1) == INT64_MAX);
    is_number(t.notices_ms, 4 * 24 * 3600000, "and not one of fragments");
    ok(parse("mx?delay_warning=5h&notices=1h,2h", &t, problem));
    is_number(target_notice_ms(&t, 0), 3600000, "a list replaces it");
    is_number(target_notice_ms(&t, 1), 2 * 3600000, "time by time");
    ok(target_notice_ms(&t, 2) == INT64_MAX);
    is_number(t.notices_ms, 3600000, "fragments: the first");
    ok(parse("mx?notices=1m,2m,3m,4m,5m,6m,7m,8m,9m", &t, problem));
    ok(!parse("mx?notices=1m,2m,3m,4m,5m,6m,7m,8m,9m,10m", &t, problem));
}

TEST(mistakes)
{
    struct route_table *t = table_with(
        "a.example\nb.example nowhere://x, c.example mx\n@x mx\n"
        "d..e hold\n.hold\n* mx mx\ne.example hold\nE.example mx\n*.f mx\n,hold\n",
        "smtps://x?tls=no", "mbox:/x", "ok.example -bad_.example- x@y");
    ok(t == NULL);
    is_text(
        buffer_text(&mistakes),
        TEXT("routes: 'a.example': no target; write PATTERN TARGET, e.g. * mx\n"
             "routes: 'b.example nowhere://x': unknown target 'nowhere'; use mx, "
             "smtp://HOST[:PORT], submission://HOST, smtps://HOST, lmtp://HOST:PORT, "
             "lmtp://unix:/PATH, maildir:/PATH/%u, https://HOST/PATH, redirect:ADDRESS, "
             "hold, discard, error:5.1.1 TEXT, HOST or [ADDRESS]\n"
             "routes: '@x mx': invalid pattern; use user@domain, domain, .domain "
             "(sub-domains) or *\n"
             "routes: 'd..e hold': invalid pattern; use user@domain, domain, .domain "
             "(sub-domains) or *\n"
             "routes: '.hold': no target; write PATTERN TARGET, e.g. * mx\n"
             "routes: '* mx mx': text after the target; write one entry per line, "
             "or separate with commas\n"
             "routes: 'E.example mx': duplicate pattern, which never "
             "matches; remove one\n"
             "routes: '*.f mx': invalid pattern; use user@domain, domain, .domain "
             "(sub-domains) or *\n"
             "routes: 'hold': no target; write PATTERN TARGET, e.g. * mx\n"
             "relay: 'smtps://x?tls=no': tls=no: use none, may, encrypt or verify\n"
             "local: 'mbox:/x': unknown target 'mbox:/x'; use mx, smtp://HOST[:PORT], "
             "submission://HOST, smtps://HOST, lmtp://HOST:PORT, lmtp://unix:/PATH, "
             "maildir:/PATH/%u, https://HOST/PATH, redirect:ADDRESS, hold, discard, "
             "error:5.1.1 TEXT, HOST or [ADDRESS]\n"
             "local_domains: '-bad_.example-': not a domain name\n"
             "local_domains: 'x@y': not a domain name\n"),
        "every mistake has a line with its entry and the way out");
    char many[600];
    memset(many, 'x', sizeof(many) - 1);
    many[sizeof(many) - 1] = '\0';
    ok(table_of(many) == NULL);
    ok_named(mistakes.length < 300, "a long entry is cut in its message");
}

TEST(bytes)
{
    struct target a, b;
    char problem[TARGET_PROBLEM_MAX];
    memset(&a, 0x11, sizeof(a));
    memset(&b, 0x22, sizeof(b));
    ok(parse("smtp://mail.example:26?initial=2", &a, problem));
    ok(parse("smtp://mail.example:26?initial=2", &b, problem));
    ok_named(memcmp(&a, &b, sizeof(a)) == 0,
             "equal targets are equal bytes, so that they are kept once");
}

TEST(many)
{
    struct buffer routes;
    char line[80];
    buffer_init(&routes, 1 << 20);
    for (int i = 0; i < 2000; i++) {
        int length = snprintf(line, sizeof(line), "d%d.example smtp://host%d\n", i, i);
        if (!buffer_add(&routes, text_of(line, (size_t)length)))
            abort();
    }
    if (!buffer_add_byte(&routes, '\0'))
        abort();
    struct route_table *t = table_of(routes.at);
    buffer_free(&routes);
    is_string(find(t, "x@d1999.example")->host, "host1999", "the last of 2000");
    is_string(find(t, "x@d0.example")->host, "host0", "the first");
    is_number(find(t, "x@d2000.example")->kind, TARGET_MX, "none");
    route_free(&t);
}

static void
count_target(void *context, const struct target *target)
{
    unsigned *counts = context;
    counts[target->kind]++;
}

TEST(each_target)
{
    unsigned counts[TARGET_UNKNOWN + 1] = {0};
    struct route_table *table =
        table_with("a.test maildir:/a/%u\nb.test maildir:/b\n* smtp://c.test", "",
                   "maildir:/d/%u", "d.test");
    route_each_target(table, count_target, counts);
    is_number(counts[TARGET_MAILDIR], 3, "every target is told, that of local too");
    is_number(counts[TARGET_SMTP], 1, "once a pattern");
    route_free(&table);
}

static void
note_hidden(void *context, const char *key, const char *pattern, const char *by)
{
    if (!buffer_format(context, "%s %s<%s ", key, pattern, by))
        abort();
}

static void
hidden_are(const char *routes, const char *senders, const char *want)
{
    struct buffer told;
    struct route_settings settings = {.routes = text_from(routes),
                                      .sender_routes = text_from(senders),
                                      .smtp_port = 25};
    transport_params_default(&settings.base);
    struct route_table *t = route_new(&settings, &mistakes);
    buffer_init(&told, 4096);
    if (t != NULL)
        route_each_hidden(t, note_hidden, &told);
    is_text(buffer_text(&told), text_from(want), routes);
    buffer_free(&told);
    route_free(&t);
}

/* An entry behind a pattern that matches all of it is never chosen. */
TEST(hidden)
{
    hidden_are("* mx", "* mx", "");
    hidden_are("a@b.test mx\nb.test mx\n.b.test mx\n.test mx\n* mx", "<> mx\n* mx", "");
    hidden_are("* mx\nb.test mx\na@b.test mx", "* mx\n<> mx\na.test mx",
               "routes b.test<* routes a@b.test<* sender_routes <><* "
               "sender_routes a.test<* ");
    hidden_are("B.test mx\na@b.TEST mx\n* mx", "", "routes a@b.test<b.test ");
    hidden_are(".test mx\nb.test mx\na@b.test mx\n.b.test mx\ntest mx", "",
               "routes b.test<.test routes a@b.test<.test routes .b.test<.test ");
    hidden_are(".b.test mx\nb.test mx\na@b.test mx\n\"b.test@\"@c.test mx", "",
               "routes a@b.test<b.test ");
    /* Released mail goes past what holds; what holds is hidden like any other. */
    hidden_are("* hold\nb.test mx", "", "");
    hidden_are("b.test hold\n.test mx\na@b.test mx\na.b.test hold", "",
               "routes a@b.test<.test routes a.b.test<.test ");
    struct route_table *t = table_of(".test error:5.1.1 first\n"
                                     "a@b.test error:5.1.1 never\n"
                                     "test error:5.1.1 second");
    goes_to(t, "a@b.test", "first");
    goes_to(t, "a@test", "second");
    route_free(&t);
}

int
main(void)
{
    tap_tests("");
    buffer_free(&mistakes);
    return done();
}
