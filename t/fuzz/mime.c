/* Fuzz target: the structure of messages. Every byte is told once, in order, in parts
 * that begin and end like brackets, and nothing depends on how the bytes were cut. */
#include "t/support/must.h"
#include "t/support/structure_kit.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte is the size of the pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct text content = text_of(data + 1, size - 1);
    size_t piece = (size_t)data[0] % 32 + 1;
    struct trace whole = trace_of(content, 0, content.length);
    struct trace cut = trace_of(content, data[0], piece);
    must(!whole.broken && !cut.broken);
    must(whole.begun <= STRUCTURE_PARTS_MAX);
    must(text_equal(buffer_text(&whole.text), buffer_text(&cut.text)));
    trace_free(&whole);
    trace_free(&cut);
    return 0;
}
