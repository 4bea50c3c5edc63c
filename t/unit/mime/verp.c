/* Tagged senders: they name message and recipient, survive any case, expire, and nobody
 * else can make one. */
#include "mime/verp.h"

#include "base/crypto/digest.h"
#include "t/support/tap.h"

static const int64_t NOW = INT64_C(20000) * 24 * 3600 * 1000;
static const int64_t DAY = INT64_C(24) * 3600 * 1000;
static const struct id one = {.time_ms = 1795230308000, .hash = 0x123456789a};

static struct verp *
verp_of(const char *first, const char *second)
{
    struct text secrets[] = {text_from(first), text_from(second)};
    return verp_new(TEXT("bounce@shop.test"),
                    srs_new(TEXT(""), secrets, second != NULL ? 2 : first != NULL));
}

static enum verp_answer
read_address(const struct verp *v, const char *text, int64_t now, struct verp_tag *tag)
{
    struct address a;
    return address_parse(text_from(text), &a) ? verp_read(v, &a, now, tag) : VERP_NO;
}

TEST(a_tag_comes_back)
{
    struct verp *v = verp_of("0123456789abcdef", NULL);
    struct verp_tag tag;
    char out[ADDRESS_MAX + 1], lower[ADDRESS_MAX + 1];
    ok(verp_make(v, one, TEXT("joe@b.test"), NOW, out));
    is_number(strchr(out, '@') - out, sizeof("bounce+") - 1 + VERP_TAG_LENGTH, "its length");
    ok(strchr(out, '@') - out <= 64);
    ok(read_address(v, out, NOW, &tag) == VERP_GOOD && id_compare(tag.id, one) == 0);
    ok(verp_is_for(v, &tag, TEXT("joe@b.test")) && verp_is_for(v, &tag, TEXT("JOE@b.test")));
    ok(!verp_is_for(v, &tag, TEXT("ann@b.test")));
    memcpy(lower, out, sizeof(lower));
    text_lower(lower, strlen(lower));
    ok_named(read_address(v, lower, NOW, &tag) == VERP_GOOD && id_compare(tag.id, one) == 0,
             "in lower case");
    ok(read_address(v, out, NOW + SRS_DAYS_MAX * DAY, &tag) == VERP_GOOD);
    ok(read_address(v, out, NOW + (SRS_DAYS_MAX + 1) * DAY, &tag) == VERP_OLD);
    ok(read_address(v, "bounce@SHOP.test", NOW, &tag) == VERP_PLAIN);
    ok(read_address(v, "bounces@shop.test", NOW, &tag) == VERP_NO);
    ok(read_address(v, "bounce@b.test", NOW, &tag) == VERP_NO);
    ok(read_address(v, "bounce+x@shop.test", NOW, &tag) == VERP_FORGED);
    verp_free(&v);
}

TEST(no_other_tag_is_ours)
{
    struct verp *v = verp_of("0123456789abcdef", NULL);
    struct verp *other = verp_of("another-secret-of-ours", NULL);
    struct verp_tag tag;
    char out[ADDRESS_MAX + 1], changed[ADDRESS_MAX + 1];
    unsigned good = 0;
    ok(verp_make(v, one, TEXT("joe@b.test"), NOW, out));
    ok(read_address(other, out, NOW, &tag) == VERP_FORGED);
    for (size_t i = sizeof("bounce+") - 1; out[i] != '@'; i++) {
        memcpy(changed, out, sizeof(changed));
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        good += read_address(v, changed, NOW, &tag) == VERP_GOOD;
    }
    is_number(good, 0, "tags with another character");
    verp_free(&v);
    verp_free(&other);
}

TEST(secrets_change)
{
    struct verp *old = verp_of("0123456789abcdef", NULL);
    struct verp *now = verp_of("another-secret-of-ours", "0123456789abcdef");
    struct verp *blind = verp_of(NULL, NULL);
    struct verp_tag tag;
    char out[ADDRESS_MAX + 1], stamped[ADDRESS_MAX + 1], domain[ADDRESS_DOMAIN_MAX + 1];
    struct buffer stamp;
    buffer_init(&stamp, 4096);
    ok(verp_make(old, one, TEXT("joe@b.test"), NOW, out));
    ok(verp_stamp(old, text_from(out), TEXT("news@shop.test"), TEXT("joe@b.test"), &stamp));
    struct text value = text_trim(text_after(buffer_text(&stamp), sizeof(VERP_STAMP ":")));
    ok(read_address(now, out, NOW, &tag) == VERP_GOOD);
    ok(verp_is_for(now, &tag, TEXT("joe@b.test")));
    ok(verp_read_stamp(now, &tag, value, stamped, domain));
    is_string(stamped, "joe@b.test", "the recipient of the stamp");
    is_string(domain, "shop.test", "the domain of its sender");
    stamp.at[stamp.length - 4] ^= 1;
    ok(!verp_read_stamp(now, &tag, value, stamped, domain));
    ok(!verp_read_stamp(now, &tag, TEXT("."), stamped, domain));
    ok(verp_is_blind(blind) && !verp_make(blind, one, TEXT("joe@b.test"), NOW, out));
    ok(read_address(blind, out, NOW, &tag) == VERP_BLIND);
    buffer_free(&stamp);
    verp_free(&old);
    verp_free(&now);
    verp_free(&blind);
}

TEST(addresses_that_fit)
{
    ok(verp_fits(TEXT("bounce@shop.test")) && verp_fits(TEXT("a.b-c_1@shop.test")));
    ok(!verp_fits(TEXT("a+b@shop.test")) && !verp_fits(TEXT("\"a b\"@shop.test")));
    ok(!verp_fits(TEXT("bounce")) && !verp_fits(TEXT("@shop.test")));
    ok(!verp_fits(TEXT("a-local-part-that-is-too-long@shop.test")));
}
