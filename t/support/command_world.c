/* A spool of a test's own for commands of the operator, and what they print. */
#include "t/support/command_world.h"

#include "queue/queue_operator.h"
#include "t/support/folder.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { WORDS_MAX = 20 };

static struct command_world *current;
static char hostname[] = "h.test";

void
command_world_begin(struct command_world *w, const char *name)
{
    *w = (struct command_world){0};
    current = w;
    folder_make(w->folder, sizeof(w->folder), name);
    snprintf(w->spool, sizeof(w->spool), "%s/spool", w->folder);
    snprintf(w->control, sizeof(w->control), "%s/spool/control", w->folder);
}

void
command_world_end(struct command_world *w)
{
    folder_remove(w->folder);
}

struct options
command_world_options(struct command_world *w)
{
    struct options o = {.hostname = hostname,
                        .spool = w->spool,
                        .control = w->control,
                        .message_size_limit = 1000000,
                        .manager = {.sched = {.active_limit = 100, .session_limit = 10},
                                    .bounce_size_limit = 50000},
                        .slices = 1};
    options_fill_sections(&o);
    return o;
}

static void
on_injected(void *context, struct envelope *e, const struct outcome *refusal)
{
    (void)context;
    if (refusal)
        abort();
    envelope_free(&e);
}

struct id
command_world_inject(struct command_world *w, const char *to)
{
    struct options o = command_world_options(w);
    struct queue_settings settings = o.manager.queue;
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
    queue_commit(&draft, &e, on_injected, NULL);
    queue_close(&queue);
    log_free(&log);
    return id;
}

void
command_world_listen(struct command_world *w)
{
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        w->files[i] = tmpfile();
        w->saved[i] = dup(i + 1);
        if (w->files[i] == NULL || dup2(fileno(w->files[i]), i + 1) < 0)
            abort();
    }
}

static void
give_back(struct command_world *w, int i, char *text, size_t size)
{
    ssize_t got = pread(fileno(w->files[i]), text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    if (dup2(w->saved[i], i + 1) < 0)
        abort();
    close(w->saved[i]);
    fclose(w->files[i]);
}

void
command_world_heard(struct command_world *w)
{
    fflush(NULL);
    give_back(w, 0, w->output, sizeof(w->output));
    give_back(w, 1, w->errors, sizeof(w->errors));
}

int
run(int (*command)(int, char **, const struct options *), const char *line)
{
    struct command_world *w = current;
    static char copies[WORDS_MAX][300];
    char *arguments[WORDS_MAX];
    int count = 0;
    struct options o = command_world_options(w);
    struct text rest = text_from(line), word;
    while (count < WORDS_MAX && text_word(&rest, " ", &word)) {
        text_copy(copies[count], sizeof(copies[0]), word);
        arguments[count] = copies[count];
        count++;
    }
    command_world_listen(w);
    int code = command(count, arguments, &o);
    command_world_heard(w);
    return code;
}

void
is_printed(int got, int code, const char *part)
{
    const struct command_world *w = current;
    is_number(got, code, part);
    ok_named(strstr(w->output, part) != NULL, "is printed");
    is_string(w->errors, "", "without an error");
}

void
is_refused(int got, int code, const char *part)
{
    const struct command_world *w = current;
    is_number(got, code, part);
    ok_named(strstr(w->errors, part) != NULL, "is the error");
    is_string(w->output, "", "nothing else is printed");
}

const char *
command_world_name(struct id id)
{
    static char names[4][ID_LENGTH + 1];
    static unsigned turn;
    char *name = names[turn++ % 4];
    id_format(id, name);
    return name;
}

pid_t
command_world_daemon(const struct command_world *w, const char *answers)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int door = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", w->control);
    unlink(w->control);
    must(bind(door, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(door, 1) == 0);
    pid_t child = fork();
    if (child == 0) {
        char line[4096], name[150];
        snprintf(name, sizeof(name), "%s/asked", w->folder);
        int peer = accept(door, NULL, NULL), out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ssize_t got;
        bool is_mute = answers[0] == '\0'; /* it dies at the question */
        while ((got = read(peer, line, sizeof(line))) > 0 && !is_mute) {
            size_t length = strcspn(answers, "|");
            (void)!write(out, line, (size_t)got);
            (void)!write(peer, answers, length);
            answers += answers[length] == '|' ? length + 1 : length;
        }
        _exit(0);
    }
    must(child > 0);
    close(door);
    return child;
}

const char *
command_world_asked(const struct command_world *w)
{
    static char text[8192];
    char name[150];
    snprintf(name, sizeof(name), "%s/asked", w->folder);
    int in = open(name, O_RDONLY);
    ssize_t got = in < 0 ? 0 : read(in, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    if (in >= 0)
        close(in);
    return text;
}
