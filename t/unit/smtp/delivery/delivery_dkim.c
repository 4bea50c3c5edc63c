/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* Signed mail over real sockets: in each form in which it leaves, in one go and one after
 * the other, and what happens when a key cannot sign. */
#include "smtp/delivery/delivery.h"

#include "base/memory.h"
#include "t/sim/delivery_world.h"
#include "t/support/dkim_kit.h"

#include <stdlib.h>
#include <string.h>

static const struct host_rule seven_bit[] = {
    {"EHLO", "250-host\r\n250-PIPELINING\r\n250 SIZE 0\r\n", 0, 0},
    {NULL,   NULL,                                           0, 0}
};
static const char plain[] = "From: ann@a.test\r\n";
static const char multipart[] =
    "From: ann@a.test\r\nMIME-Version: 1.0\r\nContent-Type: multipart/signed; "
    "boundary=b; protocol=\"x/y\"; micalg=z\r\n";

static struct dkim_keys *
set_keys(struct bed *b)
{
    struct dkim_keys *keys = dkim_kit_keys("a.test", "s", 1);
    b->settings.dkim_keys = keys;
    delivery_reload(b->delivery, &b->settings);
    b->settings.dkim_keys = NULL;
    return keys;
}

static void
add_ours(struct bed *b, const char *to, bool eight_bit)
{
    add_mail(b, to);
    b->manager.envelopes[b->manager.count - 1]->ours = true;
    b->manager.envelopes[b->manager.count - 1]->eight_bit = eight_bit;
}

static void
set_content(const char *header, const char *body)
{
    spool.length =
        (size_t)snprintf(spool.content, CONTENT_MAX, "%s\r\n%s", header, body);
}

/* The message that the host got, with its dots. */
static void
is_signed(const struct bed *b, const char *name)
{
    struct text got = buffer_text(&b->a.content);
    ok_named(text_starts(got, TEXT("DKIM-Signature: v=1; a=rsa-sha256;")), name);
    ok_named(dkim_kit_body_fits(got), "over the body that arrives");
}

/* A host without 8BITMIME, and content that is labelled as 8-bit: converted, or not
 * needed, or forbidden, or only with other line ends. */
TEST(forms)
{
    static const struct {
        const char *name, *header, *body, *told;
    } forms[] = {
        {"converted",        plain,     "gr\xc3\xbc\xc3\x9f dich  \r\n\r\n\r\n", "log: converted"    },
        {"ASCII after all",  plain,     "plain\r\n",                             ""                  },
        {"no line end",      plain,     "plain",                                 ""                  },
        {"not even a body",  plain,     "",                                      ""                  },
        {"multipart/signed", multipart,
         "--b\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\xc3\xbc\r\n--b\r\n"
         "Content-Type: x/y\r\n\r\nsignature\r\n--b--\r\n",                      "log: not converted"},
    };
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        for (int eight = 0; eight < 2; eight++) {
            FIXTURE(bed, b, bed_start, bed_stop);
            set_keys(&b);
            b.a.rules = eight ? NULL : seven_bit;
            set_content(forms[i].header, forms[i].body);
            add_ours(&b, "u@x.test", true);
            run(&b, "x.test");
            is_settled(&b, "u@x.test sent 2.0.0 none\n", forms[i].name);
            is_signed(&b, forms[i].name);
            bool told = !eight && forms[i].told[0] != '\0';
            ok(has(&b.lines, "converted for") == told);
        }
    }
}

/* Binary content that must not be converted is not sent, signed or not. */
TEST(refused)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    set_keys(&b);
    b.a.rules = seven_bit;
    set_content(multipart, "--b\r\n\r\na\nb\xff\r\n--b--\r\n");
    add_ours(&b, "u@x.test", true);
    b.manager.envelopes[0]->binary = true;
    run(&b, "x.test");
    is_settled(&b, "u@x.test bounced 5.6.3 message\n", "binary, signed by its author");
    is_number(b.a.content.length, 0, "not a byte of it");
}

