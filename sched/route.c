/* The table of routes: which target serves an address. */
#include "sched/route.h"

#include "base/memory.h"
#include "sched/target.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum {
    PATTERN_MAX = ADDRESS_LOCAL_MAX + 1 + ADDRESS_DOMAIN_MAX + 3, /* with quotes */
    ENTRY_SHOWN_MAX = 100
};

struct route {
    UT_hash_handle hh;
    char *pattern; /* normal form, lower case */
    size_t position;
    struct target target;
};

struct domain {
    UT_hash_handle hh;
    char *name;
};

struct route_table {
    struct route *routes; /* by pattern */
    struct domain *local_domains;
    char first_local[ADDRESS_DOMAIN_MAX + 1];
    bool has_addresses, has_local;
    struct target local, unknown, mx; /* mx: for what nothing matches */
};

struct reading {
    struct route_table *table;
    const struct route_settings *settings;
    struct buffer *mistakes;
    bool bad;
};

/* "routes: 'x y': what". A full buffer has told enough. */
static void
complain(struct reading *r, const char *key, struct text entry, const char *what)
{
    bool told = buffer_format(r->mistakes, "%s: '%.*s%s': %s\n", key,
                              TEXT_ARGS(text_before(entry, ENTRY_SHOWN_MAX)),
                              entry.length > ENTRY_SHOWN_MAX ? "..." : "", what);
    (void)told;
    r->bad = true;
}

/* The normal form of a mailbox, lower case too: the local parts of routes are compared
 * without case. 0: too long. */
static size_t
mailbox_key(const struct address *a, char key[PATTERN_MAX])
{
    struct buffer b;
    buffer_init(&b, PATTERN_MAX - 1);
    size_t length = address_write(a, &b) ? b.length : 0;
    if (length > 0)
        memcpy(key, b.at, length);
    buffer_free(&b);
    text_lower(key, length);
    return length;
}

/* 0: no pattern. */
static size_t
pattern_key(struct text t, char key[PATTERN_MAX])
{
    struct address address;
    if (text_find(t, '@') != TEXT_NONE)
        return address_parse(t, &address) ? mailbox_key(&address, key) : 0;
    bool sub = t.length > 0 && t.at[0] == '.';
    if (!text_equal(t, TEXT("*")) && !address_is_domain(sub ? text_after(t, 1) : t))
        return 0;
    if (t.length >= PATTERN_MAX)
        return 0;
    memcpy(key, t.at, t.length);
    text_lower(key, t.length);
    return t.length;
}

static struct route *
route_of(const struct route_table *table, struct text key)
{
    struct route *route;
    HASH_FIND(hh, table->routes, key.at, key.length, route);
    return route;
}

static struct route *
route_add(struct route_table *table, struct text key)
{
    struct route *route = memory_new(sizeof *route);
    route->pattern = text_string(key);
    route->position = HASH_COUNT(table->routes);
    table->has_addresses |= text_find(key, '@') != TEXT_NONE;
    HASH_ADD_KEYPTR(hh, table->routes, route->pattern, key.length, route);
    return route;
}

static void
entry_read(struct reading *r, struct text entry, struct text pattern,
           struct text target)
{
    char problem[TARGET_PROBLEM_MAX], key[PATTERN_MAX];
    struct target parsed = {0};
    size_t length = pattern_key(pattern, key);
    if (length == 0)
        complain(r, "routes", entry,
                 "bad pattern; use user@domain, domain, .domain (sub-domains) or *");
    else if (target.length == 0)
        complain(r, "routes", entry, "no target; write PATTERN TARGET, e.g. * mx");
    else if (!target_parse(target, r->settings->smtp_port, &r->settings->base, &parsed,
                           problem))
        complain(r, "routes", entry, problem);
    else if (route_of(r->table, text_of(key, length)))
        complain(r, "routes", entry,
                 "its pattern stands above already, so this never matches; remove one");
    else
        memcpy(&route_add(r->table, text_of(key, length))->target, &parsed,
               sizeof parsed);
}

static struct text
skip(struct text t, const char *bytes)
{
    size_t at = 0;
    while (at < t.length && strchr(bytes, t.at[at]) && t.at[at] != '\0')
        at++;
    return text_after(t, at);
}

/* Up to a blank or comma outside quotes. */
static size_t
pattern_length(struct text t)
{
    bool quoted = false;
    size_t at = 0;
    for (; at < t.length && (quoted || !strchr(" \t,", t.at[at])); at++) {
        if (t.at[at] == '"')
            quoted = !quoted;
        else if (t.at[at] == '\\' && quoted && at + 1 < t.length)
            at++;
    }
    return at;
}

