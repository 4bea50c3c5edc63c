/* Requests of mail by HTTP, without sockets: envelopes, refusals, and what is stored. */
#include "admin/post/post_door.h"

#include "admin/post/post_json.h"
#include "admin/post/post_object.h"
#include "admin/post/post_spool.h"
#include "admin/post/posting.h"
#include "t/support/listener_world.h"
#include "t/support/tap.h"

/* SHA-256 of "one". */
#define KEYS "app 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed app@x.example .y.example\n"
#define RAW  "Authorization: Bearer one\r\nContent-Type: message/rfc822\r\n"
#define ANN  RAW "X-Envelope-From: app@x.example\r\nX-Envelope-To: ann@example.org\r\n"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 100000,
                                          .recipient_limit = 5,
                                          .hop_limit = 50};

static struct world w;
static struct post_door *door;
static const char *closed;
static int wakes;
static bool leaves_early;

static const char *
leaves(void *context)
{
    (void)context;
    return closed;
}

static void
take_keys(const char *lines)
{
    struct buffer errors;
    buffer_init(&errors, 1000);
    post_door_set_keys(door, post_keys_new(text_from(lines), "FILE", TEXT(""), &errors));
    buffer_free(&errors);
}

static void
open_door(void)
{
    door = post_door_new(&(struct post_setup){
        .loop = w.loop, .host = listener_host(w.listener), .manager = w.manager, .leaves = leaves, .log = w.log, .records = "lock/posted", .has_journal = true});
    take_keys(KEYS);
}

static void
begin(void)
{
    listener_world_start(&w, &plain, false, false);
    closed = NULL;
    open_door();
}

static void
woken(void *context)
{
    (void)context;
    wakes++;
}

/* The status of the answer, which is left in out. The request is posted in pieces of that size; whole: with its end. */
static unsigned
post(const char *target, const char *fields, struct text body, size_t piece, bool whole, struct buffer *out)
{
    static const struct http_limits limits = {HTTP_LINES_MAX, 8192, 0};
    static char head[4096];
    struct http_reader reader;
    struct http_exchange x = {.request = &reader, .path = HTTP_PATH_MAIL, .wake = woken};
    struct net_address peer;
    const char *why;
    snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n", target, fields, body.length);
    struct text input = text_from(head);
    http_reader_init(&reader, HTTP_REQUEST, &limits);
    http_reader_stream(&reader, POST_PATH, 10000000);
    (void)!http_reader_add(&reader, &input);
    ok_named(net_address_parse_ip(TEXT("192.0.2.7"), &peer) && http_target_read(reader.target, &x.target, &why) == 0, target);
    struct text bearer = http_reader_field(&reader, TEXT("Authorization"));
    x.peer = &peer;
    x.key = post_door_key(door, text_after(bearer, 7));
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    buffer_init(&x.fields, HTTP_FIELDS_MAX);
    post_door_post(door, &x);
    ok_named((x.status > 0) == (x.sink.add == NULL), "an answer, or a sink");
    bool goes_on = x.sink.add != NULL;
    for (; goes_on && body.length > 0; body = text_after(body, piece))
        goes_on = x.sink.add(x.sink.context, text_before(body, piece));
    if (goes_on && whole)
        x.sink.end(x.sink.context);
    for (int i = 0; i < 2000 && goes_on && whole && !leaves_early && x.status == 0; i++)
        loop_turn(w.loop, TURN_MS);
    if (x.sink.free != NULL)
        x.sink.free(x.sink.context);
    if (!leaves_early)
        loop_turn(w.loop, 0);
    *out = x.body;
    buffer_free(&x.fields);
    http_reader_free(&reader);
    return x.status;
}

static bool
has(const struct buffer *b, const char *part)
{
    return memmem(b->at, b->length, part, strlen(part)) != NULL;
}

static void
is_answered(const char *target, const char *fields, const char *body, unsigned status, const char *part)
{
    struct buffer out;
    is_number(post(target, fields, text_from(body), 7, true, &out), status, fields);
    if (!ok_named(has(&out, part), part))
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&out)));
    buffer_free(&out);
}

