/*
 * A plugin for the tests of the plugin host. A command is a list of words:
 *
 *   odd: files=3 size=100000 startBackupFile=segv …
 *
 * makes three files of that size, and does the thing in that function. In functions that have no
 * command, the last event's is used.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../../tests/plugins/fd_plugin.h"

struct job {
    char command[2000];
    int files, made;
    long long size, left;
    char name[100];
    volatile int canceled;
};

static struct b_funcs *daemon_functions;

static void say(struct bp_context *context, int type, const char *text)
{
    daemon_functions->job_message(context, __FILE__, __LINE__, type, 0, "%s\n", text);
}

static struct job *job_of(struct bp_context *context)
{
    return context->plugin;
}

static long long number(const char *command, const char *word, long long otherwise)
{
    const char *found = strstr(command, word);
    return found ? atoll(found + strlen(word)) : otherwise;
}

static void *talk(void *context)
{
    const char *command = job_of(context)->command;
    int canceled = 7;
    for (long long left = number(command, "debugs=", 0); left; left--)
        daemon_functions->debug_message(context, __FILE__, __LINE__, 900, "nothing\n");
    for (long long left = number(command, "messages=", 1); left; left--)
        say(context, M_INFO, "from a thread of the plugin");
    if (number(command, "fatal=", 0))
        say(context, M_FATAL, "from a thread of the plugin");
    daemon_functions->get_value(context, VAR_IS_CANCELED, &canceled);
    return NULL;
}

/* Says as whom it runs: all three of each number, so that nothing can be taken back. */
static void tell_user(struct bp_context *context)
{
    uid_t uid[3];
    gid_t gid[3], groups[20];
    int count = getgroups(20, groups);
    char text[500];
    int length;

    getresuid(&uid[0], &uid[1], &uid[2]);
    getresgid(&gid[0], &gid[1], &gid[2]);
    length = sprintf(text, "user %d %d %d, group %d %d %d, groups", uid[0], uid[1], uid[2], gid[0], gid[1], gid[2]);
    for (int index = 0; index < count; index++)
        length += sprintf(text + length, " %d", groups[index]);
    say(context, M_INFO, text);
}

/* Says in which network it is, and which devices that has. */
static void tell_network(struct bp_context *context)
{
    struct if_nameindex *devices = if_nameindex();
    int line = socket(AF_INET, SOCK_DGRAM, 0);
    char text[500] = "";
    struct ifreq request;

    if (readlink("/proc/self/ns/net", text, sizeof text - 1) < 0)
        say(context, M_INFO, "unknown network");
    say(context, M_INFO, text);
    for (struct if_nameindex *device = devices; device && device->if_name; device++) {
        memset(&request, 0, sizeof request);
        snprintf(request.ifr_name, IFNAMSIZ, "%s", device->if_name);
        ioctl(line, SIOCGIFFLAGS, &request);
        snprintf(text, sizeof text, "%s is %s", device->if_name, request.ifr_flags & IFF_UP ? "up" : "down");
        say(context, M_INFO, text);
    }
    if_freenameindex(devices);
    close(line);
}

