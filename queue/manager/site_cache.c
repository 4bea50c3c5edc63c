/* Writes and reads the cache file of learnt site states.
 *
 * The file is a hint and is never synced. So every value is checked by itself, and one
 * that is out of range counts as 0. */
#include "queue/manager/site_cache.h"

#include "queue/spool/spool.h"
#include "sched/site_memory.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No probe of a dead site is later, nor is a rate without a limit refused for longer; a
 * time of a clock that was ahead would be. */
enum { VERSION = 1, FUTURE_MS = 86400000, DEAD_MAX_MS = 900000 };

struct page {
    struct buffer text;
    int64_t now_ms;
};

static json_t *
ceiling_json(const struct ceiling *c)
{
    return json_pack("{s:i, s:i, s:I, s:I, s:I}", "sessions", c->sessions, "found",
                     c->found, "hold_ms", (json_int_t)c->hold_ms, "probe_at_ms",
                     (json_int_t)c->probe_at_ms, "probed_at_ms",
                     (json_int_t)c->probed_at_ms);
}

static json_t *
rate_json(const struct learnt_rate *l)
{
    return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "phase",
                     (int)l->phase, "rate", (json_int_t)l->rate, "known",
                     (json_int_t)l->known, "probed", (json_int_t)l->probed, "step",
                     (json_int_t)l->step, "next_at_ms", (json_int_t)l->next_at_ms,
                     "hold_ms", (json_int_t)l->hold_ms, "refused_at_ms",
                     (json_int_t)l->refused_at_ms, "begun_ms", (json_int_t)l->begun_ms,
                     "full_at_us", (json_int_t)l->bucket.full_at_us);
}

static json_t *
dead_json(const struct site_state *r)
{
    return json_pack("{s:I, s:I, s:I, s:i, s:s, s:s%, s:s%}", "since_ms",
                     (json_int_t)r->dead_since_ms, "until_ms",
                     (json_int_t)r->dead_until_ms, "probe_ms", (json_int_t)r->probe_ms,
                     "code", r->reason.code, "enhanced", r->reason.enhanced, "text",
                     r->reason.text, strlen(r->reason.text), "remote", r->reason.remote,
                     strlen(r->reason.remote));
}

/* jansson refuses text that is not UTF-8, as a peer's reply may be. */
static void
make_plain(char *text)
{
    if (text_is_utf8(text_from(text)))
        return;
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            *text = '?';
}

static void
write_site(void *context, const struct site_state *site)
{
    struct page *page = context;
    struct site_state r = *site;
    make_plain(r.reason.text);
    make_plain(r.reason.remote);
    json_t *line = json_pack(
        "{s:i, s:I, s:s, s:i, s:I, s:I, s:o}", "version", VERSION, "at_ms",
        (json_int_t)(r.at_ms > 0 ? r.at_ms : page->now_ms), "site", r.key, "window",
        r.window, "full_at_us", (json_int_t)r.bucket.full_at_us, "pause_until_ms",
        (json_int_t)r.pause_until_ms, "ceiling", ceiling_json(&r.ceiling));
    if (!line)
        return; /* jansson refuses a key that is not UTF-8 */
    if (r.learnt.phase != LEARNT_NONE)
        json_object_set_new(line, "rate", rate_json(&r.learnt));
    if (r.dead)
        json_object_set_new(line, "dead", dead_json(&r));
    char *text = json_dumps(line, JSON_COMPACT);
    (void)!buffer_format(&page->text, "%s\n", text);
    free(text);
    json_decref(line);
}

int
site_cache_write(struct disk *disk, const char *path, const struct sched *sched,
                 int64_t now_ms)
{
    struct page page = {.now_ms = now_ms};
    buffer_init(&page.text, SITE_CACHE_SIZE_MAX);
    sched_remember(sched, write_site, &page);
    struct text text = buffer_text(&page.text);
    int result =
        text.length > 0 ? spool_write_path(disk, path, text) : disk_unlink(disk, path);
    buffer_free(&page.text);
    return result == -ENOENT ? 0 : result;
}

static int64_t
site_cache_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void
copy_string(const json_t *object, const char *name, char *to, size_t size)
{
    text_copy(to, size, text_from(json_string_value(json_object_get(object, name))));
}

/* A time of this file, within a day of now; other times count as long ago. */
static int64_t
time_of(const json_t *object, const char *name, int64_t now_ms)
{
    int64_t value = site_cache_number(object, name);
    return value > now_ms + FUTURE_MS || value < 0 ? 0 : value;
}

/* A time that is `longest_ms` ahead at most. */
static int64_t
time_within(const json_t *object, const char *name, int64_t now_ms, int64_t longest_ms)
{
    int64_t value = time_of(object, name, now_ms);
    return value > now_ms + longest_ms ? now_ms + longest_ms : value;
}

static int
count_of(const json_t *object, const char *name)
{
    int64_t value = site_cache_number(object, name);
    return value < 0 || value > 100000 ? 0 : (int)value;
}

