/*
 * A host at the socket of a switch that answers incorrectly: the host reports it and keeps no
 * descriptors of the answer. The switch is a thread of the test.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "offload/base/errors.h"
#include "offload/wire/shm.h"
#include "tests/open_files.h"
#include "tests/unit/host-driver/rig.h"

#define FILE_BYTES 4096
#define FDS_MAX    2

/* The switch's answer, with the number of descriptors that it sends. */
static const struct shm_answer {
    struct by_shm_welcome welcome;
    size_t bytes;
    unsigned fds;
    int status;
    const char *said;
} answers[] = {
    {{.magic = 7}, sizeof(struct by_shm_welcome), 1, BANYAN_EFORMAT, "is not a banyan switch"},
    {{.magic = BY_SHM_MAGIC}, 12, 1, BANYAN_EFORMAT, "is not a banyan switch"},
    {{.magic = BY_SHM_MAGIC, .status = BY_EBUSY, .text = "it is full"},
     sizeof(struct by_shm_welcome),
     1,
     BANYAN_EBUSY,
     "refuses: it is full"},
    {{.magic = BY_SHM_MAGIC, .status = 3}, sizeof(struct by_shm_welcome), 1, BANYAN_EFORMAT, "refuses"},
    {{.magic = BY_SHM_MAGIC, .memory_bytes = FILE_BYTES + 1},
     sizeof(struct by_shm_welcome),
     1,
     BANYAN_EFORMAT,
     "it does not share memory"},
    {{.magic = BY_SHM_MAGIC, .memory_bytes = FILE_BYTES},
     sizeof(struct by_shm_welcome),
     0,
     BANYAN_EFORMAT,
     "it does not share memory"},
    {{.magic = 7}, sizeof(struct by_shm_welcome), 2, BANYAN_EFORMAT, "is not a banyan switch"},
};

struct shm_fake {
    int listener, memory_fd;
    const struct shm_answer *answer;
};

static void *answer_one(void *argument)
{
    const struct shm_fake *fake = argument;
    const struct shm_answer *answer = fake->answer;
    struct by_shm_welcome welcome = answer->welcome;
    const int fds[FDS_MAX] = {fake->memory_fd, fake->memory_fd};
    uint8_t control[CMSG_SPACE(sizeof(fds))] __attribute__((aligned(8))) = {0};
    struct iovec piece = {&welcome, answer->bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    const struct by_shm_challenge challenge = {.magic = BY_SHM_MAGIC, .version = BY_SHM_VERSION};
    struct by_shm_hello hello;
    int fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC);
    void *right = NULL;

    if (answer->fds > 0) {
        struct cmsghdr *header;

        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(answer->fds * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(answer->fds * sizeof(int));
        memcpy(CMSG_DATA(header), fds, answer->fds * sizeof(int));
    }
    /* No control buffer, so that the descriptors of the hello are not received. */
    if (send(fd, &challenge, sizeof(challenge), MSG_NOSIGNAL) == (ssize_t)sizeof(challenge) &&
        recv(fd, &hello, sizeof(hello), 0) == (ssize_t)sizeof(hello) &&
        sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)answer->bytes)
        right = argument;
    close(fd);
    return right;
}

static void what_comes_with_a_wrong_answer_is_not_kept(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct banyan_context *context;
    char folder[64], path[100];
    struct shm_fake fake;

    (void)state;
    rig_write_loopback(2, folder);
    snprintf(path, sizeof(path), "%s/h1.table", folder);
    rig_set("BANYAN_TABLE", path);
    rig_set("BANYAN_TRANSPORT", "shm");
    rig_set("BANYAN_SHM", folder);
    assert_int_equal(banyan_init(NULL, &context), BANYAN_OK);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/127.0.0.2", folder);
    fake.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    fake.memory_fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(bind(fake.listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fake.listener, 1), 0);
    assert_int_equal(ftruncate(fake.memory_fd, FILE_BYTES), 0);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        unsigned before = open_files();
        struct banyan_comm *comm;
        pthread_t thread;
        void *right;

        fake.answer = &answers[i];
        assert_int_equal(pthread_create(&thread, NULL, answer_one, &fake), 0);
        expect(banyan_comm_create(context, 0, &comm), (banyan_status_t)answers[i].status, answers[i].said);
        assert_int_equal(pthread_join(thread, &right), 0);
        assert_non_null(right);
        assert_int_equal(open_files(), before);
    }
    banyan_finalize(context);
    close(fake.listener);
    close(fake.memory_fd);
    rig_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_with_a_wrong_answer_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
