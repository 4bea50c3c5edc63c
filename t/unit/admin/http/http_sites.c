/* Lists of very many sites are made in steps, and are complete. */
#include "admin/api/http_routes.h"

#include "admin/view/site_view.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/waiting_channel.h"

enum { RECIPIENTS = 1000, MESSAGES = 2, SITES = MESSAGES * RECIPIENTS, A_PAGE = 500, A_STEP = 25 };

static struct world w;

/* --- Sites -------------------------------------------------------------------------- */

/* Some domains have several recipients: mail for 0, 1, 2 ... */
static void
post_to_many(unsigned message)
{
    struct envelope *e = envelope_new();
    for (unsigned i = 0; i < RECIPIENTS; i++)
        control_address(e, "user@d%u-%u.example", message, i);
    for (unsigned i = 0; i < 30; i++)
        for (unsigned more = 0; more < i; more++)
            control_address(e, "user%u@d%u-%u.example", more, message, i * 7);
    control_store(&w, e);
}

/* --- Pages -------------------------------------------------------------------------- */

static void
nothing(void *context)
{
    (void)context;
}

/* The sites of a page; steps: in so many pieces. */
static json_t *
ask(size_t from, unsigned *steps)
{
    char path[60];
    const char *why;
    struct http_routes routes = {.loop = w.loop, .log = w.log, .manager = w.manager, .questions = control_server_questions(w.control)};
    struct http_reader request = {.method = TEXT("GET")};
    struct http_exchange x = {.request = &request, .may = HTTP_MAY_READ, .client = TEXT("192.0.2.1"), .wake = nothing};
    snprintf(path, sizeof(path), "/api/sites?from=%zu", from);
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    buffer_init(&x.fields, HTTP_FIELDS_MAX);
    if (http_target_read(text_from(path), &x.target, &why) != 0)
        abort();
    http_routes_answer(&routes, &x);
    enum progress progress = PROGRESS_MORE;
    for (*steps = 0; progress == PROGRESS_MORE; ++*steps) {
        size_t before = x.body.length;
        progress = x.stream.more(x.stream.context, &x.body);
        if (x.body.length == before)
            progress = PROGRESS_BAD; /* it would wait to be woken */
    }
    ok_named(progress == PROGRESS_DONE, path);
    x.stream.free(x.stream.context);
    json_t *answer = json_loadb(x.body.at, x.body.length, 0, NULL);
    json_t *sites = json_incref(json_object_get(answer, "sites"));
    json_decref(answer);
    buffer_free(&x.body);
    buffer_free(&x.fields);
    return sites;
}

static const char *
key_of(const json_t *site)
{
    const char *key = json_string_value(json_object_get(site, "site"));
    return key != NULL ? key : "";
}

TEST(pages)
{
    json_t *all = json_object(), *page;
    unsigned steps;
    size_t count, from = 0;
    do {
        page = ask(from, &steps);
        count = json_array_size(page);
        for (size_t i = 0; i < count; i++)
            json_object_set_new(all, key_of(json_array_get(page, i)), json_true());
        /* So many before it, so many of it, each in steps. */
        size_t least = from / A_PAGE + count / A_STEP;
        ok_named(steps >= least && steps <= least + 2, "some sites in a step");
        from += count;
    } while (json_decref(page), count > 0);
    is_number((long)from, SITES, "all sites");
    is_number((long)json_object_size(all), SITES, "each once");
    json_decref(all);
    page = ask(SITES - 30, &steps);
    is_number((long)json_array_size(page), 30, "the last ones");
    json_decref(page);
    page = ask(1000000, &steps);
    ok_named(json_array_size(page) == 0 && steps <= SITES / A_PAGE + 3, "far behind the last one");
    json_decref(page);
}

/* A client that leaves early. */
TEST(left)
{
    const char *why;
    struct http_routes routes = {.loop = w.loop, .log = w.log, .manager = w.manager, .questions = control_server_questions(w.control)};
    struct http_reader request = {.method = TEXT("GET")};
    struct http_exchange x = {.request = &request, .may = HTTP_MAY_READ, .wake = nothing};
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    ok(http_target_read(TEXT("/api/sites?from=700"), &x.target, &why) == 0);
    http_routes_answer(&routes, &x);
    ok(x.stream.more(x.stream.context, &x.body) == PROGRESS_MORE);
    x.stream.free(x.stream.context);
    buffer_free(&x.body);
}

/* --- The top ------------------------------------------------------------------------ */

TEST(top)
{
    const struct sched *sched = manager_sched(w.manager);
    struct site_view_totals totals;
    json_t *all = site_view_page(sched, 0, SITES), *sorted = site_view_sorted(all);
    json_t *top = site_view_top(sched, 20, &totals);
    bool same = true;
    for (size_t i = 0; i < 20; i++)
        same = same && strcmp(key_of(json_array_get(top, i)), key_of(json_array_get(sorted, i))) == 0;
    is_number((long)json_array_size(top), 20, "twenty");
    ok_named(same, "those with most mail, in that order, equals as they came");
    is_number((long)totals.sites, SITES, "of all");
    is_number((long)totals.waiting, (long)sched_count(sched).recipients, "and all that waits");
    json_decref(all);
    json_decref(sorted);
    json_decref(top);
}

int
main(void)
{
    char folder[100];
    clock_stop();
    folder_make(folder, sizeof(folder), "sites");
    control_world_begin(&w, folder, TEXT("* mx"));
    manager_set_channel(w.manager, TARGET_MX, waiting_open, &w);
    for (unsigned i = 0; i < MESSAGES; i++)
        post_to_many(i);
    for (unsigned i = 0; i < 1000 && sched_count(manager_sched(w.manager)).sites < SITES; i++)
        control_turns(&w, 1);
    is_number((long)sched_count(manager_sched(w.manager)).sites, SITES, "many sites");
    tap_tests("");
    for (size_t i = 0; i < waiting_count; i++)
        manager_session_ended(w.manager, waiting_sessions[i], &outcome_no_trouble);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
