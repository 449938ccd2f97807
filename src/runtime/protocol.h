/* What host and worker say to each other over the control channel (process/channel.h).
 *
 *   host -> worker   HELLO {hello} [segment, host event]   first message, once
 *                    PROGRAM {program_message} [shared object]   answered by ANSWER
 *                    ATTACH {attach_message} [file]   answered by ANSWER
 *                    DETACH {attach_message}
 *   worker -> host   ANSWER {answer}   to HELLO and to each PROGRAM and ATTACH, in order
 *
 * The worker ends when the channel closes. */
#ifndef RUNTIME_PROTOCOL_H
#define RUNTIME_PROTOCOL_H

#include "transport/transport.h"

#include <pypto/program.h>

#define PROTOCOL_VERSION 2u

/* Programs that one worker set can have loaded; ids are below. */
#define RANK_PROGRAMS 4096

typedef enum message_type {
    MESSAGE_HELLO = 1,
    MESSAGE_PROGRAM,
    MESSAGE_ATTACH,
    MESSAGE_DETACH,
    MESSAGE_ANSWER
} message_type;

typedef struct hello_message {
    uint32_t version;
    int32_t rank;
    int32_t one_process;
    int32_t reserved;
    /* The host's view of the segment, for ranks that are threads of the host; NULL otherwise. */
    const void *host_segment;
} hello_message;

typedef struct program_message {
    int32_t id; /* below RANK_PROGRAMS */
    int32_t reserved;
    /* The table's address where host and rank share code (fork, threads); NULL: in the shared
     * object. */
    const pld_program *table;
} program_message;

/* A file of the caller that is mapped over part of the segment, from its first byte. */
typedef struct attach_message {
    int64_t offset; /* in the segment */
    int64_t bytes;
    int32_t writable;
    int32_t reserved;
} attach_message;

typedef struct answer_message {
    int32_t ok;
    char text[1024]; /* the error */
} answer_message;

/* A rank as a thread of the host: serves `channel` until it closes. */
int worker_serve_thread(int channel);

/* Runs the functions of a SubWorker that have no code of their own. */
typedef struct sub_runner {
    void (*run)(void *context, const pld_function *function, pld_sub *sub, const pld_arg *args);
    void *context;
} sub_runner;

/* What a SubWorker has from the host, being a copy or a thread of it: so there is no greeting. */
typedef struct sub_start {
    int channel; /* taken over */
    int host_event;
    segment seg;    /* a forked one: the host's own view; a thread: a view without descriptor */
    int32_t number; /* of its header and queue */
    const pld_program *const *programs; /* by id; only read at the start */
    int32_t program_count;
    sub_runner runner;
} sub_start;

/* Answers (ANSWER), then serves until the channel closes. */
int worker_serve_sub(const sub_start *start);

#endif