static size_t
count_of(const struct buffer *b, const char *what)
{
    size_t count = 0;
    for (const char *at = b->at, *end = b->at + b->length;
         (at = memmem(at, (size_t)(end - at), what, strlen(what))) != NULL; at++)
        count++;
    return count;
}

/* A kept connection carries the next ones; each is read while nothing else is asked. */
TEST(many)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    set_keys(&b);
    set_content(plain, ".dot\r\n");
    for (int i = 0; i < ERRANDS; i++)
        add_ours(&b, "u@x.test", i % 2 == 1);
    b.manager.envelopes[2]->ours = false;
    run(&b, "x.test");
    is_number(count_of(&b.manager.verdicts, "u@x.test sent 2.0.0"), ERRANDS, "all");
    is_number(count_of(&b.a.content, "DKIM-Signature:"), ERRANDS - 1,
              "all that are ours are signed");
    is_number(b.a.connections, 1, "over one connection");
}

/* Mail for which there is a key never leaves unsigned: it waits, and the next attempt
 * signs it when it can. Other mail leaves. */
TEST(waits)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    struct dkim_keys *keys = set_keys(&b);
    set_content(plain, "body\r\n");
    dkim_kit_break(keys);
    add_ours(&b, "u@x.test", false);
    run(&b, "x.test");
    is_settled(&b, "u@x.test deferred 4.3.0 message\n", "it waits");
    is_number(b.a.content.length, 0, "not a byte has left");
    ok_named(!has(&b.a.commands, "MAIL"), "it was not spoken of");
    ok(has(&b.lines, "error: the key s of a.test cannot sign (dkim_keys): the mail waits"));
    ok(signing_is_on(delivery_signing(b.delivery)));
    struct signing_counts counts = signing_counts(delivery_signing(b.delivery));
    is_number(counts.failed, 1, "counted");
    add_mail(&b, "other@x.test");
    run(&b, "x.test");
    ok_named(has(&b.manager.verdicts, "other@x.test sent 2.0.0"),
             "unsigned mail leaves");
    set_keys(&b);
    buffer_clear(&b.a.content);
    add_ours(&b, "v@x.test", false);
    b.manager.envelopes[b.manager.count - 1]->id = b.manager.envelopes[0]->id;
    run(&b, "x.test");
    ok_named(has(&b.manager.verdicts, "v@x.test sent 2.0.0"), "later it leaves");
    is_signed(&b, "and signed");
}

/* --- Content that a host cannot take as it is, over real sockets ------------------ */

/* Content that a host cannot take as it is, over real sockets: converted, or not. */

static const struct host_rule refuse_eight_bit[] = {
    {"EHLO", "250-host\r\n250-PIPELINING\r\n250 SIZE 0\r\n", 0, 0},
    {NULL,   NULL,                                           0, 0}
};

static void
set_long_content(const char *header, const char *line, size_t lines)
{
    size_t at = (size_t)snprintf(spool.content, CONTENT_MAX, "%s\r\n", header);
    for (size_t i = 0; i < lines; i++, at += strlen(line))
        memcpy(spool.content + at, line, strlen(line));
    spool.length = at;
}

static void
add_eight_bit(struct bed *b, const char *to)
{
    add_mail(b, to);
    b->manager.envelopes[b->manager.count - 1]->eight_bit = true;
}

static bool
is_ascii(const struct buffer *b)
{
    return text_is_ascii(buffer_text(b));
}

static void
test_converted(size_t lines, const char *name)
{
    struct bed b;
    bed_start(&b);
    b.a.rules = refuse_eight_bit;
    set_long_content("Subject: x\r\n", "gr\xc3\xbc\xc3\x9f dich\r\n", lines);
    add_eight_bit(&b, "u@x.test");
    add_mail(&b, "v@x.test");
    run(&b, "x.test");
    is_settled(&b, "u@x.test sent 2.0.0 none\nv@x.test sent 2.0.0 none\n", name);
    char *second =
        memmem(b.a.content.at + 1, b.a.content.length - 1, "Received: x", 11);
    ok(second != NULL);
    size_t first = second == NULL ? 0 : (size_t)(second - b.a.content.at);
    ok_named(text_is_ascii(text_before(buffer_text(&b.a.content), first)), "in ASCII");
    ok(has(&b.a.content, "Content-Transfer-Encoding: "));
    ok_named(!is_ascii(&b.a.content), "what is not said to be 8-bit goes as it is");
    ok(has(&b.lines, "converted for a.test[127.0.0.2]"));
    ok(!has(&b.a.commands, "BODY="));
    bed_stop(&b);
}

