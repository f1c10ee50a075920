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
)

// process is a running browser. It ends when stop is called, when the browser ends
// or uses too much memory, and when this process ends, because its pipe is closed
// and, if the system supports it, a parent-death signal is sent.
type process struct {
	settings Settings

	ctx    context.Context // of chromedp; ends with the browser
	parent context.Context // its cause is why the browser was stopped
	fail   context.CancelCauseFunc
	wait   context.CancelFunc // ends the browser and waits for it
	home   *home
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

// startProcess starts the browser, which outlives ctx.
func startProcess(ctx context.Context, s Settings, userAgent string) (*process, error) {
	path, err := s.find()
	if err != nil {
		return nil, err
	}
	home, err := makeHome()
	if err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		slog.WarnContext(ctx, "Chromium runs without its sandbox, because it refuses to use it as root; run tea as another user")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless,
		chromedp.NoInheritEnv, chromedp.Env(environment(home.dir)...), chromedp.ModifyCmdFunc(setAttributes),
		chromedp.UserDataDir(filepath.Join(home.dir, "profile")), chromedp.Flag("js-flags", fmt.Sprintf("--max-old-space-size=%d", s.MaxMemoryMB/2)),
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

// stop ends the browser, waits until its processes have ended, and removes its
// files. It is idempotent.
func (p *process) stop(reason error) {
	p.fail(reason)
	p.wait()
	if p.pid > 0 {
		_ = killGroup(p.pid) // usually no process is left
	}
	p.home.remove()
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
