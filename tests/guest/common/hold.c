/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold.h"
#include "util.h"

enum { FILE_INODE = 2, MAX_WAITING = 4096, REQUEST_BYTES = 1 << 20 };

struct server {
    int fuse, ctl;
    size_t len;
    uint64_t seed;
    bool released;
    volatile struct hold_counts *counts;
    struct fuse_in_header waiting[MAX_WAITING];
    struct fuse_read_in read[MAX_WAITING];
};

static void answer(struct server *s, uint64_t unique, int error,
                   const void *data, size_t len)
{
    struct fuse_out_header out = { sizeof(out) + len, -error, unique };
    struct iovec v[2] = { { &out, sizeof(out) }, { (void *)data, len } };

    /* ENOENT: the request was interrupted meanwhile. */
    if (writev(s->fuse, v, len ? 2 : 1) < 0 && errno != ENOENT) {
        die_errno("answering the kernel's FUSE request");
    }
}

static void give(struct server *s, uint64_t unique, uint64_t offset,
                 size_t size)
{
    static uint8_t data[REQUEST_BYTES];

    if (offset >= s->len) {
        size = 0;
    } else if (size > s->len - offset) {
        size = s->len - offset;
    }
    pattern_fill(data, s->seed, offset, size);
    answer(s, unique, 0, data, size);
    s->counts->given++;
}

static void fill_attr(struct server *s, struct fuse_attr *attr, uint64_t ino)
{
    memset(attr, 0, sizeof(*attr));
    attr->ino = ino;
    attr->mode = ino == FILE_INODE ? S_IFREG | 0600 : S_IFDIR | 0700;
    attr->nlink = 1;
    attr->size = ino == FILE_INODE ? s->len : 0;
    attr->blksize = 4096;
}

static void serve_read(struct server *s, const struct fuse_in_header *in,
                       const struct fuse_read_in *rd)
{
    if (s->released) {
        give(s, in->unique, rd->offset, rd->size);
    } else if (s->counts->waiting == MAX_WAITING) {
        answer(s, in->unique, ENOMEM, NULL, 0);
    } else {
        s->waiting[s->counts->waiting] = *in;
        s->read[s->counts->waiting] = *rd;
        s->counts->waiting++;
    }
}