static struct stored found;

static void
forget_stored(void)
{
    for (size_t i = 0; i < found.count; i++) {
        envelope_free(&found.messages[i].envelope);
        buffer_free(&found.messages[i].content);
    }
    found = (struct stored){.world = &w};
}

/* The only message, and no more. Valid until the next call, or end(). */
static struct text
stored(struct envelope **e)
{
    forget_stored();
    (void)!queue_each(manager_queue(w.manager), collect, &found);
    is_number(found.count, 1, "one message");
    *e = found.count == 1 ? found.messages[0].envelope : NULL;
    return found.count == 1 ? buffer_text(&found.messages[0].content) : TEXT("");
}

static void
end(void)
{
    forget_stored();
    post_door_free(&door);
    listener_world_end(&w);
}

TEST(whole_messages)
{
    struct envelope *e;
    begin();
    is_answered("/v1/messages", ANN, "Subject: x\n\nhello\n", 202, "{\"id\":\"");
    is_text(stored(&e), TEXT("Subject: x\r\n\r\nhello\r\n"), "its content");
    ok(e != NULL && e->count == 1 && text_equal(e->sender, TEXT("app@x.example")));
    end();
    begin();
    is_answered("/v1/messages?from=a%40b.y.example&to=ann@example.org&to=%22b,c%22@example.org", RAW, "Subject: x\n\nhello", 202, "id");
    (void)stored(&e);
    ok(e != NULL && e->count == 2 && text_equal(e->recipients[1].address, TEXT("\"b,c\"@example.org")));
    end();
}

TEST(refusals)
{
    struct envelope *e;
    begin();
    is_answered("/v1/messages", "Content-Type: message/rfc822\r\n", "x", 401, "\"key\"");
    is_answered("/v1/messages", "Authorization: Bearer two\r\nContent-Type: message/rfc822\r\n", "x", 401, "\"key\"");
    is_answered("/v1/messages", "Authorization: Bearer one\r\nContent-Type: text/plain\r\n", "x", 415, "\"type\"");
    is_answered("/v1/messages", RAW "X-Envelope-To: ann@example.org\r\n", "x", 400, "\"from\"");
    is_answered("/v1/messages", RAW "X-Envelope-From: app@x.example\r\n", "x", 400, "\"to\"");
    is_answered("/v1/messages", ANN "X-Envelope-From: app@x.example\r\n", "x", 400, "twice");
    is_answered("/v1/messages?from=app@x.example", ANN, "x", 400, "twice");
    is_answered("/v1/messages?cc=app@x.example", ANN, "x", 400, "\"query\"");
    is_answered("/v1/messages", RAW "X-Envelope-From: b@x.example\r\nX-Envelope-To: ann@example.org\r\n", "x", 403, "\"sender\"");
    is_answered("/v1/messages", ANN "X-Envelope-To: bob, c@\xff.example\r\n", "x", 422, "2 of 3 recipients refused");
    is_answered("/v1/messages", ANN "X-Envelope-To: a@e.example,b@e.example,c@e.example,d@e.example,e@e.example\r\n", "x", 422, "\"code\":452");
    closed = "the daemon stops";
    is_answered("/v1/messages", ANN, "x", 503, "the daemon stops");
    take_keys("#");
    is_answered("/v1/messages", ANN, "x", 401, "\"key\"");
    post_door_set_keys(door, NULL);
    is_answered("/v1/messages", ANN, "x", 404, "http_keys");
    take_keys(KEYS);
    closed = NULL;
    is_answered("/v1/messages", ANN, "Subject: alone\n\nx\n", 202, "id");
    (void)stored(&e);
    end();
}

