package vector

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"testing"
)

// whole makes the same vectors on every processor: it computes with integers.
type whole uint64

func (w *whole) next(length int) []float32 {
	vec := make([]float32, length)
	for i := range vec {
		*w = *w*6364136223846793005 + 1442695040888963407
		vec[i] = float32(int32(*w>>40)-1<<23) / (1 << 23)
	}
	return vec
}

// checkDot compares a scalar product with dotPortable, for rows at every offset from
// an aligned address.
func checkDot(t *testing.T, product func(a, b []float32) float32) {
	t.Helper()
	from := whole(1)
	for length := lanes; length <= 50*lanes; length += lanes {
		for shift := range 9 {
			a, b := from.next(length + shift)[shift:], from.next(length + shift/2)[shift/2:]
			if got, want := product(a, b), dotPortable(a, b); got != want {
				t.Fatalf("length %d, shift %d: %x, want %x", length, shift, math.Float32bits(got), math.Float32bits(want))
			}
		}
	}
}

func TestDotIsTheSameOnEveryProcessor(t *testing.T) {
	t.Parallel()
	checkDot(t, dot)
	from, sum := whole(2), sha256.New()
	for length := lanes; length <= 50*lanes; length += lanes {
		a, b, exact := from.next(length), from.next(length), 0.0
		for i, x := range a {
			exact += float64(x) * float64(b[i])
		}
		got := dotPortable(a, b)
		if math.Abs(float64(got)-exact) > 1e-5 {
			t.Errorf("length %d: %v, want %v", length, got, exact)
		}
		_ = binary.Write(sum, binary.BigEndian, got)
	}
	if got, want := hex.EncodeToString(sum.Sum(nil)[:8]), "a377e21186fdc5fb"; got != want {
		t.Errorf("other bits: %s, want %s", got, want)
	}
}

// The graph and the hits are the same on every processor, to the last bit.
func TestSearchIsTheSameOnEveryProcessor(t *testing.T) {
	t.Parallel()
	from, sum := whole(3), sha256.New()
	o := graphOptions
	o.Dimension = 43
	vecs := make([][]float32, 1200)
	for i := range vecs {
		vecs[i] = from.next(o.Dimension)
	}
	ix := filled(t, o, vecs)
	for range 50 {
		fmt.Fprintln(sum, search(t, ix, from.next(o.Dimension), 10, SearchOptions{}))
	}
	if got, want := hex.EncodeToString(sum.Sum(nil)[:8]), "d4d4d026886645f6"; got != want {
		t.Errorf("other hits: %s, want %s", got, want)
	}
}

func BenchmarkDot(b *testing.B) {
	from := whole(4)
	for _, length := range []int{384, 1024} {
		x, y := from.next(length), from.next(length)
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			for b.Loop() {
				dot(x, y)
			}
		})
	}
}
