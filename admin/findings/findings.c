/* Keeps the findings that hold, and reports their beginnings and ends. */
#include "admin/findings/findings.h"

#include "base/log/log.h"
#include "base/memory.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REMEMBERED_MAX = 2 * FINDINGS_MAX, MINUTE_MS = 60 * 1000 };

#define UPSTREAM_KINDS (EVENT_BIT(EVENT_UPSTREAM_FAILED) | EVENT_BIT(EVENT_UPSTREAM_OK))

/* A finding, or the memory of one that was reported. */
struct finding {
    const struct fault_row *row;
    char subject[FINDINGS_SUBJECT_MAX], text[FINDINGS_TEXT_MAX];
    char remedy[FINDINGS_REMEDY_MAX];
    int64_t since_ms;    /* since 1970 */
    int64_t reported_ms; /* monotonic, at its last report; 0: never */
    bool holds;
    bool is_reported; /* so its end will be */
};

struct findings {
    struct findings_setup setup;
    struct loop_timer timer;
    int64_t looked_ms; /* monotonic, the last time */
    size_t count;      /* that hold */
    size_t used;       /* the places that ever had one: a look walks no others */
    struct finding list[REMEMBERED_MAX];
};

/* --- Words ------------------------------------------------------------------------ */

const char *
findings_age(int64_t ms, char out[FINDINGS_AGE_MAX])
{
    int64_t minutes = ms / MINUTE_MS, hours = minutes / 60;
    if (hours >= 2 * 24)
        snprintf(out, FINDINGS_AGE_MAX, "%" PRId64 " days", hours / 24);
    else if (minutes >= 2 * 60)
        snprintf(out, FINDINGS_AGE_MAX, "%" PRId64 " hours", hours);
    else
        snprintf(out, FINDINGS_AGE_MAX, "%" PRId64 " minutes", minutes);
    return out;
}

/* Words of their own, or one: the name of a site may have a space. False: an object that
 * no shell would leave as it is, even within quotes. */
static bool
findings_quote(const char *object, bool splits, char out[FINDINGS_SUBJECT_MAX + 80])
{
    struct text rest = text_from(object), word;
    size_t used = 0;
    out[0] = '\0';
    if (strpbrk(object, "'`") != NULL || object[0] == '-' || text_has_control(rest))
        return false;
    while (text_word(&rest, splits ? " " : "", &word)) {
        bool is_plain = true;
        for (size_t i = 0; i < word.length; i++)
            is_plain = is_plain && (isalnum((unsigned char)word.at[i]) ||
                                    strchr("._:@/+-,%=", word.at[i]) != NULL);
        const char *quote = is_plain ? "" : "'";
        int length =
            snprintf(out + used, FINDINGS_SUBJECT_MAX + 80 - used, "%s%s%.*s%s",
                     used > 0 ? " " : "", quote, TEXT_ARGS(word), quote);
        used += (size_t)length;
        if (used >= FINDINGS_SUBJECT_MAX + 80)
            return false;
    }
    return used > 0;
}

const char *
findings_remedy(const char *remedy, const char *object, char out[FINDINGS_REMEDY_MAX])
{
    char quoted[FINDINGS_SUBJECT_MAX + 80];
    struct text all = text_from(remedy), hole;
    size_t begin = text_find(all, '{');
    if (begin == TEXT_NONE) {
        snprintf(out, FINDINGS_REMEDY_MAX, "%s", remedy);
        return out;
    }
    hole = text_after(all, begin + 1);
    hole = text_before(hole, text_find(hole, '}'));
    bool fits = findings_quote(object, text_find(hole, ' ') != TEXT_NONE, quoted);
    snprintf(out, FINDINGS_REMEDY_MAX, "%.*s%.*s%s", (int)begin, remedy,
             TEXT_ARGS(fits ? text_from(quoted) : hole), hole.at + hole.length + 1);
    return out;
}

/* --- Findings --------------------------------------------------------------------- */

static void
finding_report(struct findings *all, const struct finding *f, enum event_kind kind)
{
    event_tell(all->setup.events, &(struct event){.kind = kind,
                                                  .program = "main",
                                                  .command = text_from(f->row->code),
                                                  .relay = text_from(f->subject),
                                                  .text = text_from(f->text),
                                                  .hint = text_from(f->remedy),
                                                  .since_ms = f->since_ms});
}

