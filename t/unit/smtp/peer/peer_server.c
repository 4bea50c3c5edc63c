/* The called side of the peer door: every verb, stage and limit. */
#include "smtp/peer/peer_server.h"

#include "t/support/peer_service.h"

#include <glob.h>

#define HELLO                                                                                      \
    "XPEER 1 {\"host\":\"relay2\",\"group\":\"mail\",\"spool\":\"aa\",\"run\":7,"                  \
    "\"version\":\"0.2\",\"state\":\"giving\"}\r\n"
#define HELLO_REPLY                                                                                \
    "250 {\"host\":\"relay1\",\"group\":\"mail\",\"spool\":\"00112233445566778899aabbccddeeff\","  \
    "\"run\":5,\"now\":0,\"version\":\"0.1.0\",\"state\":\"running\"}\r\n"
#define ID "01JD3ZK5Q8-9F3K2C7A"

struct door {
    struct service_world world;
    struct peer_server *server;
    struct buffer in;
    unsigned woken;
};

static void
door_wake(void *context)
{
    ((struct door *)context)->woken++;
}

static void
door_open(struct door *d)
{
    memset(d, 0, sizeof(*d));
    service_start(&d->world, "relay1");
    buffer_init(&d->in, 64 << 20);
    d->server = memory_new(sizeof(*d->server));
    d->server->service = &d->world.service;
    d->server->content_max = 1 << 20;
    d->server->wake = door_wake;
    d->server->context = d;
    peer_server_start(d->server);
}

static void
door_close(struct door *d)
{
    peer_server_stop(d->server);
    free(d->server);
    service_finish(&d->world);
    buffer_free(&d->in);
}

static void
door_go(struct door *d)
{
    struct text input = buffer_text(&d->in);
    size_t before = input.length;

    peer_server_go(d->server, &input);
    buffer_take(&d->in, before - input.length);
}

/* The input to it, and its answer. */
static struct text
door_said(struct door *d, const char *bytes)
{
    static char told[64 * 1024];

    ok(buffer_add(&d->in, text_from(bytes)));
    door_go(d);
    text_copy(told, sizeof(told), buffer_text(&d->server->out));
    buffer_clear(&d->server->out);
    return text_from(told);
}

TEST(hello)
{
    struct door d;

    door_open(&d);
    is_text(door_said(&d, ""), TEXT(""), "the caller speaks first");
    is_text(door_said(&d, HELLO), TEXT(HELLO_REPLY), "XPEER");
    is_text(service_log(&d.world), TEXT("greet relay2 mail giving\n"), "the service hears who it is");
    is_string(d.server->caller.version, "0.2", "and so can the owner");
    is_text(door_said(&d, HELLO), TEXT("503 5.5.1 not now: XPEER comes first, and once\r\n"), "only once");
    is_text(door_said(&d, "noop\r\nNOOP x\r\n"), TEXT("250 2.0.0 here\r\n250 2.0.0 here\r\n"), "NOOP, in any case");
    is_text(door_said(&d, "QUIT\r\nNOOP\r\n"), TEXT("221 2.0.0 goodbye\r\n"), "QUIT is the last");
    ok(d.server->stage == PEER_OVER && !peer_server_wants(d.server));
    door_close(&d);
}

TEST(unwelcome)
{
    static const struct {
        const char *said, *reply;
    } wrong[] = {
        {"XPEER 2 {}\r\n", "554 5.5.4 this version of the protocol is not known\r\n"},
        {"XPEER\r\n", "554 5.5.4 this version of the protocol is not known\r\n"},
        {"XPEER 1 {}\r\n", "501 5.5.4 who are you?\r\n"},
        {"XPEER 1\r\n", "501 5.5.4 who are you?\r\n"},
        {"GET / HTTP/1.1\n", "421 4.5.2 this is no line of a command\r\n"},
        {"QUIT\r\n", "221 2.0.0 goodbye\r\n"},
    };
    struct door d;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        door_open(&d);
        is_text(door_said(&d, wrong[i].said), text_from(wrong[i].reply), "a caller that does not come in");
        ok(d.server->stage == PEER_OVER);
        is_text(service_log(&d.world), TEXT(""), "the service hears nothing");
        door_close(&d);
    }
    door_open(&d);
    d.world.unwelcome = "another group";
    is_text(door_said(&d, HELLO "XGIVE " ID " 1 0 00000000\r\n."), TEXT("554 5.7.1 another group\r\n"), "greet refuses");
    ok(d.server->stage == PEER_OVER);
    door_close(&d);
}

