/* Questions to many hosts, and the lines that come back. */
#include "admin/control/fan_out.h"

#include "base/json_field.h"
#include "admin/control/sibling_ask.h"
#include "base/buffer.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 250 };

struct fan_out_host {
    struct fan_out *fan_out;
    char name[GROUP_HOST_MAX + 1];
    bool has_address, is_lost;
    bool is_asked; /* end() has not come */
    bool is_cut;   /* nothing more is listened to */
    struct buffer held;
    size_t at;             /* up to which it is taken */
    struct asking *asking; /* our own answer */
    struct loop_task own;  /* it has been taken: more */
    int64_t heard_ms;
    uint64_t seen;
    json_t *last;
    char trouble[FAN_OUT_TROUBLE_MAX];
};

struct fan_out {
    struct control_service *service;
    const struct cluster_hosts *who;
    void (*wake)(void *context);
    void *context;
    struct fan_out_host *hosts;
    size_t count, held; /* bytes */
    struct loop_task task;
    struct loop_timer timer;
};

static bool
fan_out_is_own(const struct fan_out_host *h)
{
    return h == h->fan_out->hosts;
}

/* Nothing of the host comes any more. Not within its callbacks. */
static void
fan_out_leave(struct fan_out_host *h)
{
    struct fan_out *f = h->fan_out;
    if (h->is_asked && !fan_out_is_own(h))
        f->who->calls->ignore(f->who->calls->context, h);
    if (h->asking != NULL)
        sibling_ask_drop(&h->asking);
    h->is_asked = false;
}

static void
fan_out_on_wake(void *context)
{
    struct fan_out *f = context;
    for (size_t i = 0; i < f->count; i++)
        if (f->hosts[i].is_cut)
            fan_out_leave(&f->hosts[i]);
    f->wake(f->context);
}

static void
fan_out_wake(struct fan_out *f)
{
    loop_post(f->service->loop, &f->task, fan_out_on_wake, f);
}

/* --- Hosts ------------------------------------------------------------------------- */

static struct fan_out_host *
fan_out_add(struct fan_out *f, const char *name)
{
    struct fan_out_host *h = &f->hosts[f->count++];
    h->fan_out = f;
    buffer_init(&h->held, FAN_OUT_HELD_MAX);
    (void)!text_copy(h->name, sizeof(h->name), text_from(name));
    return h;
}

static bool
fan_out_add_sibling(void *context, const struct sibling *sibling)
{
    struct fan_out *f = context;
    if (strcmp(sibling->host, f->who->host) == 0)
        return true;
    struct fan_out_host *h = fan_out_add(f, sibling->host);
    h->has_address = sibling->address[0] != '\0';
    h->is_lost = sibling->is_lost;
    return f->count < GROUP_HOSTS_MAX;
}

struct fan_out *
fan_out_new(struct control_service *service, const struct cluster_hosts *hosts,
            void (*wake)(void *context), void *context)
{
    struct fan_out *f = memory_new(sizeof(*f));
    *f = (struct fan_out){
        .service = service, .who = hosts, .wake = wake, .context = context};
    f->hosts = memory_array(GROUP_HOSTS_MAX, sizeof(*f->hosts));
    fan_out_add(f, hosts->host);
    hosts->siblings(hosts->context, fan_out_add_sibling, f);
    return f;
}

size_t
fan_out_count(const struct fan_out *f)
{
    return f->count;
}

const char *
fan_out_name(const struct fan_out *f, size_t host)
{
    return f->hosts[host].name;
}

size_t
fan_out_find(const struct fan_out *f, const char *name)
{
    size_t i = 0;
    while (i < f->count && strcmp(f->hosts[i].name, name) != 0)
        i++;
    return i;
}

/* --- Input -------------------------------------------------------------------------- */

/* Its earlier lines stay. The other host may have said why; it goes to JSON and to
 * terminals. */
static void
fan_out_give_up(struct fan_out_host *h, const char *why)
{
    h->is_cut = true;
    if (h->trouble[0] == '\0') {
        snprintf(h->trouble, sizeof(h->trouble), "%s%.150s", h->is_lost ? "lost; " : "",
                 why);
        printable_make(h->trouble);
    }
    fan_out_wake(h->fan_out);
}

