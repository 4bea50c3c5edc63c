/* The table of counters. */
#include "admin/view/counters.h"

#include <string.h>

/* Part, name in JSON, member; family and label of its metric. */
#define COUNTER(part, name, member, family, label)                                     \
    {                                                                                  \
        part, MEMBER(struct counters, member, name), family, label                     \
    }
#define PLAIN(part, name, member) COUNTER(part, name, member, NULL, NULL)

static const struct counter counters_rows[] = {
    PLAIN("", "version", version),
    PLAIN("", "uptime_s", uptime_s),
    PLAIN("", "accepting", health.accepting),
    PLAIN("", "reason", health.reason),
    COUNTER("", "syncs", health.syncs, "petrel_syncs", ""),
    PLAIN("spool", "path", health.path),
    PLAIN("spool", "sync", sync),
    COUNTER("spool", "bytes_free", health.bytes_free, "petrel_spool_free_bytes", ""),
    COUNTER("spool", "inodes_free", health.inodes_free, "petrel_spool_free_inodes", ""),
    COUNTER("spool", "bytes_reserve", health.bytes_reserve,
            "petrel_spool_reserve_bytes", ""),
    COUNTER("spool", "inodes_reserve", health.inodes_reserve,
            "petrel_spool_reserve_inodes", ""),
    PLAIN("journal", "segments", health.segments),
    COUNTER("journal", "free_segments", health.free_segments, "petrel_journal_segments",
            "state=\"free\""),
    COUNTER("journal", NULL, used_segments, "petrel_journal_segments",
            "state=\"used\""),
    COUNTER("journal", "messages", health.journaled, "petrel_journal_messages", ""),
    PLAIN("journal", "batches", health.batches),
    COUNTER("journal", "full", health.journal_full, "petrel_journal_full", ""),
    PLAIN("journal", "damages", health.damages),
#define PLACE(name, member)                                                            \
    COUNTER("queue", name, member, "petrel_queue_messages", "place=\"" name "\"")
    PLACE("incoming", places.incoming),
    PLACE("active", places.active),
    PLACE("deferred", places.deferred),
    PLACE("hold", apart.held),
    PLACE("corrupt", apart.quarantined),
    PLACE("defrag", places.defrag),
    PLAIN("", "oldest_ms", oldest.birth_ms),
    PLAIN("", "active_recipients", sched.recipients),
    COUNTER("fragments", "sets", fragments.sets, "petrel_fragment_sets", ""),
    COUNTER("fragments", "messages", fragments.messages, "petrel_fragment_messages",
            ""),
    COUNTER("fragments", "bytes", fragments.bytes, "petrel_fragment_bytes", ""),
    PLAIN("fragments", "oldest_ms", fragments.oldest_ms),
#define FATE(name, member, fate)                                                       \
    COUNTER("fragments", name, fragments.member, "petrel_fragments",                   \
            "fate=\"" fate "\"")
    FATE("waited", waited, "waited"),
    FATE("reassembled", reassembled, "reassembled"),
    FATE("absorbed", absorbed, "absorbed"),
    FATE("timed_out", timed_out, "timed_out"),
    FATE("conflicts", conflicts, "conflict"),
    FATE("limited", limited, "limited"),
    FATE("malformed", malformed, "malformed"),
    FATE("failed", failed, "failed"),
    FATE("redirected", redirected, "redirected"),
    FATE("returned", returned, "returned"),
    PLAIN("fragments", "alone", fragments.alone),
    PLAIN("fragments", "namesakes", fragments.namesakes),
    PLAIN("fragments", "registry", registry),
    COUNTER("fragments", NULL, registry_up, "petrel_registry_up", ""),
#define RETURNED(name, member, word)                                                   \
    COUNTER("returns", name, returns.member, "petrel_returns", "kind=\"" word "\"")
    RETURNED("bounced", bounced, "bounced"),
    RETURNED("delayed", delayed, "delayed"),
    RETURNED("complained", complained, "complained"),
    RETURNED("positive", positive, "positive"),
    RETURNED("others", others, "other"),
    RETURNED("untagged", forged[MANAGER_FORGED_UNTAGGED], "untagged"),
    RETURNED("bad_tag", forged[MANAGER_FORGED_TAG], "bad_tag"),
    RETURNED("wrong_recipient", forged[MANAGER_FORGED_RECIPIENT], "wrong_recipient"),
    PLAIN("suppression", "on", suppresses),
    COUNTER("suppression", "addresses", suppression.entries,
            "petrel_suppressed_addresses", ""),
    PLAIN("suppression", "memory", suppression.memory),
    PLAIN("suppression", "full", suppression.is_full),
    COUNTER("suppression", "added", suppression.added, "petrel_suppression",
            "what=\"added\""),
    COUNTER("suppression", "refused", suppression.refused, "petrel_suppression",
            "what=\"refused\""),
    COUNTER("suppression", "failed", suppression.failed, "petrel_suppression",
            "what=\"failed\""),
    COUNTER("sessions", "in", sessions_in, "petrel_sessions", "direction=\"in\""),
    COUNTER("sessions", "out", sched.sessions, "petrel_sessions", "direction=\"out\""),
    COUNTER("sessions", "idle", sched.idle, "petrel_sessions", "direction=\"idle\""),
    PLAIN("sessions", "busy", sites.busy),
    PLAIN("sessions", "stress", is_stressed),
    PLAIN("totals", "stored", health.stored),
    PLAIN("totals", "ended", health.retired),
    PLAIN("totals", "quarantined", health.quarantined),
    COUNTER("totals", "copied", copied.delivered, "petrel_copies",
            "result=\"delivered\""),
    COUNTER("totals", "copies_failed", copied.failed, "petrel_copies",
            "result=\"failed\""),
    COUNTER("totals", NULL, required.accepted, "petrel_requiretls",
            "result=\"accepted\""),
    COUNTER("totals", NULL, required.returned, "petrel_requiretls",
            "result=\"returned\""),
#define LIMIT(name, member, word)                                                      \
    COUNTER("limits", name, member, "petrel_limit", "name=\"" word "\"")
    LIMIT("active_limit", sched.active_limit, "active"),
    LIMIT("active_recipient_limit", sched.recipient_limit, "active_recipients"),
    LIMIT(NULL, sessions_in_limit, "sessions_in"),
    LIMIT("delivery_session_limit", sched.session_limit, "sessions_out"),
    PLAIN("site_totals", "sites", sites.sites),
    PLAIN("site_totals", "dead", sched.dead),
    PLAIN("site_totals", "destinations", sched.destinations),
    PLAIN("site_totals", "waiting", sites.waiting),
    PLAIN("site_totals", "backlogged", sites.backlogged),
};
enum { COUNTERS = sizeof(counters_rows) / sizeof(counters_rows[0]) };

