/* Reads a DNS reply: RFC 1035 §4.1, RFC 3596, RFC 6698.
 *
 * Debian 12 has c-ares 1.18, which returns replies as bytes; c-ares 1.28 and newer parse
 * them into records. This module goes when the support of Debian 12 ends: on 10 June
 * 2026, or on 30 June 2028 with long-term support. */
#include "base/dns/dns_reply.h"

#include "base/loop/loop.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    RECORDS_MAX = 256, /* examined in a reply */
    NAME_LENGTH_MAX = 253,
    LABEL_MAX = 63,
    POINTER = 0xc0,
    REPLY_HEADER = 12,
    RCODE = 0x0f,       /* in the fourth octet */
    AUTHENTIC = 0x20,   /* there, too: RFC 4035 §3.1.6 */
    RECORD_HEADER = 10, /* behind the owner's name */
    TLSA_HEADER = 3
};

struct cursor {
    struct text reply;
    size_t at; /* <= reply.length, or beyond it after a refusal */
};

struct record {
    size_t owner, owner_end;
    unsigned type, class;
    uint32_t ttl_s;
    size_t data, size; /* within the reply */
};

static unsigned
octet(struct text reply, size_t at)
{
    assert(at < reply.length);
    return (unsigned char)reply.at[at];
}

static unsigned
two_octets(struct text reply, size_t at)
{
    return octet(reply, at) << 8 | octet(reply, at + 1);
}

/* That of addresses is the last. */
static const struct dns_kind dns_kinds[] = {
    {DNS_TYPE_MX,    "MX",      "MX record"   },
    {DNS_TYPE_TXT,   "TXT",     "TXT record"  },
    {DNS_TYPE_TLSA,  "TLSA",    "TLSA record" },
    {DNS_TYPE_PTR,   "PTR",     "PTR record"  },
    {DNS_TYPE_CNAME, "CNAME",   "CNAME record"},
    {DNS_TYPE_SOA,   "SOA",     "SOA record"  },
    {DNS_TYPE_A,     "Address", "address"     },
};

const struct dns_kind *
dns_kind(enum dns_type type)
{
    const struct dns_kind *kind = dns_kinds;
    while (kind->type != type && kind->type != DNS_TYPE_A)
        kind++;
    return kind;
}

bool
dns_host_copy(char out[DNS_NAME_MAX], struct text name)
{
    size_t label = 0;
    if (name.length > 0 && name.at[name.length - 1] == '.')
        name.length--;
    if (name.length == 0 || name.length > NAME_LENGTH_MAX)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        if (c == '.' && label > 0)
            label = 0;
        else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || text_is_digit(c) ||
                 c == '-' || c == '_')
            label++;
        else
            return false;
        if (label > LABEL_MAX)
            return false;
    }
    text_copy(out, DNS_NAME_MAX, name);
    text_lower(out, name.length);
    return label > 0;
}

void
dns_reverse_name(const struct net_address *address, char out[DNS_NAME_MAX])
{
    struct net_address plain = *address;
    const unsigned char *ip = plain.ip;
    char *at = out;
    net_address_unmap(&plain);
    if (plain.family == NET_IPV4) {
        snprintf(out, DNS_NAME_MAX, "%u.%u.%u.%u.in-addr.arpa", ip[3], ip[2], ip[1],
                 ip[0]);
        return;
    }
    for (size_t i = 16; i-- > 0; at += 4)
        snprintf(at, 5, "%x.%x.", ip[i] & 15U, ip[i] >> 4U);
    snprintf(at, 9, "ip6.arpa");
}

bool
dns_answer_add(struct dns_answer *answer, enum net_family family, const void *ip,
               size_t size)
{
    struct net_address *address = &answer->addresses[answer->count];
    if (size != (family == NET_IPV6 ? 16 : 4))
        return false;
    if (answer->count == DNS_ADDRESS_MAX)
        return true;
    *address = (struct net_address){.family = family};
    memcpy(address->ip, ip, size);
    answer->count++;
    return true;
}

