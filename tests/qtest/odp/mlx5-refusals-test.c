/*
 * QTest: each mlx5 command, done and refused
 *
 * A list of commands that succeed one after the other for a user context (or
 * for the kernel). Before each does, it is tried with a mailbox that is too
 * short, with each number in it replaced by one that nobody has and by one of
 * another user context, by another user context, and by one that does not
 * exist. The device tells which commands it has (the property "commands"): one
 * that is not in the list fails the test.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "mlx5-driver.h"

/* Objects whose numbers later commands use. */
enum Kind {
    NONE, UCTX, UMEM, PD, UAR, TD, XRCD, SET, EQ, CQ, KEY, PSV, SRQ, XSRQ, RMP,
    XRQ, QP, UD, DCT, SQ, TABLE, TABLE2, GROUP, COUNTER, ROOT, LEAF, AV, KINDS,
};

enum How {
    END,
    FIX,                          /* the value */
    OWN,                          /* the number of our object of a kind */
    ANY,                          /* the same, of which the device checks */
                                  /* nothing */
    MEM,                          /* the address of memory, with these bits */
    BAD,                          /* 0; with the value it is refused */
};

typedef struct Field {
    uint32_t at, width;
    enum How how;
    uint64_t v;
    uint8_t status;               /* of the refusal; 0: bad resource */
} Field;

typedef struct Step {
    uint16_t op, op_mod;
    bool kernel;                  /* with uid 0 */
    uint32_t more, out;           /* bytes beyond what the device asks for */
    uint8_t status;               /* in this state; 0: done */
    enum Kind makes;
    uint32_t made_at, made_width; /* where its number is in the output */
    Field f[10];
} Step;

#define F(s, f) MLX5_OFF_##s##_##f, MLX5_WIDTH_##s##_##f
/* A field of a structure within a command. */
#define IN(o, of, s, f) \
    MLX5_OFF_##o##_##of + MLX5_OFF_##s##_##f, MLX5_WIDTH_##s##_##f
/* A page list's first entry. */
#define PAS(at) { (at), 64, MEM }
#define DW2 0x40, 32              /* numbers at the usual place */
#define KERNEL .kernel = true

#define MKC(f) IN(create_mkey_in, memory_key_mkey_entry, mkc, f)
#define SRQC(s, f) IN(create_xrc_srq_in, xrc_srq_context_entry, s, f)
#define RMPC(f) MLX5_OFF_create_rmp_in_ctx + MLX5_OFF_rmpc_wq + \
                MLX5_OFF_wq_##f, MLX5_WIDTH_wq_##f
#define XRQC(f) MLX5_OFF_create_xrq_in_xrq_context + MLX5_OFF_xrqc_wq + \
                MLX5_OFF_wq_##f, MLX5_WIDTH_wq_##f
#define SQWQ(f) MLX5_OFF_create_sq_in_ctx + MLX5_OFF_sqc_wq + \
                MLX5_OFF_wq_##f, MLX5_WIDTH_wq_##f
#define QPC(f) IN(create_qp_in, qpc, qpc, f)
#define MQPC(f) IN(rst2init_qp_in, qpc, qpc, f)
#define PATH(f) MLX5_OFF_rst2init_qp_in_qpc + \
                MLX5_OFF_qpc_primary_address_path + MLX5_OFF_ads_##f, \
                MLX5_WIDTH_ads_##f
#define FTE(f) IN(set_fte_in, flow_context, flow_context, f)
#define ELEM(f) IN(create_scheduling_element_in, scheduling_context, \
                   scheduling_context, f)
#define GOBJ(byte) 128 + 8 * (byte)

enum {
    RDMA_RX = 7, NIC = 3, QUEUE_GROUP = 4, UD_SERVICE = 2,
    GOBJ_ELEM = 0x26, GOBJ_AV = 0x3a,
    RDY = 1,                      /* a send queue's state */
    /* Between the match value of a flow entry and its lists. */
    LISTS = MLX5_AT(flow_context, destination) -
            MLX5_AT(flow_context, match_value) - MLX5_BYTES(fte_match_param),
};

/* Flow commands name their table like this. */
#define IN_TABLE(t) { F(destroy_flow_table_in, table_type), FIX, RDMA_RX }, \
                    { F(destroy_flow_table_in, table_id), OWN, t }, \
                    { F(destroy_flow_table_in, other_vport), BAD, 1, \
                      QMLX5_BAD_PARAM }
/* A transition of our queue pair, with what one to RTS looks at. */
#define TO(o) \
    .op = (o), .f = { \
        { F(rst2init_qp_in, qpn), OWN, QP }, \
        { MQPC(pm_state), FIX, 3 }, { PATH(vhca_port_num), FIX, 1 }, \
        { PATH(rlid), FIX, 1 }, { MQPC(mtu), FIX, 5 }, \
        { MQPC(log_msg_max), FIX, 30 }, { MQPC(remote_qpn), ANY, QP }, \
    }
#define ON(kind) .f = { { DW2, OWN, kind } }

