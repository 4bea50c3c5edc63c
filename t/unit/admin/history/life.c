/* A life from its lines: members, and what the events come to. */
#include "admin/history/life.h"
#include "t/support/tap.h"

#define ID   "01M81JCPWC-QTH5MV7E"
#define AT   "2026-11-22T12:06:15.184Z "
#define BORN AT "smtpd: " ID ": event=accepted, client=[IPv6:2001:db8::1], helo=app, from=<s@x>, size=220, nrcpt=2, " \
             "proto=ESMTPSA, tls=TLSv1.3, sasl_method=PLAIN, sasl_username=alice, message_id=<m@x> (queued)\n"
#define SENT(to) AT "smtp: " ID ": event=delivered, to=<" to ">, relay=mx[192.0.2.9]:25, delay=1.05, " \
                 "delays=0.01/0.2/1/0.02, dsn=2.0.0, status=sent (250 2.0.0 Ok)\n"
#define DEFER(to) AT "smtp: " ID ": event=deferred, to=<" to ">, relay=none, delay=1.05, dsn=4.7.1, status=deferred " \
                  "(host mx[192.0.2.9] said: 451 4.7.1 Greylisted (in reply to RCPT TO command))\n"
#define FAIL(to) AT "smtp: " ID ": event=bounced, to=<" to ">, relay=none, class=auth, dsn=5.7.26, status=bounced " \
                 "(host mx.example[192.0.2.9] said: 550 5.7.26 This mail has been blocked because the sender is " \
                 "unauthenticated. (in reply to end of DATA command))\n"
#define LATE(to) AT "smtp: " ID ": event=expired, to=<" to ">, relay=none, dsn=4.4.7, status=expired (too old)\n"
#define HELD     AT "queue: " ID ": event=held (held by alice)\n"
#define FREE     AT "queue: " ID ": event=released (released by alice)\n"
#define GONE     AT "queue: " ID ": event=removed (removed by the operator)\n"
#define PART     AT "defrag: " ID ": event=fragment, set=x, status=reassembled\n"
#define LEFT     AT "queue: " ID ": event=given, to=relay2, as=01M81JCPWD-QTH5MV7E, attempts=3, due=1795435200, status=given\n"
#define END      AT "queue: " ID ": event=ended\n"

static json_t *
life_of(const char *lines)
{
    struct id id = {0};
    ok(id_parse(TEXT(ID), &id));
    return life_make(id, text_from(lines), 0);
}

static void
is_state(const char *lines, const char *state)
{
    json_t *life = life_of(lines);
    is_string(json_string_value(json_object_get(life, "state")), state, lines);
    json_decref(life);
}

static void
is_json(const json_t *value, const char *want, const char *name)
{
    char *got = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    is_string(got, want, name);
    free(got);
}

TEST(states)
{
    is_state(BORN, "waiting");
    is_state(BORN SENT("a") SENT("b") END, "delivered");
    is_state(BORN SENT("a") SENT("b"), "delivered");
    is_state(BORN SENT("a"), "partly");
    is_state(BORN SENT("a") DEFER("b"), "partly");
    is_state(BORN DEFER("a") DEFER("b"), "waiting");
    is_state(BORN DEFER("a") DEFER("b") SENT("a") SENT("b") END, "delivered");
    is_state(BORN SENT("a") FAIL("b") END, "partly");
    is_state(BORN FAIL("a") FAIL("b") END, "bounced");
    is_state(BORN LATE("a") LATE("b") END, "expired");
    is_state(BORN HELD, "held");
    is_state(BORN DEFER("a") HELD FREE, "waiting");
    is_state(BORN HELD GONE, "removed");
    is_state(BORN HELD FREE SENT("a") SENT("b") END, "delivered");
    is_state(BORN PART END, "given");
    is_state(BORN SENT("a") DEFER("b") LEFT END, "given");
    is_state(BORN PART, "waiting");
    is_state(SENT("a") END, "delivered");
    is_state("", "waiting");
    is_state("garbage\n\n", "waiting");
}

