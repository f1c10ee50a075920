#include "textflag.h"

// The order of the additions is that of dotPortable, without fused operations.

#define AVX(at, sum, tmp) \
	VMOVUPS at(SI), tmp; \
	VMULPS  at(DI), tmp, tmp; \
	VADDPS  tmp, sum, sum

// func dotAVX(a, b *float32, n int) float32
TEXT ·dotAVX(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DI
	MOVQ   n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	SUBQ   $32, CX
	JLT    rest

loop:
	AVX(0, Y0, Y4)
	AVX(32, Y1, Y5)
	AVX(64, Y2, Y6)
	AVX(96, Y3, Y7)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JGE  loop

rest: // CX is -32, -24, -16 or -8
	CMPQ CX, $-24
	JLT  sum
	AVX(0, Y0, Y4)
	CMPQ CX, $-16
	JLT  sum
	AVX(32, Y1, Y5)
	CMPQ CX, $-8
	JLT  sum
	AVX(64, Y2, Y6)

sum:
	VADDPS       Y1, Y0, Y0
	VADDPS       Y3, Y2, Y2
	VADDPS       Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS       X1, X0, X0
	VHADDPS      X0, X0, X0
	VHADDPS      X0, X0, X0
	VZEROUPPER
	MOVSS        X0, ret+24(FP)
	RET

#define SSE(at, sum, tmp, tmp2) \
	MOVUPS at(SI), tmp; \
	MOVUPS at(DI), tmp2; \
	MULPS  tmp2, tmp; \
	ADDPS  tmp, sum

#define SSE8(at, low, high) \
	SSE(at, low, X8, X9); \
	SSE(at+16, high, X10, X11)

// func dotSSE(a, b *float32, n int) float32
TEXT ·dotSSE(SB), NOSPLIT, $0-28
	MOVQ  a+0(FP), SI
	MOVQ  b+8(FP), DI
	MOVQ  n+16(FP), CX
	XORPS X0, X0
	XORPS X1, X1
	XORPS X2, X2
	XORPS X3, X3
	XORPS X4, X4
	XORPS X5, X5
	XORPS X6, X6
	XORPS X7, X7
	SUBQ  $32, CX
	JLT   rest

loop:
	SSE8(0, X0, X1)
	SSE8(32, X2, X3)
	SSE8(64, X4, X5)
	SSE8(96, X6, X7)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JGE  loop

rest:
	CMPQ CX, $-24
	JLT  sum
	SSE8(0, X0, X1)
	CMPQ CX, $-16
	JLT  sum
	SSE8(32, X2, X3)
	CMPQ CX, $-8
	JLT  sum
	SSE8(64, X4, X5)

sum:
	ADDPS   X2, X0
	ADDPS   X6, X4
	ADDPS   X4, X0
	ADDPS   X3, X1
	ADDPS   X7, X5
	ADDPS   X5, X1
	ADDPS   X1, X0
	MOVAPS  X0, X1
	SHUFPS  $0xb1, X1, X1 // swaps neighbours
	ADDPS   X1, X0
	MOVHLPS X0, X1
	ADDSS   X1, X0
	MOVSS   X0, ret+24(FP)
	RET

// func dotCodesAVX2(a, b *int8, n int) int32
TEXT ·dotCodesAVX2(SB), NOSPLIT, $0-28
	MOVQ     a+0(FP), SI
	MOVQ     b+8(FP), DI
	MOVQ     n+16(FP), CX
	VPXOR    Y0, Y0, Y0
	VPCMPEQW Y1, Y1, Y1
	VPSRLW   $15, Y1, Y1 // ones

loop:
	VMOVDQU    (SI), Y2
	VMOVDQU    (DI), Y3
	VPSIGNB    Y2, Y3, Y3 // |a|*(b with the sign of a): two products fit in 16 bits
	VPABSB     Y2, Y2
	VPMADDUBSW Y3, Y2, Y2
	VPMADDWD   Y1, Y2, Y2
	VPADDD     Y2, Y0, Y0
	ADDQ       $32, SI
	ADDQ       $32, DI
	SUBQ       $32, CX
	JGT        loop

	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPHADDD      X0, X0, X0
	VPHADDD      X0, X0, X0
	VMOVD        X0, AX
	VZEROUPPER
	MOVL         AX, ret+24(FP)
	RET