/* All recipients of a post come together: those beyond the rate's burst never fit. */
TEST(more_than_a_rate)
{
    struct envelope *e;
    begin();
    w.settings.clients.each[CLIENT_USAGE_RECIPIENT] = TEXT("1/d,burst=3");
    listener_reload(w.listener, w.routes, &w.settings);
    is_answered("/v1/messages", ANN "X-Envelope-To: b@e.example,c@e.example,d@e.example\r\n", "x", 422, "at most 3 recipients at a time, of 4");
    is_answered("/v1/messages", ANN, "x", 429, "1 of 1 recipients refused");
    end();
    begin();
    is_answered("/v1/messages", ANN "X-Envelope-To: b@e.example,c@e.example,d@e.example\r\n", "x", 202, "id");
    (void)stored(&e);
    ok(e != NULL && e->count == 4);
    end();
}

#define JSON "Authorization: Bearer one\r\nContent-Type: application/json; charset=utf-8\r\n"
#define FIFTY "12345678901234567890123456789012345678901234567890"
#define MAIL "\"from\":\"app@x.example\",\"to\":\"ann@example.org\""

TEST(members)
{
    struct envelope *e;
    begin();
    is_answered("/v1/messages", JSON,
                "{\"text\":\"hello \\u20ac\\n.\\r\\nFrom x\\rend\",\"attachments\":[{\"content\":\"aGVs\\nbG8=\",\"filename\":\"a.txt\","
                "\"type\":\"text/plain\"}],\"to\":[\"Ann <ann@example.org>\",\"bob@example.org\"],\"bcc\":\"eve@example.org\","
                "\"from\":\"J\\u00f6 <app@x.example>\",\"headers\":{\"X-One\":\"1\"},\"subject\":\"hi\",\"tag\":\"t 1\","
                "\"reply_to\":[\"r@else.example\"],\"cc\":[]}",
                202, "{\"id\":\"");
    struct text content = stored(&e);
    ok(e != NULL && e->count == 3 && !e->utf8);
    struct text head = TEXT("From: =?UTF-8?B?SsO2?= <app@x.example>\r\nTo: Ann <ann@example.org>, bob@example.org\r\n"
                            "Reply-To: r@else.example\r\nSubject: hi\r\nX-One: 1\r\nX-Petrel-Tag: t 1\r\n"
                            "MIME-Version: 1.0\r\nContent-Type: multipart/mixed;\r\n boundary=\"=_");
    is_text(text_before(content, head.length), head, "its header");
    struct buffer all = {.at = (char *)(uintptr_t)content.at, .length = content.length};
    ok(has(&all, "\r\n\r\nhello =E2=82=AC\r\n=2E\r\nFrom=20x\r\nend\r\n--=_"));
    ok(has(&all, "filename=\"a.txt\"\r\n\r\naGVsbG8=\r\n--=_"));
    ok(!has(&all, "eve@"));
    end();
}

