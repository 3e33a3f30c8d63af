/*
 * QTest: mlx5 signature keys and protection states
 *
 * Signatures are computed here bit by bit, with other code than the model's.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-driver.h"

#define VA 0x7f4321000000ull
#define MEM (64 * 1024)

/* Kinds of signatures as a test names them. */
enum { NONE, DIF, DIF_IP, CRC32, CRC32C, CRC64 };

typedef struct Format {
    uint8_t kind;
    uint16_t block;
    bool ones, inc;               /* seed; reference tag counts */
    uint8_t escape;
    uint16_t app;
    uint32_t ref;
} Format;

typedef struct Bench {
    QMlx5 *d;
    QMlx5Qp *qp;                  /* connected to itself */
    uint64_t src, dst;
    uint32_t leaf;                /* key of src and dst, from VA and VA + MEM */
    uint32_t sig;                 /* signature key */
    uint32_t psv[2];              /* wire, memory */
    bool told;                    /* number of errors told is odd */
} Bench;

static unsigned sig_len(const Format *f)
{
    return f->kind == NONE ? 0 : f->kind == CRC32 || f->kind == CRC32C ? 4 : 8;
}

static uint64_t reflected(uint64_t poly, uint64_t crc, const uint8_t *p,
                          size_t n)
{
    for (size_t i = 0; i < n * 8; i++) {
        bool bit = (crc ^ p[i / 8] >> i % 8) & 1;

        crc = crc >> 1 ^ (bit ? poly : 0);
    }
    return crc;
}

