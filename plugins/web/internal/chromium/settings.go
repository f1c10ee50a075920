package chromium

import (
	"cmp"
	"os/exec"
	"runtime"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Settings are the settings of the browser.
type Settings struct {
	Path         string `json:"path,omitempty" format:"path" doc:"Chromium's or Chrome's program; default: the first one found in PATH"`
	MaxPages     int    `json:"max_pages,omitempty" minimum:"1" maximum:"64" doc:"pages that are loaded at the same time, others wait; default 2"`
	MaxMemoryMB  int    `json:"max_memory_mb,omitempty" minimum:"128" maximum:"1048576" doc:"limit for the memory of all processes of the browser, on Linux; a page that exceeds it fails; default 1024"`
	MaxPageBytes int64  `json:"max_page_bytes,omitempty" minimum:"1024" maximum:"1073741824" doc:"limit for what one page loads, with scripts and images; default 67108864 (64 MiB)"`
}

// Defaults of the settings; the guide names them too.
const (
	defaultMaxPages     = 2
	defaultMaxMemoryMB  = 1024
	defaultMaxPageBytes = 64 << 20
)

func (s Settings) withDefaults() Settings {
	s.MaxPages = cmp.Or(s.MaxPages, defaultMaxPages)
	s.MaxMemoryMB = cmp.Or(s.MaxMemoryMB, defaultMaxMemoryMB)
	s.MaxPageBytes = cmp.Or(s.MaxPageBytes, defaultMaxPageBytes)
	return s
}

// Limits that are not settings.
const (
	startTimeout = time.Minute      // for the start of the browser
	idleTimeout  = 30 * time.Second // after which an unused browser is stopped
	settleTime   = 5 * time.Second  // for the network to become idle after the document was read
	quitTimeout  = 5 * time.Second  // for a page to close
	maxShot      = 16 << 20         // bytes of a screenshot
	viewWidth    = 1280
	viewHeight   = 1024

	maxShotHeight = 16384 // of a screenshot of a whole page, the limit of the browser's textures
)

// names are the programs to search for, in this order.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell", "chrome-headless-shell"}

// find returns the program's path. The error is dependency_missing.
func (s Settings) find() (string, error) {
	if s.Path != "" {
		path, err := exec.LookPath(s.Path)
		if err != nil {
			return "", missing("settings.web.chromium.path is %s: %v", s.Path, err)
		}
		return path, nil
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	if path := "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; runtime.GOOS == "darwin" {
		if path, err := exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	return "", missing("none of the programs %s is in PATH", strings.Join(names, ", "))
}

func missing(format string, args ...any) *tea.Error {
	e := tea.Errorf(tea.DependencyMissing, "render and screenshot need Chromium or Chrome: "+format, args...)
	e.Message += "; install it (on Debian: apt-get install chromium) or set settings.web.chromium.path to its program"
	return e
}