TEST(members_that_are_refused)
{
    /* clang-format off */
    static const struct {
        const char *body;
        unsigned status;
        const char *field, *rule;
    } rows[] = {
        {"", 400, "null", "json"}, {"{", 400, "null", "json"}, {"{\"from\":tru}", 400, "null", "json"}, {"[]", 422, "null", "type"},
        {"1", 422, "null", "type"}, {"\"x\"", 422, "null", "type"}, {"{}", 422, "\"from\"", "required"},
        {"{\"from\":\"app@x.example\",\"text\":\"x\"}", 422, "\"to\"", "required"}, {"{" MAIL "}", 422, "\"text\"", "required"},
        {"{" MAIL ",\"text\":\"x\"} x", 400, "null", "json"},
        {"{" MAIL ",\"sent\":1}", 422, "\"sent\"", "unknown"}, {"{" MAIL ",\"text\":\"x\",\"send_at\":99999999999}", 422, "\"send_at\"", "limit"},
        {"{" MAIL ",\"send_at\":\"soon\"}", 422, "\"send_at\"", "value"}, {"{" MAIL ",\"send_at\":1.5}", 422, "\"send_at\"", "value"}, {"{" MAIL ",\"from\":\"x\"}", 422, "\"from\"", "twice"},
        {"{\"from\":[\"app@x.example\"]}", 422, "\"from\"", "type"}, {"{\"to\":{}}", 422, "\"to\"", "type"}, {"{\"to\":[1]}", 422, "\"to\"", "type"},
        {"{\"to\":[[\"x\"]]}", 422, "\"to\"", "type"}, {"{\"text\":null}", 422, "\"text\"", "type"}, {"{\"text\":[\"x\"]}", 422, "\"text\"", "type"},
        {"{\"headers\":\"x\"}", 422, "\"headers\"", "type"}, {"{\"headers\":{\"X\":{}}}", 422, "\"headers.X\"", "type"},
        {"{\"headers\":{\"Bcc\":\"x\"}}", 422, "\"headers.Bcc\"", "name"}, {"{\"headers\":{\"X\\r\\nY\":\"x\"}}", 422, "headers.X", "name"},
        {"{\"headers\":{\"X\":\"a\\r\\nBcc: b@c\"}}", 422, "\"headers.X\"", "value"},
        {"{\"subject\":\"a\\nb\"}", 422, "\"subject\"", "value"}, {"{\"from\":\"A\\nB <a@b>\"}", 422, "\"from\"", "value"},
        {"{\"from\":\"A < >\",\"to\":\"ann@example.org\",\"text\":\"x\"}", 422, "\"from\"", "value"},
        {"{\"" FIFTY "1234567890ab\u00fc\":1}", 422, "90ab\"", "unknown"}, {"{\"" FIFTY "1234567890a\u00fcb\":1}", 422, "90a\u00fc\"", "unknown"},
        {"{\"headers\":{\"X-A\":\"1\",\"x-a\":\"2\"}}", 422, "\"headers.x-a\"", "twice"},
        {"{\"to\":[\"a@b\\r\\nX: y\"]}", 422, "\"to\"", "value"}, {"{\"tag\":\"\\u00fc\"}", 422, "\"tag\"", "value"},
        {"{\"attachments\":{}}", 422, "\"attachments\"", "type"}, {"{\"attachments\":[1]}", 422, "\"attachments\"", "type"},
        {"{\"attachments\":[{}]}", 422, "content\"", "required"}, {"{\"attachments\":[{\"x\":1}]}", 422, "\"attachments[0].x\"", "unknown"},
        {"{\"attachments\":[{\"content\":\"\"},{\"content\":\"abc\"}]}", 422, "\"attachments[1].content\"", "base64"},
        {"{\"attachments\":[{\"content\":\"ab=c\"}]}", 422, "\"attachments[0].content\"", "base64"},
        {"{\"attachments\":[{\"content\":\"a===\"}]}", 422, "\"attachments[0].content\"", "base64"},
        {"{\"attachments\":[{\"content\":\"ab-_\"}]}", 422, "\"attachments[0].content\"", "base64"},
        {"{\"attachments\":[{\"type\":\"message/rfc822\"}]}", 422, "\"attachments[0].type\"", "value"},
        {"{\"attachments\":[{\"filename\":\"a\\nb\"}]}", 422, "\"attachments[0].filename\"", "value"},
        {"{\"attachments\":[{\"cid\":\"a b\"}]}", 422, "\"attachments[0].cid\"", "value"},
        {"{\"attachments\":[{\"inline\":1}]}", 422, "\"attachments[0].inline\"", "type"},
        {"{\"attachments\":[{\"inline\":\"x\"}]}", 422, "\"attachments[0].inline\"", "type"},
        {"{" MAIL ",\"text\":\"x\",\"reply_to\":\"a b\"}", 422, "\"reply_to\"", "envelope"},
        {"{\"from\":\"b@x.example\",\"to\":\"a@b.example\",\"text\":\"x\"}", 403, "\"from\"", "sender"},
        {"{\"from\":\"app@x.example\",\"to\":[\"a@b.example\",\"bad\"],\"text\":\"x\"}", 422, "\"to\"", "recipient"},
    };
    /* clang-format on */
    struct envelope *e;
    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char rule[100], field[100];
        struct buffer out;
        snprintf(rule, sizeof(rule), "\"rule\":\"%s\"", rows[i].rule);
        snprintf(field, sizeof(field), strcmp(rows[i].field, "null") == 0 ? "\"field\":%s," : "%s", rows[i].field);
        is_number(post("/v1/messages", JSON, text_from(rows[i].body), 3, true, &out), rows[i].status, rows[i].body);
        if (!ok_named(has(&out, rule) && has(&out, field), rule))
            printf("# %.*s\n", TEXT_ARGS(buffer_text(&out)));
        buffer_free(&out);
    }
    is_answered("/v1/messages?from=x", JSON, "{}", 400, "\"query\"");
    is_answered("/v1/messages", JSON, "{" MAIL ",\"text\":\"\"}", 202, "id");
    (void)stored(&e);
    end();
}

