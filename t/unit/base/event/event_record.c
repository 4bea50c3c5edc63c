/* Events as JSON: each kind's members, UTF-8 for any bytes of a peer, ids. */
#include "base/event/event_record.h"

#include "t/support/tap.h"

#include <jansson.h>

static const struct id message = {.time_ms = 1750000000000, .hash = 0x1234567890};
static const struct event_record_source source = {
    .host = "mx.example.org", .now_ms = 1750000001234, .run = 0xabc, .serial = 7};

/* The object; the caller frees it. */
static json_t *
written(const struct event *event)
{
    struct buffer out;
    buffer_init(&out, EVENT_RECORD_MAX);
    ok(event_record_write(event, &source, &out));
    ok_named(out.length > 2 && out.at[out.length - 1] == '\n' &&
                 text_find(buffer_text(&out), '\n') == out.length - 1,
             "one line");
    json_t *object = json_loadb(out.at, out.length, 0, NULL);
    ok_named(json_is_object(object), "a JSON object");
    char id[EVENT_ID_MAX] = "";
    int64_t time_ms = 0;
    ok(event_record_read(text_before(buffer_text(&out), out.length - 1), id, &time_ms));
    is_string(id, json_string_value(json_object_get(object, "id")), "its id read back");
    is_number(time_ms, source.now_ms, "its time read back");
    buffer_free(&out);
    return object;
}

static void
has(json_t *object, const char *member, const char *value)
{
    is_string(json_string_value(json_object_get(object, member)), value, member);
}

static void
has_number(json_t *object, const char *member, int64_t value)
{
    is_number(json_integer_value(json_object_get(object, member)), value, member);
}

TEST(verdict)
{
    struct outcome outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    struct event_origin origin = {.recipient = 3,
                                  .original = TEXT("rfc822;a+2Bb+40c@d"),
                                  .envelope_id = TEXT("QQ+2B+3Dx+"),
                                  .message_id = TEXT("<a@b>"),
                                  .tag = TEXT("order 17"),
                                  .submitter = TEXT("user:ann")};
    snprintf(outcome.remote, sizeof(outcome.remote), "mx[192.0.2.1]:25");
    struct event event = {.kind = EVENT_DELIVERED,
                          .id = message,
                          .sender = TEXT("s@a.example"),
                          .recipient = TEXT("r@b.example"),
                          .tls = TEXT("TLSv1.3/X/verified"),
                          .dkim = TEXT("a.example/s1,a.example/s2"),
                          .size = 1000,
                          .attempt = 2,
                          .total_ms = 55,
                          .reason = "",
                          .origin = &origin,
                          .outcome = &outcome};
    json_t *o = written(&event);
    char name[ID_LENGTH + 1], id[EVENT_ID_MAX];
    id_format(message, name);
    snprintf(id, sizeof(id), "%s-3-3", name);
    has(o, "id", id);
    has(o, "type", "delivered");
    has(o, "message", name);
    has(o, "host", "mx.example.org");
    has(o, "sender", "s@a.example");
    has(o, "recipient", "r@b.example");
    has(o, "original_recipient", "a+b@c@d");
    has(o, "envid", "QQ+=x+");
    has(o, "message_id", "<a@b>");
    has(o, "tag", "order 17");
    has(o, "user", "ann");
    has(o, "relay", "mx[192.0.2.1]:25");
    has(o, "tls", "TLSv1.3/X/verified");
    has(o, "enhanced", "2.0.0");
    has(o, "text", "ok");
    has_number(o, "time_ms", source.now_ms);
    has_number(o, "size", 1000);
    has_number(o, "attempt", 3);
    has_number(o, "delay_ms", 55);
    has_number(o, "code", 250);
    json_t *dkim = json_object_get(o, "dkim");
    is_number(json_array_size(dkim), 2, "an array of signatures");
    is_string(json_string_value(json_array_get(dkim, 1)), "a.example/s2", "the second");
    ok_named(json_object_get(o, "class") == NULL && json_object_get(o, "hint") == NULL &&
                 json_object_get(o, "next_ms") == NULL && json_object_get(o, "kind") == NULL,
             "what is not known is absent");
    json_decref(o);
    outcome.verdict = VERDICT_DEFERRED;
    event.kind = EVENT_DEFERRED;
    event.reason = "greylist";
    event.hint = TEXT("wait");
    event.next_ms = 1750000002000;
    event.sender = TEXT("");
    origin.submitter = TEXT("uid:7");
    o = written(&event);
    snprintf(id, sizeof(id), "%s-3-3d", name);
    has(o, "id", id);
    has(o, "class", "greylist");
    has(o, "hint", "wait");
    has(o, "sender", "");
    has(o, "user", "uid:7");
    has_number(o, "next_ms", 1750000002000);
    json_decref(o);
}

