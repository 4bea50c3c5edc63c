/* Maildirs on the disk of the host, and a reader who looks into them: /mail/m5r0 is that of
 * recipient 0 of m5. */
#ifndef T_ROOF_MAILBOX_H
#define T_ROOF_MAILBOX_H

#include "t/roof/model.h"

#define MAILBOX_TARGET "maildir:/mail/%u?create=all"

/* Recipients of this domain have one. The reader looks every second, until the end. */
void mailbox_begin(unsigned domain);
/* Tells the model what has come since the last time. */
void mailbox_look(void);
/* It has one. */
bool mailbox_has(const struct model_rcpt *r);
/* All that has come is still there; the reader looks no more. */
void mailbox_judge(void);

#endif