/* Does what the command wants in this function; what to return. */
static int odd(struct bp_context *context, const char *function)
{
    struct job *job = job_of(context);
    char word[100];
    const char *what;

    snprintf(word, sizeof word, " %s=", function);
    what = strstr(job->command, word);
    if (!what)
        return RC_OK;
    what += strlen(word);
    if (!strncmp(what, "segv", 4))
        *(volatile int *) 16 = 1;
    if (!strncmp(what, "abort", 5))
        abort();
    if (!strncmp(what, "exit", 4))
        exit(3);
    if (!strncmp(what, "free", 4)) {
        void *volatile memory = malloc(100);
        free(memory);
        free(memory);
    }
    if (!strncmp(what, "hang", 4))
        for (;;)
            pause();
    if (!strncmp(what, "obey", 4))
        while (!job->canceled)
            usleep(1000);
    if (!strncmp(what, "print", 5)) {
        printf("printed by the plugin\n");
        fflush(stdout);
    }
    if (!strncmp(what, "fork", 4) && fork() == 0)
        for (;;)
            pause();
    if (!strncmp(what, "spawn", 5)) {
        /* One process that stays in the group, and one that leaves it; neither has anything open. */
        for (int leaves = 0; leaves < 2; leaves++) {
            pid_t child = fork();
            if (!child) {
                if (leaves)
                    setsid();
                for (int fd = 0; fd < 100; fd++)
                    close(fd);
                for (;;)
                    pause();
            }
            while (leaves && getsid(child) != child)
                sched_yield();
            daemon_functions->job_message(context, __FILE__, __LINE__, M_INFO, 0, "%d\n", child);
        }
    }
    if (!strncmp(what, "dying", 5)) {
        if (fork() == 0)
            for (int left = 20; left; left--)
                usleep(100000);
        abort();
    }
    if (!strncmp(what, "close", 5))
        for (int fd = 3; fd < 100; fd++)
            close(fd);
    if (!strncmp(what, "leak", 4))
        for (int left = 1000; left; left--)
            dup(0);
    if (!strncmp(what, "scribble", 8)) {
        /* Nonsense to whoever is at the other end of anything. */
        static char nonsense[4096];
        memset(nonsense, 0xee, sizeof nonsense);
        for (int fd = 3; fd < 30; fd++)
            if (write(fd, nonsense, sizeof nonsense) < 0)
                continue;
    }
    if (!strncmp(what, "thread", 6)) {
        pthread_t thread;
        pthread_create(&thread, NULL, talk, context);
        pthread_join(thread, NULL);
    }
    if (!strncmp(what, "fatal", 5))
        say(context, M_ABORT, "the end");
    if (!strncmp(what, "nul", 3)) {
        daemon_functions->job_message(context, __FILE__, __LINE__, M_INFO, 0, "a%cb\n", 0);
        daemon_functions->debug_message(context, __FILE__, __LINE__, 10, "a%cb\n", 0);
    }
    if (!strncmp(what, "user", 4))
        tell_user(context);
    if (!strncmp(what, "network", 7))
        tell_network(context);
    if (!strncmp(what, "tell", 4)) {
        int index = -1;
        daemon_functions->get_value(context, VAR_FILE_INDEX, &index);
        daemon_functions->job_message(context, __FILE__, __LINE__, M_INFO, 0, "%s with %d\n", function, index);
    }
    if (!strncmp(what, "error", 5))
        return RC_ERROR;
    return RC_OK;
}

static int new_plugin(struct bp_context *context)
{
    struct job *job = calloc(1, sizeof *job);
    context->plugin = job;
    daemon_functions->register_events(context, 1, 2, 3, 9, 14, 0);
    return RC_OK;
}

static int free_plugin(struct bp_context *context)
{
    odd(context, "freePlugin");
    free(context->plugin);
    context->plugin = NULL;
    return RC_OK;
}

static int value(struct bp_context *context, int variable, void *place)
{
    (void) context, (void) variable, (void) place;
    return RC_OK;
}

static int handle_event(struct bp_context *context, struct b_event *event, void *value)
{
    struct job *job = job_of(context);
    int answer;

    switch (event->type) {
    case EVENT_CANCEL_COMMAND:
        job->canceled = 1;
        say(context, M_INFO, "canceled");
        /* Long after the call that it has ended. */
        for (int left = strstr(job->command, "cancel=linger") ? 100 : 0; left; left--) {
            usleep(10000);
            if (context->plugin != job)
                abort();
        }
        return RC_OK;
    case EVENT_BACKUP_COMMAND:
    case EVENT_RESTORE_COMMAND:
    case EVENT_ESTIMATE_COMMAND:
    case EVENT_PLUGIN_OPTIONS:
        snprintf(job->command, sizeof job->command, "%s", (char *) value);
        job->files = number(value, "files=", 1);
        job->size = number(value, "size=", 100);
        job->made = 0;
        break;
    case EVENT_FEATURES:
        *(const char **) value = "RestoreListFiles";
        break;
    }
    answer = odd(context, "handlePluginEvent");
    return answer;
}