/* What makes objects; run for both user contexts. */
static const Step makes[] = {
    { 0xa04, KERNEL, .makes = UCTX, F(create_uctx_out, uid) },
    { 0x800, .makes = PD, F(alloc_pd_out, pd) },
    { 0x802, .makes = UAR, F(alloc_uar_out, uar) },
    { 0x80e, .makes = XRCD, F(alloc_xrcd_out, xrcd) },
    { 0x816, .makes = TD, F(alloc_transport_domain_out, transport_domain) },
    { 0x771, .makes = SET, F(alloc_q_counter_out, counter_set_id) },
    { 0xa08, .more = 8, .makes = UMEM, F(create_umem_out, umem_id), .f = {
        { IN(create_umem_in, umem, umem, num_of_mtt), FIX, 1 },
        { MLX5_OFF_create_umem_in_umem + MLX5_OFF_umem_mtt, 64, MEM, 3 },
        { IN(create_umem_in, umem, umem, page_offset), BAD, 4096,
          QMLX5_BAD_PARAM } } },
    { 0x301, .more = 8, .makes = EQ, F(create_eq_out, eq_number), .f = {
        { IN(create_eq_in, eq_context_entry, eqc, log_eq_size), FIX, 4 },
        { IN(create_eq_in, eq_context_entry, eqc, uar_page), OWN, UAR },
        { IN(create_eq_in, eq_context_entry, eqc, intr), BAD, 0xff,
          QMLX5_BAD_PARAM },
        PAS(MLX5_OFF_create_eq_in_pas) } },
    { 0x400, .more = 8, .makes = CQ, F(create_cq_out, cqn), .f = {
        { IN(create_cq_in, cq_context, cqc, log_cq_size), FIX, 4 },
        { IN(create_cq_in, cq_context, cqc, uar_page), OWN, UAR },
        { IN(create_cq_in, cq_context, cqc, c_eqn_or_apu_element), OWN, EQ },
        { IN(create_cq_in, cq_context, cqc, dbr_addr), MEM },
        PAS(MLX5_OFF_create_cq_in_pas) } },
    { 0x200, .makes = KEY, F(create_mkey_out, mkey_index), .f = {
        { MKC(access_mode_1_0), FIX, 2 }, { MKC(umr_en), FIX, 1 },
        { MKC(free), FIX, 1 }, { MKC(qpn), FIX, 0xffffff },
        { MKC(translations_octword_size), FIX, 4 }, { MKC(pd), OWN, PD },
        { F(create_mkey_in, translations_octword_actual_size), BAD, 5,
          QMLX5_BAD_PARAM } } },
    /* DMA addresses are not a user's to name. */
    { 0x200, .status = QMLX5_BAD_PARAM, .f = {
        { MKC(length64), FIX, 1 }, { MKC(pd), ANY, PD } } },
    { 0x600, .makes = PSV, 0x80, 32, .f = {
        { F(create_psv_in, num_psv), FIX, 1 },
        { F(create_psv_in, pd), OWN, PD } } },
    { 0x700, .more = 8, .makes = SRQ, F(create_xrc_srq_out, xrc_srqn), .f = {
        { SRQC(xrc_srqc, log_xrc_srq_size), FIX, 4 },
        { SRQC(xrc_srqc, log_rq_stride), FIX, 2 },
        { SRQC(xrc_srqc, pd), OWN, PD },
        { SRQC(srqc, dbr_addr), MEM },
        PAS(MLX5_BYTES(create_xrc_srq_in) * 8) } },
    { 0x705, .more = 8, .makes = XSRQ, F(create_xrc_srq_out, xrc_srqn), .f = {
        { SRQC(xrc_srqc, log_xrc_srq_size), FIX, 4 },
        { SRQC(xrc_srqc, log_rq_stride), FIX, 2 },
        { SRQC(xrc_srqc, pd), OWN, PD },
        { SRQC(xrc_srqc, xrcd), OWN, XRCD },
        { SRQC(xrc_srqc, cqn), OWN, CQ },
        { SRQC(srqc, dbr_addr), MEM },
        PAS(MLX5_BYTES(create_xrc_srq_in) * 8) } },
    { 0x90c, .more = 8, .makes = RMP, F(create_rmp_out, rmpn), .f = {
        { RMPC(log_wq_stride), FIX, 6 }, { RMPC(log_wq_sz), FIX, 4 },
        { RMPC(pd), OWN, PD }, { RMPC(dbr_addr), MEM },
        PAS(MLX5_BYTES(create_rmp_in) * 8) } },
    { 0x717, .more = 8, .makes = XRQ, F(create_xrq_out, xrqn), .f = {
        { XRQC(log_wq_stride), FIX, 6 }, { XRQC(log_wq_sz), FIX, 4 },
        { XRQC(pd), OWN, PD }, { XRQC(dbr_addr), MEM },
        { IN(create_xrq_in, xrq_context, xrqc, cqn), OWN, CQ },
        { IN(create_xrq_in, xrq_context, xrqc, topology), BAD, 2,
          QMLX5_BAD_PARAM },
        PAS(MLX5_BYTES(create_xrq_in) * 8) } },
    { 0x500, .more = 8, .makes = QP, F(create_qp_out, qpn), .f = {
        { QPC(pm_state), FIX, 3 }, { QPC(log_sq_size), FIX, 6 },
        { QPC(rq_type), FIX, 1 }, { QPC(pd), OWN, PD },
        { QPC(uar_page), OWN, UAR }, { QPC(cqn_snd), OWN, CQ },
        { QPC(cqn_rcv), OWN, CQ }, { QPC(srqn_rmpn_xrqn), OWN, SRQ },
        { QPC(dbr_addr), MEM },
        PAS(MLX5_BYTES(create_qp_in) * 8) } },
    { 0x500, .more = 8, .makes = UD, F(create_qp_out, qpn), .f = {
        { QPC(pm_state), FIX, 3 }, { QPC(log_sq_size), FIX, 6 },
        { QPC(st), FIX, UD_SERVICE }, { QPC(rq_type), FIX, 3 },
        { QPC(pd), OWN, PD }, { QPC(uar_page), OWN, UAR },
        { QPC(cqn_snd), OWN, CQ }, { QPC(cqn_rcv), ANY, CQ },
        { QPC(dbr_addr), MEM },
        PAS(MLX5_BYTES(create_qp_in) * 8) } },
    { 0x710, .makes = DCT, F(create_dct_out, dctn), .f = {
        { IN(create_dct_in, dct_context_entry, dctc, pd), OWN, PD },
        { IN(create_dct_in, dct_context_entry, dctc, cqn), OWN, CQ },
        { IN(create_dct_in, dct_context_entry, dctc, srqn_xrqn), OWN, SRQ } } },
    { 0x904, .more = 8, .makes = SQ, F(create_sq_out, sqn), .f = {
        { SQWQ(wq_type), FIX, 1 }, { SQWQ(log_wq_stride), FIX, 6 },
        { SQWQ(log_wq_sz), FIX, 6 }, { SQWQ(pd), OWN, PD },
        { SQWQ(uar_page), OWN, UAR }, { SQWQ(dbr_addr), MEM },
        { IN(create_sq_in, ctx, sqc, cqn), OWN, CQ },
        { IN(create_sq_in, ctx, sqc, hairpin), BAD, 1, QMLX5_BAD_PARAM },
        PAS(MLX5_OFF_create_sq_in_ctx + MLX5_OFF_sqc_wq + MLX5_OFF_wq_pas) } },
    { 0x930, .makes = TABLE2, F(create_flow_table_out, table_id), .f = {
        { F(create_flow_table_in, table_type), FIX, RDMA_RX },
        { IN(create_flow_table_in, flow_table_context, flow_table_context,
             level), FIX, 1 } } },
    { 0x930, .makes = TABLE, F(create_flow_table_out, table_id), .f = {
        { F(create_flow_table_in, table_type), FIX, RDMA_RX },
        { IN(create_flow_table_in, flow_table_context, flow_table_context,
             log_size), FIX, 2 },
        { IN(create_flow_table_in, flow_table_context, flow_table_context,
             table_miss_action), FIX, 1 },
        { IN(create_flow_table_in, flow_table_context, flow_table_context,
             table_miss_id), OWN, TABLE2 } } },
    { 0x933, .makes = GROUP, F(create_flow_group_out, group_id), .f = {
        IN_TABLE(TABLE),
        { F(create_flow_group_in, end_flow_index), FIX, 3 },
        { F(create_flow_group_in, start_flow_index), BAD, 4,
          QMLX5_BAD_PARAM } } },
    { 0x939, .makes = COUNTER, F(alloc_flow_counter_out, flow_counter_id),
      .f = { { F(alloc_flow_counter_in, flow_counter_bulk), BAD, 1,
               QMLX5_BAD_PARAM } } },
    { 0x782, .makes = ROOT,
      F(create_scheduling_element_out, scheduling_element_id), .f = {
        { F(create_scheduling_element_in, scheduling_hierarchy), FIX, NIC },
        { ELEM(bw_share), BAD, 101, QMLX5_BAD_PARAM } } },
    { 0x782, .makes = LEAF,
      F(create_scheduling_element_out, scheduling_element_id), .f = {
        { F(create_scheduling_element_in, scheduling_hierarchy), FIX, NIC },
        { ELEM(element_type), FIX, QUEUE_GROUP },
        { ELEM(parent_element_id), OWN, ROOT } } },
    { 0xa00, GOBJ_AV, .more = 64, .makes = AV, DW2, .f = {
        { GOBJ(0xc), 32, ANY, QP },
        { GOBJ(0xc), 32, BAD, 0xffffff },
        { GOBJ(0x2c) + 4, 8, BAD, 0xff, QMLX5_BAD_INDEX } } },
};

