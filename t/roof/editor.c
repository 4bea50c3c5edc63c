/* Settings at random. */
#include "t/roof/editor.h"

#include "admin/settings/options.h"
#include "t/roof/host.h"
#include "t/roof/limits.h"
#include "t/roof/login.h"
#include "t/roof/plan.h"
#include "t/roof/policy.h"
#include "t/roof/roof.h"
#include "t/roof/secrecy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 200,
    TARGETS_MAX = 16,
    VALUE_MAX = 40,
    ADDED_MAX = 8,
    OPTION_MAX = 100,
    LARGEST = 1000 * 1000
};

/* Bounds within those of the table: beyond them mail would fail, or need more time than
 * a run has. A key with the bounds 0, 0 is left alone: it waits for a restart, belongs to
 * parts that are not under the roof yet, or would need a second value. */
static const struct range {
    const char *key;
    int64_t from, to;
} ranges[] = {
    {"message_size_limit",                                  1 << 20,          50 << 20             },
    {"recipient_limit",                                     10,               1000                 },
    {"server_session_limit",                                2,                1000                 },
    {"client_session_limit",                                1,                100                  },
    {"smtpd_timeout",                                       5000,             300000               },
    {"smtpd_data_timeout",                                  5000,             300000               },
    {"smtpd_min_data_rate",                                 0,                100                  },
    {"smtpd_starttls_timeout",                              1000,             20000                },
    {"greet_delay",                                         0,                2000                 },
    {"hopcount_limit",                                      5,                100                  },
    {"smtpd_hard_error_limit",                              1,                50                   },
    {"smtpd_soft_error_limit",                              0,                20                   },
    {"smtpd_error_sleep_time",                              0,                2000                 },
    {"smtpd_junk_command_limit",                            5,                100                  },
    {"drain_timeout",                                       0,                20000                },
    {"drain_delay",                                         0,                5000                 },
    {"hand_over_timeout",                                   0,                0                    },
    {"smtp_port",                                           0,                0                    },
    {"mta_sts_port",                                        0,                0                    },
    {"smtp_connect_timeout",                                1000,             60000                },
    {"smtp_min_data_rate",                                  0,                100                  },
    {"smtp_mx_address_limit",                               1,                10                   },
    {"smtp_connection_cache_time_limit",                    0,                10000                },
    {"active_limit",                                        1,                1000                 },
    {"active_recipient_limit",                              1,                2000                 },
    {"delivery_session_limit",                              1,                100                  },
    {"initial_destination_concurrency",                     1,                20                   },
    {"default_destination_concurrency_limit",               0,                50                   },
    {"default_destination_concurrency_failed_cohort_limit", 0,                3                    },
    {"default_destination_recipient_limit",                 1,                60                   },
    {"default_destination_rate_delay",                      0,                1000                 },
    {"default_transport_rate_delay",                        0,                300                  },
    {"default_connection_reuse_count_limit",                0,                20                   },
    {"minimal_backoff_time",                                2000,             300000               },
    {"maximal_backoff_time",                                300000,           4000000              },
    {"maximal_queue_lifetime",                              24 * 3600 * 1000, 10 * 24 * 3600 * 1000},
    {"bounce_queue_lifetime",                               0,                0                    },
    {"delay_warning_time",                                  0,                7200000              },
    {"bounce_size_limit",                                   0,                100000               },
    {"suppress_bounce_lifetime",                            0,                0                    },
    {"suppress_complaint_lifetime",                         0,                0                    },
    {"suppress_limit",                                      0,                0                    },
    {"slices",                                              0,                0                    },
    {"future_release",                                      0,                0                    },
    {"slice",                                               0,                0                    },
    {"journal_size",                                        0,                0                    },
    {"journal_message_max",                                 0,                0                    },
    {"history_size",                                        0,                0                    },
    {"history_age",                                         0,                0                    },
    {"metrics_sites",                                       0,                0                    },
    {"events_batch",                                        0,                0                    },
    {"events_linger",                                       0,                0                    },
    {"events_max",                                          0,                0                    },
    {"canary_interval",                                     0,                0                    },
    {"canary_grace",                                        0,                0                    },
    {"server_tls_session_limit",                            0,                0                    },
    {"auth_failure_limit",                                  0,                0                    },
    {NULL,                                                  0,                0                    },
};

