/* link: t/sim/loop.c */
/* link: t/sim/dns.c */
/* Arguments; which domains and hosts are examined; mail that leaves by a smarthost, and mail
 * that leaves directly; a world in which nothing answers. Faults of each kind:
 * t/e2e/doctor.t. */
#include "admin/findings/doctor.h"

#include "base/net/net.h"

#include "t/sim/sim.h"
#include "t/sim/sim_dns.h"
#include "t/support/must.h"
#include "t/support/printed.h"
#include "t/support/tap.h"

static char subject[] = "a.test", hostname[] = "mail.a.test";
static char nowhere[] = "/nonexistent/petrel";

struct bed {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct options options;
    struct route_table *routes;
    struct rewrites *rewrites;
    struct accounts accounts;
    struct doctor_setup setup;
    struct printed printed;
    char *subjects[4];
    int count, code;
};

static struct doctor_key two_keys[] = {
    {"a.test", "s1", "rsa", 2048, TEXT("AbCd")},
    {"key.test", "s2", "rsa", 1024, TEXT("EfGh")},
};

static void
bed_open(struct bed *b, const char *relay)
{
    char error[200];
    struct buffer errors;
    *b = (struct bed){.loop = sim_loop_new(1)};
    buffer_init(&errors, 1000);
    b->net = net_new(b->loop);
    b->dns = dns_new(b->loop, TEXT(""), error, sizeof(error));
    b->options.hostname = hostname;
    b->options.delivery.smtp_port = 25;
    b->options.control = b->options.spool = nowhere;
    b->routes = route_new(&(struct route_settings){.relay = text_from(relay), .local_domains = TEXT("b.test, localhost, mail.a.test, box.localdomain"), .without_secrets = true, .smtp_port = 25}, &errors);
    b->rewrites = rewrites_new(&(struct rewrites_settings){.table = TEXT("local root@c.test\n# x y@z.test\n* @d.test, e.test ="), .hostname = hostname}, &errors);
    must(b->routes != NULL && b->rewrites != NULL);
    b->setup = (struct doctor_setup){.options = &b->options,
                                     .routes = b->routes,
                                     .accounts = &b->accounts,
                                     .rewrites = b->rewrites,
                                     .has_secrets = true,
                                     .keys = two_keys,
                                     .key_count = 2,
                                     .loop = b->loop,
                                     .net = b->net,
                                     .dns = b->dns,
                                     .validating = b->dns};
}

static const char *
bed_run(struct bed *b)
{
    struct doctor_request request = {.count = b->count, .subjects = b->subjects};
    printed_begin(&b->printed);
    b->code = doctor_run(&b->setup, &request);
    return printed_end(&b->printed);
}

static void
bed_close(struct bed *b)
{
    route_free(&b->routes);
    rewrites_free(&b->rewrites);
    dns_free(&b->dns);
    net_free(&b->net);
    loop_free(&b->loop);
}

TEST(request)
{
    char json[] = "--json", lists[] = "--blocklists", domain[] = "a.test", other[] = "b.test";
    char *good[] = {json, domain, lists, other};
    struct doctor_request r;
    ok(doctor_read_request(4, good, &r) && r.json && r.blocklists && r.count == 2);
    is_string(r.subjects[0], "a.test", "a domain");
    is_string(r.subjects[1], "b.test", "another one");
    char address[] = "\"a b\"@a.test", literal[] = "x@[192.0.2.1]";
    char *ways[] = {address, literal};
    ok(doctor_read_request(2, ways, &r) && r.count == 2);
    ok(doctor_read_request(0, good, &r) && r.count == 0 && !r.json);
    static char bad[][20] = {"--what", "word", "a b.test", "a b@a.test", "x@a.test@b.test", "@a.test", "x@", "a..test", "-", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *one[] = {bad[i]};
        ok_named(!doctor_read_request(1, one, &r), bad[i]);
    }
}

