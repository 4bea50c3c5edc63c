/* Reads scenarios: one statement a line. */
#include "t/simulation/scenario.h"

#include "t/simulation/scenario_internal.h"

#include "base/memory.h"
#include "base/settings/settings.h"
#include "sched/limits/transport_params.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 100000, PROBLEM_MAX = 1024 };

#define CONNECT_TIMEOUT_MS  INT64_C(30000)
#define GREETING_TIMEOUT_US INT64_C(300000000)
#define TIME_MAX_MS         (INT64_C(1000) * 24 * 3600 * 1000)

void
scenario_complain(struct reader *r, const char *format, ...)
{
    size_t before = r->errors->length;
    va_list list;
    va_start(list, format);
    r->bad = true;
    if (!buffer_format(r->errors, "%s:%zu: ", r->name, r->line) ||
        !buffer_format_list(r->errors, format, list) ||
        !buffer_add_byte(r->errors, '\n'))
        r->errors->length = before; /* whole lines only */
    va_end(list);
}

bool
scenario_next_word(struct text *rest, struct text *word)
{
    return text_word(rest, " \t\r", word);
}

/* Space for one more. */
void *
scenario_grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 16;
    return memory_resize(array, *capacity * size);
}

struct text
scenario_shown(struct text t)
{
    return text_before(t, SHOWN_MAX);
}

bool
scenario_read_time(struct reader *r, struct text value, int64_t *time_us)
{
    int64_t time_ms;
    if (!settings_parse_duration(value, &time_ms) || time_ms < 0 ||
        time_ms > TIME_MAX_MS) {
        scenario_complain(r, "'%.*s' is not a time such as 500ms, 10s, 30m, 2h",
                          TEXT_ARGS(scenario_shown(value)));
        return false;
    }
    *time_us = time_ms * 1000;
    return true;
}

bool
scenario_read_number(struct reader *r, struct text word, uint64_t min, uint64_t max,
                     uint64_t *number)
{
    if (text_number(word, max, number) && *number >= min)
        return true;
    scenario_complain(r, "'%.*s' is not a number from %llu to %llu",
                      TEXT_ARGS(scenario_shown(word)), (unsigned long long)min,
                      (unsigned long long)max);
    return false;
}

/* --- Names ------------------------------------------------------------------------ */

/* The position of %d, or TEXT_NONE. */
static size_t
find_number_mark(struct text name)
{
    for (size_t i = 0; i + 1 < name.length; i++)
        if (name.at[i] == '%' && name.at[i + 1] == 'd')
            return i;
    return TEXT_NONE;
}

/* name with number in place of %d. */
static char *
scenario_name_of(struct text name, uint64_t number)
{
    char text[SCENARIO_NAME_MAX + 24];
    size_t mark = find_number_mark(name);
    if (mark == TEXT_NONE)
        return text_string(name);
    snprintf(text, sizeof(text), "%.*s%llu%.*s", (int)mark, name.at,
             (unsigned long long)number, TEXT_ARGS(text_after(name, mark + 2)));
    return memory_string(text);
}

struct range {
    uint64_t first, last;
};

/* "NAME" or "NAME A..B" at the front of *rest. */
static bool
scenario_read_name(struct reader *r, struct text *rest, const char *of,
                   struct text *name, struct range *range)
{
    struct text after, word;
    *range = (struct range){1, 1};
    if (!scenario_next_word(rest, name) || name->length > SCENARIO_NAME_MAX ||
        text_find(*name, '=') != TEXT_NONE) {
        scenario_complain(r, "the name of a %s must come first", of);
        return false;
    }
    bool many = find_number_mark(*name) != TEXT_NONE;
    after = *rest;
    if (!many || !scenario_next_word(&after, &word) ||
        text_find(word, '.') == TEXT_NONE || text_find(word, '=') != TEXT_NONE)
        return true;
    size_t dot = text_find(word, '.');
    if (!text_starts(text_after(word, dot), TEXT("..")) ||
        !text_number(text_before(word, dot), SCENARIO_DOMAINS_MAX, &range->first) ||
        !text_number(text_after(word, dot + 2), SCENARIO_DOMAINS_MAX, &range->last) ||
        range->last < range->first) {
        scenario_complain(r, "'%.*s' is not a range such as 1..500",
                          TEXT_ARGS(scenario_shown(word)));
        return false;
    }
    *rest = after;
    return true;
}

static const struct scenario_family *
family_find(const struct scenario_families *families, struct text name)
{
    for (size_t i = 0; i < families->count; i++)
        if (text_equal(text_from(families->at[i].name), name))
            return &families->at[i];
    return NULL;
}