/* Nothing but XPEER and QUIT before XPEER. */
TEST(stages)
{
    static const char *const early[] = {"XGIVE " ID " 1 1 00000000", "XASK 5", "NOOP"};
    struct door d;

    for (size_t i = 0; i < 3; i++) {
        char line[100];

        door_open(&d);
        snprintf(line, sizeof(line), "%s\r\n", early[i]);
        is_text(door_said(&d, line), TEXT("503 5.5.1 not now: XPEER comes first, and once\r\n"), early[i]);
        door_close(&d);
    }
    door_open(&d);
    is_text(door_said(&d, "XGIVE " ID " 4 4 00000000\r\n" HELLO), TEXT("503 5.5.1 not now: XPEER comes first, and once\r\n"),
            "the bytes of a message are no commands");
    ok(d.server->stage == PEER_OVER && d.server->caller.host[0] == '\0');
    door_close(&d);
    door_open(&d);
    door_said(&d, HELLO);
    is_text(door_said(&d, "NOOP\r\nXDONE 6\r\nNOOP\r\nXGIVE " ID " 4 4 00000000\r\nNOOPNOOP"), TEXT("250 2.0.0 here\r\n500 5.5.1 not known at this door\r\n"),
            "nor are those of a verb of a later version");
    ok(d.server->stage == PEER_OVER && d.world.takings == 0);
    door_close(&d);
    door_open(&d);
    for (int i = 0; i < PEER_ERRORS_MAX; i++)
        is_text(door_said(&d, "EHLO client.example\r\n"), TEXT("500 5.5.1 not known at this door\r\n"), "SMTP is not known");
    is_text(door_said(&d, "MAIL FROM:<>\r\n"), TEXT("421 4.7.0 too many errors\r\n"), "ten errors, then 421");
    ok(d.server->stage == PEER_OVER);
    door_close(&d);
}

TEST(give)
{
    struct outcome later;
    struct door d;

    outcome_refuse(&later, 452, "4.3.1", "no space");
    door_open(&d);
    door_said(&d, HELLO);
    is_text(door_said(&d, "XGIVE " ID " 3 5 0badcafe\r\nabcde"), TEXT(""), "a part");
    is_text(door_said(&d, "fgh"), TEXT(""), "the rest: it is not durable yet");
    is_text(service_log(&d.world),
            TEXT("greet relay2 mail giving\ntake relay2 " ID " 3 5 0badcafe\nend 8 bytes 0a9421b7\n"), "the service has it");
    is_text(buffer_text(&d.world.bytes), TEXT("abcdefgh"), "its bytes");
    is_text(door_said(&d, "NOOP\r\nXGIVE " ID " 1 0 00000000\r\nx"), TEXT(""), "replies wait for those before them");
    is_number(d.world.pending_count, 2, "two wait");
    service_taken(&d.world, 1, &later);
    is_text(door_said(&d, ""), TEXT(""), "the second is answered, the first not");
    service_taken(&d.world, 0, NULL);
    ok(d.woken == 2);
    is_text(door_said(&d, ""), TEXT("250 2.0.0 00000000Z8-00000002\r\n250 2.0.0 here\r\n452 4.3.1 no space\r\n"), "in order");
    outcome_refuse(&later, 421, "4.3.2", "stopping");
    is_text(door_said(&d, "XGIVE " ID " 1 0 00000000\r\nx"), TEXT(""), "another one");
    service_taken(&d.world, 0, &later);
    is_text(door_said(&d, ""), TEXT("451 4.3.0 stopping\r\n"), "421 is about connections, not about messages");
    ok(d.server->taken == 1 && d.server->refused == 2 && d.server->messages == 0 && d.server->message_bytes == 0);
    door_close(&d);
}

