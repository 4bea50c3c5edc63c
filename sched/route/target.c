/* Parser of the targets of routes: schemes, hosts, paths, options.
 *
 * The body is parsed before the options, which depend on the kind of target. Rules
 * about several options, such as a password without TLS, are checked last. Each error
 * states the valid form. */
#include "sched/route/target.h"

#include "base/outcome.h"
#include "base/settings/settings.h"
#include "sched/route/target_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SMTP_PORT = 25, LMTP_PORT = 24 };

#define MINUTE_MS      INT64_C(60000)
#define NOTICES_MIN_MS MINUTE_MS
#define NOTICES_MAX_MS (100 * 24 * 60 * MINUTE_MS)
#define NOTICES_MS     (4 * 24 * 60 * MINUTE_MS) /* unless a route sets it */

/* A scheme whose name promises TLS verifies the certificate, too; smtp:// takes the TLS
 * that the host offers. */
static const struct target_scheme schemes[] = {
    {TEXT("smtp"),                TARGET_SMTP, SMTP_PORT, TARGET_TLS_MAY,    false, false},
    {TEXT("smtp+starttls"),       TARGET_SMTP, SMTP_PORT, TARGET_TLS_VERIFY, false, true },
    {TEXT("submission"),          TARGET_SMTP, 587,       TARGET_TLS_VERIFY, false, true },
    {TEXT("submission+starttls"), TARGET_SMTP, 587,       TARGET_TLS_VERIFY, false, true },
    {TEXT("smtps"),               TARGET_SMTP, 465,       TARGET_TLS_VERIFY, true,  true },
    {TEXT("submissions"),         TARGET_SMTP, 465,       TARGET_TLS_VERIFY, true,  true },
    {TEXT("lmtp"),                TARGET_LMTP, LMTP_PORT, TARGET_TLS_NONE,   false, false},
    {TEXT("https"),               TARGET_HTTP, 443,       TARGET_TLS_VERIFY, true,  true },
    {TEXT("http"),                TARGET_HTTP, 80,        TARGET_TLS_NONE,   false, false},
};

static const char *const tls_words[] = {[TARGET_TLS_NONE] = "none",
                                        [TARGET_TLS_MAY] = "may",
                                        [TARGET_TLS_ENCRYPT] = "encrypt",
                                        [TARGET_TLS_VERIFY] = "verify"};

const char *const target_families[] = {"any", "ipv4", "ipv6", NULL};

bool
target_complain(struct target_parser *p, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(p->problem, TARGET_PROBLEM_MAX, format, list);
    va_end(list);
    return false;
}

/* --- Options --------------------------------------------------------------------- */

bool
target_flag_parse(struct text value, bool *flag)
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

/* "4d" or "4h,1d,3d". The times rise, as the number of those sent is the index of the
 * next. */
static bool
notices_parse(struct text value, struct target *t)
{
    struct text one;
    int64_t last_ms = 0, ms;
    t->notice_count = 0;
    while (text_cut(&value, ',', &one)) {
        if (!settings_parse_duration(one, &ms) || ms <= last_ms ||
            ms < NOTICES_MIN_MS || ms > NOTICES_MAX_MS ||
            t->notice_count == TARGET_NOTICES_MAX)
            return false;
        t->notices[t->notice_count++] = last_ms = ms;
    }
    t->notices_ms = t->notices[0];
    return last_ms > 0;
}

int64_t
target_notice_ms(const struct target *t, unsigned sent)
{
    if (t->notice_count > 0)
        return sent < t->notice_count ? t->notices[sent] : INT64_MAX;
    return sent == 0 && t->transport.delay_warning_ms > 0
               ? t->transport.delay_warning_ms
               : INT64_MAX;
}

/* A scheme whose name promises TLS can be lowered to encrypt at most: else the name
 * would be false. */
