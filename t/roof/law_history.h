/* The history of the first host tells the same as its log (the law "truth"). */
#ifndef T_ROOF_LAW_HISTORY_H
#define T_ROOF_LAW_HISTORY_H

/* Compares the lives of a few messages, others each time, at a quiet moment. */
void law_history_compare(void);
/* From now on old lines may go: the clock was set. */
void law_history_forgive(void);
unsigned law_history_compared(void);

#endif