TEST(domains)
{
    static const char *const there[] = {"a.test", "key.test", "b.test", "mail.a.test", "c.test", "d.test"};
    static const char *const absent[] = {" z.test", " e.test", "localhost", "localdomain"};
    FIXTURE(bed, b, bed_open, bed_close, "");
    const char *text = bed_run(&b);
    is_number(b.code, 1, "nothing of it is there: an error");
    for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
        char line[100];
        snprintf(line, sizeof(line), "spf.record        %s\n", there[i]);
        ok_named(strstr(text, line) != NULL || strlen(text) > 8000, there[i]);
    }
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        ok_named(strstr(text, absent[i]) == NULL, absent[i]);
}

/* Mail leaves with it, and reports come back to it. */
TEST(bounces)
{
    char address[] = "bounce@came.test";
    FIXTURE(bed, b, bed_open, bed_close, "");
    b.options.bounces = address;
    const char *text = bed_run(&b);
    ok(strstr(text, "spf.record        came.test") != NULL);
    ok(strstr(text, "dmarc.record      came.test") == NULL);
}

TEST(direct)
{
    FIXTURE(bed, b, bed_open, bed_close, "");
    b.subjects[b.count++] = subject;
    b.setup.key_count = 0;
    sim_dns_address(b.dns, "mail.a.test", "192.0.2.1");
    sim_dns_host(b.dns, "192.0.2.1", "mail.a.test");
    sim_dns_mx(b.dns, "a.test", 10, "mail.a.test");
    sim_dns_text(b.dns, "a.test", "v=spf1 a:mail.a.test -all");
    sim_dns_text(b.dns, "_dmarc.a.test", "v=DMARC1; p=none");
    const char *text = bed_run(&b);
    is_number(b.code, 0, "without a key there are warnings alone");
    ok(strstr(text, "no large receiver can be looked up") != NULL);
    ok(strstr(text, "ok      host.ptr          192.0.2.1: its name is mail.a.test") != NULL);
    ok(strstr(text, "ok      spf.record        a.test: it permits our addresses (1 look-ups)") != NULL);
    ok(strstr(text, "warning dkim.key          a.test\n") != NULL);
    ok(strstr(text, "    petrel dkim-key a.test --directory /etc/petrel/dkim\n") != NULL);
}

TEST(smarthosts)
{
    struct bed b;
    bed_open(&b, "submission://me@smtp.gmail.com");
    b.subjects[b.count++] = subject;
    sim_dns_text(b.dns, "a.test", "v=spf1 ip4:192.0.2.7 -all");
    sim_dns_text(b.dns, "_spf.google.com", "v=spf1 ip4:192.0.2.9 ~all");
    const char *text = bed_run(&b);
    ok(strstr(text, "include:_spf.google.com is") != NULL);
    ok(strstr(text, "a.test. 3600 IN TXT ( \"v=spf1 include:_spf.google.com ip4:192.0.2.7 -all\" )") != NULL);
    ok(strstr(text, "no mail leaves directly") != NULL && strstr(text, "net.port25") == NULL);
    bed_close(&b);
    bed_open(&b, "submission://apikey@smtp.sendgrid.net");
    b.subjects[b.count++] = subject;
    b.setup.key_count = 0;
    text = bed_run(&b);
    ok(strstr(text, "SendGrid signs, if it is set up") != NULL);
    ok(strstr(text, "an envelope sender of its own") != NULL);
    bed_close(&b);
    bed_open(&b, "submission://me@smtp.elsewhere.test");
    b.subjects[b.count++] = subject;
    text = bed_run(&b);
    ok(strstr(text, "The manual of smtp.elsewhere.test says what to include") != NULL);
    bed_close(&b);
}

