/* The table of routes: which target serves an address.
 *
 * The first match in the table wins, but a look-up does not read the table. It asks a
 * hash table for each pattern that could match (the mailbox, the domain, each parent
 * domain behind a dot, *) and takes the one with the least position. So the time
 * depends on the labels of the address, not on the number of routes.
 *
 * Targets are compared as bytes, here and by transports: each is zeroed before it is
 * parsed, and copied by memcpy(), which copies padding, too. */
#include "sched/route/route.h"

#include "base/crypto/webhook.h"
#include "base/memory.h"
#include "sched/route/asked.h"
#include "sched/route/peers.h"
#include "sched/route/target.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

static const struct text null_sender = TEXT("<>");

enum {
    RELAY_MAX = 8192,
    PATTERN_MAX = ADDRESS_DOMAIN_MAX + 2, /* ".domain"; a mailbox is shorter */
    ENTRY_SHOWN_MAX = 100
};

/* Routes that a look-up ignores. */
enum { PASS_HOLD = 1, PASS_REDIRECT = 2 };

struct route {
    UT_hash_handle hh;
    char *pattern; /* normal form, lower case */
    size_t position;
    const struct route *hidden_by; /* see route_each_hidden(); NULL: it is not hidden */
    bool redirects;
    char *allow; /* then: addresses and domains that it leaves alone, with commas */
    struct target target;
};

struct domain {
    UT_hash_handle hh;
    char *name;
};

struct rules {
    struct route *routes; /* by pattern */
    bool has_addresses;
};

struct route_table {
    struct rules recipients, senders;
    struct domain *local_domains;
    char first_local[ADDRESS_DOMAIN_MAX + 1];
    bool has_local;
    struct target local, unknown, mx; /* mx: for mail that no pattern matches */
    struct secrets *secrets;
    struct peers *peers; /* or NULL */
    struct asked_targets *asked;
};

struct reading {
    struct route_table *table;
    struct rules *rules; /* the table being read, and its setting: */
    const char *key;
    const struct route_settings *settings;
    struct buffer *errors;
    bool bad;
};

/* The password of user:password@host is an error, and must not be shown. */
static size_t
without_password(struct text entry, char shown[ENTRY_SHOWN_MAX])
{
    size_t length = 0;
    for (size_t i = 0; i < entry.length && length < ENTRY_SHOWN_MAX; i++) {
        struct text rest = text_after(entry, i);
        size_t at = rest.at[0] == ':' ? 1 : rest.length;
        while (at < rest.length && !strchr("@/| \t", rest.at[at]))
            at++;
        shown[length++] = rest.at[0];
        if (at < rest.length && rest.at[at] == '@' && length < ENTRY_SHOWN_MAX) {
            shown[length++] = '*';
            i += at - 1;
        }
    }
    return length;
}

/* "routes: 'x y': what". A full buffer has enough errors. Reading goes on, so that one
 * attempt reports all errors. */
static void
route_complain(struct reading *r, const char *key, struct text entry, const char *what)
{
    char shown[ENTRY_SHOWN_MAX];
    size_t length = without_password(entry, shown);
    bool fits = buffer_format(r->errors, "%s: '%.*s%s': %s\n", key, (int)length, shown,
                              entry.length > ENTRY_SHOWN_MAX ? "..." : "", what);
    (void)fits;
    r->bad = true;
}

/* The normal form of a mailbox, in lower case: the local parts of routes are compared
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

/* The same for a domain behind a prefix that is kept. 0: too long. */
static size_t
domain_key(struct text t, size_t before, char key[PATTERN_MAX])
{
    struct buffer b;
    buffer_init(&b, PATTERN_MAX - 1);
    bool good = buffer_add(&b, text_before(t, before)) &&
                address_write_domain(text_after(t, before), &b);
    size_t length = good ? b.length : 0;
    if (length > 0)
        memcpy(key, b.at, length);
    buffer_free(&b);
    return length;
}

