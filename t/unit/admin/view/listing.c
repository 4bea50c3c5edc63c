/* Listings: the object, its line and its page; hostile addresses; with and without the
 * daemon's word. */
#include "admin/view/listing.h"

#include "t/support/printed.h"
#include "t/support/tap.h"

#define NOW (INT64_C(1700000000) * 1000)

static struct envelope *
make_envelope(void)
{
    struct envelope *e = envelope_new();
    if (!id_parse(TEXT("01JD3ZK5Q8-9F3K2C7A"), &e->id))
        abort();
    e->birth_ms = NOW - 90 * 60000;
    e->sender = envelope_text(e, TEXT("a@a.test"));
    e->prefix = envelope_text(e, TEXT("Received: x\r\n"));
    e->content_size = 1000;
    e->delivery.due_ms = NOW + 300000;
    e->delivery.attempts = 2;
    if (!envelope_add(e, TEXT("b@b.test"), 0, TEXT("")) ||
        !envelope_add(e, TEXT("c@c.test"), 0, TEXT("")))
        abort();
    return e;
}

static const char *
string_at(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "(none)";
}

static json_t *
recipient_at(const json_t *listing, size_t index)
{
    return json_array_get(json_object_get(listing, "recipients"), index);
}

/* The output of a call. */
static const char *
printed(void (*print)(const json_t *, int64_t), const json_t *listing)
{
    static struct printed p;
    printed_begin(&p);
    print(listing, NOW);
    return printed_end(&p);
}

TEST(object)
{
    struct envelope *e = make_envelope();
    json_t *l = listing_make(e, "incoming", NULL);
    is_string(string_at(l, "queue_name"), "incoming", "queue_name");
    is_string(string_at(l, "queue_id"), "01JD3ZK5Q8-9F3K2C7A", "queue_id");
    is_number(json_integer_value(json_object_get(l, "arrival_time")), 1700000000 - 5400,
              "arrival_time");
    is_number(json_integer_value(json_object_get(l, "message_size")), 1013,
              "message_size with what we put before it");
    ok(json_is_false(json_object_get(l, "forced_expire")));
    is_string(string_at(l, "sender"), "a@a.test", "sender");
    is_number(json_array_size(json_object_get(l, "recipients")), 2, "recipients");
    is_string(string_at(recipient_at(l, 1), "address"), "c@c.test", "address");
    is_string(string_at(recipient_at(l, 1), "delay_reason"), "(none)", "no reason");
    is_number(json_integer_value(json_object_get(l, "attempts")), 2, "attempts");
    is_number(json_integer_value(json_object_get(l, "due_time")), 1700000300,
              "due_time");
    ok_named(json_object_get(l, "mt_priority") == NULL, "no priority");
    json_decref(l);
    envelope_free(&e);
}

TEST(released_later)
{
    struct envelope *e = make_envelope();
    envelope_release_at(e, NOW + 86400000, TEXT("for;86400"));
    json_t *l = listing_make(e, "deferred", NULL);
    is_string(string_at(recipient_at(l, 0), "delay_reason"), "released at 2023-11-15T22:13:20Z, as its sender asked",
              "also when the daemon has forgotten why");
    json_decref(l);
    e->delivery.due_ms = NOW + 86400001;
    l = listing_make(e, "deferred", NULL);
    is_string(string_at(recipient_at(l, 0), "delay_reason"), "(none)", "not behind an attempt");
    json_decref(l);
    envelope_free(&e);
}