/* PATTERN TARGET, PATTERN TARGET...; an error: target takes the rest of its line. */
static void
line_read(struct reading *r, struct text line)
{
    while ((line = skip(line, " \t\r,")).length > 0) {
        struct text entry = line;
        struct text pattern = text_before(line, pattern_length(line));
        struct text rest = skip(text_after(line, pattern.length), " \t\r");
        bool error = text_starts_nocase(rest, TEXT("error:"));
        size_t end = error ? rest.length : text_find(rest, ',');
        struct text target = text_trim(text_before(rest, end));
        line = text_after(rest, end);
        entry.length = target.length > 0
                           ? (size_t)(target.at - entry.at) + target.length
                           : pattern.length;
        if (!error && pattern_length(target) < target.length)
            complain(
                r, "routes", entry,
                "text after the target; write one entry a line, or commas between");
        else
            entry_read(r, entry, pattern, target);
    }
}

/* relay is the last route: it replaces the default `* mx`, and nothing else. */
static void
relay_read(struct reading *r)
{
    char problem[TARGET_PROBLEM_MAX];
    struct target target = {0};
    struct text relay = text_trim(r->settings->relay);
    struct route *all = route_of(r->table, TEXT("*"));
    if (relay.length == 0)
        return;
    if (!target_parse(relay, r->settings->smtp_port, &r->settings->base, &target,
                      problem)) {
        complain(r, "relay", relay, problem);
        return;
    }
    if (all && all->target.kind != TARGET_MX) {
        complain(r, "relay", relay,
                 "routes sends * elsewhere, so this never matches; remove one of them");
        return;
    }
    if (!all)
        all = route_add(r->table, TEXT("*"));
    memcpy(&all->target, &target, sizeof target);
}

static void
local_read(struct reading *r)
{
    char problem[TARGET_PROBLEM_MAX];
    struct text local = text_trim(r->settings->local);
    if (local.length == 0)
        return;
    r->table->has_local = target_parse(local, r->settings->smtp_port,
                                       &r->settings->base, &r->table->local, problem);
    if (!r->table->has_local)
        complain(r, "local", local, problem);
}

static struct domain *
local_domain(const struct route_table *table, struct text name)
{
    char key[ADDRESS_DOMAIN_MAX + 1];
    struct domain *domain;
    if (!text_copy(key, sizeof key, name))
        return NULL;
    text_lower(key, name.length);
    HASH_FIND(hh, table->local_domains, key, name.length, domain);
    return domain;
}

static void
local_domains_read(struct reading *r)
{
    struct text rest = r->settings->local_domains, word;
    while (text_word(&rest, " \t\r\n,", &word)) {
        if (!address_is_domain(word)) {
            complain(r, "local_domains", word, "not a domain name");
            continue;
        }
        if (local_domain(r->table, word))
            continue;
        struct domain *domain = memory_new(sizeof *domain);
        domain->name = text_string(word);
        text_lower(domain->name, word.length);
        if (!r->table->local_domains)
            text_copy(r->table->first_local, sizeof r->table->first_local,
                      text_from(domain->name));
        HASH_ADD_KEYPTR(hh, r->table->local_domains, domain->name, word.length, domain);
    }
}

struct route_table *
route_new(const struct route_settings *settings, struct buffer *mistakes)
{
    char problem[TARGET_PROBLEM_MAX];
    struct route_table *table = memory_new(sizeof *table);
    struct reading r = {.table = table, .settings = settings, .mistakes = mistakes};
    struct text rest = settings->routes, line;
    bool good = target_parse(TEXT("mx"), settings->smtp_port, &settings->base,
                             &table->mx, problem);
    assert(good);
    table->unknown.kind = TARGET_UNKNOWN;
    table->unknown.timeout_scale = 1;
    memcpy(&table->unknown.transport, &settings->base, sizeof settings->base);
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        line_read(&r, line);
    relay_read(&r);
    local_read(&r);
    local_domains_read(&r);
    if (r.bad)
        route_free(&table);
    return table;
}

