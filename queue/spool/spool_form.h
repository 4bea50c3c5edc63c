/* The form of the spool's files: its number is in lock/form, without which it is 1. A daemon
 * raises it before it writes a file of its own form (envelope.h), so that an older one,
 * which cannot read them, ends at startup and leaves them alone. */
#ifndef QUEUE_SPOOL_SPOOL_FORM_H
#define QUEUE_SPOOL_SPOOL_FORM_H

#include "base/text.h"

struct disk;

/* own: the form that this program writes, 1 to 9. part: "FIRST-LAST" of the slice, since
 * several may do so at a time. 0, or a code of sysexits.h with one line in error. */
int spool_form_raise(struct disk *spool, unsigned own, const char *part, char *error,
                     size_t size) __attribute__((warn_unused_result));

#endif
