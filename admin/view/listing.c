/* Shows messages to the operator; peers' bytes reach the terminal escaped. */
#include "admin/view/listing.h"

#include "base/json_field.h"
#include "admin/view/words.h"
#include "queue/manager/deferral_reasons.h"
#include "queue/manager/manager.h"
#include "sched/limits/refusal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 4096 };

json_t *
listing_text(struct text t)
{
    struct buffer clean;
    buffer_init(&clean, SHOWN_MAX);
    (void)!log_escape(text_before(t, SHOWN_MAX / 4), &clean);
    json_t *value = json_stringn(clean.length ? clean.at : "", clean.length);
    buffer_free(&clean);
    return value;
}

static const char *
listing_reason_of(const json_t *state, unsigned recipient)
{
    const json_t *reasons = json_object_get(state, "reasons");
    const char *reason = json_string_value(json_array_get(reasons, recipient));
    if (reason == NULL)
        reason = json_string_value(json_array_get(reasons, 0));
    return reason ? reason : "";
}

/* The reason why it waits, its subject, and the remedy. */
static void
add_reason(json_t *item, const char *reason)
{
    char hint[REFUSAL_HINT_MAX];
    const char *class = refusal_name(refusal_classify_text(reason));
    json_object_set_new(item, "delay_reason", json_string(reason));
    if (class[0] != '\0')
        json_object_set_new(item, "class", json_string(class));
    if (refusal_hint_text(reason, hint))
        json_object_set_new(item, "hint", json_string(hint));
}

/* Reasons do not outlive a kill; the time that the sender has asked for does. An attempt
 * makes the message due behind it. */
static const char *
listing_release_of(const struct envelope *e, char out[DEFERRAL_RELEASE_MAX])
{
    bool waits = e->release_ms > 0 && !e->delivery.released &&
                 e->delivery.due_ms <= e->release_ms;
    return waits ? deferral_reasons_release(e->release_ms, out) : "";
}

static json_t *
list_recipients(const struct envelope *e, const json_t *state)
{
    char room[DEFERRAL_RELEASE_MAX];
    const char *release = listing_release_of(e, room);
    json_t *list = json_array();
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        json_t *item = json_object();
        json_object_set_new(item, "address", listing_text(r->address));
        json_object_set_new(item, "done", json_boolean(r->done));
        const char *reason = listing_reason_of(state, i);
        if (reason[0] == '\0')
            reason = release;
        if (!r->done && reason[0] != '\0')
            add_reason(item, reason);
        json_array_append_new(list, item);
    }
    return list;
}

json_t *
listing_make(const struct envelope *e, const char *place, const json_t *state)
{
    char id[ID_LENGTH + 1];
    id_format(e->id, id);
    int64_t due = e->delivery.held ? 0 : e->delivery.due_ms,
            attempts = e->delivery.attempts;
    const char *now_at = json_string_value(json_object_get(state, "place"));
    if (now_at && strcmp(now_at, "unknown") != 0) {
        place = place[0] ? place : now_at;
        due = json_integer_value(json_object_get(state, "due_ms"));
        attempts = json_integer_value(json_object_get(state, "attempts"));
    }
    json_t *listing = json_object();
    json_object_set_new(listing, "queue_name", json_string(place));
    json_object_set_new(listing, "queue_id", json_string(id));
    json_object_set_new(listing, "arrival_time", json_integer(e->birth_ms / 1000));
    json_object_set_new(listing, "message_size",
                        json_integer(e->content_size + (int64_t)e->prefix.length));
    json_object_set_new(listing, "forced_expire", json_false());
    json_object_set_new(listing, "sender", listing_text(e->sender));
    json_object_set_new(listing, "recipients", list_recipients(e, state));
    json_object_set_new(listing, "attempts", json_integer(attempts));
    json_object_set_new(listing, "due_time", json_integer(due / 1000));
    json_object_set_new(listing, "sender_warned",
                        json_boolean(e->delivery.warned_s != 0));
    json_object_set_new(listing, "eight_bit", json_boolean(e->eight_bit));
    json_object_set_new(listing, "smtputf8", json_boolean(e->utf8));
    if (e->priority != 0)
        json_object_set_new(listing, "mt_priority", json_integer(e->priority));
    if (e->release_ms != 0)
        json_object_set_new(listing, "release_time",
                            json_integer(e->release_ms / 1000));
    if (e->tls != ENVELOPE_TLS_PLAIN)
        json_object_set_new(
            listing, "tls_required",
            json_string(e->tls == ENVELOPE_TLS_REQUIRED ? "yes" : "no"));
    json_object_set_new(listing, "envelope_id", listing_text(e->envelope_id));
    return listing;
}

