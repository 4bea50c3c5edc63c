/* SPF: a table of records with what they say of addresses; the limits; the syntax; macros;
 * and answers that come one by one. With a file as its argument it evaluates that instead
 * of testing: see t/e2e/spf.t. */
#include "mime/auth/spf.h"

#include "base/memory.h"
#include "t/support/spf_zone.h"
#include "t/support/tap.h"

enum { CASES_MAX = 16 * 1024 * 1024 };

static const char *const zone_lines[] = {
    "four.test TXT v=spf1 ip4:192.0.2.0/28 -all",
    "six.test TXT v=spf1 ip6:2001:db8::/33 ~all",
    "plain.test TXT v=spf1 a mx -all",
    "plain.test A 192.0.2.1",
    "plain.test MX mx1.test",
    "plain.test MX mx2.test",
    "mx1.test A 192.0.2.11",
    "mx2.test A 192.0.2.12",
    "mx2.test AAAA 2001:db8::12",
    "wide.test TXT v=spf1 a:plain.test/24//64 -all",
    "bare.test TXT v=spf1",
    "bare.test TXT something else",
    "CASE.test TXT V=SPF1 A:PLAIN.test -ALL",
    "tail.test TXT v=spf1  ip4:192.0.2.1   ?all  ",
    "in.test TXT v=spf1 include:four.test -all",
    "innone.test TXT v=spf1 include:nothing.test -all",
    "inbad.test TXT v=spf1 include:bad.test -all",
    "bad.test TXT v=spf1 ip4:192.0.2.1 nonsense -all",
    "two.test TXT v=spf1 -all",
    "two.test TXT v=spf1 +all",
    "re.test TXT v=spf1 redirect=four.test",
    "renone.test TXT v=spf1 redirect=nothing.test",
    "allfirst.test TXT v=spf1 ~all redirect=nothing.test",
    "rerere.test TXT v=spf1 redirect=four.test redirect=four.test",
    "ex.test TXT v=spf1 exists:%{ir}.%{v}.x.%{d2} -all",
    "1.2.0.192.in-addr.x.ex.test A 127.0.0.2",
    "loop.test TXT v=spf1 include:loop.test -all",
    "dead.test DEAD",
    "indead.test TXT v=spf1 include:dead.test -all",
    "ptr.test TXT v=spf1 ptr ?all",
    "plus.test TXT v=spf1 +all",
    "void.test TXT v=spf1 a:v1.test a:v2.test ip4:192.0.2.1 a:v3.test -all",
    "mod.test TXT v=spf1 moo=%{d}x exp=why.%{d} -all",
    "alias.test CNAME four.test",
    "eleven.test TXT v=spf1 a:e.test a:e.test a:e.test a:e.test a:e.test a:e.test "
    "a:e.test "
    "a:e.test a:e.test a:e.test a:e.test ip4:192.0.2.1 -all",
    "ten.test TXT v=spf1 a:e.test a:e.test a:e.test a:e.test a:e.test a:e.test "
    "a:e.test "
    "a:e.test a:e.test a:e.test ip4:192.0.2.1 -all",
    "e.test A 203.0.113.1",
    "local.test TXT v=spf1 exists:%{l}.%{o}.%{h}.x.test -all",
    "anna.local.test.helo.test.x.test A 127.0.0.2",
    "nullmx.test TXT v=spf1 mx -all",
    "nullmx.test MX ",
};

