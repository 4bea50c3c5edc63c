/* MTA-STS policies: when they are looked up, fetched, kept and dropped, and what a restart knows. */
/* link: t/sim/clock.c */
/* link: t/sim/dns.c */
/* link: t/sim/http_call.c */
#include "smtp/trust/sts_cache.h"

#include "base/disk/disk.h"
#include "base/log/log_internal.h"
#include "base/memory.h"
#include "smtp/trust/tls_reports.h"
#include "t/sim/clock.h"
#include "t/sim/sim_dns.h"
#include "t/sim/sim_http.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOST "https://mta-sts.y.test/.well-known/mta-sts.txt"
#define POLICY(mode, age) "version: STSv1\nmode: " mode "\nmx: mx.y.test\nmax_age: " age "\n"
enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS };

struct bed {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct dns *dns;
    struct http_caller *http;
    struct disk *spool;
    char folder[64];
    struct sts_cache *cache;
    struct tls_reports *reports;
};

static void
cache_start(struct bed *b)
{
    b->cache = sts_cache_new(&(struct sts_cache_settings){.loop = b->loop, .log = b->log, .dns = b->dns, .http = b->http,
                                                          .spool = b->spool, .path = "sts", .port = 443, .reports = b->reports});
}

static void
start(struct bed *b)
{
    char error[200];
    memset(b, 0, sizeof(*b));
    clock_stop();
    b->loop = loop_new();
    b->log = log_new(b->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&b->lines, 1 << 20);
    log_capture(b->log, &b->lines);
    b->dns = dns_new(b->loop, TEXT(""), error, sizeof(error));
    b->http = http_caller_new(&(struct http_caller_settings){.loop = b->loop});
    strcpy(b->folder, "/tmp/petrel-sts-XXXXXX");
    if (!mkdtemp(b->folder) || disk_open(&b->spool, b->folder, false) < 0)
        abort();
    b->reports = tls_reports_new();
    cache_start(b);
}

static void
stop(struct bed *b)
{
    char command[100];
    sts_cache_free(&b->cache);
    tls_reports_free(&b->reports);
    http_caller_free(&b->http);
    dns_free(&b->dns);
    disk_close(&b->spool);
    log_free(&b->log);
    buffer_free(&b->lines);
    loop_free(&b->loop);
    snprintf(command, sizeof(command), "rm -r %s", b->folder);
    if (system(command) != 0)
        abort();
}

struct heard {
    unsigned answers;
    char what[400];
};

static void
hear(void *context, const struct sts_policy *policy, bool is_unknown)
{
    struct heard *h = context;
    h->answers++;
    if (policy == NULL)
        strcpy(h->what, is_unknown ? "unknown" : "none");
    else
        snprintf(h->what, sizeof(h->what), "%s %u %.300s", sts_mode_word(policy->mode), policy->max_age_s,
                 policy->patterns);
}

static void
pass(struct bed *b, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += 10) {
        clock_pass(10);
        clock_turn(b->loop);
    }
}

/* Until there is an answer, and a little longer. */
static const char *
ask(struct bed *b, const char *domain)
{
    static struct heard h;
    memset(&h, 0, sizeof(h));
    strcpy(h.what, "nothing heard");
    sts_cache_ask(b->cache, domain, hear, &h);
    for (int i = 0; i < 9000 && h.answers == 0; i++)
        pass(b, 10);
    pass(b, 50);
    if (h.answers > 1)
        strcpy(h.what, "heard twice");
    return h.what;
}

/* A year may pass in one turn. */
static void
later(struct bed *b, int64_t ms)
{
    clock_pass(ms);
    clock_step(ms);
    clock_turn(b->loop);
}

static bool
has(const struct bed *b, const char *what)
{
    return b->lines.at != NULL && memmem(b->lines.at, b->lines.length, what, strlen(what)) != NULL;
}

static void
publish(struct bed *b, const char *record, const char *policy)
{
    sim_dns_text(b->dns, "_mta-sts.y.test", record);
    sim_http_answer(b->http, HOST, 200, "text/plain", policy);
}

