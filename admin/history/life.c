/* Reads the events of a message, and sums them up. */
#include "admin/history/life.h"

#include "admin/history/history_line.h"
#include "base/log/log.h"
#include "sched/limits/refusal.h"

#include <string.h>

enum { TEXT_MAX = 4 * LOG_LINE_MAX, REASON_MAX = 1024 };

/* --- Events ----------------------------------------------------------------------- */

/* Text in the files was escaped, unless another program has written it. */
static json_t *
life_text(struct text t)
{
    struct buffer clean;
    buffer_init(&clean, TEXT_MAX);
    (void)!log_escape(t, &clean);
    json_t *value = json_stringn(clean.length > 0 ? clean.at : "", clean.length);
    buffer_free(&clean);
    return value != NULL ? value : json_string("");
}

static void
life_set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *
life_address(struct text t)
{
    return life_text(text_within(t, '<', '>'));
}

/* "[192.0.2.1]" and "[IPv6:2001:db8::1]" without their brackets. */
static json_t *
life_client(struct text t)
{
    struct text bare = text_within(t, '[', ']');
    bool is_ipv6 = bare.length < t.length && text_starts(bare, TEXT("IPv6:"));
    return life_text(text_after(bare, is_ipv6 ? strlen("IPv6:") : 0));
}

static json_t *
life_number(struct text t)
{
    uint64_t number = 0;
    return text_number(t, INT64_MAX, &number) ? json_integer((json_int_t)number)
                                              : life_text(t);
}

/* "0.02", "0.1" or "2" s */
static json_t *
life_ms(struct text t)
{
    uint64_t whole = 0, part = 0;
    struct text rest = t, seconds;
    bool has_part = text_cut(&rest, '.', &seconds) && seconds.length < t.length;
    if (!text_number(seconds, INT32_MAX, &whole) ||
        (has_part && (rest.length > 2 || !text_number(rest, 99, &part))))
        return life_text(t);
    return json_integer(
        (json_int_t)(whole * 1000 + part * (rest.length == 2 ? 10 : 100)));
}

/* "0.02/0/0/0" */
static json_t *
life_delays(struct text t)
{
    json_t *list = json_array();
    struct text one;
    while (text_cut(&t, '/', &one))
        json_array_append_new(list, life_ms(one));
    return list;
}

static const struct life_member {
    const char *key, *member;
    json_t *(*make)(struct text value);
} life_members[] = {
    {"to",            "recipient",          life_address},
    {"orig_to",       "original_recipient", life_address},
    {"from",          "sender",             life_address},
    {"orig_from",     "original_sender",    life_address},
    {"message_id",    "message_id",         life_text   },
    {"relay",         "relay",              life_text   },
    {"dsn",           "enhanced",           life_text   },
    {"delay",         "delay_ms",           life_ms     },
    {"delays",        "delays_ms",          life_delays },
    {"client",        "client",             life_client },
    {"sasl_username", "user",               life_text   },
    {"sasl_method",   "mechanism",          life_text   },
    {"proto",         "protocol",           life_text   },
    {"nrcpt",         "recipients",         life_number },
    {"size",          "size",               life_number },
    {"uid",           "uid",                life_number },
    {"failures",      "failures",           life_number },
    {"seconds",       "seconds",            life_number },
    {"other",         "other",              life_text   },
    {"",              "text",               life_text   },
};

/* "550 5.7.1" of our own refusals. */
static void
life_add_refused(json_t *event, struct text value)
{
    struct text rest = value, code;
    if (!text_cut(&rest, ' ', &code))
        return;
    life_set(event, "code", life_number(code));
    if (rest.at != NULL)
        life_set(event, "enhanced", life_text(rest));
}

static void
life_add_code(json_t *event, struct text text)
{
    struct outcome_sentence said;
    uint64_t code;
    (void)outcome_sentence_read(text, &said);
    text = said.reply;
    if (text_number(text_before(text, 3), 599, &code) && code >= 200 &&
        (text.length == 3 || text.at[3] == ' ' || text.at[3] == '-'))
        life_set(event, "code", json_integer((json_int_t)code));
}

static void
life_add_field(json_t *event, const struct history_field *field)
{
    char key[64];
    for (size_t i = 0; i < sizeof(life_members) / sizeof(life_members[0]); i++)
        if (text_equal(field->key, text_from(life_members[i].key))) {
            life_set(event, life_members[i].member, life_members[i].make(field->value));
            return;
        }
    if (text_equal(field->key, TEXT("refused")))
        life_add_refused(event, field->value);
    else if (!text_equal(field->key, TEXT("event")) && text_is_ascii(field->key) &&
             text_copy(key, sizeof(key), field->key))
        life_set(event, key, life_text(field->value));
}

static bool
life_is_failure(struct text type)
{
    return text_equal(type, TEXT("deferred")) || text_equal(type, TEXT("bounced")) ||
           text_equal(type, TEXT("expired"));
}

static void
life_add_hint(json_t *event, struct text text)
{
    char reason[REASON_MAX], hint[REFUSAL_HINT_MAX];
    (void)text_copy(reason, sizeof(reason), text);
    if (refusal_hint_text(reason, hint))
        life_set(event, "hint", life_text(text_from(hint)));
}

