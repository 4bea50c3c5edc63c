/* The SMTP server machine: dialogues in every cut of the input, a walk against a model.
 */
#include "smtp/server/server.h"

#include "base/dns/idna.h"
#include "base/log/log.h"
#include "base/log/log_internal.h"
#include "t/support/dialog.h"
#include "smtp/server/trace.h"
#include "smtp/server/transaction.h"
#include "base/event/event.h"
#include "t/support/sasl_kit.h"
#include "t/support/server_fake.h"

#include <glob.h>

/* --- Dialogues ---------------------------------------------------------------- */

struct play {
    const struct dialog *dialog;
    struct fake fake;
    size_t answered, shown,
        read; /* answers given, messages shown, bytes of out compared */
    struct outcome current;
    bool good;
    const char *mode;
};

static const struct outcome *
next_answer(void *context, bool begin)
{
    struct play *p = context;
    const struct dialog *d = p->dialog;
    if (p->answered == d->answer_count || d->answers[p->answered].begin != begin)
        return NULL;
    p->current = d->answers[p->answered++].refusal;
    return p->current.code == 250 ? NULL : &p->current;
}

static void
expect(struct play *p, bool good, const char *what, struct text want, struct text got)
{
    if (good)
        return;
    p->good = false;
    printf("# %s, %s: want '%.*s', got '%.*s'\n", p->mode, what,
           TEXT_ARGS(text_before(want, 300)), TEXT_ARGS(text_before(got, 300)));
}

static void
expect_reply(struct play *p, struct text want)
{
    struct text rest = text_after(buffer_text(&p->fake.out), p->read), line = TEXT("");
    if (rest.length == 0 || !text_cut(&rest, '\n', &line)) {
        expect(p, false, "reply", want, TEXT("(none)"));
        return;
    }
    p->read += line.length + 1;
    expect(p, text_ends_nocase(line, TEXT("\r")), "end of reply", TEXT("CR"), line);
    expect(p, line.length <= 511, "length of reply", TEXT("510"), line);
    expect(p, text_starts(line, want), "reply", want, line);
}

static void
expect_message(struct play *p, const struct dialog_step *step)
{
    struct text want = buffer_text(&step->bytes);
    struct buffer shown;
    if (step->kind == DIALOG_MESSAGE)
        p->shown++;
    if (p->shown > p->fake.count || p->shown == 0) {
        expect(p, false, "message", want, TEXT("(none)"));
        return;
    }
    const struct fake_message *m = &p->fake.messages[p->shown - 1];
    buffer_init(&shown, DIALOG_BYTES_MAX);
    bool good = dialog_fits(step, m->envelope, buffer_text(&m->content), &shown);
    expect(p, good, "message", want, buffer_text(&shown));
    buffer_free(&shown);
}

static void
run_step(struct play *p, const struct dialog_step *step)
{
    struct text bytes = buffer_text(&step->bytes);
    switch (step->kind) {
    case DIALOG_SEND:
        expect(p, p->read == p->fake.out.length, "unexpected reply", TEXT(""),
               text_after(buffer_text(&p->fake.out), p->read));
        fake_feed(&p->fake, bytes);
        return;
    case DIALOG_REPLY:
        expect_reply(p, bytes);
        return;
    case DIALOG_CLOSED:
        expect(p, p->fake.closed, "close", TEXT("closed"), TEXT("open"));
        return;
    case DIALOG_EVENT:
        if (text_equal(bytes, TEXT("timeout")))
            server_timed_out(&p->fake.server);
        else
            server_shut_down(&p->fake.server);
        fake_feed(&p->fake, TEXT(""));
        return;
    case DIALOG_MESSAGE:
    case DIALOG_CONTENT:
    case DIALOG_PREFIX:
    case DIALOG_LACKS:
        expect_message(p, step);
        return;
    case DIALOG_NOTHING:
        expect(p, p->fake.count == p->shown, "stored", TEXT("none"), TEXT("some"));
        return;
    }
}

