/* Parses the command line of sendmail(1). */
#include "admin/sendmail/flags.h"

#include "admin/settings/complaint.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

static bool
parse_notify(const char *list, unsigned *notify)
{
    static const struct {
        struct text word;
        unsigned flag;
    } words[] = {
        {TEXT("never"),   NOTIFY_NEVER  },
        {TEXT("success"), NOTIFY_SUCCESS},
        {TEXT("failure"), NOTIFY_FAILURE},
        {TEXT("delay"),   NOTIFY_DELAY  },
    };
    struct text rest = text_from(list), word;
    *notify = 0;
    while (text_word(&rest, ", ", &word)) {
        unsigned flag = 0;
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
            if (text_equal_nocase(word, words[i].word))
                flag = words[i].flag;
        if (flag == 0)
            return false;
        *notify |= flag;
    }
    return *notify != 0 && (*notify == NOTIFY_NEVER || !(*notify & NOTIFY_NEVER));
}

static int
flags_set_mode(struct flags *f, const char *mode)
{
    if (strlen(mode) == 1 && strchr("mpsiv", mode[0])) {
        f->mode = mode[0];
        return 0;
    }
    return complaint_say("sendmail", EX_USAGE,
                         "this mode is not offered (the daemon is `petrel run`): -b",
                         mode);
}

static int
set_return(struct flags *f, const char *what)
{
    if (strcmp(what, "full") == 0)
        f->ret = RETURN_FULL;
    else if (strcmp(what, "hdrs") == 0)
        f->ret = RETURN_HEADERS;
    else
        return complaint_say("sendmail", EX_USAGE, "-R needs full or hdrs", what);
    return 0;
}

/* -q, -qf, -q30m: all; -qRsite, -qSsender, -qIid: some. The meaning of other forms is
 * not known, and all would be too much. */
static int
set_queue(struct flags *f, const char *what)
{
    char kind = what ? what[0] : '\0';
    const char *value = kind ? what + 1 : "";
    f->mode = 'q';
    f->queue_to = kind == 'R' ? value : NULL;
    f->queue_from = kind == 'S' ? value : NULL;
    f->queue_id = kind == 'I' ? value : NULL;
    if (kind == '\0' || kind == 'f' || (kind >= '0' && kind <= '9'))
        return 0;
    if (strchr("RSI", kind) == NULL)
        return complaint_say("sendmail", EX_USAGE, "not implemented: -q", what);
    if (value[0] == '\0')
        return complaint_say("sendmail", EX_USAGE,
                             "-qR needs a domain, -qS a sender, -qI an id", "");
    return 0;
}

static int
take_flag(struct flags *f, int flag, const char *value)
{
    switch (flag) {
    case 't':
        f->from_header = true;
        return 0;
    case 'i':
        f->ignore_dots = true;
        return 0;
    case 'o': /* -oi; the others change nothing here */
        f->ignore_dots |= strcmp(value, "i") == 0;
        return 0;
    case 'v':
        f->verbose = true;
        return 0;
    case 'f':
    case 'r':
        f->sender = value;
        return 0;
    case 'F':
        f->full_name = value;
        return 0;
    case 'V':
        f->envelope_id = value;
        return 0;
    case 'b':
        return flags_set_mode(f, value);
    case 'q':
        return set_queue(f, value);
    case 'I':
        f->mode = 'i';
        return 0;
    case 'N':
        return parse_notify(value, &f->notify)
                   ? 0
                   : complaint_say("sendmail", EX_USAGE,
                                   "-N needs never, or success, failure, delay", value);
    case 'R':
        return set_return(f, value);
    default: /* A B C d D e G h L M m n O p s T U X x: accepted, without effect */
        return 0;
    }
}

/* Reports a flag that getopt does not know, or that has no value. To getopt "--word" is a
 * cluster that begins with '-': its letters would be flags, and -f among them a sender. */
static int
odd_flag(int answer, const char *word)
{
    char flag[3] = {'-', (char)optopt, '\0'};
    if (optopt == '-')
        return complaint_say("sendmail", EX_USAGE, "unknown argument", word);
    if (answer == ':')
        return complaint_say("sendmail", EX_USAGE, "this flag needs a value", flag);
    return complaint_say("sendmail", 0, "this flag is unknown and ignored", flag);
}

int
flags_parse(struct flags *f, int count, char **arguments)
{
    /* getopt skips its first argument, as if it were the program's name. */
    static char name[] = "sendmail";
    static const char flags[] =
        "+:A:B:b:C:d::D:e:F:f:Gh:IiL:M:mnN:O:o:p:q::R:r:sTtUV:vX:x";
    char **all = memory_array((size_t)count + 2, sizeof(*all));
    int flag, code = 0;
    *f = (struct flags){.mode = 'm'};
    all[0] = name;
    memcpy(all + 1, arguments, (size_t)count * sizeof(*all));
    optind = 0; /* from the start, also when main() was in the middle of a cluster */
    while (code == 0 && (flag = getopt(count + 1, all, flags)) != -1)
        code = flag == '?' || flag == ':' ? odd_flag(flag, all[optind])
                                          : take_flag(f, flag, optarg);
    f->recipients = arguments + optind - 1;
    f->recipient_count = count - (optind - 1);
    free(all);
    return code;
}
