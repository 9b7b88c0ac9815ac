/*
 * The interface between a File Daemon of Bacula 15.0.3 and its plugins (version 23), written for
 * ferrofd's tests from the sizes and offsets of docs/reference/07-plugins-snapshots.md, section 3.
 * x86-64, System V.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#ifndef FD_PLUGIN_H
#define FD_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define FD_PLUGIN_MAGIC "*FDPluginData*"
#define FD_PLUGIN_VERSION 23

/* Return codes (3.2). */
enum rc {
    RC_OK = 0, RC_STOP = 1, RC_ERROR = 2, RC_MORE = 3, RC_TERM = 4, RC_SEEN = 5, RC_CORE = 6,
    RC_SKIP = 7, RC_CANCEL = 8, RC_MAX = 9999
};

enum io_func { IO_OPEN = 1, IO_READ = 2, IO_WRITE = 3, IO_CLOSE = 4, IO_SEEK = 5 };

enum xacl_func {
    XACL_ACL_BACKUP = 1, XACL_ACL_RESTORE = 2, XACL_XATTR_BACKUP = 3, XACL_XATTR_RESTORE = 4
};

enum create_status { CF_SKIP = 1, CF_ERROR = 2, CF_EXTRACT = 3, CF_CREATED = 4, CF_CORE = 5 };

enum meta_type { META_INVALID = -1, META_BLOB = 0, META_CATALOG_EMAIL = 1 };

enum message_type {
    M_ABORT = 1, M_DEBUG = 2, M_EVENTS = 3, M_FATAL = 4, M_ERROR = 5, M_WARNING = 6, M_INFO = 7,
    M_SAVED = 8, M_NOTSAVED = 9, M_SKIPPED = 10, M_RESTORED = 14, M_SECURITY = 15, M_ALERT = 16
};

enum file_type {
    FT_LNKSAVED = 1, FT_REGE = 2, FT_REG = 3, FT_LNK = 4, FT_DIREND = 5, FT_SPEC = 6,
    FT_NOACCESS = 7, FT_NOFOLLOW = 8, FT_NOSTAT = 9, FT_NOCHG = 10, FT_DIRNOCHG = 11, FT_ISARCH = 12,
    FT_NORECURSE = 13, FT_NOFSCHG = 14, FT_NOOPEN = 15, FT_RAW = 16, FT_FIFO = 17, FT_DIRBEGIN = 18,
    FT_INVALIDFS = 19, FT_INVALIDDT = 20, FT_REPARSE = 21, FT_PLUGIN = 22, FT_DELETED = 23,
    FT_BASE = 24, FT_RESTORE_FIRST = 25, FT_JUNCTION = 26, FT_PLUGIN_CONFIG = 27,
    FT_PLUGIN_CONFIG_FILLED = 28, FT_PLUGIN_OBJECT = 29, FT_SECURITY_OBJECT = 30
};

#define FO_SPARSE (1ULL << 5)
#define FO_PORTABLE (1ULL << 10)
#define FO_DELTA (1ULL << 28)
#define FO_OFFSETS (1ULL << 30)

enum variable {
    VAR_JOB_ID = 1, VAR_FD_NAME = 2, VAR_LEVEL = 3, VAR_TYPE = 4, VAR_CLIENT = 5, VAR_JOB_NAME = 6,
    VAR_JOB_STATUS = 7, VAR_SINCE_TIME = 8, VAR_ACCURATE = 9, VAR_FILE_SEEN = 10,
    VAR_VSS_OBJECT = 11, VAR_VSS_DLL_HANDLE = 12, VAR_WORKING_DIR = 13, VAR_PLUGIN_DIR = 14,
    VAR_WHERE = 15, VAR_REGEX_WHERE = 16, VAR_EXE_PATH = 17, VAR_VERSION = 18, VAR_DIST_NAME = 19,
    VAR_PREV_JOB_NAME = 20, VAR_PREFIX_LINKS = 21, VAR_INTERACTIVE_SESSION = 22,
    VAR_FILE_INDEX = 23, VAR_REPLACE = 24, VAR_MAX_DEDUP_BLOCK_SIZE = 25,
    VAR_MIN_DEDUP_BLOCK_SIZE = 26, VAR_IS_CANCELED = 27, VAR_SYS_CONFIG_PATH = 28,
    VAR_ESTIMATE = 29
};

