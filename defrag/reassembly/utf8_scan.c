/* Looks for UTF-8 in the headers of a message that streams by: of the message, and of
 * each MIME part (RFC 6531 §3.2). The parser of the structure costs time, so it is
 * dropped as soon as the answer is known: UTF-8 was found, or no part has a header of
 * its own. */
#include "defrag/reassembly/utf8_scan.h"

#include "mime/parts/structure.h"

static void
utf8_scan_on_event(void *context, const struct structure_event *event)
{
    struct inspection *i = context;
    switch (event->kind) {
    case STRUCTURE_FIELD:
        i->utf8 = i->utf8 || !text_is_ascii(event->bytes);
        break;
    case STRUCTURE_PROBLEM:
        /* Beyond these limits the parser does not see the headers of further parts. */
        i->unsure = i->unsure || event->problem == PROBLEM_TOO_DEEP ||
                    event->problem == PROBLEM_TOO_MANY_PARTS ||
                    event->problem == PROBLEM_LONG_BOUNDARY;
        break;
    case STRUCTURE_BEGIN:
    case STRUCTURE_HEADER:
    case STRUCTURE_BODY:
    case STRUCTURE_OUTSIDE:
    case STRUCTURE_DELIMITER:
    case STRUCTURE_END:
        break;
    }
}

void
utf8_scan_start(struct inspection *i)
{
    *i = (struct inspection){.utf8 = false};
    header_scan_start(&i->scan);
    i->structure = structure_new(utf8_scan_on_event, i);
}

/* Most messages have no header but their own. */
void
utf8_scan_add(struct inspection *i, struct text bytes)
{
    i->eight_bit = i->eight_bit || !text_is_ascii(bytes);
    if (i->structure == NULL)
        return;
    if (!i->scan.ended)
        header_scan_add(&i->scan, bytes);
    i->utf8 = i->utf8 || i->scan.has_eight_bit;
    if (i->utf8 || (i->scan.ended && !i->scan.composite))
        structure_free(&i->structure);
    else
        structure_add(i->structure, bytes);
}

void
utf8_scan_end(struct inspection *i)
{
    if (i->structure != NULL)
        structure_end(i->structure);
    structure_free(&i->structure);
}
