/* Warns of a site that clogs the active queue: mail for it comes faster than it goes, and
 * has waited on disk for a while. Nothing is lost or late for other sites by that, so the
 * log is the only place where an operator hears of it before a sender asks. */
#include "queue/manager/manager_internal.h"

#include <inttypes.h>
#include <stdio.h>

enum { CLOG_MS = 5 * 60 * 1000 }; /* Postfix: qmgr_clog_warn_time */

struct clog {
    struct manager *manager;
    int64_t now_ms;
    bool is_logged;
};

static void
clog_check(void *context, const struct sched_site *site)
{
    struct clog *c = context;
    struct manager *m = c->manager;
    if (site->crowded_since_ms == 0 || c->now_ms - site->crowded_since_ms < CLOG_MS)
        return;
    struct log_line line;
    log_start(&line, m->log, LOG_LEVEL_WARNING, "queue", NULL);
    char words[200];
    (void)snprintf(
        words, sizeof(words),
        "mail has waited on disk for %" PRId64 " minutes: %zu messages there, "
        "%zu recipients in memory, %d sessions, window %d; bound: %s",
        (c->now_ms - site->crowded_since_ms) / 60000, site->backlogged, site->waiting,
        site->sessions, site->window, sched_bound_word(site->bound));
    log_field(&line, "site", text_from(site->key));
    log_remark(&line, text_from(words));
    log_end(&line);
    c->is_logged = true;
}

void
clog_warn(struct manager *m)
{
    struct clog c = {.manager = m, .now_ms = loop_now_ms(m->loop)};
    if (m->clog_warned_ms != 0 && c.now_ms - m->clog_warned_ms < CLOG_MS &&
        c.now_ms >= m->clog_warned_ms)
        return;
    sched_sites(m->sched, clog_check, &c);
    if (c.is_logged)
        m->clog_warned_ms = c.now_ms;
}
