/*
 * A command plugin whose command says, step by step, what it hands over and how each call ends:
 *
 *   tp:reg=/@tp/a,data=hello,blob=x,acl=y;dir=/@tp/d/;object=small,size=2000;event9=2
 *
 * A step is a file if it has one of the keys `reg`, `empty`, `dir`, `lnk`, `hard`, `spec`, `fifo`,
 * `raw`, `deleted`, `file` (with `type`), `object`, `pluginobject`, `metafile`; else it is about the
 * command as a whole. Keys of a file at a backup:
 *
 *   data=TEXT size=N zeros=N block=N     content: a text, N bytes of a pattern, N zeros; bytes a read
 *   only=LEVEL                           handed over only at this level (F, I)
 *   mode uid gid statsize mtime link     attributes
 *   noread update portable=0             members of the packet
 *   offsets=STEP sparse delta=N          flags; each block lies STEP bytes behind the last
 *   blob=TEXT blobsize=N mail=1          metadata packets, may be repeated; badmeta=TYPE emptymeta
 *   acl=TEXT xattr=TEXT                  answers to handleXACLdata, may be repeated; aclrc=N xattrrc=N
 *   streamword=N streamrc=N              answer to checkStream
 *   startrc=N endrc=N                    answers of startBackupFile and endBackupFile
 *   openrc openstatus openerrno readrc readerrno   answers of pluginIO
 *   event=SEVERITY/SOURCE/DESCRIPTION    AddFileEvent at the end of the data
 *   say=TYPE:TEXT                        JobMessage at startBackupFile
 *   include=PATH                         begins an Include of this path at the first read
 *   check attribs accept seen            calls of the daemon's functions, noted in the trace
 *
 * and at a restore:
 *
 *   cf=N cfrc=N setcf=N setrc=N          createFile: status and result; setFileAttributes likewise
 *   writeshort writeerrno wopenerrno closestatus metarc xaclrestorerc
 *
 * Of the command: event9 event11 event10 startrestore endrestore checkfile=NAME (seen in accurate
 * jobs) vars.
 *
 * Switches (files in the folder of the trace): tp.disabled, tp.features, tp.refused-event10.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef NAME
#define NAME "tp"
#endif
#include "support.h"

#define TIME 1000000000
#define MAX_META 8

struct state {
    struct steps steps;
    int next;                   /* the step to hand over next */
    struct step *file;          /* the step of the present file */
    bool listing;
    int listed;
    int level;
    /* The present file's data. */
    char *content;
    long length, at;
    int xacls[5];
    char *object;
    char *fname;
    struct plugin_metadata meta;
    struct meta_pkt meta_packets[MAX_META];
    void *meta_pointers[MAX_META];
    /* Restore. */
    int output;
    char restored[3000];
};

/* Where no step is meant. */
static struct step none;

static const struct { const char *key; int type; mode_t mode; } kinds[] = {
    {"reg", FT_REG, S_IFREG | 0640}, {"empty", FT_REGE, S_IFREG | 0600},
    {"dir", FT_DIREND, S_IFDIR | 0750}, {"lnk", FT_LNK, S_IFLNK | 0777},
    {"hard", FT_LNKSAVED, S_IFREG | 0640}, {"spec", FT_SPEC, S_IFCHR | 0600},
    {"fifo", FT_FIFO, S_IFIFO | 0600}, {"raw", FT_RAW, S_IFBLK | 0600},
    {"deleted", FT_DELETED, 0}, {"file", FT_REG, S_IFREG | 0640},
    {"object", FT_RESTORE_FIRST, 0}, {"pluginobject", FT_PLUGIN_OBJECT, 0},
};

#define KINDS (sizeof kinds / sizeof *kinds)

static int kind_of(const struct step *step)
{
    for (unsigned kind = 0; kind < KINDS; kind++)
        if (text_of(step, kinds[kind].key))
            return kind;
    return -1;
}

static struct state *state_of(struct bp_context *context)
{
    return context->plugin;
}

static bool is_wanted(const struct state *state, const struct step *step)
{
    const char *only = text_of(step, "only");

    return kind_of(step) >= 0 && (!only || *only == state->level);
}