TEST(state)
{
    struct envelope *e = make_envelope();
    e->recipients[0].done = true;
    json_t *state =
        json_pack("{s:s,s:I,s:i,s:[s,s]}", "place", "deferred", "due_ms",
                  (json_int_t)(NOW + 60000), "attempts", 5, "reasons", "one", "two");
    json_t *l = listing_make(e, "", state);
    is_string(string_at(l, "queue_name"), "deferred", "the daemon's word");
    is_number(json_integer_value(json_object_get(l, "attempts")), 5, "its attempts");
    is_number(json_integer_value(json_object_get(l, "due_time")), 1700000060,
              "its time");
    is_string(string_at(recipient_at(l, 1), "delay_reason"), "two", "its reason");
    is_string(string_at(recipient_at(l, 0), "delay_reason"), "(none)",
              "who has it waits for nothing");
    ok(json_is_true(json_object_get(recipient_at(l, 0), "done")));
    json_decref(l);
    json_decref(state);

    state = json_pack("{s:s,s:[s]}", "place", "deferred", "reasons",
                      "host mx.test[192.0.2.1] said: 450 4.7.25 no PTR record (in reply "
                      "to RCPT TO command)");
    l = listing_make(e, "", state);
    is_string(string_at(recipient_at(l, 1), "class"), "ptr", "what the reply is about");
    ok_named(strstr(string_at(recipient_at(l, 1), "hint"), "needs a PTR record") != NULL,
             "and what to do");
    is_string(string_at(recipient_at(l, 0), "hint"), "(none)", "not for one that is done");
    json_decref(l);
    json_decref(state);

    state = json_pack("{s:s,s:[s]}", "place", "unknown", "reasons", "one for all");
    l = listing_make(e, "hold", state);
    is_string(string_at(l, "queue_name"), "hold", "the disk's word");
    is_number(json_integer_value(json_object_get(l, "attempts")), 2, "its attempts");
    is_string(string_at(recipient_at(l, 1), "delay_reason"), "one for all",
              "one reason is everybody's");
    json_decref(l);
    json_decref(state);
    envelope_free(&e);
}

TEST(print)
{
    struct envelope *e = make_envelope();
    json_t *l = listing_make(e, "incoming", NULL);
    is_string(
        printed(listing_print_line, l),
        "01JD3ZK5Q8-9F3K2C7A incoming   90m     1013 <a@a.test> -> <b@b.test> and 1 "
        "more\n",
        "a line");
    json_decref(l);
    json_t *state =
        json_pack("{s:s,s:I,s:i,s:[s,s]}", "place", "deferred", "due_ms",
                  (json_int_t)(NOW + 60000), "attempts", 5, "reasons", "", "two");
    e->recipients[0].done = true;
    e->envelope_id = envelope_text(e, TEXT("QQ+2Bx"));
    e->priority = -4;
    l = listing_make(e, "", state);
    is_number(json_integer_value(json_object_get(l, "mt_priority")), -4, "mt_priority");
    is_string(
        printed(listing_print_line, l),
        "01JD3ZK5Q8-9F3K2C7A deferred   90m     1013 <a@a.test> -> <b@b.test> and 1 "
        "more; next attempt in 60s (two)\n",
        "a line of a deferred one");
    is_string(
        printed(listing_print_page, l),
        "id:       01JD3ZK5Q8-9F3K2C7A\nqueue:    deferred\nfrom:     <a@a.test>\n"
        "size:     1013 bytes\narrived:  90m ago\nattempts: 5\nnext:     in 60s\n"
        "envid:    QQ+2Bx\npriority: -4\nto:       <b@b.test> done\n"
        "to:       <c@c.test> waiting (two)\n",
        "a page");
    json_decref(l);
    json_decref(state);
    envelope_free(&e);
}

TEST(ages)
{
    static const struct {
        int64_t seconds;
        const char *want;
    } ages[] = {
        {0,      "    0s "},
        {119,    "  119s "},
        {120,    "    2m "},
        {7199,   "  119m "},
        {7200,   "    2h "},
        {172799, "   47h "},
        {172800, "    2d "},
        {-5,     "    0s "}
    };
    for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
        struct envelope *e = make_envelope();
        e->birth_ms = NOW - ages[i].seconds * 1000;
        json_t *l = listing_make(e, "hold", NULL);
        ok_named(strstr(printed(listing_print_line, l), ages[i].want) != NULL,
                 ages[i].want);
        json_decref(l);
        envelope_free(&e);
    }
}

/* Nothing that a peer chose reaches the terminal, or breaks the JSON. */
TEST(hostile)
{
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, TEXT("\"\x1b[2J\n\xff\"@a.test"));
    if (!envelope_add(e, TEXT("\"\r\x07\xc2\x85\"@b.test"), 0, TEXT("")))
        abort();
    json_t *l = listing_make(e, "hold", NULL);
    is_string(string_at(l, "sender"), "\"\\x1b[2J\\x0a\\xff\"@a.test", "escaped");
    char *json = json_dumps(l, JSON_COMPACT);
    ok(json && !text_has_control(text_from(json)));
    free(json);
    const char *line = printed(listing_print_line, l);
    ok(!text_has_control(text_of(line, strlen(line) - 1)));
    json_decref(l);
    e->count = 0; /* damaged on purpose: no recipient at all */
    l = listing_make(e, "hold", NULL);
    ok(strstr(printed(listing_print_line, l), "-> <>") != NULL);
    json_decref(l);
    envelope_free(&e);
}
