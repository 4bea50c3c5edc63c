/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* link: t/sim/http_call.c */
/* DANE and MTA-STS at delivery: what DNS must have validated, what hosts must prove, and that mail never takes another way. */
#include "smtp/connect/exchange.h"

#include "base/tls/tls_internal.h"
#include "smtp/trust/tls_reports.h"
#include "t/sim/delivery_world.h"
#include "t/sim/sim_http.h"
#include "t/support/tls_world.h"

static struct secrets secrets;
static const char *anchors_file; /* NULL: none */
static char tlsa_a[64], tlsa_b[64]; /* names of the records */

/* The digest of a certificate's key; one of a few static ones. */
static struct text
key_of(const char *name)
{
    static unsigned char digests[8][DIGEST_SIZE];
    static unsigned next;
    unsigned char *digest = digests[next++ % 8];
    mbedtls_x509_crt c;
    mbedtls_x509_crt_init(&c);
    host_must(mbedtls_x509_crt_parse_file(&c, tls_path_of(&secrets, name, ".pem")) == 0);
    digest_plain(text_of(c.pk_raw.p, c.pk_raw.len), digest);
    mbedtls_x509_crt_free(&c);
    return text_of(digest, DIGEST_SIZE);
}

/* y.test, validated, has the hosts mail.example.net (a) and mx.example.net (b), with these certificates. */
static void
dane_bed_start(struct bed *b, const char *a, const char *z)
{
    static const struct host_rule offers[] = {
        {"EHLO",     "250-host\r\n250-PIPELINING\r\n250 STARTTLS\r\n", 0, 0},
        {"STARTTLS", "220 go\r\n",                                     0, 0},
        {NULL,       NULL,                                             0, 0}
    };
    bed_anchors = anchors_file;
    bed_start(b);
    dns_set_trust(b->dns, DNS_TRUST_YES);
    b->settings.dane = true;
    delivery_reload(b->delivery, &b->settings);
    sim_dns_mx(b->dns, "y.test", 10, "mail.example.net");
    sim_dns_mx(b->dns, "y.test", 20, "mx.example.net");
    sim_dns_address(b->dns, "mail.example.net", "127.0.0.2");
    sim_dns_address(b->dns, "mx.example.net", "127.0.0.3");
    sim_dns_secure(b->dns, "y.test", true);
    sim_dns_secure(b->dns, "mail.example.net", true);
    sim_dns_secure(b->dns, "mx.example.net", true);
    snprintf(tlsa_a, sizeof(tlsa_a), "_%u._tcp.mail.example.net", b->settings.smtp_port);
    snprintf(tlsa_b, sizeof(tlsa_b), "_%u._tcp.mx.example.net", b->settings.smtp_port);
    sim_dns_secure(b->dns, tlsa_a, true);
    sim_dns_secure(b->dns, tlsa_b, true);
    b->a.rules = b->b.rules = offers;
    b->a.tls = a ? server_of(&secrets, a) : NULL;
    b->b.tls = z ? server_of(&secrets, z) : NULL;
}

static void
dane_bed_stop(struct bed *b)
{
    struct tls_server *a = b->a.tls, *z = b->b.tls;
    bed_stop(b);
    tls_server_free(&a);
    tls_server_free(&z);
}

static bool
ends(const char *text, const char *end)
{
    return text_ends_nocase(text_from(text), text_from(end));
}

static void
note_row(void *context, const struct tls_reports_row *row)
{
    char *to = context;
    snprintf(to + strlen(to), 400 - strlen(to), "%s %s %s %s %d; ", tls_reports_policy_word(row->policy), row->domain,
             row->host, tls_reports_word(row->result), (int)row->count);
}

/* The counters of TLSRPT. */
static void
is_reported(const struct bed *b, const char *want)
{
    char got[400] = "";
    tls_reports_each(delivery_tls_reports(b->delivery), note_row, got);
    is_string(got, want, "it is counted");
}

static void
deliver(struct bed *b)
{
    add_mail(b, "u@y.test");
    run(b, "y.test");
}

static const char sent[] = "u@y.test sent 2.0.0 none\n";

