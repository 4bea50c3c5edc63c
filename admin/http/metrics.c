/* Gathers what a scrape needs. */
#include "admin/http/metrics.h"

#include "admin/http/metrics_internal.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { METRICS_REST = 20 }; /* times what reading took */

struct metrics *
metrics_new(const struct metrics_setup *setup)
{
    struct metrics *m = memory_new(sizeof(*m));
    m->setup = *setup;
    m->started_s = (double)loop_now_ms(setup->loop) / 1000;
    m->statm = m->descriptors = -1;
    if (disk_open(&m->process, "/proc/self", false) == 0) {
        m->statm = disk_open_file(m->process, "statm", false);
        m->descriptors = disk_open_directory(m->process, "fd");
    }
    metrics_set_sites(m, setup->sites);
    event_read(setup->events, metrics_events(), metrics_count, &m->counters);
    return m;
}

void
metrics_free(struct metrics **metrics)
{
    struct metrics *m = *metrics;
    if (m == NULL)
        return;
    *metrics = NULL;
    event_read(m->setup.events, 0, metrics_count, &m->counters);
    if (m->statm >= 0)
        disk_close_file(m->process, m->statm);
    if (m->descriptors >= 0)
        disk_close_file(m->process, m->descriptors);
    disk_close(&m->process);
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
    m->setup.sites = sites < METRICS_SITES_MAX / 2 ? sites : METRICS_SITES_MAX / 2;
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
    m->reload_failed = !good;
}

/* --- Sites ------------------------------------------------------------------------- */

struct metrics_top {
    struct metrics *m;
    size_t count;
    struct {
        uint64_t mail;
        char key[METRICS_KEY_MAX];
    } rows[METRICS_SITES_MAX / 2];
};

/* Those with most mail, found in one pass. */
static void
metrics_weigh(void *context, const struct sched_site *site)
{
    struct metrics_top *top = context;
    uint64_t mail = site->waiting + site->backlogged;
    size_t least = 0;
    if ((mail == 0 && site->sessions == 0) || top->m->setup.sites == 0)
        return;
    if (top->count < top->m->setup.sites) {
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

/* A site keeps its series for an hour after it left the top. */
static void
metrics_choose_sites(struct metrics *m)
{
    int64_t now_ms = loop_monotonic_ms(m->setup.loop);
    struct metrics_top top = {.m = m};
    size_t kept = 0;
    sched_sites(manager_sched(m->setup.manager), metrics_weigh, &top);
    for (size_t i = 0; i < m->site_count; i++)
        if (m->sites[i].until_ms > now_ms && m->setup.sites > 0)
            m->sites[kept++] = m->sites[i];
    m->site_count = kept;
    for (size_t i = 0; i < top.count; i++) {
        struct metrics_site *site = metrics_find_site(m, top.rows[i].key);
        if (site == NULL && m->site_count < METRICS_SITES_MAX) {
            site = &m->sites[m->site_count++];
            memcpy(site->key, top.rows[i].key, METRICS_KEY_MAX);
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
    mine->alive = !dead;
    mine->latency_s = (double)site->latency_ms / 1000;
}

static void
metrics_read(struct metrics *m)
{
    struct manager *manager = m->setup.manager;
    bool stressed;
    m->health = queue_health(manager_queue(manager));
    m->apart = queue_count_apart(manager_queue(manager));
    m->sched = sched_count(manager_sched(manager));
    m->fragments = (struct manager_fragments){0};
    (void)manager_fragments(manager, &m->fragments);
    manager_find_oldest(manager, &m->oldest);
    m->sessions_in = m->setup.count_sessions(m->setup.count_context, &stressed);
    m->clients = (struct metrics_clients){0};
    if (m->setup.clients != NULL)
        m->setup.clients(m->setup.clients_context, &m->clients);
    m->others = (struct metrics_site){.alive = 1};
    m->probing = m->dead = 0;
    memset(m->bound, 0, sizeof(m->bound));
    metrics_choose_sites(m);
    sched_sites(manager_sched(manager), metrics_see_site, m);
}

void
metrics_gather(struct metrics *m)
{
    int64_t start_us = loop_clock_us();
    if (start_us < m->fresh_until_us)
        return;
    metrics_read(m);
    int64_t end_us = loop_clock_us();
    m->fresh_until_us = end_us + METRICS_REST * (end_us - start_us);
}

/* --- Answers ----------------------------------------------------------------------- */

/* Named, and not with q=0. */
static bool
metrics_wants_open(struct text accept)
{
    struct text one;
    while (text_word(&accept, ",", &one)) {
        struct text parameter, type;
        bool refused = false;
        if (!text_cut(&one, ';', &type) ||
            !text_equal_nocase(text_trim(type), TEXT("application/openmetrics-text")))
            continue;
        while (one.at != NULL && text_cut(&one, ';', &parameter)) {
            parameter = text_trim(parameter);
            refused = refused || text_equal_nocase(parameter, TEXT("q=0")) ||
                      text_starts_nocase(parameter, TEXT("q=0.0"));
        }
        if (!refused)
            return true;
    }
    return false;
}

void
metrics_answer(struct metrics *m, struct http_exchange *x)
{
    struct metrics_writer w;
    struct text accept = http_reader_field(x->request, TEXT("Accept"));
    metrics_writer_begin(&w, accept.at != NULL && metrics_wants_open(accept));
    metrics_write_all(m, &w);
    buffer_clear(&x->body);
    (void)!buffer_add(&x->body, buffer_text(&w.out));
    x->status = 200;
    x->type = w.open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                     : "text/plain; version=0.0.4; charset=utf-8";
    buffer_free(&w.out);
}
