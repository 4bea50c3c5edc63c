/* Parser of the targets of routes: schemes, hosts, paths, options. */
#include "sched/target.h"

#include "base/outcome.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SMTP_PORT = 25, LMTP_PORT = 24 };

/* Of a scheme with a host behind it. */
struct scheme {
    struct text name;
    enum target_kind kind;
    uint16_t port;
    enum target_tls tls;
    bool implicit;
    bool promised; /* its name says TLS: ?tls= cannot take that back */
};

static const struct scheme schemes[] = {
    {TEXT("smtp"),                TARGET_SMTP, SMTP_PORT, TARGET_TLS_MAY,    false, false},
    {TEXT("smtp+starttls"),       TARGET_SMTP, SMTP_PORT, TARGET_TLS_VERIFY, false, true },
    {TEXT("submission"),          TARGET_SMTP, 587,       TARGET_TLS_VERIFY, false, true },
    {TEXT("submission+starttls"), TARGET_SMTP, 587,       TARGET_TLS_VERIFY, false, true },
    {TEXT("smtps"),               TARGET_SMTP, 465,       TARGET_TLS_VERIFY, true,  true },
    {TEXT("submissions"),         TARGET_SMTP, 465,       TARGET_TLS_VERIFY, true,  true },
    {TEXT("lmtp"),                TARGET_LMTP, LMTP_PORT, TARGET_TLS_NONE,   false, false},
};

static const char *const tls_words[] = {[TARGET_TLS_NONE] = "none",
                                        [TARGET_TLS_MAY] = "may",
                                        [TARGET_TLS_ENCRYPT] = "encrypt",
                                        [TARGET_TLS_VERIFY] = "verify"};

struct parser {
    struct target *target;
    char *problem;
    const struct scheme *scheme; /* NULL: mx, or without a host */
    uint16_t names;              /* bytes of path that names take; 0: none yet */
};