/* The signature of one block. */
static void sign(const Format *f, const uint8_t *p, uint32_t block,
                 uint8_t *sig)
{
    uint32_t sum = f->ones ? 0xffff : 0;

    switch (f->kind) {
    case DIF:
        for (unsigned i = 0; i < f->block * 8u; i++) {
            bool bit = (sum >> 15 ^ p[i / 8] >> (7 - i % 8)) & 1;

            sum = (sum << 1 & 0xffff) ^ (bit ? 0x8bb7 : 0);
        }
        break;
    case DIF_IP:
        for (unsigned i = 0; i < f->block; i += 2) {
            sum += lduw_be_p(p + i);
        }
        while (sum >> 16) {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum = ~sum & 0xffff;
        break;
    case CRC32:
    case CRC32C:
        stl_le_p(sig, ~reflected(f->kind == CRC32 ? 0xedb88320 : 0x82f63b78,
                                 f->ones ? UINT32_MAX : 0, p, f->block));
        return;
    case CRC64:
        stq_le_p(sig, ~reflected(0x9a6c9329ac4bc9b5ull,
                                 f->ones ? UINT64_MAX : 0, p, f->block));
        return;
    }
    stw_be_p(sig, sum);
    stw_be_p(sig + 2, f->app);
    stl_be_p(sig + 4, f->ref + (f->inc ? block : 0));
}

/* @blocks blocks of @data with their signatures. */
static uint8_t *signed_blocks(const Format *f, const uint8_t *data,
                              unsigned blocks, uint32_t *len)
{
    uint32_t all = f->block + sig_len(f);
    uint8_t *b = g_malloc(blocks * all);

    for (unsigned i = 0; i < blocks; i++) {
        memcpy(b + i * all, data + i * f->block, f->block);
        sign(f, data + i * f->block, i, b + i * all + f->block);
    }
    *len = blocks * all;
    return b;
}

/* Descriptor; byte by byte as the drivers fill it in. */
static void bsf_domain(uint8_t *bsf, bool mem, const Format *f, uint32_t psv)
{
    static const uint8_t base[] = {
        [CRC32] = 0x20, [CRC32C] = 0x40, [CRC64] = 0x50,
    };
    uint8_t *inl = bsf + (mem ? 48 : 32);
    uint32_t bfs = 0;

    if (f->kind == NONE) {
        return;
    }
    bsf[mem ? 3 : 2] = f->block == 512 ? 1 : f->block == 520 ? 2
                     : f->block == 4096 ? 3 : f->block == 4160 ? 4 : 6;
    if (f->kind <= DIF_IP) {
        stw_be_p(inl, 0xc000);
        stw_be_p(inl + 2, f->app);
        stl_be_p(inl + 4, f->ref);
        inl[8] = f->kind == DIF ? 1 : 2;
        inl[9] = 0x80 | (f->ones ? 0x08 : 0);
        inl[13] = (f->inc ? 0x40 : 0) | f->escape;
        stw_be_p(inl + 14, 0xffff);
    } else {
        bfs = base[f->kind] | 2 | !f->ones;
    }
    stl_be_p(bsf + (mem ? 12 : 8), bfs << 24 | psv);
}

static void bsf_fill(Bench *b, uint8_t bsf[64], const Format *mem,
                     const Format *wire, uint8_t check)
{
    memset(bsf, 0, 64);
    bsf[0] = 2 << 6;
    bsf[1] = check;
    stl_be_p(bsf + 4, UINT32_MAX);
    bsf_domain(bsf, false, wire, b->psv[0]);
    bsf_domain(bsf, true, mem, b->psv[1]);
}

static uint8_t psv_new(QMlx5 *d, uint32_t pd, unsigned n, uint32_t psv[4])
{
    uint8_t in[16] = { }, out[32] = { }, st;

    qmlx5_cmd_head(in, QMLX5_CREATE_PSV, 0);
    stl_be_p(in + 8, n << 28 | pd);
    st = qmlx5_cmd(d, in, sizeof(in), out, sizeof(out));
    for (unsigned i = 0; i < 4; i++) {
        psv[i] = qmlx5_be32(out + 16 + i * 4);
    }
    return st;
}

static Bench *bench(void)
{
    Bench *b = g_new0(Bench, 1);
    QMlx5MkeyAttr a = { .mode = 2, .free = true, .umr = true, .entries = 4,
                        .sig = true };
    uint32_t psv[4];

    b->d = qmlx5_start("");
    b->qp = qmlx5_qp_self(b->d, QMLX5_RC);
    b->src = qmlx5_alloc(b->d->host, 2 * MEM);
    b->dst = b->src + MEM;
    b->leaf = qmlx5_mkey_mtt(b->d, b->d->pd, QMLX5_ALL, VA, b->src, 2 * MEM);
    a.pd = b->d->pd;
    b->sig = qmlx5_mkey_new(b->d, &a);
    g_assert_cmphex(psv_new(b->d, b->d->pd, 2, psv), ==, 0);
    b->psv[0] = psv[0];
    b->psv[1] = psv[1];
    return b;
}

static void bench_free(Bench *b)
{
    qmlx5_stop(b->d);
    g_free(b);
}

static QMlx5Umr umr_of(Bench *b, uint32_t key, uint64_t va, uint32_t len,
                       uint8_t list[64])
{
    memset(list, 0, 64);
    stl_be_p(list, len);
    stl_be_p(list + 4, b->leaf);
    stq_be_p(list + 8, va);
    return (QMlx5Umr) {
        .key = key, .variant = key, .flags = QMLX5_UMR_INLINE,
        .mask = QMLX5_M_LEN | QMLX5_M_START | QMLX5_M_KEY | QMLX5_M_ACCESS |
                QMLX5_M_FREE | QMLX5_M_BSF,
        .access = QMLX5_ALL & ~QMLX5_A, .len = len, .octowords = 4,
        .inl = list, .bytes = 64, .bsf_en = true,
    };
}

static uint8_t post_umr(Bench *b, const QMlx5Umr *u)
{
    uint8_t cqe[64];
    QMlx5Wqe w;

    qmlx5_wqe_umr(&w, u);
    qmlx5_post(b->qp, &w);
    qmlx5_cq_wait(b->qp->a.scq, cqe);
    if (qmlx5_cqe_op(cqe) == QMLX5_CQE_REQ) {
        return 0;
    }
    qmlx5_qp_revive(b->qp);
    return qmlx5_cqe_syndrome(cqe);
}

/* The signature key on [va, va + len) of the leaf, errors armed. */
static void configure(Bench *b, uint64_t va, uint32_t len, const Format *mem,
                      const Format *wire, uint8_t check)
{
    uint8_t list[64], bsf[64];
    QMlx5Umr u = umr_of(b, b->sig, va, len, list);

    bsf_fill(b, bsf, mem, wire, check);
    u.bsf = bsf;
    u.mask |= QMLX5_M_SIGERR;
    u.sigerr = !b->told;
    g_assert_cmphex(post_umr(b, &u), ==, 0);
}

static uint8_t set_psv(Bench *b, uint32_t psv, uint32_t len)
{
    uint8_t cqe[64];
    QMlx5Wqe w;

    qmlx5_wqe(&w, QMLX5_OP_SET_PSV, QMLX5_F_SIGNALED, 0);
    stl_be_p(w.b + 16, psv);
    stq_be_p(w.b + 24, 0x1234567890abcdefull);
    w.len = 16 + len;
    qmlx5_post(b->qp, &w);
    qmlx5_cq_wait(b->qp->a.scq, cqe);
    if (qmlx5_cqe_op(cqe) == QMLX5_CQE_REQ) {
        return 0;
    }
    qmlx5_qp_revive(b->qp);
    return qmlx5_cqe_syndrome(cqe);
}

static void expect_bytes(Bench *b, uint64_t at, const uint8_t *want,
                         uint32_t len)
{
    g_autofree uint8_t *got = g_malloc(len);

    qmlx5_read(b->d, at, got, len);
    g_assert_cmpmem(got, len, want, len);
}

static void expect_sigerr(Bench *b, QMlx5Cq *cq, uint16_t syndrome,
                          uint8_t domain, uint64_t offset, uint64_t expected,
                          uint64_t actual)
{
    uint8_t cqe[64];

    qmlx5_cq_wait(cq, cqe);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_SIG_ERR);
    g_assert_cmphex(lduw_be_p(cqe + 32), ==, syndrome);
    g_assert_cmphex(cqe[34], ==, 0);
    g_assert_cmphex(cqe[35], ==, domain);
    g_assert_cmphex(qmlx5_be32(cqe + 36), ==, b->sig);
    g_assert_cmphex(ldq_be_p(cqe + 40), ==, offset);
    g_assert_cmphex((uint64_t)qmlx5_be32(cqe + 16) << 32 |
                    qmlx5_be32(cqe + 24), ==, expected);
    g_assert_cmphex((uint64_t)qmlx5_be32(cqe + 20) << 32 |
                    qmlx5_be32(cqe + 28), ==, actual);
    b->told = !b->told;
}

