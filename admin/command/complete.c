/* Finds the words that a shell may offer, in the texts of the table of commands. */
#include "admin/command/complete.h"

#include "admin/command/command.h"
#include "admin/command/command_table.h"
#include "admin/settings/about.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { FLAGS_MAX = 32, OVERRIDES_MAX = 16 };

static const char program_flags[] = "-c FILE -o KEY=VALUE -h --help -V --version";

/* The words as far as they were typed. */
struct complete {
    int count;
    char **words;
    struct text last;
    struct options_sources sources;
    char *overrides[OVERRIDES_MAX + 1];
};

/* A flag in a text such as "[--older AGE] --by sender|site". */
struct complete_flag {
    struct text name, value; /* value "": it has none; else as in the text */
};

static void
complete_offer(const struct complete *c, struct text word, const char *about)
{
    if (text_starts(word, c->last))
        printf("%.*s\t%s\n", TEXT_ARGS(word), about);
}

/* a|b|c. False: it is no such list. */
static bool
complete_list(const struct complete *c, struct text list)
{
    struct text word;
    if (text_find(list, '|') == TEXT_NONE)
        return false;
    while (text_cut(&list, '|', &word))
        complete_offer(c, word, "");
    return true;
}

/* --- Flags ------------------------------------------------------------------------ */

static bool
complete_is_flag(struct text word)
{
    static const char bytes[] = "-abcdefghijklmnopqrstuvwxyzV0123456789";
    if (word.length < 2 || word.at[0] != '-')
        return false;
    for (size_t i = 0; i < word.length; i++)
        if (strchr(bytes, word.at[i]) == NULL)
            return false;
    return true;
}

/* The value one space behind a flag: a list a|b|c, or a word in capitals or digits. */
static struct text
complete_value(struct text rest)
{
    struct text value = {0}, none = {0};
    if (rest.length < 2 || rest.at[0] != ' ' || strchr(" [|-", rest.at[1]) != NULL)
        return none;
    if (!text_word(&rest, " \n[]", &value))
        return none;
    bool small = value.at[0] >= 'a' && value.at[0] <= 'z';
    return small && text_find(value, '|') == TEXT_NONE ? none : value;
}

static void
complete_keep_flag(struct complete_flag flags[FLAGS_MAX], size_t *count,
                   struct complete_flag flag)
{
    size_t i = 0;
    while (i < *count && !text_equal(flags[i].name, flag.name))
        i++;
    if (i == FLAGS_MAX)
        return;
    if (i == *count)
        flags[(*count)++] = flag;
    else if (flags[i].value.length == 0)
        flags[i].value = flag.value;
}

static size_t
complete_flags(struct text lines, struct complete_flag flags[FLAGS_MAX], size_t count)
{
    struct text word;
    while (text_word(&lines, " \n[]", &word))
        if (complete_is_flag(word))
            complete_keep_flag(flags, &count,
                               (struct complete_flag){word, complete_value(lines)});
    return count;
}

/* NULL: it is no flag of these, or has no value. */
static const struct complete_flag *
complete_with_value(const struct complete_flag *flags, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (flags[i].value.length > 0 && text_equal(flags[i].name, text_from(word)))
            return &flags[i];
    return NULL;
}

static bool
complete_is_path(struct text name)
{
    return text_starts(name, TEXT("FILE")) || text_starts(name, TEXT("SCENARIO")) ||
           text_starts(name, TEXT("DIRECTORY"));
}

/* --- Before the command ----------------------------------------------------------- */

static void
complete_keys(const struct complete *c)
{
    char word[128];
    for (const struct setting *row = options_rows; row->key != NULL; row++) {
        snprintf(word, sizeof(word), "%s=", row->key);
        complete_offer(c, text_from(word), "");
    }
}

/* The index of the command in the words, or their number: it is not there yet. Takes -c
 * and -o on the way. */
static int
complete_find_command(struct complete *c)
{
    size_t used = 0;
    int i = 0;
    for (; i + 1 < c->count && c->words[i][0] == '-'; i++) {
        bool is_file = strcmp(c->words[i], "-c") == 0;
        if (!is_file && strcmp(c->words[i], "-o") != 0)
            continue;
        if (i + 2 >= c->count)
            return c->count; /* its value is being typed */
        i++;
        if (is_file)
            c->sources.file = c->words[i];
        else if (used < OVERRIDES_MAX)
            c->overrides[used++] = c->words[i];
    }
    return i + 1 < c->count ? i : c->count;
}

