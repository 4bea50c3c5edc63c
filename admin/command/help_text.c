/* Expands the text of the manual, and finds a paragraph. */
#include "admin/command/help_text.h"

enum { HELP_TEXT_MAX = 256 * 1024, HELP_TEXT_DEPTH_MAX = 64, HELP_TEXT_PAIRS = 512 };

/* Global names, as in admin/page/page.c. */
__asm__(".pushsection .rodata\n"
        ".global help_text_begin\n"
        ".hidden help_text_begin\n"
        "help_text_begin:\n"
        ".incbin \"" HELP_TEXT_FILE "\"\n"
        ".global help_text_end\n"
        ".hidden help_text_end\n"
        "help_text_end:\n"
        ".byte 0\n"
        ".popsection\n");
extern const char help_text_begin[], help_text_end[];

/* The pairs of a byte lie deeper with each step, so that a stack is enough. */
static void
help_text_expand(char byte, struct buffer *out)
{
    char stack[HELP_TEXT_DEPTH_MAX];
    size_t used = 0;
    stack[used++] = byte;
    while (used > 0) {
        unsigned char c = (unsigned char)stack[--used];
        const char *pair = help_text_begin + 2 * (size_t)c;
        if (pair[0] == '\0' || used + 2 > sizeof(stack)) {
            (void)!buffer_add_byte(out, (char)c);
        } else {
            stack[used++] = pair[1];
            stack[used++] = pair[0];
        }
    }
}

bool
help_text_find(struct text key, struct buffer *out)
{
    struct buffer all;
    buffer_init(&all, HELP_TEXT_MAX);
    /* cppcheck-suppress comparePointers */
    size_t size = (size_t)(help_text_end - help_text_begin);
    for (size_t i = HELP_TEXT_PAIRS; i < size; i++)
        help_text_expand(help_text_begin[i], &all);
    struct text rest = buffer_text(&all), paragraph, name;
    bool found = false;
    while (!found && text_cut(&rest, '\1', &paragraph))
        if (text_cut(&paragraph, '\n', &name) && name.length > 0 &&
            text_equal(name, key))
            found = buffer_add(out, paragraph);
    buffer_free(&all);
    return found;
}
