/* Proves that a key opens one session, that sessions end, and that tokens are told
 * apart. */
#include "admin/http/http_keys.h"

/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/tap.h"

static struct loop *loop;

static void
pass(int64_t ms)
{
    clock_pass(ms);
    loop_turn(loop, 0);
}

TEST(key)
{
    struct http_keys *k = http_keys_new(loop);
    char key[HTTP_SECRET_SIZE], other[HTTP_SECRET_SIZE], cookie[HTTP_SECRET_SIZE] = "";
    http_keys_make(k, HTTP_MAY_OPERATE, key);
    http_keys_make(k, HTTP_MAY_READ, other);
    is_number(strlen(key), 22, "128 bits");
    ok(strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == 22);
    ok(strcmp(key, other) != 0);
    ok(http_keys_open(k, TEXT(""), cookie) == HTTP_MAY_NOTHING);
    ok(http_keys_open(k, text_of(key, 21), cookie) == HTTP_MAY_NOTHING);
    ok(http_keys_session(k, text_from(key)) == HTTP_MAY_NOTHING);
    ok(http_keys_open(k, text_from(key), cookie) == HTTP_MAY_OPERATE);
    ok(http_keys_open(k, text_from(key), cookie) == HTTP_MAY_NOTHING);
    ok_named(http_keys_session(k, text_from(cookie)) == HTTP_MAY_OPERATE, "a session");
    ok(http_keys_open(k, text_from(cookie), cookie) == HTTP_MAY_NOTHING);
    http_keys_close(k, TEXT("something"));
    ok(http_keys_session(k, text_from(cookie)) == HTTP_MAY_OPERATE);
    http_keys_close(k, text_from(cookie));
    ok_named(http_keys_session(k, text_from(cookie)) == HTTP_MAY_NOTHING, "it is closed");
    ok(http_keys_open(k, text_from(other), cookie) == HTTP_MAY_READ);
    ok(http_keys_session(k, text_from(cookie)) == HTTP_MAY_READ);
    http_keys_free(&k);
}

TEST(time)
{
    struct http_keys *k = http_keys_new(loop);
    char key[HTTP_SECRET_SIZE], cookie[HTTP_SECRET_SIZE] = "";
    http_keys_make(k, HTTP_MAY_READ, key);
    pass(HTTP_KEY_MS);
    ok(http_keys_open(k, text_from(key), cookie) == HTTP_MAY_NOTHING);
    http_keys_make(k, HTTP_MAY_READ, key);
    pass(HTTP_KEY_MS - 1);
    ok(http_keys_open(k, text_from(key), cookie) == HTTP_MAY_READ);
    for (int i = 0; i < 3; i++) {
        pass(HTTP_SESSION_IDLE_MS - 1);
        ok_named(http_keys_session(k, text_from(cookie)) == HTTP_MAY_READ,
                 "a session that is used stays");
    }
    pass(HTTP_SESSION_IDLE_MS);
    ok(http_keys_session(k, text_from(cookie)) == HTTP_MAY_NOTHING);
    http_keys_free(&k);
}

TEST(limits)
{
    struct http_keys *k = http_keys_new(loop);
    static char keys[HTTP_SESSIONS_MAX + 1][HTTP_SECRET_SIZE],
        cookies[HTTP_SESSIONS_MAX + 1][HTTP_SECRET_SIZE];
    for (int i = 0; i <= HTTP_KEYS_MAX; i++) {
        pass(1);
        http_keys_make(k, HTTP_MAY_READ, keys[i]);
    }
    ok_named(http_keys_open(k, text_from(keys[0]), cookies[0]) == HTTP_MAY_NOTHING,
             "the oldest key is dropped");
    for (int i = 1; i <= HTTP_KEYS_MAX; i++)
        ok(http_keys_open(k, text_from(keys[i]), cookies[0]) == HTTP_MAY_READ);
    http_keys_free(&k);
    k = http_keys_new(loop);
    for (int i = 0; i <= HTTP_SESSIONS_MAX; i++) {
        pass(1);
        http_keys_make(k, HTTP_MAY_READ, keys[i]);
        ok(http_keys_open(k, text_from(keys[i]), cookies[i]) == HTTP_MAY_READ);
        if (i == 5)
            ok(http_keys_session(k, text_from(cookies[0])) == HTTP_MAY_READ);
    }
    ok_named(http_keys_session(k, text_from(cookies[0])) == HTTP_MAY_READ, "used later");
    ok_named(http_keys_session(k, text_from(cookies[1])) == HTTP_MAY_NOTHING,
             "the session that was idle longest is dropped");
    http_keys_free(&k);
}

TEST(tokens)
{
    struct http_keys *k = http_keys_new(loop);
    ok_named(http_keys_token(k, TEXT("")) == HTTP_MAY_NOTHING, "no token is set");
    http_keys_set_tokens(k, TEXT(""), TEXT(""));
    ok(http_keys_token(k, TEXT("")) == HTTP_MAY_NOTHING);
    http_keys_set_tokens(k, TEXT("operate-operate-"), TEXT("read-read-read-r"));
    ok(http_keys_token(k, TEXT("operate-operate-")) == HTTP_MAY_OPERATE);
    ok(http_keys_token(k, TEXT("read-read-read-r")) == HTTP_MAY_READ);
    ok(http_keys_token(k, TEXT("operate-operate")) == HTTP_MAY_NOTHING);
    ok(http_keys_token(k, TEXT("Operate-operate-")) == HTTP_MAY_NOTHING);
    ok(http_keys_token(k, TEXT("")) == HTTP_MAY_NOTHING);
    http_keys_set_tokens(k, TEXT("one-one-one-one-"), TEXT("one-one-one-one-"));
    ok_named(http_keys_token(k, TEXT("one-one-one-one-")) == HTTP_MAY_OPERATE,
             "the same token for both");
    ok_named(http_keys_token(k, TEXT("operate-operate-")) == HTTP_MAY_NOTHING,
             "an old one is over with the reload");
    http_keys_free(&k);
}

int
main(void)
{
    loop = loop_new();
    clock_stop();
    pass(1);
    tap_tests("");
    loop_free(&loop);
    return done();
}