static const Format formats[] = {
    { DIF, 512, .ones = true, .inc = true, .app = 0xabcd, .ref = 0x01234567 },
    { DIF, 520, .app = 1, .ref = 0xfffffffe, .inc = true },
    { DIF_IP, 4096, .ones = true, .app = 0x55, .ref = 7 },
    { DIF_IP, 512, .inc = true },
    { CRC32, 512, .ones = true }, { CRC32, 4160 },
    { CRC32C, 4096, .ones = true }, { CRC32C, 520 },
    { CRC64, 4048, .ones = true }, { CRC64, 512 },
};
static const Format none = { NONE };

enum { BLOCKS = 5 };

/* Made on the way out of memory, checked and taken off on the way back. */
static void test_insert_strip(void)
{
    Bench *b = bench();

    for (unsigned i = 0; i < ARRAY_SIZE(formats); i++) {
        const Format *f = &formats[i];
        uint32_t raw = f->block * BLOCKS, len;
        g_autofree uint8_t *data = qmlx5_pattern(raw, i), *want = NULL;

        want = signed_blocks(f, data, BLOCKS, &len);
        qmlx5_write(b->d, b->src, data, raw);
        qmlx5_fill(b->d, b->dst, MEM, 99);
        configure(b, VA, raw, &none, f, 0xff);
        /* The list's entry counts bytes in memory. */
        qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, raw, b->leaf,
                        VA + MEM);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        expect_bytes(b, b->dst, want, len);

        /* Back: what RDMA READ brings is checked and stripped. */
        qmlx5_fill(b->d, b->src, raw, 1234);
        qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->sig, 0, raw, b->leaf,
                        VA + MEM);
        g_assert_cmpint(qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ), ==, len);
        expect_bytes(b, b->src, data, raw);

        /* A peer that writes to it. */
        qmlx5_fill(b->d, b->src, raw, 1234);
        qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->leaf, VA + MEM, len, b->sig,
                        0);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        expect_bytes(b, b->src, data, raw);

        /* ... and reads from it. */
        qmlx5_fill(b->d, b->dst, MEM, 98);
        qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->leaf, VA + MEM, len, b->sig,
                        0);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        expect_bytes(b, b->dst, want, len);
        qmlx5_cq_none(b->qp->a.rcq);
    }
    bench_free(b);
}

