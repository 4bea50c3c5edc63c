/* Fuzz target: paths, mailboxes, local parts, domains and xtext. An accepted address is
 * within the limits, holds no control, and has one normal form. */
#include "mime/address.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WRITTEN_MAX = ADDRESS_MAX + 8 };

/* The normal form is read back as the same mailbox and written the same. */
static void
check_written(const struct address *a)
{
    struct buffer once, twice, local;
    struct address again;
    buffer_init(&once, WRITTEN_MAX);
    buffer_init(&twice, WRITTEN_MAX);
    buffer_init(&local, WRITTEN_MAX);
    must(address_write(a, &once) && address_write_local(a, &local));
    must(!text_has_control(buffer_text(&once)) && once.length <= ADDRESS_MAX);
    must(!text_has_control(buffer_text(&local)) && text_is_utf8(buffer_text(&local)));
    if (a->domain.length > 0) {
        must(address_parse(buffer_text(&once), &again));
        /* A domain may have become ASCII. */
        must((!again.utf8 || a->utf8) && address_write(&again, &twice));
        must(text_equal(buffer_text(&once), buffer_text(&twice)));
    }
    buffer_free(&once);
    buffer_free(&twice);
    buffer_free(&local);
}

static void
check_address(const struct address *a)
{
    must(a->local.length <= ADDRESS_MAX && a->domain.length <= ADDRESS_DOMAIN_MAX);
    must(!text_has_control(a->local) && !text_has_control(a->domain));
    must(text_is_utf8(a->local) && text_is_utf8(a->domain));
    must(a->domain.length == 0 || address_is_domain(a->domain));
    must(a->utf8 == !(text_is_ascii(a->local) && text_is_ascii(a->domain)));
    check_written(a);
}

static void
check_xtext(struct text t)
{
    struct buffer plain, coded;
    buffer_init(&plain, t.length);
    buffer_init(&coded, 3 * t.length);
    if (xtext_read(t, &plain)) {
        must(!text_has_control(buffer_text(&plain)));
        must(xtext_write(buffer_text(&plain), &coded));
        must(text_is_ascii(buffer_text(&coded)));
    }
    buffer_clear(&plain);
    buffer_clear(&coded);
    must(xtext_write(t, &coded));
    must(xtext_read(buffer_text(&coded), &plain) == !text_has_control(t));
    must(text_has_control(t) || text_equal(buffer_text(&plain), t));
    buffer_free(&plain);
    buffer_free(&coded);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text t = text_of(data, size), rest = t;
    struct address a;
    if (address_parse(t, &a))
        check_address(&a);
    if (address_is_domain(t))
        must(t.length <= ADDRESS_DOMAIN_MAX && !text_has_control(t));
    if (address_is_local(t))
        must(t.length <= ADDRESS_MAX && !text_has_control(t));
    while (address_judge_path(&rest, &a) == NULL) {
        must(rest.at + rest.length == t.at + t.length);
        check_address(&a);
    }
    check_xtext(t);
    return 0;
}
