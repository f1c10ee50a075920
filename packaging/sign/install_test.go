package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// system is a home directory, and a PATH with the few programs that install.sh needs.
type system struct {
	t           *testing.T
	home, path  string
	public      minisign.PublicKey
	private     minisign.PrivateKey
	script, key string
}

func newSystem(t *testing.T, programs ...string) *system {
	t.Helper()
	peertest.Long(t, "runs install.sh many times")
	if runtime.GOOS != "linux" {
		t.Skip("the list of programs is for Linux")
	}
	s := &system{t: t, home: t.TempDir(), path: t.TempDir()}
	var err error
	if s.script, err = filepath.Abs("../../install.sh"); err != nil {
		t.Fatal(err)
	}
	if s.public, s.private, err = minisign.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	s.key = s.public.String()
	programs = append(programs, strings.Fields("sh uname getconf tr curl cp head tail sed grep cat tar gzip mktemp mkdir mv ln rm rmdir readlink sha256sum sort id")...)
	for _, name := range programs {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		if err := os.Symlink(program, filepath.Join(s.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// release returns a directory with the files of a release whose program prints its version.
func (s *system) release(version string) string {
	s.t.Helper()
	arch := runtime.GOARCH
	if arch == "arm" {
		arch = "armv7"
	}
	dir, name := s.t.TempDir(), fmt.Sprintf("tea_%s_linux_%s", version, arch)
	var file bytes.Buffer
	zipped := gzip.NewWriter(&file)
	archive := tar.NewWriter(zipped)
	for path, text := range map[string]string{
		"bin/tea": "#!/bin/sh\n[ \"$1\" != run ] || echo Hello\necho tea " + version + "\n", "share/man1/tea.1.gz": "manual", "share/man1/tea-only-" + version + ".1.gz": "page", "share/completions/tea.bash": "bash",
		"share/completions/tea.zsh": "zsh", "share/completions/tea.fish": "fish",
	} {
		if err := archive.WriteHeader(&tar.Header{Name: name + "/" + path, Mode: 0o755, Size: int64(len(text))}); err != nil {
			s.t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		s.t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.write(filepath.Join(dir, name+".tar.gz"), file.Bytes())
	s.write(filepath.Join(dir, "checksums.txt"), fmt.Appendf(nil, "%x  %s.tar.gz\n%x  other\n", sha256.Sum256(file.Bytes()), name, sha256.Sum256(nil)))
	secret, err := s.private.MarshalText()
	if err != nil {
		s.t.Fatal(err)
	}
	key := filepath.Join(s.t.TempDir(), "key")
	s.write(key, secret)
	if err := sign(key, filepath.Join(dir, "checksums.txt"), "tea "+version); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

func (s *system) write(file string, data []byte) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(s.path, "sh"), append([]string{s.script, "--user"}, args...)...)
	cmd.Dir, cmd.Env = s.home, []string{"HOME=" + s.home, "PATH=" + s.path}
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// install installs the release from a directory or a URL.
func (s *system) install(from string, args ...string) (string, error) {
	out, err := s.command(append([]string{"--from", from, "--key", s.key}, args...)...).CombinedOutput()
	return string(out), err
}

func (s *system) installed() string {
	out, err := exec.CommandContext(s.t.Context(), filepath.Join(s.home, ".local/bin/tea"), "version").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

// files lists the files and links below the home directory.
func (s *system) files() (files []string) {
	s.t.Helper()
	err := filepath.WalkDir(s.home, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, strings.TrimPrefix(path, s.home+"/"))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

func TestInstall(t *testing.T) {
	t.Parallel()
	for _, verifier := range []string{"openssl", "minisign"} {
		t.Run(verifier, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, verifier)
			first, second, third := s.release("0.1.0"), s.release("0.2.0"), s.release("0.10.0")
			out, err := s.install(first)
			if err != nil || s.installed() != "tea 0.1.0" || !strings.Contains(out, "is not in PATH; add it with") {
				t.Fatalf("%v, %s\n%s", err, s.installed(), out)
			}
			for _, link := range []string{"man/man1/tea.1.gz", "bash-completion/completions/tea", "zsh/site-functions/_tea", "fish/vendor_completions.d/tea.fish"} {
				if _, err := os.Stat(filepath.Join(s.home, ".local/share", link)); err != nil {
					t.Error(err)
				}
			}
			server := httptest.NewServer(http.FileServer(http.Dir(second)))
			defer server.Close()
			if out, err := s.install(server.URL); err != nil || s.installed() != "tea 0.2.0" {
				t.Fatalf("%v, %s\n%s", err, s.installed(), out)
			}
			for _, dir := range []string{third, third, third} { // again: repairs it
				if out, err := s.install(dir, "--version", "v0.10.0"); err != nil || s.installed() != "tea 0.10.0" {
					t.Fatalf("%v, %s\n%s", err, s.installed(), out)
				}
			}
			if kept, err := os.ReadDir(filepath.Join(s.home, ".local/lib/tea")); err != nil || len(kept) != 2 {
				t.Errorf("%d versions are kept, want this one and the one before; %v", len(kept), err)
			}
			if pages, err := os.ReadDir(filepath.Join(s.home, ".local/share/man/man1")); err != nil || len(pages) != 2 || pages[0].Name() != "tea-only-0.10.0.1.gz" {
				t.Errorf("pages %v, want those of this version; %v", pages, err)
			}
			s.write(filepath.Join(s.home, ".local/share/tea/plugins/mine"), nil)
			if out, err := s.command("--uninstall").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if files := s.files(); len(files) != 1 {
				t.Errorf("left after --uninstall: %q", files)
			}
			if out, err := s.command("--uninstall").CombinedOutput(); err == nil || !strings.Contains(string(out), "was not installed by this script") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	for _, verifier := range []string{"openssl", "minisign"} {
		t.Run(verifier, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, verifier)
			if out, err := s.install(s.release("0.1.0")); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			before := s.files()
			tests := map[string]struct {
				change func(dir string)
				args   []string
				want   string
			}{
				"archive":   {func(dir string) { s.change(dir, "tea_*.gz", func(b []byte) []byte { return append(b, 0) }) }, nil, "is wrong: the file is damaged"},
				"torn":      {func(dir string) { s.change(dir, "tea_*.gz", func(b []byte) []byte { return b[:len(b)/2] }) }, nil, "is wrong: the file is damaged"},
				"checksums": {func(dir string) { s.change(dir, "checksums.txt", func(b []byte) []byte { return append(b, '\n') }) }, nil, "is not valid: the files are not signed with the key " + s.key},
				"missing":   {func(dir string) { s.change(dir, "*.minisig", nil) }, nil, "has no checksums.txt.minisig"},
				"empty":     {func(dir string) { s.change(dir, "*.minisig", func([]byte) []byte { return nil }) }, nil, "is not valid"},
				"unhashed": {func(dir string) {
					s.change(dir, "*.minisig", func([]byte) []byte { return minisign.Sign(s.private, []byte("1 other\n")) })
				}, nil, "is not valid"},
				"special": {func(dir string) {
					s.change(dir, "*.minisig", nil)
					if err := syscall.Mkfifo(filepath.Join(dir, "checksums.txt.minisig"), 0o600); err != nil {
						t.Fatal(err)
					}
				}, nil, "has no checksums.txt.minisig"},
				"gone":     {func(dir string) { s.change(dir, "tea_*.gz", nil) }, nil, "has no tea_0.2.0_"},
				"version":  {nil, []string{"--version", "0.3.0"}, "has version 0.2.0, not 0.3.0"},
				"key":      {nil, []string{"--key", "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"}, "is not valid"},
				"no key":   {nil, []string{"--key", ""}, "this file has no public key"},
				"platform": {func(dir string) { s.resign(dir) }, nil, "the release has no archive for linux_"},
				"option":   {nil, []string{"--prefix", "/"}, "unknown option --prefix"},
			}
			for name, test := range tests {
				dir := s.release("0.2.0")
				if test.change != nil {
					test.change(dir)
				}
				out, err := s.install(dir, test.args...)
				if err == nil || !strings.Contains(out, test.want) {
					t.Errorf("%s: %v, want %q in\n%s", name, err, test.want, out)
				}
				if after := s.files(); strings.Join(after, "\n") != strings.Join(before, "\n") || s.installed() != "tea 0.1.0" {
					t.Errorf("%s: %s; the files were %q and are %q", name, s.installed(), before, after)
				}
			}
		})
	}
}

// change rewrites a file of a release, or removes it if by is nil.
func (s *system) change(dir, pattern string, by func([]byte) []byte) {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		s.t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	if by == nil {
		if err := os.Remove(found[0]); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(found[0], by(data))
}

// resign replaces the checksums by signed ones that list no archive.
func (s *system) resign(dir string) {
	sums := []byte("\n")
	s.change(dir, "checksums.txt", func([]byte) []byte { return sums })
	signed := minisign.NewReader(bytes.NewReader(sums))
	if _, err := signed.Read(make([]byte, 1)); err != nil {
		s.t.Fatal(err)
	}
	s.change(dir, "*.minisig", func([]byte) []byte { return signed.Sign(s.private) })
}

func TestInstallKeepsProgramsOfOthers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "openssl")
	mine := filepath.Join(s.home, ".local/bin/tea")
	s.write(mine, []byte("mine"))
	for _, args := range [][]string{nil, {"--uninstall"}} {
		if out, err := s.install(s.release("0.1.0"), args...); err == nil || !strings.Contains(out, mine) {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if data, err := os.ReadFile(mine); err != nil || string(data) != "mine" || len(s.files()) != 1 {
		t.Errorf("%q, %v; %q", data, err, s.files())
	}
}

func TestInstallIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, "openssl")
			if out, err := s.install(s.release("0.1.0")); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			dir, asked := s.release("0.2.0"), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, ".gz") {
					http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Length", "1000")
				_, _ = w.Write([]byte("half"))
				_ = http.NewResponseController(w).Flush()
				close(asked)
				<-r.Context().Done()
			}))
			defer server.Close()
			cmd := s.command("--from", server.URL, "--key", s.key)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-asked:
			case <-time.After(30 * time.Second):
				t.Error("the script does not download the archive")
			}
			if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || s.installed() != "tea 0.1.0" {
				t.Errorf("%v, %s", err, s.installed())
			}
			if out, err := s.install(dir); err != nil || s.installed() != "tea 0.2.0" {
				t.Errorf("%v, %s\n%s", err, s.installed(), out)
			}
			if left, err := filepath.Glob(filepath.Join(s.home, ".local/lib/tea/.new*")); err != nil || left != nil {
				t.Errorf("left: %q, %v", left, err)
			}
		})
	}
}

