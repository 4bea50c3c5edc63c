/* link: t/sim/copies_database.c */
/* The scripts of adoption, in a real Redis and in the one of tests: two hosts, a lost disk, an
 * adopter that is cut off. */
#include "queue/copies/adoption_scripts.h"

#include "queue/copies/copies_scripts.h"
#include "t/sim/copies_database.h"
#include "t/support/must.h"
#include "t/support/registry_kit_redis.h"

#define ALL   "4 o c b c:adopted"
#define FIRST "h1 R1"
#define NAME  "h1:i1"
#define OTHER "h9:i9"

/* One question and its answer. keys: their number, and they; arguments end with NULL. */
struct step {
    const char *what;
    const struct adoption_script *script;
    const char *keys, *arguments[9], *want;
};

static const struct adoption_script store = {copies_script_store, "", true},
                                    farewell = {copies_script_farewell, "", false};
static const struct step steps[] = {
    {"nobody owns anything", &adoption_script_beat, "2 o b", {FIRST, NAME, "1"}, ""},
    {"the first owner",
     &adoption_script_claim, ALL, {FIRST, NAME, "", "-"}, "- 0"},
    {"once more", &adoption_script_claim, ALL, {FIRST, NAME, "", "-"}, "- 0"},
    {"a batch", &store, "2 o c",
     {FIRST, NAME, "7", "C", "A", "content", "S", "A", "7\nform"}, " 7"},
    {"a larger one", &store, "2 o c",
     {FIRST, NAME, "8", "L", "B", "0", "01234567"}, "7 8"},
    {"its next chunk", &store, "2 o c",
     {FIRST, NAME, "9", "L", "B", "1", "89"}, "8 9"},
    {"its envelope", &store, "2 o c",
     {FIRST, NAME, "10", "S", "B", "9\nlarge"}, "9 10"},
    {"a beat names the owner", &adoption_script_beat, "2 o b", {FIRST, NAME, "2"},
     "h1:i1 h1 R1 2"},
    {"a clone is not the owner", &adoption_script_claim, ALL, {"h1 R2", NAME, "", "-"},
     "FENCED h1 R1"},
    {"nor one that has seen an older beat", &adoption_script_claim, ALL,
     {"h1 R2", NAME, FIRST, "1"}, "FENCED h1 R1"},
    {"whose batches are refused", &store, "2 o c",
     {"h1 R2", NAME, "11", "E", "A"}, "FENCED h1 R1"},
    {"another host reads nothing", &adoption_script_page, "2 o c",
     {"h2 R3", NAME, "0", "100"}, "FENCED h1 R1"},
    {"takes nothing", &adoption_script_taken, "4 o c c:adopted c:A",
     {"h2 R3", NAME, "A", "h2/X", "7"}, "theirs"},
    {"and owns it after silence", &adoption_script_claim, ALL,
     {"h2 R3", NAME, FIRST, "2"}, "10 0"},
    {"the number of a run without copies is gone", &adoption_script_beat, "2 o b",
     {"h2 R3", "h2:i2", "1"}, "h1:i1 h2 R3 1"},
    {"from now on the first host is refused", &store, "2 o c",
     {FIRST, NAME, "11", "E", "A"}, "FENCED h2 R3"},
    {"also by its claim", &adoption_script_claim, ALL, {FIRST, NAME, FIRST, "2"},
     "FENCED h2 R3"},
    {"what is there", &adoption_script_page, "2 o c", {"h2 R3", NAME, "0", "100"},
     "0 A 7 B 9"},
    {"an envelope", &adoption_script_piece, "3 o c c:A",
     {"h2 R3", NAME, "A", "form", "0", "99"}, "7\nform"},
    {"a piece of it", &adoption_script_piece, "3 o c c:A",
     {"h2 R3", NAME, "A", "form", "2", "3"}, "for"},
    {"content", &adoption_script_piece, "3 o c c:A",
     {"h2 R3", NAME, "A", "content", "3", "99"}, "tent"},
    {"of several chunks", &adoption_script_piece, "3 o c c:B",
     {"h2 R3", NAME, "B", "content", "6", "3"}, "678"},
    {"behind its end", &adoption_script_piece, "3 o c c:B",
     {"h2 R3", NAME, "B", "content", "10", "3"}, ""},
    {"one that is not there", &adoption_script_piece, "3 o c c:C",
     {"h2 R3", NAME, "C", "content", "0", "3"}, ""},
    {"one is taken", &adoption_script_taken, "4 o c c:adopted c:B",
     {"h2 R3", NAME, "B", "h2/X", "9"}, "ours"},
    {"and said again", &adoption_script_taken, "4 o c c:adopted c:B",
     {"h2 R3", NAME, "B", "h2/X", ""}, "ours"},
    {"not twice", &adoption_script_taken, "4 o c c:adopted c:B",
     {"h2 R3", NAME, "B", "h2/Y", ""}, "theirs"},
    {"the adopter is cut off, and the next takes its lease", &adoption_script_claim, ALL,
     {"h3 R4", NAME, "h2 R3", "1"}, "10 1"},
    {"what it has taken is its own", &adoption_script_taken, "4 o c c:adopted c:B",
     {"h2 R3", NAME, "B", "h2/X", ""}, "ours"},
    {"and no more", &adoption_script_taken, "4 o c c:adopted c:A",
     {"h2 R3", NAME, "A", "h2/Z", ""}, "theirs"},
    {"one that its owner has ended", &adoption_script_taken, "4 o c c:adopted c:D",
     {"h2 R3", NAME, "D", "h2/Z", "10"}, "theirs"},
    {"or perhaps this one, whose answer was lost", &adoption_script_taken,
     "4 o c c:adopted c:D", {"h2 R3", NAME, "D", "h2/Z", ""}, "nobody's"},
    {"one that the server has lost", &adoption_script_taken, "4 o c c:adopted c:D",
     {"h2 R3", NAME, "D", "h2/Z", "11"}, "nobody's"},
    {"the rest", &adoption_script_page, "2 o c", {"h3 R4", NAME, "0", "100"}, "0 A 7"},
    {"it does not end before that", &adoption_script_done, "4 o c c:adopted b",
     {"h3 R4", NAME, "100", ""}, "more"},
    {"but leaves the rest to others", &adoption_script_done, "4 o c c:adopted b",
     {"h3 R4", NAME, "100", "h1 0"}, "more"},
    {"and is fenced", &adoption_script_page, "2 o c", {"h3 R4", NAME, "0", "100"}, "FENCED h1 0"},
    {"until it claims them again", &adoption_script_claim, ALL, {"h3 R4", NAME, "h1 0", "-"}, "10 1"},
    {"is taken", &adoption_script_taken, "4 o c c:adopted c:A", {"h3 R4", NAME, "A", "h3/V", "7"},
     "ours"},
    {"the end", &adoption_script_done, "4 o c c:adopted b", {"h3 R4", NAME, "100", ""}, "done"},
    {"nobody owns it", &adoption_script_beat, "2 o b", {"h3 R4", "h3:i3", ""}, ""},
    {"but a host that was cut off does not go on as if nothing were", &store, "2 o c",
     {FIRST, NAME, "11", "E", "A"}, "FENCED somebody"},
    {"the first host is back", &adoption_script_claim, ALL, {"h1 R5", NAME, "", "-"},
     "- 3"},
    {"hears who has its mail", &adoption_script_page, "2 o c:adopted",
     {"h1 R5", NAME, "0", "100"}, "0 A h3/V B h2/X"},
    {"forgets it", &adoption_script_forget, "2 o c:adopted", {"h1 R5", NAME, "100"}, "done"},
    {"but who has it may ask", &adoption_script_taken, "4 o c c:adopted c:B",
     {"h2 R3", NAME, "B", "h2/X", ""}, "ours"},
    {"and who has not", &adoption_script_taken, "4 o c c:adopted c:A",
     {"h2 R3", NAME, "A", "h2/Z", ""}, "theirs"},
    {"and starts anew", &adoption_script_claim, ALL, {"h1 R5", NAME, "", "-"}, "- 0"},
    {"stored again", &store, "2 o c",
     {"h1 R5", NAME, "12", "C", "E", "", "S", "E", "12\nform"}, " 12"},
    /* Another host, with keys of its own. */
    {"a copy", &store, "2 p d", {"h9 R1", OTHER, "12", "C", "E", "", "S", "E", "12\nform"}, " 12"},
    {"a mark leaves the number of the batch that stored it", &store, "2 p d",
     {"h9 R1", OTHER, "13", "M", "E", "13\nchanged"}, "12 13"},
    {"a part of a large mark", &store, "2 p d", {"h9 R1", OTHER, "14", "P", "E", "0", "14\nlar"}, "13 14"},
    {"the rest", &store, "2 p d", {"h9 R1", OTHER, "15", "P", "E", "1", "ge"}, "14 15"},
    {"takes them, with that number", &store, "2 p d", {"h9 R1", OTHER, "16", "M", "E", ""}, "15 16"},
    {"as a page says", &adoption_script_page, "2 p d", {"h9 R1", OTHER, "0", "100"}, "0 E 12"},
    {"the whole form", &adoption_script_piece, "3 p d d:E", {"h9 R1", OTHER, "E", "form", "0", "9"}, "12\nlarge"},
    {"a mark of what is not there", &store, "2 p d",
     {"h9 R1", OTHER, "17", "M", "C", "17\nform"}, "16 17 C"},
    {"a farewell with copies", &farewell, "2 p d", {"h9 R1", OTHER}, ""},
    {"leaves an owner", &adoption_script_beat, "2 p q", {"h9 R1", OTHER, ""}, "h9:i9 h9 R1 -"},
    {"one of another is refused", &farewell, "2 p d", {"h2 R3", OTHER}, "FENCED h9 R1"},
    {"the last end", &store, "2 p d", {"h9 R1", OTHER, "18", "E", "E"}, "17 18"},
    {"a farewell without", &farewell, "2 p d", {"h9 R1", OTHER}, ""},
    {"leaves none", &adoption_script_beat, "2 p q", {"h9 R1", OTHER, ""}, ""},
    {"but the number", &adoption_script_claim, "4 p d q d:adopted", {"h9 R2", OTHER, "", "-"}, "18 0"},
};

