package bucket

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// The segments that plan chooses have the latest content of each page, and both
// their number and what is uploaded stay small.
func TestSegmentsHaveAllPages(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test's choices
	var segments []segment
	indexes := map[string]index{}
	contents := map[string]map[uint32]int{}
	pages := map[uint32]int{} // the version of each page
	count := uint32(4000)
	var changes, uploaded int
	for version := range 800 {
		var changed []uint32
		n := 3
		if r.IntN(100) == 0 {
			n = 300
		}
		if r.IntN(200) == 0 {
			count = uint32(int(count) - 50 + r.IntN(100)) //nolint:gosec // it stays positive
			for number := range pages {
				if number > count {
					delete(pages, number)
				}
			}
		}
		for number := uint32(1); number <= count; number++ {
			if _, ok := pages[number]; !ok {
				changed = append(changed, number)
			}
		}
		for range n {
			changed = append(changed, 1+uint32(r.IntN(int(count)))) //nolint:gosec // as above
		}
		slices.Sort(changed)
		changed = slices.Compact(changed)
		for _, number := range changed {
			pages[number] = version
		}
		if version > 0 {
			changes += len(changed)
		}
		chosen, keep := plan(segments, func(s segment) index { return indexes[s.Name] }, slices.Clone(changed), count)
		name := fmt.Sprint(version)
		if version > 0 {
			uploaded += len(chosen)
		}
		contents[name], indexes[name] = map[uint32]int{}, index{numbers: chosen}
		for _, number := range chosen {
			contents[name][number] = pages[number]
		}
		segments = append(slices.Clone(segments[:keep]), segment{Name: name, Count: len(chosen)})
		if len(segments) > 40 {
			t.Fatalf("%d segments", len(segments))
		}
		got := map[uint32]int{}
		for _, s := range segments {
			for number, v := range contents[s.Name] {
				if number <= count {
					got[number] = v
				}
			}
		}
		for number := uint32(1); number <= count; number++ {
			if got[number] != pages[number] {
				t.Fatalf("version %d: page %d has version %d, want %d", version, number, got[number], pages[number])
			}
		}
	}
	if uploaded > 6*changes {
		t.Errorf("%d pages were changed and %d uploaded", changes, uploaded)
	}
}

func TestDamagedSegments(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	page := func(n uint32) ([]byte, error) { return bytes.Repeat([]byte{byte(n)}, 512), nil }
	numbers := []uint32{1, 2, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 300}
	_, s, err := encode(&data, numbers, page)
	if err != nil {
		t.Fatal(err)
	}
	x, err := decodeIndex(data.Bytes()[s.Index:], s)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint32
	check := func(n uint32, page []byte) error {
		if got = append(got, n); page[0] != byte(n) {
			t.Errorf("page %d has the content of %d", n, page[0])
		}
		return nil
	}
	at := []int{0, 3, 17}
	if err := decodePages(data.Bytes()[:s.Index], 0, x, at, 512, check); err != nil || !slices.Equal(got, []uint32{1, 9, 300}) {
		t.Errorf("pages %v, %v", got, err)
	}
	for i := range data.Len() {
		broken := bytes.Clone(data.Bytes())
		broken[i] ^= 0x40
		x, err := decodeIndex(broken[s.Index:], s)
		if i >= int(s.Index) {
			if err == nil {
				t.Errorf("byte %d of the index can be changed", i)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		err = decodePages(broken[:s.Index], 0, x, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, 512, func(n uint32, got []byte) error {
			if want, _ := page(n); !bytes.Equal(got, want) {
				t.Errorf("byte %d can be changed", i)
			}
			return nil
		})
		_ = err // a changed bit can be one without a meaning
	}
}
