/* Looks up, fetches and keeps MTA-STS policies: RFC 8461 §3.3, §5.
 *
 * All requests for a domain share one round: TXT, then HTTPS if that is needed. The
 * answer is the policy kept when the round ends, or when its time is over. A domain
 * without a policy and without a failure to remember has no entry between rounds. */
#include "smtp/trust/sts_cache.h"

#include "base/disk/disk.h"
#include "base/dns/dns.h"
#include "base/http/http_call.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "smtp/trust/tls_reports.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum {
    HTTPS_PORT = 443,
    FETCH_MS = 10000,
    NAME_MAX_STS = DNS_NAME_MAX + 16,
    URL_MAX = DNS_NAME_MAX + 64,
    PATH_MAX_STS = 64,
    FUTURE_MS = 86400000,
    STEP_MS = 1000 /* between two looks at the line */
};

struct sts_query {
    struct sts_query *prev, *next;
    struct sts_entry *entry; /* NULL: it is being answered */
    sts_cache_found *done;   /* NULL: cancelled */
    void *context;
};

struct sts_entry {
    UT_hash_handle hh;
    struct sts_cache *cache;
    char *domain;
    bool is_kept; /* beyond its round: there is a policy, or a failure to remember */
    struct sts_query *waiting;
    struct loop_timer patience;
    int64_t asked_ms,
        begun_ms;           /* monotonic; begun: the last time that it was in line */
    struct dns_query *txt;  /* a round: first this... */
    struct http_call *call; /* ...then perhaps this */
    char wanted[STS_ID_MAX + 1];
    char id[STS_ID_MAX + 1];    /* of the policy */
    struct sts_policy policy;   /* patterns NULL: none */
    int64_t fetched_ms;         /* monotonic; negative: before the machine's start */
    int64_t retry_ms, delay_ms; /* no fetch before, monotonic; 0: no failure */
    int64_t failing_ms;         /* since then, for this reason, or NULL: */
    char *why;
    bool forbids; /* none of the domain's hosts is in it */
};

struct sts_cache {
    struct sts_cache_settings settings;
    char path[PATH_MAX_STS];
    struct sts_entry *entries; /* the least recently used first */
    size_t kept;
    int file;         /* being synced, or -1 */
    bool has_changed; /* since that write began, or the last one has failed */
    struct disk_sync sync;
};

/* --- Entries ---------------------------------------------------------------------- */

static bool
sts_entry_is_busy(const struct sts_entry *e)
{
    return e->waiting != NULL || e->txt != NULL || e->call != NULL;
}

static void
sts_entry_free(struct sts_entry *e)
{
    struct sts_cache *c = e->cache;
    c->kept -= e->is_kept;
    HASH_DEL(c->entries, e);
    loop_timer_stop(c->settings.loop, &e->patience);
    if (e->txt != NULL)
        dns_cancel(&e->txt);
    if (e->call != NULL)
        http_call_cancel(&e->call);
    sts_policy_free(&e->policy);
    free(e->domain);
    free(e->why);
    loop_release(c->settings.loop, free, e);
}

/* NULL: there is none. */
static struct sts_entry *
sts_cache_find(const struct sts_cache *c, struct text domain)
{
    char key[DNS_NAME_MAX];
    struct sts_entry *e = NULL;
    if (!text_copy(key, sizeof(key), domain))
        return NULL;
    text_lower(key, strlen(key));
    HASH_FIND_STR(c->entries, key, e);
    return e;
}

/* NULL: the name is too long. */
static struct sts_entry *
sts_cache_entry(struct sts_cache *c, struct text domain)
{
    struct sts_entry *e = sts_cache_find(c, domain);
    if (e != NULL || domain.length >= DNS_NAME_MAX)
        return e;
    e = memory_new(sizeof(*e));
    e->cache = c;
    e->domain = text_string(domain);
    text_lower(e->domain, strlen(e->domain));
    HASH_ADD_KEYPTR(hh, c->entries, e->domain, strlen(e->domain), e);
    return e;
}

static void
sts_entry_set_policy(struct sts_entry *e, const struct sts_policy *policy)
{
    sts_policy_free(&e->policy);
    e->policy = *policy;
}

static int64_t
sts_entry_age_ms(const struct sts_entry *e)
{
    return loop_monotonic_ms(e->cache->settings.loop) - e->fetched_ms;
}

