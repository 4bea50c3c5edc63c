/* Proves what dns_reply reads from good, bad and mutilated replies. */
#include "base/dns/dns_reply.h"

#include "t/support/tap.h"

struct wire {
    char at[8192];
    size_t length;
};

static void
add(struct wire *w, const void *bytes, size_t size)
{
    if (w->length + size > sizeof(w->at))
        abort();
    memcpy(w->at + w->length, bytes, size);
    w->length += size;
}

static void
add_number(struct wire *w, unsigned number)
{
    unsigned char two[2] = {(unsigned char)(number >> 8), (unsigned char)number};
    add(w, two, 2);
}

/* "a.b" as labels; "" is the root. */
static void
add_name(struct wire *w, const char *name)
{
    struct text rest = text_from(name), label;
    while (name[0] != '\0' && text_cut(&rest, '.', &label)) {
        char length = (char)label.length;
        add(w, &length, 1);
        add(w, label.at, label.length);
    }
    add(w, "", 1);
}

/* A question for example.test, type 15, at offset 12, and space for so many records. */
static struct wire
wire_new(unsigned records)
{
    struct wire w = {.length = 0};
    unsigned header[] = {0x1234, 0x8180, 1, records, 0, 0};
    for (size_t i = 0; i < 6; i++)
        add_number(&w, header[i]);
    add_name(&w, "example.test");
    add_number(&w, DNS_TYPE_MX);
    add_number(&w, DNS_CLASS_IN);
    return w;
}

static void
add_record(struct wire *w, unsigned type, unsigned class, uint32_t ttl_s,
           const void *data, size_t size)
{
    add_number(w, 0xc00c);
    add_number(w, type);
    add_number(w, class);
    add_number(w, ttl_s >> 16);
    add_number(w, ttl_s & 0xffff);
    add_number(w, (unsigned)size);
    add(w, data, size);
}

static void
add_mx(struct wire *w, unsigned preference, const char *host)
{
    struct wire data = {.length = 0};
    add_number(&data, preference);
    add_name(&data, host);
    add_record(w, DNS_TYPE_MX, DNS_CLASS_IN, 300, data.at, data.length);
}

/* rdata with the preference 10 and these octets as the name */
static void
add_raw_mx(struct wire *w, const void *name, size_t size)
{
    struct wire data = {.length = 0};
    add_number(&data, 10);
    add(&data, name, size);
    add_record(w, DNS_TYPE_MX, DNS_CLASS_IN, 300, data.at, data.length);
}
#define RAW(w, octets) add_raw_mx(w, octets, sizeof(octets) - 1)

static struct dns_answer got;
static char *octets, *joined; /* which the last answer may point into */

/* The reader gets an exact copy, so that sanitizers see a step beyond. */
static bool
read_part(struct text reply, bool whole, enum dns_type type)
{
    size_t size = reply.length == 0 ? 1 : reply.length;
    free(octets);
    free(joined);
    octets = malloc(size);
    joined = malloc(size);
    if (octets == NULL || joined == NULL)
        abort();
    memcpy(octets, reply.at, reply.length);
    memset(&got, 0, sizeof(got));
    return dns_reply_read(text_of(octets, reply.length), whole, type, joined, &got);
}

static bool
read_wire(const struct wire *w, enum dns_type type)
{
    return read_part(text_of(w->at, w->length), true, type);
}

