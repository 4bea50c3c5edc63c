/* Commands without a daemon, from the arguments to the spool: admin/command/queue_command.h,
 * admin/command/offline.h and admin/control/operation.h, as a process of its own would run them. */
#include "admin/command/queue_command.h"

#include "admin/command/offline.h"
#include "admin/control/operation.h"
#include "base/loop/loop.h"
#include "queue/queue_operator.h"
#include "t/support/tap.h"

#include <sysexits.h>
#include <unistd.h>

static char folder[] = "/tmp/petrel-change-XXXXXX";
static char spool[100], control[100], hostname[] = "h.test", output[100];

static struct options
the_options(void)
{
    return (struct options){.hostname = hostname,
                            .spool = spool,
                            .control = control,
                            .message_size_limit = 1000000,
                            .active_limit = 100,
                            .delivery_session_limit = 10,
                            .bounce_size_limit = 50000,
                            .slices = 1};
}

static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    (void)context;
    if (refusal)
        abort();
    envelope_free(&e);
}

static struct id
inject(const char *to)
{
    struct options o = the_options();
    struct queue_settings settings = options_queue(&o);
    struct queue *queue;
    struct outcome refusal;
    char error[300];
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    if (queue_open_injector(&queue, log, &settings, error, sizeof(error)) != 0)
        abort();
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, TEXT("ann@a.test"));
    if (!envelope_add(e, text_from(to), NOTIFY_DEFAULT, TEXT("")))
        abort();
    struct queue_draft *draft = queue_begin(queue, 0, &refusal);
    if (draft == NULL || !queue_write(draft, TEXT("A: b\r\n\r\nc\r\n")))
        abort();
    queue_name(draft, e);
    struct id id = e->id;
    queue_commit(&draft, &e, on_stored, NULL);
    queue_close(&queue);
    log_free(&log);
    return id;
}

/* One command line; what it prints goes to a file. */
static int
run(enum manager_verb verb, const char *words)
{
    static struct filter f;
    static char copies[8][60];
    char *arguments[8];
    int count = 0;
    struct options o = the_options();
    struct text rest = text_from(words), word;
    while (text_word(&rest, " ", &word)) {
        text_copy(copies[count], sizeof(copies[0]), word);
        arguments[count] = copies[count];
        count++;
    }
    if (!filter_parse(&f, count, arguments))
        abort();
    fflush(stdout);
    int keep = dup(1);
    if (keep < 0 || freopen(output, "w", stdout) == NULL)
        abort();
    int code = queue_command_messages(verb, &f, &o);
    fflush(stdout);
    if (dup2(keep, 1) < 0)
        abort();
    close(keep);
    return code;
}

static void
printed(const char *want)
{
    char got[4096];
    FILE *file = fopen(output, "r");
    size_t size = file ? fread(got, 1, sizeof(got) - 1, file) : 0;
    got[size] = '\0';
    if (file)
        fclose(file);
    is_string(got, want, "what is printed");
}

static const char *
line_of(struct id id, const char *text)
{
    static char line[100];
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(line, sizeof(line), "%s %s\n", name, text);
    return line;
}

static const char *
named(struct id id)
{
    static char name[ID_LENGTH + 1];
    id_format(id, name);
    return name;
}

static void
test_commands(void)
{
    struct id one = inject("one@b.test"), two = inject("two@b.test");
    is_number(run(MANAGER_HOLD, named(one)), 0, "hold");
    printed(line_of(one, "held"));
    is_number(run(MANAGER_HOLD, named(one)), 0, "again");
    printed(line_of(one, "is held already"));
    is_number(run(MANAGER_RETRY, named(one)), EX_UNAVAILABLE, "retry of what is held");
    printed("");
    is_number(run(MANAGER_RETRY, "--to two@b.test"), 0, "retry");
    printed(line_of(two, "is due when the daemon starts"));
    is_number(run(MANAGER_RELEASE, "--all"), 0, "release");
    printed(line_of(one, "released"));
    is_number(run(MANAGER_RELEASE, named(one)), EX_UNAVAILABLE, "once");
    is_number(run(MANAGER_BOUNCE, "--to one@b.test"), 0, "bounce");
    printed(line_of(one, "returned to its sender"));
    is_number(run(MANAGER_REMOVE, named(one)), EX_DATAERR, "it is gone");
    is_number(run(MANAGER_REMOVE, named(two)), 0, "rm");
    printed(line_of(two, "removed"));
    is_number(run(MANAGER_REMOVE, "--from nobody@x.test"), 0, "rm of none");
    printed("");
    is_number(run(MANAGER_REMOVE, "--json --from <>"), 0, "the bounce is in the queue");
    char got[200] = "";
    FILE *file = fopen(output, "r");
    ok(file && fgets(got, sizeof(got), file) && strstr(got, "\"action\":\"rm\"") &&
       strstr(got, "\"ok\":true") && strstr(got, "\"queue_id\":\""));
    if (file)
        fclose(file);
}

/* Who has the lock keeps it, and nobody touches his files. */
static void
test_busy(void)
{
    struct options o = the_options();
    struct offline *other = NULL, *mine = NULL;
    char error[300] = "";
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    is_number(offline_open(&other, loop, log, &o, error, sizeof(error)), 0, "the lock");
    ok(manager_is_offline(offline_manager(other)));
    is_number(offline_open(&mine, loop, log, &o, error, sizeof(error)), EX_TEMPFAIL,
              "is taken");
    ok(mine == NULL && strstr(error, "another petrel"));
    struct id id = inject("x@b.test");
    is_number(run(MANAGER_REMOVE, named(id)), EX_UNAVAILABLE, "nobody answers for long");
    offline_close(&other);
    offline_close(&other);
    is_number(run(MANAGER_REMOVE, named(id)), 0, "then it works");
    log_free(&log);
    loop_free(&loop);
}

static void
test_no_spool(void)
{
    char keep[100];
    memcpy(keep, spool, sizeof(keep));
    snprintf(spool, sizeof(spool), "%s/never", folder);
    is_number(run(MANAGER_REMOVE, "--all"), EX_UNAVAILABLE, "there is no spool");
    ok_named(access(spool, F_OK) != 0, "none is made");
    struct options o = the_options();
    static const struct filter all = {.everything = true, .older_ms = -1};
    is_number(queue_command_flush(&all, true, &o), EX_UNAVAILABLE, "nobody is there to flush");
    memcpy(spool, keep, sizeof(spool));
}

int
main(void)
{
    char command[200];
    if (mkdtemp(folder) == NULL)
        abort();
    snprintf(spool, sizeof(spool), "%s/spool", folder);
    snprintf(control, sizeof(control), "%s/control", folder);
    snprintf(output, sizeof(output), "%s/output", folder);
    test_commands();
    test_busy();
    test_no_spool();
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
    return done();
}
