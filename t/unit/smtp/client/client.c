/* The client machine: dialogues in t/dialog/client, whole and byte by byte, and its
 * limits. */
#include "smtp/client/client.h"

#include "base/memory.h"
#include "sched/route/target.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <glob.h>

enum { BYTES_MAX = 8 * 1024 * 1024, RECIPIENTS_MAX = 2000 };

static const struct reply_outcome_peer peer = {"mx.test[192.0.2.1]",
                                               "mx.test[192.0.2.1]:25", 25};
static const char *const blames[] = {"none", "message", "site"};

/* --- The player ------------------------------------------------------------------- */

struct mail {
    struct envelope *envelope;
    enum downgrade_verdict verdict; /* of its content */
    unsigned indexes[RECIPIENTS_MAX];
};

struct player {
    struct client *client;
    struct text script;  /* what is left of it */
    struct text mails;   /* the script from where the next mail is looked for */
    struct mail mail;    /* under way */
    struct mail next;    /* said with the dot of the one under way */
    struct buffer input; /* said by the peer, not yet taken */
    struct buffer said;  /* the transcript, not yet expected */
    bool bytewise, lmtp, whole, hold, early, has_next, at_line_start;
    enum target_tls tls;
    bool implicit, tls_failed;
    bool has_login;
    struct client_login login;
    char redirect_to[40]; /* "": another host */
    char other_scheme[20];
    char wrong[700];
};

static void
mail_free(struct mail *m)
{
    if (m->envelope != NULL)
        envelope_free(&m->envelope);
}

/* Those of the recipients that follow. */
struct options {
    unsigned notify;
    struct text original;
};

static bool
dsn_word(struct envelope *e, struct text word, struct options *w)
{
    if (text_equal(word, TEXT("ret=full")))
        e->ret = RETURN_FULL;
    else if (text_equal(word, TEXT("ret=hdrs")))
        e->ret = RETURN_HEADERS;
    else if (text_starts(word, TEXT("envid=")))
        e->envelope_id = envelope_text(e, text_after(word, 6));
    else if (text_starts(word, TEXT("notify=")))
        w->notify = (unsigned)atoi(text_after(word, 7).at);
    else if (text_starts(word, TEXT("orcpt=")))
        w->original = text_after(word, 6);
    else
        return false;
    return true;
}

static void
mail_word(struct mail *m, struct text word, struct options *w)
{
    struct envelope *e = m->envelope;
    uint64_t size = 0;
    if (dsn_word(e, word, w))
        return;
    if (text_equal(word, TEXT("convertible"))) {
        m->verdict = DOWNGRADE_CONVERTIBLE;
        return;
    }
    if (text_equal(word, TEXT("forbidden"))) {
        m->verdict = DOWNGRADE_FORBIDDEN;
        return;
    }
    if (text_equal(word, TEXT("fragment"))) {
        m->verdict = DOWNGRADE_FRAGMENT;
        return;
    }
    if (text_equal(word, TEXT("8bit"))) {
        e->eight_bit = true;
    } else if (text_equal(word, TEXT("binary"))) {
        e->eight_bit = e->binary = true;
    } else if (text_equal(word, TEXT("utf8"))) {
        e->utf8 = true;
    } else if (text_starts(word, TEXT("mark="))) {
        e->fragment.set_mark = envelope_text(e, text_after(word, 5));
    } else if (text_equal(word, TEXT("by_peer"))) {
        e->fragment.by_peer = true;
    } else if (text_equal(word, TEXT("ascii"))) {
        e->ascii_header = true;
    } else if (text_starts(word, TEXT("from="))) {
        e->sender = envelope_text(e, text_after(word, 5));
    } else if (text_starts(word, TEXT("priority="))) {
        e->priority = atoi(text_after(word, 9).at);
    } else if (text_starts(word, TEXT("size="))) {
        must(text_number(text_after(word, 5), INT64_MAX, &size));
        e->content_size = (int64_t)size;
    } else {
        m->indexes[e->count] = e->count;
        must(envelope_add(e, word, w->notify, w->original));
    }
}

static void
mail_read(struct mail *m, struct text words)
{
    struct text word;
    struct options options = {.notify = NOTIFY_DEFAULT, .original = TEXT("")};
    mail_free(m);
    m->envelope = envelope_new();
    m->envelope->sender = envelope_text(m->envelope, TEXT("s@me.example"));
    m->envelope->content_size = 4;
    m->verdict = DOWNGRADE_NOT_NEEDED;
    while (text_word(&words, " ", &word))
        mail_word(m, word, &options);
}

