/* Services and clients by scdc.h: `scdc_check serve SOCKET` answers hooks and files until its input ends;
 * `scdc_check use URI` gives commands to them; `scdc_check direct` does both in one process. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scdc.h"

static int wrong;

#define EXPECT(what) \
    do { \
        if (!(what)) { \
            printf("line %d: %s is not so; %s\n", __LINE__, #what, scdc_last_result()); \
            wrong = 1; \
        } \
    } while (0)

/* ---- hooks: a counter that can echo, sum and count ---- */

struct counter {
    long value;
};

static int datasets_open;

static void *counter_open(const char *conf, va_list ap)
{
    int first = va_arg(ap, int);
    const char *second = va_arg(ap, const char *);
    double third = va_arg(ap, double);
    EXPECT(strcmp(conf, "with:args") == 0 && first == 17 && strcmp(second, "two") == 0 && third == 2.5);
    return &datasets_open;
}

static scdcint_t counter_close(void *dataprov)
{
    EXPECT(dataprov == &datasets_open);
    EXPECT(datasets_open == 0);
    return SCDC_SUCCESS;
}

static scdcint_t counter_config(void *dataprov, const char *cmd, const char *param, const char *val, scdcint_t val_size,
                                scdc_result_t *result)
{
    (void) dataprov;
    if (strcmp(cmd, "put") != 0)
        return SCDC_FAILURE;
    snprintf(result->str, result->size, "%s is %.*s", param, (int) val_size, val);
    return SCDC_SUCCESS;
}

static void *counter_dataset_open(void *dataprov, const char *path, scdc_result_t *result)
{
    (void) dataprov;
    if (strcmp(path, "none") == 0) {
        SCDC_RESULT_SET_STR(result, "there is none");
        return NULL;
    }
    struct counter *counter = malloc(sizeof *counter);
    counter->value = (long) strlen(path);
    __atomic_add_fetch(&datasets_open, 1, __ATOMIC_SEQ_CST);
    return counter;
}

static scdcint_t counter_dataset_close(void *dataprov, void *dataset, scdc_result_t *result)
{
    (void) dataprov, (void) result;
    __atomic_sub_fetch(&datasets_open, 1, __ATOMIC_SEQ_CST);
    free(dataset);
    return SCDC_SUCCESS;
}

static scdcint_t next_of_count(scdc_dataset_output_t *output, scdc_result_t *result)
{
    intptr_t left = (intptr_t) output->data;
    if (left == 1000) {
        SCDC_RESULT_SET_STR(result, "a thousand is too many");
        return SCDC_FAILURE;
    }
    memset(output->buf.ptr, 'a' + (int) (left % 26), 1000);
    output->buf.current = 1000;
    output->data = (void *) (left - 1);
    output->next = left > 1 ? next_of_count : NULL;
    return SCDC_SUCCESS;
}

static scdcint_t counter_cmd(void *dataprov, void *dataset, const char *cmd, const char *params, scdc_dataset_input_t *input,
                             scdc_dataset_output_t *output, scdc_result_t *result)
{
    struct counter *counter = dataset;
    (void) dataprov;
    if (strcmp(cmd, "add") == 0) {
        counter->value += atol(params);
        snprintf(result->str, result->size, "%ld", counter->value);
        return SCDC_SUCCESS;
    }
    if (strcmp(cmd, "sum") == 0) {
        long long bytes = 0, letters = 0;
        for (;;) {
            for (scdcint_t i = 0; i < input->buf.current; i++)
                letters += ((unsigned char *) input->buf.ptr)[i];
            bytes += input->buf.current;
            if (!input->next)
                break;
            scdc_result_t why = SCDC_RESULT_INIT_EMPTY;
            if (input->next(input, &why) != SCDC_SUCCESS) {
                snprintf(result->str, result->size, "input: %.100s", why.str);
                return SCDC_FAILURE;
            }
        }
        snprintf(result->str, result->size, "%lld bytes, %lld", bytes, letters);
        return SCDC_SUCCESS;
    }
    if (strcmp(cmd, "count") == 0) {
        output->data = (void *) (intptr_t) atol(params);
        strcpy(output->format, "text");
        return next_of_count(output, result);
    }
    if (strcmp(cmd, "echo") == 0)
        return scdc_dataset_input_redirect(input, "to:output", output);
    if (strcmp(cmd, "wild") == 0) {
        output->buf.ptr = NULL;
        output->buf.size = output->buf.current = 12345;
        return SCDC_SUCCESS;
    }
    SCDC_RESULT_SET_STR(result, "what?");
    return SCDC_FAILURE;
}

