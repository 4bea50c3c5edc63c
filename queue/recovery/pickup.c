/* Logs who submitted mail by sendmail(1). */
#include "queue/recovery/pickup.h"

void
pickup_say(struct log *log, const struct envelope *e)
{
    struct log_line line;
    char id[ID_LENGTH + 1];
    if (log_style(log) == LOG_STYLE_QMAIL)
        return;
    id_format(e->id, id);
    if (log_style(log) == LOG_STYLE_POSTFIX) {
        log_say(log, LOG_LEVEL_INFO, "pickup", id, "uid=%u from=<%.*s>",
                e->storage.injector, TEXT_ARGS(e->sender));
        return;
    }
    log_start(&line, log, LOG_LEVEL_INFO, "sendmail", id);
    log_field_number(&line, "uid", e->storage.injector);
    log_field_format(&line, "from", "<%.*s>", TEXT_ARGS(e->sender));
    log_field_number(&line, "size", e->content_size);
    log_field_number(&line, "nrcpt", e->count);
    log_remark(&line, TEXT("queued"));
    log_end(&line);
}