static void
fan_out_forget(struct fan_out_host *h)
{
    h->fan_out->held -= h->held.length;
    h->at = 0;
    buffer_clear(&h->held);
}

static bool
fan_out_take_sign(struct fan_out_host *h, struct text json)
{
    static const char begin[] = "{\"seen\":";
    if (!text_starts(json, text_from(begin)) || json.at[json.length - 1] != '}')
        return false;
    struct text number = text_after(json, sizeof(begin) - 1);
    (void)!text_number(text_before(number, number.length - 1), INT64_MAX, &h->seen);
    return true;
}

static void
fan_out_add_line(struct fan_out_host *h, struct text json)
{
    struct fan_out *f = h->fan_out;
    if (h->is_cut)
        return;
    h->heard_ms = loop_monotonic_ms(f->service->loop);
    if (fan_out_take_sign(h, json))
        return;
    size_t before = h->held.length;
    bool fits = json.length <= SIBLING_LINE_MAX &&
                f->held + json.length + 1 <= FAN_OUT_HELD_MAX &&
                buffer_add(&h->held, json) && buffer_add_byte(&h->held, '\n');
    f->held += h->held.length - before;
    if (!fits)
        fan_out_give_up(h, "its answer is longer than is waited for");
    fan_out_wake(f);
}

static void
fan_out_on_line(void *context, const char *host, struct text json)
{
    (void)host;
    fan_out_add_line(context, json);
}

static void
fan_out_on_end(void *context, const char *host, const char *trouble)
{
    struct fan_out_host *h = context;
    (void)host;
    h->is_asked = false;
    if (trouble != NULL && !h->is_cut)
        fan_out_give_up(h, trouble);
    fan_out_wake(h->fan_out);
}

/* --- Our own ------------------------------------------------------------------------ */

static void
fan_out_own_line(void *context, struct text json)
{
    fan_out_add_line(context, json);
}

static void
fan_out_own_end(void *context)
{
    struct fan_out_host *h = context;
    fan_out_leave(h);
    fan_out_wake(h->fan_out);
}

static bool
fan_out_own_is_full(void *context)
{
    const struct fan_out_host *h = context;
    return h->held.length - h->at >= FAN_OUT_OWN_HELD;
}

static void
fan_out_own_goes_on(void *context)
{
    struct fan_out_host *h = context;
    if (h->asking != NULL)
        sibling_ask_resume(h->asking);
}

/* --- Asking ------------------------------------------------------------------------- */

/* Our own answer waits for us, not we for it. */
static void
fan_out_look(void *context)
{
    struct fan_out *f = context;
    int64_t now_ms = loop_monotonic_ms(f->service->loop);
    loop_timer_start(f->service->loop, &f->timer, LOOK_MS, fan_out_look, f);
    for (size_t i = 1; i < f->count; i++)
        if (f->hosts[i].is_asked && !f->hosts[i].is_cut &&
            now_ms - f->hosts[i].heard_ms >= FAN_OUT_SILENCE_MS)
            fan_out_give_up(&f->hosts[i], "no answer for 2 s");
}

static void
fan_out_send(struct fan_out_host *h, struct text line, int64_t most_ms)
{
    struct fan_out *f = h->fan_out;
    const struct sibling_calls *calls = f->who->calls;
    if (fan_out_is_own(h)) {
        h->asking = sibling_ask(f->service, line,
                                &(struct sibling_asker){.line = fan_out_own_line,
                                                        .end = fan_out_own_end,
                                                        .is_full = fan_out_own_is_full,
                                                        .context = h});
        return;
    }
    calls->ask(calls->context, h->name, line, most_ms,
               &(struct sibling_listener){
                   .line = fan_out_on_line, .end = fan_out_on_end, .context = h});
}

