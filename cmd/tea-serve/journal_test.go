package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// journalEntry parses a datagram of systemd's native protocol.
func journalEntry(t *testing.T, text []byte) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for len(text) > 0 {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			t.Fatalf("the entry ends within a line: %q", text)
		}
		name, value, ok := bytes.Cut(line, []byte("="))
		if !ok { // the name, the size of the value, the value
			size := binary.LittleEndian.Uint64(rest)
			value, rest = rest[8:8+size], rest[8+size+1:]
		}
		fields[string(name)], text = string(value), rest
	}
	return fields
}

// Under systemd, the log goes to the journal, with fields.
func TestLogInTheJournal(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tea") //nolint:usetesting // t.TempDir is too deep for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	journal, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unixgram"})
	if err != nil {
		t.Skip(err)
	}
	defer journal.Close()
	if err := journal.SetReadBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "tea-serve")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X github.com/coreos/go-systemd/v22/journal.journalSocket="+journal.LocalAddr().String(), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	info, err := stderr.Stat()
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	p := newProject(t, map[string]string{
		"bad.yaml":   "name: bad\nnodes: [{name: n, uses: file.read, with: {path: \"{{ secrets.KEY }}\\nsecond line\"}}]\nserve: {triggers: [{at_start: true}]}\n",
		"broken.yml": "",
	})
	p.program = program
	cmd := p.command(nil, "serve", p.dir, "--listen", "127.0.0.1:0", "--secrets", `{"KEY": "very-secret-key"}`)
	cmd.Stderr = stderr
	cmd.Env = append(cmd.Env, fmt.Sprintf("JOURNAL_STREAM=%d:%d", stat.Dev, stat.Ino))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	buffer := make([]byte, 1<<16)
	for {
		n, err := journal.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(buffer[:n], []byte("very-secret-key")) {
			t.Errorf("the journal has a secret: %s", buffer[:n])
		}
		entry := journalEntry(t, buffer[:n])
		if entry["TEA_WORKFLOW"] == "" {
			continue
		}
		if entry["PRIORITY"] != "3" || entry["SYSLOG_IDENTIFIER"] != "tea" || entry["TEA_WORKFLOW"] != "bad" || entry["TEA_RUN"] == "" || !strings.Contains(entry["TEA_ERROR"], "***") ||
			!strings.HasPrefix(entry["MESSAGE"], "run "+entry["TEA_RUN"]+" of bad failed (") {
			t.Errorf("entry: %q", entry)
		}
		break
	}
	if text, err := os.ReadFile(stderr.Name()); err != nil || strings.Contains(string(text), "failed") {
		t.Errorf("stderr: %v\n%s", err, text)
	}
}