TEST(others)
{
    struct event_client client = {.user = "ann"};
    struct event_origin origin = {.tag = TEXT("t")};
    struct event event = {.kind = EVENT_ACCEPTED,
                          .id = message,
                          .client = &client,
                          .sender = TEXT("s@a"),
                          .message_id = TEXT("<x>"),
                          .origin = &origin,
                          .size = 5,
                          .recipients = 2};
    char name[ID_LENGTH + 1], id[EVENT_ID_MAX];
    id_format(message, name);
    snprintf(id, sizeof(id), "%s-0-0", name);
    json_t *o = written(&event);
    has(o, "id", id);
    has(o, "type", "accepted");
    has(o, "user", "ann");
    has(o, "tag", "t");
    has_number(o, "recipients", 2);
    json_decref(o);
    event.kind = EVENT_SUBMITTED;
    event.client = NULL;
    event.injector = 1000;
    o = written(&event);
    has(o, "type", "accepted");
    has(o, "user", "uid:1000");
    json_decref(o);
    o = written(&(struct event){.kind = EVENT_TROUBLE,
                                .command = TEXT("site_dead"),
                                .relay = TEXT("example.net"),
                                .text = TEXT("is dead"),
                                .hint = TEXT("Look."),
                                .since_ms = 5});
    has(o, "id", "0000000000000abc-7");
    has(o, "type", "trouble");
    has(o, "kind", "site_dead");
    has(o, "subject", "example.net");
    has(o, "hint", "Look.");
    has_number(o, "since_ms", 5);
    ok_named(json_object_get(o, "message") == NULL, "about no message");
    json_decref(o);
    o = written(&(struct event){.kind = EVENT_QUOTA, .relay = TEXT("user:a"), .text = TEXT("x")});
    has(o, "type", "quota");
    has(o, "subject", "user:a");
    json_decref(o);
}

TEST(returns)
{
    struct outcome o = {.verdict = VERDICT_FAILED, .code = 550, .enhanced = "5.1.1", .text = "no"};
    struct event event = {.kind = EVENT_BOUNCED_LATER,
                          .id = message,
                          .other = {.time_ms = 9, .hash = 9},
                          .recipient = TEXT("joe@b"),
                          .sender = TEXT("shop.test"),
                          .command = TEXT("failed"),
                          .reason = "no_user",
                          .relay = TEXT("mx.b"),
                          .attempt = 1,
                          .outcome = &o};
    char name[ID_LENGTH + 1], report[ID_LENGTH + 1], id[EVENT_ID_MAX];
    snprintf(id, sizeof(id), "%s-%s-1", id_format(message, name), id_format(event.other, report));
    json_t *json = written(&event);
    has(json, "id", id);
    has(json, "type", "bounced_later");
    has(json, "message", name);
    has(json, "recipient", "joe@b");
    has(json, "sender_domain", "shop.test");
    has(json, "action", "failed");
    has_number(json, "code", 550);
    has(json, "enhanced", "5.1.1");
    has(json, "class", "no_user");
    has(json, "reporter", "mx.b");
    has(json, "report", report);
    json_decref(json);
    o = (struct outcome){.verdict = VERDICT_FAILED};
    event.kind = EVENT_COMPLAINED;
    event.command = TEXT("abuse");
    json = written(&event);
    has(json, "type", "complained");
    has(json, "feedback", "abuse");
    ok(json_object_get(json, "enhanced") == NULL && json_object_get(json, "code") == NULL);
    json_decref(json);
}

/* Any text of a peer becomes a string of a JSON text in UTF-8, in one line. */
TEST(bytes)
{
    static const struct {
        const char *said, *read;
    } rows[] = {
        {"a\"b\\c", "a\"b\\c"},
        {"a\r\nb\tc\x01\x7f", "a\r\nb\tc\x01\x7f"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"a\xc0\x80z", "a\xef\xbf\xbd\xef\xbf\xbdz"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\"},{\"id\":\"forged\"", "\"},{\"id\":\"forged\""},
    };
    struct outcome outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.0.0", "no");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct text said = text_from(rows[i].said);
        struct event_origin origin = {1, said, said, said, said, said};
        struct event event = {.kind = EVENT_BOUNCED,
                              .id = message,
                              .sender = said,
                              .recipient = said,
                              .reason = rows[i].said,
                              .origin = &origin,
                              .outcome = &outcome};
        text_copy(outcome.text, sizeof(outcome.text), said);
        json_t *o = written(&event);
        has(o, "text", rows[i].read);
        has(o, "recipient", rows[i].read);
        has(o, "tag", rows[i].read);
        json_decref(o);
    }
    struct text nul = text_of("a\0b", 3);
    json_t *o = written(&(struct event){
        .kind = EVENT_BOUNCED, .id = message, .recipient = nul, .outcome = &outcome});
    has(o, "recipient", "a\xef\xbf\xbd" "b");
    json_decref(o);
}