static const scdc_dataprov_hook_t counter_hooks = {
    counter_open, counter_close, counter_config, counter_dataset_open, counter_dataset_close, NULL, NULL, counter_cmd,
};

/* ---- a client ---- */

#define PIECES 300
#define PIECE 7000

static scdcint_t next_piece(scdc_dataset_input_t *input, scdc_result_t *result)
{
    intptr_t left = (intptr_t) input->data;
    if (left < 0) {
        if (result)
            SCDC_RESULT_SET_STR(result, "out of paper");
        return SCDC_FAILURE;
    }
    memset(input->buf.ptr, (int) (left % 7), PIECE);
    input->buf.current = PIECE;
    input->data = (void *) (left - 1);
    if (left == 1)
        input->next = NULL;
    return SCDC_SUCCESS;
}

static char piece[PIECE];

static void pieces(scdc_dataset_input_t *input, intptr_t count)
{
    scdc_dataset_input_unset(input);
    SCDC_DATASET_INOUT_BUF_SET(input, piece, sizeof piece, 0);
    input->next = next_piece;
    input->data = (void *) count;
}

static const char *say(scdc_dataset_t dataset, const char *command)
{
    scdcint_t done = scdc_dataset_cmd(dataset, command, NULL, NULL);
    static char text[2000];
    snprintf(text, sizeof text, "%s%s", done == SCDC_SUCCESS ? "" : "FAILED ", scdc_last_result());
    return text;
}

