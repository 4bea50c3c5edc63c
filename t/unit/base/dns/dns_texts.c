/* Proves that TXT answers are kept as long as they may be, and no more of them. */
#include "base/dns/dns_texts.h"

#include "t/support/tap.h"

static struct dns_answer
found(const char *text, unsigned ttl_s)
{
    struct dns_answer a = {.status = DNS_FOUND, .ttl_s = ttl_s, .count = 2};
    a.texts[0] = text_from(text);
    a.texts[1] = TEXT("");
    return a;
}

static bool
is_kept(struct dns_texts *texts, const char *name, int64_t now_ms)
{
    struct dns_answer a;
    char *octets = dns_texts_find(texts, name, now_ms, &a);
    free(octets);
    return octets != NULL;
}

TEST(keep)
{
    struct dns_texts *texts = dns_texts_new();
    struct dns_answer a = found("v=STSv1; id=1", 300), b;
    ok(!is_kept(texts, "a.test", 0));
    a.secure = true;
    dns_texts_keep(texts, "a.test", &a, 1000);
    char *octets = dns_texts_find(texts, "a.test", 101000, &b);
    ok(octets != NULL && b.status == DNS_FOUND && b.secure && b.count == 2);
    is_text(b.texts[0], TEXT("v=STSv1; id=1"), "the text");
    is_number(b.texts[1].length, 0, "an empty one");
    is_number(b.ttl_s, 200, "what is left of the TTL");
    a = found("another", 300);
    dns_texts_keep(texts, "a.test", &a, 1000);
    is_text(b.texts[0], TEXT("v=STSv1; id=1"), "an answer is its caller's");
    free(octets);
    octets = dns_texts_find(texts, "a.test", 1000, &b);
    is_text(b.texts[0], TEXT("another"), "the newer one counts");
    ok(!b.secure);
    free(octets);
    dns_texts_free(&texts);
    ok(texts == NULL);
}

TEST(time)
{
    static const struct {
        enum dns_status status;
        unsigned ttl_s;
        int kept_s;
    } rows[] = {
        {DNS_FOUND, 300, 300},
        {DNS_FOUND, 0, 60},
        {DNS_FOUND, 59, 60},
        {DNS_FOUND, 86400, 86400},
        {DNS_FOUND, INT32_MAX, 86400},
        {DNS_NO_DATA, 300, 60},
        {DNS_NO_NAME, 300, 60},
        {DNS_TRY_AGAIN, 300, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dns_texts *texts = dns_texts_new();
        struct dns_answer a = found("x", rows[i].ttl_s), b;
        int64_t end_ms = 5000 + rows[i].kept_s * 1000;
        if (rows[i].status != DNS_FOUND) {
            a = (struct dns_answer){.status = rows[i].status, .ttl_s = rows[i].ttl_s};
            snprintf(a.reason, sizeof(a.reason), "there is none");
        }
        dns_texts_keep(texts, "a.test", &a, 5000);
        ok_named(is_kept(texts, "a.test", end_ms - 1) == (rows[i].kept_s > 0), "kept");
        char *octets = dns_texts_find(texts, "a.test", 5000, &b);
        if (octets != NULL) {
            is_number(b.status, rows[i].status, "with its status");
            is_string(b.reason, a.reason, "and its reason");
        }
        free(octets);
        ok_named(!is_kept(texts, "a.test", end_ms), "but no longer");
        ok_named(!is_kept(texts, "a.test", 5000), "it is gone then");
        dns_texts_free(&texts);
    }
}

TEST(limits)
{
    struct dns_texts *texts = dns_texts_new();
    struct dns_answer a = found("x", 300);
    char name[32];
    for (int i = 0; i < DNS_TEXTS_KEPT_MAX; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        dns_texts_keep(texts, name, &a, 0);
    }
    ok_named(is_kept(texts, "n0.test", 1), "4096 names");
    dns_texts_keep(texts, "more.test", &a, 1);
    ok_named(is_kept(texts, "n0.test", 1), "what was used lately stays");
    ok_named(!is_kept(texts, "n1.test", 1), "the least recently used goes");
    ok(is_kept(texts, "n2.test", 1) && is_kept(texts, "more.test", 1));
    dns_texts_free(&texts);

    char *large = calloc(1, DNS_RECORD_MAX + 1);
    memset(large, 'x', DNS_RECORD_MAX);
    texts = dns_texts_new();
    a = found(large, 300);
    int many = DNS_TEXTS_BYTES_MAX / DNS_RECORD_MAX;
    for (int i = 0; i < many; i++) {
        snprintf(name, sizeof(name), "n%d.test", i);
        dns_texts_keep(texts, name, &a, 0);
    }
    ok_named(is_kept(texts, "n1.test", 1), "4 MiB of texts");
    a = found("y", 300);
    dns_texts_keep(texts, "more.test", &a, 1);
    ok_named(!is_kept(texts, "n0.test", 1) && is_kept(texts, "n1.test", 1),
             "then one goes, too");
    free(large);
    dns_texts_free(&texts);
}
