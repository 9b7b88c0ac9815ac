/*
 * A plugin that hands over much, for measurements:
 *
 *   bulk:name=/@bulk/x,mib=10240         one file of so many MiB, as many bytes a call as are asked
 *   bulk:name=/@bulk/x,files=10000,size=100     many small files
 *
 * Restored data is counted and thrown away.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "support.h"

struct state {
    struct steps steps;
    char name[1000];
    long files, handed, size, left;
};

/* Data that does not compress away, made once. */
static char pattern[1 << 20];

static int new_plugin(struct bp_context *context)
{
    uint64_t random = 88172645463325252ULL;

    context->plugin = calloc(1, sizeof(struct state));
    if (!pattern[0])
        for (size_t at = 0; at < sizeof pattern; at++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            pattern[at] = (char)(random | 1);
        }
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
    struct state *state = context->plugin;

    if (event->type == EVENT_BACKUP_COMMAND || event->type == EVENT_ESTIMATE_COMMAND) {
        parse_steps(&state->steps, value);
        state->handed = 0;
        state->files = number_of_any(&state->steps, "files", 1);
        state->size = number_of_any(&state->steps, "mib", 0) << 20;
        if (!state->size)
            state->size = number_of_any(&state->steps, "size", 0);
    }
    return RC_OK;
}

static int start_backup_file(struct bp_context *context, struct save_pkt *save)
{
    struct state *state = context->plugin;

    if (state->handed >= state->files)
        return RC_STOP;
    state->handed++;
    if (state->files > 1)
        snprintf(state->name, sizeof state->name, "%s/%06ld", text_of(&state->steps.step[0], "name"), state->handed);
    else
        snprintf(state->name, sizeof state->name, "%s", text_of(&state->steps.step[0], "name"));
    state->left = state->size;
    save->fname = state->name;
    save->type = FT_REG;
    save->statp.st_mode = S_IFREG | 0640;
    save->statp.st_size = state->size;
    save->statp.st_mtime = save->statp.st_atime = save->statp.st_ctime = 1000000000;
    return RC_OK;
}

static int end_backup_file(struct bp_context *context)
{
    struct state *state = context->plugin;

    return state->handed < state->files ? RC_MORE : RC_OK;
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    struct state *state = context->plugin;
    long count = io->count;

    io->status = 0;
    switch (io->func) {
    case IO_READ:
        if (count > state->left)
            count = state->left;
        if (count > (long)sizeof pattern)
            count = sizeof pattern;
        memcpy(io->buf, pattern, count);
        state->left -= count;
        io->status = count;
        break;
    case IO_WRITE:
        io->status = io->count;
    }
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

static int create_file(struct bp_context *context, struct restore_pkt *packet)
{
    (void)context;
    packet->create_status = CF_EXTRACT;
    return RC_OK;
}

static int set_file_attributes(struct bp_context *context, struct restore_pkt *packet)
{
    (void)context;
    (void)packet;
    return RC_OK;
}

static struct p_funcs functions = {
    .size = sizeof(struct p_funcs), .version = FD_PLUGIN_VERSION, .new_plugin = new_plugin,
    .free_plugin = free_plugin, .handle_event = handle_event,
    .start_backup_file = start_backup_file, .end_backup_file = end_backup_file,
    .start_restore_file = start_restore_file, .end_restore_file = end_restore_file,
    .plugin_io = plugin_io, .create_file = create_file, .set_file_attributes = set_file_attributes,
};

DEFINE_PLUGIN("bulk", "1", functions)