void
fan_out_ask(struct fan_out *f, size_t host, const json_t *request, int64_t most_ms)
{
    struct fan_out_host *h = &f->hosts[host];
    char *line = json_dumps(request, JSON_COMPACT);
    fan_out_leave(h);
    fan_out_forget(h);
    json_decref(h->last);
    h->last = NULL;
    h->trouble[0] = '\0';
    h->is_cut = false;
    h->heard_ms = loop_monotonic_ms(f->service->loop);
    if (line == NULL || strlen(line) > SIBLING_LINE_MAX) {
        fan_out_give_up(h, "the question is too long");
    } else if (!fan_out_is_own(h) && !h->has_address) {
        fan_out_give_up(h, "its address is not known");
    } else {
        h->is_asked = true;
        fan_out_send(h, text_from(line), most_ms);
        loop_timer_start(f->service->loop, &f->timer, LOOK_MS, fan_out_look, f);
    }
    free(line);
}

/* --- Taking ------------------------------------------------------------------------- */

static void
fan_out_confuse(struct fan_out_host *h)
{
    fan_out_forget(h);
    fan_out_give_up(h, "its answer is not understood");
}

/* True: it is a line with content. The object is taken otherwise. */
static bool
fan_out_sort(struct fan_out_host *h, json_t *line)
{
    const json_t *good = json_object_get(line, "ok");
    const char *error = json_string_value(json_object_get(line, "error"));
    if (json_is_object(line) && h->last == NULL &&
        (good == NULL || json_object_get(line, "id") != NULL))
        return true;
    if (!json_is_object(line) || h->last != NULL) {
        json_decref(line);
        fan_out_confuse(h);
    } else if (json_is_true(good)) {
        h->last = line;
    } else {
        fan_out_give_up(h, error != NULL ? error : "it refused");
        json_decref(line);
    }
    return false;
}

/* A line that was held. */
static json_t *
fan_out_parse(struct fan_out_host *h)
{
    struct text rest = text_after(buffer_text(&h->held), h->at);
    size_t end = text_find(rest, '\n');
    json_t *line = json_loadb(rest.at, end, JSON_REJECT_DUPLICATES, NULL);
    if (!fan_out_is_own(h))
        json_field_clean(line);
    h->at += end + 1;
    if (h->at == h->held.length)
        fan_out_forget(h);
    if (h->asking != NULL && !fan_out_own_is_full(h))
        loop_post(h->fan_out->service->loop, &h->own, fan_out_own_goes_on, h);
    return line;
}

enum fan_out_state
fan_out_take(struct fan_out *f, size_t host, json_t **line)
{
    struct fan_out_host *h = &f->hosts[host];
    while (h->held.length > 0) {
        json_t *next = fan_out_parse(h);
        if (fan_out_sort(h, next)) {
            *line = next;
            return FAN_OUT_LINE;
        }
    }
    if (h->is_asked && !h->is_cut)
        return FAN_OUT_WAITS;
    if (h->last == NULL && h->trouble[0] == '\0' && h->heard_ms != 0)
        fan_out_give_up(h, "its answer has no end");
    return FAN_OUT_OVER;
}

void
fan_out_distrust(struct fan_out *f, size_t host)
{
    fan_out_confuse(&f->hosts[host]);
}

const json_t *
fan_out_last(const struct fan_out *f, size_t host)
{
    return f->hosts[host].last;
}

const char *
fan_out_trouble(const struct fan_out *f, size_t host)
{
    return f->hosts[host].trouble;
}

uint64_t
fan_out_seen(const struct fan_out *f)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < f->count; i++)
        seen += f->hosts[i].seen;
    return seen;
}

void
fan_out_free(struct fan_out **fan_out)
{
    struct fan_out *f = *fan_out;
    *fan_out = NULL;
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->count; i++) {
        fan_out_leave(&f->hosts[i]);
        loop_unpost(f->service->loop, &f->hosts[i].own);
        json_decref(f->hosts[i].last);
        buffer_free(&f->hosts[i].held);
    }
    loop_unpost(f->service->loop, &f->task);
    loop_timer_stop(f->service->loop, &f->timer);
    loop_release(f->service->loop, free, f->hosts);
    loop_release(f->service->loop, free, f);
}
