/* Waiting for what will happen in a world with a loop. */
#ifndef T_SUPPORT_UNTIL_H
#define T_SUPPORT_UNTIL_H

/* Turns until it is true, for a minute at least: a bound, not a measure. */
#define until(world, condition)                                                        \
    for (int waited = 0; waited < 60000 && !(condition); waited++)                      \
    loop_turn((world)->loop, 1)

#endif
