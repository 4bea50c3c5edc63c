/* Whose a spool is: what root has made in it goes to the user who serves it.
 *
 * Root makes a spool by a sendmail(1) before the daemon ever ran, and by a daemon
 * without `user`. The daemon of another user could neither lock nor read what is in it.
 */
#ifndef QUEUE_SPOOL_OWNER_H
#define QUEUE_SPOOL_OWNER_H

/* For root alone. Makes what is missing of the spool and gives what is root's in it to
 * user and group: directories, and files that have one name. Never what a link leads
 * to, nor in directories where everybody may write what user can read as it is. Nothing
 * of a directory of somebody else, or that has other things than a spool. Returns how
 * many were given, or -errno. */
int spool_owner_give(const char *path, unsigned user, unsigned group);

/* The user id that owns the directory; 0 also when there is none. */
unsigned spool_owner_of(const char *path);

#endif