json_t *
life_event(struct text line)
{
    struct history_line read;
    struct history_field field;
    if (!history_line_read(line, &read))
        return NULL;
    json_t *event = json_object();
    life_set(event, "type", life_text(read.event));
    life_set(event, "time_ms", json_integer(read.time_ms));
    struct text rest = read.fields, text = history_line_value(&read, "");
    while (history_line_field(&rest, &field))
        life_add_field(event, &field);
    if (history_line_value(&read, "status").length > 0 &&
        json_object_get(event, "code") == NULL)
        life_add_code(event, text);
    if (life_is_failure(read.event))
        life_add_hint(event, text);
    return event;
}

/* --- The whole -------------------------------------------------------------------- */

/* The sum of the events. */
struct life_sum {
    json_t *recipients; /* address: its last verdict */
    int64_t expected;   /* recipients; 0: not known */
    bool ended, held, removed, given;
    bool has_left; /* another host has it */
};

static const char *
life_string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static bool
life_is_type(const json_t *event, const char *type)
{
    return strcmp(life_string(event, "type"), type) == 0;
}

bool
life_ends(const json_t *event)
{
    return life_is_type(event, "ended") || life_is_type(event, "removed");
}

static void
life_take_birth(json_t *life, struct life_sum *sum, const json_t *event)
{
    static const char *const members[] = {"sender", "message_id", "size", "recipients"};
    if (!life_is_type(event, "accepted") && !life_is_type(event, "submitted") &&
        !life_is_type(event, "made"))
        return;
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *value = json_object_get(event, members[i]);
        if (value != NULL)
            json_object_set(life, members[i], value);
    }
    sum->expected = json_integer_value(json_object_get(event, "recipients"));
}

static void
life_count(struct life_sum *sum, const json_t *event)
{
    static const char *const verdicts[] = {"delivered", "deferred", "bounced",
                                           "expired"};
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
        if (life_is_type(event, verdicts[i]))
            json_object_set_new(sum->recipients, life_string(event, "recipient"),
                                json_string(verdicts[i]));
    if (life_is_type(event, "held"))
        sum->held = true;
    if (life_is_type(event, "released") || life_is_type(event, "retried"))
        sum->held = false;
    sum->removed = sum->removed || life_is_type(event, "removed");
    sum->ended = sum->ended || life_ends(event);
    sum->given = sum->given || life_is_type(event, "fragment");
    sum->has_left = sum->has_left || life_is_type(event, "given");
}

static size_t
life_verdicts(const struct life_sum *sum, const char *verdict)
{
    size_t count = 0;
    const char *address;
    json_t *last;
    json_object_foreach(sum->recipients, address, last) count +=
        strcmp(json_string_value(last), verdict) == 0;
    return count;
}

static const char *
life_state(const struct life_sum *sum)
{
    size_t delivered = life_verdicts(sum, "delivered"),
           expired = life_verdicts(sum, "expired"),
           failed = expired + life_verdicts(sum, "bounced"),
           known = json_object_size(sum->recipients);
    bool all = sum->ended || (known > 0 && delivered + failed == known &&
                              (int64_t)known >= sum->expected);
    if (sum->has_left)
        return "given";
    if (sum->removed)
        return "removed";
    if (sum->held && !sum->ended)
        return "held";
    if (known == 0 && sum->ended && sum->given)
        return "given";
    if (all && failed == 0 && (delivered > 0 || sum->expected == 0))
        return "delivered";
    if (all && delivered == 0 && failed > 0)
        return expired > 0 ? "expired" : "bounced";
    return delivered > 0 ? "partly" : "waiting";
}

static void
life_add_line(json_t *life, json_t *events, struct life_sum *sum, struct text line)
{
    json_t *event = life_event(line);
    if (event == NULL)
        return;
    life_take_birth(life, sum, event);
    life_count(sum, event);
    json_array_append_new(events, event);
}

json_t *
life_make(struct id id, struct text lines, size_t more)
{
    struct life_sum sum = {.recipients = json_object()};
    json_t *life = json_object(), *events = json_array();
    char name[ID_LENGTH + 1];
    struct text line;
    if (id.time_ms != 0)
        id_format(id, name);
    life_set(life, "id", id.time_ms != 0 ? json_string(name) : json_null());
    while (lines.length > 0 && text_cut(&lines, '\n', &line))
        life_add_line(life, events, &sum, line);
    const json_t *first = json_array_get(events, 0);
    bool is_refused = life_is_type(first, "refused") || life_is_type(first, "denied") ||
                      life_is_type(first, "locked");
    life_set(life, "time_ms",
             json_integer(json_integer_value(json_object_get(first, "time_ms"))));
    life_set(life, "state",
             json_string(id.time_ms != 0 ? life_state(&sum)
                         : is_refused    ? "refused"
                                         : life_string(first, "type")));
    life_set(life, "ended", json_boolean(sum.ended));
    life_set(life, "events", events);
    if (more > 0)
        life_set(life, "more", json_integer((json_int_t)more));
    json_decref(sum.recipients);
    return life;
}
