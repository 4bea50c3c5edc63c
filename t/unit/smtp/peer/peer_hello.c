/* The JSON of XPEER. */
#include "smtp/peer/peer_hello.h"

#include "t/support/tap.h"

static const struct sibling_hello good = {.host = "relay1",
                                          .group = "mail",
                                          .spool = "00112233445566778899aabbccddeeff",
                                          .run_ms = 1764334800123,
                                          .now_ms = 1764334800456,
                                          .version = "0.1.0",
                                          .state = "running"};

#define REST                                                                                       \
    "\"spool\":\"0011\",\"run\":7,\"version\":\"0.1\",\"state\":\"running\"}"

TEST(round)
{
    struct sibling_hello read;
    struct buffer out;

    buffer_init(&out, 1000);
    ok(peer_hello_write(&good, &out));
    is_text(buffer_text(&out),
            TEXT("{\"host\":\"relay1\",\"group\":\"mail\",\"spool\":\"00112233445566778899aabbccddeeff\","
                 "\"run\":1764334800123,\"now\":1764334800456,\"version\":\"0.1.0\",\"state\":\"running\"}"),
            "as it goes over the wire");
    ok(peer_hello_read(buffer_text(&out), &read));
    ok(memcmp(&read, &good, sizeof(read)) == 0);
    buffer_free(&out);
    buffer_init(&out, 20);
    ok_named(!peer_hello_write(&good, &out) && out.length == 0, "what does not fit adds nothing");
    buffer_free(&out);
}

TEST(longest)
{
    struct sibling_hello h = good, read;
    struct buffer out;

    memset(h.host, 'h', GROUP_HOST_MAX);
    memset(h.group, 'g', GROUP_NAME_MAX);
    memset(h.spool, 'f', SIBLING_SPOOL_MAX);
    memset(h.version, '9', SIBLING_VERSION_MAX);
    memset(h.state, 's', SIBLING_STATE_MAX);
    h.run_ms = INT64_MAX;
    h.now_ms = SIBLING_TIME_MAX_MS;
    buffer_init(&out, PEER_HELLO_MAX);
    ok_named(peer_hello_write(&h, &out), "the longest fits into a line of a reply");
    ok(peer_hello_read(buffer_text(&out), &read) && memcmp(&h, &read, sizeof(h)) == 0);
    buffer_free(&out);
}

TEST(wrong)
{
    static const char *const wrong[] = {
        "", "{", "[]", "\"relay1\"", "{}",
        "{\"host\":\"relay1\",\"group\":\"mail\"}",
        "{\"host\":\"\",\"group\":\"mail\"," REST,
        "{\"host\":\"a b\",\"group\":\"mail\"," REST,
        "{\"host\":\"a\\u0000b\",\"group\":\"mail\"," REST,
        "{\"host\":\"a\\r\\nXGIVE\",\"group\":\"mail\"," REST,
        "{\"host\":7,\"group\":\"mail\"," REST,
        "{\"host\":\"a\",\"host\":\"b\",\"group\":\"mail\"," REST,
        "{\"host\":\"a\",\"group\":\"mail\",\"spool\":\"xyz\",\"run\":7,\"version\":\"1\",\"state\":\"running\"}",
        "{\"host\":\"a\",\"group\":\"mail\",\"spool\":\"00\",\"run\":-1,\"version\":\"1\",\"state\":\"running\"}",
        "{\"host\":\"a\",\"group\":\"mail\",\"now\":-1," REST,
        "{\"host\":\"a\",\"group\":\"mail\",\"now\":253402300800000," REST,
        "{\"host\":\"a\",\"group\":\"mail\",\"spool\":\"00\",\"run\":\"7\",\"version\":\"1\",\"state\":\"running\"}",
        "{\"host\":\"a\",\"group\":\"mail\",\"spool\":\"00\",\"run\":7,\"version\":\"1 2\",\"state\":\"running\"}",
        "{\"host\":\"a\",\"group\":\"mail\",\"spool\":\"00\",\"run\":7,\"version\":\"1\",\"state\":\"sixteen-bytes-oh\"}",
        "{\"host\":\"a\",\"group\":\"mail\",\"spool\":\"000000000000000000000000000000000\",\"run\":7,\"version\":\"1\",\"state\":\"a\"}",
    };
    struct sibling_hello read;
    char deep[PEER_HELLO_MAX + 1];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ok_named(!peer_hello_read(text_from(wrong[i]), &read), wrong[i]);
    memset(deep, '[', sizeof(deep));
    ok_named(!peer_hello_read(text_of(deep, PEER_HELLO_MAX), &read), "depth");
    ok_named(!peer_hello_read(text_of(deep, sizeof(deep)), &read), "length");
    ok_named(peer_hello_read(TEXT("{\"host\":\"A\",\"group\":\"Mail\",\"later\":[1]," REST), &read) && strcmp(read.host, "a") == 0 && strcmp(read.group, "mail") == 0,
             "members of later versions are skipped; names are in lower case");
}
