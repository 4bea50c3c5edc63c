/* Every setting has its paragraph in the program, as plain text that a terminal shows without breaking lines. */
#include "admin/command/help_text.h"

#include "admin/settings/options.h"
#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

TEST(every_setting)
{
    struct buffer out;
    buffer_init(&out, 64 * 1024);
    for (const struct setting *row = options_rows; row->key != NULL; row++) {
        char begin[200];
        snprintf(begin, sizeof(begin), "%s =", row->key);
        buffer_clear(&out);
        bool good = help_text_find(text_from(row->key), &out) && text_starts(buffer_text(&out), text_from(begin)) && text_is_utf8(buffer_text(&out));
        struct text rest = buffer_text(&out), line;
        while (text_cut(&rest, '\n', &line))
            good = good && !text_has_control(line) && line.length < 150 && memchr(line.at, '\\', line.length) == NULL;
        ok_named(good && out.length > strlen(begin) + 10, row->key);
    }
    buffer_free(&out);
}

TEST(unknown)
{
    struct buffer out;
    buffer_init(&out, 64 * 1024);
    ok(!help_text_find(TEXT("relay_fro"), &out) && !help_text_find(TEXT(""), &out) && !help_text_find(TEXT("\1"), &out));
    ok(out.length == 0);
    buffer_free(&out);
}