/* 0: not a pattern. */
static size_t
pattern_key(struct text t, char key[PATTERN_MAX])
{
    struct address address;
    if (text_find(t, '@') != TEXT_NONE)
        return address_parse(t, &address) ? mailbox_key(&address, key) : 0;
    bool sub = t.length > 0 && t.at[0] == '.';
    if (!text_equal(t, TEXT("*")) && !address_is_domain(sub ? text_after(t, 1) : t))
        return 0;
    return domain_key(t, sub ? 1 : 0, key);
}

static struct route *
route_of(const struct rules *rules, struct text key)
{
    struct route *route;
    HASH_FIND(hh, rules->routes, key.at, key.length, route);
    return route;
}

static const struct route *
earlier(const struct route *a, const struct route *b)
{
    return !a || (b && b->position < a->position) ? b : a;
}

/* NULL: no route, or only one that says hold, while the mail has been released and
 * passes holds. */
static const struct route *
route_through(const struct rules *rules, struct text key, unsigned passes)
{
    const struct route *route = route_of(rules, key);
    if (route && (passes & PASS_HOLD) && route->target.kind == TARGET_HOLD)
        return NULL;
    return route && (passes & PASS_REDIRECT) && route->redirects ? NULL : route;
}

/* The first that matches all that this pattern would. A route that says hold hides no
 * other: released mail passes it. */
static const struct route *
route_hiding(const struct rules *rules, struct text key)
{
    const char *at_sign = memrchr(key.at, '@', key.length);
    const struct route *found = route_through(rules, TEXT("*"), PASS_HOLD);
    if (at_sign)
        key = text_after(key, (size_t)(at_sign + 1 - key.at));
    if (at_sign)
        found = earlier(found, route_through(rules, key, PASS_HOLD));
    for (size_t at = 1; at < key.length; at++)
        if (key.at[at] == '.')
            found =
                earlier(found, route_through(rules, text_after(key, at), PASS_HOLD));
    return found;
}

static struct route *
route_add(struct rules *rules, struct text key)
{
    struct route *route = memory_new(sizeof(*route));
    route->pattern = text_string(key);
    route->position = HASH_COUNT(rules->routes);
    route->hidden_by = route_hiding(rules, key);
    rules->has_addresses |= text_find(key, '@') != TEXT_NONE;
    HASH_ADD_KEYPTR(hh, rules->routes, route->pattern, key.length, route);
    return route;
}

/* --- Secrets ---------------------------------------------------------------------- */

/* A web application has no XOAUTH2, and a key that signs is used as it stands. */
static bool
http_secret(const struct target_host *h, const struct secret *secret, bool signs,
            char problem[TARGET_PROBLEM_MAX])
{
    const char *why = NULL;
    if (secret->is_account)
        why = "is an account of oauth: it needs a line in auth_passwords";
    else if (signs && secret->is_token)
        why = "signs: write its secret, not the path of a file";
    else if (signs && !webhook_is_secret(secret->value))
        why = "signs: its secret needs 24 characters at least, or whsec_ and Base64 of "
              "24 bytes at least";
    if (why != NULL)
        snprintf(problem, TARGET_PROBLEM_MAX, "%.*s at %.*s %s",
                 TEXT_ARGS(text_before(h->user, 40)),
                 TEXT_ARGS(text_before(h->host, 60)), why);
    return why == NULL;
}

/* Every user needs one. The target keeps its mark: with another secret it is another
 * target, and mail no longer waits for the old one. */
static bool
host_secret(struct reading *r, const struct target *target, const struct target_host *h,
            uint64_t *mark, char problem[TARGET_PROBLEM_MAX])
{
    if (h->user.length == 0 || r->settings->without_secrets)
        return true;
    const struct secret *secret =
        secrets_find(r->table->secrets, h->host, h->port, h->user);
    if (secret) {
        *mark = secrets_mark(secret);
        return target->kind != TARGET_HTTP ||
               http_secret(h, secret, mark == &target->sign_secret, problem);
    }
    snprintf(
        problem, TARGET_PROBLEM_MAX,
        "no password for the user %.*s at %.*s; put a line '%.*s %.*s PASSWORD' into "
        "the file that auth_passwords names, or an account into oauth%s",
        TEXT_ARGS(text_before(h->user, 40)), TEXT_ARGS(text_before(h->host, 60)),
        TEXT_ARGS(text_before(h->host, 60)), TEXT_ARGS(text_before(h->user, 40)),
        r->rules ? "" : ", or set relay_password or relay_password_file");
    return false;
}

