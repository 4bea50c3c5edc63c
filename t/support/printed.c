/* Captures standard output between begin and end. */
#include "t/support/printed.h"

void
printed_begin(struct printed *p)
{
    fflush(stdout);
    p->saved = dup(1);
    p->file = tmpfile();
    if (p->saved < 0 || p->file == NULL || dup2(fileno(p->file), 1) < 0)
        abort();
}

const char *
printed_end(struct printed *p)
{
    fflush(stdout);
    ssize_t got = pread(1, p->text, sizeof(p->text) - 1, 0);
    p->text[got > 0 ? got : 0] = '\0';
    if (dup2(p->saved, 1) < 0)
        abort();
    close(p->saved);
    fclose(p->file);
    return p->text;
}
