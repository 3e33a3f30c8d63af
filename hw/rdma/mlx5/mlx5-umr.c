/*
 * mlx5 user-mode memory registration: changes of a memory key by a work
 * request
 *
 * The work request after its control segment: UMR control segment (48
 * bytes), mkey context (64 bytes, fields taken as the mask says), then the
 * translation list inline or a data segment that points to it. Registering,
 * changing, revoking and invalidating a region and binding a memory window
 * are all this one operation.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "mlx5-cq.h"
#include "mlx5-dma.h"
#include "mlx5-mkey.h"
#include "mlx5-sig.h"
#include "mlx5-wqe.h"
#include "trace.h"

/* UMR control segment, big endian. */
typedef struct QEMU_PACKED Mlx5WqeUmrCtrl {
    uint8_t flags;
    uint8_t rsvd0[3];
    uint16_t xlt_octowords;
    uint16_t xlt_offset;          /* or octowords of signature descriptor */
    uint64_t mkey_mask;
    uint32_t xlt_offset_47_16;
    uint8_t rsvd1[28];
} Mlx5WqeUmrCtrl;

QEMU_BUILD_BUG_ON(sizeof(Mlx5WqeUmrCtrl) != 48);

enum {
    MLX5_UMR_INLINE         = 1 << 7,
    MLX5_UMR_CHECK_FREE     = 1 << 6, /* fail if the key is free */
    MLX5_UMR_CHECK_NOT_FREE = 1 << 5, /* fail if it is not */
    MLX5_UMR_OFFSET_EN      = 1 << 4,
    MLX5_UMR_CHECK_QPN      = 1 << 3, /* fail if bound to another QP */
};

/* Which fields of the mkey context to take. */
#define MLX5_UMR_LEN            (1ull << 0)
#define MLX5_UMR_PAGE_SIZE      (1ull << 1)  /* low 5 bits */
#define MLX5_UMR_START_ADDR     (1ull << 6)
#define MLX5_UMR_PD             (1ull << 7)
#define MLX5_UMR_EN_RINVAL      (1ull << 8)
#define MLX5_UMR_EN_SIGERR      (1ull << 9)
#define MLX5_UMR_BSF_EN         (1ull << 12)
#define MLX5_UMR_KEY            (1ull << 13)
#define MLX5_UMR_QPN            (1ull << 14)
#define MLX5_UMR_LR             (1ull << 17)
#define MLX5_UMR_LW             (1ull << 18)
#define MLX5_UMR_RR             (1ull << 19)
#define MLX5_UMR_RW             (1ull << 20)
#define MLX5_UMR_A              (1ull << 21)
#define MLX5_UMR_SMALL_FENCE    (1ull << 23)
#define MLX5_UMR_RO_WRITE       (1ull << 25)
#define MLX5_UMR_FREE           (1ull << 29)
#define MLX5_UMR_PAGE_SIZE_5    (1ull << 42) /* bit 5 of it */
#define MLX5_UMR_RO_READ        (1ull << 47)

/* Masks that have no effect here: ordering and fences are always strict. */
#define MLX5_UMR_KNOWN \
    (MLX5_UMR_LEN | MLX5_UMR_PAGE_SIZE | MLX5_UMR_START_ADDR | MLX5_UMR_PD | \
     MLX5_UMR_EN_RINVAL | MLX5_UMR_KEY | MLX5_UMR_QPN | MLX5_UMR_LR | \
     MLX5_UMR_LW | MLX5_UMR_RR | MLX5_UMR_RW | MLX5_UMR_A | \
     MLX5_UMR_SMALL_FENCE | MLX5_UMR_RO_WRITE | MLX5_UMR_FREE | \
     MLX5_UMR_PAGE_SIZE_5 | MLX5_UMR_RO_READ | MLX5_UMR_EN_SIGERR | \
     MLX5_UMR_BSF_EN)

enum {
    MLX5_UMR_MKC = sizeof(Mlx5WqeCtrl) + sizeof(Mlx5WqeUmrCtrl),
    MLX5_UMR_LIST = MLX5_UMR_MKC + MLX5_BYTES(mkc),
};

static void mlx5_umr_access(Mlx5Mkey *mk, const uint8_t *mkc, uint64_t mask)
{
    static const struct {
        uint64_t mask;
        uint8_t bit;
    } bits[] = {
        { MLX5_UMR_LR, MLX5_ACC_LR }, { MLX5_UMR_LW, MLX5_ACC_LW },
        { MLX5_UMR_RR, MLX5_ACC_RR }, { MLX5_UMR_RW, MLX5_ACC_RW },
        { MLX5_UMR_A, MLX5_ACC_ATOMIC },
    };
    uint8_t want = (MLX5_GET(mkc, mkc, lr) ? MLX5_ACC_LR : 0) |
                   (MLX5_GET(mkc, mkc, lw) ? MLX5_ACC_LW : 0) |
                   (MLX5_GET(mkc, mkc, rr) ? MLX5_ACC_RR : 0) |
                   (MLX5_GET(mkc, mkc, rw) ? MLX5_ACC_RW : 0) |
                   (MLX5_GET(mkc, mkc, a) ? MLX5_ACC_ATOMIC : 0);

    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++) {
        if (mask & bits[i].mask) {
            mk->access = (mk->access & ~bits[i].bit) | (want & bits[i].bit);
        }
    }
}