static struct finding *
finding_find(struct findings *all, const struct fault_row *row, struct text subject)
{
    for (size_t i = 0; i < all->used; i++)
        if (all->list[i].row == row &&
            text_equal(text_from(all->list[i].subject), subject))
            return &all->list[i];
    return NULL;
}

/* A free place, else that of the oldest memory. There is one: half of them may hold. */
static struct finding *
finding_place(struct findings *all)
{
    struct finding *best = NULL;
    if (all->used < REMEMBERED_MAX)
        return &all->list[all->used++];
    for (size_t i = 0; i < all->used; i++) {
        struct finding *f = &all->list[i];
        if (!f->holds && (best == NULL || f->reported_ms < best->reported_ms))
            best = f;
    }
    return best;
}

/* One that has lasted for the hour is reported at its end. */
static void
finding_begin(struct findings *all, const struct fault_row *row, struct text subject,
              struct text text, const char *object)
{
    int64_t now_ms = loop_monotonic_ms(all->setup.loop);
    subject = text_before(subject, FINDINGS_SUBJECT_MAX - 1);
    struct finding *f = finding_find(all, row, subject);
    if (f == NULL || !f->holds) {
        if (all->count == FINDINGS_MAX)
            return;
        if (f == NULL) {
            f = finding_place(all);
            *f = (struct finding){.row = row};
            (void)!text_copy(f->subject, sizeof(f->subject), subject);
        }
        f->holds = true;
        f->since_ms = loop_now_ms(all->setup.loop);
        all->count++;
    }
    (void)!text_copy(f->text, sizeof(f->text),
                     text_before(text, FINDINGS_TEXT_MAX - 1));
    findings_remedy(row->remedy, object, f->remedy);
    if (f->is_reported || row->severity == FAULT_HINT ||
        (f->reported_ms != 0 && now_ms - f->reported_ms < FINDINGS_QUIET_MS))
        return;
    f->is_reported = true;
    f->reported_ms = now_ms;
    finding_report(all, f, EVENT_TROUBLE);
}

static void
finding_end(struct findings *all, struct finding *f)
{
    bool was_reported = f->is_reported;
    if (!f->holds)
        return;
    f->holds = f->is_reported = false;
    all->count--;
    if (was_reported)
        finding_report(all, f, EVENT_RECOVERED);
}

void
findings_name(struct finding_facts *facts, const char *code, const char *subject,
              const char *text)
{
    findings_name_object(facts, code, subject, text, subject);
}

void
findings_name_object(struct finding_facts *facts, const char *code, const char *subject,
                     const char *text, const char *object)
{
    struct faults *named = &facts->named;
    named->row = faults_row(code);
    if (named->row == NULL || named->count == FINDINGS_NAMED_MAX)
        return;
    faults_add(named, named->row->severity, subject, "%.*s",
               FINDINGS_NAMED_TEXT_MAX - 1, text);
    faults_about(named, object);
}

static struct text
finding_subject(const struct fault *fault)
{
    return text_before(text_from(fault->subject), FINDINGS_SUBJECT_MAX - 1);
}

static bool
finding_is_in(const struct finding *f, const struct faults *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (list->items[i].row == f->row &&
            text_equal(finding_subject(&list->items[i]), text_from(f->subject)))
            return true;
    return false;
}

static void
finding_take(struct findings *all, const struct fault *fault)
{
    finding_begin(all, fault->row, finding_subject(fault), text_from(fault->text),
                  fault->object);
}

/* The first of the row: it is about nothing else, so one is enough. */
static void
findings_take_first(struct findings *all, const struct fault_row *row,
                    const struct faults *list)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (list->items[i].row == row) {
            finding_take(all, &list->items[i]);
            return;
        }
}

