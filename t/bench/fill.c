/* Fills a spool with deferred messages, as a long outage leaves them: S5, in files.
 *
 *   fill SPOOL COUNT [DUE_IN_SECONDS]
 *
 * Nothing is synced: it is for measuring, not for mail. Each has one recipient at a
 * domain of its own thousand and 1 KiB of content. */
#include "base/crc.h"
#include "base/loop/loop.h"
#include "queue/spool/spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTENT = 1024 };

static struct text
make_content(char content[CONTENT])
{
    static const char header[] = "Subject: it waits\r\n\r\n";
    memset(content, 'x', CONTENT);
    memcpy(content, header, sizeof(header) - 1);
    for (size_t i = 100; i + 1 < CONTENT; i += 78)
        memcpy(content + i, "\r\n", 2);
    memcpy(content + CONTENT - 2, "\r\n", 2);
    return text_of(content, CONTENT);
}

static bool
write_message(struct spool *s, unsigned number, int64_t now_ms, int64_t due_ms,
              const struct text *content)
{
    char to[64];
    int files[SPOOL_PREPROCESSED_FILES];
    unsigned count = 0;
    struct mark_place place;
    struct envelope *e = envelope_new();
    unsigned char digest[5] = {(unsigned char)(number * 167), (unsigned char)number,
                               (unsigned char)(number >> 8),
                               (unsigned char)(number >> 16), 7};
    e->birth_ms = now_ms - 3600 * 1000 + number;
    e->id = id_make((uint64_t)e->birth_ms, digest);
    e->sender = TEXT("sender@example.org");
    e->prefix = TEXT("Received: by petrel.test (Petrel); now\r\n");
    e->content_size = (int64_t)content->length;
    e->content_crc = crc_add(0, content->at, content->length);
    e->delivery.due_ms = due_ms + number;
    e->delivery.attempts = 3;
    snprintf(to, sizeof(to), "user%u@d%u.example", number, number % 1000);
    bool good = envelope_add(e, text_from(to), NOTIFY_DEFAULT, TEXT("")) &&
                spool_write_preprocessed(s, e, content, &place, files, &count) == 0;
    for (unsigned i = 0; i < count; i++)
        disk_close_file(s->disk, files[i]);
    envelope_free(&e);
    return good;
}

int
main(int count, char **arguments)
{
    char error[300], bytes[CONTENT];
    struct spool spool;
    if (count < 3) {
        fputs("usage: fill SPOOL COUNT [DUE_IN_SECONDS]\n", stderr);
        return 64;
    }
    unsigned wanted = (unsigned)strtoul(arguments[2], NULL, 10);
    int64_t due_in = count > 3 ? strtoll(arguments[3], NULL, 10) : 3600;
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    if (spool_open(&spool, arguments[1], false, log, error, sizeof(error)) < 0) {
        fprintf(stderr, "fill: %s\n", error);
        return 73;
    }
    struct text content = make_content(bytes);
    int64_t now = loop_now_ms(loop);
    bool good = true;
    for (unsigned i = 0; i < wanted && good; i++)
        good = write_message(&spool, i, now, now + due_in * 1000, &content);
    spool_close(&spool);
    log_free(&log);
    loop_free(&loop);
    return good ? 0 : 74;
}