static struct {
    char values[ROWS_MAX][VALUE_MAX]; /* "": the default */
    const char *const *targets, *const *domains;
    unsigned domain_count;
    char options[TARGETS_MAX][80]; /* of routes */
    bool with_tls, with_policies, ages_are_short;
    const char *routes; /* more of them; NULL: none */
    const char *option; /* of all routes */
    const char *added[ADDED_MAX];
    unsigned added_count;
    const char *kept; /* a setting that is in these lines, or NULL */
    const char *pinned[TARGETS_MAX]; /* options; NULL: they change */
    void (*written)(struct text content);
    bool logs_in[TARGETS_MAX], by_token[TARGETS_MAX];
    unsigned users[TARGETS_MAX];
    enum editor_tls tls[TARGETS_MAX], tls_least[TARGETS_MAX];
    int64_t journal_size;
    char journal_message_max[VALUE_MAX];
    struct editor_bounds bounds;
    int64_t windows[TARGETS_MAX];
} editor;

static int64_t
draw_number(int64_t from, int64_t to)
{
    /* small numbers are the ones at which things happen */
    unsigned kind = roof_below(4);
    if (kind == 0)
        return from;
    if (kind == 1)
        return roof_between(from, to - from > 4 ? from + 4 : to);
    if (kind == 2)
        return roof_between(from, from + (to - from) / 10);
    return roof_between(from, to);
}

/* False: it is not to be changed. */
static bool
range_of(const struct setting *row, int64_t *from, int64_t *to)
{
    if (row->kind != SETTING_NUMBER && row->kind != SETTING_SIZE &&
        row->kind != SETTING_DURATION)
        return false;
    if (strncmp(row->key, "defrag_", 7) == 0 || strncmp(row->key, "copies_", 7) == 0)
        return false;
    *from = row->min;
    *to = row->max > 0 && row->max < LARGEST ? row->max : LARGEST;
    for (const struct range *r = ranges; r->key != NULL; r++)
        if (strcmp(r->key, row->key) == 0) {
            *from = r->from;
            *to = r->to;
        }
    return *from != 0 || *to != 0;
}

static const char *
number_text(const struct setting *row, int64_t number, char out[VALUE_MAX])
{
    snprintf(out, VALUE_MAX, "%" PRId64 "%s", number,
             row->kind == SETTING_DURATION ? "ms" : "");
    return out;
}

/* Where ages are short. */
static int64_t
part_of(const struct setting *row)
{
    if (!editor.ages_are_short)
        return 1;
    return strcmp(row->key, "maximal_queue_lifetime") == 0 ? 60
           : strcmp(row->key, "delay_warning_time") == 0   ? 6
                                                           : 1;
}

static void
draw_value(size_t index)
{
    const struct setting *row = &options_rows[index];
    int64_t from, to;
    char *value = editor.values[index];
    if (range_of(row, &from, &to))
        number_text(row, draw_number(from, to) / part_of(row), value);
    else if (strcmp(row->key, "default_destination_adaptive") == 0 ||
             strcmp(row->key, "sender_turns") == 0)
        snprintf(value, VALUE_MAX, "%s", roof_chance(500) ? "yes" : "no");
    if (editor.kept != NULL && strcmp(row->key, editor.kept) == 0)
        value[0] = '\0';
}

void
editor_set_route(unsigned domain, const char *options)
{
    snprintf(editor.options[domain], sizeof(editor.options[0]), "%s%s",
             options[0] != '\0' ? "?" : "", options);
}

void
editor_pin_route(unsigned domain, const char *options)
{
    editor.pinned[domain] = options;
    editor_set_route(domain, options);
}

void
editor_on_write(void (*written)(struct text content))
{
    editor.written = written;
}

static void
draw_route(unsigned index)
{
    char *out = editor.options[index];
    static const char *const names[] = {"recipients", "concurrency", "initial"};
    out[0] = '\0';
    if (editor.pinned[index] != NULL) {
        editor_set_route(index, editor.pinned[index]);
        return;
    }
    if (roof_chance(500))
        return;
    const char *name = names[roof_chance(600) ? 0 : roof_below(3)];
    snprintf(out, sizeof(editor.options[0]), "?%s=%" PRId64, name,
             draw_number(1, name[0] == 'r' ? 60 : 20));
}

