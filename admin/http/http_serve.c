/* Judges a request: host, origin, path, key; then its route answers. */
#include "admin/http/http_internal.h"

#include "base/event/event.h"

#include <string.h>

/* Paths that need no key. */
static const struct open_path {
    const char *path;
    enum http_path kind;
    bool is_page;
} open_paths[] = {
    {"/livez",       HTTP_PATH_HEALTH,  false},
    {"/healthz",     HTTP_PATH_HEALTH,  false},
    {"/readyz",      HTTP_PATH_HEALTH,  false},
    {"/metrics",     HTTP_PATH_METRICS, false},
    {"/api/session", HTTP_PATH_API,     true },
    {"/",            HTTP_PATH_PAGE,    true },
    {"/page.css",    HTTP_PATH_PAGE,    true },
    {"/page.js",     HTTP_PATH_PAGE,    true },
    {"/icon.svg",    HTTP_PATH_PAGE,    true },
};

static const struct open_path *
http_find_open(struct text path)
{
    for (size_t i = 0; i < sizeof(open_paths) / sizeof(open_paths[0]); i++)
        if (text_equal(path, text_from(open_paths[i].path)))
            return &open_paths[i];
    return NULL;
}

static enum http_path
http_path_kind(struct text path)
{
    const struct open_path *open = http_find_open(path);
    if (open != NULL)
        return open->kind;
    if (text_equal(path, TEXT("/events")))
        return HTTP_PATH_EVENTS;
    if (text_starts(path, TEXT("/v1/")))
        return HTTP_PATH_MAIL;
    return text_starts(path, TEXT("/api/")) || text_equal(path, TEXT("/status.json"))
               ? HTTP_PATH_API
               : HTTP_PATH_OTHER;
}

static bool
http_is_known_method(struct text method)
{
    static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE"};
    for (size_t i = 0; i < 4; i++)
        if (text_equal(method, text_from(methods[i])))
            return true;
    return false;
}

static bool
http_is_offered(const struct http_place *place, struct text path)
{
    const struct open_path *open = http_find_open(path);
    if (place->no_metrics && text_equal(path, TEXT("/metrics")))
        return false;
    return !place->no_page || (open != NULL && !open->is_page);
}

/* False: refused. */
static bool
http_judge(struct http_visit *v)
{
    struct http_exchange *x = &v->exchange;
    struct http_names names = {text_from(v->server->hostname),
                               text_from(v->server->names), false};
    const char *why = "";
    unsigned status = http_access_host(&v->reader, &names, &why);
    if (status == 0 && !http_is_known_method(v->reader.method)) {
        status = 405;
        why = "a method that is not known";
        http_answer_field(x, "Allow", "GET, HEAD, POST, DELETE");
    }
    if (status == 0)
        status = http_target_read(v->reader.target, &x->target, &why);
    if (status == 0)
        x->path = http_path_kind(x->target.path);
    names.no_key = v->place->access > HTTP_MAY_NOTHING && x->path != HTTP_PATH_HEALTH &&
                   x->path != HTTP_PATH_METRICS;
    if (status == 0 && names.no_key)
        status = http_access_host(&v->reader, &names, &why);
    if (status == 0)
        status = http_access_origin(&v->reader, &names, x->target.path, &why);
    if (status == 0 && !http_is_offered(v->place, x->target.path)) {
        status = 404;
        why = "nothing is here";
    }
    if (status == 0) {
        const struct open_path *open = http_find_open(x->target.path);
        bool is_data = open == NULL || open->kind == HTTP_PATH_API;
        status = http_access_fields(&v->reader,
                                    x->path == HTTP_PATH_MAIL ? HTTP_AREA_MAIL
                                    : is_data                 ? HTTP_AREA_DATA
                                                              : HTTP_AREA_OPEN,
                                    &why);
    }
    if (status != 0)
        http_answer_error(x, status, why);
    return status == 0;
}

/* As a login by SMTP that fails: programs that lock clients out read it. */
static void
http_deny(struct http_visit *v, const char *what)
{
    char name[NET_ADDRESS_TEXT_MAX + sizeof("[IPv6:]")];
    enum net_family family = net_peer(v->connection)->family;
    snprintf(name, sizeof(name),
             family == NET_UNIX   ? "%s"
             : family == NET_IPV6 ? "[IPv6:%s]"
                                  : "[%s]",
             v->client);
    struct event_client client = {
        .name = name, .mechanism = "http", .uid = EVENT_NO_UID};
    struct outcome outcome =
        outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 401, "5.7.8", "a wrong %s", what);
    event_tell(v->server->events, &(struct event){.kind = EVENT_DENIED,
                                                  .program = "http",
                                                  .client = &client,
                                                  .outcome = &outcome});
    http_answer_error(&v->exchange, 401,
                      v->exchange.path == HTTP_PATH_MAIL
                          ? "a wrong key: `petrel key add` makes one"
                          : "a wrong key or token: run `petrel page` for a key");
    v->exchange.delay_ms = HTTP_DENIED_MS;
}

