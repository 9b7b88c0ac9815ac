/*
 * A plugin that saves nothing itself but changes the FileSet while it is received, and asks the
 * daemon what it knows:
 *
 *   inc:include=PATH;exclude=PATH;newoptions;options=LETTERS;wild=PATTERN,type=F;regex=...,type=
 *   inc:newinclude;newpre;plugin=COMMAND WITH ^ FOR ; AND ~ FOR ,
 *   inc:accept=PATH;check=PATH;attribs=PATH;seen=PATH   (when the command is reached)
 *   inc:late-newinclude;late-include=PATH   the same changes when the command is reached
 *   inc:debug=TEXT                      output for debugging, also in the calls around it
 *
 * All variables are noted at the start of the job, and of its backup, restore or verify.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "support.h"

/* Names of sources, as compilers may give them. */
static const char *const places[] = {"c.c", "/c.c", "b/c.c", "/b/c.c", "a/b/c.c", "/x/a/b/c.c", "a/", "", NULL};

/* Output for debugging at this level. */
#define DEBUG(context, level, ...) daemon_functions->debug_message(context, __FILE__, __LINE__, level, __VA_ARGS__)

static int new_plugin(struct bp_context *context)
{
    context->plugin = calloc(1, sizeof(struct steps));
    trace(context, "newPlugin");
    DEBUG(context, 10, "newPlugin\n");
    return RC_OK;
}

static int free_plugin(struct bp_context *context)
{
    trace(context, "freePlugin");
    DEBUG(context, 10, "freePlugin\n");
    free_steps(context->plugin);
    free(context->plugin);
    context->plugin = NULL;
    return RC_OK;
}

static const char *unescaped(const char *text)
{
    static __thread char copy[2000];

    snprintf(copy, sizeof copy, "%s", text);
    for (char *at = copy; *at; at++)
        *at = *at == '^' ? ';' : *at == '~' ? ',' : *at;
    return copy;
}

static int changed(struct bp_context *context, const struct step *step)
{
    const char *type = text_of(step, "type"), *value = step->values[0], *key = step->keys[0];
    int letter = type && *type ? *type : ' ';

    if (!strcmp(key, "include"))
        return daemon_functions->add_include(context, value);
    if (!strcmp(key, "exclude"))
        return daemon_functions->add_exclude(context, value);
    if (!strcmp(key, "options"))
        return daemon_functions->add_options(context, value);
    if (!strcmp(key, "regex"))
        return daemon_functions->add_regex(context, value, letter);
    if (!strcmp(key, "wild"))
        return daemon_functions->add_wild(context, value, letter);
    if (!strcmp(key, "newoptions"))
        return daemon_functions->new_options(context);
    if (!strcmp(key, "newinclude"))
        return daemon_functions->new_include(context);
    if (!strcmp(key, "newpre"))
        return daemon_functions->new_pre_include(context);
    if (!strcmp(key, "plugin"))
        return daemon_functions->add_plugin(context, unescaped(value));
    return -1;
}

static void change(struct bp_context *context, const char *command)
{
    struct steps steps = {.count = 0};

    parse_steps(&steps, command);
    for (int at = 0; at < steps.count; at++) {
        int rc = steps.step[at].count ? changed(context, &steps.step[at]) : -1;
        if (rc >= 0)
            trace(context, "%s %s rc=%d", steps.step[at].keys[0], quoted(steps.step[at].values[0]), rc);
    }
    free_steps(&steps);
}