static bool
option_tls(struct target_parser *p, struct text value)
{
    struct target *t = p->target;
    enum target_tls tls = TARGET_TLS_NONE;
    while (tls < TARGET_TLS_VERIFY &&
           !text_equal_nocase(value, text_from(tls_words[tls])))
        tls++;
    if (!text_equal_nocase(value, text_from(tls_words[tls])))
        return target_complain(p, "tls=%.*s: use none, may, encrypt or verify",
                               TEXT_ARGS(text_before(value, 40)));
    if (p->scheme && p->scheme->promised && tls < TARGET_TLS_ENCRYPT)
        return target_complain(
            p,
            "tls=%s contradicts %.*s://, which never sends in cleartext; "
            "use tls=encrypt (any certificate), or smtp://HOST:%u?tls=%s",
            tls_words[tls], TEXT_ARGS(p->scheme->name), (unsigned)t->port,
            tls_words[tls]);
    if (t->kind == TARGET_LMTP && t->host[0] == '\0' && tls != TARGET_TLS_NONE)
        return target_complain(p, "tls=%s: a Unix socket is not a network; remove it",
                               tls_words[tls]);
    t->tls = tls;
    return true;
}

/* The names of smtp/sasl.h; that header is in a higher room. */
static bool
option_auth(struct target_parser *p, struct text key, struct text value)
{
    static const char *const mechanisms[] = {"plain", "login", "scram-sha-256",
                                             "xoauth2"};
    struct target *t = p->target;
    if (text_equal_nocase(key, TEXT("auth_clear"))) {
        if (target_flag_parse(value, &t->auth_clear))
            return true;
        return target_complain(p, "auth_clear=%.*s: use yes or no",
                               TEXT_ARGS(text_before(value, 40)));
    }
    for (size_t i = 0; i < sizeof(mechanisms) / sizeof(*mechanisms); i++) {
        struct text name = text_from(mechanisms[i]);
        if (text_equal_nocase(key, TEXT("auth")) && text_equal_nocase(value, name))
            return text_copy(t->auth, sizeof(t->auth), name);
    }
    return target_complain(
        p,
        "%.*s=%.*s: use auth=plain, login, scram-sha-256 or xoauth2 (or "
        "leave it out: the best one that the host offers)",
        TEXT_ARGS(text_before(key, 40)), TEXT_ARGS(text_before(value, 40)));
}

static bool
is_by_network(const struct target *t)
{
    return t->kind == TARGET_MX || t->kind == TARGET_SMTP || t->kind == TARGET_LMTP;
}

/* yes: for the users of the system; all: for any name in an address. A name in an
 * address is chosen by the client, so that "all" lets any client make directories. */
static bool
option_create(struct target_parser *p, struct text value)
{
    struct target *t = p->target;
    bool all = text_equal_nocase(value, TEXT("all"));
    bool is_file = text_starts(value, TEXT("/"));
    if (!all && !is_file && !target_flag_parse(value, &t->create))
        return target_complain(p, "create=%.*s: use yes, no, all or the path of a file",
                               TEXT_ARGS(value));
    t->create = t->create || all || is_file;
    if (all || !t->create)
        value = TEXT("");
    else if (!is_file)
        value = TEXT(TARGET_USERS_SYSTEM);
    return text_copy(t->users, sizeof(t->users), value) ||
           target_complain(p, "create=%.*s: the path is too long", TEXT_ARGS(value));
}

static bool
option_bind(struct target_parser *p, struct text value)
{
    struct text word = TEXT("");
    const char *why = bind_address_parse(&p->target->bind, value, &word);
    if (why == NULL && !p->target->bind.has_v4 && !p->target->bind.has_v6)
        why = "no address";
    return why == NULL ||
           target_complain(
               p,
               "bind=%.*s: '%.*s' is %s: use up to one IPv4 and one IPv6 "
               "address, as in bind=192.0.2.7 or bind=192.0.2.7,2001:db8::7",
               TEXT_ARGS(text_before(value, 80)), TEXT_ARGS(text_before(word, 60)),
               why);
}

/* Receivers refuse a name without a dot (RFC 5321 §4.1.1.1). */
static bool
option_helo(struct target_parser *p, struct text value)
{
    bool is_name = address_is_domain(value) && text_is_ascii(value) &&
                   (value.at[0] == '[' || text_find(value, '.') != TEXT_NONE);
    if (!is_name || value.length >= TARGET_HOST_MAX)
        return target_complain(p,
                               "helo=%.*s: use a full host name, as in "
                               "helo=mail.example.org",
                               TEXT_ARGS(text_before(value, 80)));
    p->target->helo = target_add_name(p, value);
    return p->target->helo > 0 || target_complain(p, "the names in it are too long");
}

