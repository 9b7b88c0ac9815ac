/*
 * A verify plugin: what it does with a file depends on the end of the file's name.
 *
 *   .nostart   startVerifyFile refuses it      .noopen   IO_OPEN has status -1
 *   .openrc    IO_OPEN returns an error        .badwrite IO_WRITE has status -1
 *   .writerc   IO_WRITE returns an error       .badclose IO_CLOSE has status 5
 *   .closerc   IO_CLOSE returns an error       .badend   endVerifyFile returns an error
 *   .virus     a FileEvent and an error message
 *
 * It writes into the four bytes before each block, as the antivirus plugin does (reference 07 §9).
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "support.h"

struct state {
    char name[3000];
};

static bool is(const struct state *state, const char *end)
{
    size_t length = strlen(state->name), of_end = strlen(end);

    return length >= of_end && !strcmp(state->name + length - of_end, end);
}

static int new_plugin(struct bp_context *context)
{
    context->plugin = calloc(1, sizeof(struct state));
    trace(context, "newPlugin");
    return RC_OK;
}

static int free_plugin(struct bp_context *context)
{
    trace(context, "freePlugin");
    free(context->plugin);
    context->plugin = NULL;
    return RC_OK;
}

static int handle_event(struct bp_context *context, struct b_event *event, void *value)
{
    trace_event(context, event->type, value);
    if (event->type == EVENT_START_VERIFY_JOB && !is_switched_on(context, "unregistered"))
        trace(context, "registered rc=%d",
              daemon_functions->register_events(context, EVENT_VERIFY_STREAM, EVENT_JOB_END, 0));
    return RC_OK;
}

static int start_verify_file(struct bp_context *context, struct restore_pkt *packet)
{
    struct state *state = context->plugin;

    /* Without olname: what it holds is left to chance. */
    trace(context, "startVerifyFile size=%d/%d stream=%d data=%d type=%d index=%d ofname=%s stat=%s",
          packet->pkt_size, packet->pkt_end, packet->stream, packet->data_stream, packet->type,
          packet->file_index, quoted(packet->ofname), stat_text(&packet->statp));
    snprintf(state->name, sizeof state->name, "%s", packet->ofname);
    return is(state, ".nostart") ? RC_SKIP : RC_OK;
}

static int end_verify_file(struct bp_context *context)
{
    trace(context, "endVerifyFile");
    return is(context->plugin, ".badend") ? RC_ERROR : RC_OK;
}

static void tell_of_a_virus(struct bp_context *context)
{
    struct fileevent_pkt event = {.type = 'a', .severity = 100, .description = "found it here",
                                  .source = "test plugin"};

    daemon_functions->get_value(context, VAR_FILE_INDEX, &event.file_index);
    trace(context, "AddFileEvent index=%d rc=%d", event.file_index,
          daemon_functions->add_file_event(context, &event));
    daemon_functions->job_message(context, __FILE__, __LINE__, M_ERROR, 0, "%s Virus detected \"%s\"\n",
                                  ((struct state *)context->plugin)->name, "test");
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    struct state *state = context->plugin;

    io->status = 0;
    switch (io->func) {
    case IO_OPEN:
        trace(context, "open size=%d/%d fname=%s flags=%o mode=%o", io->pkt_size, io->pkt_end,
              quoted(io->fname), io->flags, io->mode);
        io->status = is(state, ".noopen") ? -1 : 0;
        return is(state, ".openrc") ? RC_ERROR : RC_OK;
    case IO_WRITE:
        trace(context, "write size=%d/%d flags=%o mode=%o %s", io->pkt_size, io->pkt_end, io->flags,
              io->mode, block_text(io->buf, io->count));
        memcpy(io->buf - 4, "\0\1\2\3", 4);
        io->status = is(state, ".badwrite") ? -1 : io->count;
        return is(state, ".writerc") ? RC_ERROR : RC_OK;
    case IO_CLOSE:
        trace(context, "close size=%d/%d fname=%s flags=%o mode=%o", io->pkt_size, io->pkt_end,
              quoted(io->fname), io->flags, io->mode);
        if (is(state, ".virus"))
            tell_of_a_virus(context);
        io->status = is(state, ".badclose") ? 5 : 0;
        return is(state, ".closerc") ? RC_ERROR : RC_OK;
    default:
        trace(context, "io function %d", io->func);
        return RC_ERROR;
    }
}

static struct p_funcs functions = {
    .size = sizeof(struct p_funcs), .version = FD_PLUGIN_VERSION, .new_plugin = new_plugin,
    .free_plugin = free_plugin, .handle_event = handle_event, .plugin_io = plugin_io,
    .start_verify_file = start_verify_file, .end_verify_file = end_verify_file,
};

DEFINE_PLUGIN("ver", "1", functions)
