/* sendmail -bv: where mail for an address would go, without sending any. */
#ifndef ADMIN_SENDMAIL_VERIFY_H
#define ADMIN_SENDMAIL_VERIFY_H

#include "admin/settings/options.h"

/* Prints a line for each address. Returns 0, EX_NOUSER when one is refused, EX_DATAERR
 * when one is not an address. */
int verify_addresses(int count, char **addresses, const struct options *options);

#endif
