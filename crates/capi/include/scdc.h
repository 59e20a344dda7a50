/* The SCDC interface over Sluice: services and clients in a program. What the functions do, and where that differs from
 * the SCDC library, stands in docs/C-API.md. Link with -lsluice_c, or with what `pkg-config --libs scdc` says. */
#ifndef __SCDC_H__
#define __SCDC_H__

#include "scdc_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What this library was built with: none of it is. */
extern const scdcint_t SCDC_USE_ZLIB, SCDC_USE_MYSQL, SCDC_USE_MPI, SCDC_USE_WEBDAV, SCDC_USE_NFS;

#define SCDC_INIT_DEFAULT ""
scdcint_t scdc_init(const char *conf, ...);
void scdc_release(void);

/* What the thread's last call said, or why it failed; valid until its next. */
const char *scdc_last_result(void);

/* "log_handler" (function, pointer, function, pointer), "log_FILE" (FILE *, FILE *), "log_filepath" (path) */
scdcint_t scdc_log_init(const char *conf, ...);
void scdc_log_release(void);

/* "access:fs" (directory), "store:fs" (directory), "access:mem", "store:mem", "hook" (scdc_dataprov_hook_t *, …), "relay" */
typedef void *scdc_dataprov_t;
#define scdc_dataprov_fmt "p"
#define SCDC_DATAPROV_NULL SCDC_NULL
scdc_dataprov_t scdc_dataprov_open(const char *base_path, const char *conf, ...);
void scdc_dataprov_close(scdc_dataprov_t dataprov);

/* "direct" (name), "uds[:socketname][:socketfile]" (text each), "tcp[:port]" (int); ":max_connections" (int) */
typedef void *scdc_nodeport_t;
#define scdc_nodeport_fmt "p"
#define SCDC_NODEPORT_NULL SCDC_NULL
scdc_nodeport_t scdc_nodeport_open(const char *conf, ...);
void scdc_nodeport_close(scdc_nodeport_t nodeport);
scdcint_t scdc_nodeport_start(scdc_nodeport_t nodeport, scdcint_t mode);
scdcint_t scdc_nodeport_stop(scdc_nodeport_t nodeport);
scdcint_t scdc_nodeport_cancel(scdc_nodeport_t nodeport, scdcint_t interrupt);
const char *scdc_nodeport_authority(const char *conf, ...);
scdcint_t scdc_nodeport_supported(const char *uri, ...);

/* %s in an address is replaced by a further parameter. */
typedef struct _scdc_dataset_t *scdc_dataset_t;
#define scdc_dataset_fmt "p"
#ifdef __cplusplus
#define SCDC_DATASET_NULL 0
#else
#define SCDC_DATASET_NULL ((scdc_dataset_t) 0)
#endif
scdc_dataset_t scdc_dataset_open(const char *uri, ...);
void scdc_dataset_close(scdc_dataset_t dataset);
scdcint_t scdc_dataset_cmd(scdc_dataset_t dataset, const char *cmd, scdc_dataset_input_t *input,
                           scdc_dataset_output_t *output, ...);

void scdc_dataset_input_unset(scdc_dataset_input_t *input);
void scdc_dataset_output_unset(scdc_dataset_output_t *output);
void scdc_dataset_input_print(scdc_dataset_input_t *input);
void scdc_dataset_output_print(scdc_dataset_output_t *output);

#define scdc_dataset_input_next(_i_, _r_) scdc_dataset_inout_next(_i_, _r_)
#define scdc_dataset_output_next(_o_, _r_) scdc_dataset_inout_next(_o_, _r_)
scdcint_t scdc_dataset_inout_next_loop(scdc_dataset_inout_t *inout, scdc_result_t *result);
#define scdc_dataset_input_next_loop(_i_, _r_) scdc_dataset_inout_next_loop(_i_, _r_)
#define scdc_dataset_output_next_loop(_o_, _r_) scdc_dataset_inout_next_loop(_o_, _r_)

/* "none", "fd" (int), "fddup" (int), "stream" (FILE *), "file" (path), "produce", "consume"; then ":offset", ":size"
 * (scdcint_t each) in the order of the parameters */
scdc_dataset_input_t *scdc_dataset_input_create(scdc_dataset_input_t *input, const char *conf, ...);
void scdc_dataset_input_destroy(scdc_dataset_input_t *input);
scdc_dataset_output_t *scdc_dataset_output_create(scdc_dataset_output_t *output, const char *conf, ...);
void scdc_dataset_output_destroy(scdc_dataset_output_t *output);

/* "to:output" (output), "from:input" (input); "to:" or "from:" and what can be created */
scdcint_t scdc_dataset_input_redirect(scdc_dataset_input_t *input, const char *conf, ...);
scdcint_t scdc_dataset_output_redirect(scdc_dataset_output_t *output, const char *conf, ...);

#ifdef __cplusplus
}
#endif

#endif
