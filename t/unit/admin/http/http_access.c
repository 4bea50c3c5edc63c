/* Proves each rule that keeps browsers of others out: one request and its answer. */
#include "admin/http/http_access.h"

#include "t/support/tap.h"

static const struct http_names names = {{"h.example.org", 13},
                                        {"mail.example.net, Relay.Example.com", 35},
                                        false};

static unsigned
judge(const char *request, const struct http_names *ours, enum http_area area,
      const char **why)
{
    static const struct http_limits limits = {HTTP_LINES_MAX, 8192, 100};
    struct http_reader reader;
    struct text input = text_from(request);
    http_reader_init(&reader, HTTP_REQUEST, &limits);
    unsigned status = 400;
    if (http_reader_add(&reader, &input) == PROGRESS_DONE) {
        status = http_access_host(&reader, ours, why);
        if (status == 0)
            status = http_access_origin(&reader, ours, reader.target, why);
        if (status == 0)
            status = http_access_fields(&reader, area, why);
    }
    http_reader_free(&reader);
    return status;
}

static const struct {
    const char *host;
    unsigned status;
} hosts[] = {
    {"127.0.0.1", 0},
    {"127.0.0.1:8025", 0},
    {"192.0.2.7:1", 0},
    {"[::1]", 0},
    {"[::1]:8025", 0},
    {"localhost:8025", 0},
    {"LocalHost", 0},
    {"petrel", 0},
    {"petrel:8025", 0},
    {"a.localhost", 0},
    {"box.local", 0},
    {"box.LAN:80", 0},
    {"box.home.arpa", 0},
    {"petrel.mail.svc", 0},
    {"db.internal", 0},
    {"H.Example.ORG", 0},
    {"h.example.org:25", 0},
    {"mail.example.net", 0},
    {"relay.example.com:443", 0},
    {"", 421},
    {":80", 421},
    {"evil.example", 421},
    {"127.0.0.1.evil.example", 421},
    {"127.1", 421},
    {"h.example.org.evil.example", 421},
    {"xh.example.org", 421},
    {"h.example.org.", 421},
    {".local", 421},
    {"evil.example.localx", 421},
    {"local.evil", 421},
    {"[::1", 421},
    {"[]", 421},
    {"[127.0.0.1]", 421},
    {"::1", 421},
    {"a b", 421},
    {"petrel/x", 421},
    {"localhost:x", 421},
    {"localhost:99999", 421},
    {"user@localhost", 421},
    {"*", 421},
};

TEST(hosts)
{
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        char request[300];
        const char *why = "";
        snprintf(request, sizeof(request), "GET /livez HTTP/1.1\r\nHost: %s\r\n\r\n",
                 hosts[i].host);
        is_number(judge(request, &names, HTTP_AREA_OPEN, &why), hosts[i].status,
                  hosts[i].host);
        if (hosts[i].status != 0)
            ok(strstr(why, "http_names") != NULL);
    }
    const char *why = "";
    is_number(judge("GET / HTTP/1.0\r\n\r\n", &names, HTTP_AREA_OPEN, &why), 421,
              "no Host in HTTP/1.0");
    static const struct { const char *host; unsigned status; } open[] = {
        {"127.0.0.1:8025", 0}, {"localhost", 0}, {"a.localhost:80", 0}, {"H.Example.ORG", 0},
        {"mail.example.net", 0}, {"petrel.mail.svc", 0}, {"evil", 421}, {"evil.local:6080", 421}, {"evil.lan", 421},
        {"evil.internal", 421}, {"evil.home.arpa", 421}, {".localhost", 421}, {".svc", 421}};
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        char request[300];
        struct http_names no_key = names;
        no_key.no_key = true;
        snprintf(request, sizeof(request), "GET /livez HTTP/1.1\r\nHost: %s\r\n\r\n", open[i].host);
        is_number(judge(request, &no_key, HTTP_AREA_OPEN, &why), open[i].status, open[i].host);
    }
    struct http_names any = {{"h", 1}, {"*", 1}, false};
    is_number(judge("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", &any, HTTP_AREA_OPEN,
                    &why),
              0, "any name, if told so");
}

