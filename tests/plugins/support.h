/*
 * What the test plugins share: the daemon's functions, a trace of every call, and commands made of
 * steps.
 *
 * The trace is the file NAME-OF-JOBID in the folder `trace` of the daemon's working directory (or
 * in the folder that PLUGIN_TRACE names), and is written when the folder exists. All plugins of a
 * job append to the same file, so it also tells in which order they are called.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd_plugin.h"

#define UNUSED __attribute__((unused))

static struct b_funcs *daemon_functions;
static const char *plugin_name;

/* ---- the trace ---- */

/* Quoted, with everything that is not plain text as \xNN; `-` for NULL. Eight results live at once. */
UNUSED static const char *quoted_bytes(const char *text, size_t length)
{
    static __thread char buffers[8][3000];
    static __thread unsigned next;
    char *start = buffers[next++ % 8], *to = start;

    if (!text)
        return "-";
    *to++ = '"';
    for (size_t at = 0; at < length && to < start + 2900; at++) {
        unsigned char byte = text[at];
        if (byte < ' ' || byte > '~' || byte == '"' || byte == '\\')
            to += sprintf(to, "\\x%02x", byte);
        else
            *to++ = byte;
    }
    *to++ = '"';
    *to = 0;
    return start;
}

UNUSED static const char *quoted(const char *text)
{
    return text ? quoted_bytes(text, strlen(text)) : "-";
}

/* The folder of the trace and of the switches; empty if there is none. */
UNUSED static const char *trace_folder(struct bp_context *context)
{
    static __thread char folder[1000];
    char *work = NULL;
    const char *told = getenv("PLUGIN_TRACE");

    if (told) {
        snprintf(folder, sizeof folder, "%s", told);
        return folder;
    }
    daemon_functions->get_value(context, VAR_WORKING_DIR, &work);
    if (!work)
        return "";
    snprintf(folder, sizeof folder, "%s/trace", work);
    return folder;
}

/* Whether the folder of the trace holds a file `PLUGIN.NAME`: how a test turns a thing on. */
UNUSED static bool is_switched_on(struct bp_context *context, const char *name)
{
    char path[1200];

    snprintf(path, sizeof path, "%s/%s.%s", trace_folder(context), plugin_name, name);
    return access(path, F_OK) == 0;
}

/* One line of the trace: the plugin's name, then the text. */
__attribute__((format(printf, 2, 3)))
UNUSED static void trace(struct bp_context *context, const char *format, ...)
{
    char path[1200], line[8000];
    int job = 0, used, descriptor;
    va_list arguments;

    daemon_functions->get_value(context, VAR_JOB_ID, &job);
    snprintf(path, sizeof path, "%s/job-%d", trace_folder(context), job);
    descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return;
    used = snprintf(line, sizeof line, "%s ", plugin_name);
    va_start(arguments, format);
    used += vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    if (used > (int)sizeof line - 2)
        used = sizeof line - 2;
    line[used++] = '\n';
    /* One write, so that lines of several threads do not mix. */
    if (write(descriptor, line, used) != used)
        abort();
    close(descriptor);
}

/* Without the time of access of files that are read by several jobs. */
UNUSED static const char *stat_text(const struct stat *stat)
{
    static __thread char texts[4][300];
    static __thread unsigned next;
    char *text = texts[next++ % 4];

    snprintf(text, sizeof texts[0], "[%o %u:%u size=%lld blocks=%lld/%lld dev=%llx ino=%llu n=%llu rdev=%llx atime%s %lld %lld]",
             stat->st_mode, stat->st_uid, stat->st_gid, (long long)stat->st_size,
             (long long)stat->st_blocks, (long long)stat->st_blksize, (unsigned long long)stat->st_dev,
             (unsigned long long)stat->st_ino, (unsigned long long)stat->st_nlink,
             (unsigned long long)stat->st_rdev, stat->st_atime == stat->st_mtime ? " is" : " before or after", (long long)stat->st_mtime,
             (long long)stat->st_ctime);
    return text;
}