/* sim_dns_text() adds: a name server that says something else. */
static void
change(struct bed *b, const char *record)
{
    char error[200];
    sts_cache_free(&b->cache);
    dns_free(&b->dns);
    b->dns = dns_new(b->loop, TEXT(""), error, sizeof(error));
    if (record != NULL)
        sim_dns_text(b->dns, "_mta-sts.y.test", record);
    cache_start(b);
}

/* Policies in the file. */
static long
kept(struct bed *b)
{
    char path[100];
    long count = 0;
    snprintf(path, sizeof(path), "%s/sts", b->folder);
    FILE *f = fopen(path, "r");
    for (int c; f != NULL && (c = getc(f)) != EOF;)
        count += c == '\n';
    if (f != NULL)
        fclose(f);
    return count;
}


TEST(rounds)
{
    struct bed b;
    start(&b);
    is_string(ask(&b, "y.test"), "none", "a domain without a record");
    is_number(sim_http_calls(b.http), 0, "is not asked for a policy");
    is_number(kept(&b), 0, "and not kept");
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "86400"));
    is_string(ask(&b, "Y.test"), "enforce 86400 mx.y.test", "a domain with a policy");
    is_string(sim_http_url(b.http), HOST, "its address");
    ok_named(sim_http_options(b.http)->is_public, "which must be public");
    ok_named(sim_http_options(b.http)->body_max == STS_POLICY_MAX && sim_http_options(b.http)->deadline_ms == 10000,
             "with limits");
    is_string(ask(&b, "y.test"), "enforce 86400 mx.y.test", "the second time");
    is_number(sim_http_calls(b.http), 1, "it is kept");
    ok(has(&b, "MTA-STS policy of y.test: mode enforce for 86400 s, mx mx.y.test"));
    /* Several at the same time share a round. */
    struct heard h[3];
    struct sts_query *q[3];
    memset(h, 0, sizeof(h));
    size_t asked = sim_dns_questions(b.dns);
    for (int i = 0; i < 3; i++)
        q[i] = sts_cache_ask(b.cache, "y.test", hear, &h[i]);
    sts_cache_cancel(&q[1]);
    pass(&b, 100);
    ok_named(h[0].answers == 1 && h[1].answers == 0 && h[2].answers == 1, "who cancels hears nothing");
    is_number((long)(sim_dns_questions(b.dns) - asked), 1, "one question");
    stop(&b);
}

/* The owner repairs a policy and says so by a new id: that counts although the old one is not to be fetched again
 * for hours. */
TEST(new_id)
{
    struct bed b;
    start(&b);
    sim_dns_text(b.dns, "_mta-sts.y.test", "v=STSv1; id=1");
    sim_http_answer(b.http, HOST, 404, "text/plain", "");
    for (int i = 0; i < 4; i++) {
        is_string(ask(&b, "y.test"), "none", "a policy that cannot be had");
        later(&b, STS_CACHE_RETRY_MS << i);
    }
    unsigned calls = sim_http_calls(b.http);
    sim_http_answer(b.http, HOST, 200, "text/plain", POLICY("enforce", "604800"));
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "after a while it is asked again");
    later(&b, 86400000);
    sim_http_answer(b.http, HOST, 404, "text/plain", "");
    (void)ask(&b, "y.test");
    sim_http_answer(b.http, HOST, 200, "text/plain", POLICY("testing", "604800"));
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a failed fetch is not repeated");
    sim_dns_text_change(b.dns, "_mta-sts.y.test", "v=STSv1; id=2");
    is_string(ask(&b, "y.test"), "testing 604800 mx.y.test", "but a new id counts");
    is_number(sim_http_calls(b.http), calls + 3, "and each is fetched once");
    stop(&b);
}