static bool
target_secrets(struct reading *r, struct target *target,
               char problem[TARGET_PROBLEM_MAX])
{
    for (size_t i = 0; i < target_host_count(target); i++) {
        struct target_host h = target_host(target, i);
        uint64_t *mark = i == 0 ? &target->secret : &target->more[i - 1].secret;
        if (!host_secret(r, target, &h, mark, problem))
            return false;
    }
    if (target->kind != TARGET_HTTP)
        return true;
    struct target_host signer = target_host(target, 0);
    signer.user = target_signer(target);
    return host_secret(r, target, &signer, &target->sign_secret, problem);
}

static bool
read_target(struct reading *r, struct text t, struct target *target,
            char problem[TARGET_PROBLEM_MAX])
{
    return target_parse(t, r->settings->smtp_port, &r->settings->base, target,
                        problem) &&
           target_secrets(r, target, problem);
}

/* relay_password is for the one user that relay names. With several users nobody knows
 * whose it is. */
static bool
relay_secret(struct reading *r, const struct target *target,
             char problem[TARGET_PROBLEM_MAX])
{
    struct text password = r->settings->relay_password;
    struct target_host found = {0};
    size_t users = 0;
    if (password.length == 0 || r->settings->without_secrets)
        return true;
    for (size_t i = 0; i < target_host_count(target); i++) {
        struct target_host h = target_host(target, i);
        users += h.user.length > 0;
        found = h.user.length > 0 ? h : found;
    }
    const char *error = secrets_error(password);
    problem[0] = '\0';
    if (users == 0)
        snprintf(problem, TARGET_PROBLEM_MAX,
                 "relay_password is set, but no user: write SCHEME://USER@HOST");
    else if (users > 1)
        snprintf(problem, TARGET_PROBLEM_MAX,
                 "relay_password is for one user, but relay has %zu; put their "
                 "passwords into the file that auth_passwords names",
                 users);
    else if (error)
        snprintf(problem, TARGET_PROBLEM_MAX, "relay_password %s", error);
    else if (!secrets_add(r->table->secrets, found.host, found.port, found.user,
                          password, "relay_password"))
        snprintf(
            problem, TARGET_PROBLEM_MAX,
            "auth_passwords or oauth has a line for this user and port, too; remove "
            "relay_password");
    return problem[0] == '\0';
}

/* --- Tables ----------------------------------------------------------------------- */

/* --- Redirects -------------------------------------------------------------------- */

/* "redirect:ADDRESS[?allow=NAME,...]", each NAME an address, a domain or .domain. */
static bool
redirect_read(struct text t, struct target *out, struct text *allow,
              char problem[TARGET_PROBLEM_MAX])
{
    struct address address;
    struct text rest = text_after(t, sizeof("redirect:") - 1), word;
    size_t question = text_find(rest, '?');
    struct text options = text_after(rest, question), list;
    struct buffer to;
    buffer_init(&to, TARGET_TO_MAX - 1);
    bool good = address_parse(text_before(rest, question), &address) && !address.utf8 &&
                address_write(&address, &to);
    if (good)
        (void)text_copy(out->to, sizeof(out->to), buffer_text(&to));
    buffer_free(&to);
    *allow = text_after(options, sizeof("?allow=") - 1);
    if (!good)
        snprintf(problem, TARGET_PROBLEM_MAX,
                 "write redirect: and an address of ASCII, as in "
                 "redirect:test@example.org");
    else if (options.length > 0 && !text_starts_nocase(options, TEXT("?allow=")))
        snprintf(problem, TARGET_PROBLEM_MAX,
                 "redirect has one option: ?allow=example.org,ann@example.net");
    else
        problem[0] = '\0';
    for (list = *allow;
         problem[0] == '\0' && list.length > 0 && text_cut(&list, ',', &word);) {
        struct text domain =
            word.length > 0 && word.at[0] == '.' ? text_after(word, 1) : word;
        if (!address_parse(word, &address) && !address_is_domain(domain))
            snprintf(problem, TARGET_PROBLEM_MAX,
                     "allow=: '%.*s' is neither an address nor a domain",
                     TEXT_ARGS(text_before(word, 60)));
    }
    return problem[0] == '\0';
}

