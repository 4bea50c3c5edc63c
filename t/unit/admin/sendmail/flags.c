/* The flags of sendmail(1): separate, glued, in clusters, odd ones; where recipients
 * begin. */
#include "admin/sendmail/flags.h"

#include "admin/settings/complaint.h"
#include "t/support/tap.h"

#include <sysexits.h>
#include <unistd.h>

static char said[4096]; /* on standard error */

static void
start_listening(int *saved)
{
    fflush(stderr);
    *saved = dup(2);
    FILE *file = tmpfile();
    if (*saved < 0 || file == NULL || dup2(fileno(file), 2) < 0)
        abort();
    fclose(file);
}

static void
stop_listening(int saved)
{
    fflush(stderr);
    ssize_t got = pread(2, said, sizeof(said) - 1, 0);
    said[got > 0 ? got : 0] = '\0';
    if (dup2(saved, 2) < 0)
        abort();
    close(saved);
}

/* Words separated by single spaces; an empty word is an empty argument. */
static int
parse(struct flags *f, const char *words)
{
    static char copies[32][200];
    static char *arguments[33];
    int count = 0, saved;
    struct text rest = text_from(words), word;
    while (rest.length > 0 && text_cut(&rest, ' ', &word)) {
        text_copy(copies[count], sizeof(copies[0]), word);
        arguments[count] = copies[count];
        count++;
    }
    arguments[count] = NULL;
    start_listening(&saved);
    int code = flags_parse(f, count, arguments);
    stop_listening(saved);
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
    ok(parsed("-bm")->mode == 'm');
    ok(parsed("-bp")->mode == 'p');
    ok(parsed("-bs")->mode == 's');
    ok(parsed("-bi")->mode == 'i');
    ok(parsed("-I")->mode == 'i');
    ok(parsed("-bv a")->mode == 'v');
    ok(parsed("-b p")->mode == 'p');
    ok(parsed("-q")->mode == 'q');
    ok(parsed("-q30m")->mode == 'q');
    ok(parsed("-qf")->mode == 'q');
    ok(!parsed("-q30m")->queue_to && !parsed("-q30m")->queue_id);
    ok(parsed("-qRx.test")->mode == 'q' && !parsed("-qRx.test")->queue_id);
    is_string(parsed("-qRx.test")->queue_to, "x.test", "-qR");
    ok(parsed("-qIabc")->mode == 'q' && !parsed("-qIabc")->queue_to);
    is_string(parsed("-qIabc")->queue_id, "abc", "-qI");
    ok(!parsed("-qRx.test -q")->queue_to);
    ok(parsed("-qSa@x.test")->mode == 'q' && !parsed("-qSa@x.test")->queue_to);
    is_string(parsed("-qSa@x.test")->queue_from, "a@x.test", "-qS");
    ok(!parsed("-qIabc")->queue_from && !parsed("-qSa@x.test")->queue_id);
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
    int saved;
    char lengthy[3000];
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[sizeof(lengthy) - 1] = '\0';
    start_listening(&saved);
    int code = complaint_say("p", 7, "what", "a\nb\x1b[2J");
    code += complaint_say("p", 1, "what", "");
    code += complaint_say("p", 0, "long", lengthy);
    stop_listening(saved);
    is_number(code, 8, "the code comes back");
    ok_named(text_starts(text_from(said), TEXT("p: what: a\\x0ab\\x1b[2J\np: what\n")),
             "one line each");
    ok(strlen(said) < 1200 && said[strlen(said) - 1] == '\n');
}
