/* Reads a report as its parts stream by; its fields and sentences are judged at the end. */
#include "mime/report/reading.h"

#include "base/memory.h"
#include "mime/report/reading_internal.h"

#include <stdlib.h>
#include <string.h>

enum { FAILED_MAX = 4096, VALUE_MAX = 2048 };

/* --- Signs in the header ----------------------------------------------------------- */

static const struct sign {
    const char *field; /* in lower case */
    const char *words; /* anywhere in the value, lower case; "": any value */
    unsigned sign;
} signs[] = {
    {"from",             "mailer-daemon",           READING_FROM_DAEMON                           },
    {"from",             "postmaster",              READING_FROM_DAEMON                           },
    {"from",             "mail delivery",           READING_FROM_DAEMON                           },
    {"from",             "microsoftexchange",       READING_FROM_DAEMON                           },
    {"from",             "mdaemon",                 READING_FROM_DAEMON                           },
    {"from",             "daemon@",                 READING_FROM_DAEMON                           },
    {"from",             "bounce",                  READING_FROM_DAEMON                           },
    {"from",             "noreply@",                READING_FROM_DAEMON                           },
    {"subject",          "deliver",                 READING_SUBJECT_BOUNCE                        },
    {"subject",          "failure notice",          READING_SUBJECT_BOUNCE                        },
    {"subject",          "returned mail",           READING_SUBJECT_BOUNCE                        },
    {"subject",          "returned to sender",      READING_SUBJECT_BOUNCE                        },
    {"subject",          "mail failure",            READING_SUBJECT_BOUNCE                        },
    {"subject",          "mail system error",       READING_SUBJECT_BOUNCE                        },
    {"subject",          "non remis",               READING_SUBJECT_BOUNCE                        },
    {"subject",          "unzustellbar",            READING_SUBJECT_BOUNCE                        },
    {"subject",          "no se puede entregar",    READING_SUBJECT_BOUNCE                        },
    {"subject",          "failed",                  READING_SUBJECT_BOUNCE                        },
    {"subject",          "could not send message",  READING_SUBJECT_BOUNCE                        },
    {"subject",          "delay",                   READING_SUBJECT_BOUNCE | READING_SUBJECT_DELAY},
    {"subject",          "warning: could not send",
     READING_SUBJECT_BOUNCE | READING_SUBJECT_DELAY                                               },
    {"subject",          "out of office",           READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "out of the office",       READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "automatic reply",         READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "auto reply",              READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "autoreply",               READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "auto-reply",              READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "auto:",                   READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "abwesenheit",             READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "automatische antwort",    READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "ponse automatique",       READING_SUBJECT_AUTOMATIC                     },
    {"subject",          "respuesta autom",         READING_SUBJECT_AUTOMATIC                     },
    {"auto-submitted",   "auto-replied",            READING_IS_AUTOMATIC                          },
    {"auto-submitted",   "auto-generated",          READING_IS_AUTOMATIC                          },
    {"x-autoreply",      "",                        READING_IS_AUTOMATIC                          },
    {"x-autorespond",    "",                        READING_IS_AUTOMATIC                          },
    {"x-autoreply-from", "",                        READING_IS_AUTOMATIC                          },
    {"x-mail-autoreply", "",                        READING_IS_AUTOMATIC                          },
    {"precedence",       "auto_reply",              READING_IS_AUTOMATIC                          },
    {"x-precedence",     "auto_reply",              READING_IS_AUTOMATIC                          },
};

/* The value of a field without its folds, in lower case. */
static struct text
reading_lower(struct text value, char *out, size_t size)
{
    reading_squeeze(value, out, size);
    text_lower(out, strlen(out));
    return text_from(out);
}

static void
reading_take_signs(struct report_reader *r, const struct structure_event *e)
{
    char value[VALUE_MAX];
    struct text lower = reading_lower(e->value, value, sizeof(value));
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (text_equal_nocase(e->name, text_from(signs[i].field)) &&
            strstr(value, signs[i].words) != NULL)
            r->signs |= signs[i].sign;
    if (text_equal_nocase(e->name, TEXT("X-Failed-Recipients")))
        (void)!(buffer_add(&r->failed, lower) && buffer_add_byte(&r->failed, ','));
}

/* --- Parts ------------------------------------------------------------------------- */

static void
reading_put(struct report_reader *r, enum reading_body body, struct text t)
{
    struct buffer *b = &r->bodies[body];
    size_t space = b->limit - b->length;
    (void)!buffer_add(b, text_before(t, space));
}