static void
send_mail(struct player *p, struct mail *m, struct text words)
{
    mail_read(m, words);
    struct client_mail mail = {
        .envelope = m->envelope, .indexes = m->indexes, .count = m->envelope->count};
    client_send(p->client, &mail);
}

/* The machine may send: the next mail of the script, unless that is a late one. */
static void
send_next(struct player *p, struct mail *m)
{
    struct text line, left = p->mails;
    while (left.length > 0 && text_cut(&left, '\n', &line)) {
        if (text_starts(line, TEXT("M: late ")))
            return;
        if (!text_starts(line, TEXT("M: ")))
            continue;
        p->mails = left;
        send_mail(p, m, text_after(line, 3));
        p->has_next = m == &p->next;
        return;
    }
}

/* The mail that was said early takes its turn, or another one. */
static void
send_another(struct player *p)
{
    if (!p->has_next) {
        send_next(p, &p->mail);
        return;
    }
    mail_free(&p->mail);
    p->mail = p->next;
    p->next.envelope = NULL;
    p->has_next = false;
}

static void
write_outcome(struct buffer *out, const struct outcome *o)
{
    must(buffer_format(out, " %s %s %s %d%s | %s", outcome_word(o->verdict),
                       o->enhanced, blames[o->blame], o->code,
                       o->notifies ? " notifies" : "", o->text));
}

static void
take_output(struct player *p)
{
    struct buffer *output = client_output(p->client);
    for (size_t i = 0; i < output->length; i++) {
        if (p->at_line_start)
            must(buffer_add(&p->said, TEXT("C: ")));
        p->at_line_start = output->at[i] == '\n';
        if (output->at[i] == '\n' || (output->at[i] >= 0x20 && output->at[i] < 0x7f))
            must(buffer_add_byte(&p->said, output->at[i]));
        else if (output->at[i] != '\r')
            must(buffer_format(&p->said, "\\x%02x", (unsigned char)output->at[i]));
    }
    buffer_clear(output);
}

static void
take_event(struct player *p, const struct client_event *event)
{
    static const char *const names[] = {
        [CLIENT_SECURE] = "secure",   [CLIENT_READY] = "ready",
        [CLIENT_PREPARE] = "prepare", [CLIENT_CONTENT] = "content",
        [CLIENT_DONE] = "done",       [CLIENT_PROBED] = "probed",
        [CLIENT_OVER] = "over"};
    static const char *const ends[] = {[CLIENT_END_HOST] = " host",
                                       [CLIENT_END_KEPT] = " kept",
                                       [CLIENT_END_MAIL] = " mail",
                                       [CLIENT_END_IDLE] = " idle"};
    if (event->kind == CLIENT_EARLY) {
        must(client_has_space(p->client));
        if (p->early)
            send_next(p, &p->next);
        return;
    }
    if (event->kind == CLIENT_VERDICT || event->kind == CLIENT_LATER) {
        unsigned index = p->mail.indexes[event->which];
        struct text address = p->mail.envelope->recipients[index].address;
        must(buffer_format(&p->said, "%c: %.*s",
                           event->kind == CLIENT_LATER ? 'L' : 'V',
                           TEXT_ARGS(address)));
    } else {
        must(buffer_format(&p->said, "E: %s", names[event->kind]));
    }
    bool is_over = event->kind == CLIENT_OVER;
    must(!is_over || event->outcome != NULL);
    if (is_over)
        must(buffer_add(&p->said, text_from(ends[event->end])));
    /* The outcome of a mail's end is that of the verdicts before it. */
    if (event->outcome != NULL && !(is_over && event->end == CLIENT_END_MAIL)) {
        must(strcmp(event->outcome->remote, peer.remote) == 0);
        write_outcome(&p->said, event->outcome);
    }
    if (event->kind == CLIENT_PREPARE)
        must(buffer_add(&p->said,
                        client_way(p->client).to_8bit ? TEXT(" 8bit") : TEXT(" 7bit")));
    must(buffer_add_byte(&p->said, '\n'));
    if (event->kind == CLIENT_PREPARE && !p->hold)
        client_prepared(p->client, p->mail.verdict, "it is sealed", 77, 0);
    if (event->kind == CLIENT_READY || event->kind == CLIENT_DONE)
        send_another(p);
    if (event->kind == CLIENT_CONTENT)
        client_content(p->client, TEXT("hi\r\n"));
    if (event->kind == CLIENT_CONTENT && !p->hold)
        client_content_end(p->client);
}