/* An entry without a target is often the rest of a list that was written with blanks. */
static const char *
why_no_target(struct text pattern)
{
    bool is_rest = pattern.length > 0 && pattern.at[0] >= '0' && pattern.at[0] <= '9';
    if (is_rest || text_find(pattern, '=') != TEXT_NONE)
        return "no target; a list in an option is written without blanks, as in "
               "notices=4h,1d or rate=10/s,burst=2";
    return "no target; write PATTERN TARGET, e.g. * mx";
}

static void
route_enter(struct reading *r, struct text key, const struct target *target,
            const struct text *allow)
{
    struct route *route = route_add(r->rules, key);
    memcpy(&route->target, target, sizeof(*target));
    route->redirects = allow != NULL;
    route->allow = allow != NULL ? text_string(*allow) : NULL;
}

static void
route_entry_read(struct reading *r, struct text entry, struct text pattern,
                 struct text target)
{
    char problem[TARGET_PROBLEM_MAX], key[PATTERN_MAX];
    struct target parsed = {0};
    struct text allow = TEXT("");
    bool redirects = text_starts_nocase(target, TEXT("redirect:"));
    bool of_senders = r->rules == &r->table->senders;
    size_t length = of_senders && text_equal(pattern, null_sender)
                        ? text_copy(key, sizeof(key), pattern) * pattern.length
                        : pattern_key(pattern, key);
    if (target.length == 0)
        route_complain(r, r->key, entry, why_no_target(pattern));
    else if (length == 0)
        route_complain(r, r->key, entry,
                       of_senders ? "invalid pattern; use user@domain, domain, .domain "
                                    "(sub-domains), <> (bounces) or *"
                                  : "invalid pattern; use user@domain, domain, .domain "
                                    "(sub-domains) or *");
    else if (!(redirects ? redirect_read(target, &parsed, &allow, problem)
                         : read_target(r, target, &parsed, problem)))
        route_complain(r, r->key, entry, problem);
    else if (route_of(r->rules, text_of(key, length)))
        route_complain(r, r->key, entry,
                       "duplicate pattern, which never matches; remove one");
    else
        route_enter(r, text_of(key, length), &parsed, redirects ? &allow : NULL);
}

static struct text
skip(struct text t, const char *bytes)
{
    size_t at = 0;
    while (at < t.length && strchr(bytes, t.at[at]) && t.at[at] != '\0')
        at++;
    return text_after(t, at);
}

/* Up to a blank or comma outside quotes. A quoted local part may hold both. */
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

/* Up to a blank. */
static size_t
target_length(struct text t)
{
    size_t at = 0;
    while (at < t.length && !strchr(" \t", t.at[at]))
        at++;
    return at;
}

/* Up to the comma that ends an entry. An entry has a blank, between pattern and target;
 * text that follows a comma directly and has none goes on with a list within the
 * target: notices=4h,1d or rate=10/s,burst=2. */
static size_t
entry_end(struct text rest)
{
    size_t end = text_find(rest, ',');
    while (end != TEXT_NONE) {
        struct text piece = text_after(rest, end + 1);
        size_t next = text_find(piece, ',');
        piece = text_before(piece, next);
        if (text_trim(piece).length == 0 ||
            target_length(piece) < text_trim(piece).length)
            return end;
        end = next == TEXT_NONE ? TEXT_NONE : end + 1 + next;
    }
    return rest.length;
}

/* PATTERN TARGET, PATTERN TARGET...; the text of an error: target is the rest of its
 * line. An error text may contain blanks and commas. */