static void mlx5_umr_fields(Mlx5Hca *h, Mlx5Mkey *mk, const uint8_t *mkc,
                            uint64_t mask)
{
    uint8_t log_page = MLX5_GET(mkc, mkc, log_page_size);

    mlx5_umr_access(mk, mkc, mask);
    if (mask & MLX5_UMR_LEN) {
        mk->len = MLX5_GET64(mkc, mkc, len);
        mk->length64 = MLX5_GET(mkc, mkc, length64);
    }
    if (mask & MLX5_UMR_START_ADDR) {
        mk->start = MLX5_GET64(mkc, mkc, start_addr);
    }
    if (mask & MLX5_UMR_PAGE_SIZE) {
        mk->log_page = (mk->log_page & 0x20) | (log_page & 0x1f);
    }
    if (mask & MLX5_UMR_PAGE_SIZE_5) {
        mk->log_page = (mk->log_page & 0x1f) | (log_page & 0x20);
    }
    if (mask & MLX5_UMR_PD) {
        mlx5_mkey_set_pd(h, mk, MLX5_GET(mkc, mkc, pd));
    }
    if (mask & MLX5_UMR_EN_RINVAL) {
        mk->en_rinval = MLX5_GET(mkc, mkc, en_rinval);
    }
    if (mask & MLX5_UMR_KEY) {
        mk->variant = MLX5_GET(mkc, mkc, mkey_7_0);
    }
    if (mask & MLX5_UMR_QPN) {
        mk->qpn = MLX5_GET(mkc, mkc, qpn);
    }
    if (mask & MLX5_UMR_FREE) {
        mk->free = MLX5_GET(mkc, mkc, free);
    }
    if (mask & MLX5_UMR_EN_SIGERR && mk->sig) {
        mk->sig->expected = MLX5_GET(mkc, mkc, expected_sigerr_count);
    }
}

/*
 * The signature part: @bsf is a descriptor that came along, or NULL. Returns
 * 0 or the syndrome.
 */
static uint8_t mlx5_umr_sig(Mlx5Hca *h, Mlx5Mkey *mk, const uint8_t *mkc,
                            uint64_t mask, const uint8_t *raw)
{
    bool enable = mask & MLX5_UMR_BSF_EN ? MLX5_GET(mkc, mkc, bsf_en)
                                         : mk->sig && mk->sig->enabled;
    Mlx5Bsf bsf;

    if (!mk->sig) {
        return raw || enable ? MLX5_SYN_MW_BIND : 0;
    }
    if (raw || enable) {
        const uint8_t *use = raw ? raw : mk->sig->raw;

        if (!mlx5_bsf_parse(use, &bsf) || !mlx5_bsf_psvs(h, &bsf, mk->pd)) {
            mlx5_guest_error(h, "UMR of key 0x%06x: signature descriptor",
                             mk->obj.id);
            return MLX5_SYN_MW_BIND;
        }
        memmove(mk->sig->raw, use, MLX5_BSF_SIZE);
        mk->sig->bsf = bsf;
    }
    if (enable != mk->sig->enabled || raw) {
        trace_mlx5_umr_sig(h->name, mk->obj.id, enable,
                           mk->sig->bsf.domain[MLX5_SIG_MEMORY].kind,
                           mk->sig->bsf.domain[MLX5_SIG_WIRE].kind);
    }
    mk->sig->enabled = enable;
    return 0;
}

/* Is this change of @mk allowed? Returns 0 or the syndrome. */
static uint8_t mlx5_umr_check(Mlx5Hca *h, const Mlx5UmrCtx *ctx,
                              const Mlx5Mkey *mk, uint8_t flags, uint64_t mask,
                              uint32_t octowords)
{
    const char *why = NULL;

    if (!mk || !mk->umr_en) {
        why = "no such key, or it takes no UMR";
    } else if (mask & ~MLX5_UMR_KNOWN) {
        why = "field mask";
    } else if (!ctx->service && (mk->pd != ctx->pd || mask & MLX5_UMR_PD)) {
        why = "protection domain";
    } else if (!(mask & MLX5_UMR_KEY) && !mk->free &&
               mk->variant != (ctx->mkey & 0xff)) {
        why = "variant of the key";
    } else if ((flags & MLX5_UMR_CHECK_FREE && mk->free) ||
               (flags & MLX5_UMR_CHECK_NOT_FREE && !mk->free)) {
        /* libmlx5 binds windows of type 2 with CHECK_NOT_FREE as well */
        why = mk->free ? "the key is free" : "the key is not free";
    } else if (flags & MLX5_UMR_CHECK_QPN && mk->qpn != ctx->qpn &&
               mk->qpn != MLX5_MKEY_ANY_QPN) {
        why = "bound to another QP";
    } else if (!ctx->fre && !ctx->service && mk->mode != MLX5_MKEY_KLM &&
               (octowords || mask & ~MLX5_UMR_FREE)) {
        why = "fast registration is not enabled";
    }
    if (why) {
        mlx5_guest_error(h, "UMR of key 0x%08x on QP 0x%06x: %s", ctx->mkey,
                         ctx->qpn, why);
        return MLX5_SYN_MW_BIND;
    }
    return MLX5_SYN_NONE;
}