func TestInstallIntoALinkedDirectory(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "openssl")
	link := filepath.Join(s.home, ".local/bin")
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Mkdir(filepath.Join(s.home, "bin"), 0o755), os.Symlink(filepath.Join(s.home, "bin"), link)); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"0.1.0", "0.2.0", "0.3.0"} {
		if out, err := s.install(s.release(version)); err != nil || s.installed() != "tea "+version {
			t.Fatalf("%v, %s\n%s", err, s.installed(), out)
		}
	}
	if out, err := s.command("--uninstall").CombinedOutput(); err != nil || len(s.files()) != 1 { // the link of the directory
		t.Errorf("%v, %q\n%s", err, s.files(), out)
	}
}

// TestInstallReplacesARelativeLink upgrades an installation whose link is relative, as
// earlier scripts made it.
func TestInstallReplacesARelativeLink(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "openssl")
	old, link := filepath.Join(s.home, ".local/lib/tea/0.1.0-AbCdEf/bin/tea"), filepath.Join(s.home, ".local/bin/tea")
	s.write(old, []byte("old"))
	if err := errors.Join(os.Mkdir(filepath.Dir(link), 0o755), os.Symlink("../lib/tea/0.1.0-AbCdEf/bin/tea", link)); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"0.2.0", "0.3.0"} {
		out, err := s.install(s.release(version))
		if _, gone := os.Stat(old); err != nil || s.installed() != "tea "+version || (gone == nil) != (version == "0.2.0") {
			t.Fatalf("%v, %s, %v\n%s", err, s.installed(), gone, out)
		}
	}
}

