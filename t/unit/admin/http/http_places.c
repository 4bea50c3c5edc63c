/* Proves how `http` and `http_names` are read. */
#include "admin/http/http_places.h"

#include "t/support/tap.h"

TEST(good)
{
    struct http_places p;
    FIXTURE(buffer, errors, buffer_init, buffer_free, 1000);
    ok(http_places_read(TEXT("127.0.0.1:8025, [::1]:8025?access=operate&metrics=no\n"
                             " unix:/run/h?mode=0660&uid=7&uid=8&page=no&access=read "
                             "0.0.0.0:443?tls&page=yes&metrics=yes&access=key"),
                        &p, &errors));
    is_number(p.count, 4, "four places");
    is_number(p.list[0].access, HTTP_MAY_NOTHING, "a key is needed unless told");
    ok(!p.list[0].tls && !p.list[0].no_page && !p.list[0].no_metrics);
    ok(p.list[1].access == HTTP_MAY_OPERATE && p.list[1].no_metrics);
    is_number(p.list[2].users.mode, 0660, "a mode");
    ok(net_users_have(&p.list[2].users, 8) && !net_users_have(&p.list[2].users, 9));
    ok(p.list[2].no_page && p.list[2].access == HTTP_MAY_READ);
    ok(p.list[3].tls && p.list[3].access == HTTP_MAY_NOTHING);
    ok(http_places_read(TEXT(""), &p, &errors) && p.count == 0);
    ok(http_places_read(TEXT("127.0.0.1:0 127.0.0.1:0"), &p, &errors) && p.count == 2);
    is_number(errors.length, 0, "no error");
}

static const struct {
    const char *http, *why;
} wrong[] = {
    {"8025", "'8025': not an address"},
    {"localhost:8025", "not an address"},
    {"127.0.0.1:1?", NULL},
    {"127.0.0.1:1?tsl", "'tsl': unknown option; write tls, page=no, "},
    {"127.0.0.1:1?access=all", "say access="},
    {"0.0.0.0:1?access=read", "only allowed for unix:PATH and loopback"},
    {"[2001:db8::1]:1?access=operate", "only allowed for unix:PATH and loopback"},
    {"0.0.0.0:1?access=key", NULL},
    {"127.0.0.1:1?mode=0660", "only allowed for unix:PATH"},
    {"unix:/h?mode=7777", "the mode of a socket"},
    {"unix:/h unix:/h?page=no", "given twice"},
    {"127.0.0.1:1 127.0.0.1:1", "given twice"},
    {"127.0.0.1:1?access=key&access=operate", "'access=operate': given twice"},
    {"127.0.0.1:1?page=no&metrics=no&page=yes", "'page=yes': given twice"},
    {"127.0.0.1:1?tls&tls", "'tls': given twice"},
    {"unix:/h?mode=0600&uid=5&mode=0666", "'mode=0666': given twice"},
};

TEST(wrong)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct http_places p;
        FIXTURE(buffer, errors, buffer_init, buffer_free, 1000);
        bool good = http_places_read(text_from(wrong[i].http), &p, &errors);
        ok_named(good == (wrong[i].why == NULL), wrong[i].http);
        ok_named(good ? errors.length == 0
                      : memmem(errors.at, errors.length, wrong[i].why,
                               strlen(wrong[i].why)) != NULL,
                 "  says why");
    }
}

/* One more than there is space for. */
TEST(many)
{
    struct http_places p;
    char list[2000] = "";
    FIXTURE(buffer, errors, buffer_init, buffer_free, 1000);
    for (int i = 0; i < HTTP_PLACES_MAX; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "127.0.0.1:%d ", i + 1);
    ok(http_places_read(text_from(list), &p, &errors));
    snprintf(list + strlen(list), sizeof(list) - strlen(list), "127.0.0.1:99");
    ok(!http_places_read(text_from(list), &p, &errors));
}

TEST(names)
{
    FIXTURE(buffer, errors, buffer_init, buffer_free, 1000);
    ok(http_names_check(TEXT(""), &errors));
    ok(http_names_check(TEXT("mail.example.org, a-b_c *"), &errors));
    ok(!http_names_check(TEXT("mail.example.org:443"), &errors));
    ok(!http_names_check(TEXT("https://mail.example.org"), &errors));
    ok(!http_names_check(TEXT("*.example.org"), &errors));
}
