/* link: t/sim/loop.c */
/* link: t/sim/dns.c */
/* Questions: each once, 32 at a time, answers that stay, and an end after a minute. */
#include "admin/findings/inquiry.h"

#include "base/net/net.h"

#include "t/sim/sim.h"
#include "t/sim/sim_dns.h"
#include "t/support/tap.h"

struct bed {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct inquiry *inquiry;
    struct inquiry_item *login;
    char key[100];
};

static void
start_login(void *context, struct inquiry_item *item, const char *key)
{
    struct bed *b = context;
    b->login = item;
    snprintf(b->key, sizeof(b->key), "%s", key);
}

static void
bed_open(struct bed *b)
{
    char error[200];
    *b = (struct bed){.loop = sim_loop_new(1)};
    b->net = net_new(b->loop);
    b->dns = dns_new(b->loop, TEXT(""), error, sizeof(error));
    b->inquiry = inquiry_new(
        &(struct inquiry_settings){.loop = b->loop,
                                   .net = b->net,
                                   .dns = b->dns,
                                   .validating = b->dns,
                                   .hostname = "mail.test",
                                   .sources = {[INQUIRY_LOGIN] = {start_login, b}}});
}

static void
bed_close(struct bed *b)
{
    inquiry_free(&b->inquiry);
    dns_free(&b->dns);
    net_free(&b->net);
    loop_free(&b->loop);
}

TEST(answers)
{
    FIXTURE(bed, b, bed_open, bed_close);
    sim_dns_text(b.dns, "a.test", "one");
    sim_dns_text(b.dns, "a.test", "two");
    sim_dns_mx(b.dns, "a.test", 20, "mx2.test");
    sim_dns_mx(b.dns, "a.test", 10, "mx1.test");
    sim_dns_address(b.dns, "mx1.test", "192.0.2.1");
    sim_dns_address(b.dns, "mx1.test", "2001:db8::1");
    sim_dns_host(b.dns, "192.0.2.1", "mx1.test");
    sim_dns_status(b.dns, "dead.test", DNS_TRY_AGAIN);
    ok(inquiry_ask(b.inquiry, INQUIRY_TEXTS, "a.test") == NULL);
    ok(inquiry_ask(b.inquiry, INQUIRY_TEXTS, "A.Test") == NULL);
    ok(inquiry_ask(b.inquiry, INQUIRY_MX, "a.test") == NULL);
    is_number(sim_dns_questions(b.dns), 2,
              "each is asked once, in any case of letters");
    while (inquiry_wait(b.inquiry))
        ;
    const struct inquiry_answer *a = inquiry_ask(b.inquiry, INQUIRY_TEXTS, "a.test");
    ok(a != NULL && a->status == DNS_FOUND && a->data.found == SPF_RECORDS &&
       a->data.count == 2);
    is_text(a->data.texts[0], TEXT("one"), "the first text");
    is_text(a->data.texts[1], TEXT("two"), "the second");
    a = inquiry_ask(b.inquiry, INQUIRY_MX, "a.test");
    ok(a->data.count == 2 && a->preferences[0] == 20);
    is_text(a->data.hosts[1], TEXT("mx1.test"), "a host");
    inquiry_ask(b.inquiry, INQUIRY_ADDRESSES, "mx1.test");
    inquiry_ask(b.inquiry, INQUIRY_HOSTS, "192.0.2.1");
    inquiry_ask(b.inquiry, INQUIRY_TEXTS, "dead.test");
    inquiry_ask(b.inquiry, INQUIRY_TEXTS, "nothing.test");
    sim_dns_tlsa(b.dns, "_25._tcp.mx1.test", 311, text_of("\x01\xab\x00", 3));
    sim_dns_tlsa(b.dns, "_25._tcp.mx1.test", 200, TEXT(""));
    inquiry_ask(b.inquiry, INQUIRY_TLSA, "_25._tcp.MX1.test");
    while (inquiry_wait(b.inquiry))
        ;
    a = inquiry_ask(b.inquiry, INQUIRY_ADDRESSES, "mx1.test");
    ok(a->data.count == 2 && a->data.addresses != NULL && a->data.texts == NULL);
    a = inquiry_ask(b.inquiry, INQUIRY_TLSA, "_25._tcp.mx1.test");
    ok(a->data.count == 2);
    is_text(a->data.texts[0], TEXT("3 1 1 01ab00"), "a TLSA record");
    is_text(a->data.texts[1], TEXT("2 0 0 "), "one without data");
    a = inquiry_ask(b.inquiry, INQUIRY_HOSTS, "192.0.2.1");
    is_text(a->data.hosts[0], TEXT("mx1.test"), "the name of an address");
    a = inquiry_ask(b.inquiry, INQUIRY_TEXTS, "dead.test");
    ok(a->status == DNS_TRY_AGAIN && a->data.found == SPF_UNKNOWN &&
       a->reason[0] != '\0');
    a = inquiry_ask(b.inquiry, INQUIRY_TEXTS, "nothing.test");
    ok(a->status == DNS_NO_NAME && a->data.found == SPF_VOID && a->data.count == 0);
    ok(!inquiry_is_cut(b.inquiry));
}

TEST(limit)
{
    struct bed b;
    char name[40];
    bed_open(&b);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        inquiry_ask(b.inquiry, INQUIRY_TEXTS, name);
    }
    is_number(sim_dns_questions(b.dns), INQUIRY_RUNNING_MAX, "as many at a time");
    while (inquiry_wait(b.inquiry))
        ;
    is_number(sim_dns_questions(b.dns), 100, "the others follow");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "m%d.test", i);
        inquiry_ask(b.inquiry, INQUIRY_TEXTS, name);
    }
    bed_close(&b); /* while some wait */
}

