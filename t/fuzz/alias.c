/* Fuzz target: files of aliases. The first line is an address that is asked for; behind a
 * NUL stands the content of the file that :include: names. Members are addresses, and a
 * walk ends. */
#include "sched/route/aliases.h"

#include "mime/address.h"
#include "sched/route/route.h"
#include "t/support/aliases_whole.h"
#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct route_table *
routes_once(void)
{
    static struct route_table *routes;
    if (routes == NULL)
        routes = route_new(
            &(struct route_settings){.routes = TEXT("a@d.test smtp://x.test, * mx"),
                                     .local_domains = TEXT("d.test, e.test")},
            NULL);
    return routes;
}

static bool
include(void *context, const char *path, char **content, size_t *length,
        char error[ALIASES_ERROR_MAX])
{
    const struct text *file = context;
    must(path[0] == '/' && strlen(path) < ALIAS_PATH_MAX);
    text_copy(error, ALIASES_ERROR_MAX, TEXT("no file"));
    if (file->at == NULL)
        return false;
    *content = text_string(*file);
    *length = file->length;
    return true;
}

struct seen {
    size_t members;
};

static bool
on_member(void *context, const struct aliases_member *m)
{
    struct address parsed;
    struct seen *seen = context;
    seen->members++;
    must(m->address.length < ALIAS_NAME_MAX && !text_has_control(m->address));
    /* A long local part may be too long with its domain: delivery returns such mail. */
    must(address_parse(m->address, &parsed) || m->address.length > ADDRESS_MAX);
    must(m->owner.length == 0 || text_starts_nocase(m->owner, TEXT("owner-")));
    return true;
}

static void
ask(struct aliases *a, struct text address)
{
    struct aliases_question q = {.routes = routes_once(), .address = address};
    for (int ours = 0; ours < 2; ours++) {
        struct seen seen = {0};
        q.ours = ours == 1;
        enum aliases_answer answer = aliases_expand(a, &q, on_member, &seen);
        must((answer != ALIASES_NONE && answer != ALIASES_EMPTY) ==
             (seen.members > 0));
        must(seen.members <= ALIASES_MEMBERS_MAX);
        must(answer != ALIASES_TOO_MANY);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text rest = text_of(data, size), address, file;
    struct address parsed;
    struct buffer errors, normal;
    if (!text_cut(&rest, '\n', &address) || !text_cut(&rest, '\0', &file))
        return 0;
    struct aliases_file one = {.path = "file", .content = file};
    struct aliases_settings settings = {.files = &one,
                                        .file_count = 1,
                                        .root =
                                            size % 2 ? TEXT("") : TEXT("ann@x.test"),
                                        .routes = routes_once(),
                                        .include = include,
                                        .context = &rest};
    buffer_init(&errors, 64 * 1024);
    buffer_init(&normal, 1024);
    struct aliases *a = aliases_whole(&settings, &errors);
    must((a == NULL) == (errors.length > 0));
    if (a != NULL && address_parse(address, &parsed) && address_write(&parsed, &normal))
        ask(a, buffer_text(&normal));
    if (a != NULL)
        ask(a, TEXT("root@d.test"));
    aliases_free(&a);
    buffer_free(&errors);
    buffer_free(&normal);
    return 0;
}