TEST(holds)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    ask(&b, "y.test");
    sim_dns_status(b.dns, "_mta-sts.y.test", DNS_NO_NAME);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a policy holds without its record");
    sim_dns_status(b.dns, "_mta-sts.y.test", DNS_TRY_AGAIN);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "and while DNS fails");
    sim_dns_status(b.dns, "_mta-sts.y.test", DNS_FOUND);
    sim_http_forget(b.http);
    later(&b, 2 * (int64_t)DAY_MS);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "and while HTTPS fails");
    is_number(sim_http_calls(b.http), 2, "after a day it is fetched again");
    ok(has(&b, "the MTA-STS policy of y.test cannot be used: cannot connect; the one before holds"));
    ask(&b, "y.test");
    is_number(sim_http_calls(b.http), 2, "not twice within 5 minutes");
    later(&b, STS_CACHE_RETRY_MS + 1000);
    ask(&b, "y.test");
    is_number(sim_http_calls(b.http), 3, "but then");
    later(&b, 5 * (int64_t)DAY_MS);
    is_string(ask(&b, "y.test"), "none", "until max_age is over");
    publish(&b, "x", POLICY("testing", "60"));
    later(&b, DAY_MS);
    is_string(ask(&b, "y.test"), "testing 60 mx.y.test", "another one");
    later(&b, 61000);
    sim_http_fail(b.http, HOST, "TLS: certificate has expired");
    is_string(ask(&b, "y.test"), "none", "has another age");
    stop(&b);
}

TEST(age)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    ask(&b, "y.test");
    later(&b, DAY_MS + 1000);
    sim_http_answer(b.http, HOST, 200, "text/plain; charset=utf-8", POLICY("enforce", "1000000"));
    sim_http_delay(b.http, 5000);
    int64_t before_ms = loop_monotonic_ms(b.loop);
    is_string(ask(&b, "y.test"), "enforce 1000000 mx.y.test", "after a day the same id is fetched again");
    ok_named(loop_monotonic_ms(b.loop) - before_ms >= 5000, "and mail waits for it");
    is_string(ask(&b, "y.test"), "enforce 1000000 mx.y.test", "the next one does not");
    is_number(sim_http_calls(b.http), 2, "fetched once");
    change(&b, "v=STSv1; id=2");
    sim_http_answer(b.http, HOST, 200, "text/plain", POLICY("none", "100"));
    is_string(ask(&b, "y.test"), "none 100 ", "a new id counts immediately");
    stop(&b);
}

TEST(bad)
{
    static const struct {
        unsigned status;
        const char *type, *body, *why;
    } rows[] = {
        {404, "text/plain", POLICY("enforce", "1"),       "the answer is not 200"                     },
        {302, "text/plain", "",                           "the answer is not 200"                     },
        {200, "text/html",  POLICY("enforce", "1"),       "its type is not text/plain"                },
        {200, "text/plainx", POLICY("enforce", "1"),      "its type is not text/plain"                },
        {200, NULL,         POLICY("enforce", "1"),       "its type is not text/plain"                },
        {200, "text/plain", "<html>",                     "a line of it is not \"key: value\""        },
        {200, "text/plain", "version: STSv1\nmode: x\n",  "its mode is not enforce, testing or none"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bed b;
        start(&b);
        sim_dns_text(b.dns, "_mta-sts.y.test", "v=STSv1; id=1");
        sim_http_answer(b.http, HOST, rows[i].status, rows[i].type, rows[i].body);
        is_string(ask(&b, "y.test"), "none", rows[i].why);
        ok(has(&b, rows[i].why) && has(&b, "; there is none"));
        is_string(ask(&b, "y.test"), "none", "again");
        is_number(sim_http_calls(b.http), 1, "asked once in five minutes");
        stop(&b);
    }
}

static void
report(void *context, const struct tls_reports_row *row)
{
    char *out = context;
    snprintf(out + strlen(out), 400 - strlen(out), "%s %s %s%s %d; ", tls_reports_policy_word(row->policy), row->domain,
             row->host, tls_reports_word(row->result), (int)row->count);
}

static const char *
reported(const struct bed *b)
{
    static char out[400];
    out[0] = '\0';
    tls_reports_each(b->reports, report, out);
    return out;
}

/* The counters of TLSRPT: each fetch that fails, by what it was; none that is not made, and none that is good. */
TEST(reported)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a good one");
    is_string(ask(&b, "none.test"), "none", "no record");
    is_string(reported(&b), "", "nothing has failed");
    later(&b, DAY_MS + 1000);
    sim_http_fail(b.http, HOST, "mta-sts.y.test: Connection refused");
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "the old one holds");
    pass(&b, 100);
    is_string(reported(&b), "sts y.test sts-policy-fetch-error 1; ", "its renewal has failed");
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "too early for another");
    is_string(reported(&b), "sts y.test sts-policy-fetch-error 1; ", "is not counted again");
    later(&b, STS_CACHE_RETRY_MS + 1000);
    sim_http_fail(b.http, HOST, "mta-sts.y.test: certificate has expired on 2021-02-03");
    (void)ask(&b, "y.test");
    pass(&b, 100);
    is_string(reported(&b), "sts y.test sts-policy-fetch-error 1; sts y.test sts-webpki-invalid 1; ", "a certificate");
    later(&b, DAY_MS);
    sim_http_answer(b.http, HOST, 404, "text/plain", "");
    (void)ask(&b, "y.test");
    pass(&b, 100);
    later(&b, DAY_MS);
    sim_http_answer(b.http, HOST, 200, "text/plain", "no policy\n");
    (void)ask(&b, "y.test");
    pass(&b, 100);
    is_string(reported(&b),
              "sts y.test sts-policy-fetch-error 2; sts y.test sts-webpki-invalid 1; sts y.test sts-policy-invalid 1; ",
              "not 200, and no policy");
    stop(&b);
}

