package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// memory returns a field of the process's status in kB.
func (s *service) memory(field string) int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0 // no /proc
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// BenchmarkRuns starts runs of a workflow with one Lua node over HTTP, by eight
// clients that wait for their ends.
func BenchmarkRuns(b *testing.B) {
	for _, durability := range []string{"exit", "async", "sync"} {
		b.Run(durability, func(b *testing.B) {
			p := newProject(b, map[string]string{"greet.yaml": greet})
			s := p.serve("--durability", durability)
			b.ResetTimer()
			s.many(b.N)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
			b.ReportMetric(float64(s.memory("VmRSS"))/1024, "MB")
		})
	}
}

// many starts so many runs of the workflow greet, by eight clients that wait for
// their ends.
func (s *service) many(n int) {
	const clients = 8
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = clients
	var wg sync.WaitGroup
	work := make(chan struct{})
	for range clients {
		wg.Go(func() {
			for range work {
				if r := s.request("POST", "/v1/workflows/greet/runs?wait=60", `{"input": {"name": "Ada"}}`); r.body["status"] != "done" {
					s.t.Errorf("run: %s", r)
				}
			}
		})
	}
	for range n {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
}

// BenchmarkStart starts 100 runs a second, whether the server keeps up or not, and
// measures the time from when a request is due to its answer. To compare, it writes a
// record to a file and syncs it at the same times.
func BenchmarkStart(b *testing.B) {
	disk, err := os.Create(filepath.Join(b.TempDir(), "disk"))
	if err != nil {
		b.Fatal(err)
	}
	defer disk.Close()
	s := newProject(b, map[string]string{"greet.yaml": greet}).serve()
	s.many(100)
	const rate, requests = 100, 1000
	for b.Loop() {
		times, writes := make([]time.Duration, requests), make([]time.Duration, requests)
		var wg sync.WaitGroup
		begun := time.Now()
		for i := range times {
			due := begun.Add(time.Duration(i) * time.Second / rate)
			<-time.After(time.Until(due))
			wg.Go(func() {
				if r := s.request("POST", "/v1/workflows/greet/runs", `{"input": {"name": "Ada"}}`); r.status != http.StatusAccepted {
					b.Errorf("run: %s", r)
				}
				times[i] = time.Since(due)
			})
			wg.Go(func() {
				_, err := disk.WriteAt(make([]byte, 512), int64(i)*512)
				if err = errors.Join(err, disk.Sync()); err != nil {
					b.Error(err)
				}
				writes[i] = time.Since(due)
			})
		}
		wg.Wait()
		slices.Sort(times)
		slices.Sort(writes)
		b.ReportMetric(writes[requests*99/100].Seconds()*1000, "ms-disk-p99")
		b.ReportMetric(times[requests/2].Seconds()*1000, "ms-median")
		b.ReportMetric(times[requests*99/100].Seconds()*1000, "ms-p99")
	}
}

// BenchmarkIdle measures a server without work: its memory, the part of a processor
// that it uses, and what it writes.
func BenchmarkIdle(b *testing.B) {
	p := newProject(b, map[string]string{"greet.yaml": greet, "tick.yaml": "nodes: [{name: n}]\nserve: {triggers: [{cron: \"0 6 * * *\"}, {watch: .}]}\n"})
	p.program = filepath.Join(b.TempDir(), "tea-serve")                                                                                    // the program without the tests
	build := exec.CommandContext(b.Context(), "go", "build", "-tags=grpcnotrace,nethttpomithttp2", "-ldflags=-s -w", "-o", p.program, ".") // as scripts/build
	noinline, err := os.ReadFile("../internal/agentbuild/noinline.txt")
	if err != nil {
		b.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(noinline)) {
		build.Args = slices.Insert(build.Args, 2, "-gcflags="+pkg+"=-l")
	}
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	s := p.serve()
	s.run("greet", `{"name": "Ada"}`)
	<-time.After(5 * time.Second) // until lazy writes are done
	const span = 10 * time.Second
	for b.Loop() {
		cpu, written := s.processor(), s.written()
		<-time.After(span)
		b.ReportMetric(float64(s.memory("VmRSS"))/1024, "MB-resident")
		b.ReportMetric(100*(s.processor()-cpu).Seconds()/span.Seconds(), "%-cpu")
		b.ReportMetric(float64(s.written()-written), "B-written")
	}
}

// processor returns the time that the server has used a processor.
func (s *service) processor() time.Duration {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0 // no /proc
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(field)
		if err != nil {
			s.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// written returns how many bytes the server has written to files and sockets.
func (s *service) written() (n int) {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.cmd.Process.Pid))
	if err != nil {
		return 0 // no /proc
	}
	_, rest, _ := strings.Cut(string(text), "write_bytes: ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// BenchmarkReady starts a server with 1,000 runs that wait for an answer.
func BenchmarkReady(b *testing.B) {
	p := newProject(b, map[string]string{"ask.yaml": `nodes: [{name: q, uses: human.ask, with: {question: "Go on?", timeout_seconds: 1000000, on_timeout: fail}}]`})
	s := p.serve("--durability", "exit")
	for range 1000 {
		s.run("ask", "{}")
	}
	s.interrupt()
	for b.Loop() {
		s = p.serve()
		if r := s.request("GET", "/readyz", ""); r.status != http.StatusOK {
			b.Errorf("ready: %s", r)
		}
		b.StopTimer()
		s.interrupt()
		b.StartTimer()
	}
}

// BenchmarkSoak compares the memory after 10,000 runs, or as many as TEA_SOAK_RUNS, with
// that after a fifth of them, while 1,000 clients follow the events of a run.
func BenchmarkSoak(b *testing.B) {
	long := `nodes: [{name: long, uses: time.sleep, with: {seconds: 1000000}}]`
	p := newProject(b, map[string]string{"greet.yaml": greet, "long.yaml": long})
	s := p.serve("--durability", "exit")
	runs := 10_000
	if text := os.Getenv("TEA_SOAK_RUNS"); text != "" {
		var err error
		if runs, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	const clients = 1000
	id := s.request("POST", "/v1/workflows/long/runs", "{}").body["id"].(string)
	var connected, followed sync.WaitGroup
	connected.Add(clients)
	for range clients {
		followed.Go(func() {
			first := true
			s.events(id, "", func(event) bool {
				if first {
					connected.Done()
					first = false
				}
				return true
			})
		})
	}
	connected.Wait()
	defer followed.Wait()
	defer s.kill()
	for b.Loop() {
		s.many(runs / 5)
		before := s.memory("VmRSS")
		s.many(runs - runs/5)
		b.ReportMetric(float64(s.memory("VmRSS"))/1024, "MB-resident")
		b.ReportMetric(float64(s.memory("VmRSS"))/float64(max(before, 1)), "x-before")
	}
}

// BenchmarkList reads the first page of a directory with 100,000 runs, each time after
// another run.
func BenchmarkList(b *testing.B) {
	p := newProject(b, map[string]string{"greet.yaml": greet + "serve: {keep_runs: 1000000, keep_seconds: 1000000000}\n"})
	s := p.serve()
	runs := filepath.Join(p.home, "tea", "runs")
	text, err := os.ReadFile(filepath.Join(runs, s.run("greet", `{"name": "Ada"}`)["id"].(string)+".tea"))
	if err != nil {
		b.Fatal(err)
	}
	s.interrupt()
	for i := range 100_000 {
		if err := os.WriteFile(filepath.Join(runs, fmt.Sprintf("20250101-000000-%06d.tea", i)), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	s = p.serve()
	s.page("")
	var times []time.Duration
	for b.Loop() {
		id := s.run("greet", `{"name": "Eve"}`)["id"].(string)
		begun := time.Now()
		_, ids, _ := s.page("?limit=100")
		times = append(times, time.Since(begun))
		if len(ids) != 100 || !slices.Contains(ids, id) {
			b.Errorf("the first page has %d runs without %s", len(ids), id)
		}
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "ms-median")
	cpu := s.processor()
	for range 10 {
		if _, ids, _ := s.page("?q=nowhere"); len(ids) > 0 {
			b.Errorf("found %d runs", len(ids))
		}
	}
	b.ReportMetric((s.processor()-cpu).Seconds()*100, "ms-cpu-search")
	cpu = s.processor()
	for range 10 {
		s.page("?limit=100")
	}
	b.ReportMetric((s.processor()-cpu).Seconds()*100, "ms-cpu-page")
	b.ReportMetric(float64(s.memory("VmRSS"))/1024, "MB")
}