static void skip_to_file(struct state *state)
{
    while (state->next < state->steps.count && !is_wanted(state, &state->steps.step[state->next]))
        state->next++;
}

static int new_plugin(struct bp_context *context)
{
    struct state *state = calloc(1, sizeof *state);

    state->output = -1;
    state->file = &none;
    context->plugin = state;
    trace(context, "newPlugin");
    return is_switched_on(context, "disabled") ? RC_ERROR : RC_OK;
}

static int free_plugin(struct bp_context *context)
{
    struct state *state = state_of(context);

    trace(context, "freePlugin");
    if (state->output >= 0)
        close(state->output);
    free_steps(&state->steps);
    free(state->content);
    free(state->object);
    free(state->fname);
    free(state);
    context->plugin = NULL;
    return RC_OK;
}

static int value(struct bp_context *context, int variable, void *value)
{
    trace(context, "pluginValue %d %s", variable, value ? "value" : "-");
    return RC_OK;
}

static int handle_event(struct bp_context *context, struct b_event *event, void *value)
{
    struct state *state = state_of(context);

    trace_event(context, event->type, value);
    switch (event->type) {
    case EVENT_BACKUP_COMMAND:
    case EVENT_ESTIMATE_COMMAND:
        parse_steps(&state->steps, value);
        state->file = &none;
        state->next = 0;
        daemon_functions->get_value(context, VAR_LEVEL, &state->level);
        state->listed = 0;
        state->listing = state->steps.count && text_of(&state->steps.step[0], "listing");
        if (number_of_any(&state->steps, "vars", 0))
            trace_variables(context, "command");
        return number_of_any(&state->steps, event->type == EVENT_BACKUP_COMMAND ? "event9" : "event11", RC_OK);
    case EVENT_RESTORE_COMMAND:
        parse_steps(&state->steps, value);
        state->file = &none;
        if (is_switched_on(context, "refused-event10"))
            return RC_ERROR;
        return number_of_any(&state->steps, "event10", RC_OK);
    case EVENT_FEATURES:
        if (is_switched_on(context, "features"))
            *(const char **)value = "RestoreListFiles";
        return RC_OK;
    default:
        return RC_OK;
    }
}

static char *pattern(long length)
{
    char *text = malloc(length + 1);

    for (long at = 0; at < length; at++)
        text[at] = "0123456789abcdefghijklmnopqrstuvwxyz\n"[(at + at / 4096) % 37];
    text[length] = 0;
    return text;
}

static void fill_content(struct state *state)
{
    const char *text = text_of(state->file, "data");

    free(state->content);
    state->length = text ? (long)strlen(text) : number_of(state->file, "size", number_of(state->file, "zeros", 0));
    state->content = text ? strdup(text) : pattern(state->length);
    if (text_of(state->file, "zeros"))
        memset(state->content, 0, state->length);
    state->at = 0;
}

static void add_meta(struct state *state, int type, const char *text, uint32_t length)
{
    int at = state->meta.packets.num_items;
    struct meta_pkt *packet = &state->meta_packets[at];

    if (at >= MAX_META)
        return;
    packet->type = type;
    packet->index = at;
    packet->buf_len = length;
    packet->buf = (void *)text;
    state->meta_pointers[at] = packet;
    state->meta.packets.num_items = state->meta.packets.last_item = at + 1;
    state->meta.packets.max_items = MAX_META;
    state->meta.packets.items = state->meta_pointers;
    state->meta.total_size += 24 + length;
    state->meta.total_count = at + 1;
    for (int each = 0; each <= at; each++) {
        state->meta_packets[each].total_size = state->meta.total_size;
        state->meta_packets[each].total_count = state->meta.total_count;
    }
}

