/* Completions: commands, flags, their values, settings, places, paths and ids. */
#include "admin/command/complete.h"

#include "admin/command/command_table.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <string.h>
#include <unistd.h>

static struct command_world world;
static char *const no_overrides[] = {NULL};

/* Words with a | between them, since a shell's last word may be empty. */
static void
offers(const char *words, const char *want)
{
    static char copy[400];
    char *arguments[12], *said = world.output;
    int count = 0;
    struct options_sources sources = {.file = "/dev/null", .overrides = no_overrides};
    struct text rest, word;
    snprintf(copy, sizeof(copy), "--|%s", words);
    rest = text_from(copy);
    while (text_cut(&rest, '|', &word)) {
        arguments[count] = copy + (word.at - copy);
        arguments[count++][word.length] = '\0';
    }
    command_world_listen(&world);
    int code = complete_command(count, arguments, &sources);
    command_world_heard(&world);
    is_number(code, 0, words);
    char list[4000] = "";
    while (*said != '\0') {
        size_t length = strcspn(said, "\t\n");
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%.*s ", (int)length, said);
        said += strcspn(said, "\n") + 1;
    }
    is_string(list, want, words);
}

TEST(commands)
{
    char line[200];
    offers("q", "quota queue ");
    offers("", "run check doctor init import test version help sendmail status trace health reload drain page log-level unlock quota suppress cluster passwd key cert dkim-key oauth "
               "queue complete ");
    for (const struct command_row *row = command_rows(); row->name != NULL; row++) {
        snprintf(line, sizeof(line), "\n%s\t%s\n", row->name, row->about);
        ok_named(row == command_rows() || strstr(world.output, line) != NULL, row->name);
    }
    offers("nonsense", "");
    offers("nonsense|", "");
    offers("help|tr", "trace ");
    offers("help|trace|", "");
}

TEST(program)
{
    offers("-", "-c -o -h --help -V --version ");
    offers("--v", "--version ");
    offers("-c|", "@files ");
    offers("-o|smtp_p", "smtp_port= ");
    offers("-o|smtp_port=2", "");
    offers("-o|spool=/x|-c|/y|que", "queue ");
    offers("-c|/y|-o|smtp_p", "smtp_port= ");
    offers("-o|a=b|-", "-c -o -h --help -V --version ");
}

TEST(flags)
{
    offers("check|-", "--changed --json --example ");
    offers("check|--changed|--", "--changed --json --example ");
    offers("status|", "");
    offers("status|-", "--sites --site --quotas --cluster --json --watch ");
    offers("queue|", "ls show why cat shape hold release retry rm bounce adopt ");
    offers("queue|s", "show shape ");
    offers("queue|ls|--q", "--queue ");
    offers("queue|ls|--queue|d", "deferred defrag ");
    offers("queue|ls|--to|", "");
    offers("queue|shape|--by|", "recipient sender site ");
    offers("queue|--json|sh", "show shape ");
    offers("queue|--queue|hold|l", "ls ");
    offers("log-level|", "error warning info debug ");
    offers("log-level|info|", "");
    offers("log-level|info|--", "--for ");
    offers("log-level|info|--for|", "");
    offers("trace|-", "--json --since -n -f ");
    offers("oauth|", "login status forget ");
    offers("oauth|lo", "login ");
    offers("dkim-key|--directory|", "@files ");
    offers("dkim-key|--bits|", "");
    offers("reload|", "");
}

/* Those of the spool that the words name. */
TEST(ids)
{
    struct id one = command_world_inject(&world, "one@b.test");
    char words[300], want[60];
    snprintf(want, sizeof(want), "%s ", command_world_name(one));
    snprintf(words, sizeof(words), "-o|spool=%s|-o|hostname=a.test|queue|show|", world.spool);
    offers(words, want);
    strcat(words, "0");
    offers(words, want[0] == '0' ? want : "");
    snprintf(words, sizeof(words), "-o|spool=%s|-o|hostname=a.test|queue|rm|%.4s", world.spool, want);
    offers(words, want);
    /* Tab looks, and makes no spool, not even for root. */
    snprintf(words, sizeof(words), "-o|spool=%s/none/spool|-o|hostname=a.test|queue|show|", world.spool);
    offers(words, "");
    snprintf(words, sizeof(words), "%s/none", world.spool);
    ok_named(access(words, F_OK) != 0, "no spool is made");
}

/* Hostile or hurried hands. */
TEST(odd)
{
    struct options_sources sources = {.overrides = no_overrides};
    char *none[] = {NULL}, mark[] = "--", *only[] = {mark, NULL};
    command_world_listen(&world);
    int code = complete_command(0, none, &sources), marked = complete_command(1, only, &sources);
    command_world_heard(&world);
    ok(code == 0 && marked == 0 && strstr(world.output, "queue\t"));
    offers("-o", "-o ");
    offers("-o|a=b|-o|a=b|-o|a=b|-c|x|que", "queue ");
}

int
main(void)
{
    command_world_begin(&world, "complete");
    tap_tests("");
    command_world_end(&world);
    return done();
}
