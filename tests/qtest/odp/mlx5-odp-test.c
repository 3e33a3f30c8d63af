/*
 * QTest: mlx5 on-demand paging
 *
 * The test is the page-fault handler: it reads the event, maps pages by an
 * UMR and resumes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

#define VA 0x7f1234000000ull
#define PAGES 32

/* An ODP region: what its table says, and the memory behind it. */
typedef struct Mr {
    QMlx5 *d;
    uint32_t key;
    uint64_t va, mem;
    uint32_t pages;
    uint64_t mtt[PAGES];
} Mr;

static void mr_write(Mr *m, uint32_t page)
{
    uint32_t first = page & ~7u;

    qmlx5_mtt_update(m->d, m->key, first, m->mtt + first, 8);
}

static void mr_map(Mr *m, uint32_t page, uint64_t rights)
{
    m->mtt[page] = (m->mem + page * QMLX5_PAGE) | rights;
    mr_write(m, page);
}

static void mr_zap(Mr *m, uint32_t page)
{
    m->mtt[page] = 0;
    mr_write(m, page);
}

static Mr mr_new(QMlx5 *d, uint64_t va)
{
    Mr m = { .d = d, .va = va, .pages = PAGES };

    m.mem = qmlx5_alloc(d->host, PAGES * QMLX5_PAGE);
    m.key = qmlx5_mkey_odp(d, QMLX5_ALL, va, PAGES);
    return m;
}

typedef struct Bench {
    QMlx5 *d;
    QMlx5Qp *qp;
    uint64_t buf;                 /* pinned, 64 KiB */
    uint32_t all;                 /* key of all memory, all rights */
    Mr m;
} Bench;

static Bench *bench(const char *props)
{
    Bench *b = g_new0(Bench, 1);

    b->d = qmlx5_start(props);
    qmlx5_pf_enable(b->d, 8);
    b->qp = qmlx5_qp_self(b->d, QMLX5_RC);
    b->buf = qmlx5_alloc(b->d->host, 65536);
    b->all = qmlx5_mkey_pa(b->d, b->d->pd, QMLX5_ALL);
    b->m = mr_new(b->d, VA);
    return b;
}

static void bench_free(Bench *b)
{
    qmlx5_stop(b->d);
    g_free(b);
}

static void no_fault(Bench *b)
{
    QMlx5Fault f;

    qmlx5_settle(b->d);
    g_assert_false(qmlx5_pf_poll(b->d, &f));
}

/* The next event must be for this key and address. */
static QMlx5Fault expect_fault(Bench *b, uint32_t key, uint64_t va)
{
    QMlx5Fault f;

    qmlx5_pf_wait(b->d, &f);
    g_assert_cmphex(f.sub_type, ==, 2);
    g_assert_cmphex(f.flags, ==, 0x80);
    g_assert_cmphex(f.key, ==, key);
    g_assert_cmphex(f.va, ==, va);
    g_assert_cmphex(f.token, !=, 0);
    g_assert_cmpint(f.pages, ==, 1);
    g_assert_cmpint(lduw_be_p(f.data + 4), ==, 0);
    return f;
}

static void resume(Bench *b, QMlx5Fault f)
{
    g_assert_cmphex(qmlx5_pf_resume(b->d, &f, false), ==, 0);
}

static void resume_error(Bench *b, QMlx5Fault f)
{
    g_assert_cmphex(qmlx5_pf_resume(b->d, &f, true), ==, 0);
}

static void done(Bench *b)
{
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    no_fault(b);
}

static void write_from(Bench *b, uint64_t va, uint32_t len)
{
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->m.key, va, len, b->all, b->buf);
}

static void write_to(Bench *b, uint64_t va, uint32_t len)
{
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->all, b->buf, len, b->m.key, va);
}

/* Sides and intents */

static void test_requester_reads(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    qmlx5_fill(b->d, b->m.mem + 100, 64, 1);
    write_from(b, VA + 100, 64);
    f = expect_fault(b, b->m.key, VA + 100);
    g_assert_cmpint(lduw_be_p(f.data + 2), ==, 0);
    qmlx5_cq_none(b->qp->a.scq);
    mr_map(&b->m, 0, QMLX5_MTT_R);
    qmlx5_cq_none(b->qp->a.scq);      /* not before the resume */
    resume(b, f);
    done(b);
    qmlx5_expect(b->d, b->buf, 64, 1);
    /* Mapped: no fault. */
    write_from(b, VA, 4096);
    done(b);
    bench_free(b);
}

static void test_requester_writes(void)
{
    Bench *b = bench("");
    QMlx5Fault f, g;

    qmlx5_fill(b->d, b->buf, 64, 2);
    qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->m.key, VA + 4096, 64, b->all,
                    b->buf);
    f = expect_fault(b, b->m.key, VA + 4096);
    /* Readable is not enough. */
    mr_map(&b->m, 1, QMLX5_MTT_R);
    resume(b, f);
    g = expect_fault(b, b->m.key, VA + 4096);
    g_assert_cmphex(g.token, !=, f.token);
    qmlx5_cq_none(b->qp->a.scq);
    mr_map(&b->m, 1, QMLX5_MTT_RW);
    resume(b, g);
    done(b);
    qmlx5_expect(b->d, b->m.mem + 4096, 64, 2);
    bench_free(b);
}

static void test_responder_write(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    qmlx5_fill(b->d, b->buf, 64, 3);
    write_to(b, VA + 8, 64);
    f = expect_fault(b, b->m.key, VA + 8);
    mr_map(&b->m, 0, QMLX5_MTT_R);
    resume(b, f);
    f = expect_fault(b, b->m.key, VA + 8);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    done(b);
    qmlx5_expect(b->d, b->m.mem + 8, 64, 3);
    bench_free(b);
}

