/* A sibling_service for tests. */
#include "t/support/peer_service.h"

#include "base/crc.h"

#include <stdarg.h>

struct taking {
    struct service_world *world;
};
struct asking {
    struct service_world *world;
};

static void __attribute__((format(printf, 2, 3)))
service_note(struct service_world *w, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)!buffer_format_list(&w->log, format, list);
    va_end(list);
}

static void
service_hello(void *context, struct sibling_hello *out)
{
    *out = ((struct service_world *)context)->own;
}

static bool
service_greet(void *context, const struct sibling_hello *caller, struct outcome *refusal)
{
    struct service_world *w = context;

    service_note(w, "greet %s %s %s\n", caller->host, caller->group, caller->state);
    return w->unwelcome == NULL || outcome_refuse(refusal, 554, "5.7.1", w->unwelcome);
}

static struct taking *
service_take(void *context, const struct sibling_hello *from, const struct sibling_message *m,
             struct outcome *refusal)
{
    struct service_world *w = context;
    struct taking *taking;
    char id[ID_LENGTH + 1];

    id_format(m->id, id);
    service_note(w, "take %s %s %zu %" PRId64 " %08" PRIx32 "\n", from->host, id, m->sections,
                 m->content, m->crc);
    if (w->closed != NULL) {
        outcome_refuse(refusal, 451, "4.3.2", w->closed);
        return NULL;
    }
    taking = memory_new(sizeof(*taking));
    taking->world = w;
    w->takings++;
    w->crc = 0;
    w->byte_count = 0;
    return taking;
}

static void
service_take_bytes(struct taking *taking, struct text bytes)
{
    struct service_world *w = taking->world;

    w->crc = crc_add(w->crc, bytes.at, bytes.length);
    w->byte_count += bytes.length;
    (void)!buffer_add(&w->bytes, text_before(bytes, SERVICE_KEEPS - w->bytes.length));
}

void
service_taken(struct service_world *w, size_t index, const struct outcome *refusal)
{
    sibling_taken *taken = w->pending[index].taken;
    void *context = w->pending[index].context;
    struct id own = {.time_ms = 1000, .hash = ++w->ids};

    memmove(&w->pending[index], &w->pending[index + 1],
            (--w->pending_count - index) * sizeof(w->pending[0]));
    taken(context, own, refusal);
}

static void
service_take_end(struct taking **taking, sibling_taken *taken, void *context)
{
    struct service_world *w = (*taking)->world;

    service_note(w, "end %" PRIu64 " bytes %08" PRIx32 "\n", w->byte_count, w->crc);
    free(*taking);
    *taking = NULL;
    w->takings--;
    w->pending[w->pending_count].taken = taken;
    w->pending[w->pending_count++].context = context;
    if (w->is_prompt)
        service_taken(w, w->pending_count - 1, NULL);
}

static void
service_take_drop(struct taking **taking)
{
    struct service_world *w = (*taking)->world;

    service_note(w, "drop\n");
    free(*taking);
    *taking = NULL;
    w->takings--;
}

static void
service_take_ignore(void *context, void *taken_context)
{
    struct service_world *w = context;

    service_note(w, "ignore\n");
    for (size_t i = w->pending_count; i-- > 0;)
        if (w->pending[i].context == taken_context)
            memmove(&w->pending[i], &w->pending[i + 1],
                    (--w->pending_count - i) * sizeof(w->pending[0]));
}

static struct asking *
service_ask(void *context, struct text line, const struct sibling_asker *asker)
{
    struct service_world *w = context;
    struct asking *asking = memory_new(sizeof(*asking));

    service_note(w, "ask %.*s\n", TEXT_ARGS(text_before(line, 100)));
    asking->world = w;
    w->asker = *asker;
    w->askings++;
    w->asked++;
    return asking;
}

static void
service_ask_resume(struct asking *asking)
{
    asking->world->resumed++;
}

static void
service_ask_drop(struct asking **asking)
{
    (*asking)->world->askings--;
    free(*asking);
    *asking = NULL;
}

void
service_start(struct service_world *w, const char *host)
{
    *w = (struct service_world){
        .service = {w, service_hello, service_greet, service_take, service_take_bytes,
                    service_take_end, service_take_drop, service_take_ignore, service_ask,
                    service_ask_resume, service_ask_drop},
        .own = {.group = "mail", .spool = "00112233445566778899aabbccddeeff", .run_ms = 5,
                    .version = "0.1.0", .state = "running"}
    };
    text_copy(w->own.host, sizeof(w->own.host), text_from(host));
    buffer_init(&w->log, SERVICE_LOG_MAX);
    buffer_init(&w->bytes, SERVICE_KEEPS);
}

void
service_finish(struct service_world *w)
{
    is_number(w->takings, 0, "no message is being taken any more");
    is_number(w->askings, 0, "nor a question answered");
    buffer_free(&w->log);
    buffer_free(&w->bytes);
}

struct text
service_log(const struct service_world *w)
{
    return buffer_text(&w->log);
}
