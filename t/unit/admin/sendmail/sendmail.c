/* sendmail(1), queue and version as commands: arguments and standard input go in, exit
 * codes, output and a spool come out. */
#include "admin/sendmail/sendmail.h"

#include "admin/command/command.h"
#include "base/log/log_internal.h"
#include "base/memory.h"
#include "queue/queue.h"
#include "queue/queue_operator.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static char folder[] = "/tmp/petrel-sendmail-XXXXXX";

static struct command_world heard; /* of the last run: */
static char *const out = heard.output, *const err = heard.errors;
static struct options options;
static struct settings *settings;
static int served;
static int64_t patience_ms;
static int standard_input = -1; /* instead of what is given */

static int
serve(const struct options *o)
{
    served++;
    return o == &options ? 42 : 1;
}

static void
set_options(const char *first, const char *second)
{
    char spool[100], one[200], two[200];
    snprintf(spool, sizeof(spool), "spool=%s/spool", folder);
    static char hostname[] = "hostname=h.test";
    snprintf(one, sizeof(one), "%s", first);
    snprintf(two, sizeof(two), "%s", second);
    char *const overrides[] = {hostname, spool, one, two, NULL};
    struct options_sources sources = {.overrides = overrides};
    settings_free(&settings);
    settings = options_read(&sources, &options);
    if (settings_errors(settings).length > 0)
        abort();
}

enum program { SENDMAIL, QUEUE, VERSION };

/* Arguments separated by '|'; given may be NULL. VERSION is given a library. */
static int
call(enum program program, const char *arguments, const char *given)
{
    static char copies[64][400];
    char *list[65];
    int count = 0, code = -1;
    struct text rest = text_from(arguments), word;
    while (rest.length > 0 && text_cut(&rest, '|', &word)) {
        text_copy(copies[count], sizeof(copies[0]), word);
        list[count] = copies[count];
        count++;
    }
    list[count] = NULL;
    FILE *input = tmpfile();
    int saved = dup(0);
    if (input == NULL || saved < 0 || (given && (fputs(given, input) < 0 || fflush(input) != 0)))
        abort();
    rewind(input);
    dup2(standard_input >= 0 ? standard_input : fileno(input), 0);
    fseek(stdin, 0, SEEK_SET);
    clearerr(stdin);
    command_world_listen(&heard);
    struct sendmail_helpers helpers = {.serve = serve, .patience_ms = patience_ms};
    if (program == SENDMAIL)
        code = sendmail_main(count, list, &options, &helpers);
    else if (program == QUEUE)
        code = command_queue(count, list, &options);
    else
        code = command_version(count, list, given ? given : "");
    command_world_heard(&heard);
    dup2(saved, 0);
    close(saved);
    fclose(input);
    return code;
}

/* Exactly this on standard output. */
static void
prints(enum program program, const char *arguments, const char *want)
{
    is_number(call(program, arguments, ""), 0, arguments);
    is_string(out, want, "prints");
    bool none = program == QUEUE && want[0] == '\0' && strncmp(arguments, "ls|", 3) == 0;
    is_string(err, none ? "petrel queue: no message matches\n" : "", "says nothing else");
}

static void
fails(enum program program, const char *arguments, int code, const char *says)
{
    is_number(call(program, arguments, "Subject: x\n\ny\n"), code, "the exit code");
    is_string(err, says, "says why");
}

static size_t
count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static size_t
queued(void)
{
    call(QUEUE, "ls", NULL);
    return count_lines(out);
}

static void
clear(void)
{
    call(QUEUE, "rm|--all", NULL);
    is_number(queued(), 0, "the queue is empty");
}

/* Sends; what `queue cat` then shows is in out. */
static void
sends(const char *arguments, const char *input)
{
    is_number(call(SENDMAIL, arguments, input), 0, arguments);
    if (!ok_named(out[0] == '\0' && err[0] == '\0', "in silence"))
        printf("# %s\n", err);
    is_number(call(QUEUE, "cat|--all", NULL), 0, "and it is there");
}

static bool
has(const char *words)
{
    return strstr(out, words) != NULL;
}