/* What uses and ends them. */
static const Step uses[] = {
    /* The function; numbers of ports, functions and tables. */
    { 0x100, KERNEL, .f = { { F(query_hca_cap_in, other_function), BAD, 1,
                              QMLX5_BAD_PARAM } } },
    { 0x101, KERNEL },
    { 0x102, KERNEL, .status = QMLX5_BAD_SYS_STATE },
    { 0x107, 1, KERNEL },
    { 0x107, 9, KERNEL, .status = QMLX5_BAD_PARAM },
    { 0x108, 1, KERNEL, .more = 8, .f = {
        { F(manage_pages_in, input_num_entries), FIX, 0 },
        { F(manage_pages_in, function_id), BAD, 1, QMLX5_BAD_PARAM } } },
    { 0x109, KERNEL, .status = QMLX5_BAD_SYS_STATE },
    { 0x10a, KERNEL },
    { 0x10b, KERNEL, .status = QMLX5_BAD_SYS_STATE },
    { 0x10d, KERNEL },
    { 0x203, KERNEL },
    { 0x750, KERNEL, .f = { { F(query_vport_state_in, other_vport), BAD, 1,
                              QMLX5_BAD_PARAM } } },
    { 0x762, KERNEL, .f = {
        { F(query_hca_vport_context_in, other_vport), BAD, 1,
          QMLX5_BAD_PARAM },
        { F(query_hca_vport_context_in, port_num), BAD, 2,
          QMLX5_BAD_PARAM } } },
    { 0x763, KERNEL, .f = {
        { F(query_hca_vport_context_in, other_vport), BAD, 1,
          QMLX5_BAD_PARAM },
        { F(query_hca_vport_context_in, port_num), BAD, 2,
          QMLX5_BAD_PARAM } } },
    { 0x764, KERNEL, .out = 16, .f = {
        { F(query_hca_vport_gid_in, gid_index), BAD, 999, QMLX5_BAD_INDEX } } },
    { 0x765, KERNEL, .out = 4, .f = {
        { F(query_hca_vport_pkey_in, pkey_index), BAD, 999,
          QMLX5_BAD_INDEX } } },
    { 0x770, KERNEL, .f = { { F(query_vport_state_in, other_vport), BAD, 1,
                              QMLX5_BAD_PARAM } } },
    { 0x805, 1, KERNEL, .more = 64, .out = 64, .f = {
        { F(access_register_in, register_id), FIX, 0x5006 },
        { MLX5_OFF_access_register_in_register_data + 8, 8, FIX, 1 } } },
    { 0x805, 1, KERNEL, .more = 64, .out = 64, .status = QMLX5_BAD_PARAM, .f = {
        { F(access_register_in, register_id), FIX, 0xffff } } },
    { 0x50d, 3, KERNEL, .f = {
        { F(mad_ifc_in, port), FIX, 1 },
        { MLX5_OFF_mad_ifc_in_mad, 32, FIX, 0x01010101 },
        { MLX5_OFF_mad_ifc_in_mad + 16 * 8, 16, FIX, 0x11 } } },
    { 0x50d, 3, KERNEL, .status = QMLX5_BAD_PARAM, .f = {
        { F(mad_ifc_in, port), FIX, 7 } } },
    /* A fault that is gone; mlx5-odp-test answers some that are not. */
    { 0x204, KERNEL },

    { 0xa06, KERNEL, .status = QMLX5_BAD_RES_STATE, .f = {
        { F(destroy_uctx_in, uid), OWN, UCTX } } },
    { 0x303, ON(EQ) },
    { 0x304, ON(EQ) },
    { 0x302, ON(EQ), .status = QMLX5_BAD_RES_STATE },
    { 0x402, ON(CQ) },
    { 0x403, .f = { { F(modify_cq_in, cqn), OWN, CQ } } },
    { 0x401, ON(CQ), .status = QMLX5_BAD_RES_STATE },
    { 0x201, ON(KEY) },
    { 0x601, ON(PSV) },
    { 0x801, ON(PD), .status = QMLX5_BAD_RES_STATE },
    { 0x803, ON(UAR), .status = QMLX5_BAD_RES_STATE },
    { 0x80f, ON(XRCD), .status = QMLX5_BAD_RES_STATE },
    { 0x773, .f = { { F(query_q_counter_in, counter_set_id), OWN, SET },
                    { F(query_q_counter_in, other_vport), BAD, 1,
                      QMLX5_BAD_PARAM } } },

    { 0x702, ON(SRQ) },
    { 0x703, 1, .f = { { DW2, OWN, SRQ },
                       { F(arm_xrc_srq_in, lwm), BAD, 0x8000,
                         QMLX5_BAD_PARAM } } },
    { 0x703, 2, ON(XRQ) },
    { 0x703, 3, .status = QMLX5_BAD_PARAM },
    { 0x701, ON(SRQ), .status = QMLX5_BAD_RES_STATE },
    { 0x707, ON(XSRQ) },
    { 0x708, 1, .f = { { DW2, OWN, XSRQ },
                       { F(arm_xrc_srq_in, lwm), BAD, 0x8000,
                         QMLX5_BAD_PARAM } } },
    { 0x706, ON(XSRQ) },
    { 0x90f, ON(RMP) },
    { 0x90d, ON(RMP) },
    { 0x90e, ON(RMP) },
    { 0x719, ON(XRQ) },
    { 0x718, ON(XRQ) },

    { 0x713, ON(DCT) },
    { 0x714, ON(DCT) },
    { 0x712, ON(DCT) },
    { 0x712, ON(DCT), .status = QMLX5_BAD_RES_STATE },
    { 0x711, ON(DCT) },

    { 0x780, .f = {
        { F(set_pp_rate_limit_in, rate_limit_index), FIX, 5 },
        { F(set_pp_rate_limit_in, rate_limit_index), BAD, 999,
          QMLX5_BAD_INDEX },
        { IN(set_pp_rate_limit_in, ctx, set_pp_rate_limit_context,
             rate_limit), FIX, 1000 } } },
    { 0x907, ON(SQ) },
    { 0x905, .f = {
        { F(modify_sq_in, sqn), OWN, SQ },
        { IN(modify_sq_in, ctx, sqc, state), FIX, RDY },
        { F(modify_sq_in, sq_state), BAD, 3, QMLX5_BAD_RES_STATE } } },
    { 0x905, .status = QMLX5_BAD_RES_STATE, .f = {
        { F(modify_sq_in, sqn), OWN, SQ } } },
    { 0x906, ON(SQ) },

    { TO(QMLX5_INIT2RTR_QP), .status = QMLX5_BAD_QP_STATE },
    { TO(QMLX5_RTR2RTS_QP), .status = QMLX5_BAD_QP_STATE },
    { TO(QMLX5_RTS2RTS_QP), .status = QMLX5_BAD_QP_STATE },
    { TO(QMLX5_INIT2INIT_QP), .status = QMLX5_BAD_QP_STATE },
    /* From these states mlx5-qp-test has transitions that are done. */
    { TO(QMLX5_SQERR2RTS_QP), .status = QMLX5_BAD_QP_STATE },
    { TO(QMLX5_SQD_RTS_QP), .status = QMLX5_BAD_QP_STATE },
    { TO(QMLX5_RST2INIT_QP) },
    { TO(QMLX5_RST2INIT_QP), .status = QMLX5_BAD_QP_STATE },
    { TO(QMLX5_INIT2INIT_QP) },
    { TO(QMLX5_INIT2RTR_QP) },
    { TO(QMLX5_RTR2RTS_QP) },
    { TO(QMLX5_RTS2RTS_QP) },
    { QMLX5_QUERY_QP, ON(QP) },
    { QMLX5_2ERR_QP, ON(QP) },
    { QMLX5_2RST_QP, ON(QP) },
    { QMLX5_DESTROY_QP, ON(QP) },

    { 0x806, .f = { { F(attach_to_mcg_in, qpn), OWN, UD },
                    { MLX5_OFF_attach_to_mcg_in_multicast_gid, 32, FIX,
                      0xff12401b } } },
    { 0x806, .status = QMLX5_BAD_PARAM, .f = {
        { F(attach_to_mcg_in, qpn), OWN, UD } } },
    { 0x807, .f = { { F(detach_from_mcg_in, qpn), OWN, UD },
                    { MLX5_OFF_attach_to_mcg_in_multicast_gid, 32, FIX,
                      0xff12401b } } },
    { QMLX5_DESTROY_QP, ON(UD) },
    { 0x701, ON(SRQ) },

    { 0x932, .f = { IN_TABLE(TABLE) } },
    { 0x93c, .f = {
        IN_TABLE(TABLE),
        { F(modify_flow_table_in, modify_field_select), FIX, 1 },
        { IN(modify_flow_table_in, flow_table_context, flow_table_context,
             table_miss_action), FIX, 1 },
        { IN(modify_flow_table_in, flow_table_context, flow_table_context,
             table_miss_id), OWN, TABLE2 } } },
    { 0x936, .more = LISTS + 8, .f = {
        IN_TABLE(TABLE),
        { FTE(group_id), OWN, GROUP }, { FTE(action), FIX, 1 << 3 | 1 },
        { FTE(flow_counter_list_size), FIX, 1 },
        { MLX5_OFF_set_fte_in_flow_context + MLX5_OFF_flow_context_destination,
          32, OWN, COUNTER },
        { F(set_fte_in, flow_index), BAD, 4, QMLX5_BAD_INDEX } } },
    { 0x936, .more = LISTS, .status = QMLX5_BAD_RES_STATE, .f = {
        IN_TABLE(TABLE), { FTE(group_id), OWN, GROUP } } },
    { 0x935, .f = { IN_TABLE(TABLE),
                    { F(destroy_flow_group_in, group_id), OWN, GROUP } } },
    /* With its counter. */
    { 0x937, .out = 8, .f = { IN_TABLE(TABLE),
                              { F(delete_fte_in, flow_index), BAD, 1 } } },
    { 0x937, .status = QMLX5_BAD_OUTP_LEN, .f = { IN_TABLE(TABLE) } },
    { 0x93b, .f = {
        { F(query_flow_counter_in, flow_counter_id), OWN, COUNTER },
        { F(query_flow_counter_in, num_of_counters), BAD, 2,
          QMLX5_BAD_PARAM } } },
    { 0x93a, ON(COUNTER), .status = QMLX5_BAD_RES_STATE },
    { 0x934, .status = QMLX5_BAD_RES_STATE, .f = {
        IN_TABLE(TABLE),
        { F(destroy_flow_group_in, group_id), OWN, GROUP } } },
    { 0x931, .status = QMLX5_BAD_RES_STATE, .f = { IN_TABLE(TABLE) } },
    { 0x938, .f = { IN_TABLE(TABLE),
                    { F(delete_fte_in, flow_index), BAD, 1 } } },
    { 0x938, .status = QMLX5_BAD_RES, .f = { IN_TABLE(TABLE) } },
    { 0x934, .f = { IN_TABLE(TABLE),
                    { F(destroy_flow_group_in, group_id), OWN, GROUP } } },
    { 0x93a, ON(COUNTER) },
    { 0x92f, .f = { IN_TABLE(TABLE) } },
    { 0x931, .f = { IN_TABLE(TABLE) } },
    { 0x931, .f = { IN_TABLE(TABLE2) } },

    { 0x784, .f = { { F(query_scheduling_element_in, scheduling_element_id),
                      OWN, LEAF } } },
    { 0x785, .f = {
        { F(modify_scheduling_element_in, scheduling_hierarchy), FIX, NIC },
        { F(modify_scheduling_element_in, scheduling_element_id), OWN, ROOT },
        { F(modify_scheduling_element_in, modify_bitmask), BAD, 4,
          QMLX5_BAD_PARAM } } },
    { 0x783, .status = QMLX5_BAD_RES_STATE, .f = {
        { F(destroy_scheduling_element_in, scheduling_element_id), OWN,
          ROOT } } },
    { 0x783, .f = { { F(destroy_scheduling_element_in, scheduling_element_id),
                      OWN, LEAF } } },
    { 0xa02, GOBJ_AV, .out = 64, ON(AV) },
    { 0xa01, GOBJ_AV, .more = 64, ON(AV), .status = QMLX5_BAD_PARAM },
    { 0xa03, GOBJ_AV, ON(AV) },
    { 0xa01, GOBJ_ELEM, .more = 128, .f = {
        { DW2, OWN, ROOT }, { GOBJ(8), 8, FIX, NIC } } },
    { 0xa03, GOBJ_ELEM, ON(ROOT) },

    { 0x202, ON(KEY) },
    { 0x401, ON(CQ) },
    { 0x302, ON(EQ) },
    { 0x801, ON(PD) },
    { 0x803, ON(UAR) },
    { 0x80f, ON(XRCD) },
    { 0x817, ON(TD) },
    { 0x772, ON(SET) },
    { 0xa0a, ON(UMEM) },
    { 0x780, .f = { { F(set_pp_rate_limit_in, rate_limit_index), FIX, 5 } } },
    { 0xa06, KERNEL, .f = { { F(destroy_uctx_in, uid), OWN, UCTX } } },

    { 0x103, KERNEL, .f = { { F(teardown_hca_in, profile), BAD, 2,
                              QMLX5_BAD_PARAM } } },
    { 0x800, KERNEL, .status = QMLX5_BAD_SYS_STATE },
    { 0x102, KERNEL },
    { 0x103, KERNEL },
    { 0x105, KERNEL, .f = { { F(disable_hca_in, function_id), BAD, 1,
                              QMLX5_BAD_PARAM } } },
    { 0x103, KERNEL, .status = QMLX5_BAD_SYS_STATE },
    { 0x104, KERNEL, .f = { { F(enable_hca_in, function_id), BAD, 1,
                              QMLX5_BAD_PARAM } } },
};

