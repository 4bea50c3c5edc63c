/* The table of metrics: each family with its help, its labels and its writer. */
#include "admin/metrics/metrics_internal.h"

#include "base/dns/dns.h"
#include "base/loop/loop.h"
#include "base/tls/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { QUOTA_RELAYS_MAX = 16, LABELS_MAX = 1024, STATM_MAX = 200 };

typedef void metrics_row_write(const struct metrics *m, struct metrics_writer *w);

/* --- Process ------------------------------------------------------------------------ */

static void
write_build(const struct metrics *m, struct metrics_writer *w)
{
    struct buffer labels;
    (void)m;
    buffer_init(&labels, LABELS_MAX);
    if (metrics_label(&labels, "version", text_from(PETREL_VERSION)) &&
        buffer_add_byte(&labels, ',') &&
        metrics_label(&labels, "mbedtls", text_from(tls_version())) &&
        buffer_add_byte(&labels, ',') &&
        metrics_label(&labels, "cares", text_from(dns_version())) &&
        buffer_add_byte(&labels, ',') &&
        metrics_label(&labels, "libev", text_from(loop_version())) &&
        buffer_add_byte(&labels, '\0'))
        metrics_write_count(w, labels.at, 1);
    buffer_free(&labels);
}

static void
write_start(const struct metrics *m, struct metrics_writer *w)
{
    metrics_write(w, "", m->started_s);
}

static void
write_cpu(const struct metrics *m, struct metrics_writer *w)
{
    struct rusage used;
    (void)m;
    if (getrusage(RUSAGE_SELF, &used) == 0)
        metrics_write(w, "",
                      (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                          (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) /
                              1e6);
}

/* The second number, in pages. */
static void
write_memory(const struct metrics *m, struct metrics_writer *w)
{
    char line[STATM_MAX];
    struct text rest, word;
    uint64_t pages;
    int64_t size =
        m->statm < 0 ? -1 : disk_read(m->process, m->statm, 0, line, sizeof(line));
    rest = text_of(line, size > 0 ? (size_t)size : 0);
    if (text_word(&rest, " \n", &word) && text_word(&rest, " \n", &word) &&
        text_number(word, UINT32_MAX, &pages))
        metrics_write(w, "", (double)pages * (double)sysconf(_SC_PAGESIZE));
}

/* Linux 6.2 says it as the size of the directory; older systems say 0. */
static void
write_descriptors(const struct metrics *m, struct metrics_writer *w)
{
    struct disk_info info;
    if (m->descriptors >= 0 && disk_file_info(m->process, m->descriptors, &info) == 0 &&
        info.size > 0)
        metrics_write(w, "", (double)info.size);
}

static void
write_descriptor_limit(const struct metrics *m, struct metrics_writer *w)
{
    struct rlimit limit;
    (void)m;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        metrics_write(w, "", (double)limit.rlim_cur);
}

/* --- Deliveries --------------------------------------------------------------------- */

static void
write_delays(const struct metrics *m, struct metrics_writer *w)
{
    char labels[LABELS_MAX];
    for (size_t i = 0; i < METRICS_STAGES; i++) {
        snprintf(labels, sizeof(labels), "stage=\"%s\"", metrics_stages[i]);
        metrics_write_histogram(w, labels, &m->counters.delays[i], metrics_delays,
                                METRICS_DELAYS);
    }
}

/* --- Queue -------------------------------------------------------------------------- */

static void
metrics_write_age(const struct metrics *m, struct metrics_writer *w, int64_t birth_ms)
{
    int64_t now_ms = loop_now_ms(m->setup.loop);
    bool is_older = birth_ms > 0 && birth_ms < now_ms;
    metrics_write(w, "", is_older ? (double)(now_ms - birth_ms) / 1000 : 0);
}

static void
write_oldest(const struct metrics *m, struct metrics_writer *w)
{
    metrics_write_age(m, w, m->now.oldest.birth_ms);
}

static void
write_oldest_held(const struct metrics *m, struct metrics_writer *w)
{
    metrics_write_age(m, w, m->now.apart.oldest_held_ms);
}

static void
write_findings(const struct metrics *m, struct metrics_writer *w)
{
    char labels[LABELS_MAX];
    const char *code;
    if (m->setup.finding == NULL)
        return;
    for (size_t i = 0; (code = m->setup.finding(m->setup.findings, i)) != NULL; i++) {
        if (code[0] == '\0')
            continue;
        snprintf(labels, sizeof(labels), "code=\"%s\"", code);
        metrics_write_count(w, labels, 1);
    }
}

static void
write_upstreams(const struct metrics *m, struct metrics_writer *w, bool as_time)
{
    struct metrics_upstream u;
    for (size_t i = 0;
         m->setup.upstream != NULL && m->setup.upstream(m->setup.upstreams, i, &u); i++)
        if (!as_time || u.good_ms != 0)
            metrics_write_of(w, "relay", u.relay,
                             as_time ? (double)u.good_ms / 1000 : u.is_up);
}

static void
write_upstream_up(const struct metrics *m, struct metrics_writer *w)
{
    write_upstreams(m, w, false);
}

static void
write_upstream_success(const struct metrics *m, struct metrics_writer *w)
{
    write_upstreams(m, w, true);
}

struct metrics_quotas {
    struct metrics_writer *writer;
    size_t count;
};

/* The period that has most of its quota used decides. */
static void
write_quota(void *context, const struct manager_quota *quota)
{
    struct metrics_quotas *all = context;
    double most = 0;
    if (!quota->is_relay || all->count == QUOTA_RELAYS_MAX)
        return;
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++) {
        double amount = quota->quota->amounts[p];
        double ratio =
            amount > 0 ? quota_used(quota->use, p, quota->now_ms) / amount : 0;
        most = ratio > most ? ratio : most;
    }
    all->count++;
    metrics_write_of(all->writer, "relay", quota->who, most);
}

