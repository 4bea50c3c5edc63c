/* Counts deferrals of mail that was deferred before. */
#include "queue/event/event_log_waiting.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct event_log_waiting_site {
    UT_hash_handle hh;
    char *name;
    uint64_t recipients;
    char why[OUTCOME_TEXT_MAX]; /* of the last one */
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
        waiting_line(w, each->name, each->recipients, each->why);
        HASH_DEL(w->sites, each);
        free(each->name);
        free(each);
    }
    if (w->others > 0)
        waiting_line(w, "others", w->others, "deferred again in the last minute");
    w->others = w->lines = 0;
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
waiting_is_counted(const struct event_log_waiting *w, const struct event *v)
{
    enum log_style style = log_style(w->log);
    return v->kind == EVENT_DEFERRED && v->is_again &&
           log_level(w->log) < LOG_LEVEL_DEBUG &&
           (style == LOG_STYLE_PETREL || style == LOG_STYLE_JSON);
}

bool
event_log_waiting_counts(struct event_log_waiting *w, const struct event *v)
{
    if (w->loop == NULL || !waiting_is_counted(w, v))
        return false;
    if (w->lines++ == 0)
        loop_timer_start(w->loop, &w->timer, EVENT_LOG_WAITING_MS, waiting_sum_up, w);
    if (w->lines <= EVENT_LOG_WAITING_LINES)
        return false;
    struct event_log_waiting_site *site =
        waiting_site(w, v->site != NULL ? v->site : "none");
    if (site == NULL) {
        w->others++;
        return true;
    }
    site->recipients++;
    memcpy(site->why, v->outcome->text, sizeof(site->why));
    return true;
}
