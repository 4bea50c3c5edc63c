/* Proves what a scrape says of a daemon, which sites have series of their own, and that
 * petrel-metrics(7) has the table.
 *
 * To make its list anew: METRICS_MANUAL=1 build/t/unit/admin/metrics/metrics.t */
#include "admin/metrics/metrics_internal.h"

#include "admin/control/health.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "base/tls/tls.h"
#include "base/event/event.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "sched/site.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/waiting_channel.h"



/* --- The manual ------------------------------------------------------------------- */

static void
write_manual(struct buffer *out)
{
    static const char *const types[] = {"gauge", "counter", "histogram", "info"};
    static const char *const ends[] = {"", "_total", "", "_info"};
    const struct metric_family *f;
    for (size_t i = 0; (f = metrics_family_at(i)) != NULL; i++) {
        ok(buffer_format(out, ".TP\n.BR %s%s \" (%s)\"\n%s.\n", f->name, ends[f->type],
                         types[f->type], f->help));
        if (f->labels[0] != '\0')
            ok(buffer_format(out, ".br\n%s\n", f->labels));
    }
}

static void
test_manual(void)
{
    static char manual[200000];
    FILE *file = fopen("man/petrel-metrics.7", "r");
    size_t size = file ? fread(manual, 1, sizeof(manual) - 1, file) : 0;
    if (file)
        fclose(file);
    manual[size] = '\0';
    FIXTURE(buffer, wanted, buffer_init, buffer_free, sizeof(manual));
    write_manual(&wanted);
    const char *begin = strstr(manual, ".SH METRICS\n"),
               *end = strstr(manual, ".SH \"SEE ALSO\"\n");
    ok_named(begin != NULL && end != NULL, "man/petrel-metrics.7 is there");
    if (begin != NULL && end != NULL)
        is_text(text_of(begin + 12, (size_t)(end - begin - 12)), buffer_text(&wanted),
                "its list is the table");
}

static bool
has_family(const char *name)
{
    const struct metric_family *family;
    for (size_t i = 0; (family = metrics_family_at(i)) != NULL; i++)
        if (strcmp(family->name, name) == 0)
            return true;
    return false;
}

static void
test_counters(void)
{
    const struct counter *c;
    for (size_t i = 0; (c = counters_at(i)) != NULL; i++)
        if (c->family != NULL)
            ok_named(has_family(c->family), c->family);
}

/* --- A daemon --------------------------------------------------------------------- */

static struct world w;
static struct event_hub *hub;
static bool draining;

static size_t
sessions(void *context, bool *stressed)
{
    (void)context;
    *stressed = false;
    return 7;
}

static bool
is_draining(void *context)
{
    (void)context;
    return draining;
}

static const char *
finding(void *context, size_t index)
{
    static const char *const codes[] = {"disk_low", "", NULL};
    (void)context;
    return codes[index];
}

static const double accept_bounds[] = {0.1, 1};

static void
clients(void *context, struct metrics_clients *out)
{
    (void)context;
    *out = (struct metrics_clients){.opened = 12, .logins = 3, .refused = {"rate", "proxy"}, .refused_counts = {5, 6}, .accept_bounds = accept_bounds, .accept_bound_count = 2};
    out->accepts = (struct metric_histogram){.counts = {1, 2, 4}, .sum = 9.5};
}

static bool is_ready;
static size_t
checks(void *context, struct health_check list[HEALTH_CHECKS_MAX])
{
    (void)context;
    list[0] = (struct health_check){.name = "accepting", .good = is_ready};
    return 1;
}
static const struct health health = {.look = checks};

static struct log *lines;
static struct tls_server *certificates;
static struct tls_server *
tls(void *context)
{
    (void)context;
    return certificates;
}

static bool in_group;
static bool
group(void *context, struct metrics_group *out)
{
    (void)context;
    *out = (struct metrics_group){.has_bank = true, .is_up = false, .members = 9, .lost = 1, .fallback_sites = 37, .answered = 10, .failures = 2};
    return in_group;
}

