/* Reads scenarios: one statement a line. */
#include "sched/simulate/scenario.h"

#include "base/memory.h"
#include "base/settings/settings.h"
#include "sched/limits/transport_params.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 100000, PROBLEM_MAX = 1024, SHOWN_MAX = 80 };

#define CONNECT_TIMEOUT_MS  INT64_C(30000)
#define GREETING_TIMEOUT_US INT64_C(300000000)
#define TIME_MAX_MS         (INT64_C(1000) * 24 * 3600 * 1000)

struct reader {
    struct scenario *scenario;
    const struct scenario_defaults *defaults;
    const char *name;
    size_t line;
    struct buffer *mistakes;
    bool bad;
};

static void __attribute__((format(printf, 2, 3)))
scenario_complain(struct reader *r, const char *format, ...)
{
    size_t before = r->mistakes->length;
    va_list list;
    va_start(list, format);
    r->bad = true;
    if (!buffer_format(r->mistakes, "%s:%zu: ", r->name, r->line) ||
        !buffer_format_list(r->mistakes, format, list) ||
        !buffer_add_byte(r->mistakes, '\n'))
        r->mistakes->length = before; /* whole lines only */
    va_end(list);
}

static bool
next_word(struct text *rest, struct text *word)
{
    return text_word(rest, " \t\r", word);
}

/* Space for one more. */
static void *
grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? 2 * *capacity : 16;
    return memory_resize(array, *capacity * size);
}

static struct text
shown(struct text t)
{
    return text_before(t, SHOWN_MAX);
}

static bool
read_time(struct reader *r, struct text value, int64_t *time_us)
{
    int64_t time_ms;
    if (!settings_parse_duration(value, &time_ms) || time_ms < 0 ||
        time_ms > TIME_MAX_MS) {
        scenario_complain(r, "'%.*s' is not a time such as 500ms, 10s, 30m, 2h",
                          TEXT_ARGS(shown(value)));
        return false;
    }
    *time_us = time_ms * 1000;
    return true;
}