static void test_responder_read(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    qmlx5_fill(b->d, b->m.mem + 8, 64, 4);
    qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->all, b->buf, 64, b->m.key,
                    VA + 8);
    f = expect_fault(b, b->m.key, VA + 8);
    mr_map(&b->m, 0, QMLX5_MTT_R);        /* enough */
    resume(b, f);
    done(b);
    qmlx5_expect(b->d, b->buf, 64, 4);
    bench_free(b);
}

static void test_receive(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    qmlx5_fill(b->d, b->buf, 5000, 5);
    qmlx5_recv(b->qp, b->m.key, VA + 1000, 5000);
    qmlx5_post_send(b->qp, QMLX5_OP_SEND, b->all, b->buf, 5000);
    f = expect_fault(b, b->m.key, VA + 1000);
    g_assert_cmpint(lduw_be_p(f.data + 2), ==, 1);    /* one page beyond */
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    f = expect_fault(b, b->m.key, VA + 4096);
    g_assert_cmpint(lduw_be_p(f.data + 2), ==, 0);
    /* What was mapped has its bytes already. */
    qmlx5_expect(b->d, b->m.mem + 1000, 1, 5);
    mr_map(&b->m, 1, QMLX5_MTT_RW);
    resume(b, f);
    done(b);
    g_assert_cmpint(qmlx5_cq_expect(b->qp->a.rcq, QMLX5_CQE_SEND), ==, 5000);
    qmlx5_expect(b->d, b->m.mem + 1000, 5000, 5);
    bench_free(b);
}

static void test_receive_srq(void)
{
    Bench *b = bench("");
    QMlx5QpAttr a = qmlx5_qp_attr(b->d, QMLX5_RC);
    QMlx5Srq *srq = qmlx5_srq_new(b->d, b->d->pd, 4, 0);
    QMlx5Fault f[2];
    QMlx5Qp *qp[2];

    a.rq_type = 1;
    a.srq = srq;
    for (int i = 0; i < 2; i++) {
        qp[i] = qmlx5_qp_new(b->d, &a);
        qmlx5_qp_rts(qp[i]);
        qmlx5_srq_recv(srq, b->m.key, VA + i * 8192, 4096);
    }
    for (int i = 0; i < 2; i++) {
        qmlx5_fill(b->d, b->buf + i * 4096, 4096, 20 + i);
        qmlx5_post_send(qp[i], QMLX5_OP_SEND, b->all, b->buf + i * 4096, 4096);
        f[i] = expect_fault(b, b->m.key, VA + i * 8192);
    }
    /* The second first. */
    for (int i = 1; i >= 0; i--) {
        mr_map(&b->m, i * 2, QMLX5_MTT_RW);
        resume(b, f[i]);
        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
        qmlx5_cq_expect(qp[i]->a.rcq, QMLX5_CQE_SEND);
        qmlx5_expect(b->d, b->m.mem + i * 8192, 4096, 20 + i);
    }
    bench_free(b);
}

static void test_both_sides(void)
{
    Bench *b = bench("");
    Mr n = mr_new(b->d, VA + (1ull << 30));
    QMlx5Fault f;
    unsigned faults = 0;

    qmlx5_fill(b->d, b->m.mem + 10, 20000, 6);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->m.key, VA + 10, 20000, n.key,
                    n.va + 1);
    for (;;) {
        uint8_t cqe[64];

        qmlx5_settle(b->d);
        if (!qmlx5_pf_poll(b->d, &f)) {
            g_assert_true(qmlx5_cq_poll(b->qp->a.scq, cqe));
            g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
            break;
        }
        faults++;
        if (f.key == b->m.key) {
            mr_map(&b->m, (f.va - VA) / QMLX5_PAGE, QMLX5_MTT_R);
        } else {
            g_assert_cmphex(f.key, ==, n.key);
            mr_map(&n, (f.va - n.va) / QMLX5_PAGE, QMLX5_MTT_RW);
        }
        resume(b, f);
        g_assert_cmpint(faults, <, 20);
    }
    g_assert_cmpint(faults, ==, 10);      /* five pages each */
    qmlx5_expect(b->d, n.mem + 1, 20000, 6);
    bench_free(b);
}

/* Atomics are executed once, whatever faults. */
static void test_atomic(void)
{
    Bench *b = bench("");
    uint64_t word = b->m.mem + 64, result = b->m.mem + 5 * QMLX5_PAGE;
    QMlx5Fault f;

    qmlx5_put64_le(b->d, word, 1000);
    qmlx5_post_atomic(b->qp, QMLX5_OP_FA, b->m.key, VA + 5 * QMLX5_PAGE,
                      b->m.key, VA + 64, 7, 0);
    f = expect_fault(b, b->m.key, VA + 64);
    g_assert_cmpint(qmlx5_get64_le(b->d, word), ==, 1000);
    mr_map(&b->m, 0, QMLX5_MTT_R);        /* an atomic writes */
    resume(b, f);
    f = expect_fault(b, b->m.key, VA + 64);
    g_assert_cmpint(qmlx5_get64_le(b->d, word), ==, 1000);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    f = expect_fault(b, b->m.key, VA + 5 * QMLX5_PAGE);
    g_assert_cmpint(qmlx5_get64_le(b->d, word), ==, 1007);
    /* Retried in vain twice: the word stays. */
    resume(b, f);
    f = expect_fault(b, b->m.key, VA + 5 * QMLX5_PAGE);
    g_assert_cmpint(qmlx5_get64_le(b->d, word), ==, 1007);
    mr_map(&b->m, 5, QMLX5_MTT_RW);
    resume(b, f);
    done(b);
    g_assert_cmpint(qmlx5_get64_le(b->d, word), ==, 1007);
    g_assert_cmpint(qmlx5_get64_le(b->d, result), ==, 1000);
    bench_free(b);
}

/* How a fault is told and answered */

