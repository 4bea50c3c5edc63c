/* Reads and raises the number of the spool's form. */
#include "queue/spool/spool_form.h"

#include "base/disk/disk.h"

#include <errno.h>
#include <stdio.h>
#include <sysexits.h>

enum { DRAFT_MAX = 64, FORM_MODE = 0640, FORM_SIZE = 2 };

static const char form_path[] = "lock/form";

/* The number, or -errno. */
static int
spool_form_read(struct disk *spool)
{
    char bytes[FORM_SIZE + 1];
    int64_t got = disk_read_at(spool, form_path, 0, bytes, sizeof(bytes));
    if (got < 0)
        return got == -ENOENT ? 1 : (int)got;
    bool is_good =
        got == FORM_SIZE && bytes[0] >= '1' && bytes[0] <= '9' && bytes[1] == '\n';
    return is_good ? bytes[0] - '0' : -EILSEQ;
}

/* Complete and durable before it has its name. */
static int
spool_form_write(struct disk *spool, unsigned form, const char *part)
{
    char draft[DRAFT_MAX];
    const char text[FORM_SIZE] = {(char)('0' + form), '\n'};
    snprintf(draft, sizeof(draft), "%s.%.16s", form_path, part);
    (void)!disk_unlink(spool, draft); /* of a process that died */
    int result = disk_write_new(spool, draft, FORM_MODE, text_of(text, sizeof(text)));
    if (result == 0)
        result = disk_rename(spool, draft, form_path);
    if (result < 0)
        (void)!disk_unlink(spool, draft);
    return result == 0 ? disk_sync_directory(spool, "lock") : result;
}

int
spool_form_raise(struct disk *spool, unsigned own, const char *part, char *error,
                 size_t size)
{
    int form = spool_form_read(spool);
    if (form > (int)own) {
        snprintf(error, size,
                 "a newer version of Petrel has written this spool (form %d; this "
                 "version reads up to %u): start that version",
                 form, own);
        return EX_CONFIG;
    }
    int result =
        form > 0 && form < (int)own ? spool_form_write(spool, own, part) : form;
    if (result >= 0)
        return 0;
    snprintf(error, size, "%s of the spool: %s", form_path, disk_explain(result));
    return result == -EILSEQ ? EX_CONFIG : EX_IOERR;
}