/* Its offset in path; 0: an error was reported. */
static uint16_t
option_file(struct target_parser *p, const char *key, struct text value)
{
    uint16_t at = 0;
    bool is_path = text_starts(value, TEXT("/")) && value.length < TARGET_HOST_MAX &&
                   !text_has_control(value);
    if (!is_path)
        target_complain(p, "%s=%.*s: use the absolute path of a PEM file", key,
                        TEXT_ARGS(text_before(value, 80)));
    else if ((at = target_add_name(p, value)) == 0)
        target_complain(p, "the names in it are too long");
    return at;
}

static bool
option_cert(struct target_parser *p, struct text value)
{
    return (p->target->cert = option_file(p, "cert", value)) > 0;
}

static bool
option_key(struct target_parser *p, struct text value)
{
    return (p->target->key = option_file(p, "key", value)) > 0;
}

static bool
option_family(struct target_parser *p, struct text value)
{
    for (int i = 0; target_families[i] != NULL; i++)
        if (text_equal_nocase(value, text_from(target_families[i]))) {
            p->target->family = TARGET_FAMILY_ANY + (enum target_family)i;
            return true;
        }
    return target_complain(p, "family=%.*s: use any, ipv4 or ipv6",
                           TEXT_ARGS(text_before(value, 40)));
}

static bool
option_dkim(struct target_parser *p, struct text value)
{
    bool signs;
    if (!target_flag_parse(value, &signs))
        return target_complain(p, "dkim=%.*s: use yes or no",
                               TEXT_ARGS(text_before(value, 40)));
    p->target->dkim = signs ? TARGET_DKIM_YES : TARGET_DKIM_NO;
    return true;
}

/* Options for the TLS demands of destinations by MX. */
static bool
option_demand(struct target_parser *p, const char *key, struct text value, bool *no)
{
    bool counts;
    if (!target_flag_parse(value, &counts))
        return target_complain(p, "%s=%.*s: use yes or no", key,
                               TEXT_ARGS(text_before(value, 40)));
    if (p->target->kind != TARGET_MX)
        return target_complain(p, "%s: only for mx, not for hosts with a name", key);
    *no = !counts;
    return true;
}

static bool
option_dane(struct target_parser *p, struct text value)
{
    return option_demand(p, "dane", value, &p->target->no_dane);
}

static bool
option_sts(struct target_parser *p, struct text value)
{
    return option_demand(p, "sts", value, &p->target->no_sts);
}

static bool
option_canary(struct target_parser *p, struct text value)
{
    bool asks;
    if (!target_flag_parse(value, &asks))
        return target_complain(p, "canary=%.*s: use yes or no",
                               TEXT_ARGS(text_before(value, 40)));
    if (p->target->kind != TARGET_SMTP)
        return target_complain(p, "canary: only for hosts with a name, not for mx");
    p->target->canary = asks ? TARGET_CANARY_YES : TARGET_CANARY_NO;
    return true;
}

/* Options for source addresses, for the addresses of hosts, for the form of mail. True:
 * it is such an option. */
static bool
option_of_smtp(struct target_parser *p, struct text key, struct text value, bool *good)
{
    static const struct {
        struct text key;
        bool (*parse)(struct target_parser *p, struct text value);
    } options[] = {
        {TEXT("bind"),   option_bind  },
        {TEXT("helo"),   option_helo  },
        {TEXT("cert"),   option_cert  },
        {TEXT("key"),    option_key   },
        {TEXT("family"), option_family},
        {TEXT("dkim"),   option_dkim  },
        {TEXT("canary"), option_canary},
        {TEXT("dane"),   option_dane  },
        {TEXT("sts"),    option_sts   }
    };
    if (p->target->kind != TARGET_MX && p->target->kind != TARGET_SMTP)
        return false;
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        if (text_equal_nocase(key, options[i].key)) {
            *good = options[i].parse(p, value);
            return true;
        }
    return false;
}

