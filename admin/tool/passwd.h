/* `petrel passwd`: a line for auth_users from a password. */
#ifndef ADMIN_TOOL_PASSWD_H
#define ADMIN_TOOL_PASSWD_H

/* `passwd USER`: asks the terminal twice, without echo, or takes one line of standard
 * input. arguments behind "passwd". Returns a sysexits code; EX_DATAERR for a name or
 * password that cannot be one, 130 after ^C. */
int passwd_command(int count, char **arguments);

#endif