TEST(refused)
{
    struct door d;

    door_open(&d);
    door_said(&d, HELLO);
    d.world.closed = "draining";
    is_text(door_said(&d, "XGIVE " ID " 10 10 00000000\r\nQUIT\r\nQUIT\r\n"), TEXT("451 4.3.2 draining\r\n"), "refused before its bytes have come");
    is_text(door_said(&d, "QUIT\r\nQUNOOP\r\n"), TEXT("250 2.0.0 here\r\n"), "which are read away");
    d.server->content_max = 9;
    is_text(door_said(&d, "XGIVE " ID " 1 10 00000000\r\nQUIT\r\nQUIT\nNOOP\r\n"),
            TEXT("552 5.3.4 the message is larger than this host takes (message_size_limit)\r\n250 2.0.0 here\r\n"), "too large");
    is_text(door_said(&d, "XGIVE " ID " 1 1 00000000 KEEP=1/2\r\nabNOOP\r\n"),
            TEXT("554 5.5.4 a parameter is not known here\r\n250 2.0.0 here\r\n"), "a later version's parameter");
    d.world.service.take = NULL;
    is_text(door_said(&d, "XGIVE " ID " 1 1 00000000\r\nabNOOP\r\n"),
            TEXT("451 4.3.2 this host takes no mail of others\r\n250 2.0.0 here\r\n"), "nobody takes");
    is_number(d.world.pending_count, 0, "nothing was taken");
    door_close(&d);
}

/* Where a message ends must be clear. */
TEST(odd_give)
{
    static const char *const odd[] = {
        "XGIVE", "XGIVE " ID, "XGIVE " ID " 1 1", "XGIVE " ID " 0 1 00000000", "XGIVE " ID " -1 1 00000000",
        "XGIVE " ID " 1 -1 00000000", "XGIVE " ID " 1 1 0000000", "XGIVE " ID " 1 1 0000000g",
        "XGIVE " ID " 99999999999 1 00000000", "XGIVE " ID " 1 9999999999999999999 00000000",
        "XGIVE ../../etc/passwd 1 1 00000000", "XGIVE 01jd3zk5q8-9f3k2c7a 1 1 00000000", "XASK", "XASK 0", "XASK 65537", "XASK 1 2", "XASK x",
    };
    struct door d;

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char line[200];

        door_open(&d);
        door_said(&d, HELLO);
        snprintf(line, sizeof(line), "%s\r\nNOOP\r\n", odd[i]);
        is_text(door_said(&d, line), odd[i][1] == 'A' ? TEXT("421 4.5.4 XASK BYTES\r\n") : TEXT("421 4.5.4 XGIVE ID SECTIONS CONTENT CRC32C\r\n"), odd[i]);
        ok(d.server->stage == PEER_OVER);
        door_close(&d);
    }
}

TEST(limits)
{
    struct door d;
    char *line = memory_new(PEER_LINE_MAX + 10);

    door_open(&d);
    door_said(&d, HELLO);
    for (int i = 0; i < SIBLING_UNANSWERED; i++)
        is_text(door_said(&d, "XGIVE " ID " 1 0 00000000\r\nx"), TEXT(""), "a message that waits");
    is_text(door_said(&d, "XGIVE " ID " 1 0 00000000\r\nx"), TEXT("421 4.7.0 too much is unanswered\r\n"), "one too many");
    door_close(&d);
    ok_named(d.world.pending_count == 0, "nobody waits for what is not durable yet");

    door_open(&d);
    door_said(&d, HELLO);
    d.server->content_max = 1 << 30;
    is_text(door_said(&d, "XGIVE " ID " 1 0 00000000\r\nx"), TEXT(""), "a small one");
    is_text(door_said(&d, "XGIVE " ID " 1 16777216 00000000\r\n"), TEXT("421 4.7.0 too much is unanswered\r\n"), "16 MiB besides");
    door_close(&d);
    door_open(&d);
    door_said(&d, HELLO);
    d.server->content_max = 1 << 30;
    is_text(door_said(&d, "XGIVE " ID " 1 50331648 00000000\r\n"), TEXT(""), "one alone may have more");
    door_close(&d);

    door_open(&d);
    memset(line, 'X', PEER_LINE_MAX + 1);
    is_text(door_said(&d, line), TEXT("421 4.5.2 this is no line of a command\r\n"), "a line without an end");
    door_close(&d);
    free(line);
}