static void test_partial(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    for (int i = 0; i < 8; i++) {
        if (i != 3) {
            mr_map(&b->m, i, QMLX5_MTT_RW);
        }
    }
    qmlx5_fill(b->d, b->buf, 8 * QMLX5_PAGE - 100, 7);
    write_to(b, VA + 50, 8 * QMLX5_PAGE - 100);
    f = expect_fault(b, b->m.key, VA + 3 * QMLX5_PAGE);
    g_assert_cmpint(lduw_be_p(f.data + 2), ==, 4);
    mr_map(&b->m, 3, QMLX5_MTT_RW);
    resume(b, f);
    done(b);
    qmlx5_expect(b->d, b->m.mem + 50, 8 * QMLX5_PAGE - 100, 7);
    bench_free(b);
}

static void test_resume_in_vain(void)
{
    Bench *b = bench("");
    uint64_t token = 0;

    write_to(b, VA, 8);
    for (int i = 0; i < 20; i++) {
        QMlx5Fault f = expect_fault(b, b->m.key, VA);

        g_assert_cmphex(f.token, !=, token);
        token = f.token;
        qmlx5_cq_none(b->qp->a.scq);
        if (i == 19) {
            mr_map(&b->m, 0, QMLX5_MTT_RW);
        }
        resume(b, f);
    }
    done(b);
    bench_free(b);
}

static void test_resume_error(void)
{
    Bench *b = bench("");

    write_from(b, VA, 8);
    resume_error(b, expect_fault(b, b->m.key, VA));
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    qmlx5_qp_revive(b->qp);

    write_to(b, VA, 8);
    resume_error(b, expect_fault(b, b->m.key, VA));
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(b->qp);

    qmlx5_recv(b->qp, b->m.key, VA, 64);
    qmlx5_post_send(b->qp, QMLX5_OP_SEND, b->all, b->buf, 8);
    resume_error(b, expect_fault(b, b->m.key, VA));
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_OP);
    qmlx5_cq_expect_err(b->qp->a.rcq, QMLX5_CQE_RESP_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    qmlx5_qp_revive(b->qp);

    qmlx5_post_atomic(b->qp, QMLX5_OP_FA, b->all, b->buf, b->m.key, VA, 1, 0);
    resume_error(b, expect_fault(b, b->m.key, VA));
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(b->qp);
    write_to(b, VA, 8);
    {
        QMlx5Fault f = expect_fault(b, b->m.key, VA);

        mr_map(&b->m, 0, QMLX5_MTT_RW);
        resume(b, f);
    }
    done(b);
    bench_free(b);
}

static void test_stale_token(void)
{
    Bench *b = bench("");
    QMlx5Fault f, bogus = { .token = 0xdeadbeef1234 };

    resume(b, bogus);
    write_to(b, VA, 8);
    f = expect_fault(b, b->m.key, VA);
    resume(b, bogus);
    bogus.token = f.token ^ (1ull << 40);
    resume(b, bogus);
    bogus.token = 0;
    resume_error(b, bogus);
    qmlx5_cq_none(b->qp->a.scq);
    no_fault(b);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    done(b);
    resume(b, f);                     /* answered already */
    resume_error(b, f);
    write_to(b, VA, 8);
    done(b);
    bench_free(b);
}

static void test_nobody_listens(void)
{
    QMlx5 *d = qmlx5_start("");
    QMlx5Qp *qp = qmlx5_qp_self(d, QMLX5_RC);
    uint32_t key = qmlx5_mkey_odp(d, QMLX5_ALL, VA, PAGES);

    qmlx5_post_rdma(qp, QMLX5_OP_WRITE, d->lkey, d->vectors, 8, key, VA);
    qmlx5_cq_expect_err(qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_stop(d);
}

static void test_zero_length(void)
{
    Bench *b = bench("");

    write_to(b, VA, 0);
    done(b);
    write_from(b, VA, 0);
    done(b);
    bench_free(b);
}

/* Many at once */

static void test_merge(void)
{
    Bench *b = bench("");
    QMlx5Qp *qp[20];
    QMlx5Fault f;

    for (int i = 0; i < 20; i++) {
        qp[i] = qmlx5_qp_self(b->d, QMLX5_RC);
        qmlx5_fill(b->d, b->buf + i * 64, 64, i);
        qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, b->all, b->buf + i * 64, 64,
                        b->m.key, VA + i * 64);
    }
    f = expect_fault(b, b->m.key, VA);
    no_fault(b);                      /* one event for all */
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    for (int i = 0; i < 20; i++) {
        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
        qmlx5_expect(b->d, b->m.mem + i * 64, 64, i);
    }
    no_fault(b);
    bench_free(b);
}

static void test_merge_intent(void)
{
    Bench *b = bench("");
    QMlx5Qp *reader = qmlx5_qp_self(b->d, QMLX5_RC);
    QMlx5Fault f;
    uint8_t cqe[64];
    bool again;

    /* A read is pending; a write to the page wants more. */
    qmlx5_post_rdma(reader, QMLX5_OP_READ, b->all, b->buf, 8, b->m.key, VA);
    f = expect_fault(b, b->m.key, VA);
    write_to(b, VA, 8);
    qmlx5_settle(b->d);
    mr_map(&b->m, 0, QMLX5_MTT_R);
    resume(b, f);
    qmlx5_cq_expect(reader->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_none(b->qp->a.scq);
    f = expect_fault(b, b->m.key, VA);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);

    /* A write is pending: its answer serves a read. */
    write_to(b, VA + 4096, 8);
    f = expect_fault(b, b->m.key, VA + 4096);
    qmlx5_post_rdma(reader, QMLX5_OP_READ, b->all, b->buf, 8, b->m.key,
                    VA + 4096);
    no_fault(b);
    mr_map(&b->m, 1, QMLX5_MTT_RW);
    resume(b, f);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    again = !qmlx5_cq_poll(reader->a.scq, cqe);
    if (again) {
        qmlx5_cq_wait(reader->a.scq, cqe);
    }
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
    bench_free(b);
}

