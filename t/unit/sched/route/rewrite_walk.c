/* Random headers from the words that address fields are made of, rewritten by real tables:
 * each address becomes what its table says, and nothing else changes (t/support/rewrite_check.h).
 * SEED=n, ROUNDS=n. */
#include "mime/header.h"
#include "t/support/must.h"
#include "t/support/rewrite_check.h"
#include "t/support/tap.h"

#include <stdlib.h>

enum { ROUNDS_DEFAULT = 20000, HEADER_MAX = 64 * 1024 };

static uint64_t state;

static unsigned
any(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static void
put(struct buffer *b, const char *words)
{
    must(buffer_add(b, text_from(words)));
}

#define PICK(b, ...)                                                                     \
    do {                                                                                 \
        static const char *const words[] = {__VA_ARGS__};                                \
        put(b, words[any(sizeof(words) / sizeof(words[0]))]);                            \
    } while (0)

static void
put_white(struct buffer *b)
{
    PICK(b, "", "", "", " ", " ", "\t", "\r\n ", "\r\n\t", " (c)", "(a (b) \\) c)", "\r\n (x, y)\r\n ");
}

static void
put_local(struct buffer *b)
{
    PICK(b, "a", "root", "b.c", "\"a b\"", "\"x@y.test\"", "\"q\\\"\\\\\"", "\"a\"", "r\xc3\xbc", "A", "a+b", "=?x?=",
         "\"<z@x.test>\"", "\"a,b;c:\"");
}

static void
put_domain(struct buffer *b)
{
    PICK(b, "x.test", "X.TEST", "h.test", "example.org", "relay.test", "b.lan", "localhost", "b\xc3\xbc.test", "[127.0.0.1]",
         "[IPv6:::1]", "sub.example.org", "vps7");
}

static void
put_spec(struct buffer *b)
{
    put_local(b);
    if (any(4) == 0)
        return;
    if (any(8) == 0)
        put_white(b);
    put(b, "@");
    if (any(8) == 0)
        put_white(b);
    put_domain(b);
}

static void
put_mailbox(struct buffer *b)
{
    put_white(b);
    if (any(3) == 0) {
        put_spec(b);
    } else {
        PICK(b, "", "", "Ann", "\"Cron\r\n Daemon\"", "=?utf-8?q?=C3=BC?=", "A. B.", "\"o, k\"", "\"\"", "x@y.test");
        put_white(b);
        PICK(b, "<", "<", "<", "<@r.test:", "<@r.test,@s.test:");
        put_spec(b);
        put(b, ">");
    }
    put_white(b);
}

static void
put_value(struct buffer *b)
{
    bool group = any(10) == 0;
    if (group)
        PICK(b, "g:", " \"g, h\" :", " a b:", "undisclosed-recipients:");
    for (unsigned i = 0, count = any(10) == 0 ? any(40) : 1 + any(3); i < count; i++) {
        if (i > 0)
            PICK(b, ",", ",", ", ", ",,", " , ");
        put_mailbox(b);
    }
    if (group)
        put(b, ";");
    if (any(12) == 0) /* broken, or at least odd */
        PICK(b, "<", ">", "(", "\"", ":", ";", "@", "a b", ",", "\\", "[", "]", ".", "\x01", "\xff");
}

static void
put_header(struct buffer *b)
{
    buffer_clear(b);
    for (unsigned i = 0, count = any(6); i < count; i++) {
        PICK(b, "From", "From", "FROM", "Sender", "sender", "Reply-To", "To", "Cc", "Bcc", "Errors-To", "Resent-From",
             "Resent-To", "Subject", "Received", "Return-Path", "X-From", "DKIM-Signature");
        PICK(b, ":", ":", ":", ": ", ": ", " :", "\t :", ":\r\n ");
        put_value(b);
        if (any(50) == 0)
            for (unsigned k = any(100); k > 0; k--)
                put(b, "(comment) ");
        put(b, i + 1 == count && any(20) == 0 ? "" : "\r\n");
    }
}

int
main(void)
{
    const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS");
    long count = rounds != NULL ? strtol(rounds, NULL, 10) : ROUNDS_DEFAULT;
    struct buffer header;
    buffer_init(&header, HEADER_MAX);
    state = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    for (long i = 0; i < count; i++) {
        struct header_scan scan;
        put_header(&header);
        header_scan_start(&scan);
        header_scan_add(&scan, buffer_text(&header));
        rewrite_check(any(3) > 0 ? TEXT("s@x.test") : TEXT(""), text_before(buffer_text(&header), scan.length),
                      (int)any(REWRITE_CHECK_TABLES + 1) - 1);
    }
    buffer_free(&header);
    ok_named(true, "each header is rewritten as its table says");
    return done();
}