/* Replies that wait are few, then nothing more is read. */
TEST(backpressure)
{
    struct door d;

    door_open(&d);
    door_said(&d, HELLO);
    door_said(&d, "XGIVE " ID " 1 0 00000000\r\nx");
    for (int i = 0; i < 2 * PEER_SLOTS; i++)
        ok(buffer_add(&d.in, TEXT("NOOP\r\n")));
    door_go(&d);
    ok(!peer_server_wants(d.server));
    is_number(d.in.length, (PEER_SLOTS + 1) * 6, "the rest is not read");
    service_taken(&d.world, 0, NULL);
    door_go(&d);
    ok(peer_server_wants(d.server) && d.in.length == 0);
    buffer_clear(&d.server->out);
    d.server->is_crowded = true;
    ok_named(!peer_server_wants(d.server), "nor while the caller does not read");
    is_text(door_said(&d, "NOOP\r\n"), TEXT(""), "no reply");
    d.server->is_crowded = false;
    is_text(door_said(&d, ""), TEXT("250 2.0.0 here\r\n"), "when it reads again");
    door_close(&d);
}

TEST(ask)
{
    struct door d;

    door_open(&d);
    door_said(&d, HELLO);
    is_text(door_said(&d, "XASK 13\r\n{\"do\":\"sta"), TEXT(""), "a part");
    is_text(door_said(&d, "t\"}NOOP\r\n"), TEXT(""), "the question");
    is_text(service_log(&d.world), TEXT("greet relay2 mail giving\nask {\"do\":\"stat\"}\n"), "is asked");
    d.world.asker.line(d.world.asker.context, TEXT("{\"a\":1}"));
    ok(d.woken == 1);
    is_text(door_said(&d, ""), TEXT("250-{\"a\":1}\r\n"), "a line");
    is_text(door_said(&d, ""), TEXT(""), "what is behind it waits");
    d.world.asker.line(d.world.asker.context, TEXT("{}"));
    d.world.asker.end(d.world.asker.context);
    is_text(door_said(&d, ""), TEXT("250-{}\r\n250 end\r\n250 2.0.0 here\r\n"), "the end, and what waited");
    is_number(d.world.askings, 0, "the question is dropped");
    is_text(door_said(&d, "XGIVE " ID " 1 0 00000000\r\nxXASK 2\r\n{}"), TEXT(""), "a question behind a message");
    is_number(d.world.asked, 1, "waits for its turn");
    service_taken(&d.world, 0, NULL);
    is_text(door_said(&d, ""), TEXT("250 2.0.0 00000000Z8-00000001\r\n"), "which comes");
    is_number(d.world.asked, 2, "now");
    door_close(&d);
    door_open(&d);
    d.world.service.ask = NULL;
    door_said(&d, HELLO);
    is_text(door_said(&d, "XASK 2\r\n{}NOOP\r\n"), TEXT("502 5.5.1 this host answers no questions\r\n250 2.0.0 here\r\n"), "nobody answers");
    door_close(&d);
}

TEST(long_answer)
{
    static char line[SIBLING_LINE_MAX + 1];
    struct door d;

    memset(line, 'x', sizeof(line));
    door_open(&d);
    door_said(&d, HELLO);
    door_said(&d, "XASK 2\r\n{}");
    for (int i = 0; i < 9; i++)
        d.world.asker.line(d.world.asker.context, text_of(line, SIBLING_LINE_MAX));
    ok_named(d.world.asker.is_full(d.world.asker.context), "the asked one is to stop");
    door_go(&d);
    is_number(d.world.resumed, 0, "not yet");
    buffer_clear(&d.server->out);
    ok(!d.world.asker.is_full(d.world.asker.context));
    door_go(&d);
    is_number(d.world.resumed, 1, "to go on, once");
    door_go(&d);
    is_number(d.world.resumed, 1, "no more than once");
    d.world.asker.line(d.world.asker.context, text_of(line, SIBLING_LINE_MAX + 1));
    d.world.asker.end(d.world.asker.context);
    is_text(door_said(&d, ""), TEXT("451 4.5.3 the answer is too long\r\n"), "a line that is too long");
    door_said(&d, "XASK 2\r\n{}");
    d.world.asker.line(d.world.asker.context, TEXT("{}\r\n250 end"));
    d.world.asker.end(d.world.asker.context);
    is_text(door_said(&d, ""), TEXT("451 4.5.3 the answer is too long\r\n"), "a line with a line end");
    door_said(&d, "XASK 2\r\n{}");
    for (int i = 0; i <= SIBLING_ANSWER_MAX / SIBLING_LINE_MAX; i++) {
        d.world.asker.line(d.world.asker.context, text_of(line, SIBLING_LINE_MAX));
        buffer_clear(&d.server->out);
    }
    d.world.asker.end(d.world.asker.context);
    is_text(door_said(&d, ""), TEXT("451 4.5.3 the answer is too long\r\n"), "more than 8 MiB");
    door_said(&d, "XASK 2\r\n{}");
    door_close(&d);
    ok_named(d.world.askings == 0, "the caller has gone before the answer");
}