func TestInstallNotesWhatItCannotWrite(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "openssl")
	share := filepath.Join(s.home, ".local/share")
	s.write(filepath.Join(share, "man"), nil) // files instead of directories
	s.write(filepath.Join(share, "fish"), nil)
	for _, version := range []string{"0.1.0", "0.2.0", "0.3.0"} {
		out, err := s.install(s.release(version))
		if err != nil || s.installed() != "tea "+version || !strings.Contains(out, share+"/man/man1/tea.1.gz cannot be written") || !strings.Contains(out, "tea.fish cannot be written") {
			t.Fatalf("%v, %s\n%s", err, s.installed(), out)
		}
		if _, err := os.Stat(filepath.Join(share, "zsh/site-functions/_tea")); err != nil {
			t.Error(err)
		}
	}
	if kept, err := os.ReadDir(filepath.Join(s.home, ".local/lib/tea")); err != nil || len(kept) != 2 {
		t.Errorf("%d versions are kept, want 2; %v", len(kept), err)
	}
}

func TestInstallBesideAnother(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "openssl")
	dir, asked, proceed := s.release("0.1.0"), make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".gz") {
			close(asked)
			<-proceed
		}
		http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
	}))
	defer server.Close()
	var out bytes.Buffer
	slow := s.command("--from", server.URL, "--key", s.key)
	slow.Stdout, slow.Stderr = &out, &out
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(30 * time.Second):
		t.Error("the script does not download the archive")
	}
	lib := filepath.Join(s.home, ".local/lib/tea")
	unlinked, killed := fmt.Sprintf("%s/0.3.0-%d-AbCdEf", lib, os.Getpid()), filepath.Join(lib, "0.3.0-999999999-AbCdEf")
	s.write(filepath.Join(unlinked, "bin/tea"), nil)
	s.write(filepath.Join(killed, "bin/tea"), nil)
	if out, err := s.install(s.release("0.2.0")); err != nil || s.installed() != "tea 0.2.0" {
		t.Errorf("%v, %s\n%s", err, s.installed(), out)
	}
	close(proceed)
	if err := slow.Wait(); err != nil || s.installed() != "tea 0.1.0" {
		t.Errorf("%v, %s\n%s", err, s.installed(), out.String())
	}
	if _, err := os.Stat(unlinked); err != nil {
		t.Errorf("a version of an installation that is running was removed: %v", err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("a version of an installation that was killed remains")
	}
}

