/* Submissions: what becomes of a message on its way into a real spool, byte for byte. */
#include "admin/sendmail/submission.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/queue_operator.h"
#include "t/support/tap.h"

#include <sysexits.h>
#include <unistd.h>

static char folder[] = "/tmp/petrel-submission-XXXXXX";

struct world {
    struct loop *loop;
    struct log *log;
    struct queue *queue;
    struct submission_settings settings;
    const char *sender, *to; /* to: a list, "" for none */
    size_t piece;            /* bytes at a time; 0 = all */
    size_t pieces;           /* sizes that content_is() tries; 0 = all */
};

struct result {
    int code;
    char error[512], id[ID_LENGTH + 1];
    struct envelope *envelope; /* NULL: nothing is in the queue */
    char *content;
    size_t length;
};

static struct world
begin(void)
{
    struct world w = {.sender = "ann@a.test", .to = "bob@b.test"};
    char error[512];
    struct queue_settings settings = {.spool = folder, .slices = 1};
    w.loop = loop_new();
    w.log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    if (queue_open_injector(&w.queue, w.log, &settings, error, sizeof(error)) != 0)
        abort();
    w.settings = (struct submission_settings){.hostname = "h.test",
                                              .message_size_limit = 20000000,
                                              .dot_ends = true,
                                              .full_name = TEXT("Ann"),
                                              .uid = 7};
    return w;
}

static void
end(struct world *w)
{
    queue_close(&w->queue);
    log_free(&w->log);
    loop_free(&w->loop);
}

static bool
first(void *context, struct id id, enum queue_place place)
{
    struct result *r = context;
    (void)place;
    id_format(id, r->id);
    return false;
}

/* Takes what was queued out again. */
static void
take_back(struct world *w, struct result *r)
{
    struct id id;
    char name[ID_LENGTH + 1];
    memcpy(name, r->id, sizeof(name));
    r->id[0] = '\0';
    if (queue_each(w->queue, first, r) != 0)
        abort();
    if (!id_parse(text_from(r->id), &id))
        return;
    if (strcmp(name, r->id) != 0)
        ok_named(false, "the id is not the one in the spool");
    r->envelope = queue_load(w->queue, id);
    if (r->envelope == NULL)
        abort();
    r->length = (size_t)r->envelope->content_size;
    r->content = memory_new(r->length + 1);
    int content = queue_content_open(w->queue, r->envelope);
    int64_t got = queue_content_read(w->queue, content, 0, r->content, r->length);
    queue_content_close(w->queue, content);
    if (got != r->envelope->content_size || !queue_remove(w->queue, id))
        ok_named(false, "the spool does not give back what it took");
}

static struct result
submit(struct world *w, struct text message)
{
    struct result r = {0};
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, text_from(w->sender));
    struct recipients to = {
        .envelope = e, .hostname = w->settings.hostname, .notify = 4};
    if (!recipients_add(&to, text_from(w->to)))
        abort();
    struct submission *s = submission_new(&w->settings, w->loop, w->queue, &to);
    size_t piece = w->piece ? w->piece : message.length + 1;
    bool more = true;
    for (; message.length > 0 && more; message = text_after(message, piece))
        more = submission_add(s, text_before(message, piece));
    r.code = submission_finish(s, r.id, r.error, sizeof(r.error));
    submission_free(&s);
    recipients_free(&to);
    take_back(w, &r);
    return r;
}

static void
forget(struct result *r)
{
    envelope_free(&r->envelope);
    free(r->content);
}

/* The content becomes this, in pieces of several sizes. */
static void
content_is(struct world *w, struct text message, const char *want, const char *name)
{
    static const size_t pieces[] = {0, 1, 2, 3, 5, 7};
    size_t count = w->pieces > 0 ? w->pieces : sizeof(pieces) / sizeof(*pieces);
    for (size_t i = 0; i < count; i++) {
        w->piece = pieces[i];
        struct result r = submit(w, message);
        is_number(r.code, 0, name);
        is_text(text_of(r.content, r.length), text_from(want), name);
        forget(&r);
    }
    w->piece = 0;
}