static bool
option_parse(struct target_parser *p, struct text key, struct text value)
{
    struct target *t = p->target;
    bool good;
    if (option_of_smtp(p, key, value, &good) ||
        target_http_option(p, key, value, &good) ||
        target_fields_option(p, key, value, &good))
        return good;
    if (text_equal_nocase(key, TEXT("tls")) && is_by_network(t))
        return option_tls(p, value);
    if (text_equal_nocase(key, TEXT("timeout_scale"))) {
        if (scale_parse(value, &t->timeout_scale))
            return true;
        return target_complain(p, "timeout_scale=%.*s: use a number from 0.01 to 1000",
                               TEXT_ARGS(value));
    }
    if (text_equal_nocase(key, TEXT("create")) && t->kind == TARGET_MAILDIR)
        return option_create(p, value);
    if (text_equal_nocase(key, TEXT("mx")) && t->kind == TARGET_SMTP) {
        if (target_flag_parse(value, &t->look_up_mx))
            return true;
        return target_complain(p, "mx=%.*s: use yes or no", TEXT_ARGS(value));
    }
    if (t->kind == TARGET_SMTP && text_starts_nocase(key, TEXT("auth")))
        return option_auth(p, key, value);
    if (text_equal_nocase(key, TEXT("defragment"))) {
        if (target_flag_parse(value, &t->defragment))
            return true;
        return target_complain(p, "defragment=%.*s: use yes or no", TEXT_ARGS(value));
    }
    if (text_equal_nocase(key, TEXT("notices"))) {
        if (notices_parse(value, t))
            return true;
        return target_complain(p,
                               "notices=%.*s: use up to 9 times that rise, as in "
                               "notices=4d or notices=4h,1d,3d (1 minute to 100 days)",
                               TEXT_ARGS(text_before(value, 40)));
    }
    if (transport_params_option(&t->transport, key, value))
        return true;
    if (text_equal_nocase(key, TEXT("quota")))
        return target_complain(p,
                               "quota=%.*s: write 100/h,1000/d, or for a ramp "
                               "200/d..50000/d+in+30d+since+2026-12-01 (1d to 365d)",
                               TEXT_ARGS(text_before(value, 60)));
    return target_complain(
        p,
        "option '%.*s=%.*s' is unknown here or its value is invalid; use "
        "concurrency, initial, recipients, rate_delay, minimal_backoff, "
        "maximal_backoff, lifetime, timeout_scale, defragment, notices, tls, auth, "
        "bind, helo, cert, key, family, dkim, canary, dane, sts, sign, format, "
        "private, add_header, remove_header",
        TEXT_ARGS(text_before(key, 40)), TEXT_ARGS(text_before(value, 40)));
}

static bool
options_parse(struct target_parser *p, struct text options)
{
    struct text option;
    if (text_find(options, '|') != TEXT_NONE)
        return target_complain(p, "options go after the last host and apply to all");
    while (text_cut(&options, '&', &option)) {
        size_t equal = text_find(option, '=');
        if (equal == TEXT_NONE)
            return target_complain(p, "option '%.*s' has no value: write NAME=VALUE",
                                   TEXT_ARGS(text_before(option, 40)));
        if (!option_parse(p, text_before(option, equal), text_after(option, equal + 1)))
            return false;
    }
    /* Either limit can come from the defaults: compared behind the last option. */
    const struct transport_params *t = &p->target->transport;
    if (t->maximal_backoff_ms < t->minimal_backoff_ms)
        return target_complain(p, "maximal_backoff is shorter than minimal_backoff");
    return true;
}

static bool
path_copy(struct target_parser *p, struct text path)
{
    if (path.length < 2 || path.at[0] != '/')
        return target_complain(p, "the path must be absolute: /...");
    if (text_has_control(path) || !text_copy(p->target->path, TARGET_PATH_MAX, path))
        return target_complain(p, "the path is too long or holds control characters");
    return true;
}

static const struct target_scheme *
scheme_find(struct text name)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++)
        if (text_equal_nocase(name, schemes[i].name))
            return &schemes[i];
    return NULL;
}

/* One host, or hosts with | between them, which may repeat the scheme. All hosts share
 * the options, so they must have one scheme, too. */
