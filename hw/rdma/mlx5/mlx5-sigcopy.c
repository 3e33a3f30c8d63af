/*
 * mlx5: the copy of an operation through signature keys
 *
 * Bytes go from memory to the wire and from the wire to memory, each time
 * from one format of blocks to another. On the way they rest in a small
 * buffer. Like every copy it can stop at each byte and go on later; all that
 * it needs for this is in Mlx5SigCopy.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "migration/vmstate.h"
#include "mlx5-copy.h"
#include "mlx5-cq.h"
#include "mlx5-mkey.h"
#include "mlx5-qp.h"
#include "mlx5-sig.h"
#include "trace.h"

/* The completion of a signature error, big endian. */
typedef struct QEMU_PACKED Mlx5SigErrCqe {
    uint8_t rsvd0[16];
    uint32_t expected_trans_sig;
    uint32_t actual_trans_sig;
    uint32_t expected_ref_tag;
    uint32_t actual_ref_tag;
    uint16_t syndrome;
    uint8_t sig_type;             /* 0: of a block */
    uint8_t domain;               /* Mlx5SigDomain */
    uint32_t mkey;
    uint64_t sig_err_offset;
    uint8_t rsvd30[14];
    uint8_t signature;
    uint8_t op_own;
} Mlx5SigErrCqe;

QEMU_BUILD_BUG_ON(sizeof(Mlx5SigErrCqe) != MLX5_CQE_SIZE);

static bool sig_in_list(Mlx5Hca *h, const Mlx5Sge *list, unsigned n)
{
    for (unsigned i = 0; h->mk->nsigs && i < n; i++) {
        if (mlx5_mkey_bsf(h, list[i].key)) {
            return true;
        }
    }
    return false;
}

static bool sig_side(const Mlx5Op *op, const Mlx5Side *s)
{
    return !s->is_inline && !(s->remote && !op->peer) &&
           sig_in_list(mlx5_side_hca(op, s), s->remote ? op->remote
                                                       : op->local, s->nsge);
}

bool mlx5_sig_copy_needed(const Mlx5Op *op)
{
    return op->sig ||
           (!op->done && op->len && (sig_side(op, &op->src) ||
                                     sig_side(op, &op->dst)));
}

uint32_t mlx5_sig_sge_len(Mlx5Hca *h, uint32_t key, uint32_t len)
{
    const Mlx5Bsf *bsf = mlx5_mkey_bsf(h, key);

    if (!bsf || bsf->domain[MLX5_SIG_MEMORY].kind != MLX5_SIG_NONE) {
        return len;
    }
    return mlx5_sig_span(&bsf->domain[MLX5_SIG_MEMORY],
                         &bsf->domain[MLX5_SIG_WIRE], len);
}

/* One side within mlx5_sig_copy(). */
typedef struct SigSide {
    Mlx5Op *op;
    Mlx5Side *side;
    Mlx5SigEnd *end;
    bool write;                   /* from the wire to memory */
} SigSide;

static const Mlx5SigFormat *format_in(const SigSide *s)
{
    return &s->end->bsf.domain[s->write ? MLX5_SIG_WIRE : MLX5_SIG_MEMORY];
}

static const Mlx5SigFormat *format_out(const SigSide *s)
{
    return &s->end->bsf.domain[s->write ? MLX5_SIG_MEMORY : MLX5_SIG_WIRE];
}

static void flow_start(Mlx5SigFlow *w, const Mlx5SigFormat *f, uint64_t data)
{
    w->pos = 0;
    w->block = f->kind == MLX5_SIG_NONE ? 0 : data / f->block;
    w->guard = mlx5_guard_start(f);
}

static bool at_block(const Mlx5SigFormat *f, uint64_t data)
{
    return f->kind == MLX5_SIG_NONE || data % f->block == 0;
}

/*
 * Looks at the list's entry. Its address counts bytes of the wire, or those
 * in memory if only the wire has signatures and it is no peer's address.
 */