static void test_others_go_on(void)
{
    Bench *b = bench("");
    QMlx5Qp *other = qmlx5_qp_self(b->d, QMLX5_RC);
    QMlx5Fault f;
    uint32_t key;

    qmlx5_fill(b->d, b->buf, 64, 9);
    write_to(b, VA, 64);
    f = expect_fault(b, b->m.key, VA);
    for (int i = 0; i < 5; i++) {
        qmlx5_post_rdma(other, QMLX5_OP_WRITE, b->all, b->buf, 64, b->all,
                        b->buf + 4096);
        qmlx5_cq_expect(other->a.scq, QMLX5_CQE_REQ);
        mr_map(&b->m, 8 + i, QMLX5_MTT_RW);           /* UMR */
        key = qmlx5_mkey_odp(b->d, QMLX5_ALL, 0, 8);  /* commands */
        g_assert_cmphex(qmlx5_mkey_destroy(b->d, key), ==, 0);
    }
    /* Requests behind the faulting one wait, in order. */
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->all, b->buf, 64, b->all,
                    b->buf + 8192);
    qmlx5_cq_none(b->qp->a.scq);
    qmlx5_expect_byte(b->d, b->buf + 8192, 64, 0);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(b->d, b->buf + 8192, 64, 9);
    bench_free(b);
}

/* The queue has four entries: the fifth fault waits until there is room. */
static void test_eq_full(void)
{
    QMlx5 *d = qmlx5_start("");
    Bench b = { .d = d };
    QMlx5Qp *qp[12];
    QMlx5Fault f;
    uint8_t eqe[64];
    unsigned events = 0;

    qmlx5_pf_enable(d, 2);
    b.m = mr_new(d, VA);
    b.buf = qmlx5_alloc(d->host, 4096);
    qmlx5_fill(d, b.buf, 64, 11);
    for (int i = 0; i < 12; i++) {
        qp[i] = qmlx5_qp_self(d, QMLX5_RC);
        qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, d->lkey, b.buf, 64, b.m.key,
                        VA + i * QMLX5_PAGE);
    }
    qmlx5_settle(d);
    /* Four are in the ring and nothing was written over. */
    for (int i = 0; i < 4; i++) {
        qmlx5_read(d, d->pf_eq->buf + i * 64, eqe, 64);
        g_assert_cmphex(ldq_be_p(eqe + 32 + 20), ==, VA + i * QMLX5_PAGE);
    }
    for (int i = 0; i < 12; i++) {
        qmlx5_pf_wait(d, &f);         /* consumes, tells the device */
        g_assert_cmphex(f.va, ==, VA + i * QMLX5_PAGE);
        mr_map(&b.m, i, QMLX5_MTT_RW);
        g_assert_cmphex(qmlx5_pf_resume(d, &f, false), ==, 0);
        events++;
    }
    for (int i = 0; i < 12; i++) {
        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
        qmlx5_expect(d, b.m.mem + i * QMLX5_PAGE, 64, 11);
    }
    g_assert_cmpint(events, ==, 12);
    qmlx5_stop(d);
}

static void test_many_pending(void)
{
    Bench *b = bench("");
    enum { N = 200 };
    QMlx5Qp *qp[N];
    QMlx5Fault f[N];
    Mr m[8];
    QMlx5QpAttr a = qmlx5_qp_attr(b->d, QMLX5_RC);

    a.scq = a.rcq = qmlx5_cq_new(b->d, 9);
    for (int i = 0; i < 8; i++) {
        m[i] = mr_new(b->d, VA + ((uint64_t)i << 32));
    }
    for (int i = 0; i < N; i++) {
        qp[i] = qmlx5_qp_new(b->d, &a);
        qmlx5_qp_rts(qp[i]);
        qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, b->all, b->buf + i, 1,
                        m[i % 8].key, m[i % 8].va + i / 8 * QMLX5_PAGE);
    }
    qmlx5_fill(b->d, b->buf, N, 12);
    for (int i = 0; i < N; i++) {
        f[i] = expect_fault(b, m[i % 8].key,
                            m[i % 8].va + i / 8 * QMLX5_PAGE);
    }
    for (int i = N - 1; i >= 0; i--) {
        mr_map(&m[i % 8], i / 8, QMLX5_MTT_RW);
        resume(b, f[i]);
    }
    for (int i = 0; i < N; i++) {
        qmlx5_cq_expect(a.scq, QMLX5_CQE_REQ);
    }
    qmlx5_cq_none(a.scq);
    bench_free(b);
}

/* Invalidation */

static void test_zap(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    for (int i = 0; i < 8; i++) {
        mr_map(&b->m, i, QMLX5_MTT_RW);
    }
    qmlx5_fill(b->d, b->buf, 8 * QMLX5_PAGE, 13);
    write_to(b, VA, 8 * QMLX5_PAGE);
    done(b);
    mr_zap(&b->m, 2);
    /* The page belongs to somebody else now. */
    qtest_memset(b->d->qts, b->m.mem + 2 * QMLX5_PAGE, 0xee, QMLX5_PAGE);
    write_to(b, VA, 8 * QMLX5_PAGE);
    f = expect_fault(b, b->m.key, VA + 2 * QMLX5_PAGE);
    qmlx5_expect_byte(b->d, b->m.mem + 2 * QMLX5_PAGE, QMLX5_PAGE, 0xee);
    /* Back at another place. */
    b->m.mtt[2] = (b->m.mem + 20 * QMLX5_PAGE) | QMLX5_MTT_RW;
    mr_write(&b->m, 2);
    resume(b, f);
    done(b);
    qmlx5_expect_byte(b->d, b->m.mem + 2 * QMLX5_PAGE, QMLX5_PAGE, 0xee);
    qmlx5_fill(b->d, b->m.mem + 2 * QMLX5_PAGE, QMLX5_PAGE, 0);
    bench_free(b);
}