/* The names of the fields that were added, in order. */
static void
prefix_is(struct world *w, const char *message, const char *want)
{
    char names[200] = "";
    struct result r = submit(w, text_from(message));
    struct text rest = r.envelope->prefix, line;
    while (text_cut(&rest, '\n', &line) && line.length > 0)
        if (line.at[0] != '\t')
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%.*s ",
                     TEXT_ARGS(text_before(line, text_find(line, ':'))));
    is_string(names, want, want);
    ok_named(text_ends_nocase(r.envelope->prefix, TEXT("\r\n")), "CRLF ended");
    forget(&r);
}

/* A message, and the content that it becomes. */
struct content {
    struct text message;
    const char *want, *name;
};

static void
contents_are(struct world *w, const struct content *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        content_is(w, rows[i].message, rows[i].want, rows[i].name);
}

TEST(content)
{
    struct world w = begin();
    static const struct content rows[] = {
        {TEXT("Subject: x\n\nhello\n"), "Subject: x\r\n\r\nhello\r\n", "plain"},
        {TEXT("Subject: x\r\n\r\nhello\r\n"), "Subject: x\r\n\r\nhello\r\n", "with CRLF"},
        {TEXT("Subject: x\n a\n\tb\nTo: c\n\nd"), "Subject: x\r\n a\r\n\tb\r\nTo: c\r\n\r\nd\r\n", "folded, and no last LF"},
        {TEXT("Subject: x\n"), "Subject: x\r\n\r\n", "a header only"},
        {TEXT("Subject: x"), "Subject: x\r\n\r\n", "not even ended"},
        {TEXT("Subject: x\n\n"), "Subject: x\r\n\r\n", "no body"},
        {TEXT(""), "\r\n", "nothing at all"},
        {TEXT("\n\nbody"), "\r\n\r\nbody\r\n", "an empty header"},
        {TEXT("hello world\nmore: x\n"), "\r\nhello world\r\nmore: x\r\n", "no header"},
        {TEXT("hi"), "\r\nhi\r\n", "no header, short"},
        {TEXT("(x"), "\r\n(x\r\n", "no header, shorter"},
        {TEXT(" From x\n"), "\r\n From x\r\n", "a continuation of nothing"},
        {TEXT("A: b\nno field\nC: d\n\ne\n"), "A: b\r\n\r\nno field\r\nC: d\r\n\r\ne\r\n", "the header ends early"},
        {TEXT("A: b\n.\nrest\n"), "A: b\r\n\r\n", "a dot in the header"},
        {TEXT("A: b\n\nx\n.\nrest\n"), "A: b\r\n\r\nx\r\n", "a dot"},
        {TEXT("A: b\n\nx\0\0y\rz\n"), "A: b\r\n\r\nxy\r\nz\r\n", "NULs and CR"},
        {TEXT("A: b\rBcc: c\n\nx\n"), "A: b Bcc: c\r\n\r\nx\r\n", "a CR makes no field"},
        {TEXT("A : b\nNameless\n"), "A : b\r\n\r\nNameless\r\n", "old form"},
    };
    contents_are(&w, rows, sizeof(rows) / sizeof(*rows));
    w.settings.dot_ends = false;
    content_is(&w, TEXT("A: b\n\nx\n.\nrest\n"), "A: b\r\n\r\nx\r\n.\r\nrest\r\n",
               "-i");
    content_is(&w, TEXT("."), "\r\n.\r\n", "-i and a dot alone");
    end(&w);
}

