/* Answers the operator's questions about the running daemon. */
#include "admin/answer/questions.h"

#include "admin/answer/suppression_answer.h"
#include "admin/view/listing.h"
#include "admin/view/members.h"
#include "admin/view/quota_list.h"
#include "admin/view/site_view.h"
#include "admin/view/status.h"
#include "admin/view/why.h"
#include "smtp/oauth/tokens.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/queue_operator.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct questions_sets {
    struct manager *manager;
    json_t *list;
};

static json_t *
questions_set_sender(struct manager *m, struct id id)
{
    if (id.time_ms == 0)
        return json_null();
    const struct envelope *active = manager_active(m, id);
    struct envelope *loaded =
        active == NULL ? queue_load_envelope(manager_queue(m), id) : NULL;
    const struct envelope *e = active != NULL ? active : loaded;
    json_t *sender = e != NULL ? listing_text(e->sender) : json_null();
    envelope_free(&loaded);
    return sender;
}

static json_t *
questions_set_numbers(const uint32_t *numbers, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer((json_int_t)numbers[i]));
    return list;
}

#define SET(member, name) MEMBER(struct manager_set, member, name)
static const struct member set_counts[] = {
    SET(recipients, "recipients"), SET(messages, "messages"), SET(bytes, "bytes")};
static const struct member set_rest[] = {SET(since_ms, "since_ms"),
                                         SET(until_ms, "until_ms"), SET(owner, "owner"),
                                         SET(is_reassembling, "reassembling")};

static void
questions_add_set(void *context, const struct manager_set *set)
{
    struct questions_sets *l = context;
    json_t *all = json_pack("{s:s,s:o,s:o}", "set", set->name, "sender",
                            questions_set_sender(l->manager, set->first), "recipient",
                            listing_text(set->recipient));
    MEMBERS_PUT(all, set_counts, set);
    json_object_set_new(all, "have",
                        questions_set_numbers(set->there, set->there_count));
    json_object_set_new(all, "missing",
                        questions_set_numbers(set->missing, set->missing_count));
    json_object_set_new(all, "have_count", json_integer((json_int_t)set->have));
    json_object_set_new(all, "total",
                        set->total > 0 ? json_integer((json_int_t)set->total)
                                       : json_null());
    MEMBERS_PUT(all, set_rest, set);
    json_array_append_new(l->list, all);
}

json_t *
questions_fragments(struct manager *manager, size_t from, size_t count)
{
    struct questions_sets l = {manager, json_array()};
    (void)manager_list_sets(manager, from, count, questions_add_set, &l);
    return l.list;
}

static void
questions_add_account(void *context, const struct tokens_view *view)
{
    static const char *const states[] = {[TOKENS_NO_ACCOUNT] = "failed",
                                         [TOKENS_READY] = "ready",
                                         [TOKENS_ASKED] = "asked",
                                         [TOKENS_FAILED] = "failed"};
    const struct oauth_account *a = view->account;
    json_t *account =
        json_pack("{s:o,s:i,s:o,s:s}", "host", listing_text(text_from(a->host)), "port",
                  (int)a->port, "user", listing_text(text_from(a->user)), "state",
                  states[view->status]);
    if (view->until_ms > 0)
        json_object_set_new(account, "until_ms", json_integer(view->until_ms));
    if (view->trouble[0] != '\0')
        json_object_set_new(account, "reason", listing_text(text_from(view->trouble)));
    json_array_append_new(context, account);
}

json_t *
questions_accounts(const struct tokens *tokens)
{
    json_t *accounts = json_array();
    if (tokens != NULL)
        tokens_each(tokens, questions_add_account, accounts);
    return accounts;
}

#define UNKNOWN "unknown command or invalid id"

enum {
    REASONS_MAX = 1000, /* recipients whose reason is reported */
    STATES_MAX = 500,   /* in one answer: some 300 kB, or one message's reasons more */
    SITES_PAGE = 200,   /* in one answer: some 200 kB */
    SETS_PAGE = 100     /* in one answer, each with an envelope from the disk */
};

struct questions {
    struct loop *loop;
    struct manager *manager;
    int64_t started_ms; /* monotonic */
    size_t (*count_sessions)(void *context, bool *stressed);
    void *count_context;
    struct {
        const char *name;
        json_t *(*make)(void *context);
        void *context;
    } parts[QUESTIONS_PARTS];
    size_t part_count;
    struct {
        const char *name;
        json_t *(*answer)(void *context, const json_t *request);
        void *context;
    } more[QUESTIONS_MORE];
    size_t more_count;
    json_t *(*findings)(void *context); /* NULL: none are kept */
    void *findings_context;
    const struct sandbox *sandbox; /* NULL: not reported */
    struct tokens *tokens;         /* NULL: no accounts */
};

