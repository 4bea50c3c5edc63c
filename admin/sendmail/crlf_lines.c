/* Normalises line ends of a message on its way from a program. */
#include "admin/sendmail/crlf_lines.h"

static void
put_line_end(struct crlf_lines *l)
{
    if (l->lone_dot)
        l->put(l->context, TEXT("."));
    l->has_byte = l->lone_dot = false;
    if (!l->over)
        l->put(l->context, TEXT("\r\n"));
}

static void
crlf_lines_end_line(struct crlf_lines *l)
{
    l->after_cr = false;
    if (l->lone_dot && l->dot_ends)
        l->over = true;
    else
        put_line_end(l);
}

static void
crlf_lines_put_run(struct crlf_lines *l, struct text run)
{
    bool dot = !l->has_byte && text_equal(run, TEXT("."));
    if (l->lone_dot)
        l->put(l->context, TEXT("."));
    l->lone_dot = dot;
    l->has_byte = true;
    if (!dot && !l->over)
        l->put(l->context, run);
}

static void
stray_cr(struct crlf_lines *l)
{
    l->after_cr = false;
    if (l->in_header)
        crlf_lines_put_run(l, TEXT(" "));
    else
        put_line_end(l);
}

/* Bytes at the front that stand for themselves. */
static size_t
run_length(struct text t)
{
    size_t length = 0;
    while (length < t.length && t.at[length] != '\n' && t.at[length] != '\r' &&
           t.at[length] != '\0')
        length++;
    return length;
}

void
crlf_lines_start(struct crlf_lines *l, bool dot_ends,
                 void (*put)(void *context, struct text bytes), void *context)
{
    *l = (struct crlf_lines){
        .put = put, .context = context, .dot_ends = dot_ends, .in_header = true};
}

void
crlf_lines_add(struct crlf_lines *l, struct text bytes)
{
    while (bytes.length > 0 && !l->over) {
        size_t length = run_length(bytes);
        if (length == 0) {
            if (bytes.at[0] == '\n')
                crlf_lines_end_line(l);
            else if (bytes.at[0] == '\r')
                l->after_cr = true;
            bytes = text_after(bytes, 1);
            continue;
        }
        if (l->after_cr)
            stray_cr(l);
        if (!l->over)
            crlf_lines_put_run(l, text_before(bytes, length));
        bytes = text_after(bytes, length);
    }
}

void
crlf_lines_end(struct crlf_lines *l)
{
    if (!l->over && (l->has_byte || l->after_cr))
        crlf_lines_end_line(l);
}
