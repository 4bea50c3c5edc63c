/* Reads queries, and compares lines with them. */
#include "admin/history/trace_query.h"

#include "base/net_address.h"

#include <string.h>

static bool
is_address(struct text t)
{
    size_t at = text_find_last(t, '@');
    return at != TEXT_NONE && at + 1 < t.length && text_find(t, ' ') == TEXT_NONE;
}

bool
trace_query_read(struct text t, struct trace_query *out)
{
    struct net_address address;
    t = text_trim(t);
    if (t.length == 0 || t.length > TRACE_QUERY_MAX)
        return false;
    *out = (struct trace_query){.kind = TRACE_WORDS};
    (void)text_copy(out->text, sizeof(out->text), t);
    text_lower(out->text, t.length);
    struct text bare = text_within(t, '[', ']');
    if (text_starts_nocase(bare, TEXT("IPv6:")))
        bare = text_after(bare, strlen("IPv6:"));
    if (id_read(t, &out->id)) {
        out->kind = TRACE_ID;
    } else if (t.length > 2 && t.at[0] == '<' && t.at[t.length - 1] == '>') {
        out->kind = TRACE_BRACKETED;
    } else if (bare.length < NET_ADDRESS_TEXT_MAX &&
               net_address_parse_ip(bare, &address)) {
        out->kind = TRACE_IP;
        net_address_unmap(&address);
        net_address_ip(&address, out->text);
    } else if (is_address(t)) {
        out->kind = t.at[0] == '@' ? TRACE_DOMAIN : TRACE_ADDRESS;
    }
    return true;
}

static char
folded(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Where the needle, in lower case, begins in t from `from` on; TEXT_NONE: nowhere. */
static size_t
find_folded(struct text t, struct text needle, size_t from)
{
    for (size_t i = from; i + needle.length <= t.length; i++) {
        size_t same = 0;
        while (same < needle.length && folded(t.at[i + same]) == needle.at[same])
            same++;
        if (same == needle.length)
            return i;
    }
    return TEXT_NONE;
}

/* "[192.0.2.1]", "[IPv6:2001:db8::1]", "host[2001:db8::1]:25" */
static bool
has_ip(struct text line, struct text ip)
{
    for (size_t at = find_folded(line, ip, 0); at != TEXT_NONE;
         at = find_folded(line, ip, at + 1)) {
        struct text before = text_before(line, at);
        bool opens = before.length > 0 && before.at[before.length - 1] == '[';
        opens = opens || text_ends_nocase(before, TEXT("[IPv6:"));
        if (opens && text_starts(text_after(line, at + ip.length), TEXT("]")))
            return true;
    }
    return false;
}

static bool
is_value_of(const struct trace_query *q, struct text wanted,
            const struct history_field *field)
{
    struct text value = field->value;
    bool bracketed =
        value.length >= 2 && value.at[0] == '<' && value.at[value.length - 1] == '>';
    if (!bracketed || field->key.length == 0)
        return false;
    if (q->kind == TRACE_BRACKETED)
        return text_equal_nocase(value, wanted);
    if (text_equal(field->key, TEXT("message_id")))
        return false;
    value = text_before(text_after(value, 1), value.length - 2);
    return q->kind == TRACE_DOMAIN ? text_ends_nocase(value, wanted)
                                   : text_equal_nocase(value, wanted);
}

/* Nearly all lines end at the first test. */
static bool
has_value(const struct trace_query *q, struct text line, struct text wanted)
{
    struct history_line read;
    struct history_field field;
    if (find_folded(line, wanted, 0) == TEXT_NONE || !history_line_read(line, &read))
        return false;
    while (history_line_field(&read.fields, &field))
        if (is_value_of(q, wanted, &field))
            return true;
    return false;
}

bool
trace_query_matches(const struct trace_query *q, struct id id, struct text line)
{
    struct text wanted = text_from(q->text);
    switch (q->kind) {
    case TRACE_ID:
        return id.time_ms != 0 && id_compare(id, q->id) == 0;
    case TRACE_BRACKETED:
    case TRACE_ADDRESS:
    case TRACE_DOMAIN:
        return has_value(q, line, wanted);
    case TRACE_IP:
        return has_ip(line, wanted);
    case TRACE_WORDS:
        break;
    }
    return find_folded(line, wanted, 0) != TEXT_NONE;
}