json_t *
questions_refuse(const char *why)
{
    return json_pack("{s:b,s:s}", "ok", false, "error", why);
}

/* Not the scheduler's: held, not yet found, or over; files of an ended message go some
 * time later. Another daemon's is not ours to judge. */
static const char *
place_unknown(struct questions *q, struct id id)
{
    if (!queue_handles(manager_queue(q->manager), id))
        return "unknown";
    struct envelope *e = manager_peek(q->manager, id, QUEUE_DEFERRED);
    const char *name = e ? "unknown" : "gone";
    envelope_free(&e);
    return name;
}

static json_t *
questions_state_of(struct questions *q, struct id id)
{
    struct sched_state state = sched_find(manager_sched(q->manager), id);
    const struct envelope *active = manager_active(q->manager, id);
    unsigned count = active ? active->count : 1;
    json_t *reasons = json_array();
    for (unsigned i = 0; i < count && i < REASONS_MAX; i++)
        json_array_append_new(
            reasons, listing_text(text_from(manager_reason(q->manager, id, i))));
    const char *place = listing_place_name(state.place);
    if (state.place == SCHED_UNKNOWN && active == NULL)
        place = place_unknown(q, id);
    else if (active == NULL && manager_is_awaiting(q->manager, id))
        place = "defrag";
    return json_pack("{s:b,s:s,s:I,s:i,s:o}", "ok", true, "place", place, "due_ms",
                     (json_int_t)state.due_ms, "attempts", (int)state.attempts,
                     "reasons", reasons);
}

json_t *
questions_listing(struct questions *q, const struct envelope *e, bool is_why)
{
    if (e->delivery.held)
        return listing_make(e, "hold", NULL);
    json_t *state = questions_state_of(q, e->id);
    if (is_why)
        why_add(state, q->manager, e->id);
    json_t *listing = listing_make(e, "", state);
    if (is_why)
        json_object_set(listing, "why", state);
    json_decref(state);
    return listing;
}

/* States of as many ids as fit, in their order; the client asks again for the rest. */
static json_t *
answer_states(struct questions *q, const json_t *request)
{
    const json_t *ids = json_object_get(request, "ids");
    json_t *states = json_array(), *name;
    size_t index, reasons = 0;
    json_array_foreach (ids, index, name) {
        struct id id;
        const char *text = json_string_value(name);
        if (text == NULL || !id_parse(text_from(text), &id)) {
            json_decref(states);
            return questions_refuse(UNKNOWN);
        }
        json_t *state = questions_state_of(q, id);
        reasons += json_array_size(json_object_get(state, "reasons"));
        json_array_append_new(states, state);
        if (reasons >= REASONS_MAX || index + 1 == STATES_MAX)
            break;
    }
    return json_pack("{s:b,s:o}", "ok", true, "states", states);
}

static json_t *
answer_status(struct questions *q, const json_t *request)
{
    (void)request;
    bool stressed = false;
    size_t quotas;
    size_t sessions =
        q->count_sessions ? q->count_sessions(q->count_context, &stressed) : 0;
    json_t *status = status_make(q->manager, loop_monotonic_ms(q->loop) - q->started_ms,
                                 sessions, stressed);
    if (q->sandbox)
        json_object_set_new(status, "sandbox",
                            status_sandbox(sandbox_get_state(q->sandbox)));
    json_object_set_new(status, "oauth", questions_accounts(q->tokens));
    json_object_set_new(status, "quotas",
                        quota_list_make(q->manager, QUOTA_LIST_TOP, &quotas));
    if (q->findings)
        json_object_set_new(status, "findings", q->findings(q->findings_context));
    for (size_t i = 0; i < q->part_count; i++) {
        json_t *part = q->parts[i].make(q->parts[i].context);
        if (part != NULL)
            json_object_set_new(status, q->parts[i].name, part);
    }
    return status;
}

static json_t *
answer_findings(struct questions *q, const json_t *request)
{
    (void)request;
    json_t *list = q->findings ? q->findings(q->findings_context) : json_array();
    return json_pack("{s:b,s:o}", "ok", true, "findings", list);
}

static bool
question_id(const json_t *request, struct id *id)
{
    const char *name = json_string_value(json_object_get(request, "id"));
    return name != NULL && id_parse(text_from(name), id);
}

static json_t *
answer_state(struct questions *q, const json_t *request)
{
    struct id id;
    return question_id(request, &id) ? questions_state_of(q, id)
                                     : questions_refuse(UNKNOWN);
}

static json_t *
answer_why(struct questions *q, const json_t *request)
{
    struct id id;
    if (!question_id(request, &id))
        return questions_refuse(UNKNOWN);
    json_t *told = questions_state_of(q, id);
    why_add(told, q->manager, id);
    return told;
}

static bool
question_from(const json_t *request, size_t *from)
{
    const json_t *value = json_object_get(request, "from");
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *from = (size_t)json_integer_value(value);
    return true;
}