static void
pump(struct player *p)
{
    struct client_event event;
    struct text input = buffer_text(&p->input);
    for (bool again = true; again; client_work(p->client)) {
        while (client_next(p->client, &input, &event)) {
            take_output(p);
            take_event(p, &event);
        }
        take_output(p);
        again = client_is_working(p->client);
    }
    buffer_take(&p->input, p->input.length - input.length);
}

static void
hear(struct player *p, struct text bytes)
{
    size_t piece = p->bytewise ? 1 : bytes.length;
    for (; bytes.length > 0; bytes = text_after(bytes, piece)) {
        must(buffer_add(&p->input, text_before(bytes, piece)));
        pump(p);
    }
}

static unsigned
hex(char c)
{
    const char *digits = "0123456789abcdef", *at = strchr(digits, c);
    must(at != NULL && c != '\0');
    return (unsigned)(at - digits);
}

static void
unescape(struct text line, struct buffer *out)
{
    bool open = false;
    for (size_t i = 0; i < line.length; i++) {
        char c = line.at[i];
        open = c == '\\' && i + 1 == line.length;
        if (open)
            break;
        if (c == '\\') {
            c = line.at[++i];
            if (c == 'x') {
                c = (char)(hex(line.at[i + 1]) * 16 + hex(line.at[i + 2]));
                i += 2;
            } else {
                c = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
            }
        }
        must(buffer_add_byte(out, c));
    }
    if (!open)
        must(buffer_add(out, TEXT("\r\n")));
}

static void
many(struct player *p, struct text words)
{
    struct text count;
    uint64_t n = 0;
    FIXTURE(buffer, bytes, buffer_init, buffer_free, BYTES_MAX);
    must(text_word(&words, " ", &count) && text_number(count, 100000, &n));
    while (n-- > 0)
        unescape(text_after(words, 1), &bytes);
    hear(p, buffer_text(&bytes));
}

static void
happen(struct player *p, struct text what)
{
    struct outcome own =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0", "our disk");
    text_copy(own.remote, sizeof(own.remote), text_from(peer.remote));
    if (text_equal(what, TEXT("lost")))
        client_lost(p->client);
    else if (text_equal(what, TEXT("timeout")))
        client_timed_out(p->client);
    else if (text_equal(what, TEXT("abandon")))
        client_abandon(p->client, &own);
    else if (text_equal(what, TEXT("quit")))
        client_quit(p->client);
    else if (text_equal(what, TEXT("prepared")))
        client_prepared(p->client, p->mail.verdict, "it is sealed", 77, 0);
    else if (text_equal(what, TEXT("end")))
        client_content_end(p->client);
    else if (text_equal(what, TEXT("secured")))
        client_secured(p->client);
    else if (text_equal(what, TEXT("insecure")))
        client_insecure(p->client, "TLS: it is expired");
    else if (text_starts(what, TEXT("times ")))
        many(p, text_after(what, 6));
    else
        abort();
    pump(p);
}

/* Expected lines without " | TEXT" do not care about the text. */
static void
expect(struct player *p, struct text line)
{
    struct text said = buffer_text(&p->said), got;
    if (!text_cut(&said, '\n', &got) || got.at == NULL)
        got = TEXT("nothing");
    size_t whole = got.length;
    struct text shown = got;
    for (size_t i = 0; i + 2 < got.length; i++)
        if (memcmp(got.at + i, " | ", 3) == 0 && line.length <= i)
            got = text_before(got, i);
    if (!text_equal(got, line) && p->wrong[0] == '\0')
        snprintf(p->wrong, sizeof(p->wrong), "want '%.*s', got '%.*s'", TEXT_ARGS(line),
                 TEXT_ARGS(shown));
    buffer_take(&p->said, p->said.length > whole ? whole + 1 : p->said.length);
}

