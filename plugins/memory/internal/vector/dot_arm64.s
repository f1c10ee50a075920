#include "textflag.h"

// The order of the additions is that of dotPortable, without fused operations.
// The assembler does not know these instructions for four float32 (.4S).
#define FMUL(m, n, d) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d))
#define FADD(m, n, d) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d))
#define FADDP(m, n, d) WORD $(0x6e20d400 | (m)<<16 | (n)<<5 | (d))

#define PART(low, high) \
	VLD1.P 32(R0), [V16.S4, V17.S4]; \
	VLD1.P 32(R1), [V18.S4, V19.S4]; \
	FMUL(18, 16, 16); \
	FMUL(19, 17, 17); \
	FADD(16, low, low); \
	FADD(17, high, high)

// func dotNEON(a, b *float32, n int) float32
TEXT ·dotNEON(SB), NOSPLIT, $0-28
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD n+16(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	SUBS $32, R2, R2
	BLT  rest

loop:
	PART(0, 1)
	PART(2, 3)
	PART(4, 5)
	PART(6, 7)
	SUBS $32, R2, R2
	BGE  loop

rest: // R2 is -32, -24, -16 or -8
	CMP $-24, R2
	BLT sum
	PART(0, 1)
	CMP $-16, R2
	BLT sum
	PART(2, 3)
	CMP $-8, R2
	BLT sum
	PART(4, 5)

sum:
	FADD(2, 0, 0)
	FADD(6, 4, 4)
	FADD(4, 0, 0)
	FADD(3, 1, 1)
	FADD(7, 5, 5)
	FADD(5, 1, 1)
	FADD(1, 0, 0)
	FADDP(0, 0, 0)
	FADDP(0, 0, 0)
	FMOVS F0, ret+24(FP)
	RET

// Nor these: the products of the lower and the upper eight bytes, and the sum of
// pairs of them.
#define SMULL(m, n, d) WORD $(0x0e20c000 | (m)<<16 | (n)<<5 | (d))
#define SMULL2(m, n, d) WORD $(0x4e20c000 | (m)<<16 | (n)<<5 | (d))
#define SADALP(n, d) WORD $(0x4e606800 | (n)<<5 | (d))

// func dotCodesNEON(a, b *int8, n int) int32
TEXT ·dotCodesNEON(SB), NOSPLIT, $0-28
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	MOVD n+16(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16

loop:
	VLD1.P 32(R0), [V16.B16, V17.B16]
	VLD1.P 32(R1), [V18.B16, V19.B16]
	SMULL(18, 16, 20)
	SMULL2(18, 16, 21)
	SMULL(19, 17, 22)
	SMULL2(19, 17, 23)
	SADALP(20, 0)
	SADALP(21, 1)
	SADALP(22, 0)
	SADALP(23, 1)
	SUBS $32, R2, R2
	BGT  loop

	VADD  V1.S4, V0.S4, V0.S4
	VADDV V0.S4, V0
	FMOVS F0, ret+24(FP)
	RET
