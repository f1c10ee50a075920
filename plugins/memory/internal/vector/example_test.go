package vector_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
)

func Example() {
	dir, err := os.MkdirTemp("", "vectors")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ix, err := vector.Open(filepath.Join(dir, "notes.vec"), vector.Options{
		Dimension: 3,
		Owner:     "notes, embedded by model-a",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ix.Close()

	// The changes that the rows know and the file does not.
	fmt.Println("repeat the changes after", ix.Watermark())
	for _, row := range []struct {
		id, seq int64
		vec     []float32
	}{
		{id: 10, seq: 1, vec: []float32{1, 0, 0}},
		{id: 11, seq: 2, vec: []float32{0.8, 0.6, 0}},
		{id: 12, seq: 3, vec: []float32{0, 0, 1}},
	} {
		if err := ix.Put(row.id, row.seq, row.vec); err != nil {
			fmt.Println(err)
			return
		}
	}
	hits, err := ix.Search(context.Background(), []float32{2, 0, 0}, 2, vector.SearchOptions{
		Among: []int64{10, 11},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hit := range hits {
		fmt.Printf("%d %.2f\n", hit.ID, hit.Similarity)
	}
	if err := ix.Flush(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// repeat the changes after 0
	// 10 1.00
	// 11 0.80
}