static const char *const tls_names[] = {"none", "may", "encrypt", "verify"};

static void
draw_tls(unsigned index)
{
    /* a relay of ours has no certificate */
    bool may_demand = strstr(editor.targets[index], "10.0.2.") == NULL;
    editor.tls[index] = (enum editor_tls)roof_below(may_demand ? 4 : 2);
    if (editor.with_policies && editor.tls[index] == EDITOR_TLS_NONE)
        editor.tls[index] = EDITOR_TLS_MAY; /* without TLS there are no policies */
}

void
editor_begin_tls(void)
{
    editor.with_tls = true;
    for (unsigned i = 0; i < editor.domain_count; i++) {
        draw_tls(i);
        editor.tls_least[i] = EDITOR_TLS_VERIFY;
    }
}

void
editor_begin_policies(void)
{
    editor.with_policies = true;
    for (unsigned i = 0; i < editor.domain_count; i++)
        if (editor.tls[i] == EDITOR_TLS_NONE)
            editor.tls[i] = EDITOR_TLS_MAY;
    editor_add(POLICY_SETTINGS);
}

void
editor_add(const char *lines)
{
    assert(editor.added_count < ADDED_MAX);
    editor.added[editor.added_count++] = lines;
}

void
editor_keep(const char *key)
{
    editor.kept = key;
    for (size_t i = 0; options_rows[i].key != NULL; i++)
        if (strcmp(options_rows[i].key, key) == 0)
            editor.values[i][0] = '\0';
}

void
editor_add_option(const char *option)
{
    editor.option = option;
}

void
editor_add_routes(const char *lines)
{
    editor.routes = lines;
}

void
editor_begin_logins(void)
{
    editor_add("auth_users = " LOGIN_USERS "\nauth_passwords = " LOGIN_PASSWORDS "\n");
}

void
editor_log_in(unsigned domain, unsigned user)
{
    editor.logs_in[domain] = true;
    editor.users[domain] = user;
}

void
editor_log_in_by_token(unsigned domain)
{
    editor.logs_in[domain] = editor.by_token[domain] = true;
}

enum editor_tls
editor_tls_of(unsigned domain)
{
    return editor.with_tls ? editor.tls_least[domain] : EDITOR_TLS_NONE;
}

void
editor_begin(const char *const *targets, const char *const *domains,
             unsigned domain_count, unsigned permille)
{
    editor.targets = targets;
    editor.domains = domains;
    editor.domain_count = domain_count;
    editor.bounds.life_ms = editor.bounds.notice_ms = INT64_MAX;
    for (unsigned i = 0; options_rows[i].key != NULL && i < ROWS_MAX; i++) {
        plan_enter("setting", i);
        if (roof_chance(permille) && plan_takes("setting", i))
            draw_value(i);
        plan_leave();
    }
    for (unsigned i = 0; i < domain_count; i++) {
        plan_enter("route", i);
        if (plan_takes("route", i))
            draw_route(i);
        plan_leave();
    }
    editor_change_at_start();
}

void
editor_set(const char *key, const char *value)
{
    for (size_t i = 0; options_rows[i].key != NULL && i < ROWS_MAX; i++)
        if (strcmp(options_rows[i].key, key) == 0)
            snprintf(editor.values[i], VALUE_MAX, "%s", value);
}

void
editor_begin_ages(int64_t life_ms, int64_t notice_ms)
{
    char value[VALUE_MAX];
    editor.ages_are_short = true;
    snprintf(value, sizeof(value), "%" PRId64 "ms", life_ms);
    editor_set("maximal_queue_lifetime", value);
    snprintf(value, sizeof(value), "%" PRId64 "ms", notice_ms);
    editor_set("delay_warning_time", value);
}

void
editor_end_ages(void)
{
    editor.ages_are_short = false;
    editor_set("maximal_queue_lifetime", "");
    editor_set("delay_warning_time", "");
}

void
editor_forget(void)
{
    memset(editor.values, 0, sizeof(editor.values));
    for (unsigned i = 0; i < editor.domain_count; i++)
        if (editor.pinned[i] == NULL)
            editor.options[i][0] = '\0';
}

