/* Explains why a message waits: the daemon's part, and the lines for people. */
#include "admin/control/why.h"

#include "admin/control/doing.h"
#include "admin/control/json_field.h"
#include "admin/control/site_view.h"
#include "admin/control/listing.h"
#include "admin/control/format_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HOPS_MAX = 100, SESSIONS_MAX = 10, RECIPIENTS_SHOWN = 20, SENTENCE_MAX = 4096 };

/* --- Output ----------------------------------------------------------------------- */

struct telling {
    struct manager *manager;
    struct id id;
    json_t *hops;
    size_t more;
    int64_t expires_ms;
};

struct sessions {
    json_t *told;
    size_t more;
};

/* Sessions that carry the message come first. */
static void
add_session(void *context, const struct activity *a)
{
    struct sessions *s = context;
    size_t count = json_array_size(s->told);
    if (count == SESSIONS_MAX)
        s->more++;
    if (count == SESSIONS_MAX && !a->has_message)
        return;
    if (count == SESSIONS_MAX)
        json_array_remove(s->told, count - 1);
    json_array_insert_new(s->told, a->has_message ? 0 : json_array_size(s->told),
                          doing_make(a));
}

static void
add_sessions(const struct telling *t, const struct sched_site *site, json_t *hop)
{
    struct sessions s = {.told = json_array()};
    manager_activities(t->manager, site, t->id, add_session, &s);
    json_object_set_new(hop, "sessions", s.told);
    json_object_set_new(hop, "sessions_more", json_integer((json_int_t)s.more));
}

static void
add_hop(void *context, const struct manager_wait *w)
{
    struct telling *t = context;
    if (w->expires_ms < t->expires_ms)
        t->expires_ms = w->expires_ms;
    if (json_array_size(t->hops) == HOPS_MAX) {
        t->more++;
        return;
    }
    json_t *hop =
        json_pack("{s:o,s:i,s:i,s:i,s:i,s:I}", "destination",
                  listing_text(text_from(w->destination)), "open", (int)w->open,
                  "waiting", (int)w->waiting, "taken", (int)w->taken, "deferred",
                  (int)w->deferred, "expires_ms", (json_int_t)w->expires_ms);
    if (w->site) {
        json_object_set_new(hop, "site", site_view_make(w->site));
        add_sessions(t, w->site, hop);
    }
    json_array_append_new(t->hops, hop);
}

static void
add_hops(json_t *answer, struct manager *m, struct id id)
{
    struct telling t = {
        .manager = m, .id = id, .hops = json_array(), .expires_ms = INT64_MAX};
    const struct envelope *active = manager_active(m, id);
    struct envelope *loaded = active || !manager_handles(m, id)
                                  ? NULL
                                  : queue_load_envelope(manager_queue(m), id);
    if (active || loaded)
        manager_explain(m, active ? active : loaded, add_hop, &t);
    envelope_free(&loaded);
    json_object_set_new(answer, "hops", t.hops);
    json_object_set_new(answer, "hops_more", json_integer((json_int_t)t.more));
    if (t.expires_ms < INT64_MAX)
        json_object_set_new(answer, "expires_ms", json_integer(t.expires_ms));
}

void
why_add(json_t *answer, struct manager *m, struct id id)
{
    struct sched *s = manager_sched(m);
    struct sched_state state = sched_find(s, id);
    struct sched_counts counts = sched_count(s);
    json_t *told = json_pack(
        "{s:b,s:b,s:b,s:b,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "draining",
        manager_is_draining(m), "loading", state.loading, "backlogged",
        state.backlogged, "excess", state.excess, "lacks_room", state.lacks_room,
        "ahead", (json_int_t)sched_ahead(s, id), "active", (json_int_t)counts.active,
        "active_limit", (json_int_t)counts.active_limit, "active_recipients",
        (json_int_t)counts.recipients, "active_recipient_limit",
        (json_int_t)counts.recipient_limit, "sessions",
        (json_int_t)(counts.sessions - counts.idle), "delivery_session_limit",
        (json_int_t)counts.session_limit);
    json_object_update(answer, told);
    json_decref(told);
    add_hops(answer, m, id);
}

/* --- In words --------------------------------------------------------------------- */

static bool
is_at(const json_t *listing, const char *place)
{
    return strcmp(json_field_string(listing, "queue_name"), place) == 0;
}

static const char *
place_words(const json_t *listing, const json_t *why)
{
    if (is_at(listing, "hold"))
        return "not delivered, not retried and never expiring until it is released";
    if (is_at(listing, "maildrop"))
        return "submitted by sendmail, not yet taken up by the daemon";
    if (is_at(listing, "incoming"))
        return "new, on disk, without an attempt";
    if (is_at(listing, "defrag"))
        return "a fragment that waits for the others";
    if (is_at(listing, "active"))
        return json_field_is_true(why, "loading") ? "being read from the disk"
                                                  : "in memory, being tried";
    return "on disk until its next attempt";
}