/* Blocks in memory, none on the wire. */
static void test_memory(void)
{
    Bench *b = bench();

    for (unsigned i = 0; i < ARRAY_SIZE(formats); i++) {
        const Format *f = &formats[i];
        uint32_t raw = f->block * BLOCKS, len;
        g_autofree uint8_t *data = qmlx5_pattern(raw, i), *want = NULL;

        want = signed_blocks(f, data, BLOCKS, &len);
        qmlx5_write(b->d, b->src, want, len);
        qmlx5_fill(b->d, b->dst, MEM, 99);
        configure(b, VA, len, f, &none, 0xff);
        qmlx5_recv(b->qp, b->leaf, VA + MEM, MEM);
        qmlx5_post_send(b->qp, QMLX5_OP_SEND, b->sig, 0, raw);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        g_assert_cmpint(qmlx5_cq_expect(b->qp->a.rcq, QMLX5_CQE_SEND), ==, raw);
        expect_bytes(b, b->dst, data, raw);

        /* Received through the key: signatures are written. */
        qmlx5_fill(b->d, b->src, len, 1234);
        qmlx5_recv(b->qp, b->sig, 0, raw);
        qmlx5_post_send(b->qp, QMLX5_OP_SEND, b->leaf, VA + MEM, raw);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        qmlx5_cq_expect(b->qp->a.rcq, QMLX5_CQE_SEND);
        expect_bytes(b, b->src, want, len);
    }
    bench_free(b);
}

/* Another format on each side: blocks of other sizes, too. */
static void test_convert(void)
{
    Bench *b = bench();

    for (unsigned i = 0; i < ARRAY_SIZE(formats); i++) {
        const Format *f = &formats[i];
        const Format *g = &formats[(i + 3) % ARRAY_SIZE(formats)];
        unsigned n, m;
        g_autofree uint8_t *data = NULL, *mem = NULL, *wire = NULL;
        uint32_t mem_len, wire_len;

        if (f->block != g->block && ((f->block | g->block) & 511)) {
            continue;             /* too much until both are whole */
        }
        n = 3 * MAX(f->block, g->block) / f->block;
        m = 3 * MAX(f->block, g->block) / g->block;
        data = qmlx5_pattern(n * f->block, i);
        mem = signed_blocks(f, data, n, &mem_len);
        wire = signed_blocks(g, data, m, &wire_len);
        qmlx5_write(b->d, b->src, mem, mem_len);
        configure(b, VA, mem_len, f, g, 0xff);
        qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, wire_len, b->leaf,
                        VA + MEM);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        expect_bytes(b, b->dst, wire, wire_len);
        qmlx5_fill(b->d, b->src, mem_len, 4);
        qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->sig, 0, wire_len, b->leaf,
                        VA + MEM);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        expect_bytes(b, b->src, mem, mem_len);
    }
    bench_free(b);
}

/* Same blocks on both sides: bytes of the copy mask pass, others are new. */
static void test_copy_mask(void)
{
    Bench *b = bench();
    Format mem = { DIF, 512, .inc = true, .app = 0x1111, .ref = 100 };
    Format wire = { DIF_IP, 512, .inc = true, .app = 0x2222, .ref = 500 };
    g_autofree uint8_t *data = qmlx5_pattern(1024, 5);
    g_autofree uint8_t *m = NULL, *w = NULL;
    uint8_t list[64], bsf[64];
    uint32_t len;
    QMlx5Umr u = umr_of(b, b->sig, VA, 1040, list);

    m = signed_blocks(&mem, data, 2, &len);
    w = signed_blocks(&wire, data, 2, &len);
    m[512 + 2] = 0x99;            /* an application tag nobody checks */
    bsf_fill(b, bsf, &mem, &wire, 0xcf);
    bsf[0] |= 1 << 4;
    bsf[2] = 0x30;
    u.bsf = bsf;
    g_assert_cmphex(post_umr(b, &u), ==, 0);
    qmlx5_write(b->d, b->src, m, len);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, len, b->leaf, VA + MEM);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    memcpy(w + 512 + 2, m + 512 + 2, 2);
    memcpy(w + 520 + 512 + 2, m + 520 + 512 + 2, 2);
    expect_bytes(b, b->dst, w, len);
    bench_free(b);
}