/* A step of the wall clock must not end a policy. */
static bool
sts_entry_holds(const struct sts_entry *e)
{
    return e->policy.patterns != NULL &&
           sts_entry_age_ms(e) <= (int64_t)e->policy.max_age_s * 1000;
}

/* It has been used now. A domain that is being looked up takes no space of others. */
static void
sts_entry_keep(struct sts_entry *e)
{
    struct sts_cache *c = e->cache;
    HASH_DEL(c->entries, e);
    HASH_ADD_KEYPTR(hh, c->entries, e->domain, strlen(e->domain), e);
    c->kept += !e->is_kept;
    e->is_kept = true;
}

/* Those that nobody waits for: first failures, so that domains without a policy cost none. */
static void
sts_cache_make_space(struct sts_cache *c)
{
    struct sts_entry *e, *next;
    for (int all = 0; all <= 1 && c->kept > STS_CACHE_DOMAINS_MAX; all++)
        HASH_ITER (hh, c->entries, e, next)
            if (c->kept > STS_CACHE_DOMAINS_MAX && e->is_kept &&
                !sts_entry_is_busy(e) && (all || !sts_entry_holds(e)))
                sts_entry_free(e);
}

/* --- Answers ---------------------------------------------------------------------- */

/* Within a callback others may be cancelled, or asked anew. */
static void
sts_entry_answer(struct sts_entry *e, bool is_unknown)
{
    struct sts_query *list = e->waiting, *q;
    struct loop *loop = e->cache->settings.loop;
    const struct sts_policy *policy = sts_entry_holds(e) ? &e->policy : NULL;
    e->waiting = NULL;
    loop_timer_stop(loop, &e->patience);
    DL_FOREACH (list, q)
        q->entry = NULL;
    while ((q = list) != NULL) {
        DL_DELETE(list, q);
        if (q->done != NULL)
            q->done(q->context, policy, policy == NULL && is_unknown);
        loop_release(loop, free, q);
    }
}

/* A round, or the time that requests wait for it, is over. */
static void
sts_entry_finish(struct sts_entry *e, bool is_unknown)
{
    struct sts_cache *c = e->cache;
    sts_entry_answer(e, is_unknown);
    if (e->delay_ms != 0 || sts_entry_holds(e))
        sts_entry_keep(e);
    else if (!sts_entry_is_busy(e))
        sts_entry_free(e);
    sts_cache_make_space(c);
}

static bool
sts_entry_is_in_line(const struct sts_entry *e)
{
    return (e->txt != NULL && dns_is_in_line(e->txt)) ||
           (e->call != NULL && http_call_is_in_line(e->call));
}

/* The time in line is not the domain's. */
static void
sts_entry_on_patience(void *context)
{
    struct sts_entry *e = context;
    struct loop *loop = e->cache->settings.loop;
    int64_t now_ms = loop_monotonic_ms(loop);
    bool in_line = sts_entry_is_in_line(e);
    if (in_line)
        e->begun_ms = now_ms + STEP_MS; /* by the next look it may have begun */
    if (now_ms - e->begun_ms >= STS_CACHE_WAIT_MS)
        sts_entry_finish(e, false);
    else if (in_line &&
             (sts_entry_holds(e) || now_ms - e->asked_ms >= STS_CACHE_LINE_MS))
        sts_entry_finish(e, true);
    else
        loop_timer_start(loop, &e->patience, STEP_MS, sts_entry_on_patience, e);
}

/* --- The file --------------------------------------------------------------------- */

/* In the order of use, which a restart keeps. */
static void
sts_cache_write_lines(struct sts_cache *c, struct buffer *out)
{
    int64_t now_ms = loop_now_ms(c->settings.loop);
    for (const struct sts_entry *e = c->entries; e != NULL; e = e->hh.next) {
        struct sts_line line = {.domain = text_from(e->domain),
                                .fetched_ms = now_ms - sts_entry_age_ms(e),
                                .policy = e->policy};
        text_copy(line.id, sizeof(line.id), text_from(e->id));
        if (sts_entry_holds(e) && !sts_line_write(out, &line))
            return;
    }
}

static void
sts_cache_fresh(const struct sts_cache *c, char out[PATH_MAX_STS + 4])
{
    snprintf(out, PATH_MAX_STS + 4, "%s.new", c->path);
}

