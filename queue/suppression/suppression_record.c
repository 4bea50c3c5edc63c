/* Reads and writes lines of entries, of the file and of lists. */
#include "queue/suppression/suppression_record.h"

#include "base/crc.h"
#include "base/printable.h"
#include "mime/address.h"
#include "mime/date.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CRC_DIGITS = 8, FIELDS = 5 };

/* --- The file ---------------------------------------------------------------------- */

bool
suppression_record_write(const struct suppression_entry *entry, struct buffer *out)
{
    size_t begin = out->length;
    bool fits =
        buffer_format(out, "%0*d %" PRId64 " %s %u ", CRC_DIGITS, 0, entry->at_s,
                      suppression_class_name(entry->class), entry->strikes) &&
        xtext_write(entry->domain.length > 0 ? entry->domain : TEXT("*"), out) &&
        buffer_add_byte(out, ' ') && xtext_write(entry->address, out) &&
        buffer_add_byte(out, ' ') && xtext_write(entry->reason, out) &&
        buffer_add_byte(out, '\n');
    if (!fits) {
        out->length = begin;
        return false;
    }
    const char *rest = out->at + begin + CRC_DIGITS + 1;
    char crc[CRC_DIGITS + 1];
    snprintf(crc, sizeof(crc), "%08" PRIx32,
             crc_add(0, rest, out->length - 1 - begin - CRC_DIGITS - 1));
    memcpy(out->at + begin, crc, CRC_DIGITS);
    return true;
}

/* Decodes into the room at *used, behind which the text stays. */
static bool
record_decode(struct text word, size_t most, struct suppression_record *out,
              size_t *used, struct text *text)
{
    struct buffer plain;
    buffer_init(&plain, most);
    bool good = xtext_read(word, &plain);
    if (good && plain.length > 0)
        memcpy(out->room + *used, plain.at, plain.length);
    *text = text_of(out->room + *used, plain.length);
    *used += plain.length;
    buffer_free(&plain);
    return good;
}

static bool
record_texts(struct text rest, struct suppression_record *out)
{
    struct text domain, address;
    size_t used = 0;
    struct suppression_entry *e = &out->entry;
    if (!text_cut(&rest, ' ', &domain) || !text_cut(&rest, ' ', &address) ||
        !record_decode(domain, SUPPRESSION_DOMAIN_MAX, out, &used, &e->domain) ||
        !record_decode(address, SUPPRESSION_ADDRESS_MAX, out, &used, &e->address) ||
        !record_decode(rest, SUPPRESSION_REASON_MAX, out, &used, &e->reason))
        return false;
    if (text_equal(e->domain, TEXT("*")))
        e->domain = TEXT("");
    return e->address.length > 0;
}

bool
suppression_record_read(struct text line, struct suppression_record *out)
{
    struct text crc, at, class, strikes, rest = line;
    char digits[CRC_DIGITS + 1];
    uint64_t at_s, number;
    if (!text_cut(&rest, ' ', &crc) || rest.at == NULL)
        return false;
    snprintf(digits, sizeof(digits), "%08" PRIx32, crc_add(0, rest.at, rest.length));
    if (!text_equal(crc, text_from(digits)) || !text_cut(&rest, ' ', &at) ||
        !text_cut(&rest, ' ', &class) || !text_cut(&rest, ' ', &strikes) ||
        !text_number(at, UINT32_MAX, &at_s) || !text_number(strikes, 255, &number) ||
        !suppression_class_read(class, &out->entry.class))
        return false;
    if (out->entry.class == SUPPRESSION_NONE && number == SUPPRESSION_REMOVED_STRIKES)
        out->entry.class = SUPPRESSION_REMOVED;
    out->entry.is_news = false;
    out->entry.at_s = (int64_t)at_s;
    out->entry.strikes = (unsigned)number;
    return record_texts(rest, out);
}

/* --- Texts ------------------------------------------------------------------------- */

bool
suppression_normal(struct text address, char out[SUPPRESSION_ADDRESS_MAX + 1])
{
    struct address parts;
    struct buffer normal;
    if (text_has_control(address) || !address_parse(address, &parts))
        return false;
    buffer_init(&normal, SUPPRESSION_ADDRESS_MAX);
    bool good = address_write(&parts, &normal) && normal.length > 0 &&
                text_copy(out, SUPPRESSION_ADDRESS_MAX + 1, buffer_text(&normal));
    if (good)
        text_lower(out, normal.length);
    buffer_free(&normal);
    return good;
}

void
suppression_reason(struct text text, char out[SUPPRESSION_REASON_MAX + 1])
{
    (void)!text_copy(out, SUPPRESSION_REASON_MAX + 1, text_trim(text));
    printable_make(out);
}

/* --- Lists ------------------------------------------------------------------------- */

