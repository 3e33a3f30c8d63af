/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "owner.h"

enum command { CHECK, RELATCH, NEW_KEY, DESTROY_KEY, COUNTERS, RESET, EXIT };

struct message {
    enum command command;
    uint32_t pasid, key, status, result;
    uint64_t seed, off, len;
    uint8_t *mem;
    struct sva_counters counters;
};

/* The kernel lets the next open see the last release come late. */
enum { SETTLE_US = 100000 };

static void send_message(int fd, const struct message *m)
{
    if (write(fd, m, sizeof(*m)) != sizeof(*m)) {
        die_errno("writing to a pipe");
    }
}

static bool get_message(int fd, struct message *m)
{
    return read(fd, m, sizeof(*m)) == sizeof(*m);
}

static void child_command(struct message *m, struct sva_portal *p,
                          struct ibv_pd *pd, struct owner *o)
{
    m->result = 0;
    switch (m->command) {
    case CHECK:
        m->result = pattern_check(o->mem + m->off, m->seed, m->off,
                                  m->len) >= 0;
        break;
    case RELATCH:
        sva_portal_reset(p);
        if (sva_portal_latch(p, m->pasid)) {
            m->result = p->result;
            break;
        }
        /* fall through */
    case NEW_KEY:
        if (sva_key_make(p, pd, SVA_ALL, NULL, 0, &m->key)) {
            m->result = p->result;
        }
        break;
    case DESTROY_KEY:
        m->result = sva_key_destroy(p, m->key) ? p->result : 0;
        break;
    case COUNTERS:
        sva_counters(p, &m->counters);
        break;
    case RESET:
        sva_portal_reset(p);
        break;
    case EXIT:
        break;
    }
}

static void child(struct owner *o, const char *pci, struct ibv_pd *pd,
                  uint64_t fill)
{
    struct sva_portal p;
    struct message m = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!o->mem) {
        /* Below what the parent ever maps, so that only we have it. */
        void *want = (void *)(0x100000000000 + ((uintptr_t)getpid() << 28));

        o->mem = mmap(want, o->len, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                      0);
        if (o->mem == MAP_FAILED) {
            die_errno("mmap");
        }
    }
    if (fill) {
        pattern_fill(o->mem, fill, 0, o->len);
    }
    portal_or_die(&p, pci);
    m.key = key_or_die(&p, pd, SVA_ALL);
    m.pasid = p.pasid;
    m.mem = o->mem;
    m.status = sva_portal_status(&p);
    send_message(o->answer, &m);
    while (get_message(o->ask, &m)) {
        if (m.command == EXIT) {
            sva_portal_close(&p);
            _exit(0);
        }
        child_command(&m, &p, pd, o);
        send_message(o->answer, &m);
    }
    _exit(1);
}

void owner_start(struct owner *o, const char *pci, struct ibv_pd *pd,
                 void *mem, size_t len, uint64_t fill)
{
    int ask[2], answer[2];
    struct message m;

    if (pipe(ask) || pipe(answer)) {
        die_errno("pipe");
    }
    o->mem = mem;
    o->len = len;
    fflush(stdout);
    o->pid = fork();
    if (o->pid < 0) {
        die_errno("fork");
    }
    if (!o->pid) {
        close(ask[1]);
        close(answer[0]);
        o->ask = ask[0];
        o->answer = answer[1];
        child(o, pci, pd, fill);
    }
    close(ask[0]);
    close(answer[1]);
    o->ask = ask[1];
    o->answer = answer[0];
    if (!get_message(o->answer, &m)) {
        die("the owner of portal %s did not start", pci);
    }
    o->pasid = m.pasid;
    o->key = m.key;
    o->status = m.status;
    o->mem = m.mem;
}

static void exchange(struct owner *o, struct message *m)
{
    send_message(o->ask, m);
    if (!get_message(o->answer, m)) {
        die("the owner of a portal has gone");
    }
}

bool owner_check(struct owner *o, uint64_t seed, size_t off, size_t len)
{
    struct message m = { .command = CHECK, .seed = seed, .off = off,
                         .len = len };

    exchange(o, &m);
    return !m.result;
}

uint32_t owner_relatch(struct owner *o, uint32_t pasid)
{
    struct message m = { .command = RELATCH, .pasid = pasid };

    exchange(o, &m);
    o->key = m.key;
    return m.result;
}

void owner_new_key(struct owner *o)
{
    struct message m = { .command = NEW_KEY };

    exchange(o, &m);
    if (m.result) {
        die("an owner got no key: result %u", m.result);
    }
    o->key = m.key;
}

void owner_destroy_key(struct owner *o)
{
    struct message m = { .command = DESTROY_KEY, .key = o->key };

    exchange(o, &m);
    if (m.result) {
        die("an owner cannot destroy its key: result %u", m.result);
    }
}

void owner_counters(struct owner *o, struct sva_counters *c)
{
    struct message m = { .command = COUNTERS };

    exchange(o, &m);
    *c = m.counters;
}

void owner_reset(struct owner *o)
{
    struct message m = { .command = RESET };

    exchange(o, &m);
}

void owner_exit(struct owner *o)
{
    struct message m = { .command = EXIT };

    send_message(o->ask, &m);
}

void owner_kill(struct owner *o)
{
    if (kill(o->pid, SIGKILL)) {
        die_errno("kill");
    }
}

void owner_reap(struct owner *o)
{
    waitpid(o->pid, NULL, 0);
    close(o->ask);
    close(o->answer);
    usleep(SETTLE_US);
}
