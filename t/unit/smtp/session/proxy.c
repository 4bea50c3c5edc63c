/* smtp/proxy: headers of both versions, good, bad, and cut at each byte. */
#include "smtp/session/proxy.h"

#include "base/crc.h"
#include "t/support/tap.h"

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";

struct bytes {
    char at[PROXY_HEADER_MAX + 64];
    size_t length;
};

static void
add(struct bytes *b, const void *at, size_t size)
{
    memcpy(b->at + b->length, at, size);
    b->length += size;
}

static void
add_number(struct bytes *b, unsigned value)
{
    char two[] = {(char)(value >> 8), (char)value};
    add(b, two, 2);
}

/* Version 2: command, family, and a length that is set when all has been added. */
static struct bytes
start(unsigned command, unsigned family)
{
    struct bytes b = {.length = 0};
    char two[] = {(char)command, (char)family};
    add(&b, signature, 12);
    add(&b, two, 2);
    add_number(&b, 0);
    return b;
}

static void
finish(struct bytes *b)
{
    b->at[14] = (char)((b->length - 16) >> 8);
    b->at[15] = (char)(b->length - 16);
}

static void
add_ipv4(struct bytes *b)
{
    add(b, "\xc0\x00\x02\x07\xc6\x33\x64\x01", 8);
    add_number(b, 40000);
    add_number(b, 25);
}

static void
add_attached(struct bytes *b, unsigned type, const char *value, unsigned size)
{
    char kind = (char)type;
    add(b, &kind, 1);
    add_number(b, size);
    add(b, value, size);
}

static struct text
text_of_bytes(const struct bytes *b)
{
    return text_of(b->at, b->length);
}

/* "client 192.0.2.7:40000", "self", "unnamed", "bad" or "more". */
static const char *
reads(struct text t)
{
    static char shown[NET_ADDRESS_TEXT_MAX + 16];
    char address[NET_ADDRESS_TEXT_MAX];
    struct proxy_header h;
    struct text rest = t;
    enum progress progress = proxy_parse(&rest, &h);
    if (progress != PROGRESS_DONE && rest.length != t.length)
        return "took some of it";
    if (progress != PROGRESS_DONE)
        return progress == PROGRESS_BAD ? "bad" : "more";
    if (h.kind != PROXY_CLIENT)
        return h.kind == PROXY_SELF ? "self" : "unnamed";
    net_address_format(&h.client, address);
    snprintf(shown, sizeof(shown), "client %s", address);
    return shown;
}

/* Every beginning of it asks for more; with bytes behind it, these are left. */
static bool
is_whole(struct text header)
{
    char all[PROXY_HEADER_MAX + 8];
    struct proxy_header h;
    for (size_t size = 0; size < header.length; size++)
        if (strcmp(reads(text_before(header, size)), "more") != 0)
            return false;
    memcpy(all, header.at, header.length);
    memcpy(all + header.length, "EHLO x\r\n", 8);
    struct text rest = text_of(all, header.length + 8);
    return proxy_parse(&rest, &h) == PROGRESS_DONE &&
           text_equal(rest, TEXT("EHLO x\r\n"));
}