/* An event with its value, as it was delivered. */
UNUSED static void trace_event(struct bp_context *context, int type, void *value)
{
    struct restore_object_pkt *object = value;
    struct save_pkt *save = value;

    switch (type) {
    case EVENT_JOB_START:
    case EVENT_BACKUP_COMMAND:
    case EVENT_RESTORE_COMMAND:
    case EVENT_ESTIMATE_COMMAND:
    case EVENT_PLUGIN_COMMAND:
    case EVENT_COMPONENT_INFO:
    case EVENT_PLUGIN_OPTIONS:
        trace(context, "event %d %s", type, quoted(value));
        break;
    case EVENT_LEVEL:
    case EVENT_SINCE:
        trace(context, "event %d %ld", type, (long)value);
        break;
    case EVENT_FEATURES:
        trace(context, "event %d %s", type, value ? "pointer" : "-");
        break;
    case EVENT_RESTORE_OBJECT:
        if (!object) {
            trace(context, "event %d -", type);
            break;
        }
        trace(context,
              "event %d size=%d/%d name=%s plugin=%s type=%d len=%d full=%d index=%d compression=%d stream=%d job=%u object=%s",
              type, object->pkt_size, object->pkt_end, quoted(object->object_name),
              quoted(object->plugin_name), object->object_type, object->object_len,
              object->object_full_len, object->object_index, object->object_compression,
              object->stream, object->job_id, quoted_bytes(object->object, object->object_len));
        break;
    case EVENT_HANDLE_BACKUP_FILE:
        trace(context,
              "event %d size=%d/%d fname=%s snap=%s link=%s cmd=%s type=%d flags=%llx no_read=%d portable=%d found=%d dedup=%d update=%d delta=%u stat=%s",
              type, save->pkt_size, save->pkt_end, quoted(save->fname), quoted(save->snap_fname),
              quoted(save->link), quoted(save->cmd), save->type, (unsigned long long)save->flags,
              save->no_read, save->portable, save->accurate_found, save->do_dedup,
              save->stat_update, save->delta_seq, stat_text(&save->statp));
        break;
    default:
        trace(context, "event %d %s", type, value ? "value" : "-");
    }
}

UNUSED static void trace_restore(struct bp_context *context, const char *call, const struct restore_pkt *packet)
{
    trace(context,
          "%s size=%d/%d stream=%d data=%d type=%d index=%d link_fi=%d uid=%u attr_ex=%s ofname=%s olname=%s where=%s regex=%s replace=%c status=%d delta=%u stat=%s",
          call, packet->pkt_size, packet->pkt_end, packet->stream, packet->data_stream,
          packet->type, packet->file_index, packet->link_fi, packet->uid,
          quoted(packet->attr_ex), quoted(packet->ofname), quoted(packet->olname),
          quoted(packet->where), quoted(packet->regex_where), packet->replace,
          packet->create_status, packet->delta_seq, stat_text(&packet->statp));
}

/* The first bytes of a block, its length and a sum of it. */
UNUSED static const char *block_text(const char *block, long length)
{
    static __thread char text[400];
    uint64_t sum = 14695981039346656037ULL;

    for (long at = 0; at < length; at++)
        sum = (sum ^ (unsigned char)block[at]) * 1099511628211ULL;
    snprintf(text, sizeof text, "%ld bytes %016llx %s", length, (unsigned long long)sum,
             quoted_bytes(block, length > 40 ? 40 : length < 0 ? 0 : length));
    return text;
}

UNUSED static void trace_variables(struct bp_context *context, const char *when)
{
    for (int variable = 1; variable <= 29; variable++) {
        /* Wider than either kind of value. */
        union { char *text; int number; } value = {.text = NULL};
        bool is_text = variable == VAR_FD_NAME || variable == VAR_CLIENT || variable == VAR_JOB_NAME
                    || (variable >= VAR_WORKING_DIR && variable <= VAR_PREV_JOB_NAME);
        int rc = 0;
        if (variable == VAR_VSS_OBJECT || variable == VAR_VSS_DLL_HANDLE)
            continue;
        is_text = is_text || variable == VAR_SYS_CONFIG_PATH;
        rc = daemon_functions->get_value(context, variable, &value);
        if (is_text)
            trace(context, "variable at %s: %d = %s, rc %d", when, variable, quoted(value.text), rc);
        else
            trace(context, "variable at %s: %d = %d, rc %d", when, variable, value.number, rc);
    }
}