TEST(message)
{
    sends("-f|ann@a.test|bob@b.test", "Subject: x\n\nhello\n.\nrest\n");
    ok(text_starts(text_from(out), TEXT("Received: by h.test (Petrel, from userid ")));
    ok(has("\r\nDate: ") && has("\r\nMessage-ID: <") && has("<ann@a.test>\r\n"));
    ok_named(text_ends_nocase(text_from(out), TEXT("\r\nSubject: x\r\n\r\nhello\r\n")),
             "up to the dot");
    clear();
    sends("-oi|-Fann b|-rann@a.test|bob@b.test", "Subject: x\n\nhello\n.\nrest\n");
    ok(has("\r\nhello\r\n.\r\nrest\r\n") && has("\r\nFrom: ann b <ann@a.test>\r\n"));
    clear();
    sends("-t|-f|ann@a.test",
          "From: x@y.test\nTo: bob@b.test,\n carol\nBcc: dan@d.test\n\n");
    ok(!has("Bcc") && !has("dan@d.test") &&
       has("From: x@y.test\r\nTo: bob@b.test,\r\n"));
    call(QUEUE, "show|--all", NULL);
    ok(has("from:     <ann@a.test>") && has("to:       <bob@b.test> waiting\n"
                                            "to:       <carol@h.test> waiting\n"
                                            "to:       <dan@d.test> waiting\n"));
    clear();
    is_number(call(SENDMAIL, "-v|bob@b.test", "x\n"), 0, "-v");
    ok(text_starts(text_from(out), TEXT("queued as ")) && count_lines(out) == 1);
    clear();
}

TEST(envelope)
{
    sends("-f|<>|-V|id+1|-N|success,delay|-R|full|bob@b.test|a, b@c.test|<d>",
          "x: y\n");
    ok(has("From: ") && has("<MAILER-DAEMON@h.test>\r\n"));
    call(QUEUE, "ls|--json|--from|<>", NULL);
    ok(has("\"sender\":\"\"") && has("\"envelope_id\":\"id+2B1\""));
    ok(has("\"a@h.test\"") && has("\"b@c.test\"") && has("\"d@h.test\""));
    clear();
    sends("-f||bob@b.test|bob@B.test", "");
    call(QUEUE, "ls|--json", NULL);
    ok_named(has("\"sender\":\"\"") && !has("bob@b.test\",\"done\":false},{"), "once");
    clear();
    sends("-fann|--|bob@b.test", "");
    call(QUEUE, "ls", NULL);
    ok(has(" <ann@h.test> -> <bob@b.test>\n"));
    clear();
    sends("bob@b.test", "");
    call(QUEUE, "ls|--from|h.test", NULL);
    is_number(count_lines(out), 1, "the caller is the sender");
    clear();
}