static void ask_about(struct bp_context *context, const char *key, const char *path)
{
    if (!strncmp(key, "late-", 5)) {
        struct step late = {.keys = {key + 5}, .values = {path}, .count = 1};
        trace(context, "%s %s rc=%d", key, quoted(path), changed(context, &late));
        return;
    }

    struct save_pkt save = {.pkt_size = sizeof save, .fname = (char *)path, .link = "", .type = FT_REG,
                            .pkt_end = sizeof save};
    struct accurate_attribs_pkt attribs = {.fname = (char *)path};
    int rc;

    lstat(path, &save.statp);
    if (S_ISDIR(save.statp.st_mode)) {
        save.type = FT_DIREND;
        save.link = (char *)path;
    }
    if (!strcmp(key, "accept")) {
        trace(context, "AcceptFile %s rc=%d", quoted(path), daemon_functions->accept_file(context, &save));
    } else if (!strcmp(key, "check")) {
        rc = daemon_functions->check_changes(context, &save);
        trace(context, "checkChanges %s rc=%d delta=%u found=%d", quoted(path), rc, save.delta_seq, save.accurate_found);
    } else if (!strcmp(key, "attribs")) {
        rc = daemon_functions->get_accurate_attribs(context, &attribs);
        trace(context, "getAccurateAttribs %s rc=%d", quoted(path), rc);
        if (rc == RC_SEEN)
            trace(context, "attribs size=%lld mode=%o chksum=%s delta=%d seen=%d", (long long)attribs.statp.st_size,
                  attribs.statp.st_mode, quoted(attribs.chksum), attribs.delta_seq, attribs.seen);
    } else if (!strcmp(key, "seen")) {
        trace(context, "FileSeen %s rc=%d", quoted(path),
              daemon_functions->set_value(context, VAR_FILE_SEEN, (void *)path));
    } else if (!strcmp(key, "set")) {
        rc = daemon_functions->set_value(context, atoi(path), (void *)1);
        trace(context, "setBaculaValue %s rc=%d, NULL gives %d", path, rc,
              daemon_functions->set_value(context, atoi(path), NULL));
    } else if (!strcmp(key, "message")) {
        /* The daemon's own printf. */
        rc = daemon_functions->job_message(context, __FILE__, __LINE__, M_INFO, 0,
            "%d %5d|%-5d|%05d %x %X %o %u %ld %lld %s|%8s|%-8s|%.2s %c %% %.3f %f\n", -1, 2, 3, 4, 255, 255, 8,
            4000000000U, 5L, 1LL << 40, "text", "right", "left", "cut", 'c', 2.25, 0.5);
        trace(context, "JobMessage rc=%d", rc);
    } else if (!strcmp(key, "longmessage")) {
        char text[3001];
        memset(text, 'm', 3000);
        text[3000] = 0;
        /* It is cut, and loses its line end; another one ends the line. */
        daemon_functions->job_message(context, __FILE__, __LINE__, M_INFO, 0, "%s\n", text);
        daemon_functions->job_message(context, __FILE__, __LINE__, M_INFO, 0, "behind it\n");
        DEBUG(context, 10, "%s %d\n", text, 1);
    } else if (!strcmp(key, "debug")) {
        DEBUG(context, 150, "%s %5d|%-5d|%lld|%.2f\n", path, 1, 2, 1LL << 40, 0.5);
        DEBUG(context, 151, "above the level\n");
        DEBUG(context, 0, "at no level\n");
        DEBUG(context, -10, "headless at 10\n");
        DEBUG(context, -11, "headless at 11\n");
        DEBUG(context, 150, "without an end of line");
        DEBUG(NULL, 150, "without a context\n");
        DEBUG(context, 150, "two\nlines\n");
        DEBUG(context, 150, "");
        for (const char *const *file = places; *file; file++)
            daemon_functions->debug_message(context, *file, -5, 10, "in another place\n");
    } else if (!strcmp(key, "memory")) {
        char *memory = daemon_functions->allocate(context, __FILE__, __LINE__, 100000);
        memset(memory, 'x', 100000);
        daemon_functions->release(context, __FILE__, __LINE__, memory);
        trace(context, "memory");
    } else if (!strcmp(key, "wrong")) {
        struct save_pkt nameless = {.pkt_size = sizeof nameless, .pkt_end = sizeof nameless};
        int number;
        trace(context, "wrong: get NULL %d, variable 99 %d, no context %d, attribs NULL %d",
              daemon_functions->get_value(context, VAR_JOB_ID, NULL),
              daemon_functions->get_value(context, 99, &number),
              daemon_functions->get_value(NULL, VAR_JOB_ID, &number),
              daemon_functions->get_accurate_attribs(context, NULL));
        trace(context, "wrong: checkChanges without name %d", daemon_functions->check_changes(context, &nameless));
    }
}

static int handle_event(struct bp_context *context, struct b_event *event, void *value)
{
    struct steps *steps = context->plugin;

    trace_event(context, event->type, value);
    DEBUG(context, 150, "event %d\n", event->type);
    switch (event->type) {
    case EVENT_JOB_START:
        trace_variables(context, "JobStart");
        break;
    case EVENT_START_BACKUP_JOB:
        trace_variables(context, "StartBackupJob");
        break;
    case EVENT_START_RESTORE_JOB:
        trace_variables(context, "StartRestoreJob");
        break;
    case EVENT_START_VERIFY_JOB:
        trace_variables(context, "StartVerifyJob");
        break;
    case EVENT_PLUGIN_COMMAND:
        change(context, value);
        break;
    case EVENT_ESTIMATE_COMMAND:
    case EVENT_BACKUP_COMMAND:
        parse_steps(steps, value);
        for (int at = 0; at < steps->count; at++)
            if (steps->step[at].count)
                ask_about(context, steps->step[at].keys[0], steps->step[at].values[0]);
        break;
    }
    return RC_OK;
}

static int start_backup_file(struct bp_context *context, struct save_pkt *save)
{
    trace(context, "startBackupFile %s", quoted(save->cmd));
    return RC_STOP;
}

static int end_backup_file(struct bp_context *context)
{
    trace(context, "endBackupFile");
    return RC_OK;
}

static int check_file(struct bp_context *context, char *fname)
{
    trace(context, "checkFile %s", quoted(fname));
    return RC_OK;
}

static struct p_funcs functions = {
    .size = sizeof(struct p_funcs), .version = FD_PLUGIN_VERSION, .new_plugin = new_plugin,
    .free_plugin = free_plugin, .handle_event = handle_event,
    .start_backup_file = start_backup_file, .end_backup_file = end_backup_file,
    .check_file = check_file,
};

DEFINE_PLUGIN("inc", "1", functions)