/* A late answer does not hold mail up, and is used when it comes. */
TEST(late)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    sim_dns_delay(b.dns, 30000);
    int64_t before_ms = loop_monotonic_ms(b.loop);
    is_string(ask(&b, "y.test"), "none", "an answer within ten seconds");
    ok(loop_monotonic_ms(b.loop) - before_ms <= STS_CACHE_WAIT_MS + 100);
    pass(&b, 31000);
    sim_dns_delay(b.dns, 1);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "later it is known");
    is_number(sim_http_calls(b.http), 1, "by the first round");
    stop(&b);
}

/* Domains that lead nowhere, of an attacker perhaps, do not end the fetches of others. */
TEST(nowhere)
{
    struct bed b;
    char name[64];
    start(&b);
    sim_dns_text_any(b.dns, "v=STSv1; id=1");
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "nowhere%d.test", i);
        is_string(ask(&b, name), "none", name);
    }
    is_number(sim_http_calls(b.http), 20, "each is tried");
    sim_http_answer(b.http, "https://mta-sts.z.test/.well-known/mta-sts.txt", 200, "text/plain", POLICY("enforce", "604800"));
    is_string(ask(&b, "z.test"), "enforce 604800 mx.y.test", "and one that can be reached is");
    stop(&b);
}

/* The disk is full, or worse. */
TEST(not_written)
{
    struct bed b;
    char fresh[100], path[100];
    struct stat status;
    start(&b);
    snprintf(path, sizeof(path), "%s/sts", b.folder);
    snprintf(fresh, sizeof(fresh), "%s/sts.new", b.folder);
    if (mkdir(fresh, 0700) != 0)
        abort();
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    ask(&b, "y.test");
    ok_named(stat(path, &status) != 0, "it cannot be written");
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "the policy holds");
    if (rmdir(fresh) != 0)
        abort();
    sim_dns_text_change(b.dns, "_mta-sts.y.test", "v=STSv1; id=2");
    ask(&b, "y.test");
    ok_named(stat(path, &status) == 0 && status.st_size > 0, "at the next change it is");
    ok_named(stat(fresh, &status) != 0, "and has its name");
    if (mkdir(fresh, 0700) != 0)
        abort();
    sim_dns_text_change(b.dns, "_mta-sts.y.test", "v=STSv1; id=3");
    ask(&b, "y.test");
    sts_cache_free(&b.cache);
    is_number(kept(&b), 1, "the old file is still there");
    /* The end tries it once more. */
    cache_start(&b);
    sim_dns_text_change(b.dns, "_mta-sts.y.test", "v=STSv1; id=44");
    ask(&b, "y.test");
    if (rmdir(fresh) != 0 || stat(path, &status) != 0)
        abort();
    sts_cache_free(&b.cache);
    struct stat last;
    ok_named(stat(path, &last) == 0 && last.st_size == status.st_size + 1, "what failed is written at the end");
    cache_start(&b);
    stop(&b);
}
TEST(restart)
{
    struct bed b;
    char path[100];
    struct stat status;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    ask(&b, "y.test");
    snprintf(path, sizeof(path), "%s/sts", b.folder);
    ok_named(stat(path, &status) == 0 && status.st_size > 0, "the file is written immediately");
    is_number(status.st_mode & 0777, 0600, "for us alone");
    sim_dns_text(b.dns, "_mta-sts.z.test", "v=STSv1; id=7");
    sim_http_answer(b.http, "https://mta-sts.z.test/.well-known/mta-sts.txt", 200, "text/plain",
                    "version: STSv1\nmode: none\nmax_age: 1000\n");
    ask(&b, "z.test");
    struct stat second;
    ok_named(stat(path, &second) == 0 && second.st_size > status.st_size, "and again with the next policy");
    sts_cache_free(&b.cache);
    unsigned calls = sim_http_calls(b.http);
    sim_dns_status(b.dns, "_mta-sts.y.test", DNS_TRY_AGAIN);
    cache_start(&b);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a restart knows them, and they hold");
    is_string(ask(&b, "z.test"), "none 1000 ", "each");
    is_number(sim_http_calls(b.http) - calls, 0, "without a fetch");
    later(&b, 604801000);
    is_string(ask(&b, "y.test"), "none", "for the same time");
    stop(&b);
}