static int start_backup_file(struct bp_context *context, struct save_pkt *packet)
{
    struct job *job = job_of(context);
    int answer = odd(context, "startBackupFile");

    if (strstr(job->command, "trace"))
        say(context, M_INFO, "start");
    snprintf(job->name, sizeof job->name, "/odd/file%d", job->made);
    packet->fname = job->name;
    if (strstr(job->command, " startBackupFile=long")) {
        static char name[2 << 20];
        memset(name, 'x', sizeof name - 1);
        packet->fname = name;
    }
    packet->type = FT_REG;
    packet->statp.st_mode = 0100640;
    packet->statp.st_size = job->size;
    packet->statp.st_blksize = 4096;
    job->left = job->size;
    return answer;
}

static int end_backup_file(struct bp_context *context)
{
    struct job *job = job_of(context);
    int answer = odd(context, "endBackupFile");

    if (strstr(job->command, "trace"))
        say(context, M_INFO, "end");
    if (answer)
        return answer;
    return ++job->made < job->files ? RC_MORE : RC_OK;
}

static int start_restore_file(struct bp_context *context, const char *command)
{
    (void) command;
    return odd(context, "startRestoreFile");
}

static int end_restore_file(struct bp_context *context)
{
    return odd(context, "endRestoreFile");
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    static const char *const names[] = {"", "open", "read", "write", "close", "seek"};
    struct job *job = job_of(context);
    int answer = odd(context, names[io->func]);

    if (strstr(job->command, "trace"))
        say(context, M_INFO, names[io->func]);
    io->status = 0;
    switch (io->func) {
    case IO_READ:
        if (number(job->command, "toomuch=", 0)) {
            io->status = io->count + 1;
            break;
        }
        if (io->count > job->left)
            io->count = job->left;
        memset(io->buf, 'a' + job->made % 26, io->count);
        job->left -= io->count;
        io->status = io->count;
        break;
    case IO_WRITE:
        /* As the antivirus plugin does. */
        memset(io->buf - 4, 0, 4);
        io->status = io->count;
        break;
    }
    if (answer) {
        io->status = -1;
        io->io_errno = ENOENT;
    }
    return answer;
}

static int create_file(struct bp_context *context, struct restore_pkt *packet)
{
    packet->create_status = CF_EXTRACT;
    return odd(context, "createFile");
}

static int set_file_attributes(struct bp_context *context, struct restore_pkt *packet)
{
    (void) packet;
    return odd(context, "setFileAttributes");
}

static int check_file(struct bp_context *context, char *name)
{
    (void) name;
    return odd(context, "checkFile");
}

static int check_stream(struct bp_context *context, struct stream_pkt *packet)
{
    (void) packet;
    return odd(context, "checkStream");
}

static int handle_xacl_data(struct bp_context *context, struct xacl_pkt *packet)
{
    packet->count = 0;
    return odd(context, "handleXACLdata");
}

static struct p_info info = {
    sizeof(struct p_info), FD_PLUGIN_VERSION, FD_PLUGIN_MAGIC, "AGPLv3", "ferrofd", "2026", "7", "For tests",
};

static struct p_funcs functions = {
    sizeof(struct p_funcs), FD_PLUGIN_VERSION, new_plugin, free_plugin, value, value, handle_event,
    start_backup_file, end_backup_file, start_restore_file, end_restore_file, plugin_io, create_file,
    set_file_attributes, check_file, handle_xacl_data, NULL, check_stream, NULL, NULL, NULL, NULL,
};

int loadPlugin(struct b_info *daemon_info, struct b_funcs *offered, struct p_info **told, struct p_funcs **given)
{
    (void) daemon_info;
    daemon_functions = offered;
    *told = &info;
    *given = &functions;
#ifdef ODD_LOAD
    ODD_LOAD;
#endif
    return 0;
}

int unloadPlugin(void)
{
    return 0;
}
