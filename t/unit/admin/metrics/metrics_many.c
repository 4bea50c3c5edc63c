/* Metrics have one size, however much mail, however many domains and clients there are,
 * and a scrape looks at no more than so many sites in a turn. */
#include "admin/metrics/metrics_internal.h"

#include "base/memory.h"
#include "base/event/event.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/waiting_channel.h"

enum { DOMAINS = 100000, CLIENTS = 10000, MESSAGES = 20, RECIPIENTS = 1000 };

static struct world w;
static struct event_hub *hub;

static size_t
sessions(void *context, bool *stressed)
{
    (void)context;
    *stressed = false;
    return 0;
}

static bool
never(void *context)
{
    (void)context;
    return false;
}

static struct metrics *
begin(void)
{
    struct metrics_setup setup = {.loop = w.loop,
                                  .manager = w.manager,
                                  .events = hub,
                                  .sites = 20,
                                  .count_sessions = sessions,
                                  .is_draining = never,
                                  .client_sessions_limit = 1000};
    return metrics_new(&setup);
}

/* --- A scrape, step by step --------------------------------------------------------- */

static char page[METRICS_SIZE_MAX + 1];

static bool
says(const char *line)
{
    return page_says(page, line);
}
static unsigned woken;

static void
wake(void *context)
{
    (void)context;
    woken++;
}

/* Returns the number of steps; 0: the page was there immediately. */
static unsigned
scrape(struct metrics *m)
{
    struct http_reader request;
    struct http_exchange x = {.request = &request, .wake = wake};
    static const struct http_limits limits = {10, 1000, 0};
    struct text input = TEXT("GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text\r\n\r\n");
    unsigned steps = 0;
    http_reader_init(&request, HTTP_REQUEST, &limits);
    ok(http_reader_add(&request, &input) == PROGRESS_DONE);
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    woken = 0;
    metrics_answer(m, &x);
    enum progress progress = x.stream.more != NULL ? PROGRESS_MORE : PROGRESS_DONE;
    while (progress == PROGRESS_MORE) {
        progress = x.stream.more(x.stream.context, &x.body);
        steps++;
        if (progress == PROGRESS_MORE && (x.body.length > 0 || woken != steps))
            break; /* nothing is sent before all is read */
    }
    if (x.stream.free != NULL)
        x.stream.free(x.stream.context);
    ok(progress == PROGRESS_DONE);
    text_copy(page, sizeof(page), buffer_text(&x.body));
    buffer_free(&x.body);
    http_reader_free(&request);
    return steps;
}

static size_t
series(void)
{
    size_t count = 0;
    struct text rest = text_from(page), line;
    while (text_cut(&rest, '\n', &line))
        count += line.length > 0 && line.at[0] != '#';
    return count;
}

/* --- Counters ----------------------------------------------------------------------- */

/* Each domain has a delivery, a deferral and a bounce, each client comes, fails to log in
 * and is refused; names are different each time. */
static void
tell_much(void)
{
    char name[100], address[100];
    struct outcome good = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok"),
                   bad = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no");
    for (unsigned i = 0; i < DOMAINS; i++) {
        snprintf(name, sizeof(name), "mx.d%u.example[192.0.2.1]:25", i);
        snprintf(address, sizeof(address), "user%u@d%u.example", i, i);
        struct event event = {.program = "smtp", .id = {.time_ms = i + 1}, .relay = text_from(name), .recipient = text_from(address), .sender = text_from(address), .outcome = &good, .kind = EVENT_DELIVERED};
        event_tell(hub, &event);
        event.kind = EVENT_BOUNCED;
        event.outcome = &bad;
        event_tell(hub, &event);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        snprintf(name, sizeof(name), "[10.%u.%u.%u]", i >> 16, i >> 8 & 255, i & 255);
        struct event_client client = {.name = name, .helo = address, .user = name, .protocol = "ESMTP", .uid = EVENT_NO_UID};
        struct event event = {.kind = EVENT_REFUSED, .client = &client, .outcome = &bad, .reason = "relay", .verb = "rcpt"};
        event_tell(hub, &event);
        event.kind = EVENT_DENIED;
        event_tell(hub, &event);
        event.kind = EVENT_ACCEPTED;
        event.id.time_ms = i + 1;
        event.recipients = 2;
        event.size = 3;
        event_tell(hub, &event);
    }
}