/* Every kind of line end, dots and NULs, in a body and in a header. */
TEST(lines)
{
    struct world w = begin();
    static const struct content rows[] = {
        {TEXT("A: b\n\n" ""), "A: b\r\n\r\n" "", "nothing is no line"},
        {TEXT("A: b\n\n" "\n"), "A: b\r\n\r\n" "\r\n", "an empty line"},
        {TEXT("A: b\n\n" "a\nb\r\nc"), "A: b\r\n\r\n" "a\r\nb\r\nc\r\n", "LF, CRLF, none"},
        {TEXT("A: b\n\n" "a\r\r\nb\r"), "A: b\r\n\r\n" "a\r\nb\r\n", "CRs before LF; one at the end"},
        {TEXT("A: b\n\n" "10%\r20%\r30%\n"), "A: b\r\n\r\n" "10%\r\n20%\r\n30%\r\n", "progress"},
        {TEXT("A: b\n\n" "\n\r\n\n"), "A: b\r\n\r\n" "\r\n\r\n\r\n", "empty lines"},
        {TEXT("A: b\n\n" "a\n\rb"), "A: b\r\n\r\n" "a\r\n\r\nb\r\n", "LF CR is two"},
        {TEXT("A: b\n\n" "\r"), "A: b\r\n\r\n" "\r\n", "a CR alone"},
        {TEXT("A: b\n\n" "a\0b\r\0\nc\0"), "A: b\r\n\r\n" "ab\r\nc\r\n", "NULs vanish"},
        {TEXT("A: b\n\n" "\xff\x80\x01\t\n"), "A: b\r\n\r\n" "\xff\x80\x01\t\r\n", "others stay"},
        {TEXT("A: b\n\n" "a\n.\nb\n"), "A: b\r\n\r\n" "a\r\n", "a dot ends"},
        {TEXT("A: b\n\n" "a\n.\r\nb\n"), "A: b\r\n\r\n" "a\r\n", "with CRLF"},
        {TEXT("A: b\n\n" "."), "A: b\r\n\r\n" "", "without line end"},
        {TEXT("A: b\n\n" "..\n.a\na.\n...\n"), "A: b\r\n\r\n" "..\r\n.a\r\na.\r\n...\r\n", "other dots stay"},
        {TEXT("A: b\n\n" ".\rb\n.\n"), "A: b\r\n\r\n" ".\r\nb\r\n", "a CR does not end the mail"},
        {TEXT("A: b\n\n" ".\0\nb"), "A: b\r\n\r\n" "", "a NUL does not hide the dot"},
        {TEXT("Subject: a\rBcc: b\nTo: c\n\nx\ry\n"), "Subject: a Bcc: b\r\nTo: c\r\n\r\nx\r\ny\r\n", "a CR makes no field, and a line in the body"},
        {TEXT("\rA: b\n"), "\r\n A: b\r\n", "nor at the start"},
        {TEXT("A: b\r"), "A: b\r\n\r\n", "nor at the end"},
        {TEXT(".\rb\n"), "\r\n. b\r\n", "a dot before it"},
    };
    static const struct content dots[] = {
        {TEXT("A: b\n\n" "a\n."), "A: b\r\n\r\n" "a\r\n.\r\n", "but not with -i"},
        {TEXT("A: b\n\n" "a\n.\nb\n"), "A: b\r\n\r\n" "a\r\n.\r\nb\r\n", "not at all"},
    };
    w.pieces = 3;
    contents_are(&w, rows, sizeof(rows) / sizeof(*rows));
    w.settings.dot_ends = false;
    contents_are(&w, dots, sizeof(dots) / sizeof(*dots));
    end(&w);
}