/* Single names are only in the hash tables. */
static void
family_add(struct scenario_families *families, struct text name, size_t first,
           size_t count)
{
    if (find_number_mark(name) == TEXT_NONE)
        return;
    families->at = scenario_grown(families->at, families->count, &families->capacity,
                                  sizeof(*families->at));
    families->at[families->count++] =
        (struct scenario_family){text_string(name), first, count};
}

static bool
site_find(const struct scenario *s, struct text name, size_t *first, size_t *count)
{
    const struct scenario_family *family = family_find(&s->site_names, name);
    struct scenario_site *site;
    *first = family ? family->first : 0;
    *count = family ? family->count : 0;
    if (family)
        return true;
    if (name.length == 0)
        return false;
    HASH_FIND(hh, s->sites, name.at, name.length, site);
    if (!site)
        return false;
    *first = site->number;
    *count = 1;
    return true;
}

bool
scenario_domain_find(const struct scenario *s, struct text name, size_t *first,
                     size_t *count)
{
    const struct scenario_family *family = family_find(&s->domain_names, name);
    struct scenario_domain *domain;
    *first = family ? family->first : 0;
    *count = family ? family->count : 0;
    if (family)
        return true;
    if (name.length == 0)
        return false;
    HASH_FIND(hh, s->domains, name.at, name.length, domain);
    if (!domain)
        return false;
    *first = domain->number;
    *count = 1;
    return true;
}

static bool
scenario_read_site(struct reader *r, struct text *rest, size_t *first, size_t *count)
{
    struct text name;
    if (!scenario_next_word(rest, &name)) {
        scenario_complain(r, "the name of a site must follow");
        return false;
    }
    if (site_find(r->scenario, name, first, count))
        return true;
    scenario_complain(r, "no site '%.*s' is defined above; 'site %.*s' makes it",
                      TEXT_ARGS(scenario_shown(name)), TEXT_ARGS(scenario_shown(name)));
    return false;
}

/* --- Servers ---------------------------------------------------------------------- */

static bool
server_set(struct reader *r, struct fake_server_settings *server, struct text options)
{
    struct text option;
    while (scenario_next_word(&options, &option)) {
        struct buffer problem;
        buffer_init(&problem, PROBLEM_MAX);
        bool good = fake_server_option(server, option, &problem);
        if (!good)
            scenario_complain(r, "%.*s", TEXT_ARGS(buffer_text(&problem)));
        buffer_free(&problem);
        if (!good)
            return false;
    }
    return true;
}

static struct fake_server_settings *
server_add(struct scenario_site *site, struct text name)
{
    site->servers =
        memory_resize(site->servers, (site->server_count + 1) * sizeof(*site->servers));
    struct fake_server_settings *server = &site->servers[site->server_count++];
    *server = site->base;
    (void)!text_copy(server->name, sizeof(server->name), name);
    return server;
}

static bool
site_add(struct reader *r, struct text name, const struct range *range)
{
    struct scenario *s = r->scenario;
    if (s->site_count + (range->last - range->first) >= SCENARIO_SITES_MAX) {
        scenario_complain(r, "more than %d sites", SCENARIO_SITES_MAX);
        return false;
    }
    family_add(&s->site_names, name, s->site_count,
               (size_t)(range->last - range->first + 1));
    for (uint64_t i = range->first; i <= range->last; i++) {
        struct scenario_site *site = memory_new(sizeof(*site));
        site->name = scenario_name_of(name, i);
        site->number = s->site_count;
        site->base.rate_reply = 451;
        site->base.connect_timeout_us = r->defaults->connect_timeout_ms * 1000;
        site->base.greeting_timeout_us = GREETING_TIMEOUT_US;
        server_add(site, text_from(site->name));
        HASH_ADD_KEYPTR(hh, s->sites, site->name, strlen(site->name), site);
        s->site_at = scenario_grown(s->site_at, s->site_count, &s->site_capacity,
                                    sizeof(*s->site_at));
        s->site_at[s->site_count++] = site;
    }
    return true;
}

static void
read_site_statement(struct reader *r, struct text rest)
{
    struct text name;
    struct range range;
    size_t first, count;
    if (!scenario_read_name(r, &rest, "site", &name, &range))
        return;
    if (!site_find(r->scenario, name, &first, &count)) {
        if (!site_add(r, name, &range))
            return;
        (void)!site_find(r->scenario, name, &first, &count);
    }
    for (size_t i = first; i < first + count; i++) {
        struct scenario_site *site = r->scenario->site_at[i];
        if (!server_set(r, &site->base, rest))
            return;
        for (size_t j = 0; j < site->server_count; j++)
            (void)!server_set(r, &site->servers[j], rest);
    }
}

