/* Reads the header of the PROXY protocol: text (version 1) and binary (version 2).
 *
 * A header names the client, so it is read strictly, and as a whole or not at all.
 * Bytes that can begin neither version are BAD immediately: a peer that is not a proxy
 * is cut off at its first bytes, not after a time-out. */
#include "smtp/session/proxy.h"

#include "base/crc.h"

#include <assert.h>
#include <string.h>

enum {
    FIXED_SIZE = 16, /* of version 2: signature, command, family, length */
    ADDRESSES_IPV4 = 12,
    ADDRESSES_IPV6 = 36,
    ADDRESSES_UNIX = 216,
    ATTACHED_HEAD = 3, /* type, length */
    ATTACHED_CRC = 0x03,
    CRC_SIZE = 4,
    COMMAND_LOCAL = 0x20,
    COMMAND_PROXY = 0x21,
    OVER_UNSPECIFIED = 0x00,
    OVER_TCP4 = 0x11,
    OVER_TCP6 = 0x21,
    OVER_UNIX = 0x31
};

static const struct text signature = {"\r\n\r\n\0\r\nQUIT\n", 12};
static const struct text word = {"PROXY ", 6};

/* True: input begins with beginning, or is a part of it. */
static bool
may_be(struct text input, struct text beginning)
{
    return text_starts(input, text_before(beginning, input.length));
}

/* --- Version 1 -------------------------------------------------------------------- */

/* A port after one space, without leading zeros. */
static bool
read_port(struct text *rest, uint16_t *port)
{
    struct text digits;
    uint64_t value;
    if (!text_cut(rest, ' ', &digits) || digits.length == 0 || digits.length > 5 ||
        (digits.length > 1 && digits.at[0] == '0') ||
        !text_number(digits, UINT16_MAX, &value))
        return false;
    *port = (uint16_t)value;
    return true;
}

static bool
read_address(struct text *rest, enum net_family family, struct net_address *address)
{
    struct text literal;
    return text_cut(rest, ' ', &literal) && net_address_parse_ip(literal, address) &&
           address->family == family;
}

/* rest: the line after "PROXY ", without the CRLF. */
static bool
proxy_read_line(struct text rest, struct proxy_header *header)
{
    struct text protocol;
    struct net_address here;
    uint16_t port = 0;
    bool cut = text_cut(&rest, ' ', &protocol);
    if (cut && text_equal(protocol, TEXT("UNKNOWN"))) {
        header->kind = PROXY_UNNAMED; /* the rest is ignored */
        return true;
    }
    bool ipv4 = text_equal(protocol, TEXT("TCP4"));
    if (!cut || (!ipv4 && !text_equal(protocol, TEXT("TCP6"))))
        return false;
    enum net_family family = ipv4 ? NET_IPV4 : NET_IPV6;
    if (!read_address(&rest, family, &header->client) ||
        !read_address(&rest, family, &here) || !read_port(&rest, &port))
        return false;
    header->kind = PROXY_CLIENT;
    header->client.port = port;
    /* The proxy's own address is not used, but must be right; nothing may follow. */
    return read_port(&rest, &here.port) && rest.at == NULL;
}

static enum progress
parse_text(struct text *input, struct proxy_header *header)
{
    struct text all = text_before(*input, PROXY_TEXT_MAX);
    size_t end = text_find(all, '\n');
    if (end == TEXT_NONE) {
        /* LF must follow CR. */
        size_t cr = text_find(all, '\r');
        bool bad =
            all.length == PROXY_TEXT_MAX || (cr != TEXT_NONE && cr + 1 < all.length);
        return bad ? PROGRESS_BAD : PROGRESS_MORE;
    }
    struct text line = text_after(text_before(all, end), word.length);
    if (line.length == 0 || line.at[line.length - 1] != '\r')
        return PROGRESS_BAD;
    line = text_before(line, line.length - 1);
    if (text_has_control(line) || !proxy_read_line(line, header))
        return PROGRESS_BAD;
    *input = text_after(*input, end + 1);
    return PROGRESS_DONE;
}

/* --- Version 2 -------------------------------------------------------------------- */

static unsigned
number_at(struct text t, size_t index)
{
    assert(index + 1 < t.length);
    return (unsigned)(unsigned char)t.at[index] << 8 |
           (unsigned)(unsigned char)t.at[index + 1];
}