static void
write_file(struct bed *b, const char *content)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/sts", b->folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs(content, f) < 0 || fclose(f) != 0)
        abort();
}

TEST(damaged)
{
    struct bed b;
    char content[600];
    start(&b);
    sts_cache_free(&b.cache);
    int64_t now_ms = loop_now_ms(b.loop);
    snprintf(content, sizeof(content),
             "1 good.test 1 enforce %lld 1000 mx.y.test\n1 bad.test 1 enforce %lld 1000\njunk\n"
             "1 future.test 1 enforce %lld 1000 mx.y.test\n",
             (long long)now_ms, (long long)now_ms, (long long)now_ms + 2 * (long long)DAY_MS);
    write_file(&b, content);
    cache_start(&b);
    is_string(ask(&b, "bad.test"), "none", "a damaged line does not count");
    is_string(ask(&b, "future.test"), "none", "nor one of tomorrow");
    sts_cache_free(&b.cache);
    /* Its last pattern would be another host. */
    snprintf(content, sizeof(content), "1 good.test 1 enforce %lld 1000 mx.y.test\n1 cut.test 1 enforce %lld 1000 mx.y.tes",
             (long long)now_ms, (long long)now_ms);
    write_file(&b, content);
    cache_start(&b);
    is_string(ask(&b, "cut.test"), "none", "nor one that is cut off");
    ok(has(&b, "sts: ignored 1 lines that are damaged"));
    ok(has(&b, "sts: ignored 3 lines that are damaged"));
    is_string(ask(&b, "good.test"), "enforce 1000 mx.y.test", "and no other");
    stop(&b);
}

/* A file with more than is kept. */
TEST(many)
{
    struct bed b;
    struct buffer lines;
    start(&b);
    sts_cache_free(&b.cache);
    buffer_init(&lines, 2 * 1024 * 1024);
    for (int i = 0; i < STS_CACHE_DOMAINS_MAX + 100; i++)
        if (!buffer_format(&lines, "1 d%d.test 1 enforce %lld 1000 mx.y.test\n", i, (long long)loop_now_ms(b.loop)))
            abort();
    write_file(&b, lines.at);
    cache_start(&b);
    is_string(ask(&b, "d599.test"), "enforce 1000 mx.y.test", "the last is there");
    is_string(ask(&b, "d0.test"), "none", "the first is not");
    buffer_free(&lines);
    stop(&b);
}

/* --- A flood of hostile domains ---------------------------------------------------- */

enum { FLOOD_BATCH = 500 };

/* Many domains at the same time, each asked once. mode NULL: the policy of each cannot be had. */
static void
flood(struct bed *b, int from, int count, const char *mode)
{
    char name[40], policy[100];
    static struct heard ignored;
    sim_http_delay(b->http, 1);
    snprintf(policy, sizeof(policy), "version: STSv1\nmode: %s\nmx: *.evil.test\nmax_age: 31557600\n",
             mode != NULL ? mode : "x");
    sim_http_answer(b->http, "*", 200, "text/plain", policy);
    for (int i = from; i < from + count; i++) {
        snprintf(name, sizeof(name), "x%d.test", i);
        sts_cache_ask(b->cache, name, hear, &ignored);
        if ((i + 1) % FLOOD_BATCH == 0)
            pass(b, 100);
        buffer_clear(&b->lines);
    }
    pass(b, 100);
    sim_http_forget(b->http);
}