TEST(mistakes)
{
    static const struct {
        const char *arguments;
        int code;
        const char *says;
    } rows[] = {
        {"", EX_USAGE, "no recipients: name them, or use -t"},
        {"-t", EX_USAGE, "no recipients: name them, or use -t with To, Cc or Bcc"},
        {"bob@b.test\ncarol@c.test", EX_DATAERR, "the recipient is not a mail address: bob@b.test\\x0acarol@c.test"},
        {"bob@b.test\n", EX_DATAERR, "the recipient is not a mail address: bob@b.test\\x0a"},
        {"bob@b.test|-f|x@y.test", EX_DATAERR, "the recipient is not a mail address: -f"},
        {"--|-t", EX_DATAERR, "the recipient is not a mail address: -t"},
        {"bob@b.test|a b c", EX_DATAERR, "not a mail address, or a broken list: a b c"},
        {"-i|", EX_USAGE, "no recipients: name them, or use -t"},
        {"bob@b.test||x", EX_DATAERR, "a recipient is empty"},
        {"-f|a@b\nc|bob@b.test", EX_DATAERR, "the sender is not a mail address: a@b\\x0ac"},
        {"-f|a@b.test\r|bob@b.test", EX_DATAERR, "the sender is not a mail address: a@b.test\\x0d"},
        {"-V|a\nb|bob@b.test", EX_USAGE, "-V needs at most 100 printable characters"},
        {"-bd", EX_USAGE, "this mode is not offered (the daemon is `petrel run`): -b: d"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char line[200];
        snprintf(line, sizeof(line), "sendmail: %s\n", rows[i].says);
        fails(SENDMAIL, rows[i].arguments, rows[i].code, line);
    }
    is_number(call(SENDMAIL, "-Fa\r\nBcc: x@y.test|bob@b.test", ""), 0,
              "-F is no field");
    call(QUEUE, "cat|--all", NULL);
    ok(has("From: \"aBcc: x@y.test\" <"));
    clear();
    is_number(queued(), 0, "nothing else came in");
}

TEST(limits)
{
    set_options("recipient_limit=2", "message_size_limit=1024");
    is_number(call(SENDMAIL, "a@b.test|c@d.test|e@f.test", "\n"), 0,
              "recipient_limit is of SMTP");
    clear();
    static char large[3000];
    memset(large, 'x', sizeof(large) - 1);
    is_number(call(SENDMAIL, "a@b.test", large), EX_DATAERR, "too large");
    is_string(err, "sendmail: the message is larger than message_size_limit\n", "said");
    is_number(queued(), 0, "nothing is left");
    set_options("user=", "user=");
}

/* Runs with a pipe as standard input, into which a program has written bytes. Returns
 * how many are left in it. */
static int
leaves(const char *arguments, int code, size_t bytes)
{
    static char letter[60000];
    int ends[2];
    char name[120];
    if (pipe2(ends, O_CLOEXEC) != 0 || bytes > sizeof(letter))
        abort();
    memset(letter, 'x', sizeof(letter));
    memcpy(letter, "Subject: x\n\n.\n", 15);
    if (write(ends[1], letter, bytes) != (ssize_t)bytes)
        abort();
    close(ends[1]);
    standard_input = ends[0];
    snprintf(name, sizeof(name), "%.100s fails", arguments);
    is_number(call(SENDMAIL, arguments, NULL), code, name);
    standard_input = -1;
    ssize_t left = read(ends[0], letter, sizeof(letter));
    close(ends[0]);
    return (int)left;
}

/* A program that writes the message first sees the exit code, and no EPIPE. */
TEST(rest)
{
    char spool[100];
    is_number(leaves("a b c", EX_DATAERR, 60000), 0, "a bad recipient");
    is_number(leaves("-f|a b|bob@b.test", EX_DATAERR, 60000), 0, "a bad sender");
    is_number(leaves("-V|\x01|bob@b.test", EX_USAGE, 60000), 0, "a bad -V");
    is_number(leaves("", EX_USAGE, 60000), 0, "no recipient");
    set_options("message_size_limit=1024", "user=");
    is_number(leaves("-i|bob@b.test", EX_DATAERR, 33000), 0, "a message too large");
    ok_named(leaves("-i|bob@b.test", EX_DATAERR, 60000) == 0,
             "and by more");
    is_number(leaves("a b c", EX_DATAERR, 60000), 60000 - 32768, "but not without end");
    set_options("user=", "user=");
    is_number(leaves("bob@b.test", 0, 60000), 60000 - 32768,
              "behind the dot that ends a message nothing is awaited");
    clear();
    snprintf(spool, sizeof(spool), "spool=%s/in", folder);
    int file = open(spool + strlen("spool="), O_WRONLY | O_CREAT, 0600);
    ok_named(file >= 0 && close(file) == 0, "a file where the spool should be");
    set_options(spool, "user=");
    is_number(leaves("bob@b.test", EX_CANTCREAT, 60000), 0, "no spool");
    set_options("user=", "user=");
}

TEST(modes)
{
    is_number(call(SENDMAIL, "-bs", ""), 42, "-bs is served by others");
    is_number(served, 1, "once");
    prints(SENDMAIL, "-bi", "aliases is not set: no file is read\n");
    prints(SENDMAIL, "-bp", "Mail queue is empty\n");
    is_number(call(SENDMAIL, "a@b.test", ""), 0, "one");
    is_number(call(SENDMAIL, "-bp", NULL), 0, "-bp");
    is_number(count_lines(out), 1, "is a list");
    is_number(call(SENDMAIL, "-q", NULL), EX_UNAVAILABLE, "-q needs a daemon");
    clear();
}

TEST(verify)
{
    set_options(
        "routes=b.test smtp://mx.test:2525\nc.test lmtp://unix:/l\nd.test hold\n"
        "e.test discard\nf.test error:5.7.1 no thanks\n* mx",
        "local=maildir:/m/%u");
    prints(SENDMAIL, "-bv|a@b.test, x@c.test|x@d.test|x@e.test|root|X <a@q.test>",
           "a@b.test... deliverable: smtp mx.test:2525\n"
           "x@c.test... deliverable: lmtp unix:/l\n"
           "x@d.test... deliverable: held until an operator releases it\n"
           "x@e.test... deliverable: discarded\n"
           "root@h.test... deliverable: maildir /m/%u\n"
           "a@q.test... deliverable: mx\n");
    is_number(call(SENDMAIL, "-bv|a@b.test|a@f.test", ""), EX_NOUSER, "refused");
    ok(has("a@f.test... refused: 5.7.1 no thanks\n"));
    set_options("local=", "routes=* mx");
    is_number(call(SENDMAIL, "-bv|root", ""), EX_NOUSER, "unknown");
    ok(has("root@h.test... refused: 5.1.1 unknown user\n"));
    fails(SENDMAIL, "-bv|a b", EX_DATAERR,
          "sendmail: an argument is not a mail address\n");
    fails(SENDMAIL, "-bv|a@b\n", EX_DATAERR,
          "sendmail: an argument is not a mail address\n");
    is_number(queued(), 0, "nothing is sent");
    set_options("user=", "user=");
}

/* The first id that `ls` shows, in the order of their names: of those to domain. */
static const char *
some_id(const char *domain)
{
    static char id[ID_LENGTH + 1];
    char arguments[100];
    snprintf(arguments, sizeof(arguments), "ls|--to|%s", domain);
    call(QUEUE, arguments, NULL);
    snprintf(id, sizeof(id), "%.19s", out);
    return id;
}

/* Somebody begins a message and does not end it. */
TEST(patience)
{
    char spool[100], command[600];
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    patience_ms = 50;
    for (int large = 0; large < 2; large++) {
        static char body[300000];
        memset(body, 'x', sizeof(body));
        for (size_t i = 70; i < sizeof(body); i += 70)
            body[i] = '\n';
        size_t size = large ? 60000 : 100; /* a pipe takes 64 KiB */
        if (write(ends[1], "A: b\n\n", 6) != 6 ||
            write(ends[1], body, size) != (ssize_t)size)
            abort();
        standard_input = ends[0];
        is_number(call(SENDMAIL, "-fann@a.test|x@c.test", NULL), EX_TEMPFAIL,
                  "what does not end is given up");
        is_string(err, "sendmail: the message did not end in time\n", "and told");
    }
    standard_input = -1;
    patience_ms = 0;
    is_number(queued(), 0, "nothing of it is queued");
    snprintf(spool, sizeof(spool), "%s/spool", folder);
    snprintf(command, sizeof(command),
             "test -z \"$(find %s/pid %s/mess %s/intd %s/todo -type f)\"", spool, spool,
             spool, spool);
    ok_named(system(command) == 0, "and nothing of it is left");
    close(ends[0]);
    close(ends[1]);
}

/* A byte now and then is no reason to wait longer. */
TEST(drip)
{
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        while (write(ends[1], "x\n", 2) == 2)
            usleep(10 * 1000);
        _exit(0);
    }
    close(ends[1]);
    patience_ms = 150;
    standard_input = ends[0];
    is_number(call(SENDMAIL, "-fann@a.test|x@c.test", NULL), EX_TEMPFAIL,
              "what drips is given up");
    is_string(err, "sendmail: the message did not end in time\n", "and told");
    is_number(queued(), 0, "nothing of it is queued");
    kill(child, SIGKILL);
    close(ends[0]);
    ok(waitpid(child, NULL, 0) == child);
    standard_input = -1;
    patience_ms = 0;
}

