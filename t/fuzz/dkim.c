/* Fuzz target: DKIM. The body hash is that of a slow twin, however the bytes were cut;
 * a header is signed or refused with a reason, and the field is well formed; a key
 * record is judged. */
#include "mime/auth/dkim.h"

#include "t/support/dkim_twin.h"
#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_body(struct text t, size_t piece)
{
    struct dkim_body b;
    unsigned char want[DIGEST_SIZE], got[DIGEST_SIZE];
    dkim_twin_body(t, want);
    dkim_body_start(&b);
    for (struct text rest = t; rest.length > 0; rest = text_after(rest, piece))
        dkim_body_add(&b, text_before(rest, piece));
    dkim_body_end(&b, got);
    must(memcmp(want, got, DIGEST_SIZE) == 0);
}

/* Each line has at most 75 columns, and but for the first begins with a tab. */
static void
check_field(struct text field)
{
    must(text_starts(field, TEXT("DKIM-Signature: v=1;")));
    for (bool first = true; field.length > 0; first = false) {
        size_t end = text_find(field, '\n');
        must(end != TEXT_NONE && end > 1 && field.at[end - 1] == '\r' && end - 1 <= 75);
        must(first || field.at[0] == '\t');
        must(!text_has_control(text_of(field.at + 1, end - 2)));
        field = text_after(field, end + 1);
    }
}

static void
check_header(struct text t)
{
    struct dkim_header h;
    const char *why = NULL;
    unsigned char digest[DIGEST_SIZE] = {0};
    struct buffer field;
    if (!dkim_header_read(&h, t, &why)) {
        must(why != NULL);
        return;
    }
    must(h.author.length > 0 && h.author.length <= DKIM_ADDRESS_MAX);
    must(text_starts(buffer_text(&h.names), TEXT("from:from:reply-to:")));
    struct dkim_tags tags = {.algorithm = "rsa-sha256",
                             .domain = "example.org",
                             .selector = "s",
                             .time_s = 1,
                             .body = digest};
    buffer_init(&field, DKIM_FIELD_MAX);
    dkim_field_begin(&h, &tags, &field, digest);
    dkim_field_end(&field, text_of(digest, DIGEST_SIZE));
    check_field(buffer_text(&field));
    buffer_free(&field);
    dkim_header_free(&h);
}

static void
check_record(struct text t)
{
    enum dkim_record found = dkim_record_judge(&t, 1, TEXT("rsa"), TEXT("MIIB"));
    must(dkim_record_words(found) != NULL);
    /* No other white space than within a value makes a key fit. */
    must(found != DKIM_RECORD_FITS || t.length >= 6);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct text t = text_of(data + 1, size - 1);
    check_body(t, 1 + data[0] % 40u);
    check_header(t);
    check_record(t);
    return 0;
}