static unsigned
byte_at(struct text t, size_t index)
{
    assert(index < t.length);
    return (unsigned char)t.at[index];
}

/* The CRC32C of the header, computed with zeros in place of the checksum. */
static bool
crc_is_right(struct text all, size_t at)
{
    static const unsigned char zeros[CRC_SIZE];
    uint32_t said = (uint32_t)number_at(all, at) << 16 | number_at(all, at + 2);
    uint32_t crc = crc_add(0, all.at, at);
    crc = crc_add(crc, zeros, CRC_SIZE);
    crc = crc_add(crc, all.at + at + CRC_SIZE, all.length - at - CRC_SIZE);
    return crc == said;
}

/* The TLVs after the addresses are skipped, but must be complete. */
static bool
attached_is_right(struct text all, size_t at)
{
    while (at < all.length) {
        if (all.length - at < ATTACHED_HEAD)
            return false;
        unsigned type = byte_at(all, at), length = number_at(all, at + 1);
        at += ATTACHED_HEAD;
        if (length > all.length - at)
            return false;
        if (type == ATTACHED_CRC && (length != CRC_SIZE || !crc_is_right(all, at)))
            return false;
        at += length;
    }
    return true;
}

/* The addresses come first, then the ports; those of the client before the proxy's. */
static void
take_client(struct proxy_header *header, enum net_family family, struct text all)
{
    size_t size = family == NET_IPV4 ? 4 : 16;
    header->kind = PROXY_CLIENT;
    header->client = (struct net_address){.family = family};
    memcpy(header->client.ip, all.at + FIXED_SIZE, size);
    header->client.port = (uint16_t)number_at(all, FIXED_SIZE + 2 * size);
}

static bool
read_bytes(struct text all, struct proxy_header *header)
{
    size_t addresses = 0;
    switch (byte_at(all, 13)) {
    case OVER_TCP4:
        addresses = ADDRESSES_IPV4;
        break;
    case OVER_TCP6:
        addresses = ADDRESSES_IPV6;
        break;
    case OVER_UNIX:
        addresses = ADDRESSES_UNIX;
        break;
    case OVER_UNSPECIFIED:
        /* The offset of the TLVs is undefined: they are not checked. */
        header->kind = PROXY_UNNAMED;
        return true;
    default: /* datagrams and unknown values */
        return false;
    }
    if (all.length - FIXED_SIZE < addresses ||
        !attached_is_right(all, FIXED_SIZE + addresses))
        return false;
    header->kind = PROXY_UNNAMED;
    if (addresses == ADDRESSES_IPV4)
        take_client(header, NET_IPV4, all);
    else if (addresses == ADDRESSES_IPV6)
        take_client(header, NET_IPV6, all);
    return true;
}

static enum progress
parse_bytes(struct text *input, struct proxy_header *header)
{
    if (input->length < FIXED_SIZE)
        return PROGRESS_MORE;
    unsigned command = byte_at(*input, 12);
    size_t size = FIXED_SIZE + number_at(*input, 14);
    if ((command != COMMAND_LOCAL && command != COMMAND_PROXY) ||
        size > PROXY_HEADER_MAX)
        return PROGRESS_BAD;
    if (input->length < size)
        return PROGRESS_MORE;
    if (command == COMMAND_LOCAL) /* the rest is ignored */
        header->kind = PROXY_SELF;
    else if (!read_bytes(text_before(*input, size), header))
        return PROGRESS_BAD;
    *input = text_after(*input, size);
    return PROGRESS_DONE;
}

enum progress
proxy_parse(struct text *input, struct proxy_header *header)
{
    *header = (struct proxy_header){.kind = PROXY_UNNAMED};
    if (input->length == 0)
        return PROGRESS_MORE;
    enum progress progress = PROGRESS_BAD;
    if (may_be(*input, signature))
        progress = parse_bytes(input, header);
    else if (may_be(*input, word))
        progress =
            input->length < word.length ? PROGRESS_MORE : parse_text(input, header);
    /* lockout_key() takes half of an IPv6 address: all mapped IPv4 clients would share
     * one key. */
    net_address_unmap(&header->client);
    return progress;
}