/* A zap between the slices of a long copy: nothing lands after it. */
static void test_zap_in_copy(void)
{
    Bench *b = bench("");
    enum { MB = 1 << 20, BIG = 8 * MB };
    uint64_t mem = qmlx5_alloc(b->d->host, BIG);
    uint64_t src = qmlx5_alloc(b->d->host, BIG);
    uint32_t pages = BIG / QMLX5_PAGE;
    uint32_t key = qmlx5_mkey_odp(b->d, QMLX5_ALL, VA, pages);
    g_autofree uint64_t *mtt = g_new0(uint64_t, pages);
    QMlx5Fault f;

    for (uint32_t i = 0; i < pages; i++) {
        mtt[i] = (mem + (uint64_t)i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(b->d, key, 0, mtt, pages);
    qmlx5_fill(b->d, src, BIG, 14);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->all, src, BIG, key, VA);
    memset(mtt, 0, 8 * sizeof(*mtt));
    qmlx5_mtt_update(b->d, key, pages - 8, mtt, 8);
    qtest_memset(b->d->qts, mem + BIG - 8 * QMLX5_PAGE, 0xdd, 8 * QMLX5_PAGE);
    qmlx5_settle(b->d);
    if (!qmlx5_pf_poll(b->d, &f)) {
        /* The copy was over before the zap. */
        uint8_t cqe[64];

        qmlx5_settle(b->d);
        if (qmlx5_cq_poll(b->qp->a.scq, cqe)) {
            g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
            goto out;
        }
        qmlx5_pf_wait(b->d, &f);
    }
    g_assert_cmphex(f.va, ==, VA + BIG - 8 * QMLX5_PAGE);
    qmlx5_cq_none(b->qp->a.scq);
out:
    qmlx5_expect_byte(b->d, mem + BIG - 8 * QMLX5_PAGE, 8 * QMLX5_PAGE, 0xdd);
    bench_free(b);
}

/* Ends in mid-fault */

static void test_destroy_mkey(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    write_to(b, VA, 8);
    f = expect_fault(b, b->m.key, VA);
    g_assert_cmphex(qmlx5_mkey_destroy(b->d, b->m.key), ==, 0);
    resume(b, f);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    bench_free(b);
}

static void test_invalidate(void)
{
    Bench *b = bench("");
    QMlx5Umr u = { .key = b->m.key, .flags = QMLX5_UMR_INLINE, .free = true,
                   .mask = QMLX5_M_FREE };
    QMlx5Fault f;

    write_from(b, VA, 8);
    f = expect_fault(b, b->m.key, VA);
    g_assert_cmphex(qmlx5_umr(b->d, &u), ==, 0);      /* revoked */
    resume(b, f);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    bench_free(b);
}

static void test_destroy_qp(void)
{
    Bench *b = bench("");
    QMlx5Fault f[3];
    QMlx5Qp *peer = qmlx5_qp_self(b->d, QMLX5_RC);
    QMlx5QpAttr a = qmlx5_qp_attr(b->d, QMLX5_RC);

    write_to(b, VA, 8);
    f[0] = expect_fault(b, b->m.key, VA);
    g_assert_cmphex(qmlx5_qp_destroy(b->qp), ==, 0);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f[0]);                  /* of nobody any more */
    qmlx5_expect_byte(b->d, b->m.mem, 8, 0);

    /* The responder is destroyed while the requester's operation faults. */
    a.ack_timeout = 8;
    b->qp = qmlx5_qp_new(b->d, &a);
    g_assert_cmphex(qmlx5_qp_modify(peer, QMLX5_2RST_QP), ==, 0);
    qmlx5_qp_connect(b->qp, peer);
    qmlx5_qp_rts(b->qp);
    qmlx5_qp_rts(peer);
    write_to(b, VA + 4096, 8);
    f[1] = expect_fault(b, b->m.key, VA + 4096);
    g_assert_cmphex(qmlx5_qp_destroy(peer), ==, 0);
    resume(b, f[1]);
    for (int i = 0; i < 12; i++) {
        qmlx5_clock(b->d, 3000000);
    }
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_RETRY);
    qmlx5_expect_byte(b->d, b->m.mem + 4096, 8, 0);
    bench_free(b);
}

static void test_qp_to_error(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    write_from(b, VA, 8);
    f = expect_fault(b, b->m.key, VA);
    g_assert_cmphex(qmlx5_qp_modify(b->qp, QMLX5_2ERR_QP), ==, 0);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_FLUSH);
    resume(b, f);
    qmlx5_cq_none(b->qp->a.scq);
    qmlx5_qp_revive(b->qp);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    write_from(b, VA, 8);
    done(b);

    /* A receive that faults is flushed with the others. */
    qmlx5_recv(b->qp, b->m.key, VA + 8192, 64);
    qmlx5_recv(b->qp, b->m.key, VA, 64);
    qmlx5_post_send(b->qp, QMLX5_OP_SEND, b->all, b->buf, 8);
    f = expect_fault(b, b->m.key, VA + 8192);
    g_assert_cmphex(qmlx5_qp_modify(b->qp, QMLX5_2ERR_QP), ==, 0);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_FLUSH);
    qmlx5_cq_expect_err(b->qp->a.rcq, QMLX5_CQE_RESP_ERR, QMLX5_SYN_FLUSH);
    qmlx5_cq_expect_err(b->qp->a.rcq, QMLX5_CQE_RESP_ERR, QMLX5_SYN_FLUSH);
    resume(b, f);
    qmlx5_cq_none(b->qp->a.rcq);
    bench_free(b);
}

static void test_destroy_eq(void)
{
    Bench *b = bench("");
    QMlx5Fault f;

    write_to(b, VA, 8);
    f = expect_fault(b, b->m.key, VA);
    g_assert_cmphex(qmlx5_eq_destroy(b->d->pf_eq), ==, 0);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    resume(b, f);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    write_to(b, VA + 4096, 8);        /* nobody listens now */
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    bench_free(b);
}

