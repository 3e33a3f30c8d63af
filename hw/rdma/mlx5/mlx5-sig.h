/*
 * mlx5 block signatures: formats, guards and what a memory key has of them
 *
 * A signature key describes data in blocks, each followed by a signature, in
 * memory, on the wire or both. Its byte stream format descriptor (BSF, 64
 * bytes) comes with a UMR. Data that moves through the key is checked in the
 * domain it comes from and signed anew in the one it goes to.
 * (Linux: include/linux/mlx5/qp.h, rdma-core: providers/mlx5/wqe.h)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_MLX5_SIG_H
#define HW_RDMA_MLX5_SIG_H

#include "mlx5-core.h"

enum Mlx5SigKind {
    MLX5_SIG_NONE,
    MLX5_SIG_DIF_CRC,             /* T10-DIF, 8 bytes: guard, app, ref */
    MLX5_SIG_DIF_IPCS,            /* ... with an IP checksum as the guard */
    MLX5_SIG_CRC32,               /* 4 bytes */
    MLX5_SIG_CRC32C,
    MLX5_SIG_CRC64,               /* XP10, 8 bytes */
};

enum {
    MLX5_BSF_SIZE = 64,           /* bytes of a descriptor */
    MLX5_SIG_MAX = 8,             /* bytes of a signature */
    /* Syndrome of a signature error CQE. */
    MLX5_SIG_ERR_REF = 1 << 11,
    MLX5_SIG_ERR_APP = 1 << 12,
    MLX5_SIG_ERR_GUARD = 1 << 13,
};

enum Mlx5SigDomain { MLX5_SIG_WIRE, MLX5_SIG_MEMORY };

/* Blocks of one domain. */
typedef struct Mlx5SigFormat {
    uint8_t kind;                 /* Mlx5SigKind */
    /* DIF: 1 app tag, 2 app and ref tag of all ones stop a block's check. */
    uint8_t escape;
    bool seed_ones;               /* guards start from all ones, else 0 */
    bool ref_increments;          /* DIF: one up with each block */
    uint16_t app, app_mask;
    uint32_t ref;
    uint32_t block;               /* data bytes of a block */
    uint32_t psv;                 /* protection state, 0: none */
} Mlx5SigFormat;

/*
 * A descriptor as it is used. Checked and copied bytes of a signature: bit 7
 * for the most significant one.
 */
typedef struct Mlx5Bsf {
    Mlx5SigFormat domain[2];      /* by Mlx5SigDomain */
    uint8_t check, copy;
} Mlx5Bsf;

/* What a memory key that may have a descriptor keeps. */
typedef struct Mlx5SigKey {
    uint8_t raw[MLX5_BSF_SIZE];
    Mlx5Bsf bsf;                  /* of it */
    bool enabled;                 /* mkc.bsf_en */
    bool expected, count;         /* an error is told when they differ */
} Mlx5SigKey;

/* A stream of blocks that is read or written, and where it stands. */
typedef struct Mlx5SigFlow {
    uint32_t pos;                 /* bytes of the block, then of signature */
    uint64_t block;               /* its number, from the key's start */
    uint64_t guard;
    uint8_t sig[MLX5_SIG_MAX];
} Mlx5SigFlow;

/* One side of a copy: entry @cur of its list. */
typedef struct Mlx5SigEnd {
    bool begun;                   /* the entry's, as follows */
    bool active;                  /* it goes through a signature key */
    bool told;                    /* an error has been looked into */
    uint8_t raw[MLX5_BSF_SIZE];   /* descriptor when it began */
    Mlx5Bsf bsf;
    uint64_t va;                  /* where in the key memory goes on */
    Mlx5SigFlow in, out;
} Mlx5SigEnd;

/* A copy through signature keys: bytes of the wire wait in @buf. */
typedef struct Mlx5SigCopy {
    Mlx5SigEnd src, dst;
    uint64_t taken;               /* bytes that the source has given */
    uint32_t fill, off;           /* of buf: there, and of them taken away */
    uint8_t buf[1024];
} Mlx5SigCopy;

/* Protection state, made by CREATE_PSV and filled in by SET_PSV. */
typedef struct Mlx5Psv {
    Mlx5Obj obj;
    uint32_t pd;
    uint64_t transient;           /* CRC, or guard, app and ref tag */
    uint16_t syndrome;            /* of the last error since SET_PSV */
} Mlx5Psv;

/* false: not a descriptor that this device knows. */
bool mlx5_bsf_parse(const uint8_t raw[MLX5_BSF_SIZE], Mlx5Bsf *bsf);
/* The protection states that @bsf names are there, in domain @pd. */
bool mlx5_bsf_psvs(Mlx5Hca *h, const Mlx5Bsf *bsf, uint32_t pd);

/* Bytes of a signature. */
static inline uint32_t mlx5_sig_bytes(const Mlx5SigFormat *f)
{
    return f->kind == MLX5_SIG_NONE ? 0
         : f->kind == MLX5_SIG_CRC32 || f->kind == MLX5_SIG_CRC32C ? 4 : 8;
}

/*
 * Bytes that @len bytes in format @from are in format @to. What is left of a
 * block has no signature; part of one is lost.
 */
uint64_t mlx5_sig_span(const Mlx5SigFormat *from, const Mlx5SigFormat *to,
                       uint64_t len);

/* Guards: a running value, fed block by block; @pos: bytes so far. */
uint64_t mlx5_guard_start(const Mlx5SigFormat *f);
uint64_t mlx5_guard_feed(const Mlx5SigFormat *f, uint64_t guard, uint32_t pos,
                         const uint8_t *p, uint32_t len);
/* Signature of block number @block with this guard. */
void mlx5_sig_make(const Mlx5SigFormat *f, uint64_t guard, uint64_t block,
                   uint8_t sig[MLX5_SIG_MAX]);
/* As one number, the first byte of the table of check masks at the top. */
uint64_t mlx5_sig_value(const Mlx5SigFormat *f,
                        const uint8_t sig[MLX5_SIG_MAX]);
/* MLX5_SIG_ERR_*: how @got differs from @made where @mask tells to look. */
uint16_t mlx5_sig_compare(const Mlx5SigFormat *f, uint8_t mask,
                          const uint8_t got[MLX5_SIG_MAX],
                          const uint8_t made[MLX5_SIG_MAX]);
/* Takes the bytes of @copy from @got into @made. */
void mlx5_sig_merge(const Mlx5SigFormat *f, uint8_t copy,
                    const uint8_t got[MLX5_SIG_MAX],
                    uint8_t made[MLX5_SIG_MAX]);

/* SET_PSV in a send queue; returns 0 or the CQE syndrome. */
uint8_t mlx5_psv_set(Mlx5Hca *h, uint32_t pd, const uint8_t *wqe,
                     uint32_t len);
void mlx5_psv_destroy_all(Mlx5Hca *h);

extern const VMStateDescription vmstate_mlx5_sig_key, vmstate_mlx5_psv,
    vmstate_mlx5_sig_copy;

#endif