static void
expect_timeout(struct player *p, struct text words)
{
    uint64_t ms;
    must(text_number(words, INT64_MAX, &ms));
    if (client_timeout_ms(p->client) != (int64_t)ms && p->wrong[0] == '\0')
        snprintf(p->wrong, sizeof(p->wrong), "the time-out is %lld",
                 (long long)client_timeout_ms(p->client));
}

static void
expect_failed(struct player *p, struct text word)
{
    if (client_tls_failed(p->client) != text_equal(word, TEXT("yes")) &&
        p->wrong[0] == '\0')
        snprintf(p->wrong, sizeof(p->wrong), "whether TLS failed is not '%.*s'",
                 TEXT_ARGS(word));
}

static void
read_tls(struct player *p, struct text word)
{
    p->implicit |= text_equal(word, TEXT("implicit"));
    p->tls_failed |= text_equal(word, TEXT("failed"));
    if (p->implicit)
        p->tls = TARGET_TLS_VERIFY;
    for (enum target_tls tls = TARGET_TLS_NONE; tls <= TARGET_TLS_VERIFY; tls++)
        if (text_equal(word, text_from(target_tls_word(tls))))
            p->tls = tls;
}

/* The nonce of RFC 7677 §3, so that its example can be played. */
static void
read_login(struct player *p, struct text line)
{
    struct text word;
    p->has_login = true;
    p->login.allowed = ~0u;
    p->login.remedy = "relay_password";
    text_copy(p->login.nonce, sizeof(p->login.nonce), TEXT("rOprNGfwEbeRWgbNEkqO"));
    while (text_word(&line, " ", &word)) {
        if (text_starts(word, TEXT("user=")))
            p->login.credentials.user = text_after(word, 5);
        else if (text_starts(word, TEXT("password=")))
            p->login.credentials.password = text_after(word, 9);
        else if (text_starts(word, TEXT("token=")))
            p->login.credentials.token = text_after(word, 6);
        else if (text_starts(word, TEXT("only=")))
            p->login.allowed = 1u << sasl_find(text_after(word, 5));
        else if (text_equal(word, TEXT("clear")))
            p->login.may_be_clear = true;
    }
    must(sasl_client_check(&p->login.credentials) == NULL);
}

static bool
read_option(struct player *p, struct text line)
{
    if (!text_starts(line, TEXT("option ")))
        return false;
    line = text_after(line, 7);
    p->lmtp |= text_equal(line, TEXT("lmtp"));
    p->whole |= text_equal(line, TEXT("whole"));
    p->hold |= text_equal(line, TEXT("hold"));
    p->early |= text_equal(line, TEXT("early"));
    if (text_starts(line, TEXT("redirect=")))
        text_copy(p->redirect_to, sizeof(p->redirect_to), text_after(line, 9));
    if (text_starts(line, TEXT("other=")))
        text_copy(p->other_scheme, sizeof(p->other_scheme), text_after(line, 6));
    if (text_starts(line, TEXT("tls=")))
        read_tls(p, text_after(line, 4));
    if (text_starts(line, TEXT("login ")))
        read_login(p, text_after(line, 6));
    return true;
}

static void
read_options(struct player *p)
{
    struct text line, left = p->script;
    while (text_cut(&left, '\n', &line))
        read_option(p, line);
}

/* Consecutive S: lines are one piece. */
static void
play_said(struct player *p, struct text line)
{
    FIXTURE(buffer, bytes, buffer_init, buffer_free, BYTES_MAX);
    unescape(text_after(line, 3), &bytes);
    while (text_starts(p->script, TEXT("S:"))) {
        must(text_cut(&p->script, '\n', &line));
        unescape(text_after(line, 3), &bytes);
    }
    hear(p, buffer_text(&bytes));
}

static void
play_line(struct player *p, struct text line)
{
    if (line.length == 0 || line.at[0] == '#' || read_option(p, line))
        return;
    if (text_starts(line, TEXT("S:")))
        play_said(p, line);
    else if (text_starts(line, TEXT("X:")))
        happen(p, text_after(line, 3));
    else if (text_starts(line, TEXT("T:")))
        expect_timeout(p, text_after(line, 3));
    else if (text_starts(line, TEXT("M: late "))) {
        send_mail(p, p->early ? &p->next : &p->mail, text_after(line, 8));
        p->has_next = p->early;
        pump(p);
    } else if (text_starts(line, TEXT("F:"))) {
        expect_failed(p, text_after(line, 3));
    } else if (!text_starts(line, TEXT("M:"))) {
        expect(p, line);
    }
}