static void
proven(void)
{
    FIXTURE(bed, b, dane_bed_start, dane_bed_stop, "self", "self");
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
    deliver(&b);
    is_settled(&b, sent, "a record proves a certificate that nobody has signed");
    ok_named(ends(b.manager.tls, "/dane"), "and the verdict says so");
    ok(has(&b.lines, "Verified TLS connection established to mail.example.net"));
    ok_named(b.manager.demand != 0 && ends(b.manager.found, "mx.example.net"), "the site is that of all, and knows the demand");
    is_number(b.manager.valid_ms, EXCHANGE_VALID_MS, "for an hour");
    deliver(&b);
    ok_named(has(&b.lines, ", resumed") && ends(b.manager.tls, "/dane"), "a session that is resumed is proven, too");
    is_reported(&b, "tlsa y.test mail.example.net success 2; ");
}

TEST(next_host)
{
    struct bed b;
    dane_bed_start(&b, "self", "good");
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("good"));
    sim_dns_tlsa(b.dns, tlsa_b, 311, key_of("good"));
    deliver(&b);
    is_settled(&b, sent, "the second host has what its record says");
    is_text(buffer_text(&b.a.commands), TEXT("EHLO me.test\nSTARTTLS\n(tls)\n"), "the first one hears nothing of mail");
    is_number(b.b.connections, 1, "the second one is asked");
    dane_bed_stop(&b);
    dane_bed_start(&b, "self", "self");
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("good"));
    sim_dns_tlsa(b.dns, tlsa_b, 311, key_of("good"));
    deliver(&b);
    is_settled(&b, "", "nobody has: the mail waits");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5",
               "TLS is demanded by DANE but host mx.example.net[127.0.0.3] failed in the TLS handshake: no TLSA "
               "record matches the certificate");
    ok_named(b.a.connections == 1 && b.b.connections == 1, "and there is no way back to cleartext");
    is_reported(&b, "tlsa y.test mail.example.net tlsa-invalid 1; tlsa y.test mx.example.net tlsa-invalid 1; ");
    dane_bed_stop(&b);
}

/* An attacker on the path removes STARTTLS, or breaks it. */
TEST(stripped)
{
    static const struct host_rule none[] = {
        {"EHLO", "250-host\r\n250 PIPELINING\r\n", 0, 0},
        {NULL,   NULL,                             0, 0}
    };
    static const struct host_rule refused[] = {
        {"EHLO",     "250-host\r\n250 STARTTLS\r\n", 0, 0},
        {"STARTTLS", "454 no\r\n",                   0, 0},
        {NULL,       NULL,                           0, 0}
    };
    const struct host_rule *rows[] = {none, refused};
    for (size_t i = 0; i < 2; i++) {
        FIXTURE(bed, b, dane_bed_start, dane_bed_stop, NULL, NULL);
        b.a.rules = b.b.rules = rows[i];
        sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
        sim_dns_tlsa(b.dns, tlsa_b, 311, key_of("self"));
        deliver(&b);
        is_settled(&b, "", "no mail in cleartext");
        is_trouble(&b, VERDICT_DEFERRED, "4.7.4", "TLS is demanded by DANE but host mx.example.net[127.0.0.3] ");
        ok(!has(&b.a.commands, "MAIL") && !has(&b.b.commands, "MAIL"));
        is_reported(&b, "tlsa y.test mail.example.net starttls-not-supported 1; "
                        "tlsa y.test mx.example.net starttls-not-supported 1; ");
    }
}

/* Records that prove nothing demand TLS, and no certificate. */
TEST(unusable)
{
    struct bed b;
    dane_bed_start(&b, "self", NULL);
    sim_dns_tlsa(b.dns, tlsa_a, 111, key_of("good"));
    deliver(&b);
    is_settled(&b, sent, "PKIX-EE alone");
    ok(ends(b.manager.tls, "/unverified"));
    dane_bed_stop(&b);
    dane_bed_start(&b, NULL, NULL);
    b.a.rules = b.b.rules = NULL;
    static const struct host_rule none[] = {
        {"EHLO", "250 host\r\n", 0, 0},
        {NULL,   NULL,           0, 0}
    };
    b.a.rules = b.b.rules = none;
    sim_dns_tlsa(b.dns, tlsa_a, 111, key_of("good"));
    sim_dns_tlsa(b.dns, tlsa_b, 111, key_of("good"));
    deliver(&b);
    is_settled(&b, "", "but not without TLS");
    dane_bed_stop(&b);
}