static void
write_quotas(const struct metrics *m, struct metrics_writer *w)
{
    struct metrics_quotas all = {.writer = w};
    manager_each_quota(m->setup.manager, write_quota, &all);
}

/* --- Sites -------------------------------------------------------------------------- */

static void
write_site_bounds(const struct metrics *m, struct metrics_writer *w)
{
    char labels[LABELS_MAX];
    for (int i = 0; i < SCHED_BOUNDS; i++) {
        snprintf(labels, sizeof(labels), "bound=\"%s\"",
                 sched_bound_word((enum sched_bound)i));
        metrics_write(w, labels, (double)m->bound[i]);
    }
}

static void
write_site_verdicts(struct metrics_writer *w, const char *key,
                    const uint64_t counts[METRICS_SITE_STATUSES])
{
    for (size_t i = 0; i < METRICS_SITE_STATUSES; i++) {
        struct buffer labels;
        buffer_init(&labels, LABELS_MAX);
        if (metrics_label(&labels, "site", text_from(key)) &&
            buffer_format(&labels, ",status=\"%s\"", metrics_statuses[i]) &&
            buffer_add_byte(&labels, '\0'))
            metrics_write_count(w, labels.at, counts[i]);
        buffer_free(&labels);
    }
}

static void
write_site_deliveries(const struct metrics *m, struct metrics_writer *w)
{
    for (size_t i = 0; i < m->site_count; i++)
        write_site_verdicts(w, m->sites[i].key, m->sites[i].deliveries);
    if (m->setup.sites > 0)
        write_site_verdicts(w, "other", m->other_deliveries);
}

/* sums: whether the rest has a sum. */
static void
write_sites(const struct metrics *m, struct metrics_writer *w, size_t member, bool sums)
{
    for (size_t i = 0; i < m->site_count; i++)
        metrics_write_of(
            w, "site", m->sites[i].key,
            *(const double *)(const void *)((const char *)&m->sites[i] + member));
    if (sums && m->setup.sites > 0)
        metrics_write_of(
            w, "site", "other",
            *(const double *)(const void *)((const char *)&m->others + member));
}

