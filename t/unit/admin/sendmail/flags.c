/* The flags of sendmail(1): separate, glued, in clusters, odd ones; where recipients
 * begin. */
#include "admin/sendmail/flags.h"

#include "admin/settings/complaint.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <string.h>
#include <sysexits.h>

static struct command_world heard;
static const char *const said = heard.errors;

/* Words separated by single spaces; an empty word is an empty argument. */
static int
parse(struct flags *f, const char *words)
{
    static char copies[32][200];
    static char *arguments[33];
    int count = 0;
    struct text rest = text_from(words), word;
    while (rest.length > 0 && text_cut(&rest, ' ', &word)) {
        text_copy(copies[count], sizeof(copies[0]), word);
        arguments[count] = copies[count];
        count++;
    }
    arguments[count] = NULL;
    command_world_listen(&heard);
    int code = flags_parse(f, count, arguments);
    command_world_heard(&heard);
    return code;
}

static const struct flags *
parsed(const char *words)
{
    static struct flags f;
    is_number(parse(&f, words), 0, words);
    is_string(said, "", "and nothing is said");
    return &f;
}

/* One recipient, "who", is left. */
static const struct flags *
with_who(const char *words)
{
    const struct flags *f = parsed(words);
    is_number(f->recipient_count, 1, "one recipient");
    is_string(f->recipient_count ? f->recipients[0] : "", "who", "who");
    return f;
}

TEST(values)
{
    const struct flags *f = parsed("");
    ok(f->mode == 'm' && !f->from_header && !f->ignore_dots && !f->verbose);
    ok(!f->sender && !f->full_name && !f->envelope_id && f->recipient_count == 0);
    ok(f->notify == NOTIFY_DEFAULT && f->ret == RETURN_DEFAULT);
    is_string(with_who("-f a@b who")->sender, "a@b", "-f");
    is_string(with_who("-fa@b who")->sender, "a@b", "-f glued");
    is_string(with_who("-r a@b who")->sender, "a@b", "-r");
    is_string(with_who("-ra@b who")->sender, "a@b", "-r glued");
    is_string(with_who("-f a -r b who")->sender, "b", "the last one counts");
    is_string(with_who("-f  who")->sender, "", "an empty one");
    is_string(with_who("-f -x who")->sender, "-x", "a value may look like a flag");
    is_string(with_who("-F Ann who")->full_name, "Ann", "-F");
    is_string(with_who("-FAnn who")->full_name, "Ann", "-F glued");
    is_string(with_who("-V id1 who")->envelope_id, "id1", "-V");
    ok(with_who("-v who")->verbose);
    ok(with_who("-t who")->from_header);
    ok(with_who("-U -G -n -m -s -T -x who")->mode == 'm');
}

TEST(dots)
{
    ok(with_who("-i who")->ignore_dots);
    ok(with_who("-oi who")->ignore_dots);
    ok(with_who("-o i who")->ignore_dots);
    ok(!with_who("-oem who")->ignore_dots);
    ok(!with_who("-oit who")->ignore_dots);
    const struct flags *f = with_who("-ti who");
    ok(f->from_header && f->ignore_dots);
    f = with_who("-itf x who");
    ok(f->from_header && f->ignore_dots && strcmp(f->sender, "x") == 0);
    f = with_who("-odb -oi -om -t -fx who");
    ok(f->from_header && f->ignore_dots && strcmp(f->sender, "x") == 0);
}

