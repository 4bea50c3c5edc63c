/* `petrel test`: a short message that is followed on its way. */
#ifndef ADMIN_SETUP_TEST_COMMAND_H
#define ADMIN_SETUP_TEST_COMMAND_H

#include "admin/settings/options.h"
#include "base/id.h"
#include "base/loop/loop.h"

/* arguments behind "test". Returns 0: delivered; EX_UNAVAILABLE: it failed; EX_TEMPFAIL:
 * it waits, or no daemon runs; EX_NOPERM: it was sent, but this user may not ask about
 * it; or another sysexits code: nothing was sent. */
int test_command(int count, char **arguments, const struct options *options);

/* Its message is handed in as sendmail(1) does: durable without a daemon. */
struct test_letter {
    const char *to, *from; /* as typed; from NULL: the calling user */
    bool shows;            /* on standard output: the letter, and where it goes */
    char id[ID_LENGTH + 1];
};

/* Fills the id. Returns 0, or a sysexits code with one line on standard error. */
int test_send(struct test_letter *letter, struct loop *loop,
              const struct options *options);

#endif