static const char mail[] =
    "{\"Version\": 1, \"Plugin\": \"tp\", \"EmailTenant\": \"tenant\", \"EmailOwner\": \"owner\", "
    "\"EmailId\": \"id-1\", \"EmailTime\": \"2001-09-09 01:46:40\", \"EmailTags\": \"\", "
    "\"EmailSubject\": \"A subject\", \"EmailFolderName\": \"Inbox\", \"EmailFrom\": \"a@example.com\", "
    "\"EmailTo\": \"b@example.com\", \"EmailCc\": \"\", \"EmailInternetMessageId\": \"<1@example.com>\", "
    "\"EmailBodyPreview\": \"Hello\", \"EmailImportance\": \"\", \"EmailIsRead\": 1, "
    "\"EmailIsDraft\": 0, \"EmailHasAttachment\": 0, \"EmailConversationId\": \"c\"}";

static void fill_meta(struct state *state, struct save_pkt *save)
{
    const char *text;
    int from = 0;

    memset(&state->meta, 0, sizeof state->meta);
    memset(state->meta_packets, 0, sizeof state->meta_packets);
    while ((text = next_value(state->file, "blob", &from)))
        add_meta(state, META_BLOB, text, strlen(text) + 1);
    if (text_of(state->file, "mail"))
        add_meta(state, META_CATALOG_EMAIL, mail, sizeof mail);
    if (text_of(state->file, "blobsize")) {
        /* Freed with the object of the context. */
        free(state->object);
        state->object = pattern(number_of(state->file, "blobsize", 0));
        add_meta(state, META_BLOB, state->object, number_of(state->file, "blobsize", 0));
    }
    if (text_of(state->file, "badmeta"))
        add_meta(state, number_of(state->file, "badmeta", 7), "bad", 4);
    if (state->meta.total_count)
        save->plug_meta = &state->meta;
    else if (text_of(state->file, "emptymeta"))
        save->plug_meta = &state->meta;
}

static void fill_object(struct state *state, struct save_pkt *save, const char *name)
{
    const char *text = text_of(state->file, "data");

    free(state->object);
    state->object = text ? strdup(text) : pattern(number_of(state->file, "size", 0));
    save->restore_obj.object_name = text_of(state->file, "noname") ? NULL : (char *)name;
    save->restore_obj.object = state->object;
    save->restore_obj.object_len = text ? (long)strlen(text) : number_of(state->file, "size", 0);
    save->restore_obj.index = number_of(state->file, "index", 0);
}

static void fill_plugin_object(struct state *state, struct save_pkt *save, const char *name)
{
    struct plugin_object *object = &save->plugin_obj;

    object->path = (char *)text_of(state->file, "path");
    object->plugin_name = "ignored";
    object->object_category = (char *)text_of(state->file, "category");
    object->object_type = (char *)text_of(state->file, "kind");
    object->object_name = (char *)name;
    object->object_source = (char *)text_of(state->file, "source");
    object->object_uuid = (char *)text_of(state->file, "uuid");
    object->object_size = strtoull(text_of(state->file, "size") ? text_of(state->file, "size") : "0", NULL, 0);
    object->status = text_of(state->file, "status") ? *text_of(state->file, "status") : 0;
    object->count = number_of(state->file, "count", 0);
}

static void fill_attributes(struct state *state, struct save_pkt *save, int kind)
{
    struct stat *stat = &save->statp;

    stat->st_mode = (kinds[kind].mode & S_IFMT) | (number_of(state->file, "mode", kinds[kind].mode) & 07777);
    stat->st_uid = number_of(state->file, "uid", 0);
    stat->st_gid = number_of(state->file, "gid", 0);
    stat->st_nlink = number_of(state->file, "nlink", 1);
    stat->st_ino = number_of(state->file, "ino", 0);
    stat->st_size = number_of(state->file, "statsize", state->length);
    stat->st_blksize = 4096;
    stat->st_blocks = (state->length + 511) / 512;
    stat->st_atime = stat->st_ctime = stat->st_mtime = number_of(state->file, "mtime", TIME);
}

