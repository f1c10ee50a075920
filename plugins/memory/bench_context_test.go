package memory_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// BenchmarkAssemble is context.assemble of 8,000 tokens over 100 to 10,000
// files of 2 KB, by the words of a question: over the same files as before, and
// over files of which one has changed since the question before.
func BenchmarkAssemble(b *testing.B) {
	for _, engine := range benchEngines() {
		s := openOn(b, teatest.Linked(memory.Bundle()), engine)
		have := 0
		for _, n := range []int{100, 1000, 10_000} {
			ready := func(b *testing.B) {
				b.Helper()
				storeFiles(b, s, have, n)
				have = n
				assembleOnce(b, s, 0) // brings the index up to date
				b.ResetTimer()
			}
			b.Run(fmt.Sprintf("%s/files=%d/same", engine, n), func(b *testing.B) {
				ready(b)
				i := 0
				medians(b, func() { i++; assembleOnce(b, s, i) })
			})
			b.Run(fmt.Sprintf("%s/files=%d/one-changed", engine, n), func(b *testing.B) {
				ready(b)
				random := rand.New(rand.NewPCG(9, 10))
				i := 0
				for b.Loop() {
					i++
					b.StopTimer()
					storeFile(b, s, i%n, random)
					b.StartTimer()
					assembleOnce(b, s, i)
				}
			})
		}
	}
}

func assembleOnce(b *testing.B, s subject, i int) {
	b.Helper()
	random := rand.New(rand.NewPCG(11, uint64(i)))
	query := fmt.Sprintf("w%d w%d w%d w%d", random.IntN(50), random.IntN(200), random.IntN(1000), random.IntN(2000))
	s.call(b, "context.assemble", map[string]any{"query": query, "config": map[string]any{
		"layers": []any{map[string]any{"scope": "directory", "directory": "docs"}, map[string]any{"scope": "user", "entity_id": "7"}}, "threshold": 0.5,
	}})
}

// storeFiles stores files from several callers, whose commits are grouped.
func storeFiles(b *testing.B, s subject, from, to int) {
	b.Helper()
	var next atomic.Int64
	next.Store(int64(from))
	var group sync.WaitGroup
	for worker := range 32 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), uint64(from)))
			for i := next.Add(1) - 1; i < int64(to); i = next.Add(1) - 1 {
				storeFile(b, s, int(i), random)
			}
		})
	}
	group.Wait()
}

func storeFile(b *testing.B, s subject, i int, random *rand.Rand) {
	b.Helper()
	s.call(b, "memory.file_store", map[string]any{"path": fmt.Sprintf("docs/%d/file-%d.md", i%10, i), "content": prose(random)})
}

// prose is about 2 KB of words, few of them often.
func prose(random *rand.Rand) string {
	words := rand.NewZipf(random, 1.1, 4, 50_000)
	var b strings.Builder
	for i := 1; b.Len() < 2000; i++ {
		fmt.Fprintf(&b, "w%d ", words.Uint64())
		if i%12 == 0 {
			b.WriteString("ends here.\n")
		}
	}
	return b.String()
}
