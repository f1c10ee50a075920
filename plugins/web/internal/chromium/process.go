package chromium

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// process is a running browser. It ends when stop is called, when the browser ends
// or uses too much memory, and when this process ends, because its pipe is closed
// and, if the system supports it, a parent-death signal is sent.
type process struct {
	settings Settings

	ctx    context.Context // chromedp's; ends with the browser
	parent context.Context // its cause is why the browser was stopped
	fail   context.CancelCauseFunc
	wait   context.CancelFunc // ends the browser and waits for it
	home   *filelock.Dir
	pid    int // 0 before the start
}

// flags are the flags of every browser. Chromium must not use the network except
// through the proxy of a page: it resolves no names, and WebRTC does not use UDP.
var flags = map[string]any{
	"proxy-server":                    "http://none.invalid:1", // each page has a separate one
	"host-resolver-rules":             "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
	"disable-quic":                    true,
	"force-webrtc-ip-handling-policy": "disable_non_proxied_udp",
	"webrtc-ip-handling-policy":       "disable_non_proxied_udp",
	"dns-prefetch-disable":            true,
	"no-pings":                        true,
	"disable-background-networking":   true,
	"disable-component-update":        true,

	"disable-component-extensions-with-background-pages": true,
	"disable-domain-reliability":                         true,
	"disable-client-side-phishing-detection":             true,
	"disable-default-apps":                               true,
	"disable-extensions":                                 true,
	"disable-sync":                                       true,
	"disable-breakpad":                                   true,
	"disable-crash-reporter":                             true,
	"disable-dev-shm-usage":                              true,
	"disable-gpu":                                        true,
	"disable-notifications":                              true,
	"block-new-web-contents":                             true,
	"deny-permission-prompts":                            true,
	"metrics-recording-only":                             true,
	"no-service-autorun":                                 true,
	"password-store":                                     "basic",
	"use-mock-keychain":                                  true,
	"disable-hang-monitor":                               true,
	"disable-background-timer-throttling":                true,
	"disable-renderer-backgrounding":                     true,
	"disable-backgrounding-occluded-windows":             true,
	"disable-features":                                   "Translate,MediaRouter,DialMediaRouteProvider,OptimizationHints,AutofillServerCommunication,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,WebTransport",
}

// homePrefix is the prefix of the name of a browser's directory, which has its profile
// and its temporary files.
const homePrefix = "tea-chromium-"

// maxBase is the maximum path length of a directory for temporary files: Chromium
// creates a socket below it, whose path is limited to 103 characters on some systems.
const maxBase = 30

// removeTimeout bounds how long killed processes can delay the removal of their
// files.
const removeTimeout = 5 * time.Second

// baseDir is the directory for temporary files, or /tmp if its path is too long.
func baseDir() string {
	base := os.TempDir()
	if info, err := os.Stat("/tmp"); len(base) > maxBase && err == nil && info.IsDir() {
		return "/tmp"
	}
	return base
}

// startProcess starts the browser, which outlives ctx.
func startProcess(ctx context.Context, s Settings, userAgent string) (*process, error) {
	path, err := s.find()
	if err != nil {
		return nil, err
	}
	home, err := filelock.MakeDir(baseDir(), homePrefix)
	if err != nil {
		return nil, tea.AsError(fmt.Errorf("make a directory for Chromium: %w", err))
	}
	if os.Getuid() == 0 {
		slog.WarnContext(ctx, "Chromium runs without its sandbox, because it refuses to use it as root; run tea as another user")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless,
		chromedp.NoInheritEnv, chromedp.Env(environment(home.Path)...), chromedp.ModifyCmdFunc(setAttributes),
		chromedp.UserDataDir(filepath.Join(home.Path, "profile")), chromedp.Flag("js-flags", fmt.Sprintf("--max-old-space-size=%d", s.MaxMemoryMB/2)),
	}
	if userAgent != "" {
		options = append(options, chromedp.UserAgent(userAgent))
	}
	for name, value := range flags {
		options = append(options, chromedp.Flag(name, value))
	}
	p := &process{settings: s, home: home}
	p.parent, p.fail = context.WithCancelCause(context.Background())
	allocator, wait := chromedp.NewExecAllocator(p.parent, options...)
	p.wait = wait
	p.ctx, _ = chromedp.NewContext(allocator, chromedp.WithLogf(silent), chromedp.WithErrorf(silent))
	if err := p.start(ctx); err != nil {
		p.stop(nil)
		return nil, err
	}
	p.pid = chromedp.FromContext(p.ctx).Browser.Process().Pid
	go p.watchMemory()
	return p, nil
}

func silent(string, ...any) {}

// start waits until the browser runs.
func (p *process) start(ctx context.Context) error {
	started := make(chan error, 1)
	go func() { started <- chromedp.Do(p.ctx) }()
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	var stopped error
	select {
	case err := <-started:
		if err != nil {
			return startError(err)
		}
		return nil
	case <-ctx.Done():
		stopped = ended(ctx)
	case <-timer.C:
		stopped = tea.Errorf(tea.Timeout, "Chromium did not start within %s", startTimeout)
	}
	p.fail(stopped)
	<-started //nolint:errcheck // the cause is stopped
	return stopped
}

// startError explains why Chromium did not start. Its output is part of err.
func startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrPermission) {
		return missing("%v", err)
	}
	return tea.Errorf(tea.DependencyMissing, "Chromium did not start: %w; run it by hand to see why, or set settings.web.chromium.path to another program", err)
}

// setAttributes makes the browser and its children a process group, which is killed
// together.
func setAttributes(cmd *exec.Cmd) {
	childproc.Group(cmd)
	childproc.EndWithParent(cmd)
	cmd.Cancel = func() error { return childproc.KillGroup(cmd.Process) }
}

// stop ends the browser, waits until its processes have ended, and removes its
// files. It is idempotent.
func (p *process) stop(reason error) {
	p.fail(reason)
	p.wait()
	if p.pid > 0 {
		_ = childproc.KillGroup(chromedp.FromContext(p.ctx).Browser.Process()) // usually no process is left
	}
	// A process that is ending may still write files.
	for deadline := time.Now().Add(removeTimeout); p.home.Remove() != nil && time.Now().Before(deadline); {
		<-time.After(20 * time.Millisecond)
	}
}

// environment returns the complete environment of the browser. The mark lets the host
// find its processes.
func environment(home string) []string {
	env := []string{"HOME=" + home, "TMPDIR=" + home}
	for _, name := range []string{"PATH", "LANG", "LC_ALL", "TZ", "FONTCONFIG_PATH", "FONTCONFIG_FILE", "TEA_PLUGIN_PROCESS"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// memoryInterval is how often the memory of the browser is measured.
const memoryInterval = 250 * time.Millisecond

// watchMemory stops the browser when it uses too much memory.
func (p *process) watchMemory() {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-ticker.C:
		}
		if used := memoryOf(p.pid); used > int64(p.settings.MaxMemoryMB)<<20 {
			p.fail(tea.Errorf(tea.ResourceExhausted, "Chromium was stopped because it used %d MB of memory, more than %d MB (settings.web.chromium.max_memory_mb)", used>>20, p.settings.MaxMemoryMB))
			return
		}
	}
}
