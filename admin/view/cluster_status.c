/* Puts the summaries of all hosts together. */
#include "admin/view/cluster_status.h"

#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "admin/view/words.h"
#include "admin/settings/complaint.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    SITES_MAX = 1000, /* different ones */
    SITES_SHOWN = 20,
    NAMES_SHOWN = 4,
    WHO_SHOWN = 3 /* hosts with most mail for a site */
};

/* A host may send any number: the sums of all hosts stay far from overflow. */
static const int64_t number_max = INT64_C(1000000000000000);

static int64_t
cluster_status_number(const json_t *object, const char *key)
{
    int64_t number = json_field_number(object, key);
    return number < 0 ? 0 : number > number_max ? number_max : number;
}

/* --- Settings ------------------------------------------------------------------------ */

/* all: NAME -> DIGEST -> [HOST, ...] */
static void
cluster_status_add_settings(json_t *all, const char *host, const json_t *settings)
{
    const char *name;
    json_t *digest;
    json_object_foreach((json_t *)(uintptr_t)settings, name, digest)
    {
        const char *value = json_string_value(digest);
        json_t *by_digest = json_object_get(all, name);
        if (value == NULL)
            continue;
        if (by_digest == NULL)
            json_object_set_new(all, name, by_digest = json_object());
        json_t *hosts = json_object_get(by_digest, value);
        if (hosts == NULL)
            json_object_set_new(by_digest, value, hosts = json_array());
        json_array_append_new(hosts, json_string(host));
    }
}

static json_t *
cluster_status_differing(const json_t *hosts)
{
    json_t *all = json_object(), *differing = json_object(), *by_digest;
    const json_t *host;
    const char *name;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host)
        cluster_status_add_settings(all, json_field_string(host, "host"),
                                    json_object_get(host, "settings"));
    json_object_foreach(all, name, by_digest)
    {
        if (json_object_size(by_digest) > 1)
            json_object_set(differing, name, by_digest);
    }
    json_decref(all);
    return differing;
}

/* --- Sites ---------------------------------------------------------------------------- */

static void
cluster_status_sum(json_t *to, const char *key, int64_t more)
{
    json_object_set_new(to, key, json_integer(cluster_status_number(to, key) + more));
}

static void
cluster_status_most(json_t *to, const char *key, int64_t value)
{
    if (value > cluster_status_number(to, key) || json_object_get(to, key) == NULL)
        json_object_set_new(to, key, json_integer(value));
}

static void
cluster_status_add_site(json_t *all, const char *host, const json_t *site)
{
    const char *name = json_field_string(site, "site");
    int64_t waiting = cluster_status_number(site, "waiting");
    json_t *sum = json_object_get(all, name);
    if (sum == NULL && json_object_size(all) == SITES_MAX)
        return;
    if (sum == NULL) {
        sum = json_pack("{s:s,s:[]}", "site", name, "hosts");
        json_object_set_new(all, name, sum);
    }
    cluster_status_most(sum, "limit", cluster_status_number(site, "limit"));
    cluster_status_most(sum, "shared_tokens",
                        cluster_status_number(site, "shared_tokens"));
    cluster_status_sum(sum, "tokens", cluster_status_number(site, "lease_tokens"));
    cluster_status_sum(sum, "granted", cluster_status_number(site, "lease_sessions"));
    cluster_status_sum(sum, "sessions", cluster_status_number(site, "sessions"));
    cluster_status_sum(sum, "busy", cluster_status_number(site, "busy"));
    cluster_status_sum(sum, "waiting", waiting);
    cluster_status_sum(sum, "backlogged", cluster_status_number(site, "backlogged"));
    if (waiting > 0)
        json_array_append_new(
            json_object_get(sum, "hosts"),
            json_pack("{s:s,s:I}", "host", host, "waiting", (json_int_t)waiting));
}

static int64_t
cluster_status_mail(const json_t *site)
{
    return cluster_status_number(site, "waiting") +
           cluster_status_number(site, "backlogged");
}

/* Most mail first. */
static int
cluster_status_compare(const json_t *a, const json_t *b)
{
    int64_t left = cluster_status_mail(a), right = cluster_status_mail(b);
    if (left != right)
        return left > right ? -1 : 1;
    return strcmp(json_field_string(a, "site"), json_field_string(b, "site"));
}

static json_t *
cluster_status_sites(const json_t *hosts)
{
    json_t *all = json_object(), *list = json_array(), *sum;
    const json_t *host, *site;
    const char *name;
    size_t i, k;
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host)
        json_array_foreach (json_object_get(host, "sites"), k, site)
            cluster_status_add_site(all, json_field_string(host, "host"), site);
    json_object_foreach(all, name, sum) json_array_append(list, sum);
    json_t *sorted = json_field_sort(list, cluster_status_compare);
    json_decref(list);
    json_decref(all);
    return sorted;
}

static json_t *
cluster_status_make(const json_t *hosts)
{
    return json_pack("{s:O,s:o,s:o}", "hosts", hosts, "differing",
                     cluster_status_differing(hosts), "sites",
                     cluster_status_sites(hosts));
}