const struct counter *
counters_at(size_t index)
{
    return index < COUNTERS ? &counters_rows[index] : NULL;
}

void
counters_read(struct manager *m, struct counters *out)
{
    struct manager_fragments *f = &out->fragments;
    *out = (struct counters){.version = PETREL_VERSION,
                             .health = queue_health(manager_queue(m)),
                             .apart = queue_count_apart(manager_queue(m)),
                             .sched = sched_count(manager_sched(m)),
                             .places = manager_count(m),
                             .copied = manager_copied(m),
                             .required = manager_required(m)};
    out->returns = *manager_returns(m);
    (void)manager_fragments(m, f);
    out->suppresses = manager_suppression(m) != NULL;
    if (out->suppresses)
        out->suppression = suppression_count(manager_suppression(m));
    manager_find_oldest(m, &out->oldest);
    out->sync = out->health.sync_blocks ? "blocking" : "aio";
    out->used_segments = out->health.segments - out->health.free_segments;
    out->registry_up = !f->is_shared || !f->is_down;
    out->registry = !f->is_shared ? "local" : f->is_down ? "down" : "up";
}

void
counters_put(json_t *status, const struct counters *c)
{
    for (size_t i = 0; i < COUNTERS; i++) {
        const struct counter *row = &counters_rows[i];
        json_t *part =
            row->part[0] != '\0' ? json_object_get(status, row->part) : status;
        if (part == NULL)
            json_object_set_new(status, row->part, part = json_object());
        if (row->member.name != NULL)
            members_put(part, &row->member, 1, c);
    }
}

json_t *
counters_part(const char *part, const struct counters *c)
{
    json_t *object = json_object();
    for (size_t i = 0; i < COUNTERS; i++)
        if (strcmp(counters_rows[i].part, part) == 0 &&
            counters_rows[i].member.name != NULL)
            members_put(object, &counters_rows[i].member, 1, c);
    return object;
}