static void
route_line_read(struct reading *r, struct text line)
{
    while ((line = skip(line, " \t\r,")).length > 0) {
        struct text entry = line;
        struct text pattern = text_before(line, pattern_length(line));
        struct text rest = skip(text_after(line, pattern.length), " \t\r");
        bool error = text_starts_nocase(rest, TEXT("error:"));
        size_t end = error ? rest.length : entry_end(rest);
        struct text target = text_trim(text_before(rest, end));
        line = text_after(rest, end);
        entry.length = target.length > 0
                           ? (size_t)(target.at - entry.at) + target.length
                           : pattern.length;
        if (!error && target_length(target) < target.length)
            route_complain(r, r->key, entry,
                           "text after the target; write one entry per line, or "
                           "separate with commas");
        else
            route_entry_read(r, entry, pattern, target);
    }
}

static void
rules_read(struct reading *r, struct rules *rules, const char *key, struct text rest)
{
    struct text line;
    r->rules = rules;
    r->key = key;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        route_line_read(r, line);
    r->rules = NULL;
}

/* A route writes "A, B" as "A|B". Behind the options no host follows: there a comma
 * without a blank behind it belongs to a list. */
static bool
relay_list(struct text relay, struct buffer *out)
{
    struct text word, hosts = text_before(relay, text_find(relay, '?'));
    struct text options = text_after(relay, hosts.length);
    bool fits = true, first = true;
    if (text_find(relay, ',') == TEXT_NONE ||
        text_starts_nocase(relay, TEXT("error:")) ||
        text_starts_nocase(relay, TEXT("maildir:")))
        return buffer_add(out, relay);
    while (fits && text_word(&hosts, " \t\r\n,", &word))
        fits = (out->length == 0 || buffer_add_byte(out, '|')) && buffer_add(out, word);
    for (; fits && text_word(&options, " \t\r\n", &word); first = false)
        fits = (first || buffer_add_byte(out, '|')) && buffer_add(out, word);
    return fits;
}

static bool
relay_target(struct reading *r, struct text relay, struct target *target,
             char problem[TARGET_PROBLEM_MAX])
{
    struct buffer list;
    buffer_init(&list, RELAY_MAX);
    bool fits = relay_list(relay, &list);
    if (!fits)
        snprintf(problem, TARGET_PROBLEM_MAX, "it is too long");
    bool good = fits &&
                target_parse(buffer_text(&list), r->settings->smtp_port,
                             &r->settings->base, target, problem) &&
                relay_secret(r, target, problem) && target_secrets(r, target, problem);
    buffer_free(&list);
    return good;
}

/* relay is the last route: it replaces the default `* mx`, and nothing else. A "* mx"
 * is replaced in its place, as no pattern behind it wins. */
static void
relay_read(struct reading *r)
{
    char problem[TARGET_PROBLEM_MAX];
    struct target target = {0};
    struct text relay = text_trim(r->settings->relay);
    struct rules *rules = &r->table->recipients;
    struct route *all = route_of(rules, TEXT("*"));
    if (relay.length == 0) {
        if (r->settings->relay_password.length > 0)
            route_complain(r, "relay", relay,
                           "relay_password is set, but relay is not");
        return;
    }
    if (!relay_target(r, relay, &target, problem)) {
        route_complain(r, "relay", relay, problem);
        return;
    }
    if (all && all->redirects) {
        /* The way behind the redirect, and for those whom it leaves alone. */
        memcpy(&r->table->mx, &target, sizeof(target));
        return;
    }
    if (all && all->target.kind != TARGET_MX) {
        route_complain(
            r, "relay", relay,
            "routes sends * elsewhere, so this never matches; remove one of them");
        return;
    }
    if (!all)
        all = route_add(rules, TEXT("*"));
    memcpy(&all->target, &target, sizeof(target));
}

static void
local_read(struct reading *r)
{
    char problem[TARGET_PROBLEM_MAX];
    struct text local = text_trim(r->settings->local);
    if (local.length == 0)
        return;
    r->table->has_local = read_target(r, local, &r->table->local, problem);
    if (!r->table->has_local)
        route_complain(r, "local", local, problem);
}

/* Lower case, as local_domains_read() has stored them. */
static struct domain *
local_domain(const struct route_table *table, struct text name)
{
    char key[ADDRESS_DOMAIN_MAX + 1];
    struct domain *domain;
    if (!text_copy(key, sizeof(key), name))
        return NULL;
    text_lower(key, name.length);
    HASH_FIND(hh, table->local_domains, key, name.length, domain);
    return domain;
}