static bool
read_number(struct reader *r, struct text word, uint64_t min, uint64_t max,
            uint64_t *number)
{
    if (text_number(word, max, number) && *number >= min)
        return true;
    scenario_complain(r, "'%.*s' is not a number from %llu to %llu",
                      TEXT_ARGS(shown(word)), (unsigned long long)min,
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
    if (!next_word(rest, name) || name->length > SCENARIO_NAME_MAX ||
        text_find(*name, '=') != TEXT_NONE) {
        scenario_complain(r, "the name of a %s must come first", of);
        return false;
    }
    bool many = find_number_mark(*name) != TEXT_NONE;
    after = *rest;
    if (!many || !next_word(&after, &word) || text_find(word, '.') == TEXT_NONE ||
        text_find(word, '=') != TEXT_NONE)
        return true;
    size_t dot = text_find(word, '.');
    if (!text_starts(text_after(word, dot), TEXT("..")) ||
        !text_number(text_before(word, dot), SCENARIO_DOMAINS_MAX, &range->first) ||
        !text_number(text_after(word, dot + 2), SCENARIO_DOMAINS_MAX, &range->last) ||
        range->last < range->first) {
        scenario_complain(r, "'%.*s' is not a range such as 1..500",
                          TEXT_ARGS(shown(word)));
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
    families->at = grown(families->at, families->count, &families->capacity,
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

static bool
domain_find(const struct scenario *s, struct text name, size_t *first, size_t *count)
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
    if (!next_word(rest, &name)) {
        scenario_complain(r, "the name of a site must follow");
        return false;
    }
    if (site_find(r->scenario, name, first, count))
        return true;
    scenario_complain(r, "no site '%.*s' is defined above; 'site %.*s' makes it",
                      TEXT_ARGS(shown(name)), TEXT_ARGS(shown(name)));
    return false;
}

/* --- Servers ---------------------------------------------------------------------- */

static bool
server_set(struct reader *r, struct fake_server_settings *server, struct text options)
{
    struct text option;
    while (next_word(&options, &option)) {
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
        s->site_at =
            grown(s->site_at, s->site_count, &s->site_capacity, sizeof(*s->site_at));
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
    if (!next_word(&rest, &name) || name.length >= FAKE_SERVER_NAME_MAX ||
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

static void
read_domain_statement(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct text name, word;
    struct range range;
    size_t first, count, known, known_count;
    if (!scenario_read_name(r, &rest, "domain", &name, &range))
        return;
    if (!next_word(&rest, &word) || !text_equal(word, TEXT("site"))) {
        scenario_complain(r, "'site NAME' must follow the domain");
        return;
    }
    if (!scenario_read_site(r, &rest, &first, &count))
        return;
    if (domain_find(s, name, &known, &known_count)) {
        scenario_complain(r, "duplicate domain '%.*s'", TEXT_ARGS(shown(name)));
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
        HASH_ADD_KEYPTR(hh, s->domains, domain->name, strlen(domain->name), domain);
        s->domain_at = grown(s->domain_at, s->domain_count, &s->domain_capacity,
                             sizeof(*s->domain_at));
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

static void
read_at_statement(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct scenario_change change = {0};
    struct text word, address = TEXT("");
    if (!next_word(&rest, &word) || !read_time(r, word, &change.at_us))
        return;
    bool one = false;
    if (!next_word(&rest, &word) || (!(one = text_equal(word, TEXT("address"))) &&
                                     !text_equal(word, TEXT("site")))) {
        scenario_complain(r, "'site NAME' or 'address SITE NAME' must follow the time");
        return;
    }
    if (!scenario_read_site(r, &rest, &change.first, &change.count))
        return;
    struct scenario_site *site = s->site_at[change.first];
    if (one && (!next_word(&rest, &address) || !has_address(site, address))) {
        scenario_complain(r, "site '%s' has no address '%.*s'", site->name,
                          TEXT_ARGS(shown(address)));
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
    s->changes =
        grown(s->changes, s->change_count, &s->change_capacity, sizeof(*s->changes));
    s->changes[s->change_count++] = change;
}

/* --- Mail ------------------------------------------------------------------------- */

static bool
read_class(struct reader *r, struct text value, enum sched_class *class)
{
    if (text_equal(value, TEXT("normal")))
        *class = SCHED_NORMAL;
    else if (text_equal(value, TEXT("urgent")))
        *class = SCHED_URGENT;
    else if (text_equal(value, TEXT("bulk")))
        *class = SCHED_BULK;
    else {
        scenario_complain(r, "'%.*s' is not a class: normal, urgent or bulk",
                          TEXT_ARGS(shown(value)));
        return false;
    }
    return true;
}

static bool
scenario_read_rate(struct reader *r, struct text value, int64_t *every_us)
{
    struct rate rate;
    if (!bucket_rate_parse(value, &rate) || rate.amount == 0) {
        scenario_complain(r, "'%.*s' is not a rate such as 10/s",
                          TEXT_ARGS(shown(value)));
        return false;
    }
    *every_us = rate.period_ms * 1000 / rate.amount;
    return true;
}

static bool
scenario_read_size(struct reader *r, struct text value, uint64_t *size)
{
    int64_t bytes;
    if (!settings_parse_size(value, &bytes) || bytes < 0) {
        scenario_complain(r, "'%.*s' is not a size such as 10K",
                          TEXT_ARGS(shown(value)));
        return false;
    }
    *size = (uint64_t)bytes;
    return true;
}

/* The parts of the statement; they are checked when all are known. */
struct arriving {
    struct scenario_arrival arrival;
    struct text domain, sender, name;
    bool has_class;
};

static bool
read_arrival_part(struct reader *r, struct arriving *a, struct text word)
{
    struct scenario_arrival *arrival = &a->arrival;
    size_t equals = text_find(word, '=');
    struct text key = text_before(word, equals),
                value = equals == TEXT_NONE ? TEXT("") : text_after(word, equals + 1);
    uint64_t number = 0;
    bool good = true;
    if (text_equal(word, TEXT("random")))
        arrival->random = true;
    else if (text_equal(key, TEXT("domain")))
        a->domain = value;
    else if (text_equal(key, TEXT("sender")))
        a->sender = value;
    else if (text_equal(key, TEXT("name")))
        a->name = value;
    else if (text_equal(key, TEXT("class"))) {
        good = read_class(r, value, &arrival->class);
        a->has_class = true;
    } else if (text_equal(key, TEXT("count"))) {
        good = read_number(r, value, 1, SCENARIO_MESSAGES_MAX, &number);
        arrival->messages = (unsigned)number;
    } else if (text_equal(key, TEXT("recipients"))) {
        good = read_number(r, value, 1, SCENARIO_RECIPIENTS_MAX, &number);
        arrival->recipients = (unsigned)number;
    } else if (text_equal(key, TEXT("size")))
        good = scenario_read_size(r, value, &arrival->size);
    else if (text_equal(key, TEXT("at")))
        good = read_time(r, value, &arrival->at_us);
    else if (text_equal(key, TEXT("every")))
        good = read_time(r, value, &arrival->every_us);
    else if (text_equal(key, TEXT("rate")))
        good = scenario_read_rate(r, value, &arrival->every_us);
    else {
        scenario_complain(
            r,
            "'%.*s' is not a part of 'arrive': domain= count= recipients= size= "
            "sender= class= name= at= every= rate= random",
            TEXT_ARGS(shown(word)));
        good = false;
    }
    return good;
}

static void
read_arrive_statement(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct arriving a = {
        .arrival = {.messages = 1, .recipients = 1, .size = 10240},
        .sender = TEXT("sender@example.net")
    };
    char name[32];
    struct text word;
    while (next_word(&rest, &word))
        if (!read_arrival_part(r, &a, word))
            return;
    if (!domain_find(s, a.domain, &a.arrival.first, &a.arrival.count)) {
        scenario_complain(r, "domain=NAME must name a domain defined above, not '%.*s'",
                          TEXT_ARGS(shown(a.domain)));
        return;
    }
    s->messages += a.arrival.messages;
    if (s->messages > SCENARIO_MESSAGES_MAX) {
        scenario_complain(r, "more than %d messages", SCENARIO_MESSAGES_MAX);
        return;
    }
    if (!a.has_class && r->defaults->bulk_size > 0 &&
        a.arrival.size >= r->defaults->bulk_size)
        a.arrival.class = SCHED_BULK;
    snprintf(name, sizeof(name), "line %zu", r->line);
    a.arrival.name = a.name.length > 0 ? text_string(a.name) : memory_string(name);
    a.arrival.sender = text_string(a.sender);
    s->arrivals = grown(s->arrivals, s->arrival_count, &s->arrival_capacity,
                        sizeof(*s->arrivals));
    s->arrivals[s->arrival_count++] = a.arrival;
}

/* --- Single values ---------------------------------------------------------------- */

static bool
scenario_read_one(struct reader *r, struct text rest, struct text *word)
{
    struct text more;
    if (next_word(&rest, word) && !next_word(&rest, &more))
        return true;
    scenario_complain(r, "one value must follow");
    return false;
}

static void
read_seed(struct reader *r, struct text rest)
{
    struct text word;
    if (scenario_read_one(r, rest, &word))
        (void)!read_number(r, word, 0, UINT64_MAX, &r->scenario->seed);
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
        (void)!read_time(r, word, &r->scenario->until_us);
}

static void
scenario_read_limit(struct reader *r, struct text rest, uint64_t min, uint64_t max,
                    int *limit)
{
    struct text word;
    uint64_t number;
    if (scenario_read_one(r, rest, &word) && read_number(r, word, min, max, &number))
        *limit = (int)number;
}

static void
read_active_limit(struct reader *r, struct text rest)
{
    scenario_read_limit(r, rest, 1, 1000000, &r->scenario->sched.active_limit);
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
read_transport(struct reader *r, struct text rest)
{
    struct text word;
    while (next_word(&rest, &word)) {
        size_t equals = text_find(word, '=');
        if (equals == TEXT_NONE ||
            !transport_params_option(&r->scenario->transport, text_before(word, equals),
                                     text_after(word, equals + 1)))
            scenario_complain(
                r,
                "'%.*s' is not an option of a transport, or out of range: "
                "see \"routes\" in petrel.conf(5)",
                TEXT_ARGS(shown(word)));
    }
}

static void
scenario_read_client(struct reader *r, struct text rest)
{
    struct text word;
    while (next_word(&rest, &word)) {
        if (text_starts(word, TEXT("dns=")))
            (void)!read_time(r, text_after(word, 4), &r->scenario->dns_us);
        else if (text_starts(word, TEXT("idle=")))
            (void)!read_time(r, text_after(word, 5), &r->scenario->idle_us);
        else
            scenario_complain(r, "'%.*s' is not a part of 'client': dns=TIME idle=TIME",
                              TEXT_ARGS(shown(word)));
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
        {TEXT("seed"),                   read_seed             },
        {TEXT("until"),                  read_until            },
        {TEXT("active_limit"),           read_active_limit     },
        {TEXT("delivery_session_limit"), read_session_limit    },
        {TEXT("session_limit"),          read_session_limit    }, /* its old name */
        {TEXT("site_active_share"),      read_site_share       },
        {TEXT("transport"),              read_transport        },
        {TEXT("client"),                 scenario_read_client  },
        {TEXT("site"),                   read_site_statement   },
        {TEXT("address"),                read_address_statement},
        {TEXT("domain"),                 read_domain_statement },
        {TEXT("at"),                     read_at_statement     },
        {TEXT("arrive"),                 read_arrive_statement },
    };
    struct text word, rest = text_before(line, text_find(line, '#'));
    if (!next_word(&rest, &word))
        return;
    for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++)
        if (text_equal(word, statements[i].word)) {
            statements[i].read(r, rest);
            return;
        }
    scenario_complain(
        r,
        "'%.*s' is not a statement: seed until active_limit delivery_session_limit "
        "site_active_share transport client site address domain at arrive",
        TEXT_ARGS(shown(word)));
}

struct scenario_defaults
scenario_defaults(void)
{
    struct scenario_defaults d = {
        .sched = {.active_limit = 20000, .session_limit = 500, .site_share = 50},
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .idle_ms = 2000
    };
    transport_params_default(&d.transport);
    return d;
}

struct scenario *
scenario_new(struct text content, const char *name,
             const struct scenario_defaults *defaults, struct buffer *mistakes)
{
    struct scenario *s = memory_new(sizeof(*s));
    struct reader r = {
        .scenario = s, .defaults = defaults, .name = name, .mistakes = mistakes};
    struct text line;
    s->seed = 1;
    s->until_us = INT64_MAX;
    s->sched = defaults->sched;
    s->transport = defaults->transport;
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
    families_free(&s->site_names);
    families_free(&s->domain_names);
    free(s->site_at);
    free(s->domain_at);
    free(s->changes);
    free(s->arrivals);
    free(s);
}