/* A field of CSV, without its quotes; doubled ones within become one, in place. */
static struct text
import_field(char **at, const char *end)
{
    char *begin = *at, *to = *at, *from = *at;
    bool quoted = from < end && *from == '"';
    if (!quoted) {
        while (from < end && *from != ',')
            from++;
        *at = from < end ? from + 1 : NULL;
        return text_trim(text_of(begin, (size_t)(from - begin)));
    }
    for (from++; from < end; from++) {
        if (*from == '"' && (from + 1 == end || from[1] != '"'))
            break;
        from += *from == '"';
        *to++ = *from;
    }
    while (from < end && *from != ',')
        from++;
    *at = from < end ? from + 1 : NULL;
    return text_trim(text_of(begin, (size_t)(to - begin)));
}

/* Seconds since 1970, a date, or a date-time, perhaps without a zone. */
static bool
import_date(struct text t, int64_t *at_s)
{
    char time[DATE_TEXT_MAX] = "";
    uint64_t seconds;
    int64_t ms;
    if (text_number(t, UINT32_MAX, &seconds)) {
        *at_s = (int64_t)seconds;
        return true;
    }
    snprintf(time, sizeof(time), "%.*s%sZ", TEXT_ARGS(text_before(t, 19)),
             t.length == 10 ? "T00:00:00" : "");
    if (time[10] == ' ')
        time[10] = 'T';
    if (!date_read_utc(t, &ms) && !date_read_utc(text_from(time), &ms))
        return false;
    *at_s = ms / 1000;
    return *at_s >= 0 && *at_s <= UINT32_MAX;
}

static bool
import_says_complaint(struct text reason)
{
    struct text word = TEXT("complain");
    for (size_t at = 0; at + word.length <= reason.length; at++)
        if (text_starts_nocase(text_after(reason, at), word))
            return true;
    return false;
}

/* "", or the error of the fields behind the address. */
static const char *
import_rest(const struct text fields[FIELDS], struct suppression_entry *e)
{
    if (fields[2].length > 0 && !import_date(fields[2], &e->at_s))
        return "the date is not like 2026-11-29";
    if (fields[3].length == 0)
        e->class = import_says_complaint(fields[1]) ? SUPPRESSION_COMPLAINT
                                                    : SUPPRESSION_MANUAL;
    else if (!suppression_class_read(fields[3], &e->class) ||
             e->class == SUPPRESSION_NONE)
        return "the class is not one of doubtful, hard, complaint, manual";
    if (e->class == SUPPRESSION_DOUBTFUL)
        e->strikes = SUPPRESSION_STRIKES;
    if (fields[4].length > 0 && !address_is_domain(fields[4]))
        return "the sender's domain is not a domain";
    return "";
}

const char *
suppression_import_line(struct text line, int64_t now_s, struct suppression_record *out)
{
    char copy[SUPPRESSION_LINE_MAX], *at = copy;
    struct text fields[FIELDS] = {{0}};
    struct suppression_entry *e = &out->entry;
    *out = (struct suppression_record){.entry = {.at_s = now_s}};
    line = text_trim(line);
    if (line.length == 0 || line.at[0] == '#')
        return "";
    if (line.length >= sizeof(copy))
        return "the line is too long";
    memcpy(copy, line.at, line.length);
    for (size_t i = 0; i < FIELDS && at != NULL; i++)
        fields[i] = import_field(&at, copy + line.length);
    if (!suppression_normal(fields[0], out->room))
        return "not an address";
    const char *why = import_rest(fields, e);
    if (why[0] != '\0')
        return why;
    e->address = text_from(out->room);
    char *reason = out->room + SUPPRESSION_ADDRESS_MAX + 1;
    suppression_reason(fields[1], reason);
    e->reason = text_from(reason);
    char *domain = reason + SUPPRESSION_REASON_MAX + 1;
    (void)!text_copy(domain, SUPPRESSION_DOMAIN_MAX + 1, fields[4]);
    text_lower(domain, strlen(domain));
    e->domain = text_from(domain);
    return "";
}

/* In quotes where it could be taken apart, or for a comment. */
static bool
export_field(struct text t, struct buffer *out)
{
    bool quotes = text_find(t, ',') != TEXT_NONE || text_find(t, '"') != TEXT_NONE ||
                  text_starts(t, TEXT("#"));
    bool fits = !quotes || buffer_add_byte(out, '"');
    for (size_t i = 0; i < t.length && fits; i++)
        fits = (t.at[i] != '"' || buffer_add_byte(out, '"')) &&
               buffer_add_byte(out, t.at[i]);
    return fits && (!quotes || buffer_add_byte(out, '"'));
}

bool
suppression_export_line(const struct suppression_entry *entry, struct buffer *out)
{
    char date[DATE_TEXT_MAX];
    date_format_utc(entry->at_s * 1000, date);
    return export_field(entry->address, out) && buffer_add_byte(out, ',') &&
           export_field(entry->reason, out) &&
           buffer_format(out, ",%s,%s,%.*s\n", date,
                         suppression_class_name(entry->class),
                         TEXT_ARGS(entry->domain));
}
