/* Fuzz target: targets of HTTP requests and their queries. A path that is taken has one
 * form, and parameters fit. */
#include "base/http/http_target.h"

#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct http_target target;
    static struct http_parameter parameter;
    const char *why = NULL;
    struct text rest, segment;
    unsigned status = http_target_read(text_of(data, size), &target, &why);
    must((status != 0) == (why != NULL));
    if (status != 0) {
        must(status == 400 || status == 414);
        return 0;
    }
    must(target.path.length > 0 && target.path.length <= size);
    must(target.path.at[0] == '/' && strlen(target.room) == target.path.length);
    rest = target.path;
    while (text_cut(&rest, '/', &segment))
        must(!text_equal(segment, TEXT("..")) && !text_equal(segment, TEXT(".")));
    rest = target.query;
    for (size_t count = 0; http_parameter_next(&rest, &parameter); count++) {
        must(count < size && parameter.name.length <= size);
        must(strlen(parameter.room) == parameter.value.length);
    }
    return 0;
}
