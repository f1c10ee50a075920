// Package mainstack gives the main goroutine a large stack before other packages
// initialize. Go starts with a small one and copies it to a larger one several times. Each
// copy reads the tables of all functions on the stack: a start of tea would have 0.9 MB
// more of the program in memory.
//
// It imports nothing, so that it is among the first packages that initialize.
package mainstack

func init() { grow(false) }

// grow has a frame of 40 KiB, which makes the stack 64 KiB. Only with touch does it use
// the frame.
//
//go:noinline
func grow(touch bool) byte {
	if !touch {
		return 0
	}
	var frame [40 << 10]byte
	for i := range frame {
		frame[i] = at(i)
	}
	return frame[len(frame)-1]
}

//go:noinline
func at(i int) byte { return byte(i) }
