/* Fuzz target: down-conversion. Nothing depends on how the content was cut; what is
 * convertible comes out as promised, read by its receiver as it was before, and needs
 * no other conversion; what needs none is fit as it is. */
#include "t/support/downgrade_kit.h"
#include "t/support/must.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_output(struct text content, const struct downgrade_way *way,
             const struct conversion *c)
{
    struct text out = buffer_text(&c->out);
    must(out.length <= c->size_max);
    must(kit_is_clean(out, way->to_8bit));
    must(out.length == 0 || out.at[out.length - 1] == '\n');
    must(kit_is_same_reading(content, out, way->from_binary));
    struct conversion again = kit_convert(out, way, 0, out.length);
    must(again.verdict == DOWNGRADE_NOT_NEEDED);
    buffer_free(&again.out);
}

/* The first byte: the way, and the size of the pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct text content = text_of(data + 1, size - 1);
    struct downgrade_way way = {.from_binary = (data[0] & 1) != 0,
                                .to_8bit = (data[0] & 2) != 0};
    struct conversion whole = kit_convert(content, &way, 0, content.length);
    struct conversion cut = kit_convert(content, &way, data[0], (data[0] >> 2) + 1u);
    must(whole.verdict == cut.verdict && whole.reason == cut.reason &&
         whole.dkim == cut.dkim && whole.size_max == cut.size_max);
    must((whole.verdict >= DOWNGRADE_FORBIDDEN) ==
         (whole.reason != DOWNGRADE_NO_REASON));
    must(text_equal(buffer_text(&whole.out), buffer_text(&cut.out)));
    if (whole.verdict == DOWNGRADE_CONVERTIBLE)
        check_output(content, &way, &whole);
    if (whole.verdict == DOWNGRADE_NOT_NEEDED)
        must(kit_is_clean(content, way.to_8bit));
    buffer_free(&whole.out);
    buffer_free(&cut.out);
    return 0;
}
