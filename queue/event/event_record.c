/* Writes events as JSON. */
#include "queue/event/event_record.h"

#include <inttypes.h>
#include <string.h>

/* `full` stays set once it is set. */
struct record_writer {
    struct buffer *out;
    bool full;
};

static const struct {
    const char *word;
    uint64_t kinds;
} record_types[] = {
    {"accepted",  EVENT_BIT(EVENT_ACCEPTED) | EVENT_BIT(EVENT_SUBMITTED)},
    {"delivered", EVENT_BIT(EVENT_DELIVERED)                            },
    {"deferred",  EVENT_BIT(EVENT_DEFERRED)                             },
    {"bounced",   EVENT_BIT(EVENT_BOUNCED)                              },
    {"expired",   EVENT_BIT(EVENT_EXPIRED)                              },
    {"quota",     EVENT_BIT(EVENT_QUOTA)                                },
    {"trouble",   EVENT_BIT(EVENT_TROUBLE)                              },
    {"recovered", EVENT_BIT(EVENT_RECOVERED)                            },
};

static uint64_t
kinds_of(struct text word)
{
    for (size_t i = 0; i < sizeof(record_types) / sizeof(record_types[0]); i++)
        if (text_equal(word, text_from(record_types[i].word)))
            return record_types[i].kinds;
    return 0;
}

bool
event_record_kinds(struct text list, uint64_t *kinds, struct text *word)
{
    *kinds = 0;
    while (text_word(&list, ", \t\r\n", word)) {
        uint64_t some = kinds_of(*word);
        if (some == 0)
            return false;
        *kinds |= some;
    }
    return true;
}

/* --- JSON ------------------------------------------------------------------------- */

static void
record_put(struct record_writer *w, struct text t)
{
    w->full = w->full || !buffer_add(w->out, t);
}

/* The first character of rest; returns its length. */
static size_t
record_put_character(struct record_writer *w, struct text rest)
{
    unsigned char c = (unsigned char)rest.at[0];
    uint32_t code;
    if (c != '\0' && (c < ' ' || c == 0x7f)) {
        w->full = w->full || !buffer_format(w->out, "\\u%04x", c);
        return 1;
    }
    if (c == '"' || c == '\\')
        record_put(w, TEXT("\\"));
    size_t length = c < 0x80 ? 1 : text_character(rest, &code);
    if (length == 0 || c == '\0') { /* many readers of JSON cannot have a NUL */
        record_put(w, TEXT("\xef\xbf\xbd")); /* U+FFFD */
        return 1;
    }
    record_put(w, text_before(rest, length));
    return length;
}

static void
record_put_string(struct record_writer *w, struct text t)
{
    record_put(w, TEXT("\""));
    while (t.length > 0 && !w->full) {
        size_t plain = 0;
        while (plain < t.length && t.at[plain] >= ' ' && t.at[plain] <= '~' &&
               t.at[plain] != '"' && t.at[plain] != '\\')
            plain++;
        record_put(w, text_before(t, plain));
        t = text_after(t, plain);
        if (t.length > 0)
            t = text_after(t, record_put_character(w, t));
    }
    record_put(w, TEXT("\""));
}

static void
record_put_name(struct record_writer *w, const char *name)
{
    w->full = w->full || !buffer_format(w->out, ",\"%s\":", name);
}

static void
record_text(struct record_writer *w, const char *name, struct text value)
{
    if (value.length == 0)
        return;
    record_put_name(w, name);
    record_put_string(w, value);
}

static void
record_number(struct record_writer *w, const char *name, int64_t value)
{
    w->full = w->full || !buffer_format(w->out, ",\"%s\":%" PRId64, name, value);
}

/* "a,b" */
static void
record_list(struct record_writer *w, const char *name, struct text list)
{
    struct text item;
    const char *before = "[";
    if (list.length == 0)
        return;
    record_put_name(w, name);
    while (text_cut(&list, ',', &item)) {
        record_put(w, text_from(before));
        record_put_string(w, item);
        before = ",";
    }
    record_put(w, TEXT("]"));
}

/* --- Members ---------------------------------------------------------------------- */

/* xtext (RFC 3461 §4) as it was meant; what is none stays. */
static void
record_xtext(struct record_writer *w, const char *name, struct text value)
{
    struct buffer plain;
    buffer_init(&plain, value.length);
    bool good = true;
    while (good && value.length > 0) {
        int high =
            value.length > 2 && value.at[0] == '+' ? text_hex_digit(value.at[1]) : -1;
        int low = high >= 0 ? text_hex_digit(value.at[2]) : -1;
        good =
            buffer_add_byte(&plain, low >= 0 ? (char)(high * 16 + low) : value.at[0]);
        value = text_after(value, low >= 0 ? 3 : 1);
    }
    record_text(w, name, buffer_text(&plain));
    buffer_free(&plain);
}

/* ORCPT has a type before the address: "rfc822;". */
static void
record_original(struct record_writer *w, struct text orcpt)
{
    size_t type = text_find(orcpt, ';');
    record_xtext(w, "original_recipient",
                 type != TEXT_NONE ? text_after(orcpt, type + 1) : orcpt);
}

static void
record_user(struct record_writer *w, struct text submitter)
{
    bool is_name = text_starts(submitter, TEXT("user:"));
    record_text(w, "user", is_name ? text_after(submitter, 5) : submitter);
}

static void
record_origin(struct record_writer *w, const struct event_origin *o)
{
    if (o->original.length > 0)
        record_original(w, o->original);
    record_xtext(w, "envid", o->envelope_id);
    record_text(w, "message_id", o->message_id);
    record_text(w, "tag", o->tag);
    record_user(w, o->submitter);
}

