/* Each status of a web application has its outcome; a response that is cut, or an application that is not there, too. */
#include "queue/poster/poster_reply.h"

#include "sched/limits/reply_class.h"
#include "t/support/tap.h"

#include <string.h>

#define NOW_MS INT64_C(1750000000000) /* Sun, 15 Jun 2025 15:06:40 GMT */

struct judged {
    struct http_reader reader;
    struct net_address peer;
    struct target target;
    struct http_result result;
};

static void
judged_begin(struct judged *j, const char *response)
{
    struct text input = text_from(response);
    memset(j, 0, sizeof(*j));
    http_reader_init(&j->reader, HTTP_RESPONSE, &(struct http_limits){HTTP_LINES_MAX, HTTP_HEAD_MAX, 1000});
    (void)!http_reader_add(&j->reader, &input);
    text_copy(j->target.host, sizeof(j->target.host), TEXT("app.example"));
    j->target.port = 443;
    ok(net_address_parse(TEXT("192.0.2.7:443"), 0, &j->peer));
    j->result = (struct http_result){.head = j->reader.has_head ? &j->reader : NULL, .peer = &j->peer, .connected = true, .tried = true};
}

static void
judged_end(struct judged *j)
{
    http_reader_free(&j->reader);
}

static struct outcome
judge(const char *response)
{
    FIXTURE(judged, j, judged_begin, judged_end, response);
    return poster_reply_judge(&j.target, &j.result, NOW_MS);
}

