/*
 * A plugin that misbehaves in a call of choice:
 *
 *   evil:CALL=HOW,file=/@evil/x,size=N
 *
 * CALL is `event9`, `event11`, `event20`, … (the number of an event), `start`, `end`, `open`, `read`, `write`,
 * `seek`, `close`, `create`, `attributes`, `startrestore`, `endrestore`, `checkfile`, `xacl`,
 * `stream`, `meta`, `list`. Calls that no command is for, as `new`, `free`, `verify`, `endverify` and `event1`, are
 * told by a file in the folder of the trace: `NAME.CALL` holds the HOW, and NAME is that of the plugin's file.
 * The parameter of a query is its HOW.
 *
 * HOW:
 *   segv raise abort exit kill trap stack  it dies
 *   sleep loop                       it never comes back
 *   free2 overrun smash              it spoils memory
 *   print fork leak closeall thread killgroup   it does what a plugin has no business to do
 *   flood                            it says far more than fits into memory that is worth having
 *   rc huge negative null long       answers that make no sense
 *   badcontext badpointer            calls of the daemon with nonsense
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>

#include "support.h"

#ifndef NAME
#define NAME "evil"
#endif

struct state {
    struct steps steps;
    bool is_handed_over;
    long left;
};

static struct state *state_of(struct bp_context *context)
{
    return context->plugin;
}

__attribute__((noinline)) static int recurse(volatile int depth)
{
    volatile char room[100000];

    room[0] = depth;
    return depth < 2000000000 ? recurse(depth + 1) + room[0] : 0;
}

static void *in_a_thread(void *context)
{
    int job;

    for (int round = 0; round < 100; round++) {
        daemon_functions->get_value(context, VAR_JOB_ID, &job);
        daemon_functions->job_message(context, __FILE__, __LINE__, M_INFO, 0, "from a thread\n");
    }
    return NULL;
}

static void die(const char *how)
{
    if (!strcmp(how, "segv"))
        *(volatile int *)16 = 1;
    if (!strcmp(how, "raise"))
        raise(SIGSEGV);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exit"))
        exit(0);
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "trap"))
        raise(SIGTRAP);
    if (!strcmp(how, "stack"))
        recurse(0);
    while (!strcmp(how, "sleep"))
        pause();
    while (!strcmp(how, "loop"))
        ;
}

static void spoil(const char *how)
{
    if (!strcmp(how, "free2")) {
        char *volatile memory = malloc(100);
        char *volatile again = memory;
        free(memory);
        free(again);
    }
    if (!strcmp(how, "smash")) {
        char *volatile memory = malloc(100);
        memset(memory - 64, 0x55, 4096);
        free(memory);
        free(malloc(5000));
    }
}

static void intrude(struct bp_context *context, const char *how)
{
    if (!strcmp(how, "print")) {
        for (int round = 0; round < 1000; round++) {
            printf("to standard output: %d\n", round);
            fprintf(stderr, "to standard error: %d\n", round);
        }
        fflush(stdout);
        for (int descriptor = 0; descriptor < 3; descriptor++)
            if (write(descriptor, "raw bytes\n", 10) < 0)
                continue;
    }
    if (!strcmp(how, "fork") && fork() == 0) {
        /* It keeps what it inherited for a while. */
        sleep(3);
        _exit(0);
    }
    if (!strcmp(how, "killgroup"))
        kill(0, SIGKILL);
    for (int round = 1; round <= 5000 && !strcmp(how, "flood"); round++)
        daemon_functions->job_message(context, __FILE__, __LINE__, M_SKIPPED, 0, "flood %d %01900d\n", round, 0);
    for (int round = 0; round < 100 && !strcmp(how, "leak"); round++)
        if (open("/dev/null", O_RDONLY) < 0)
            break;
    for (int descriptor = 0; descriptor < 1024 && !strcmp(how, "closeall"); descriptor++)
        close(descriptor);
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, in_a_thread, context);
        pthread_join(thread, NULL);
    }
    if (!strcmp(how, "badcontext")) {
        struct bp_context nonsense = {(void *)1, (void *)2};
        int job;
        daemon_functions->get_value(NULL, VAR_JOB_ID, &job);
        daemon_functions->get_value(&nonsense, VAR_JOB_ID, &job);
    }
    if (!strcmp(how, "badpointer"))
        daemon_functions->set_value(context, VAR_FILE_SEEN, (void *)1);
}