/* The connection breaks at every byte. */
TEST(broken)
{
    static const char all[] = HELLO "XGIVE " ID " 3 5 0badcafe\r\nabcdefghXASK 2\r\n{}NOOP\r\nXGIVE " ID " 3 5 0badcafe\r\nabcdefghQUIT\r\n";
    struct door d;

    for (size_t i = 0; i < sizeof(all); i++) {
        door_open(&d);
        d.world.is_prompt = i % 2;
        for (size_t at = 0; at < i; at++) {
            (void)!buffer_add_byte(&d.in, all[at]);
            door_go(&d);
        }
        door_close(&d);
        ok(d.world.pending_count == 0);
    }
}

/* --- t/dialog/peer/: "C: line", "C<raw>: bytes", "S: prefix of the next line", "X:", and
 * "R: closed TEXT" or "R: unwelcome TEXT" first ------------------------------------------ */

static void
dialog_bytes(struct buffer *out, struct text raw)
{
    for (size_t i = 0; i < raw.length; i++) {
        bool is_escape = raw.at[i] == '\\' && i + 1 < raw.length;
        char c = is_escape ? raw.at[++i] : raw.at[i];
        (void)!buffer_add_byte(out, !is_escape ? c : c == 'r' ? '\r' : c == 'n' ? '\n' : c);
    }
}

/* In pieces of that many bytes. */
static void
dialog_give(struct door *d, const struct buffer *said, size_t width)
{
    for (size_t at = 0; at < said->length; at += width) {
        (void)!buffer_add(&d->in, text_before(text_after(buffer_text(said), at), width));
        door_go(d);
        if (d->world.askings > 0) {
            d->world.asker.line(d->world.asker.context, TEXT("{\"answer\":1}"));
            d->world.asker.end(d->world.asker.context);
            door_go(d);
        }
    }
}

/* The caller's input goes in as a whole, then the replies are compared. */
static void
dialog_play(const char *path, size_t width)
{
    static char closed[100], unwelcome[100];
    struct buffer said;
    struct text rest, line, file = TEXT(""), row;
    struct door d;
    char *text = NULL;
    size_t size = 0;
    FILE *opened = fopen(path, "r");

    ok_named(opened != NULL && getdelim(&text, &size, '\0', opened) > 0, path);
    fclose(opened);
    door_open(&d);
    d.world.is_prompt = true;
    buffer_init(&said, 1 << 16);
    for (file = text_from(text); text_cut(&file, '\n', &row);) {
        if (text_starts(row, TEXT("C: ")) && buffer_add(&said, text_after(row, 3)))
            (void)!buffer_add(&said, TEXT("\r\n"));
        else if (text_starts(row, TEXT("C<raw>: ")))
            dialog_bytes(&said, text_after(row, 8));
        else if (text_starts(row, TEXT("R: closed ")) && text_copy(closed, sizeof(closed), text_after(row, 10)))
            d.world.closed = closed;
        else if (text_starts(row, TEXT("R: unwelcome ")) && text_copy(unwelcome, sizeof(unwelcome), text_after(row, 13)))
            d.world.unwelcome = unwelcome;
    }
    dialog_give(&d, &said, width);
    rest = buffer_text(&d.server->out);
    for (file = text_from(text); text_cut(&file, '\n', &row);) {
        line = TEXT("");
        if (text_starts(row, TEXT("S: "))) {
            (void)text_cut(&rest, '\n', &line);
            is_text(text_before(line, row.length - 3), text_after(row, 3), "the next reply");
        } else if (text_starts(row, TEXT("X:"))) {
            ok_named(d.server->stage == PEER_OVER, "the end");
        }
    }
    is_number(rest.length, 0, "no other reply");
    free(text);
    buffer_free(&said);
    door_close(&d);
}

TEST(dialogs)
{
    glob_t found;

    ok_named(glob("t/dialog/peer/*.peer", 0, NULL, &found) == 0 && found.gl_pathc >= 6, "dialogues");
    for (size_t i = 0; i < found.gl_pathc; i++) {
        dialog_play(found.gl_pathv[i], 1 << 16);
        dialog_play(found.gl_pathv[i], 1);
        dialog_play(found.gl_pathv[i], 7);
    }
    globfree(&found);
}