static const struct {
    const char *client, *domain;
    enum spf_result want;
} cases[] = {
    {"192.0.2.15",       "four.test",    SPF_PASS     },
    {"192.0.2.16",       "four.test",    SPF_FAIL     },
    {"2001:db8::1",      "four.test",    SPF_FAIL     },
    {"2001:db8:7fff::1", "six.test",     SPF_PASS     },
    {"2001:db8:8000::1", "six.test",     SPF_SOFTFAIL },
    {"192.0.2.1",        "plain.test",   SPF_PASS     },
    {"192.0.2.12",       "plain.test",   SPF_PASS     },
    {"192.0.2.13",       "plain.test",   SPF_FAIL     },
    {"192.0.2.200",      "wide.test",    SPF_PASS     },
    {"192.0.3.1",        "wide.test",    SPF_FAIL     },
    {"192.0.2.1",        "bare.test",    SPF_NEUTRAL  },
    {"192.0.2.1",        "case.test",    SPF_PASS     },
    {"192.0.2.1",        "tail.test",    SPF_PASS     },
    {"192.0.2.2",        "tail.test",    SPF_NEUTRAL  },
    {"192.0.2.1",        "in.test",      SPF_PASS     },
    {"192.0.2.99",       "in.test",      SPF_FAIL     },
    {"192.0.2.1",        "innone.test",  SPF_PERMERROR},
    {"192.0.2.1",        "inbad.test",   SPF_PERMERROR},
    {"192.0.2.1",        "bad.test",     SPF_PERMERROR},
    {"192.0.2.1",        "two.test",     SPF_PERMERROR},
    {"192.0.2.1",        "re.test",      SPF_PASS     },
    {"192.0.2.99",       "re.test",      SPF_FAIL     },
    {"192.0.2.1",        "renone.test",  SPF_PERMERROR},
    {"192.0.2.1",        "allfirst.test",   SPF_SOFTFAIL },
    {"192.0.2.1",        "rerere.test",  SPF_PERMERROR},
    {"192.0.2.1",        "ex.test",      SPF_PASS     },
    {"192.0.2.2",        "ex.test",      SPF_FAIL     },
    {"192.0.2.1",        "loop.test",    SPF_PERMERROR},
    {"192.0.2.1",        "dead.test",    SPF_TEMPERROR},
    {"192.0.2.1",        "indead.test",  SPF_TEMPERROR},
    {"192.0.2.1",        "ptr.test",     SPF_NEUTRAL  },
    {"192.0.2.1",        "plus.test",    SPF_PASS     },
    {"192.0.2.1",        "void.test",    SPF_PASS     },
    {"192.0.2.2",        "void.test",    SPF_PERMERROR},
    {"192.0.2.1",        "mod.test",     SPF_FAIL     },
    {"192.0.2.1",        "alias.test",   SPF_PASS     },
    {"192.0.2.1",        "ten.test",     SPF_PASS     },
    {"192.0.2.1",        "eleven.test",  SPF_PERMERROR},
    {"192.0.2.1",        "local.test",   SPF_PASS     },
    {"192.0.2.1",        "nullmx.test",  SPF_FAIL     },
    {"192.0.2.1",        "nothing.test", SPF_NONE     },
    {"192.0.2.1",        "test",         SPF_NONE     },
    {"192.0.2.1",        "a..test",      SPF_NONE     },
    {"192.0.2.1",        "",             SPF_NONE     },
};

static struct spf_query
query_of(struct spf_zone *zone, const char *client, const char *domain)
{
    struct spf_query q = {.helo = TEXT("helo.test"),
                          .local = TEXT("anna"),
                          .domain = text_from(domain),
                          .look_up = spf_zone_look_up,
                          .context = zone};
    if (!net_address_parse_ip(text_from(client), &q.client))
        abort();
    return q;
}

static void
fill(struct spf_zone *zone)
{
    spf_zone_init(zone);
    for (size_t i = 0; i < sizeof(zone_lines) / sizeof(zone_lines[0]); i++)
        spf_zone_add(zone, text_from(zone_lines[i]));
}

static void
test_results(struct spf_zone *zone)
{
    char name[200];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct spf_report report;
        struct spf_query q = query_of(zone, cases[i].client, cases[i].domain);
        enum spf_result got = spf_check(&q, &report);
        snprintf(name, sizeof(name), "%s from %s", cases[i].domain, cases[i].client);
        is_string(spf_word(got), spf_word(cases[i].want), name);
        bool error = got == SPF_PERMERROR || got == SPF_TEMPERROR;
        ok_named(error == (report.why[0] != '\0'), "an error says why, others do not");
    }
}