/* Finds the access of the client; false: it tried a wrong token. */
static bool
http_identify(struct http_visit *v)
{
    struct http_keys *keys = v->server->keys;
    struct text token = http_access_bearer(&v->reader),
                cookie = http_access_cookie(&v->reader, TEXT("petrel"));
    enum http_may may = v->place->access, other = HTTP_MAY_NOTHING;
    if (token.at != NULL) {
        other = http_keys_token(keys, token);
        if (other == HTTP_MAY_NOTHING && v->server->key != NULL &&
            v->exchange.path == HTTP_PATH_MAIL)
            v->exchange.key = v->server->key(v->server->context, token);
        if (other == HTTP_MAY_NOTHING && v->exchange.key == NULL)
            return false;
    } else if (cookie.at != NULL) {
        other = http_keys_session(keys, cookie);
    }
    v->exchange.may = other > may ? other : may;
    return true;
}

/* --- Sessions ---------------------------------------------------------------------- */

static void
http_session_open(struct http_visit *v)
{
    char cookie[HTTP_SECRET_SIZE], field[128];
    json_t *request = json_loadb(v->reader.body.at ? v->reader.body.at : "",
                                 v->reader.body.length, JSON_REJECT_DUPLICATES, NULL);
    const char *key = json_string_value(json_object_get(request, "key"));
    enum http_may may = key != NULL
                            ? http_keys_open(v->server->keys, text_from(key), cookie)
                            : HTTP_MAY_NOTHING;
    json_decref(request);
    if (may == HTTP_MAY_NOTHING) {
        http_deny(v, "key");
        return;
    }
    snprintf(field, sizeof(field), "petrel=%s; HttpOnly; SameSite=Strict; Path=/%s",
             cookie, v->exchange.secure ? "; Secure" : "");
    http_answer_field(&v->exchange, "Set-Cookie", field);
    http_answer_json(&v->exchange, 200,
                     json_pack("{s:b,s:s}", "ok", true, "access",
                               may == HTTP_MAY_OPERATE ? "operate" : "read"));
}

static void
http_session_close(struct http_visit *v)
{
    struct text cookie = http_access_cookie(&v->reader, TEXT("petrel"));
    if (cookie.at != NULL)
        http_keys_close(v->server->keys, cookie);
    http_answer_field(&v->exchange, "Set-Cookie",
                      "petrel=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    http_answer_json(&v->exchange, 200, json_pack("{s:b}", "ok", true));
}

static bool
http_serve_session(struct http_visit *v)
{
    if (!text_equal(v->exchange.target.path, TEXT("/api/session")))
        return false;
    if (text_equal(v->reader.method, TEXT("POST"))) {
        http_session_open(v);
    } else if (text_equal(v->reader.method, TEXT("DELETE"))) {
        http_session_close(v);
    } else {
        http_answer_field(&v->exchange, "Allow", "POST, DELETE");
        http_answer_error(&v->exchange, 405, "a method that is not known here");
    }
    return true;
}

bool
http_serve_lasts(struct http_visit *v)
{
    return http_identify(v) && v->exchange.may >= HTTP_MAY_READ;
}

void
http_serve(struct http_visit *v)
{
    struct http_exchange *x = &v->exchange;
    struct text origin = http_reader_field(&v->reader, TEXT("Origin"));
    net_address_ip(net_peer(v->connection), v->client);
    x->client = text_from(v->client);
    x->peer = net_peer(v->connection);
    x->secure = v->place->tls || text_starts_nocase(origin, TEXT("https://"));
    if (!http_judge(v))
        return;
    if (v->is_spare && v->place != &v->server->adopted) {
        v->is_last = true;
        if (x->path != HTTP_PATH_HEALTH) {
            http_answer_error(x, 503, "too many connections");
            return;
        }
    }
    if (!http_identify(v)) {
        http_deny(v, "token");
        return;
    }
    if (!http_serve_session(v))
        v->server->route(v->server->context, x);
}
