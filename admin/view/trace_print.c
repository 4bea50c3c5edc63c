/* Puts events into sentences. */
#include "admin/view/trace_print.h"

#include "base/json_field.h"
#include "admin/view/words.h"
#include "base/buffer.h"
#include "base/outcome.h"

#include <inttypes.h>
#include <string.h>

enum { SENTENCE_MAX = 32 * 1024, SPAN_MAX = 32, RECIPIENTS_SHOWN = 2 };

/* --- Times ------------------------------------------------------------------------ */

/* "13 ms", "12 s", "5m 0s", "3h 5m", "2d 3h" */
static const char *
trace_span(int64_t ms, char out[SPAN_MAX])
{
    int64_t seconds = ms / 1000, minutes = seconds / 60, hours = minutes / 60;
    if (ms < 1000)
        snprintf(out, SPAN_MAX, "%" PRId64 " ms", ms > 0 ? ms : 0);
    else if (seconds < 60)
        snprintf(out, SPAN_MAX, "%" PRId64 " s", seconds);
    else if (minutes < 60)
        snprintf(out, SPAN_MAX, "%" PRId64 "m %" PRId64 "s", minutes, seconds % 60);
    else if (hours < 24)
        snprintf(out, SPAN_MAX, "%" PRId64 "h %" PRId64 "m", hours, minutes % 60);
    else
        snprintf(out, SPAN_MAX, "%" PRId64 "d %" PRId64 "h", hours / 24, hours % 24);
    return out;
}

/* --- Sentences -------------------------------------------------------------------- */

static void
say(struct buffer *b, const char *before, const char *value, const char *after)
{
    if (value[0] != '\0')
        (void)!buffer_format(b, "%s%s%s", before, value, after);
}

static void
say_client(struct buffer *b, const json_t *event)
{
    const char *client = json_field_string(event, "client");
    bool is_ip = strchr(client, '.') != NULL || strchr(client, ':') != NULL;
    say(b, is_ip ? " from [" : " from ", client, is_ip ? "]" : "");
    words_say(b, "[helo: ({helo})][user:, user {user}]", event, 0);
}

static void
say_recipients(struct buffer *b, const json_t *event)
{
    words_say(b, ", for {#recipients} recipient[1>recipients:s|[recipients>1:s]]",
              event, 0);
}

/* Without "host NAME said: ": the relay is in the sentence. */
static const char *
reply_of(const char *text)
{
    struct outcome_sentence said;
    return outcome_sentence_read(text_from(text), &said) ? said.reply.at : text;
}

static void
say_verdict(struct buffer *b, const json_t *event, const char *type)
{
    const char *relay = json_field_string(event, "relay");
    bool is_delivered = strcmp(type, "delivered") == 0;
    (void)!buffer_format(b, "<%s>: %s", json_field_string(event, "recipient"), type);
    if (strcmp(relay, "none") != 0)
        say(b, is_delivered ? " to " : " by ", relay, "");
    if (is_delivered)
        say(b, ", ", json_field_string(event, "tls"), "");
    say(b, ": ", reply_of(json_field_string(event, "text")), "");
}

static void
say_refused(struct buffer *b, const json_t *event, const char *type)
{
    say(b, "", strcmp(type, "denied") == 0 ? "login denied" : type, "");
    say_client(b, event);
    words_say(b,
              "[?sender:, sender <{sender}>][recipient:, recipient <{recipient}>]"
              "[enhanced:: {#code} {enhanced}][text: {text}]"
              "[command: (in reply to {command})]",
              event, 0);
}

/* All its members, for kinds without a sentence of their own. */
static void
say_members(struct buffer *b, const json_t *event)
{
    static const char *const known[] = {"type", "time_ms", "text", "hint"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)event, key, value)
    {
        bool is_said = false;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
            is_said = is_said || strcmp(key, known[i]) == 0;
        if (is_said)
            continue;
        if (json_is_integer(value))
            (void)!buffer_format(b, ", %s %" PRId64, key,
                                 (int64_t)json_integer_value(value));
        else if (json_is_string(value))
            (void)!buffer_format(b, ", %s %s", key, json_string_value(value));
    }
    say(b, ": ", json_field_string(event, "text"), "");
}

/* Kinds with a sentence of their own. */
static const struct kind_words {
    const char *type, *words;
} kind_words[] = {
    {"notified",      "{text}[other:: {other}][recipient:, to <{recipient}>]"         },
    {"made",          "{text}[other:, about {other}][recipient:, to <{recipient}>]"   },
    {"bounced_later",
     "<{recipient}>: {returned}, by a report that came later[reporter: of "
     "{reporter}][text:: {text}]"                                                     },
    {"complained",
     "<{recipient}>: its reader has complained ({feedback})[reporter:, by {reporter}]"},
    {"given",         "[recipient:given to {recipient}][as: as {as}]"                 },
    {"taken",         "[sender:taken from {sender}][was:, where it was {was}]"        },
    {"lifetime",      "its lifetime is over"                                          },
    {"held",          "{text}"                                                        },
    {"released",      "{text}"                                                        },
    {"retried",       "{text}"                                                        },
    {"removed",       "{text}"                                                        },
    {"returned",      "{text}"                                                        },
};

static void
say_other(struct buffer *b, const json_t *event, const char *type)
{
    size_t before = b->length, count = sizeof(kind_words) / sizeof(kind_words[0]),
           i = 0;
    while (i < count && strcmp(type, kind_words[i].type) != 0)
        i++;
    if (i < count)
        words_say(b, kind_words[i].words, event, 0);
    /* an operator's command may have no text */
    if (i == count ||
        (b->length == before && strcmp(kind_words[i].words, "{text}") == 0)) {
        say(b, "", type, "");
        say_members(b, event);
    }
}