/* Each answer is missing once; the result is the same, after at most as many calls as there
 * are look-ups. */
static void
test_one_by_one(struct spf_zone *zone)
{
    bool same = true, few = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct spf_query q = query_of(zone, cases[i].client, cases[i].domain);
        unsigned calls = 1;
        enum spf_result got;
        zone->is_slow = true;
        zone->seen_count = 0;
        zone->asked = 0;
        while ((got = spf_check(&q, NULL)) == SPF_ASKS)
            calls++;
        same &= got == cases[i].want;
        few &= calls == zone->asked + 1;
    }
    zone->is_slow = false;
    ok_named(same, "answers that come one by one give the same result");
    ok_named(few, "each look-up costs one more call");
}

static void
test_survey(struct spf_zone *zone)
{
    struct spf_report report;
    struct spf_query q = query_of(zone, "192.0.2.1", "ten.test");
    q.is_survey = true;
    is_number(spf_check(&q, &report), SPF_NEUTRAL, "a survey: nothing matches");
    is_number(report.look_ups, 10, "and all is looked up");
    q.domain = TEXT("plain.test");
    spf_check(&q, &report);
    is_number(report.look_ups, 2, "a and mx");
    ok_named(!report.passes_all, "-all does not pass all");
    q.domain = TEXT("plus.test");
    spf_check(&q, &report);
    ok_named(report.passes_all, "+all does");
    q.domain = TEXT("ptr.test");
    spf_check(&q, &report);
    ok_named(report.uses_ptr, "ptr is noted");
    q.domain = TEXT("void.test");
    is_number(spf_check(&q, &report), SPF_PERMERROR, "three names without addresses");
    ok_named(strstr(report.why, "v3.test") != NULL, "the last one is named");
}

static const struct {
    const char *term;
    bool good;
} terms[] = {
    {"all",                     true },
    {"-all",                    true },
    {"~ALL",                    true },
    {"all:x.test",              false},
    {"all/24",                  false},
    {"-",                       false},
    {"a",                       true },
    {"a:x.test",                true },
    {"a:x.test.",               true },
    {"a/24",                    true },
    {"a//64",                   true },
    {"a:x.test/24//64",         true },
    {"a/33",                    false},
    {"a//129",                  false},
    {"a/024",                   false},
    {"a/",                      false},
    {"a:",                      false},
    {"a:x",                     false},
    {"a:x.1",                   false},
    {"a:x.-test",               false},
    {"a:x.test:8080",           false},
    {"a:%{d}",                  true },
    {"a:%{d}/24",               true },
    {"a:%{dx}",                 false},
    {"a:%{d0}",                 false},
    {"a:%{d2r.-}",              true },
    {"a:%{c}",                  false},
    {"a:%(d).test",             false},
    {"a:%d.test",               false},
    {"a:%{d",                   false},
    {"a:x%%.%_%-.test",         true },
    {"a:\x80.test",             false},
    {"a:\tx.test",              false},
    {"mx/24",                   true },
    {"include",                 false},
    {"include:x.test",          true },
    {"include:x.test/24",       false},
    {"exists:%{i}.x.test",      true },
    {"exists",                  false},
    {"ip4:192.0.2.1",           true },
    {"ip4:192.0.2.1/32",        true },
    {"ip4:192.0.2.1/33",        false},
    {"ip4:192.0.2",             false},
    {"ip4:192.0.2.01",          false},
    {"ip4:2001:db8::1",         false},
    {"ip4",                     false},
    {"ip6:2001:db8::1/128",     true },
    {"ip6:2001:db8::1/129",     false},
    {"ip6:192.0.2.1",           false},
    {"ip6:::ffff:192.0.2.1",    true },
    {"ptr",                     true },
    {"ptr:x.test",              true },
    {"ptr/24",                  false},
    {"redirect=x.test",         true },
    {"redirect=",               false},
    {"redirect:x.test",         false},
    {"exp=x.test",              true },
    {"exp=",                    false},
    {"x-y_z.1=anything/at:all", true },
    {"x=%{d}",                  true },
    {"x=%{",                    false},
    {"+x=y",                    false},
    {"=x",                      false},
    {"ipv4:192.0.2.1",          false},
    {"192.0.2.1",               false},
    {"v=spf1",                  true },
};

