/* Finds the route of a request, and answers. */
#include "admin/api/http_routes.h"

#include "admin/answer/questions.h"
#include "admin/view/site_view.h"
#include "admin/api/http_queue.h"
#include "admin/control/shorten.h"
#include "admin/api/http_streams.h"
#include "admin/page/page.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum http_methods { HTTP_GET = 1, HTTP_POST = 2, HTTP_DELETE = 4 };

struct http_route {
    const char *path;
    unsigned methods; /* HEAD is GET without a body */
    enum http_may may;
    void (*answer)(const struct http_routes *routes, struct http_exchange *x);
};

/* --- Health ------------------------------------------------------------------------ */

static void
http_on_live(const struct http_routes *routes, struct http_exchange *x)
{
    (void)routes;
    http_answer_line(x, 200, "ok");
}

/* The reason may name paths and peers: it is for readers. */
static void
http_on_ready(const struct http_routes *routes, struct http_exchange *x)
{
    struct health_check checks[HEALTH_CHECKS_MAX];
    size_t count;
    bool ready = health_is_ready(routes->health, &count, checks);
    bool tells = x->may >= HTTP_MAY_READ;
    http_answer_line(x, ready ? 200 : 503, ready ? "ready" : "not ready");
    for (size_t i = 0; i < count; i++)
        (void)!buffer_format(&x->body, "%s %s%s%s\n", checks[i].name,
                             checks[i].good ? "ok" : "fail",
                             checks[i].good || !tells ? "" : ": ",
                             checks[i].good || !tells ? "" : checks[i].why);
}

static void
http_on_metrics(const struct http_routes *routes, struct http_exchange *x)
{
    if (routes->metrics != NULL)
        metrics_answer(routes->metrics, x);
    else
        http_answer_error(x, 404, "nothing is here");
}

/* --- The page ---------------------------------------------------------------------- */

/* A list of tags, or "*" (RFC 9110 13.1.2); ours has no comma in it. */
static bool
http_has_tag(struct text tags, struct text tag)
{
    struct text one;
    while (tags.at != NULL && text_cut(&tags, ',', &one)) {
        one = text_trim(one);
        if (text_starts(one, TEXT("W/")))
            one = text_after(one, 2);
        if (text_equal(one, tag) || text_equal(one, TEXT("*")))
            return true;
    }
    return false;
}

/* A client that says nothing takes all (RFC 9110 12.5.3). */
static bool
http_takes_gzip(const struct http_exchange *x)
{
    static const struct text field = TEXT("Accept-Encoding");
    return http_reader_field(x->request, field).at == NULL ||
           http_exchange_accepts(x, field, TEXT("gzip")) ||
           http_exchange_accepts(x, field, TEXT("*"));
}

static void
http_on_page(const struct http_routes *routes, struct http_exchange *x)
{
    const struct page_file *file = page_find(x->target.path);
    char tag[PAGE_TAG_SIZE];
    (void)routes;
    if (file->is_packed) {
        http_answer_field(x, "Vary", "Accept-Encoding");
        if (!http_takes_gzip(x)) {
            http_answer_error(x, 406,
                              "this file is sent in gzip: accept that encoding");
            return;
        }
    }
    page_tag(file, tag);
    x->may_be_kept = true;
    http_answer_field(x, "ETag", tag);
    if (http_has_tag(http_reader_field(x->request, TEXT("If-None-Match")),
                     text_from(tag))) {
        x->status = 304;
        return;
    }
    x->status = 200;
    x->type = file->type;
    if (file->is_packed)
        http_answer_field(x, "Content-Encoding", "gzip");
    (void)!buffer_add(&x->body,
                      text_of(file->begin, (size_t)(file->end - file->begin)));
}

/* --- Questions --------------------------------------------------------------------- */

static void
http_on_status(const struct http_routes *routes, struct http_exchange *x)
{
    json_t *status = questions_ask(routes->questions, "status");
    json_object_set_new(status, "access",
                        json_string(x->may == HTTP_MAY_OPERATE ? "operate" : "read"));
    http_answer_text(x, 200, shorten_write(status, HTTP_ANSWER_MAX - 1));
}

/* --- Pages -------------------------------------------------------------------------- */