static void
read_address_statement(struct reader *r, struct text rest)
{
    size_t first, count;
    struct text name;
    if (!scenario_read_site(r, &rest, &first, &count))
        return;
    if (!scenario_next_word(&rest, &name) || name.length >= FAKE_SERVER_NAME_MAX ||
        text_find(name, '=') != TEXT_NONE) {
        scenario_complain(r, "a name of the address must follow the site");
        return;
    }
    for (size_t i = first; i < first + count; i++) {
        struct scenario_site *site = r->scenario->site_at[i];
        if (!site->has_addresses)
            site->server_count = 0;
        site->has_addresses = true;
        if (site->server_count >= SCENARIO_ADDRESSES_MAX) {
            scenario_complain(r, "more than %d addresses", SCENARIO_ADDRESSES_MAX);
            return;
        }
        if (!server_set(r, server_add(site, name), rest))
            return;
    }
}

static size_t
target_find(const struct scenario *s, struct text name)
{
    for (size_t i = 1; i < s->target_count; i++)
        if (text_equal(text_from(s->targets[i].name), name))
            return i;
    return TEXT_NONE;
}

/* "target NAME" at the end of a domain, or nothing. */
static bool
read_domain_target(struct reader *r, struct text *rest, size_t *target)
{
    struct text word;
    *target = 0;
    if (!scenario_next_word(rest, &word))
        return true;
    if (!text_equal(word, TEXT("target")) || !scenario_next_word(rest, &word)) {
        scenario_complain(r, "only 'target NAME' may follow the site");
        return false;
    }
    *target = target_find(r->scenario, word);
    if (*target == TEXT_NONE)
        scenario_complain(r, "no target '%.*s' is defined above",
                          TEXT_ARGS(scenario_shown(word)));
    return *target != TEXT_NONE;
}

static void
read_domain_statement(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct text name, word;
    struct range range;
    size_t first, count, known, known_count, target;
    if (!scenario_read_name(r, &rest, "domain", &name, &range))
        return;
    if (!scenario_next_word(&rest, &word) || !text_equal(word, TEXT("site"))) {
        scenario_complain(r, "'site NAME' must follow the domain");
        return;
    }
    if (!scenario_read_site(r, &rest, &first, &count))
        return;
    if (!read_domain_target(r, &rest, &target))
        return;
    if (scenario_domain_find(s, name, &known, &known_count)) {
        scenario_complain(r, "duplicate domain '%.*s'",
                          TEXT_ARGS(scenario_shown(name)));
        return;
    }
    if (s->domain_count + (range.last - range.first) >= SCENARIO_DOMAINS_MAX) {
        scenario_complain(r, "more than %d domains", SCENARIO_DOMAINS_MAX);
        return;
    }
    family_add(&s->domain_names, name, s->domain_count,
               (size_t)(range.last - range.first + 1));
    for (uint64_t i = 0; i <= range.last - range.first; i++) {
        struct scenario_domain *domain = memory_new(sizeof(*domain));
        domain->name = scenario_name_of(name, range.first + i);
        text_lower(domain->name, strlen(domain->name));
        domain->site = first + (size_t)(i % count);
        domain->number = s->domain_count;
        domain->target = target;
        HASH_ADD_KEYPTR(hh, s->domains, domain->name, strlen(domain->name), domain);
        s->domain_at = scenario_grown(s->domain_at, s->domain_count,
                                      &s->domain_capacity, sizeof(*s->domain_at));
        s->domain_at[s->domain_count++] = domain;
    }
}

static bool
has_address(const struct scenario_site *site, struct text name)
{
    for (size_t i = 0; i < site->server_count; i++)
        if (text_equal(text_from(site->servers[i].name), name))
            return true;
    return false;
}

void
scenario_add_change(struct scenario *s, const struct scenario_change *change)
{
    s->changes = scenario_grown(s->changes, s->change_count, &s->change_capacity,
                                sizeof(*s->changes));
    s->changes[s->change_count++] = *change;
}

