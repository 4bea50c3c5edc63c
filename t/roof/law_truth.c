/* Compares what the operator is told with the log and the model. */
#include "t/roof/law_truth.h"

#include "base/json_field.h"
#include "admin/view/why.h"
#include "base/memory.h"
#include "queue/spool/guard.h"
#include "t/roof/host.h"
#include "t/roof/law_history.h"
#include "t/roof/law_log.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/world_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_SIZE = 200,
    WHY_EACH = 3,                 /* messages explained each time */
    AGAIN_MS = 5 * 1000,          /* "a session takes it next" is for less */
    PATIENCE_MS = 10 * 60 * 1000, /* its turn, or a reply, may need a time-out */
    REMOVED_MS = 10 * 1000,       /* files of what is done are gone by then */
    SLOW_MS = 1000,               /* a sync */
    REASON_SIZE = 16 * 1024
};

static const char *const states[] = {"incoming", "active",  "deferred",
                                     "hold",     "corrupt", "defrag"};
enum {
    INCOMING,
    ACTIVE,
    DEFERRED,
    HOLD,
    DEFRAG = 5,
    STATES = sizeof(states) / sizeof(*states)
};

struct counts {
    long of[STATES];
};

static struct {
    bool busy;
    uint64_t lines; /* of the log, when it began */
    struct counts before;
    json_t *rows; /* of the list */
    unsigned compared, explained, chosen;
} truth;

/* A message whose reason must not last. */
struct doubt {
    char id[LINE_SIZE / 4];
    uint64_t lines; /* of its life */
    unsigned starts, reloads;
    struct roof_timer timer;
};

static void
finish(void)
{
    json_decref(truth.rows);
    truth.rows = NULL;
    truth.busy = false;
}

/* --- Counts and lists --- */

static bool
read_counts(struct text answer, bool whole, struct counts *out)
{
    json_t *status = whole ? json_loadb(answer.at, answer.length, 0, NULL) : NULL;
    const json_t *queue = json_object_get(status, "queue");
    for (int i = 0; i < STATES; i++)
        out->of[i] = (long)json_field_number(queue, states[i]);
    bool good = queue != NULL;
    json_decref(status);
    return good;
}

static json_t *
read_rows(struct text answer)
{
    json_t *rows = json_array();
    struct text line;
    while (answer.length > 0) {
        text_cut(&answer, '\n', &line);
        json_t *row = json_loadb(line.at, line.length, 0, NULL);
        if (json_object_get(row, "ok") != NULL) {
            bool goes_on = json_is_string(json_object_get(row, "next"));
            json_decref(row);
            if (!goes_on)
                return rows;
            break;
        }
        json_array_append_new(rows, row);
    }
    json_decref(rows);
    return NULL;
}

static const json_t *
row_of(const char *id)
{
    size_t index;
    const json_t *row;
    json_array_foreach (truth.rows, index, row)
        if (strcmp(json_field_string(row, "queue_id"), id) == 0)
            return row;
    return NULL;
}

/* Fragments that wait may have been tried before: status does not know which of them would
 * be deferred otherwise. */
static void
count_together(struct counts *c)
{
    c->of[INCOMING] += c->of[DEFERRED];
    c->of[DEFERRED] = 0;
}

static void
judge_counts(struct counts after)
{
    struct counts listed = {0};
    size_t index;
    const json_t *row;
    json_array_foreach (truth.rows, index, row)
        for (int i = 0; i < STATES; i++)
            listed.of[i] +=
                strcmp(json_field_string(row, "queue_name"), states[i]) == 0;
    if (roof_breaks("counts"))
        listed.of[INCOMING]++;
    if (after.of[DEFRAG] > 0) {
        count_together(&after);
        count_together(&listed);
    }
    /* a careful daemon reads one message at a time: one that was held or removed meanwhile
     * counts until its turn comes */
    long more = after.of[ACTIVE] - listed.of[ACTIVE];
    bool may_be_careful = host.kills + host.cuts >= GUARD_ENDS_MAX;
    if (more > 0 && may_be_careful && more <= (long)operator_takings())
        listed.of[ACTIVE] = after.of[ACTIVE];
    /* a held one that is removed has its file until a slow disk has heard of it */
    more = after.of[HOLD] - listed.of[HOLD];
    if (more > 0 && course.slowest_ms >= SLOW_MS && more <= (long)operator_takings())
        listed.of[HOLD] = after.of[HOLD];
    for (int i = 0; i < STATES; i++)
        if (listed.of[i] != after.of[i])
            roof_break("truth", NULL, "status has %ld in `%s`, and the list has %ld",
                       after.of[i], states[i], listed.of[i]);
}

