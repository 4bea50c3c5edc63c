/* The message of `petrel test` is handed in as sendmail(1) does: durable without a daemon. */
#ifndef ADMIN_SETUP_TEST_SEND_H
#define ADMIN_SETUP_TEST_SEND_H

#include "admin/settings/options.h"
#include "base/id.h"
#include "base/loop/loop.h"

struct test_letter {
    const char *to, *from; /* as typed; from NULL: the calling user */
    bool shows;            /* on standard output: the letter, and where it goes */
    char id[ID_LENGTH + 1];
};

/* Fills the id. Returns 0, or a sysexits code with one line on standard error. */
int test_send(struct test_letter *letter, struct loop *loop,
              const struct options *options);

#endif
