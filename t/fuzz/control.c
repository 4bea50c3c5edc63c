/* Fuzz target: lines of a client of the control socket, through a real socket to a real
 * manager with some mail that is held and some that waits. */
#include "admin/control/control_server.h"

#include "base/log/log.h"
#include "base/log/log_internal.h"
#include "base/loop/loop.h"
#include "base/event/event.h"
#include "t/support/folder.h"
#include "t/support/must.h"

#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TURNS_MAX = 2000, LINES_MAX = 1 << 20, MAIL = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct world {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct net *net;
    struct manager *manager;
    struct route_table *routes;
    struct control_server *control;
    struct buffer lines;
    char folder[64], path[100];
    size_t runs;
} w;

static int
remove_one(const char *path, const struct stat *status, int flag, struct FTW *place)
{
    (void)status;
    (void)flag;
    (void)place;
    return remove(path);
}

static void
clean_up(void)
{
    (void)!nftw(w.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    (void)context;
    must(refusal == NULL);
    manager_accept(w.manager, &e);
}

static void
post(const char *recipient)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    must(envelope_add(e, text_from(recipient), NOTIFY_NEVER, TEXT("")));
    struct queue_draft *draft = queue_begin(manager_queue(w.manager), 0, &refusal);
    must(draft != NULL && queue_write(draft, TEXT("A: b\r\n\r\n")));
    queue_name(draft, e);
    queue_commit(&draft, &e, on_stored, NULL);
}

static void
start(void)
{
    char error[300] = "";
    folder_make(w.folder, sizeof(w.folder), "fuzz");
    atexit(clean_up);
    w.loop = loop_new();
    struct manager_settings settings = {
        .hostname = "h.test",
        .queue = {.spool = w.folder,    .slices = 1},
        .sched = { .active_limit = 100, .session_limit = 10,   .seed = 1}
    };
    struct route_settings routes = {.routes =
                                        TEXT("keep.test hold\n* error:4.7.1 later")};
    transport_params_default(&routes.base);
    w.log = log_new(w.loop, LOG_STYLE_JSON, LOG_LEVEL_DEBUG);
    w.events = event_hub_new(w.log);
    buffer_init(&w.lines, LINES_MAX);
    log_capture(w.log, &w.lines);
    w.net = net_new(w.loop);
    w.routes = route_new(&routes, &w.lines);
    snprintf(w.path, sizeof(w.path), "%s/control", w.folder);
    must(w.routes != NULL && manager_new(&w.manager, w.loop, w.events, &settings, w.routes,
                                         error, sizeof(error)) == 0);
    w.control =
        control_server_new(w.loop, w.net, w.log, w.manager, w.path, error, sizeof(error));
    must(w.control != NULL);
}

/* A message that an operation has removed or released comes again. */
static void
restock(void)
{
    struct sched_counts counts = sched_count(manager_sched(w.manager));
    for (size_t i = counts.incoming + counts.deferred + counts.active; i < MAIL; i++)
        post("u@later.test");
    if (w.runs++ % 256 == 0)
        post("u@keep.test");
}

static int
visit(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", w.path);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0);
    return fd;
}

/* Whole lines, each a JSON object. */
static void
check_replies(struct text out)
{
    struct text line;
    while (text_cut(&out, '\n', &line) && out.at != NULL) {
        json_t *told = json_loadb(line.at, line.length, JSON_REJECT_DUPLICATES, NULL);
        must(json_is_object(told));
        json_decref(told);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char answer[65536];
    struct buffer out;
    ssize_t got = 1;
    if (w.loop == NULL)
        start();
    restock();
    buffer_clear(&w.lines);
    buffer_init(&out, 16 << 20);
    int fd = visit();
    if (size > 60000)
        size = 60000;
    (void)!send(fd, data, size, MSG_NOSIGNAL);
    (void)!send(fd, "\n", 1, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    for (int i = 0; got != 0 && i < TURNS_MAX; i++) {
        loop_turn(w.loop, 0);
        got = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
        if (got > 0 && !buffer_add(&out, text_of(answer, (size_t)got)))
            break;
        if (got < 0 && errno == ECONNRESET)
            break;
    }
    close(fd);
    check_replies(buffer_text(&out));
    buffer_free(&out);
    for (int i = 0; i < 4; i++)
        loop_turn(w.loop, 0);
    return 0;
}
