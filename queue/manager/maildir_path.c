/* The directory of a mailbox, and the names for which one may be made. */
#include "queue/manager/maildir_path.h"

#include "base/disk/disk.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART_MAX = 255,             /* of one expansion, which is a file name */
    NAMES_MAX = 8 * 1024 * 1024 /* bytes of the file of names */
};

/* One part of an address as (part of) a file name. */
static bool
add_part(struct text part, bool lower, struct buffer *out)
{
    if (part.length == 0 || part.length > PART_MAX || part.at[0] == '.' ||
        text_find(part, '/') != TEXT_NONE || text_has_control(part))
        return false;
    if (!buffer_add(out, part))
        return false;
    if (lower)
        text_lower(out->at + out->length - part.length, part.length);
    return true;
}

static bool
add_local(const struct address *address, bool lower, struct buffer *out)
{
    struct buffer local;
    buffer_init(&local, PART_MAX);
    bool good = address_write_local(address, &local) &&
                add_part(buffer_text(&local), lower, out);
    buffer_free(&local);
    return good;
}

bool
maildir_path(const struct target *target, const struct address *address, bool lower,
             struct buffer *out)
{
    assert(target->kind == TARGET_MAILDIR);
    for (const char *at = target->path; *at != '\0'; at++) {
        bool good;
        if (*at != '%' || at[1] == '\0')
            good = buffer_add_byte(out, *at);
        else if (*++at == 'u')
            good = add_local(address, lower, out);
        else if (*at == 'd')
            good = add_part(address->domain, true, out);
        else
            good = buffer_add_byte(out, *at);
        if (!good)
            return false;
    }
    return true;
}

struct address
maildir_without_tag(const struct address *address)
{
    struct address user = *address;
    size_t plus = user.local.length > 0 && user.local.at[0] != '"'
                      ? text_find(user.local, '+')
                      : TEXT_NONE;
    if (plus != TEXT_NONE && plus > 0)
        user.local = text_before(user.local, plus);
    return user;
}

void
maildir_root(const struct target *target, char root[TARGET_PATH_MAX])
{
    struct text path = text_from(target->path);
    size_t percent = text_find(path, '%');
    assert(target->kind == TARGET_MAILDIR);
    if (percent != TEXT_NONE)
        path = text_before(path, text_find_last(text_before(path, percent), '/') + 1);
    (void)!text_copy(root, TARGET_PATH_MAX, path);
}

/* The operator has configured a Maildir for all recipients, so it always exists. */
bool
maildir_may_be_made(const struct target *target)
{
    return target->create || strchr(target->path, '%') == NULL;
}

/* '+' and '-' begin entries that glibc takes from NIS. */
static bool
is_line_of(struct text line, struct text name)
{
    line = text_trim(text_before(line, text_find(line, ':')));
    return line.length > 0 && line.at[0] != '+' && line.at[0] != '-' &&
           line.at[0] != '#' && text_equal_nocase(line, name);
}

/* As maildir_may_make(). The file is read on each question, which is seldom: only for a
 * mailbox that does not exist. */
static int
names_have(const char *file, struct text name)
{
    char *content;
    size_t length;
    bool found = false;
    if (text_equal_nocase(name, TEXT("postmaster")))
        return 1;
    int result = disk_read_regular(file, NAMES_MAX, &content, &length);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    struct text rest = text_of(content, length), line;
    while (!found && text_cut(&rest, '\n', &line))
        found = is_line_of(line, name);
    free(content);
    return found;
}

int
maildir_may_make(const struct target *target, const struct address *address)
{
    struct buffer local;
    if (!maildir_may_be_made(target))
        return 0;
    if (target->users[0] == '\0' || strstr(target->path, "%u") == NULL)
        return 1;
    buffer_init(&local, PART_MAX);
    int result = address_write_local(address, &local)
                     ? names_have(target->users, buffer_text(&local))
                     : 0;
    buffer_free(&local);
    return result;
}