static void call_the_daemon(struct bp_context *context, struct step *file, struct save_pkt *save)
{
    const char *say = text_of(file, "say");
    int rc;

    if (say)
        daemon_functions->job_message(context, __FILE__, __LINE__, atoi(say), 0, "%s: %s (%d)\n",
                                      plugin_name, strchr(say, ':') ? strchr(say, ':') + 1 : "", 7);
    if (text_of(file, "check")) {
        rc = daemon_functions->check_changes(context, save);
        trace(context, "checkChanges %s rc=%d delta=%u found=%d type=%d", quoted(save->fname), rc,
              save->delta_seq, save->accurate_found, save->type);
        if (rc == RC_SEEN && number_of(file, "check", 0) == 1)
            save->type = FT_NOCHG;
    }
    if (text_of(file, "attribs")) {
        struct accurate_attribs_pkt attribs = {.fname = save->fname};
        rc = daemon_functions->get_accurate_attribs(context, &attribs);
        trace(context, "getAccurateAttribs %s rc=%d chksum=%s delta=%d seen=%d stat=%s", quoted(save->fname),
              rc, rc == RC_SEEN ? quoted(attribs.chksum) : "-", attribs.delta_seq, attribs.seen,
              stat_text(&attribs.statp));
    }
    if (text_of(file, "accept"))
        trace(context, "AcceptFile %s rc=%d", quoted(save->fname),
              daemon_functions->accept_file(context, save));
    if (text_of(file, "seen"))
        trace(context, "FileSeen %s rc=%d", quoted(text_of(file, "seen")),
              daemon_functions->set_value(context, VAR_FILE_SEEN, (void *)text_of(file, "seen")));
}

/* Two files below the listed path. */
static int list(struct state *state, struct save_pkt *save)
{
    const char *path = text_of(&state->steps.step[0], "listing");

    if (state->listed++ > 1)
        return RC_STOP;
    free(state->fname);
    state->fname = malloc(strlen(path) + 20);
    sprintf(state->fname, "%s%s", path, state->listed == 1 ? "listed" : "listed-dir/");
    fill_attributes(state, save, state->listed == 1 ? 0 : 2);
    save->fname = state->fname;
    save->link = state->fname;
    save->type = state->listed == 1 ? FT_REG : FT_DIREND;
    save->statp.st_size = 10;
    return RC_OK;
}

static int start_backup_file(struct bp_context *context, struct save_pkt *save)
{
    struct state *state = state_of(context);
    const char *name;
    int kind;

    trace(context,
          "startBackupFile size=%d/%d cmd=%s portable=%d dedup=%d found=%d type=%d flags=%llx delta=%u meta=%s",
          save->pkt_size, save->pkt_end, quoted(save->cmd), save->portable, save->do_dedup,
          save->accurate_found, save->type, (unsigned long long)save->flags, save->delta_seq,
          save->plug_meta ? "set" : "-");
    skip_to_file(state);
    if (state->listing)
        return list(state, save);
    if (state->next >= state->steps.count)
        return RC_STOP;
    state->file = &state->steps.step[state->next++];
    kind = kind_of(state->file);
    name = text_of(state->file, kinds[kind].key);
    memset(state->xacls, 0, sizeof state->xacls);
    fill_content(state);
    fill_attributes(state, save, kind);
    save->type = number_of(state->file, "type", kinds[kind].type);
    /* The daemon copies the name, but the step's text may change with another command. */
    free(state->fname);
    state->fname = strdup(name);
    save->fname = text_of(state->file, "nofname") ? NULL : state->fname;
    save->link = (char *)text_of(state->file, "link");
    save->link_fi = number_of(state->file, "linkfi", 0);
    save->no_read = text_of(state->file, "noread") != NULL;
    save->stat_update = text_of(state->file, "update") != NULL;
    save->portable = number_of(state->file, "portable", 1);
    save->delta_seq = number_of(state->file, "delta", 0);
    save->flags |= (text_of(state->file, "delta") ? FO_DELTA : 0) | (text_of(state->file, "offsets") ? FO_OFFSETS : 0)
        | (text_of(state->file, "sparse") ? FO_SPARSE : 0);
    fill_meta(state, save);
    if (kinds[kind].type == FT_PLUGIN_OBJECT)
        fill_plugin_object(state, save, name);
    else if (kinds[kind].type == FT_RESTORE_FIRST)
        fill_object(state, save, name);
    call_the_daemon(context, state->file, save);
    return number_of(state->file, "startrc", RC_OK);
}