TEST(good)
{
    struct wire w = wire_new(4);
    add_mx(&w, 20, "Mx2.Example.TEST");
    add_mx(&w, 10, "mx1.example.test");
    RAW(&w, "\3mx3\xc0\x0c");
    add_mx(&w, 65535, "");
    ok_named(read_wire(&w, DNS_TYPE_MX), "a good reply");
    is_number(got.count, 4, "every record");
    is_string(got.mx[0].host, "mx2.example.test", "the order of the reply, lower case");
    is_number(got.mx[0].preference, 20, "its preference");
    is_string(got.mx[1].host, "mx1.example.test", "the second");
    is_number(got.mx[1].preference, 10, "its preference");
    is_string(got.mx[2].host, "mx3.example.test", "a compressed name");
    is_string(got.mx[3].host, "", "the null MX");
    is_number(got.mx[3].preference, 65535, "its preference");
    is_number(got.ttl_s, 300, "the TTL");
    ok_named(read_wire(&w, DNS_TYPE_A), "other types are not errors");
    is_number(got.count, 0, "nor records");
    is_number(got.ttl_s, 0, "nor have they a TTL");

    w = wire_new(1);
    RAW(&w, "\xc0\x0c");
    ok_named(read_wire(&w, DNS_TYPE_MX) && got.count == 1, "only a pointer");
    is_string(got.mx[0].host, "example.test", "is a name");
}

TEST(ttl)
{
    struct wire w = wire_new(3);
    add_record(&w, DNS_TYPE_CNAME, DNS_CLASS_IN, 7, "\1x", 3);
    add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 900, "\x7f\0\0\1", 4);
    add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 800, "\x7f\0\0\2", 4);
    ok(read_wire(&w, DNS_TYPE_A));
    is_number(got.count, 2, "addresses behind an alias");
    is_number(got.ttl_s, 7, "the smallest TTL, the alias' included");
    is_string(got.canonical, "example.test", "the name that has them");
    w = wire_new(1);
    add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, UINT32_MAX, "\x7f\0\0\1", 4);
    ok(read_wire(&w, DNS_TYPE_A) && got.count == 1);
    is_number(got.ttl_s, 0, "a TTL beyond 31 bits is 0");
    w = wire_new(2);
    add_record(&w, 46, DNS_CLASS_IN, 1, "sig", 3);
    add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 0x12345, "\x7f\0\0\1", 4);
    ok(read_wire(&w, DNS_TYPE_A));
    is_number(got.ttl_s, 0x12345, "other records have no say");
    w = wire_new(1);
    add_record(&w, DNS_TYPE_CNAME, DNS_CLASS_IN, 9, "\1x\xc0\x0c", 4);
    ok(read_wire(&w, DNS_TYPE_CNAME) && got.count == 1);
    is_string(got.hosts[0], "x.example.test", "a CNAME that was asked for");
}

TEST(alias)
{
    char alias[DNS_NAME_MAX];
    uint32_t ttl_s = 0;
    struct wire w = wire_new(3);
    add_record(&w, DNS_TYPE_CNAME, DNS_CLASS_IN, 7, "\1x\xc0\x0c", 4);
    add_record(&w, DNS_TYPE_CNAME, DNS_CLASS_IN, 5, "\4gone\4test", 11);
    add_record(&w, DNS_TYPE_CNAME, 3, 7, "\1y", 3);
    struct text reply = text_of(w.at, w.length);
    ok(dns_reply_alias(reply, DNS_TYPE_MX, alias, &ttl_s));
    is_number(ttl_s, 5, "the smaller TTL");
    is_string(alias, "gone.test", "the end of two aliases");
    ok_named(read_wire(&w, DNS_TYPE_MX) && got.count == 0, "and no record");
    unsigned wrong = 0;
    for (size_t i = 0; i < reply.length; i++)
        wrong += dns_reply_alias(text_before(reply, i), DNS_TYPE_MX, alias, &ttl_s) && strlen(alias) >= DNS_NAME_MAX;
    is_number(wrong, 0, "of any length");
    w = wire_new(1);
    add_mx(&w, 1, "a.test");
    ok_named(!dns_reply_alias(text_of(w.at, w.length), DNS_TYPE_MX, alias, &ttl_s), "a record is no alias");
    w = wire_new(2);
    add_record(&w, DNS_TYPE_CNAME, DNS_CLASS_IN, 7, "\1x\xc0\x0c", 4);
    add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 900, "\x7f\0\0\1", 4);
    struct text both = text_of(w.at, w.length);
    ok_named(!dns_reply_alias(both, DNS_TYPE_A, alias, &ttl_s), "one whose end is there");
    ok_named(dns_reply_alias(both, DNS_TYPE_AAAA, alias, &ttl_s), "for that type alone");
    w = wire_new(1);
    add_record(&w, DNS_TYPE_CNAME, DNS_CLASS_IN, 7, "", 1);
    ok_named(!dns_reply_alias(text_of(w.at, w.length), DNS_TYPE_MX, alias, &ttl_s), "nor is the root one");
    ok_named(!dns_reply_alias(TEXT("short"), DNS_TYPE_MX, alias, &ttl_s), "nor is half a header");
}

