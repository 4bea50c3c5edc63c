/* The plan of the sandbox from settings and routes, and the paths that a reload
 * lacks. */
#include "admin/settings/sandbox_rules.h"

#include "base/log/log_internal.h"
#include "t/support/child.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAME_SIZE = 200, LINES_MAX = 100000 };

static char home[] = "/tmp/petrel-confine-XXXXXX";
static struct sandbox_state offer;

static const char *
in_home(const char *name)
{
    static char path[8][NAME_SIZE];
    static unsigned turn;
    char *out = path[turn++ % 8];
    snprintf(out, NAME_SIZE, "%s/%s", home, name);
    return out;
}

static const char *
spit(const char *name, const char *content)
{
    const char *path = in_home(name);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    must(file >= 0 && write(file, content, strlen(content)) >= 0 && close(file) == 0);
    return path;
}

struct world {
    struct options options;
    struct sandbox_rules c;
    struct settings *settings;
    struct route_table *routes;
    struct sandbox *sandbox;
    struct log *log;
    struct buffer lines;
};

static void
read_settings(struct world *w, const char *content)
{
    char spool[NAME_SIZE + 10];
    snprintf(spool, sizeof(spool), "spool=%s", in_home("spool"));
    char *overrides[] = {spool, NULL};
    struct options_sources sources = {.file = spit("conf/petrel.conf", content),
                                      .overrides = overrides};
    FIXTURE(buffer, mistakes, buffer_init, buffer_free, LINES_MAX);
    w->settings = options_read(&sources, &w->options);
    if (settings_errors(w->settings).length > 0)
        printf("# %.*s", TEXT_ARGS(settings_errors(w->settings)));
    w->routes = options_routes(&w->options, &mistakes);
    must(w->routes != NULL);
    w->c = (struct sandbox_rules){&w->options, w->settings, w->routes, NULL};
}

static void
begin(struct world *w, const char *content)
{
    *w = (struct world){.sandbox = sandbox_new()};
    child_plan(w->sandbox);
    w->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&w->lines, LINES_MAX);
    log_capture(w->log, &w->lines);
    read_settings(w, content);
}

static void
forget_settings(struct world *w)
{
    route_free(&w->routes);
    settings_free(&w->settings);
}

static void
end(struct world *w)
{
    forget_settings(w);
    sandbox_free(&w->sandbox);
    log_free(&w->log);
    buffer_free(&w->lines);
}

static bool
has_line(struct world *w, const char *part)
{
    must(buffer_add_byte(&w->lines, '\0'));
    w->lines.length--;
    return strstr(w->lines.at, part) != NULL;
}

/* Runs the rest of a test in a child, for a process that enters never leaves. */
static void
in_child(int (*act)(void), const char *name)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0);
    if (pid == 0)
        child_exit(act());
    must(waitpid(pid, &status, 0) == pid);
    is_number(status, 0, name);
}

#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "# line %d: %s\n", __LINE__, #condition);                    \
            return 1;                                                                    \
        }                                                                                \
    } while (0)

static int
plan_all(void)
{
    struct world w;
    char content[2000];
    snprintf(content, sizeof(content),
             "hostname = h.test\nlisten = unix:%s?lmtp\n"
             "tls_certificate = %s, %s\ntls_key_file = %s\n"
             "local = maildir:%s/%%u?create=yes\n"
             "routes = a.test maildir:%s/%%d/%%u\n    b.test maildir:%s\n"
             "    c.test maildir:%s/%%u\n    d.test lmtp://unix:%s\n    * discard\n",
             in_home("run/smtp"), spit("certs/one", "1"), spit("certs/two", "2"),
             spit("value/key", "/none/a, /none/b"), in_home("made"), in_home("there"),
             in_home("shared"), in_home("absent"), in_home("run/lmtp"));
    must(mkdir(in_home("there"), 0777) == 0 && mkdir(in_home("hosts"), 0777) == 0 &&
         mkdir(in_home("hosts/owners"), 0777) == 0);
    size_t length = strlen(content);
    snprintf(content + length, sizeof(content) - length, "defrag_registry = dir:%s\n",
             in_home("hosts/owners"));
    begin(&w, content);
    sandbox_rules_plan(w.sandbox, &w.c);
    EXPECT(sandbox_rules_enter(w.sandbox, &w.options, w.log));
    EXPECT(has_line(&w, " sandbox: Landlock (ABI "));
    EXPECT(sandbox_may_write(w.sandbox, in_home("spool")));
    EXPECT(sandbox_may_write(w.sandbox, in_home("made/user")));
    EXPECT(sandbox_may_write(w.sandbox, in_home("there/d/u")));
    EXPECT(sandbox_may_write(w.sandbox, in_home("shared")));
    EXPECT(sandbox_may_write(w.sandbox, in_home("hosts/owners/00")));
    must(rename(in_home("hosts/owners"), in_home("hosts/away")) == 0);
    EXPECT(mkdir(in_home("hosts/owners"), 0777) == 0);
    EXPECT(mkdir(in_home("hosts/owners/00"), 0777) == 0);
    EXPECT(!sandbox_may_write(w.sandbox, in_home("absent")));
    EXPECT(!sandbox_may_write(w.sandbox, in_home("conf")));
    EXPECT(!sandbox_may_write(w.sandbox, in_home("run")));
    EXPECT(!sandbox_may_write(w.sandbox, in_home("")));
    EXPECT(access(in_home("made"), F_OK) == 0 && access(in_home("shared"), F_OK) == 0);
    EXPECT(access(in_home("absent"), F_OK) != 0);
    EXPECT(sandbox_may_read(w.sandbox, in_home("conf/petrel.conf")));
    EXPECT(sandbox_may_read(w.sandbox, in_home("certs/one")));
    EXPECT(sandbox_may_read(w.sandbox, in_home("certs/two")));
    EXPECT(sandbox_may_read(w.sandbox, in_home("value/key")));
    EXPECT(!sandbox_may_read(w.sandbox, in_home("other/secret")));
    EXPECT(!sandbox_may_read(w.sandbox, home));
    EXPECT(sandbox_may_read(w.sandbox, "/etc/hosts"));
    EXPECT(sandbox_may_read(w.sandbox, "/dev/urandom"));
    EXPECT(!sandbox_may_read(w.sandbox, "/bin/sh"));
    end(&w);
    return 0;
}