static void
record_outcome(struct record_writer *w, const struct event *v)
{
    const struct outcome *o = v->outcome;
    record_text(w, "relay", text_from(o->remote));
    record_text(w, "tls", v->tls);
    record_list(w, "dkim", v->dkim);
    if (o->code > 0)
        record_number(w, "code", o->code);
    record_text(w, "enhanced", text_from(o->enhanced));
    record_text(w, "text", text_from(o->text));
    record_text(w, "class", text_from(v->reason));
    record_text(w, "hint", v->hint);
}

static void
record_verdict(struct record_writer *w, const struct event *v)
{
    record_put_name(w, "sender");
    record_put_string(w, v->sender); /* empty: the null sender */
    record_text(w, "recipient", v->recipient);
    if (v->origin != NULL)
        record_origin(w, v->origin);
    record_number(w, "size", v->size);
    record_number(w, "attempt", (int64_t)v->attempt + 1);
    record_number(w, "delay_ms", v->total_ms);
    record_outcome(w, v);
    if (v->next_ms > 0)
        record_number(w, "next_ms", v->next_ms);
}

static void
record_accepted(struct record_writer *w, const struct event *v)
{
    record_put_name(w, "sender");
    record_put_string(w, v->sender);
    record_text(w, "message_id", v->message_id);
    if (v->origin != NULL)
        record_text(w, "tag", v->origin->tag);
    if (v->client != NULL)
        record_text(w, "user", text_from(v->client->user));
    else
        w->full = w->full ||
                  !buffer_format(w->out, ",\"user\":\"uid:%" PRIu32 "\"", v->injector);
    record_number(w, "size", v->size);
    record_number(w, "recipients", v->recipients);
}

static void
record_finding(struct record_writer *w, const struct event *v)
{
    record_text(w, "kind", v->command);
    record_text(w, "subject", v->relay);
    record_text(w, "text", v->text);
    record_text(w, "hint", v->hint);
    if (v->since_ms > 0)
        record_number(w, "since_ms", v->since_ms);
}

static void
record_rest(struct record_writer *w, const struct event *v)
{
    switch ((unsigned)v->kind) {
    case EVENT_ACCEPTED:
    case EVENT_SUBMITTED:
        record_accepted(w, v);
        break;
    case EVENT_QUOTA:
        record_text(w, "subject", v->relay);
        record_text(w, "text", v->text);
        break;
    case EVENT_TROUBLE:
    case EVENT_RECOVERED:
        record_finding(w, v);
        break;
    default:
        record_verdict(w, v);
    }
}

/* MESSAGE-recipient-attempt; the message as a whole is recipient 0. A deferral, which
 * another verdict of the same attempt may follow, ends in "d": who throws away what has a
 * known id must not lose that. */
static void
record_id(struct record_writer *w, const struct event *v,
          const struct event_record_source *source)
{
    char message[ID_LENGTH + 1];
    bool fits;
    if (v->id.time_ms == 0) {
        fits = buffer_format(w->out, "%016" PRIx64 "-%" PRIu64, source->run,
                             source->serial);
    } else {
        bool whole = v->kind == EVENT_ACCEPTED || v->kind == EVENT_SUBMITTED;
        id_format(v->id, message);
        fits = buffer_format(w->out, "%s-%" PRIu32 "-%" PRIu32 "%s", message,
                             v->origin != NULL ? v->origin->recipient : 0,
                             whole ? 0 : v->attempt + 1,
                             v->kind == EVENT_DEFERRED ? "d" : "");
    }
    w->full = w->full || !fits;
}

bool
event_record_write(const struct event *v, const struct event_record_source *source,
                   struct buffer *out)
{
    struct record_writer w = {out, false};
    char message[ID_LENGTH + 1];
    size_t before = out->length;
    const char *type =
        event_word(v->kind == EVENT_SUBMITTED ? EVENT_ACCEPTED : v->kind);
    record_put(&w, TEXT("{\"id\":\""));
    record_id(&w, v, source);
    w.full = w.full || !buffer_format(out, "\",\"type\":\"%s\",\"time_ms\":%" PRId64,
                                      type, source->now_ms);
    record_text(&w, "host", text_from(source->host));
    if (v->id.time_ms != 0) {
        id_format(v->id, message);
        record_text(&w, "message", text_from(message));
    }
    record_rest(&w, v);
    record_put(&w, TEXT("}\n"));
    if (w.full)
        out->length = before;
    return !w.full;
}

bool
event_record_read(struct text line, char id[EVENT_ID_MAX], int64_t *time_ms)
{
    static const struct text start = TEXT("{\"id\":\""), time = TEXT("\"time_ms\":");
    uint64_t number;
    if (!text_starts(line, start) || line.at[line.length - 1] != '}')
        return false;
    struct text rest = text_after(line, start.length), field;
    if (!text_cut(&rest, '"', &field) || field.length == 0 ||
        field.length >= EVENT_ID_MAX || !text_copy(id, EVENT_ID_MAX, field))
        return false;
    const char *at = memmem(rest.at, rest.length, time.at, time.length);
    if (at == NULL)
        return false;
    rest = text_after(rest, (size_t)(at - rest.at) + time.length);
    size_t digits = 0;
    while (digits < rest.length && text_is_digit(rest.at[digits]))
        digits++;
    if (!text_number(text_before(rest, digits), INT64_MAX, &number))
        return false;
    *time_ms = (int64_t)number;
    return true;
}
