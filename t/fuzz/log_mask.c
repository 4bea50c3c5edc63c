/* Fuzz target: what looks like an address in a text of a peer. Before each '@' that is left
 * stands the mask, or what is no part of a name; and nothing grows beyond its limit. */
#include "base/log/log_mask.h"

#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct log_mask domain = {.form = LOG_ADDRESSES_DOMAIN};
    const struct log_mask hash = {.form = LOG_ADDRESSES_HASH, .has_key = true};
    struct text t = text_of((const char *)data, size);
    struct buffer once;
    struct text made = log_mask_text(&domain, t, &once);
    for (size_t i = 1; i < made.length; i++)
        must(made.at[i] != '@' || (unsigned char)made.at[i - 1] <= ' ' ||
             strchr("*<>()[],;:\"\\\x7f'`{|=/", made.at[i - 1]) != NULL);
    buffer_free(&once);
    (void)log_mask_text(&hash, t, &once);
    buffer_free(&once);
    (void)log_mask_address(&hash, t, &once);
    buffer_free(&once);
    return 0;
}