/* Implicit regions: a KSM of children, absent ones a key of zeroes */

#define CHILD_LOG 16              /* 64 KiB a child here */

static uint32_t child_key(Bench *b, uint64_t va)
{
    return qmlx5_mkey_odp(b->d, QMLX5_ALL, va, (1 << CHILD_LOG) / QMLX5_PAGE);
}

static void ksm_set(Bench *b, uint32_t root, uint32_t entry, uint32_t key,
                    uint64_t va)
{
    /* 64 bytes: four entries. */
    static uint8_t table[16 * 16];
    QMlx5Umr u = { .key = root, .octowords = 4,
                   .flags = QMLX5_UMR_OFFSET | QMLX5_UMR_CHECK_FREE |
                            QMLX5_UMR_INLINE };

    stl_be_p(table + entry * 16 + 4, key);
    stq_be_p(table + entry * 16 + 8, va);
    u.offset = entry & ~3u;
    u.inl = table + u.offset * 16;
    u.bytes = 64;
    g_assert_cmphex(qmlx5_umr(b->d, &u), ==, 0);
}

static void test_implicit(void)
{
    Bench *b = bench("");
    QMlx5 *d = b->d;
    QMlx5MkeyAttr null_attr = {
        .mode = 1, .pd = d->pd, .access = QMLX5_ALL, .log_page = 61,
        .entries = 8, .length64 = true, .umr = true,
    };
    uint32_t null = qmlx5_mkey_new(d, &null_attr);
    QMlx5MkeyAttr a = {
        .mode = 3, .pd = d->pd, .access = QMLX5_ALL, .log_page = CHILD_LOG,
        .entries = 16, .len = 16ull << CHILD_LOG, .umr = true,
    };
    uint32_t root = qmlx5_mkey_new(d, &a), child;
    uint64_t va = (3ull << CHILD_LOG) + 0x2345;
    uint64_t mtt[8] = { };
    QMlx5Fault f;

    for (int i = 0; i < 16; i++) {
        ksm_set(b, root, i, null, (uint64_t)i << CHILD_LOG);
    }
    qmlx5_fill(d, b->buf, 64, 15);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->all, b->buf, 64, root, va);
    f = expect_fault(b, root, va);
    child = child_key(b, 3ull << CHILD_LOG);
    ksm_set(b, root, 3, child, 3ull << CHILD_LOG);
    resume(b, f);
    f = expect_fault(b, root, va);    /* never the child's key */
    mtt[2] = (b->m.mem + 2 * QMLX5_PAGE) | QMLX5_MTT_RW;
    qmlx5_mtt_update(d, child, 0, mtt, 8);
    resume(b, f);
    done(b);
    qmlx5_expect(d, b->m.mem + 2 * QMLX5_PAGE + 0x345, 64, 15);

    /* The child goes as the driver lets it go: zap, then the entry. */
    memset(mtt, 0, sizeof(mtt));
    qmlx5_mtt_update(d, child, 0, mtt, 8);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->all, b->buf, 64, root, va);
    f = expect_fault(b, root, va);
    ksm_set(b, root, 3, null, 3ull << CHILD_LOG);
    g_assert_cmphex(qmlx5_mkey_destroy(d, child), ==, 0);
    resume(b, f);
    f = expect_fault(b, root, va);
    resume_error(b, f);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(b->qp);

    /* Over the edge of two children, as the local side. */
    va = (6ull << CHILD_LOG) - 32;
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, root, va, 64, b->all, b->buf);
    f = expect_fault(b, root, va);
    child = child_key(b, 5ull << CHILD_LOG);
    mtt[7] = (b->m.mem + 7 * QMLX5_PAGE) | QMLX5_MTT_RW;
    qmlx5_mtt_update(d, child, 8, mtt, 8);
    ksm_set(b, root, 5, child, 5ull << CHILD_LOG);
    resume(b, f);
    f = expect_fault(b, root, 6ull << CHILD_LOG);
    resume_error(b, f);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    bench_free(b);
}

/* Transport scheme */

static uint8_t transport_resume(Bench *b, const QMlx5Fault *f, bool error)
{
    uint32_t type_wq = qmlx5_be32(f->data + 24);
    uint32_t type = type_wq >> 24 & 7, wq, token;

    if (f->sub_type == 0) {
        token = qmlx5_be32(f->data + 12);
        wq = type_wq & 0xffffff;
    } else {
        token = type_wq & 0xffffff;
        wq = token;
    }
    return qmlx5_cmd_simple(b->d, QMLX5_PAGE_FAULT_RESUME, 0,
                            (uint32_t)error << 31 | type << 24 | wq, token,
                            NULL);
}