static json_t *
answer_sites(struct questions *q, const json_t *request)
{
    size_t from;
    if (!question_from(request, &from))
        return questions_refuse("invalid start");
    json_t *page = site_view_page(manager_sched(q->manager), from, SITES_PAGE);
    return json_pack("{s:b,s:o}", "ok", true, "sites", page);
}

static json_t *
answer_fragments(struct questions *q, const json_t *request)
{
    size_t from;
    if (!question_from(request, &from))
        return questions_refuse("invalid start");
    json_t *page = questions_fragments(q->manager, from, SETS_PAGE);
    return json_pack("{s:b,s:o}", "ok", true, "sets", page);
}

void
questions_look_for_tokens(struct questions *q)
{
    if (q->tokens != NULL)
        tokens_look(q->tokens);
}

static json_t *
answer_tokens(struct questions *q, const json_t *request)
{
    (void)request;
    questions_look_for_tokens(q);
    return json_pack("{s:b}", "ok", true);
}

static json_t *
answer_quotas(struct questions *q, const json_t *request)
{
    (void)request;
    return quota_list_answer(q->manager);
}

static json_t *
answer_quota_reset(struct questions *q, const json_t *request)
{
    return quota_list_reset(q->manager, request);
}

static json_t *
answer_forget_limits(struct questions *q, const json_t *request)
{
    const char *site = json_string_value(json_object_get(request, "site"));
    if (site == NULL)
        return questions_refuse("site is missing");
    return json_pack("{s:b,s:b}", "ok", true, "known",
                     manager_forget_limits(q->manager, site));
}

static json_t *
answer_suppress(struct questions *q, const json_t *request)
{
    return suppression_answer(q->manager, loop_now_ms(q->loop), request);
}

static const struct question {
    const char *name;
    json_t *(*answer)(struct questions *q, const json_t *request);
} questions_rows[] = {
    {"status",          answer_status       },
    {"sites",           answer_sites        },
    {"fragments",       answer_fragments    },
    {"states",          answer_states       },
    {"state",           answer_state        },
    {"why",             answer_why          },
    {"tokens",          answer_tokens       },
    {"findings",        answer_findings     },
    {"quotas",          answer_quotas       },
    {"quota-reset",     answer_quota_reset  },
    {"forget-limits",   answer_forget_limits},
    {"suppress-list",   answer_suppress     },
    {"suppress-add",    answer_suppress     },
    {"suppress-remove", answer_suppress     },
};

json_t *
questions_answer(struct questions *q, const json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "command"));
    size_t count = sizeof(questions_rows) / sizeof(questions_rows[0]);
    for (size_t i = 0; name != NULL && i < count; i++)
        if (strcmp(name, questions_rows[i].name) == 0)
            return questions_rows[i].answer(q, request);
    for (size_t i = 0; name != NULL && i < q->more_count; i++)
        if (strcmp(name, q->more[i].name) == 0)
            return q->more[i].answer(q->more[i].context, request);
    return questions_refuse(UNKNOWN);
}

json_t *
questions_ask(struct questions *q, const char *command)
{
    json_t *request = json_pack("{s:s}", "command", command);
    json_t *answer = questions_answer(q, request);
    json_decref(request);
    return answer;
}

struct questions *
questions_new(struct loop *loop, struct manager *manager)
{
    struct questions *q = memory_new(sizeof(*q));
    q->loop = loop;
    q->manager = manager;
    q->started_ms = loop_monotonic_ms(loop);
    return q;
}

void
questions_free(struct questions **q)
{
    free(*q);
    *q = NULL;
}

void
questions_on_part(struct questions *q, const char *name, json_t *(*make)(void *context),
                  void *context)
{
    assert(q->part_count < QUESTIONS_PARTS);
    q->parts[q->part_count].name = name;
    q->parts[q->part_count].make = make;
    q->parts[q->part_count++].context = context;
}

void
questions_on(struct questions *q, const char *name,
             json_t *(*answer)(void *context, const json_t *request), void *context)
{
    assert(q->more_count < QUESTIONS_MORE);
    q->more[q->more_count].name = name;
    q->more[q->more_count].answer = answer;
    q->more[q->more_count++].context = context;
}

void
questions_on_count(struct questions *q, size_t (*count)(void *context, bool *stressed),
                   void *context)
{
    q->count_sessions = count;
    q->count_context = context;
}

void
questions_on_findings(struct questions *q, json_t *(*make)(void *context),
                      void *context)
{
    q->findings = make;
    q->findings_context = context;
}

void
questions_on_tokens(struct questions *q, struct tokens *tokens)
{
    q->tokens = tokens;
}

void
questions_on_sandbox(struct questions *q, const struct sandbox *sandbox)
{
    q->sandbox = sandbox;
}