static bool complain(struct parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For a return statement: always false. */
static bool
complain(struct parser *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(p->problem, TARGET_PROBLEM_MAX, format, list);
    va_end(list);
    return false;
}

/* --- Options --------------------------------------------------------------------- */

static bool
flag_parse(struct text value, bool *flag)
{
    *flag = text_equal_nocase(value, TEXT("yes"));
    return *flag || text_equal_nocase(value, TEXT("no"));
}

/* "0.5", "10": 0.01 to 1000. */
static bool
scale_parse(struct text value, double *scale)
{
    size_t dot = text_find(value, '.');
    uint64_t whole = 0, cents = 0;
    struct text rest = dot == TEXT_NONE ? TEXT("") : text_after(value, dot + 1);
    if (!text_number(text_before(value, dot), 1000, &whole))
        return false;
    if (dot != TEXT_NONE && (rest.length > 2 || !text_number(rest, 99, &cents)))
        return false;
    if (rest.length == 1)
        cents *= 10;
    *scale = (double)whole + (double)cents / 100;
    return *scale >= 0.01 && *scale <= 1000;
}

static bool
option_tls(struct parser *p, struct text value)
{
    struct target *t = p->target;
    enum target_tls tls = TARGET_TLS_NONE;
    while (tls < TARGET_TLS_VERIFY &&
           !text_equal_nocase(value, text_from(tls_words[tls])))
        tls++;
    if (!text_equal_nocase(value, text_from(tls_words[tls])))
        return complain(p, "tls=%.*s: use none, may, encrypt or verify",
                        TEXT_ARGS(text_before(value, 40)));
    if (p->scheme && p->scheme->promised && tls < TARGET_TLS_ENCRYPT)
        return complain(p,
                        "tls=%s contradicts %.*s://, which never sends in clear text; "
                        "use tls=encrypt (any certificate), or smtp://HOST:%u?tls=%s",
                        tls_words[tls], TEXT_ARGS(p->scheme->name), (unsigned)t->port,
                        tls_words[tls]);
    if (t->kind == TARGET_LMTP && t->host[0] == '\0' && tls != TARGET_TLS_NONE)
        return complain(p, "tls=%s: a Unix socket is not a network; leave it out",
                        tls_words[tls]);
    t->tls = tls;
    return true;
}

/* smtp/sasl.h knows them, and is above. */
static bool
option_auth(struct parser *p, struct text key, struct text value)
{
    static const char *const mechanisms[] = {"plain", "login", "scram-sha-256",
                                             "xoauth2"};
    struct target *t = p->target;
    if (text_equal_nocase(key, TEXT("auth_clear"))) {
        if (flag_parse(value, &t->auth_clear))
            return true;
        return complain(p, "auth_clear=%.*s: use yes or no",
                        TEXT_ARGS(text_before(value, 40)));
    }
    for (size_t i = 0; i < sizeof mechanisms / sizeof *mechanisms; i++) {
        struct text name = text_from(mechanisms[i]);
        if (text_equal_nocase(key, TEXT("auth")) && text_equal_nocase(value, name))
            return text_copy(t->auth, sizeof t->auth, name);
    }
    return complain(p,
                    "%.*s=%.*s: use auth=plain, login, scram-sha-256 or xoauth2 (or "
                    "leave it out: the best one that the host offers)",
                    TEXT_ARGS(text_before(key, 40)), TEXT_ARGS(text_before(value, 40)));
}

static bool
is_by_network(const struct target *t)
{
    return t->kind == TARGET_MX || t->kind == TARGET_SMTP || t->kind == TARGET_LMTP;
}

static bool
option_parse(struct parser *p, struct text key, struct text value)
{
    struct target *t = p->target;
    bool flag;
    if (text_equal_nocase(key, TEXT("tls")) && is_by_network(t))
        return option_tls(p, value);
    if (text_equal_nocase(key, TEXT("timeout_scale"))) {
        if (scale_parse(value, &t->timeout_scale))
            return true;
        return complain(p, "timeout_scale=%.*s: use a number from 0.01 to 1000",
                        TEXT_ARGS(value));
    }
    if (text_equal_nocase(key, TEXT("create")) && t->kind == TARGET_MAILDIR) {
        if (flag_parse(value, &t->create))
            return true;
        return complain(p, "create=%.*s: use yes or no", TEXT_ARGS(value));
    }
    if (text_equal_nocase(key, TEXT("mx")) && t->kind == TARGET_SMTP) {
        if (flag_parse(value, &t->look_up_mx))
            return true;
        return complain(p, "mx=%.*s: use yes or no", TEXT_ARGS(value));
    }
    if (t->kind == TARGET_SMTP && text_starts_nocase(key, TEXT("auth")))
        return option_auth(p, key, value);
    if (text_equal_nocase(key, TEXT("defragment"))) {
        if (flag_parse(value, &flag) && !flag)
            return true;
        return complain(p, "defragment=%.*s: not in this version; leave it out",
                        TEXT_ARGS(value));
    }
    if (text_equal_nocase(key, TEXT("notices")))
        return complain(p, "%.*s: not in this version; leave it out", TEXT_ARGS(key));
    if (transport_option(&t->transport, key, value))
        return true;
    return complain(p,
                    "option '%.*s=%.*s' is unknown here or its value is bad; there are "
                    "concurrency, initial, recipients, rate_delay, minimal_backoff, "
                    "maximal_backoff, lifetime, timeout_scale, tls, auth",
                    TEXT_ARGS(text_before(key, 40)), TEXT_ARGS(text_before(value, 40)));
}

static bool
options_parse(struct parser *p, struct text options)
{
    struct text option;
    if (text_find(options, '|') != TEXT_NONE)
        return complain(p, "options stand behind the last host, and are for all");
    while (text_cut(&options, '&', &option)) {
        size_t equal = text_find(option, '=');
        if (equal == TEXT_NONE)
            return complain(p, "option '%.*s' has no value: write NAME=VALUE",
                            TEXT_ARGS(text_before(option, 40)));
        if (!option_parse(p, text_before(option, equal), text_after(option, equal + 1)))
            return false;
    }
    const struct transport *t = &p->target->transport;
    if (t->maximal_backoff_ms < t->minimal_backoff_ms)
        return complain(p, "maximal_backoff is shorter than minimal_backoff");
    return true;
}

/* --- Hosts ----------------------------------------------------------------------- */

/* [1.2.3.4], [::1], [IPv6:::1], or a name in brackets as Postfix has it. */
static bool
literal_parse(struct text inner, struct text *host)
{
    char literal[TARGET_HOST_MAX + 8];
    if (text_starts_nocase(inner, TEXT("IPv6:")))
        inner = text_after(inner, 5);
    *host = inner;
    if (inner.length >= TARGET_HOST_MAX)
        return false;
    bool ipv6 = text_find(inner, ':') != TEXT_NONE;
    int length = snprintf(literal, sizeof literal, "[%s%.*s]", ipv6 ? "IPv6:" : "",
                          TEXT_ARGS(inner));
    return address_is_domain(text_of(literal, (size_t)length)) ||
           address_is_domain(inner);
}

/* What stands between :// and the end, or the next |; borrowed. */
struct host_part {
    struct text user; /* still encoded; at NULL: none */
    struct text host;
    uint16_t port;
};

/* host, host:port, [literal], [literal]:port, and any of them with user@ in front. */
static bool
host_parse(struct parser *p, struct text t, uint16_t port, struct host_part *out)
{
    struct text rest;
    uint64_t number = port;
    size_t at = text_find_last(t, '@');
    out->user = at == TEXT_NONE ? (struct text){NULL, 0} : text_before(t, at);
    t = at == TEXT_NONE ? t : text_after(t, at + 1);
    if (t.length > 0 && t.at[0] == '[') {
        size_t end = text_find(t, ']');
        if (end == TEXT_NONE)
            return complain(p, "']' is missing");
        if (!literal_parse(text_after(text_before(t, end), 1), &out->host))
            return complain(p, "no address or name stands in the brackets");
        rest = text_after(t, end + 1);
    } else {
        size_t colon = text_find(t, ':');
        if (colon != text_find_last(t, ':'))
            return complain(p, "put an IPv6 address in brackets: [::1]:25");
        out->host = text_before(t, colon);
        rest = text_after(t, colon);
        if (!address_is_domain(out->host))
            return complain(p, "'%.*s' is no host name or [address]",
                            TEXT_ARGS(text_before(out->host, 60)));
    }
    if (rest.length > 0 &&
        (rest.at[0] != ':' || !text_number(text_after(rest, 1), 65535, &number) ||
         !number))
        return complain(p, "'%.*s' after the host is no port: write :1 to :65535",
                        TEXT_ARGS(text_before(rest, 60)));
    out->port = (uint16_t)number;
    return out->host.length < TARGET_HOST_MAX ||
           complain(p, "the host name is too long");
}

/* Adds it to the names in path; 0: no room. */
static uint16_t
name_add(struct parser *p, struct text name)
{
    uint16_t at = p->names ? p->names : 1; /* 0 is the empty one */
    if (name.length >= (size_t)(TARGET_PATH_MAX - at))
        return 0;
    text_copy(p->target->path + at, TARGET_PATH_MAX - at, name);
    p->names = (uint16_t)(at + name.length + 1);
    return at;
}

static int
hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at =
        c == '\0' ? NULL : strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c);
    return at ? (int)(at - digits) : -1;
}