/* Records that are not validated, or not there, demand nothing. */
TEST(no_demand)
{
    static const char *const names[] = {"the MX", "the addresses", "the records", "no trust", "the setting", "the route",
                                        "no record", "tls=none"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        FIXTURE(bed, b, dane_bed_start, dane_bed_stop, "self", "self");
        if (i != 6)
            sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("good"));
        if (i == 0)
            sim_dns_secure(b.dns, "y.test", false);
        if (i == 1)
            sim_dns_secure(b.dns, "mail.example.net", false);
        if (i == 2)
            sim_dns_secure(b.dns, tlsa_a, false);
        if (i == 3)
            dns_set_trust(b.dns, DNS_TRUST_NO);
        if (i == 4) {
            b.settings.dane = false;
            delivery_reload(b.delivery, &b.settings);
        }
        b.target.no_dane = i == 5;
        b.target.tls = i == 7 ? TARGET_TLS_NONE : TARGET_TLS_MAY;
        deliver(&b);
        is_settled(&b, sent, names[i]);
        ok(i == 7 ? b.manager.tls[0] == '\0' : ends(b.manager.tls, "/unverified"));
        ok_named(b.manager.demand == 0, "nothing is demanded");
    }
}

/* RFC 8689: only hosts that are proven and have REQUIRETLS; no host is left for ever, or for now. */
TEST(required)
{
    static const struct host_rule offers[] = {
        {"EHLO",     "250-host\r\n250-REQUIRETLS\r\n250 STARTTLS\r\n", 0, 0},
        {"STARTTLS", "220 go\r\n",                                     0, 0},
        {NULL,       NULL,                                             0, 0}
    };
    static const struct {
        const char *name, *a, *b; /* the certificates of the records */
        bool offers, unknown, off;
        enum verdict verdict;
        const char *enhanced, *text;
    } rows[] = {
        {"the second host",         "self", "self", true,  false, false, VERDICT_DELIVERED, "",       ""                                          },
        {"none offers it",          "self", "self", false, false, false, VERDICT_FAILED,    "5.7.30", "does not offer REQUIRETLS, which the sender"},
        {"the second is not known", "self", "self", false, true,  false, VERDICT_DEFERRED,  "4.7.30", "does not offer REQUIRETLS, which the sender"},
        {"no records",              NULL,   NULL,   true,  false, false, VERDICT_FAILED,    "5.7.10", "proves the mail hosts of y.test"           },
        {"not known, and none",     NULL,   NULL,   true,  true,  false, VERDICT_DEFERRED,  "4.7.5",  "cannot be looked up"                       },
        {"others",                  "good", "good", true,  false, false, VERDICT_FAILED,    "5.7.10", "no TLSA record matches the certificate"    },
        {"dane = no",               "self", "self", true,  false, true,  VERDICT_FAILED,    "5.7.10", "proves the mail hosts of y.test"           },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        FIXTURE(bed, b, dane_bed_start, dane_bed_stop, "self", "self");
        b.target.asks = TARGET_REQUIRES_TLS;
        b.target.no_dane = rows[i].off;
        if (rows[i].offers)
            b.b.rules = offers;
        if (rows[i].a != NULL)
            sim_dns_tlsa(b.dns, tlsa_a, 311, key_of(rows[i].a));
        if (rows[i].b != NULL)
            sim_dns_tlsa(b.dns, tlsa_b, 311, key_of(rows[i].b));
        if (rows[i].unknown)
            sim_dns_status(b.dns, tlsa_b, DNS_TRY_AGAIN);
        deliver(&b);
        is_settled(&b, rows[i].verdict == VERDICT_DELIVERED ? sent : "", rows[i].name);
        ok_named(!has(&b.a.commands, "MAIL"), "the first host hears of no mail");
        ok_named(ends(b.manager.tls, "/dane") == (rows[i].verdict == VERDICT_DELIVERED), "it goes to a proven one");
        if (rows[i].verdict == VERDICT_DELIVERED)
            continue;
        is_number(b.manager.trouble.verdict, rows[i].verdict, "its verdict");
        is_string(b.manager.trouble.enhanced, rows[i].enhanced, "its enhanced code");
        ok_named(strstr(b.manager.trouble.text, rows[i].text) != NULL, rows[i].text);
    }
}