/* Each message that has files is in the list. Those of one that is done go a little later,
 * and a power cut brings some back. */
static void
judge_files(void)
{
    size_t listed = roof_breaks("files") ? 0 : json_array_size(truth.rows);
    host_enter(&host);
    size_t files = sim_disk_count(HOST_SPOOL "/info");
    bool is_settled = roof_now_ms() - law_log_last_ms() >= REMOVED_MS &&
                      sim_disk_syncs() == 0; /* which they may wait for */
    host_leave();
    if (host.cuts == 0 && is_settled && files > listed)
        roof_break("bounds", NULL, "%zu messages are in info/, and %zu in the list",
                   files, listed);
}

static void
judge_open(void *context, const char *id, const struct life *l)
{
    (void)context;
    (void)l;
    if (row_of(id) == NULL || roof_breaks("truth"))
        roof_break("truth", id, "%s is open by the log, and the list does not have it",
                   id);
}

static void
judge_recipients(const json_t *row)
{
    size_t index;
    const json_t *item;
    json_array_foreach (json_object_get(row, "recipients"), index, item) {
        const struct model_rcpt *r =
            model_find(text_from(json_field_string(item, "address")));
        bool done = json_field_is_true(item, "done");
        if (r == NULL || r->message->split != NULL || !law_log_is_certain(r))
            continue;
        if (r->has_fate != done)
            roof_break("truth", json_field_string(row, "queue_id"),
                       "m%ur%u: the log says that it %s, and the list that it %s",
                       r->message->number, r->index,
                       r->has_fate ? "is done" : "is open",
                       done ? "is done" : "is open");
    }
}

static void
judge_rows(void)
{
    size_t index;
    const json_t *row;
    json_array_foreach (truth.rows, index, row) {
        const char *id = json_field_string(row, "queue_id"),
                   *place = json_field_string(row, "queue_name");
        const struct life *l = law_log_find(text_from(id));
        if (l == NULL || !life_is_whole(l) || strcmp(place, "corrupt") == 0)
            continue;
        if (life_has_ended(l) && strcmp(place, "maildrop") != 0)
            roof_break("truth", id, "%s has ended by the log, and is in the list", id);
        if (life_is_held(l) != (strcmp(place, "hold") == 0))
            roof_break("truth", id, "%s is %s by the log, and in `%s` of the list", id,
                       life_is_held(l) ? "held" : "not held", place);
        judge_recipients(row);
    }
}

/* --- Reasons --- */

static void explain(const char *id, struct doubt *doubt);

/* The words of `petrel queue why`. */
static void
words_of(const json_t *listing, char out[REASON_SIZE])
{
    FILE *said = stdout;
    stdout = fmemopen(out, REASON_SIZE, "w");
    if (stdout == NULL)
        abort();
    why_print(listing, SIM_WALL_START_MS + roof_now_ms() + host.step_ms);
    fclose(stdout);
    stdout = said;
}

static void
on_doubt(void *context)
{
    struct doubt *d = context;
    const struct life *l = law_log_find(text_from(d->id));
    bool same = l != NULL && life_is_open(l) && life_lines(l) == d->lines &&
                host.running && host.starts == d->starts && host.reloads == d->reloads;
    if (same)
        explain(d->id, d);
    else
        free(d);
}

static void
doubt(const char *id, int64_t ms)
{
    const struct life *l = law_log_find(text_from(id));
    struct doubt *d = memory_new(sizeof(*d));
    snprintf(d->id, sizeof(d->id), "%s", id);
    d->lines = l != NULL ? life_lines(l) : 0;
    d->starts = host.starts;
    d->reloads = host.reloads;
    roof_timer_start(&d->timer, ms, on_doubt, d);
}

/* How soon the words must have changed of a message to which nothing has happened. */
static int64_t
patience_ms(const char *words)
{
    if (strstr(words, "a session takes it next") != NULL)
        return AGAIN_MS;
    return strstr(words, "is read from the disk in its turn") != NULL ||
                   strstr(words, "being read from the disk") != NULL ||
                   strstr(words, "sessions that end another delivery") != NULL
               ? PATIENCE_MS
               : 0;
}