/* %40 is @ (RFC 3986 §2.1). */
static bool
user_decode(struct text t, char *to, size_t size, size_t *length)
{
    *length = 0;
    for (size_t i = 0; i < t.length; i++) {
        int c = (unsigned char)t.at[i];
        if (c == '%') {
            int high = i + 2 < t.length ? hex_digit(t.at[i + 1]) : -1;
            int low = i + 2 < t.length ? hex_digit(t.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = 16 * high + low;
            i += 2;
        }
        if (*length == size)
            return false;
        to[(*length)++] = (char)c;
    }
    return *length > 0;
}

/* Where it stands in path; 0: a complaint was made. */
static uint16_t
user_parse(struct parser *p, struct text t)
{
    char user[SECRETS_USER_MAX];
    size_t length;
    if (text_find(t, ':') != TEXT_NONE) {
        complain(p, "no password stands here, where it would be shown: use "
                    "relay_password or auth_passwords (a ':' of the user is %%3A)");
        return 0;
    }
    if (!user_decode(t, user, sizeof user, &length) ||
        text_has_control(text_of(user, length)) ||
        !text_is_utf8(text_of(user, length))) {
        complain(p,
                 "the user before @ is empty, too long, or badly encoded (%%40 is @, "
                 "%%25 is %%)");
        return 0;
    }
    uint16_t at = name_add(p, text_of(user, length));
    if (at == 0)
        complain(p, "the names in it are too long");
    return at;
}

static bool
more_add(struct parser *p, const struct host_part *part, uint16_t user)
{
    struct target *t = p->target;
    if (t->more_count == TARGET_HOSTS_MAX - 1)
        return complain(p, "more than %d hosts", TARGET_HOSTS_MAX);
    uint16_t host = name_add(p, part->host);
    if (host == 0)
        return complain(p, "the names in it are too long");
    text_lower(t->path + host, part->host.length);
    struct target_more *more = &t->more[t->more_count++];
    more->host = host;
    more->user = user;
    more->port = part->port;
    return true;
}

static bool
host_add(struct parser *p, const struct host_part *part, bool is_first)
{
    struct target *t = p->target;
    uint16_t user = 0;
    if (part->user.at && t->kind != TARGET_SMTP)
        return complain(p, "there is no AUTH by LMTP: leave user@ out");
    if (part->user.at && (user = user_parse(p, part->user)) == 0)
        return false;
    if (!is_first)
        return more_add(p, part, user);
    t->user = user;
    t->port = part->port;
    text_copy(t->host, TARGET_HOST_MAX, part->host);
    text_lower(t->host, part->host.length);
    return true;
}

static bool
is_loopback(struct text host)
{
    return text_equal_nocase(host, TEXT("localhost")) ||
           text_equal(host, TEXT("::1")) || text_starts(host, TEXT("127."));
}

/* What a password would come to, there. */
static bool
has_distant_user(const struct target *t)
{
    for (size_t i = 0; i < target_host_count(t); i++) {
        struct target_host h = target_host(t, i);
        if (h.user.length > 0 && !is_loopback(h.host))
            return true;
    }
    return false;
}

static bool
path_copy(struct parser *p, struct text path)
{
    if (path.length < 2 || path.at[0] != '/')
        return complain(p, "the path must be absolute: /...");
    if (text_has_control(path) || !text_copy(p->target->path, TARGET_PATH_MAX, path))
        return complain(p, "the path is too long or holds control characters");
    return true;
}

static const struct scheme *
scheme_find(struct text name)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (text_equal_nocase(name, schemes[i].name))
            return &schemes[i];
    return NULL;
}