enum { PAGE_MAX = 500, PAGE_FROM_MAX = 1000000, SITES_A_STEP = 25 };

/* An object with a list that is made some at a time. */
struct http_page {
    const struct http_routes *routes;
    const char *name;
    json_t *(*make)(struct http_page *page); /* NULL: nothing is to be sent yet */
    size_t step, from, sent;
    bool begun;
    struct sched_walk *walk; /* over sites; NULL: none is begun */
    size_t passed;
};

/* White space, so that a step without a piece is not the end. */
static bool
http_page_head(struct http_page *p, struct buffer *out)
{
    bool begun = p->begun;
    p->begun = true;
    return begun ? buffer_add_byte(out, ' ')
                 : buffer_format(out, "{\"ok\":true,\"%s\":[", p->name);
}

static enum progress
http_page_more(void *context, struct buffer *out)
{
    struct http_page *p = context;
    json_t *page = p->make(p);
    bool fits = http_page_head(p, out);
    if (page == NULL)
        return fits ? PROGRESS_MORE : PROGRESS_BAD;
    size_t count = json_array_size(page);
    char *text = json_dumps(page, JSON_COMPACT);
    fits = fits && text != NULL;
    json_decref(page);
    if (count > 0 && p->sent > 0)
        fits = fits && buffer_add_byte(out, ',');
    if (count > 0)
        fits = fits && buffer_add(out, text_of(text + 1, strlen(text) - 2));
    free(text);
    p->sent += count;
    bool last = count < p->step || p->sent >= PAGE_MAX;
    if (last)
        fits = fits && buffer_add(out, TEXT("]}\n"));
    return !fits ? PROGRESS_BAD : last ? PROGRESS_DONE : PROGRESS_MORE;
}

static void
http_page_free(void *context)
{
    struct http_page *p = context;
    sched_walk_end(&p->walk);
    free(p);
}

static const char *
http_page_read(void *context, const struct http_parameter *p)
{
    bool good = text_equal(p->name, TEXT("from")) &&
                text_number(p->value, PAGE_FROM_MAX, context);
    return good ? NULL : "from is a number";
}

/* page.from is read. */
static void
http_page_begin(struct http_page page, struct http_exchange *x)
{
    uint64_t from = 0;
    const char *why = http_exchange_parameters(x, http_page_read, &from);
    if (why != NULL) {
        http_answer_error(x, 400, why);
        return;
    }
    struct http_page *made = memory_new(sizeof(*made));
    *made = page;
    made->from = (size_t)from;
    x->status = 200;
    x->type = "application/json";
    x->stream = (struct http_stream){http_page_more, http_page_free, made};
}

/* Also of sites before `from` only some in a step. */
static json_t *
http_make_sites(struct http_page *p)
{
    if (p->walk == NULL)
        p->walk = sched_walk_begin(manager_sched(p->routes->manager));
    size_t left = p->from - p->passed;
    if (left > 0) {
        if (!sched_walk_pass(p->walk, left < PAGE_MAX ? left : PAGE_MAX, &p->passed))
            p->passed = p->from;
        return NULL;
    }
    json_t *list = json_array();
    sched_walk_step(p->walk, p->step, site_view_put, list);
    return list;
}

static json_t *
http_make_fragments(struct http_page *p)
{
    return questions_fragments(p->routes->manager, p->from + p->sent, p->step);
}

static void
http_on_sites(const struct http_routes *routes, struct http_exchange *x)
{
    http_page_begin((struct http_page){.routes = routes,
                                       .name = "sites",
                                       .make = http_make_sites,
                                       .step = SITES_A_STEP},
                    x);
}

/* As `status --site` has it, with the site's last failed conversation. */
static void
http_on_site(const struct http_routes *routes, struct http_exchange *x)
{
    struct http_parameter *p = memory_new(sizeof(*p));
    struct text rest = x->target.query;
    json_t *request = NULL;
    if (http_parameter_next(&rest, p) && rest.length == 0 &&
        text_equal(p->name, TEXT("name")))
        request = json_pack("{s:s,s:s}", "command", "site", "name", p->room);
    json_t *answer =
        request != NULL ? questions_answer(routes->questions, request) : NULL;
    if (answer == NULL)
        http_answer_error(x, 400, "name is the name of a site");
    else if (!json_is_object(json_object_get(answer, "site")) &&
             !json_is_object(json_object_get(answer, "failed")))
        http_answer_error(x, 404, "no such site");
    else
        http_answer_json(x, 200, json_incref(answer));
    json_decref(answer);
    json_decref(request);
    free(p);
}