static int end_backup_file(struct bp_context *context)
{
    struct state *state = state_of(context);
    int index = -1;

    daemon_functions->get_value(context, VAR_FILE_INDEX, &index);
    trace(context, "endBackupFile index=%d", index);
    if (state->listing)
        return RC_MORE;
    skip_to_file(state);
    return number_of(state->file, "endrc", state->next < state->steps.count ? RC_MORE : RC_OK);
}

static int start_restore_file(struct bp_context *context, const char *command)
{
    trace(context, "startRestoreFile %s", quoted(command));
    return number_of_any(&state_of(context)->steps, "startrestore", RC_OK);
}

static int end_restore_file(struct bp_context *context)
{
    trace(context, "endRestoreFile");
    return number_of_any(&state_of(context)->steps, "endrestore", RC_OK);
}

/* The step whose name the restored name ends in. */
static struct step *step_of(struct state *state, const char *ofname)
{
    for (int at = 0; at < state->steps.count; at++) {
        struct step *step = &state->steps.step[at];
        int kind = kind_of(step);
        const char *name = kind < 0 ? NULL : text_of(step, kinds[kind].key);
        size_t length = name ? strlen(name) : 0, whole = strlen(ofname);

        if (length && name[length - 1] == '/' && whole && ofname[whole - 1] != '/')
            length--;
        if (length && length <= whole && !strncmp(ofname + whole - length, name, length))
            return step;
    }
    return &none;
}

static void make_parents(const char *path)
{
    char copy[3000];

    snprintf(copy, sizeof copy, "%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(copy, 0755);
        *slash = '/';
    }
}

static int create_file(struct bp_context *context, struct restore_pkt *packet)
{
    struct state *state = state_of(context);

    trace_restore(context, "createFile", packet);
    state->file = step_of(state, packet->ofname);
    snprintf(state->restored, sizeof state->restored, "%s", packet->ofname);
    packet->create_status = number_of(state->file, "cf", CF_EXTRACT);
    if (packet->create_status == CF_EXTRACT || packet->create_status == CF_CREATED)
        make_parents(packet->ofname);
    if (text_of(state->file, "cf"))
        return number_of(state->file, "cfrc", RC_OK);
    switch (packet->statp.st_mode & S_IFMT) {
    case S_IFDIR:
        mkdir(packet->ofname, 0700);
        packet->create_status = CF_CREATED;
        break;
    case S_IFLNK:
        packet->create_status = symlink(packet->olname, packet->ofname) < 0 ? CF_ERROR : CF_CREATED;
        break;
    case S_IFREG:
        break;
    default:
        packet->create_status = CF_CORE;
    }
    return number_of(state->file, "cfrc", RC_OK);
}

static int set_file_attributes(struct bp_context *context, struct restore_pkt *packet)
{
    struct state *state = state_of(context);
    struct timespec times[2] = {packet->statp.st_atim, packet->statp.st_mtim};

    trace_restore(context, "setFileAttributes", packet);
    if (text_of(state->file, "setcf")) {
        packet->create_status = number_of(state->file, "setcf", CF_ERROR);
    } else {
        if (lchown(packet->ofname, packet->statp.st_uid, packet->statp.st_gid) < 0)
            trace(context, "chown: %d", errno);
        if (!S_ISLNK(packet->statp.st_mode))
            chmod(packet->ofname, packet->statp.st_mode & 07777);
        utimensat(AT_FDCWD, packet->ofname, times, AT_SYMLINK_NOFOLLOW);
    }
    return number_of(state->file, "setrc", RC_OK);
}

static void add_file_event(struct bp_context *context, const char *text)
{
    struct fileevent_pkt event = {.type = 'a', .severity = atoi(text)};
    const char *source = strchr(text, '/'), *description = source ? strchr(source + 1, '/') : NULL;

    if (!description)
        return;
    daemon_functions->get_value(context, VAR_FILE_INDEX, &event.file_index);
    snprintf(event.source, sizeof event.source, "%.*s", (int)(description - source - 1), source + 1);
    snprintf(event.description, sizeof event.description, "%s", description + 1);
    trace(context, "AddFileEvent index=%d rc=%d", event.file_index,
          daemon_functions->add_file_event(context, &event));
}