/* One host, or hosts with | between them, which may repeat the scheme. */
static bool
hosts_parse(struct parser *p, struct text list)
{
    const struct scheme *scheme = p->scheme;
    struct host_part part = {0};
    struct text one;
    for (bool first = true; text_cut(&list, '|', &one); first = false) {
        size_t colon = text_find(one, ':');
        if (text_starts(text_after(one, colon), TEXT("://"))) {
            if (scheme_find(text_before(one, colon)) != scheme)
                return complain(p, "all hosts of a target have one scheme: %.*s://",
                                TEXT_ARGS(scheme->name));
            one = text_after(one, colon + 3);
        }
        if (!first && p->target->kind != TARGET_SMTP)
            return complain(p, "only hosts for SMTP can be a list");
        if (!host_parse(p, one, scheme->port, &part) || !host_add(p, &part, first))
            return false;
    }
    return true;
}

static bool
scheme_parse(struct parser *p, const struct scheme *scheme, struct text rest)
{
    p->scheme = scheme;
    p->target->kind = scheme->kind;
    p->target->tls = scheme->tls;
    p->target->tls_implicit = scheme->implicit;
    if (scheme->kind == TARGET_LMTP && text_starts_nocase(rest, TEXT("unix:")))
        return path_copy(p, text_after(rest, 5));
    if (!hosts_parse(p, rest))
        return false;
    /* A password goes to nobody but the host that it is for. */
    if (has_distant_user(p->target))
        p->target->tls = TARGET_TLS_VERIFY;
    return true;
}

/* --- Paths and texts
 * ------------------------------------------------------------------ */

static bool
maildir_parse(struct parser *p, struct text path)
{
    p->target->kind = TARGET_MAILDIR;
    for (size_t i = 0; i < path.length; i++) {
        if (path.at[i] != '%')
            continue;
        if (++i == path.length || !strchr("ud%", path.at[i]))
            return complain(p, "only %%u (user), %%d (domain) and %%%% are known");
    }
    return path_copy(p, path);
}

/* RFC 3463 §2: class 4 or 5, subject and detail of up to three digits. */
static bool
is_enhanced(struct text t)
{
    struct text part;
    uint64_t number;
    int parts = 0;
    if (!text_starts(t, TEXT("4.")) && !text_starts(t, TEXT("5.")))
        return false;
    for (; text_cut(&t, '.', &part); parts++)
        if (part.length > 3 || !text_number(part, 999, &number))
            return false;
    return parts == 3;
}

static bool
error_parse(struct parser *p, struct text t)
{
    size_t space = text_find(t, ' ');
    struct text code = text_before(t, space);
    struct text words = space == TEXT_NONE ? TEXT("") : text_trim(text_after(t, space));
    p->target->kind = TARGET_ERROR;
    if (!is_enhanced(code))
        return complain(p,
                        "write error:5.1.1 and a text (RFC 3463 code, class 4 or 5)");
    if (words.length == 0)
        words = TEXT("mail for this address is not accepted");
    if (text_has_control(words) || words.length >= OUTCOME_TEXT_MAX ||
        !text_copy(p->target->path, TARGET_PATH_MAX, words))
        return complain(p, "the text is too long or holds control characters");
    text_copy(p->target->enhanced, sizeof p->target->enhanced, code);
    return true;
}

/* --- Schemes
 * ---------------------------------------------------------------------------- */

