/* Shared by scenario*.c. No other file includes this. */
#ifndef T_SIMULATION_SCENARIO_INTERNAL_H
#define T_SIMULATION_SCENARIO_INTERNAL_H

#include "base/memory.h"
#include "t/simulation/scenario.h"

enum { SHOWN_MAX = 80 };

struct reader {
    struct scenario *scenario;
    const struct scenario_defaults *defaults;
    const char *name;
    size_t line;
    struct buffer *errors;
    bool bad;
};

/* An error in the present line. */
void scenario_complain(struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool scenario_next_word(struct text *rest, struct text *word);
/* The array with space for one more. */
void *scenario_grown(void *array, size_t count, size_t *capacity, size_t size);
/* As much of a word as an error shows. */
struct text scenario_shown(struct text t);
/* False: an error is reported. */
bool scenario_read_time(struct reader *r, struct text value, int64_t *time_us);
bool scenario_read_number(struct reader *r, struct text word, uint64_t min,
                          uint64_t max, uint64_t *number);
void scenario_add_change(struct scenario *s, const struct scenario_change *change);
/* False: no domain has that name. */
bool scenario_domain_find(const struct scenario *s, struct text name, size_t *first,
                          size_t *count);
/* The statement `arrive`. */
void scenario_read_arrive(struct reader *r, struct text rest);

#endif