enum event_type {
    EVENT_JOB_START = 1, EVENT_JOB_END = 2, EVENT_START_BACKUP_JOB = 3, EVENT_END_BACKUP_JOB = 4,
    EVENT_START_RESTORE_JOB = 5, EVENT_END_RESTORE_JOB = 6, EVENT_START_VERIFY_JOB = 7,
    EVENT_END_VERIFY_JOB = 8, EVENT_BACKUP_COMMAND = 9, EVENT_RESTORE_COMMAND = 10,
    EVENT_ESTIMATE_COMMAND = 11, EVENT_LEVEL = 12, EVENT_SINCE = 13, EVENT_CANCEL_COMMAND = 14,
    EVENT_RESTORE_OBJECT = 18, EVENT_END_FILE_SET = 19, EVENT_PLUGIN_COMMAND = 20,
    EVENT_OPTION_PLUGIN = 23, EVENT_HANDLE_BACKUP_FILE = 24, EVENT_COMPONENT_INFO = 25,
    EVENT_FEATURES = 26, EVENT_VERIFY_STREAM = 27, EVENT_PLUGIN_OPTIONS = 28
};

struct bp_context {
    void *daemon;
    void *plugin;
};

struct b_info {
    uint32_t size;
    uint32_t version;
};

struct b_event {
    uint32_t type;
};

struct p_info {
    uint32_t size;
    uint32_t version;
    const char *magic;
    const char *license;
    const char *author;
    const char *date;
    const char *plugin_version;
    const char *description;
};

struct restore_object_pkt {
    int32_t pkt_size;
    char *object_name;
    char *object;
    char *plugin_name;
    int32_t object_type;
    int32_t object_len;
    int32_t object_full_len;
    int32_t object_index;
    int32_t object_compression;
    int32_t stream;
    uint32_t job_id;
    int32_t pkt_end;
};

struct stream_pkt {
    int32_t pkt_size;
    int32_t stream;
    int32_t pkt_end;
};

struct restore_object {
    char *object_name;
    char *object;
    int32_t object_len;
    int32_t index;
    int32_t object_compression;
};

struct plugin_object {
    char *path;
    char *plugin_name;
    char *object_category;
    char *object_type;
    char *object_name;
    char *object_source;
    char *object_uuid;
    uint64_t object_size;
    int32_t status;
    uint32_t count;
};

/* What the daemon hands back at a restore. */
struct meta_pkt {
    bool decoded;
    uint32_t total_size;
    uint16_t total_count;
    int32_t type;
    uint16_t index;
    uint32_t buf_len;
    void *buf;
};

/* The daemon's list of pointers. */
struct pointer_list {
    void **items;
    int32_t num_items;
    int32_t last_item;
    int32_t max_items;
    int32_t num_grow;
    int32_t cur_item;
    bool own_items;
};

struct plugin_metadata {
    uint32_t total_size;
    uint16_t total_count;
    struct pointer_list packets;
};

struct save_pkt {
    int32_t pkt_size;
    char *fname;
    char *snap_fname;
    int32_t plugin_mode;
    char *link;
    struct stat statp;
    int32_t type;
    uint64_t flags;
    bool no_read;
    bool portable;
    bool accurate_found;
    bool do_dedup;
    bool stat_update;
    char *cmd;
    struct restore_object restore_obj;
    struct plugin_object plugin_obj;
    struct plugin_metadata *plug_meta;
    uint32_t delta_seq;
    int32_t link_fi;
    int32_t pkt_end;
};

struct restore_pkt {
    int32_t pkt_size;
    int32_t plugin_mode;
    int32_t stream;
    int32_t data_stream;
    int32_t type;
    int32_t file_index;
    int32_t link_fi;
    uint32_t uid;
    struct stat statp;
    const char *attr_ex;
    const char *ofname;
    const char *olname;
    const char *where;
    const char *regex_where;
    int32_t replace;
    int32_t create_status;
    uint32_t delta_seq;
    int32_t pkt_end;
};

struct restore_filelist_pkt {
    int32_t pkt_size;
    int32_t plugin_mode;
    int32_t file_index;
    int32_t link_fi;
    struct stat statp;
    const char *attr_ex;
    const char *ofname;
    uint32_t delta_seq;
    const char *chksum;
    int32_t pkt_end;
};