/* More than stays in memory, with its members in another order; many pieces in many turns. */
TEST(members_in_a_file)
{
    enum { SIZE = 60000 };
    static char body[3 * SIZE];
    struct buffer out;
    struct envelope *e;
    char *at = body + sprintf(body, "{\"attachments\":[{\"content\":\"");
    memset(at, 'A', SIZE);
    at += SIZE;
    at += sprintf(at, "\",\"cid\":\"c\"}],\"html\":\"<p>");
    for (int i = 0; i < 2000; i++)
        at += sprintf(at, "\\u20ac");
    at += sprintf(at, "\"," MAIL "}");
    begin();
    is_number(post("/v1/messages", JSON, text_of(body, (size_t)(at - body)), 5000, true, &out), 202, "a message");
    struct text content = stored(&e);
    buffer_free(&out);
    unsigned a = 0, euros = 0;
    for (size_t i = 0; i < content.length; i++)
        a += content.at[i] == 'A';
    for (size_t i = 0; i + 4 <= content.length; i++)
        euros += memcmp(content.at + i, "4oKs", 4) == 0;
    ok_named(a >= SIZE && a < SIZE + 200, "the attachment");
    ok_named(euros > 1900, "the text, in base64");
    end();
}

TEST(content_that_is_refused)
{
    static char large[100200];
    struct buffer out;
    memset(large, 'x', sizeof(large));
    for (size_t i = 70; i < sizeof(large); i += 71)
        large[i] = '\n';
    begin();
    is_number(post("/v1/messages", ANN, text_of(large, sizeof(large)), 30000, true, &out), 413, "too large, by its length");
    buffer_free(&out);
    is_answered("/v1/messages", RAW "X-Envelope-From: app@x.example\r\nX-Envelope-To: ann@example.org\r\n",
                "Received: x\nReceived: x\n\nx", 202, "id");
    end();
}

TEST(a_client_goes)
{
    struct buffer out;
    struct envelope *e;
    begin();
    is_number(post("/v1/messages", ANN, TEXT("Subject: x\n\nhello\n"), 5, false, &out), 0, "before the end");
    buffer_free(&out);
    is_answered("/v1/messages", ANN, "Subject: y\n\nhello\n", 202, "id");
    is_text(stored(&e), TEXT("Subject: y\r\n\r\nhello\r\n"), "the other is not sent");
    end();
}

#define TWICE(key) ANN "Idempotency-Key: " key "\r\n"

static void
is_posted(const char *fields, const char *body, unsigned status, char id[ID_LENGTH + 1])
{
    struct buffer out;
    is_number(post("/v1/messages", fields, text_from(body), 100, true, &out), status, body);
    id[0] = '\0';
    if (out.length > 7 + ID_LENGTH && status == 202)
        (void)!text_copy(id, ID_LENGTH + 1, text_of(out.at + 7, ID_LENGTH));
    buffer_free(&out);
}

TEST(idempotency)
{
    char first[ID_LENGTH + 1], id[ID_LENGTH + 1];
    struct envelope *e;
    begin();
    is_posted(TWICE("1"), "Subject: x\n\nx\n", 202, first);
    is_posted(TWICE("1"), "Subject: x\n\nx\n", 202, id);
    is_string(id, first, "the same message");
    is_posted(TWICE("1"), "Subject: x\n\ny\n", 409, id);
    is_posted(RAW "X-Envelope-From: app@x.example\r\nX-Envelope-To: eve@example.org\r\nIdempotency-Key: 1\r\n",
              "Subject: x\n\nx\n", 409, id);
    (void)stored(&e);
    is_text(text_before(e->posted, 4), TEXT("app/"), "its envelope knows");
    is_posted(TWICE(""), "x", 400, id);
    post_door_free(&door);
    open_door();
    is_posted(TWICE("1"), "Subject: x\n\nx\n", 202, id);
    is_string(id, first, "it is known from the file");
    (void)stored(&e);
    is_posted(TWICE("2"), "Subject: x\n\nx\n", 202, id);
    ok_named(strcmp(id, first) != 0, "another key");
    end();
}

