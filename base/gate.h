/* A gate: makes some data durable before others are written.
 *
 * The keeper of data numbers them (`last` rises by one) and makes them durable. A writer
 * of dependent data notes the number, and writes nothing before the gate is open for that
 * number. The keeper may give up after a time: `durable` then says that nobody waits any
 * longer. A gate that nobody uses is always open: all its members are 0. */
#ifndef BASE_GATE_H
#define BASE_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gate {
    uint64_t last;    /* the number of the last data; 0: none yet */
    uint64_t durable; /* data with this number or a lower one stop nobody */
    /* Both NULL while nobody keeps anything. write begins to make all of it durable;
     * wait does so, and returns when nothing stops anybody. */
    void (*write)(void *context);
    void (*wait)(void *context);
    void *context;
};

/* gate may be NULL in all of them: always open. */
static inline uint64_t
gate_number(const struct gate *gate)
{
    return gate != NULL ? gate->last : 0;
}

static inline bool
gate_is_open(const struct gate *gate, uint64_t number)
{
    return gate == NULL || number <= gate->durable;
}

static inline void
gate_write(const struct gate *gate)
{
    if (gate != NULL && gate->write != NULL)
        gate->write(gate->context);
}

static inline void
gate_wait(const struct gate *gate)
{
    if (gate != NULL && gate->wait != NULL && gate->durable < gate->last)
        gate->wait(gate->context);
}

#endif
