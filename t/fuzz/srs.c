/* Fuzz target: SRS. Any sender that is rewritten comes back as it was, any address that is
 * taken back was made here. */
#include "mime/srs.h"

#include "mime/address.h"
#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t now_ms = INT64_C(20000) * 24 * 3600 * 1000;

static bool
is_srs_of(struct text address, const char *prefix)
{
    struct text plain = text_after(address, address.at[0] == '"' ? 1 : 0);
    return text_starts_nocase(plain, text_from(prefix)) && plain.length > 5 &&
           strchr("=-+", plain.at[4]) != NULL;
}

static void
check_forward(const struct srs *s, struct text sender)
{
    char out[SRS_ADDRESS_MAX], back[SRS_ADDRESS_MAX];
    struct address parsed;
    if (!srs_forward(s, sender, now_ms, out))
        return;
    must(address_parse(text_from(out), &parsed) && strlen(out) <= ADDRESS_MAX);
    must(text_equal(parsed.domain, srs_domain(s)));
    /* Only the first host of another host's SRS1 is known; some forms are no address. */
    enum srs_answer answer = srs_back(s, text_from(out), now_ms, back);
    if (is_srs_of(sender, "SRS1"))
        return;
    /* Nobody but us makes SRS0 of ours: see srs_unwind_twice(). */
    if (is_srs_of(sender, "SRS0") && address_parse(sender, &parsed) &&
        text_equal_nocase(parsed.domain, srs_domain(s)))
        return;
    must(answer == SRS_GOOD);
    must(is_srs_of(sender, "SRS0") ? text_equal_nocase(text_from(back), sender)
                                   : text_equal(text_from(back), sender));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text t = text_of(data, size), secret = TEXT("0123456789abcdef");
    struct address parsed;
    struct buffer normal;
    char out[SRS_ADDRESS_MAX];
    struct srs *s = srs_new(TEXT("d.test"), &secret, 1);
    buffer_init(&normal, 1024);
    if (srs_back(s, t, now_ms, out) == SRS_GOOD)
        must(address_parse(text_from(out), &parsed));
    if (address_parse(t, &parsed) && address_write(&parsed, &normal) &&
        normal.length <= ADDRESS_MAX)
        check_forward(s, buffer_text(&normal));
    buffer_free(&normal);
    srs_free(&s);
    return 0;
}