/* What other tests do with success. */
static const uint16_t done_elsewhere[] = {
    0x109, 0x10b,                 /* the driver of all tests */
    QMLX5_SQERR2RTS_QP, QMLX5_SQD_RTS_QP, /* mlx5-qp-test, mlx5-verbs-test */
};

/* A command as the device describes it. */
typedef struct Cmd {
    uint32_t in, out;
    char *name, *when;
    unsigned done;
} Cmd;

typedef struct Env {
    QMlx5 *d;
    Cmd cmd[0x1000];
    uint32_t id[2][KINDS];        /* of ours, of another user context */
} Env;

static void read_commands(Env *e)
{
    QDict *r = qtest_qmp(e->d->qts, "{ 'execute': 'qom-get', 'arguments': "
                         "{ 'path': '/machine/peripheral/hca0', "
                         "'property': 'commands' } }");
    QList *l = qdict_get_qlist(r, "return");
    const QListEntry *entry;
    unsigned n = 0;

    QLIST_FOREACH_ENTRY(l, entry) {
        QDict *c = qobject_to(QDict, qlist_entry_obj(entry));
        uint64_t op = qdict_get_int(c, "opcode");

        g_assert_cmpint(op, <, ARRAY_SIZE(e->cmd));
        e->cmd[op] = (Cmd) {
            .in = qdict_get_int(c, "input"),
            .out = MAX(qdict_get_int(c, "output"), 8),
            .name = g_strdup(qdict_get_str(c, "name")),
            .when = g_strdup(qdict_get_str(c, "when")),
        };
        n++;
    }
    g_assert_cmpint(n, >=, 100);
    qobject_unref(r);
}