/* What a file of the trace's folder says for this call; empty if there is none. */
static const char *how_by_switch(struct bp_context *context, const char *call)
{
    static __thread char how[20];
    char path[3000];
    const char *folder = trace_folder(context), *own;
    int descriptor;
    ssize_t length;
    Dl_info place;

    if (!*folder || !dladdr((void *)how_by_switch, &place))
        return "";
    own = strrchr(place.dli_fname, '/') + 1;
    snprintf(path, sizeof path, "%s/%.*s.%s", folder, (int)(strlen(own) - strlen("-fd.so")), own, call);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return "";
    length = read(descriptor, how, sizeof how - 1);
    close(descriptor);
    how[length > 0 ? length : 0] = 0;
    return how;
}

static const char *how_in(struct bp_context *context, const char *call)
{
    struct state *state = state_of(context);

    for (int at = 0; state && at < state->steps.count; at++)
        if (text_of(&state->steps.step[at], call))
            return text_of(&state->steps.step[at], call);
    return how_by_switch(context, call);
}

/* Writes the call to the file `sleeps` in the folder of the trace. */
static void tell_of_sleep(struct bp_context *context, const char *call)
{
    char path[3000];
    int descriptor;

    snprintf(path, sizeof path, "%s/sleeps", trace_folder(context));
    descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor >= 0 && write(descriptor, call, strlen(call)) >= 0)
        close(descriptor);
}

/* Does what the command says for this call; the call's own result is RC_OK unless it says `rc`. */
static int misbehave(struct bp_context *context, const char *call)
{
    const char *how = how_in(context, call);

    if (!strcmp(how, "sleep"))
        tell_of_sleep(context, call);
    die(how);
    spoil(how);
    intrude(context, how);
    return !strcmp(how, "rc") ? 123456 : RC_OK;
}

static bool is_how(struct bp_context *context, const char *call, const char *how)
{
    return !strcmp(how_in(context, call), how);
}

static int new_plugin(struct bp_context *context)
{
    context->plugin = calloc(1, sizeof(struct state));
    return misbehave(context, "new");
}

static int free_plugin(struct bp_context *context)
{
    int rc = misbehave(context, "free");

    free_steps(&state_of(context)->steps);
    free(context->plugin);
    context->plugin = NULL;
    return rc;
}

static int handle_event(struct bp_context *context, struct b_event *event, void *value)
{
    struct state *state = state_of(context);
    char call[20];

    snprintf(call, sizeof call, "event%u", event->type);
    switch (event->type) {
    case EVENT_PLUGIN_COMMAND:
    case EVENT_BACKUP_COMMAND:
    case EVENT_ESTIMATE_COMMAND:
    case EVENT_RESTORE_COMMAND:
        parse_steps(&state->steps, value);
        state->is_handed_over = false;
    }
    if (event->type == EVENT_START_VERIFY_JOB)
        daemon_functions->register_events(context, EVENT_VERIFY_STREAM, 0);
    if (event->type == EVENT_FEATURES && is_switched_on(context, "features"))
        *(const char **)value = "RestoreListFiles";
    return misbehave(context, call);
}

static const struct step *file_of(struct state *state)
{
    static struct step none;

    for (int at = 0; at < state->steps.count; at++)
        if (text_of(&state->steps.step[at], "file"))
            return &state->steps.step[at];
    return &none;
}

static int start_backup_file(struct bp_context *context, struct save_pkt *save)
{
    struct state *state = state_of(context);
    static char endless[1 << 20];
    int rc = misbehave(context, "start");

    if (state->is_handed_over || !text_of(file_of(state), "file"))
        return RC_STOP;
    state->is_handed_over = true;
    state->left = number_of(file_of(state), "size", 10);
    save->fname = (char *)text_of(file_of(state), "file");
    save->link = save->fname;
    save->type = FT_REG;
    save->statp.st_mode = S_IFREG | 0640;
    save->statp.st_size = state->left;
    save->statp.st_mtime = 1000000000;
    if (is_how(context, "start", "null"))
        save->fname = NULL;
    if (is_how(context, "start", "negative")) {
        save->type = FT_RESTORE_FIRST;
        save->restore_obj.object_name = "object";
        save->restore_obj.object = "object";
        save->restore_obj.object_len = -5;
    }
    if (is_how(context, "start", "huge")) {
        save->type = FT_RESTORE_FIRST;
        save->restore_obj.object_name = "object";
        save->restore_obj.object = "object";
        save->restore_obj.object_len = 0x7fffffff;
    }
    if (is_how(context, "start", "long")) {
        memset(endless, 'n', sizeof endless - 1);
        endless[0] = '/';
        save->fname = endless;
    }
    if (is_how(context, "start", "deep")) {
        for (int at = 0; at < 300000; at++)
            endless[at] = at % 200 ? 'd' : '/';
        endless[299999] = 'x';
        endless[300000] = 0;
        save->fname = endless;
    }
    if (is_how(context, "start", "far")) {
        memset(endless, 'f', 990000);
        save->type = FT_LNK;
        save->link = endless;
        save->statp.st_mode = 0120777;
    }
    if (is_how(context, "start", "unmapped"))
        save->fname = (char *)4096;
    if (is_how(context, "start", "packet")) {
        memset(save, 0x5a, sizeof *save);
        return RC_OK;
    }
    return rc;
}

