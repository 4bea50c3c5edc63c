/* queue/group/group_server.c over its socket: answers, and the end of clients that say odd
 * things, or do not listen. */
#include "queue/group/group_server.h"

#include "t/support/folder.h"
#include "t/support/net_world.h"

#define ASK(key)                                                                       \
    "{\"ask\":[\"1\",\"" key "\",\"5000000\",\"60000\",\"2\",\"0\",\"0\",\"1\",\"2\"," \
    "\"0\",\"1\",\"0\",\"0\",\"0\",\"-1\",\"0\",\"1\",\"0.5\"]}\n"

static struct group_server *server;
static char path[100];

static int
visit(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)!text_copy(name.sun_path, sizeof(name.sun_path), text_from(path));
    if (connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
        abort();
    return fd;
}

static const char *
said(struct world *w, int fd, const char *line)
{
    static char out[500];
    if (line != NULL)
        raw_send(fd, line);
    until(w, is_readable(fd));
    return raw_read(fd, out, sizeof(out));
}

static void
test_closed(struct world *w)
{
    int fd = visit();
    is_string(said(w, fd, NULL), "(end)", "before it opens it hangs up");
    close(fd);
    group_server_open(server);
}

static void
test_answers(struct world *w)
{
    int fd = visit();
    struct stat status;
    ok_named(stat(path, &status) == 0 && (status.st_mode & 07777) == 0600, "mode 0600");
    is_string(said(w, fd, "{\"ask\":[]}\n"), "{\"answer\":\"\"}\n", "somebody answers");
    const char *answer = said(w, fd, ASK("ps:a"));
    ok_named(strncmp(answer, "{\"answer\":\"0 1 1 0 ", 19) == 0, answer);
    is_string(said(w, fd, ASK("pm:a")), "{\"refused\":\"an odd question\"}\n",
              "a question that is refused");
    is_string(said(w, fd, "{\"ask\":[\"1\"]}\n"),
              "{\"refused\":\"an odd number of words\"}\n", "too few words");
    raw_send(fd, "{\"as");
    loop_turn(w->loop, 5);
    is_string(said(w, fd, "k\":[]}\n{\"ask\":[]}\n"),
              "{\"answer\":\"\"}\n{\"answer\":\"\"}\n", "two, in pieces");
    close(fd);
    until(w, net_connections(w->net) == 0);
    is_number(net_connections(w->net), 0, "who goes is forgotten");
}

static void
test_odd(struct world *w)
{
    static const char *const lines[] = {"\n",
                                        "x\n",
                                        "{}\n",
                                        "[1]\n",
                                        "{\"ask\":1}\n",
                                        "{\"ask\":[1]}\n",
                                        "{\"ask\":[[]]}\n",
                                        "{\"ask\":[\"\\u0000\"]}\n",
                                        "{\"ask\":[\"\377\"]}\n",
                                        "EHLO x\r\n"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        int fd = visit();
        is_string(said(w, fd, lines[i]), "(end)", lines[i]);
        close(fd);
    }
    static char line[GROUP_LINE_MAX + 2000];
    char out[100];
    memset(line, '[', sizeof(line) - 1);
    for (size_t i = 0; i < 3; i++) { /* without an end, with one, many words */
        int fd = visit();
        line[sizeof(line) - 2] = i == 1 ? '\n' : '[';
        if (i == 2) {
            memcpy(line, "{\"ask\":[", 8);
            for (size_t at = 8; at + 3 < GROUP_LINE_MAX - 10; at += 3)
                memcpy(line + at, "\"\",", 3);
            memcpy(line + GROUP_LINE_MAX - 10, "\"\"]}\n", 6);
        }
        for (size_t at = 0, left; (left = strlen(line) - at) > 0;) {
            size_t piece = left < BLOCK / 4 ? left : BLOCK / 4;
            ssize_t sent =
                send(fd, line + at, piece, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN)
                break;
            at += sent > 0 ? (size_t)sent : 0;
            loop_turn(w->loop, 1);
        }
        until(w, is_readable(fd));
        ok_named(raw_read(fd, out, sizeof(out))[0] == '(', "too long a line");
        close(fd);
    }
    until(w, net_connections(w->net) == 0);
    is_number(net_connections(w->net), 0, "all are cut off");
}

static void
test_deaf(struct world *w)
{
    static const char question[] = "{\"ask\":[\"1\"]}\n";
    int fd = visit();
    bool gone = false;
    for (int i = 0; i < 1000000 && !gone; i++) {
        ssize_t sent = send(fd, question, strlen(question), MSG_DONTWAIT | MSG_NOSIGNAL);
        gone = sent < 0 && errno != EAGAIN;
        if (sent < 0)
            loop_turn(w->loop, 1);
    }
    ok_named(gone, "a client that does not read is cut off");
    close(fd);
}

static void
test_crowd(struct world *w)
{
    enum { MORE = 5 };
    struct rlimit limit = {4096, 4096};
    static int fds[GROUP_SERVER_CLIENTS_MAX + MORE];
    int ends = 0;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    for (int i = 0; i < GROUP_SERVER_CLIENTS_MAX + MORE; i++) {
        fds[i] = visit();
        loop_turn(w->loop, 0);
    }
    for (int i = 0; i < 10; i++)
        loop_turn(w->loop, 1);
    for (int i = 0; i < GROUP_SERVER_CLIENTS_MAX + MORE; i++)
        ends += is_readable(fds[i]);
    is_number(ends, MORE, "a crowd has its limit");
    is_string(said(w, fds[0], "{\"ask\":[]}\n"), "{\"answer\":\"\"}\n",
              "and who was there is answered");
    for (int i = 0; i < GROUP_SERVER_CLIENTS_MAX + MORE; i++)
        close(fds[i]);
}

int
main(void)
{
    struct world *w = start(NULL);
    char folder[64], error[200], far[150];
    folder_make(folder, sizeof(folder), "bank");
    snprintf(path, sizeof(path), "%s/s", folder);
    memset(far, 'x', sizeof(far));
    far[sizeof(far) - 1] = '\0';
    ok_named(group_server_new(w->loop, w->net, far, error, sizeof(error)) == NULL &&
                 strstr(error, "is longer than") != NULL,
             "a path that is too long");
    server = group_server_new(w->loop, w->net, path, error, sizeof(error));
    test_closed(w);
    test_answers(w);
    test_odd(w);
    test_deaf(w);
    test_crowd(w);
    int fd = visit();
    loop_turn(w->loop, 1);
    group_server_free(&server);
    ok_named(said(w, fd, NULL)[0] == '(', "at its end it hangs up");
    close(fd);
    ok_named(access(path, F_OK) < 0, "and takes its socket away");
    net_finish(w);
    folder_remove(folder);
    return done();
}