/* Tags become a blank, so that words of two cells do not meet. */
static void
reading_put_html(struct report_reader *r, struct text t)
{
    while (t.length > 0) {
        size_t at = text_find(t, r->in_tag ? '>' : '<');
        size_t end = at == TEXT_NONE ? t.length : at;
        if (!r->in_tag)
            reading_put(r, READING_BODY_TEXT, text_before(t, end));
        if (at == TEXT_NONE)
            return;
        r->in_tag = !r->in_tag;
        if (!r->in_tag)
            reading_put(r, READING_BODY_TEXT, TEXT(" "));
        t = text_after(t, at + 1);
    }
}

static void
reading_on_bytes(void *context, struct text bytes)
{
    struct report_reader *r = context;
    if (r->body == READING_BODY_TEXT && r->is_html)
        reading_put_html(r, bytes);
    else if (r->body != READING_BODY_NONE)
        reading_put(r, r->body, bytes);
}

static enum reading_body
reading_body_of(struct report_reader *r, const struct structure_part *part)
{
    static const struct {
        const char *type, *subtype;
        enum reading_body body;
    } types[] = {
        {"message", "delivery-status",        READING_BODY_STATUS  },
        {"message", "global-delivery-status", READING_BODY_STATUS  },
        {"message", "feedback-report",        READING_BODY_FEEDBACK},
        {"text",    "rfc822-headers",         READING_BODY_RETURNED},
        {"text",    "rfc822-header",          READING_BODY_RETURNED},
        {"message", "global-headers",         READING_BODY_RETURNED},
        {"message", "global",                 READING_BODY_RETURNED},
        {"message", "rfc822",                 READING_BODY_RETURNED},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (parameters_is(part->type, types[i].type, types[i].subtype))
            return types[i].body;
    if (parameters_is(part->type, "message", "disposition-notification"))
        r->signs |= READING_IS_RECEIPT;
    bool is_text = text_equal(part->type->type, TEXT("text")) ||
                   text_equal(part->type->type, TEXT("multipart")); /* no boundary */
    return is_text && r->returned == 0 ? READING_BODY_TEXT : READING_BODY_NONE;
}

/* The plain form of the text counts, if it comes first; of fields, the first part. */
static void
reading_begin_body(struct report_reader *r, const struct structure_part *part)
{
    const struct parameter *kind = parameters_find(part->type, "report-type");
    if (part->number == 0 && parameters_is(part->type, "multipart", "report") &&
        (kind == NULL || text_equal_nocase(kind->value, TEXT("delivery-status"))))
        r->signs |= READING_IS_REPORT;
    r->body = READING_BODY_NONE;
    if (part->holds != STRUCTURE_LEAF)
        return;
    enum reading_body body = reading_body_of(r, part);
    r->is_html = parameters_is(part->type, "text", "html");
    r->in_tag = false;
    if (body == READING_BODY_TEXT && r->is_html && r->has_plain)
        return;
    r->has_plain = r->has_plain || (body == READING_BODY_TEXT && !r->is_html);
    if (body != READING_BODY_TEXT && r->bodies[body].length > 0)
        return;
    r->body = body;
    decode_start(&r->decode, part->encoding, reading_on_bytes, r);
}

static void
reading_on_event(void *context, const struct structure_event *e)
{
    struct report_reader *r = context;
    switch (e->kind) {
    case STRUCTURE_BEGIN:
        if (r->returned == 0 && e->part->is_message && e->part->number > 0)
            r->returned = e->part->number;
        break;
    case STRUCTURE_FIELD:
        if (e->part->number == 0 && e->name.length > 0)
            reading_take_signs(r, e);
        if (e->part->number == r->returned && r->returned > 0)
            reading_put(r, READING_BODY_RETURNED, e->bytes);
        break;
    case STRUCTURE_HEADER:
        reading_begin_body(r, e->part);
        break;
    case STRUCTURE_BODY:
        if (r->body != READING_BODY_NONE)
            decode_add(&r->decode, e->bytes);
        break;
    case STRUCTURE_END:
        if (r->body != READING_BODY_NONE)
            decode_end(&r->decode);
        r->body = READING_BODY_NONE;
        if (e->part->number == r->returned)
            r->returned = 0;
        break;
    case STRUCTURE_OUTSIDE:
        if (r->returned == 0)
            reading_put(r, READING_BODY_TEXT, e->bytes);
        break;
    case STRUCTURE_DELIMITER:
    case STRUCTURE_PROBLEM:
        break;
    }
}

/* --- Marks ------------------------------------------------------------------------- */

static bool
reading_is_mark_byte(char c)
{
    return text_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static void
reading_add_mark(struct reading *reading, struct text mark)
{
    if (mark.length == 0 || mark.length >= READING_MARK_MAX ||
        reading->mark_count == READING_MARKS_MAX)
        return;
    for (size_t i = 0; i < reading->mark_count; i++)
        if (text_equal_nocase(mark, text_from(reading->marks[i])))
            return;
    text_copy(reading->marks[reading->mark_count++], READING_MARK_MAX, mark);
}

static void
reading_find_marks(struct report_reader *r, struct text t)
{
    char first = r->mark.length > 0 ? r->mark.at[0] : '\0';
    char other = (char)(first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first);
    for (size_t at = 0; r->mark.length > 0 && at + r->mark.length <= t.length; at++) {
        struct text rest = text_after(t, at);
        if ((rest.at[0] != first && rest.at[0] != other) ||
            !text_starts_nocase(rest, r->mark))
            continue;
        rest = text_after(rest, r->mark.length);
        size_t length = 0;
        while (length < rest.length && reading_is_mark_byte(rest.at[length]))
            length++;
        reading_add_mark(&r->result, text_before(rest, length));
    }
}

/* Also in a text that quotes the header. Folds are not of its value. */
static void
reading_find_stamp(struct report_reader *r, struct text t)
{
    struct text line;
    size_t length = 0;
    bool is_stamp = false;
    char *out = r->result.stamp;
    while (t.length > 0 && text_cut(&t, '\n', &line)) {
        bool folds = line.length > 0 && text_is_blank(line.at[0]);
        if (is_stamp && !folds)
            return;
        if (!is_stamp) {
            is_stamp = r->stamp.length > 0 && text_starts_nocase(line, r->stamp) &&
                       line.length > r->stamp.length && line.at[r->stamp.length] == ':';
            line = text_after(line, r->stamp.length + 1);
        }
        for (size_t i = 0; is_stamp && i < line.length; i++)
            if (!text_is_space(line.at[i]) && length + 1 < READING_STAMP_MAX) {
                out[length++] = line.at[i];
                out[length] = '\0';
            }
    }
}

/* --- The whole --------------------------------------------------------------------- */

struct report_reader *
reading_new(struct text mark, struct text stamp)
{
    struct report_reader *r = memory_new(sizeof(*r));
    r->mark = mark;
    r->stamp = stamp;
    for (unsigned i = 0; i < READING_BODIES; i++)
        buffer_init(&r->bodies[i], READING_BODY_MAX);
    buffer_init(&r->failed, FAILED_MAX);
    r->structure = structure_new(reading_on_event, r);
    return r;
}

void
reading_add(struct report_reader *r, struct text piece)
{
    structure_add(r->structure, piece);
}

/* Outlook's old loop sends the message alone, with this field. */
static bool
reading_is_old_complaint(const struct report_reader *r, struct text returned)
{
    static const char field[] = "X-HmXmrOriginalRecipient:";
    return (r->signs & (READING_IS_REPORT | READING_FROM_DAEMON)) == 0 &&
           returned.length > sizeof(field) &&
           memmem(returned.at, returned.length, field, strlen(field)) != NULL;
}

static void
reading_judge(struct report_reader *r)
{
    struct reading *out = &r->result;
    struct text text = buffer_text(&r->bodies[READING_BODY_TEXT]);
    struct text status = buffer_text(&r->bodies[READING_BODY_STATUS]);
    struct text feedback = buffer_text(&r->bodies[READING_BODY_FEEDBACK]);
    if (feedback.length > 0)
        reading_of_feedback(out, feedback);
    else if (reading_is_old_complaint(r,
                                      buffer_text(&r->bodies[READING_BODY_RETURNED])))
        out->kind = READING_COMPLAINT;
    if (out->kind == READING_NONE && (r->signs & READING_IS_RECEIPT) == 0)
        reading_of_status(out, status);
    if (out->kind == READING_NONE && (r->signs & READING_IS_RECEIPT) == 0)
        reading_of_text(r);
    unsigned automatic =
        READING_IS_AUTOMATIC | READING_SUBJECT_AUTOMATIC | READING_IS_RECEIPT;
    if (out->kind == READING_NONE && (r->signs & automatic) != 0)
        out->kind = READING_AUTOMATIC;
    reading_find_stamp(r, buffer_text(&r->bodies[READING_BODY_RETURNED]));
    if (out->stamp[0] == '\0')
        reading_find_stamp(r, text);
    for (unsigned i = READING_BODY_TEXT; i < READING_BODIES; i++)
        reading_find_marks(r, buffer_text(&r->bodies[i]));
}

const struct reading *
reading_end(struct report_reader *r)
{
    structure_end(r->structure);
    reading_judge(r);
    return &r->result;
}

void
reading_free(struct report_reader **reader)
{
    struct report_reader *r = *reader;
    *reader = NULL;
    if (r == NULL)
        return;
    for (unsigned i = 0; i < READING_BODIES; i++)
        buffer_free(&r->bodies[i]);
    buffer_free(&r->failed);
    structure_free(&r->structure);
    free(r);
}