static void
print_head(const json_t *listing, const json_t *why, int64_t now_ms)
{
    char at[FORMAT_TIME_MAX];
    printf("id:       %s\nqueue:    %s: %s\nfrom:     <%s>\n",
           json_field_string(listing, "queue_id"),
           json_field_string(listing, "queue_name"), place_words(listing, why),
           json_field_string(listing, "sender"));
    printf("arrived:  %s\n",
           format_time_since(json_field_number(listing, "arrival_time") * 1000, now_ms,
                             at));
    printf("attempts: %" PRId64 " so far%s\n", json_field_number(listing, "attempts"),
           json_field_is_true(listing, "sender_warned")
               ? "; the sender was notified of the delay"
               : "");
}

static bool
has_reason(const json_t *listing)
{
    size_t index;
    json_t *item;
    json_array_foreach (json_object_get(listing, "recipients"), index, item)
        if (json_field_string(item, "delay_reason")[0])
            return true;
    return false;
}

/* Facts that only the disk has. */
static void
print_due(const json_t *listing, int64_t now_ms)
{
    char at[FORMAT_TIME_MAX];
    int64_t due_ms = json_field_number(listing, "due_time") * 1000;
    if (is_at(listing, "deferred"))
        printf("next:     %s\n", format_time_until(due_ms, now_ms, at));
    printf("because:  no daemon runs; nothing is delivered until it is started%s\n",
           has_reason(listing) ? "; the reasons below are those of its last run" : "");
}

static void
print_turn(const json_t *why)
{
    int64_t active = json_field_number(why, "active"),
            limit = json_field_number(why, "active_limit");
    if (active >= limit)
        printf("because:  the active set is full: %" PRId64 " of %" PRId64
               " messages (active_limit)",
               active, limit);
    else if (json_field_is_true(why, "lacks_room"))
        printf(
            "because:  the active set has no room for its recipients: it has %" PRId64
            " of %" PRId64 " (active_recipient_limit)",
            json_field_number(why, "active_recipients"),
            json_field_number(why, "active_recipient_limit"));
    else
        printf("because:  it is due, and is read from the disk in its turn");
    printf("; messages before it: %" PRId64 "\n", json_field_number(why, "ahead"));
}

/* A message that is not in memory. */
static void
print_waiting(const json_t *why, int64_t now_ms)
{
    char at[FORMAT_TIME_MAX];
    int64_t due_ms = json_field_number(why, "due_ms");
    if (json_field_is_true(why, "excess")) {
        puts("because:  backlogged: its site has more than its share of the active set "
             "(site_active_share); it returns when the site has less");
        return;
    }
    if (strcmp(json_field_string(why, "place"), "defrag") == 0) {
        puts("because:  other fragments of its message have not arrived; the missing "
             "ones and the time limit are below");
        return;
    }
    if (due_ms <= now_ms) {
        print_turn(why);
        return;
    }
    printf("because:  the next attempt is at %s%s\n",
           format_time_until(due_ms, now_ms, at),
           json_field_is_true(why, "backlogged")
               ? ", or as soon as its site works again"
               : "");
}

static void
print_sharers(const json_t *site, const char *destination)
{
    const json_t *domains = json_object_get(site, "domains");
    int64_t all = json_field_number(site, "destinations");
    size_t index;
    json_t *domain;
    if (all <= 1 && strcmp(json_field_string(site, "site"), destination) == 0)
        return;
    printf("site:     %s, shared by ", json_field_string(site, "site"));
    json_array_foreach (domains, index, domain)
        printf("%s%s", index > 0 ? ", " : "", json_string_value(domain));
    if (all > (int64_t)json_array_size(domains))
        printf(" and %" PRId64 " more", all - (int64_t)json_array_size(domains));
    putchar('\n');
}

static void
print_bound(const char *label, const json_t *site, const json_t *why, int64_t now_ms)
{
    struct buffer sentence;
    buffer_init(&sentence, SENTENCE_MAX);
    site_view_explain(site, json_field_number(why, "delivery_session_limit"), now_ms,
                      &sentence);
    printf("%-9s %.*s\n", label, TEXT_ARGS(buffer_text(&sentence)));
    buffer_free(&sentence);
}

static void
print_sessions(const json_t *hop, int64_t now_ms)
{
    size_t index;
    json_t *session;
    struct buffer words;
    buffer_init(&words, SENTENCE_MAX);
    json_array_foreach (json_object_get(hop, "sessions"), index, session) {
        buffer_clear(&words);
        doing_explain(session, now_ms, &words);
        printf("session:  %.*s\n", TEXT_ARGS(buffer_text(&words)));
    }
    buffer_free(&words);
    if (json_field_number(hop, "sessions_more") > 0)
        printf("          and %" PRId64 " more\n",
               json_field_number(hop, "sessions_more"));
}