TEST(addresses)
{
    struct wire w = wire_new(5);
    char text[NET_ADDRESS_TEXT_MAX];
    add_record(&w, DNS_TYPE_AAAA, DNS_CLASS_IN, 9, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
               16);
    add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 9, "\xc0\0\2\1", 4);
    add_record(&w, DNS_TYPE_A, 3, 9, "\xc0\0\2\2", 4);
    add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 9, "\xc0\0\2\3\4", 5);
    add_record(&w, DNS_TYPE_AAAA, DNS_CLASS_IN, 9, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
               15);
    ok(read_wire(&w, DNS_TYPE_A));
    is_number(got.count, 1, "one A: of its class and of its size");
    net_address_format(&got.addresses[0], text);
    is_string(text, "192.0.2.1:0", "without a port");
    ok(read_wire(&w, DNS_TYPE_AAAA));
    is_number(got.count, 1, "one AAAA");
    net_address_ip(&got.addresses[0], text);
    is_string(text, "::1", "the address");

    memset(&got, 0, sizeof(got));
    ok_named(!dns_answer_add(&got, NET_IPV4, "\1\2\3\4\5", 5) &&
                 !dns_answer_add(&got, NET_IPV6, "\1\2\3\4", 4) && got.count == 0,
             "an address has its family's size");
}

TEST(bounds)
{
    struct wire w = wire_new(60);
    char host[32];
    unsigned previous = 100;
    for (unsigned i = 60; i > 0; i--) {
        snprintf(host, sizeof(host), "host%02u.test", i);
        add_mx(&w, i, host);
    }
    ok(read_wire(&w, DNS_TYPE_MX));
    is_number(got.count, DNS_MX_MAX, "no more MX than fit");
    bool falling = true;
    for (size_t i = 0; i < got.count; i++) {
        falling = falling && got.mx[i].preference < previous;
        previous = got.mx[i].preference;
    }
    is_number(got.mx[0].preference, DNS_MX_MAX, "the least preferred are lost");
    is_number(previous, 1, "the best are kept");
    ok_named(falling, "in the order of the reply");

    w = wire_new(60);
    for (unsigned i = 1; i <= 60; i++) {
        snprintf(host, sizeof(host), "host%02u.test", i);
        add_mx(&w, 10, host);
    }
    ok(read_wire(&w, DNS_TYPE_MX) && got.count == DNS_MX_MAX);
    is_string(got.mx[DNS_MX_MAX - 1].host, "host40.test", "of equal ones the first");

    w = wire_new(60);
    for (char i = 0; i < 60; i++)
        add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 9, (char[]){1, 2, 3, i}, 4);
    ok(read_wire(&w, DNS_TYPE_A));
    is_number(got.count, DNS_ADDRESS_MAX, "no more addresses than fit");
    is_number(got.addresses[DNS_ADDRESS_MAX - 1].ip[3], DNS_ADDRESS_MAX - 1,
              "the first ones");

    w = wire_new(400);
    for (int i = 0; i < 300; i++)
        add_record(&w, 99, DNS_CLASS_IN, 9, "", 0);
    for (int i = 0; i < 100; i++)
        add_record(&w, DNS_TYPE_A, DNS_CLASS_IN, 9, "\1\2\3\4", 4);
    ok_named(read_wire(&w, DNS_TYPE_A) && got.count == 0, "the walk is bounded");
}

