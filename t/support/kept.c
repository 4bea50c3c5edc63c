#include "t/support/kept.h"

#include <string.h>

static void
on_turn(void *context)
{
    gate_write(((struct kept *)context)->gate);
}

void
kept_on_more(void *context)
{
    ((struct kept *)context)->more++;
}

void
kept_begin(struct kept *k, int64_t bytes_max)
{
    *k = (struct kept){.loop = sim_loop_new(1)};
    k->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&k->said, 64 * 1024 * 1024);
    log_capture(k->log, &k->said);
    k->hub = event_hub_new(k->log);
    k->gate = event_hub_gate(k->hub);
    if (disk_open(&k->disk, "/spool", true) < 0)
        abort();
    (void)disk_sync_on(k->disk, k->loop);
    k->settings = (struct event_spool_settings){.loop = k->loop,
                                                .hub = k->hub,
                                                .disk = k->disk,
                                                .directory = "events",
                                                .host = "mx.example.org",
                                                .kinds = EVENT_RECORD_KINDS,
                                                .bytes_max = bytes_max};
    is_number(event_spool_open(&k->spool, &k->settings), 0, "open");
    event_spool_on_more(k->spool, kept_on_more, k);
    loop_at_end(k->loop, LOOP_SYNC_MARKS, on_turn, k);
}

void
kept_leave(struct kept *k, bool killed)
{
    if (killed)
        sim_disk_die_at(1);
    event_spool_close(&k->spool);
    disk_close(&k->disk);
    event_hub_free(&k->hub);
    log_free(&k->log);
    buffer_free(&k->said);
    loop_free(&k->loop);
    if (killed)
        sim_disk_restart();
}

bool
kept_has_said(const struct kept *k, const char *words)
{
    return k->said.length > 0 &&
           memmem(k->said.at, k->said.length, words, strlen(words)) != NULL;
}

void
kept_tell(struct kept *k, unsigned number)
{
    static char name[64];
    struct outcome outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    struct event_origin origin = {.recipient = number};
    snprintf(name, sizeof(name), "r%u@a.example", number);
    event_tell(k->hub, &(struct event){.kind = EVENT_DELIVERED,
                                       .id = {.time_ms = 1750000000000, .hash = 5},
                                       .recipient = text_from(name),
                                       .reason = "",
                                       .origin = &origin,
                                       .outcome = &outcome});
}

void
kept_tell_deferred(struct kept *k, uint64_t message, unsigned recipient)
{
    struct outcome outcome = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 451, "4.0.0", "later");
    struct event_origin origin = {.recipient = recipient};
    event_tell(k->hub, &(struct event){.kind = EVENT_DEFERRED,
                                       .id = {.time_ms = 1750000000000 + message, .hash = 5},
                                       .recipient = TEXT("r@a.example"),
                                       .reason = "",
                                       .origin = &origin,
                                       .outcome = &outcome});
}

void
kept_turn(struct kept *k)
{
    loop_turn(k->loop, 0);
}

unsigned
kept_take_all(struct kept *k, unsigned next, unsigned batch_max, unsigned *repeated)
{
    struct event_batch batch = {0};
    buffer_init(&batch.lines, EVENT_BATCH_BYTES);
    for (int i = 0; i < 100000; i++) {
        kept_turn(k);
        enum event_offer offer = event_spool_offer(k->spool, batch_max);
        if (offer == EVENT_OFFER_NONE)
            break;
        if (offer == EVENT_OFFER_BUSY)
            sim_loop_advance(k->loop, 500);
        if (!event_spool_batch(k->spool, batch_max, &batch))
            continue;
        if (batch.count == 0 || batch.count > batch_max)
            ok_named(false, "the size of a batch");
        struct text rest = buffer_text(&batch.lines), line;
        while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
            const char *at = memmem(line.at, line.length, "\"recipient\":\"r", 14);
            unsigned number = at != NULL ? (unsigned)strtoul(at + 14, NULL, 10) : 0;
            if (number < next)
                (*repeated)++;
            else if (number == next)
                next++;
            else
                is_number(number, next, "in order, without a gap");
        }
        event_spool_taken(k->spool);
    }
    buffer_free(&batch.lines);
    kept_turn(k);
    return next;
}

struct text
kept_lines(const char *path)
{
    struct text content = sim_disk_content(path);
    while (content.length > 0 && content.at[content.length - 1] == '\0')
        content.length--;
    return content;
}