static void
play(struct text script, bool bytewise, const char *name)
{
    struct player p = {.script = script, .mails = script, .bytewise = bytewise};
    struct text line;
    p.at_line_start = true;
    buffer_init(&p.input, BYTES_MAX);
    buffer_init(&p.said, BYTES_MAX);
    read_options(&p);
    p.bytewise = bytewise && !p.whole;
    struct client_settings settings = {
        .hostname = "me.example",
        .peer = &peer,
        .lmtp = p.lmtp,
        .redirect_to = p.redirect_to[0] ? p.redirect_to : NULL,
        .timeout_scale = 1,
        .tls = p.tls,
        .tls_implicit = p.implicit,
        .other_scheme = p.other_scheme[0] != '\0' ? p.other_scheme : NULL,
        .tls_failed = p.tls_failed,
        .login = p.has_login ? &p.login : NULL};
    p.client = client_new(&settings);
    while (p.script.length > 0 && text_cut(&p.script, '\n', &line))
        play_line(&p, line);
    if (p.said.length > 0 && p.wrong[0] == '\0')
        snprintf(p.wrong, sizeof(p.wrong), "more came: '%.*s'",
                 TEXT_ARGS(buffer_text(&p.said)));
    if (!ok_named(p.wrong[0] == '\0', name))
        printf("#   %s\n", p.wrong);
    mail_free(&p.mail);
    mail_free(&p.next);
    client_free(&p.client);
    buffer_free(&p.input);
    buffer_free(&p.said);
}

TEST(play_files)
{
    glob_t found;
    must(glob("t/dialog/client/*.client", 0, NULL, &found) == 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char name[300], content[64 * 1024];
        FILE *file = fopen(found.gl_pathv[i], "r");
        must(file != NULL);
        size_t length = fread(content, 1, sizeof(content), file);
        must(length < sizeof(content));
        fclose(file);
        snprintf(name, sizeof(name), "%s", found.gl_pathv[i]);
        play(text_of(content, length), false, name);
        snprintf(name, sizeof(name), "%s, byte by byte", found.gl_pathv[i]);
        play(text_of(content, length), true, name);
    }
    ok_named(found.gl_pathc >= 40, "there are dialogues");
    globfree(&found);
}

/* --- Without a script ---------------------------------------------------------------
 */

static struct client *
greeted_client(double scale)
{
    struct client_settings settings = {
        .hostname = "me.example", .peer = &peer, .timeout_scale = scale};
    struct client *c = client_new(&settings);
    struct client_event event;
    struct text input = TEXT("220 hello\r\n");
    must(!client_next(c, &input, &event));
    input = TEXT("250-x\r\n250 PIPELINING\r\n");
    must(client_next(c, &input, &event) && event.kind == CLIENT_READY);
    buffer_clear(client_output(c));
    return c;
}

static size_t
count_lines(struct text t)
{
    size_t lines = 0;
    for (size_t i = 0; i < t.length; i++)
        lines += t.at[i] == '\n';
    return lines;
}

static struct envelope *
many_recipients(struct mail *m, unsigned count)
{
    char name[40];
    struct options options = {.notify = NOTIFY_DEFAULT, .original = TEXT("")};
    mail_read(m, TEXT(""));
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "user%u@x", i);
        mail_word(m, text_from(name), &options);
    }
    return m->envelope;
}

/* A thousand recipients: never more than a window of steps waits, and every one has its
 * own verdict. Every third is refused, every fifth deferred. */