/* Each part of a signature that is wrong, in each place it can come from. */
static void test_errors(void)
{
    Bench *b = bench();
    Format f = { DIF, 512, .ones = true, .inc = true, .app = 0xabcd,
                 .ref = 1000 };
    Format c = { CRC32C, 512, .ones = true };
    g_autofree uint8_t *data = qmlx5_pattern(512 * 4, 9);
    g_autofree uint8_t *m = NULL, *n = NULL;
    uint64_t good, bad;
    uint32_t len;

    m = signed_blocks(&f, data, 4, &len);
    good = ldq_be_p(m + 520 * 2 + 512);

    /* In memory: told on the send CQ, before the request completes. */
    static const struct { uint8_t at; uint16_t syndrome; } parts[] = {
        { 0, 1 << 13 }, { 3, 1 << 12 }, { 7, 1 << 11 },
    };
    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
        m[520 * 2 + 512 + parts[i].at] ^= 0x40;
        bad = ldq_be_p(m + 520 * 2 + 512);
        qmlx5_write(b->d, b->src, m, len);
        configure(b, VA, len, &f, &none, 0xff);
        qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 2048, b->leaf,
                        VA + MEM);
        expect_sigerr(b, b->qp->a.scq, parts[i].syndrome, 1, 1040, bad,
                      good);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        expect_bytes(b, b->dst, data, 2048);
        /* The next one is told only after it was armed again. */
        qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 2048, b->leaf,
                        VA + MEM);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        /* Not looked at. */
        configure(b, VA, len, &f, &none, ~(0x80 >> parts[i].at));
        qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 2048, b->leaf,
                        VA + MEM);
        qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
        m[520 * 2 + 512 + parts[i].at] ^= 0x40;
    }

    /* On the wire, at the peer's: on the receive CQ. */
    n = signed_blocks(&c, data, 4, &len);
    n[516 + 10] ^= 1;             /* data of block 1 */
    qmlx5_write(b->d, b->dst, n, len);
    configure(b, VA, 2048, &none, &c, 0xf0);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->leaf, VA + MEM, len, b->sig, 0);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    sign(&c, n + 516, 1, (uint8_t *)&bad);
    expect_sigerr(b, b->qp->a.rcq, 1 << 13, 0, 516,
                  (uint64_t)(uint32_t)ldl_le_p(n + 516 + 512) << 32,
                  (uint64_t)(uint32_t)ldl_le_p(&bad) << 32);
    expect_bytes(b, b->src + 512, n + 516, 512);
    bench_free(b);
}

static void test_escape(void)
{
    Bench *b = bench();
    Format f = { DIF, 512, .app = 0xffff, .ref = 3, .escape = 1 };
    g_autofree uint8_t *data = qmlx5_pattern(512, 9), *m = NULL;
    uint32_t len;

    m = signed_blocks(&f, data, 1, &len);
    m[512] ^= 1;
    qmlx5_write(b->d, b->src, m, len);
    configure(b, VA, len, &f, &none, 0xff);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 512, b->leaf, VA + MEM);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    /* The reference tag would have to be all ones as well. */
    f.escape = 2;
    configure(b, VA, len, &f, &none, 0xff);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 512, b->leaf, VA + MEM);
    expect_sigerr(b, b->qp->a.scq, 1 << 13, 1, 0, ldq_be_p(m + 512),
                  ldq_be_p(m + 512) ^ 1ull << 56);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    bench_free(b);
}

/* A part of the blocks, and places where no block begins. */
static void test_ranges(void)
{
    Bench *b = bench();
    Format f = { CRC32, 512, .ones = true };
    g_autofree uint8_t *data = qmlx5_pattern(512 * 4, 9), *w = NULL;
    uint32_t len;

    w = signed_blocks(&f, data, 4, &len);
    qmlx5_write(b->d, b->src, data, 2048);
    configure(b, VA, 2048, &none, &f, 0xff);
    /* Block 2, and half of block 3, which then has no signature. */
    qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->leaf, VA + MEM, 516 + 256, b->sig,
                    2 * 516);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    expect_bytes(b, b->dst, w + 2 * 516, 516 + 256);
    /* One byte beyond the last block. */
    qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->leaf, VA + MEM, 4 * 516 + 1,
                    b->sig, 0);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(b->qp);
    /* In the middle of one. */
    qmlx5_post_rdma(b->qp, QMLX5_OP_READ, b->leaf, VA + MEM, 512, b->sig, 100);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(b->qp);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 100, 512, b->leaf, VA + MEM);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_PROT);
    qmlx5_qp_revive(b->qp);
    /* Atomics have no place there. */
    qmlx5_post_atomic(b->qp, QMLX5_OP_FA, b->leaf, VA + MEM, b->sig, 0, 1, 0);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_REMOTE_ACCESS);
    qmlx5_qp_revive(b->qp);
    bench_free(b);
}

/*
 * Pages that come one by one: the copy goes on in mid-block, in another QEMU
 * if the machine is @moved meanwhile.
 */
