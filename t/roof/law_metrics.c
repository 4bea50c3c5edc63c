/* Compares a scrape with what was said before it and behind it. */
#include "t/roof/law_metrics.h"

#include "base/json_field.h"
#include "t/roof/host.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/visitor.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 120 };

/* Lines of the log that counters count, too. */
static const struct counted {
    const char *family, *label;
    const char *begins, *has; /* such a line; "" fits all */
    const char *key;          /* it counts the number behind this; "": 1 */
} counted[] = {
    {"petrel_messages_accepted_total",   "source=\"smtp\"",         "smtpd: ",    "(queued)",            ""},
    {"petrel_recipients_accepted_total", "source=\"smtp\"",         "smtpd: ",    "(queued)",
     "nrcpt="                                                                                              },
    {"petrel_accepted_bytes_total",      "source=\"smtp\"",         "smtpd: ",    "(queued)",
     ", size="                                                                                             },
    {"petrel_messages_accepted_total",   "source=\"sendmail\"",     "sendmail: ", "(queued)",
     ""                                                                                                    },
    {"petrel_messages_accepted_total",   "source=\"notification\"", "",
     ": notification stored",                                                                            ""},
    {"petrel_messages_accepted_total",   "source=\"reassembled\"",  "",
     ": reassembled message stored",                                                                     ""},
    {"petrel_deliveries_total",          "status=\"delivered\"",    "",           ", status=sent (",     ""},
    {"petrel_deliveries_total",          "status=\"deferred\"",     "",           ", status=deferred (", ""},
    {"petrel_deliveries_total",          "status=\"bounced\"",      "",           ", status=bounced (",  ""},
    {"petrel_deliveries_total",          "status=\"expired\"",      "",           ", status=expired (",  ""},
};
enum { COUNTED = sizeof(counted) / sizeof(*counted) };

/* Numbers of `status` that are those of a gauge. */
static const struct stated {
    const char *family, *label;
    const char *object, *member; /* of the answer; object "": of itself */
} stated[] = {
    {"petrel_queue_messages",    "place=\"incoming\"",    "queue",       "incoming"              },
    {"petrel_queue_messages",    "place=\"active\"",      "queue",       "active"                },
    {"petrel_queue_messages",    "place=\"deferred\"",    "queue",       "deferred"              },
    {"petrel_queue_messages",    "place=\"defrag\"",      "queue",       "defrag"                },
    {"petrel_queue_messages",    "place=\"hold\"",        "queue",       "hold"                  },
    {"petrel_queue_messages",    "place=\"corrupt\"",     "queue",       "corrupt"               },
    {"petrel_sessions",          "direction=\"in\"",      "sessions",    "in"                    },
    {"petrel_sessions",          "direction=\"out\"",     "sessions",    "out"                   },
    {"petrel_sessions",          "direction=\"idle\"",    "sessions",    "idle"                  },
    {"petrel_limit",             "name=\"active\"",       "limits",      "active_limit"          },
    {"petrel_limit",             "name=\"sessions_out\"", "limits",      "delivery_session_limit"},
    {"petrel_journal_messages",  "",                      "journal",     "messages"              },
    {"petrel_journal_segments",  "state=\"free\"",        "journal",     "free_segments"         },
    {"petrel_fragment_messages", "",                      "fragments",   "messages"              },
    {"petrel_fragment_sets",     "",                      "fragments",   "sets"                  },
    {"petrel_syncs_total",       "",                      "",            "syncs"                 },
    {"petrel_sites",             "",                      "site_totals", "sites"                 },
    {"petrel_site_waiting",      "",                      "site_totals", "waiting"               },
    {"petrel_site_backlogged",   "",                      "site_totals", "backlogged"            },
};
enum { STATED = sizeof(stated) / sizeof(*stated) };

struct heard {
    unsigned starts;
    uint64_t lines; /* of the log */
    double logged[COUNTED];
    double said[STATED];
};

static struct {
    bool busy;
    unsigned judged;
    double logged[COUNTED]; /* since the host has started */
    struct heard before;
    char *page; /* NULL: no scrape has come */
} metrics;

static bool
has_words(struct text line, const char *words)
{
    return memmem(line.at, line.length, words, strlen(words)) != NULL;
}

void
law_metrics_start(void)
{
    memset(metrics.logged, 0, sizeof(metrics.logged));
}

/* The line counts so much of it. */
static double
amount_of(const struct counted *c, struct text line)
{
    char number[NAME_SIZE];
    if (!text_starts(line, text_from(c->begins)) || !has_words(line, c->has))
        return 0;
    if (c->key[0] == '\0')
        return 1;
    const char *at = memmem(line.at, line.length, c->key, strlen(c->key)),
               *end = line.at + line.length;
    if (at == NULL)
        return 0;
    at += strlen(c->key);
    (void)text_copy(number, sizeof(number),
                    text_before(text_of(at, (size_t)(end - at)), NAME_SIZE - 1));
    return strtod(number, NULL);
}