TEST(mbox)
{
    struct world w = begin();
    static const struct content rows[] = {
        {TEXT("From ann Sat Jan  1\nA: b\n\nc\n"), "A: b\r\n\r\nc\r\n", "an mbox line goes"},
        {TEXT("From \nA: b\n\nc\n"), "A: b\r\n\r\nc\r\n", "a bare one too"},
        {TEXT("From x"), "\r\n", "alone"},
        {TEXT(">From root Mon\nA: b\n\nc\n"), "A: b\r\n\r\nc\r\n", "quoted"},
        {TEXT(">From \nA: b\n\nc\n"), "A: b\r\n\r\nc\r\n", "a bare quoted one"},
        {TEXT(">Form x\nA: b\n"), "\r\n>Form x\r\nA: b\r\n", "another word"},
        {TEXT("From: x\n\nc\n"), "From: x\r\n\r\nc\r\n", "a field stays"},
        {TEXT("From\n"), "\r\nFrom\r\n", "a word stays"},
        {TEXT("A: b\nFrom x\n"), "A: b\r\n\r\nFrom x\r\n", "only at the start"},
    };
    contents_are(&w, rows, sizeof(rows) / sizeof(*rows));
    prefix_is(&w, "From ann Sat\nFrom: a\nDate: b\nMessage-ID: c\n\n", "Received ");
    end(&w);
}

TEST(bcc)
{
    struct world w = begin();
    content_is(
        &w, TEXT("Bcc: x@y\nA: b\nbCC: x,\n y@z\nResent-Bcc: q\nBccX: 1\n\nBcc: c\n"),
        "A: b\r\nBccX: 1\r\n\r\nBcc: c\r\n", "Bcc goes, with its folds");
    content_is(&w, TEXT("Bcc: x@y\n"), "\r\n", "and may be all");
    end(&w);
}

/* The From field that was added. */
static void
from_is(struct world *w, const char *want)
{
    struct result r = submit(w, TEXT("A: b\n\n"));
    struct text rest = r.envelope->prefix, line;
    while (text_cut(&rest, '\n', &line) && !text_starts(line, TEXT("From:")))
        ;
    is_text(text_trim(line), text_from(want), want);
    forget(&r);
}

TEST(prefix)
{
    struct world w = begin();
    prefix_is(&w, "Subject: x\n\n", "Received From Date Message-ID ");
    prefix_is(&w, "from: x\n\n", "Received Date Message-ID ");
    prefix_is(&w, "DATE: x\nA: b\n", "Received From Message-ID ");
    prefix_is(&w, "A: b\nMessage-Id: x\n", "Received From Date ");
    prefix_is(&w, "no header\nFrom: x\n", "Received From Date Message-ID ");
    prefix_is(&w, "Resent-To: a\nFrom: x\nDate: y\nMessage-ID: z\n\n", "Received Resent-Date Resent-Message-ID ");
    prefix_is(&w, "Resent-Date: a\n\n", "Received From Date Message-ID Resent-Message-ID ");
    prefix_is(&w, "Resent-Message-ID: a\n\n", "Received From Date Message-ID Resent-Date ");
    prefix_is(&w, "", "Received From Date Message-ID ");
    struct result r = submit(&w, TEXT("A: b\n\n"));
    char want[400];
    snprintf(want, sizeof(want),
             "Received: by h.test (Petrel, from userid 7)\r\n\tid %s; ", r.id);
    ok_named(text_starts(r.envelope->prefix, text_from(want)), "who, where, what");
    snprintf(want, sizeof(want), "\r\nMessage-ID: <%s@h.test>\r\n", r.id);
    ok_named(text_ends_nocase(r.envelope->prefix, text_from(want)), "a new Message-ID");
    forget(&r);
    from_is(&w, "From: Ann <ann@a.test>");
    w.sender = "";
    from_is(&w, "From: Ann <MAILER-DAEMON@h.test>");
    w.settings.full_name = TEXT("");
    from_is(&w, "From: <MAILER-DAEMON@h.test>");
    r = submit(&w, TEXT("A: b\n\n"));
    is_text(r.envelope->sender, TEXT(""), "and the null sender stays null");
    forget(&r);
    end(&w);
}

/* The recipients, or the mistake. */
static void
recipients_are(struct world *w, const char *message, const char *want)
{
    char all[500] = "";
    struct result r = submit(w, text_from(message));
    for (unsigned i = 0; r.envelope && i < r.envelope->count; i++)
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%.*s", i ? " " : "",
                 TEXT_ARGS(r.envelope->recipients[i].address));
    is_string(r.code ? r.error : all, want, want);
    ok((r.code == 0) == (r.envelope != NULL));
    forget(&r);
}

