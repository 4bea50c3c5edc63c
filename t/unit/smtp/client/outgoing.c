/* The form in which a message leaves: what is read of it, its size, its sender. */
#include "smtp/client/outgoing.h"

#include "base/memory.h"
#include "queue/manager/message_head.h"
#include "smtp/client/content_reader.h"
#include "t/support/queue_kit.h"
#include "t/support/tap.h"

#include <errno.h>
#include <stdlib.h>

static char folder[] = "/tmp/petrel-outgoing-XXXXXX";
static const struct outgoing_rules rules = {.hostname = "h.test"};

static struct envelope *
stored(struct kit *k, const char *prefix, struct text content)
{
    static const char *const to[] = {"b@b.test", NULL};
    struct envelope *e = kit_envelope("ann@a.test", to);
    e->ours = true;
    e->header_needs = HEADER_NEEDS_ALL;
    e = queue_kit_accept(k, e, content);
    e->prefix = envelope_text(e, text_from(prefix));
    return e;
}

/* The whole message as it leaves is this; o's size is right. */
static void
leaves_as(struct kit *k, const struct envelope *e, const struct outgoing *o,
          struct text want, const char *name)
{
    static struct content_reader reader;
    struct text piece;
    const char *why = "";
    enum progress progress;
    bool good = true;
    FIXTURE(buffer, all, buffer_init, buffer_free, 4 * 1024 * 1024);
    ok(content_reader_open(&reader, k->queue, e, o, &why));
    while ((progress = content_reader_read(&reader, &piece, &why)) == PROGRESS_MORE)
        good = good && piece.length > 0 && buffer_add(&all, piece);
    ok_named(good && progress == PROGRESS_DONE, "whole, and what was stored");
    content_reader_close(&reader);
    is_text(buffer_text(&all), want, name);
    is_number(outgoing_size(o, e), (int64_t)want.length, "the size");
}

static void
becomes(struct kit *k, const char *prefix, const char *content, const char *want)
{
    struct envelope *e = stored(k, prefix, text_from(content));
    struct outgoing *o = outgoing_new(k->queue, e, NULL, &rules, k->log);
    ok(o != NULL);
    leaves_as(k, e, o, text_from(want), want);
    is_text(outgoing_sender(o, e), TEXT("ann@a.test"), "its sender");
    outgoing_free(&o);
    ok_named(o == NULL, "freed");
    queue_retire(k->queue, &e);
}

static void
test_forms(struct kit *k)
{
    becomes(k, "Received: x\r\n", "Bcc: c@d\r\nFrom: a@b\r\n\r\nBcc: body\r\n",
            "Received: x\r\nFrom: a@b\r\n\r\nBcc: body\r\n");
    becomes(k, "Received: x\r\n", "Subject: s\r\n\r\n",
            "Received: x\r\nFrom: ann@a.test\r\nSubject: s\r\n\r\n");
    becomes(
        k, "Received: x\r\n", "Subject: alarm\r\ndisk is full\r\n",
        "Received: x\r\nFrom: ann@a.test\r\nSubject: alarm\r\n\r\ndisk is full\r\n");
    becomes(k, "", "Subject: s\r\n", "From: ann@a.test\r\nSubject: s\r\n");
    becomes(
        k, "Received: x\r\nDate: y\r\n\r\n", "no header\r\nBcc: x\r\n",
        "Received: x\r\nFrom: ann@a.test\r\nDate: y\r\n\r\nno header\r\nBcc: x\r\n");
    becomes(k, "Received: x\r\nMailbox-Line: ", "From a b\r\nBcc: c\r\n\r\nx\r\n",
            "Received: x\r\nFrom: ann@a.test\r\nMailbox-Line: From a b\r\n\r\nx\r\n");
    becomes(k, "Received: x\r\n", "", "Received: x\r\nFrom: ann@a.test\r\n");
}

