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
    struct signing_counts counts;
    ok(delivery_signing(b.delivery, &counts));
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

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    free(spool.content);
    return done();
}
