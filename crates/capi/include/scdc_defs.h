/* The SCDC interface: constants and types. Programs include scdc.h. */
#ifndef __SCDC_DEFS_H__
#define __SCDC_DEFS_H__

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With HAVE_SCDC_DEPRECATED=1 the fields of inputs and outputs have their old names; they are the same otherwise. */
#if defined(HAVE_SCDC_DEPRECATED) && HAVE_SCDC_DEPRECATED
#define SCDC_DEPRECATED 1
#else
#define SCDC_DEPRECATED 0
#endif
#define SCDC_DEBUG 0

/* Integers. */
typedef long long scdcint_t;
#define scdcint_fmt "lld"
#define scdcint_const(_c_) _c_##LL
#ifdef __cplusplus
#define scdcint_cast(_v_) static_cast<scdcint_t>(_v_)
#define SCDC_NULL 0
#else
#define scdcint_cast(_v_) ((scdcint_t) (_v_))
#define SCDC_NULL ((void *) 0)
#endif
#define scdcint_min (-0x7fffffffffffffffLL - 1)
#define scdcint_max 0x7fffffffffffffffLL
#define SCDCINT_IS_LONG_LONG 1

/* What functions return. */
#define SCDC_SUCCESS scdcint_cast(1)
#define SCDC_FAILURE scdcint_cast(0)

/* What hooks and next functions say. */
#define SCDC_RESULT_STR_MIN_SIZE 512
typedef struct _scdc_result_t {
    scdcint_t size; /* bytes of str */
    char str[SCDC_RESULT_STR_MIN_SIZE];
} scdc_result_t;
#define SCDC_RESULT_INIT_EMPTY {SCDC_RESULT_STR_MIN_SIZE, {'\0'}}
#define SCDC_RESULT_EXTENT(_s_) (offsetof(scdc_result_t, str) + (_s_))
#define SCDC_RESULT_SIZE(_r_) (_r_)->size
#define SCDC_RESULT_STR(_r_) (_r_)->str
#define SCDC_RESULT_SET_SIZE(_r_, _s_) (SCDC_RESULT_SIZE(_r_) = (_s_))
#define SCDC_RESULT_SET_EMPTY(_r_) (SCDC_RESULT_STR(_r_)[0] = '\0')
#define SCDC_RESULT_SET_STR(_r_, _s_) (strncpy(SCDC_RESULT_STR(_r_), (_s_), SCDC_RESULT_SIZE(_r_) - 1))
#define SCDC_RESULT_SET_STR_N(_r_, _s_, _n_) \
    (strncpy(SCDC_RESULT_STR(_r_), (_s_), (SCDC_RESULT_SIZE(_r_) - 1 < (_n_)) ? SCDC_RESULT_SIZE(_r_) - 1 : (_n_)))

/* Inputs and outputs. */
#define SCDC_FORMAT_MAX_SIZE 16
#define SCDC_DATASET_INOUT_BUF_MULTIPLE 1
#define SCDC_DATASET_INOUT_TOTAL_SIZE_GIVEN_EXACT 'x'
#define SCDC_DATASET_INOUT_TOTAL_SIZE_GIVEN_AT_LEAST 'l'
#define SCDC_DATASET_INOUT_TOTAL_SIZE_GIVEN_AT_MOST 'm'
#define SCDC_DATASET_INOUT_TOTAL_SIZE_GIVEN_NONE 'n'

typedef struct _scdc_dataset_inout_t scdc_dataset_inout_t;
typedef struct _scdc_dataset_inout_intern_t scdc_dataset_inout_intern_t;
typedef scdcint_t scdc_dataset_inout_next_f(scdc_dataset_inout_t *inout, scdc_result_t *result);

/* A buffer; with sizes below 0 an array of so many buffers. */
typedef struct _scdc_buf_t {
    void *ptr;
    scdcint_t size;    /* its bytes */
    scdcint_t current; /* bytes of data in it */
} scdc_buf_t;

struct _scdc_dataset_inout_t {
    char format[SCDC_FORMAT_MAX_SIZE]; /* what kind of data it is */
#if SCDC_DEPRECATED
    void *buf;
    scdcint_t buf_size;
    scdcint_t current_size;
#else
    scdc_buf_t buf; /* the data, or a piece of it */
#endif
    scdcint_t total_size;            /* of the whole, as far as it is known */
    char total_size_given;           /* how that is meant: SCDC_DATASET_INOUT_TOTAL_SIZE_GIVEN_… */
    scdc_dataset_inout_next_f *next; /* gives the next piece, or takes one; NULL at the end */
    void *data;                      /* the program's */
    scdc_dataset_inout_intern_t *intern;
    void *intern_data; /* the library's */
};
typedef scdc_dataset_inout_t scdc_dataset_input_t;
typedef scdc_dataset_inout_t scdc_dataset_output_t;