void
listing_add_note(json_t *listing, const char *note)
{
    uint64_t seconds;
    struct text rest = text_from(note);
    size_t space = text_find(rest, ' ');
    struct text since = text_before(rest, space == TEXT_NONE ? 0 : space);
    if (text_number(since, INT64_MAX, &seconds)) {
        json_object_set_new(listing, "since", json_integer((json_int_t)seconds));
        rest = text_after(rest, space + 1);
    }
    json_object_set_new(listing, "reason", listing_text(rest));
}

const char *
listing_disk_place(enum queue_place place)
{
    switch (place) {
    case QUEUE_MAILDROP:
        return "maildrop";
    case QUEUE_INCOMING:
        break;
    case QUEUE_DEFERRED:
        return "deferred";
    case QUEUE_DEFRAG:
        return "defrag";
    case QUEUE_HOLD:
        return "hold";
    case QUEUE_CORRUPT:
        return "corrupt";
    }
    return "incoming";
}

const char *
listing_place_name(enum sched_place place)
{
    switch (place) {
    case SCHED_INCOMING:
        return "incoming";
    case SCHED_ACTIVE:
        return "active";
    case SCHED_DEFERRED:
        return "deferred";
    case SCHED_UNKNOWN:
        break;
    }
    return "unknown";
}

static const char *
first_reason(const json_t *recipients)
{
    size_t index;
    json_t *item;
    json_array_foreach (recipients, index, item) {
        const char *reason = json_string_value(json_object_get(item, "delay_reason"));
        if (reason)
            return reason;
    }
    return "";
}

/* A damaged message has no envelope to show: its name and its note must do. */
static const char damaged_words[] =
    "{queue_id} corrupt  ({reason}) see corrupt/{queue_id}.note\n";

void
listing_print_line(const json_t *listing, int64_t now_ms)
{
    const json_t *recipients = json_object_get(listing, "recipients");
    if (recipients == NULL) {
        words_print(damaged_words, listing, now_ms);
        return;
    }
    int64_t count = (int64_t)json_array_size(recipients) +
                    json_field_number(listing, "recipients_more");
    words_print(
        "{queue_id} {queue_name%-8} {arrival_time@brief_age_s%5} {#message_size%8} "
        "<{sender}> -> <{recipients.0.address}>",
        listing, now_ms);
    if (count > 1)
        printf(" and %" PRId64 " more", count - 1);
    words_print("[queue_name=deferred:; next attempt in {due_time@brief_until_s}]",
                listing, now_ms);
    if (json_field_string(listing, "reason")[0] == '\0' && first_reason(recipients)[0])
        printf(" (%s)", first_reason(recipients));
    words_print("[reason: ({reason})]\n", listing, now_ms);
}

static const char page_words[] =
    "id:       {queue_id}\n"
    "queue:    {queue_name}\n"
    "from:     <{sender}>\n"
    "size:     {#message_size} bytes\n"
    "arrived:  {arrival_time@brief_age_s} ago\n"
    "attempts: {#attempts}\n"
    "[queue_name=deferred:next:     in {due_time@brief_until_s}\n]"
    "[sender_warned:warned:   the sender was notified of the delay\n]"
    "[reason:reason:   {reason}, {since@brief_age_s} ago\n]"
    "[envelope_id:envid:    {envelope_id}\n]"
    "[mt_priority>0:priority: {#mt_priority}\n]"
    "[0>mt_priority:priority: {#mt_priority}\n]";

void
listing_print_page(const json_t *listing, int64_t now_ms)
{
    const json_t *recipients = json_object_get(listing, "recipients");
    words_print(recipients != NULL ? page_words : damaged_words, listing, now_ms);
    words_print_all("to:       <{address}> [done:done|waiting]"
                    "[delay_reason: ({delay_reason})]\n[hint:hint:     {hint}\n]",
                    recipients, now_ms);
    words_print("[?recipients:[recipients_more>0:          and {#recipients_more} "
                "recipients more\n]]",
                listing, now_ms);
}