static void
play_end(struct play *p)
{
    bool closes = false;
    for (size_t i = 0; i < p->dialog->count; i++)
        closes = closes || p->dialog->steps[i].kind == DIALOG_CLOSED;
    expect(p, p->read == p->fake.out.length, "reply at the end", TEXT(""),
           text_after(buffer_text(&p->fake.out), p->read));
    expect(p, p->fake.closed == closes, "end", closes ? TEXT("closed") : TEXT("open"),
           closes ? TEXT("open") : TEXT("closed"));
    expect(p, p->fake.count == p->shown, "messages", TEXT("shown"), TEXT("more"));
    server_fake_end(&p->fake);
}

/* size 0: step by step; else all that the client says, in pieces of size, then all
 * replies. */
static bool
play(const struct dialog *d, size_t size, bool late, const char *mode)
{
    static struct play p;
    struct buffer all;
    p = (struct play){.dialog = d, .good = true, .mode = mode};
    buffer_init(&all, DIALOG_BYTES_MAX);
    fake_start(&p.fake, &d->rules, NULL, d->lmtp, d->may_relay);
    p.fake.server.offer.defrag_host = d->peer ? "mx.example.org" : NULL;
    p.fake.answer = next_answer;
    p.fake.context = &p;
    p.fake.late = late;
    p.fake.space = d->space;
    for (size_t i = 0; size > 0 && i < d->count; i++)
        if (d->steps[i].kind == DIALOG_SEND)
            dialog_must(buffer_add(&all, buffer_text(&d->steps[i].bytes)), "too large");
    for (struct text rest = buffer_text(&all); rest.length > 0;
         rest = text_after(rest, size))
        fake_feed(&p.fake, text_before(rest, size));
    for (size_t i = 0; i < d->count; i++)
        if (size == 0 || d->steps[i].kind != DIALOG_SEND)
            run_step(&p, &d->steps[i]);
    play_end(&p);
    buffer_free(&all);
    return p.good;
}

static void
try_dialog(const char *path)
{
    struct dialog *d = dialog_read(path);
    size_t bytes = 0;
    for (size_t i = 0; i < d->count; i++)
        bytes += d->steps[i].bytes.length;
    bool good = play(d, 0, false, "step by step") && play(d, 0, true, "late answers");
    if (!d->paced) {
        good = play(d, SIZE_MAX, false, "one segment") && good;
        good = (bytes > 4000000 || play(d, 1, false, "byte by byte")) && good;
        good =
            play(d, 7, true, "by sevens") && play(d, 4096, false, "by pages") && good;
    }
    ok_named(good, path);
    dialog_free(d);
}

