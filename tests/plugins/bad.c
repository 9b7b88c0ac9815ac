/*
 * A plugin that must not be loaded: built with another magic, version, license or size, with
 * -DREFUSES (loadPlugin fails), -DHANGS (it does not return), -DNO_LOAD or -DNO_UNLOAD (a symbol is missing). Its unloadPlugin
 * makes a file, so that a test sees that it was called.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "support.h"

#ifndef LOADED
#define LOADED loadPlugin
#endif

static struct p_info bad_information = {
#ifdef BAD_SIZE
    BAD_SIZE,
#else
    sizeof(struct p_info),
#endif
    INFO_VERSION, INFO_MAGIC, INFO_LICENSE, "ferrofd", "2026", "1", "A plugin that is not loaded",
};

static int refuses(struct bp_context *context)
{
    (void)context;
    return RC_ERROR;
}

static struct p_funcs functions = {.size = sizeof(struct p_funcs), .version = FD_PLUGIN_VERSION,
                                   .new_plugin = refuses, .free_plugin = refuses};

int LOADED(struct b_info *info, struct b_funcs *offered, struct p_info **own_info, struct p_funcs **own_functions)
{
    daemon_functions = offered;
    *own_info = &bad_information;
    *own_functions = &functions;
#ifdef REFUSES
    return RC_ERROR;
#endif
#ifdef HANGS
    char path[1200];
    snprintf(path, sizeof path, "%s/hangs." MARK, getenv("PLUGIN_TRACE"));
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    for (;;)
        pause();
#endif
    return info->version == FD_PLUGIN_VERSION ? RC_OK : RC_ERROR;
}

#ifndef NO_UNLOAD
int unloadPlugin(void)
{
    const char *folder = getenv("PLUGIN_TRACE");
    char path[1200];

    snprintf(path, sizeof path, "%s/unloaded." MARK, folder ? folder : "/nowhere");
    int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor >= 0)
        close(descriptor);
    return RC_OK;
}
#endif