TEST(bad_records)
{
    static const struct {
        const char *what, *name;
        size_t size;
    } bad[] = {
#define BAD(what, octets) {what, octets, sizeof(octets) - 1}
        BAD("no name", ""),
        BAD("a name without an end", "\3mx1"),
        BAD("octets behind the name", "\2mx\0x"),
        BAD("octets behind a pointer", "\xc0\x0cx"),
        BAD("half a pointer", "\2mx\xc0"),
        BAD("a pointer to itself", "\xc0\x2c"),
        BAD("a pointer forward", "\xc0\xff"),
        BAD("a pointer to its own labels", "\2mx\xc0\x2c"),
        BAD("a label type of the past", "\x41\0"),
        BAD("a pointer into the header", "\xc0\0"),
        BAD("a space", "\3m x\0"),
        BAD("a line end", "\3m\r\n\0"),
        BAD("a NUL", "\3m\0x\0"),
        BAD("a DEL", "\3m\x7fx\0"),
        BAD("8-bit octets", "\3m\xc3\xbc\0"),
        BAD("a backslash", "\3m\\x\0"),
        BAD("a dot in a label", "\3m.x\4test\0"),
        BAD("angle brackets", "\3<m>\0"),
#undef BAD
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct wire w = wire_new(1);
        add_raw_mx(&w, bad[i].name, bad[i].size);
        ok_named(!read_wire(&w, DNS_TYPE_MX) && got.count == 0, bad[i].what);
        w = wire_new(3);
        add_raw_mx(&w, bad[i].name, bad[i].size);
        add_mx(&w, 1, "a.test");
        add_mx(&w, 2, "b.test");
        bool good = read_wire(&w, DNS_TYPE_MX) && got.count == 2 &&
                    strcmp(got.mx[0].host, "a.test") == 0 &&
                    strcmp(got.mx[1].host, "b.test") == 0;
        ok_named(good, "  spoils only its own record");
    }
    for (size_t size = 0; size < 3; size++) {
        struct wire w = wire_new(2);
        add_record(&w, DNS_TYPE_MX, DNS_CLASS_IN, 9, "\0\12", size);
        add_mx(&w, 2, "b.test");
        ok_named(read_wire(&w, DNS_TYPE_MX) && got.count == 1,
                 "an MX of 0 to 2 octets");
    }
}

TEST(pointers)
{
    struct wire w = wire_new(2);
    struct wire chain = {.length = 0};
    size_t start = w.length + 12; /* of the rdata of the first record */
    add_number(&chain, 0xc00c);
    for (size_t i = 1; i < 1000; i++)
        add_number(&chain, 0xc000 | (unsigned)(start + 2 * (i - 1)));
    add_record(&w, 99, DNS_CLASS_IN, 9, chain.at, chain.length);
    add_raw_mx(&w,
               (unsigned char[]){(unsigned char)(0xc0 | (start + 1998) >> 8),
                                 (unsigned char)(start + 1998)},
               2);
    ok_named(read_wire(&w, DNS_TYPE_MX) && got.count == 1, "a chain of 1000 pointers");
    is_string(got.mx[0].host, "example.test", "comes to its end");

    w = wire_new(1);
    RAW(&w, "\1a\1b\xc0\x2e");
    ok_named(!read_wire(&w, DNS_TYPE_MX), "a loop through labels is refused");
    w = wire_new(2);
    RAW(&w, "\1a\xc0\x3e"); /* to the name of the next record, which leads back */
    RAW(&w, "\xc0\x2c");
    ok_named(read_wire(&w, DNS_TYPE_MX) == false, "and one through two records");
}