bool
dns_host_is_localhost(struct text name)
{
    return text_equal(name, TEXT("localhost")) ||
           text_ends_nocase(name, TEXT(".localhost"));
}

void
dns_answer_shuffle(struct loop *loop, struct dns_answer *answer)
{
    for (size_t i = answer->count; i > 1; i--) {
        size_t other = (size_t)(loop_random(loop) % i);
        struct net_address saved = answer->addresses[i - 1];
        answer->addresses[i - 1] = answer->addresses[other];
        answer->addresses[other] = saved;
    }
}

void
dns_answer_merge(const struct dns_answer *six, const struct dns_answer *four,
                 struct dns_answer *out)
{
    for (size_t i = 0; i < six->count || i < four->count; i++) {
        if (i < six->count && out->count < DNS_ADDRESS_MAX)
            out->addresses[out->count++] = six->addresses[i];
        if (i < four->count && out->count < DNS_ADDRESS_MAX)
            out->addresses[out->count++] = four->addresses[i];
    }
    out->secure = six->secure || four->secure;
    const struct dns_answer *named =
        six->canonical[0] != '\0' && (six->secure || !four->secure) ? six : four;
    text_copy(out->canonical, sizeof(out->canonical), text_from(named->canonical));
    out->ttl_s = four->count == 0 || (six->count > 0 && six->ttl_s < four->ttl_s)
                     ? six->ttl_s
                     : four->ttl_s;
}

static bool
skip_name(struct cursor *cursor)
{
    while (cursor->at < cursor->reply.length) {
        size_t label = octet(cursor->reply, cursor->at);
        bool pointer = label >= POINTER;
        if (!pointer && label > LABEL_MAX)
            return false;
        cursor->at += pointer ? 2 : label + 1;
        if (pointer || label == 0)
            return cursor->at <= cursor->reply.length;
    }
    return false;
}

/* Adds a label and a dot. A dot inside a label would change the name. */
static bool
add_label(char *name, size_t *length, struct text label)
{
    if (*length + label.length > NAME_LENGTH_MAX || text_find(label, '.') != TEXT_NONE)
        return false;
    memcpy(name + *length, label.at, label.length);
    *length += label.length;
    name[(*length)++] = '.';
    return true;
}

/* The name that fills [at, end), "" for the root. A pointer must point before the
 * labels that it ends (RFC 1035 §4.1.4 "prior"), so the loop terminates. */
static bool
read_host(struct text reply, size_t at, size_t end, char host[DNS_NAME_MAX])
{
    char name[NAME_LENGTH_MAX + 1];
    size_t length = 0, from = at;
    bool jumped = false;
    while (at < reply.length) {
        size_t label = octet(reply, at);
        size_t next = at + (label >= POINTER ? 2 : label + 1);
        if (next > reply.length || (!jumped && next > end))
            return false;
        if (label >= POINTER) {
            if (!jumped && next != end)
                return false;
            jumped = true;
            at = two_octets(reply, at) & 0x3fff;
            if (at >= from)
                return false;
            from = at;
        } else if (label == 0) {
            host[0] = '\0';
            return (jumped || next == end) &&
                   (length == 0 || dns_host_copy(host, text_of(name, length)));
        } else if (label > LABEL_MAX ||
                   !add_label(name, &length, text_of(reply.at + at + 1, label))) {
            return false;
        } else {
            at = next;
        }
    }
    return false;
}

static bool
next_record(struct cursor *cursor, struct record *record)
{
    struct text reply = cursor->reply;
    record->owner = cursor->at;
    if (!skip_name(cursor) || reply.length - cursor->at < RECORD_HEADER)
        return false;
    record->owner_end = cursor->at;
    record->type = two_octets(reply, cursor->at);
    record->class = two_octets(reply, cursor->at + 2);
    record->ttl_s = (uint32_t)two_octets(reply, cursor->at + 4) << 16 |
                    two_octets(reply, cursor->at + 6);
    if (record->ttl_s > INT32_MAX) /* RFC 2181 §8 */
        record->ttl_s = 0;
    record->size = two_octets(reply, cursor->at + 8);
    record->data = cursor->at + RECORD_HEADER;
    cursor->at = record->data;
    if (reply.length - cursor->at < record->size)
        return false;
    cursor->at += record->size;
    return true;
}