static bool sig_begin(SigSide *s)
{
    Mlx5Op *op = s->op;
    Mlx5SigEnd *e = s->end;
    bool rdma = s->side->remote && !mlx5_opcode_is_send(op->opcode);
    Mlx5Hca *h = mlx5_side_hca(op, s->side);
    const Mlx5SigFormat *wire, *mem;
    const Mlx5Sge *sge = mlx5_side_sge(op, s->side);
    const Mlx5Bsf *bsf = mlx5_mkey_bsf(h, sge->key);
    uint64_t data;
    Mlx5Mkey *mk;

    memset(e, 0, sizeof(*e));
    e->begun = true;
    e->va = sge->va + s->side->off;
    if (!bsf) {
        return true;
    }
    mk = mlx5_mkey_find(h, sge->key);
    e->active = true;
    e->bsf = *bsf;
    memcpy(e->raw, mk->sig->raw, sizeof(e->raw));
    wire = &e->bsf.domain[MLX5_SIG_WIRE];
    mem = &e->bsf.domain[MLX5_SIG_MEMORY];
    data = sge->va - mk->start;
    if (s->side->off || sge->va < mk->start || data > UINT32_MAX) {
        return false;
    }
    if (rdma || mem->kind != MLX5_SIG_NONE) {
        static const Mlx5SigFormat plain;
        uint64_t at = data;

        data = mlx5_sig_span(wire, &plain, at);
        if (mlx5_sig_span(&plain, wire, data) != at) {
            return false;         /* not where a block begins */
        }
    }
    if (!at_block(wire, data) || !at_block(mem, data)) {
        return false;
    }
    e->va = mk->start + data;
    if (mem->kind != MLX5_SIG_NONE) {
        e->va += data / mem->block * mlx5_sig_bytes(mem);
    }
    flow_start(&e->in, format_in(s), data);
    flow_start(&e->out, format_out(s), data);
    trace_mlx5_sig_begin(h->name, op->qp->obj.id, sge->key, e->va,
                         format_in(s)->kind, format_out(s)->kind);
    return true;
}

/* Moves up to @len bytes between memory and @p. *@n: how many. */
static Mlx5OpResult sig_memory(SigSide *s, uint8_t *p, uint32_t len,
                               uint32_t *n)
{
    Mlx5Cursor c = { .side = s->side };
    Mlx5OpResult r;

    if (s->side->is_inline) {
        r = mlx5_cursor_fill(s->op, &c, len);
    } else {
        r = mlx5_cursor_at(s->op, &c, mlx5_side_sge(s->op, s->side)->key,
                           s->end->va, len);
    }
    *n = 0;
    if (r != MLX5_OP_GO) {
        return r;
    }
    *n = MIN(len, c.left);
    if (!s->write && c.null) {
        memset(p, 0, *n);
    } else if (!s->write) {
        memcpy(p, c.bytes, *n);
    } else if (!c.null) {
        memcpy(c.bytes, p, *n);
    }
    c.held_done = *n;
    mlx5_cursor_drop(&c);
    s->end->va += *n;
    s->side->off += s->side->is_inline ? *n : 0;
    return MLX5_OP_GO;
}

static void sig_tell(SigSide *s, uint16_t syndrome, uint64_t expected,
                     uint64_t actual)
{
    Mlx5Op *op = s->op;
    const Mlx5SigFormat *f = format_in(s);
    Mlx5Hca *h = mlx5_side_hca(op, s->side);
    uint32_t key = mlx5_side_sge(op, s->side)->key;
    Mlx5Mkey *mk = mlx5_mkey_find(h, key);
    Mlx5Psv *psv = (Mlx5Psv *)mlx5_table_get(&h->mk->psvs, f->psv);
    Mlx5Cq *cq = mlx5_cq_find(h, s->side->remote ? op->peer->cqn_rcv
                                                 : op->qp->cqn_snd);
    uint8_t domain = s->write ? MLX5_SIG_WIRE : MLX5_SIG_MEMORY;
    uint64_t offset = s->end->in.block * (f->block + mlx5_sig_bytes(f));
    bool tell = mk && mk->sig && mk->sig->expected != mk->sig->count;
    Mlx5SigErrCqe cqe = {
        .expected_trans_sig = cpu_to_be32(expected >> 32),
        .expected_ref_tag = cpu_to_be32(expected),
        .actual_trans_sig = cpu_to_be32(actual >> 32),
        .actual_ref_tag = cpu_to_be32(actual),
        .syndrome = cpu_to_be16(syndrome),
        .domain = domain,
        .mkey = cpu_to_be32(key),
        .sig_err_offset = cpu_to_be64(offset),
        .op_own = MLX5_CQE_SIG_ERR << 4,
    };

    trace_mlx5_sig_error(h->name, s->side->remote ? op->peer->obj.id
                                                  : op->qp->obj.id,
                         key, syndrome, domain, offset, expected, actual,
                         tell);
    if (psv) {
        psv->syndrome = syndrome;
    }
    op->sig_failed |= !s->side->remote;
    if (tell) {
        mk->sig->count = mk->sig->expected;
        if (cq) {
            mlx5_cq_post(h, cq, (uint8_t *)&cqe, false);
        }
    }
}