/* In a server that is full. */
static const struct step full[] = {
    {"who lives says so", &adoption_script_beat, "2 o b", {"h2 R6", NAME, "3"}, "h1:i1 h1 R5 -"},
    {"an owner that is lost is replaced", &adoption_script_claim, ALL,
     {"h2 R6", NAME, "h1 R5", "-"}, "12 0"},
    {"it may leave the rest", &adoption_script_done, "4 o c c:adopted b", {"h2 R6", NAME, "100", "h1 0"}, "more"},
    {"and claim it again", &adoption_script_claim, ALL, {"h2 R6", NAME, "h1 0", "-"}, "12 0"},
    {"what is taken ends there", &adoption_script_taken, "4 o c c:adopted c:E",
     {"h2 R6", NAME, "E", "h2/Y", "12"}, "ours"},
    {"and all of it", &adoption_script_done, "4 o c c:adopted b", {"h2 R6", NAME, "100", ""}, "done"},
};

static void
put(FILE *redis, const char *word, size_t length)
{
    fprintf(redis, "$%zu\r\n%.*s\r\n", length, (int)length, word);
}

static void
ask(FILE *redis, const struct step *s)
{
    size_t words = 2, i;
    for (const char *k = s->keys; k != NULL; k = strchr(k + 1, ' '))
        words++;
    for (i = 0; i < 9 && s->arguments[i] != NULL; i++)
        words++;
    fprintf(redis, "*%zu\r\n", words);
    put(redis, "EVAL", 4);
    put(redis, s->script->text, strlen(s->script->text));
    for (const char *k = s->keys; *k != '\0';) {
        size_t length = strcspn(k, " ");
        put(redis, k, length);
        k += length + (k[length] == ' ');
    }
    for (i = 0; i < 9 && s->arguments[i] != NULL; i++)
        put(redis, s->arguments[i], strlen(s->arguments[i]));
    fflush(redis);
}