TEST(modes)
{
    static const struct {
        const char *words;
        char mode;
        const char *to, *from, *id; /* of -q */
    } rows[] = {
        {"-bm", 'm', NULL, NULL, NULL},
        {"-bp", 'p', NULL, NULL, NULL},
        {"-bs", 's', NULL, NULL, NULL},
        {"-bi", 'i', NULL, NULL, NULL},
        {"-I", 'i', NULL, NULL, NULL},
        {"-bv a", 'v', NULL, NULL, NULL},
        {"-b p", 'p', NULL, NULL, NULL},
        {"-q", 'q', NULL, NULL, NULL},
        {"-q30m", 'q', NULL, NULL, NULL},
        {"-qf", 'q', NULL, NULL, NULL},
        {"-qRx.test", 'q', "x.test", NULL, NULL},
        {"-qSa@x.test", 'q', NULL, "a@x.test", NULL},
        {"-qIabc", 'q', NULL, NULL, "abc"},
        {"-qRx.test -q", 'q', NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct flags *f = parsed(rows[i].words);
        is_number(f->mode, rows[i].mode, rows[i].words);
        is_text(text_from(f->queue_to), text_from(rows[i].to), "of a site");
        is_text(text_from(f->queue_from), text_from(rows[i].from), "of a sender");
        is_text(text_from(f->queue_id), text_from(rows[i].id), "of a message");
    }
    struct flags f;
    is_number(parse(&f, "-bd"), EX_USAGE, "a daemon is something else");
    ok(strstr(said, "petrel run") != NULL);
    is_number(parse(&f, "-bsx"), EX_USAGE, "no mode");
    is_number(parse(&f, "-b "), EX_USAGE, "an empty mode");
}

TEST(notices)
{
    ok(with_who("-N never who")->notify == NOTIFY_NEVER);
    ok(with_who("-N success,delay who")->notify == (NOTIFY_SUCCESS | NOTIFY_DELAY));
    ok(with_who("-NFAILURE who")->notify == NOTIFY_FAILURE);
    ok(with_who("-R full who")->ret == RETURN_FULL);
    ok(with_who("-Rhdrs who")->ret == RETURN_HEADERS);
    static const char *const wrong[] = {"-N x",   "-N never,failure",
                                        "-N  a",  "-N success,x",
                                        "-R all", "-R  a",
                                        "-qR",    "-qI",
                                        "-qS",    "-qGone",
                                        "-q-1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct flags f;
        is_number(parse(&f, wrong[i]), EX_USAGE, wrong[i]);
        ok(said[0] != '\0');
    }
}

/* Flags of other programs' sendmail are accepted, with their values. */
TEST(without_effect)
{
    static const char *const words[] = {
        "-A c who",  "-Ac who",    "-B8BITMIME who",  "-B 7BIT who", "-C /x who",
        "-Cx who",   "-d who",     "-d0-99.1 who",    "-d8 who",     "-D x who",
        "-em who",   "-e q who",   "-h5 who",         "-h 5 who",    "-L tag who",
        "-Msx who",  "-O a=b who", "-OTimeout=1 who", "-pSMTP who",  "-X /log who",
        "-oQ/x who", "-o7 who",    "-oA/x who",
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        const struct flags *f = with_who(words[i]);
        ok(f->mode == 'm' && !f->sender && !f->from_header && !f->ignore_dots);
    }
}

TEST(recipients)
{
    const struct flags *f = parsed("-i a b -f c");
    is_number(f->recipient_count, 4, "flags end at the first recipient");
    is_string(f->recipients[2], "-f", "what follows is a recipient");
    f = parsed("-i -- -t");
    is_number(f->recipient_count, 1, "-- ends them");
    is_string(f->recipients[0], "-t", "whatever it looks like");
    ok(!f->from_header);
    f = parsed("-i - b");
    is_number(f->recipient_count, 2, "- is no flag");
}

TEST(odd)
{
    struct flags f;
    is_number(parse(&f, "-Z -i -ty who"), 0, "unknown flags are ignored");
    is_string(said,
              "sendmail: this flag is unknown and ignored: -Z\n"
              "sendmail: this flag is unknown and ignored: -y\n",
              "and told");
    ok(f.ignore_dots && f.from_header && f.recipient_count == 1);
    is_number(parse(&f, "-\x1b who"), 0, "an escape");
    is_string(said, "sendmail: this flag is unknown and ignored: -\\x1b\n", "is tamed");
    is_number(parse(&f, "--read-envelope-from -t"), EX_USAGE, "a word of others");
    is_string(said, "sendmail: unknown argument: --read-envelope-from\n", "is whole");
    ok_named(f.sender == NULL, "and names no sender");
    is_number(parse(&f, "-i --help"), EX_USAGE, "behind a flag, too");
    is_string(said, "sendmail: unknown argument: --help\n", "is whole");
    is_number(parse(&f, "-f --x who"), 0, "but not as a value");
    is_number(parse(&f, "-i -f"), EX_USAGE, "a value is missing");
    is_string(said, "sendmail: this flag needs a value: -f\n", "and told");
    is_number(parse(&f, "-if"), EX_USAGE, "in a cluster");
}

TEST(complaint)
{
    char lengthy[3000];
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[sizeof(lengthy) - 1] = '\0';
    command_world_listen(&heard);
    int code = complaint_say("p", 7, "what", "a\nb\x1b[2J");
    code += complaint_say("p", 1, "what", "");
    code += complaint_say("p", 0, "long", lengthy);
    command_world_heard(&heard);
    is_number(code, 8, "the code comes back");
    ok_named(text_starts(text_from(said), TEXT("p: what: a\\x0ab\\x1b[2J\np: what\n")),
             "one line each");
    ok(strlen(said) < 1200 && said[strlen(said) - 1] == '\n');
}
