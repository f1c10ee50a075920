package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runFormula installs a release with the Homebrew formula in Ruby, as on a platform such as
// "macos arm". It returns the prefix, and the address and checksum of the download.
func runFormula(t *testing.T, formula, platform, release string) (prefix, download string) {
	t.Helper()
	prefix = t.TempDir()
	system, processor, _ := strings.Cut(platform, " ")
	out, err := exec.CommandContext(t.Context(), "ruby", "testdata/homebrew.rb", formula, system, processor, prefix, release).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", platform, err, out)
	}
	return prefix, string(out)
}

// contents returns the files below a directory, by their path.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFormulaInstallsWhatTheScriptInstalls(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ruby"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("ruby is not installed; run `scripts/packaging install`")
		}
		t.Skip("ruby is not installed; `scripts/packaging install` installs it")
	}
	s := newSystem(t, "openssl")
	release := s.release("0.1.0")
	if out, err := s.install(release); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	archives, err := filepath.Glob(filepath.Join(release, "tea_*.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	data, err := os.ReadFile(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	platforms := map[string]string{"macos arm": "darwin_arm64", "linux intel": "linux_amd64", "linux arm": "linux_arm64"}
	var lines strings.Builder
	sums := map[string]string{}
	for _, platform := range platforms { // a different checksum for each
		member := bytes.NewBuffer(bytes.Clone(data))
		empty := gzip.NewWriter(member)
		empty.Comment = platform
		if err := empty.Close(); err != nil {
			t.Fatal(err)
		}
		name := "tea_0.1.0_" + platform + ".tar.gz"
		s.write(filepath.Join(release, name), member.Bytes())
		sums[name] = fmt.Sprintf("%x", sha256.Sum256(member.Bytes()))
		fmt.Fprintf(&lines, "%s  %s\n", sums[name], name)
	}
	generate := exec.CommandContext(t.Context(), "../../scripts/formula", "0.1.0")
	generate.Stdin = strings.NewReader(lines.String())
	text, err := generate.Output()
	if err != nil {
		t.Fatal(err)
	}
	formula := filepath.Join(t.TempDir(), "tea.rb")
	s.write(formula, text)
	if out, err := exec.CommandContext(t.Context(), "ruby", "-wc", formula).CombinedOutput(); err != nil || string(out) != "Syntax OK\n" {
		t.Fatalf("%v\n%s", err, out)
	}
	script := filepath.Join(s.home, ".local")
	for platform, name := range platforms {
		prefix, download := runFormula(t, formula, platform, release)
		file := "tea_0.1.0_" + name + ".tar.gz"
		want := fmt.Sprintf("https://github.com/the-edge-agent/tea/releases/download/v0.1.0/%s\n%s\n", file, sums[file])
		if diff := cmp.Diff(want, download); diff != "" {
			t.Errorf("%s downloads something else (-want +got):\n%s", platform, diff)
		}
		for _, part := range []string{"bin", "share"} { // links to the files of the archive
			installed := contents(t, filepath.Join(script, part))
			if bash, ok := installed["bash-completion/completions/tea"]; ok { // Homebrew uses another directory
				delete(installed, "bash-completion/completions/tea")
				if got := contents(t, filepath.Join(prefix, "etc/bash_completion.d")); got["tea"] != bash {
					t.Errorf("%s: bash completion: %q", platform, got)
				}
			}
			if diff := cmp.Diff(installed, contents(t, filepath.Join(prefix, part))); diff != "" {
				t.Errorf("%s: %s (-install.sh +formula):\n%s", platform, part, diff)
			}
		}
		versions, err := filepath.Glob(filepath.Join(script, "lib/tea/0.1.0-*"))
		if err != nil || len(versions) != 1 {
			t.Fatal(versions, err)
		}
		if diff := cmp.Diff(contents(t, versions[0]), contents(t, filepath.Join(prefix, "libexec"))); diff != "" {
			t.Errorf("%s: files (-install.sh +formula):\n%s", platform, diff)
		}
	}
}

// TestFormulaLeavesOutPlatforms is for a release that was made for some platforms only.
func TestFormulaLeavesOutPlatforms(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it runs a script")
	}
	generate := exec.CommandContext(t.Context(), "../../scripts/formula", "0.1.0")
	generate.Stdin = strings.NewReader(strings.Repeat("a", 64) + "  tea_0.1.0_linux_arm64.tar.gz\n" + strings.Repeat("b", 64) + "  tea_0.1.0_modules.tar.gz\n")
	text, err := generate.Output()
	if err != nil || strings.Count(string(text), " url ") != 1 || strings.Contains(string(text), `"bbb`) {
		t.Errorf("%v\n%s", err, text)
	}
}
