/* Messages of several parts, and what a program is to read of them as JSON. They are made here
 * of what they say, by encoders of their own, so that no reader of ours is its own judge. */
#ifndef T_ROOF_FORM_H
#define T_ROOF_FORM_H

#include "base/buffer.h"

struct form;

/* A form of about size octets, by that stream of chance. NULL: a message without parts. */
struct form *form_draw(size_t size, uint64_t *chance);
/* Its subject, as in a header. */
const char *form_subject(const struct form *f);
/* The fields that say of which parts it is, and the body. */
void form_write(const struct form *f, struct buffer *content);

/* NULL, or how an application's JSON differs from the content that was given (f: its form, or
 * NULL) and its recipients. */
const char *form_differs(const struct form *f, struct text content,
                         const char *const *recipients, size_t count, struct text json);

#endif
