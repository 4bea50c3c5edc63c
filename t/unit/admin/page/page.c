/* The files of the page, as the program has them, unpacked by gzip. */
#include "admin/page/page.h"
#include "t/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALL_MAX = 66 * 1024, SCRIPT_MAX = 48 * 1024 };

static const struct {
    const char *path, *file, *type;
    bool is_packed;
} pages[] = {
    {"/",         "admin/page/index.html", "text/html; charset=utf-8",       false},
    {"/page.css", "admin/page/page.css",   "text/css; charset=utf-8",        true },
    {"/page.js",  "admin/page/page.js",    "text/javascript; charset=utf-8", true },
    {"/icon.svg", "admin/page/icon.svg",   "image/svg+xml",                  false},
};

/* Their size; 0: it is not that file to the last octet. */
static size_t
unpacked(const struct page_file *p, const char *name)
{
    static char content[ALL_MAX], here[ALL_MAX];
    size_t length = (size_t)(p->end - p->begin);
    char packed[] = "/tmp/page-XXXXXX", command[64];
    FILE *f = fopen(name, "rb");
    size_t size = f != NULL ? fread(content, 1, sizeof(content), f) : 0;
    if (f != NULL)
        fclose(f);
    if (!p->is_packed)
        return size == length && memcmp(content, p->begin, size) == 0 ? size : 0;
    int fd = mkstemp(packed);
    bool written = fd >= 0 && write(fd, p->begin, length) == (ssize_t)length;
    snprintf(command, sizeof(command), "gzip -dc <%s", packed);
    f = popen(command, "r");
    size_t back = f != NULL ? fread(here, 1, sizeof(here), f) : 0;
    bool whole = f != NULL && pclose(f) == 0 && written && length < size / 2;
    close(fd);
    unlink(packed);
    return whole && back == size && memcmp(content, here, size) == 0 ? size : 0;
}

int
main(void)
{
    size_t all = 0, script = 0;
    char last[PAGE_TAG_SIZE] = "";
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        const struct page_file *p = page_find(text_from(pages[i].path));
        char tag[PAGE_TAG_SIZE], again[PAGE_TAG_SIZE];
        if (!ok_named(p != NULL, pages[i].path))
            continue;
        is_string(p->type, pages[i].type, "its type");
        ok_named(p->is_packed == pages[i].is_packed, "the large ones are packed");
        size_t size = unpacked(p, pages[i].file);
        script = strcmp(pages[i].path, "/page.js") == 0 ? size : script;
        ok_named(size > 0, "it is the file to the last octet");
        page_tag(p, tag);
        page_tag(p, again);
        ok_named(tag[0] == '"' && strlen(tag) == 18, "its tag is quoted");
        is_string(again, tag, "its tag is always the same");
        ok_named(strcmp(tag, last) != 0, "and that of no other file");
        memcpy(last, tag, sizeof(last));
        all += size;
    }
    ok_named(script > 0 && script <= SCRIPT_MAX, "the script has at most 48 KiB");
    ok_named(all <= ALL_MAX, "all files together have at most 66 KiB");
    ok(page_find(TEXT("/page.c")) == NULL);
    ok(page_find(TEXT("/index.html")) == NULL);
    ok(page_find(TEXT("")) == NULL);
    ok(page_find(TEXT("/page.css/")) == NULL);
    return done();
}