#define SITE_WRITER(member, sums)                                                      \
    static void write_site_##member(const struct metrics *m, struct metrics_writer *w) \
    {                                                                                  \
        write_sites(m, w, offsetof(struct metrics_site, member), sums);                \
    }
SITE_WRITER(waiting, true)
SITE_WRITER(backlogged, true)
SITE_WRITER(sessions, true)
SITE_WRITER(window, true)
SITE_WRITER(alive, false)
SITE_WRITER(rate, false)
SITE_WRITER(latency_s, false)

/* --- HTTP --------------------------------------------------------------------------- */

static void
write_requests(const struct metrics *m, struct metrics_writer *w)
{
    static const char *const paths[HTTP_PATHS] = {"page",   "api",  "metrics", "health",
                                                  "events", "mail", "other"};
    static const unsigned classes[] = {2, 4, 5};
    char labels[LABELS_MAX];
    for (size_t path = 0; m->server != NULL && path < HTTP_PATHS; path++)
        for (size_t i = 0; i < 3; i++) {
            snprintf(labels, sizeof(labels), "class=\"%u\",path=\"%s\"", classes[i],
                     paths[path]);
            metrics_write_count(
                w, labels, http_server_counts(m->server)->requests[path][classes[i]]);
        }
}

/* --- Numbers -------------------------------------------------------------------------- */

/* A member of struct metrics that is a sample as it is. */
struct metrics_number {
    const char *family, *label;
    struct member member;
    size_t
        when; /* of a bool without which there is no sample; 0: there is always one */
};
#define NUMBER_IF(family, label, member, when)                                         \
    {                                                                                  \
        family, label, MEMBER(struct metrics, member, NULL), when                      \
    }
#define NUMBER(family, label, member) NUMBER_IF(family, label, member, 0)
#define IN_GROUP(family, label, member)                                                \
    NUMBER_IF(family, label, member, offsetof(struct metrics, has_group))
#define OF_COPIES(family, label, member)                                               \
    NUMBER_IF(family, label, copies.member, offsetof(struct metrics, has_copies))

static const struct metrics_number metrics_numbers[] = {
    NUMBER("petrel_accepting", "", live.accepting),
    NUMBER("petrel_draining", "", live.draining),
    NUMBER("petrel_ready", "", live.ready),
    NUMBER("petrel_sessions_opened", "direction=\"in\"", clients.opened),
    NUMBER("petrel_sessions_opened", "direction=\"out\"", now.sched.sessions_opened),
    NUMBER("petrel_logins", "result=\"ok\"", clients.logins),
    NUMBER("petrel_logins", "result=\"failed\"", counters.denied),
    NUMBER("petrel_logins", "result=\"locked\"", counters.locked),
    NUMBER("petrel_history_bytes", "", live.history_bytes),
    NUMBER("petrel_events_pending_bytes", "", live.keeping.pending_bytes),
    NUMBER("petrel_events_lost", "", live.keeping.lost),
    NUMBER("petrel_tls_policy", "policy=\"dane\",result=\"ok\"", live.tls[0][0]),
    NUMBER("petrel_tls_policy", "policy=\"dane\",result=\"failed\"", live.tls[0][1]),
    NUMBER("petrel_tls_policy", "policy=\"sts\",result=\"ok\"", live.tls[1][0]),
    NUMBER("petrel_tls_policy", "policy=\"sts\",result=\"failed\"", live.tls[1][1]),
    NUMBER_IF("petrel_log_lines_lost", "", live.lost_lines,
              offsetof(struct metrics, live.has_log)),
    NUMBER("petrel_sites", "state=\"alive\"", alive),
    NUMBER("petrel_sites", "state=\"probing\"", probing),
    NUMBER("petrel_sites", "state=\"dead\"", dead),
    NUMBER_IF("petrel_group_bank_up", "", group.is_up,
              offsetof(struct metrics, group.has_bank)),
    IN_GROUP("petrel_group_hosts", "state=\"member\"", group.members),
    IN_GROUP("petrel_group_hosts", "state=\"lost\"", group.lost),
    IN_GROUP("petrel_group_fallback_sites", "", group.fallback_sites),
    IN_GROUP("petrel_group_asks", "result=\"answered\"", group.answered),
    IN_GROUP("petrel_group_asks", "result=\"failed\"", group.failures),
    OF_COPIES("petrel_copies_up", "", is_up),
    OF_COPIES("petrel_copies_behind", "", behind),
    OF_COPIES("petrel_copies_actions", "action=\"stored\"", stored),
    OF_COPIES("petrel_copies_actions", "action=\"removed\"", removed),
    OF_COPIES("petrel_copies_actions", "action=\"refused\"", refused),
    OF_COPIES("petrel_copies_losses", "", losses),
    OF_COPIES("petrel_copies_adopted", "", adopted),
    OF_COPIES("petrel_copies_recalled", "", recalled),
    OF_COPIES("petrel_copies_given_up", "", given_up),
    OF_COPIES("petrel_copies_unreadable", "", unreadable),
    NUMBER("petrel_config_reloads", "result=\"ok\"", reloads[0]),
    NUMBER("petrel_config_reloads", "result=\"refused\"", reloads[1]),
    NUMBER("petrel_config_reload_success", "", reload_good),
};

