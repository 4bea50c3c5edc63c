/* The names for which a mailbox may be made: those in a file, such as the system's
 * users.
 *
 * A line is a name, up to its first ':' if it has one, so /etc/passwd is such a file.
 * It is read on each question, which is seldom: only for a mailbox that does not exist.
 * Users known only to NSS (LDAP, systemd-homed) are not in it. */
#ifndef QUEUE_MAILBOX_NAMES_H
#define QUEUE_MAILBOX_NAMES_H

#include "base/text.h"

enum { MAILBOX_NAMES_MAX = 8 * 1024 * 1024 }; /* bytes of the file */

/* 1: name is in it (in any case of letters), or is postmaster, which every host has
 * (RFC 5321 §4.5.1). 0: it is not, or there is no such file. Else -errno. */
int mailbox_names_have(const char *file, struct text name);

#endif