#define GET  "GET /api/status HTTP/1.1\r\nHost: box.lan:8025\r\n"
#define POST "POST /api/queue/rm HTTP/1.1\r\nHost: box.lan\r\nContent-Length: 2\r\n"
#define JSON "Content-Type: application/json\r\n"
#define OURS "X-Petrel: 1\r\n"

static const struct {
    const char *name, *request;
    enum http_area area;
    unsigned status;
} rules[] = {
    {"health from a program", GET "\r\n", HTTP_AREA_OPEN, 0},
    {"data without a field of ours", GET "\r\n", HTTP_AREA_DATA, 403},
    {"with it", GET OURS "\r\n", HTTP_AREA_DATA, 0},
    {"with another value", GET "X-Petrel: 2\r\n\r\n", HTTP_AREA_DATA, 403},
    {"with a token", GET "Authorization: bearer abc\r\n\r\n", HTTP_AREA_DATA, 0},
    {"with Basic", GET "Authorization: Basic abc\r\n\r\n", HTTP_AREA_DATA, 403},
    {"our page", GET OURS "Sec-Fetch-Site: same-origin\r\n\r\n", HTTP_AREA_DATA, 0},
    {"another site", GET OURS "Sec-Fetch-Site: cross-site\r\n\r\n", HTTP_AREA_DATA, 403},
    {"the same site", GET OURS "Sec-Fetch-Site: same-site\r\n\r\n", HTTP_AREA_DATA, 403},
    {"typed by the user", GET OURS "Sec-Fetch-Site: none\r\n\r\n", HTTP_AREA_DATA, 403},
    {"another site asks for metrics", GET "Sec-Fetch-Site: cross-site\r\n\r\n",
     HTTP_AREA_OPEN, 403},
    {"a second Sec-Fetch-Site",
     GET OURS "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n\r\n",
     HTTP_AREA_DATA, 403},
    {"the page is opened",
     "GET / HTTP/1.1\r\nHost: box.lan\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: "
     "navigate\r\n\r\n",
     HTTP_AREA_OPEN, 0},
    {"by a link elsewhere",
     "GET / HTTP/1.1\r\nHost: box.lan\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: "
     "navigate\r\n\r\n",
     HTTP_AREA_OPEN, 0},
    {"in no frame or fetch",
     "GET / HTTP/1.1\r\nHost: box.lan\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: "
     "no-cors\r\n\r\n",
     HTTP_AREA_OPEN, 403},
    {"data as a navigation",
     GET OURS "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n\r\n",
     HTTP_AREA_DATA, 403},
    {"our origin", GET OURS "Origin: http://box.lan:8025\r\n\r\n", HTTP_AREA_DATA, 0},
    {"another port is another server", GET OURS "Origin: http://BOX.lan:3000\r\n\r\n", HTTP_AREA_DATA, 403},
    {"another scheme has another port", GET OURS "Origin: https://BOX.lan\r\n\r\n", HTTP_AREA_DATA, 403},
    {"the port of the scheme", "GET /api/status HTTP/1.1\r\nHost: box.lan\r\n" OURS "Origin: https://BOX.lan\r\n\r\n", HTTP_AREA_DATA, 0},
    {"the same, written", "GET /api/status HTTP/1.1\r\nHost: box.lan:80\r\n" OURS "Origin: http://box.lan\r\n\r\n", HTTP_AREA_DATA, 0},
    {"a proxy's name", GET OURS "Origin: https://mail.example.net\r\n\r\n", HTTP_AREA_DATA,
     0},
    {"another origin", GET OURS "Origin: https://evil.example\r\n\r\n", HTTP_AREA_DATA,
     403},
    {"that begins like ours", GET OURS "Origin: http://box.lan.evil.example\r\n\r\n",
     HTTP_AREA_DATA, 403},
    {"our host as a user name", GET OURS "Origin: http://box.lan@evil.example\r\n\r\n",
     HTTP_AREA_DATA, 403},
    {"null", GET OURS "Origin: null\r\n\r\n", HTTP_AREA_DATA, 403},
    {"an empty origin", GET OURS "Origin:\r\n\r\n", HTTP_AREA_DATA, 403},
    {"a second origin",
     GET OURS "Origin: http://box.lan\r\nOrigin: http://evil.example\r\n\r\n",
     HTTP_AREA_DATA, 403},
    {"an action", POST JSON OURS "\r\n{}", HTTP_AREA_DATA, 0},
    {"with a charset",
     POST "Content-Type: Application/JSON ; charset=utf-8\r\n" OURS "\r\n{}",
     HTTP_AREA_DATA, 0},
    {"as a form can send it", POST "Content-Type: text/plain\r\n" OURS "\r\n{}",
     HTTP_AREA_DATA, 415},
    {"as a form sends it",
     POST "Content-Type: application/x-www-form-urlencoded\r\n" OURS "\r\na=", HTTP_AREA_DATA,
     415},
    {"without a type", POST OURS "\r\n{}", HTTP_AREA_DATA, 415},
    {"DELETE without one",
     "DELETE /api/session HTTP/1.1\r\nHost: box.lan\r\n" OURS "\r\n", HTTP_AREA_DATA, 415},
    {"an action without a field of ours", POST JSON "\r\n{}", HTTP_AREA_DATA, 403},
};