void
law_metrics_line(struct text line)
{
    for (size_t i = 0; i < COUNTED; i++)
        metrics.logged[i] += amount_of(&counted[i], line);
}

unsigned
law_metrics_judged(void)
{
    return metrics.judged;
}

/* --- A scrape --------------------------------------------------------------------- */

/* The sum of the samples of a family with this label; label "": of all. */
static double
sum_of(const char *family, const char *label)
{
    double sum = 0;
    struct text rest = text_from(metrics.page), line;
    size_t length = strlen(family);
    while (rest.length > 0) {
        text_cut(&rest, '\n', &line);
        if (!text_starts(line, text_from(family)) || line.length <= length ||
            (line.at[length] != ' ' && line.at[length] != '{') ||
            !has_words(line, label))
            continue;
        char number[NAME_SIZE];
        const char *space = memrchr(line.at, ' ', line.length);
        text_copy(number, sizeof(number),
                  text_of(space + 1, (size_t)(line.at + line.length - space - 1)));
        sum += strtod(number, NULL);
    }
    return sum;
}

/* `metrics_sites = 0` leaves out what is said of each site. */
static bool
is_omitted(const char *family)
{
    if (!text_starts(text_from(family), TEXT("petrel_site_")))
        return false;
    char begin[NAME_SIZE];
    snprintf(begin, sizeof(begin), "\n%s", family);
    size_t length = strlen(begin);
    const char *at = metrics.page;
    while ((at = strstr(at, begin)) != NULL) {
        if (at[length] == ' ' || at[length] == '{')
            return false;
        at += length;
    }
    return true;
}

static noreturn void
break_number(const char *family, const char *label, double number, const char *who,
             double from, double to)
{
    roof_break("truth", NULL, "the metric %s{%s} is %g, and %s had %g, and then %g",
               family, label, number, who, from, to);
}

static void
judge_logged(const struct heard *after)
{
    for (size_t i = 0; i < COUNTED; i++) {
        const struct counted *c = &counted[i];
        double number = sum_of(c->family, c->label) + roof_breaks("metrics"),
               from = metrics.before.logged[i], to = after->logged[i];
        if (number < from || number > to)
            break_number(c->family, c->label, number, "the log", from, to);
    }
}

/* Mail that is due comes from the deferred queue without a line, and waits at its site for an
 * instant. */
static bool
is_moving(const struct heard *after)
{
    for (size_t i = 0; i < STATED; i++)
        if (strcmp(stated[i].member, "deferred") == 0)
            return after->said[i] < metrics.before.said[i] ||
                   after->said[i] > metrics.before.said[i];
    return false;
}

/* A number that is the same behind a time without a line is so in between, too: a session
 * that came and went would have had some. */
static void
judge_stated(const struct heard *after)
{
    for (size_t i = 0; i < STATED; i++) {
        const struct stated *s = &stated[i];
        double from = metrics.before.said[i], to = after->said[i];
        if (from < to || from > to || is_omitted(s->family))
            continue;
        double number = sum_of(s->family, s->label);
        if (number < from || number > to)
            break_number(s->family, s->label, number, "`status`", from, to);
    }
}

/* --- The course ------------------------------------------------------------------- */

static void
law_metrics_finish(void)
{
    free(metrics.page);
    metrics.page = NULL;
    metrics.busy = false;
}

/* False: no answer, or of another process. */
static bool
take_status(struct text answer, bool whole, struct heard *out)
{
    json_t *status = whole ? json_loadb(answer.at, answer.length, 0, NULL) : NULL;
    bool good = json_is_object(json_object_get(status, "queue"));
    for (size_t i = 0; i < STATED && good; i++) {
        const json_t *object = stated[i].object[0] != '\0'
                                   ? json_object_get(status, stated[i].object)
                                   : status;
        out->said[i] = (double)json_field_number(object, stated[i].member);
    }
    json_decref(status);
    memcpy(out->logged, metrics.logged, sizeof(out->logged));
    out->starts = host.starts;
    out->lines = host.lines;
    return good;
}

static void
hear_after(void *context, struct text answer, bool whole)
{
    struct heard after;
    (void)context;
    if (take_status(answer, whole, &after) && after.starts == metrics.before.starts) {
        metrics.judged++;
        judge_logged(&after);
        if (after.lines == metrics.before.lines && !is_moving(&after))
            judge_stated(&after);
    }
    law_metrics_finish();
}

static void
hear_page(void *context, struct text page)
{
    (void)context;
    if (page.length == 0) {
        law_metrics_finish();
        return;
    }
    metrics.page = text_string(page);
    operator_ask("{\"command\":\"status\"}", hear_after, NULL);
}

static void
hear_before(void *context, struct text answer, bool whole)
{
    (void)context;
    if (take_status(answer, whole, &metrics.before))
        visitors_read("/metrics", hear_page, NULL);
    else
        law_metrics_finish();
}

void
law_metrics_ask(void)
{
    if (metrics.busy || !host.running)
        return;
    metrics.busy = true;
    operator_ask("{\"command\":\"status\"}", hear_before, NULL);
}