static void test_transport(void)
{
    Bench *b = bench(",odp=transport");
    QMlx5Fault f;

    /* Requester, send or write. */
    qmlx5_fill(b->d, b->m.mem, 64, 16);
    write_from(b, VA, 64);
    qmlx5_pf_wait(b->d, &f);
    g_assert_cmphex(f.sub_type, ==, 0);
    g_assert_cmphex(qmlx5_be32(f.data + 24), ==, 1 << 24 | b->qp->qpn);
    g_assert_cmpint(lduw_be_p(f.data + 6), ==, (uint16_t)(b->qp->sq_pi - 1));
    g_assert_cmpint(qmlx5_be32(f.data), ==, 0);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    g_assert_cmphex(transport_resume(b, &f, false), ==, 0);
    done(b);
    qmlx5_expect(b->d, b->buf, 64, 16);

    /* Requester, what a read brings. */
    qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->m.key, VA + 4096, 64, b->all,
                    b->buf);
    qmlx5_pf_wait(b->d, &f);
    g_assert_cmphex(f.sub_type, ==, 0);
    g_assert_cmphex(qmlx5_be32(f.data + 24), ==, 3 << 24 | b->qp->qpn);
    mr_map(&b->m, 1, QMLX5_MTT_RW);
    g_assert_cmphex(transport_resume(b, &f, false), ==, 0);
    done(b);

    /* Responder, RDMA. */
    write_to(b, VA + 8192 + 8, 300);
    qmlx5_pf_wait(b->d, &f);
    g_assert_cmphex(f.sub_type, ==, 1);
    g_assert_cmphex(qmlx5_be32(f.data + 4), ==, b->m.key);
    g_assert_cmpint(qmlx5_be32(f.data + 12), ==, 300);
    g_assert_cmphex(ldq_be_p(f.data + 16), ==, VA + 8192 + 8);
    g_assert_cmphex(f.data[24], ==, 2);
    mr_map(&b->m, 2, QMLX5_MTT_RW);
    g_assert_cmphex(transport_resume(b, &f, false), ==, 0);
    done(b);

    /* Responder, receive WQE. */
    qmlx5_recv(b->qp, b->m.key, VA + 3 * 4096, 64);
    qmlx5_post_send(b->qp, QMLX5_OP_SEND, b->all, b->buf, 64);
    qmlx5_pf_wait(b->d, &f);
    g_assert_cmphex(f.sub_type, ==, 0);
    g_assert_cmphex(qmlx5_be32(f.data + 24), ==, 2 << 24 | b->qp->qpn);
    g_assert_cmpint(lduw_be_p(f.data + 6), ==, 0);
    g_assert_cmphex(transport_resume(b, &f, true), ==, 0);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_REMOTE_OP);
    qmlx5_cq_expect_err(b->qp->a.rcq, QMLX5_CQE_RESP_ERR,
                        QMLX5_SYN_LOCAL_PROT);
    qmlx5_qp_revive(b->qp);
    g_assert_cmphex(transport_resume(b, &f, false), ==, 0);   /* stale */
    write_from(b, VA, 64);
    done(b);
    bench_free(b);
}

/* One event at a time for a page; whoever waited for it tries again. */
static void test_transport_held(void)
{
    Bench *b = bench(",odp=transport");
    QMlx5Qp *qp[5];
    QMlx5Fault f, g;

    for (int i = 0; i < 5; i++) {
        qp[i] = qmlx5_qp_self(b->d, QMLX5_RC);
        qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, b->all, b->buf, 8, b->m.key,
                        VA);
        if (!i) {
            qmlx5_pf_wait(b->d, &f);
        }
    }
    no_fault(b);
    /* An error is the first one's alone. */
    g_assert_cmphex(transport_resume(b, &f, true), ==, 0);
    qmlx5_cq_expect_err(qp[0]->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_pf_wait(b->d, &g);
    no_fault(b);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    g_assert_cmphex(transport_resume(b, &g, false), ==, 0);
    for (int i = 1; i < 5; i++) {
        qmlx5_cq_expect(qp[i]->a.scq, QMLX5_CQE_REQ);
    }
    no_fault(b);
    bench_free(b);
}

/*
 * The driver does not answer for a queue pair that is gone: those that wait
 * for its fault must not wait for that.
 */
static void test_transport_held_destroy(void)
{
    Bench *b = bench(",odp=transport");
    QMlx5Qp *first = qmlx5_qp_self(b->d, QMLX5_RC);
    QMlx5Fault f, g;

    qmlx5_post_rdma(first, QMLX5_OP_WRITE, b->m.key, VA, 8, b->all, b->buf);
    qmlx5_pf_wait(b->d, &f);
    write_from(b, VA + 8, 8);
    no_fault(b);
    g_assert_cmphex(qmlx5_qp_destroy(first), ==, 0);
    qmlx5_pf_wait(b->d, &g);
    g_assert_cmphex(qmlx5_be32(g.data + 24), ==, 1 << 24 | b->qp->qpn);
    g_assert_cmphex(transport_resume(b, &f, false), ==, 0);   /* stale */
    qmlx5_cq_none(b->qp->a.scq);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    g_assert_cmphex(transport_resume(b, &g, false), ==, 0);
    done(b);
    bench_free(b);
}

/* A root key of 16 entries that are all absent: @null. */
static uint32_t root_new(Bench *b, uint32_t null)
{
    QMlx5MkeyAttr a = {
        .mode = 3, .pd = b->d->pd, .access = QMLX5_ALL, .log_page = CHILD_LOG,
        .entries = 16, .len = 16ull << CHILD_LOG, .umr = true,
    };
    uint32_t root = qmlx5_mkey_new(b->d, &a);

    for (int i = 0; i < 16; i++) {
        ksm_set(b, root, i, null, (uint64_t)i << CHILD_LOG);
    }
    return root;
}

/*
 * Different pages of one absent child: one event, since the driver would make
 * the child for each and throw all but one away.
 */
