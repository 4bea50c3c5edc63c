/* Files with secrets that everybody can read. */
#ifndef ADMIN_SECRECY_H
#define ADMIN_SECRECY_H

#include "admin/options.h"

/* A warning in the log for each. Symbolic links are not followed: what is mounted into
 * a container is one, and guarded by its walls. */
void secrecy_warn(const struct options *options, struct log *log);

#endif