/* "$5\r\nhello\r\n" or "-FENCED h1 R1". */
static void
hear(FILE *redis, char out[1024])
{
    char line[1024] = "";
    must(fgets(line, sizeof(line), redis) != NULL);
    line[strcspn(line, "\r")] = '\0';
    snprintf(out, 1024, "%s", line + 1);
    if (line[0] != '$')
        return;
    size_t length = strtoul(line + 1, NULL, 10);
    must(length < 1000 && fread(out, 1, length + 2, redis) == length + 2);
    out[length] = '\0';
}

/* In the order of their names: a hash has none. */
static void
sort_page(char *page)
{
    const char *a = strstr(page, " A "), *b = strstr(page, " B ");
    if (a != NULL && b != NULL && b < a) {
        char sorted[1024];
        snprintf(sorted, sizeof(sorted), "0%s%.*s", a, (int)(a - b), b);
        strcpy(page, sorted);
    }
}

static void
ask_all(FILE *redis, const struct step *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char got[1024];
        ask(redis, &all[i]);
        hear(redis, got);
        sort_page(got);
        is_string(got, all[i].want, all[i].what);
    }
}

/* The same of the stand-in. */
static void
test_stand_in(void)
{
    struct copies_database *d = copies_database_new();
    struct buffer reply;
    buffer_init(&reply, 1 << 20);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const struct step *s = &steps[i];
        struct text words[20], rest = text_from(s->keys);
        char got[1024];
        size_t count = 0;
        while (text_word(&rest, " ", &words[count]))
            count++;
        for (size_t w = 0; w < 9 && s->arguments[w] != NULL; w++)
            words[count++] = text_from(s->arguments[w]);
        (void)copies_database_run(d, s->script->text, words, count, &reply);
        must(text_copy(got, sizeof(got), buffer_text(&reply)));
        buffer_clear(&reply);
        sort_page(got);
        is_string(got, s->want, s->what);
    }
    ok(copies_database_count(d) == 0); /* their ids are none */
    buffer_free(&reply);
    copies_database_free(&d);
}

int
main(void)
{
    test_stand_in();
    struct server s = {.port = free_port()};
    snprintf(s.home, sizeof(s.home), "/tmp/petrel-scripts-XXXXXX");
    must(mkdtemp(s.home) != NULL);
    if (!registry_redis_server_start(&s, "")) {
        printf("# no Redis here\n");
        return done();
    }
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)s.port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0);
    FILE *redis = fdopen(fd, "r+");
    char got[1024];
    ask_all(redis, steps, sizeof(steps) / sizeof(steps[0]));
    fprintf(redis, "CONFIG SET maxmemory 1\r\n");
    hear(redis, got);
    is_string(got, "OK", "it is full");
    ask_all(redis, full, sizeof(full) / sizeof(full[0]));
    server_stop(&s);
    return done();
}
