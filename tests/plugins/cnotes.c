/*
 * A plugin that saves notes: Plugin = "cnotes:NAME=TEXT" is the file /@notes/NAME with the text, and
 * a restore writes it there again, below `where`. docs/plugins.md explains it; the same plugin in
 * Rust is crates/fd-plugins/examples/notes.rs.
 *
 *     cc -shared -fPIC -o /usr/lib/bacula/cnotes-fd.so cnotes.c
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd_plugin.h"

/* What the daemon offers. */
static struct b_funcs *bacula;

/* What the plugin does in one job. A job calls it from one thread, but several jobs run at a time. */
struct job {
    char name[1000];
    char text[1000];
    size_t read;
    char place[4096];
    int file;
};

static int begin(struct bp_context *context)
{
    struct job *job = calloc(1, sizeof *job);

    if (!job)
        return RC_ERROR;
    job->file = -1;
    context->plugin = job;
    return RC_OK;
}

static int end(struct bp_context *context)
{
    free(context->plugin);
    context->plugin = NULL;
    return RC_OK;
}

/* A command of the FileSet begins. */
static int command(struct bp_context *context, const char *command)
{
    struct job *job = context->plugin;
    const char *arguments = strchr(command, ':') + 1, *equals = strchr(arguments, '=');

    if (!equals) {
        bacula->job_message(context, __FILE__, __LINE__, M_FATAL, 0, "cnotes: the command has no text\n");
        return RC_ERROR;
    }
    snprintf(job->name, sizeof job->name, "/@notes/%.*s", (int)(equals - arguments), arguments);
    snprintf(job->text, sizeof job->text, "%s", equals + 1);
    return RC_OK;
}

static int event(struct bp_context *context, struct b_event *event, void *value)
{
    if (event->type == EVENT_BACKUP_COMMAND || event->type == EVENT_ESTIMATE_COMMAND)
        return command(context, value);
    return RC_OK;
}

/* The file of the command. A command with more files returns RC_MORE from end_backup_file. */
static int start_backup_file(struct bp_context *context, struct save_pkt *file)
{
    struct job *job = context->plugin;

    file->fname = job->name;
    file->type = FT_REG;
    file->statp.st_mode = S_IFREG | 0644;
    file->statp.st_nlink = 1;
    file->statp.st_size = strlen(job->text);
    file->statp.st_blksize = 4096;
    file->statp.st_blocks = 1;
    file->statp.st_mtime = 1000000000;
    return RC_OK;
}

static int end_backup_file(struct bp_context *context)
{
    (void)context;
    return RC_OK;
}

static int start_restore_file(struct bp_context *context, const char *command)
{
    (void)context;
    (void)command;
    return RC_OK;
}

static int end_restore_file(struct bp_context *context)
{
    (void)context;
    return RC_OK;
}

/* A file is to be restored: the plugin takes its data. */
static int create_file(struct bp_context *context, struct restore_pkt *file)
{
    struct job *job = context->plugin;

    snprintf(job->place, sizeof job->place, "%s", file->ofname);
    file->create_status = CF_EXTRACT;
    return RC_OK;
}

static int set_file_attributes(struct bp_context *context, struct restore_pkt *file)
{
    (void)context;
    (void)file;
    return RC_OK;
}

static int open_for_restore(struct job *job)
{
    for (char *slash = strchr(job->place + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(job->place, 0777);
        *slash = '/';
    }
    job->file = open(job->place, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    return job->file;
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    struct job *job = context->plugin;
    size_t left = strlen(job->text) - job->read;

    errno = 0;
    switch (io->func) {
    case IO_OPEN:
        job->read = 0;
        io->status = io->flags & O_WRONLY ? open_for_restore(job) : 0;
        break;
    case IO_READ:
        io->status = left < (size_t)io->count ? left : (size_t)io->count;
        memcpy(io->buf, job->text + job->read, io->status);
        job->read += io->status;
        break;
    case IO_WRITE:
        io->status = write(job->file, io->buf, io->count);
        break;
    case IO_CLOSE:
        io->status = 0;
        if (job->file >= 0) {
            io->status = close(job->file);
            job->file = -1;
            bacula->job_message(context, __FILE__, __LINE__, M_INFO, 0, "cnotes: restored a note\n");
        }
        break;
    default:
        io->status = -1;
        errno = ESPIPE;
    }
    io->io_errno = errno;
    return io->status < 0 ? RC_ERROR : RC_OK;
}

static struct p_info information = {
    sizeof(struct p_info), FD_PLUGIN_VERSION, FD_PLUGIN_MAGIC, "AGPLv3",
    "ferrofd", "2026", "1", "Saves notes",
};

static struct p_funcs functions = {
    .size = sizeof(struct p_funcs),
    .version = FD_PLUGIN_VERSION,
    .new_plugin = begin,
    .free_plugin = end,
    .handle_event = event,
    .start_backup_file = start_backup_file,
    .end_backup_file = end_backup_file,
    .start_restore_file = start_restore_file,
    .end_restore_file = end_restore_file,
    .plugin_io = plugin_io,
    .create_file = create_file,
    .set_file_attributes = set_file_attributes,
};

int loadPlugin(struct b_info *info, struct b_funcs *offered, struct p_info **own_info,
               struct p_funcs **own_functions)
{
    if (info->version != FD_PLUGIN_VERSION)
        return RC_ERROR;
    bacula = offered;
    *own_info = &information;
    *own_functions = &functions;
    return RC_OK;
}

int unloadPlugin(void)
{
    return RC_OK;
}