/* The new file, or -errno. */
static int
sts_cache_create(struct sts_cache *c)
{
    char fresh[PATH_MAX_STS + 4];
    struct buffer lines;
    struct disk *spool = c->settings.spool;
    sts_cache_fresh(c, fresh);
    (void)disk_unlink(spool, fresh);
    int file = disk_create(spool, fresh, 0600);
    if (file < 0)
        return file;
    buffer_init(&lines, STS_CACHE_BYTES_MAX);
    sts_cache_write_lines(c, &lines);
    int result = lines.length > 0 ? disk_write(spool, file, buffer_text(&lines)) : 0;
    buffer_free(&lines);
    if (result >= 0)
        return file;
    disk_close_file(spool, file);
    (void)disk_unlink(spool, fresh); /* it takes space where there is none */
    return result;
}

static void sts_cache_save(struct sts_cache *c);

/* The whole file has its name, or the old one stays until the next change, or the end. A
 * full or broken disk is reported elsewhere. */
static void
sts_cache_synced(void *context, int result)
{
    struct sts_cache *c = context;
    char fresh[PATH_MAX_STS + 4];
    sts_cache_fresh(c, fresh);
    disk_close_file(c->settings.spool, c->file);
    c->file = -1;
    if (result == 0)
        result = disk_rename(c->settings.spool, fresh, c->path);
    if (c->has_changed)
        sts_cache_save(c);
    else
        c->has_changed = result != 0;
}

static void
sts_cache_save(struct sts_cache *c)
{
    c->has_changed = c->file >= 0;
    if (c->settings.spool == NULL || c->has_changed)
        return;
    c->file = sts_cache_create(c);
    c->has_changed = c->file < 0;
    if (c->file < 0)
        return;
    c->sync.done = sts_cache_synced;
    c->sync.context = c;
    int result = disk_sync_begin(c->settings.spool, c->file, false, &c->sync);
    if (result != DISK_SYNCING)
        sts_cache_synced(c, result);
}

static bool
sts_cache_take_line(struct sts_cache *c, struct text text)
{
    struct sts_line line;
    if (!sts_line_read(text, &line))
        return false;
    int64_t age_ms = loop_now_ms(c->settings.loop) - line.fetched_ms;
    struct sts_entry *e = age_ms < -FUTURE_MS ? NULL : sts_cache_entry(c, line.domain);
    if (e == NULL) {
        sts_policy_free(&line.policy);
        return false;
    }
    sts_entry_set_policy(e, &line.policy);
    /* A clock that was set back does not make a policy older than it is. */
    e->fetched_ms = loop_monotonic_ms(c->settings.loop) - (age_ms > 0 ? age_ms : 0);
    text_copy(e->id, sizeof(e->id), text_from(line.id));
    if (sts_entry_holds(e))
        sts_entry_keep(e);
    else
        sts_entry_free(e);
    return true;
}

static void
sts_cache_take_lines(struct sts_cache *c, struct text all)
{
    struct text line;
    size_t bad = 0;
    /* A pattern that is cut off would be another host. */
    while (text_find(all, '\n') != TEXT_NONE && text_cut(&all, '\n', &line))
        bad += line.length > 0 && !sts_cache_take_line(c, line);
    bad += all.length > 0;
    sts_cache_make_space(c);
    if (bad > 0)
        log_say(c->settings.log, LOG_LEVEL_WARNING, "sts", NULL,
                "%s: ignored %zu lines that are damaged, or not written by Petrel",
                c->path, bad);
}

static void
sts_cache_read(struct sts_cache *c)
{
    struct disk *spool = c->settings.spool;
    int file = disk_open_file(spool, c->path, false);
    if (file < 0)
        return;
    char *all = memory_new(STS_CACHE_BYTES_MAX);
    int64_t length = disk_read(spool, file, 0, all, STS_CACHE_BYTES_MAX);
    disk_close_file(spool, file);
    if (length > 0)
        sts_cache_take_lines(c, text_of(all, (size_t)length));
    free(all);
}

/* --- HTTPS ------------------------------------------------------------------------ */

static const char *
sts_check_response(const struct http_reader *r)
{
    struct text type = http_reader_field(r, TEXT("content-type"));
    if (r->status != 200)
        return "the answer is not 200";
    if (!text_starts_nocase(type, TEXT("text/plain")) ||
        (type.length > 10 && type.at[10] != ';' && !text_is_blank(type.at[10])))
        return "its type is not text/plain";
    return NULL;
}