static bool
hosts_parse(struct target_parser *p, struct text list)
{
    const struct target_scheme *scheme = p->scheme;
    struct text one;
    for (bool first = true; text_cut(&list, '|', &one); first = false) {
        size_t colon = text_find(one, ':');
        if (text_starts(text_after(one, colon), TEXT("://"))) {
            if (scheme_find(text_before(one, colon)) != scheme)
                return target_complain(
                    p, "all hosts of a target must have one scheme: %.*s://",
                    TEXT_ARGS(scheme->name));
            one = text_after(one, colon + 3);
        }
        if (!first && p->target->kind != TARGET_SMTP)
            return target_complain(p, "only SMTP hosts can form a list");
        if (!target_add_host(p, one, scheme->port, first))
            return false;
    }
    return true;
}

static bool
scheme_parse(struct target_parser *p, const struct target_scheme *scheme,
             struct text rest)
{
    p->scheme = scheme;
    p->target->kind = scheme->kind;
    p->target->tls = scheme->tls;
    p->target->tls_implicit = scheme->implicit;
    if (scheme->kind == TARGET_HTTP)
        return target_http_parse(p, scheme, rest);
    if (scheme->kind == TARGET_LMTP && text_starts_nocase(rest, TEXT("unix:")))
        return path_copy(p, text_after(rest, 5));
    if (!hosts_parse(p, rest))
        return false;
    /* A password is sent only to the host it is for. */
    if (target_has_distant_user(p->target))
        p->target->tls = TARGET_TLS_VERIFY;
    return true;
}

/* --- Paths and texts -------------------------------------------------------------- */