static void page_faults(bool moved)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    Format f = { DIF, 4160, .inc = true, .app = 2, .ref = 8 };
    uint32_t pages = 8, raw = 4160 * 5, len;
    g_autofree uint8_t *data = qmlx5_pattern(raw, 3), *w = NULL;
    uint8_t list[64], bsf[64], cqe[64];
    QMlx5Umr u = umr_of(b, b->sig, VA, raw, list);
    uint32_t odp = qmlx5_mkey_odp(d, QMLX5_ALL, VA, pages);
    uint64_t mtt[8] = { };
    QMlx5Fault fault;
    unsigned n;

    w = signed_blocks(&f, data, 5, &len);
    qmlx5_pf_enable(d, 6);
    qmlx5_write(d, b->src, data, raw);
    stl_be_p(list + 4, odp);
    bsf_fill(b, bsf, &none, &f, 0xff);
    u.bsf = bsf;
    g_assert_cmphex(post_umr(b, &u), ==, 0);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, raw, b->leaf, VA + MEM);
    for (n = 0; !qmlx5_cq_poll(b->qp->a.scq, cqe); n++) {
        g_assert_cmpint(n, <, pages);
        qmlx5_pf_wait(d, &fault);
        g_assert_cmphex(fault.va & ~0xfffull, ==, VA + n * QMLX5_PAGE);
        if (moved && n % 2) {
            qmlx5_move(d);
            qmlx5_cq_none(b->qp->a.scq);
        }
        mtt[n] = (b->src + n * QMLX5_PAGE) | QMLX5_MTT_RW;
        qmlx5_mtt_update(d, odp, 0, mtt, 8);
        g_assert_cmphex(qmlx5_pf_resume(d, &fault, false), ==, 0);
        qmlx5_settle(d);
    }
    g_assert_cmpint(n, ==, 6);
    g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_REQ);
    expect_bytes(b, b->dst, w, len);
    bench_free(b);
}

static void test_page_faults(void)
{
    page_faults(false);
}

static void test_moved(void)
{
    page_faults(true);
}

/* What the key knows came along: an error in the last block is told. */
static void test_error_moved(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    Format f = { DIF, 512, .app = 2, .ref = 8 };
    g_autofree uint8_t *data = qmlx5_pattern(512 * 16, 3), *m = NULL;
    uint32_t odp = qmlx5_mkey_odp(d, QMLX5_ALL, VA, 8), len;
    uint8_t list[64], bsf[64];
    uint64_t mtt[8] = { }, good, bad;
    QMlx5Fault fault;
    QMlx5Umr u;

    qmlx5_pf_enable(d, 6);
    m = signed_blocks(&f, data, 16, &len);
    good = ldq_be_p(m + 520 * 15 + 512);
    m[520 * 15 + 512] ^= 0x40;    /* in the last page of three */
    bad = ldq_be_p(m + 520 * 15 + 512);
    qmlx5_write(d, b->src, m, len);
    u = umr_of(b, b->sig, VA, len, list);
    stl_be_p(list + 4, odp);
    bsf_fill(b, bsf, &f, &none, 0xff);
    u.bsf = bsf;
    u.mask |= QMLX5_M_SIGERR;
    u.sigerr = !b->told;
    g_assert_cmphex(post_umr(b, &u), ==, 0);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 512 * 16, b->leaf,
                    VA + MEM);
    for (unsigned n = 0; n < 3; n++) {
        qmlx5_pf_wait(d, &fault);
        g_assert_cmphex(fault.va & ~0xfffull, ==, VA + n * QMLX5_PAGE);
        qmlx5_cq_none(b->qp->a.scq);
        qmlx5_move(d);
        mtt[n] = (b->src + n * QMLX5_PAGE) | QMLX5_MTT_RW;
        qmlx5_mtt_update(d, odp, 0, mtt, 8);
        g_assert_cmphex(qmlx5_pf_resume(d, &fault, false), ==, 0);
    }
    expect_sigerr(b, b->qp->a.scq, 1 << 13, 1, 520 * 15, bad, good);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    expect_bytes(b, b->dst, data, 512 * 16);
    bench_free(b);
}