/* Domains without a policy cost none, and those with one the least recently used. */
TEST(flood)
{
    enum { MAX = STS_CACHE_DOMAINS_MAX };
    struct bed b;
    char name[40];
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "31557600"));
    is_string(ask(&b, "y.test"), "enforce 31557600 mx.y.test", "a policy");
    sim_dns_text_any(b.dns, "v=STSv1; id=1");
    sim_dns_status(b.dns, "_mta-sts.y.test", DNS_TRY_AGAIN);
    flood(&b, 0, 4 * MAX, NULL);
    is_string(ask(&b, "y.test"), "enforce 31557600 mx.y.test", "survives any number of failures");
    flood(&b, 4 * MAX, MAX - 1, "enforce");
    is_string(ask(&b, "y.test"), "enforce 31557600 mx.y.test", "and as many policies as there is space for");
    is_number(kept(&b), MAX, "which are in the file");
    flood(&b, 5 * MAX, MAX / 2, "testing");
    is_string(ask(&b, "y.test"), "enforce 31557600 mx.y.test", "and more, since it was used after them");
    flood(&b, 6 * MAX, MAX, "none");
    is_string(ask(&b, "y.test"), "none", "not so many that are used after it");
    sim_dns_text_any(b.dns, NULL);
    unsigned calls = sim_http_calls(b.http);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "plain%d.test", i);
        (void)ask(&b, name);
    }
    is_number(sim_http_calls(b.http), calls, "a domain without a policy costs no call");
    sts_cache_free(&b.cache);
    is_number(kept(&b), MAX, "and no space");
    sim_dns_status(b.dns, "_mta-sts.x3000.test", DNS_TRY_AGAIN);
    cache_start(&b);
    is_string(ask(&b, "x3000.test"), "none 31557600 ", "a restart has them");
    stop(&b);
}

/* --- Policies that cannot be fetched ----------------------------------------------- */

static void
note_lost(void *context, const struct sts_cache_lost *lost)
{
    char *to = context;
    snprintf(to + strlen(to), 300 - strlen(to), "%s %d min %s%s; ", lost->domain, (int)(lost->since_ms / 60000),
             lost->why, lost->forbids ? " forbids" : "");
}

static const char *
lost(struct bed *b)
{
    static char out[300];
    out[0] = '\0';
    sts_cache_each_lost(b->cache, note_lost, out);
    return out;
}

TEST(lost)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    ask(&b, "y.test");
    sim_dns_text(b.dns, "_mta-sts.z.test", "v=STSv1; id=1");
    ask(&b, "z.test");
    is_string(lost(&b), "", "a policy that was fetched, and a domain that never had one");
    sim_http_forget(b.http);
    later(&b, DAY_MS + 1000);
    ask(&b, "y.test");
    is_string(lost(&b), "", "a first failure");
    sts_cache_note_hosts(b.cache, "Y.test", true);
    is_string(lost(&b), "y.test 0 min cannot connect forbids; ", "is trouble when mail waits");
    sts_cache_note_hosts(b.cache, "y.test", false);
    is_string(lost(&b), "", "and not when it does not");
    later(&b, STS_CACHE_LONG_MS);
    is_string(lost(&b), "y.test 60 min cannot connect; ", "but after an hour");
    sim_http_fail(b.http, HOST, "TLS: certificate has expired");
    ask(&b, "y.test");
    is_string(lost(&b), "y.test 60 min TLS: certificate has expired; ", "with the last reason");
    sts_cache_note_hosts(b.cache, "y.test", true);
    sim_http_answer(b.http, HOST, 200, "text/plain", POLICY("enforce", "604800"));
    later(&b, DAY_MS);
    ask(&b, "y.test");
    is_string(lost(&b), "", "until it is fetched");
    sim_http_forget(b.http);
    sim_dns_text_change(b.dns, "_mta-sts.y.test", "v=STSv1; id=2");
    ask(&b, "y.test");
    sts_cache_note_hosts(b.cache, "y.test", true);
    is_string(lost(&b), "y.test 0 min cannot connect forbids; ", "a new policy that cannot be had");
    sim_dns_text_change(b.dns, "_mta-sts.y.test", "v=STSv1; id=1");
    ask(&b, "y.test");
    is_string(lost(&b), "", "is no trouble when it is the old one again");
    sts_cache_note_hosts(b.cache, "absent.test", true);
    is_string(lost(&b), "", "a domain that is not known");
    stop(&b);
}