TEST(recipients)
{
    struct world w = begin();
    recipients_are(&w, "To: c@d.test\n\n", "bob@b.test");
    w.settings.from_header = true;
    recipients_are(&w, "To: c@d.test\n\n", "bob@b.test c@d.test");
    recipients_are(&w,
                   "To: Bob <bob@b.test>, root\nCC:\n x@y.test (hi)\nBcc: q@r.test\n\n",
                   "bob@b.test root@h.test x@y.test q@r.test");
    recipients_are(&w, "To: group: a@b.test, c@d.test;, e@f.test\n\nTo: no@no\n",
                   "bob@b.test a@b.test c@d.test e@f.test");
    recipients_are(&w,
                   "To: a@b.test\nResent-To: c@d.test\nResent-Bcc: e@f.test\n"
                   "Resent-Cc: g@h.test\nCc: i@j.test\n\n",
                   "bob@b.test c@d.test e@f.test g@h.test");
    recipients_are(&w, "To: undisclosed-recipients:;\n\n", "bob@b.test");
    recipients_are(&w, "To:\nCc: \n\n", "bob@b.test");
    recipients_are(&w, "To: a@b.test, x y z, g\xfc@b@c, x y z\nCc: \"q <r@s.test>\n\n",
                   "bob@b.test a@b.test x y z g?@b@c \"q <r@s.test>");
    recipients_are(&w, "Subject: x\rCc: c@d.test\n\n", "bob@b.test");
    recipients_are(&w, "no header\nTo: a@b.test\n", "bob@b.test");
    w.to = "";
    recipients_are(&w, "Subject: x\n\n",
                   "no recipients: name them, or use -t with To, Cc or Bcc");
    recipients_are(&w, "Bcc: a@b.test\n\n", "a@b.test");
    recipients_are(&w, "To: x y z, x y z\n\n",
                   "not a mail address, and there is no other: x y z");
    recipients_are(&w, "To: a@b.test, c@d.test\nCc: a@b.test\n\n", "a@b.test c@d.test");
    struct result r = submit(&w, TEXT("To: a@b.test\n\n"));
    is_number(r.envelope->recipients[0].notify, 4, "with what was asked");
    ok_named(r.envelope->ours, "it is ours");
    is_text(r.envelope->submitter, TEXT("uid:7"), "of the user who called");
    is_number(r.envelope->header_needs, 0, "and needs nothing more");
    forget(&r);
    r = submit(&w, TEXT("Return-Path: <x@y.test>\nFrom: root\nTo: a@b.test\n\n"));
    is_number(r.code, 0, "a bare From");
    is_number(r.envelope == NULL ? 0 : r.envelope->header_needs,
              HEADER_NEEDS_REMOVAL | HEADER_NEEDS_DOMAIN, "needs work");
    forget(&r);
    end(&w);
}

TEST(eight_bit)
{
    struct world w = begin();
    struct result r = submit(&w, TEXT("A: b\n\nplain\n"));
    ok(!r.envelope->eight_bit && !r.envelope->utf8);
    forget(&r);
    r = submit(&w, TEXT("A: b\n\n\xc3\xbc\n"));
    ok(r.envelope->eight_bit && !r.envelope->utf8);
    forget(&r);
    r = submit(&w, TEXT("A: \xfc\n\nx\n"));
    ok(r.envelope->eight_bit);
    forget(&r);
    w.to = "j\xc3\xbcrgen@b.test";
    r = submit(&w, TEXT("A: b\n\nplain\n"));
    ok(r.envelope->utf8 && !r.envelope->eight_bit);
    forget(&r);
    w.to = "a@b.test";
    w.sender = "j\xc3\xbcrgen@b.test";
    r = submit(&w, TEXT("A: b\n\nplain\n"));
    ok(r.envelope->utf8);
    forget(&r);
    end(&w);
}