static void use(const char *uri)
{
    scdc_dataset_input_t input;
    scdc_dataset_output_t output;
    static char buffer[5000];
    char where[1000];
    long long expected = 0;
    for (int i = 1; i <= PIECES; i++)
        expected += (long long) (i % 7) * PIECE;

    snprintf(where, sizeof where, "%s/counter/abc", uri);
    scdc_dataset_t dataset = scdc_dataset_open(where);
    EXPECT(dataset != SCDC_DATASET_NULL);
    EXPECT(strcmp(say(dataset, "add 5"), "8") == 0);
    EXPECT(strcmp(say(dataset, "add 5"), "13") == 0);
    EXPECT(strcmp(say(dataset, "dance"), "FAILED what?") == 0);
    EXPECT(strncmp(say(dataset, "wild"), "FAILED ", 7) == 0 || strcmp(say(dataset, "wild"), "") == 0);

    /* Streams in, out, and through. */
    pieces(&input, PIECES);
    EXPECT(scdc_dataset_cmd(dataset, "sum", &input, NULL) == SCDC_SUCCESS);
    snprintf(where, sizeof where, "%d bytes, %lld", PIECES * PIECE, expected);
    EXPECT(strcmp(scdc_last_result(), where) == 0);
    pieces(&input, -1);
    EXPECT(scdc_dataset_cmd(dataset, "sum", &input, NULL) == SCDC_FAILURE);
    EXPECT(strstr(scdc_last_result(), "out of paper") != NULL);
    scdc_dataset_output_unset(&output);
    SCDC_DATASET_INOUT_BUF_SET(&output, buffer, sizeof buffer, 0);
    EXPECT(scdc_dataset_cmd(dataset, "count 500", NULL, &output) == SCDC_SUCCESS);
    EXPECT(strcmp(output.format, "text") == 0);
    long long bytes = output.buf.current;
    int steps = 0;
    while (output.next && output.next(&output, NULL) == SCDC_SUCCESS && steps++ < 1000)
        bytes += output.buf.current;
    EXPECT(bytes == 500 * 1000);
    scdc_dataset_output_unset(&output);
    SCDC_DATASET_INOUT_BUF_SET(&output, buffer, sizeof buffer, 0);
    EXPECT(scdc_dataset_cmd(dataset, "count 1100", NULL, &output) == SCDC_SUCCESS);
    scdc_result_t why = SCDC_RESULT_INIT_EMPTY;
    EXPECT(scdc_dataset_output_next_loop(&output, &why) == SCDC_FAILURE);
    EXPECT(strstr(why.str, "a thousand is too many") != NULL);
    pieces(&input, PIECES);
    scdc_dataset_output_unset(&output);
    EXPECT(scdc_dataset_cmd(dataset, "echo", &input, &output) == SCDC_SUCCESS);
    long long letters = 0;
    bytes = 0;
    for (steps = 0; steps < 10000; steps++) {
        bytes += output.buf.current;
        for (scdcint_t i = 0; i < output.buf.current; i++)
            letters += ((unsigned char *) output.buf.ptr)[i];
        if (!output.next)
            break;
        EXPECT(output.next(&output, NULL) == SCDC_SUCCESS);
    }
    EXPECT(bytes == PIECES * PIECE);
    EXPECT(letters == expected);
    EXPECT(strcmp(say(dataset, "add 0"), "13") == 0);
    scdc_dataset_close(dataset);

    snprintf(where, sizeof where, "%s/counter/none", uri);
    EXPECT(scdc_dataset_open(where) == SCDC_DATASET_NULL && strstr(scdc_last_result(), "there is none"));
    snprintf(where, sizeof where, "%s/counter/CONFIG put speed 3 knots", uri);
    EXPECT(strcmp(say(SCDC_DATASET_NULL, where), "speed is 3 knots") == 0);
    snprintf(where, sizeof where, "%s/counter/CONFIG get speed", uri);
    EXPECT(strcmp(say(SCDC_DATASET_NULL, where), "FAILED command failed: config command for parameter 'speed' failed") == 0);

    /* Files: in by pieces, out into a file and into small buffers. */
    snprintf(where, sizeof where, "%s/files", uri);
    dataset = scdc_dataset_open(where);
    pieces(&input, PIECES);
    EXPECT(scdc_dataset_cmd(dataset, "put big", &input, NULL) == SCDC_SUCCESS);
    snprintf(where, sizeof where, "entry 'big', size: %d", PIECES * PIECE);
    EXPECT(strcmp(say(dataset, "info big"), where) == 0);
    scdc_dataset_output_unset(&output);
    SCDC_DATASET_INOUT_BUF_SET(&output, buffer, sizeof buffer, 0);
    EXPECT(scdc_dataset_cmd(dataset, "get big 7000:10000", NULL, &output) == SCDC_SUCCESS);
    EXPECT(output.buf.current == 5000 && buffer[0] == (PIECES - 1) % 7 && output.next != NULL);
    EXPECT(output.next(&output, NULL) == SCDC_SUCCESS && output.buf.current == 5000 && output.next == NULL);
    EXPECT(scdc_dataset_output_create(&output, "file", "got") == &output);
    EXPECT(scdc_dataset_cmd(dataset, "get big", NULL, &output) == SCDC_SUCCESS);
    scdc_dataset_output_destroy(&output);
    EXPECT(scdc_dataset_input_create(&input, "file:offset:size", "got", (scdcint_t) 100, (scdcint_t) 1000000) == &input);
    EXPECT(scdc_dataset_cmd(dataset, "put part", &input, NULL) == SCDC_SUCCESS);
    scdc_dataset_input_destroy(&input);
    EXPECT(strcmp(say(dataset, "info part"), "entry 'part', size: 1000000") == 0);
    EXPECT(scdc_dataset_input_create(&input, "produce:size", (scdcint_t) 3000000, 1) == &input);
    EXPECT(scdc_dataset_cmd(dataset, "put part 5", &input, NULL) == SCDC_SUCCESS);
    scdc_dataset_input_destroy(&input);
    EXPECT(strcmp(say(dataset, "info part"), "entry 'part', size: 3000005") == 0);
    EXPECT(strcmp(say(dataset, "ls"), "2|f:big|f:part|") == 0);
    EXPECT(strcmp(say(dataset, "rm big"), "") == 0 && strcmp(say(dataset, "rm part"), "") == 0);
    scdc_dataset_close(dataset);

    /* Several buffers at once; a store. */
    char array[2 * sizeof(scdc_buf_t)], one[] = "aaa", two[] = "zzzzz";
    scdc_dataset_input_unset(&input);
    SCDC_DATASET_INOUT_MBUF_INIT(&input, array, sizeof array);
    SCDC_DATASET_INOUT_MBUF_SET_C(&input, 2);
    SCDC_DATASET_INOUT_MBUF_M_SET(&input, 0, one, sizeof one, 3);
    SCDC_DATASET_INOUT_MBUF_M_SET(&input, 1, two, sizeof two, 5);
    snprintf(where, sizeof where, "%s/shelf/ADMIN put one", uri);
    EXPECT(strcmp(say(SCDC_DATASET_NULL, where), "") == 0);
    snprintf(where, sizeof where, "%s/shelf/one put entry", uri);
    EXPECT(scdc_dataset_cmd(SCDC_DATASET_NULL, where, &input, NULL) == SCDC_SUCCESS);
    scdc_dataset_output_unset(&output);
    snprintf(where, sizeof where, "%s/shelf/one get entry", uri);
    EXPECT(scdc_dataset_cmd(SCDC_DATASET_NULL, where, NULL, &output) == SCDC_SUCCESS);
    EXPECT(output.buf.current == 8 && memcmp(output.buf.ptr, "aaazzzzz", 8) == 0);
    snprintf(where, sizeof where, "%s/shelf/ADMIN rm one", uri);
    EXPECT(strcmp(say(SCDC_DATASET_NULL, where), "") == 0);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *role = argc > 1 ? argv[1] : "";
    EXPECT(scdc_init(SCDC_INIT_DEFAULT) == SCDC_SUCCESS);
    scdc_dataprov_t providers[4] = {NULL};
    scdc_nodeport_t port = SCDC_NODEPORT_NULL;
    if (strcmp(role, "relay") == 0) {
        providers[0] = scdc_dataprov_open("far", "relay");
        const char *names[] = {"counter", "files", "shelf"};
        for (int i = 0; i < 3; i++) {
            char command[1000];
            snprintf(command, sizeof command, "scdc:/far/CONFIG put relay %s %s/%s", names[i], argv[3], names[i]);
            EXPECT(scdc_dataset_cmd(SCDC_DATASET_NULL, command, NULL, NULL) == SCDC_SUCCESS);
        }
    } else if (strcmp(role, "use") != 0) {
        providers[0] = scdc_dataprov_open("counter", "hook:with:args", &counter_hooks, 17, "two", 2.5);
        providers[1] = scdc_dataprov_open("files", "access:mem");
        providers[2] = scdc_dataprov_open("shelf", "store:mem");
        EXPECT(providers[0] && providers[1] && providers[2]);
    }
    if (strcmp(role, "serve") == 0 || strcmp(role, "relay") == 0) {
        port = scdc_nodeport_open("uds:socketfile:max_connections", argv[2], 50);
        EXPECT(scdc_nodeport_start(port, SCDC_NODEPORT_START_ASYNC_UNTIL_CANCEL) == SCDC_SUCCESS);
        printf("ready\n");
        while (getchar() != EOF)
            ;
        EXPECT(scdc_nodeport_stop(port) == SCDC_SUCCESS);
        scdc_nodeport_close(port);
    } else if (strcmp(role, "use") == 0) {
        use(argv[2]);
    } else {
        use("scdc:");
    }
    for (int i = 0; i < 3; i++)
        if (providers[i])
            scdc_dataprov_close(providers[i]);
    scdc_release();
    if (!wrong)
        printf("ok\n");
    return wrong;
}