struct io_pkt {
    int32_t pkt_size;
    int32_t func;
    int32_t count;
    int32_t flags;
    uint32_t mode;
    char *buf;
    const char *fname;
    int32_t status;
    int32_t io_errno;
    int32_t lerror;
    int32_t whence;
    int64_t offset;
    bool win32;
    int32_t pkt_end;
};

struct xacl_pkt {
    int32_t pkt_size;
    int32_t func;
    int32_t count;
    char *content;
    int32_t pkt_end;
};

struct accurate_attribs_pkt {
    char *fname;
    struct stat statp;
    char *chksum;
    int32_t delta_seq;
    bool seen;
};

struct query_pkt {
    int32_t pkt_size;
    char *parameter;
    char *command;
    char *api_opts;
    char *result;
    int32_t pkt_end;
};

struct fileevent_pkt {
    int32_t file_index;
    char type;
    int32_t severity;
    char description[128];
    char source[128];
};

/* What the daemon offers. */
struct b_funcs {
    uint32_t size;
    uint32_t version;
    int (*register_events)(struct bp_context *, ...);
    int (*get_value)(struct bp_context *, int variable, void *value);
    int (*set_value)(struct bp_context *, int variable, void *value);
    int (*job_message)(struct bp_context *, const char *file, int line, int type, int64_t mtime,
                       const char *format, ...);
    int (*debug_message)(struct bp_context *, const char *file, int line, int level,
                         const char *format, ...);
    void *(*allocate)(struct bp_context *, const char *file, int line, size_t size);
    void (*release)(struct bp_context *, const char *file, int line, void *memory);
    int (*add_exclude)(struct bp_context *, const char *file);
    int (*add_include)(struct bp_context *, const char *file);
    int (*add_options)(struct bp_context *, const char *options);
    int (*add_regex)(struct bp_context *, const char *item, int type);
    int (*add_wild)(struct bp_context *, const char *item, int type);
    int (*new_options)(struct bp_context *);
    int (*new_include)(struct bp_context *);
    int (*new_pre_include)(struct bp_context *);
    int (*check_changes)(struct bp_context *, struct save_pkt *);
    int (*accept_file)(struct bp_context *, struct save_pkt *);
    int (*get_accurate_attribs)(struct bp_context *, struct accurate_attribs_pkt *);
    int (*add_plugin)(struct bp_context *, const char *command);
    int (*add_file_event)(struct bp_context *, struct fileevent_pkt *);
};

/* What the plugin offers. */
struct p_funcs {
    uint32_t size;
    uint32_t version;
    int (*new_plugin)(struct bp_context *);
    int (*free_plugin)(struct bp_context *);
    int (*get_plugin_value)(struct bp_context *, int variable, void *value);
    int (*set_plugin_value)(struct bp_context *, int variable, void *value);
    int (*handle_event)(struct bp_context *, struct b_event *, void *value);
    int (*start_backup_file)(struct bp_context *, struct save_pkt *);
    int (*end_backup_file)(struct bp_context *);
    int (*start_restore_file)(struct bp_context *, const char *command);
    int (*end_restore_file)(struct bp_context *);
    int (*plugin_io)(struct bp_context *, struct io_pkt *);
    int (*create_file)(struct bp_context *, struct restore_pkt *);
    int (*set_file_attributes)(struct bp_context *, struct restore_pkt *);
    int (*check_file)(struct bp_context *, char *fname);
    int (*handle_xacl_data)(struct bp_context *, struct xacl_pkt *);
    int (*restore_file_list)(struct bp_context *, struct restore_filelist_pkt *);
    int (*check_stream)(struct bp_context *, struct stream_pkt *);
    int (*query_parameter)(struct bp_context *, struct query_pkt *);
    int (*metadata_restore)(struct bp_context *, struct meta_pkt *);
    int (*start_verify_file)(struct bp_context *, struct restore_pkt *);
    int (*end_verify_file)(struct bp_context *);
};

int loadPlugin(struct b_info *, struct b_funcs *, struct p_info **, struct p_funcs **);
int unloadPlugin(void);

#define SIZE_IS(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#define AT(type, member, offset) \
    _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)