/* The list lies in guest memory. Returns 0 or the syndrome. */
static uint8_t mlx5_umr_load(Mlx5Hca *h, const Mlx5UmrCtx *ctx, Mlx5Mkey *mk,
                             const Mlx5WqeData *seg, uint64_t off,
                             uint32_t octowords)
{
    Mlx5MkeyReq req = {
        .key = ldl_be_p(&seg->lkey),
        .pd = ctx->pd,
        .qpn = ctx->qpn,
        .access = MLX5_ACC_LR,
        .va = ldq_be_p(&seg->addr),
        .len = MIN(ldl_be_p(&seg->byte_count), octowords * 16u),
    };
    uint8_t chunk[MLX5_XLT_LEAF * 16] QEMU_ALIGNED(8);
    uint32_t have = 0;

    while (req.len) {
        uint32_t part = MLX5_XLT_LEAF - off % MLX5_XLT_LEAF;
        uint32_t want = MIN(part * 16 - have, req.len);
        Mlx5MkeyRun run;

        if (mlx5_mkey_translate(h, &req, &run) != MLX5_MKEY_OK) {
            return MLX5_SYN_LOCAL_PROT;
        }
        want = MIN(want, run.len);
        if (mlx5_dma_read_via(h, &run.via, run.addr, chunk + have, want) !=
            MLX5_DMA_OK) {
            return MLX5_SYN_LOCAL_PROT;
        }
        have += want;
        req.va += want;
        req.len -= want;
        if (have == part * 16 || !req.len) {
            if (!mlx5_xlt_write(h, &mk->xlt, off, chunk, have / 16)) {
                return MLX5_SYN_MW_BIND;
            }
            off += have / 16;
            have = 0;
        }
    }
    return MLX5_SYN_NONE;
}

uint8_t mlx5_umr_execute(Mlx5Hca *h, const Mlx5UmrCtx *ctx,
                         const uint8_t *wqe, uint32_t len)
{
    const Mlx5WqeUmrCtrl *umr = (const void *)(wqe + sizeof(Mlx5WqeCtrl));
    const uint8_t *mkc = wqe + MLX5_UMR_MKC, *list = wqe + MLX5_UMR_LIST;
    Mlx5Mkey *mk = mlx5_mkey_find(h, ctx->mkey);
    uint32_t octowords, bsf = 0;
    uint64_t mask, off = 0;
    uint8_t syndrome;

    if (len < MLX5_UMR_LIST) {
        mlx5_guest_error(h, "UMR of %u bytes on QP 0x%06x", len, ctx->qpn);
        return MLX5_SYN_LOCAL_QP_OP;
    }
    mask = ldq_be_p(&umr->mkey_mask);
    octowords = lduw_be_p(&umr->xlt_octowords);
    if (umr->flags & MLX5_UMR_OFFSET_EN) {
        off = (uint64_t)ldl_be_p(&umr->xlt_offset_47_16) << 16 |
              lduw_be_p(&umr->xlt_offset);
    } else {
        bsf = lduw_be_p(&umr->xlt_offset);
    }
    if (bsf && (bsf != MLX5_BSF_SIZE / 16 || !(umr->flags & MLX5_UMR_INLINE) ||
                len < MLX5_UMR_LIST + octowords * 16 + MLX5_BSF_SIZE)) {
        mlx5_guest_error(h, "UMR on QP 0x%06x: descriptor of %u octowords",
                         ctx->qpn, bsf);
        return MLX5_SYN_LOCAL_QP_OP;
    }
    /* An inline list may end with the work request. */
    if (umr->flags & MLX5_UMR_INLINE) {
        octowords = MIN(octowords, (len - MLX5_UMR_LIST) / 16);
    } else if (octowords && len < MLX5_UMR_LIST + sizeof(Mlx5WqeData)) {
        return MLX5_SYN_LOCAL_QP_OP;
    }

    syndrome = mlx5_umr_check(h, ctx, mk, umr->flags, mask, octowords);
    if (!syndrome) {
        syndrome = mlx5_umr_sig(h, mk, mkc, mask,
                                bsf ? list + octowords * 16 : NULL);
    }
    if (!syndrome && octowords) {
        mk->klm_hint = 0;
        mk->klm_hint_off = 0;
        if (!(umr->flags & MLX5_UMR_INLINE)) {
            syndrome = mlx5_umr_load(h, ctx, mk, (const void *)list, off,
                                     octowords);
        } else if (!mlx5_xlt_write(h, &mk->xlt, off, list, octowords)) {
            syndrome = MLX5_SYN_MW_BIND;
        }
    }
    if (!syndrome) {
        mlx5_umr_fields(h, mk, mkc, mask);
    }
    trace_mlx5_umr(h->name, ctx->qpn, ctx->mkey, umr->flags, mask, off,
                   octowords, syndrome);
    return syndrome;
}