/* RFC 7672 §2.1.3: a host that is an alias. */
TEST(aliased)
{
    static const struct {
        bool secure, alias_secure, at_end, at_host, fails;
        const char *want, *name;
    } rows[] = {
        {true,  true,  true,  false, false, "/dane",       "the records of the name at its end"      },
        {true,  true,  true,  true,  false, "/dane",       "which come before its own"               },
        {true,  true,  false, true,  false, "/dane",       "without any its own"                     },
        {false, true,  true,  true,  false, "/dane",       "only its own when the end is not proven" },
        {false, true,  true,  false, false, "/unverified", "whose records do not count then"         },
        {false, false, true,  true,  false, "/unverified", "none when the alias is not proven either"},
        {false, true,  true,  true,  true,  NULL,          "nor is it used when that is not known"   },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char at_end[64];
        FIXTURE(bed, b, dane_bed_start, dane_bed_stop, "self", NULL);
        snprintf(at_end, sizeof(at_end), "_%u._tcp.end.example.net", b.settings.smtp_port);
        sim_dns_secure(b.dns, at_end, true);
        sim_dns_alias(b.dns, "mail.example.net", "end.example.net", rows[i].alias_secure);
        sim_dns_secure(b.dns, "mail.example.net", rows[i].secure);
        sim_dns_status(b.dns, "mx.example.net", DNS_NO_NAME);
        if (rows[i].at_end)
            sim_dns_tlsa(b.dns, at_end, 311, key_of(rows[i].secure ? "self" : "good"));
        if (rows[i].at_host)
            sim_dns_tlsa(b.dns, tlsa_a, 311, key_of(rows[i].at_end && rows[i].secure ? "good" : "self"));
        if (rows[i].fails)
            sim_dns_alias_fails(b.dns, "mail.example.net");
        deliver(&b);
        is_settled(&b, rows[i].want != NULL ? sent : "", rows[i].name);
        if (rows[i].want != NULL)
            ok(ends(b.manager.tls, rows[i].want));
        else
            is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "alias of mail.example.net cannot be looked up: ");
    }
}

/* The first addresses, as many as are tried, are of hosts that the policy does not allow. All are looked up then. */
TEST(wide)
{
    FIXTURE(bed, b, dane_bed_start, dane_bed_stop, "self", "self");
    for (int i = 0; i < 6; i++) {
        char name[32], ip[32], tlsa[64];
        snprintf(name, sizeof(name), "m%d.example.net", i);
        snprintf(ip, sizeof(ip), "127.0.0.%d", 10 + i);
        snprintf(tlsa, sizeof(tlsa), "_%u._tcp.%s", b.settings.smtp_port, name);
        sim_dns_mx(b.dns, "y.test", 5, name);
        sim_dns_address(b.dns, name, ip);
        sim_dns_secure(b.dns, name, true);
        sim_dns_status(b.dns, tlsa, DNS_TRY_AGAIN);
    }
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
    deliver(&b);
    is_settled(&b, sent, "a host beyond the first addresses is found when those before are omitted");
    ok(ends(b.manager.tls, "/dane"));
    uint64_t demand = b.manager.demand;
    for (int i = 0; i < 5; i++) {
        add_mail(&b, "u@y.test");
        run(&b, "y.test");
        ok_named(b.manager.demand == demand, "whatever the order of the hosts is, the demand is the same");
    }
}

/* Another record is another demand; the order of records is none. */
TEST(marks)
{
    struct bed b;
    dane_bed_start(&b, "self", NULL);
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("good"));
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
    deliver(&b);
    uint64_t demand = b.manager.demand;
    dane_bed_stop(&b);
    dane_bed_start(&b, "self", NULL);
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("good"));
    deliver(&b);
    ok_named(b.manager.demand == demand, "the order of records is no demand");
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("exact"));
    deliver(&b);
    ok_named(b.manager.demand != demand && b.manager.demand != 0, "a record more is another");
    delivery_reload(b.delivery, &b.settings);
    is_number(b.manager.asked_again, 1, "settings that change nothing of it forget nothing");
    b.settings.mta_sts = !b.settings.mta_sts;
    delivery_reload(b.delivery, &b.settings);
    is_number(b.manager.asked_again, 2, "those that do make domains be asked again");
    dane_bed_stop(&b);
}

