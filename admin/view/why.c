/* Explains why a message waits: the daemon's part, and the lines for people. */
#include "admin/view/why.h"

#include "base/json_field.h"
#include "admin/view/listing.h"
#include "admin/view/site_view.h"
#include "admin/view/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct activity_word {
    const char *word, *words;
} activity_words[ACTIVITY_KINDS] = {
    [ACTIVITY_NONE] = {"nothing",    "open"                                         },
    [ACTIVITY_LOOK_UP] = {"looking_up", "looking up {what}"                            },
    [ACTIVITY_CONNECT] = {"connecting", "connecting to {remote}"                       },
    [ACTIVITY_GREETING] = {"greeting",   "connected to {remote}, no greeting"           },
    [ACTIVITY_HANDSHAKE] = {"handshake",  "TLS handshake with {remote}"                  },
    [ACTIVITY_REPLY] = {"reply",      "waiting for the reply to {what} from {remote}"},
    [ACTIVITY_CONTENT] = {"content",    "sending content to {remote}"                  },
    [ACTIVITY_PREPARE] = {"preparing",  "preparing commands for {remote}"              },
    [ACTIVITY_IDLE] = {"idle",       "connected to {remote}, idle"                  },
    [ACTIVITY_STORE] = {"storing",    "delivering to Maildirs in {what}"             },
};

json_t *
why_session(const struct activity *a)
{
    json_t *doing = json_pack(
        "{s:s,s:I,s:o,s:o,s:b}", "doing", activity_words[a->kind].word, "since_ms",
        (json_int_t)a->since_ms, "what", listing_text(text_from(a->what)), "remote",
        listing_text(text_from(a->remote)), "this_message", a->has_message);
    if (a->scheme != NULL)
        json_object_set_new(doing, "scheme", json_string(a->scheme));
    return doing;
}

void
why_explain_session(const json_t *doing, int64_t now_ms, struct buffer *out)
{
    const char *word = json_field_string(doing, "doing");
    size_t kind = ACTIVITY_KINDS - 1;
    while (kind > ACTIVITY_NONE && strcmp(activity_words[kind].word, word) != 0)
        kind--;
    words_say(out, activity_words[kind].words, doing, now_ms);
    words_say(out,
              " for {since_ms@age}[this_message:, with this message]"
              "[scheme: (does this port need {scheme}://?)]",
              doing, now_ms);
}

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
                          why_session(a));
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

static const char head_words[] =
    "id:       {queue_id}\n"
    "queue:    {queue_name}: "
    "[queue_name=hold:not delivered, not retried and never expiring until it is "
    "released"
    "|[queue_name=maildrop:submitted by sendmail, not yet taken up by the daemon"
    "|[queue_name=incoming:new, on disk, without an attempt"
    "|[queue_name=defrag:a fragment that waits for the others"
    "|[queue_name=active:[why.loading:being read from the disk"
    "|in memory, being tried]"
    "|on disk until its next attempt]]]]]\n"
    "from:     <{sender}>\n"
    "arrived:  {arrival_time@since_s}\n"
    "attempts: {#attempts} so far[sender_warned:; the sender was notified of the "
    "delay]\n";

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
    words_print("[queue_name=deferred:next:     {due_time@until_s}\n]"
                "because:  no daemon runs; nothing is delivered until it is started",
                listing, now_ms);
    puts(has_reason(listing) ? "; the reasons below are those of its last run" : "");
}

/* A message that is not in memory. */
static const char waiting_words[] =
    "because:  "
    "[excess:backlogged: its site has more than its share of the active set "
    "(site_active_share); it returns when the site has less"
    "|[place=defrag:other fragments of its message have not arrived; the missing ones "
    "and the time limit are below"
    "|[due_ms>now:the next attempt is at {due_ms@until}"
    "[backlogged:, or as soon as its site works again]"
    "|[active_limit>active:"
    "[lacks_room:the active set has no room for its recipients: it has "
    "{#active_recipients} of {#active_recipient_limit} (active_recipient_limit)"
    "|it is due, and is read from the disk in its turn]"
    "|the active set is full: {#active} of {#active_limit} messages (active_limit)]"
    "; messages before it: {#ahead}]]]\n";

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
        why_explain_session(session, now_ms, &words);
        printf("session:  %.*s\n", TEXT_ARGS(buffer_text(&words)));
    }
    buffer_free(&words);
    words_print("[sessions_more>0:          and {#sessions_more} more\n]", hop, now_ms);
}

static void
print_hop(const json_t *hop, const json_t *why, bool is_active, int64_t now_ms)
{
    const json_t *site = json_object_get(hop, "site");
    bool drains = json_field_is_true(why, "draining"); /* print_place() */
    words_print("next hop: {destination}: recipients: {#open}", hop, now_ms);
    words_print(is_active ? " ({#waiting} waiting, {#taken} being delivered, "
                            "{#deferred} deferred)\n"
                          : "\n",
                hop, now_ms);
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
    words_print("[backlogged>0:backlog:  messages that wait on disk for that site: "
                "{#backlogged}\n]",
                site, now_ms);
}

static void
print_hops(const json_t *listing, const json_t *why, int64_t now_ms)
{
    size_t index;
    json_t *hop;
    json_array_foreach (json_object_get(why, "hops"), index, hop)
        print_hop(hop, why, is_at(listing, "active"), now_ms);
    words_print("[hops_more>0:          and {#hops_more} next hops more\n]", why,
                now_ms);
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
        words_print("to:       <{address}>[delay_reason: {delay_reason}]\n"
                    "[hint:hint:     {hint}\n]",
                    item, 0);
    }
    if (open > RECIPIENTS_SHOWN)
        printf("          and %u recipients more\n", open - RECIPIENTS_SHOWN);
}

static const char held_words[] =
    "because:  [reason:{reason}|it is held][since>0:, {since@since_s}]\n";
/* The listing has its "why". */
static const char end_words[] =
    "[?why.expires_ms:expires:  {why.expires_ms@until}: open recipients then fail"
    "[sender:, and <{sender}> is notified|; there is no sender to notify]\n]";

static void
print_place(const json_t *listing, const json_t *why, int64_t now_ms)
{
    bool drains = json_field_is_true(why, "draining");
    bool is_due = json_field_number(why, "due_ms") <= now_ms;
    if (drains)
        puts("because:  no delivery begins: the daemon is out of service (`petrel "
             "drain --cancel` ends that), or stops");
    if (!is_at(listing, "active") && !(drains && is_due))
        words_print(waiting_words, why, now_ms);
}

void
why_print_now(const json_t *listing, int64_t now_ms)
{
    const json_t *why = json_object_get(listing, "why");
    if (is_at(listing, "hold")) {
        words_print(held_words, listing, now_ms);
    } else if (why == NULL) {
        print_due(listing, now_ms);
    } else {
        if (strcmp(json_field_string(why, "place"), "unknown") == 0)
            puts("because:  the daemon that answers does not have it: it is another "
                 "slice's, or has not been reached since startup");
        else
            print_place(listing, why, now_ms);
        print_hops(listing, why, now_ms);
        words_print(end_words, listing, now_ms);
    }
}

void
why_print(const json_t *listing, int64_t now_ms)
{
    words_print(head_words, listing, now_ms);
    why_print_now(listing, now_ms);
    print_recipients(listing);
}