static void
print_counts(const json_t *hop, bool is_active)
{
    int64_t waiting = json_field_number(hop, "waiting"),
            taken = json_field_number(hop, "taken"),
            deferred = json_field_number(hop, "deferred");
    printf("next hop: %s: recipients: %" PRId64, json_field_string(hop, "destination"),
           json_field_number(hop, "open"));
    if (is_active)
        printf(" (%" PRId64 " waiting, %" PRId64 " being delivered, %" PRId64
               " deferred)",
               waiting, taken, deferred);
    putchar('\n');
}

static void
print_hop(const json_t *hop, const json_t *why, bool is_active, int64_t now_ms)
{
    const json_t *site = json_object_get(hop, "site");
    int64_t backlogged = json_field_number(site, "backlogged");
    bool drains = json_field_is_true(why, "draining"); /* print_place() */
    print_counts(hop, is_active);
    if (site == NULL)
        return;
    print_sharers(site, json_field_string(hop, "destination"));
    if (is_active && !drains && json_field_number(hop, "waiting") > 0)
        print_bound("because:", site, why, now_ms);
    else if (is_active && json_field_number(hop, "taken") > 0)
        puts("because:  nothing holds it back; it is being delivered");
    else if (strcmp(json_field_string(site, "bound"), "nothing") != 0)
        print_bound("site now:", site, why, now_ms);
    print_sessions(hop, now_ms);
    if (backlogged > 0)
        printf("backlog:  messages that wait on disk for that site: %" PRId64 "\n",
               backlogged);
}

static void
print_hops(const json_t *listing, const json_t *why, int64_t now_ms)
{
    size_t index;
    json_t *hop;
    json_array_foreach (json_object_get(why, "hops"), index, hop)
        print_hop(hop, why, is_at(listing, "active"), now_ms);
    if (json_field_number(why, "hops_more") > 0)
        printf("          and %" PRId64 " next hops more\n",
               json_field_number(why, "hops_more"));
}

static void
print_recipients(const json_t *listing)
{
    size_t index;
    unsigned open = 0;
    json_t *item;
    json_array_foreach (json_object_get(listing, "recipients"), index, item) {
        if (json_field_is_true(item, "done") || open++ >= RECIPIENTS_SHOWN)
            continue;
        printf("to:       <%s>", json_field_string(item, "address"));
        if (json_field_string(item, "delay_reason")[0])
            printf(" %s", json_field_string(item, "delay_reason"));
        putchar('\n');
        if (json_field_string(item, "hint")[0])
            printf("hint:     %s\n", json_field_string(item, "hint"));
    }
    if (open > RECIPIENTS_SHOWN)
        printf("          and %u recipients more\n", open - RECIPIENTS_SHOWN);
}

static void
print_held(const json_t *listing, int64_t now_ms)
{
    char at[FORMAT_TIME_MAX];
    const char *reason = json_field_string(listing, "reason");
    printf("because:  %s", reason[0] ? reason : "it is held");
    if (json_field_number(listing, "since") > 0)
        printf(", %s", format_time_since(json_field_number(listing, "since") * 1000,
                                         now_ms, at));
    putchar('\n');
}

static void
print_end(const json_t *listing, const json_t *why, int64_t now_ms)
{
    char at[FORMAT_TIME_MAX];
    const char *sender = json_field_string(listing, "sender");
    if (json_object_get(why, "expires_ms") == NULL)
        return;
    printf("expires:  %s",
           format_time_until(json_field_number(why, "expires_ms"), now_ms, at));
    if (sender[0])
        printf(": open recipients then fail, and <%s> is notified\n", sender);
    else
        puts(": open recipients then fail; there is no sender to notify");
}

static void
print_place(const json_t *listing, const json_t *why, int64_t now_ms)
{
    bool drains = json_field_is_true(why, "draining");
    bool is_due = json_field_number(why, "due_ms") <= now_ms;
    if (drains)
        puts("because:  no delivery begins: the daemon is out of service (`petrel "
             "drain --cancel` ends that), or stops");
    if (!is_at(listing, "active") && !(drains && is_due))
        print_waiting(why, now_ms);
}

void
why_print_now(const json_t *listing, int64_t now_ms)
{
    const json_t *why = json_object_get(listing, "why");
    if (is_at(listing, "hold")) {
        print_held(listing, now_ms);
    } else if (why == NULL) {
        print_due(listing, now_ms);
    } else {
        if (strcmp(json_field_string(why, "place"), "unknown") == 0)
            puts("because:  the daemon that answers does not have it: it is another "
                 "slice's, or has not been reached since startup");
        else
            print_place(listing, why, now_ms);
        print_hops(listing, why, now_ms);
        print_end(listing, why, now_ms);
    }
}

void
why_print(const json_t *listing, int64_t now_ms)
{
    print_head(listing, json_object_get(listing, "why"), now_ms);
    why_print_now(listing, now_ms);
    print_recipients(listing);
}