/* An attacker who suppresses the answer would suppress the demand. */
static void
unknown(void)
{
    struct bed b;
    dane_bed_start(&b, "self", "self");
    sim_dns_status(b.dns, tlsa_a, DNS_TRY_AGAIN);
    sim_dns_tlsa(b.dns, tlsa_b, 311, key_of("self"));
    deliver(&b);
    is_settled(&b, sent, "the host with an unknown record is passed over");
    is_number(b.a.connections, 0, "not even connected to");
    dane_bed_stop(&b);
    dane_bed_start(&b, "self", "self");
    sim_dns_status(b.dns, tlsa_a, DNS_TRY_AGAIN);
    sim_dns_status(b.dns, tlsa_b, DNS_TRY_AGAIN);
    deliver(&b);
    is_settled(&b, "", "none is left");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "TLSA records of ");
    is_number(b.a.connections + b.b.connections, 0, "no connection");
    is_reported(&b, "tlsa y.test  dnssec-invalid 1; ");
    dane_bed_stop(&b);
    dane_bed_start(&b, "self", "self");
    sim_dns_status(b.dns, tlsa_a, DNS_TRY_AGAIN);
    sim_dns_secure(b.dns, "mail.example.net", false);
    deliver(&b);
    is_settled(&b, sent, "an insecure host is not asked for any");
    is_number(b.a.connections, 1, "and used");
    dane_bed_stop(&b);
}

/* Below a trust anchor the domain's own name is good as well, for this domain alone. */
static void
anchors(void)
{
    static char der[4096];
    mbedtls_x509_crt ca;
    mbedtls_x509_crt_init(&ca);
    host_must(mbedtls_x509_crt_parse_file(&ca, tls_path_of(&secrets, "ca", ".pem")) == 0);
    memcpy(der, ca.raw.p, ca.raw.len);
    struct bed b;
    dane_bed_start(&b, "good", NULL);
    sim_dns_tlsa(b.dns, tlsa_a, 200, text_of(der, ca.raw.len));
    deliver(&b);
    is_settled(&b, sent, "by the host's name");
    ok(ends(b.manager.tls, "/dane") && b.manager.demand != 0);
    dane_bed_stop(&b);
    dane_bed_start(&b, "exact", NULL);
    sim_dns_mx(b.dns, "one.example.org", 10, "mail.example.net");
    sim_dns_secure(b.dns, "one.example.org", true);
    sim_dns_tlsa(b.dns, tlsa_a, 200, text_of(der, ca.raw.len));
    add_mail(&b, "u@one.example.org");
    run(&b, "one.example.org");
    ok_named(ends(b.manager.tls, "/dane"), "by the domain's");
    dane_bed_stop(&b);
    dane_bed_start(&b, "exact", NULL);
    fake_host_stop(&b.b);
    sim_dns_tlsa(b.dns, tlsa_a, 200, text_of(der, ca.raw.len));
    deliver(&b);
    is_settled(&b, "", "not by a third");
    ok(strstr(b.manager.trouble.text, "does not name") != NULL || strstr(b.manager.trouble.text, "onnection refused") != NULL);
    fake_host_start(&b.b, b.theirs, "127.0.0.3", 0);
    dane_bed_stop(&b);
    mbedtls_x509_crt_free(&ca);
}

/* A session that ends while records are looked up. */
static void
ended(void)
{
    FIXTURE(bed, b, dane_bed_start, dane_bed_stop, "self", "self");
    add_mail(&b, "u@y.test");
    sim_dns_delay(b.dns, 1000);
    delivery_open(b.delivery, place(&b), &b.target, "y.test");
    turns(&b, 2500);
    delivery_drain(b.delivery);
    turns(&b, 20);
    is_number(b.manager.ended, 1, "it ends at once");
}

/* --- MTA-STS ---------------------------------------------------------------------- */

static struct http_caller *web;
static struct sts_cache *policies;

/* y.test has this policy: "mode: enforce\nmx: mx.example.net\n". */
static void
sts_bed_start(struct bed *b, const char *a, const char *z, const char *policy)
{
    char text[400];
    anchors_file = tls_path_of(&secrets, "ca", ".pem");
    dane_bed_start(b, a, z);
    b->settings.mta_sts = true;
    delivery_reload(b->delivery, &b->settings);
    web = http_caller_new(&(struct http_caller_settings){.loop = b->loop});
    policies = sts_cache_new(&(struct sts_cache_settings){
        .loop = b->loop, .log = b->log, .dns = b->dns, .http = web, .path = "", .port = 443});
    delivery_set_sts(b->delivery, policies);
    sim_dns_text(b->dns, "_mta-sts.y.test", "v=STSv1; id=1");
    snprintf(text, sizeof(text), "version: STSv1\nmax_age: 1000\n%s", policy);
    sim_http_answer(web, "https://mta-sts.y.test/.well-known/mta-sts.txt", 200, "text/plain", text);
}

