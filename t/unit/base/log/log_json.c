/* Lines of JSON that are too long have shorter values, and stay JSON. */
#include "base/log/log_json.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT = 200 };

/* A member of that length, and short ones around it. */
static void
test_length(size_t length)
{
    struct buffer line;
    char *text = malloc(length + 1);
    if (text == NULL)
        abort();
    memset(text, '"', length);
    text[length] = '\0';
    json_t *object = json_pack("{s:s,s:s,s:i}", "first", "yes", "long", text, "last", 7);
    buffer_init(&line, LIMIT);
    bool added = buffer_add(&line, TEXT("<22> "));
    log_json_end(&object, &line);
    struct text made = text_after(buffer_text(&line), 5);
    json_t *read = json_loadb(made.at, made.length, 0, NULL);
    ok_named(added && object == NULL && line.length <= LIMIT && json_is_object(read), "an object within the limit");
    const char *value = json_string_value(json_object_get(read, "long"));
    ok_named(value != NULL && (2 * length < LIMIT - 50 ? strcmp(value, text) == 0 : strstr(value, "...") != NULL),
             "a long value is cut, and says so");
    ok_named(json_integer_value(json_object_get(read, "last")) == 7 &&
                 strcmp(json_string_value(json_object_get(read, "first")), "yes") == 0,
             "the others are not");
    json_decref(read);
    buffer_free(&line);
    free(text);
}

int
main(void)
{
    static const size_t lengths[] = {0, 1, 60, 100, 1000, 100000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        test_length(lengths[i]);
    return done();
}