static Env *env_new(void)
{
    Env *e = g_new0(Env, 1);

    e->d = qmlx5_start("");
    read_commands(e);
    return e;
}

static void env_free(Env *e)
{
    for (unsigned i = 0; i < ARRAY_SIZE(e->cmd); i++) {
        g_free(e->cmd[i].name);
        g_free(e->cmd[i].when);
    }
    qmlx5_stop(e->d);
    g_free(e);
}

static void put(Env *e, const Step *s, uint8_t *in, const Field *f, uint64_t v)
{
    /* What the device asks for holds all fields that a step names. */
    g_assert_cmpint(f->at / 32 * 4 + MAX(f->width, 32) / 8, <=,
                    e->cmd[s->op].in + s->more);
    if (f->width == 64) {
        stq_be_p(in + f->at / 8, v);
    } else {
        mlx5_field_set(in, f->at, f->width, v);
    }
}

/* The command as user context @who of @e gives it, or (@uid) somebody else. */
static void fill(Env *e, const Step *s, int who, uint16_t uid, uint8_t *in)
{
    qmlx5_cmd_head(in, s->op, s->op_mod);
    stw_be_p(in + 2, uid);
    for (const Field *f = s->f; f->width; f++) {
        if (f->how == FIX) {
            put(e, s, in, f, f->v);
        } else if (f->how == MEM) {
            put(e, s, in, f, qmlx5_alloc(e->d->host, QMLX5_PAGE) | f->v);
        } else if (f->how != BAD) {
            put(e, s, in, f, e->id[who][f->v]);
        }
    }
}