TEST(window)
{
    struct client *c = greeted_client(1);
    struct mail m = {0};
    struct client_mail mail = {
        .envelope = many_recipients(&m, 1000), .indexes = m.indexes, .count = 1000};
    struct client_event event;
    unsigned verdicts = 0, wrong = 0, replies = 0, most = 0, asked = 0;
    struct text input = TEXT("");
    client_send(c, &mail);
    must(!client_next(c, &input, &event));
    for (bool content = false; !content && replies < 1002;) {
        asked += (unsigned)count_lines(buffer_text(client_output(c)));
        buffer_clear(client_output(c));
        most = asked - replies > most ? asked - replies : most;
        unsigned i = replies++ - 1;
        input = replies == 1002   ? TEXT("354 go\r\n")
                : i == UINT32_MAX ? TEXT("250 ok\r\n")
                : i % 3 == 0      ? TEXT("550 no\r\n")
                : i % 5 == 0      ? TEXT("450 no\r\n")
                                  : TEXT("250 ok\r\n");
        while (client_next(c, &input, &event)) {
            content = event.kind == CLIENT_CONTENT;
            if (event.kind != CLIENT_VERDICT)
                continue;
            verdicts++;
            enum verdict want = i % 3 == 0 ? VERDICT_FAILED : VERDICT_DEFERRED;
            wrong += event.which != i || event.outcome->verdict != want;
        }
    }
    is_number(asked, 1002, "MAIL, a thousand RCPT and DATA were asked");
    ok_named(most > 100 && most <= 128, "with a full window that never grows");
    is_number(verdicts, 334 + 133,
              "the refused ones have their verdict before the content");
    is_number(wrong, 0, "each the right one");
    client_content_end(c);
    input = TEXT("250 done\r\n");
    for (verdicts = 0; client_next(c, &input, &event) && event.kind == CLIENT_VERDICT;)
        verdicts++;
    is_number(verdicts, 1000 - 334 - 133, "the accepted ones after it");
    is_number(event.kind, CLIENT_DONE, "and then it is done");
    mail_free(&m);
    client_free(&c);
}

static void
start_content(struct client *c, struct mail *m)
{
    struct client_mail mail = {
        .envelope = many_recipients(m, 1), .indexes = m->indexes, .count = 1};
    struct client_event event;
    struct text input = TEXT("");
    client_send(c, &mail);
    must(!client_next(c, &input, &event));
    input = TEXT("250 a\r\n250 b\r\n354 c\r\n");
    must(client_next(c, &input, &event) && event.kind == CLIENT_CONTENT);
    buffer_clear(client_output(c));
}