/* Each step reads envelopes from the disk. */
static void
http_on_fragments(const struct http_routes *routes, struct http_exchange *x)
{
    http_page_begin(
        (struct http_page){
            .routes = routes, .name = "sets", .make = http_make_fragments, .step = 10},
        x);
}

static void
http_on_findings(const struct http_routes *routes, struct http_exchange *x)
{
    json_t *answer = questions_ask(routes->questions, "findings");
    http_answer_json(x, 200, json_incref(json_object_get(answer, "findings")));
    json_decref(answer);
}

static void
http_on_series(const struct http_routes *routes, struct http_exchange *x)
{
    static_assert((int)HTTP_ANSWER_MAX >= (int)SERIES_TEXT_MAX, "it fits");
    if (x->target.query.length > 0) {
        http_answer_error(x, 400, "a parameter that is not known");
        return;
    }
    x->status = 200;
    x->type = "application/json";
    if (!series_write(routes->series, &x->body))
        http_answer_error(x, 500, "the series do not fit");
}

/* --- The level of the log ------------------------------------------------------------ */

#define LEVEL_USUAL_MS (3600 * 1000)

/* NULL, or why not. As the control socket takes it, but nothing is overlooked here. */
static const char *
http_level_read(json_t *request)
{
    const char *key;
    json_t *value;
    if (!json_is_object(request))
        return "the body must be a JSON object";
    json_object_foreach(request, key, value)
    {
        if (strcmp(key, "level") != 0 && strcmp(key, "for_ms") != 0)
            return "only level and for_ms are known here";
        if (strcmp(key, "level") == 0 ? !json_is_string(value)
                                      : !json_is_integer(value))
            return "level is a word, for_ms an integer";
    }
    if (json_object_get(request, "for_ms") == NULL)
        json_object_set_new(request, "for_ms", json_integer(LEVEL_USUAL_MS));
    json_object_set_new(request, "command", json_string("log-level"));
    return NULL;
}

static void
http_on_level(const struct http_routes *routes, struct http_exchange *x)
{
    json_t *request = http_exchange_body(x);
    const char *why = http_level_read(request);
    if (why != NULL) {
        http_answer_error(x, 400, why);
    } else {
        json_object_set_new(request, "by",
                            json_sprintf("client=%.*s", TEXT_ARGS(x->client)));
        json_t *answer = questions_answer(routes->questions, request);
        bool good = json_is_true(json_object_get(answer, "ok"));
        http_answer_json(x, good ? 200 : 400, answer);
    }
    json_decref(request);
}

/* {"site": NAME} */
static void
http_on_forget_limits(const struct http_routes *routes, struct http_exchange *x)
{
    json_t *sent = http_exchange_body(x);
    const char *site = json_string_value(json_object_get(sent, "site"));
    if (site == NULL || json_object_size(sent) != 1) {
        http_answer_error(x, 400, "an object with the name of a site is needed");
    } else {
        json_t *request =
            json_pack("{s:s,s:s}", "command", "forget-limits", "site", site);
        json_t *answer = questions_answer(routes->questions, request);
        if (json_is_true(json_object_get(answer, "known")))
            http_answer_json(x, 200, json_incref(answer));
        else
            http_answer_error(x, 404, "no such site");
        json_decref(answer);
        json_decref(request);
    }
    json_decref(sent);
}

/* --- Suppressed addresses ------------------------------------------------------------ */

enum { SUPPRESSED_A_PAGE = 200 };

static const char *
http_suppress_read(void *context, const struct http_parameter *p)
{
    json_t *request = context;
    uint64_t from;
    if (text_equal(p->name, TEXT("q")))
        json_object_set_new(request, "q", json_stringn(p->value.at, p->value.length));
    else if (text_equal(p->name, TEXT("from")) &&
             text_number(p->value, INT32_MAX, &from))
        json_object_set_new(request, "from", json_integer((json_int_t)from));
    else
        return "from is a number, and q a part of an address";
    return NULL;
}