static int end_backup_file(struct bp_context *context)
{
    return misbehave(context, "end");
}

static int start_restore_file(struct bp_context *context, const char *command)
{
    (void)command;
    return misbehave(context, "startrestore");
}

static int end_restore_file(struct bp_context *context)
{
    return misbehave(context, "endrestore");
}

static int answer(struct bp_context *context, struct io_pkt *io, const char *call)
{
    int rc = misbehave(context, call);

    if (is_how(context, call, "huge"))
        io->status = 0x7fffffff;
    if (is_how(context, call, "negative"))
        io->status = -123456;
    if (is_how(context, call, "null"))
        io->buf = NULL;
    if (is_how(context, call, "overrun"))
        memset(io->buf, 'o', io->count + 200000);
    return rc;
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    struct state *state = state_of(context);

    switch (io->func) {
    case IO_OPEN:
        io->status = 0;
        return answer(context, io, "open");
    case IO_READ:
        io->status = state->left < io->count ? state->left : io->count;
        memset(io->buf, 'e', io->status);
        state->left -= io->status;
        return answer(context, io, "read");
    case IO_WRITE:
        io->status = io->count;
        return answer(context, io, "write");
    case IO_SEEK:
        io->status = 0;
        return answer(context, io, "seek");
    default:
        io->status = 0;
        return answer(context, io, "close");
    }
}

static int create_file(struct bp_context *context, struct restore_pkt *packet)
{
    int rc = misbehave(context, "create");

    packet->create_status = is_how(context, "create", "huge") ? 0x7fffffff : CF_EXTRACT;
    return rc;
}

static int set_file_attributes(struct bp_context *context, struct restore_pkt *packet)
{
    (void)packet;
    return misbehave(context, "attributes");
}

static int check_file(struct bp_context *context, char *fname)
{
    (void)fname;
    return misbehave(context, "checkfile");
}

static int handle_xacl_data(struct bp_context *context, struct xacl_pkt *packet)
{
    int rc = misbehave(context, "xacl");

    packet->count = is_how(context, "xacl", "huge") ? 0x7fffffff : is_how(context, "xacl", "negative") ? -7 : 0;
    packet->content = is_how(context, "xacl", "null") ? NULL : "content";
    if (is_how(context, "xacl", "null"))
        packet->count = 10;
    return rc;
}

static int restore_file_list(struct bp_context *context, struct restore_filelist_pkt *packet)
{
    (void)packet;
    return misbehave(context, "list");
}

static int check_stream(struct bp_context *context, struct stream_pkt *packet)
{
    int rc = misbehave(context, "stream");

    if (is_how(context, "stream", "huge"))
        packet->stream = 0x7fffffff;
    if (is_how(context, "stream", "negative"))
        packet->stream = -1;
    return rc;
}

static int query_parameter(struct bp_context *context, struct query_pkt *query)
{
    static char endless[1020000 + 1];

    die(query->parameter);
    spoil(query->parameter);
    intrude(context, query->parameter);
    query->result = !strcmp(query->parameter, "null") ? NULL : "result\n";
    if (!strcmp(query->parameter, "unmapped"))
        query->result = (char *)4096;
    if (!strcmp(query->parameter, "long"))
        query->result = memset(endless, 'q', sizeof endless - 1);
    return !strcmp(query->parameter, "more") ? RC_MORE : !strcmp(query->parameter, "rc") ? 123456 : RC_OK;
}

static int metadata_restore(struct bp_context *context, struct meta_pkt *packet)
{
    (void)packet;
    return misbehave(context, "meta");
}

static int start_verify_file(struct bp_context *context, struct restore_pkt *packet)
{
    (void)packet;
    return misbehave(context, "verify");
}

static int end_verify_file(struct bp_context *context)
{
    return misbehave(context, "endverify");
}

static struct p_funcs functions = {
    sizeof(struct p_funcs), FD_PLUGIN_VERSION, new_plugin, free_plugin, NULL, NULL, handle_event,
    start_backup_file, end_backup_file, start_restore_file, end_restore_file, plugin_io, create_file,
    set_file_attributes, check_file, handle_xacl_data, restore_file_list, check_stream,
    query_parameter, metadata_restore, start_verify_file, end_verify_file,
};

#ifdef LOAD
/* Dies while it is loaded. */
__attribute__((constructor)) static void on_load(void)
{
    die(LOAD);
}
#endif

DEFINE_PLUGIN(NAME, "666", functions)