static void expect(Env *e, const Step *s, const char *what, const uint8_t *in,
                   uint32_t in_len, uint32_t out_len, uint8_t status)
{
    g_autofree uint8_t *out = g_malloc0(MAX(out_len, 16));
    uint8_t got = qmlx5_cmd(e->d, in, in_len, out, out_len);

    if (got != status) {
        g_test_message("0x%x %s: %s: status 0x%x, syndrome 0x%x", s->op,
                       e->cmd[s->op].name, what, got, qmlx5_be32(out + 4));
    }
    g_assert_cmphex(got, ==, status);
    if (status) {
        g_assert_true(buffer_is_zero(out + 8, out_len - 8));
    }
}

/* Does one step for user context @who. */
static void done(Env *e, const Step *s, int who)
{
    Cmd *c = &e->cmd[s->op];
    uint32_t in_len = c->in + s->more, out_len = MAX(c->out + s->out, 16);
    g_autofree uint8_t *in = g_malloc0(in_len), *out = g_malloc0(out_len);
    uint8_t got;

    fill(e, s, who, s->kernel ? 0 : e->id[who][UCTX], in);
    got = qmlx5_cmd(e->d, in, in_len, out, out_len);
    if (got != s->status) {
        g_test_message("0x%x %s: status 0x%x, syndrome 0x%x", s->op, c->name,
                       got, qmlx5_be32(out + 4));
    }
    g_assert_cmphex(got, ==, s->status);
    c->done += !got;
    if (s->makes) {
        e->id[who][s->makes] = mlx5_field_get(out, s->made_at, s->made_width);
    }
}

