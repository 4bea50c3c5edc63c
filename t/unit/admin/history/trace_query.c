/* The forms of queries, and the lines that meet them. */
#include "admin/history/trace_query.h"
#include "t/support/tap.h"

static const struct {
    const char *query;
    enum trace_query_kind kind;
    const char *text;
} kinds[] = {
    {"01M81JCPWC-QTH5MV7E", TRACE_ID, "01m81jcpwc-qth5mv7e"},
    {"01m81jcpwcqth5mv7e", TRACE_ID, "01m81jcpwcqth5mv7e"},
    {"01M81JCPWC-QTH5MV7U", TRACE_WORDS, "01m81jcpwc-qth5mv7u"},
    {"<Abc@x>", TRACE_BRACKETED, "<abc@x>"},
    {"<>", TRACE_WORDS, "<>"},
    {"A@x.example", TRACE_ADDRESS, "a@x.example"},
    {"@X.example", TRACE_DOMAIN, "@x.example"},
    {"a@", TRACE_WORDS, "a@"},
    {"@", TRACE_WORDS, "@"},
    {"mail to a@x", TRACE_WORDS, "mail to a@x"},
    {"192.0.2.7", TRACE_IP, "192.0.2.7"},
    {"[192.0.2.7]", TRACE_IP, "192.0.2.7"},
    {"::ffff:192.0.2.7", TRACE_IP, "192.0.2.7"},
    {"2001:DB8:0::1", TRACE_IP, "2001:db8::1"},
    {"[IPv6:2001:db8::1]", TRACE_IP, "2001:db8::1"},
    {"192.0.2.777", TRACE_WORDS, "192.0.2.777"},
    {"  Greylisted, try ", TRACE_WORDS, "greylisted, try"},
};

#define LINE                                                                                                        \
    "2026-11-22T12:06:15.184Z smtpd: 01M81JCPWC-QTH5MV7E: event=accepted, client=[192.0.2.7], helo=app, "           \
    "from=<S@x.example>, size=220, message_id=<abc@id.example> (queued)"
#define OUT                                                                                                         \
    "2026-11-22T12:06:15.184Z smtp: 01M81JCPWC-QTH5MV7E: event=deferred, to=<r@y.example>, orig_to=<o@z.example>, " \
    "relay=mx.y.example[2001:db8::1]:25, status=deferred (451 <x@text.example> try later)"

static const struct {
    const char *query, *line;
    bool meets;
} lines[] = {
    {"01M81JCPWC-QTH5MV7E", LINE, true},
    {"01M81JCPWC-QTH5MV7F", LINE, false},
    {"<ABC@id.example>", LINE, true},
    {"<abc@id.exampl>", LINE, false},
    {"<s@x.example>", LINE, true},
    {"s@X.example", LINE, true},
    {"@x.example", LINE, true},
    {"abc@id.example", LINE, false},
    {"@id.example", LINE, false},
    {"@example", LINE, false},
    {"@.example", LINE, false},
    {"x@text.example", OUT, false},
    {"<x@text.example>", OUT, false},
    {"o@z.example", OUT, true},
    {"r@y.example", OUT, true},
    {"192.0.2.7", LINE, true},
    {"92.0.2.7", LINE, false},
    {"192.0.2.70", LINE, false},
    {"2001:db8::1", OUT, true},
    {"2001:db8::", OUT, false},
    {"2001:db8::1", "x: event=refused, client=[IPv6:2001:db8::1]", true},
    {"db8::1", "x: event=refused, client=[IPv6:2001:db8::1]", false},
    {"TRY later", OUT, true},
    {"try  later", OUT, false},
    {"s@x.example", "from=<s@x.example>", false},
};

int
main(void)
{
    struct trace_query q;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        ok_named(trace_query_read(text_from(kinds[i].query), &q) && q.kind == kinds[i].kind, kinds[i].query);
        is_string(q.text, kinds[i].text, "its text");
    }
    static char lengthy[TRACE_QUERY_MAX + 2];
    memset(lengthy, 'x', TRACE_QUERY_MAX + 1);
    ok(!trace_query_read(TEXT(""), &q) && !trace_query_read(TEXT("  "), &q));
    ok(!trace_query_read(text_from(lengthy), &q));
    lengthy[TRACE_QUERY_MAX] = '\0';
    ok(trace_query_read(text_from(lengthy), &q));
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct text line = text_from(lines[i].line);
        struct id id = {0};
        int64_t time_ms;
        (void)!history_line_glance(line, &time_ms, &id);
        ok(trace_query_read(text_from(lines[i].query), &q));
        ok_named(trace_query_matches(&q, id, line) == lines[i].meets, lines[i].query);
    }
    return done();
}