TEST(bad_replies)
{
    struct wire w = wire_new(65535);
    ok_named(!read_wire(&w, DNS_TYPE_MX), "65535 records promised, none there");
    w = wire_new(2);
    add_mx(&w, 10, "a.test");
    ok_named(!read_wire(&w, DNS_TYPE_MX), "one record too few");
    is_number(got.count, 0, "and the others are not believed");
    ok_named(read_part(text_of(w.at, w.length), false, DNS_TYPE_MX) && got.count == 1,
             "but are when it is known to be cut");
    w = wire_new(0);
    w.at[4] = w.at[5] = '\xff';
    ok_named(!read_wire(&w, DNS_TYPE_MX), "65535 questions promised");
    w = wire_new(0);
    ok_named(read_wire(&w, DNS_TYPE_MX) && got.count == 0, "no record is no error");

    for (char code = 1; code < 16; code++) {
        w = wire_new(1);
        add_mx(&w, 10, "a.test");
        w.at[3] = (char)(0x80 | code);
        ok_named(!read_wire(&w, DNS_TYPE_MX), "an error is no answer");
    }

    w = wire_new(3);
    add_mx(&w, 10, "a.test");
    RAW(&w, "\1b\xc0\x0c");
    add_mx(&w, 30, "c.test");
    size_t refused = 0;
    for (size_t length = 0; length < w.length; length++)
        refused += !read_part(text_of(w.at, length), true, DNS_TYPE_MX);
    is_number(refused, w.length, "every cut reply is refused");
}

static bool
is_sane(const struct dns_answer *a, enum dns_type type)
{
    char again[DNS_NAME_MAX];
    if (a->count > (type == DNS_TYPE_MX ? DNS_MX_MAX : DNS_ADDRESS_MAX) ||
        a->ttl_s > INT32_MAX)
        return false;
    for (size_t i = 0; type == DNS_TYPE_MX && i < a->count; i++)
        if (a->mx[i].preference > 65535 ||
            (a->mx[i].host[0] != '\0' &&
             (!dns_host_copy(again, text_from(a->mx[i].host)) ||
              strcmp(again, a->mx[i].host) != 0)))
            return false;
    return true;
}

TEST(mutilated)
{
    struct wire good = wire_new(5);
    uint32_t random = 1;
    size_t insane = 0, read = 0;
    add_mx(&good, 10, "a.test");
    RAW(&good, "\1b\xc0\x0c");
    RAW(&good, "\1c\xc0\x2a");
    add_record(&good, DNS_TYPE_A, DNS_CLASS_IN, 9, "\x7f\0\0\1", 4);
    add_record(&good, DNS_TYPE_AAAA, DNS_CLASS_IN, 9, "0123456789abcdef", 16);
    for (int round = 0; round < 100000; round++) {
        struct wire w = good;
        enum dns_type type = round % 3 == 0   ? DNS_TYPE_A
                             : round % 3 == 1 ? DNS_TYPE_MX
                                              : DNS_TYPE_AAAA;
        for (int change = 0; change <= round % 5; change++) {
            random = random * 1664525 + 1013904223;
            w.at[(random >> 8) % w.length] = (char)(random >> 24);
        }
        read += read_wire(&w, type);
        insane += !is_sane(&got, type);
    }
    is_number(insane, 0, "100000 mutilated replies say nothing impossible");
    ok_named(read > 1000 && read < 99000, "some of them were read, some refused");
}

