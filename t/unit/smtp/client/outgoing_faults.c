/* A disk that fails once while a header is read: nothing leaves then, rather than the header as it is stored, with the
 * fields and addresses that should have gone. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "smtp/client/outgoing.h"

#include "base/memory.h"
#include "smtp/client/content_reader.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

#define FROM "From: a@x.test\r\nDate: d\r\nMessage-ID: <m@x>\r\nTo: b@b.test\r\n"

/* Left as wanted, or not at all. */
static bool
leaves(struct kit *k, const struct envelope *e, const struct outgoing_rules *rules, unsigned call, const char *want)
{
    static struct content_reader reader;
    struct text piece;
    const char *why = "";
    sim_disk_count_anew();
    sim_disk_fail_at(call, EIO);
    struct outgoing *o = outgoing_new(k->queue, e, NULL, rules, k->log);
    sim_disk_fail_at(0, 0);
    bool opened = content_reader_open(&reader, k->queue, e, o, &why);
    if (opened) {
        ok(content_reader_read(&reader, &piece, &why) == PROGRESS_MORE);
        is_text(piece, text_from(want), "the header that it should have");
    } else {
        is_string(why, strerror(EIO), "the reason of the delay");
    }
    content_reader_close(&reader);
    outgoing_free(&o);
    return opened;
}

int
main(void)
{
    static const char *const to[] = {"b@b.test", NULL};
    static const struct {
        struct outgoing_rules rules;
        const char *want;
    } cases[] = {
        {{.hostname = "h.test"}, "Received: by test\r\nX-Secret: s\r\n" FROM},
        {{.to_mailbox = true}, "Received: by test\r\nX-Secret: s\r\nBcc: c@d\r\n" FROM},
        {{.hostname = "h.test", .remove_header = "X-Secret"}, "Received: by test\r\n" FROM},
    };
    struct kit *k = memory_new(sizeof(*k));
    sim_disk_reset();
    queue_kit_open(k, "/spool");
    struct envelope *e = kit_envelope("ann@a.test", to);
    e->ours = true;
    e->header_needs = HEADER_NEEDS_ALL;
    e = queue_kit_accept(k, e, TEXT("X-Secret: s\r\nReturn-Path: <old@x>\r\nBcc: c@d\r\n" FROM "\r\nx\r\n"));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned refused = 0;
        for (unsigned call = 0; call <= 6; call++)
            refused += !leaves(k, e, &cases[i].rules, call, cases[i].want);
        ok_named(refused >= 2, "when it opens and when it reads");
    }
    queue_retire(k->queue, &e);
    kit_close(k);
    free(k);
    return done();
}