TEST(members)
{
    json_t *life = life_of(BORN SENT("a") FAIL("b") "2026-11-22T12:0\n" END);
    json_t *events = json_incref(json_object_get(life, "events"));
    json_object_del(life, "events");
    is_json(life,
            "{\"ended\":true,\"id\":\"" ID "\",\"message_id\":\"<m@x>\",\"recipients\":2,\"sender\":\"s@x\",\"size\":220,"
            "\"state\":\"partly\",\"time_ms\":1795349175184}",
            "the message");
    is_number(json_array_size(events), 4, "its events, without a torn line");
    is_json(json_array_get(events, 0),
            "{\"client\":\"2001:db8::1\",\"helo\":\"app\",\"mechanism\":\"PLAIN\",\"message_id\":\"<m@x>\",\"protocol\":"
            "\"ESMTPSA\",\"recipients\":2,\"sender\":\"s@x\",\"size\":220,\"text\":\"queued\",\"time_ms\":1795349175184,"
            "\"tls\":\"TLSv1.3\",\"type\":\"accepted\",\"user\":\"alice\"}",
            "accepted");
    is_json(json_array_get(events, 1),
            "{\"code\":250,\"delay_ms\":1050,\"delays_ms\":[10,200,1000,20],\"enhanced\":\"2.0.0\",\"recipient\":\"a\","
            "\"relay\":\"mx[192.0.2.9]:25\",\"status\":\"sent\",\"text\":\"250 2.0.0 Ok\",\"time_ms\":1795349175184,"
            "\"type\":\"delivered\"}",
            "delivered");
    const json_t *failed = json_array_get(events, 2);
    is_json(json_object_get(failed, "code"), "550", "the reply's code");
    is_json(json_object_get(failed, "class"), "\"auth\"", "its class");
    ok_named(strstr(json_string_value(json_object_get(failed, "hint")), "SPF") != NULL, "a hint");
    ok(life_ends(json_array_get(events, 3)) && !life_ends(failed));
    json_decref(events);
    json_decref(life);
}

TEST(alone)
{
    json_t *life = life_make((struct id){0},
                             TEXT(AT "smtpd: event=refused, refused=554 5.7.1, client=unix, helo=x, to=<n@x>, command=RCPT "
                                     "(relay access denied)\n"),
                             0);
    is_json(life,
            "{\"ended\":false,\"events\":[{\"client\":\"unix\",\"code\":554,\"command\":\"RCPT\",\"enhanced\":\"5.7.1\","
            "\"helo\":\"x\",\"recipient\":\"n@x\",\"text\":\"relay access denied\",\"time_ms\":1795349175184,\"type\":"
            "\"refused\"}],\"id\":null,\"state\":\"refused\",\"time_ms\":1795349175184}",
            "a refusal");
    json_decref(life);
    life = life_make((struct id){0}, TEXT(AT "main: event=trouble, code=disk (full)\n"), 7);
    is_json(life,
            "{\"ended\":false,\"events\":[{\"code\":\"disk\",\"text\":\"full\",\"time_ms\":1795349175184,\"type\":"
            "\"trouble\"}],\"id\":null,\"more\":7,\"state\":\"trouble\",\"time_ms\":1795349175184}",
            "a finding; events left out");
    json_decref(life);
    json_t *event = life_event(TEXT(AT "x: event=a\xff\x1b[2J, size=x, delay=1, delays=1/2.x, \xe9=1, refused= (\xff)"));
    ok(event != NULL && json_dumpb(event, NULL, 0, 0) > 0);
    is_json(json_object_get(event, "type"), "\"a\\\\xff\\\\x1b[2J\"", "foreign bytes are escaped");
    json_decref(event);
    ok(life_event(TEXT("nothing")) == NULL);
}