static void
test_size(void)
{
    struct bed b;
    unsigned long size = 0;
    bed_start(&b);
    b.a.rules = refuse_eight_bit;
    set_long_content("Subject: x\r\n", "\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\r\n", 1000);
    add_eight_bit(&b, "u@x.test");
    run(&b, "x.test");
    ok(buffer_add_byte(&b.a.commands, '\0'));
    char *at = strstr(b.a.commands.at, "SIZE=");
    ok(at != NULL && (size = strtoul(at + 5, NULL, 10)) > 0);
    ok_named(size >= b.a.content.length && size < 4 * spool.length + 10000,
             "SIZE is that of what goes, or some more");
    bed_stop(&b);
}

static void
test_not_needed(void)
{
    struct bed b;
    bed_start(&b);
    b.a.rules = refuse_eight_bit;
    set_long_content("Subject: x\r\n", "plain\r\n", 3);
    add_eight_bit(&b, "u@x.test");
    run(&b, "x.test");
    is_text(buffer_text(&b.a.content),
            TEXT("Received: x\r\nSubject: x\r\n\r\nplain\r\nplain\r\nplain\r\n"),
            "ASCII after all");
    bed_stop(&b);
    bed_start(&b);
    set_long_content("Subject: x\r\n", "\xc3\xbc\r\n", 1);
    add_eight_bit(&b, "u@x.test");
    run(&b, "x.test");
    ok_named(!is_ascii(&b.a.content), "a host with 8BITMIME gets it as it is");
    ok(has(&b.a.commands, "BODY=8BITMIME"));
    bed_stop(&b);
}

/* Signed: 8-bit content goes as it is, binary content never does. */
static void
test_forbidden(void)
{
    static const char header[] = "MIME-Version: 1.0\r\nContent-Type: multipart/signed; "
                                 "boundary=b; protocol=\"x/y\"; micalg=z\r\n";
    static const char part[] =
        "--b\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\xc3\xbc\r\n"
        "--b\r\nContent-Type: x/y\r\n\r\nsignature\r\n--b--\r\n";
    struct bed b;
    bed_start(&b);
    b.a.rules = refuse_eight_bit;
    set_long_content(header, part, 1);
    add_eight_bit(&b, "u@x.test");
    run(&b, "x.test");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "8-bit, signed");
    ok(has(&b.a.content, part));
    ok(has(&b.lines, "not converted for a.test[127.0.0.2]"));
    bed_stop(&b);
    bed_start(&b);
    b.a.rules = refuse_eight_bit;
    set_long_content(header, part, 1);
    add_eight_bit(&b, "u@x.test");
    b.manager.envelopes[0]->binary = true;
    run(&b, "x.test");
    is_settled(&b, "u@x.test bounced 5.6.3 message\n", "binary, signed");
    is_number(b.a.content.length, 0, "not a byte of it");
    bed_stop(&b);
}

/* Bytes that only BDAT could carry go by DATA in another coat. */
static void
test_binary(void)
{
    struct bed b;
    bed_start(&b);
    set_long_content("MIME-Version: 1.0\r\nContent-Type: application/octet-stream\r\n"
                "Content-Transfer-Encoding: binary\r\n",
                "", 0);
    memcpy(spool.content + spool.length, "a\0b\nc\rd\xff", 8);
    spool.length += 8;
    add_eight_bit(&b, "u@x.test");
    b.manager.envelopes[0]->binary = true;
    run(&b, "x.test");
    is_settled(&b, "u@x.test sent 2.0.0 none\n", "binary, to a host without it");
    ok(has(&b.a.content, "Content-Transfer-Encoding: base64\r\n"));
    ok(has(&b.a.content, "YQBiCmMNZP8="));
    ok(memchr(b.a.content.at, '\0', b.a.content.length) == NULL);
    bed_stop(&b);
}

