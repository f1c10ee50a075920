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

// The codes are the largest ones, with alternating signs or at random.
func TestProductOfCodesIsTheSameOnEveryProcessor(t *testing.T) {
	t.Parallel()
	random := whole(5)
	for _, length := range []int{codeLanes, 3 * codeLanes, codesOf(maxDimension)} {
		x, y, extreme := make([]int8, length), make([]int8, length), make([]int8, length)
		for i := range x {
			v := random.next(2)
			x[i], y[i], extreme[i] = int8(127*v[0]), int8(127*v[1]), int8(127-254*(i%2))
		}
		for _, pair := range [][2][]int8{{x, y}, {x, extreme}, {extreme, extreme}} {
			want := 0
			for i, c := range pair[0] {
				want += int(c) * int(pair[1][i])
			}
			if got, portable := dotCodes(pair[0], pair[1]), dotCodesPortable(pair[0], pair[1]); int(got) != want || int(portable) != want {
				t.Errorf("length %d: %d, portable %d, want %d", length, got, portable, want)
			}
		}
	}
}

// Otherwise a search would miss hits that an exact scan finds.
func TestCodesAreAsNearAsTheirBound(t *testing.T) {
	t.Parallel()
	from := newSource(43, 5, 0.3)
	vecs := append(from.many(500), newSource(43, 0, 0).many(500)...)
	vecs = append(vecs, append([]float32{1}, make([]float32, 42)...), append([]float32{1, 1e-4}, make([]float32, 41)...))
	ix := still(t, Options{Dimension: 43})
	for i, vec := range vecs {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	v, buf := mustView(t, ix), []float32(nil)
	for i := 0; i < len(vecs); i += 7 {
		row, _, _ := normalise(vecs[i], 43)
		query := newTarget(row)
		for slot := range v.count {
			exact := similarity(v.row(slot, &buf), row)
			if off := math.Abs(float64(exact - v.compare(slot, query))); off > float64(v.bound(slot, query)) {
				t.Fatalf("vectors %d and %d: off by %v, bound %v", i, slot, off, v.bound(slot, query))
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
	if got, want := hex.EncodeToString(sum.Sum(nil)[:8]), "aec3c6ee19782e51"; got != want {
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
		b.Run(fmt.Sprint("codes/", length), func(b *testing.B) {
			x, y := newTarget(x), newTarget(y)
			for b.Loop() {
				dotCodes(x.codes, y.codes)
			}
		})
	}
}
