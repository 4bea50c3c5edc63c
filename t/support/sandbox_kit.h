/* Children that enter the sandbox: what the tests of it share. */
#ifndef T_SUPPORT_SANDBOX_KIT_H
#define T_SUPPORT_SANDBOX_KIT_H

#include "base/sandbox/identity.h"
#include "base/sandbox/sandbox.h"
#include "t/support/child.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, NAME_SIZE = 128 };

/* ours/: to write; read/: to read; others/: neither. */
extern char home[];
extern struct sandbox_state offer;
extern uid_t wanted; /* of the child */

const char * in_home(const char *name);

void spit(const char *path, const char *content);

void begin(void);

void sandbox_finish(void);

struct sandbox * planned(void);

/* In a child, as root or as nobody, within the sandbox: the wait status. Its standard
 * error comes out in told, if that is not NULL. */
int child(bool nobody, int (*act)(void), char *told, size_t told_size);

#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, strerror(errno)); \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

#endif