TEST(content)
{
    static const struct {
        const char *content, *sent;
    } rows[] = {
        {"",                  ".\r\n"                      },
        {".\r\n",             "..\r\n.\r\n"                },
        {"a\r\n.b\r\n..\r\n", "a\r\n..b\r\n...\r\n.\r\n"   },
        {"open line",         "open line\r\n.\r\n"         },
        {"a\n.\nb\r.\r",      "a\r\n..\r\nb\r\n..\r\n.\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t cut = 1; cut < 4; cut++) {
            struct client *c = greeted_client(1);
            struct mail m = {0};
            start_content(c, &m);
            struct text left = text_from(rows[i].content);
            for (; left.length > 0; left = text_after(left, cut))
                client_content(c, text_before(left, cut));
            client_content_end(c);
            is_text(buffer_text(client_output(c)), text_from(rows[i].sent),
                    "content is stuffed, whatever the pieces");
            mail_free(&m);
            client_free(&c);
        }
}

TEST(largest_piece)
{
    struct client *c = greeted_client(1);
    struct mail m = {0};
    char *piece = memory_new(CLIENT_PIECE_MAX);
    memset(piece, '\n', CLIENT_PIECE_MAX);
    start_content(c, &m);
    client_content(c, text_of(piece, CLIENT_PIECE_MAX));
    is_number(client_output(c)->length, 2 * CLIENT_PIECE_MAX,
              "the largest piece at its worst fits");
    free(piece);
    mail_free(&m);
    client_free(&c);
}

TEST(timeouts)
{
    struct client *c = greeted_client(0.01);
    struct mail m = {0};
    is_number(client_timeout_ms(c), 0, "nothing is owed between mails");
    start_content(c, &m);
    is_number(client_timeout_ms(c), 1800, "time-outs are scaled");
    unsigned turn = client_turn(c);
    client_content(c, TEXT("x"));
    ok_named(client_turn(c) == turn, "a piece of content changes no turn");
    client_content_end(c);
    ok_named(client_turn(c) != turn, "its end does");
    is_number(client_timeout_ms(c), 6000, "10 minutes for the final reply");
    mail_free(&m);
    client_free(&c);
    c = greeted_client(1e-9);
    start_content(c, &m);
    is_number(client_timeout_ms(c), 1, "never 0 when something is owed");
    mail_free(&m);
    client_free(&c);
}

/* Ends that the owner makes more than once, or too late, do no harm. */
TEST(ends)
{
    struct client *c = greeted_client(1);
    struct mail m = {0};
    struct client_event event;
    struct text input = TEXT("");
    start_content(c, &m);
    client_lost(c);
    client_timed_out(c);
    struct outcome own = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2", "x");
    client_abandon(c, &own);
    must(client_next(c, &input, &event) && event.kind == CLIENT_VERDICT);
    is_string(event.outcome->enhanced, "4.4.2", "the first end counts");
    ok_named(client_next(c, &input, &event) && event.kind == CLIENT_OVER,
             "then it is over");
    is_number(event.end, CLIENT_END_MAIL, "its mail has its verdict");
    is_string(event.outcome->enhanced, "4.4.2", "which is that of the end");
    input = TEXT("250 ok\r\n");
    ok_named(!client_next(c, &input, &event), "nothing is heard after the end");
    client_quit(c);
    is_number(client_output(c)->length, 0, "nor said");
    mail_free(&m);
    client_free(&c);
    client_free(&c);
    ok_named(c == NULL, "freed twice");
}

/* A next hop that goes after the end of the content may have the message. */
TEST(maybe_sent)
{
    static const struct {
        bool has_ended;
        const char *said;
        bool may_be_sent;
    } cases[] = {{false, "", false},
                 {true, "", true},
                 {true, "421 4.3.2 bye\r\n", false},
                 {true, "451 4.3.0 no\r\n", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct client *c = greeted_client(1);
        struct mail m = {0};
        struct client_event event;
        struct text input = text_from(cases[i].said);
        start_content(c, &m);
        client_content(c, TEXT("x"));
        if (cases[i].has_ended)
            client_content_end(c);
        while (input.length > 0 && client_next(c, &input, &event) &&
               event.kind != CLIENT_VERDICT)
            continue;
        if (input.length == 0 && cases[i].said[0] == '\0') {
            client_lost(c);
            must(client_next(c, &input, &event));
        }
        must(event.kind == CLIENT_VERDICT);
        ok(event.outcome->may_be_sent == cases[i].may_be_sent);
        mail_free(&m);
        client_free(&c);
    }
}

/* A line that breaks while verdicts are handed out changes none of them. */
TEST(end_between_verdicts)
{
    struct client *c = greeted_client(1);
    struct mail m = {0};
    struct client_mail mail = {
        .envelope = many_recipients(&m, 3), .indexes = m.indexes, .count = 3};
    struct client_event event;
    struct text input = TEXT("");
    client_send(c, &mail);
    must(!client_next(c, &input, &event));
    input = TEXT("250 a\r\n250 b\r\n250 b\r\n250 b\r\n354 c\r\n");
    must(client_next(c, &input, &event) && event.kind == CLIENT_CONTENT);
    client_content_end(c);
    input = TEXT("250 taken\r\n");
    must(client_next(c, &input, &event) && event.kind == CLIENT_VERDICT);
    client_lost(c);
    for (size_t which = 1; which < 3; which++) {
        must(client_next(c, &input, &event));
        ok(event.kind == CLIENT_VERDICT && event.which == which);
        is_number(event.outcome->verdict, VERDICT_DELIVERED, "it was taken");
    }
    ok(client_next(c, &input, &event) && event.kind == CLIENT_OVER);
    mail_free(&m);
    client_free(&c);
}

/* An owner that stops for its own reasons wants verdicts, not another connection. */
TEST(abandon_reused)
{
    struct client *c = greeted_client(1);
    struct mail m = {0};
    struct client_mail mail = {
        .envelope = many_recipients(&m, 1), .indexes = m.indexes, .count = 1};
    struct client_event event;
    struct text input = TEXT("");
    struct outcome own = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2", "x");
    client_send(c, &mail);
    must(!client_next(c, &input, &event));
    input = TEXT("550 no\r\n550 no\r\n550 no\r\n");
    must(client_next(c, &input, &event) && event.kind == CLIENT_VERDICT);
    must(client_next(c, &input, &event) && event.kind == CLIENT_DONE);
    client_send(c, &mail);
    must(!client_next(c, &input, &event));
    client_abandon(c, &own);
    ok(client_next(c, &input, &event) && event.kind == CLIENT_VERDICT);
    is_string(event.outcome->enhanced, "4.3.2", "our reason");
    ok(client_next(c, &input, &event) && event.kind == CLIENT_OVER);
    mail_free(&m);
    client_free(&c);
}