static bool
unknown(struct parser *p, struct text what)
{
    return complain(p,
                    "unknown target '%.*s'; use mx, smtp://HOST[:PORT], "
                    "submission://HOST, smtps://HOST, lmtp://HOST:PORT, "
                    "lmtp://unix:/PATH, maildir:/PATH/%%u, hold, discard, "
                    "error:5.1.1 TEXT, HOST or [ADDRESS]",
                    TEXT_ARGS(text_before(what, 60)));
}

static bool
url_parse(struct parser *p, struct text scheme, struct text rest)
{
    const struct scheme *known = scheme_find(scheme);
    return known ? scheme_parse(p, known, rest) : unknown(p, scheme);
}

static bool
body_parse(struct parser *p, struct text t, uint16_t smtp_port)
{
    size_t colon = text_find(t, ':');
    struct text scheme = text_before(t, colon);
    if (text_equal_nocase(t, TEXT("mx"))) {
        p->target->kind = TARGET_MX;
        p->target->look_up_mx = true;
        p->target->port = smtp_port;
        p->target->tls = TARGET_TLS_MAY;
        return true;
    }
    if (text_starts_nocase(t, TEXT("mx|")))
        return complain(p, "mx is no host: it cannot be in a list");
    if (text_starts_nocase(t, TEXT("maildir:")))
        return maildir_parse(p, text_after(t, 8));
    if (text_starts(text_after(t, scheme.length), TEXT("://")))
        return url_parse(p, scheme, text_after(t, scheme.length + 3));
    /* "maildri:/x" is no host. */
    if (t.length == 0 || (t.at[0] != '[' && text_find(t, '/') != TEXT_NONE))
        return unknown(p, t);
    if (text_find(t, '@') != TEXT_NONE)
        return complain(p, "for AUTH write smtp://USER@HOST or submission://USER@HOST; "
                           "mail is not forwarded to other addresses here");
    return scheme_parse(p, scheme_find(TEXT("smtp")), t);
}

size_t
target_host_count(const struct target *target)
{
    return target->kind == TARGET_SMTP ? target->more_count + (size_t)1 : 0;
}

bool
target_has_user(const struct target *target)
{
    bool has_user = target->user > 0;
    for (size_t i = 0; i < target->more_count; i++)
        has_user = has_user || target->more[i].user > 0;
    return has_user;
}

struct target_host
target_host(const struct target *target, size_t at)
{
    assert(at < target_host_count(target));
    if (at == 0)
        return (struct target_host){text_from(target->host),
                                    text_from(target->path + target->user),
                                    target->port};
    const struct target_more *more = &target->more[at - 1];
    return (struct target_host){text_from(target->path + more->host),
                                text_from(target->path + more->user), more->port};
}

const char *
target_tls_word(enum target_tls tls)
{
    return tls_words[tls];
}

/* What the options mean for those who log in. */
static bool
check_auth(struct parser *p)
{
    const struct target *t = p->target;
    bool has_user = target_has_user(t);
    if (!has_user && (t->auth[0] != '\0' || t->auth_clear))
        return complain(p, "auth options are for a user: write %.*s://USER@HOST",
                        TEXT_ARGS(p->scheme->name));
    if (has_user && t->look_up_mx)
        return complain(p, "mx=yes: DNS must not choose who gets the password");
    if (t->tls == TARGET_TLS_NONE && !t->auth_clear && has_distant_user(t))
        return complain(p, "with tls=none the password would be sent in clear text; "
                           "use another tls=, or say auth_clear=yes");
    return true;
}

bool
target_parse(struct text t, uint16_t smtp_port, const struct transport *base,
             struct target *out, char problem[TARGET_PROBLEM_MAX])
{
    struct parser p = {.target = out, .problem = problem};
    /* memset, because targets are compared as bytes. */
    memset(out, 0, sizeof *out);
    memcpy(&out->transport, base, sizeof *base);
    out->timeout_scale = 1;
    if (text_starts_nocase(t, TEXT("error:")))
        return error_parse(&p, text_after(t, 6));
    size_t question = text_find(t, '?');
    struct text body = text_before(t, question);
    bool hold = text_equal_nocase(body, TEXT("hold"));
    if (hold || text_equal_nocase(body, TEXT("discard"))) {
        out->kind = hold ? TARGET_HOLD : TARGET_DISCARD;
        return question == TEXT_NONE ||
               complain(&p, "hold and discard have no options");
    }
    if (!body_parse(&p, body, smtp_port))
        return false;
    if (question != TEXT_NONE && !options_parse(&p, text_after(t, question + 1)))
        return false;
    return check_auth(&p);
}