static void
metrics_write_numbers(const struct metrics *m, struct metrics_writer *w)
{
    size_t count = sizeof(metrics_numbers) / sizeof(metrics_numbers[0]);
    for (const struct metrics_number *n = metrics_numbers; n < metrics_numbers + count;
         n++)
        if (strcmp(n->family, w->family->name) == 0 &&
            (n->when == 0 || *(const bool *)((const char *)m + n->when)))
            metrics_write_number(w, n->label, members_number(&n->member, m));
}

/* --- The table ---------------------------------------------------------------------- */

/* The samples of a family that a table has: that of the members of
 * struct metrics, of `petrel status`, or of events. */
static void
write_members(const struct metrics *m, struct metrics_writer *w)
{
    const struct counter *c;
    if (w->family == NULL)
        return;
    metrics_write_numbers(m, w);
    for (size_t i = 0; (c = counters_at(i)) != NULL; i++)
        if (c->family != NULL && strcmp(c->family, w->family->name) == 0)
            metrics_write_number(w, c->label, members_number(&c->member, &m->now));
    metrics_counters_write(&m->counters, w);
}

/* Name, type, writer, help, labels. */
#define ROW(name, type, write, help, labels)                                           \
    {                                                                                  \
        {name, METRIC_##type, help, labels}, write                                     \
    }
static const struct metrics_row {
    struct metric_family family;
    metrics_row_write *write;
} metrics_rows[] = {
    ROW("petrel_build", INFO, write_build, "Version of Petrel and of its libraries",
        "version, mbedtls, cares, libev"),
    ROW("process_start_time_seconds", GAUGE, write_start,
        "Start of the daemon, unix time", ""),
    ROW("process_cpu_seconds", COUNTER, write_cpu, "CPU time used", ""),
    ROW("process_resident_memory_bytes", GAUGE, write_memory, "Memory in use", ""),
    ROW("process_open_fds", GAUGE, write_descriptors,
        "Open descriptors (Linux 6.2 and later)", ""),
    ROW("process_max_fds", GAUGE, write_descriptor_limit,
        "The limit of open descriptors", ""),
    ROW("petrel_accepting", GAUGE, write_members, "1 while new mail is accepted", ""),
    ROW("petrel_draining", GAUGE, write_members,
        "1 while the daemon stops or is drained", ""),
    ROW("petrel_ready", GAUGE, write_members,
        "1 while the conditions of ready_when hold", ""),
    ROW("petrel_busy_ratio", GAUGE, metrics_write_busy,
        "The greatest of the shares of time, journal, disk and sessions in use, in the "
        "mean of a minute",
        ""),
    ROW("petrel_loop_turn_seconds", HISTOGRAM, metrics_write_turns,
        "Duration of turns of the event loop, without their waits", ""),
    ROW("petrel_sessions", GAUGE, write_members,
        "Open sessions; idle ones of those out", "direction: in, out, idle"),
    ROW("petrel_sessions_opened", COUNTER, write_members, "Sessions begun",
        "direction: in, out"),
    ROW("petrel_connections_refused", COUNTER, metrics_write_refused,
        "Connections that got no session; descriptors: how often clients had to wait",
        "reason: sessions, client_sessions, rate, lockout, proxy, draining, "
        "descriptors, other"),
    ROW("petrel_messages_accepted", COUNTER, write_members, "Messages accepted or made",
        "source: smtp, lmtp, sendmail, notification, reassembled, peer"),
    ROW("petrel_recipients_accepted", COUNTER, write_members,
        "Recipients of these messages",
        "source: smtp, lmtp, sendmail, notification, reassembled, peer"),
    ROW("petrel_accepted_bytes", COUNTER, write_members, "Content of these messages",
        "source: smtp, lmtp, sendmail, notification, reassembled, peer"),
    ROW("petrel_accept_seconds", HISTOGRAM, metrics_write_accepts,
        "Time from the end of content to its 250", ""),
    ROW("petrel_refusals", COUNTER, write_members,
        "Commands and messages refused to clients",
        "class: 4, 5; reason: relay, user, size, sender, helo, rate, quota, syntax, "
        "auth, tls, disk, spool, loop, partial, content, recipients, other"),
    ROW("petrel_logins", COUNTER, write_members,
        "Logins of clients, and addresses locked out for failed ones",
        "result: ok, failed, locked"),
    ROW("petrel_deliveries", COUNTER, write_members, "Verdicts for recipients",
        "status: delivered, deferred, bounced, expired; via: smtp, lmtp, maildir, "
        "other"),
    ROW("petrel_replies", COUNTER, write_members,
        "Refusals of mail by the subject of the reply; none: there was no reply",
        "class: other, no_user, no_domain, full, too_big, auth, ptr, reputation, "
        "content, sender, login, quota, tls, form, relay, policy, none"),
    ROW("petrel_delivery_delay_seconds", HISTOGRAM, write_delays,
        "Delay of delivered mail: before it was loaded, in the active queue, until the "
        "greeting, of the transmission",
        "stage: arrival, queue, connect, transmit"),
    ROW("petrel_delivered_tls", COUNTER, write_members,
        "Recipients delivered by SMTP and LMTP",
        "tls: none, TLSv1.2, TLSv1.3; verified: yes, no"),
    ROW("petrel_notifications", COUNTER, write_members,
        "Notifications to senders and postmaster",
        "kind: failure, delay, success, postmaster"),
    ROW("petrel_queue_messages", GAUGE, write_members,
        "Messages by place, as in petrel status",
        "place: incoming, active, deferred, hold, corrupt, defrag"),
    ROW("petrel_oldest_message_seconds", GAUGE, write_oldest,
        "Age of the oldest message that is not held and awaits no fragments; 0: none",
        ""),
    ROW("petrel_oldest_held_seconds", GAUGE, write_oldest_held,
        "Age of the oldest held message; 0: none", ""),
    ROW("petrel_limit", GAUGE, write_members, "Settings that limit the use of memory",
        "name: active, active_recipients, sessions_in, sessions_out"),
    ROW("petrel_spool_free_bytes", GAUGE, write_members,
        "Free space of the spool; -1: unknown", ""),
    ROW("petrel_spool_free_inodes", GAUGE, write_members,
        "Free inodes of the spool; -1: unknown", ""),
    ROW("petrel_spool_reserve_bytes", GAUGE, write_members,
        "Space below which new mail is refused", ""),
    ROW("petrel_spool_reserve_inodes", GAUGE, write_members,
        "Inodes below which new mail is refused", ""),
    ROW("petrel_history_bytes", GAUGE, write_members, "Size of the history's files",
        ""),
    ROW("petrel_events_pending_bytes", GAUGE, write_members,
        "Events that their receiver has not taken", ""),
    ROW("petrel_events_lost", COUNTER, write_members,
        "Events that mail did not wait for, or that were more than events_max", ""),
    ROW("petrel_finding", GAUGE, write_findings,
        "1 for each finding that holds: see FINDINGS in petrel(8)", "code"),
    ROW("petrel_upstream_up", GAUGE, write_upstream_up,
        "1 unless the smarthost takes no mail: see canary_interval in petrel.conf(5)",
        "relay: host:port (16 at most)"),
    ROW("petrel_upstream_success_seconds", GAUGE, write_upstream_success,
        "The last time at which it took mail, or was found to take it, unix time",
        "relay"),
    ROW("petrel_quota_used_ratio", GAUGE, write_quotas,
        "The used part of the quota of a next hop; 1: all. With several limits the "
        "largest",
        "relay: as `petrel status --quotas` has it (16 at most)"),
    ROW("petrel_suppressed_addresses", GAUGE, write_members,
        "Addresses that are not tried again: see suppress in petrel.conf(5)", ""),
    ROW("petrel_suppression", COUNTER, write_members,
        "Addresses added by bounces and complaints; recipients refused at RCPT, and "
        "failed later, since their address is suppressed",
        "what: added, refused, failed"),
    ROW("petrel_tls_policy", COUNTER, write_members,
        "Sessions for a domain that demands TLS, by result",
        "policy: dane, sts; result: ok, failed"),
    ROW("petrel_journal_segments", GAUGE, write_members, "Segments of the journal",
        "state: free, used"),
    ROW("petrel_journal_messages", GAUGE, write_members,
        "Messages in the journal alone", ""),
    ROW("petrel_journal_full", GAUGE, write_members,
        "1 while new mail waits for the spool", ""),
    ROW("petrel_syncs", COUNTER, write_members, "Syncs of files and directories", ""),
    ROW("petrel_sync_seconds", HISTOGRAM, metrics_write_sync_times, "Time of a sync",
        ""),
    ROW("petrel_certificate_not_after_seconds", GAUGE, metrics_write_certificates,
        "The end of a certificate of ours, unix time", "name (16 at most)"),
    ROW("petrel_log_lines", COUNTER, metrics_write_lines, "Lines of the log",
        "level: error, warning, info, debug"),
    ROW("petrel_log_lines_lost", COUNTER, write_members,
        "Lines that standard error or syslog did not take", ""),
    ROW("petrel_sites", GAUGE, write_members, "Sites of next hops",
        "state: alive, probing, dead"),
    ROW("petrel_sites_bound", GAUGE, write_site_bounds,
        "Sites with mail, by their bound",
        "bound: nothing, dead, token, quota, probe, transport_rate_delay, rate_delay, "
        "rate, learnt_rate, lease_rate, lease, window, ceiling, proof, congested, "
        "pause, "
        "delivery_session_limit"),
    ROW("petrel_site_waiting", GAUGE, write_site_waiting, "Recipients in memory",
        "site"),
    ROW("petrel_site_backlogged", GAUGE, write_site_backlogged,
        "Messages on disk until the site lives or has space", "site"),
    ROW("petrel_site_sessions", GAUGE, write_site_sessions, "Open sessions", "site"),
    ROW("petrel_site_window", GAUGE, write_site_window, "Sessions that it may have now",
        "site"),
    ROW("petrel_site_alive", GAUGE, write_site_alive,
        "0 while none of its servers answers", "site (without other)"),
    ROW("petrel_site_rate_limit", GAUGE, write_site_rate,
        "Messages a second that its replies have taught; 0: none",
        "site (without other)"),
    ROW("petrel_site_latency_seconds", GAUGE, write_site_latency_s,
        "Time of a transaction", "site (without other)"),
    ROW("petrel_site_deliveries", COUNTER, write_site_deliveries,
        "Verdicts on recipients at the site, since its series began",
        "site; status: delivered, deferred, bounced"),
    ROW("petrel_copies", COUNTER, write_members, "Copies for the addresses of copy_to",
        "result: delivered, failed"),
    ROW("petrel_requiretls", COUNTER, write_members,
        "Messages accepted with REQUIRETLS; recipients that came back because no host "
        "could give such TLS",
        "result: accepted, returned"),
    ROW("petrel_fragment_sets", GAUGE, write_members,
        "Sets of fragments that are not complete", ""),
    ROW("petrel_fragment_messages", GAUGE, write_members, "Fragments that await others",
        ""),
    ROW("petrel_fragment_bytes", GAUGE, write_members, "Their size", ""),
    ROW("petrel_registry_up", GAUGE, write_members,
        "0 while the registry of fragments does not answer", ""),
    ROW("petrel_fragments", COUNTER, write_members, "Fragments by their outcome",
        "fate: waited, reassembled, absorbed, timed_out, conflict, limited, malformed, "
        "failed, redirected, returned"),
    ROW("petrel_returns", COUNTER, write_members,
        "Reports that came back, and other mail to their address",
        "kind: bounced, delayed, complained, positive, other, untagged, bad_tag, "
        "wrong_recipient"),
    ROW("petrel_group_bank_up", GAUGE, write_members,
        "0 while the Redis of the group of hosts does not answer", ""),
    ROW("petrel_group_hosts", GAUGE, write_members, "Hosts of the group",
        "state: member, lost"),
    ROW("petrel_group_fallback_sites", GAUGE, write_members,
        "Sites with shared limits that go on with this host's own part", ""),
    ROW("petrel_group_asks", COUNTER, write_members,
        "Questions to the Redis of the group", "result: answered, failed"),
    ROW("petrel_copies_up", GAUGE, write_members,
        "0 while no copies of mail can be kept in Redis", ""),
    ROW("petrel_copies_behind", GAUGE, write_members, "Messages that have no copy yet",
        ""),
    ROW("petrel_copies_actions", COUNTER, write_members,
        "Copies, and mail that was refused because there could be none",
        "action: stored, removed, refused"),
    ROW("petrel_copies_losses", COUNTER, write_members,
        "Times that the Redis of copies had lost some", ""),
    ROW("petrel_copies_adopted", COUNTER, write_members,
        "Messages of lost hosts that this one has adopted", ""),
    ROW("petrel_copies_recalled", COUNTER, write_members,
        "Messages taken back from their copies, which the disk had forgotten", ""),
    ROW("petrel_copies_given_up", COUNTER, write_members,
        "Messages that ended here because another host had adopted them", ""),
    ROW("petrel_copies_unreadable", GAUGE, write_members,
        "Copies in Redis that cannot be read, of a lost host or of this one", ""),
    ROW("petrel_http_requests", COUNTER, write_requests, "Requests to the HTTP server",
        "path: page, api, metrics, health, events, mail, other; class: 2, 4, 5"),
    ROW("petrel_config_reloads", COUNTER, write_members, "Reloads of the settings",
        "result: ok, refused"),
    ROW("petrel_config_reload_success", GAUGE, write_members,
        "0 when the last one was refused", ""),
};
#undef ROW

const struct metric_family *
metrics_family_at(size_t index)
{
    return index < sizeof(metrics_rows) / sizeof(metrics_rows[0])
               ? &metrics_rows[index].family
               : NULL;
}

void
metrics_write_all(struct metrics *m, struct metrics_writer *w)
{
    metrics_read_live(m);
    for (size_t i = 0; i < sizeof(metrics_rows) / sizeof(metrics_rows[0]); i++) {
        metrics_writer_family(w, &metrics_rows[i].family);
        metrics_rows[i].write(m, w);
    }
    metrics_writer_end(w);
}