static void
local_domains_read(struct reading *r)
{
    struct text rest = r->settings->local_domains, word;
    char key[PATTERN_MAX];
    while (text_word(&rest, " \t\r\n,", &word)) {
        if (!address_is_domain(word)) {
            route_complain(r, "local_domains", word, "not a domain name");
            continue;
        }
        size_t length = domain_key(word, 0, key);
        if (length == 0 || local_domain(r->table, text_of(key, length)))
            continue;
        struct domain *domain = memory_new(sizeof(*domain));
        domain->name = text_string(text_of(key, length));
        if (!r->table->local_domains)
            text_copy(r->table->first_local, sizeof(r->table->first_local),
                      text_from(domain->name));
        HASH_ADD_KEYPTR(hh, r->table->local_domains, domain->name, length, domain);
    }
}

/* --- Look-ups --------------------------------------------------------------------- */

/* The first in the table of those that match by more than "*". An address literal has
 * no parent domains: its dots are not those of labels. */
static const struct route *
route_named(const struct rules *rules, const struct address *address, unsigned passes)
{
    char key[PATTERN_MAX];
    const struct route *found = NULL;
    size_t length = rules->has_addresses ? mailbox_key(address, key) : 0;
    if (length > 0)
        found = route_through(rules, text_of(key, length), passes);
    if (address->domain.length == 0 || !text_copy(key, sizeof(key), address->domain))
        return found;
    struct text domain = text_of(key, address->domain.length);
    text_lower(key, domain.length);
    found = earlier(found, route_through(rules, domain, passes));
    if (domain.at[0] == '[')
        return found;
    for (size_t at = 1; at < domain.length; at++)
        if (domain.at[at] == '.')
            found =
                earlier(found, route_through(rules, text_after(domain, at), passes));
    return found;
}

/* NULL: sender_routes have no route for it. A sender accepted with an invalid address
 * matches only *. */
static const struct target *
find_sender(const struct route_table *table, struct text sender, unsigned passes)
{
    const struct rules *rules = &table->senders;
    struct address address;
    const struct route *named = NULL, *all;
    if (!rules->routes)
        return NULL;
    all = route_through(rules, TEXT("*"), passes);
    if (sender.length == 0)
        named = route_through(rules, null_sender, passes);
    else if (address_parse(sender, &address))
        named = route_named(rules, &address, passes);
    named = earlier(named, all);
    return named ? &named->target : NULL;
}

/* by_sender: the target by its sender, or NULL. A mailbox without a domain
 * ("postmaster") is of the first local domain. Order: a named route before "*"; for a
 * local domain `local`; then the sender's target or "*"; by MX other domains alone. */
static const struct target *
find_target(const struct route_table *table, const struct target *by_sender,
            const struct address *address, unsigned passes)
{
    struct address whole = *address;
    if (whole.domain.length == 0)
        whole.domain = text_from(table->first_local);
    bool local = whole.domain.length == 0 || route_is_local_domain(table, whole.domain);
    const struct rules *rules = &table->recipients;
    const struct route *all = route_through(rules, TEXT("*"), passes);
    const struct route *named = route_named(rules, &whole, passes);
    /* A named route behind "*" never wins. */
    if (named && (!all || named->position < all->position))
        return &named->target;
    if (!by_sender)
        by_sender = all ? &all->target : &table->mx;
    if (!local)
        return by_sender;
    if (table->has_local && !((passes & PASS_HOLD) && table->local.kind == TARGET_HOLD))
        return &table->local;
    /* An MX look-up of our own domain finds us: only a named target can serve it. */
    if (by_sender->kind != TARGET_MX)
        return by_sender;
    return all && all->target.kind != TARGET_MX ? &all->target : &table->unknown;
}

/* --- The way of redirects --------------------------------------------------------- */

/* The target of a redirect is the way to its address, by the routes that are no
 * redirects; each recipient gets a message of its own, which names it. */
