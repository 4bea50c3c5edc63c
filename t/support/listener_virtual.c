/* Real sockets in virtual time. */
#include "t/support/listener_virtual.h"

int
tell_ready(struct loop *loop, int wait_ms)
{
    static struct pollfd all[DESCRIPTORS];
    int count = 0;
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            all[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    int ready = poll(all, (nfds_t)count, wait_ms);
    for (int i = 0; i < count; i++)
        if (all[i].revents != 0)
            sim_loop_ready(loop, all[i].fd, LOOP_READ);
    return ready;
}

void
settle(struct world *w)
{
    for (int quiet = 0; quiet < QUIET_ROUNDS; quiet++) {
        tell_ready(w->loop, 0);
        loop_turn(w->loop, 0);
    }
}

void
pass(struct world *w, int64_t ms)
{
    int64_t long_step = ms / STEPS + 1;
    while (ms > 0) {
        int64_t step = ms < long_step ? ms : long_step;
        tell_ready(w->loop, 0);
        sim_loop_advance(w->loop, step);
        ms -= step;
    }
    settle(w);
}

void
tell(struct visitor *v, const char *bytes)
{
    struct text t = text_from(bytes);
    ssize_t sent = send(v->socket, t.at, t.length, MSG_NOSIGNAL);
    (void)sent; /* a client that is cut off hears so */
    settle(v->world);
    hear(v);
}

struct text
heard(struct visitor *v)
{
    settle(v->world);
    hear(v);
    struct text t = text_after(buffer_text(&v->heard), v->read);
    v->read = v->heard.length;
    return t;
}

bool
answers(struct visitor *v, const char *command, const char *want)
{
    tell(v, command);
    struct text all = text_trim(heard(v)), line = all;
    size_t at = all.length > 0 ? text_find_last(all, '\n') : TEXT_NONE;
    if (at != TEXT_NONE)
        line = text_after(all, at + 1);
    bool good = want[0] == '\0' ? all.length == 0 : text_starts(line, text_from(want));
    if (!good)
        printf("# '%s': want '%s', got '%.*s'\n", command, want, TEXT_ARGS(all));
    return good;
}

bool
answers_late(struct visitor *v, const char *command, const char *want)
{
    int64_t end = listener_now_ms() + PATIENCE_MS;
    tell(v, command);
    while (v->heard.length == v->read && !v->closed && listener_now_ms() < end) {
        tell_ready(v->world->loop, 1);
        settle(v->world);
        hear(v);
    }
    return answers(v, "", want);
}

bool
is_gone(struct visitor *v)
{
    settle(v->world);
    hear(v);
    return v->closed && v->read == v->heard.length;
}

bool
logged(const struct world *w, const char *what)
{
    struct text all = buffer_text(&w->lines);
    return memmem(all.at, all.length, what, strlen(what)) != NULL;
}

void
listen_again(struct world *w, const char *options)
{
    listener_free(&w->listener);
    settle(w);
    snprintf(w->listen, sizeof(w->listen), "127.0.0.1:%u%s", w->port, options);
    w->settings.listen = text_from(w->listen);
    w->listener = listener_new(w->loop, w->net, w->events, w->manager, w->routes,
                               &w->settings, w->error, sizeof(w->error));
    if (w->listener == NULL)
        dialog_must(false, w->error);
}