TEST(limit)
{
    struct buffer out;
    buffer_init(&out, 50);
    ok(buffer_add(&out, TEXT("before")));
    ok_named(!event_record_write(&(struct event){.kind = EVENT_TROUBLE, .text = TEXT("x")},
                                 &source, &out),
             "beyond the limit");
    is_number((int64_t)out.length, 6, "unchanged");
    buffer_free(&out);
    /* The largest of all. */
    static char most[4096];
    memset(most, 1, sizeof(most));
    struct text large = text_of(most, sizeof(most));
    struct outcome outcome = {.code = 550};
    memset(outcome.text, 2, sizeof(outcome.text) - 1);
    memset(outcome.remote, 2, sizeof(outcome.remote) - 1);
    struct event_origin origin = {1, text_before(large, 2048), text_before(large, 100),
                                  text_before(large, 255), text_before(large, 128),
                                  text_before(large, 512)};
    struct event event = {.kind = EVENT_BOUNCED,
                          .id = message,
                          .sender = text_before(large, 1000),
                          .recipient = text_before(large, 1000),
                          .tls = text_before(large, 200),
                          .hint = text_before(large, 512),
                          .reason = "x",
                          .origin = &origin,
                          .outcome = &outcome};
    buffer_init(&out, EVENT_RECORD_MAX);
    ok_named(event_record_write(&event, &source, &out), "the largest event fits");
    buffer_free(&out);
}

TEST(kinds)
{
    uint64_t kinds;
    struct text word;
    ok(event_record_kinds(TEXT("delivered, bounced\n accepted"), &kinds, &word));
    ok(kinds == (EVENT_BIT(EVENT_DELIVERED) | EVENT_BIT(EVENT_BOUNCED) |
                 EVENT_BIT(EVENT_ACCEPTED) | EVENT_BIT(EVENT_SUBMITTED)));
    ok((kinds & ~EVENT_RECORD_KINDS) == 0);
    ok(!event_record_kinds(TEXT("delivered, Bounced"), &kinds, &word));
    is_text(word, TEXT("Bounced"), "the word");
    ok(event_record_kinds(TEXT(""), &kinds, &word) && kinds == 0);
}

TEST(not_ours)
{
    static const char *const lines[] = {
        "", "{", "x", "{}", "{\"id\":\"\"}", "{\"id\":\"a\"}", "{\"id\":\"a\",\"time_ms\":}",
        "{\"id\":\"a\",\"time_ms\":12", "{\"id\":\"a,\"time_ms\":12}", "\"id\":\"a\",\"time_ms\":12}",
    };
    char id[EVENT_ID_MAX], large[EVENT_ID_MAX + 40];
    int64_t time_ms;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        ok_named(!event_record_read(text_from(lines[i]), id, &time_ms), lines[i]);
    ok(event_record_read(TEXT("{\"id\":\"a\",\"time_ms\":12}"), id, &time_ms));
    ok_named(!event_record_read(TEXT("{\"id\":\"a\",\"time_ms\":12,\"te\0\0\0xt\":\"b\"}"), id, &time_ms),
             "zeros in the middle: a torn write");
    memset(large, 'a', sizeof(large));
    memcpy(large, "{\"id\":\"", 7);
    memcpy(large + EVENT_ID_MAX + 10, "\",\"time_ms\":12}", 16);
    ok_named(!event_record_read(text_from(large), id, &time_ms), "an id that is too long");
}

/* Numbers at their ends, in any space: all of the event or nothing. */
TEST(space)
{
    struct outcome outcome = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 451, "4.7.1", "a\"b\n");
    struct event_origin origin = {.recipient = UINT32_MAX, .envelope_id = TEXT("x+2By")};
    struct event event = {.kind = EVENT_DEFERRED,
                          .id = message,
                          .sender = TEXT("s@a.example"),
                          .recipient = TEXT("r@b.example"),
                          .dkim = TEXT("a,b"),
                          .size = INT64_MAX,
                          .attempt = UINT32_MAX,
                          .total_ms = -1,
                          .reason = "",
                          .origin = &origin,
                          .outcome = &outcome};
    json_t *o = written(&event);
    has_number(o, "size", INT64_MAX);
    has_number(o, "attempt", (int64_t)UINT32_MAX + 1);
    has_number(o, "delay_ms", -1);
    has(o, "envid", "x+y");
    const char *id = json_string_value(json_object_get(o, "id"));
    ok(id != NULL && strstr(id, "-4294967295-4294967296d") != NULL);
    json_decref(o);

    size_t wrong = 0;
    FIXTURE(buffer, whole, buffer_init, buffer_free, EVENT_RECORD_MAX);
    ok(event_record_write(&event, &source, &whole));
    for (size_t limit = 0; limit <= whole.length; limit++) {
        FIXTURE(buffer, out, buffer_init, buffer_free, limit + 3);
        bool good = buffer_add(&out, TEXT("old"));
        bool fits = event_record_write(&event, &source, &out);
        good = good && fits == (limit == whole.length) &&
               out.length == (fits ? limit + 3 : 3) && memcmp(out.at, "old", 3) == 0;
        wrong += !good;
    }
    is_number((int64_t)wrong, 0, "a buffer that is too small stays as it is");
    buffer_free(&whole);
}