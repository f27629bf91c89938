#include "textflag.h"

// isUp is a function by the rules of C: its argument, the address of a word, is in DI, and what it returns is in AX.
TEXT isUp<>(SB), NOSPLIT|NOFRAME, $0-0
	MOVL (DI), AX
	RET

GLOBL ·isUpAddress(SB), RODATA, $8
DATA ·isUpAddress(SB)/8, $isUp<>(SB)
