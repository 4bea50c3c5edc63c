/* sendmail(1), mailq(1), newaliases(1): the commands that programs have called for
 * forty years. */
#ifndef ADMIN_SENDMAIL_SENDMAIL_H
#define ADMIN_SENDMAIL_SENDMAIL_H

#include "admin/settings/options.h"

/* Functions of other rooms; dispatch.c connects them. */
struct sendmail_helpers {
    /* -bs: SMTP on standard input and output. Returns a sysexits code. */
    int (*serve)(const struct options *options);
    int64_t patience_ms; /* for all of the message; 0 = 24 hours */
};

/* count and arguments as main's, without the program's name. Returns a sysexits code.
 * The message is in the spool, durable, when it is 0. */
int sendmail_main(int count, char **arguments, const struct options *options,
                  const struct sendmail_helpers *helpers);

/* sendmail(1) of root may come before the daemon, or beside one without `user`: the spool
 * is made for that user. Without root nothing happens. */
void sendmail_give_spool(const struct options *options);

/* -bv: prints where mail for the addresses goes. Returns 0, EX_NOUSER when it is
 * refused for one of them, or another sysexits code. */
int sendmail_verify(int count, char **addresses, const struct options *options);

/* When arguments[0], main's, is sendmail, mailq or newaliases, or says nothing that we
 * know and file, what was executed, is one of them: the arguments of that program with
 * "sendmail" in front, malloc'ed, and their number. Else NULL. */
char **sendmail_called(const char *file, int count, char **arguments, int *used);

#endif