/* Refused ones are those without `suppress`. */
static void
http_suppress_answer(const struct http_routes *routes, struct http_exchange *x,
                     json_t *request)
{
    json_t *answer = questions_answer(routes->questions, request);
    bool good = json_is_true(json_object_get(answer, "ok"));
    http_answer_json(x, good ? 200 : 409, answer);
}

static void
http_on_suppressed(const struct http_routes *routes, struct http_exchange *x)
{
    json_t *request =
        json_pack("{s:s,s:i}", "command", "suppress-list", "limit", SUPPRESSED_A_PAGE);
    const char *why = http_exchange_parameters(x, http_suppress_read, request);
    if (why != NULL)
        http_answer_error(x, 400, why);
    else
        http_suppress_answer(routes, x, request);
    json_decref(request);
}

static bool
http_has_strings(const json_t *list)
{
    const json_t *one;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)list, i, one)
        if (!json_is_string(one))
            return false;
    return json_is_array(list);
}

/* {"lines": [...]} or {"addresses": [...]} */
static void
http_on_suppress(const struct http_routes *routes, struct http_exchange *x)
{
    bool adds = text_equal(x->target.path, TEXT("/api/suppress/add"));
    json_t *request = http_exchange_body(x);
    const char *member = adds ? "lines" : "addresses";
    if (json_object_size(request) != 1 ||
        !http_has_strings(json_object_get(request, member))) {
        http_answer_error(x, 400,
                          adds ? "an object with lines, a list of strings, is needed"
                               : "an object with addresses, a list of strings, is "
                                 "needed");
    } else {
        json_object_set_new(request, "command",
                            json_string(adds ? "suppress-add" : "suppress-remove"));
        http_suppress_answer(routes, x, request);
    }
    json_decref(request);
}

/* --- Mail --------------------------------------------------------------------------- */

static void
http_on_post(const struct http_routes *routes, struct http_exchange *x)
{
    if (routes->post != NULL)
        post_door_post(routes->post, x);
    else
        http_answer_error(x, 404, "nothing is here");
}

static void
http_on_posted(const struct http_routes *routes, struct http_exchange *x)
{
    if (routes->post != NULL)
        post_door_show(routes->post, x);
    else
        http_answer_error(x, 404, "nothing is here");
}

/* --- The table --------------------------------------------------------------------- */

