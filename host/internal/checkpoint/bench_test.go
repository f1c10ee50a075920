package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// stepRecord is what a step with an update of about 1 KB appends.
func stepRecord() Record {
	return Record{Kind: "finish", Path: "each[3]/fetch", Body: []byte(`{"update":{"text":"` + strings.Repeat("x", 1000) + `"}}`)}
}

func benchJournal(b *testing.B, d flow.Durability) *Journal {
	b.Helper()
	j, err := testStore(b).Create(testHeader(), d)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { j.Close() })
	return j
}

func BenchmarkAppendSync1KB(b *testing.B) {
	j := benchJournal(b, flow.DurabilitySync)
	r := stepRecord()
	b.ReportAllocs()
	reportMedian(b, func() error { return j.Append(r) })
}

// BenchmarkBareAppend1KB is what the disk takes for the same bytes.
func BenchmarkBareAppend1KB(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	frame := make([]byte, 1078)
	reportMedian(b, func() error {
		if _, err := f.Write(frame); err != nil {
			return err
		}
		return atomicfile.SyncData(f)
	})
}

func reportMedian(b *testing.B, step func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := step(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "median-ns/op")
}

func BenchmarkAppendSync1KBParallel(b *testing.B) {
	j := benchJournal(b, flow.DurabilitySync)
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		r := stepRecord()
		for pb.Next() {
			if err := j.Append(r); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkAppendExit1KB(b *testing.B) {
	j := benchJournal(b, flow.DurabilityExit)
	r := stepRecord()
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	s := testStore(b)
	for i := 0; b.Loop(); i++ {
		h := testHeader()
		h.RunID = fmt.Sprintf("run%d", i)
		j, err := s.Create(h, flow.DurabilitySync)
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(j.Append(testRecords()[0]), j.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			path := createRun(b, testStore(b), testHeader(), steps(n)...)
			b.ReportAllocs()
			for b.Loop() {
				c, err := Read(path)
				if err != nil || len(c.Records) != n {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSize reports how large a journal is after so many steps.
func BenchmarkSize(b *testing.B) {
	for _, n := range []int{10, 100, 1_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var size int64
			for b.Loop() {
				j := benchJournal(b, flow.DurabilityExit)
				if err := j.Append(steps(n)...); err != nil {
					b.Fatal(err)
				}
				if err := j.Sync(); err != nil {
					b.Fatal(err)
				}
				size = j.Size()
			}
			b.ReportMetric(float64(size), "file-bytes")
			b.ReportMetric(float64(size)/float64(n), "file-bytes/step")
		})
	}
}

func steps(n int) []Record {
	records := make([]Record, n)
	for i := range records {
		records[i] = stepRecord()
	}
	return records
}

func BenchmarkList1000(b *testing.B) {
	s := testStore(b)
	makeRuns(b, s, 1000, 50_000)
	b.ReportAllocs()
	for b.Loop() {
		if infos, err := s.List(); err != nil || len(infos) != 1000 {
			b.Fatalf("%d runs, %v", len(infos), err)
		}
	}
}

// BenchmarkGC looks for runs to remove where there are none, as each new run does.
func BenchmarkGC(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := testStore(b)
			makeRuns(b, s, n, 1_000)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.GC(Policy{MaxCount: 10 * n}, testTime); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