static int
review_reload(void)
{
    struct world w;
    char line[NAME_SIZE + 80];
    begin(&w, "hostname = h.test\nlog_level = info\n");
    sandbox_rules_plan(w.sandbox, &w.c);
    EXPECT(sandbox_rules_enter(w.sandbox, &w.options, w.log));
    sandbox_rules_review(w.sandbox, &w.c, w.log);
    EXPECT(!has_line(&w, "restart"));
    forget_settings(&w);
    char overrides[4][NAME_SIZE + 40];
    snprintf(overrides[0], sizeof(overrides[0]), "spool=%s", in_home("spool"));
    snprintf(overrides[1], sizeof(overrides[1]), "routes=* maildir:%s/%%u", in_home("other"));
    snprintf(overrides[2], sizeof(overrides[2]), "tls_certificate=%s",
             in_home("other/secret"));
    snprintf(overrides[3], sizeof(overrides[3]), "tls_key=relative,%s",
             in_home("conf/petrel.conf"));
    char *list[] = {overrides[0], overrides[1], overrides[2], overrides[3], NULL};
    struct options_sources sources = {.file = in_home("conf/petrel.conf"),
                                      .overrides = list};
    struct buffer mistakes;
    buffer_init(&mistakes, LINES_MAX);
    w.settings = options_read(&sources, &w.options);
    w.routes = options_routes(&w.options, &mistakes);
    EXPECT(w.routes != NULL);
    w.c = (struct sandbox_rules){&w.options, w.settings, w.routes, NULL};
    sandbox_rules_review(w.sandbox, &w.c, w.log);
    snprintf(line, sizeof(line),
             "warning: needs a restart: the sandbox does not allow to write to %s/\n",
             in_home("other"));
    EXPECT(has_line(&w, line));
    snprintf(line, sizeof(line),
             "warning: needs a restart: the sandbox does not allow to read %s\n",
             in_home("other/secret"));
    EXPECT(has_line(&w, line));
    EXPECT(!has_line(&w, "petrel.conf"));
    buffer_free(&mistakes);
    end(&w);
    return 0;
}

static void
test_off(void)
{
    FIXTURE(world, w, begin, end, "hostname = h.test\nsandbox = no\n");
    sandbox_rules_plan(w.sandbox, &w.c);
    ok_named(sandbox_rules_enter(w.sandbox, &w.options, w.log), "off: it goes on");
    ok_named(!sandbox_get_state(w.sandbox)->entered, "and nothing is given up");
    ok_named(has_line(&w, "main: sandbox: off, as `sandbox` says\n"), "which is said");
    ok(sandbox_rules_check(&w.options));
}

/* With a sanitizer everything lacks. */
static int
lack_all(void)
{
    struct world w;
    begin(&w, "hostname = h.test\nsandbox = yes\n");
    sandbox_rules_plan(w.sandbox, &w.c);
    EXPECT(sandbox_rules_enter(w.sandbox, &w.options, w.log));
    EXPECT(has_line(&w, "warning: sandbox: off; this system lacks: everything"));
    EXPECT(sandbox_rules_check(&w.options));
    end(&w);
    begin(&w, "hostname = h.test\nsandbox = require\n");
    EXPECT(!sandbox_rules_enter(w.sandbox, &w.options, w.log));
    EXPECT(!sandbox_rules_check(&w.options));
    end(&w);
    return 0;
}

int
main(void)
{
    char command[NAME_SIZE];
    sandbox_offer(&offer);
    umask(0);
    must(mkdtemp(home) != NULL);
    static const char *const made[] = {"conf", "certs", "value", "run", "other", "spool"};
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
        must(mkdir(in_home(made[i]), 0777) == 0);
    spit("other/secret", "x");
    test_off();
    if (TAP_ADDRESS_SANITIZER)
        in_child(lack_all, "what lacks is said, and may be required");
    if (offer.landlock > 0 && offer.seccomp) {
        in_child(plan_all, "spool, Maildirs, settings, certificates, the system's files");
        in_child(review_reload, "a reload says what is outside of the plan");
    }
    snprintf(command, sizeof(command), "rm -rf %s", home);
    must(system(command) == 0);
    return done();
}