/* An unknown %x is reported when the settings are read, not at the first delivery. */
static bool
maildir_parse(struct target_parser *p, struct text path)
{
    p->target->kind = TARGET_MAILDIR;
    for (size_t i = 0; i < path.length; i++) {
        if (path.at[i] != '%')
            continue;
        if (++i == path.length || !strchr("ud%", path.at[i]))
            return target_complain(p,
                                   "only %%u (user), %%d (domain) and %%%% are known");
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
error_parse(struct target_parser *p, struct text t)
{
    size_t space = text_find(t, ' ');
    struct text code = text_before(t, space);
    struct text words = space == TEXT_NONE ? TEXT("") : text_trim(text_after(t, space));
    p->target->kind = TARGET_ERROR;
    if (!is_enhanced(code))
        return target_complain(
            p, "write error:5.1.1 and a text (RFC 3463 code, class 4 or 5)");
    if (words.length == 0)
        words = TEXT("mail for this address is not accepted");
    if (text_has_control(words) || words.length >= OUTCOME_TEXT_MAX ||
        !text_copy(p->target->path, TARGET_PATH_MAX, words))
        return target_complain(p, "the text is too long or holds control characters");
    text_copy(p->target->enhanced, sizeof(p->target->enhanced), code);
    return true;
}

/* --- Schemes ---------------------------------------------------------------------- */

static bool
unknown(struct target_parser *p, struct text what)
{
    return target_complain(p,
                           "unknown target '%.*s'; use mx, smtp://HOST[:PORT], "
                           "submission://HOST, smtps://HOST, lmtp://HOST:PORT, "
                           "lmtp://unix:/PATH, maildir:/PATH/%%u, "
                           "https://HOST/PATH, redirect:ADDRESS, hold, discard, "
                           "error:5.1.1 TEXT, HOST or [ADDRESS]",
                           TEXT_ARGS(text_before(what, 60)));
}

static bool
url_parse(struct target_parser *p, struct text scheme, struct text rest)
{
    const struct target_scheme *known = scheme_find(scheme);
    return known ? scheme_parse(p, known, rest) : unknown(p, scheme);
}

static bool
body_parse(struct target_parser *p, struct text t, uint16_t smtp_port)
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
        return target_complain(p, "mx is not a host and cannot be in a list");
    if (text_starts_nocase(t, TEXT("redirect:")))
        return target_complain(p, "redirect is for routes and sender_routes alone");
    if (text_starts_nocase(t, TEXT("maildir:")))
        return maildir_parse(p, text_after(t, 8));
    if (text_starts(text_after(t, scheme.length), TEXT("://")))
        return url_parse(p, scheme, text_after(t, scheme.length + 3));
    /* "maildri:/x" is not a host. */
    if (t.length == 0 || (t.at[0] != '[' && text_find(t, '/') != TEXT_NONE))
        return unknown(p, t);
    if (text_find(t, '@') != TEXT_NONE)
        return target_complain(
            p, "for AUTH write smtp://USER@HOST or submission://USER@HOST; "
               "routes do not forward mail to other addresses");
    return scheme_parse(p, scheme_find(TEXT("smtp")), t);
}

const char *
target_tls_word(enum target_tls tls)
{
    return tls_words[tls];
}

/* Checks the options of a target with a user: its password must go only to a host that
 * the settings name, and in cleartext only if they say so. */
static bool
check_auth(struct target_parser *p)
{
    const struct target *t = p->target;
    bool has_user = target_has_user(t);
    if (!has_user && (t->auth[0] != '\0' || t->auth_clear))
        return target_complain(p, "auth options need a user: write %.*s://USER@HOST",
                               TEXT_ARGS(p->scheme->name));
    if (has_user && t->look_up_mx)
        return target_complain(
            p, "mx=yes: DNS must not decide which host gets the password");
    if (t->tls == TARGET_TLS_NONE && !t->auth_clear && target_has_distant_user(t))
        return target_complain(p,
                               "with tls=none the password would be sent in cleartext; "
                               "use another tls=, or set auth_clear=yes");
    return true;
}

/* A host that wants our certificate would refuse mail in cleartext, and refuse it for
 * good. A file of the certificate alone has the key, too. */
static bool
check_certificate(struct target_parser *p)
{
    struct target *t = p->target;
    if (t->cert == 0)
        return t->key == 0 || target_complain(p, "key= needs cert=, the file of the "
                                                 "certificate");
    if (t->tls == TARGET_TLS_NONE)
        return target_complain(p, "cert= needs TLS, and tls=none forbids it");
    if (t->tls == TARGET_TLS_MAY)
        t->tls = TARGET_TLS_ENCRYPT;
    if (t->key == 0)
        t->key = t->cert;
    return true;
}

/* An address literal has one family: the option, or a source address of the other one
 * alone, would leave nothing to deliver to. */
static bool
check_family(struct target_parser *p)
{
    const struct target *t = p->target;
    for (size_t i = 0; i < target_host_count(t); i++) {
        struct target_host h = target_host(t, i);
        struct net_address a;
        if (!net_address_parse_ip(h.host, &a))
            continue;
        bool is_v6 = a.family == NET_IPV6;
        if (t->family == (is_v6 ? TARGET_FAMILY_IPV4 : TARGET_FAMILY_IPV6))
            return target_complain(p, "family=%s excludes the address %.*s",
                                   target_families[t->family - TARGET_FAMILY_ANY],
                                   TEXT_ARGS(h.host));
    }
    return true;
}

/* A text behind "error:" may contain '?' and is parsed first. */
bool
target_parse(struct text t, uint16_t smtp_port, const struct transport_params *base,
             struct target *out, char problem[TARGET_PROBLEM_MAX])
{
    struct target_parser p = {.target = out, .problem = problem};
    /* memset, because targets are compared as bytes. */
    memset(out, 0, sizeof(*out));
    memcpy(&out->transport, base, sizeof(*base));
    out->timeout_scale = 1;
    out->notices_ms = NOTICES_MS;
    if (text_starts_nocase(t, TEXT("error:")))
        return error_parse(&p, text_after(t, 6));
    size_t question = text_find(t, '?');
    struct text body = text_before(t, question);
    bool hold = text_equal_nocase(body, TEXT("hold"));
    if (hold || text_equal_nocase(body, TEXT("discard"))) {
        out->kind = hold ? TARGET_HOLD : TARGET_DISCARD;
        return question == TEXT_NONE ||
               target_complain(&p, "hold and discard have no options");
    }
    if (!body_parse(&p, body, smtp_port))
        return false;
    if (question != TEXT_NONE && !options_parse(&p, text_after(t, question + 1)))
        return false;
    if (out->kind != TARGET_MX && out->kind != TARGET_SMTP)
        out->transport.verp = 0; /* nothing comes back from there */
    return check_auth(&p) && check_certificate(&p) && check_family(&p);
}