static size_t
try_dialogs(void)
{
    glob_t found;
    if (glob("t/dialog/*.smtp", 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        try_dialog(found.gl_pathv[i]);
    size_t count = found.gl_pathc;
    globfree(&found);
    return count;
}

/* --- A random walk against a model of six stages ------------------------------ */

enum model_stage { MODEL_NEW, MODEL_READY, MODEL_MAIL, MODEL_RCPT, MODEL_CHUNKS };

enum effect {
    HELLO,
    OLD_HELLO,
    SENDER,
    RECIPIENT,
    CONTENT,
    CHUNK,
    LAST_CHUNK,
    RESET,
    TLS,
    LOGIN,
    NOTHING
};
enum { OK = '2', GO = '3', LATER = '4', NO = '5' };

/* The commands of the walker, their meaning, and the answer in the right place. */
static const struct stride {
    const char *command, *content;
    enum effect effect;
    char verdict;
    bool refuse_begin, refuse_store; /* the pretended queue */
} strides[] = {
    {"EHLO walker\r\n",                                     "",                                                       HELLO,      OK,    false, false},
    {"HELO walker\r\n",                                     "",                                                       OLD_HELLO,  OK,    false, false},
    {"MAIL FROM:<a@example.org> SIZE=10\r\n",               "",                                                       SENDER,     OK,    false, false},
    {"MAIL FROM:<a@@example.org>\r\n",                      "",                                                       SENDER,     NO,    false, false},
    {"MAIL FROM:<a@example.org> SIZE=60\r\n",               "",                                                       SENDER,     LATER, false, false},
    {"MAIL FROM:<a@example.org> SIZE=99999\r\n",            "",                                                       SENDER,     NO,    false, false},
    {"RCPT TO:<b@example.org>\r\n",                         "",                                                       RECIPIENT,  OK,    false, false},
    {"RCPT TO:<b@refused.example>\r\n",                     "",                                                       RECIPIENT,  NO,    false, false},
    {"RCPT TO:<b\xc3\xa9@example.org>\r\n",                 "",                                                       RECIPIENT,  NO,    false, false},
    {"DATA\r\n",                                            "Subject: x\r\n\r\n..RSET\r\n.\r\n",                      CONTENT,    OK,    false, false},
    {"DATA\r\n",                                            ".\r\n",                                                  CONTENT,    LATER, false, true },
    {"DATA\r\n",                                            "",                                                       CONTENT,    LATER, true,  false},
    {"DATA\r\n",
     "RSET\r\n0123456789012345678901234567890123456789"
     "0123456789012345678901234567890123456789\r\n.\r\n",                                                             CONTENT,    NO,    false, false},
    {"DATA\r\n",                                            "Received: a\r\nReceived: b\r\nReceived: c\r\n\r\n.\r\n", CONTENT,    NO,
     false,                                                                                                                                     false},
    {"BDAT 6\r\nRSET\r\n",                                  "",                                                       CHUNK,      OK,    false, false},
    {"BDAT 6 LAST\r\nQUIT\r\n",                             "",                                                       LAST_CHUNK, OK,    false, false},
    {"BDAT 0 last\r\n",                                     "",                                                       LAST_CHUNK, LATER, false, true },
    {"BDAT 82\r\nQUIT\r\nQUIT\r\nQUIT\r\nQUIT\r\nQUIT\r\nQUIT\r\nQUIT\r\nQUIT\r\n"
     "QUIT\r\nQUIT\r\nQUIT\r\nQUIT\r\nQUIT\r\n.\r\n.", "",                                                       CHUNK,      NO,    false, false},
    {"BDAT 6 LASTX\r\nQUIT\r\n",                            "",                                                       CHUNK,      NO,    false, false},
    {"RSET\r\n",                                            "",                                                       RESET,      OK,    false, false},
    {"NOOP\r\n",                                            "",                                                       NOTHING,    OK,    false, false},
    {"VRFY b@example.org\r\n",                              "",                                                       NOTHING,    OK,    false, false},
    {"STARTTLS\r\n",                                        "",                                                       TLS,        OK,    false, false},
    {"AUTH PLAIN AHVzZXIAcGVuY2ls\r\n",                     "",                                                       LOGIN,      OK,    false, false},
    {"AUTH PLAIN AHVzZXIAcGVuY2lt\r\n",                     "",                                                       LOGIN,      NO,    false, false},
    {"AUTH LOGIN dXNlcg==\r\n",                             "cGVuY2ls\r\n",                                           LOGIN,      GO,    false, false},
    {"AUTH LOGIN\r\n",                                      "RSET\r\n",                                               LOGIN,      LATER, false, false},
    {"XYZZY\r\n",                                           "",                                                       NOTHING,    NO,    false, false},
};
enum {
    STRIDES = sizeof(strides) / sizeof(strides[0]),
    STRIDE_MAIL = 2,
    STRIDE_RCPT = 6
};

/* The model of a server: written from the RFCs, not from the machine. */
struct model {
    enum model_stage stage;
    bool extended, secure, user;
    unsigned stored, logins;
};

static char
model_step(struct model *m, enum model_stage from, enum model_stage also,
           enum model_stage to, char verdict)
{
    if (m->stage != from && m->stage != also)
        return NO;
    if (verdict == OK)
        m->stage = to;
    return verdict;
}

/* The reply to a BDAT; a refused one ends the transaction. */
static char
model_chunk(struct model *m, bool last, char verdict)
{
    if (m->stage == MODEL_NEW)
        return NO;
    bool open = m->stage == MODEL_RCPT || m->stage == MODEL_CHUNKS;
    bool ends = !open || verdict != OK || last;
    m->stage = ends ? MODEL_READY : MODEL_CHUNKS;
    m->stored += open && last && verdict == OK;
    return open ? verdict : NO;
}

/* *second: the reply after the content, 0 when none is asked for. */
static char
model_data(struct model *m, const struct stride *stride, char *second)
{
    if (m->stage != MODEL_RCPT)
        return NO;
    m->stage = MODEL_READY;
    if (stride->refuse_begin)
        return stride->verdict;
    *second = stride->verdict;
    m->stored += stride->verdict == OK;
    return GO;
}

/* RFC 3207 §4.2: all that was known is forgotten. Once for a walk. */
static char
model_tls(struct model *m)
{
    if (m->stage != MODEL_READY || m->secure)
        return NO;
    *m = (struct model){
        .stage = MODEL_NEW, .secure = true, .stored = m->stored, .logins = m->logins};
    return OK;
}

/* GO: a name first, the password is right. LATER: junk follows. */
static char
model_login(struct model *m, const struct stride *stride, char *second)
{
    if (m->stage != MODEL_READY || !m->secure || !m->extended || m->user)
        return NO;
    bool asked = stride->content[0] != '\0';
    m->user = stride->verdict == OK || stride->verdict == GO;
    m->logins += m->user;
    if (asked)
        *second = m->user ? OK : NO;
    return asked ? GO : stride->verdict;
}

static char
model_hear(struct model *m, const struct stride *stride, char *second)
{
    *second = 0;
    switch (stride->effect) {
    case HELLO:
    case OLD_HELLO:
        m->stage = MODEL_READY;
        m->extended = stride->effect == HELLO;
        break;
    case SENDER:
        return model_step(m, MODEL_READY, MODEL_READY, MODEL_MAIL, stride->verdict);
    case RECIPIENT:
        return model_step(m, MODEL_MAIL, MODEL_RCPT, MODEL_RCPT, stride->verdict);
    case CONTENT:
        return model_data(m, stride, second);
    case CHUNK:
        return model_chunk(m, false, stride->verdict);
    case LAST_CHUNK:
        return model_chunk(m, true, stride->verdict);
    case TLS:
        return model_tls(m);
    case LOGIN:
        return model_login(m, stride, second);
    case RESET:
        m->stage = m->stage == MODEL_NEW ? MODEL_NEW : MODEL_READY;
        break;
    case NOTHING:
        break;
    }
    return stride->verdict;
}

struct walk {
    struct fake fake;
    struct model model;
    struct outcome refusal;
    const struct stride *stride;
    uint64_t seed;
};

static const struct outcome *
walk_answer(void *context, bool begin)
{
    const struct walk *w = context;
    bool refuse = begin ? w->stride->refuse_begin : w->stride->refuse_store;
    return refuse ? &w->refusal : NULL;
}

static uint64_t
walk_chance(struct walk *w)
{
    w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
    return w->seed >> 32;
}

/* Sends bytes in random pieces; the first digit of the reply, '?' unless it is just
 * one. */
static char
walk_feed(struct walk *w, struct text bytes)
{
    buffer_clear(&w->fake.out);
    while (bytes.length > 0) {
        size_t size = 1 + walk_chance(w) % 30;
        fake_feed(&w->fake, text_before(bytes, size));
        bytes = text_after(bytes, size);
    }
    struct text out = buffer_text(&w->fake.out), line, last = TEXT("?");
    unsigned finals = 0;
    while (text_cut(&out, '\n', &line))
        if (line.length > 3) {
            last = line;
            finals += line.at[3] == ' ';
        }
    return finals == 1 ? last.at[0] : '?';
}

/* One command and, when it is asked for, its content. True: all as in the model. */
static bool
walk_stride(struct walk *w)
{
    enum model_stage before = w->model.stage;
    char second, want = model_hear(&w->model, w->stride, &second);
    char got = walk_feed(w, text_from(w->stride->command));
    if (got == want && second != 0) {
        want = second;
        got = walk_feed(w, text_from(w->stride->content));
    }
    if (got != want)
        printf("# stage %d, %.12s: want %c, got %c\n", (int)before, w->stride->command,
               want, got);
    return got == want;
}

static void
random_walk(unsigned steps, uint64_t seed)
{
    struct users *users = kit_users("user:" KIT_KEYS "\n");
    const struct server_rules rules = {.hostname = "mx.example.org",
                                       .size_limit = 80,
                                       .recipient_limit = 100000000,
                                       .hop_limit = 2,
                                       .error_limit = 0,
                                       .users = users};
    static struct walk w;
    unsigned right = 0, seen[MODEL_CHUNKS + 1] = {0};
    w = (struct walk){.model.stage = MODEL_NEW, .seed = seed};
    w.refusal = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0", "not now");
    fake_start(&w.fake, &rules, NULL, false, true);
    w.fake.answer = walk_answer;
    w.fake.context = &w;
    w.fake.space = 50;
    w.fake.forget = true;
    w.fake.server.offer.starttls = true;
    w.fake.server.offer.auth = SERVER_AUTH_SECURE;
    for (unsigned i = 0; i < steps && !w.fake.closed; i++) {
        w.stride = &strides[walk_chance(&w) % STRIDES];
        /* A push towards a message now and then, or most of the walk is spent outside.
         */
        if (walk_chance(&w) % 4 == 0 && w.model.stage != MODEL_NEW)
            w.stride =
                &strides[w.model.stage == MODEL_READY ? STRIDE_MAIL : STRIDE_RCPT];
        seen[w.model.stage]++;
        if (!walk_stride(&w))
            break;
        right++;
        if (w.model.user != (w.fake.server.user != NULL))
            ok_named(false, "a user where the model has one");
        /* Else there would be one login in a walk. */
        if (w.model.user && walk_chance(&w) % 16 == 0) {
            server_forget_user(&w.fake.server);
            w.model.user = false;
        }
    }
    ok_named(w.model.logins > steps / 2000, "the walk has logged in");
    is_number(right, steps, "every reply of the walk has the model's first digit");
    is_number(w.fake.stored, w.model.stored, "as many messages as in the model");
    ok(w.model.stored > steps / 100);
    for (int i = MODEL_READY; i <= MODEL_CHUNKS; i++)
        ok_named(seen[i] > steps / 50, "the walk has been in every stage");
    ok(!w.fake.draft_open || w.model.stage == MODEL_CHUNKS);
    server_fake_end(&w.fake);
    users_free(&users);
}

/* --- Checks beyond dialogues -------------------------------------------------- */

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 1000,
                                          .recipient_limit = 100,
                                          .hop_limit = 50,
                                          .error_limit = 20};

static unsigned
replies(const struct fake *f, const char *start)
{
    struct text rest = buffer_text(&f->out), line;
    unsigned count = 0;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        count += text_starts(line, text_from(start));
    return count;
}

/* A list may name more recipients than one message may have; nobody may for ever. */
static void
excess(void)
{
    static struct fake f;
    char rcpt[64];
    struct server_rules rules = plain;
    rules.recipient_limit = 1;
    rules.error_limit = 2;
    fake_start(&f, &rules, NULL, false, false);
    fake_feed(&f, TEXT("EHLO x\r\nMAIL FROM:<a@b.example>\r\n"));
    for (int i = 0; i < 3000 && !f.closed; i++) {
        snprintf(rcpt, sizeof(rcpt), "RCPT TO:<r%d@example.org>\r\n", i);
        fake_feed(&f, text_from(rcpt));
    }
    is_number(replies(&f, "452 4.5.3"), SERVER_EXCESS_RECIPIENTS + 2, "then it is enough");
    is_number(replies(&f, "421 4.7.0 too many errors"), 1, "the end");
    server_fake_end(&f);
}

/* One RCPT with an ORCPT of 480 bytes; its reply is kept. */
static void
name_recipient(struct fake *f, int number)
{
    char rcpt[700];
    snprintf(rcpt, sizeof(rcpt), "RCPT TO:<r%060d@example.org> ORCPT=rfc822;%0480d\r\n",
             number, number);
    fake_feed(f, text_from(rcpt));
}

static void
start_sharing(struct fake *f, struct server_envelopes *envelopes, bool may_relay)
{
    static struct server_rules rules;
    rules = plain;
    rules.recipient_limit = 1000;
    fake_start(f, &rules, NULL, false, may_relay);
    f->server.envelopes = envelopes;
    fake_feed(f, TEXT("EHLO x\r\nMAIL FROM:<a@b.example>\r\n"));
}

/* Recipients of all sessions have a limit; each has some that are free; clients that
 * may relay have more. */
static void
envelopes(void)
{
    enum { SESSIONS = 60, EACH = 1000, FEW = 15 };
    static struct fake f[SESSIONS], late, trusted;
    struct server_envelopes all = {0};
    unsigned taken = 0, refused = 0;
    for (int i = 0; i < SESSIONS; i++) {
        start_sharing(&f[i], &all, false);
        for (int r = 0; r < EACH; r++)
            name_recipient(&f[i], r);
        taken += replies(&f[i], "250 2.1.5");
        refused += replies(&f[i], "452 4.3.1");
    }
    is_number(taken + refused, SESSIONS * EACH, "each is answered");
    ok_named(all.bytes >= SERVER_ENVELOPES_UNTRUSTED_MAX &&
                 all.bytes < SERVER_ENVELOPES_UNTRUSTED_MAX + 1024 * 1024,
             "the sum has a limit");
    start_sharing(&late, &all, false);
    for (int r = 0; r < FEW; r++)
        name_recipient(&late, r);
    is_number(replies(&late, "250 2.1.5"), FEW, "some are free for everybody");
    for (int r = FEW; r < 100; r++)
        name_recipient(&late, r);
    ok_named(replies(&late, "452 4.3.1") > 50, "no more of an untrusted client");
    start_sharing(&trusted, &all, true);
    for (int r = 0; r < EACH; r++)
        name_recipient(&trusted, r);
    is_number(replies(&trusted, "250 2.1.5"), EACH, "others have room left");
    fake_feed(&late, TEXT("DATA\r\nx\r\n.\r\n"));
    is_number(late.count, 1, "what was taken goes on");
    fake_feed(&trusted, TEXT("RSET\r\n"));
    for (int i = 0; i < SESSIONS; i++)
        server_fake_end(&f[i]);
    is_number((int64_t)all.bytes, 0, "every end gives back what it had");
    server_fake_end(&late);
    server_fake_end(&trusted);
}

/* A recipient's domain goes into the envelope with A-labels, and what was written into
 * ORCPT, unless the client has an ORCPT of its own. */
TEST(domain_labels)
{
    static struct fake f;
    fake_start(&f, &plain, NULL, false, true);
    fake_feed(&f, TEXT("EHLO client.example\r\n"
                       "MAIL FROM:<\xc3\xbc@\xc3\xbc.example> SMTPUTF8\r\n"
                       "RCPT TO:<A+b@B\xc3\xbc"
                       "cher.example>\r\n"
                       "RCPT TO:<c@b\xc3\xbc"
                       "cher.example> ORCPT=rfc822;orig@x\r\n"
                       "RCPT TO:<a+B@xn--bcher-kva.example>\r\n"
                       "DATA\r\n\r\n.\r\n"));
    is_number(f.count, 1, "taken");
    const struct envelope *e = f.messages[0].envelope;
    if (idna_version() != NULL) {
        is_text(e->sender, TEXT("\xc3\xbc@xn--tda.example"), "sender");
        is_text(e->recipients[0].address, TEXT("A+b@xn--bcher-kva.example"),
                "recipient");
        is_text(e->recipients[0].original,
                TEXT("utf-8;A\\x{2B}b@B\xc3\xbc"
                     "cher.example"),
                "what was written");
    } else {
        is_text(e->recipients[0].original, TEXT(""), "it is the same");
    }
    is_text(e->recipients[1].original, TEXT("rfc822;orig@x"), "the client's own");
    is_text(e->recipients[2].original, TEXT(""), "nothing was changed");
    server_fake_end(&f);
}

TEST(log_lines)
{
    static struct fake f;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    struct event_hub *events = event_hub_new(log);
    struct buffer lines;
    buffer_init(&lines, 1 << 20);
    log_capture(log, &lines);
    fake_start(&f, &plain, events, false, true);
    fake_feed(&f, TEXT("EHLO client.example\r\nMAIL FROM:<a@example.org>\r\n"
                       "RCPT TO:<b@refused.example>\r\nRCPT TO:<c@example.org>\r\n"
                       "DATA\r\nhello\r\n.\r\n"));
    ok(memmem(lines.at, lines.length, "b@refused.example", 17) != NULL);
    ok(memmem(lines.at, lines.length, "550 5.7.1", 9) != NULL);
    ok(memmem(lines.at, lines.length, "a@example.org", 13) != NULL);
    ok(memmem(lines.at, lines.length, "size=7", 6) != NULL);
    ok(memmem(lines.at, lines.length, "nrcpt=1", 7) != NULL);
    ok(memmem(lines.at, lines.length, "proto=ESMTP", 11) != NULL);
    ok(memmem(lines.at, lines.length, "helo=client.example", 19) != NULL);
    ok(memmem(lines.at, lines.length, "client=[127.0.0.1]", 18) != NULL);
    buffer_clear(&lines);
    fake_feed(&f, TEXT("FOO \x1b[31m\r\nBAR \xff\r\n"));
    ok(memchr(lines.at, 0x1b, lines.length) == NULL);
    ok(memchr(lines.at, 0xff, lines.length) == NULL);
    server_fake_end(&f);
    buffer_free(&lines);
    event_hub_free(&events);
    log_free(&log);
}

TEST(idle_and_receiving)
{
    static struct fake f;
    fake_start(&f, &plain, NULL, false, true);
    ok(server_is_idle(&f.server) && !server_is_receiving(&f.server));
    fake_feed(&f, TEXT("EHLO x\r\nMAIL FROM:<>\r\n"));
    ok(!server_is_idle(&f.server));
    fake_feed(&f, TEXT("RCPT TO:<a@example.org>\r\nDATA\r\n"));
    ok(server_is_receiving(&f.server));
    fake_feed(&f, TEXT("x\r\n.\r\n"));
    ok(server_is_idle(&f.server) && !server_is_receiving(&f.server));
    fake_feed(&f, TEXT("BDAT 5\r\nab"));
    ok_named(server_is_receiving(&f.server), "a chunk that is skipped is content too");
    server_fake_end(&f);
    ok_named(sizeof(struct server) <= 336, "an idle session is small");
    printf("# struct server has %zu bytes\n", sizeof(struct server));
}

/* A draft that is open when the peer goes away is the owner's. */
TEST(gone_in_the_middle)
{
    static struct fake f;
    fake_start(&f, &plain, NULL, false, true);
    fake_feed(&f, TEXT("EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@example.org>\r\n"
                       "BDAT 5\r\nab"));
    ok(f.draft_open);
    server_timed_out(&f.server);
    fake_feed(&f, TEXT(""));
    ok_named(!f.draft_open, "a time-out within a chunk discards the draft");
    ok(f.closed);
    server_fake_end(&f);
}

/* 64 MiB beyond the limit are discarded, not more. */
TEST(flood)
{
    static struct fake f;
    static char block[65536];
    memset(block, 'x', sizeof(block));
    fake_start(&f, &plain, NULL, false, true);
    fake_feed(&f,
              TEXT("EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@example.org>\r\nDATA\r\n"));
    unsigned blocks = 0;
    while (!f.closed && blocks < 2000) {
        fake_feed(&f, text_of(block, sizeof(block)));
        blocks++;
    }
    is_number(blocks, 1025, "closed when 64 MiB are too much");
    ok(memmem(f.out.at, f.out.length, "552 5.3.4", 9) != NULL);
    is_number(f.draft_open, false, "nothing is kept of it");
    server_fake_end(&f);
}

/* One message of that type for the recipient; the last reply. */
static const char *
send_type(struct fake *f, const char *to, const char *type)
{
    static char reply[200];
    char input[1000];
    snprintf(input, sizeof(input),
             "MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.org>\r\n"
             "RCPT TO:<%s>\r\nDATA\r\nFrom: x\r\nContent-Type: %s\r\n\r\nx\r\n.\r\n",
             to, type);
    fake_feed(f, text_from(input));
    struct text rest = buffer_text(&f->out), line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        text_copy(reply, sizeof(reply), line);
    return reply;
}

static void
fragments(void)
{
    static struct fake f;
    struct server_rules rules = plain;
    static const char fragment[] = "message/partial; id=x; number=1";
    fake_start(&f, &rules, NULL, false, false);
    fake_feed(&f, TEXT("EHLO x\r\n"));
    ok(strncmp(send_type(&f, "c@example.org", fragment), "250", 3) == 0);
    rules.refuses_partial = true;
    is_string(send_type(&f, "c@example.org", fragment),
              "550 5.6.1 message/partial not accepted\r", "fragments are refused");
    is_number(f.stored, 1, "nothing was stored");
    ok_named(strncmp(send_type(&f, "c@example.org", "message/rfc822"), "250", 3) == 0,
             "other messages are not");
    ok_named(strncmp(send_type(&f, "c@joins.example", fragment), "250", 3) == 0,
             "where one recipient's are joined, they pass");
    ok_named(strncmp(send_type(&f, "c@example.org", fragment), "550", 3) == 0,
             "but not in the next transaction");
    server_fake_end(&f);
}

/* The kept origin of a fragment. */
static void
stamps(void)
{
    static const struct {
        const char *client, *user;
        bool may_relay;
        const char *stamp;
    } rows[] = {
        {"[192.0.2.77]",           NULL,     false, "ext net:192.0.2.0/24"        },
        {"[192.0.2.77]",           NULL,     true,  "int net:192.0.2.0/24"        },
        {"[IPv6:2001:db8:0:1::9]", NULL,     false, "ext net:2001:db8:0:1::/64"   },
        {"[IPv6:::ffff:10.1.2.3]", NULL,     false, "ext net:10.1.2.0/24"         },
        {"[IPv6:::1]",             "a user", true,  "auth:a user net:0:0:0:0::/64"},
        {"unix",                   NULL,     true,  "int net:"                    },
        {"unix",                   "b net:", true,  "auth:b net: net:"            },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct server s = {.offer.may_relay = rows[i].may_relay};
        struct buffer out;
        snprintf(s.client, sizeof(s.client), "%s", rows[i].client);
        s.user = rows[i].user == NULL ? NULL : strdup(rows[i].user);
        buffer_init(&out, 1000);
        ok(trace_write_origin(&s, &out));
        is_text(buffer_text(&out), text_from(rows[i].stamp), rows[i].client);
        buffer_free(&out);
        buffer_init(&out, 5);
        ok_named(!trace_write_origin(&s, &out), "without room it says so");
        buffer_free(&out);
        free(s.user);
    }
    static struct fake f;
    fake_start(&f, &plain, NULL, false, true);
    fake_feed(&f, TEXT("EHLO x\r\n"));
    (void)send_type(&f, "c@example.org", "message/partial; id=x; number=1");
    (void)send_type(&f, "c@example.org", "text/plain");
    is_text(f.messages[0].envelope->trust, TEXT("int net:127.0.0.0/24"),
            "of a message/");
    is_text(f.messages[1].envelope->trust, TEXT(""), "of nothing else");
    server_fake_end(&f);
}

int
main(void)
{
    fragments();
    stamps();
    size_t dialogs = try_dialogs();
    ok_named(dialogs >= 40, "40 dialogues at least");
    random_walk(100000, 20261121);
    random_walk(20000, 7);
    excess();
    envelopes();
    tap_tests("");
    return done();
}