static void
sts_bed_stop(struct bed *b)
{
    struct tls_server *a = b->a.tls, *z = b->b.tls;
    delivery_free(&b->delivery);
    sts_cache_free(&policies);
    http_caller_free(&web);
    bed_stop(b);
    tls_server_free(&a);
    tls_server_free(&z);
    anchors_file = NULL;
}

#define BOTH "mx: mail.example.net\nmx: mx.example.net\n"

static void
enforced(void)
{
    struct bed b;
    sts_bed_start(&b, "good", "good", "mode: enforce\n" BOTH);
    deliver(&b);
    is_settled(&b, sent, "a host of the policy that proves its name");
    uint64_t demand = b.manager.demand;
    ok(ends(b.manager.tls, "/sts") && demand != 0);
    sts_bed_stop(&b);
    sts_bed_start(&b, "good", "good", "mode: enforce\nmx: *.example.net\n");
    deliver(&b);
    ok_named(b.manager.demand == demand, "another policy that allows the same hosts is the same demand");
    sts_bed_stop(&b);
    sts_bed_start(&b, "good", "good", "mode: enforce\nmx: mx.example.net\n");
    deliver(&b);
    is_settled(&b, sent, "a host that it does not name is passed over");
    is_number(b.a.connections, 0, "not even connected to");
    ok_named(b.manager.demand != 0 && b.manager.demand != demand, "and the demand is another");
    sts_bed_stop(&b);
    static const char *const bad[] = {"self", "expired", "stranger", "exact"};
    for (size_t i = 0; i < 4; i++) {
        sts_bed_start(&b, bad[i], bad[i], "mode: enforce\n" BOTH);
        deliver(&b);
        is_settled(&b, "", bad[i]);
        is_trouble(&b, VERDICT_DEFERRED, "4.7.5",
                   "TLS is demanded by MTA-STS but host mx.example.net[127.0.0.3] failed in the TLS handshake: ");
        ok(!has(&b.a.commands, "MAIL") && !has(&b.b.commands, "MAIL"));
        sts_bed_stop(&b);
    }
    sts_bed_start(&b, "good", "good", "mode: enforce\nmx: other.example.net\n");
    deliver(&b);
    is_settled(&b, "", "no host is allowed");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "MTA-STS of y.test does not allow mail.example.net");
    is_reported(&b, "sts y.test  validation-failure 1; ");
    sts_bed_stop(&b);
}

static void
tested(void)
{
    static const struct {
        const char *pair, *policy, *line, *counted;
    } rows[] = {
        {"good", "mode: testing\n" BOTH, "sts=testing/ok, domain=y.test", "sts y.test mail.example.net success 1; "},
        {"self", "mode: testing\n" BOTH, "sts=testing/fail: its certificate is not valid for it, domain=y.test",
         "sts y.test mail.example.net validation-failure 1; "},
        {NULL, "mode: testing\n" BOTH, "sts=testing/fail: no TLS, domain=y.test",
         "sts y.test mail.example.net starttls-not-supported 1; "},
        {"good", "mode: testing\nmx: x.test\n", "sts=testing/fail: the policy does not name it, domain=y.test",
         "sts y.test mail.example.net validation-failure 1; "},
        {"good", "mode: none\n", NULL, ""},
    };
    static const struct host_rule none[] = {
        {"EHLO", "250 host\r\n", 0, 0},
        {NULL,   NULL,           0, 0}
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        FIXTURE(bed, b, sts_bed_start, sts_bed_stop, rows[i].pair, NULL, rows[i].policy);
        if (rows[i].pair == NULL)
            b.a.rules = none;
        deliver(&b);
        is_settled(&b, sent, rows[i].line ? rows[i].line : "mode none");
        ok(rows[i].line ? has(&b.lines, rows[i].line) : !has(&b.lines, "sts="));
        is_reported(&b, rows[i].counted);
        ok_named(b.manager.demand == 0, "it demands nothing");
    }
}