void
findings_look(struct findings *all)
{
    struct finding_facts facts = {0};
    struct faults found = {.when = FAULT_RUNNING};
    const struct fault_row *row;
    all->looked_ms = loop_monotonic_ms(all->setup.loop);
    all->setup.collect(all->setup.context, &facts);
    faults_judge(&found, &(struct fault_world){.facts = &facts});
    for (size_t i = 0; i < all->used; i++) {
        struct finding *f = &all->list[i];
        if (f->row->when != FAULT_BY_EVENT && !finding_is_in(f, &found) &&
            !finding_is_in(f, facts.settled) && !finding_is_in(f, &facts.named))
            finding_end(all, f);
    }
    for (size_t i = 0; (row = faults_row_at(i)) != NULL; i++) {
        findings_take_first(all, row, &found);
        findings_take_first(all, row, facts.settled);
    }
    for (size_t i = 0; i < facts.named.count; i++)
        finding_take(all, &facts.named.items[i]);
    faults_free(&found);
    faults_free(&facts.named);
}

static void
findings_on_time(void *context)
{
    struct findings *all = context;
    findings_look(all);
    loop_timer_start(all->setup.loop, &all->timer, FINDINGS_LOOK_MS, findings_on_time,
                     all);
}

/* The row that the event names, else that of a host that does not answer. */
static const struct fault_row *
row_of_failure(const char *code)
{
    const struct fault_row *row = code != NULL ? faults_row(code) : NULL;
    return row != NULL && row->when == FAULT_BY_EVENT ? row
                                                      : faults_row("upstream_down");
}

/* An upstream has one finding at a time: a failure of another kind ends the last one. */
static void
findings_on_event(void *context, const struct event *v)
{
    struct findings *all = context;
    bool failed = v->kind == EVENT_UPSTREAM_FAILED;
    const struct fault_row *row = failed ? row_of_failure(v->reason) : NULL;
    struct text subject = text_before(v->relay, FINDINGS_SUBJECT_MAX - 1);
    for (size_t i = 0; i < all->used; i++) {
        struct finding *f = &all->list[i];
        if (f->row->when == FAULT_BY_EVENT && f->row != row &&
            text_equal(text_from(f->subject), subject))
            finding_end(all, f);
    }
    if (failed)
        finding_begin(all, row, subject, v->text, "");
}

bool
findings_has(const struct findings *all, const char *code)
{
    for (size_t i = 0; all != NULL && i < all->used; i++)
        if (all->list[i].holds && strcmp(all->list[i].row->code, code) == 0)
            return true;
    return false;
}

size_t
findings_count(const struct findings *all)
{
    return all->count;
}

size_t
findings_count_wrong(const struct findings *all)
{
    size_t count = 0;
    for (size_t i = 0; all != NULL && i < all->used; i++)
        count += all->list[i].holds && all->list[i].row->severity != FAULT_HINT;
    return count;
}

/* Texts may quote peers. */
static json_t *
json_escaped(const char *value)
{
    struct buffer clean;
    buffer_init(&clean, 4 * FINDINGS_TEXT_MAX + 64);
    (void)!log_escape(text_from(value), &clean);
    json_t *text = json_stringn(clean.length > 0 ? clean.at : "", clean.length);
    buffer_free(&clean);
    return text;
}

json_t *
findings_json(void *context)
{
    struct findings *all = context;
    json_t *list = json_array();
    if (loop_monotonic_ms(all->setup.loop) - all->looked_ms >= FINDINGS_FRESH_MS)
        findings_look(all);
    for (int severity = FAULT_ERROR; severity >= FAULT_HINT; severity--)
        for (size_t i = 0; i < all->used; i++) {
            const struct finding *f = &all->list[i];
            if (!f->holds || (int)f->row->severity != severity)
                continue;
            json_array_append_new(
                list, json_pack("{s:s,s:s,s:I,s:o,s:o,s:o}", "code", f->row->code,
                                "severity", fault_severity_word(f->row->severity),
                                "since_ms", (json_int_t)f->since_ms, "subject",
                                json_escaped(f->subject), "text", json_escaped(f->text),
                                "remedy", json_escaped(f->remedy)));
        }
    return list;
}

struct findings *
findings_new(const struct findings_setup *setup)
{
    struct findings *all = memory_new(sizeof(*all));
    all->setup = *setup;
    loop_timer_start(setup->loop, &all->timer, 0, findings_on_time, all);
    event_read(setup->events, UPSTREAM_KINDS, findings_on_event, all);
    return all;
}

void
findings_free(struct findings **all)
{
    if (*all == NULL)
        return;
    loop_timer_stop((*all)->setup.loop, &(*all)->timer);
    event_read((*all)->setup.events, 0, findings_on_event, *all);
    free(*all);
    *all = NULL;
}