/* A new record keeps each address of the old one, also where one begins like another. */
TEST(kept)
{
    struct bed b;
    char many[4000] = "v=spf1 nonsense";
    bed_open(&b, "");
    b.subjects[b.count++] = subject;
    sim_dns_address(b.dns, "mail.a.test", "192.0.2.10");
    sim_dns_text(b.dns, "a.test", "v=spf1 nonsense ip4:192.0.2.1 ip4:192.0.2.10 ip4:192.0.2.1/32 IP4:192.0.2.1 -all");
    const char *text = bed_run(&b);
    ok(strstr(text, "( \"v=spf1 ip4:192.0.2.10 ip4:192.0.2.1 ip4:192.0.2.1/32 ~all\" )") != NULL);
    bed_close(&b);
    bed_open(&b, "");
    sim_dns_address(b.dns, "mail.a.test", "192.0.2.10");
    for (unsigned i = 0; strlen(many) + 40 < sizeof(many); i++)
        snprintf(many + strlen(many), 40, " ip4:198.51.%u.%u", i / 250, i % 250);
    b.subjects[b.count++] = subject;
    sim_dns_text(b.dns, "a.test", many);
    text = bed_run(&b);
    ok_named(strstr(text, " ~all\" )") != NULL, "a record that is too long has its end");
    bed_close(&b);
}

/* Hosts that answer for mail: by the first letter of their name. */
static struct inquiry_item *asked[8];
static char asked_key[8][100];
static size_t asked_count;

static void
way_start(void *context, struct inquiry_item *item, const char *key)
{
    (void)context;
    must(asked_count < 8);
    asked[asked_count] = item;
    snprintf(asked_key[asked_count++], sizeof(asked_key[0]), "%s", key);
}

static void
way_answer(void *context)
{
    static const struct text clear[] = {TEXT(""), TEXT("clear[192.0.2.1]"), TEXT(""), TEXT(""), TEXT("")};
    static const struct text secure[] = {TEXT("TLSv1.3/X/dane"), TEXT("good[192.0.2.1]"), TEXT("DANE (1 TLSA record)"), TEXT(""), TEXT("yes")};
    static const struct text old[] = {TEXT("TLSv1.3/X/verified"), TEXT("old[192.0.2.1]"), TEXT(""), TEXT(""), TEXT("")};
    (void)context;
    for (size_t i = 0; i < asked_count; i++) {
        char first = asked_key[i][0];
        struct inquiry_answer a = {.status = DNS_FOUND, .verdict = first == 'r' ? DOCTOR_LOGIN_RECIPIENT : first == 's' ? DOCTOR_LOGIN_SENDER : first == 'd' ? DOCTOR_LOGIN_DOWN : DOCTOR_LOGIN_GOOD,
                                   .data = {.count = 5, .texts = first == 'c' ? clear : first == 'o' ? old : secure}};
        snprintf(a.reason, sizeof(a.reason), "550 said \x1b");
        inquiry_answered(asked[i], &a);
    }
    asked_count = 0;
}

static const char *
way_run(struct bed *b, struct loop_timer *timer)
{
    static char to[] = "x@to.test";
    asked_count = 0;
    b->setup.way = (struct inquiry_source){way_start, NULL};
    b->setup.sender = "root@mail.a.test";
    b->subjects[0] = to;
    b->count = 1;
    loop_timer_start(b->loop, timer, 1000, way_answer, NULL);
    const char *text = bed_run(b);
    loop_timer_stop(b->loop, timer);
    return text;
}