static void
say_event(struct buffer *b, const json_t *event, int64_t since_ms)
{
    const char *type = json_field_string(event, "type");
    char span[SPAN_MAX];
    if (strcmp(type, "accepted") == 0) {
        say(b, "", "accepted", "");
        say_client(b, event);
        words_say(b, "[tls:, {tls}]", event, 0);
        say_recipients(b, event);
    } else if (strcmp(type, "submitted") == 0) {
        words_say(b, "submitted by uid {#uid}", event, 0);
        say_recipients(b, event);
    } else if (strcmp(type, "delivered") == 0 || strcmp(type, "deferred") == 0 ||
               strcmp(type, "bounced") == 0 || strcmp(type, "expired") == 0) {
        say_verdict(b, event, type);
    } else if (strcmp(type, "ended") == 0 && since_ms > 0) {
        (void)!buffer_format(
            b, "ended after %s",
            trace_span(json_field_number(event, "time_ms") - since_ms, span));
    } else if (strcmp(type, "refused") == 0 || strcmp(type, "denied") == 0) {
        say_refused(b, event, type);
    } else {
        say_other(b, event, type);
    }
}

/* --- Lines ------------------------------------------------------------------------ */

void
trace_print_next(const json_t *event, int64_t since_ms, char day[FORMAT_TIME_MAX],
                 FILE *out)
{
    int64_t time_ms = json_field_number(event, "time_ms");
    char today[FORMAT_TIME_MAX], at[FORMAT_TIME_MAX];
    struct buffer sentence;
    buffer_init(&sentence, SENTENCE_MAX);
    say_event(&sentence, event, since_ms);
    bool is_new = strcmp(format_time_local(time_ms, LOCAL_DAY, today), day) != 0;
    fprintf(out, "  %6s %s.%03d  %.*s\n", is_new ? today : "",
            format_time_local(time_ms, LOCAL_CLOCK, at), (int)(time_ms % 1000),
            TEXT_ARGS(buffer_text(&sentence)));
    if (json_field_string(event, "hint")[0] != '\0')
        fprintf(out, "%23s%s.\n", "", json_field_string(event, "hint"));
    memcpy(day, today, FORMAT_TIME_MAX);
    buffer_free(&sentence);
}

void
trace_print_events(const json_t *life, FILE *out)
{
    char day[FORMAT_TIME_MAX] = "";
    size_t index;
    json_t *event;
    json_array_foreach (json_object_get(life, "events"), index, event)
        trace_print_next(event, json_field_number(life, "time_ms"), day, out);
    if (json_field_number(life, "more") > 0)
        fprintf(out, "%23sand %" PRId64 " events more\n", "",
                json_field_number(life, "more"));
}

void
trace_print_life(const json_t *life, FILE *out)
{
    const char *id = json_field_string(life, "id");
    const char *message_id = json_field_string(life, "message_id");
    if (id[0] != '\0') {
        fputs(id, out);
        if (json_object_get(life, "sender") != NULL)
            fprintf(out, "  <%s>  %" PRId64 " bytes", json_field_string(life, "sender"),
                    json_field_number(life, "size"));
        fprintf(out, "%s%s\n", message_id[0] != '\0' ? "  " : "", message_id);
    }
    trace_print_events(life, out);
}

static bool
is_named_before(const json_t *events, size_t end, const char *address)
{
    for (size_t i = 0; i < end; i++)
        if (strcmp(json_field_string(json_array_get(events, i), "recipient"),
                   address) == 0)
            return true;
    return false;
}

/* "<a@x>, <b@y> and 3 more" */
static void
say_all_recipients(struct buffer *b, const json_t *life)
{
    const json_t *events = json_object_get(life, "events");
    int64_t count = json_field_number(life, "recipients"), named = 0;
    for (size_t i = 0; i < json_array_size(events) && named < RECIPIENTS_SHOWN; i++) {
        const char *address = json_field_string(json_array_get(events, i), "recipient");
        if (address[0] == '\0' || is_named_before(events, i, address))
            continue;
        (void)!buffer_format(b, "%s<%s>", named > 0 ? ", " : "", address);
        named++;
    }
    if (named == 0 && count > 0)
        (void)!buffer_format(b, "%" PRId64 " recipient%s", count,
                             count == 1 ? "" : "s");
    else if (count > named)
        (void)!buffer_format(b, " and %" PRId64 " more", count - named);
}

/* A line with its date, and the id or "-". */
static void
print_sentence(int64_t time_ms, const char *id, struct buffer *sentence, FILE *out)
{
    char at[FORMAT_TIME_MAX];
    fprintf(out, "%s  %-19s  %.*s\n", format_time_local(time_ms, LOCAL_BOTH, at),
            id[0] != '\0' ? id : "-", TEXT_ARGS(buffer_text(sentence)));
    buffer_free(sentence);
}

void
trace_print_line(const json_t *life, FILE *out)
{
    const char *id = json_field_string(life, "id");
    struct buffer sentence;
    buffer_init(&sentence, SENTENCE_MAX);
    if (id[0] == '\0') {
        say_event(&sentence, json_array_get(json_object_get(life, "events"), 0), 0);
    } else {
        words_say(&sentence, "{state%-9} <{sender}> -> ", life, 0);
        say_all_recipients(&sentence, life);
    }
    print_sentence(json_field_number(life, "time_ms"), id, &sentence, out);
}

void
trace_print_event(const json_t *event, const char *id, FILE *out)
{
    struct buffer sentence;
    buffer_init(&sentence, SENTENCE_MAX);
    say_event(&sentence, event, 0);
    print_sentence(json_field_number(event, "time_ms"), id, &sentence, out);
}
