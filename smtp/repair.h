/* Line ends for old devices: a bare LF becomes CRLF, everything else stays as it is.
 *
 * It stands before the server machine, which is as strict as ever behind it: a line
 * that ends with LF is a line, so that LF . LF ends a message, as the device has meant,
 * and what follows is commands of the same client. A bare CR and NUL stay and are
 * refused. For `profile=legacy` alone: with it a client can say the same thing in two
 * ways, which is what SMTP smuggling (spec/reliability.md §1.1) needs in front of us.
 */
#ifndef SMTP_REPAIR_H
#define SMTP_REPAIR_H

#include "base/buffer.h"

struct repair {
    bool after_cr;
};
/* Adds bytes to out, which must have room for twice as many. The result does not depend
 * on how the stream was cut. r is zeroed before the first. */
void repair_lines(struct repair *r, struct text bytes, struct buffer *out);

#endif