static void
test_broken(void)
{
    for (int when = 0; when < 3; when++) {
        struct bed b;
        bed_start(&b);
        b.a.rules = refuse_eight_bit;
        set_long_content("Subject: x\r\n", "gr\xc3\xbc\xc3\x9f dich\r\n", 150000);
        add_eight_bit(&b, "u@x.test");
        spool.fail_at = when == 0 ? 0 : when == 1 ? 1000000 : -1;
        b.manager.envelopes[0]->content_crc ^= when == 2;
        run(&b, "x.test");
        is_settled(&b, "u@x.test deferred 4.3.0 message\n", "what cannot be read");
        ok_named(!has(&b.a.commands, "MAIL"), "was not spoken of");
        bed_stop(&b);
    }
}

/* The host leaves, or we do, while the content is looked at. */
static void
test_lost(bool by_us)
{
    struct bed b;
    bed_start(&b);
    b.a.rules = refuse_eight_bit;
    set_long_content("Subject: x\r\n", "gr\xc3\xbc\xc3\x9f dich\r\n", 200000);
    add_eight_bit(&b, "u@x.test");
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    for (int i = 0; i < 5000 && b.manager.taken == 0; i++)
        clock_turn(b.loop);
    if (by_us)
        delivery_free(&b.delivery);
    else
        host_hang_up(&b.a.links[0]);
    turns(&b, 300);
    ok_named(has(&b.manager.verdicts, by_us ? "u@x.test deferred" : "u@x.test sent"),
             "it has its verdict: the next host takes it");
    ok(!has(&b.a.commands, "MAIL"));
    bed_stop(&b);
}

/* The converter of a message that was refused has nothing to do with the next one. */
static void
test_unconvertible(const char *where, bool eight_bit)
{
    const struct host_rule rules[] = {
        {"EHLO", "250-host\r\n250-PIPELINING\r\n250 SIZE 0\r\n", 0, 0},
        {where,  "550 no\r\n",                                   0, 0},
        {NULL,   NULL,                                           0, 0}
    };
    struct bed b;
    bed_start(&b);
    b.a.rules = rules;
    set_long_content("Subject: x\r\n", "gr\xc3\xbc\xc3\x9f dich\r\n", 3);
    add_eight_bit(&b, "u@x.test");
    if (eight_bit)
        add_eight_bit(&b, "v@x.test");
    else
        add_mail(&b, "v@x.test");
    b.manager.hidden = 1;
    delivery_open(b.delivery, place(&b), &b.target, "x.test");
    b.settings.reuse_idle_ms = 10000;
    delivery_reload(b.delivery, &b.settings);
    turns(&b, 150);
    is_settled(&b, "u@x.test bounced 5.0.0 message\n", where);
    b.a.rules = refuse_eight_bit;
    b.manager.hidden = 0;
    turns(&b, 150);
    is_settled(&b, "u@x.test bounced 5.0.0 message\nv@x.test sent 2.0.0 none\n",
               "the next one goes over the same connection");
    is_number(b.a.connections, 1, "which was kept");
    ok_named(is_ascii(&b.a.content) == eight_bit, "converted when it needs to be");
    bed_stop(&b);
}

static void
delivery_convert_tests(void)
{
    spool.content = memory_new(CONTENT_MAX);
    test_converted(3, "a small one");
    test_converted(100000, "a large one");
    test_size();
    test_not_needed();
    test_forbidden();
    test_binary();
    test_broken();
    test_lost(false);
    test_lost(true);
    for (int eight_bit = 0; eight_bit < 2; eight_bit++) {
        test_unconvertible("MAIL", eight_bit);
        test_unconvertible("RCPT", eight_bit);
        test_unconvertible("DATA", eight_bit);
    }
    free(spool.content);
}


int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    free(spool.content);
    delivery_convert_tests();
    return done();
}