#if SCDC_DEPRECATED
#define SCDC_DATASET_INOUT_BUF_PTR(_i_) (_i_)->buf
#define SCDC_DATASET_INOUT_BUF_SIZE(_i_) (_i_)->buf_size
#define SCDC_DATASET_INOUT_BUF_CURRENT(_i_) (_i_)->current_size
#else
#define SCDC_DATASET_INOUT_BUF_PTR(_i_) (_i_)->buf.ptr
#define SCDC_DATASET_INOUT_BUF_SIZE(_i_) (_i_)->buf.size
#define SCDC_DATASET_INOUT_BUF_CURRENT(_i_) (_i_)->buf.current
#endif
#define SCDC_DATASET_INOUT_BUF_SET_P(_i_, _p_) (SCDC_DATASET_INOUT_BUF_PTR(_i_) = (_p_))
#define SCDC_DATASET_INOUT_BUF_SET_S(_i_, _s_) (SCDC_DATASET_INOUT_BUF_SIZE(_i_) = (_s_))
#define SCDC_DATASET_INOUT_BUF_SET_C(_i_, _c_) (SCDC_DATASET_INOUT_BUF_CURRENT(_i_) = (_c_))
#define SCDC_DATASET_INOUT_BUF_GET_P(_i_) \
    ((SCDC_DATASET_INOUT_BUF_SIZE(_i_) < 0) ? SCDC_NULL : SCDC_DATASET_INOUT_BUF_PTR(_i_))
#define SCDC_DATASET_INOUT_BUF_GET_S(_i_) \
    ((SCDC_DATASET_INOUT_BUF_SIZE(_i_) < 0) ? 0 : SCDC_DATASET_INOUT_BUF_SIZE(_i_))
#define SCDC_DATASET_INOUT_BUF_GET_C(_i_) \
    ((SCDC_DATASET_INOUT_BUF_CURRENT(_i_) < 0) ? 0 : SCDC_DATASET_INOUT_BUF_CURRENT(_i_))
#define SCDC_DATASET_INOUT_BUF_SET(_i_, _p_, _s_, _c_) \
    (SCDC_DATASET_INOUT_BUF_SET_P(_i_, _p_), SCDC_DATASET_INOUT_BUF_SET_S(_i_, _s_), SCDC_DATASET_INOUT_BUF_SET_C(_i_, _c_))
#define SCDC_DATASET_INOUT_BUF_ASSIGN(_i_, _j_) \
    SCDC_DATASET_INOUT_BUF_SET(_i_, SCDC_DATASET_INOUT_BUF_GET_P(_j_), SCDC_DATASET_INOUT_BUF_GET_S(_j_), \
                               SCDC_DATASET_INOUT_BUF_GET_C(_j_))

/* Several buffers: their numbers stand, negated, where one buffer has its sizes. */
#define SCDC_DATASET_INOUT_MBUF_ISSET(_i_) (SCDC_DATASET_INOUT_BUF_SIZE(_i_) < 0)
#define SCDC_DATASET_INOUT_MBUF_SET_P(_i_, _p_) (SCDC_DATASET_INOUT_BUF_PTR(_i_) = (_p_))
#define SCDC_DATASET_INOUT_MBUF_SET_S(_i_, _s_) (SCDC_DATASET_INOUT_BUF_SIZE(_i_) = -(_s_))
#define SCDC_DATASET_INOUT_MBUF_SET_C(_i_, _c_) (SCDC_DATASET_INOUT_BUF_CURRENT(_i_) = -(_c_))
#define SCDC_DATASET_INOUT_MBUF_GET_P(_i_) \
    (SCDC_DATASET_INOUT_MBUF_ISSET(_i_) ? SCDC_DATASET_INOUT_BUF_PTR(_i_) : SCDC_NULL)
#define SCDC_DATASET_INOUT_MBUF_GET_S(_i_) (SCDC_DATASET_INOUT_MBUF_ISSET(_i_) ? -SCDC_DATASET_INOUT_BUF_SIZE(_i_) : 0)
#define SCDC_DATASET_INOUT_MBUF_GET_C(_i_) (SCDC_DATASET_INOUT_MBUF_ISSET(_i_) ? -SCDC_DATASET_INOUT_BUF_CURRENT(_i_) : 0)
#define SCDC_DATASET_INOUT_MBUF_SET(_i_, _p_, _s_, _c_) \
    (SCDC_DATASET_INOUT_MBUF_SET_P(_i_, _p_), SCDC_DATASET_INOUT_MBUF_SET_S(_i_, _s_), \
     SCDC_DATASET_INOUT_MBUF_SET_C(_i_, _c_))