TEST(texts)
{
    static const struct {
        const char *line, *want;
    } good[] = {
        {"PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r\n",                   "client 192.0.2.7:40000"                                },
        {"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
         "client 255.255.255.255:65535"                                                                                              },
        {"PROXY TCP4 192.0.2.7 198.51.100.1 0 0\r\n",                        "client 192.0.2.7:0"                                    },
        {"PROXY TCP6 2001:db8::7 2001:db8::1 40000 25\r\n",
         "client [2001:db8::7]:40000"                                                                                                },
        {"PROXY TCP6 ::ffff:192.0.2.7 ::1 40000 25\r\n",                     "client 192.0.2.7:40000"                                },
        {"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", "client [ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
        {"PROXY UNKNOWN\r\n",                                                "unnamed"                                               },
        {"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", "unnamed"                                               },
        {"PROXY UNKNOWN 127.0.0.1 what you like\r\n",                        "unnamed"                                               },
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        is_string(reads(text_from(good[i].line)), good[i].want, good[i].line);
        ok(is_whole(text_from(good[i].line)));
    }
}

TEST(bad_texts)
{
    static const char *const bad[] = {
        "EHLO client.example\r\n",
        "X",
        "proxy TCP4 192.0.2.7 198.51.100.1 40000 25\r\n",
        "PROXX TCP4 192.0.2.7 198.51.100.1 40000 25\r\n",
        "PROXY\r\n",
        "PROXY \r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP5 192.0.2.7 198.51.100.1 40000 25\r\n",
        "PROXY UDP4 192.0.2.7 198.51.100.1 40000 25\r\n",
        "PROXY UNKNOWNX\r\n",
        "PROXY  TCP4 192.0.2.7 198.51.100.1 40000 25\r\n",
        "PROXY TCP4  192.0.2.7 198.51.100.1 40000 25\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25 \r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25 26\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1\r\n",
        "PROXY TCP4 192.0.2.7 40000 25\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 65536 25\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 99999999999999999999\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 -1 25\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 040 25\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 00 25\r\n",
        "PROXY TCP4 192.0.2.256 198.51.100.1 40000 25\r\n",
        "PROXY TCP4 192.0.2 198.51.100.1 40000 25\r\n",
        "PROXY TCP4 2001:db8::7 2001:db8::1 40000 25\r\n",
        "PROXY TCP6 192.0.2.7 198.51.100.1 40000 25\r\n",
        "PROXY TCP6 2001:db8::7 198.51.100.1 40000 25\r\n",
        "PROXY TCP6 [2001:db8::7] [2001:db8::1] 40000 25\r\n",
        "PROXY TCP4 192.0.2.7\t198.51.100.1 40000 25\r\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\n",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\r",
        "PROXY TCP4 192.0.2.7 198.51.100.1 40000 25\rX",
        "PROXY TCP4 192.0.2.7\r 198.51.100.1 40000 25\r\n",
        "PROXY \n",
        "\r\nPROXY UNKNOWN\r\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bool open = bad[i][strlen(bad[i]) - 1] == '\r';
        is_string(reads(text_from(bad[i])), open ? "more" : "bad", bad[i]);
    }
    char longest[PROXY_TEXT_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    memcpy(longest, "PROXY UNKNOWN ", 14);
    longest[PROXY_TEXT_MAX - 2] = '\r';
    longest[PROXY_TEXT_MAX - 1] = '\n';
    is_string(reads(text_of(longest, PROXY_TEXT_MAX)), "unnamed", "107 bytes are read");
    longest[PROXY_TEXT_MAX - 2] = 'x';
    longest[PROXY_TEXT_MAX - 1] = '\r';
    is_string(reads(text_of(longest, PROXY_TEXT_MAX - 1)), "more", "106 wait");
    is_string(reads(text_of(longest, PROXY_TEXT_MAX)), "bad", "107 without an end");
    is_string(reads(text_of("PROXY UNKNOWN a\0b\r\n", 19)), "bad", "NUL");
}

static void
bytes(void)
{
    struct bytes b = start(0x21, 0x11);
    add_ipv4(&b);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "client 192.0.2.7:40000", "TCP4");
    ok(is_whole(text_of_bytes(&b)));

    b = start(0x21, 0x21);
    add(&b, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07", 16);
    add(&b, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
    add_number(&b, 40000);
    add_number(&b, 25);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "client [2001:db8::7]:40000", "TCP6");
    ok(is_whole(text_of_bytes(&b)));
    memcpy(b.at + 16, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x09", 16);
    is_string(reads(text_of_bytes(&b)), "client 192.0.2.9:40000", "mapped is IPv4");

    b = start(0x21, 0x31);
    char paths[216] = "/client";
    add(&b, paths, sizeof(paths));
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "unnamed", "a Unix socket has no address");
    ok(is_whole(text_of_bytes(&b)));

    b = start(0x20, 0x00);
    is_string(reads(text_of_bytes(&b)), "self", "LOCAL");
    ok(is_whole(text_of_bytes(&b)));
    b = start(0x20, 0x11);
    add_ipv4(&b);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "self", "LOCAL, whatever it says");
    b = start(0x20, 0x77);
    add(&b, "\x03\xff\xff", 3);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "self", "even nonsense");

    b = start(0x21, 0x00);
    is_string(reads(text_of_bytes(&b)), "unnamed", "UNSPEC");
    add(&b, "junk", 4);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "unnamed", "its junk means nothing");
    ok(is_whole(text_of_bytes(&b)));
}