static void
hear_why(void *context, struct text answer, bool whole)
{
    struct doubt *d = context;
    struct text first;
    char words[REASON_SIZE] = "";
    text_cut(&answer, '\n', &first);
    json_t *listing = whole ? json_loadb(first.at, first.length, 0, NULL) : NULL;
    const char *id = json_field_string(listing, "queue_id");
    if (id[0] != '\0') {
        truth.explained++;
        words_of(listing, words);
        int64_t again_ms = patience_ms(words);
        bool says_why = strstr(words, "because:") != NULL ||
                        strstr(words, "session:") != NULL ||
                        strstr(words, "next hop:") != NULL;
        if (!says_why || roof_breaks("why"))
            roof_break("truth", id, "`why` gives no reason:\n%s", words);
        /* a session that waits for a reply is named, and takes it behind that */
        bool is_held = strstr(words, "waiting for the reply") != NULL;
        if (again_ms > 0 && d != NULL && !is_held)
            roof_break("truth", id, "`why` says twice that nothing holds it:\n%s",
                       words);
        if (again_ms > 0)
            doubt(id, again_ms);
    }
    json_decref(listing);
    free(d);
}

static void
explain(const char *id, struct doubt *d)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof(line), "{\"command\":\"show\",\"id\":\"%s\",\"why\":true}",
             id);
    operator_ask(line, hear_why, d);
}

struct wanted_words {
    const char *words, *others;
};

static void
hear_reason(void *context, struct text answer, bool whole)
{
    struct wanted_words *wanted = context;
    struct text first;
    char words[REASON_SIZE] = "";
    text_cut(&answer, '\n', &first);
    json_t *listing = whole ? json_loadb(first.at, first.length, 0, NULL) : NULL;
    const char *id = json_field_string(listing, "queue_id");
    if (id[0] != '\0') {
        words_of(listing, words);
        if (strstr(words, wanted->words) == NULL &&
            strstr(words, wanted->others) == NULL)
            roof_break("truth", id, "`why` says neither `%s` nor `%s`:\n%s",
                       wanted->words, wanted->others, words);
    }
    json_decref(listing);
    free(wanted);
}

void
law_truth_reason(const char *id, const char *words, const char *others)
{
    char line[LINE_SIZE];
    struct wanted_words *wanted = memory_new(sizeof(*wanted));
    *wanted = (struct wanted_words){words, others};
    snprintf(line, sizeof(line), "{\"command\":\"show\",\"id\":\"%s\",\"why\":true}",
             id);
    operator_ask(line, hear_reason, wanted);
}

static void
explain_some(void)
{
    size_t count = json_array_size(truth.rows);
    for (unsigned i = 0; i < WHY_EACH && i < count; i++)
        explain(json_field_string(json_array_get(truth.rows, truth.chosen++ % count),
                                  "queue_id"),
                NULL);
}

/* --- The course --- */

static void
hear_status_again(void *context, struct text answer, bool whole)
{
    struct counts after;
    (void)context;
    bool quiet = read_counts(answer, whole, &after) && truth.rows != NULL &&
                 memcmp(&after, &truth.before, sizeof(after)) == 0 &&
                 law_log_lines() == truth.lines && !host_has_unwritten(&host);
    if (quiet) {
        truth.compared++;
        judge_counts(after);
        judge_files();
        law_log_each_open(judge_open, NULL);
        judge_rows();
        law_history_compare();
        explain_some();
    }
    finish();
}

static void
hear_list(void *context, struct text answer, bool whole)
{
    (void)context;
    truth.rows = whole ? read_rows(answer) : NULL;
    if (truth.rows != NULL)
        operator_ask("{\"command\":\"status\"}", hear_status_again, NULL);
    else
        finish();
}

static void
hear_status(void *context, struct text answer, bool whole)
{
    (void)context;
    if (read_counts(answer, whole, &truth.before))
        operator_ask("{\"command\":\"list\",\"limit\":5000}", hear_list, NULL);
    else
        finish();
}

void
law_truth_ask(void)
{
    if (truth.busy || !host.running)
        return;
    truth.busy = true;
    truth.lines = law_log_lines();
    operator_ask("{\"command\":\"status\"}", hear_status, NULL);
}

unsigned
law_truth_compared(void)
{
    return truth.compared;
}

unsigned
law_truth_explained(void)
{
    return truth.explained;
}
