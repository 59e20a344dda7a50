/* Commands by scdc.h, and what a pair of plain sockets does for the same bytes.
 *
 *   commands get URI NAME SIZE BUFFER   a `get` through next functions: prints the seconds
 *   commands serve SOCKET               answers commands by a hook, until it is ended
 *   commands trips URI COUNT            round trips of a command with one byte of output: prints the seconds of one
 *   commands echo SOCKET                sends back what it gets, 64 bytes at a time
 *   commands raw SOCKET COUNT           round trips of 64 bytes: prints the seconds of one */
#include "common.h"
#include "scdc.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MESSAGE 64

static void failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, scdc_last_result());
    exit(1);
}

static scdcint_t answer(void *dataprov, void *dataset, const char *cmd, const char *params, scdc_dataset_input_t *input,
                        scdc_dataset_output_t *output, scdc_result_t *result) {
    (void)dataprov, (void)dataset, (void)cmd, (void)params, (void)input, (void)result;
    *(char *)output->buf.ptr = 'x';
    output->buf.current = 1;
    return SCDC_SUCCESS;
}

static void get(const char *uri, const char *name, long long size, long long buffer) {
    char command[512];
    snprintf(command, sizeof command, "get %s", name);
    void *room = aligned_alloc(4096, (size_t)buffer);
    memset(room, 1, (size_t)buffer);
    scdc_dataset_output_t output;
    scdc_dataset_output_unset(&output);
    SCDC_DATASET_INOUT_BUF_SET(&output, room, buffer, 0);
    double began = seconds_now();
    scdc_dataset_t dataset = scdc_dataset_open(uri);
    if (!dataset || scdc_dataset_cmd(dataset, command, NULL, &output) != SCDC_SUCCESS) failed(command);
    long long got = 0;
    for (;;) {
        pattern_check(name, room, (size_t)output.buf.current, (uint64_t)got);
        got += output.buf.current;
        if (!output.next) break;
        if (output.next(&output, NULL) != SCDC_SUCCESS) failed("next");
    }
    scdc_dataset_close(dataset);
    double took = seconds_now() - began;
    if (got != size) {
        fprintf(stderr, "%lld bytes came instead of %lld\n", got, size);
        exit(1);
    }
    printf("{\"seconds\": %.9f}\n", took);
}

static void trips(const char *uri, long count) {
    char room[16];
    scdc_dataset_t dataset = scdc_dataset_open(uri);
    if (!dataset) failed(uri);
    double began = 0;
    for (long i = -count / 10; i < count; i++) {
        if (i == 0) began = seconds_now();
        scdc_dataset_output_t output;
        scdc_dataset_output_unset(&output);
        SCDC_DATASET_INOUT_BUF_SET(&output, room, sizeof room, 0);
        if (scdc_dataset_cmd(dataset, "nod", NULL, &output) != SCDC_SUCCESS || output.buf.current != 1) failed("nod");
    }
    printf("{\"seconds\": %.9f}\n", (seconds_now() - began) / (double)count);
}

static int unix_socket(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof address->sun_path, "%s", path);
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

/* One message in: short ones never come in parts on a Unix socket, but nobody promises it. */
static int whole(int s, char *message) {
    for (size_t got = 0; got < MESSAGE;) {
        ssize_t n = read(s, message + got, MESSAGE - got);
        if (n <= 0) return 0;
        got += (size_t)n;
    }
    return 1;
}

static void echo(const char *path) {
    struct sockaddr_un address;
    int listening = unix_socket(path, &address);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 5)) give_up(path);
    printf("listening\n");
    fflush(stdout);
    for (int s; (s = accept(listening, NULL, NULL)) >= 0; close(s)) {
        char message[MESSAGE];
        while (whole(s, message) && write(s, message, MESSAGE) == MESSAGE) continue;
    }
}

static void raw(const char *path, long count) {
    struct sockaddr_un address;
    int s = unix_socket(path, &address);
    if (connect(s, (struct sockaddr *)&address, sizeof address)) give_up(path);
    char message[MESSAGE] = "";
    double began = 0;
    for (long i = -count / 10; i < count; i++) {
        if (i == 0) began = seconds_now();
        if (write(s, message, MESSAGE) != MESSAGE || !whole(s, message)) give_up("ping");
    }
    printf("{\"seconds\": %.9f}\n", (seconds_now() - began) / (double)count);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (!strcmp(argv[1], "echo")) {
        echo(argv[2]);
        return 0;
    }
    if (!strcmp(argv[1], "raw")) {
        raw(argv[2], atol(argv[3]));
        return 0;
    }
    if (scdc_init(SCDC_INIT_DEFAULT) != SCDC_SUCCESS) failed("scdc_init");
    if (!strcmp(argv[1], "serve")) {
        static scdc_dataprov_hook_t hooks;
        hooks.dataset_cmd = answer;
        scdc_nodeport_t port = scdc_nodeport_open("uds:socketfile", argv[2]);
        if (!scdc_dataprov_open("hook", "hook", &hooks) || !port) failed("serve");
        if (scdc_nodeport_start(port, SCDC_NODEPORT_START_ASYNC_UNTIL_CANCEL) != SCDC_SUCCESS) failed("start");
        printf("listening\n");
        fflush(stdout);
        for (;;) pause();
    } else if (!strcmp(argv[1], "get") && argc == 6) {
        get(argv[2], argv[3], atoll(argv[4]), atoll(argv[5]));
    } else if (!strcmp(argv[1], "trips") && argc == 4) {
        trips(argv[2], atol(argv[3]));
    } else {
        return 2;
    }
    scdc_release();
    return 0;
}
