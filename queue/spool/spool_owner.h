/* The owner of a spool: gives files that root has made in it to the daemon's user.
 *
 * Root makes a spool by a sendmail(1) before the first start of the daemon, and by a
 * daemon without `user`. A daemon of another user could neither lock nor read it. */
#ifndef QUEUE_SPOOL_SPOOL_OWNER_H
#define QUEUE_SPOOL_SPOOL_OWNER_H

/* For root alone. Makes missing directories of the spool and gives user and group those
 * that root owns, and root's files with a single name. Never follows links; in
 * directories that everybody may write, skips files that user can read already. Changes
 * nothing if path belongs to another user or has other contents than a spool. Returns
 * the number of changes, or -errno. */
int spool_owner_give(const char *path, unsigned user, unsigned group);

/* The user id that owns the directory; 0 also when there is none. */
unsigned spool_owner_of(const char *path);

#endif
