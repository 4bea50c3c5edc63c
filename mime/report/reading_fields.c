/* The fields for programs: of a delivery status, and of a complaint. */
#include "mime/report/reading_internal.h"

#include "mime/header.h"

#include <stdio.h>
#include <string.h>

enum { CODE_LEAST = 400, CODE_MOST = 599 };

struct reading_recipient *
reading_recipient_add(struct reading *reading)
{
    if (reading->count == READING_RECIPIENTS_MAX)
        return NULL;
    return &reading->recipients[reading->count++];
}

void
reading_squeeze(struct text t, char *out, size_t size)
{
    size_t used = 0, whole, length;
    for (size_t at = 0; at < t.length && used + 1 < size; at += length) {
        length = text_character_start(text_after(t, at), &whole);
        bool is_blank = (unsigned char)t.at[at] <= ' ' || t.at[at] == 0x7f;
        if (is_blank && (used == 0 || out[used - 1] == ' '))
            continue;
        if (whole > 1 && whole == length && used + whole < size) {
            memcpy(out + used, t.at + at, whole);
            used += whole;
        } else if (whole <= 1 || whole > length) {
            out[used++] = is_blank ? ' ' : whole == 1 ? t.at[at] : '?';
        }
    }
    while (used > 0 && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
}

/* --- Addresses --------------------------------------------------------------------- */

static bool
reading_put_character(struct buffer *out, uint32_t code)
{
    char utf8[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    if (code < ' ' || code == 0x7f || code > 0x10ffff)
        return false;
    for (size_t i = length; i-- > 1; code >>= 6)
        utf8[i] = (char)(0x80 | (code & 0x3f));
    utf8[0] = (char)(length == 1 ? code : (0xf00U >> length & 0xf0U) | code);
    return buffer_add(out, text_of(utf8, length));
}

/* RFC 6533 §3: \x{HEX}. */
static bool
reading_unitext(struct text t, struct buffer *out)
{
    while (t.length > 0) {
        struct text digits = text_after(t, 3);
        size_t end = text_starts(t, TEXT("\\x{")) ? text_find(digits, '}') : TEXT_NONE;
        uint32_t code = 0;
        if (end == TEXT_NONE || end > 6) {
            if (!buffer_add_byte(out, t.at[0]))
                return false;
            t = text_after(t, 1);
            continue;
        }
        for (size_t i = 0; i < end; i++) {
            if (text_hex_digit(digits.at[i]) < 0)
                return false;
            code = code << 4 | (uint32_t)text_hex_digit(digits.at[i]);
        }
        if (!reading_put_character(out, code))
            return false;
        t = text_after(digits, end + 1);
    }
    return true;
}

static bool
reading_normal(struct text t, char out[ADDRESS_MAX + 1])
{
    struct address a;
    struct buffer normal;
    buffer_init(&normal, ADDRESS_MAX);
    bool good = address_parse(t, &a) && address_write(&a, &normal) &&
                text_copy(out, ADDRESS_MAX + 1, buffer_text(&normal));
    buffer_free(&normal);
    return good;
}

bool
reading_address(struct text t, char out[ADDRESS_MAX + 1])
{
    struct buffer plain;
    t = text_trim(t);
    size_t open = text_find(t, '<'), close = text_find_last(t, '>');
    if (open != TEXT_NONE && close != TEXT_NONE && close > open)
        t = text_after(text_before(t, close), open + 1);
    if (text_starts_nocase(t, TEXT("mailto:")))
        t = text_after(t, strlen("mailto:"));
    if (reading_normal(t, out) && text_find(t, '\\') == TEXT_NONE)
        return true;
    buffer_init(&plain, 2 * ADDRESS_MAX);
    bool good = reading_unitext(t, &plain) && reading_normal(buffer_text(&plain), out);
    buffer_clear(&plain);
    good = good || (xtext_read(t, &plain) && reading_normal(buffer_text(&plain), out));
    buffer_free(&plain);
    if (!good)
        reading_squeeze(t, out, ADDRESS_MAX + 1);
    return good;
}

/* "rfc822; joe@b.test", "dns; mx.b.test" */
static struct text
reading_untyped(struct text value)
{
    size_t type = text_find(value, ';');
    return type != TEXT_NONE ? text_after(value, type + 1) : value;
}

/* --- Codes ------------------------------------------------------------------------- */

/* The length of "5.1.10" at the start of t; 0: it is none, or an address of IPv4. */
static size_t
reading_enhanced(struct text t)
{
    if (t.length < 5 || strchr("245", t.at[0]) == NULL || t.at[1] != '.')
        return 0;
    size_t subject = text_digits(text_after(t, 2));
    size_t dot = 2 + subject;
    if (subject == 0 || subject > 3 || dot >= t.length || t.at[dot] != '.')
        return 0;
    size_t detail = text_digits(text_after(t, dot + 1));
    size_t end = dot + 1 + detail;
    bool goes_on =
        end + 1 < t.length && t.at[end] == '.' && text_is_digit(t.at[end + 1]);
    return detail == 0 || detail > 3 || goes_on ? 0 : end;
}

static bool
reading_is_word(char c)
{
    return text_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c == '.' || c == '@' || c == '_';
}

/* The first of each that begins a word. */
void
reading_find_status(struct text t, char status[12], int *code)
{
    bool has_status = false, has_code = false;
    for (size_t at = 0; at < t.length && !(has_status && has_code); at++) {
        struct text rest = text_after(t, at);
        uint64_t number;
        if (!text_is_digit(rest.at[0]) || (at > 0 && reading_is_word(t.at[at - 1])))
            continue;
        size_t length = reading_enhanced(rest);
        if (length > 0 && length < 12 && !has_status) {
            text_copy(status, 12, text_before(rest, length));
            has_status = true;
        }
        if (text_digits(rest) == 3 && !has_code &&
            (rest.length == 3 || !reading_is_word(rest.at[3])) &&
            text_number(text_before(rest, 3), CODE_MOST, &number) &&
            number >= CODE_LEAST) {
            *code = (int)number;
            has_code = true;
        }
    }
}

/* --- Delivery status --------------------------------------------------------------- */

static const struct {
    const char *word;
    enum report_action action;
} actions[] = {
    {"failed",    REPORT_FAILED   },
    {"failure",   REPORT_FAILED   },
    {"delayed",   REPORT_DELAYED  },
    {"delivered", REPORT_DELIVERED},
    {"relayed",   REPORT_RELAYED  },
    {"expanded",  REPORT_EXPANDED },
};

/* A block of fields: of the message, or of a recipient. */
struct status_block {
    struct reading_recipient r;
    bool has_final, has_action, has_any;
};

static void
status_block_action(struct status_block *b, struct text value)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (text_starts_nocase(value, text_from(actions[i].word))) {
            b->r.action = actions[i].action;
            b->has_action = b->has_any = true;
            return;
        }
}

/* Status counts before what the reply says. */
static void
status_block_end(struct status_block *b, struct reading *reading)
{
    struct reading_recipient *r;
    char family = b->r.status[0];
    if (b->has_any && (r = reading_recipient_add(reading)) != NULL) {
        char said[12] = "";
        reading_find_status(text_from(b->r.text), said, &b->r.code);
        if (family == '\0' ||
            (strcmp(b->r.status + 1, ".0.0") == 0 && said[0] == family))
            memcpy(b->r.status, said, sizeof(said));
        family = b->r.status[0];
        if (family == '\0' && b->r.code > 0)
            family = b->r.code >= 500 ? '5' : '4';
        if (!b->has_action)
            b->r.action = family == '4'   ? REPORT_DELAYED
                          : family == '2' ? REPORT_DELIVERED
                                          : REPORT_FAILED;
        if (b->r.status[0] == '\0')
            snprintf(b->r.status, sizeof(b->r.status), "%c.0.0",
                     family != '\0'                  ? family
                     : b->r.action == REPORT_FAILED  ? '5'
                     : b->r.action == REPORT_DELAYED ? '4'
                                                     : '2');
        *r = b->r;
    }
    *b = (struct status_block){.has_any = false};
}

static void
status_block_field(struct status_block *b, struct reading *reading,
                   const struct header_field *f)
{
    int none = 0;
    struct text value = text_trim(f->value);
    if (text_equal_nocase(f->name, TEXT("Final-Recipient"))) {
        if (b->has_final)
            status_block_end(b, reading);
        b->has_final = b->has_any = true;
        (void)reading_address(reading_untyped(value), b->r.address);
    } else if (text_equal_nocase(f->name, TEXT("Original-Recipient"))) {
        if (b->has_final && b->r.original[0] != '\0')
            status_block_end(b, reading);
        b->has_any = true;
        (void)reading_address(reading_untyped(value), b->r.original);
    } else if (text_equal_nocase(f->name, TEXT("Action"))) {
        status_block_action(b, value);
    } else if (text_equal_nocase(f->name, TEXT("Status"))) {
        b->has_any = true;
        reading_find_status(value, b->r.status, &none);
    } else if (text_equal_nocase(f->name, TEXT("Diagnostic-Code"))) {
        size_t type = text_find(value, ';');
        bool typed = type != TEXT_NONE && type < 16;
        reading_squeeze(typed ? text_after(value, type + 1) : value, b->r.text,
                        sizeof(b->r.text));
    } else if (text_equal_nocase(f->name, TEXT("Reporting-MTA"))) {
        reading_squeeze(reading_untyped(value), reading->reporter,
                        sizeof(reading->reporter));
    }
}

void
reading_of_status(struct reading *reading, struct text fields)
{
    struct status_block block = {.has_any = false};
    struct header_field f;
    struct text line;
    while (fields.length > 0) {
        size_t before = fields.length;
        if (header_next(&fields, &f)) {
            status_block_field(&block, reading, &f);
            continue;
        }
        bool is_empty = fields.length < before;
        if (!is_empty && text_cut(&fields, '\n', &line))
            is_empty = text_trim(line).length == 0;
        if (is_empty)
            status_block_end(&block, reading);
    }
    status_block_end(&block, reading);
    if (reading->count > 0)
        reading->kind = READING_STATUS;
}

/* --- Feedback ---------------------------------------------------------------------- */

void
reading_of_feedback(struct reading *reading, struct text fields)
{
    struct header_field f;
    while (header_next(&fields, &f)) {
        struct text value = text_trim(f.value);
        if (text_equal_nocase(f.name, TEXT("Feedback-Type"))) {
            reading_squeeze(value, reading->feedback, sizeof(reading->feedback));
            text_lower(reading->feedback, strlen(reading->feedback));
            reading->kind = READING_COMPLAINT;
        } else if (text_equal_nocase(f.name, TEXT("Original-Rcpt-To")) ||
                   text_equal_nocase(f.name, TEXT("Removal-Recipient"))) {
            struct reading_recipient *r = reading_recipient_add(reading);
            if (r != NULL)
                (void)reading_address(value, r->address);
        } else if (text_equal_nocase(f.name, TEXT("Reporting-MTA"))) {
            reading_squeeze(reading_untyped(value), reading->reporter,
                            sizeof(reading->reporter));
        } else if (text_equal_nocase(f.name, TEXT("User-Agent")) &&
                   reading->reporter[0] == '\0') {
            reading_squeeze(value, reading->reporter, sizeof(reading->reporter));
        }
    }
    if (reading->kind == READING_NONE) /* without a type */
        reading->count = 0;
}