static void
attached(void)
{
    struct bytes b = start(0x21, 0x11);
    add_ipv4(&b);
    add_attached(&b, 0x02, "mx.example", 10);
    add_attached(&b, 0x04, "", 0);
    add_attached(&b, 0xe0, "own", 3);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "client 192.0.2.7:40000", "attachments");
    ok(is_whole(text_of_bytes(&b)));
    size_t length = b.length;
    for (unsigned cut = 1; cut <= 2; cut++) {
        b.length = length - cut;
        finish(&b);
        is_string(reads(text_of_bytes(&b)), "bad", "the last one is cut");
    }
    b.length = length;
    add(&b, "\x04\x00", 2);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "bad", "no whole head of one");

    b = start(0x21, 0x11);
    add_ipv4(&b);
    add_attached(&b, 0x04, "padding", 7);
    add_attached(&b, 0x03, "\0\0\0\0", 4);
    add_attached(&b, 0x04, "more", 4);
    finish(&b);
    size_t at = 16 + 12 + 3 + 7 + 3;
    uint32_t crc = crc_add(0, b.at, b.length);
    for (unsigned i = 0; i < 4; i++)
        b.at[at + i] = (char)(crc >> (24 - 8 * i));
    is_string(reads(text_of_bytes(&b)), "client 192.0.2.7:40000", "a right CRC32C");
    ok(is_whole(text_of_bytes(&b)));
    unsigned taken = 0;
    for (size_t i = 16; i < b.length; i++) {
        b.at[i] ^= 1;
        taken += strcmp(reads(text_of_bytes(&b)), "bad") != 0;
        b.at[i] ^= 1;
    }
    /* One bit of the type of the CRC itself makes it something else, that is skipped.
     */
    is_number(taken, 1, "a bit that was turned is found");
    b = start(0x21, 0x11);
    add_ipv4(&b);
    add_attached(&b, 0x03, "\0\0\0", 3);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "bad", "a CRC32C of three bytes");
}

static void
bad_bytes(void)
{
    static const unsigned commands[] = {0x00, 0x01, 0x10, 0x11, 0x22, 0x2f, 0x31, 0xff};
    static const unsigned families[] = {0x01, 0x10, 0x12, 0x13, 0x20,
                                        0x22, 0x30, 0x32, 0x41, 0xff};
    struct bytes b;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        b = start(commands[i], 0x11);
        add_ipv4(&b);
        finish(&b);
        is_string(reads(text_of_bytes(&b)), "bad", "a version or command there is not");
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        b = start(0x21, families[i]);
        b.length += 300;
        finish(&b);
        is_string(reads(text_of_bytes(&b)), "bad", "a family that is not ours");
    }
    for (size_t i = 0; i < 12; i++) {
        b = start(0x20, 0x00);
        b.at[i] ^= 0x20;
        is_string(reads(text_of_bytes(&b)), "bad", "a bad signature");
        is_string(reads(text_of(b.at, i + 1)), "bad", "at once");
    }
    b = start(0x21, 0x11);
    add_ipv4(&b);
    b.length--;
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "bad", "too short for its addresses");
    b = start(0x21, 0x21);
    add_ipv4(&b);
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "bad", "IPv6 in twelve bytes");

    b = start(0x20, 0x00);
    b.length = PROXY_HEADER_MAX;
    finish(&b);
    is_string(reads(text_of_bytes(&b)), "self", "536 bytes are read");
    b.length++;
    finish(&b);
    is_string(reads(text_of(b.at, 16)), "bad", "537 are not waited for");
}

int
main(void)
{
    is_string(reads(TEXT("")), "more", "nothing yet");
    tap_tests("");
    bytes();
    attached();
    bad_bytes();
    return done();
}
