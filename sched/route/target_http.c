/* Targets that are web applications: https://[USER@]HOST[:PORT]/PATH, and http:// where no
 * network but our own is crossed.
 *
 * What stands behind "?" are options, as with other targets: the URL has no query. Names
 * are in target->path, one behind the other, as those of hosts are. */
#include "sched/route/target_internal.h"

#include "base/http/http.h"

#include <stdio.h>
#include <string.h>

struct text
target_user(const struct target *target)
{
    return text_from(target->path + target->user);
}

struct text
target_signer(const struct target *target)
{
    return text_from(target->path + target->sign);
}

void
target_url(const struct target *target, char out[TARGET_URL_MAX])
{
    bool six = strchr(target->host, ':') != NULL;
    snprintf(out, TARGET_URL_MAX, "http%s://%s%s%s:%u%s",
             target->tls_implicit ? "s" : "", six ? "[" : "", target->host,
             six ? "]" : "", (unsigned)target->port, target->path + target->url);
}

/* A URL that the caller of HTTPS would refuse is an error now. */
static bool
target_http_check(struct target_parser *p)
{
    char url[TARGET_URL_MAX];
    struct http_url parsed;
    const char *why;
    target_url(p->target, url);
    if (!http_url_parse(text_from(url), &parsed, &why))
        return target_complain(p, "%s", why);
    if (!parsed.secure && !http_url_is_private(parsed.host))
        return target_complain(
            p, "http:// is for loopback, private addresses and names without a dot: "
               "write https://");
    return true;
}

bool
target_http_parse(struct target_parser *p, const struct target_scheme *scheme,
                  struct text rest)
{
    size_t slash = text_find(rest, '/');
    struct text path = slash == TEXT_NONE ? TEXT("/") : text_after(rest, slash);
    if (!target_add_host(p, text_before(rest, slash), scheme->port, true))
        return false;
    p->target->url = target_add_name(p, path);
    if (p->target->url == 0)
        return target_complain(p, "the URL is too long");
    return target_http_check(p);
}

static bool
target_http_auth(struct target_parser *p, struct text value)
{
    bool bearer = text_equal_nocase(value, TEXT("bearer"));
    if (!bearer && !text_equal_nocase(value, TEXT("basic")))
        return target_complain(p, "auth=%.*s: use basic or bearer",
                               TEXT_ARGS(text_before(value, 40)));
    return text_copy(p->target->auth, TARGET_AUTH_MAX,
                     bearer ? TEXT("bearer") : TEXT(""));
}

static bool
target_http_sign(struct target_parser *p, struct text value)
{
    bool good = value.length > 0 && value.length <= SECRETS_USER_MAX &&
                text_is_utf8(value) && !text_has_control(value);
    p->target->sign = good ? target_add_name(p, value) : 0;
    return p->target->sign > 0 ||
           target_complain(p, "sign=%.*s: use a name that auth_passwords has",
                           TEXT_ARGS(text_before(value, 40)));
}

static bool
target_http_flag(struct target_parser *p, const char *key, struct text value,
                 bool *flag)
{
    return target_flag_parse(value, flag) ||
           target_complain(p, "%s=%.*s: use yes or no", key,
                           TEXT_ARGS(text_before(value, 40)));
}

static bool
target_http_format(struct target_parser *p, struct text value)
{
    p->target->is_json = text_equal_nocase(value, TEXT("json"));
    return p->target->is_json || text_equal_nocase(value, TEXT("raw")) ||
           target_complain(p, "format=%.*s: use raw or json",
                           TEXT_ARGS(text_before(value, 40)));
}

bool
target_http_option(struct target_parser *p, struct text key, struct text value,
                   bool *good)
{
    struct target *t = p->target;
    if (t->kind != TARGET_HTTP)
        return false;
    if (text_equal_nocase(key, TEXT("auth")))
        *good = target_http_auth(p, value);
    else if (text_equal_nocase(key, TEXT("auth_clear")))
        *good = target_http_flag(p, "auth_clear", value, &t->auth_clear);
    else if (text_equal_nocase(key, TEXT("sign")))
        *good = target_http_sign(p, value);
    else if (text_equal_nocase(key, TEXT("format")))
        *good = target_http_format(p, value);
    else if (text_equal_nocase(key, TEXT("private")))
        *good = target_http_flag(p, "private", value, &t->is_private);
    else
        return false;
    return true;
}
