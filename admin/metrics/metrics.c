/* Gathers the data of a scrape. */
#include "admin/metrics/metrics.h"

#include "admin/control/health.h"
#include "admin/metrics/metrics_internal.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { METRICS_REST = 20 };                   /* times the duration of the reading */
enum { METRICS_STALE_US = 10 * 1000 * 1000 }; /* a reading that nobody goes on with */

static struct metrics_site *
metrics_find_site(struct metrics *m, const char *key)
{
    uint64_t hash =
        text_hash_nocase(TEXT_HASH, text_before(text_from(key), METRICS_KEY_MAX - 1));
    for (size_t i = 0; i < m->site_count; i++)
        if (m->sites[i].hash == hash &&
            strncmp(m->sites[i].key, key, METRICS_KEY_MAX - 1) == 0)
            return &m->sites[i];
    return NULL;
}

/* Events that were counted as of others stay there. */
static void
metrics_on_event(void *context, const struct event *e)
{
    struct metrics *m = context;
    size_t status = (size_t)(e->kind - EVENT_DELIVERED);
    metrics_count(&m->counters, e);
    if (e->site == NULL || e->kind < EVENT_DELIVERED || status >= METRICS_SITE_STATUSES)
        return;
    struct metrics_site *site = metrics_find_site(m, e->site);
    if (site != NULL)
        site->deliveries[status]++;
    else
        m->other_deliveries[status]++;
}

struct metrics *
metrics_new(const struct metrics_setup *setup)
{
    struct metrics *m = memory_new(sizeof(*m));
    m->setup = *setup;
    m->reload_good = true;
    m->started_s = (double)loop_now_ms(setup->loop) / 1000;
    m->statm = m->descriptors = -1;
    if (disk_open(&m->process, "/proc/self", false) == 0) {
        m->statm = disk_open_file(m->process, "statm", false);
        m->descriptors = disk_open_directory(m->process, "fd");
    }
    metrics_set_sites(m, setup->sites);
    event_read(setup->events, metrics_events(), metrics_on_event, m);
    metrics_busy_start(m);
    return m;
}

void
metrics_free(struct metrics **metrics)
{
    struct metrics *m = *metrics;
    if (m == NULL)
        return;
    *metrics = NULL;
    event_read(m->setup.events, 0, metrics_on_event, m);
    metrics_busy_stop(m);
    if (m->statm >= 0)
        disk_close_file(m->process, m->statm);
    if (m->descriptors >= 0)
        disk_close_file(m->process, m->descriptors);
    disk_close(&m->process);
    sched_walk_end(&m->walk);
    free(m);
}

void
metrics_set_server(struct metrics *m, const struct http_server *server)
{
    m->server = server;
}

void
metrics_set_sites(struct metrics *m, size_t sites)
{
    m->setup.sites = sites < METRICS_SITES_TOP ? sites : METRICS_SITES_TOP;
}

void
metrics_set_limit(struct metrics *m, size_t client_sessions_limit)
{
    m->setup.client_sessions_limit = client_sessions_limit;
}

void
metrics_note_reload(struct metrics *m, bool good)
{
    m->reloads[good ? 0 : 1]++;
    m->reload_good = good;
}

/* --- Sites ------------------------------------------------------------------------- */

/* The row of that name; top->count: it has none. */
static size_t
metrics_top_find(const struct metrics_top *top, const char *key)
{
    size_t i = 0;
    while (i < top->count && strncmp(top->rows[i].key, key, METRICS_KEY_MAX - 1) != 0)
        i++;
    return i;
}

