/* Looks for a name in a file of names. */
#include "queue/manager/mailbox_names.h"

#include "base/disk/disk.h"

#include <errno.h>
#include <stdlib.h>

/* '+' and '-' begin entries that glibc takes from NIS. */
static bool
is_line_of(struct text line, struct text name)
{
    line = text_trim(text_before(line, text_find(line, ':')));
    return line.length > 0 && line.at[0] != '+' && line.at[0] != '-' &&
           line.at[0] != '#' && text_equal_nocase(line, name);
}

int
mailbox_names_have(const char *file, struct text name)
{
    char *content;
    size_t length;
    bool found = false;
    if (text_equal_nocase(name, TEXT("postmaster")))
        return 1;
    int result = disk_read_whole(file, MAILBOX_NAMES_MAX, &content, &length);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    struct text rest = text_of(content, length), line;
    while (!found && text_cut(&rest, '\n', &line))
        found = is_line_of(line, name);
    free(content);
    return found;
}