static const struct http_route http_route_rows[] = {
    {"/",                       HTTP_GET,  HTTP_MAY_NOTHING, http_on_page         },
    {"/page.css",               HTTP_GET,  HTTP_MAY_NOTHING, http_on_page         },
    {"/page.js",                HTTP_GET,  HTTP_MAY_NOTHING, http_on_page         },
    {"/icon.svg",               HTTP_GET,  HTTP_MAY_NOTHING, http_on_page         },
    {"/livez",                  HTTP_GET,  HTTP_MAY_NOTHING, http_on_live         },
    {"/healthz",                HTTP_GET,  HTTP_MAY_NOTHING, http_on_live         },
    {"/readyz",                 HTTP_GET,  HTTP_MAY_NOTHING, http_on_ready        },
    {"/metrics",                HTTP_GET,  HTTP_MAY_NOTHING, http_on_metrics      },
    {"/api/status",             HTTP_GET,  HTTP_MAY_READ,    http_on_status       },
    {"/status.json",            HTTP_GET,  HTTP_MAY_READ,    http_on_status       },
    {"/api/site",               HTTP_GET,  HTTP_MAY_READ,    http_on_site         },
    {"/api/site/forget-limits", HTTP_POST, HTTP_MAY_OPERATE, http_on_forget_limits},
    {"/api/sites",              HTTP_GET,  HTTP_MAY_READ,    http_on_sites        },
    {"/api/fragments",          HTTP_GET,  HTTP_MAY_READ,    http_on_fragments    },
    {"/api/findings",           HTTP_GET,  HTTP_MAY_READ,    http_on_findings     },
    {"/api/series",             HTTP_GET,  HTTP_MAY_READ,    http_on_series       },
    {"/api/suppress",           HTTP_GET,  HTTP_MAY_READ,    http_on_suppressed   },
    {"/api/suppress/add",       HTTP_POST, HTTP_MAY_OPERATE, http_on_suppress     },
    {"/api/suppress/rm",        HTTP_POST, HTTP_MAY_OPERATE, http_on_suppress     },
    {"/api/log-level",          HTTP_POST, HTTP_MAY_OPERATE, http_on_level        },
    {"/api/test",               HTTP_POST, HTTP_MAY_OPERATE, http_test            },
    {POST_PATH,                 HTTP_POST, HTTP_MAY_NOTHING, http_on_post         },
    {POST_PATH "/*",            HTTP_GET,  HTTP_MAY_NOTHING, http_on_posted       },
    {"/events",                 HTTP_GET,  HTTP_MAY_READ,    http_events          },
    {"/api/trace",              HTTP_GET,  HTTP_MAY_READ,    http_trace           },
    {"/api/queue",              HTTP_GET,  HTTP_MAY_READ,    http_queue_list      },
    {"/api/queue/hold",         HTTP_POST, HTTP_MAY_OPERATE, http_queue_act       },
    {"/api/queue/release",      HTTP_POST, HTTP_MAY_OPERATE, http_queue_act       },
    {"/api/queue/retry",        HTTP_POST, HTTP_MAY_OPERATE, http_queue_act       },
    {"/api/queue/bounce",       HTTP_POST, HTTP_MAY_OPERATE, http_queue_act       },
    {"/api/queue/rm",           HTTP_POST, HTTP_MAY_OPERATE, http_queue_act       },
    {"/api/queue/*",            HTTP_GET,  HTTP_MAY_READ,    http_queue_show      },
    {"/api/queue/*/why",        HTTP_GET,  HTTP_MAY_READ,    http_queue_why       },
    {"/api/queue/*/message",    HTTP_GET,  HTTP_MAY_OPERATE, http_queue_message   },
};

static unsigned
http_method_of(struct text method)
{
    return text_equal(method, TEXT("POST"))     ? HTTP_POST
           : text_equal(method, TEXT("DELETE")) ? HTTP_DELETE
                                                : HTTP_GET;
}

/* "*" in a pattern is one segment that is not empty. */
static bool
http_route_matches(struct text pattern, struct text path)
{
    struct text wanted, found;
    while (pattern.at != NULL && path.at != NULL) {
        if (!text_cut(&pattern, '/', &wanted) || !text_cut(&path, '/', &found))
            return false;
        bool any = text_equal(wanted, TEXT("*")) && found.length > 0;
        if (!any && !text_equal(wanted, found))
            return false;
    }
    return pattern.at == NULL && path.at == NULL;
}

static const struct http_route *
http_route_find(struct text path)
{
    for (size_t i = 0; i < sizeof(http_route_rows) / sizeof(http_route_rows[0]); i++)
        if (http_route_matches(text_from(http_route_rows[i].path), path))
            return &http_route_rows[i];
    return NULL;
}

static void
http_refuse_method(struct http_exchange *x, unsigned methods)
{
    http_answer_field(x, "Allow",
                      methods == HTTP_GET    ? "GET, HEAD"
                      : methods == HTTP_POST ? "POST"
                                             : "POST, DELETE");
    http_answer_error(x, 405, "a method that is not known here");
}

/* Without a key nobody learns which paths there are. */
void
http_routes_answer(void *context, struct http_exchange *x)
{
    const struct http_routes *routes = context;
    const struct http_route *route = http_route_find(x->target.path);
    enum http_may needed = route != NULL ? route->may : HTTP_MAY_READ;
    if (x->may < needed)
        http_answer_error(
            x, x->may == HTTP_MAY_NOTHING ? 401 : 403,
            x->may == HTTP_MAY_NOTHING
                ? "a key or token is needed: run `petrel page`, or send http_token"
                : "this key may only read: run `petrel page` for one that may act");
    else if (route == NULL)
        http_answer_error(x, 404, "nothing is here");
    else if ((route->methods & http_method_of(x->request->method)) == 0)
        http_refuse_method(x, route->methods);
    else
        route->answer(routes, x);
}