/* drain_sigerr: the queue stands still behind the request that was bad. */
static void test_drain(void)
{
    Bench *b = bench();
    Format f = { CRC32, 512 };
    uint8_t in[MLX5_BYTES(rst2init_qp_in)] = { }, eqe[64];
    QMlx5QpAttr a = qmlx5_qp_attr(b->d, QMLX5_RC);
    QMlx5Qp *qp = qmlx5_qp_new(b->d, &a);
    QMlx5Wqe w;

    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_RST2INIT_QP), ==, 0);
    qmlx5_cmd_head(in, QMLX5_INIT2INIT_QP, 0);
    MLX5_SET(in, rst2init_qp_in, qpn, qp->qpn);
    MLX5_SET(in, rst2init_qp_in, opt_param_mask, 1 << 11);
    MLX5_SET(MLX5_ADDR(in, rst2init_qp_in, qpc), qpc, drain_sigerr, 1);
    g_assert_cmphex(qmlx5_cmd(b->d, in, sizeof(in), NULL, 0), ==, 0);
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_INIT2RTR_QP), ==, 0);
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_RTR2RTS_QP), ==, 0);

    qmlx5_fill(b->d, b->src, 516, 1);
    configure(b, VA, 516, &f, &none, 0xf0);
    qmlx5_wqe(&w, QMLX5_OP_WRITE, 0, 0);
    qmlx5_wqe_raddr(&w, VA + MEM, b->leaf);
    qmlx5_wqe_data(&w, b->sig, 0, 512);
    qmlx5_queue(qp, &w);
    qmlx5_wqe(&w, QMLX5_OP_WRITE, QMLX5_F_SIGNALED | QMLX5_F_FENCE, 0);
    qmlx5_wqe_raddr(&w, VA + MEM, b->leaf);
    qmlx5_wqe_data(&w, b->leaf, VA, 16);
    qmlx5_post(qp, &w);
    qmlx5_eq_wait(b->d->async_eq, QMLX5_EV_SQ_DRAINED, eqe);
    g_assert_cmphex(qmlx5_be32(eqe + 32 + 24) & 0xffffff, ==, qp->qpn);
    {
        uint8_t cqe[64];

        qmlx5_cq_wait(qp->a.scq, cqe);
        g_assert_cmphex(qmlx5_cqe_op(cqe), ==, QMLX5_CQE_SIG_ERR);
    }
    qmlx5_cq_none(qp->a.scq);
    g_assert_cmphex(qmlx5_qp_state(qp), ==, QMLX5_SQD);
    /* A doorbell does not start it; going back to RTS does. */
    qmlx5_ring(qp);
    qmlx5_cq_none(qp->a.scq);
    g_assert_cmphex(qmlx5_qp_modify(qp, QMLX5_SQD_RTS_QP), ==, 0);
    qmlx5_cq_expect(qp->a.scq, QMLX5_CQE_REQ);
    g_assert_cmphex(qmlx5_qp_state(qp), ==, QMLX5_RTS);
    bench_free(b);
}

static void test_psv(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    uint32_t pd = qmlx5_pd_new(d), psv[4];

    g_assert_cmphex(psv_new(d, pd, 0, psv), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(psv_new(d, pd, 5, psv), ==, QMLX5_BAD_PARAM);
    g_assert_cmphex(psv_new(d, 0xffff, 1, psv), ==, QMLX5_BAD_RES);
    g_assert_cmphex(psv_new(d, pd, 4, psv), ==, 0);
    for (int i = 0; i < 4; i++) {
        g_assert_cmphex(psv[i], !=, 0);
        g_assert_cmphex(psv[i], !=, psv[(i + 1) % 4]);
    }
    /* Its domain stays. */
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DEALLOC_PD, 0, pd, 0, NULL), ==,
                    QMLX5_BAD_RES_STATE);
    g_assert_cmphex(set_psv(b, psv[0], 16), ==, QMLX5_SYN_LOCAL_PROT);
    g_assert_cmphex(set_psv(b, 0xfffff, 16), ==, QMLX5_SYN_LOCAL_PROT);
    g_assert_cmphex(set_psv(b, b->psv[0], 0), ==, QMLX5_SYN_LOCAL_QP_OP);
    g_assert_cmphex(set_psv(b, b->psv[0], 16), ==, 0);
    for (int i = 0; i < 4; i++) {
        g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_PSV, 0, psv[i], 0,
                                         NULL), ==, 0);
    }
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DESTROY_PSV, 0, psv[0], 0, NULL),
                    ==, QMLX5_BAD_RES);
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_DEALLOC_PD, 0, pd, 0, NULL), ==,
                    0);
    bench_free(b);
}

