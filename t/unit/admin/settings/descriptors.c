/* admin/settings/descriptors.c: the limit is raised as far as it may be, and a lack is
 * told. */
#include "admin/settings/descriptors.h"

#include "base/log/log_internal.h"
#include "base/loop/loop.h"
#include "t/support/tap.h"

#include <sys/resource.h>

static struct loop *loop;
static struct log *logger;
static struct buffer lines;

static rlim_t
limit_after(int sessions, rlim_t soft, rlim_t hard)
{
    struct options o = {.server.clients.sessions = sessions,
                        .manager.sched.session_limit = sessions};
    struct rlimit files = {.rlim_cur = soft, .rlim_max = hard};
    buffer_clear(&lines);
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        abort();
    descriptors_want(&o, logger);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        abort();
    return files.rlim_cur;
}

int
main(void)
{
    struct rlimit files;
    loop = loop_new();
    logger = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&lines, 65536);
    log_capture(logger, &lines);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        abort();
    rlim_t hard = files.rlim_max < 4000 ? files.rlim_max : 4000;
    is_number(limit_after(10, 900, hard), 900, "what is enough stays");
    is_number(lines.length, 0, "without a word");
    rlim_t raised = limit_after(500, 200, hard);
    ok_named(raised >= 500 + 2 * 500 + 300 && raised < hard, "raised to what is needed");
    is_number(lines.length, 0, "without a word, too");
    is_number(limit_after(5000, 200, 1500), 1500, "as far as it may");
    ok(memmem(lines.at, lines.length, "1500 descriptors are too few", 24) != NULL);
    log_free(&logger);
    loop_free(&loop);
    buffer_free(&lines);
    return done();
}