TEST(ways)
{
    static const struct {
        const char *host, *severity, *text;
        int code;
    } rows[] = {
        {"good.test", "ok", "good[192.0.2.1] takes mail (TLSv1.3/X/dane); its domain demands DANE (1 TLSA record); it offers REQUIRETLS", 0},
        {"old.test", "ok", "old[192.0.2.1] takes mail (TLSv1.3/X/verified); nobody demands more; it does not offer REQUIRETLS: mail that asks for it comes back", 0},
        {"clear.test", "hint", "in cleartext: STARTTLS is", 0},
        {"refused.test", "error", "it refuses the recipient: 550 said \\x1b", 1},
        {"sender.test", "error", "it refuses our sender", 1},
        {"down.test", "error", "mail cannot be handed to it", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct loop_timer timer = {0};
        FIXTURE(bed, b, bed_open, bed_close, "");
        sim_dns_address(b.dns, "mail.a.test", "192.0.2.1");
        sim_dns_host(b.dns, "192.0.2.1", "mail.a.test");
        sim_dns_mx(b.dns, "to.test", 10, rows[i].host);
        const char *text = way_run(&b, &timer);
        ok_named(strstr(text, rows[i].text) != NULL, rows[i].text);
        ok_named(strstr(text, "spf.record  ") == NULL, "nothing is sent from its domain");
        is_number(b.code, rows[i].code, rows[i].severity);
    }
    struct bed b;
    struct loop_timer timer = {0};
    bed_open(&b, "");
    sim_dns_address(b.dns, "mail.a.test", "192.0.2.1");
    sim_dns_host(b.dns, "192.0.2.1", "mail.a.test");
    for (unsigned i = 0; i < 20; i++) {
        char host[40];
        snprintf(host, sizeof(host), "%s%u.test", i == 19 ? "good" : "down", i);
        sim_dns_mx(b.dns, "to.test", 100 - i, host);
    }
    const char *text = way_run(&b, &timer);
    is_number(b.code, 0, "one of several takes mail: no error");
    ok(strstr(text, "x@to.test by good19.test") != NULL && strstr(text, "down16.test") != NULL);
    ok_named(strstr(text, "down14.test") == NULL, "the best five are asked");
    bed_close(&b);
    bed_open(&b, "");
    sim_dns_mx(b.dns, "to.test", 0, "");
    text = way_run(&b, &timer);
    ok(strstr(text, "its null MX says that it takes no mail") != NULL && b.code == 1);
    bed_close(&b);
    bed_open(&b, "");
    sim_dns_status(b.dns, "to.test", DNS_TRY_AGAIN);
    text = way_run(&b, &timer);
    ok(strstr(text, "its MX records cannot be looked up") != NULL);
    ok_named(strstr(text, "null MX") == NULL, "which is not that there is none");
    bed_close(&b);
}

/* A provider whose include nobody knows for sure: its record is not guessed. */
TEST(untold)
{
    FIXTURE(bed, b, bed_open, bed_close, "submission://me@smtp.zoho.com");
    b.subjects[b.count++] = subject;
    const char *text = bed_run(&b);
    ok(strstr(text, "says what to include: see the Admin Console") != NULL || strstr(text, "see the\n  Admin Console") != NULL);
    ok(strstr(text, "include:zoho") == NULL);
    sim_dns_text(b.dns, "a.test", "v=spf1 include:eu.test ~all");
    sim_dns_text(b.dns, "eu.test", "v=spf1 ip4:192.0.2.9 ~all");
    text = bed_run(&b);
    ok(strstr(text, "ok      spf.record        a.test: it is valid; see there that it has the include of Zoho Mail") != NULL);
}

TEST(silence)
{
    FIXTURE(bed, b, bed_open, bed_close, "");
    b.subjects[b.count++] = subject;
    b.setup.has_secrets = false;
    sim_dns_delay(b.dns, 10 * INQUIRY_MS);
    int64_t before_ms = loop_monotonic_ms(b.loop);
    const char *text = bed_run(&b);
    ok(loop_monotonic_ms(b.loop) - before_ms < INQUIRY_MS + 1000);
    ok(strstr(text, "not all questions were answered within 60 s") != NULL);
    ok(strstr(text, "bulk senders: not known: SPF DKIM DMARC") != NULL || strstr(text, "not known: SPF") != NULL);
    ok_named(strstr(text, "does not resolve") == NULL && strstr(text, "has no ") == NULL, "nothing is called missing");
    ok(strstr(text, "keys and passwords cannot be read by this user") != NULL);
    ok_named(strstr(text, "cannot be looked up") != NULL && strstr(text, "\n  See dns.resolver; if that is all right, correct") != NULL && strstr(text, "  Correct the name servers of the domain") == NULL, "the domain is not blamed first");
}