/* Those with most mail, found in one pass. */
static void
metrics_weigh(void *context, const struct sched_site *site)
{
    struct metrics *m = context;
    struct metrics_top *top = &m->top;
    uint64_t mail = site->waiting + site->backlogged;
    size_t least = 0;
    if ((mail == 0 && site->sessions == 0) || m->setup.sites == 0)
        return;
    size_t known = metrics_top_find(top, site->key);
    if (known < top->count) {
        top->rows[known].mail += mail;
        return;
    }
    if (top->count < m->setup.sites) {
        least = top->count++;
    } else {
        for (size_t i = 1; i < top->count; i++)
            if (top->rows[i].mail < top->rows[least].mail)
                least = i;
        if (top->rows[least].mail >= mail)
            return;
    }
    top->rows[least].mail = mail;
    text_copy(top->rows[least].key, METRICS_KEY_MAX, text_from(site->key));
}

/* A site keeps its series for an hour after it left the top. */
static void
metrics_choose_sites(struct metrics *m)
{
    int64_t now_ms = loop_monotonic_ms(m->setup.loop);
    const struct metrics_top *top = &m->top;
    size_t kept = 0;
    for (size_t i = 0; i < m->site_count; i++)
        if (m->sites[i].until_ms > now_ms && m->setup.sites > 0)
            m->sites[kept++] = m->sites[i];
    m->site_count = kept;
    for (size_t i = 0; i < top->count; i++) {
        struct metrics_site *site = metrics_find_site(m, top->rows[i].key);
        if (site == NULL && m->site_count < METRICS_SITES_MAX) {
            site = &m->sites[m->site_count++];
            *site = (struct metrics_site){.is_here = false};
            memcpy(site->key, top->rows[i].key, METRICS_KEY_MAX);
            site->hash = text_hash_nocase(TEXT_HASH, text_from(site->key));
        }
        if (site != NULL)
            site->until_ms = now_ms + METRICS_SITE_KEEP_MS;
    }
    for (size_t i = 0; i < m->site_count; i++) {
        struct metrics_site *site = &m->sites[i];
        site->is_here = false;
        site->waiting = site->backlogged = site->sessions = site->window = site->rate =
            site->latency_s = 0;
        site->alive = 1;
    }
}

/* Sites of one name share its series. */
static void
metrics_see_site(void *context, const struct sched_site *site)
{
    struct metrics *m = context;
    struct metrics_site *mine = metrics_find_site(m, site->key);
    bool dead = site->dead_until_ms > 0;
    m->probing += site->probing;
    m->dead += dead && !site->probing;
    if (site->waiting + site->backlogged > 0)
        m->bound[site->bound]++;
    if (mine == NULL)
        mine = &m->others;
    mine->is_here = true;
    mine->waiting += (double)site->waiting;
    mine->backlogged += (double)site->backlogged;
    mine->sessions += site->sessions;
    mine->window += site->window;
    mine->rate += (double)site->rate / 1000;
    if (mine == &m->others)
        return;
    double latency_s = (double)site->latency_ms / 1000;
    if (dead)
        mine->alive = 0;
    if (mine->latency_s < latency_s)
        mine->latency_s = latency_s;
}

/* Reads the data that come in one piece. */
static void
metrics_read(struct metrics *m)
{
    counters_read(m->setup.manager, &m->now);
    m->now.sessions_in =
        m->setup.count_sessions(m->setup.count_context, &m->now.is_stressed);
    m->now.sessions_in_limit = m->setup.client_sessions_limit;
    m->group = (struct metrics_group){.members = 0};
    m->has_group =
        m->setup.group != NULL && m->setup.group(m->setup.group_context, &m->group);
    m->has_copies =
        m->setup.copies != NULL && m->setup.copies(m->setup.group_context, &m->copies);
    m->alive = m->now.sched.sites - m->probing - m->dead;
    m->clients = (struct metrics_clients){0};
    if (m->setup.clients != NULL)
        m->setup.clients(m->setup.clients_context, &m->clients);
}