/* RFC 8461 §2: a policy must not lift what DANE demands. */
static void
both(void)
{
    struct bed b;
    sts_bed_start(&b, "good", "good", "mode: enforce\n" BOTH);
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
    sim_dns_tlsa(b.dns, tlsa_b, 311, key_of("self"));
    deliver(&b);
    is_settled(&b, "", "a certificate that the policy accepts and no record");
    ok(strstr(b.manager.trouble.text, "demanded by DANE") != NULL);
    sts_bed_stop(&b);
    sts_bed_start(&b, "self", "self", "mode: enforce\nmx: mx.example.net\n");
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
    deliver(&b);
    is_settled(&b, sent, "a host that DANE proves needs no policy");
    ok(ends(b.manager.tls, "/dane") && b.manager.demand != 0);
    sts_bed_stop(&b);
    sts_bed_start(&b, "self", "self", "mode: testing\n" BOTH);
    sim_dns_tlsa(b.dns, tlsa_a, 311, key_of("self"));
    deliver(&b);
    is_settled(&b, sent, "nor one that tests");
    is_reported(&b, "tlsa y.test mail.example.net success 1; ");
    sts_bed_stop(&b);
    sts_bed_start(&b, "self", "good", "mode: enforce\n" BOTH);
    sim_dns_tlsa(b.dns, tlsa_a, 111, key_of("self"));
    deliver(&b);
    is_settled(&b, sent, "records that prove nothing do not replace the policy");
    ok_named(b.b.connections == 1 && ends(b.manager.tls, "/sts"), "so the second host gets it");
    sts_bed_stop(&b);
}

/* A policy that could not be looked up yet is none that may be passed over. */
static void
sts_unknown(void)
{
    FIXTURE(bed, b, sts_bed_start, sts_bed_stop, "good", "good", "mode: enforce\n" BOTH);
    sim_http_refuse(web, true);
    deliver(&b);
    is_settled(&b, "", "a policy that is not known yet");
    is_trouble(&b, VERDICT_DEFERRED, "4.7.5", "the MTA-STS policy of y.test is not known yet: too many others are looked up");
    ok_named(b.a.connections == 0 && b.b.connections == 0, "and nobody is asked to take it");
    is_reported(&b, "");
}

static void
sts_off(void)
{
    for (int i = 0; i < 4; i++) {
        FIXTURE(bed, b, sts_bed_start, sts_bed_stop, "self", "self", "mode: enforce\n" BOTH);
        b.settings.mta_sts = i != 0;
        delivery_reload(b.delivery, &b.settings);
        b.target.no_sts = i == 1;
        b.target.tls = i == 2 ? TARGET_TLS_NONE : TARGET_TLS_MAY;
        if (i == 3)
            delivery_set_sts(b.delivery, NULL);
        dns_set_trust(b.dns, DNS_TRUST_NO);
        deliver(&b);
        is_settled(&b, sent, "off");
        is_number(sim_http_calls(web), 0, "nothing is fetched");
        is_number(b.manager.valid_ms, 0, "nor asked again");
    }
}

/* The answer to TXT is late: hosts wait for it; and without hosts nothing waits. */
static void
sts_waits(void)
{
    struct bed b;
    sts_bed_start(&b, "good", "good", "mode: enforce\n" BOTH);
    sim_http_delay(web, 3000);
    deliver(&b);
    is_settled(&b, sent, "mail waits for the policy");
    ok(ends(b.manager.tls, "/sts"));
    sts_bed_stop(&b);
    sts_bed_start(&b, "good", "good", "mode: enforce\n" BOTH);
    sim_http_delay(web, 9000);
    sim_dns_status(b.dns, "y.test", DNS_NO_NAME);
    add_mail(&b, "u@y.test");
    run(&b, "y.test");
    ok_named(b.manager.trouble.verdict == VERDICT_FAILED, "a domain that does not exist fails");
    sts_bed_stop(&b);
    sts_bed_start(&b, "good", "good", "mode: enforce\n" BOTH);
    sim_http_delay(web, 9000);
    add_mail(&b, "u@y.test");
    delivery_open(b.delivery, place(&b), &b.target, "y.test");
    turns(&b, 200);
    delivery_drain(b.delivery);
    turns(&b, 20);
    is_number(b.manager.ended, 1, "a session that waits for a policy ends at once");
    sts_bed_stop(&b);
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    make_secrets(&secrets);
    proven();
    tap_tests("");
    unknown();
    anchors();
    ended();
    enforced();
    tested();
    both();
    sts_off();
    sts_unknown();
    sts_waits();
    drop_secrets(&secrets);
    free(spool.content);
    return done();
}
