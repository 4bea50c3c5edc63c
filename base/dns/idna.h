/* Internationalized domain names: U-labels to A-labels (RFC 5890, RFC 5891, UTS #46
 * nontransitional), by libidn2 where it is built in. No other file uses libidn2. */
#ifndef BASE_DNS_IDNA_H
#define BASE_DNS_IDNA_H

#include "base/text.h"

enum { IDNA_NAME_MAX = 255 + 1 }; /* with the final NUL */

/* "libidn2 2.3.3", or NULL: this build has none. */
const char *idna_version(void);

/* "bücher.example" as "xn--bcher-kva.example", in lower case; an ASCII name as it is,
 * in lower case. False: not a domain name, too long, or built without libidn2. */
bool idna_to_ascii(struct text name, char out[IDNA_NAME_MAX])
    __attribute__((warn_unused_result));

#endif