static void
refused(struct world *w, struct text message, int code, const char *error)
{
    struct result r = submit(w, message);
    is_number(r.code, code, error);
    is_string(r.error, error, error);
    ok_named(r.envelope == NULL, "nothing is left in the spool");
    forget(&r);
}

TEST(limits)
{
    struct world w = begin();
    size_t size = 10 * 1024 * 1024;
    char *large = memory_new(size);
    memset(large, 'x', size);
    memcpy(large, "A: b\n\n", 6);
    for (size_t i = 100; i < size; i += 77)
        large[i] = '\n';
    w.piece = 32768;
    struct result r = submit(&w, text_of(large, size));
    is_number(r.code, 0, "10 MB");
    size_t lines = 1 + (size - 100 + 76) / 77;
    ok_named(r.length >= size + lines && r.length <= size + lines + 4,
             "with a CR a line");
    ok(r.length > 100 && memcmp(r.content, "A: b\r\n\r\nxxx", 11) == 0);
    forget(&r);

    memset(large, 'y', size);
    memcpy(large, "x y", 3);
    r = submit(&w, text_of(large, size));
    is_number(r.code, 0, "10 MB in one line, no header");
    is_number(r.length, (int64_t)size + 4, "whole");
    forget(&r);

    memcpy(large, "x:y", 3);
    refused(&w, text_of(large, size), EX_DATAERR, "the header is larger than 1 MB");
    memcpy(large, "\nab", 3);
    w.settings.message_size_limit = 1024 * 1024;
    refused(&w, text_of(large, size), EX_DATAERR,
            "the message is larger than message_size_limit");
    w.settings.message_size_limit = 8;
    w.piece = 0;
    refused(&w, TEXT("A: b\n\nx\n"), EX_DATAERR,
            "the message is larger than message_size_limit");
    content_is(&w, TEXT("A: b\n"), "A: b\r\n\r\n", "exactly the limit");
    free(large);
    end(&w);
}

/* Bytes from a generator: in any case the spool holds lines of CRLF without NULs, an
 * empty line, and no Bcc before it. */
TEST(noise)
{
    struct world w = begin();
    static const char *const words[] = {"A: b", "Bcc: x", "\n",     "\r",     "\r\n",
                                        ".",    "From ",  "From x", " ",      "\t",
                                        ":",    "\n\n",   "x",      "To: a@b"};
    uint64_t state = 12345;
    bool good = true;
    w.settings.from_header = true;
    for (int round = 0; round < 300; round++) {
        FIXTURE(buffer, in, buffer_init, buffer_free, 10000);
        for (int i = 0; i < 20; i++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            size_t which = (state >> 33) % (sizeof(words) / sizeof(*words) + 1);
            struct text word = which < sizeof(words) / sizeof(*words)
                                   ? text_from(words[which])
                                   : TEXT("\0");
            good = good && buffer_add(&in, word);
        }
        w.piece = 1 + (state >> 40) % 9;
        struct result r = submit(&w, buffer_text(&in));
        if (r.code == 0) {
            struct text rest = text_of(r.content, r.length), line;
            bool body = false;
            good = good && text_ends_nocase(rest, TEXT("\r\n"));
            while (good && text_cut(&rest, '\n', &line) && rest.at) {
                good = line.length > 0 && line.at[line.length - 1] == '\r' &&
                       text_find(line, '\r') == line.length - 1 &&
                       text_find(line, '\0') == TEXT_NONE &&
                       (body || !text_starts_nocase(line, TEXT("Bcc:")));
                body = body || line.length == 1;
            }
            good = good && (body || r.length == 0);
        } else {
            good = good && r.code == EX_DATAERR;
        }
        forget(&r);
    }
    ok_named(good, "noise becomes mail");
    end(&w);
}

int
main(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    tap_tests("");
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
    return done();
}
