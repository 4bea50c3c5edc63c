/* Shows messages to the operator; peers' bytes reach the terminal escaped. */
#include "admin/control/listing.h"

#include "admin/control/json_field.h"
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

static json_t *
list_recipients(const struct envelope *e, const json_t *state)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        json_t *item = json_object();
        json_object_set_new(item, "address", listing_text(r->address));
        json_object_set_new(item, "done", json_boolean(r->done));
        if (!r->done && listing_reason_of(state, i)[0])
            add_reason(item, listing_reason_of(state, i));
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

/* "45s", "12m", "3h", "2d" */
static void
print_span(int64_t seconds, char out[24])
{
    if (seconds < 0)
        seconds = 0;
    if (seconds < 120)
        snprintf(out, 24, "%" PRId64 "s", seconds);
    else if (seconds < 7200)
        snprintf(out, 24, "%" PRId64 "m", seconds / 60);
    else if (seconds < 2 * 86400)
        snprintf(out, 24, "%" PRId64 "h", seconds / 3600);
    else
        snprintf(out, 24, "%" PRId64 "d", seconds / 86400);
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
static bool
listing_print_damaged(const json_t *listing)
{
    const char *name = json_field_string(listing, "queue_id");
    if (json_object_get(listing, "recipients") != NULL)
        return false;
    printf("%s corrupt  (%s) see corrupt/%s.note\n", name,
           json_field_string(listing, "reason"), name);
    return true;
}

void
listing_print_line(const json_t *listing, int64_t now_ms)
{
    const json_t *recipients = json_object_get(listing, "recipients");
    const char *reason = first_reason(recipients);
    char age[24], wait[24];
    if (listing_print_damaged(listing))
        return;
    int64_t count = (int64_t)json_array_size(recipients) +
                    json_field_number(listing, "recipients_more");
    print_span(now_ms / 1000 - json_field_number(listing, "arrival_time"), age);
    print_span(json_field_number(listing, "due_time") - now_ms / 1000, wait);
    printf("%s %-8s %5s %8" PRId64 " <%s> -> <%s>",
           json_field_string(listing, "queue_id"),
           json_field_string(listing, "queue_name"), age,
           json_field_number(listing, "message_size"),
           json_field_string(listing, "sender"),
           json_field_string(json_array_get(recipients, 0), "address"));
    if (count > 1)
        printf(" and %" PRId64 " more", count - 1);
    if (strcmp(json_field_string(listing, "queue_name"), "deferred") == 0)
        printf("; next attempt in %s", wait);
    if (json_field_string(listing, "reason")[0])
        printf(" (%s)", json_field_string(listing, "reason"));
    else if (reason[0])
        printf(" (%s)", reason);
    putchar('\n');
}

void
listing_print_page(const json_t *listing, int64_t now_ms)
{
    char age[24], wait[24];
    if (listing_print_damaged(listing))
        return;
    print_span(now_ms / 1000 - json_field_number(listing, "arrival_time"), age);
    print_span(json_field_number(listing, "due_time") - now_ms / 1000, wait);
    printf("id:       %s\nqueue:    %s\nfrom:     <%s>\nsize:     %" PRId64
           " bytes\narrived:  %s ago\nattempts: %" PRId64 "\n",
           json_field_string(listing, "queue_id"),
           json_field_string(listing, "queue_name"),
           json_field_string(listing, "sender"),
           json_field_number(listing, "message_size"), age,
           json_field_number(listing, "attempts"));
    if (strcmp(json_field_string(listing, "queue_name"), "deferred") == 0)
        printf("next:     in %s\n", wait);
    if (json_is_true(json_object_get(listing, "sender_warned")))
        puts("warned:   the sender was notified of the delay");
    if (json_field_string(listing, "reason")[0]) {
        print_span(now_ms / 1000 - json_field_number(listing, "since"), age);
        printf("reason:   %s, %s ago\n", json_field_string(listing, "reason"), age);
    }
    if (json_field_string(listing, "envelope_id")[0])
        printf("envid:    %s\n", json_field_string(listing, "envelope_id"));
    if (json_field_number(listing, "mt_priority") != 0)
        printf("priority: %" PRId64 "\n", json_field_number(listing, "mt_priority"));
    size_t index;
    json_t *item;
    json_array_foreach (json_object_get(listing, "recipients"), index, item) {
        printf("to:       <%s> %s", json_field_string(item, "address"),
               json_is_true(json_object_get(item, "done")) ? "done" : "waiting");
        if (json_field_string(item, "delay_reason")[0])
            printf(" (%s)", json_field_string(item, "delay_reason"));
        putchar('\n');
        if (json_field_string(item, "hint")[0])
            printf("hint:     %s\n", json_field_string(item, "hint"));
    }
    if (json_field_number(listing, "recipients_more") > 0)
        printf("          and %" PRId64 " recipients more\n",
               json_field_number(listing, "recipients_more"));
}