/* A pipe that is closed in time: all of it, once. */
TEST(in_time)
{
    int ends[2];
    size_t before = queued();
    if (pipe(ends) != 0 || write(ends[1], "A: b\n\nx\n", 8) != 8)
        abort();
    close(ends[1]);
    patience_ms = 60 * 1000;
    standard_input = ends[0];
    is_number(call(SENDMAIL, "-fann@a.test|x@c.test", NULL), 0, "in time");
    is_number((int64_t)queued(), (int64_t)before + 1, "queued");
    clear();
    close(ends[0]);
    standard_input = -1;
    patience_ms = 0;
}

TEST(queue)
{
    char arguments[100], want[200];
    for (int i = 0; i < 3; i++)
        is_number(call(SENDMAIL,
                      i == 1 ? "-fann@a.test|x@c.test" : "-fann@a.test|x@b.test",
                      "A: b\n\n"),
                  0, "send");
    is_number(queued(), 3, "three");
    call(QUEUE, "ls|--to|c.test", NULL);
    is_number(count_lines(out), 1, "one to c.test");
    call(QUEUE, "ls|--json|--queue=maildrop", NULL);
    is_number(count_lines(out), 3, "an object a line");
    ok(text_starts(text_from(out),
                   TEXT("{\"queue_name\":\"maildrop\",\"queue_id\":\"")));
    prints(QUEUE, "ls|--queue|deferred", "");
    prints(QUEUE, "ls|--older|1h", "");
    const char *id = some_id("b.test");
    snprintf(arguments, sizeof(arguments), "show|%s|%s", id, id);
    is_number(call(QUEUE, arguments, NULL), 0, "show");
    ok(has("attempts: 0\n") && count_lines(out) == 7);
    snprintf(arguments, sizeof(arguments), "show|--json|%s", id);
    is_number(call(QUEUE, arguments, NULL), 0, "show --json");
    ok(count_lines(out) == 1 && out[0] == '{');
    snprintf(arguments, sizeof(arguments), "rm|%s", id);
    snprintf(want, sizeof(want), "%s removed\n", id);
    prints(QUEUE, arguments, want);
    snprintf(want, sizeof(want), "petrel queue: %s: no such message\n", id);
    fails(QUEUE, arguments, EX_DATAERR, want);
    is_number(queued(), 2, "two are left");
    is_number(call(QUEUE, "rm|--to|c.test", NULL), 0, "rm by filter");
    is_number(queued(), 1, "one is left");
    is_number(call(QUEUE, "retry|--all", NULL), 0, "retry works on the files, too");
    clear();
    is_number(call(QUEUE, "rm|--all", ""), 0, "rm of nothing");
    ok_named(strstr(err, "nothing to do") != NULL, "says so");
}