#define LONE_DOMAIN "email.example.com"

/* A domain whose record is one term. The names of hosts that it asks for are not known. */
struct lone_term {
    char record[700];
    char asked[SPF_NAME_MAX]; /* the first of these names */
};

static const struct spf_answer *
look_up_lone_term(void *context, enum spf_type type, const char *name)
{
    static struct text record;
    static const struct spf_answer found = {
        .found = SPF_RECORDS, .count = 1, .texts = &record};
    struct lone_term *lone = context;
    if (type == SPF_TEXTS && strcmp(name, LONE_DOMAIN) == 0) {
        record = text_from(lone->record);
        return &found;
    }
    if (lone->asked[0] == '\0')
        text_copy(lone->asked, sizeof(lone->asked), text_from(name));
    return NULL;
}

static enum spf_result
check_lone_term(struct spf_query *q, struct lone_term *lone, const char *term)
{
    snprintf(lone->record, sizeof(lone->record), "v=spf1 %s", term);
    lone->asked[0] = '\0';
    q->look_up = look_up_lone_term;
    q->context = lone;
    return spf_check(q, NULL);
}

static void
test_terms(struct spf_zone *zone)
{
    for (size_t i = 0; i < sizeof(terms) / sizeof(terms[0]); i++) {
        struct lone_term lone;
        struct spf_query q = query_of(zone, "192.0.2.3", LONE_DOMAIN);
        bool good = check_lone_term(&q, &lone, terms[i].term) != SPF_PERMERROR;
        ok_named(good == terms[i].good, terms[i].term);
    }
}

static const struct {
    const char *macro, *want;
} macros[] = {
  /* RFC 7208 §7.4 */
    {"%{s}",                               "strong-bad@email.example.com"           },
    {"%{o}",                               "email.example.com"                      },
    {"%{d}",                               "email.example.com"                      },
    {"%{d4}",                              "email.example.com"                      },
    {"%{d2}",                              "example.com"                            },
    {"%{d1}",                              "com"                                    },
    {"%{dr}",                              "com.example.email"                      },
    {"%{d2r}",                             "example.email"                          },
    {"%{l}",                               "strong-bad"                             },
    {"%{l-}",                              "strong.bad"                             },
    {"%{lr}",                              "strong-bad"                             },
    {"%{lr-}",                             "bad.strong"                             },
    {"%{l1r-}",                            "strong"                                 },
    {"%{ir}.%{v}._spf.%{d2}",              "3.2.0.192.in-addr._spf.example.com"     },
    {"%{lr-}.lp.%{ir}.%{v}._spf.%{d2}",
     "bad.strong.lp.3.2.0.192.in-addr._spf.example.com"                             },
    {"%{d2}.trusted-domains.example.net.", "example.com.trusted-domains.example.net"},
    {"%{S}",                               "strong-bad%40email.example.com"         },
    {"a%%b%_c%-d.test",                    "a%b c%20d.test"                         },
    {"%{h}",                               "helo.test"                              },
    {"%{p}",                               "unknown"                                },
};

static void
expands(struct spf_query *q, const char *macro, const char *want, const char *name)
{
    struct lone_term lone;
    char term[650];
    snprintf(term, sizeof(term), "exists:%s", macro);
    is_number(check_lone_term(q, &lone, term), SPF_ASKS, "a name is asked for");
    is_string(lone.asked, want, name);
}