/* A full list drops its least preferred host, so that the order of a long answer does
 * not decide. */
static bool
dns_reply_make_space(struct dns_answer *answer, unsigned preference)
{
    size_t worst = 0;
    if (answer->count < DNS_MX_MAX)
        return true;
    for (size_t i = 0; i < answer->count; i++)
        if (answer->mx[i].preference >= answer->mx[worst].preference)
            worst = i;
    if (answer->mx[worst].preference <= preference)
        return false;
    answer->count--;
    memmove(&answer->mx[worst], &answer->mx[worst + 1],
            (answer->count - worst) * sizeof(answer->mx[0]));
    return true;
}

/* False when the record is invalid. */
static bool
add_mx(struct dns_answer *answer, struct text reply, const struct record *record)
{
    struct dns_mx mx = {0};
    if (record->size < 3 ||
        !read_host(reply, record->data + 2, record->data + record->size, mx.host))
        return false;
    mx.preference = two_octets(reply, record->data);
    if (dns_reply_make_space(answer, mx.preference))
        answer->mx[answer->count++] = mx;
    return true;
}

static bool
add_ptr(struct dns_answer *answer, struct text reply, const struct record *record)
{
    char host[DNS_NAME_MAX];
    if (!read_host(reply, record->data, record->data + record->size, host) ||
        host[0] == '\0')
        return false;
    if (answer->count < DNS_HOSTS_MAX)
        text_copy(answer->hosts[answer->count++], DNS_NAME_MAX, text_from(host));
    return true;
}

/* Data is not judged here: a record that is not usable proves nothing, but says that
 * there is a record (RFC 7671 §10.1). */
static bool
add_tlsa(struct dns_answer *answer, struct text reply, const struct record *record)
{
    struct text data = text_of(reply.at + record->data, record->size);
    if (data.length < TLSA_HEADER || data.length - TLSA_HEADER > DNS_RECORD_MAX)
        return false;
    if (answer->count < DNS_TLSA_MAX)
        answer->tlsa[answer->count++] =
            (struct dns_tlsa){(unsigned char)data.at[0], (unsigned char)data.at[1],
                              (unsigned char)data.at[2], text_after(data, TLSA_HEADER)};
    return true;
}

/* Strings, each behind its length octet (RFC 1035 §3.3.14), joined without
 * anything between them. */
static bool
add_texts(struct dns_answer *answer, struct text reply, const struct record *record,
          char *joined)
{
    struct text rest = text_of(reply.at + record->data, record->size);
    char *to = joined + record->data; /* records do not overlap */
    size_t length = 0;
    if (rest.length == 0)
        return false;
    while (rest.length > 0) {
        size_t size = octet(rest, 0);
        if (size >= rest.length)
            return false;
        memcpy(to + length, rest.at + 1, size);
        length += size;
        rest = text_after(rest, 1 + size);
    }
    if (length <= DNS_RECORD_MAX && answer->count < DNS_TEXTS_MAX)
        answer->texts[answer->count++] = text_of(to, length);
    return length <= DNS_RECORD_MAX;
}

/* False when the record is invalid. */
static bool
dns_reply_add_record(struct dns_answer *answer, struct text reply, char *joined,
                     const struct record *record)
{
    switch ((enum dns_type)record->type) {
    case DNS_TYPE_A:
    case DNS_TYPE_AAAA:
        if (!read_host(reply, record->owner, record->owner_end, answer->canonical))
            answer->canonical[0] = '\0';
        return dns_answer_add(answer, record->type == DNS_TYPE_A ? NET_IPV4 : NET_IPV6,
                              reply.at + record->data, record->size);
    case DNS_TYPE_MX:
        return add_mx(answer, reply, record);
    case DNS_TYPE_PTR:
    case DNS_TYPE_CNAME: /* asked for, not on the way to another record */
        return add_ptr(answer, reply, record);
    case DNS_TYPE_TXT:
        return add_texts(answer, reply, record, joined);
    case DNS_TYPE_TLSA:
        return add_tlsa(answer, reply, record);
    case DNS_TYPE_SOA:
        break;
    }
    return true;
}

