/* Signatures of webhooks: the example of the standard, secrets, bodies in pieces. */
#include "base/crypto/webhook.h"

#include "t/support/tap.h"

/* The example of the standard's libraries: its secret, id, time and payload. */
TEST(signature)
{
    struct webhook_key keys[WEBHOOK_SECRETS_MAX];
    FIXTURE(buffer, out, buffer_init, buffer_free, 4096);
    is_number((long)webhook_keys(TEXT("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), keys), 1,
              "a secret");
    is_number((long)keys[0].length, 24, "of 24 octets");
    ok(webhook_fields("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, TEXT("{\"test\": 2432232314}"),
                         keys, 1, &out));
    is_text(buffer_text(&out),
            TEXT("webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\nwebhook-timestamp: 1614265330\r\n"
                 "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\r\n"),
            "the signature of the standard's example");
    buffer_clear(&out);
    ok(webhook_fields("a", 1, TEXT("{}"), keys, 0, &out));
    is_text(buffer_text(&out), TEXT("webhook-id: a\r\nwebhook-timestamp: 1\r\n"), "no secret: unsigned");
}

TEST(secrets)
{
    struct webhook_key keys[WEBHOOK_SECRETS_MAX];
    ok(!webhook_is_secret(TEXT("")) && !webhook_is_secret(TEXT("23 octets are too few..")));
    ok(webhook_is_secret(TEXT("24-octets-are-just-right")));
    ok(!webhook_is_secret(TEXT("whsec_")) && !webhook_is_secret(TEXT("whsec_AAAA")));
    ok(!webhook_is_secret(TEXT("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa!!")));
    static const char many[] = "a-secret-of-24-octets-00 a-secret-of-24-octets-01 a-secret-of-24-octets-02 "
                               "a-secret-of-24-octets-03 a-secret-of-24-octets-04,a-secret-of-24-octets-05 "
                               "a-secret-of-24-octets-06 a-secret-of-24-octets-07 a-secret-of-24-octets-08";
    is_number((long)webhook_keys(text_from(many), keys), WEBHOOK_SECRETS_MAX, "eight at most");
}

/* A body in pieces has the signature of the whole, with each of two secrets. */
TEST(pieces)
{
    struct webhook_key keys[WEBHOOK_SECRETS_MAX];
    FIXTURE(buffer, whole, buffer_init, buffer_free, 4096);
    FIXTURE(buffer, parts, buffer_init, buffer_free, 4096);
    size_t count = webhook_keys(TEXT("a-secret-of-24-octets-00,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), keys);
    struct text body = TEXT("Subject: x\r\n\r\nsome lines\r\n");
    struct webhook w;
    is_number((long)count, 2, "two secrets");
    ok(webhook_fields("id", 7, body, keys, count, &whole));
    webhook_begin(&w, "id", 7, keys, count);
    for (size_t i = 0; i < body.length; i++)
        webhook_add(&w, text_of(body.at + i, 1));
    ok(webhook_end(&w, "id", 7, &parts));
    is_text(buffer_text(&parts), buffer_text(&whole), "the same fields");
}