/* ---- commands: NAME:key=value,key=value;key=value ---- */

#define MAX_KEYS 40
#define MAX_STEPS 100

struct step {
    const char *keys[MAX_KEYS];
    const char *values[MAX_KEYS];
    int count;
};

struct steps {
    char *text;
    struct step step[MAX_STEPS];
    int count;
};

UNUSED static void free_steps(struct steps *steps)
{
    free(steps->text);
    memset(steps, 0, sizeof *steps);
}

UNUSED static void parse_steps(struct steps *steps, const char *command)
{
    const char *colon = strchr(command, ':');
    char *next_step, *next_key;

    free_steps(steps);
    steps->text = strdup(colon ? colon + 1 : "");
    for (char *step = strtok_r(steps->text, ";", &next_step); step && steps->count < MAX_STEPS;
         step = strtok_r(NULL, ";", &next_step)) {
        struct step *into = &steps->step[steps->count++];
        for (char *key = strtok_r(step, ",", &next_key); key && into->count < MAX_KEYS;
             key = strtok_r(NULL, ",", &next_key)) {
            char *equals = strchr(key, '=');
            key += strspn(key, " ");
            into->keys[into->count] = key;
            into->values[into->count++] = equals ? equals + 1 : "";
            if (equals)
                *equals = 0;
        }
    }
}

/* The value of a key, or NULL; `from` is where to look on for the next one. */
UNUSED static const char *next_value(const struct step *step, const char *key, int *from)
{
    while (*from < step->count) {
        int at = (*from)++;
        if (!strcmp(step->keys[at], key))
            return step->values[at];
    }
    return NULL;
}

UNUSED static const char *text_of(const struct step *step, const char *key)
{
    int from = 0;

    return next_value(step, key, &from);
}

UNUSED static long number_of(const struct step *step, const char *key, long otherwise)
{
    const char *text = text_of(step, key);

    return text ? strtol(text, NULL, 0) : otherwise;
}

/* The number that any step gives for a key. */
UNUSED static long number_of_any(const struct steps *steps, const char *key, long otherwise)
{
    for (int at = 0; at < steps->count; at++)
        if (text_of(&steps->step[at], key))
            return number_of(&steps->step[at], key, otherwise);
    return otherwise;
}

/* ---- what a plugin exports ---- */

#ifndef INFO_SIZE
#define INFO_SIZE sizeof(struct p_info)
#endif
#ifndef INFO_VERSION
#define INFO_VERSION FD_PLUGIN_VERSION
#endif
#ifndef INFO_MAGIC
#define INFO_MAGIC FD_PLUGIN_MAGIC
#endif
#ifndef INFO_LICENSE
#define INFO_LICENSE "AGPLv3"
#endif

#define DEFINE_PLUGIN(name, text, table)                                                           \
    static struct p_info information = {INFO_SIZE, INFO_VERSION, INFO_MAGIC, INFO_LICENSE,         \
                                        "ferrofd", "2026", text, "Test plugin " name};             \
    int loadPlugin(struct b_info *info, struct b_funcs *offered, struct p_info **own_info,         \
                   struct p_funcs **own_functions)                                                 \
    {                                                                                              \
        daemon_functions = offered;                                                                \
        plugin_name = name;                                                                        \
        if (info->size != sizeof *info || info->version != FD_PLUGIN_VERSION                       \
            || offered->size != sizeof *offered || offered->version != FD_PLUGIN_VERSION)          \
            return RC_ERROR;                                                                       \
        *own_info = &information;                                                                  \
        *own_functions = &(table);                                                                 \
        return RC_OK;                                                                              \
    }                                                                                              \
    int unloadPlugin(void)                                                                         \
    {                                                                                              \
        return RC_OK;                                                                              \
    }

#endif