/* --- Hosts ----------------------------------------------------------------------------- */

static bool
cluster_status_is_silent(const json_t *host)
{
    return json_object_get(host, "trouble") != NULL;
}

static void
cluster_status_print_host(const json_t *host, int width, int64_t now_ms)
{
    const json_t *busy = json_object_get(host, "busy");
    char share[24] = "-";
    if (json_is_number(busy))
        snprintf(share, sizeof(share), "%.0f %%", 100 * json_number_value(busy));
    printf("%-*s  ", width, json_field_string(host, "host"));
    if (cluster_status_is_silent(host)) {
        words_print("{trouble}\n", host, now_ms);
        return;
    }
    words_print("{state%-8} {version%-9} {uptime_s@span_s%-11} {#waiting%9}  "
                "[oldest_ms:{oldest_ms@age%-11}|-          ] {#sessions.in%5} "
                "{#sessions.out%5} ",
                host, now_ms);
    printf("%6s  ", share);
    words_print("[accepting:yes|no: {reason}]\n", host, now_ms);
}

static void
cluster_status_print_hosts(const json_t *hosts, int64_t now_ms)
{
    const json_t *host;
    int width = 4;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host) {
        int length = (int)json_string_length(json_object_get(host, "host"));
        width = length > width ? length : width;
    }
    printf("%-*s  %-8s %-9s %-11s %9s  %-11s %5s %5s %6s  %s\n", width, "HOST", "STATE",
           "VERSION", "UP", "WAITING", "OLDEST", "IN", "OUT", "BUSY", "ACCEPTING");
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host)
        cluster_status_print_host(host, width, now_ms);
}

static void
cluster_status_print_group(const json_t *hosts)
{
    size_t silent = 0, i;
    const json_t *host, *seen = NULL;
    json_int_t waiting = 0;
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host) {
        silent += cluster_status_is_silent(host);
        waiting += cluster_status_number(host, "waiting");
        if (seen == NULL)
            seen = json_object_get(host, "group");
    }
    printf("group      %s: %zu hosts, %zu without an answer; messages waiting: "
           "%" JSON_INTEGER_FORMAT "\n",
           json_field_string(seen, "name"), json_array_size(hosts), silent, waiting);
    words_print_all(
        "[state=lost:warning    {name} is lost: its part of the limits is kept "
        "for ten minutes; `petrel cluster forget {name}` frees it\n]",
        json_object_get(seen, "hosts"), 0);
}

/* --- Trouble, and Redis ------------------------------------------------------------------ */

static void
cluster_status_print_names(const json_t *names)
{
    size_t i, count = json_array_size(names);
    const json_t *name;
    if (count > NAMES_SHOWN) {
        printf("%zu hosts", count);
        return;
    }
    json_array_foreach ((json_t *)(uintptr_t)names, i, name)
        printf("%s%s", i > 0 ? ", " : "", json_string_value(name));
}

static void
cluster_status_print_differing(const json_t *differing)
{
    const char *name, *digest;
    json_t *by_digest, *hosts;
    json_object_foreach((json_t *)(uintptr_t)differing, name, by_digest)
    {
        const char *between = "";
        printf("warning    %s differs: ", name);
        json_object_foreach(by_digest, digest, hosts)
        {
            fputs(between, stdout);
            cluster_status_print_names(hosts);
            printf(" (%s)", digest);
            between = "; ";
        }
        putchar('\n');
    }
}

static void
cluster_status_print_bank(const json_t *hosts)
{
    const json_t *host;
    size_t i, up = 0, away = 0;
    int64_t asks = 0, failures = 0;
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host) {
        const json_t *group = json_object_get(host, "group");
        up += strcmp(json_field_string(group, "bank"), "up") == 0;
        away += strcmp(json_field_string(group, "bank"), "away") == 0;
        asks += cluster_status_number(group, "asks");
        failures += cluster_status_number(group, "failures");
        words_print(
            "[group.bank=away:warning    redis is away at {host} for "
            "{group.away_ms@span}: {group.why}; {#group.fallback_sites} sites at "
            "its own part\n]",
            host, 0);
    }
    if (up + away == 0)
        puts("redis      none: each host has its own part");
    else
        printf("redis      up at %zu of %zu hosts; asks %" PRId64
               ", without an answer %" PRId64 "\n",
               up, up + away, asks, failures);
}

/* --- Sites in words --------------------------------------------------------------------- */

static int
cluster_status_compare_waiting(const json_t *a, const json_t *b)
{
    int64_t left = cluster_status_number(a, "waiting"),
            right = cluster_status_number(b, "waiting");
    return (left < right) - (left > right);
}