/* The signature of a block that came in is complete. */
static void sig_check(SigSide *s)
{
    Mlx5SigEnd *e = s->end;
    const Mlx5SigFormat *f = format_in(s);
    uint8_t made[MLX5_SIG_MAX] = { };
    uint16_t syndrome;

    mlx5_sig_make(f, e->in.guard, e->in.block, made);
    syndrome = mlx5_sig_compare(f, e->bsf.check, e->in.sig, made);
    if (syndrome && !e->told) {
        e->told = true;
        sig_tell(s, syndrome, mlx5_sig_value(f, e->in.sig),
                 mlx5_sig_value(f, made));
    }
    e->in.pos = 0;
    e->in.block++;
    e->in.guard = mlx5_guard_start(f);
}

static bool in_signature(const Mlx5SigFlow *w, const Mlx5SigFormat *f)
{
    return f->kind != MLX5_SIG_NONE && w->pos >= f->block;
}

/*
 * One step: a stretch of data or of a signature, at most @len bytes of the
 * wire from or to @p. *@n: how many of these.
 */
static Mlx5OpResult sig_step(SigSide *s, uint8_t *p, uint32_t len, uint32_t *n)
{
    Mlx5SigEnd *e = s->end;
    const Mlx5SigFormat *in = format_in(s), *out = format_out(s);
    uint32_t moved, want;
    Mlx5OpResult r = MLX5_OP_GO;

    *n = 0;
    if (in_signature(&e->in, in)) {
        uint32_t at = e->in.pos - in->block;

        want = mlx5_sig_bytes(in) - at;
        if (s->write) {
            moved = *n = MIN(want, len);
            memcpy(e->in.sig + at, p, moved);
        } else {
            r = sig_memory(s, e->in.sig + at, want, &moved);
        }
        e->in.pos += moved;
        if (moved == want) {
            sig_check(s);
        }
        return r;
    }
    if (in_signature(&e->out, out)) {
        uint32_t at = e->out.pos - out->block;

        if (!at) {
            mlx5_sig_make(out, e->out.guard, e->out.block, e->out.sig);
            mlx5_sig_merge(out, e->bsf.copy, e->in.sig, e->out.sig);
        }
        want = mlx5_sig_bytes(out) - at;
        if (s->write) {
            r = sig_memory(s, e->out.sig + at, want, &moved);
        } else {
            moved = *n = MIN(want, len);
            memcpy(p, e->out.sig + at, moved);
        }
        e->out.pos += moved;
        if (moved == want) {
            flow_start(&e->out, out, (e->out.block + 1) * out->block);
        }
        return r;
    }
    want = len;
    if (in->kind != MLX5_SIG_NONE) {
        want = MIN(want, in->block - e->in.pos);
    }
    if (out->kind != MLX5_SIG_NONE) {
        want = MIN(want, out->block - e->out.pos);
    }
    r = sig_memory(s, p, want, n);
    e->in.guard = mlx5_guard_feed(in, e->in.guard, e->in.pos, p, *n);
    e->out.guard = mlx5_guard_feed(out, e->out.guard, e->out.pos, p, *n);
    e->in.pos += in->kind != MLX5_SIG_NONE ? *n : 0;
    e->out.pos += out->kind != MLX5_SIG_NONE ? *n : 0;
    return r;
}

/* Signatures in memory that follow the last byte of an entry. */
static Mlx5OpResult sig_finish(SigSide *s)
{
    const Mlx5SigFormat *mem = &s->end->bsf.domain[MLX5_SIG_MEMORY];
    const Mlx5SigFlow *w = s->write ? &s->end->out : &s->end->in;
    Mlx5OpResult r = MLX5_OP_GO;
    uint32_t n;

    while (r == MLX5_OP_GO && s->end->active && in_signature(w, mem) &&
           !(s->write && in_signature(&s->end->in, format_in(s)))) {
        r = sig_step(s, NULL, 0, &n);
    }
    return r;
}

/*
 * Moves @len bytes of the wire from or to @p; *@n: how many, less if it has
 * to wait.
 */