void
editor_change_at_start(void)
{
    static const int64_t sizes[] = {0, 1 << 20, 4 << 20, 64 << 20};
    editor.journal_size = sizes[roof_below(4)];
    snprintf(editor.journal_message_max, VALUE_MAX, "%u",
             roof_chance(500) ? 256 * 1024 : 1024 + roof_below(20000));
}

void
editor_set_journal(int64_t size)
{
    editor.journal_size = size;
    snprintf(editor.journal_message_max, VALUE_MAX, "%u", 256 * 1024);
}

void
editor_change(const char *only)
{
    unsigned count = 0, wanted = 1 + roof_below(3);
    for (size_t i = 0; options_rows[i].key != NULL; i++)
        count++;
    if (editor.with_tls && only == NULL && roof_chance(300))
        draw_tls(roof_below(editor.domain_count));
    for (unsigned tries = 0; wanted > 0 && tries < 1000; tries++) {
        if (editor.domain_count > 0 && (only == NULL || strstr("routes", only)) &&
            roof_chance(300)) {
            draw_route(roof_below(editor.domain_count));
            wanted--;
            continue;
        }
        size_t index = roof_below(count);
        int64_t from, to;
        const struct setting *row = &options_rows[index];
        if (!range_of(row, &from, &to) || (only != NULL && !strstr(row->key, only)))
            continue;
        if (roof_chance(200))
            editor.values[index][0] = '\0';
        else
            draw_value(index);
        wanted--;
    }
}

/* The value in force of a setting of the table. */
static int64_t
value_of(const char *key, int64_t preset)
{
    for (size_t i = 0; options_rows[i].key != NULL; i++)
        if (strcmp(options_rows[i].key, key) == 0 && editor.values[i][0] != '\0')
            return strtoll(editor.values[i], NULL, 10);
    return preset;
}

static void
note_most(int64_t *most, int64_t value)
{
    if (value > *most)
        *most = value;
}

static void
note_bounds(void)
{
    struct editor_bounds *b = &editor.bounds;
    int64_t life_ms = value_of("maximal_queue_lifetime", INT64_C(5) * 24 * 3600 * 1000),
            notice_ms = value_of("delay_warning_time", 0),
            rcpts = value_of("default_destination_recipient_limit", 50);
    note_most(&b->backoff_ms, value_of("maximal_backoff_time", 4000 * 1000));
    note_most(&b->pace_ms, value_of("default_destination_rate_delay", 0) +
                               value_of("default_transport_rate_delay", 0));
    note_most(&b->sessions, value_of("delivery_session_limit", 500));
    note_most(&b->active, value_of("active_limit", 20000));
    note_most(&b->in_memory, value_of("active_recipient_limit", 40000));
    note_most(&b->clients, value_of("server_session_limit", 1000));
    note_most(&b->recipients, rcpts);
    for (unsigned i = 0; i < editor.domain_count; i++)
        if (text_starts(text_from(editor.options[i]), TEXT("?recipients=")))
            note_most(&b->recipients,
                      strtoll(strchr(editor.options[i], '=') + 1, NULL, 10));
    note_most(&b->life_most_ms, life_ms);
    note_most(&b->notice_most_ms, notice_ms > 0 ? notice_ms : INT64_MAX);
    if (life_ms < b->life_ms)
        b->life_ms = life_ms;
    if (notice_ms > 0 && notice_ms < b->notice_ms)
        b->notice_ms = notice_ms;
}

static void
note_windows(void)
{
    int64_t window = value_of("default_destination_concurrency_limit", 20);
    for (unsigned i = 0; i < editor.domain_count; i++) {
        const char *own = strstr(editor.options[i], "concurrency=");
        int64_t most = own != NULL ? strtoll(strchr(own, '=') + 1, NULL, 10) : window;
        note_most(&editor.windows[i], most > 0 ? most : INT64_MAX);
    }
}

int64_t
editor_window(unsigned domain)
{
    return editor.windows[domain];
}