TEST(time)
{
    FIXTURE(bed, b, bed_open, bed_close);
    sim_dns_delay(b.dns, 10 * INQUIRY_MS);
    for (int i = 0; i < 40; i++) {
        char name[40];
        snprintf(name, sizeof(name), "n%d.test", i);
        inquiry_ask(b.inquiry, INQUIRY_TEXTS, name);
    }
    int64_t before_ms = loop_monotonic_ms(b.loop);
    while (inquiry_wait(b.inquiry))
        ;
    int64_t took_ms = loop_monotonic_ms(b.loop) - before_ms;
    ok(took_ms >= INQUIRY_MS && took_ms < INQUIRY_MS + 1000);
    const struct inquiry_answer *a = inquiry_ask(b.inquiry, INQUIRY_TEXTS, "n39.test");
    ok(a != NULL && a->status == DNS_TRY_AGAIN && strstr(a->reason, "60 s") != NULL);
    a = inquiry_ask(b.inquiry, INQUIRY_TEXTS, "later.test");
    ok_named(a != NULL && a->status == DNS_TRY_AGAIN, "nothing is asked afterwards");
    ok(inquiry_is_cut(b.inquiry));
}

/* Silent name servers are asked once, not each question anew. */
TEST(silent)
{
    struct bed b;
    bed_open(&b);
    sim_dns_status(b.dns, "root.test", DNS_TRY_AGAIN);
    sim_dns_delay(b.dns, 2 * INQUIRY_DEAD_MS);
    inquiry_ask(b.inquiry, INQUIRY_ROOT, "root.test");
    for (int i = 0; i < 40; i++) {
        char name[40];
        snprintf(name, sizeof(name), "n%d.test", i);
        sim_dns_status(b.dns, name, DNS_TRY_AGAIN);
        inquiry_ask(b.inquiry, INQUIRY_TEXTS, name);
    }
    inquiry_ask(b.inquiry, INQUIRY_LOGIN, "0");
    int64_t before_ms = loop_monotonic_ms(b.loop);
    while (inquiry_ask(b.inquiry, INQUIRY_TEXTS, "n39.test") == NULL && inquiry_wait(b.inquiry))
        ;
    ok(loop_monotonic_ms(b.loop) - before_ms < 3 * INQUIRY_DEAD_MS);
    is_number(sim_dns_questions(b.dns), INQUIRY_RUNNING_MAX, "those that wait are not asked");
    const struct inquiry_answer *a = inquiry_ask(b.inquiry, INQUIRY_MX, "later.test");
    ok(a != NULL && a->status == DNS_TRY_AGAIN && a->data.found == SPF_UNKNOWN);
    ok_named(inquiry_ask(b.inquiry, INQUIRY_LOGIN, "0") == NULL, "a smarthost still may answer");
    ok(!inquiry_is_cut(b.inquiry));
    bed_close(&b);
    bed_open(&b);
    sim_dns_status(b.dns, "root.test", DNS_TRY_AGAIN);
    sim_dns_delay(b.dns, 2 * INQUIRY_DEAD_MS);
    inquiry_ask(b.inquiry, INQUIRY_TEXTS, "gone.test");
    inquiry_ask(b.inquiry, INQUIRY_ROOT, "root.test");
    while (inquiry_wait(b.inquiry))
        ;
    ok_named(inquiry_ask(b.inquiry, INQUIRY_MX, "later.test") == NULL, "name servers that refuse the root alone are not silent");
    bed_close(&b);
}

TEST(source)
{
    struct inquiry_answer answer = {.status = DNS_FOUND, .verdict = 3, .reason = "hm"};
    FIXTURE(bed, b, bed_open, bed_close);
    ok(inquiry_ask(b.inquiry, INQUIRY_LOGIN, "0 Host.Test") == NULL);
    is_string(b.key, "0 Host.Test", "a source gets the key as it is");
    inquiry_answered(b.login, &answer);
    const struct inquiry_answer *a =
        inquiry_ask(b.inquiry, INQUIRY_LOGIN, "0 Host.Test");
    ok(a != NULL && a->verdict == 3);
    is_string(a->reason, "hm", "its words are kept");
    answer.verdict = 4;
    inquiry_answered(b.login, &answer);
    is_number(a->verdict, 3, "the first answer counts");
    ok(!inquiry_wait(b.inquiry));
}

TEST(bytes)
{
    static char large[4000];
    size_t cut = 0;
    FIXTURE(bed, b, bed_open, bed_close);
    memset(large, 'x', sizeof(large) - 1);
    for (int i = 0; i < 600; i++) {
        char name[40];
        snprintf(name, sizeof(name), "n%d.test", i);
        for (int n = 0; n < DNS_TEXTS_MAX; n++)
            sim_dns_text(b.dns, name, large);
        inquiry_ask(b.inquiry, INQUIRY_TEXTS, name);
    }
    while (inquiry_wait(b.inquiry))
        ;
    for (int i = 0; i < 600; i++) {
        char name[40];
        snprintf(name, sizeof(name), "n%d.test", i);
        cut += inquiry_ask(b.inquiry, INQUIRY_TEXTS, name)->status == DNS_TRY_AGAIN;
    }
    ok_named(cut > 50 && cut < 150, "beyond 32 MiB answers are dropped");
    ok(inquiry_is_cut(b.inquiry));
}
