/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LPIs that are pending when they are enabled, in the order in which the
 * processor gets them. The tables are ours, there is no ITS; each that is
 * taken makes the redistributor look for the next one.
 */
#include "bare.h"

#define GICD         0x08000000
#define GICR         0x080a0000
#define GICR_PROP    0x70
#define GICR_PEND    0x78
#define CONFIG       0x42000000         /* of LPIs, a byte each */
#define PENDING      0x42010000         /* of all interrupts, a bit each */
#define IDBITS       15                 /* less one */
#define FIRST        8192
#define ENABLED      0x1
#define GROUP1_ARE   0x12
#define SPURIOUS     1023

        .globl  _start
_start: uart

        mov     x0, 7                   /* SRE, no bypass */
        msr     icc_sre_el1, x0
        isb
        ldr     x1, =GICD
        mov     w0, GROUP1_ARE
        str     w0, [x1]
        ldr     x1, =GICR
        str     wzr, [x1, 0x14]         /* WAKER */

        ldr     x20, =lpis
1:      ldp     w2, w3, [x20], 8
        cbz     w2, 2f
        ldr     x4, =CONFIG - FIRST
        strb    w3, [x4, x2]
        ldr     x4, =PENDING
        lsr     w5, w2, 3
        add     x4, x4, x5
        and     w5, w2, 7
        mov     w6, 1
        lsl     w6, w6, w5
        ldrb    w5, [x4]
        orr     w5, w5, w6
        strb    w5, [x4]
        b       1b

2:      ldr     x0, =CONFIG + IDBITS
        str     x0, [x1, GICR_PROP]
        ldr     x0, =PENDING
        str     x0, [x1, GICR_PEND]
        mov     w0, 1                   /* EnableLPIs */
        str     w0, [x1]

        mov     x0, 0xff
        msr     icc_pmr_el1, x0
        mov     x0, 1
        msr     icc_igrpen1_el1, x0
        isb

3:      mrs     x21, icc_iar1_el1
        cmp     x21, SPURIOUS
        b.eq    4f
        say     "lpi"
        mov     x0, x21
        bl      hex
        bl      end_line
        msr     icc_eoir1_el1, x21
        b       3b
4:      b       power_off

/*
 * LPI, priority and whether it is enabled. At the ends of the table, at the
 * ends of words and of larger parts of it; of two alike the lower one comes
 * first.
 */
        .balign 8
lpis:
        .word   8192, 0x80 | ENABLED
        .word   8193, 0x70 | ENABLED
        .word   8255, 0x60 | ENABLED
        .word   8256, 0x50 | ENABLED
        .word   12345, 0x20             /* not enabled */
        .word   16383, 0x40 | ENABLED
        .word   16384, 0x40 | ENABLED
        .word   40000, 0x90 | ENABLED
        .word   65534, 0x30 | ENABLED
        .word   65535, 0xa0 | ENABLED
        .word   0, 0