static void
redirect_resolve(struct reading *r, struct route *route)
{
    struct address address;
    char to[TARGET_TO_MAX];
    memcpy(to, route->target.to, sizeof(to));
    if (!address_parse(text_from(to), &address))
        return; /* redirect_read() */
    const struct target *way = find_target(r->table, NULL, &address, PASS_REDIRECT);
    if (way->kind != TARGET_MX && way->kind != TARGET_SMTP &&
        way->kind != TARGET_LMTP && way->kind != TARGET_HTTP) {
        route_complain(r, r->key, text_from(to),
                       "redirect: no host gets mail for that address: name another "
                       "one, or a route for it");
        return;
    }
    memcpy(&route->target, way, sizeof(*way));
    memcpy(route->target.to, to, sizeof(to));
    route->target.transport.recipient_limit = 1;
}

/* After all other routes. */
static void
redirects_resolve(struct reading *r)
{
    struct rules *const all[] = {&r->table->recipients, &r->table->senders};
    static const char *const keys[] = {"routes", "sender_routes"};
    for (size_t i = 0; i < 2; i++)
        for (struct route *route = all[i]->routes; route; route = route->hh.next) {
            r->key = keys[i];
            if (route->redirects)
                redirect_resolve(r, route);
        }
}

static void
peers_read(struct reading *r)
{
    struct peers_settings settings = {.host = r->settings->defrag_host,
                                      .list = r->settings->defrag_peers,
                                      .smtp_port = r->settings->smtp_port,
                                      .base = &r->settings->base};
    if (settings.host.length == 0)
        return;
    r->table->peers = peers_new(&settings, r->errors);
    r->bad = r->bad || r->table->peers == NULL;
}

/* The order matters: relay replaces a "* mx" of routes. All settings are read in spite
 * of errors; but without the table of passwords each user would be reported as one
 * without. */
static void
route_accounts_read(struct reading *r)
{
    for (size_t i = 0; i < r->settings->account_count; i++)
        if (!secrets_add_account(r->table->secrets, &r->settings->accounts[i],
                                 r->errors))
            r->bad = true;
}

struct route_table *
route_new(const struct route_settings *settings, struct buffer *errors)
{
    char problem[TARGET_PROBLEM_MAX];
    struct route_table *table = memory_new(sizeof(*table));
    struct reading r = {.table = table, .settings = settings, .errors = errors};
    bool good = target_parse(TEXT("mx"), settings->smtp_port, &settings->base,
                             &table->mx, problem);
    assert(good);
    table->asked = asked_targets_new();
    table->unknown.kind = TARGET_UNKNOWN;
    table->unknown.timeout_scale = 1;
    memcpy(&table->unknown.transport, &settings->base, sizeof(settings->base));
    table->secrets = settings->without_secrets
                         ? secrets_new(TEXT(""), errors)
                         : secrets_new(settings->passwords, errors);
    if (!table->secrets) {
        route_free(&table);
        return NULL;
    }
    route_accounts_read(&r);
    rules_read(&r, &table->recipients, "routes", settings->routes);
    rules_read(&r, &table->senders, "sender_routes", settings->sender_routes);
    relay_read(&r);
    local_read(&r);
    local_domains_read(&r);
    redirects_resolve(&r);
    peers_read(&r);
    if (r.bad)
        route_free(&table);
    return table;
}

static void
rules_free(struct rules *rules)
{
    struct route *route, *next;
    HASH_ITER (hh, rules->routes, route, next) {
        HASH_DELETE(hh, rules->routes, route);
        free(route->pattern);
        free(route->allow);
        free(route);
    }
}

void
route_free(struct route_table **table)
{
    struct route_table *t = *table;
    if (!t)
        return;
    *table = NULL;
    rules_free(&t->recipients);
    rules_free(&t->senders);
    secrets_free(&t->secrets);
    peers_free(&t->peers);
    asked_targets_free(&t->asked);
    struct domain *domain, *next_domain;
    HASH_ITER (hh, t->local_domains, domain, next_domain) {
        HASH_DELETE(hh, t->local_domains, domain);
        free(domain->name);
        free(domain);
    }
    free(t);
}

