/* Writes events as JSON. */
#include "base/event/event_record.h"

#include "base/json_write.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *word;
    uint64_t kinds;
} record_types[] = {
    {"accepted",      EVENT_BIT(EVENT_ACCEPTED) | EVENT_BIT(EVENT_SUBMITTED)},
    {"delivered",     EVENT_BIT(EVENT_DELIVERED)                            },
    {"deferred",      EVENT_BIT(EVENT_DEFERRED)                             },
    {"bounced",       EVENT_BIT(EVENT_BOUNCED)                              },
    {"expired",       EVENT_BIT(EVENT_EXPIRED)                              },
    {"bounced_later", EVENT_BIT(EVENT_BOUNCED_LATER)                        },
    {"complained",    EVENT_BIT(EVENT_COMPLAINED)                           },
    {"quota",         EVENT_BIT(EVENT_QUOTA)                                },
    {"suppressed",    EVENT_BIT(EVENT_SUPPRESSED)                           },
    {"trouble",       EVENT_BIT(EVENT_TROUBLE)                              },
    {"recovered",     EVENT_BIT(EVENT_RECOVERED)                            },
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

#define MEMBER(name) TEXT(",\"" name "\":")

/* --- Members ---------------------------------------------------------------------- */

struct record {
    struct json_writer json;
    const struct log_mask *mask; /* NULL: addresses are whole */
};

/* A word of ours, or a handle that the sender of the mail compares: never masked. */
static void
record_word(struct record *r, struct text before, struct text value)
{
    if (value.length > 0)
        json_put_string(&r->json, before, value);
}

static void
record_always(struct record *r, struct text before, struct text value)
{
    struct buffer masked = {0};
    json_put_string(&r->json, before,
                    r->mask != NULL ? log_mask_text(r->mask, value, &masked) : value);
    buffer_free(&masked);
}

static void
record_text(struct record *r, struct text before, struct text value)
{
    if (value.length > 0)
        record_always(r, before, value);
}

/* xtext (RFC 3461 §4), decoded; a malformed one stays. */
static void
record_xtext(struct record *r, struct text before, struct text value)
{
    if (text_find(value, '+') == TEXT_NONE) {
        record_text(r, before, value);
        return;
    }
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
    record_text(r, before, buffer_text(&plain));
    buffer_free(&plain);
}

/* ORCPT has a type before the address: "rfc822;". */
static void
record_original(struct record *r, struct text orcpt)
{
    size_t type = text_find(orcpt, ';');
    record_xtext(r, MEMBER("original_recipient"),
                 type != TEXT_NONE ? text_after(orcpt, type + 1) : orcpt);
}

static void
record_name(struct record *r, struct text name)
{
    struct buffer masked = {0};
    record_word(r, MEMBER("user"),
                r->mask != NULL ? log_mask_name(r->mask, name, &masked) : name);
    buffer_free(&masked);
}

static void
record_user(struct record *r, struct text submitter)
{
    if (text_starts(submitter, TEXT("user:")))
        record_name(r, text_after(submitter, 5));
    else
        record_text(r, MEMBER("user"), submitter);
}

static void
record_origin(struct record *r, const struct event_origin *o)
{
    if (o->original.length > 0)
        record_original(r, o->original);
    record_xtext(r, MEMBER("envid"), o->envelope_id);
    record_word(r, MEMBER("message_id"), o->message_id);
    record_word(r, MEMBER("tag"), o->tag);
    record_user(r, o->submitter);
}

static void
record_outcome(struct record *r, const struct event *v)
{
    const struct outcome *o = v->outcome;
    record_text(r, MEMBER("relay"),
                r->mask != NULL ? log_mask_relay(r->mask, o->remote)
                                : text_from(o->remote));
    record_text(r, MEMBER("tls"), v->tls);
    if (v->dkim.length > 0)
        json_put_list(&r->json, MEMBER("dkim"), v->dkim);
    if (o->code > 0)
        json_put_number(&r->json, MEMBER("code"), o->code);
    record_text(r, MEMBER("enhanced"), text_from(o->enhanced));
    record_text(r, MEMBER("text"), text_from(o->text));
    record_text(r, MEMBER("class"), text_from(v->reason));
    record_text(r, MEMBER("hint"), v->hint);
}

static void
record_verdict(struct record *r, const struct event *v)
{
    record_always(r, MEMBER("sender"), v->sender); /* empty: the null sender */
    record_text(r, MEMBER("recipient"), v->recipient);
    if (v->origin != NULL)
        record_origin(r, v->origin);
    json_put_number(&r->json, MEMBER("size"), v->size);
    json_put_number(&r->json, MEMBER("attempt"), (int64_t)v->attempt + 1);
    json_put_number(&r->json, MEMBER("delay_ms"), v->total_ms);
    record_outcome(r, v);
    if (v->next_ms > 0)
        json_put_number(&r->json, MEMBER("next_ms"), v->next_ms);
}

static void
record_accepted(struct record *r, const struct event *v)
{
    record_always(r, MEMBER("sender"), v->sender);
    record_word(r, MEMBER("message_id"), v->message_id);
    if (v->origin != NULL)
        record_word(r, MEMBER("tag"), v->origin->tag);
    if (v->client != NULL)
        record_name(r, text_from(v->client->user));
    else
        r->json.full =
            r->json.full ||
            !buffer_format(r->json.out, ",\"user\":\"uid:%" PRIu32 "\"", v->injector);
    json_put_number(&r->json, MEMBER("size"), v->size);
    json_put_number(&r->json, MEMBER("recipients"), v->recipients);
}

static void
record_finding(struct record *r, const struct event *v)
{
    record_text(r, MEMBER("kind"), v->command);
    record_text(r, MEMBER("subject"), v->relay);
    record_text(r, MEMBER("text"), v->text);
    record_text(r, MEMBER("hint"), v->hint);
    if (v->since_ms > 0)
        json_put_number(&r->json, MEMBER("since_ms"), v->since_ms);
}

/* A report that has come back. */
static void
record_returned(struct record *r, const struct event *v)
{
    char report[ID_LENGTH + 1];
    record_text(r, MEMBER("recipient"), v->recipient);
    record_text(r, MEMBER("sender_domain"), v->sender);
    json_put_string(&r->json,
                    v->kind == EVENT_COMPLAINED ? MEMBER("feedback") : MEMBER("action"),
                    v->command);
    if (v->outcome->code > 0)
        json_put_number(&r->json, MEMBER("code"), v->outcome->code);
    record_text(r, MEMBER("enhanced"), text_from(v->outcome->enhanced));
    record_text(r, MEMBER("text"), text_from(v->outcome->text));
    record_text(r, MEMBER("class"), text_from(v->reason));
    record_text(r, MEMBER("reporter"), v->relay);
    json_put_string(&r->json, MEMBER("report"), text_from(id_format(v->other, report)));
}

static void
record_rest(struct record *r, const struct event *v)
{
    switch ((unsigned)v->kind) {
    case EVENT_ACCEPTED:
    case EVENT_SUBMITTED:
        record_accepted(r, v);
        break;
    case EVENT_BOUNCED_LATER:
    case EVENT_COMPLAINED:
        record_returned(r, v);
        break;
    case EVENT_QUOTA:
        record_text(r, MEMBER("subject"), v->relay);
        record_text(r, MEMBER("text"), v->text);
        break;
    case EVENT_SUPPRESSED:
        record_always(r, MEMBER("sender"), v->sender);
        record_text(r, MEMBER("recipient"), v->recipient);
        record_text(r, MEMBER("class"), text_from(v->reason));
        record_text(r, MEMBER("text"), v->text);
        break;
    case EVENT_TROUBLE:
    case EVENT_RECOVERED:
        record_finding(r, v);
        break;
    default:
        record_verdict(r, v);
    }
}

/* MESSAGE-recipient-attempt; the message as a whole is recipient 0; of a report
 * MESSAGE-REPORT-recipient. A deferral, which
 * another verdict of the same attempt may follow, ends in "d": a reader that drops events
 * with a known id must not lose that verdict. */
static void
record_id(struct record *r, const struct event *v, struct text message,
          const struct event_record_source *source)
{
    bool whole = v->kind == EVENT_ACCEPTED || v->kind == EVENT_SUBMITTED;
    if (message.length == 0) {
        r->json.full =
            r->json.full || !buffer_format(r->json.out, "%016" PRIx64 "-%" PRIu64,
                                           source->run, source->serial);
        return;
    }
    if (v->kind == EVENT_BOUNCED_LATER || v->kind == EVENT_COMPLAINED) {
        json_put(&r->json, message);
        json_put(&r->json, TEXT("-"));
        json_put(&r->json, text_from(ID_TEXT(v->other)));
        json_put_number(&r->json, TEXT("-"), v->attempt);
        return;
    }
    json_put(&r->json, message);
    json_put_number(&r->json, TEXT("-"), v->origin != NULL ? v->origin->recipient : 0);
    json_put_number(&r->json, TEXT("-"), whole ? 0 : (int64_t)v->attempt + 1);
    json_put(&r->json, v->kind == EVENT_DEFERRED ? TEXT("d") : TEXT(""));
}

bool
event_record_write(const struct event *v, const struct event_record_source *source,
                   struct buffer *out)
{
    struct record r = {
        {out, false},
        source->mask
    };
    char id[ID_LENGTH + 1] = "";
    size_t before = out->length;
    const char *type =
        event_word(v->kind == EVENT_SUBMITTED ? EVENT_ACCEPTED : v->kind);
    if (v->id.time_ms != 0)
        id_format(v->id, id);
    struct text message = text_from(id);
    json_put(&r.json, TEXT("{\"id\":\""));
    record_id(&r, v, message, source);
    json_put_string(&r.json, TEXT("\",\"type\":"), text_from(type));
    json_put_number(&r.json, MEMBER("time_ms"), source->now_ms);
    record_text(&r, MEMBER("host"), text_from(source->host));
    record_word(&r, MEMBER("message"), message);
    record_rest(&r, v);
    json_put(&r.json, TEXT("}\n"));
    if (r.json.full)
        out->length = before;
    return !r.json.full;
}

/* A write over zeros that a power cut has torn may lack any of its sectors: the beginning
 * of one line, zeros, and the end of another. */
static bool
is_whole_record(struct text line)
{
    for (size_t i = 0; i < line.length; i++)
        if ((unsigned char)line.at[i] < ' ')
            return false;
    return true;
}

bool
event_record_read(struct text line, char id[EVENT_ID_MAX], int64_t *time_ms)
{
    static const struct text start = TEXT("{\"id\":\""), time = TEXT("\"time_ms\":");
    uint64_t number;
    if (!text_starts(line, start) || line.at[line.length - 1] != '}' ||
        !is_whole_record(line))
        return false;
    struct text rest = text_after(line, start.length), field;
    if (!text_cut(&rest, '"', &field) || field.length == 0 ||
        field.length >= EVENT_ID_MAX || !text_copy(id, EVENT_ID_MAX, field))
        return false;
    const char *at = memmem(rest.at, rest.length, time.at, time.length);
    if (at == NULL)
        return false;
    rest = text_after(rest, (size_t)(at - rest.at) + time.length);
    if (!text_number(text_before(rest, text_digits(rest)), INT64_MAX, &number))
        return false;
    *time_ms = (int64_t)number;
    return true;
}