static void
sts_entry_failed(struct sts_entry *e, const char *why)
{
    struct sts_cache *c = e->cache;
    int64_t next_ms = e->delay_ms > 0 ? 2 * e->delay_ms : STS_CACHE_RETRY_MS;
    if (e->why == NULL)
        e->failing_ms = loop_monotonic_ms(c->settings.loop);
    free(e->why);
    e->why = text_string(text_before(text_from(why), STS_CACHE_WHY_MAX));
    e->delay_ms = next_ms < STS_CACHE_DAY_MS ? next_ms : STS_CACHE_DAY_MS;
    e->retry_ms = loop_monotonic_ms(c->settings.loop) + e->delay_ms;
    log_say(c->settings.log, LOG_LEVEL_INFO, "sts", NULL,
            "the MTA-STS policy of %s cannot be used: %s; %s", e->domain, why,
            sts_entry_holds(e) ? "the one before holds" : "there is none");
}

/* The domain says that the policy is the right one. */
static void
sts_entry_is_right(struct sts_entry *e)
{
    free(e->why);
    e->why = NULL;
}

static void
sts_entry_fetched(struct sts_entry *e, const struct sts_policy *policy)
{
    struct sts_cache *c = e->cache;
    sts_entry_set_policy(e, policy);
    text_copy(e->id, sizeof(e->id), text_from(e->wanted));
    e->fetched_ms = loop_monotonic_ms(c->settings.loop);
    e->delay_ms = 0;
    e->forbids = false;
    sts_entry_is_right(e);
    log_say(c->settings.log, LOG_LEVEL_INFO, "sts", NULL,
            "MTA-STS policy of %s: mode %s for %u s, mx %.300s", e->domain,
            sts_mode_word(policy->mode), policy->max_age_s,
            policy->patterns[0] != '\0' ? policy->patterns : "-");
}

/* RFC 8460 §4.3.2.2: not fetched, or fetched and of no use. */
static void
sts_entry_report(const struct sts_entry *e, const struct http_result *result)
{
    enum tls_reports_result what = TLS_REPORTS_INVALID;
    if (result->error != NULL)
        what = tls_reports_judge_fetch(result->error);
    else if (result->response->status != 200)
        what = TLS_REPORTS_FETCH;
    if (e->cache->settings.reports != NULL)
        tls_reports_count(e->cache->settings.reports, TLS_REPORTS_STS,
                          text_from(e->domain), TEXT(""), what);
}

static void
sts_entry_on_response(void *context, const struct http_result *result)
{
    struct sts_entry *e = context;
    struct sts_cache *c = e->cache;
    struct sts_policy policy;
    const char *why = result->error;
    e->call = NULL;
    if (why == NULL)
        why = sts_check_response(result->response);
    bool good = why == NULL &&
                sts_policy_read(buffer_text(&result->response->body), &policy, &why);
    if (good) {
        sts_entry_fetched(e, &policy);
    } else if (!result->refused) {
        sts_entry_report(e, result);
        sts_entry_failed(e, why);
    }
    sts_entry_finish(e, result->refused);
    if (good)
        sts_cache_save(c);
}

static void
sts_entry_fetch(struct sts_entry *e, const char *id)
{
    const struct sts_cache *c = e->cache;
    char url[URL_MAX], port[8] = "";
    const struct http_request request = {.method = TEXT("GET")};
    const struct http_call_options options = {.body_max = STS_POLICY_MAX,
                                              .deadline_ms = FETCH_MS,
                                              .is_public =
                                                  c->settings.port == HTTPS_PORT};
    if (c->settings.port != HTTPS_PORT)
        snprintf(port, sizeof(port), ":%u", (unsigned)c->settings.port);
    snprintf(url, sizeof(url), "https://mta-sts.%s%s/.well-known/mta-sts.txt",
             e->domain, port);
    text_copy(e->wanted, sizeof(e->wanted), text_from(id));
    e->call = http_call_start(c->settings.http, text_from(url), &request, &options,
                              sts_entry_on_response, e);
}

/* --- TXT -------------------------------------------------------------------------- */

/* A new id may repair the policy; the TTL of its record bounds how often that
 * happens. */
static bool
sts_entry_may_fetch(const struct sts_entry *e, const char *id)
{
    return e->delay_ms == 0 || strcmp(id, e->wanted) != 0 ||
           loop_monotonic_ms(e->cache->settings.loop) >= e->retry_ms;
}