static void
complete_commands(const struct complete *c)
{
    for (const struct command_row *row = command_rows(); row->name != NULL; row++)
        complete_offer(c, text_from(row->name), row->about);
}

static void
complete_program(const struct complete *c)
{
    struct complete_flag flags[FLAGS_MAX];
    size_t count = complete_flags(text_from(program_flags), flags, 0);
    const char *before = c->count > 1 ? c->words[c->count - 2] : "";
    if (strcmp(before, "-c") == 0)
        puts("@files");
    else if (strcmp(before, "-o") == 0)
        complete_keys(c);
    else if (text_starts(c->last, TEXT("-")))
        for (size_t i = 0; i < count; i++)
            complete_offer(c, flags[i].name, "");
    else
        complete_commands(c);
}

/* --- Behind it -------------------------------------------------------------------- */

/* Settings with errors are no reason to offer nothing else. */
static void
complete_ids(const struct complete *c)
{
    struct options options;
    struct settings *settings = about_read(&c->sources, &options);
    if (settings != NULL)
        command_queue_ids(&options, c->last, COMPLETE_IDS_MAX);
    settings_free(&settings);
}

/* Words of the command that are neither flags nor their values. */
static int
complete_count_words(const struct complete *c, int from,
                     const struct complete_flag *flags, size_t flag_count)
{
    int words = 0;
    for (int i = from; i + 1 < c->count; i++)
        if (complete_with_value(flags, flag_count, c->words[i]) != NULL)
            i++;
        else
            words += c->words[i][0] != '-';
    return words;
}

/* Offers the words for this place, from the arguments: a list of verbs, a command, a
 * path. */
static void
complete_positional(const struct complete *c, const struct command_row *row, int before)
{
    struct text rest = text_from(row->arguments), word = {0};
    bool is_queue = strcmp(row->name, "queue") == 0;
    while (text_word(&rest, " []", &word) &&
           (complete_is_flag(word) || text_equal(word, TEXT("|"))))
        if (complete_value(rest).length > 0)
            (void)!text_word(&rest, " []", &word);
    if (is_queue && before > 0)
        complete_ids(c);
    else if (text_equal(word, TEXT("COMMAND")) && before == 0)
        complete_commands(c);
    else if (complete_is_path(word))
        puts("@files");
    else if (before == 0)
        (void)!complete_list(c, word);
}

static void
complete_arguments(const struct complete *c, const struct command_row *row, int first)
{
    struct complete_flag flags[FLAGS_MAX];
    size_t count = complete_flags(text_from(row->arguments), flags, 0);
    count = complete_flags(text_from(row->help), flags, count);
    const struct complete_flag *open =
        c->count - 2 >= first
            ? complete_with_value(flags, count, c->words[c->count - 2])
            : NULL;
    if (open != NULL && complete_is_path(open->value)) {
        puts("@files");
    } else if (open != NULL) {
        (void)!complete_list(c, open->value);
    } else if (text_starts(c->last, TEXT("-"))) {
        for (size_t i = 0; i < count; i++)
            complete_offer(c, flags[i].name, "");
    } else {
        complete_positional(c, row, complete_count_words(c, first, flags, count));
    }
}

int
complete_command(int count, char **arguments, const struct options_sources *sources)
{
    struct complete c = {.sources = *sources};
    bool marked = count > 0 && strcmp(arguments[0], "--") == 0;
    c.words = arguments + marked;
    c.count = count - marked;
    c.last = text_from(c.count > 0 ? c.words[c.count - 1] : "");
    c.sources.overrides = c.overrides;
    c.sources.without_secrets = true;
    int at = complete_find_command(&c);
    const struct command_row *row = at < c.count ? command_find(c.words[at]) : NULL;
    if (at >= c.count)
        complete_program(&c);
    else if (row != NULL)
        complete_arguments(&c, row, at + 1);
    return fflush(stdout) == 0 ? 0 : EX_IOERR;
}
