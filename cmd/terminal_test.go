//go:build linux

package teacmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal makes a pseudo-terminal of a size: ctrl is the person's side.
func openTerminal(t *testing.T, columns, rows uint16) (ctrl, tty *os.File) {
	t.Helper()
	ctrl, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { ctrl.Close() })
	fd := int(ctrl.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return ctrl, tty
}

// onTerminal runs tea with its stderr on a terminal and returns both outputs.
func onTerminal(t *testing.T, dir string, env []string, args ...string) (stdout, screen string) {
	t.Helper()
	ctrl, tty := openTerminal(t, 60, 20)
	cmd := exec.Command("tea", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "HOME="+dir, "LANG=C.UTF-8", "TERM=xterm", "NO_COLOR="), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	drawn, _ := io.ReadAll(ctrl) // ends with EIO when the terminal is closed
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, drawn)
	}
	return out.String(), string(drawn)
}

// The slow branch waits for the quick one, so that both are shown together.
const branching = `
nodes:
  - name: a
  - name: slow
    type: while_loop
    condition: not state.there
    max_iterations: 1000
    body:
      - {name: wait, uses: time.sleep, with: {seconds: 0.25}, output: {}}
      - {name: look, uses: file.exists, with: {path: "{{ variables.mark }}"}, output: {there: "{{ result.exists }}"}}
  - name: quick
    run: |
      tea.log('warn', 'look out')
      tea.action('file.write', {path = variables.mark, content = ''})
      return {x = 1}
  - {name: join, run: "return {x = 1}"}
edges:
  - {from: a, parallel: [slow, quick], fan_in: join}
  - {from: slow, to: join}
  - {from: quick, to: join}
`

func TestLiveLines(t *testing.T) {
	t.Parallel()
	dir := workdir(t, map[string]string{"flow.yaml": branching})
	tests := []struct {
		name    string
		env     []string
		want    []string
		without string
	}{
		{"colours", nil, []string{`\x1b\[32m✓\x1b\[0m a`, `  \x1b\[32m✓\x1b\[0m slow`, `⠋|⠙|⠹|⠸|⠼|⠴|⠦|⠧|⠇|⠏`, `\x1b\[\d+A`, `! a>quick/quick: look out`}, ""},
		{"NO_COLOR", []string{"NO_COLOR=1"}, []string{"✓ a", "  ✓ slow", "  ✓ quick", `\x1b\[\d+A`}, `\x1b\[\d+m`},
		{"ASCII", []string{"LANG=C", "NO_COLOR=1"}, []string{`\+ a`, `  \+ slow`}, "✓"},
		{"dumb", []string{"TERM=dumb"}, []string{"a: done", "a>slow/slow: done"}, `\x1b`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			stdout, screen := onTerminal(t, dir, test.env, "run", "flow.yaml", "-C", `{"variables": {"mark": "`+test.name+`"}}`)
			if want := "{\n  \"x\": 1\n}\n"; stdout != want {
				t.Errorf("stdout = %q, want %q", stdout, want)
			}
			for _, want := range test.want {
				if !regexp.MustCompile(want).MatchString(screen) {
					t.Errorf("the screen lacks %s:\n%q", want, screen)
				}
			}
			if test.without != "" && regexp.MustCompile(test.without).MatchString(screen) {
				t.Errorf("the screen has %s:\n%q", test.without, screen)
			}
			if slow, quick := strings.LastIndex(screen, "slow"), strings.LastIndex(screen, "quick"); test.name == "NO_COLOR" && slow > quick {
				t.Error("the branches are not in the order in which they are written")
			}
		})
	}
}

// What commands print about plugins and the machine fits the terminal, except
// a word that is wider.
func TestListsFitTheTerminal(t *testing.T) {
	t.Parallel()
	env := append(os.Environ(), "HOME="+t.TempDir(), "XDG_CACHE_HOME=", "XDG_DATA_HOME=", "LANG=C.UTF-8", "TERM=xterm", "NO_COLOR=1", "TEA_PLUGINS="+pluginDir(t))
	refresh := exec.Command("tea", "plugin", "refresh")
	refresh.Env = env
	if out, err := refresh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, columns := range []uint16{80, 40} {
		for _, args := range [][]string{{"plugin", "info", "greet"}, {"plugin", "list"}, {"doctor"}, {"plugin", "--help"}} {
			t.Run(fmt.Sprintf("%s in %d columns", strings.Join(args, " "), columns), func(t *testing.T) {
				t.Parallel()
				ctrl, tty := openTerminal(t, columns, 20)
				cmd := exec.Command("tea", args...)
				cmd.Env = env
				cmd.Stdout = tty
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				tty.Close()
				screen, _ := io.ReadAll(ctrl)
				_ = cmd.Wait() // tea doctor fails where something is missing
				if len(screen) == 0 {
					t.Fatal("nothing printed")
				}
				for line := range strings.Lines(string(screen)) {
					line = strings.TrimRight(line, "\r\n")
					if len([]rune(line)) > int(columns) && strings.Contains(strings.TrimSpace(line), " ") {
						t.Errorf("too wide: %q", line)
					}
				}
			})
		}
	}
}