static Mlx5OpResult sig_move(SigSide *s, uint8_t *p, uint32_t len, uint32_t *n)
{
    Mlx5Side *side = s->side;
    Mlx5OpResult r = MLX5_OP_GO;

    for (*n = 0; *n < len && r == MLX5_OP_GO;) {
        uint32_t want = len - *n, moved = 0;

        if (side->is_inline) {
            r = sig_memory(s, p + *n, want, &moved);
            *n += moved;
            continue;
        }
        if (side->cur >= side->nsge || (side->remote && !s->op->peer)) {
            return mlx5_transport_fail(s->op, side->remote);
        }
        if (!s->end->begun && !sig_begin(s)) {
            return mlx5_transport_fail(s->op, side->remote);
        }
        want = MIN(want, mlx5_side_sge(s->op, side)->len - side->off);
        if (!want) {
            r = sig_finish(s);
            if (r == MLX5_OP_GO) {
                side->cur++;
                side->off = 0;
                s->end->begun = false;
            }
            continue;
        }
        r = s->end->active ? sig_step(s, p + *n, want, &moved)
                           : sig_memory(s, p + *n, want, &moved);
        side->off += moved;
        *n += moved;
    }
    return r;
}

Mlx5OpResult mlx5_sig_copy(Mlx5Op *op, uint64_t *budget)
{
    Mlx5SigCopy *c = op->sig ?: (op->sig = g_new0(Mlx5SigCopy, 1));
    SigSide src = { op, &op->src, &c->src, false };
    SigSide dst = { op, &op->dst, &c->dst, true };
    Mlx5OpResult r;
    uint32_t n;

    while (op->done < op->len) {
        if (!*budget) {
            return MLX5_OP_AGAIN;
        }
        if (c->off == c->fill) {
            c->off = c->fill = 0;
        }
        if (!c->off && c->taken < op->len && c->fill < sizeof(c->buf)) {
            r = sig_move(&src, c->buf + c->fill,
                         MIN(sizeof(c->buf) - c->fill, op->len - c->taken),
                         &n);
            c->fill += n;
            c->taken += n;
            if (r != MLX5_OP_GO) {
                return r;
            }
        }
        r = sig_move(&dst, c->buf + c->off, c->fill - c->off, &n);
        c->off += n;
        op->done += n;
        *budget -= MIN(*budget, n);
        if (r != MLX5_OP_GO) {
            return r;
        }
    }
    r = sig_finish(&src);
    return r == MLX5_OP_GO ? sig_finish(&dst) : r;
}

/* Migration */

static int sig_copy_post_load(void *opaque, int version_id)
{
    Mlx5SigCopy *c = opaque;
    Mlx5SigEnd *ends[] = { &c->src, &c->dst };

    if (c->fill > sizeof(c->buf) || c->off > c->fill) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(ends); i++) {
        Mlx5SigEnd *e = ends[i];
        const Mlx5SigFormat *in, *out;

        if (!e->active) {
            continue;
        }
        if (!mlx5_bsf_parse(e->raw, &e->bsf)) {
            return -EINVAL;
        }
        in = &e->bsf.domain[i ? MLX5_SIG_WIRE : MLX5_SIG_MEMORY];
        out = &e->bsf.domain[i ? MLX5_SIG_MEMORY : MLX5_SIG_WIRE];
        if (e->in.pos > in->block + mlx5_sig_bytes(in) ||
            e->out.pos > out->block + mlx5_sig_bytes(out)) {
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateDescription vmstate_sig_flow = {
    .name = "mlx5/sig-flow",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(pos, Mlx5SigFlow),
        VMSTATE_UINT64(block, Mlx5SigFlow),
        VMSTATE_UINT64(guard, Mlx5SigFlow),
        VMSTATE_UINT8_ARRAY(sig, Mlx5SigFlow, MLX5_SIG_MAX),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_sig_end = {
    .name = "mlx5/sig-end",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(begun, Mlx5SigEnd),
        VMSTATE_BOOL(active, Mlx5SigEnd),
        VMSTATE_BOOL(told, Mlx5SigEnd),
        VMSTATE_UINT8_ARRAY(raw, Mlx5SigEnd, MLX5_BSF_SIZE),
        VMSTATE_UINT64(va, Mlx5SigEnd),
        VMSTATE_STRUCT(in, Mlx5SigEnd, 1, vmstate_sig_flow, Mlx5SigFlow),
        VMSTATE_STRUCT(out, Mlx5SigEnd, 1, vmstate_sig_flow, Mlx5SigFlow),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_sig_copy = {
    .name = "mlx5/sig-copy",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = sig_copy_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(src, Mlx5SigCopy, 1, vmstate_sig_end, Mlx5SigEnd),
        VMSTATE_STRUCT(dst, Mlx5SigCopy, 1, vmstate_sig_end, Mlx5SigEnd),
        VMSTATE_UINT64(taken, Mlx5SigCopy),
        VMSTATE_UINT32(fill, Mlx5SigCopy),
        VMSTATE_UINT32(off, Mlx5SigCopy),
        VMSTATE_UINT8_ARRAY(buf, Mlx5SigCopy, 1024),
        VMSTATE_END_OF_LIST()
    }
};