static int64_t
span_within(const json_t *object, const char *name, int64_t least_ms, int64_t most_ms)
{
    int64_t value = site_cache_number(object, name);
    return value < least_ms ? least_ms : value > most_ms ? most_ms : value;
}

static void
read_ceiling(const json_t *o, int64_t now_ms, struct ceiling *c)
{
    *c = (struct ceiling){
        .sessions = count_of(o, "sessions"),
        .found = count_of(o, "found"),
        .hold_ms = span_within(o, "hold_ms", CEILING_HOLD_MIN_MS, CEILING_HOLD_MAX_MS),
        .probe_at_ms = time_within(o, "probe_at_ms", now_ms, CEILING_HOLD_MAX_MS),
        .probed_at_ms = time_within(o, "probed_at_ms", now_ms, 0)};
}

static void
site_cache_read_rate(const json_t *o, int64_t now_ms, struct learnt_rate *l)
{
    int64_t phase = site_cache_number(o, "phase");
    int64_t rate = site_cache_number(o, "rate"), known = site_cache_number(o, "known");
    bucket_learnt_init(l);
    if (phase <= LEARNT_NONE || phase > LEARNT_PROBE || rate < LEARNT_MIN ||
        rate > LEARNT_MAX || known > LEARNT_MAX)
        return;
    int step = count_of(o, "step");
    l->phase = (enum learnt_phase)phase;
    l->rate = (uint32_t)rate;
    l->known = known < LEARNT_MIN ? LEARNT_MIN : (uint32_t)known;
    l->probed = (uint32_t)count_of(o, "probed");
    l->step = step > LEARNT_STEP_MAX ? LEARNT_STEP_MAX : (uint32_t)step;
    l->next_at_ms = time_within(o, "next_at_ms", now_ms, LEARNT_HOLD_MAX_MS);
    l->hold_ms = span_within(o, "hold_ms", LEARNT_HOLD_MIN_MS, LEARNT_HOLD_MAX_MS);
    l->refused_at_ms = time_within(o, "refused_at_ms", now_ms, 0);
    l->begun_ms = time_within(o, "begun_ms", now_ms, 0);
    l->slot_at_ms = now_ms;
}

static void
read_dead(const json_t *o, int64_t now_ms, struct site_state *r)
{
    r->dead = json_is_object(o);
    if (!r->dead)
        return;
    r->dead_since_ms = time_within(o, "since_ms", now_ms, 0);
    r->dead_until_ms = time_within(o, "until_ms", now_ms, DEAD_MAX_MS);
    r->probe_ms = span_within(o, "probe_ms", 0, DEAD_MAX_MS);
    r->reason = outcome_make(VERDICT_DEFERRED, BLAME_SITE, count_of(o, "code"), "4.4.1",
                             "%s", "");
    const char *enhanced = json_string_value(json_object_get(o, "enhanced"));
    if (enhanced && (enhanced[0] == '4' || enhanced[0] == '5'))
        copy_string(o, "enhanced", r->reason.enhanced, sizeof(r->reason.enhanced));
    copy_string(o, "text", r->reason.text, sizeof(r->reason.text));
    copy_string(o, "remote", r->reason.remote, sizeof(r->reason.remote));
}

static bool
site_cache_read_site(struct sched *sched, struct text text, int64_t now_ms)
{
    json_t *line = json_loadb(text.at, text.length, 0, NULL);
    const char *key = json_string_value(json_object_get(line, "site"));
    int64_t at = site_cache_number(line, "at_ms");
    bool good = key && strlen(key) < SITE_STATE_KEY_MAX &&
                site_cache_number(line, "version") == VERSION && at <= now_ms &&
                now_ms - at < SITE_CACHE_AGE_MAX_MS;
    if (good) {
        struct site_state r = {
            .key = key, .at_ms = at, .window = count_of(line, "window")};
        int64_t full = site_cache_number(line, "full_at_us");
        if (full >= 0 && full / 1000 <= now_ms + FUTURE_MS)
            r.bucket.full_at_us = full;
        r.pause_until_ms = time_of(line, "pause_until_ms", now_ms);
        read_ceiling(json_object_get(line, "ceiling"), now_ms, &r.ceiling);
        site_cache_read_rate(json_object_get(line, "rate"), now_ms, &r.learnt);
        read_dead(json_object_get(line, "dead"), now_ms, &r);
        sched_recall(sched, &r);
    }
    json_decref(line);
    return good;
}

unsigned
site_cache_read(struct disk *disk, const char *path, struct sched *sched,
                int64_t now_ms)
{
    struct buffer all;
    buffer_init(&all, SITE_CACHE_SIZE_MAX);
    (void)!spool_read_path(disk, path, &all); /* errors leave a part, or nothing */
    unsigned count = 0;
    struct text rest = buffer_text(&all), line;
    while (text_cut(&rest, '\n', &line))
        count += site_cache_read_site(sched, line, now_ms);
    buffer_free(&all);
    return count;
}