void
route_free(struct route_table **table)
{
    struct route_table *t = *table;
    if (!t)
        return;
    *table = NULL;
    struct route *route, *next_route;
    HASH_ITER (hh, t->routes, route, next_route) {
        HASH_DELETE(hh, t->routes, route);
        free(route->pattern);
        free(route);
    }
    struct domain *domain, *next_domain;
    HASH_ITER (hh, t->local_domains, domain, next_domain) {
        HASH_DELETE(hh, t->local_domains, domain);
        free(domain->name);
        free(domain);
    }
    free(t);
}

static const struct route *
earlier(const struct route *a, const struct route *b)
{
    return !a || (b && b->position < a->position) ? b : a;
}

/* NULL: none, or one that holds and is passed. */
static const struct route *
route_through(const struct route_table *table, struct text key, bool passes_hold)
{
    const struct route *route = route_of(table, key);
    return route && passes_hold && route->target.kind == TARGET_HOLD ? NULL : route;
}

/* The first in the table of those that match by more than "*". */
static const struct route *
route_named(const struct route_table *table, const struct address *address,
            bool passes_hold)
{
    char key[PATTERN_MAX];
    const struct route *found = NULL;
    size_t length = table->has_addresses ? mailbox_key(address, key) : 0;
    if (length > 0)
        found = route_through(table, text_of(key, length), passes_hold);
    if (address->domain.length == 0 || !text_copy(key, sizeof key, address->domain))
        return found;
    struct text domain = text_of(key, address->domain.length);
    text_lower(key, domain.length);
    found = earlier(found, route_through(table, domain, passes_hold));
    if (domain.at[0] == '[')
        return found;
    for (size_t at = 1; at < domain.length; at++)
        if (domain.at[at] == '.')
            found = earlier(found,
                            route_through(table, text_after(domain, at), passes_hold));
    return found;
}

bool
route_is_local_domain(const struct route_table *table, struct text domain)
{
    return local_domain(table, domain) != NULL;
}

void
route_each_target(const struct route_table *table,
                  void (*each)(void *context, const struct target *target),
                  void *context)
{
    for (const struct route *route = table->routes; route; route = route->hh.next)
        each(context, &route->target);
    if (table->has_local)
        each(context, &table->local);
}

static const struct target *
find_target(const struct route_table *table, const struct address *address,
            bool passes_hold)
{
    struct address whole = *address;
    if (whole.domain.length == 0)
        whole.domain = text_from(table->first_local);
    bool local = whole.domain.length == 0 || route_is_local_domain(table, whole.domain);
    const struct route *all = route_through(table, TEXT("*"), passes_hold);
    const struct route *named = route_named(table, &whole, passes_hold);
    /* A named route behind "*" never comes first. */
    if (named && (!all || named->position < all->position))
        return &named->target;
    if (!local)
        return all ? &all->target : &table->mx;
    if (table->has_local && !(passes_hold && table->local.kind == TARGET_HOLD))
        return &table->local;
    /* Our own domain has no other MX: only a named way can serve it. */
    if (all && all->target.kind != TARGET_MX)
        return &all->target;
    return &table->unknown;
}

const struct target *
route_find(const struct route_table *table, const struct address *address)
{
    return find_target(table, address, false);
}

const struct target *
route_find_past_hold(const struct route_table *table, const struct address *address)
{
    return find_target(table, address, true);
}

size_t
route_key(const struct target *target, struct text domain, char out[ROUTE_KEY_MAX])
{
    int length = 0;
    const char *scheme = target->kind == TARGET_LMTP ? "lmtp" : "smtp";
    switch (target->kind) {
    case TARGET_MX:
        length = snprintf(out, ROUTE_KEY_MAX, "smtp:%.*s", TEXT_ARGS(domain));
        break;
    case TARGET_SMTP:
    case TARGET_LMTP:
        if (target->host[0] == '\0')
            /* Paths keep their case: two sockets are two. */
            return (size_t)snprintf(out, ROUTE_KEY_MAX, "%s:unix:%s", scheme,
                                    target->path);
        length =
            snprintf(out, ROUTE_KEY_MAX, target->look_up_mx ? "%s:%s:%u" : "%s:[%s]:%u",
                     scheme, target->host, target->port);
        break;
    case TARGET_MAILDIR:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "maildir");
    case TARGET_HOLD:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "hold");
    case TARGET_DISCARD:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "discard");
    case TARGET_ERROR:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "error:%s", target->enhanced);
    case TARGET_UNKNOWN:
        return (size_t)snprintf(out, ROUTE_KEY_MAX, "unknown");
    }
    assert(length > 0 && length < ROUTE_KEY_MAX);
    text_lower(out, (size_t)length);
    return (size_t)length;
}
