/*
 * A plugin that uses the distribution's library libbac as plugins built with the daemon's own
 * headers do, of which each thread and each lock is one of that library:
 *
 *   lib:do=thread              a thread of the library
 *   lib:do=timer               the library's timer, which interrupts a wait for nothing
 *   lib:do=socket,port=N       a connection of the library to this port of the host
 *   lib:do=lock                a lock of the library, in a thread of the plugin's own
 *   lib:do=nothing
 *
 * What it has done is the data of the command's only file, `/@lib/...`.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "support.h"

struct bsock;
extern int thread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
    __asm__("_Z18lmgr_thread_createPmPK14pthread_attr_tPFPvS3_ES3_");
extern void lock_mutex(pthread_mutex_t *) __asm__("_Z6lmgr_pP15pthread_mutex_t");
extern void unlock_mutex(pthread_mutex_t *) __asm__("_Z6lmgr_vP15pthread_mutex_t");
extern void init_thread(void) __asm__("_Z16lmgr_init_threadv");
extern void cleanup_thread(void) __asm__("_Z19lmgr_cleanup_threadv");
extern void *start_thread_timer(void *, pthread_t, unsigned) __asm__("_Z18start_thread_timerP3JCRmj");
extern void stop_thread_timer(void *) __asm__("_Z17stop_thread_timerP8btimer_t");
extern struct bsock *new_bsock(void) __asm__("_Z9new_bsockv");
extern bool connect_bsock(struct bsock *, void *, int, long, long, const char *, char *, char *, int, int)
    __asm__("_ZN9BSOCKCORE7connectEP3JCRillPKcPcS4_ii");

struct state {
    struct steps steps;
    char said[400];
    bool is_read;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *of_the_library(void *said)
{
    lock_mutex(&mutex);
    strcat(said, "a thread");
    unlock_mutex(&mutex);
    return NULL;
}

static void *of_the_plugin(void *said)
{
    init_thread();
    of_the_library(said);
    cleanup_thread();
    return NULL;
}

static void work(struct state *state)
{
    const struct step *step = &state->steps.step[0];
    const char *what = text_of(step, "do");
    pthread_t thread;

    if (!strcmp(what, "thread")) {
        if (!thread_create(&thread, NULL, of_the_library, state->said))
            pthread_join(thread, NULL);
    } else if (!strcmp(what, "lock")) {
        if (!pthread_create(&thread, NULL, of_the_plugin, state->said))
            pthread_join(thread, NULL);
    } else if (!strcmp(what, "timer")) {
        sigset_t signals, before;
        void *timer;

        /* It may come before the wait begins, and is not to be lost then. */
        sigemptyset(&signals);
        sigaddset(&signals, SIGUSR2);
        pthread_sigmask(SIG_BLOCK, &signals, &before);
        sigdelset(&before, SIGUSR2);
        timer = start_thread_timer(NULL, pthread_self(), 1);
        if (ppoll(NULL, 0, NULL, &before) < 0)
            snprintf(state->said, sizeof state->said, "wait: %s", strerror(errno));
        stop_thread_timer(timer);
        pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    } else if (!strcmp(what, "socket")) {
        struct bsock *socket = new_bsock();
        bool is_there = connect_bsock(socket, NULL, 1, 1, 0, "server", "127.0.0.1", NULL, number_of(step, "port", 0), 0);

        snprintf(state->said, sizeof state->said, "connected: %d", is_there);
    }
}

static int new_plugin(struct bp_context *context)
{
    context->plugin = calloc(1, sizeof(struct state));
    return RC_OK;
}

static int free_plugin(struct bp_context *context)
{
    free_steps(&((struct state *)context->plugin)->steps);
    free(context->plugin);
    context->plugin = NULL;
    return RC_OK;
}

static int handle_event(struct bp_context *context, struct b_event *event, void *value)
{
    if (event->type == EVENT_BACKUP_COMMAND)
        parse_steps(&((struct state *)context->plugin)->steps, value);
    return RC_OK;
}

static int start_backup_file(struct bp_context *context, struct save_pkt *save)
{
    (void)context;
    save->fname = "/@lib/said";
    save->type = FT_REG;
    save->statp.st_mode = S_IFREG | 0640;
    save->statp.st_size = 1;
    save->statp.st_mtime = save->statp.st_atime = save->statp.st_ctime = 1000000000;
    return RC_OK;
}

static int end_backup_file(struct bp_context *context)
{
    (void)context;
    return RC_OK;
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    struct state *state = context->plugin;

    io->status = 0;
    if (io->func == IO_OPEN)
        work(state);
    if (io->func == IO_READ && !state->is_read) {
        state->is_read = true;
        io->status = strlen(state->said);
        memcpy(io->buf, state->said, io->status);
        daemon_functions->job_message(context, __FILE__, __LINE__, 6, 0, "lib: %s\n", state->said);
    }
    return RC_OK;
}

static struct p_funcs functions = {
    .size = sizeof(struct p_funcs), .version = FD_PLUGIN_VERSION, .new_plugin = new_plugin,
    .free_plugin = free_plugin, .handle_event = handle_event,
    .start_backup_file = start_backup_file, .end_backup_file = end_backup_file,
    .plugin_io = plugin_io,
};

DEFINE_PLUGIN("lib", "1", functions)