/* A header that takes several pieces, and a long body behind it. */
static void
test_long(struct kit *k, size_t header, bool leaves)
{
    struct buffer content, want;
    buffer_init(&content, 4 * 1024 * 1024);
    buffer_init(&want, 4 * 1024 * 1024);
    bool good = buffer_add(&content, TEXT("Bcc: c@d\r\nFrom: a@b\r\n"));
    while (good && content.length + 30 < header)
        good = buffer_add(&content, TEXT("X-Field: of this header\r\n"));
    while (good && content.length < header + 100000)
        good = buffer_add(&content, TEXT("\r\nA line of the body"));
    ok(good && buffer_add(&want, text_after(buffer_text(&content), 10)));
    struct envelope *e = stored(k, "", buffer_text(&content));
    buffer_clear(&k->lines);
    struct outgoing *o = outgoing_new(k->queue, e, NULL, &rules, k->log);
    ok_named((o != NULL) == leaves, "within the limit or not");
    ok_named(
        kit_logged(k, "the header is longer than 262144 bytes: it leaves unchanged") !=
            leaves,
        "which is said");
    leaves_as(k, e, o, leaves ? buffer_text(&want) : buffer_text(&content),
              "as it should");
    outgoing_free(&o);
    queue_retire(k->queue, &e);
    buffer_free(&content);
    buffer_free(&want);
}

/* Short addresses that grow when they are completed. */
static void
test_grown(struct kit *k)
{
    FIXTURE(buffer, content, buffer_init, buffer_free, 1024 * 1024);
    bool good = buffer_add(&content, TEXT("Bcc: c@d\r\n"));
    while (good && content.length < MESSAGE_HEAD_MAX - 4096) {
        good = buffer_add(&content, TEXT("To: e"));
        for (int i = 0; good && i < 900; i++)
            good = buffer_add(&content, TEXT(",e"));
        good = good && buffer_add(&content, TEXT("\r\n"));
    }
    ok(good && buffer_add(&content, TEXT("\r\nbody\r\n")));
    struct envelope *e = stored(k, "", buffer_text(&content));
    buffer_clear(&k->lines);
    struct outgoing *o = outgoing_new(k->queue, e, NULL, &rules, k->log);
    ok_named(o == NULL, "a header that is too long when it is rewritten");
    ok_named(kit_logged(k, "the header is longer than 524288 bytes when it is "
                           "rewritten: it leaves unchanged"),
             "which is said");
    leaves_as(k, e, o, buffer_text(&content), "leaves as it is");
    queue_retire(k->queue, &e);
}

/* The signature of somebody else over what is rewritten. */
static void
breaks(struct kit *k, const char *header, bool want, const char *name)
{
    FIXTURE(buffer, content, buffer_init, buffer_free, 4096);
    ok(buffer_format(&content, "%s\r\nbody\r\n", header));
    struct envelope *e = stored(k, "", buffer_text(&content));
    buffer_clear(&k->lines);
    struct outgoing *o = outgoing_new(k->queue, e, NULL, &rules, k->log);
    ok_named(kit_logged(k, "rewritten; its DKIM signature breaks") == want, name);
    outgoing_free(&o);
    queue_retire(k->queue, &e);
}

static void
test_signed(struct kit *k)
{
    breaks(k, "DKIM-Signature: x\r\nFrom: root\r\n", true,
           "a signature that breaks is logged");
    breaks(k, "From: a@b.test\r\nTo: bob\r\ndkim-signature: x\r\n", true,
           "wherever it stands");
    breaks(k, "DKIM-Signature: x\r\nFrom: a@b.test\r\nBcc: c\r\nSubject : x\r\n", false,
           "one that does not is not");
    breaks(k, "X-DKIM-Signature: x\r\nFrom: root\r\n", false,
           "nor where there is none");
}

