/* The files of the page, as the program has them. */
#include "admin/page/page.h"
#include "t/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_MAX = 65 * 1024, SCRIPT_MAX = 48 * 1024 };

static const struct {
    const char *path, *file, *type;
} pages[] = {
    {"/",         "admin/page/index.html", "text/html; charset=utf-8"      },
    {"/page.css", "admin/page/page.css",   "text/css; charset=utf-8"       },
    {"/page.js",  "admin/page/page.js",    "text/javascript; charset=utf-8"},
    {"/icon.svg", "admin/page/icon.svg",   "image/svg+xml"                 },
};

static bool
is_file(const struct page_file *p, const char *name)
{
    static char content[ALL_MAX];
    FILE *f = fopen(name, "rb");
    size_t size = f != NULL ? fread(content, 1, sizeof(content), f) : 0;
    if (f != NULL)
        fclose(f);
    return size > 0 && size == (size_t)(p->end - p->begin) &&
           memcmp(content, p->begin, size) == 0;
}

int
main(void)
{
    size_t all = 0;
    char last[PAGE_TAG_SIZE] = "";
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        const struct page_file *p = page_find(text_from(pages[i].path));
        char tag[PAGE_TAG_SIZE], again[PAGE_TAG_SIZE];
        if (!ok_named(p != NULL, pages[i].path))
            continue;
        is_string(p->type, pages[i].type, "its type");
        ok_named(is_file(p, pages[i].file), "it is the file to the last octet");
        page_tag(p, tag);
        page_tag(p, again);
        ok_named(tag[0] == '"' && strlen(tag) == 18, "its tag is quoted");
        is_string(again, tag, "its tag is always the same");
        ok_named(strcmp(tag, last) != 0, "and that of no other file");
        memcpy(last, tag, sizeof(last));
        all += (size_t)(p->end - p->begin);
    }
    const struct page_file *script = page_find(TEXT("/page.js"));
    ok_named(script->end - script->begin <= SCRIPT_MAX, "the script has at most 48 KiB");
    ok_named(all <= ALL_MAX, "all files together have at most 65 KiB");
    ok(page_find(TEXT("/page.c")) == NULL);
    ok(page_find(TEXT("/index.html")) == NULL);
    ok(page_find(TEXT("")) == NULL);
    ok(page_find(TEXT("/page.css/")) == NULL);
    return done();
}