static void
cluster_status_print_who(const json_t *hosts)
{
    json_t *sorted = json_field_sort(hosts, cluster_status_compare_waiting), *host;
    size_t count = json_array_size(sorted), i;
    json_array_foreach (sorted, i, host) {
        if (i == WHO_SHOWN)
            break;
        fputs(i > 0 ? ", " : "  ", stdout);
        words_print("{host} {#waiting}", host, 0);
    }
    if (count > WHO_SHOWN)
        printf(" and %zu more", count - WHO_SHOWN);
    json_decref(sorted);
}

static void
cluster_status_print_site(const json_t *site)
{
    char rate[48] = "-", sessions[48];
    int64_t limit = cluster_status_number(site, "limit"),
            granted = cluster_status_number(site, "granted");
    if (cluster_status_number(site, "shared_tokens") > 0)
        snprintf(rate, sizeof(rate), "%" PRId64 "/%" PRId64,
                 cluster_status_number(site, "tokens"),
                 cluster_status_number(site, "shared_tokens"));
    snprintf(sessions, sizeof(sessions),
             limit > 0 ? "%" PRId64 "/%" PRId64 : "%" PRId64, granted, limit);
    printf("%-34s %9s", json_field_string(site, "site"), sessions);
    words_print(" {#sessions%5} {#busy%5} ", site, 0);
    printf("%9s", rate);
    words_print(" {#waiting%8} {#backlogged%8}", site, 0);
    cluster_status_print_who(json_object_get(site, "hosts"));
    putchar('\n');
}

static void
cluster_status_print_sites(const json_t *sites)
{
    const json_t *site;
    size_t i;
    if (json_array_size(sites) == 0)
        return;
    printf("\n%-34s %9s %5s %5s %9s %8s %8s  %s\n", "SHARED SITE", "GRANTED", "OPEN",
           "BUSY", "IN 5 S", "WAITING", "BACKLOG", "WHO WAITS");
    json_array_foreach ((json_t *)(uintptr_t)sites, i, site)
        if (i < SITES_SHOWN)
            cluster_status_print_site(site);
    if (i > SITES_SHOWN)
        printf("  and %zu more (--json has them)\n", i - SITES_SHOWN);
}

static void
cluster_status_print(const json_t *status, int64_t now_ms)
{
    const json_t *hosts = json_object_get(status, "hosts");
    cluster_status_print_group(hosts);
    cluster_status_print_differing(json_object_get(status, "differing"));
    cluster_status_print_bank(hosts);
    putchar('\n');
    cluster_status_print_hosts(hosts, now_ms);
    cluster_status_print_sites(json_object_get(status, "sites"));
}

/* --- The command ------------------------------------------------------------------------- */

/* By name, those without an answer last: as they answer, they are in no order. */
static int
cluster_status_compare_host(const json_t *a, const json_t *b)
{
    int left = cluster_status_is_silent(a), right = cluster_status_is_silent(b);
    if (left != right)
        return left - right;
    return strcmp(json_field_string(a, "host"), json_field_string(b, "host"));
}

/* The lines of all hosts. NULL: there is no answer, which was said; code is set. */
static json_t *
cluster_status_ask(struct control_client *daemon, int *code)
{
    json_t *hosts = json_array();
    json_t *line = control_client_question(
        daemon, json_pack("{s:s,s:b}", "command", "status", "cluster", true));
    while (line != NULL && !json_field_is_true(line, "end") &&
           json_object_get(line, "error") == NULL) {
        if (json_object_get(line, "seen") == NULL)
            json_array_append(hosts, line);
        json_decref(line);
        line = control_client_next(daemon);
    }
    if (json_field_is_true(line, "end")) {
        json_decref(line);
        json_t *sorted = json_field_sort(hosts, cluster_status_compare_host);
        json_decref(hosts);
        return sorted;
    }
    *code = complaint_say("petrel status", line != NULL ? EX_CONFIG : EX_UNAVAILABLE,
                          line != NULL ? json_field_string(line, "error")
                                       : control_client_trouble(daemon),
                          "");
    json_decref(line);
    json_decref(hosts);
    return NULL;
}

static int
cluster_status_code(const json_t *hosts)
{
    const json_t *host;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host)
        if (cluster_status_is_silent(host) || !json_field_is_true(host, "accepting"))
            return EX_TEMPFAIL;
    return 0;
}

static int
cluster_status_show(const json_t *hosts, bool json, int64_t now_ms)
{
    json_t *status = cluster_status_make(hosts);
    if (json)
        json_field_print(status);
    else
        cluster_status_print(status, now_ms);
    json_decref(status);
    return fflush(stdout) != 0 ? EX_IOERR : cluster_status_code(hosts);
}

int
cluster_status_command(bool json, const struct options *options)
{
    int code = EX_UNAVAILABLE;
    struct loop *loop = loop_new();
    struct control_client *daemon =
        control_client_reach(loop, options->control, "petrel status", &code);
    json_t *hosts = daemon != NULL ? cluster_status_ask(daemon, &code) : NULL;
    if (hosts != NULL)
        code = cluster_status_show(hosts, json, loop_now_ms(loop));
    json_decref(hosts);
    control_client_free(&daemon);
    loop_free(&loop);
    return code;
}