static bool
copies(void *context, struct metrics_copies *out)
{
    (void)context;
    *out = (struct metrics_copies){.is_up = true, .behind = 1204, .stored = 7, .losses = 2};
    return in_group;
}

static struct metrics *
begin(size_t sites)
{
    struct metrics_setup setup = {.loop = w.loop,
                                  .manager = w.manager,
                                  .events = hub,
                                  .sites = sites,
                                  .count_sessions = sessions,
                                  .is_draining = is_draining,
                                  .health = &health,
                                  .log = lines,
                                  .tls = tls,
                                  .clients = clients,
                                  .client_sessions_limit = 1000,
                                  .finding = finding,
                                  .copies = copies,
                                  .group = group};
    return metrics_new(&setup);
}

static char page[METRICS_SIZE_MAX + 1];

static bool
says(const char *line)
{
    return page_says(page, line);
}

static const char *
scrape(struct metrics *m, const char *accept)
{
    struct http_reader request;
    struct http_exchange x = {.request = &request};
    static const struct http_limits limits = {10, 1000, 0};
    char head[500];
    snprintf(head, sizeof(head), "GET /metrics HTTP/1.1\r\nHost: a\r\n%s\r\n", accept);
    struct text input = text_from(head);
    http_reader_init(&request, HTTP_REQUEST, &limits);
    ok(http_reader_add(&request, &input) == PROGRESS_DONE);
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    metrics_answer(m, &x);
    text_copy(page, sizeof(page), buffer_text(&x.body));
    buffer_free(&x.body);
    http_reader_free(&request);
    return x.type;
}