TEST(statuses)
{
    static const struct {
        const char *status;
        enum verdict verdict;
        enum blame blame;
        int code;
        const char *enhanced;
    } rows[] = {
        {"200", VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0"},
        {"202", VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0"},
        {"204", VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0"},
        {"299", VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0"},
        {"301", VERDICT_DEFERRED, BLAME_SITE, 451, "4.3.5"},
        {"307", VERDICT_DEFERRED, BLAME_SITE, 451, "4.3.5"},
        {"400", VERDICT_FAILED, BLAME_MESSAGE, 554, "5.6.0"},
        {"401", VERDICT_DEFERRED, BLAME_SITE, 454, "4.7.8"},
        {"403", VERDICT_FAILED, BLAME_MESSAGE, 550, "5.7.1"},
        {"404", VERDICT_FAILED, BLAME_MESSAGE, 554, "5.3.0"},
        {"408", VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.4.2"},
        {"410", VERDICT_FAILED, BLAME_MESSAGE, 554, "5.3.0"},
        {"413", VERDICT_FAILED, BLAME_MESSAGE, 552, "5.3.4"},
        {"422", VERDICT_FAILED, BLAME_MESSAGE, 554, "5.6.0"},
        {"425", VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0"},
        {"429", VERDICT_DEFERRED, BLAME_SITE, 450, "4.7.28"},
        {"499", VERDICT_FAILED, BLAME_MESSAGE, 554, "5.3.0"},
        {"500", VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0"},
        {"501", VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0"},
        {"502", VERDICT_DEFERRED, BLAME_SITE, 421, "4.3.2"},
        {"503", VERDICT_DEFERRED, BLAME_SITE, 421, "4.3.2"},
        {"504", VERDICT_DEFERRED, BLAME_SITE, 421, "4.3.2"},
        {"507", VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0"},
        {"599", VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char response[200];
        snprintf(response, sizeof(response), "HTTP/1.1 %s x\r\nContent-Length: 0\r\n\r\n", rows[i].status);
        struct outcome o = judge(response);
        is_number(o.verdict, rows[i].verdict, rows[i].status);
        is_number(o.blame, rows[i].blame, "  blame");
        is_number(o.code, rows[i].code, "  code");
        is_string(o.enhanced, rows[i].enhanced, "  enhanced code");
        is_string(o.remote, "app.example[192.0.2.7]:443", "  where");
    }
}

/* One line of the page, and no more. */
TEST(pages)
{
    struct outcome o = judge("HTTP/1.1 422 x\r\nContent-Length: 23\r\n\r\n  no\r\n\tsuch\x01 box\xff \x00");
    is_string(o.text, "host app.example[192.0.2.7] said: HTTP 422: no such? box? (in reply to POST)", "a page");
    char response[1000] = "HTTP/1.1 500 x\r\nContent-Length: 950\r\n\r\n";
    memset(response + strlen(response), 'y', 900);
    o = judge(response);
    is_number(o.code, 451, "the status counts, although the page is cut");
    ok_named(strlen(o.text) < 330 && text_ends_nocase(text_from(o.text), TEXT("y (in reply to POST)")), "the start of it");
    o = judge("HTTP/1.1 302 x\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nno");
    is_string(o.text, "host app.example[192.0.2.7] said: HTTP 302: redirects are not followed (in reply to POST)", "a redirect");
}

TEST(retry_after)
{
    static const struct {
        const char *status, *after;
        int64_t wait_s; /* 0: as without it */
        bool is_rate;
    } rows[] = {
        {"429", "120", 120, true},  {"503", "120", 120, true}, {"500", "120", 120, true},
        {"503", "1", 60, true},     {"429", "99999", 3600, true},
        {"429", "Sun, 15 Jun 2025 15:16:40 GMT", 600, true}, {"429", "soon", 0, true},
        {"503", "Sun, 15 Jun 2025 15:00:00 GMT", 0, false},
        {"503", "-5", 0, false},    {"401", "300", 300, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char response[200];
        snprintf(response, sizeof(response), "HTTP/1.1 %s x\r\nRetry-After: %s\r\nContent-Length: 18\r\n\r\n  in 7000 seconds.",
                 rows[i].status, rows[i].after);
        struct outcome o = judge(response);
        enum reply_class_class class = reply_class_classify(&o);
        ok_named((class == REPLY_CLASS_RATE) == rows[i].is_rate, rows[i].after);
        if (rows[i].wait_s > 0)
            is_number(reply_class_delay_ms(class, &o, 0, 300 * 1000, 4000 * 1000), rows[i].wait_s * 1000, rows[i].status);
    }
    struct outcome o = judge("HTTP/1.1 404 x\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n");
    ok_named(o.verdict == VERDICT_FAILED && o.code == 554, "a failure stays one");
}

/* Nothing is taken before the whole message was sent. */
TEST(early)
{
    FIXTURE(judged, j, judged_begin, judged_end, "HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n");
    j.result.is_early = true;
    struct outcome o = poster_reply_judge(&j.target, &j.result, NOW_MS);
    ok(o.verdict == VERDICT_DEFERRED && o.blame == BLAME_MESSAGE);
    FIXTURE(judged, large, judged_begin, judged_end, "HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n");
    large.result.is_early = true;
    o = poster_reply_judge(&large.target, &large.result, NOW_MS);
    ok_named(o.verdict == VERDICT_FAILED, "a refusal may come earlier");
}

TEST(failures)
{
    static const struct {
        bool tried, connected, refused;
        enum blame blame;
        const char *enhanced;
    } rows[] = {{false, false, false, BLAME_SITE, "4.4.3"},
                {true, false, false, BLAME_SITE, "4.4.1"},
                {true, true, false, BLAME_SITE, "4.4.2"},
                {false, false, true, BLAME_MESSAGE, "4.3.2"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        FIXTURE(judged, j, judged_begin, judged_end, "");
        j.result = (struct http_result){.error = "app.example: TLS: the certificate has expired", .tried = rows[i].tried,
                                        .connected = rows[i].connected, .refused = rows[i].refused};
        struct outcome o = poster_reply_judge(&j.target, &j.result, NOW_MS);
        ok(o.verdict == VERDICT_DEFERRED && o.blame == rows[i].blame && o.code == 0);
        is_string(o.enhanced, rows[i].enhanced, "enhanced code");
        ok(strstr(o.text, "app.example: TLS: the certificate has expired") != NULL);
    }
}
