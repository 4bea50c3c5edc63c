/* Lines of standard input that is not a terminal; t/e2e/init.t types on one. */
#include "admin/tool/prompt.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char line[PROMPT_LINE_MAX];

static void
feed(const char *input, size_t length)
{
    int ends[2];
    if (pipe(ends) != 0 || write(ends[1], input, length) != (ssize_t)length)
        abort();
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
}

static void
reads(enum prompt_result want, const char *text)
{
    struct text out;
    is_number(prompt_ask("", true, line, &out), want, text);
    is_text(out, text_from(text), text);
}

int
main(void)
{
    static char longest[2 * PROMPT_LINE_MAX];
    feed("one\ntwo \r\n\n last", 16);
    ok(!prompt_is_possible());
    reads(PROMPT_GOOD, "one");
    reads(PROMPT_GOOD, "two ");
    reads(PROMPT_GOOD, "");
    reads(PROMPT_GOOD, " last");
    reads(PROMPT_ENDED, "");
    feed("half\003rest\n", 10);
    reads(PROMPT_INTERRUPTED, "half");
    reads(PROMPT_GOOD, "rest");
    memset(longest, 'x', sizeof(longest));
    longest[PROMPT_LINE_MAX] = '\n';
    feed(longest, PROMPT_LINE_MAX + 1);
    struct text out;
    is_number(prompt_ask("", false, line, &out), PROMPT_GOOD, "as long as may be");
    is_number((long)out.length, PROMPT_LINE_MAX, "all of it");
    longest[PROMPT_LINE_MAX] = 'x';
    memcpy(longest + sizeof(longest) - 3, "\na\n", 3);
    feed(longest, sizeof(longest));
    is_number(prompt_ask("", false, line, &out), PROMPT_LONG, "longer");
    reads(PROMPT_GOOD, "a");
    return done();
}