static bool
skip_questions(struct cursor *cursor)
{
    for (unsigned i = two_octets(cursor->reply, 4); i > 0; i--) {
        if (!skip_name(cursor) || cursor->reply.length - cursor->at < 4)
            return false;
        cursor->at += 4;
    }
    return true;
}

/* True if the header and the questions are complete. Invalid records are ignored, but a
 * reply that has only invalid ones is malformed: it does not prove that the name has no
 * such record, and dns.c reports DNS_TRY_AGAIN. The TTL is the least of all records
 * that were used, with CNAMEs. */
static bool
read_records(struct cursor *cursor, bool whole, enum dns_type type, char *joined,
             struct dns_answer *answer)
{
    unsigned records = two_octets(cursor->reply, 6);
    uint32_t ttl_s = INT32_MAX;
    size_t bad = 0;
    struct record record;
    for (unsigned i = 0; i < records && i < RECORDS_MAX; i++) {
        if (!next_record(cursor, &record)) {
            /* The complete records of a truncated reply count. */
            if (whole)
                return false;
            break;
        }
        bool wanted = record.type == (unsigned)type;
        if (record.class != DNS_CLASS_IN || (!wanted && record.type != DNS_TYPE_CNAME))
            continue;
        if (wanted && !dns_reply_add_record(answer, cursor->reply, joined, &record))
            bad++;
        else if (record.ttl_s < ttl_s)
            ttl_s = record.ttl_s;
    }
    answer->ttl_s = answer->count > 0 ? ttl_s : 0;
    return answer->count > 0 || bad == 0;
}

void
dns_answer_explain(struct dns_answer *answer, enum dns_status status,
                   const char *format, ...)
{
    va_list list;
    va_start(list, format);
    answer->status = status;
    answer->reason[0] = '\0';
    if (status != DNS_FOUND)
        vsnprintf(answer->reason, sizeof(answer->reason), format, list);
    va_end(list);
}

int
dns_reply_code(struct text reply)
{
    return reply.length < REPLY_HEADER ? -1 : (int)(octet(reply, 3) & RCODE);
}

bool
dns_reply_is_authentic(struct text reply)
{
    return reply.length >= REPLY_HEADER && (octet(reply, 3) & AUTHENTIC) != 0;
}

bool
dns_reply_alias(struct text reply, enum dns_type type, char alias[DNS_NAME_MAX],
                uint32_t *ttl_s)
{
    struct cursor cursor = {reply, REPLY_HEADER};
    struct record record;
    bool found = false;
    *ttl_s = UINT32_MAX;
    if (reply.length < REPLY_HEADER || !skip_questions(&cursor))
        return false;
    unsigned records = two_octets(reply, 6);
    for (unsigned i = 0; i < records && i < RECORDS_MAX; i++) {
        if (!next_record(&cursor, &record))
            break;
        if (record.class != DNS_CLASS_IN)
            continue;
        if (record.type == (unsigned)type)
            return false;
        if (record.type != DNS_TYPE_CNAME)
            continue;
        found = read_host(reply, record.data, record.data + record.size, alias) &&
                alias[0] != '\0';
        *ttl_s = record.ttl_s < *ttl_s ? record.ttl_s : *ttl_s;
    }
    return found;
}

bool
dns_reply_read(struct text reply, bool whole, enum dns_type type, char *joined,
               struct dns_answer *answer)
{
    struct cursor cursor = {reply, REPLY_HEADER};
    assert(answer->count == 0 && (type != DNS_TYPE_TXT || joined != NULL));
    if (dns_reply_code(reply) == 0 && skip_questions(&cursor) &&
        read_records(&cursor, whole, type, joined, answer))
        return true;
    answer->count = 0;
    return false;
}