static void
test_unchanged(struct kit *k)
{
    struct envelope *e = stored(k, "P: x\r\n", TEXT("Bcc: x\r\n\r\ny\r\n"));
    e->ours = false;
    ok_named(outgoing_new(k->queue, e, NULL, &rules, k->log) == NULL,
             "mail of others stays");
    leaves_as(k, e, NULL, TEXT("P: x\r\nBcc: x\r\n\r\ny\r\n"), "as it is");
    is_text(outgoing_sender(NULL, e), TEXT("ann@a.test"), "with its sender");
    e->ours = true;
    e->header_needs = 0;
    ok_named(outgoing_new(k->queue, e, NULL, &rules, k->log) == NULL,
             "and what needs nothing");
    queue_retire(k->queue, &e);
}

static void
utf8_is(struct kit *k, const char *content, bool ascii, bool want, const char *name)
{
    struct envelope *e = stored(k, "", text_from(content));
    e->utf8 = true;
    e->ascii_header = ascii;
    struct outgoing *o = outgoing_new(k->queue, e, NULL, &rules, k->log);
    ok_named(o != NULL && outgoing_has_utf8_header(o, e) == want, name);
    ok_named(outgoing_has_utf8_header(NULL, e) == !ascii, "as it is stored");
    outgoing_free(&o);
    queue_retire(k->queue, &e);
}

static void
test_utf8(struct kit *k)
{
    utf8_is(k, "From: a@b\r\nBcc: \xc3\xbc@d\r\n\r\n", false, false,
            "a field that goes does not count");
    utf8_is(k, "From: \xc3\xbc@b\r\nBcc: x\r\n\r\n", false, true,
            "one that stays does");
    utf8_is(k, "Content-Type: multipart/mixed\r\nBcc: x\r\n\r\n", false, true,
            "nobody has looked at the parts");
    utf8_is(k, "From: a@b\r\n\r\n", true, false, "none was there");
}

/* The file is read at the time of delivery. */
static void
test_gone(struct kit *k)
{
    struct envelope *e = envelope_new();
    e->id = (struct id){.time_ms = 1700000000000, .hash = 5};
    e->ours = true;
    e->header_needs = HEADER_NEEDS_ALL;
    struct outgoing *o = outgoing_new(k->queue, e, NULL, &rules, k->log);
    ok_named(o != NULL && o->error == -ENOENT, "a file that cannot be read");
    outgoing_free(&o);
    envelope_free(&e);
    struct outgoing *none = NULL;
    outgoing_free(&none);
}

/* rewrites NULL: none. want_sender: as it leaves. */
static void
comes_through(struct kit *k, bool ours, const char *origin, const char *sender,
              const char *want, const char *want_sender)
{
    FIXTURE(buffer, unused, buffer_init, buffer_free, 1000);
    struct rewrites *rewrites =
        rewrites_new(&(struct rewrites_settings){.table = TEXT("a.test new@b.test"),
                                                 .hostname = "h"},
                     &unused);
    struct outgoing_rules table = {.hostname = "h.test", .rewrites = rewrites};
    struct envelope *e =
        stored(k, "Received: x\r\n", TEXT("Bcc: c@d\r\nFrom: a@x.test\r\n\r\nb\r\n"));
    e->ours = ours;
    const struct recipient_way *way =
        envelope_way(e, text_from(origin), text_from(sender));
    struct outgoing *o = outgoing_new(k->queue, e, way, &table, k->log);
    ok(o != NULL);
    leaves_as(k, e, o, text_from(want), origin);
    is_text(outgoing_sender(o, e), text_from(want_sender), "its sender");
    outgoing_free(&o);
    queue_retire(k->queue, &e);
    rewrites_free(&rewrites);
}

/* A tagged sender, and a stamp before all else; what is not ours, and who asks for a
 * notification of success, keeps its sender. */
