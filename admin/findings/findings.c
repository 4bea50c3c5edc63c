/* Keeps the findings that hold, and reports their beginnings and ends. */
#include "admin/findings/findings.h"

#include "base/log/log.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { REMEMBERED_MAX = 2 * FINDINGS_MAX };

#define UPSTREAM_KINDS (EVENT_BIT(EVENT_UPSTREAM_FAILED) | EVENT_BIT(EVENT_UPSTREAM_OK))

/* A finding, or the memory of one that was reported. */
struct finding {
    const struct finding_row *row;
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

static const char *const severities[] = {
    [FINDING_HINT] = "hint", [FINDING_WARNING] = "warning", [FINDING_ERROR] = "error"};

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
finding_find(struct findings *all, const struct finding_row *row, struct text subject)
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
finding_begin(struct findings *all, const struct finding_row *row, struct text subject,
              struct text text, const struct finding_facts *facts, const char *object)
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
    findings_remedy(row, facts, object, f->remedy);
    if (f->is_reported || row->severity == FINDING_HINT ||
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
    if (facts->named_count == FINDINGS_NAMED_MAX)
        return;
    if (facts->named == NULL)
        facts->named = memory_array(FINDINGS_NAMED_MAX, sizeof(*facts->named));
    struct finding_named *named = &facts->named[facts->named_count++];
    named->code = code;
    (void)!text_copy(named->subject, sizeof(named->subject),
                     text_before(text_from(subject), sizeof(named->subject) - 1));
    (void)!text_copy(named->object, sizeof(named->object),
                     text_before(text_from(object), sizeof(named->object) - 1));
    (void)!text_copy(named->text, sizeof(named->text),
                     text_before(text_from(text), sizeof(named->text) - 1));
}

static bool
is_still_named(const struct finding_facts *facts, const struct finding *f)
{
    for (size_t i = 0; i < facts->named_count; i++)
        if (strcmp(facts->named[i].code, f->row->code) == 0 &&
            strcmp(facts->named[i].subject, f->subject) == 0)
            return true;
    return false;
}

static void
findings_look_at_named(struct findings *all, const struct finding_facts *facts)
{
    const struct finding_row *row;
    for (size_t i = 0; i < all->used; i++) {
        struct finding *f = &all->list[i];
        if (findings_row_is_named(f->row) && !is_still_named(facts, f))
            finding_end(all, f);
    }
    for (size_t i = 0; i < facts->named_count; i++) {
        const struct finding_named *named = &facts->named[i];
        for (size_t r = 0; (row = findings_row_at(r)) != NULL; r++)
            if (findings_row_is_named(row) && strcmp(row->code, named->code) == 0)
                finding_begin(all, row, text_from(named->subject),
                              text_from(named->text), facts, named->object);
    }
}

void
findings_look(struct findings *all)
{
    struct finding_facts facts = {0};
    const struct finding_row *row;
    char text[FINDINGS_TEXT_MAX];
    all->looked_ms = loop_monotonic_ms(all->setup.loop);
    all->setup.collect(all->setup.context, &facts);
    for (size_t i = 0; (row = findings_row_at(i)) != NULL; i++) {
        text[0] = '\0';
        if (row->check == NULL)
            continue;
        struct finding *f = finding_find(all, row, TEXT(""));
        if (row->check(&facts, text))
            finding_begin(all, row, TEXT(""), text_from(text), &facts, "");
        else if (f != NULL)
            finding_end(all, f);
    }
    findings_look_at_named(all, &facts);
    free(facts.named);
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
static const struct finding_row *
row_of_failure(const char *code)
{
    const struct finding_row *row, *down = NULL;
    for (size_t i = 0; (row = findings_row_at(i)) != NULL; i++) {
        if (row->check == NULL && code != NULL && strcmp(row->code, code) == 0)
            return row;
        if (strcmp(row->code, "upstream_down") == 0)
            down = row;
    }
    return down;
}

/* An upstream has one finding at a time: a failure of another kind ends the last one. */
static void
findings_on_event(void *context, const struct event *v)
{
    struct findings *all = context;
    bool failed = v->kind == EVENT_UPSTREAM_FAILED;
    const struct finding_row *row = failed ? row_of_failure(v->reason) : NULL;
    struct text subject = text_before(v->relay, FINDINGS_SUBJECT_MAX - 1);
    for (size_t i = 0; i < all->used; i++) {
        struct finding *f = &all->list[i];
        if (f->row->check == NULL && f->row != row &&
            text_equal(text_from(f->subject), subject))
            finding_end(all, f);
    }
    if (failed)
        finding_begin(all, row, subject, v->text, NULL, "");
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
        count += all->list[i].holds && all->list[i].row->severity != FINDING_HINT;
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
    for (int severity = FINDING_ERROR; severity >= FINDING_HINT; severity--)
        for (size_t i = 0; i < all->used; i++) {
            const struct finding *f = &all->list[i];
            if (!f->holds || (int)f->row->severity != severity)
                continue;
            json_array_append_new(
                list,
                json_pack("{s:s,s:s,s:I,s:o,s:o,s:o}", "code", f->row->code, "severity",
                          severities[severity], "since_ms", (json_int_t)f->since_ms,
                          "subject", json_escaped(f->subject), "text",
                          json_escaped(f->text), "remedy", json_escaped(f->remedy)));
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