void
metrics_read_live(struct metrics *m)
{
    const struct metrics_setup *s = &m->setup;
    struct health_check checks[HEALTH_CHECKS_MAX];
    size_t count;
    m->live.draining = s->is_draining(s->context);
    m->live.accepting = m->now.health.accepting && !m->live.draining;
    m->live.ready = s->health == NULL || health_is_ready(s->health, &count, checks);
    m->live.history_bytes = s->history_bytes != NULL ? s->history_bytes(s->history) : 0;
    m->live.keeping = event_hub_keeping(s->events);
    m->live.has_log = s->log != NULL;
    m->live.lost_lines = s->log != NULL ? log_counts(s->log)->lost : 0;
    if (s->tls_policy != NULL)
        s->tls_policy(s->deliveries, m->live.tls);
}

/* --- Reading ----------------------------------------------------------------------- */

static void
metrics_walk_begin(struct metrics *m, enum metrics_stage stage)
{
    sched_walk_end(&m->walk);
    m->walk = sched_walk_begin(manager_sched(m->setup.manager));
    m->stage = stage;
}

static void
metrics_begin(struct metrics *m)
{
    m->top.count = 0;
    m->busy_us = 0;
    metrics_walk_begin(m, METRICS_WEIGHING);
}

static void
metrics_begin_seeing(struct metrics *m)
{
    metrics_choose_sites(m);
    m->others = (struct metrics_site){.alive = 1};
    m->probing = m->dead = 0;
    memset(m->bound, 0, sizeof(m->bound));
    metrics_walk_begin(m, METRICS_SEEING);
}

/* One step; false: there are more. */
static bool
metrics_step(struct metrics *m, size_t most)
{
    if (m->stage == METRICS_WEIGHING) {
        if (sched_walk_step(m->walk, most, metrics_weigh, m))
            return false;
        metrics_begin_seeing(m);
    }
    if (sched_walk_step(m->walk, most, metrics_see_site, m))
        return false;
    sched_walk_end(&m->walk);
    m->stage = METRICS_RESTING;
    metrics_read(m);
    return true;
}

bool
metrics_gather(struct metrics *m, size_t most)
{
    int64_t start_us = loop_clock_us();
    if (m->stage == METRICS_RESTING && start_us < m->fresh_until_us)
        return true;
    if (m->stage == METRICS_RESTING || start_us - m->stepped_us > METRICS_STALE_US)
        metrics_begin(m);
    bool whole = metrics_step(m, most);
    m->stepped_us = loop_clock_us();
    m->busy_us += m->stepped_us - start_us;
    if (whole)
        m->fresh_until_us = m->stepped_us + METRICS_REST * m->busy_us;
    return whole;
}

/* --- Answers ----------------------------------------------------------------------- */

static void
metrics_write_page(struct metrics *m, bool open, struct buffer *out)
{
    struct metrics_writer w;
    metrics_writer_begin(&w, open);
    metrics_write_all(m, &w);
    (void)!buffer_add(out, buffer_text(&w.out));
    buffer_free(&w.out);
}

/* A scrape that waits for the sites. */
struct metrics_scrape {
    struct metrics *metrics;
    struct http_exchange *exchange;
    bool open;
};

static enum progress
metrics_more(void *context, struct buffer *out)
{
    struct metrics_scrape *s = context;
    if (!metrics_gather(s->metrics, METRICS_SITES_STEP)) {
        http_exchange_wake(s->exchange);
        return PROGRESS_MORE;
    }
    metrics_write_page(s->metrics, s->open, out);
    return PROGRESS_DONE;
}

void
metrics_answer(struct metrics *m, struct http_exchange *x)
{
    bool open =
        http_exchange_accepts(x, TEXT("Accept"), TEXT("application/openmetrics-text"));
    buffer_clear(&x->body);
    x->status = 200;
    x->type = open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                   : "text/plain; version=0.0.4; charset=utf-8";
    if (metrics_gather(m, METRICS_SITES_STEP)) {
        metrics_write_page(m, open, &x->body);
        return;
    }
    struct metrics_scrape *s = memory_new(sizeof(*s));
    *s = (struct metrics_scrape){m, x, open};
    x->stream = (struct http_stream){metrics_more, free, s};
}