static bool
write_route(struct buffer *b, unsigned index)
{
    const char *options = editor.options[index], *tls = "", *level = "", *clear = "",
               *more = "", *option = editor.option != NULL ? editor.option : "";
    char target[80];
    text_copy(target, sizeof(target), text_from(editor.targets[index]));
    if (text_starts(text_from(target), TEXT("maildir:"))) /* has no such options */
        return buffer_format(b, "  %s %s\n", editor.domains[index], target);
    if (text_starts(text_from(target), TEXT("http:"))) { /* nor those of TLS */
        bool goes_on = options[0] == '?' && strchr(target, '?') != NULL;
        return buffer_format(b, "  %s %s%s%s\n", editor.domains[index], target,
                             goes_on ? "&" : "", options + goes_on);
    }
    if (editor.logs_in[index]) /* all begin with smtp:// */
        snprintf(target, sizeof(target), "smtp://%c%u@%s",
                 editor.by_token[index] ? 't' : 'h',
                 editor.by_token[index] ? 0 : editor.users[index],
                 editor.targets[index] + sizeof("smtp://") - 1);
    if (editor.with_tls) {
        tls = options[0] != '\0' ? "&tls=" : "?tls=";
        level = tls_names[editor.tls[index]];
        if (editor.tls[index] < editor.tls_least[index])
            editor.tls_least[index] = editor.tls[index];
        if (editor.logs_in[index] && editor.tls[index] < EDITOR_TLS_ENCRYPT)
            clear = "&auth_clear=yes";
    }
    const char *quota = limits_option(index);
    char both[OPTION_MAX];
    snprintf(both, sizeof(both), "%s%s%s", option,
             option[0] != '\0' && quota[0] != '\0' ? "&" : "", quota);
    option = both;
    if (option[0] != '\0')
        more = options[0] != '\0' || tls[0] != '\0' ? "&" : "?";
    if (options[0] != '\0' || tls[0] != '\0' || quota[0] != '\0')
        roof_note("editor: %s %s%s%s%s%s%s%s", editor.domains[index], target, options,
                  tls, level, clear, more, option);
    return buffer_format(b, "  %s %s%s%s%s%s%s%s\n", editor.domains[index], target,
                         options, tls, level, clear, more, option);
}

void
editor_write(void)
{
    struct buffer b;
    buffer_init(&b, HOST_FILE_MAX);
    bool fits = buffer_format(&b,
                              "hostname = mx.roof.test\nlisten = 10.0.0.1:25%s\n"
                              "spool = " HOST_SPOOL "\ncontrol = " HOST_CONTROL
                              "\nsandbox = no\ndns_servers = 10.0.0.53\n"
                              "relay_from = 10.1.0.0/16\nmta_sts = %s\n"
                              "canary_interval = 0\nhistory_size = 1M\n"
                              "log_level = debug\njournal_size = %" PRId64
                              "\njournal_message_max = %s\nroutes =\n",
                              editor.with_tls ? ", 10.0.0.1:465?tls" : "",
                              editor.with_policies ? "yes" : "no", editor.journal_size,
                              editor.journal_message_max);
    fits =
        buffer_add(&b, text_from(editor.routes != NULL ? editor.routes : "")) && fits;
    for (unsigned i = 0; i < editor.domain_count; i++)
        fits = write_route(&b, i) && fits;
    fits = buffer_add(&b, TEXT("  * mx\n")) && fits;
    if (editor.with_tls)
        fits = buffer_format(&b, "tls_certificate = %s\ntls_ca = %s\n", SECRECY_HOST,
                             SECRECY_ANCHOR) &&
               fits;
    for (unsigned i = 0; i < editor.added_count; i++)
        fits = buffer_add(&b, text_from(editor.added[i])) && fits;
    for (size_t i = 0; options_rows[i].key != NULL && i < ROWS_MAX; i++)
        if (editor.values[i][0] != '\0') {
            fits =
                buffer_format(&b, "%s = %s\n", options_rows[i].key, editor.values[i]) &&
                fits;
            roof_note("editor: %s = %s", options_rows[i].key, editor.values[i]);
        }
    assert(fits);
    note_bounds();
    note_windows();
    host_write_settings(&host, buffer_text(&b));
    if (editor.written != NULL)
        editor.written(buffer_text(&b));
    buffer_free(&b);
}

const struct editor_bounds *
editor_bounds(void)
{
    return &editor.bounds;
}