/* --- Clocks ------------------------------------------------------------------------ */

TEST(clock)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    ask(&b, "y.test");
    sim_dns_status(b.dns, "_mta-sts.y.test", DNS_TRY_AGAIN);
    clock_step(400 * (int64_t)DAY_MS);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a clock set forward ends no policy");
    clock_step(-800 * (int64_t)DAY_MS);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "nor does one set back");
    clock_step(400 * (int64_t)DAY_MS);
    later(&b, 6 * (int64_t)DAY_MS);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "it holds for its time");
    later(&b, 2 * (int64_t)DAY_MS);
    is_string(ask(&b, "y.test"), "none", "and no longer");
    stop(&b);
}

/* --- Too many fetches -------------------------------------------------------------- */

/* The time in line is not the domain's: its own ten seconds begin with its fetch. */
TEST(line)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    sim_http_hold(b.http, true);
    struct heard h = {0};
    sts_cache_ask(b.cache, "y.test", hear, &h);
    pass(&b, STS_CACHE_WAIT_MS + 9000);
    is_number(h.answers, 0, "in line for longer than ten seconds");
    sim_http_delay(b.http, 9990);
    sim_http_hold(b.http, false);
    pass(&b, 10100);
    is_string(h.what, "enforce 604800 mx.y.test", "it is fetched in its turn, and counts");
    stop(&b);
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    sim_http_hold(b.http, true);
    int64_t before_ms = loop_monotonic_ms(b.loop);
    is_string(ask(&b, "y.test"), "unknown", "a longer line than mail can wait");
    ok(loop_monotonic_ms(b.loop) - before_ms < STS_CACHE_LINE_MS + 1500);
    is_string(ask(&b, "y.test"), "unknown", "again");
    is_number(sim_http_calls(b.http), 1, "it keeps its place");
    sim_http_hold(b.http, false);
    pass(&b, 100);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "until it has its turn");
    is_string(reported(&b), "", "nothing has failed");
    stop(&b);
}

TEST(refused)
{
    struct bed b;
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    sim_http_refuse(b.http, true);
    for (int i = 0; i < 2; i++)
        is_string(ask(&b, "y.test"), "unknown", "no space in line is no failure");
    is_string(reported(&b), "", "nor counted as one");
    sim_http_refuse(b.http, false);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "and it is tried again immediately");
    /* A kept policy holds in the same cases. */
    sim_http_refuse(b.http, true);
    sim_dns_text_change(b.dns, "_mta-sts.y.test", "v=STSv1; id=2");
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a new id, and no space");
    sim_http_refuse(b.http, false);
    sim_http_hold(b.http, true);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a new id, in line");
    sim_http_hold(b.http, false);
    pass(&b, 100);
    unsigned calls = sim_http_calls(b.http);
    later(&b, DAY_MS + 1000);
    sim_http_hold(b.http, true);
    int64_t before_ms = loop_monotonic_ms(b.loop);
    is_string(ask(&b, "y.test"), "enforce 604800 mx.y.test", "a day later, in line");
    ok_named(loop_monotonic_ms(b.loop) - before_ms < 2000, "a policy that holds does not wait there");
    sim_http_hold(b.http, false);
    pass(&b, 100);
    is_number(sim_http_calls(b.http), calls + 1, "it is fetched again");
    stop(&b);
}

/* Freed while all kinds of work are under way. */
TEST(freed)
{
    struct bed b;
    struct heard h = {0};
    start(&b);
    publish(&b, "v=STSv1; id=1", POLICY("enforce", "604800"));
    sim_http_delay(b.http, 5000);
    sts_cache_ask(b.cache, "y.test", hear, &h);
    pass(&b, 100);
    sts_cache_ask(b.cache, "z.test", hear, &h);
    sts_cache_ask(b.cache, "y.test", hear, &h);
    sts_cache_free(&b.cache);
    pass(&b, 6000);
    is_number(h.answers, 0, "no callback comes after it is freed");
    stop(&b);
}