/* Descriptors that are refused; the key stays as it was. */
static void test_bad_descriptors(void)
{
    Bench *b = bench();
    QMlx5 *d = b->d;
    Format f = { DIF, 512 }, c = { CRC32, 512 };
    QMlx5MkeyAttr a = { .mode = 2, .pd = d->pd, .free = true, .umr = true,
                        .entries = 4 };
    uint32_t plain = qmlx5_mkey_new(d, &a), other[4];
    uint8_t list[64], bsf[64];
    QMlx5Umr u = umr_of(b, plain, VA, 520, list);
    QMlx5Wqe w;

    bsf_fill(b, bsf, &f, &none, 0xff);
    u.bsf = bsf;
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);

    u = umr_of(b, b->sig, VA, 520, list);
    u.bsf = bsf;
    bsf[0] = 0;                   /* without its inline part */
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);
    bsf_fill(b, bsf, &f, &none, 0xff);
    bsf[0] |= 1;                  /* encryption */
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);
    bsf_fill(b, bsf, &f, &none, 0xff);
    bsf[3] = 5;                   /* a block of 1 GiB */
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);
    bsf[3] = 7;
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);
    bsf_fill(b, bsf, &f, &none, 0xff);
    bsf[48 + 8] = 3;              /* an unknown guard */
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);
    bsf_fill(b, bsf, &c, &none, 0xff);
    bsf[12] = 0x60;               /* an unknown format */
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);
    bsf_fill(b, bsf, &f, &c, 0xff);
    bsf[0] |= 1 << 4;             /* not the same blocks */
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);

    /* Protection states that are not there, or another domain's. */
    bsf_fill(b, bsf, &c, &none, 0xff);
    stl_be_p(bsf + 12, 0x20ffffff);
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);
    g_assert_cmphex(psv_new(d, qmlx5_pd_new(d), 1, other), ==, 0);
    stl_be_p(bsf + 12, 0x20000000 | other[0]);
    g_assert_cmphex(post_umr(b, &u), ==, QMLX5_SYN_MW_BIND);

    /* A work request that ends before it. */
    bsf_fill(b, bsf, &f, &none, 0xff);
    qmlx5_wqe_umr(&w, &u);
    w.len -= 64;
    qmlx5_post(b->qp, &w);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR,
                        QMLX5_SYN_LOCAL_QP_OP);
    qmlx5_qp_revive(b->qp);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 512, b->leaf, VA + MEM);
    qmlx5_cq_expect_err(b->qp->a.scq, QMLX5_CQE_REQ_ERR, QMLX5_SYN_LOCAL_PROT);
    bench_free(b);
}

/* Signatures off again by another UMR. */
static void test_disable(void)
{
    Bench *b = bench();
    Format f = { CRC32, 512 };
    uint8_t list[64];
    QMlx5Umr u = umr_of(b, b->sig, VA, 1024, list);

    configure(b, VA, 1024, &none, &f, 0xff);
    u.bsf_en = false;
    g_assert_cmphex(post_umr(b, &u), ==, 0);
    qmlx5_fill(b->d, b->src, 1024, 1);
    qmlx5_post_rdma(b->qp, QMLX5_OP_WRITE, b->sig, 0, 1024, b->leaf, VA + MEM);
    qmlx5_cq_expect(b->qp->a.scq, QMLX5_CQE_REQ);
    qmlx5_expect(b->d, b->dst, 1024, 1);
    bench_free(b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/sig/insert-strip", test_insert_strip);
    qtest_add_func("/mlx5/sig/memory", test_memory);
    qtest_add_func("/mlx5/sig/convert", test_convert);
    qtest_add_func("/mlx5/sig/copy-mask", test_copy_mask);
    qtest_add_func("/mlx5/sig/errors", test_errors);
    qtest_add_func("/mlx5/sig/escape", test_escape);
    qtest_add_func("/mlx5/sig/ranges", test_ranges);
    qtest_add_func("/mlx5/sig/page-faults", test_page_faults);
    qtest_add_func("/mlx5/sig/moved", test_moved);
    qtest_add_func("/mlx5/sig/error-moved", test_error_moved);
    qtest_add_func("/mlx5/sig/drain", test_drain);
    qtest_add_func("/mlx5/sig/psv", test_psv);
    qtest_add_func("/mlx5/sig/bad-descriptors", test_bad_descriptors);
    qtest_add_func("/mlx5/sig/disable", test_disable);
    return g_test_run();
}