SIZE_IS(bp_context, 16);
SIZE_IS(b_info, 8);
SIZE_IS(b_event, 4);
SIZE_IS(p_info, 56);
AT(p_info, magic, 8);
AT(p_info, description, 48);
SIZE_IS(restore_object_pkt, 64);
AT(restore_object_pkt, object_name, 8);
AT(restore_object_pkt, object_type, 32);
AT(restore_object_pkt, stream, 52);
AT(restore_object_pkt, job_id, 56);
AT(restore_object_pkt, pkt_end, 60);
SIZE_IS(stream_pkt, 12);
SIZE_IS(restore_object, 32);
AT(restore_object, object_len, 16);
AT(restore_object, object_compression, 24);
SIZE_IS(plugin_object, 72);
AT(plugin_object, object_size, 56);
AT(plugin_object, status, 64);
AT(plugin_object, count, 68);
SIZE_IS(meta_pkt, 32);
AT(meta_pkt, total_size, 4);
AT(meta_pkt, total_count, 8);
AT(meta_pkt, type, 12);
AT(meta_pkt, index, 16);
AT(meta_pkt, buf_len, 20);
AT(meta_pkt, buf, 24);
SIZE_IS(pointer_list, 32);
AT(pointer_list, own_items, 28);
SIZE_IS(plugin_metadata, 40);
AT(plugin_metadata, packets, 8);
_Static_assert(sizeof(struct stat) == 144, "stat");
SIZE_IS(save_pkt, 344);
AT(save_pkt, fname, 8);
AT(save_pkt, snap_fname, 16);
AT(save_pkt, link, 32);
AT(save_pkt, statp, 40);
AT(save_pkt, type, 184);
AT(save_pkt, flags, 192);
AT(save_pkt, no_read, 200);
AT(save_pkt, stat_update, 204);
AT(save_pkt, cmd, 208);
AT(save_pkt, restore_obj, 216);
AT(save_pkt, plugin_obj, 248);
AT(save_pkt, plug_meta, 320);
AT(save_pkt, delta_seq, 328);
AT(save_pkt, link_fi, 332);
AT(save_pkt, pkt_end, 336);
SIZE_IS(restore_pkt, 232);
AT(restore_pkt, uid, 28);
AT(restore_pkt, statp, 32);
AT(restore_pkt, attr_ex, 176);
AT(restore_pkt, ofname, 184);
AT(restore_pkt, regex_where, 208);
AT(restore_pkt, replace, 216);
AT(restore_pkt, create_status, 220);
AT(restore_pkt, pkt_end, 228);
SIZE_IS(restore_filelist_pkt, 200);
AT(restore_filelist_pkt, statp, 16);
AT(restore_filelist_pkt, attr_ex, 160);
AT(restore_filelist_pkt, delta_seq, 176);
AT(restore_filelist_pkt, chksum, 184);
AT(restore_filelist_pkt, pkt_end, 192);
SIZE_IS(io_pkt, 72);
AT(io_pkt, buf, 24);
AT(io_pkt, fname, 32);
AT(io_pkt, status, 40);
AT(io_pkt, offset, 56);
AT(io_pkt, win32, 64);
AT(io_pkt, pkt_end, 68);
SIZE_IS(xacl_pkt, 32);
AT(xacl_pkt, content, 16);
AT(xacl_pkt, pkt_end, 24);
SIZE_IS(accurate_attribs_pkt, 168);
AT(accurate_attribs_pkt, chksum, 152);
AT(accurate_attribs_pkt, seen, 164);
SIZE_IS(query_pkt, 48);
AT(query_pkt, result, 32);
AT(query_pkt, pkt_end, 40);
SIZE_IS(fileevent_pkt, 268);
AT(fileevent_pkt, severity, 8);
AT(fileevent_pkt, description, 12);
AT(fileevent_pkt, source, 140);
SIZE_IS(b_funcs, 168);
AT(b_funcs, job_message, 32);
AT(b_funcs, check_changes, 128);
AT(b_funcs, add_file_event, 160);
SIZE_IS(p_funcs, 168);
AT(p_funcs, handle_event, 40);
AT(p_funcs, plugin_io, 80);
AT(p_funcs, check_stream, 128);
AT(p_funcs, end_verify_file, 160);

#endif