TEST(hosts)
{
    char host[DNS_NAME_MAX], label[65], name[300];
    ok(dns_host_copy(host, TEXT("Mail-1._x.Example.COM.")));
    is_string(host, "mail-1._x.example.com", "lower case, no trailing dot");
    static const char *const bad[] = {"",     ".",   "..",    ".a",  "a..b", "a b",
                                      "a\tb", "a\n", "\xfcx", "a,b", "a@b",  "a\\b",
                                      "a/b",  "[a]", "a..",   "a:b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (!ok_named(!dns_host_copy(host, text_from(bad[i])), "no host name"))
            printf("# '%s'\n", bad[i]);
    ok_named(!dns_host_copy(host, text_of("a\0b", 3)), "NUL");

    memset(label, 'a', 64);
    label[64] = '\0';
    ok_named(!dns_host_copy(host, text_from(label)), "a label of 64");
    ok_named(dns_host_copy(host, text_of(label, 63)), "a label of 63");
    snprintf(name, sizeof(name), "%.63s.%.63s.%.63s.%.61s", label, label, label, label);
    is_number(strlen(name), 253, "a name of 253");
    ok_named(dns_host_copy(host, text_from(name)), "is one");
    is_string(host, name, "and kept whole");
    strcat(name, ".");
    ok_named(dns_host_copy(host, text_from(name)), "a dot more is none more");
    snprintf(name, sizeof(name), "%.63s.%.63s.%.63s.%.62s", label, label, label, label);
    ok_named(!dns_host_copy(host, text_from(name)), "a name of 254");

    struct wire w = wire_new(2);
    add_mx(&w, 1, name);
    name[252] = '\0';
    add_mx(&w, 2, name);
    ok(read_wire(&w, DNS_TYPE_MX));
    is_number(got.count, 1, "the same limits in a reply");
    is_string(got.mx[0].host, name, "up to the last octet");
}

static void
add_text(struct wire *w, struct text strings)
{
    add_record(w, DNS_TYPE_TXT, DNS_CLASS_IN, 300, strings.at, strings.length);
}

TEST(texts)
{
    struct wire w = wire_new(5);
    add_text(&w, TEXT("\3abc\0\4 def"));
    add_text(&w, TEXT("\0"));
    add_text(&w, TEXT(""));
    add_text(&w, TEXT("\5abcd"));
    add_text(&w, TEXT("\3\0\n\xff"));
    ok_named(read_wire(&w, DNS_TYPE_TXT), "TXT");
    is_number(got.count, 3, "those that are malformed are ignored");
    is_text(got.texts[0], TEXT("abc def"), "strings are joined without a space");
    is_number(got.texts[1].length, 0, "an empty one");
    is_text(got.texts[2], TEXT("\0\n\xff"), "any octets");
    is_number(got.ttl_s, 300, "the TTL");

    w = wire_new(2);
    add_text(&w, TEXT(""));
    add_text(&w, TEXT("\1"));
    ok_named(!read_wire(&w, DNS_TYPE_TXT), "malformed ones alone prove nothing");

    char large[17 * 256];
    memset(large, 'x', sizeof(large));
    for (size_t i = 0; i < sizeof(large); i += 256)
        large[i] = '\xff';
    w = wire_new(2);
    add_text(&w, text_of(large, 16 * 256)); /* 16 * 255 octets */
    add_text(&w, TEXT("\1y"));
    ok(read_wire(&w, DNS_TYPE_TXT));
    is_number(got.texts[0].length, 16 * 255, "a long one");
    w = wire_new(2);
    add_text(&w, text_of(large, 17 * 256));
    add_text(&w, TEXT("\1y"));
    ok(read_wire(&w, DNS_TYPE_TXT));
    is_number(got.count, 1, "one beyond 4 KiB is dropped");
    w = wire_new(20);
    for (int i = 0; i < 20; i++)
        add_text(&w, TEXT("\1z"));
    ok(read_wire(&w, DNS_TYPE_TXT));
    is_number(got.count, DNS_TEXTS_MAX, "16 at most");
}

TEST(tlsa)
{
    struct wire w = wire_new(4);
    add_record(&w, DNS_TYPE_TLSA, DNS_CLASS_IN, 60, "\3\1\1\xab\0\xcd", 6);
    add_record(&w, DNS_TYPE_TLSA, DNS_CLASS_IN, 70, "\xff\xfe\xfd", 3);
    add_record(&w, DNS_TYPE_TLSA, DNS_CLASS_IN, 80, "\3\1", 2);
    add_record(&w, DNS_TYPE_TLSA, 3, 80, "\3\1\1x", 4);
    ok_named(read_wire(&w, DNS_TYPE_TLSA), "TLSA");
    is_number(got.count, 2, "a short one and one of another class are ignored");
    ok(got.tlsa[0].usage == 3 && got.tlsa[0].selector == 1 && got.tlsa[0].matching == 1);
    is_text(got.tlsa[0].data, TEXT("\xab\0\xcd"), "its data");
    ok(got.tlsa[1].usage == 255 && got.tlsa[1].selector == 254 &&
       got.tlsa[1].matching == 253 && got.tlsa[1].data.length == 0);
    is_number(got.ttl_s, 60, "the least TTL");
    w = wire_new(40);
    for (int i = 0; i < 40; i++)
        add_record(&w, DNS_TYPE_TLSA, DNS_CLASS_IN, 60, "\2\0\0x", 4);
    ok(read_wire(&w, DNS_TYPE_TLSA));
    is_number(got.count, DNS_TLSA_MAX, "32 at most");
    w = wire_new(1);
    add_record(&w, DNS_TYPE_TLSA, DNS_CLASS_IN, 60, "\3\1", 2);
    ok_named(!read_wire(&w, DNS_TYPE_TLSA), "a malformed one alone");
}

TEST(reverse)
{
    struct wire w = wire_new(3);
    add_record(&w, DNS_TYPE_PTR, DNS_CLASS_IN, 60, "\4Mail\xc0\x0c", 7);
    add_record(&w, DNS_TYPE_PTR, DNS_CLASS_IN, 60, "\0", 1);
    add_record(&w, DNS_TYPE_PTR, DNS_CLASS_IN, 60, "\3a b\xc0\x0c", 6);
    ok_named(read_wire(&w, DNS_TYPE_PTR), "PTR");
    is_number(got.count, 1, "the root and what is no host name are ignored");
    is_string(got.hosts[0], "mail.example.test", "the name in lower case");
    w = wire_new(12);
    for (int i = 0; i < 12; i++)
        add_record(&w, DNS_TYPE_PTR, DNS_CLASS_IN, 60, "\1a\xc0\x0c", 4);
    ok(read_wire(&w, DNS_TYPE_PTR));
    is_number(got.count, DNS_HOSTS_MAX, "8 at most");
    static const char *const reverse[][2] = {
        {"192.0.2.17", "17.2.0.192.in-addr.arpa"},
        {"::ffff:192.0.2.17", "17.2.0.192.in-addr.arpa"},
        {"2001:db8::567:89ab",
         "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"},
    };
    for (size_t i = 0; i < 3; i++) {
        struct net_address address;
        char name[DNS_NAME_MAX], copy[DNS_NAME_MAX];
        ok(net_address_parse_ip(text_from(reverse[i][0]), &address));
        dns_reverse_name(&address, name);
        is_string(name, reverse[i][1], reverse[i][0]);
        ok(dns_host_copy(copy, text_from(name)));
    }
}

TEST(header)
{
    struct wire w = wire_new(0);
    struct text reply = text_of(w.at, w.length);
    is_number(dns_reply_code(reply), 0, "the code");
    ok(!dns_reply_is_authentic(reply));
    w.at[3] = '\xa3';
    is_number(dns_reply_code(reply), 3, "NXDOMAIN");
    ok_named(dns_reply_is_authentic(reply), "with the AD bit");
    is_number(dns_reply_code(text_before(reply, 11)), -1, "less than a header");
    ok(!dns_reply_is_authentic(text_before(reply, 11)));
    ok(!dns_reply_is_authentic(text_before(reply, 0)));
}

TEST(merge)
{
    struct dns_answer six = {.ttl_s = 7}, four = {.ttl_s = 5, .secure = true}, out = {0};
    dns_answer_merge(&six, &four, &out);
    ok_named(out.count == 0 && out.secure, "nothing; of which one is secure");
    ok(dns_answer_add(&six, NET_IPV6, "0123456789abcdef", 16));
    ok(dns_answer_add(&four, NET_IPV4, "0123", 4));
    ok(dns_answer_add(&four, NET_IPV4, "4567", 4));
    memset(&out, 0, sizeof(out));
    dns_answer_merge(&six, &four, &out);
    ok(out.count == 3 && out.addresses[0].family == NET_IPV6 && out.ttl_s == 5);
    ok(dns_host_is_localhost(TEXT("localhost")) && dns_host_is_localhost(TEXT("a.localhost")));
    ok(!dns_host_is_localhost(TEXT("localhost.test")));
}

int
main(void)
{
    tap_tests("");
    free(octets);
    free(joined);
    return done();
}
