/* Has the files of the page in the program. */
#include "admin/page/page.h"

#include "base/crypto/digest.h"

#include <stdio.h>

/* The assembler reads the file, from the folder of the Makefile, or the one that it has
 * packed. The names are global
 * for link-time optimisation, which may part this text from code that refers to
 * them. */
#define PAGE_BYTES(name, file)                                                         \
    __asm__(".pushsection .rodata\n"                                                   \
            ".global page_" name "_begin\n"                                            \
            ".hidden page_" name "_begin\n"                                            \
            "page_" name "_begin:\n"                                                   \
            ".incbin \"" file "\"\n"                                                   \
            ".global page_" name "_end\n"                                              \
            ".hidden page_" name "_end\n"                                              \
            "page_" name "_end:\n"                                                     \
            ".byte 0\n"                                                                \
            ".popsection\n")

PAGE_BYTES("html", "admin/page/index.html");
PAGE_BYTES("style", PAGE_PACKED "page.css.gz");
PAGE_BYTES("script", PAGE_PACKED "page.js.gz");
PAGE_BYTES("icon", "admin/page/icon.svg");

extern const char page_html_begin[], page_html_end[], page_style_begin[],
    page_style_end[], page_script_begin[], page_script_end[], page_icon_begin[],
    page_icon_end[];

static const struct page_file page_files[] = {
    {"/",         "text/html; charset=utf-8",       page_html_begin,   page_html_end,   false},
    {"/page.css", "text/css; charset=utf-8",        page_style_begin,  page_style_end,  true },
    {"/page.js",  "text/javascript; charset=utf-8", page_script_begin, page_script_end,
     true                                                                                    },
    {"/icon.svg", "image/svg+xml",                  page_icon_begin,   page_icon_end,   false},
};

const struct page_file *
page_find(struct text path)
{
    for (size_t i = 0; i < sizeof(page_files) / sizeof(page_files[0]); i++)
        if (text_equal(path, text_from(page_files[i].path)))
            return &page_files[i];
    return NULL;
}

void
page_tag(const struct page_file *file, char tag[PAGE_TAG_SIZE])
{
    unsigned char digest[DIGEST_SIZE];
    digest_plain(text_of(file->begin, (size_t)(file->end - file->begin)), digest);
    char hex[PAGE_TAG_SIZE];
    text_hex(digest, 8, hex);
    snprintf(tag, PAGE_TAG_SIZE, "\"%.16s\"", hex);
}