struct text
route_first_local_domain(const struct route_table *table)
{
    return text_from(table->first_local);
}

void
route_each_local_domain(const struct route_table *table,
                        void (*each)(void *context, struct text domain), void *context)
{
    for (const struct domain *d = table->local_domains; d != NULL; d = d->hh.next)
        each(context, text_from(d->name));
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
    const struct rules *const all[] = {&table->recipients, &table->senders};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (const struct route *route = all[i]->routes; route; route = route->hh.next)
            each(context, &route->target);
    if (table->has_local)
        each(context, &table->local);
    if (table->peers)
        peers_each_target(table->peers, each, context);
}

void
route_each_hidden(const struct route_table *table, route_hidden *each, void *context)
{
    for (const struct route *r = table->recipients.routes; r; r = r->hh.next)
        if (r->hidden_by)
            each(context, "routes", r->pattern, r->hidden_by->pattern);
    for (const struct route *r = table->senders.routes; r; r = r->hh.next)
        if (r->hidden_by)
            each(context, "sender_routes", r->pattern, r->hidden_by->pattern);
}

static void
note_verify(void *context, const struct target *target)
{
    bool *demanded = context;
    *demanded = *demanded || target->tls == TARGET_TLS_VERIFY;
}

bool
route_demands_verify(const struct route_table *table)
{
    bool demanded = false;
    route_each_target(table, note_verify, &demanded);
    return demanded;
}

static void
note_defragment(void *context, const struct target *target)
{
    bool *found = context;
    *found = *found || target->defragment;
}

bool
route_defragments(const struct route_table *table)
{
    bool found = false;
    route_each_target(table, note_defragment, &found);
    return found;
}

/* Addresses that a redirect leaves alone: the listed ones, and its own. */
static bool
redirect_allows(const struct route *route, const struct address *address)
{
    struct text list = text_from(route->allow), word;
    struct address own;
    char whole[TARGET_TO_MAX + ADDRESS_DOMAIN_MAX];
    int length = snprintf(whole, sizeof(whole), "%.*s@%.*s", TEXT_ARGS(address->local),
                          TEXT_ARGS(address->domain));
    struct text mailbox =
        text_of(whole, (size_t)length < sizeof(whole) ? (size_t)length : 0);
    if (text_equal_nocase(mailbox, text_from(route->target.to)))
        return true;
    while (list.length > 0 && text_cut(&list, ',', &word))
        if (address_parse(word, &own) ? text_equal_nocase(mailbox, word)
            : word.at[0] == '.'       ? text_ends_nocase(address->domain, word)
                                      : text_equal_nocase(address->domain, word))
            return true;
    return false;
}

/* Behind a redirect that leaves it alone an address finds no other one. */
static const struct target *
find_allowed(const struct route_table *table, struct text sender, bool by_sender,
             const struct address *address, unsigned passes)
{
    for (;; passes |= PASS_REDIRECT) {
        const struct target *from =
            by_sender ? find_sender(table, sender, passes) : NULL;
        const struct target *found = find_target(table, from, address, passes);
        const struct route *route =
            (const struct route *)((const char *)found -
                                   offsetof(struct route, target));
        if (found->to[0] == '\0' || !redirect_allows(route, address))
            return found;
    }
}

struct text
route_recipient(const struct target *target, struct text recipient)
{
    return target->to[0] != '\0' ? text_from(target->to) : recipient;
}

const struct target *
route_find(const struct route_table *table, const struct address *address)
{
    return find_allowed(table, TEXT(""), false, address, 0);
}

const struct target *
route_find_from(const struct route_table *table, struct text sender,
                const struct address *address, bool past_hold)
{
    return find_allowed(table, sender, true, address, past_hold ? PASS_HOLD : 0);
}

const struct target *
route_asked(const struct route_table *table, const struct target *target,
            enum target_asks asks)
{
    return asked_targets_find(table->asked, target, asks);
}

const struct target *
route_default(const struct route_table *table)
{
    return &table->mx;
}

const struct peers *
route_peers(const struct route_table *table)
{
    return table->peers;
}

const struct secrets *
route_secrets(const struct route_table *table)
{
    return table->secrets;
}