static void
sts_entry_on_texts(void *context, const struct dns_answer *answer)
{
    struct sts_entry *e = context;
    char id[STS_ID_MAX + 1];
    bool has_id = answer->status == DNS_FOUND &&
                  sts_read_record(answer->texts, answer->count, id);
    e->txt = NULL;
    bool is_fresh = has_id && sts_entry_holds(e) && strcmp(id, e->id) == 0 &&
                    sts_entry_age_ms(e) < STS_CACHE_DAY_MS;
    if (is_fresh)
        sts_entry_is_right(e);
    if (has_id && !is_fresh && sts_entry_may_fetch(e, id))
        sts_entry_fetch(e, id);
    else
        sts_entry_finish(e, answer->unasked);
}

/* --- The owner -------------------------------------------------------------------- */

struct sts_cache *
sts_cache_new(const struct sts_cache_settings *settings)
{
    struct sts_cache *c = memory_new(sizeof(*c));
    c->settings = *settings;
    c->file = -1;
    text_copy(c->path, sizeof(c->path), text_from(settings->path));
    if (settings->spool != NULL)
        sts_cache_read(c);
    return c;
}

void
sts_cache_set_port(struct sts_cache *cache, uint16_t port)
{
    cache->settings.port = port;
}

struct sts_query *
sts_cache_ask(struct sts_cache *c, const char *domain, sts_cache_found *done,
              void *context)
{
    char name[NAME_MAX_STS];
    struct sts_query *q = memory_new(sizeof(*q));
    struct sts_entry *e =
        sts_cache_entry(c, text_before(text_from(domain), DNS_NAME_MAX - 1));
    bool is_first = e->waiting == NULL;
    q->entry = e;
    q->done = done;
    q->context = context;
    DL_APPEND(e->waiting, q);
    if (e->txt == NULL && e->call == NULL) {
        snprintf(name, sizeof(name), "_mta-sts.%s", e->domain);
        e->txt = dns_find_texts(c->settings.dns, name, sts_entry_on_texts, e);
    }
    if (is_first) {
        e->asked_ms = e->begun_ms = loop_monotonic_ms(c->settings.loop);
        loop_timer_start(c->settings.loop, &e->patience, STEP_MS, sts_entry_on_patience,
                         e);
    }
    return q;
}

void
sts_cache_cancel(struct sts_query **query)
{
    struct sts_query *q = *query;
    if (q == NULL)
        return;
    *query = NULL;
    q->done = NULL;
    if (q->entry == NULL) /* being answered */
        return;
    struct sts_entry *e = q->entry;
    DL_DELETE(e->waiting, q);
    loop_release(e->cache->settings.loop, free, q);
}

void
sts_cache_note_hosts(struct sts_cache *c, const char *domain, bool forbidden)
{
    struct sts_entry *e = sts_cache_find(c, text_from(domain));
    if (e != NULL)
        e->forbids = forbidden;
}

void
sts_cache_each_lost(const struct sts_cache *c,
                    void (*each)(void *context, const struct sts_cache_lost *lost),
                    void *context)
{
    int64_t now_ms = loop_monotonic_ms(c->settings.loop);
    for (const struct sts_entry *e = c->entries; e != NULL; e = e->hh.next) {
        struct sts_cache_lost lost = {.domain = e->domain,
                                      .why = e->why,
                                      .since_ms = now_ms - e->failing_ms,
                                      .left_ms = (int64_t)e->policy.max_age_s * 1000 -
                                                 sts_entry_age_ms(e),
                                      .forbids = e->forbids};
        if (e->why != NULL && sts_entry_holds(e) &&
            e->policy.mode == STS_MODE_ENFORCE &&
            (lost.since_ms >= STS_CACHE_LONG_MS || e->forbids))
            each(context, &lost);
    }
}

void
sts_cache_free(struct sts_cache **cache)
{
    struct sts_cache *c = *cache;
    if (c == NULL)
        return;
    struct sts_entry *e, *next;
    while (c->file >= 0) /* the write that is under way, and perhaps one more */
        disk_sync_wait(c->settings.spool);
    if (c->has_changed) /* it has failed: a restart would not know the policy */
        sts_cache_save(c);
    while (c->file >= 0)
        disk_sync_wait(c->settings.spool);
    HASH_ITER (hh, c->entries, e, next) {
        while (e->waiting != NULL) {
            struct sts_query *q = e->waiting;
            sts_cache_cancel(&q);
        }
        sts_entry_free(e);
    }
    free(c);
    *cache = NULL;
}