static void
read_at_statement(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct scenario_change change = {0};
    struct text word, address = TEXT("");
    if (!scenario_next_word(&rest, &word) ||
        !scenario_read_time(r, word, &change.at_us))
        return;
    bool one = false;
    struct text after = rest;
    if (!scenario_next_word(&after, &word))
        word = TEXT("");
    if (text_equal(word, TEXT("flush"))) {
        change.kind = SCENARIO_FLUSH;
        scenario_add_change(s, &change);
        return;
    }
    if (!(one = text_equal(word, TEXT("address"))) && !text_equal(word, TEXT("site"))) {
        scenario_complain(
            r, "'site NAME', 'address SITE NAME' or 'flush' must follow the time");
        return;
    }
    rest = after;
    if (!scenario_read_site(r, &rest, &change.first, &change.count))
        return;
    struct scenario_site *site = s->site_at[change.first];
    if (one && (!scenario_next_word(&rest, &address) || !has_address(site, address))) {
        scenario_complain(r, "site '%s' has no address '%.*s'", site->name,
                          TEXT_ARGS(scenario_shown(address)));
        return;
    }
    struct fake_server_settings tried = site->base;
    rest = text_trim(rest);
    if (rest.length == 0)
        scenario_complain(r, "no change: up, down, silent or KEY=VALUE must follow");
    if (rest.length == 0 || !server_set(r, &tried, rest))
        return;
    change.address = one ? text_string(address) : NULL;
    change.options = text_string(rest);
    scenario_add_change(s, &change);
}

/* --- Single values ---------------------------------------------------------------- */

static bool
scenario_read_one(struct reader *r, struct text rest, struct text *word)
{
    struct text more;
    if (scenario_next_word(&rest, word) && !scenario_next_word(&rest, &more))
        return true;
    scenario_complain(r, "one value must follow");
    return false;
}

static void
read_seed(struct reader *r, struct text rest)
{
    struct text word;
    if (scenario_read_one(r, rest, &word))
        (void)!scenario_read_number(r, word, 0, UINT64_MAX, &r->scenario->seed);
}

static void
read_until(struct reader *r, struct text rest)
{
    struct text word;
    if (!scenario_read_one(r, rest, &word))
        return;
    if (text_equal(word, TEXT("done")))
        r->scenario->until_us = INT64_MAX;
    else
        (void)!scenario_read_time(r, word, &r->scenario->until_us);
}

static void
scenario_read_limit(struct reader *r, struct text rest, uint64_t min, uint64_t max,
                    int *limit)
{
    struct text word;
    uint64_t number;
    if (scenario_read_one(r, rest, &word) &&
        scenario_read_number(r, word, min, max, &number))
        *limit = (int)number;
}

static void
read_active_limit(struct reader *r, struct text rest)
{
    scenario_read_limit(r, rest, 1, 1000000, &r->scenario->sched.active_limit);
}

static void
read_recipient_limit(struct reader *r, struct text rest)
{
    scenario_read_limit(r, rest, 1, 100000000, &r->scenario->sched.recipient_limit);
}

static void
read_session_limit(struct reader *r, struct text rest)
{
    scenario_read_limit(r, rest, 1, 100000, &r->scenario->sched.session_limit);
}

static void
read_site_share(struct reader *r, struct text rest)
{
    scenario_read_limit(r, rest, 0, 100, &r->scenario->sched.site_share);
}

static void
read_options(struct reader *r, struct text rest, struct transport_params *transport)
{
    struct text word;
    while (scenario_next_word(&rest, &word)) {
        size_t equals = text_find(word, '=');
        if (equals == TEXT_NONE ||
            !transport_params_option(transport, text_before(word, equals),
                                     text_after(word, equals + 1)))
            scenario_complain(
                r,
                "'%.*s' is not an option of a transport, or out of range: "
                "see \"routes\" in petrel.conf(5)",
                TEXT_ARGS(scenario_shown(word)));
    }
}

static void
read_transport(struct reader *r, struct text rest)
{
    read_options(r, rest, &r->scenario->targets[0].transport);
}

static void
scenario_read_target(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct text name;
    if (!scenario_next_word(&rest, &name) || name.length > SCENARIO_NAME_MAX ||
        text_find(name, '=') != TEXT_NONE) {
        scenario_complain(r, "the name of a target must come first");
        return;
    }
    if (target_find(s, name) != TEXT_NONE) {
        scenario_complain(r, "duplicate target '%.*s'",
                          TEXT_ARGS(scenario_shown(name)));
        return;
    }
    if (s->target_count == SCENARIO_TARGETS_MAX) {
        scenario_complain(r, "more than %d targets", SCENARIO_TARGETS_MAX - 1);
        return;
    }
    struct scenario_target *target = &s->targets[s->target_count++];
    target->name = text_string(name);
    target->transport = s->targets[0].transport;
    read_options(r, rest, &target->transport);
}