static int open_data(struct state *state, struct io_pkt *io)
{
    bool writes = (io->flags & O_ACCMODE) == O_WRONLY;

    io->status = number_of(state->file, "openstatus", 0);
    io->io_errno = number_of(state->file, writes ? "wopenerrno" : "openerrno", 0);
    if (io->io_errno)
        io->status = -1;
    if (writes && io->status >= 0) {
        state->output = open(io->fname, io->flags, io->mode);
        io->io_errno = errno;
        io->status = state->output;
    }
    return number_of(state->file, "openrc", RC_OK);
}

/* As plugins do that know only then what belongs to an application. */
static void begin_include(struct bp_context *context, const char *path)
{
    int begun = daemon_functions->new_include(context), options = daemon_functions->add_options(context, "M");

    trace(context, "NewInclude rc=%d AddOptions rc=%d AddInclude %s rc=%d", begun, options, quoted(path),
          daemon_functions->add_include(context, path));
}

static int read_data(struct bp_context *context, struct state *state, struct io_pkt *io)
{
    long block = number_of(state->file, "block", io->count);
    long step = number_of(state->file, "offsets", 0);
    long left = state->length - state->at;

    if (!state->at && left && text_of(state->file, "include"))
        begin_include(context, text_of(state->file, "include"));
    if (block > io->count)
        block = io->count;
    io->offset = step ? state->at / block * step : state->at;
    io->status = left < block ? left : block;
    if (state->at && text_of(state->file, "readerrno")) {
        io->status = -1;
        io->io_errno = number_of(state->file, "readerrno", 0);
        return number_of(state->file, "readrc", RC_OK);
    }
    memcpy(io->buf, state->content + state->at, io->status);
    state->at += io->status;
    return number_of(state->file, "readrc", RC_OK);
}

static int write_data(struct state *state, struct io_pkt *io)
{
    io->status = state->output < 0 ? io->count : (int)write(state->output, io->buf, io->count);
    if (text_of(state->file, "writeshort"))
        io->status = io->count - 1;
    if (text_of(state->file, "writeerrno")) {
        io->status = -1;
        io->io_errno = number_of(state->file, "writeerrno", 0);
    }
    return number_of(state->file, "writerc", RC_OK);
}

static int close_data(struct bp_context *context, struct state *state, struct io_pkt *io)
{
    const char *event;
    int from = 0;

    if (state->output >= 0) {
        close(state->output);
        state->output = -1;
    } else {
        while ((event = next_value(state->file, "event", &from)))
            add_file_event(context, event);
    }
    io->status = number_of(state->file, "closestatus", 0);
    return number_of(state->file, "closerc", RC_OK);
}

static int plugin_io(struct bp_context *context, struct io_pkt *io)
{
    struct state *state = state_of(context);
    int rc = RC_ERROR;

    switch (io->func) {
    case IO_OPEN:
        trace(context, "open size=%d/%d fname=%s flags=%o mode=%o status=%d lerror=%d win32=%d",
              io->pkt_size, io->pkt_end, quoted(io->fname), io->flags, io->mode, io->status, io->lerror, io->win32);
        return open_data(state, io);
    case IO_READ:
        rc = read_data(context, state, io);
        trace(context, "read size=%d/%d count=%d gives %d", io->pkt_size, io->pkt_end, io->count, io->status);
        return rc;
    case IO_WRITE:
        trace(context, "write size=%d/%d count=%d %s", io->pkt_size, io->pkt_end, io->count,
              block_text(io->buf, io->count));
        return write_data(state, io);
    case IO_SEEK:
        trace(context, "seek size=%d/%d offset=%lld whence=%d", io->pkt_size, io->pkt_end,
              (long long)io->offset, io->whence);
        io->status = state->output < 0 || lseek(state->output, io->offset, io->whence) >= 0 ? 0 : -1;
        return RC_OK;
    case IO_CLOSE:
        trace(context, "close size=%d/%d", io->pkt_size, io->pkt_end);
        return close_data(context, state, io);
    default:
        trace(context, "io function %d", io->func);
        return rc;
    }
}