static void test_implicit_held(void)
{
    Bench *b = bench("");
    QMlx5MkeyAttr null_attr = {
        .mode = 1, .pd = b->d->pd, .access = QMLX5_ALL, .log_page = 61,
        .entries = 8, .length64 = true, .umr = true,
    };
    uint32_t root = root_new(b, qmlx5_mkey_new(b->d, &null_attr)), child;
    uint64_t base = 3ull << CHILD_LOG, mtt[8] = { };
    QMlx5Qp *qp[4];
    QMlx5Fault f;

    for (int i = 0; i < 4; i++) {
        qp[i] = qmlx5_qp_self(b->d, QMLX5_RC);
        qmlx5_post_rdma(qp[i], QMLX5_OP_WRITE, b->all, b->buf, 8, root,
                        base + i * QMLX5_PAGE);
        if (!i) {
            f = expect_fault(b, root, base);
        }
    }
    no_fault(b);
    /* An error is the first one's alone. */
    resume_error(b, f);
    qmlx5_cq_expect_err(qp[0]->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_pf_wait(b->d, &f);
    no_fault(b);
    child = child_key(b, base);
    for (int i = 1; i < 3; i++) {
        mtt[i] = (b->m.mem + i * QMLX5_PAGE) | QMLX5_MTT_RW;
    }
    qmlx5_mtt_update(b->d, child, 0, mtt, 8);
    ksm_set(b, root, 3, child, base);
    resume(b, f);
    qmlx5_cq_expect(qp[1]->a.scq, QMLX5_CQE_REQ);
    qmlx5_cq_expect(qp[2]->a.scq, QMLX5_CQE_REQ);
    /* The child is there now, and this page of it is not. */
    f = expect_fault(b, root, base + 3 * QMLX5_PAGE);
    mtt[3] = (b->m.mem + 3 * QMLX5_PAGE) | QMLX5_MTT_RW;
    qmlx5_mtt_update(b->d, child, 0, mtt, 8);
    resume(b, f);
    qmlx5_cq_expect(qp[3]->a.scq, QMLX5_CQE_REQ);
    no_fault(b);
    bench_free(b);
}

/* The driver brings all of a WQE's list, in the transport scheme. */
static void test_transport_held_list(void)
{
    Bench *b = bench(",odp=transport");
    uint32_t root = root_new(b, b->d->null_mkey);
    uint64_t base = 3ull << CHILD_LOG;
    QMlx5Qp *other = qmlx5_qp_self(b->d, QMLX5_RC);
    QMlx5Fault f, g;
    QMlx5Wqe w;
    uint32_t child;
    uint64_t mtt[8] = { };

    qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED, 0);
    qmlx5_wqe_raddr(&w, b->buf, b->all);
    qmlx5_wqe_data(&w, b->m.key, VA, 8);
    qmlx5_wqe_data(&w, root, base, 8);
    qmlx5_post(b->qp, &w);
    qmlx5_pf_wait(b->d, &f);
    qmlx5_post_rdma(other, QMLX5_OP_WRITE, root, base + QMLX5_PAGE, 8, b->all,
                    b->buf);
    no_fault(b);
    mr_map(&b->m, 0, QMLX5_MTT_RW);
    child = child_key(b, base);
    mtt[0] = b->m.mem | QMLX5_MTT_RW;
    qmlx5_mtt_update(b->d, child, 0, mtt, 8);
    ksm_set(b, root, 3, child, base);
    g_assert_cmphex(transport_resume(b, &f, false), ==, 0);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_pf_wait(b->d, &g);
    g_assert_cmphex(qmlx5_be32(g.data + 24), ==, 1 << 24 | other->qpn);
    mtt[1] = (b->m.mem + QMLX5_PAGE) | QMLX5_MTT_RW;
    qmlx5_mtt_update(b->d, child, 0, mtt, 8);
    g_assert_cmphex(transport_resume(b, &g, false), ==, 0);
    qmlx5_cq_expect(other->a.scq, QMLX5_CQE_REQ);
    no_fault(b);
    bench_free(b);
}

static void test_off(void)
{
    QMlx5 *d = qmlx5_start(",odp=off");
    uint8_t cap[4096];

    qmlx5_query_cap(d, 0, true, cap);
    g_assert_cmpint(MLX5_GET(cap, cmd_hca_cap, pg), ==, 0);
    qmlx5_stop(d);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/odp/requester-reads", test_requester_reads);
    qtest_add_func("/mlx5/odp/requester-writes", test_requester_writes);
    qtest_add_func("/mlx5/odp/responder-write", test_responder_write);
    qtest_add_func("/mlx5/odp/responder-read", test_responder_read);
    qtest_add_func("/mlx5/odp/receive", test_receive);
    qtest_add_func("/mlx5/odp/receive-srq", test_receive_srq);
    qtest_add_func("/mlx5/odp/both-sides", test_both_sides);
    qtest_add_func("/mlx5/odp/atomic", test_atomic);
    qtest_add_func("/mlx5/odp/partial", test_partial);
    qtest_add_func("/mlx5/odp/resume-in-vain", test_resume_in_vain);
    qtest_add_func("/mlx5/odp/resume-error", test_resume_error);
    qtest_add_func("/mlx5/odp/stale-token", test_stale_token);
    qtest_add_func("/mlx5/odp/nobody-listens", test_nobody_listens);
    qtest_add_func("/mlx5/odp/zero-length", test_zero_length);
    qtest_add_func("/mlx5/odp/merge", test_merge);
    qtest_add_func("/mlx5/odp/merge-intent", test_merge_intent);
    qtest_add_func("/mlx5/odp/others-go-on", test_others_go_on);
    qtest_add_func("/mlx5/odp/eq-full", test_eq_full);
    qtest_add_func("/mlx5/odp/many-pending", test_many_pending);
    qtest_add_func("/mlx5/odp/zap", test_zap);
    qtest_add_func("/mlx5/odp/zap-in-copy", test_zap_in_copy);
    qtest_add_func("/mlx5/odp/destroy-mkey", test_destroy_mkey);
    qtest_add_func("/mlx5/odp/invalidate", test_invalidate);
    qtest_add_func("/mlx5/odp/destroy-qp", test_destroy_qp);
    qtest_add_func("/mlx5/odp/qp-to-error", test_qp_to_error);
    qtest_add_func("/mlx5/odp/destroy-eq", test_destroy_eq);
    qtest_add_func("/mlx5/odp/implicit", test_implicit);
    qtest_add_func("/mlx5/odp/implicit-held", test_implicit_held);
    qtest_add_func("/mlx5/odp/transport", test_transport);
    qtest_add_func("/mlx5/odp/transport-held", test_transport_held);
    qtest_add_func("/mlx5/odp/transport-held-destroy",
                   test_transport_held_destroy);
    qtest_add_func("/mlx5/odp/transport-held-list", test_transport_held_list);
    qtest_add_func("/mlx5/odp/off", test_off);
    return g_test_run();
}
