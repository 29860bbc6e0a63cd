/* SPDX-License-Identifier: Apache-2.0
 *
 * A program with NVTX in it, compiled with NVIDIA's headers: what a user's program is.
 * Arguments: "kill" ends it by SIGKILL with a range open, "fork" has a child report too, "N" pushes
 * and pops N more ranges, "exit N" ends with that status.
 */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *end_elsewhere(void *id)
{
    nvtxRangeEnd(*(nvtxRangeId_t *)id);
    return NULL;
}

static void report(void)
{
    nvtxDomainHandle_t domain = nvtxDomainCreateA("client");
    nvtxDomainNameCategoryA(domain, 3, "loading");
    nvtxEventAttributes_t event = {.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .category = 3,
                                   .colorType = NVTX_COLOR_ARGB,
                                   .color = 0xFF00FF00u,
                                   .payloadType = NVTX_PAYLOAD_TYPE_INT64,
                                   .payload.llValue = 42,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                   .message.registered = nvtxDomainRegisterStringA(domain, "load")};
    nvtxRangePushA("outer");
    nvtxDomainRangePushEx(domain, &event);
    nvtxMarkW(L"mark é");
    nvtxDomainRangePop(domain);
    nvtxRangeId_t id = nvtxRangeStartA("elsewhere");
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_elsewhere, &id) == 0) {
        pthread_join(thread, NULL);
    }
    nvtxRangePop();
}

int main(int argc, char **argv)
{
    report();
    for (long n = argc > 1 ? atol(argv[1]) : 0; n > 0; n--) {
        nvtxRangePushA("again");
        nvtxRangePop();
    }
    if (argc > 1 && strcmp(argv[1], "kill") == 0) {
        nvtxRangePushA("unfinished");
        raise(SIGKILL);
    }
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            nvtxRangePushA("child"); /* this one begins the child's recording */
            nvtxRangePop();
            nvtxRangePushA("in child");
            nvtxRangePop();
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
