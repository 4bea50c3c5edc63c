/* The files of the page: they are part of the program, the large ones in gzip.
 *
 * There is no data in them, so everybody may read them; data come from the HTTP API. */
#ifndef ADMIN_PAGE_PAGE_H
#define ADMIN_PAGE_PAGE_H

#include "base/text.h"

#include <stdbool.h>

enum { PAGE_TAG_SIZE = 20 };

struct page_file {
    const char *path, *type;
    const char *begin, *end;
    bool is_packed; /* in gzip (RFC 1952) */
};

/* The file at the path of a request, or NULL. */
const struct page_file *page_find(struct text path);
/* The ETag of its content (RFC 9110 8.8.3), with quotation marks. */
void page_tag(const struct page_file *file, char tag[PAGE_TAG_SIZE]);

#endif
