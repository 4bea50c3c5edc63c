/* Counts deferrals of mail that was deferred before, and knows reasons that were logged. */
#include "base/event/event_log_waiting.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct event_log_waiting_site {
    UT_hash_handle hh;
    char *name;
    uint64_t recipients;        /* that were counted */
    char why[OUTCOME_TEXT_MAX]; /* of the last one of them */
    struct id like;             /* the message that was logged with this outcome */
    struct outcome outcome;
};

static void
waiting_line(const struct event_log_waiting *w, const char *site, uint64_t recipients,
             const char *why)
{
    struct log_line line;
    log_start(&line, w->log, LOG_LEVEL_INFO, "queue", NULL);
    if (log_style(w->log) == LOG_STYLE_JSON)
        log_field(&line, "event", TEXT("waiting"));
    log_field(&line, "site", text_from(site));
    log_field_number(&line, "more_deferred", (int64_t)recipients);
    log_remark(&line, text_from(why));
    log_end(&line);
}

static void
waiting_sum_up(void *context)
{
    struct event_log_waiting *w = context;
    struct event_log_waiting_site *each, *next;
    HASH_ITER (hh, w->sites, each, next) {
        if (each->recipients > 0)
            waiting_line(w, each->name, each->recipients, each->why);
        HASH_DEL(w->sites, each);
        free(each->name);
        free(each);
    }
    if (w->others > 0)
        waiting_line(w, "others", w->others, "deferred again in the last minute");
    w->others = w->lines = w->first_lines = 0;
}

void
event_log_waiting_start(struct event_log_waiting *w, struct loop *loop, struct log *log)
{
    *w = (struct event_log_waiting){.loop = loop, .log = log};
}

void
event_log_waiting_stop(struct event_log_waiting *w)
{
    if (w->loop == NULL)
        return;
    loop_timer_stop(w->loop, &w->timer);
    waiting_sum_up(w);
}

/* NULL: the table is full. */
static struct event_log_waiting_site *
waiting_site(struct event_log_waiting *w, const char *name)
{
    struct event_log_waiting_site *site;
    HASH_FIND_STR(w->sites, name, site);
    if (site != NULL || HASH_COUNT(w->sites) >= EVENT_LOG_WAITING_SITES)
        return site;
    site = memory_new(sizeof(*site));
    site->name = memory_string(name);
    HASH_ADD_KEYPTR(hh, w->sites, site->name, strlen(site->name), site);
    return site;
}

/* At level debug, and in the styles of other programs, every line is expected. */
static bool
waiting_is_limited(const struct event_log_waiting *w, const struct event *v)
{
    return w->loop != NULL && v->kind == EVENT_DEFERRED &&
           log_level(w->log) < LOG_LEVEL_DEBUG &&
           (log_style(w->log) == LOG_STYLE_PETREL ||
            log_style(w->log) == LOG_STYLE_JSON);
}

/* Counts one more line of the minute, which it may begin. True: there were many. */
static bool
waiting_is_many(struct event_log_waiting *w, unsigned *lines)
{
    if (w->lines == 0 && w->first_lines == 0)
        loop_timer_start(w->loop, &w->timer, EVENT_LOG_WAITING_MS, waiting_sum_up, w);
    return ++*lines > EVENT_LOG_WAITING_LINES;
}

static const char *
waiting_site_name(const struct event *v)
{
    return v->site != NULL ? v->site : "none";
}

bool
event_log_waiting_counts(struct event_log_waiting *w, const struct event *v)
{
    if (!waiting_is_limited(w, v) || !v->is_again || !waiting_is_many(w, &w->lines))
        return false;
    struct event_log_waiting_site *site = waiting_site(w, waiting_site_name(v));
    if (site == NULL) {
        w->others++;
        return true;
    }
    site->recipients++;
    memcpy(site->why, v->outcome->text, sizeof(site->why));
    return true;
}

struct id
event_log_waiting_like(struct event_log_waiting *w, const struct event *v)
{
    struct id none = {0};
    if (!waiting_is_limited(w, v) || v->is_again ||
        log_style(w->log) != LOG_STYLE_PETREL || !waiting_is_many(w, &w->first_lines))
        return none;
    struct event_log_waiting_site *site = waiting_site(w, waiting_site_name(v));
    if (site == NULL)
        return none;
    if (site->like.time_ms != 0 && strcmp(site->outcome.text, v->outcome->text) == 0 &&
        strcmp(site->outcome.remote, v->outcome->remote) == 0)
        return site->like;
    site->like = v->id;
    site->outcome = *v->outcome;
    return none;
}