static int check_file(struct bp_context *context, char *fname)
{
    struct state *state = state_of(context);
    int rc = RC_OK;

    for (int at = 0; at < state->steps.count; at++)
        if (text_of(&state->steps.step[at], "checkfile")
            && !strcmp(text_of(&state->steps.step[at], "checkfile"), fname))
            rc = RC_SEEN;
    trace(context, "checkFile %s gives %d", quoted(fname), rc);
    return rc;
}

static int handle_xacl_data(struct bp_context *context, struct xacl_pkt *packet)
{
    struct state *state = state_of(context);
    bool is_acl = packet->func == XACL_ACL_BACKUP;
    int from = 0;
    const char *text = NULL;

    if (packet->func == XACL_ACL_RESTORE || packet->func == XACL_XATTR_RESTORE) {
        trace(context, "xacl size=%d/%d func=%d %s", packet->pkt_size, packet->pkt_end, packet->func,
              block_text(packet->content, packet->count));
        return number_of(state->file, "xaclrestorerc", RC_OK);
    }
    for (int skip = 0; skip <= state->xacls[packet->func]; skip++)
        text = next_value(state->file, is_acl ? "acl" : "xattr", &from);
    state->xacls[packet->func]++;
    packet->content = (char *)text;
    packet->count = text ? strlen(text) : 0;
    trace(context, "xacl size=%d/%d func=%d gives %d", packet->pkt_size, packet->pkt_end, packet->func, packet->count);
    return number_of(state->file, is_acl ? "aclrc" : "xattrrc", RC_OK);
}

static int restore_file_list(struct bp_context *context, struct restore_filelist_pkt *packet)
{
    if (packet)
        trace(context,
              "restoreFileList size=%d/%d index=%d link_fi=%d attr_ex=%s ofname=%s delta=%u chksum=%s stat=%s",
              packet->pkt_size, packet->pkt_end, packet->file_index, packet->link_fi,
              quoted(packet->attr_ex), quoted(packet->ofname), packet->delta_seq,
              quoted(packet->chksum), stat_text(&packet->statp));
    else
        trace(context, "restoreFileList -");
    return RC_OK;
}

static int check_stream(struct bp_context *context, struct stream_pkt *packet)
{
    struct state *state = state_of(context);

    trace(context, "checkStream size=%d/%d stream=%d", packet->pkt_size, packet->pkt_end, packet->stream);
    packet->stream |= number_of(state->file, "streamword", 0);
    return number_of(state->file, "streamrc", RC_OK);
}

/* `N` gives N results, `error` an error, all else itself. */
static int query_parameter(struct bp_context *context, struct query_pkt *query)
{
    static __thread char answer[300];
    static __thread int told;
    int wanted = atoi(query->parameter);

    trace(context, "queryParameter size=%d/%d parameter=%s command=%s options=%s", query->pkt_size, query->pkt_end,
          quoted(query->parameter), quoted(query->command), quoted(query->api_opts));
    query->result = answer;
    if (!strcmp(query->parameter, "error"))
        return RC_ERROR;
    snprintf(answer, sizeof answer, "%s=%d\n", query->parameter, told);
    if (++told < wanted)
        return RC_MORE;
    told = 0;
    return RC_OK;
}

static int metadata_restore(struct bp_context *context, struct meta_pkt *packet)
{
    struct state *state = state_of(context);

    trace(context, "metadataRestore decoded=%d total=%u count=%u type=%d index=%u %s", packet->decoded, packet->total_size,
          packet->total_count, packet->type, packet->index, block_text(packet->buf, packet->buf_len));
    return number_of(state->file, "metarc", RC_OK);
}

static struct p_funcs functions = {
    sizeof(struct p_funcs), FD_PLUGIN_VERSION, new_plugin, free_plugin, value, value, handle_event,
    start_backup_file, end_backup_file, start_restore_file, end_restore_file, plugin_io, create_file,
    set_file_attributes, check_file, handle_xacl_data, restore_file_list, check_stream,
    query_parameter, metadata_restore, NULL, NULL,
};

DEFINE_PLUGIN(NAME, "9", functions)
