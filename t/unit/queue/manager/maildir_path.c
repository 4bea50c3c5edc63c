/* queue/manager/maildir_path: the names for which a mailbox may be made. */
#include "queue/manager/maildir.h"

#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char file[] = "/tmp/maildir_path-XXXXXX";

static void
write_names(const char *content)
{
    FILE *f = fopen(file, "w");
    if (f == NULL || fputs(content, f) < 0 || fclose(f) != 0)
        abort();
}

static int
have_in(const char *names, const char *name)
{
    struct target target = {.kind = TARGET_MAILDIR, .create = true, .path = "/%u"};
    struct address address = {.local = text_from(name)};
    snprintf(target.users, sizeof(target.users), "%s", names);
    return maildir_may_make(&target, &address);
}

static int
have(const char *name)
{
    return have_in(file, name);
}

int
main(void)
{
    int made = mkstemp(file);
    if (made < 0)
        abort();
    close(made);
    write_names("root:x:0:0:root:/root:/bin/sh\n# alice\n\n+nis:x\n-gone\n+\n"
                "joe:x:1000:1000::/home/joe:/bin/sh\n  list  \nBob\nlast");
    is_number(have("root"), 1, "a user");
    is_number(have("joe"), 1, "another");
    is_number(have("Joe"), 1, "letters count the same in any case");
    is_number(have("bob"), 1, "also in the file");
    is_number(have("list"), 1, "a line without more");
    is_number(have("last"), 1, "a line without its end");
    is_number(have("alice"), 0, "a comment");
    is_number(have("+nis"), 0, "NIS");
    is_number(have("-gone"), 0, "NIS");
    is_number(have(""), 0, "an empty name");
    is_number(have("jo"), 0, "a part");
    is_number(have("joe:x"), 0, "more than a name");
    is_number(have("PostMaster"), 1, "postmaster is everywhere");
    write_names("joe\n");
    is_number(have("root"), 0, "the file is read when it is asked");
    unlink(file);
    is_number(have("joe"), 0, "no file, no names");
    is_number(have_in("/", "joe"), -EISDIR, "trouble is told");
    is_number(have_in("/etc/passwd", "root"), 1, "the system's");
    /* SIGALRM would end the test. */
    alarm(60);
    ok(mkfifo(file, 0600) == 0);
    int writer = open(file, O_RDWR);
    is_number(have("joe"), -EINVAL, "a FIFO is not waited for");
    close(writer);
    unlink(file);
    return done();
}