static void
test_tag(struct kit *k)
{
    struct text secret = TEXT("0123456789abcdef");
    struct verp *v = verp_new(TEXT("bounce@h.test"), srs_new(TEXT(""), &secret, 1));
    struct outgoing_rules tagging = {.hostname = "h.test", .verp = v};
    for (unsigned i = 0; i < 5; i++) {
        struct envelope *e = stored(k, "Received: x\r\n", TEXT("From: a@x.test\r\n\r\nb\r\n"));
        struct verp_tag tag;
        struct address a;
        e->sender = i == 1 ? TEXT("") : TEXT("news@h.test");
        e->ours = i != 2;
        e->trust = i == 4 ? TEXT("int") : TEXT("");
        struct recipient r = {.address = TEXT("joe@b.test"),
                              .notify = i == 3 ? NOTIFY_SUCCESS : 0};
        struct outgoing *o = NULL;
        outgoing_tag(&o, e, &r, &tagging, 1000);
        if (i > 0) {
            ok_named(o == NULL, "it stays");
        } else {
            ok(address_parse(outgoing_sender(o, e), &a) &&
               verp_read(v, &a, 1000, &tag) == VERP_GOOD &&
               id_compare(tag.id, e->id) == 0 &&
               verp_is_for(v, &tag, TEXT("joe@b.test")));
            ok(text_starts(outgoing_header(o), TEXT("X-Petrel-Return: ")));
            ok(text_ends_nocase(outgoing_header(o), TEXT("\r\nReceived: x\r\n")));
            is_number(outgoing_size(o, e),
                      (int64_t)outgoing_header(o).length + e->content_size, "its size");
        }
        outgoing_free(&o);
        queue_retire(k->queue, &e);
    }
    verp_free(&v);
}

/* For a smarthost that refuses the null sender. */
static void
test_bounce_sender(struct kit *k)
{
    struct outgoing_rules with = {.hostname = "h.test", .bounce_sender = "ops@h.test"};
    struct envelope *e =
        stored(k, "Received: x\r\n", TEXT("From: a@x.test\r\n\r\nb\r\n"));
    for (int ours = 0; ours < 2; ours++) {
        e->ours = ours;
        e->sender = TEXT("");
        struct outgoing *o = outgoing_new(k->queue, e, NULL, &with, k->log);
        ok_named(o != NULL, "a notification");
        leaves_as(k, e, o, TEXT("Received: x\r\nFrom: a@x.test\r\n\r\nb\r\n"),
                  "with the same header");
        is_text(outgoing_sender(o, e), TEXT("ops@h.test"), "has another sender");
        outgoing_free(&o);
        const struct recipient_way *way =
            envelope_way(e, TEXT("list@h.test"), TEXT("owner@h.test"));
        o = outgoing_new(k->queue, e, way, &with, k->log);
        is_text(outgoing_sender(o, e), TEXT("owner@h.test"), "that of a list stays");
        outgoing_free(&o);
        e->sender = TEXT("a@x.test");
        o = outgoing_new(k->queue, e, NULL, &with, k->log);
        is_text(outgoing_sender(o, e), TEXT("a@x.test"), "other mail has its own");
        outgoing_free(&o);
    }
    e->sender = TEXT("");
    ok_named(outgoing_new(k->queue, e, NULL, NULL, k->log) == NULL,
             "mailboxes get it as it is");
    queue_retire(k->queue, &e);
}

/* A mailbox behind LMTP gets it so; want NULL: as it is stored. */
static void
is_kept_as(struct kit *k, bool ours, const char *origin, const char *content,
           const char *want, const char *name)
{
    static const struct outgoing_rules mailbox = {.to_mailbox = true};
    struct envelope *e = stored(k, "Received: x\r\n", text_from(content));
    e->ours = ours;
    const struct recipient_way *way =
        origin == NULL ? NULL : envelope_way(e, text_from(origin), TEXT(""));
    struct outgoing *o = outgoing_new(k->queue, e, way, &mailbox, k->log);
    ok_named((o == NULL) == (want == NULL), name);
    if (want != NULL)
        leaves_as(k, e, o, text_from(want), name);
    is_text(outgoing_sender(o, e), TEXT("ann@a.test"), "with its sender");
    outgoing_free(&o);
    queue_retire(k->queue, &e);
}