/* sendmail -q says nothing of what goes well, and complains in its own name. */
TEST(flush)
{
    char arguments[100], want[200];
    is_number(call(SENDMAIL, "-fann@a.test|x@b.test", "A: b\n\n"), 0, "send");
    is_number(call(SENDMAIL, "-f<>|x@b.test", "A: b\n\n"), 0, "a bounce");
    is_number(queued(), 2, "two wait");
    static const char *const silent[] = {"-qRnowhere.test", "-qSno@where.test",
                                         "-qRb.test", "-qSann@a.test"};
    for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++) {
        prints(SENDMAIL, silent[i], "");
        is_string(err, "", "nor a complaint");
    }
    char id[ID_LENGTH + 1];
    snprintf(id, sizeof(id), "%s", some_id("b.test|--from|ann@a.test"));
    snprintf(want, sizeof(want), "%s is due when the daemon starts\n", id);
    prints(SENDMAIL, "-v|-qSann@a.test", want);
    prints(SENDMAIL, "-v|-qRnowhere.test", "");
    is_number(call(SENDMAIL, "-v|-qS<>", NULL), 0, "of the null sender");
    ok(count_lines(out) == 1 && !has(id));
    snprintf(arguments, sizeof(arguments), "-qI%s", id);
    prints(SENDMAIL, arguments, "");
    is_number(call(QUEUE, "rm|--all", NULL), 0, "they go");
    snprintf(want, sizeof(want), "sendmail: %s: no such message\n", id);
    fails(SENDMAIL, arguments, EX_DATAERR, want);
    fails(SENDMAIL, "-qIx", EX_USAGE, "sendmail: not a message id: x\n");
    fails(SENDMAIL, "-qGx", EX_USAGE, "sendmail: not implemented: -q: Gx\n");
    is_number(call(SENDMAIL, "-q", NULL), EX_UNAVAILABLE,
              "all of it: of a daemon alone");
    ok(text_starts(text_from(err), TEXT("sendmail: no daemon answers: ")) &&
       strchr(err, '\n') == strrchr(err, '\n'));
    clear();
}

TEST(queue_mistakes)
{
    static const char *const usages[] = {"",     "list", "rm",       "retry",
                                         "show", "cat",  "rm|--json"};
    for (size_t i = 0; i < sizeof(usages) / sizeof(*usages); i++) {
        is_number(call(QUEUE, usages[i], NULL), EX_USAGE, usages[i]);
        ok(text_starts(text_from(err), TEXT("usage: petrel queue ls")));
    }
    fails(QUEUE, "ls|--nonsense", EX_USAGE,
          "petrel queue: unknown option: --nonsense\n");
    fails(QUEUE, "rm|x", EX_USAGE, "petrel queue: not a message id: x\n");
    fails(QUEUE, "ls|01JD3ZK5Q8-9F3K2C7A", EX_DATAERR,
          "petrel queue: 01JD3ZK5Q8-9F3K2C7A: no such message\n");
}