TEST(rules)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        const char *why = "";
        unsigned status = judge(rules[i].request, &names, rules[i].area, &why);
        is_number(status, rules[i].status, rules[i].name);
        ok_named(status == 0 || why[0] != '\0', "  a sentence");
    }
}

/* "*" lets proxies use any name; it does not let any page act. */
TEST(any_name)
{
    static const struct { const char *host; unsigned status; } open[] = {
        {"127.0.0.1:8025", 0}, {"localhost", 0}, {"a.localhost:80", 0}, {"H.Example.ORG", 0},
        {"mail.example.net", 0}, {"petrel.mail.svc", 0}, {"evil", 421}, {"evil.local:6080", 421}, {"evil.lan", 421},
        {"evil.internal", 421}, {"evil.home.arpa", 421}, {".localhost", 421}, {".svc", 421}};
    for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
        char request[300];
        const char *why = "";
        struct http_names no_key = names;
        no_key.no_key = true;
        snprintf(request, sizeof(request), "GET /livez HTTP/1.1\r\nHost: %s\r\n\r\n", open[i].host);
        is_number(judge(request, &no_key, HTTP_AREA_OPEN, &why), open[i].status, open[i].host);
    }
    struct http_names any = {{"h", 1}, {"*", 1}, false};
    const char *why = "";
    is_number(judge(GET OURS "Origin: https://evil.example\r\n\r\n", &any, HTTP_AREA_DATA,
                    &why),
              403, "another origin where any host name is taken");
}

TEST(cookies)
{
    static const struct http_limits limits = {HTTP_LINES_MAX, 8192, 100};
    struct text input = TEXT(GET "Cookie: a=b; xpetrel=no;petrel\r\n"
                                 "Cookie: petrel=the=key; petrel=second\r\n\r\n");
    FIXTURE(http_reader, reader, http_reader_init, http_reader_free, HTTP_REQUEST, &limits);
    ok(http_reader_add(&reader, &input) == PROGRESS_DONE);
    is_text(http_access_cookie(&reader, TEXT("petrel")), TEXT("the=key"), "the first");
    is_text(http_access_cookie(&reader, TEXT("a")), TEXT("b"), "another");
    ok(http_access_cookie(&reader, TEXT("c")).at == NULL);
    ok(http_access_bearer(&reader).at == NULL);
}