static void
test_mailbox(struct kit *k)
{
    static const char returned[] =
        "A: b\r\nreturn-path: <old@x>,\r\n <y>\r\nBcc: z\r\n\r\nReturn-Path: q\r\n";
    static const char alarm[] = "Subject: alarm\r\ndisk is full\r\n";
    is_kept_as(k, false, NULL, returned,
               "Received: x\r\nA: b\r\nBcc: z\r\n\r\nReturn-Path: q\r\n",
               "an earlier Return-Path goes");
    is_kept_as(k, true, NULL, alarm,
               "Received: x\r\nSubject: alarm\r\n\r\ndisk is full\r\n",
               "our own mail gets its empty line");
    is_kept_as(k, false, NULL, alarm, NULL, "that of others has its signature");
    is_kept_as(k, true, NULL, "Bcc: a\r\n\r\nx\r\n", NULL, "what lacks nothing stays");
    is_kept_as(k, false, "list@h.test", returned,
               "Delivered-To: list@h.test\r\nReceived: x\r\nA: b\r\nBcc: z\r\n\r\n"
               "Return-Path: q\r\n",
               "through an alias");
    is_kept_as(k, false, "list@h.test", "A: b\r\n\r\nx\r\n",
               "Delivered-To: list@h.test\r\nReceived: x\r\nA: b\r\n\r\nx\r\n",
               "and nothing else to change");
}

static void
test_ways(struct kit *k)
{
    static const char srs[] = "SRS0=ABCDEF=AA=a.test=ann@a.test";
    comes_through(k, false, "root@h.test", "",
                  "Delivered-To: root@h.test\r\nReceived: x\r\nBcc: c@d\r\n"
                  "From: a@x.test\r\n\r\nb\r\n",
                  "ann@a.test");
    comes_through(k, false, "root@h.test", srs,
                  "Delivered-To: root@h.test\r\nReceived: x\r\nBcc: c@d\r\n"
                  "From: a@x.test\r\n\r\nb\r\n",
                  srs);
    comes_through(k, true, "root@h.test", "",
                  "Delivered-To: root@h.test\r\nReceived: x\r\nFrom: a@x.test\r\n"
                  "\r\nb\r\n",
                  "new@b.test");
    comes_through(k, true, "root@h.test", srs,
                  "Delivered-To: root@h.test\r\nReceived: x\r\nFrom: a@x.test\r\n"
                  "\r\nb\r\n",
                  srs);
    comes_through(k, true, "list@h.test", "owner-list@a.test",
                  "Delivered-To: list@h.test\r\nReceived: x\r\nFrom: a@x.test\r\n"
                  "\r\nb\r\n",
                  "new@b.test");
    comes_through(k, false, "list@h.test", "owner-list@a.test",
                  "Delivered-To: list@h.test\r\nReceived: x\r\nBcc: c@d\r\n"
                  "From: a@x.test\r\n\r\nb\r\n",
                  "owner-list@a.test");
    comes_through(k, false, "j\xc3\xbc@h.test", "",
                  "Received: x\r\nBcc: c@d\r\nFrom: a@x.test\r\n\r\nb\r\n",
                  "ann@a.test");
}

int
main(void)
{
    struct kit k;
    if (mkdtemp(folder) == NULL)
        abort();
    is_number(queue_kit_open(&k, folder), 0, k.error);
    test_forms(&k);
    test_long(&k, 100000, true);
    test_long(&k, 200000, true);
    test_long(&k, 270000, false);
    test_grown(&k);
    test_signed(&k);
    test_unchanged(&k);
    test_utf8(&k);
    test_ways(&k);
    test_tag(&k);
    test_bounce_sender(&k);
    test_mailbox(&k);
    test_gone(&k);
    kit_close(&k);
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) != 0 ? 1 : done();
}