static void
test_formats(struct metrics *m)
{
    static const char older[] = "text/plain; version=0.0.4; charset=utf-8",
                      open[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    is_string(scrape(m, ""), older, "no Accept");
    is_string(scrape(m, "Accept: */*\r\n"), older, "anything");
    is_string(scrape(m, "Accept: text/plain, Application/OpenMetrics-Text;version=1.0.0;q=0.5\r\n"),
              open, "OpenMetrics among others");
    ok(strcmp(page + strlen(page) - 7, "\n# EOF\n") == 0);
    is_string(scrape(m, "Accept: application/openmetrics-text; q=0\r\n"), older, "refused");
    is_string(scrape(m, "Accept: application/openmetrics-text; Q=0.000\r\n"), older, "likewise");
    is_string(scrape(m, "Accept: application/openmetrics-text; q=0.05\r\n"), open, "not refused");
    is_string(scrape(m, "Accept: application/openmetrics-textual\r\n"), older, "another type");
}

static void
test_values(struct metrics *m)
{
    struct outcome outcome = {.code = 554};
    event_tell(hub, &(struct event){.kind = EVENT_REFUSED, .outcome = &outcome, .reason = "user"});
    scrape(m, "");
    ok(says("petrel_accepting 1") && says("petrel_draining 0"));
    ok(says("petrel_sessions{direction=\"in\"} 7"));
    ok(says("petrel_refusals_total{class=\"5\",reason=\"user\"} 1"));
    ok(says("petrel_queue_messages{place=\"deferred\"} 0"));
    ok(says("petrel_registry_up 1") && says("petrel_config_reload_success 1"));
    ok(says("petrel_limit{name=\"active\"} 100"));
    ok(says("petrel_finding{code=\"disk_low\"} 1") && !says("petrel_finding{code=\"\"}") && !says("petrel_finding{code=\"corrupt\"}"));
    ok(strstr(page, "\nprocess_resident_memory_bytes ") != NULL);
    ok(strstr(page, "\npetrel_build_info{version=\"") != NULL);
    ok_named(strstr(page, "\npetrel_group_hosts{") == NULL, "no group, no figures of it");
    ok_named(strstr(page, "\npetrel_copies_up") == NULL, "no copies, no figures of them");
    in_group = true;
    scrape(m, "");
    ok(says("petrel_group_bank_up 0") && says("petrel_group_fallback_sites 37"));
    ok(says("petrel_group_hosts{state=\"member\"} 9") && says("petrel_group_hosts{state=\"lost\"} 1"));
    ok(says("petrel_group_asks_total{result=\"answered\"} 10") && says("petrel_group_asks_total{result=\"failed\"} 2"));
    ok(says("petrel_copies_up 1") && says("petrel_copies_behind 1204") &&
       says("petrel_copies_actions_total{action=\"stored\"} 7") && says("petrel_copies_losses_total 2"));
    in_group = false;
    draining = true;
    metrics_note_reload(m, true);
    metrics_note_reload(m, false);
    scrape(m, "");
    ok(says("petrel_accepting 0") && says("petrel_draining 1"));
    ok(says("petrel_config_reloads_total{result=\"ok\"} 1") &&
       says("petrel_config_reloads_total{result=\"refused\"} 1") &&
       says("petrel_config_reload_success 0"));
    draining = false;
}

/* The process, its clients, its log and its certificates. */
static void
test_process(void)
{
    lines = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    struct metrics *m = begin(20);
    log_say(lines, LOG_LEVEL_WARNING, "main", NULL, "this is a line of the test");
    scrape(m, "");
    ok(says("petrel_ready 0"));
    ok(says("petrel_sessions_opened_total{direction=\"in\"} 12") && says("petrel_sessions_opened_total{direction=\"out\"} 0"));
    ok(says("petrel_connections_refused_total{reason=\"rate\"} 5") && says("petrel_connections_refused_total{reason=\"proxy\"} 6"));
    ok(says("petrel_logins_total{result=\"ok\"} 3"));
    ok(says("petrel_limit{name=\"sessions_in\"} 1000"));
    ok(says("petrel_accept_seconds_bucket{le=\"1.0\"} 3") && says("petrel_accept_seconds_count 7") && says("petrel_accept_seconds_sum 9.5"));
    ok(says("petrel_log_lines_total{level=\"warning\"} 1") && says("petrel_log_lines_total{level=\"debug\"} 0") && says("petrel_log_lines_lost_total 0"));
    ok(strstr(page, "\npetrel_loop_turn_seconds_bucket{le=\"0.001\"} ") != NULL);
    ok(strstr(page, "\npetrel_sync_seconds_bucket{le=\"0.0001\"} ") != NULL);
    ok(strstr(page, "\npetrel_certificate_not_after_seconds{") == NULL);
    is_ready = true;
    metrics_set_limit(m, 7);
    char folder[100], command[300], error[TLS_ERROR_MAX];
    folder_make(folder, sizeof(folder), "certificates");
    snprintf(command, sizeof(command), "sh t/support/tls_certificates.sh %s >/dev/null 2>&1", folder);
    ok_named(system(command) == 0, "certificates are made");
    char good[120], good_key[120], old[120], old_key[120];
    snprintf(good, sizeof(good), "%s/good.pem", folder);
    snprintf(good_key, sizeof(good_key), "%s/good.key", folder);
    snprintf(old, sizeof(old), "%s/expired.pem", folder);
    snprintf(old_key, sizeof(old_key), "%s/expired.key", folder);
    struct tls *library = tls_new(error, sizeof(error));
    const struct tls_pair pairs[] = {{good, good_key}, {old, old_key}, {good, good_key}};
    certificates = tls_server_new(library, pairs, 3, error, sizeof(error));
    ok_named(certificates != NULL, error);
    scrape(m, "");
    ok(says("petrel_ready 1") && says("petrel_limit{name=\"sessions_in\"} 7"));
    const char *first = strstr(page, "\npetrel_certificate_not_after_seconds{name=\"");
    ok_named(first != NULL && strstr(page, "} 1612325106\n") != NULL, "the end of a certificate");
    size_t named = 0;
    for (const char *at = first; at != NULL; at = strstr(at + 1, "\npetrel_certificate_not_after_seconds{"))
        named++;
    ok_named(named <= 2, "one series for a name");
    tls_server_free(&certificates);
    tls_free(&library);
    folder_remove(folder);
    metrics_free(&m);
    log_free(&lines);
}

/* Reading all sites may take long: a client that asks again soon hears the same. */
static void
test_rest(struct metrics *m)
{
    scrape(m, "");
    m->fresh_until_us = loop_clock_us() + 1000000;
    post_mail(&w, 4, "four.test");
    control_turns(&w, 20);
    scrape(m, "");
    ok(strstr(page, "petrel_queue_messages{place=\"active\"} 4\n") != NULL);
    clock_pass(1000);
    scrape(m, "");
    ok(strstr(page, "petrel_queue_messages{place=\"active\"} 5\n") != NULL);
}

/* Mail for a site of that name waits: its channel never connects. */
static void
wait_at(unsigned recipients, const char *domain)
{
    post_mail(&w, recipients, domain);
    control_turns(&w, 20);
}

/* A recipient's verdict at the site. */
static void
verdict(enum event_kind kind, const char *site)
{
    event_tell(hub, &(struct event){.kind = kind, .site = site});
}

static void
test_site_deliveries(void)
{
    struct metrics *m = begin(1);
    wait_at(1, "first.test");
    scrape(m, "");
    is_number((long)m->site_count, 1, "a site has series");
    char labels[METRICS_KEY_MAX + 100], key[METRICS_KEY_MAX];
    memcpy(key, m->sites[0].key, sizeof(key));
    snprintf(labels, sizeof(labels), "petrel_site_deliveries_total{site=\"%s\",status=\"delivered\"} 0", key);
    ok(says(labels));
    verdict(EVENT_DELIVERED, key);
    verdict(EVENT_DELIVERED, key);
    verdict(EVENT_BOUNCED, key);
    verdict(EVENT_DEFERRED, "smtp:elsewhere");
    verdict(EVENT_EXPIRED, key);
    verdict(EVENT_DELIVERED, NULL);
    scrape(m, "");
    snprintf(labels, sizeof(labels), "petrel_site_deliveries_total{site=\"%s\",status=\"delivered\"} 2", key);
    ok(says(labels));
    snprintf(labels, sizeof(labels), "petrel_site_deliveries_total{site=\"%s\",status=\"bounced\"} 1", key);
    ok(says(labels));
    ok(says("petrel_site_deliveries_total{site=\"other\",status=\"deferred\"} 1"));
    ok(says("petrel_site_deliveries_total{site=\"other\",status=\"delivered\"} 0"));
    ok_named(strstr(page, "status=\"expired\"} 1") == NULL || strstr(page, "petrel_site_deliveries_total{site=\"other\",status=\"expired\"") == NULL, "what expires has no site");
    metrics_free(&m);
}

static void
slow_and_dead(void *context, const struct sched_glance *glance)
{
    int *seen = context;
    if (strcmp(glance->key, "smtp:[127.0.0.1]:1") != 0)
        return;
    glance->site->latency.short_us = *seen == 0 ? 90000 : 20000;
    glance->site->dead = *seen == 0;
    glance->site->dead_until_ms = INT64_MAX;
    if (*seen == 0)
        glance->site->reason = reason_open(&glance->site->reasons, &outcome_no_trouble);
    ++*seen;
}

/* Two routes to one host: what each site has is in the series of their name. */
static void
test_namesakes(void)
{
    int seen = 0;
    struct metrics *m = begin(4);
    metrics_set_sites(m, 1);
    wait_at(20, "slow.example");
    wait_at(7, "fast.example");
    sched_glance(manager_sched(w.manager), slow_and_dead, &seen);
    is_number(seen, 2, "two sites of one name");
    scrape(m, "");
    is_number((long)m->site_count, 1, "have one series");
    ok(says("petrel_site_waiting{site=\"smtp:[127.0.0.1]:1\"} 27"));
    ok(says("petrel_site_alive{site=\"smtp:[127.0.0.1]:1\"} 0"));
    ok(says("petrel_site_latency_seconds{site=\"smtp:[127.0.0.1]:1\"} 0.09"));
    is_number((long)m->top.rows[0].mail, 27, "chosen by the mail of both");
    metrics_free(&m);
}

/* The mean of a minute of what is used most; sessions, here. */
static void
test_busy(void)
{
    struct metrics *m = begin(0);
    scrape(m, "");
    ok(says("petrel_busy_ratio 0"));
    metrics_set_limit(m, 14); /* sessions() has 7 of them */
    for (int i = 0; i < METRICS_BUSY_SAMPLES; i++) {
        clock_pass(METRICS_BUSY_MS);
        loop_turn(w.loop, 0);
    }
    is_number((long)m->busy.count, METRICS_BUSY_SAMPLES, "a minute");
    for (size_t i = 0; i < m->busy.count; i++)
        ok_named(m->busy.samples[i] >= 0.5 && m->busy.samples[i] <= 1, "half of the sessions at least");
    metrics_set_limit(m, 7);
    for (int i = 0; i < METRICS_BUSY_SAMPLES; i++) {
        clock_pass(METRICS_BUSY_MS);
        loop_turn(w.loop, 0);
    }
    clock_pass(1000);
    scrape(m, "");
    ok(says("petrel_busy_ratio 1"));
    metrics_free(&m);
}

static void
test_sites(void)
{
    struct metrics *m = begin(2);
    scrape(m, "");
    ok(says("petrel_site_waiting{site=\"other\"} 0"));
    wait_at(3, "three.test");
    wait_at(2, "two.test");
    wait_at(1, "one.test");
    scrape(m, "");
    ok(strstr(page, "petrel_site_waiting{site=\"") != NULL);
    is_number(m->site_count, 2, "two sites have series");
    double named = m->sites[0].waiting + m->sites[1].waiting;
    ok_named(named == 5 && m->others.waiting == 1, "those with most mail; one is other");
    ok(strstr(page, "petrel_site_alive{site=\"other\"}") == NULL);
    char first[METRICS_KEY_MAX];
    memcpy(first, m->sites[0].key, sizeof(first));
    wait_at(9, "nine.test");
    scrape(m, "");
    is_number(m->site_count, 3, "a new one joins; the others keep theirs");
    is_string(m->sites[0].key, first, "in its place");
    clock_pass(METRICS_SITE_KEEP_MS);
    loop_turn(w.loop, 0);
    scrape(m, "");
    is_number(m->site_count, 2, "for an hour");
    ok(m->sites[0].waiting + m->sites[1].waiting == 12 && m->others.waiting == 3);
    metrics_set_sites(m, 0);
    scrape(m, "");
    ok(m->site_count == 0 && strstr(page, "petrel_site_waiting{") == NULL);
    metrics_set_sites(m, 1000);
    scrape(m, "");
    ok(m->site_count == 4 && m->setup.sites == METRICS_SITES_TOP);
    test_rest(m);
    metrics_free(&m);
    ok(m == NULL);
    metrics_free(&m);
}

int
main(void)
{
    if (getenv("METRICS_MANUAL") != NULL) {
        struct buffer out;
        buffer_init(&out, 200000);
        write_manual(&out);
        fwrite(out.at, 1, out.length, stderr);
        return 0;
    }
    char folder[100];
    clock_stop();
    test_manual();
    test_counters();
    folder_make(folder, sizeof(folder), "metrics");
    control_world_begin(&w, folder, TEXT("slow.example smtp://127.0.0.1:1?recipients=7, "
                                          "fast.example smtp://127.0.0.1:1, * mx"));
    hub = event_hub_new(NULL);
    manager_set_channel(w.manager, TARGET_MX, waiting_open, &w);
    manager_set_channel(w.manager, TARGET_SMTP, waiting_open, &w);
    struct metrics *m = begin(20);
    test_formats(m);
    test_values(m);
    metrics_free(&m);
    test_process();
    test_sites();
    test_site_deliveries();
    test_busy();
    test_namesakes();
    event_hub_free(&hub);
    for (size_t i = 0; i < waiting_count; i++)
        manager_session_ended(w.manager, waiting_sessions[i], &outcome_no_trouble);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
