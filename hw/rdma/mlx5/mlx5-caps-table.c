/*
 * mlx5 capability table
 *
 * A row is a promise: what it advertises works. The same table is in
 * docs/specs/mlx5-hca.md.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "mlx5-caps.h"
#include "mlx5-caps-table.h"
#include "mlx5-cq.h"
#include "mlx5-memic.h"

#define MLX5_CAP(s, f, t, when_, set_, max_) \
    { .name = #f, .type = (t), .off = MLX5_OFF_##s##_##f, \
      .width = MLX5_WIDTH_##s##_##f, .when = MLX5_CAP_##when_, \
      .set = MLX5_CAP_##set_, .max = (max_) }

/* What user space knows and the kernel's header does not name. */
#define MLX5_CAP_USER(f, off_, width_, t, when_, set_, max_) \
    { .name = #f, .type = (t), .off = (off_), .width = (width_), \
      .when = MLX5_CAP_##when_, .set = MLX5_CAP_##set_, .max = (max_) }

const Mlx5CapRow mlx5_cap_rows[] = {
    /* Device. */
    MLX5_CAP(cmd_hca_cap, hca_cap_2, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, vhca_id, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, force_teardown, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, driver_version, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cmdif_checksum, 0, ALWAYS, SET_FROM_0, 0),
    MLX5_CAP(cmd_hca_cap, device_frequency_mhz, 0, ALWAYS, FIXED,
             MLX5_CORE_CLOCK_KHZ / 1000),
    MLX5_CAP(cmd_hca_cap, device_frequency_khz, 0, ALWAYS, FIXED,
             MLX5_CORE_CLOCK_KHZ),

    /* UAR pages and doorbells. */
    MLX5_CAP(cmd_hca_cap, uar_4k, 0, ALWAYS, SET_FROM_0, 1),
    MLX5_CAP(cmd_hca_cap, log_uar_page_sz, 0, ALWAYS, SET_FROM_0, 4),
    MLX5_CAP(cmd_hca_cap, uar_sz, 0, ALWAYS, FIXED, 5),
    MLX5_CAP(cmd_hca_cap, bf, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, log_bf_reg_size, 0, ALWAYS, FIXED, 9),

    /* Port. */
    MLX5_CAP(cmd_hca_cap, port_type, 0, ALWAYS, FIXED, 0),
    MLX5_CAP(cmd_hca_cap, num_ports, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, native_port_num, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, ib_virt, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, gid_table_size, 0, ALWAYS, FIXED, 0),
    MLX5_CAP(cmd_hca_cap, pkey_table_size, 0, ALWAYS, SETTABLE, 0),
    MLX5_CAP(cmd_hca_cap, local_ca_ack_delay, 0, ALWAYS, FIXED, 16),
    MLX5_CAP(cmd_hca_cap, log_max_msg, 0, ALWAYS, FIXED, MLX5_LOG_MAX_MSG),
    MLX5_CAP(cmd_hca_cap, vport_counters, 0, ALWAYS, FIXED, 1),

    /* Q counters. */
    MLX5_CAP(cmd_hca_cap, max_qp_cnt, 0, ALWAYS, FIXED,
             MLX5_MAX_Q_COUNTERS - 1),
    MLX5_CAP(cmd_hca_cap, out_of_seq_cnt, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, retransmission_q_counters, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, enhanced_error_q_counters, 0, ALWAYS, FIXED, 1),

    /* Events and completions. */
    MLX5_CAP(cmd_hca_cap, log_max_eq, 0, ALWAYS, FIXED, MLX5_LOG_MAX_EQ),
    MLX5_CAP(cmd_hca_cap, log_max_eq_sz, 0, ALWAYS, FIXED, MLX5_LOG_MAX_EQ_SZ),
    MLX5_CAP(cmd_hca_cap, log_max_cq, 0, ALWAYS, FIXED, MLX5_LOG_MAX_CQ),
    MLX5_CAP(cmd_hca_cap, log_max_cq_sz, 0, ALWAYS, FIXED, MLX5_LOG_MAX_CQ_SZ),
    MLX5_CAP(cmd_hca_cap, cqe_version, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cq_oi, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cq_moderation, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cq_resize, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cqe_128_always, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cqe_compression, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cqe_compression_128, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, cqe_compression_max_num, 0, ALWAYS, FIXED,
             MLX5_CQE_COMP_MAX),
    MLX5_CAP(cmd_hca_cap, mini_cqe_resp_stride_index, 0, ALWAYS, FIXED, 1),

    /* Queue pairs and shared receive queues. */
    MLX5_CAP(cmd_hca_cap, rc, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, uc, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, ud, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, xrc, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, log_max_mcg, 0, ALWAYS, FIXED, MLX5_LOG_MAX_MCG),
    MLX5_CAP(cmd_hca_cap, max_qp_mcg, 0, ALWAYS, FIXED, MLX5_MAX_QP_MCG),
    MLX5_CAP(cmd_hca_cap, block_lb_mc, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, dct, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, qpc_extension, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, log_max_ra_req_dc, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_RA_REQ),
    MLX5_CAP(cmd_hca_cap, log_max_ra_res_dc, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_RA_RES),
    MLX5_CAP(cmd_hca_cap, log_max_dci_stream_channels, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_DCI_STREAMS),
    MLX5_CAP(cmd_hca_cap, log_max_dci_errored_streams, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_DCI_ERRORED),
    MLX5_CAP(cmd_hca_cap, set_deth_sqpn, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, log_max_qp, 0, ALWAYS, SETTABLE, MLX5_LOG_MAX_QP),
    MLX5_CAP(cmd_hca_cap, log_max_qp_sz, 0, ALWAYS, FIXED, MLX5_LOG_MAX_QP_SZ),
    MLX5_CAP(cmd_hca_cap, max_wqe_sz_sq, 0, ALWAYS, FIXED, MLX5_MAX_WQE_SZ_SQ),
    MLX5_CAP(cmd_hca_cap, max_wqe_sz_rq, 0, ALWAYS, FIXED, MLX5_MAX_WQE_SZ_RQ),
    MLX5_CAP(cmd_hca_cap, log_max_ra_req_qp, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_RA_REQ),
    MLX5_CAP(cmd_hca_cap, log_max_ra_res_qp, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_RA_RES),
    MLX5_CAP(cmd_hca_cap, log_max_srq, 0, ALWAYS, FIXED, MLX5_LOG_MAX_SRQ),
    MLX5_CAP(cmd_hca_cap, log_max_srq_sz, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_SRQ_SZ),
    MLX5_CAP(cmd_hca_cap, log_max_rmp, 0, ALWAYS, FIXED, MLX5_LOG_MAX_SRQ),
    MLX5_CAP(cmd_hca_cap, log_max_xrq, 0, ALWAYS, FIXED, MLX5_LOG_MAX_XRQ),
    MLX5_CAP(cmd_hca_cap, tag_matching, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, rndv_offload_rc, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, log_tag_matching_list_sz, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_TM_LIST),
    MLX5_CAP(cmd_hca_cap, atomic, 0, ALWAYS, FIXED, 1),

    /* Domains. */
    MLX5_CAP(cmd_hca_cap, log_max_pd, 0, ALWAYS, FIXED, MLX5_LOG_MAX_PD),
    MLX5_CAP(cmd_hca_cap, log_max_xrcd, 0, ALWAYS, FIXED, MLX5_LOG_MAX_XRCD),
    MLX5_CAP(cmd_hca_cap, log_max_transport_domain, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_TD),

    /* User contexts (DEVX). */
    MLX5_CAP(cmd_hca_cap, log_max_uctx, 0, ALWAYS, FIXED, MLX5_LOG_MAX_UCTX),
    MLX5_CAP(cmd_hca_cap, log_max_umem, 0, ALWAYS, FIXED, MLX5_LOG_MAX_UMEM),

    /* Memory keys. */
    MLX5_CAP(cmd_hca_cap, log_max_mkey, 0, ALWAYS, FIXED, MLX5_LOG_MAX_MKEY),
    MLX5_CAP(cmd_hca_cap, log_pg_sz, 0, ALWAYS, FIXED, 12),
    MLX5_CAP(cmd_hca_cap, log_max_mrw_sz, 0, ALWAYS, FIXED, 64),
    MLX5_CAP(cmd_hca_cap, max_indirection, 0, ALWAYS, FIXED,
             MLX5_MAX_INDIRECTION),
    MLX5_CAP(cmd_hca_cap, log_max_klm_list_size, 0, ALWAYS, FIXED,
             MLX5_LOG_MAX_KLM_LIST),
    MLX5_CAP(cmd_hca_cap, fixed_buffer_size, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, umr_extended_translation_offset, 0, ALWAYS, FIXED,
             1),
    MLX5_CAP(cmd_hca_cap, null_mkey, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, terminate_scatter_list_mkey, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, imaicl, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, pg, 0, ODP_ANY, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, ats, 0, ATS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap_2, umr_log_entity_size_5, 0x20, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap_2, max_mkey_log_entity_size_fixed_buffer, 0x20,
             ALWAYS, FIXED, 40),
    MLX5_CAP(cmd_hca_cap_2, max_mkey_log_entity_size_mtt, 0x20, ALWAYS, FIXED,
             40),

    /* Signatures (rdma-core: providers/mlx5/mlx5_ifc.h). */
    MLX5_CAP(cmd_hca_cap, sho, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, sigerr_cqe, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(cmd_hca_cap, drain_sigerr, 0, ALWAYS, FIXED, 1),
    MLX5_CAP_USER(sig_crc64_xp10, 0x147, 1, 0, ALWAYS, FIXED, 1),
    MLX5_CAP_USER(sig_crc32c, 0x148, 1, 0, ALWAYS, FIXED, 1),
    MLX5_CAP_USER(sig_block_4048, 0x1f0, 1, 0, ALWAYS, FIXED, 1),
    MLX5_CAP_USER(sigerr_domain_and_sig_type, 0x480, 1, 0, ALWAYS, FIXED, 1),

    /* Device memory. */
    MLX5_CAP(cmd_hca_cap, device_memory, 0, ALWAYS, FIXED, 1),
    MLX5_CAP(device_mem_cap, memic, 0xf, ALWAYS, FIXED, 1),
    MLX5_CAP(device_mem_cap, log_min_memic_alloc_size, 0xf, ALWAYS, FIXED,
             MLX5_MEMIC_LOG_MIN),
    MLX5_CAP(device_mem_cap, log_max_memic_addr_alignment, 0xf, ALWAYS, FIXED,
             MLX5_MEMIC_LOG_MIN),
    MLX5_CAP(device_mem_cap, memic_bar_size, 0xf, ALWAYS, FIXED,
             MLX5_MEMIC_BYTES),
    MLX5_CAP(device_mem_cap, max_memic_size, 0xf, ALWAYS, FIXED,
             MLX5_MEMIC_BYTES / 2),

    MLX5_CAP(device_mem_cap, memic_operations, 0xf, ALWAYS, FIXED, 3),
    /* Sizes that these work on, by log2. */
    MLX5_CAP_USER(memic_increment_sizes, 0x20, 8, 0xf, ALWAYS, FIXED, 0xf),
    MLX5_CAP_USER(memic_test_and_set_sizes, 0x30, 8, 0xf, ALWAYS, FIXED, 0xf),

    /* Atomics. */
    MLX5_CAP(atomic_caps, atomic_req_8B_endianness_mode, 3, ALWAYS,
             SET_FROM_0, 1),
    MLX5_CAP(atomic_caps, supported_atomic_req_8B_endianness_mode_1, 3,
             ALWAYS, FIXED, 1),
    MLX5_CAP(atomic_caps, atomic_operations, 3, ALWAYS, FIXED, 3),
    MLX5_CAP(atomic_caps, atomic_size_qp, 3, ALWAYS, FIXED, 8),

    /* On-demand paging, memory scheme. */
    MLX5_CAP(odp_cap, mem_page_fault, 2, ODP_MEMORY, SET_FROM_0, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__page_prefetch, 2,
             ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__send,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__receive,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__write,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__read,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__atomic,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__rc_odp_caps__srq_receive,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__ud_odp_caps__send,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__ud_odp_caps__srq_receive,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__send,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__write,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__read,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__atomic,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__xrc_odp_caps__srq_receive,
             2, ODP_MEMORY, FIXED, 1),

    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__send,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__write,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__read,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__atomic,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, memory_page_fault_scheme_cap__dc_odp_caps__srq_receive,
             2, ODP_MEMORY, FIXED, 1),

    /* User space looks for those of DC in the transport scheme's place. */
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__send,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__write,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__read,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__atomic,
             2, ODP_MEMORY, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__dc_odp_caps__srq_receive,
             2, ODP_MEMORY, FIXED, 1),

    /* Transport scheme. The driver switches on what starts at 0. */
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__send,
             2, ODP_TRANSPORT, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__receive,
             2, ODP_TRANSPORT, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__write,
             2, ODP_TRANSPORT, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__read,
             2, ODP_TRANSPORT, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__atomic,
             2, ODP_TRANSPORT, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__rc_odp_caps__srq_receive,
             2, ODP_TRANSPORT, SET_FROM_0, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__ud_odp_caps__send,
             2, ODP_TRANSPORT, FIXED, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__ud_odp_caps__srq_receive,
             2, ODP_TRANSPORT, SET_FROM_0, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__send,
             2, ODP_TRANSPORT, SET_FROM_0, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__write,
             2, ODP_TRANSPORT, SET_FROM_0, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__read,
             2, ODP_TRANSPORT, SET_FROM_0, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__atomic,
             2, ODP_TRANSPORT, SET_FROM_0, 1),
    MLX5_CAP(odp_cap, transport_page_fault_scheme_cap__xrc_odp_caps__srq_receive,
             2, ODP_TRANSPORT, SET_FROM_0, 1),
    { }
};