static void
test_macros(struct spf_zone *zone)
{
    char name[600], *end = name;
    struct spf_query q = query_of(zone, "192.0.2.3", LONE_DOMAIN);
    q.local = TEXT("strong-bad");
    for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++)
        expands(&q, macros[i].macro, macros[i].want, macros[i].macro);
    q.client.family = NET_NONE;
    net_address_parse_ip(TEXT("2001:db8::cb01"), &q.client);
    expands(&q, "%{i}.%{v}",
            "2.0.0.1.0.d.b.8.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.c.b.0.1.ip6",
            "an IPv6 address in nibbles");
    for (size_t i = 0; i < 60; i++)
        end += snprintf(end, 10, "label%02zu.", i);
    end[-1] = '\0';
    q.local = TEXT("");
    expands(&q, name, name + 29 * 8, "a long name loses labels at its left");
    expands(&q, "%{l}", "postmaster", "without a local part");
}

static void
note_value(void *context, struct text value)
{
    char *all = context;
    snprintf(all + strlen(all), 100, "%.*s,", TEXT_ARGS(value));
}

static void
test_each(void)
{
    char all[300] = "";
    spf_each(
        TEXT("v=spf1 include:a.test ?INCLUDE:b.test includes:c.test redirect=d.test"),
        "include", note_value, all);
    is_string(all, "a.test,b.test,", "includes, with any sign");
    ok(spf_is_record(TEXT("v=spf1")) && spf_is_record(TEXT("V=spf1 x")));
    ok(!spf_is_record(TEXT("v=spf10")) && !spf_is_record(TEXT("v=spf1\tx")) &&
       !spf_is_record(TEXT("spf1")));
}

/* --- For t/e2e/spf.t ---------------------------------------------------------------- */

/* "zone" begins a zone; "+LINE" adds to it; "?CLIENT HELO LOCAL DOMAIN", "-" for an empty
 * one, prints the result. */
static int
evaluate(const char *path)
{
    static struct spf_zone zone;
    char *content = memory_new(CASES_MAX);
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(content, 1, CASES_MAX, file) : 0;
    struct text rest = text_of(content, length), line;
    spf_zone_init(&zone);
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        if (text_equal(line, TEXT("zone"))) {
            spf_zone_free(&zone);
            spf_zone_init(&zone);
        } else if (text_starts(line, TEXT("+"))) {
            spf_zone_add(&zone, text_after(line, 1));
        } else if (text_starts(line, TEXT("?"))) {
            struct text word[4] = {{0}};
            struct spf_report report;
            line = text_after(line, 1);
            for (size_t i = 0; i < 4 && text_word(&line, " ", &word[i]); i++)
                word[i] = text_equal(word[i], TEXT("-"))
                              ? TEXT("")
                              : spf_zone_unescape(&zone, word[i]);
            struct spf_query q = {.helo = word[1],
                                  .local = word[2],
                                  .domain = word[3],
                                  .look_up = spf_zone_look_up,
                                  .context = &zone};
            if (!net_address_parse_ip(word[0], &q.client))
                return 1;
            net_address_unmap(&q.client);
            printf("%s", spf_word(spf_check(&q, &report)));
            for (char *at = report.why; *at != '\0'; at++)
                *at = text_has_control(text_of(at, 1)) ? '?' : *at;
            printf("\t%u\t%u\t%s\n", report.look_ups, report.voids, report.why);
        }
    }
    spf_zone_free(&zone);
    free(content);
    return file == NULL || fclose(file) != 0;
}

int
main(int count, char **arguments)
{
    static struct spf_zone zone;
    if (count > 1)
        return evaluate(arguments[1]);
    fill(&zone);
    test_results(&zone);
    test_one_by_one(&zone);
    test_survey(&zone);
    test_terms(&zone);
    test_macros(&zone);
    test_each();
    spf_zone_free(&zone);
    return done();
}
