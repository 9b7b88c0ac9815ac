/*
 * An option plugin: what it does with a file depends on the end of the file's name.
 *
 *   .ok       it takes the file, and saves each letter turned by 13
 *   .offsets  likewise, each block 1 MiB behind the last
 *   .sparse   likewise with the flag SPARSE
 *   .lies     likewise, with another name, size, link and metadata in the packet
 *   .noopen   it takes the file and then can't open it
 *   .skip     not saved;  .error, .more, .core: these results
 *
 * All others are left to the daemon. A restore turns the letters back.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "support.h"

struct state {
    int descriptor;
    long step, blocks;
    bool refuses;
};

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), of_end = strlen(end);

    return length >= of_end && !strcmp(name + length - of_end, end);
}

static int new_plugin(struct bp_context *context)
{
    struct state *state = calloc(1, sizeof *state);

    state->descriptor = -1;
    context->plugin = state;
    trace(context, "newPlugin");
    return is_switched_on(context, "disabled") ? RC_ERROR : RC_OK;
}

static int free_plugin(struct bp_context *context)
{
    trace(context, "freePlugin");
    free(context->plugin);
    context->plugin = NULL;
    return RC_OK;
}

static int handle_file(struct state *state, struct save_pkt *save)
{
    state->step = state->blocks = 0;
    state->refuses = ends_in(save->fname, ".noopen");
    if (ends_in(save->fname, ".skip"))
        return RC_SKIP;
    if (ends_in(save->fname, ".error"))
        return RC_ERROR;
    if (ends_in(save->fname, ".more"))
        return RC_MORE;
    if (ends_in(save->fname, ".offsets")) {
        save->flags |= FO_OFFSETS;
        state->step = 1 << 20;
        return RC_OK;
    }
    if (ends_in(save->fname, ".sparse")) {
        save->flags |= FO_SPARSE;
        return RC_OK;
    }
    if (ends_in(save->fname, ".lies")) {
        save->fname = "/another/name";
        save->link = "/another/link";
        save->statp.st_size = 7;
        save->type = FT_DIREND;
        save->stat_update = true;
        return RC_OK;
    }
    return ends_in(save->fname, ".ok") || state->refuses ? RC_OK : RC_CORE;
}

static int handle_event(struct bp_context *context, struct b_event *event, void *value)
{
    trace_event(context, event->type, value);
    return event->type == EVENT_HANDLE_BACKUP_FILE ? handle_file(context->plugin, value) : RC_OK;
}

static void turn(char *text, long length)
{
    for (long at = 0; at < length; at++) {
        char low = text[at] | ' ';
        if (low >= 'a' && low <= 'z')
            text[at] += low < 'n' ? 13 : -13;
    }
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    struct state *state = context->plugin;

    switch (io->func) {
    case IO_OPEN:
        trace(context, "open fname=%s flags=%o mode=%o", quoted(io->fname), io->flags, io->mode);
        state->descriptor = state->refuses ? -1 : open(io->fname, io->flags, io->mode);
        io->io_errno = state->refuses ? EACCES : errno;
        io->status = state->descriptor;
        break;
    case IO_READ:
        io->status = read(state->descriptor, io->buf, io->count);
        io->offset = state->blocks++ * state->step;
        if (io->status > 0)
            turn(io->buf, io->status);
        trace(context, "read count=%d gives %d", io->count, io->status);
        break;
    case IO_WRITE:
        trace(context, "write %s", block_text(io->buf, io->count));
        turn(io->buf, io->count);
        io->status = write(state->descriptor, io->buf, io->count);
        break;
    case IO_SEEK:
        trace(context, "seek %lld", (long long)io->offset);
        io->status = lseek(state->descriptor, io->offset, io->whence) < 0 ? -1 : 0;
        break;
    case IO_CLOSE:
        trace(context, "close");
        io->status = close(state->descriptor);
    }
    return RC_OK;
}

static int nothing(struct bp_context *context)
{
    trace(context, "endBackupFile or endRestoreFile");
    return RC_OK;
}

static int start_backup_file(struct bp_context *context, struct save_pkt *save)
{
    trace(context, "startBackupFile %s", quoted(save->cmd));
    return RC_STOP;
}

static int start_restore_file(struct bp_context *context, const char *command)
{
    trace(context, "startRestoreFile %s", quoted(command));
    return RC_OK;
}

static int create_file(struct bp_context *context, struct restore_pkt *packet)
{
    char copy[3000];

    trace_restore(context, "createFile", packet);
    snprintf(copy, sizeof copy, "%s", packet->ofname);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(copy, 0755);
        *slash = '/';
    }
    packet->create_status = CF_EXTRACT;
    return RC_OK;
}

static int set_file_attributes(struct bp_context *context, struct restore_pkt *packet)
{
    trace_restore(context, "setFileAttributes", packet);
    chmod(packet->ofname, packet->statp.st_mode & 07777);
    return RC_OK;
}

static struct p_funcs functions = {
    .size = sizeof(struct p_funcs), .version = FD_PLUGIN_VERSION, .new_plugin = new_plugin,
    .free_plugin = free_plugin, .handle_event = handle_event,
    .start_backup_file = start_backup_file, .end_backup_file = nothing,
    .start_restore_file = start_restore_file, .end_restore_file = nothing,
    .plugin_io = plugin_io, .create_file = create_file, .set_file_attributes = set_file_attributes,
};

DEFINE_PLUGIN("opt", "1", functions)