/* All that must be refused instead of @s, of our user context. */
static void refused(Env *e, const Step *s)
{
    const Cmd *c = &e->cmd[s->op];
    uint32_t in_len = c->in + s->more, out_len = MAX(c->out + s->out, 16);
    uint16_t uid = s->kernel ? 0 : e->id[0][UCTX];
    uint16_t other = e->id[1][UCTX];
    g_autofree uint8_t *in = g_malloc0(in_len);
    bool owned = false;

    fill(e, s, 0, uid, in);
    if (c->in > 16) {
        expect(e, s, "short input", in, c->in - 4, out_len, QMLX5_BAD_INP_LEN);
    }
    if (c->out > 8) {
        expect(e, s, "short output", in, in_len, c->out - 4,
               QMLX5_BAD_OUTP_LEN);
    }
    for (const Field *f = s->f; f->width; f++) {
        uint8_t status = f->status ?: QMLX5_BAD_RES;

        if (f->how == OWN) {
            fill(e, s, 0, uid, in);
            put(e, s, in, f, 0xfffffe);
            expect(e, s, "an unknown number", in, in_len, out_len, status);
            if (!s->kernel) {
                put(e, s, in, f, e->id[1][f->v]);
                expect(e, s, "another's number", in, in_len, out_len, status);
            }
            owned = true;
        } else if (f->how == BAD) {
            fill(e, s, 0, uid, in);
            put(e, s, in, f, f->v);
            expect(e, s, "a bad value", in, in_len, out_len, status);
            memset(in, 0, in_len);
        }
    }
    memset(in, 0, in_len);
    fill(e, s, 0, 0xeeee, in);
    expect(e, s, "no such user", in, in_len, out_len, QMLX5_BAD_RES);
    if (owned) {
        fill(e, s, 0, other, in);
        expect(e, s, "another user", in, in_len, out_len, QMLX5_BAD_RES);
    }
}

