/* The last failed conversation of each site: found by name, the oldest is forgotten. */
#include "smtp/delivery/failed_dialogues.h"

#include "t/support/tap.h"

int
main(void)
{
    struct failed_dialogues *all = failed_dialogues_new();
    struct transcript t = {.begun_ms = 1, .now_ms = 1};
    char name[32];
    ok_named(failed_dialogues_find(all, "mx.test") == NULL, "nothing yet");
    transcript_add(&t, TRANSCRIPT_THEY, TEXT("550 no"));
    failed_dialogues_keep(all, "mx.test", "mx.test[192.0.2.1]:25", 12345, &t);
    const struct failed_dialogue *found = failed_dialogues_find(all, "MX.test");
    ok_named(found != NULL && found->begun_ms == 12345, "found in any case");
    is_string(found->relay, "mx.test[192.0.2.1]:25", "with whom");
    struct transcript_line line;
    size_t at = 0;
    ok(transcript_next(&found->transcript, &at, &line));
    is_text(line.text, TEXT("550 no"), "what was said");
    failed_dialogues_keep(all, "mx.test", "mx.test[192.0.2.2]:25", 23456, &t);
    ok_named(failed_dialogues_find(all, "mx.test")->begun_ms == 23456, "the last one");

    for (int i = 1; i < FAILED_DIALOGUES_MAX; i++) {
        snprintf(name, sizeof(name), "site%d", i);
        failed_dialogues_keep(all, name, "x", i, &t);
    }
    ok_named(failed_dialogues_find(all, "mx.test") != NULL, "100 of them");
    failed_dialogues_keep(all, "mx.test", "x", 34567, &t);
    failed_dialogues_keep(all, "another", "x", 1, &t);
    ok_named(failed_dialogues_find(all, "site1") == NULL, "the one that failed the longest ago is forgotten");
    ok_named(failed_dialogues_find(all, "mx.test") != NULL && failed_dialogues_find(all, "another") != NULL &&
                 failed_dialogues_find(all, "site2") != NULL,
             "the others are not");
    failed_dialogues_free(&all);
    ok(all == NULL);
    failed_dialogues_free(&all);
    return done();
}