static void
scenario_read_client(struct reader *r, struct text rest)
{
    struct text word;
    while (scenario_next_word(&rest, &word)) {
        if (text_starts(word, TEXT("dns=")))
            (void)!scenario_read_time(r, text_after(word, 4), &r->scenario->dns_us);
        else if (text_starts(word, TEXT("idle=")))
            (void)!scenario_read_time(r, text_after(word, 5), &r->scenario->idle_us);
        else
            scenario_complain(r, "'%.*s' is not a part of 'client': dns=TIME idle=TIME",
                              TEXT_ARGS(scenario_shown(word)));
    }
}

/* --- Public ----------------------------------------------------------------------- */

static void
scenario_read_line(struct reader *r, struct text line)
{
    static const struct {
        struct text word;
        void (*read)(struct reader *r, struct text rest);
    } statements[] = {
        {TEXT("seed"),                   read_seed                    },
        {TEXT("until"),                  read_until                   },
        {TEXT("active_limit"),           read_active_limit            },
        {TEXT("active_recipient_limit"), read_recipient_limit         },
        {TEXT("delivery_session_limit"), read_session_limit           },
        {TEXT("session_limit"),          read_session_limit           }, /* its old name */
        {TEXT("site_active_share"),      read_site_share              },
        {TEXT("transport"),              read_transport               },
        {TEXT("target"),                 scenario_read_target         },
        {TEXT("client"),                 scenario_read_client         },
        {TEXT("site"),                   read_site_statement          },
        {TEXT("address"),                read_address_statement       },
        {TEXT("domain"),                 read_domain_statement        },
        {TEXT("at"),                     read_at_statement            },
        {TEXT("arrive"),                 scenario_read_arrive         },
    };
    struct text word, rest = text_before(line, text_find(line, '#'));
    if (!scenario_next_word(&rest, &word))
        return;
    for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++)
        if (text_equal(word, statements[i].word)) {
            statements[i].read(r, rest);
            return;
        }
    scenario_complain(
        r,
        "'%.*s' is not a statement: seed until active_limit active_recipient_limit "
        "delivery_session_limit site_active_share transport target client site address "
        "domain at arrive",
        TEXT_ARGS(scenario_shown(word)));
}

struct scenario_defaults
scenario_defaults(void)
{
    struct scenario_defaults d = {
        .sched = {.active_limit = 20000,
                  .recipient_limit = 40000,
                  .session_limit = 500,
                  .site_share = 50},
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .idle_ms = 2000
    };
    transport_params_default(&d.transport);
    return d;
}

struct scenario *
scenario_new(struct text content, const char *name,
             const struct scenario_defaults *defaults, struct buffer *errors)
{
    struct scenario *s = memory_new(sizeof(*s));
    struct reader r = {
        .scenario = s, .defaults = defaults, .name = name, .errors = errors};
    struct text line;
    s->seed = 1;
    s->until_us = INT64_MAX;
    s->sched = defaults->sched;
    s->targets[0].transport = defaults->transport;
    s->target_count = 1;
    s->dns_us = 5000;
    s->idle_us = defaults->idle_ms * 1000;
    while (text_cut(&content, '\n', &line) && r.line++ < LINES_MAX)
        scenario_read_line(&r, line);
    if (r.line > LINES_MAX)
        scenario_complain(&r, "more than %d lines", LINES_MAX);
    else if (!r.bad && s->arrival_count == 0)
        scenario_complain(&r, "no mail arrives: add an 'arrive'");
    if (r.bad)
        scenario_free(&s);
    return s;
}

static void
families_free(struct scenario_families *families)
{
    for (size_t i = 0; i < families->count; i++)
        free(families->at[i].name);
    free(families->at);
}

void
scenario_free(struct scenario **scenario)
{
    struct scenario *s = *scenario;
    if (!s)
        return;
    *scenario = NULL;
    HASH_CLEAR(hh, s->sites);
    HASH_CLEAR(hh, s->domains);
    for (size_t i = 0; i < s->site_count; i++) {
        free(s->site_at[i]->name);
        free(s->site_at[i]->servers);
        free(s->site_at[i]);
    }
    for (size_t i = 0; i < s->domain_count; i++) {
        free(s->domain_at[i]->name);
        free(s->domain_at[i]);
    }
    for (size_t i = 0; i < s->change_count; i++) {
        free(s->changes[i].address);
        free(s->changes[i].options);
    }
    for (size_t i = 0; i < s->arrival_count; i++) {
        free(s->arrivals[i].name);
        free(s->arrivals[i].sender);
    }
    for (size_t i = 1; i < s->target_count; i++)
        free(s->targets[i].name);
    families_free(&s->site_names);
    families_free(&s->domain_names);
    free(s->site_at);
    free(s->domain_at);
    free(s->changes);
    free(s->arrivals);
    free(s);
}