static void
test_counters(struct metrics *m)
{
    scrape(m);
    size_t before = series(), size = strlen(page);
    tell_much();
    clock_pass(10 * 1000);
    m->fresh_until_us = 0;
    is_number(scrape(m), 0, "without sites the page is there immediately");
    is_number(series(), before, "as many series as before");
    ok_named(series() <= METRICS_SERIES_MAX && strlen(page) < METRICS_SIZE_MAX && strlen(page) < size + 1000, "within the limits");
    ok_named(strstr(page, "d0.example") == NULL && strstr(page, "d99999.example") == NULL && strstr(page, "[10.0.") == NULL, "no domain and no client is named");
    ok(says("petrel_deliveries_total{status=\"delivered\",via=\"smtp\"} 100000"));
    ok(says("petrel_deliveries_total{status=\"bounced\",via=\"smtp\"} 100000"));
    ok(says("petrel_refusals_total{class=\"5\",reason=\"relay\"} 10000"));
    ok(says("petrel_logins_total{result=\"failed\"} 10000"));
    ok(says("petrel_messages_accepted_total{source=\"smtp\"} 10000"));
    ok(says("petrel_recipients_accepted_total{source=\"smtp\"} 20000"));
    ok(says("petrel_accepted_bytes_total{source=\"smtp\"} 30000"));
}

/* --- Sites -------------------------------------------------------------------------- */

static void
post_to_many(unsigned message)
{
    struct envelope *e = envelope_new();
    for (unsigned i = 0; i < RECIPIENTS; i++)
        control_address(e, "user@d%u-%u.example", message, i);
    control_store(&w, e);
}

static double
sum_of(const char *family)
{
    double sum = 0;
    for (const char *at = page; (at = strstr(at, family)) != NULL; at += strlen(family)) {
        const char *value = strchr(at, '}');
        if (at[-1] == '\n' && value != NULL)
            sum += strtod(value + 1, NULL);
    }
    return sum;
}

static void
test_sites(struct metrics *m)
{
    for (unsigned i = 0; i < MESSAGES; i++)
        post_to_many(i);
    for (unsigned i = 0; i < 1000 && sched_count(manager_sched(w.manager)).sites < MESSAGES * RECIPIENTS; i++)
        control_turns(&w, 1);
    size_t sites = sched_count(manager_sched(w.manager)).sites;
    printf("# %zu sites\n", sites);
    ok_named(sites > 10 * METRICS_SITES_STEP, "many sites have mail");
    m->fresh_until_us = 0;
    unsigned steps = scrape(m);
    /* The first step is made before the stream; two walks, and the first step of the
     * second is the last of the first. */
    size_t least = 2 * ((sites + METRICS_SITES_STEP - 1) / METRICS_SITES_STEP) - 2;
    ok_named(steps >= least && steps <= least + 2, "so many sites in a step, not more");
    ok_named(series() <= METRICS_SERIES_MAX && strlen(page) < METRICS_SIZE_MAX, "within the limits");
    is_number((long long)sum_of("petrel_site_waiting{"), MESSAGES * RECIPIENTS, "named or other, all that waits is there");
    is_number(m->site_count, 20, "twenty are named");
    /* Another scrape goes on where a client has left. */
    m->fresh_until_us = 0;
    for (unsigned i = 0; i < 3; i++)
        ok(!metrics_gather(m, METRICS_SITES_STEP));
    ok_named(scrape(m) < steps - 1, "a reading that was begun is shared");
    is_number((long long)sum_of("petrel_site_waiting{"), MESSAGES * RECIPIENTS, "and complete");
    m->fresh_until_us = loop_clock_us() + 1000000;
    is_number(scrape(m), 0, "who asks again soon gets the same without a walk");
    /* One that nobody went on with for long begins anew. */
    m->fresh_until_us = 0;
    ok(!metrics_gather(m, METRICS_SITES_STEP));
    m->stepped_us -= 11 * 1000 * 1000;
    is_number(scrape(m), steps, "an old one is not");
}

int
main(void)
{
    char folder[100];
    clock_stop();
    folder_make(folder, sizeof(folder), "metrics");
    control_world_begin(&w, folder, TEXT("* mx"));
    hub = event_hub_new(NULL);
    manager_set_channel(w.manager, TARGET_MX, waiting_open, &w);
    struct metrics *m = begin();
    test_counters(m);
    test_sites(m);
    /* A reading may be under way at the end. */
    m->fresh_until_us = 0;
    ok(!metrics_gather(m, METRICS_SITES_STEP));
    metrics_free(&m);
    event_hub_free(&hub);
    for (size_t i = 0; i < waiting_count; i++)
        manager_session_ended(w.manager, waiting_sessions[i], &outcome_no_trouble);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
