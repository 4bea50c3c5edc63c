/* A message handed in through the spool. */
#include "t/roof/injector.h"

#include "admin/sendmail/submission.h"
#include "t/roof/host.h"
#include "t/roof/network.h"
#include "t/roof/roof.h"
#include "t/roof/upgrade.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <assert.h>
#include <string.h>

static void
fill_recipients(struct recipients *to, struct model_message *m)
{
    static const unsigned wishes[] = {
        [NOTIFY_AS_USUAL] = NOTIFY_DEFAULT,
        [NOTIFY_NOTHING] = NOTIFY_NEVER,
        [NOTIFY_OF_FAILURE] = NOTIFY_FAILURE | NOTIFY_DELAY,
        [NOTIFY_OF_SUCCESS] = NOTIFY_SUCCESS,
        [NOTIFY_OF_ALL] = NOTIFY_SUCCESS | NOTIFY_FAILURE | NOTIFY_DELAY,
        [NOTIFY_OF_DELAY] = NOTIFY_DELAY,
    };
    char address[MODEL_ADDRESS_MAX];
    to->envelope = envelope_new();
    to->hostname = "mx.roof.test";
    to->notify = wishes[m->notify];
    m->has_original = m->wants_header = false;
    model_sender_address(m, address);
    to->envelope->sender = envelope_text(to->envelope, text_from(address));
    bool good = true;
    for (unsigned i = 0; i < model_given(m) && good; i++) {
        model_given_address(m, i, address);
        good = recipients_add(to, text_from(address));
        model_given_accepted(m, i, true);
    }
    assert(good);
}

/* Its lines end as those of a program do. */
static bool
give_content(struct submission *s, const struct model_message *m)
{
    struct text rest = text_of(m->content.at, m->content.length), line;
    while (rest.length > 0) {
        text_cut(&rest, '\n', &line);
        if (!submission_add(s, text_before(line, line.length - 1)) ||
            !submission_add(s, TEXT("\n")))
            return false;
    }
    return true;
}

void
injector_run(struct model_message *m)
{
    char error[512] = "", id[ID_LENGTH + 1] = "";
    struct recipients to = {0};
    struct queue *queue;
    sim_loop_begin_at(roof_random(), roof_now_ms(), host.step_ms);
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    struct queue_settings settings = {
        .spool = HOST_SPOOL, .slices = 1, .message_size_limit = 50 << 20};
    struct submission_settings how = {.hostname = "mx.roof.test",
                                      .message_size_limit = 50 << 20};
    upgrade_enter(NULL);
    network_enter(INJECTOR_PROCESS);
    sim_disk_enter(INJECTOR_PROCESS);
    sim_disk_set_time(SIM_WALL_START_MS + roof_now_ms() + host.step_ms);
    loop_turn(loop, 0);
    m->state = MODEL_MAYBE;
    int code = queue_open_injector(&queue, log, &settings, error, sizeof(error));
    if (code == 0) {
        fill_recipients(&to, m);
        struct submission *s = submission_new(&how, loop, queue, &to);
        (void)!give_content(s, m);
        code = submission_finish(s, id, error, sizeof(error));
        submission_free(&s);
        recipients_free(&to);
        queue_close(&queue);
    }
    log_free(&log);
    loop_free(&loop);
    host_leave();
    if (code == 0)
        model_acked(m, text_from(id));
    else
        roof_note("injector: m%u: %d %s", m->number, code, error);
    if (code != 0)
        m->state = MODEL_REFUSED;
    hosts_pull_trigger();
}