static void run(Env *e, const Step *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (s[i].status != QMLX5_BAD_SYS_STATE) {
            refused(e, &s[i]);
        }
        done(e, &s[i], 0);
    }
}

/* Device memory: numbers are addresses, and it is the kernel's. */
static void run_memic(Env *e)
{
    uint8_t cap[4096];
    uint64_t at;

    qmlx5_query_cap(e->d, 0xf, true, cap);
    at = MLX5_GET64(cap, device_mem_cap, memic_bar_start_addr);
    {
        const Step s[] = {
            { 0x205, KERNEL, .f = {
                { F(alloc_memic_in, range_start_addr), FIX, at },
                { F(alloc_memic_in, range_size), FIX, 64 },
                { F(alloc_memic_in, memic_size), FIX, 64 },
                { F(alloc_memic_in, log_memic_addr_alignment), BAD, 13,
                  QMLX5_BAD_PARAM } } },
            { 0x205, KERNEL, .status = QMLX5_NO_RES, .f = {
                { F(alloc_memic_in, range_start_addr), FIX, at },
                { F(alloc_memic_in, range_size), FIX, 64 },
                { F(alloc_memic_in, memic_size), FIX, 64 } } },
            { 0x207, KERNEL, .f = {
                { F(modify_memic_in, memic_start_addr), FIX, at },
                { F(modify_memic_in, memic_operation_type), BAD, 9,
                  QMLX5_BAD_PARAM } } },
            { 0x207, KERNEL, .status = QMLX5_BAD_RES, .f = {
                { F(modify_memic_in, memic_start_addr), FIX, at + 64 } } },
            { 0x206, KERNEL, .status = QMLX5_BAD_RES_STATE, .f = {
                { F(dealloc_memic_in, memic_start_addr), FIX, at },
                { F(dealloc_memic_in, memic_size), FIX, 64 } } },
            { 0x207, 1, KERNEL, .f = {
                { F(modify_memic_in, memic_start_addr), FIX, at } } },
            { 0x206, KERNEL, .status = QMLX5_BAD_RES, .f = {
                { F(dealloc_memic_in, memic_start_addr), FIX, at + 64 },
                { F(dealloc_memic_in, memic_size), FIX, 64 } } },
            { 0x206, KERNEL, .f = {
                { F(dealloc_memic_in, memic_start_addr), FIX, at },
                { F(dealloc_memic_in, memic_size), FIX, 64 } } },
        };

        run(e, s, ARRAY_SIZE(s));
    }
}

static void test_each(void)
{
    Env *e = env_new();

    for (unsigned i = 0; i < ARRAY_SIZE(makes); i++) {
        done(e, &makes[i], 1);
    }
    run_memic(e);
    run(e, makes, ARRAY_SIZE(makes));
    run(e, uses, ARRAY_SIZE(uses));
    for (unsigned i = 0; i < ARRAY_SIZE(done_elsewhere); i++) {
        g_assert_nonnull(e->cmd[done_elsewhere[i]].name);
        e->cmd[done_elsewhere[i]].done++;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(e->cmd); i++) {
        if (e->cmd[i].name && !e->cmd[i].done) {
            g_test_message("0x%x %s is never done", i, e->cmd[i].name);
            g_assert_not_reached();
        }
    }
    env_free(e);
}

/* Outside of its state no command runs. */
static void test_states(void)
{
    Env *e = env_new();
    QMlx5 *d = e->d;

    for (int phase = 0; phase < 2; phase++) {
        g_assert_cmphex(qmlx5_cmd_simple(d, phase ? QMLX5_DISABLE_HCA
                                                  : QMLX5_TEARDOWN_HCA,
                                         0, 0, 0, NULL), ==, 0);
        for (unsigned i = 0; i < ARRAY_SIZE(e->cmd); i++) {
            const Cmd *c = &e->cmd[i];
            Step s = { .op = i };
            g_autofree uint8_t *in = NULL;

            if (!c->name || g_str_equal(c->when, "always") ||
                (!phase && !g_str_equal(c->when, "after-init"))) {
                continue;
            }
            in = g_malloc0(c->in);
            qmlx5_cmd_head(in, i, 0);
            expect(e, &s, c->when, in, c->in, MAX(c->out, 16),
                   QMLX5_BAD_SYS_STATE);
        }
    }
    g_assert_cmphex(qmlx5_cmd_simple(d, QMLX5_ENABLE_HCA, 0, 0, 0, NULL), ==,
                    0);
    env_free(e);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/mlx5/refusals/each", test_each);
    qtest_add_func("/mlx5/refusals/states", test_states);
    return g_test_run();
}