/* A damaged message is listed by its name, kept, and removed on demand. */
TEST(corrupt)
{
    char command[300], want[300], arguments[60], id[ID_LENGTH + 1];
    is_number(call(SENDMAIL, "a@b.test", "A: b\n\nbody\n"), 0, "send");
    snprintf(id, sizeof(id), "%s", some_id("b.test"));
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    struct buffer lines;
    char error[200];
    struct queue *queue;
    struct queue_settings where = {.spool = options.spool, .slices = 1};
    struct id parsed;
    buffer_init(&lines, 10000);
    log_capture(log, &lines);
    ok(id_parse(text_from(id), &parsed));
    ok(queue_open_injector(&queue, log, &where, error, sizeof(error)) == 0);
    queue_quarantine(queue, parsed, "for a test");
    queue_close(&queue);
    log_free(&log);
    buffer_free(&lines);
    snprintf(want, sizeof(want), "%s corrupt  (for a test) see corrupt/%s.note\n", id,
             id);
    prints(QUEUE, "ls", want);
    prints(QUEUE, "ls|--queue|corrupt", want);
    prints(QUEUE, "ls|--queue|hold", "");
    prints(QUEUE, "ls|--to|b.test", "");
    snprintf(want, sizeof(want),
             "{\"queue_name\":\"corrupt\",\"queue_id\":\"%s\",\"since\":", id);
    is_number(call(QUEUE, "ls|--json", NULL), 0, "as JSON");
    ok(text_starts(text_from(out), text_from(want)) &&
       has("\"reason\":\"for a test\"}"));
    snprintf(arguments, sizeof(arguments), "cat|%s", id);
    snprintf(want, sizeof(want),
             "petrel queue: %s: is damaged: its files are in corrupt/\n", id);
    fails(QUEUE, arguments, EX_DATAERR, want);
    prints(QUEUE, "cat|--all", "");
    snprintf(arguments, sizeof(arguments), "rm|%s", id);
    snprintf(want, sizeof(want), "%s removed\n", id);
    prints(QUEUE, arguments, want);
    prints(QUEUE, "ls", "");
    snprintf(command, sizeof(command), "test -z \"$(ls %s/spool/corrupt)\"", folder);
    ok_named(system(command) == 0, "with its files");
}

TEST(no_spool)
{
    set_options("spool=/proc/nowhere", "user=");
    is_number(call(SENDMAIL, "a@b.test", "x"), EX_CANTCREAT, "no spool");
    ok(text_starts(text_from(err), TEXT("sendmail: ")) && count_lines(err) == 1);
    fails(QUEUE, "ls", EX_UNAVAILABLE, "petrel queue: spool /proc/nowhere does not exist: a daemon makes it when it first starts\n");
    /* Looking makes none, also where one can be made. */
    char spool[100], want[300];
    snprintf(spool, sizeof(spool), "spool=%s/none", folder);
    snprintf(want, sizeof(want), "petrel queue: spool %s/none does not exist: a daemon makes it when it first starts\n", folder);
    set_options(spool, "user=");
    fails(QUEUE, "ls", EX_UNAVAILABLE, want);
    ok_named(access(spool + strlen("spool="), F_OK) != 0, "nor makes one");
    set_options("user=", "user=");
}

TEST(version)
{
    is_number(call(VERSION, "", NULL), 0, "version");
    ok(text_starts(text_from(out), TEXT("petrel " PETREL_VERSION " (")));
    ok(has("\nlibev ") && has("\nc-ares ") && has("\nmbedTLS ") && has("\njansson "));
    is_number(call(VERSION, "--json", NULL), 0, "version --json");
    ok(has("\"version\": \"" PETREL_VERSION "\"") && has("\"features\": [") &&
       has("\"build\": "));
    ok_named(!has("hiredis") && !has("\"redis\""), "a build without Redis");
    is_number(call(VERSION, "", "hiredis 0.14.1"), 0, "one with it");
    ok_named(has("\nhiredis 0.14.1\n"), "tells its library");
    is_number(call(VERSION, "--json", "hiredis 0.14.1"), 0, "--json");
    ok_named(has("\"hiredis 0.14.1\"") && has("\"redis\""), "and the feature");
    fails(VERSION, "--xml", EX_USAGE, "usage: petrel version [--json]\n");
    fails(VERSION, "--json|x", EX_USAGE, "usage: petrel version [--json]\n");
}

int
main(void)
{
    if (mkdtemp(folder) == NULL)
        abort();
    set_options("user=", "user=");
    tap_tests("");
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
    settings_free(&settings);
    return done();
}
