/* Fuzz target: tagged senders. A tag that is made is taken back in any case, for its recipient alone; no other text is a tag
 * or a stamp of ours. */
#include "mime/verp.h"

#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t now_ms = INT64_C(20000) * 24 * 3600 * 1000;

static void
check_made(const struct verp *v, struct text recipient)
{
    char out[ADDRESS_MAX + 1], to[ADDRESS_MAX + 1], domain[ADDRESS_DOMAIN_MAX + 1];
    struct address a;
    struct verp_tag tag;
    struct buffer stamp;
    struct id id = {.time_ms = 1795230308000 + recipient.length, .hash = recipient.length};
    buffer_init(&stamp, 4096);
    must(verp_make(v, id, recipient, now_ms, out));
    text_lower(out, strlen(out));
    must(address_parse(text_from(out), &a) && verp_read(v, &a, now_ms, &tag) == VERP_GOOD);
    must(id_compare(tag.id, id) == 0 && verp_is_for(v, &tag, recipient));
    if (verp_stamp(v, text_from(out), TEXT("s@d.test"), recipient, &stamp)) {
        struct text value = text_trim(text_after(buffer_text(&stamp), sizeof(VERP_STAMP ":")));
        bool plain = text_find(recipient, ' ') == TEXT_NONE && !text_has_control(recipient);
        must(!plain || (verp_read_stamp(v, &tag, value, to, domain) &&
                        text_equal(text_from(to), recipient) && strcmp(domain, "d.test") == 0));
    }
    buffer_free(&stamp);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text t = text_of(data, size), secret = TEXT("0123456789abcdef");
    char to[ADDRESS_MAX + 1], domain[ADDRESS_DOMAIN_MAX + 1];
    struct verp *v = verp_new(TEXT("bounce@shop.test"), srs_new(TEXT(""), &secret, 1));
    struct verp_tag tag = {.key = 0};
    struct address a;
    must(verp_read_tag(v, t, now_ms, &tag) != VERP_GOOD);
    must(!verp_read_stamp(v, &tag, t, to, domain));
    if (address_parse(t, &a)) {
        must(verp_read(v, &a, now_ms, &tag) != VERP_GOOD);
        if (size > 0 && size <= ADDRESS_MAX)
            check_made(v, t);
    }
    (void)verp_fits(t);
    verp_free(&v);
    return 0;
}