TEST(idempotency_of_members)
{
    char first[ID_LENGTH + 1], id[ID_LENGTH + 1];
    struct envelope *e;
    begin();
    is_posted(JSON "Idempotency-Key: 1\r\n", "{" MAIL ",\"text\":\"x\",\"x\":1}", 422, id);
    is_posted(JSON "Idempotency-Key: 1\r\n", "{" MAIL ",\"text\":\"x\"}", 202, first);
    is_posted(JSON "Idempotency-Key: 1\r\n", "{" MAIL ",\"text\":\"x\"}", 202, id);
    is_string(id, first, "the same message");
    is_posted(JSON "Idempotency-Key: 1\r\n", "{" MAIL ",\"text\":\"y\"}", 409, id);
    (void)stored(&e);
    end();
}

/* Its message is stored, since it was complete: so its record must be kept. */
TEST(a_client_goes_before_the_answer)
{
    char id[ID_LENGTH + 1];
    struct envelope *e;
    struct text body = TEXT("Subject: x\n\nx\n");
    begin();
    leaves_early = true;
    struct buffer out;
    is_number(post("/v1/messages", TWICE("1"), body, 100, true, &out), 0, "no answer");
    leaves_early = false;
    buffer_free(&out);
    is_posted(TWICE("1"), "Subject: x\n\ny\n", 409, id);
    for (int i = 0; i < 100; i++)
        loop_turn(w.loop, TURN_MS);
    is_posted(TWICE("1"), "Subject: x\n\nx\n", 202, id);
    (void)stored(&e);
    leaves_early = true;
    (void)post("/v1/messages", TWICE("2"), body, 100, true, &out);
    leaves_early = false;
    buffer_free(&out);
    end();
}

static unsigned
accepted(void)
{
    unsigned count = 0;
    struct session_counts counts = listener_counts(w.listener);
    for (int i = 0; i <= SESSION_ACCEPT_BOUNDS; i++)
        count += (unsigned)counts.accepts[i];
    return count;
}

/* It counts as any other, so its sender's quota does. */
TEST(a_client_without_a_key_goes_before_the_answer)
{
    struct envelope *e;
    struct buffer out;
    begin();
    leaves_early = true;
    is_number(post("/v1/messages", ANN, TEXT("Subject: x\n\nx\n"), 100, true, &out), 0, "no answer");
    leaves_early = false;
    buffer_free(&out);
    for (int i = 0; i < 100 && accepted() == 0; i++)
        loop_turn(w.loop, TURN_MS);
    is_number(accepted(), 1, "the message is accepted");
    (void)stored(&e);
    end();
}

TEST(addresses)
{
    struct posting p = {.recipients = 0};
    buffer_init(&p.envelope, 10000);
    ok(posting_add(&p, TEXT(" <a@b> ")) == NULL && p.recipients == 0 && !p.utf8);
    ok(posting_add(&p, TEXT("j\xc3\xb6@b")) == NULL && p.recipients == 1 && p.utf8);
    is_text(buffer_text(&p.envelope), text_of("a@b\0j\xc3\xb6@b\0", 10), "without brackets");
    ok(posting_add(&p, TEXT("a\r\nb@c")) != NULL && posting_add(&p, text_of("a\0b", 3)) != NULL);
    while (p.recipients < POST_RECIPIENTS_MAX && posting_add(&p, TEXT("a@b")) == NULL)
        ;
    is_number(p.recipients, POST_RECIPIENTS_MAX, "at most");
    ok(posting_add(&p, TEXT("a@b")) != NULL);
    buffer_free(&p.envelope);
}
