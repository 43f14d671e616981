/* What is done to dead letters, one at a time or many. */
#ifndef CLI_DLQ_ACT_H
#define CLI_DLQ_ACT_H

/* Verbs of `lanegate dlq`: argv[0] is the word. */
int dlq_show(int argc, char **argv);
int dlq_replay(int argc, char **argv);
int dlq_discard(int argc, char **argv);

#endif
