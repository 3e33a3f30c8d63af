/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The serial port at x28, and the end. */
        .globl  print, hex, end_line, power_off

/* The characters at x0 */
print:  ldrb    w1, [x0], 1
        cbz     w1, 1f
        strb    w1, [x28]
        b       print
1:      ret

/* The low 16 bits of x0 */
hex:    mov     w2, 12
1:      lsr     x3, x0, x2
        and     w3, w3, 0xf
        cmp     w3, 10
        add     w4, w3, '0'
        add     w3, w3, 'a' - 10
        csel    w3, w4, w3, lo
        strb    w3, [x28]
        subs    w2, w2, 4
        b.ge    1b
        ret

end_line:
        mov     w0, '\n'
        strb    w0, [x28]
        ret

/* PSCI SYSTEM_OFF */
power_off:
        ldr     w0, =0x84000008
        hvc     0
        b       .
        .ltorg
