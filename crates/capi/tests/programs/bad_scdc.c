/* Whatever a program gets wrong with scdc.h is an error that says so. Ends with "ok". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scdc.h"

static int wrong;

#define EXPECT(what) \
    do { \
        if (!(what)) { \
            printf("line %d: %s is not so; %s\n", __LINE__, #what, scdc_last_result()); \
            wrong = 1; \
        } \
    } while (0)
#define FAILS(call, words) \
    do { \
        EXPECT(call); \
        EXPECT(strstr(scdc_last_result(), words) != NULL); \
    } while (0)

static scdcint_t nothing(scdc_dataset_inout_t *inout, scdc_result_t *result)
{
    (void) inout, (void) result;
    return SCDC_SUCCESS;
}

static scdcint_t slow(void *dataprov, void *dataset, const char *cmd, const char *params, scdc_dataset_input_t *input,
                      scdc_dataset_output_t *output, scdc_result_t *result)
{
    (void) dataprov, (void) dataset, (void) params, (void) input, (void) output;
    usleep(300000);
    SCDC_RESULT_SET_STR(result, cmd);
    return SCDC_SUCCESS;
}

static scdc_dataset_t shared;

static void *from_another_thread(void *argument)
{
    (void) argument;
    EXPECT(scdc_dataset_cmd(shared, "first", NULL, NULL) == SCDC_SUCCESS);
    return NULL;
}

static scdcint_t logged(void *data, const char *buf, scdcint_t size)
{
    EXPECT((scdcint_t) strlen(buf) == size);
    ++*(int *) data;
    return size;
}

int main(void)
{
    scdc_dataset_input_t input;
    scdc_dataset_output_t output;
    char small[4];

    /* Before and after. */
    EXPECT(strcmp(scdc_last_result(), "") == 0);
    FAILS(scdc_dataset_open("scdc:/x") == SCDC_DATASET_NULL, "call scdc_init");
    FAILS(scdc_dataprov_open("x", "store:mem") == SCDC_DATAPROV_NULL, "call scdc_init");
    FAILS(scdc_nodeport_open("tcp") == SCDC_NODEPORT_NULL, "call scdc_init");
    FAILS(scdc_dataset_cmd(SCDC_DATASET_NULL, "scdc:/x ls", NULL, NULL) == SCDC_FAILURE, "call scdc_init");
    scdc_release();
    FAILS(scdc_init("bogus") == SCDC_FAILURE, "bogus");
    EXPECT(scdc_init(NULL) == SCDC_SUCCESS);
    FAILS(scdc_init("") == SCDC_FAILURE, "already");

    /* Providers. */
    FAILS(scdc_dataprov_open(NULL, "store:mem") == SCDC_DATAPROV_NULL, "NULL");
    FAILS(scdc_dataprov_open("x", NULL) == SCDC_DATAPROV_NULL, "NULL");
    FAILS(scdc_dataprov_open("", "store:mem") == SCDC_DATAPROV_NULL, "base path");
    FAILS(scdc_dataprov_open("a/b", "store:mem") == SCDC_DATAPROV_NULL, "base path");
    FAILS(scdc_dataprov_open("x", "store:bogus") == SCDC_DATAPROV_NULL, "store:bogus");
    FAILS(scdc_dataprov_open("x", "access:fs", "/no/such") == SCDC_DATAPROV_NULL, "/no/such");
    FAILS(scdc_dataprov_open("x", "access:fs", NULL) == SCDC_DATAPROV_NULL, "NULL");
    FAILS(scdc_dataprov_open("x", "hook", NULL) == SCDC_DATAPROV_NULL, "NULL");
    scdc_dataprov_hook_t none = {0};
    FAILS(scdc_dataprov_open("x", "hook", &none) == SCDC_DATAPROV_NULL, "dataset_cmd");
    scdc_dataprov_t memory = scdc_dataprov_open("memory", "access:mem");
    FAILS(scdc_dataprov_open("memory", "store:mem") == SCDC_DATAPROV_NULL, "already");
    scdc_dataprov_close(NULL);
    EXPECT(strstr(scdc_last_result(), "NULL"));
    scdc_dataprov_close(&wrong);
    EXPECT(strstr(scdc_last_result(), "no open data provider"));

    /* Node ports. */
    FAILS(scdc_nodeport_open(NULL) == SCDC_NODEPORT_NULL, "NULL");
    FAILS(scdc_nodeport_open("bogus") == SCDC_NODEPORT_NULL, "bogus");
    FAILS(scdc_nodeport_open("mpi:world") == SCDC_NODEPORT_NULL, "sluice serve");
    FAILS(scdc_nodeport_open("tcp:port", 99999) == SCDC_NODEPORT_NULL, "99999");
    FAILS(scdc_nodeport_open("uds:socketname", "../x") == SCDC_NODEPORT_NULL, "../x");
    FAILS(scdc_nodeport_open("tcp:max_connections", 0) == SCDC_NODEPORT_NULL, "max_connections");
    FAILS(scdc_nodeport_start(NULL, SCDC_NODEPORT_START_ASYNC_UNTIL_CANCEL) == SCDC_FAILURE, "NULL");
    FAILS(scdc_nodeport_stop(memory) == SCDC_FAILURE, "no open node port");
    FAILS(scdc_nodeport_cancel(&wrong, 1) == SCDC_FAILURE, "no open node port");
    scdc_nodeport_t port = scdc_nodeport_open("uds:socketfile", "/no/such/directory/x.sock");
    EXPECT(port != SCDC_NODEPORT_NULL);
    FAILS(scdc_nodeport_start(port, 77) == SCDC_FAILURE, "77");
    EXPECT(scdc_nodeport_stop(port) == SCDC_SUCCESS);
    scdc_nodeport_close(port);
    scdc_nodeport_close(port);
    EXPECT(strstr(scdc_last_result(), "no open node port"));
    FAILS(scdc_nodeport_authority("bogus") == NULL, "bogus");
    EXPECT(strcmp(scdc_nodeport_authority("tcp:port", "host", 45678), "host:45678") == 0);
    EXPECT(scdc_nodeport_supported("scdc+%s://%s/x", "uds", "name") == SCDC_SUCCESS);
    EXPECT(scdc_nodeport_supported("bogus://x") == SCDC_FAILURE);
    EXPECT(scdc_nodeport_supported(NULL) == SCDC_FAILURE);

    /* Datasets and commands. */
    FAILS(scdc_dataset_open(NULL) == SCDC_DATASET_NULL, "NULL");
    FAILS(scdc_dataset_open("memory") == SCDC_DATASET_NULL, "no URI");
    FAILS(scdc_dataset_open("scdc:/nosuch") == SCDC_DATASET_NULL, "no matching provider");
    FAILS(scdc_dataset_open("scdc+uds:///no/such.sock/x") == SCDC_DATASET_NULL, "open connection failed");
    FAILS(scdc_dataset_open("scdc+tcp://localhost:1/x") == SCDC_DATASET_NULL, "open connection failed");
    FAILS(scdc_dataset_open("scdc+mpi://one/x") == SCDC_DATASET_NULL, "rank");
    scdc_dataset_t dataset = scdc_dataset_open("scdc://%s/memory", "");
    EXPECT(dataset != SCDC_DATASET_NULL);
    FAILS(scdc_dataset_cmd(dataset, NULL, NULL, NULL) == SCDC_FAILURE, "NULL");
    FAILS(scdc_dataset_cmd(dataset, "bogus", NULL, NULL) == SCDC_FAILURE, "'bogus' not implemented");
    FAILS(scdc_dataset_cmd(dataset, "put x 1:2:3", NULL, NULL) == SCDC_FAILURE, "`1:2:3` is not understood");
    FAILS(scdc_dataset_cmd(dataset, "get", NULL, NULL) == SCDC_FAILURE, "opening file ''");
    FAILS(scdc_dataset_cmd((scdc_dataset_t) &wrong, "ls", NULL, NULL) == SCDC_FAILURE, "no open dataset");
    FAILS(scdc_dataset_cmd(memory, "ls", NULL, NULL) == SCDC_FAILURE, "no open dataset");
    FAILS(scdc_dataset_cmd(SCDC_DATASET_NULL, "", NULL, NULL) == SCDC_FAILURE, "no URI");

    /* Inputs and outputs that cannot be. */
    scdc_dataset_input_unset(NULL);
    scdc_dataset_input_unset(&input);
    SCDC_DATASET_INOUT_BUF_SET(&input, small, 4, 5);
    FAILS(scdc_dataset_cmd(dataset, "put x", &input, NULL) == SCDC_FAILURE, "5 bytes of data in a buffer of 4");
    SCDC_DATASET_INOUT_BUF_SET(&input, NULL, 4, 4);
    FAILS(scdc_dataset_cmd(dataset, "put x", &input, NULL) == SCDC_FAILURE, "NULL");
    SCDC_DATASET_INOUT_BUF_SET(&input, small, -3, -4);
    FAILS(scdc_dataset_cmd(dataset, "put x", &input, NULL) == SCDC_FAILURE, "4 of 3 buffers");
    SCDC_DATASET_INOUT_BUF_SET(&input, small, -3, scdcint_min);
    FAILS(scdc_dataset_cmd(dataset, "put x", &input, NULL) == SCDC_FAILURE, "buffers");
    SCDC_DATASET_INOUT_BUF_SET(&input, small, 4, 0);
    input.next = nothing;
    FAILS(scdc_dataset_cmd(dataset, "put x", &input, NULL) == SCDC_FAILURE, "has given nothing");
    FAILS(scdc_dataset_input_create(NULL, "file", "x") == NULL, "NULL");
    FAILS(scdc_dataset_input_create(&input, "file", "/no/such") == NULL, "/no/such");
    FAILS(scdc_dataset_input_create(&input, "bogus") == NULL, "bogus");
    FAILS(scdc_dataset_input_create(&input, "fd", -7) == NULL, "-7");
    FAILS(scdc_dataset_input_create(&input, "fd", 999) == NULL, "999");
    FAILS(scdc_dataset_input_create(&input, "produce:size", (scdcint_t) -1) == NULL, "-1");
    FAILS(scdc_dataset_output_create(&output, "file", "/no/such/directory") == NULL, "/no/such");
    scdc_dataset_input_destroy(NULL);
    memset(&input, 0x5a, sizeof input);
    scdc_dataset_input_destroy(&input);
    EXPECT(strstr(scdc_last_result(), "no open input"));
    EXPECT(scdc_dataset_input_redirect(NULL, "to:output", &output) == SCDC_FAILURE);
    EXPECT(scdc_dataset_inout_next_loop(NULL, NULL) == SCDC_FAILURE);

    /* Output of a command that is over. */
    EXPECT(scdc_dataset_input_create(&input, "produce:size", (scdcint_t) 10) == &input);
    EXPECT(scdc_dataset_cmd(dataset, "put x", &input, NULL) == SCDC_SUCCESS);
    scdc_dataset_input_destroy(&input);
    scdc_dataset_output_unset(&output);
    SCDC_DATASET_INOUT_BUF_SET(&output, small, 4, 0);
    EXPECT(scdc_dataset_cmd(dataset, "get x", NULL, &output) == SCDC_SUCCESS && output.next != NULL);
    EXPECT(scdc_dataset_cmd(dataset, "ls", NULL, NULL) == SCDC_SUCCESS);
    scdc_dataset_inout_next_f *stale = output.next;
    EXPECT(stale(&output, NULL) == SCDC_FAILURE && output.next == NULL && output.buf.current == 0);
    EXPECT(stale(&output, NULL) == SCDC_FAILURE);
    EXPECT(stale(NULL, NULL) == SCDC_FAILURE);
    EXPECT(scdc_dataset_cmd(dataset, "rm x", NULL, NULL) == SCDC_SUCCESS);
    scdc_dataset_close(dataset);
    FAILS(scdc_dataset_cmd(dataset, "ls", NULL, NULL) == SCDC_FAILURE, "no open dataset");
    scdc_dataset_close(dataset);

    /* One dataset, two threads. */
    static scdc_dataprov_hook_t hooks = {.dataset_cmd = slow};
    scdc_dataprov_t provider = scdc_dataprov_open("slow", "hook", &hooks);
    shared = scdc_dataset_open("scdc:/slow");
    pthread_t thread;
    pthread_create(&thread, NULL, from_another_thread, NULL);
    usleep(100000);
    FAILS(scdc_dataset_cmd(shared, "second", NULL, NULL) == SCDC_FAILURE, "in use by another call");
    pthread_join(thread, NULL);
    EXPECT(scdc_dataset_cmd(shared, "third", NULL, NULL) == SCDC_SUCCESS && strcmp(scdc_last_result(), "third") == 0);
    scdc_dataprov_close(provider);
    FAILS(scdc_dataset_cmd(shared, "fourth", NULL, NULL) == SCDC_FAILURE, "closed");

    /* Logs. */
    int lines = 0;
    FAILS(scdc_log_init("bogus") == SCDC_FAILURE, "bogus");
    FAILS(scdc_log_init("log_FILE", NULL, NULL) == SCDC_FAILURE, "NULL");
    EXPECT(scdc_log_init("log_handler", logged, &lines, logged, &lines) == SCDC_SUCCESS);
    EXPECT(scdc_dataset_open("scdc:/nosuch") == SCDC_DATASET_NULL && lines == 1);
    scdc_log_release();
    EXPECT(scdc_dataset_open("scdc:/nosuch") == SCDC_DATASET_NULL && lines == 1);

    /* What is left open ends with the library, again and again. */
    for (int i = 0; i < 200; i++) {
        scdc_dataprov_open("left", "store:mem");
        scdc_dataset_open("scdc:/left");
        scdc_dataset_input_create(&input, "produce:size", (scdcint_t) 10);
        scdc_release();
        EXPECT(scdc_init("") == SCDC_SUCCESS);
    }
    scdc_release();
    if (!wrong)
        printf("ok\n");
    return wrong;
}