func TestInstallReportsFailedDownloads(t *testing.T) {
	t.Parallel()
	for program, message := range map[string]string{"curl": "curl: (", "wget": "ERROR 403"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, "openssl", "wget")
			if program == "wget" {
				if err := os.Remove(filepath.Join(s.path, "curl")); err != nil {
					t.Fatal(err)
				}
			}
			mux := http.NewServeMux()
			mux.HandleFunc("/closed/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
			mux.Handle("/release/", http.StripPrefix("/release", http.FileServer(http.Dir(s.release("0.1.0")))))
			server := httptest.NewServer(mux)
			defer server.Close()
			out, err := s.install(server.URL)
			if err == nil || !strings.Contains(out, server.URL+" has no checksums.txt") {
				t.Errorf("a missing file: %v\n%s", err, out)
			}
			out, err = s.install(server.URL + "/closed")
			if err == nil || strings.Contains(out, "has no") || !strings.Contains(out, "/closed/checksums.txt cannot be downloaded") || !strings.Contains(out, message) {
				t.Errorf("a refused request: %v\n%s", err, out)
			}
			if out, err := s.install(server.URL + "/release"); err != nil || s.installed() != "tea 0.1.0" {
				t.Errorf("%v, %s\n%s", err, s.installed(), out)
			}
		})
	}
}

func TestInstallPrintsHelpFromAPipe(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	script, err := os.Open(s.script)
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.path, "sh"), "-s", "--", "--help")
	cmd.Env, cmd.Stdin = []string{"HOME=" + s.home, "PATH=" + s.path}, script
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--uninstall  remove the programs") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInstallFromHalfADownload runs truncated scripts, as `curl | sh` does when the
// connection breaks.
func TestInstallFromHalfADownload(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "openssl")
	script, err := os.ReadFile(s.script)
	if err != nil {
		t.Fatal(err)
	}
	dir := s.release("0.1.0")
	run := func(script []byte) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(s.path, "sh"), "-s", "--", "--from", dir, "--key", s.key, "--user")
		cmd.Env, cmd.Stdin = []string{"HOME=" + s.home, "PATH=" + s.path}, bytes.NewReader(script)
		_ = cmd.Run()
	}
	for n := 0; n < bytes.LastIndex(script, []byte("main")); n += 101 {
		run(script[:n])
		if files := s.files(); files != nil {
			t.Fatalf("%d bytes of the script have written %q", n, files)
		}
	}
	run(script)
	if s.installed() != "tea 0.1.0" {
		t.Error(s.installed())
	}
}