static void serve(struct server *s, const struct fuse_in_header *in,
                  const void *arg)
{
    union {
        struct fuse_init_out init;
        struct fuse_entry_out entry;
        struct fuse_attr_out attr;
        struct fuse_open_out open;
        struct fuse_write_out write;
    } out = { 0 };

    switch (in->opcode) {
    case FUSE_INIT:
        out.init.major = FUSE_KERNEL_VERSION;
        out.init.minor = ((const struct fuse_init_in *)arg)->minor;
        if (out.init.minor > FUSE_KERNEL_MINOR_VERSION) {
            out.init.minor = FUSE_KERNEL_MINOR_VERSION;
        }
        out.init.max_write = 65536;
        out.init.max_background = 512;
        out.init.congestion_threshold = 500;
        answer(s, in->unique, 0, &out, sizeof(out.init));
        break;
    case FUSE_LOOKUP:
        out.entry.nodeid = FILE_INODE;
        out.entry.entry_valid = out.entry.attr_valid = 3600;
        fill_attr(s, &out.entry.attr, FILE_INODE);
        answer(s, in->unique, 0, &out, sizeof(out.entry));
        break;
    case FUSE_GETATTR:
    case FUSE_SETATTR:
        out.attr.attr_valid = 3600;
        fill_attr(s, &out.attr.attr, in->nodeid);
        answer(s, in->unique, 0, &out, sizeof(out.attr));
        break;
    case FUSE_OPEN:
        out.open.open_flags = FOPEN_KEEP_CACHE;
        answer(s, in->unique, 0, &out, sizeof(out.open));
        break;
    case FUSE_READ:
        serve_read(s, in, arg);
        break;
    case FUSE_WRITE:
        /* Dirty pages on their way out: the page cache has them. */
        out.write.size = ((const struct fuse_write_in *)arg)->size;
        answer(s, in->unique, 0, &out, sizeof(out.write));
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
    case FUSE_FSYNC:
        answer(s, in->unique, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        answer(s, in->unique, ENOSYS, NULL, 0);
    }
}

static void release(struct server *s)
{
    uint32_t n = s->counts->waiting;

    s->released = true;
    s->counts->waiting = 0;
    for (uint32_t i = 0; i < n; i++) {
        give(s, s->waiting[i].unique, s->read[i].offset, s->read[i].size);
    }
}

static void run_server(struct server *s)
{
    static uint8_t request[REQUEST_BYTES];

    for (;;) {
        struct pollfd fds[2] = { { s->fuse, POLLIN, 0 },
                                 { s->ctl, POLLIN, 0 } };
        ssize_t n;
        char c;

        if (poll(fds, 2, -1) < 0) {
            continue;
        }
        if (fds[1].revents) {
            if (read(s->ctl, &c, 1) != 1) {
                _exit(0);
            }
            release(s);
        }
        if (fds[0].revents) {
            n = read(s->fuse, request, sizeof(request));
            if (n < 0 && errno == ENODEV) {
                _exit(0);               /* unmounted */
            }
            if (n >= (ssize_t)sizeof(struct fuse_in_header)) {
                serve(s, (void *)request,
                      request + sizeof(struct fuse_in_header));
            }
        }
    }
}

/*
 * An RDMA device that is open here, too, would be closed by the server's end:
 * that waits for faults that wait for the server.
 */
static void keep_only(int a, int b)
{
    unsigned low = a < b ? a : b, high = a < b ? b : a;

    close_range(STDERR_FILENO + 1, low - 1, 0);
    close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0U, 0);
}

void hold_open(struct hold *h, size_t len, uint64_t seed)
{
    static struct server server;
    char dir[] = "/tmp/odp-hold-XXXXXX", text[128];
    int sock[2], fd;

    memset(h, 0, sizeof(*h));
    h->len = len;
    h->counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    server.fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (server.fuse < 0 && !system("modprobe fuse")) {
        server.fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    }
    if (server.fuse < 0) {
        die_errno("/dev/fuse (the kernel needs FUSE_FS)");
    }
    if (!mkdtemp(dir)) {
        die_errno("%s", dir);
    }
    snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=0,group_id=0,"
             "max_read=%d", server.fuse, REQUEST_BYTES);
    if (mount("odp-hold", dir, "fuse", MS_NOSUID | MS_NODEV, text)) {
        die_errno("mounting FUSE at %s", dir);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sock)) {
        die_errno("socketpair");
    }
    server.ctl = sock[1];
    server.len = len;
    server.seed = seed;
    server.counts = h->counts;
    h->pid = fork();
    if (h->pid < 0) {
        die_errno("fork");
    }
    if (!h->pid) {
        keep_only(server.fuse, server.ctl);
        run_server(&server);
    }
    close(server.fuse);
    close(sock[1]);
    h->ctl = sock[0];
    snprintf(text, sizeof(text), "%s/pages", dir);
    fd = open(text, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        die_errno("%s", text);
    }
    h->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (h->mem == MAP_FAILED) {
        die_errno("mmap %s", text);
    }
    /* One page a fault. */
    madvise(h->mem, len, MADV_RANDOM);
    close(fd);
    /* The mapping keeps the file system. */
    umount2(dir, MNT_DETACH);
    rmdir(dir);
}

void hold_release(struct hold *h)
{
    if (write(h->ctl, "r", 1) != 1) {
        die_errno("telling who holds the pages");
    }
}

void hold_close(struct hold *h)
{
    if (!h->pid) {
        hold_close_uffd(h);
        return;
    }
    munmap(h->mem, h->len);
    close(h->ctl);
    waitpid(h->pid, NULL, 0);
    munmap((void *)h->counts, 4096);
}