/* _b_: the bytes of the memory for the array at _p_ */
#define SCDC_DATASET_INOUT_MBUF_INIT(_i_, _p_, _b_) \
    SCDC_DATASET_INOUT_MBUF_SET(_i_, _p_, ((scdcint_t) (_b_)) / ((scdcint_t) sizeof(scdc_buf_t)), 0)
#define SCDC_DATASET_INOUT_MBUF_M(_i_, _m_) (&((scdc_buf_t *) SCDC_DATASET_INOUT_BUF_PTR(_i_))[_m_])
#define SCDC_DATASET_INOUT_MBUF_M_PTR(_i_, _m_) SCDC_DATASET_INOUT_MBUF_M(_i_, _m_)->ptr
#define SCDC_DATASET_INOUT_MBUF_M_SIZE(_i_, _m_) SCDC_DATASET_INOUT_MBUF_M(_i_, _m_)->size
#define SCDC_DATASET_INOUT_MBUF_M_CURRENT(_i_, _m_) SCDC_DATASET_INOUT_MBUF_M(_i_, _m_)->current
#define SCDC_DATASET_INOUT_MBUF_M_SET(_i_, _m_, _p_, _s_, _c_) \
    (SCDC_DATASET_INOUT_MBUF_M_PTR(_i_, _m_) = (_p_), SCDC_DATASET_INOUT_MBUF_M_SIZE(_i_, _m_) = (_s_), \
     SCDC_DATASET_INOUT_MBUF_M_CURRENT(_i_, _m_) = (_c_))

#define scdc_dataset_inout_next(_i_, _r_) (_i_)->next(_i_, _r_)

/* Hooks: what a program answers commands with. All but dataset_cmd may be NULL. */
typedef void *scdc_dataprov_hook_open_f(const char *conf, va_list ap);
typedef scdcint_t scdc_dataprov_hook_close_f(void *dataprov);
typedef scdcint_t scdc_dataprov_hook_config_f(void *dataprov, const char *cmd, const char *param, const char *val,
                                              scdcint_t val_size, scdc_result_t *result);
typedef void *scdc_dataprov_hook_dataset_open_f(void *dataprov, const char *path, scdc_result_t *result);
typedef scdcint_t scdc_dataprov_hook_dataset_close_f(void *dataprov, void *dataset, scdc_result_t *result);
typedef scdcint_t scdc_dataprov_hook_dataset_close_write_state_f(void *dataprov, void *dataset, void *state,
                                                                 scdcint_t state_size, scdc_result_t *result);
typedef void *scdc_dataprov_hook_dataset_open_read_state_f(void *dataprov, const void *state, scdcint_t state_size,
                                                           scdc_result_t *result);
typedef scdcint_t scdc_dataprov_hook_dataset_cmd_f(void *dataprov, void *dataset, const char *cmd, const char *params,
                                                   scdc_dataset_input_t *input, scdc_dataset_output_t *output,
                                                   scdc_result_t *result);
typedef struct _scdc_dataprov_hook_t {
    scdc_dataprov_hook_open_f *open;
    scdc_dataprov_hook_close_f *close;
    scdc_dataprov_hook_config_f *config;
    scdc_dataprov_hook_dataset_open_f *dataset_open;
    scdc_dataprov_hook_dataset_close_f *dataset_close;
    scdc_dataprov_hook_dataset_close_write_state_f *dataset_close_write_state;
    scdc_dataprov_hook_dataset_open_read_state_f *dataset_open_read_state;
    scdc_dataprov_hook_dataset_cmd_f *dataset_cmd;
} scdc_dataprov_hook_t;

/* How a node port is started. */
#define SCDC_NODEPORT_START_NONE 0x0
#define SCDC_NODEPORT_START_LOOP_UNTIL_CANCEL 0x1
#define SCDC_NODEPORT_START_LOOP_UNTIL_IDLE 0x2
#define SCDC_NODEPORT_START_ASYNC_UNTIL_CANCEL 0x4
#define SCDC_NODEPORT_START_ASYNC_UNTIL_IDLE 0x8

typedef scdcint_t scdc_handler_f(void *data);
typedef scdcint_t scdc_log_handler_f(void *data, const char *buf, scdcint_t buf_size);
typedef scdcint_t scdc_nodeport_cmd_handler_f(void *data, const char *cmd, const char *params, scdcint_t params_size);
typedef scdcint_t scdc_nodeport_timer_handler_f(void *data);
typedef scdcint_t scdc_nodeport_loop_handler_f(void *data, scdcint_t l);

#ifdef __cplusplus
}
#endif

#endif
