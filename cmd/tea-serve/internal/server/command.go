package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/cmd/tea-serve/internal/page"
	"github.com/the-edge-agent/tea/cmd/tea-serve/internal/webpush"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
)

// stateDir is the directory of the server's state, below the directory of the runs.
const stateDir = "serve"

// defaultListen is the default of --listen.
const defaultListen = "localhost:8311"

// Command returns the command serve.
func Command() teacmd.Command {
	return teacmd.ServerCommand("serve", "Run the workflows of a directory by schedule, webhook, file or request.", func() teacmd.Server { return new(serveCmd) })
}

type serveCmd struct {
	Listen           string        `placeholder:"ADDR" help:"Address of the API: HOST:PORT, or unix:PATH for a socket. Default: localhost:8311."`
	TokenFile        string        `placeholder:"FILE" help:"File with the tokens of the API, one a line: ROLE TOKEN, or ROLE TOKEN NAME. An address that is not a loopback address needs it or --tls-client-ca."`
	TLSCert          string        `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server, in PEM form, with its intermediate certificates. The API is then served over HTTPS."`
	TLSKey           string        `name:"tls-key" placeholder:"FILE" help:"Private key of --tls-cert, in PEM form."`
	TLSClientCA      string        `name:"tls-client-ca" placeholder:"FILE" help:"Certificates of the authorities of clients, in PEM form. The organizational unit (OU) of a client's certificate is its role."`
	AllowHost        []string      `placeholder:"NAME" help:"Host name under which clients reach the server, for example a reverse proxy's (repeatable)."`
	Static           static        `placeholder:"DIR" help:"Directory whose files are served under /static/, without a token."`
	AlertURL         string        `name:"alert-url" placeholder:"URL" help:"Address that gets a POST request when a run has failed, is parked or waits for an answer."`
	AlertSecret      string        `placeholder:"NAME" help:"Secret that signs alerts, one of --secrets: X-Signature is the HMAC-SHA256 of the body."`
	PublicURL        string        `name:"public-url" placeholder:"URL" help:"Address under which people reach the server, for links in messages that announce questions. Default: the address of --listen."`
	AllowPrivatePush bool          `help:"Allow push services at addresses that are not public, such as a service of your own."`
	MetricsInterval  time.Duration `default:"1m" placeholder:"TIME" help:"How often metrics are sent to --otlp-endpoint. Default: 1m."`
	MaxRunning       int           `default:"32" placeholder:"N" help:"Maximum number of runs at a time. Default: 32."`
	StopTimeout      time.Duration `default:"20s" placeholder:"TIME" help:"How long running nodes have to finish when the server stops. Afterwards their runs are stopped with a checkpoint. Default: 20s."`
	Check            bool          `help:"Check the workflows and their triggers, and exit."`
	teacmd.ServeFlags
}

// Serve serves until the service stops.
func (c *serveCmd) Serve(svc *teacmd.Service) error {
	if c.MaxRunning < 1 {
		return teacmd.UsageErrorf("--max-running %d: expected 1 or more", c.MaxRunning)
	}
	if c.MetricsInterval < time.Second {
		return teacmd.UsageErrorf("--metrics-interval %s: expected 1s or more", c.MetricsInterval)
	}
	socket, err := activated()
	if err != nil {
		return err
	}
	if socket != nil && c.Listen != "" {
		svc.Log.Warn("--listen " + c.Listen + " has no effect: systemd has opened the socket " + socket.Addr().String())
	}
	c.Listen = cmp.Or(c.Listen, defaultListen)
	if err := c.Static.check(); err != nil {
		return err
	}
	access, err := c.access(svc.Log, socket)
	if err != nil {
		return err
	}
	s := newServer(svc, c)
	s.access = access
	if s.page, err = page.New(); err != nil {
		return err
	}
	if s.catalog, err = newCatalog(s, c.Dir); err != nil {
		return err
	}
	if s.alerts, err = newAlerts(s); err != nil {
		return err
	}
	if c.Check {
		return s.check()
	}
	if socket == nil { // before a run starts
		if socket, err = listen(s.ctx, c.Listen); err != nil {
			return err
		}
	}
	defer func() { _ = socket.Close() }()
	if s.base, err = c.base(urlOf(socket, access.tls != nil)); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	defer s.close()
	s.background.Go(func() { access.tokens.watch(s.ctx) })
	return s.serveHTTP(socket)
}

// server runs the workflows of a directory.
type server struct {
	svc   *teacmd.Service
	flags *serveCmd
	// secrets replaces secrets by references in what is stored.
	secrets host.Mask
	catalog *catalog
	led     *ledger
	index   runIndex
	lock    *os.File
	// lost reports whether the state of an earlier server is missing.
	lost bool
	// ctx is done when the server accepts no more requests, runs when it stops the
	// runs.
	ctx     context.Context
	stop    context.CancelFunc
	runs    context.Context
	stopAll context.CancelCauseFunc

	// mu is the mutex of the ledger. It guards the following fields.
	mu          *sync.Mutex
	lines       map[string]*line
	live        map[string]*live
	running     int
	maxRunning  int
	queuedBytes int
	// answers are closed when a waiting run continues or is stopped, by run.
	answers map[string]chan struct{}
	// unwatched is the reason why a directory cannot be watched now, by trigger.
	unwatched map[string]string
	skips     skips
	// suspects are runs during which the server ended; trial is the one that is
	// tried now.
	suspects []*item
	trial    *item
	// diskFull records whether the disk is full; probe is the run that is tried then.
	diskFull diskFull
	probe    atomic.Pointer[item]
	// unseen are waiting runs whose questions may be new; asked receives a value when
	// there are any.
	unseen map[string]bool
	asked  chan struct{}
	// ends counts ended runs.
	ends int
	// followers are the runs that the run being settled starts.
	followers []*item

	// triggersChanged receives the name of a workflow whose triggers have changed, endings a
	// value when runs have ended.
	triggersChanged chan string
	endings         chan struct{}
	started         time.Time

	// sharedProblems are the logged mistakes that belong to no single workflow. Only the
	// scheduler uses it.
	sharedProblems map[string]bool

	// installing is locked while a plugin is installed or rolled back.
	installing sync.Mutex
	// uploads has an element for each bundle that is being received.
	uploads chan struct{}

	page *page.Page
	// base is the address of links; "" if people cannot reach the server.
	base   string
	static static
	access *access
	// sender sends push messages. It is opened on first use, with the mutex sending.
	sender  *webpush.Sender
	sending sync.Mutex
	metrics *metrics
	alerts  *alerts
	brokers *subscriptions
	watches *watches
	// lastBeat is the last time that the scheduler made progress; ended is closed when
	// the server has ended.
	lastBeat atomic.Int64
	ended    chan struct{}

	executing  sync.WaitGroup
	background sync.WaitGroup
	closing    sync.Once
}

func newServer(svc *teacmd.Service, c *serveCmd) *server {
	s := &server{
		svc: svc, flags: c, static: c.Static, secrets: host.NewMask(svc.Secrets()), lines: map[string]*line{}, live: map[string]*live{}, answers: map[string]chan struct{}{}, unseen: map[string]bool{}, asked: make(chan struct{}, 1), unwatched: map[string]string{}, maxRunning: c.MaxRunning,
		triggersChanged: make(chan string, 1), endings: make(chan struct{}, 1), started: time.Now(), mu: new(sync.Mutex), ended: make(chan struct{}), uploads: make(chan struct{}, maxUploads),
	}
	s.metrics = newMetrics(s)
	svc.DataDir = s.dataDir
	s.brokers = &subscriptions{s: s, open: map[string]*subscription{}}
	s.watches = &watches{s: s, open: map[string]*watch{}}
	s.recordProgress()
	s.ctx, s.stop = context.WithCancel(svc.Context)
	s.runs, s.stopAll = context.WithCancelCause(context.WithoutCancel(svc.Context))
	return s
}

// maxDataName is the longest name of a data directory. File systems allow 255 bytes.
const maxDataName = 200

// dataDir returns the directory for the files of a workflow. A hash replaces the end
// of a long name.
func (s *server) dataDir(workflow string) string {
	name := url.PathEscape(workflow)
	if len(name) > maxDataName {
		sum := sha256.Sum256([]byte(workflow))
		name = name[:maxDataName-17] + "-" + hex.EncodeToString(sum[:8])
	}
	if strings.HasPrefix(name, ".") { // such as ..
		name = "%2E" + name[1:]
	}
	dir := filepath.Join(s.svc.Runs, "data", name)
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// check loads the workflows and reports their mistakes.
func (s *server) check() error {
	s.catalog.Scan()
	defer s.close()
	if files, shared := s.countProblems(); files+shared > 0 {
		return teacmd.InvalidErrorf("%s", counted(files, "file has mistakes", "files have mistakes", shared))
	}
	n := 0
	for _, name := range s.catalog.names() {
		v := s.catalog.use(name)
		n += len(v.triggers)
		v.uses.Done()
	}
	s.svc.Announce(fmt.Sprintf("%d workflows, %d triggers", len(s.catalog.names()), n))
	return nil
}

// counted describes the number of mistakes.
func counted(files int, one, many string, shared int) string {
	text := fmt.Sprintf("%d %s", files, many)
	if files == 1 {
		text = "1 " + one
	}
	switch {
	case shared == 0:
		return text
	case files == 0:
		return fmt.Sprintf("%d triggers or sections refer to unknown workflows", shared)
	}
	return fmt.Sprintf("%s, %d triggers or sections refer to unknown workflows", text, shared)
}

// open reads the state, loads the workflows and continues unfinished runs.
func (s *server) open() (err error) {
	dir := filepath.Join(s.svc.Runs, stateDir)
	if s.lock, err = lock(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	removeUploads(dir)
	if s.led, err = openLedger(filepath.Join(dir, "state.jsonl")); err != nil {
		return errors.Join(err, s.lock.Close())
	}
	s.lost = s.hasPriorState() && s.led.fresh
	if s.led.cut > 0 {
		s.svc.Log.Warn(fmt.Sprintf("the last %d bytes of %s were damaged and are cut off, as after a power cut; changes in them are lost", s.led.cut, s.led.path))
	}
	s.mu = &s.led.mu
	s.catalog.Scan()
	s.warnSharedProblems()
	s.recover()
	s.background.Go(func() { s.catalog.Watch(s.ctx) })
	s.background.Go(s.schedule)
	s.background.Go(s.sweep)
	s.background.Go(s.watchdog)
	s.background.Go(s.announceQuestions)
	if s.svc.Collector != nil {
		s.background.Go(s.sendMetrics)
	}
	if s.alerts != nil {
		s.background.Go(func() { s.alerts.run(s.runs) }) // also while the last runs end
	}
	return nil
}

// recover queues the unfinished runs.
func (s *server) recover() {
	runs, err := checkpoints.Open(s.svc.Runs)
	if err == nil {
		s.rebuild(runs)
		s.listEnded(runs)
	} else if !errors.Is(err, os.ErrNotExist) {
		s.svc.Log.Warn("the runs cannot be listed", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, it := range byAge(s.led.state.items) {
		if it.Parked != "" {
			continue
		}
		it.recovered, it.interrupted, it.Running = true, it.Running, false
		s.count(it)
		n++
		if it.interrupted {
			_, _ = s.led.add(false, &entry{Try: new(it.progress)}) // the server ends if it fails
		}
		if it.Stuck > 0 {
			s.suspects = append(s.suspects, it)
		} else {
			s.enqueue(it)
		}
	}
	s.tryNextSuspect()
	if n > 0 {
		s.svc.Log.Info(fmt.Sprintf("%d runs continue", n))
	}
}

// close stops the runs and writes the state.
func (s *server) close() { s.closing.Do(s.closeOnce) }

func (s *server) closeOnce() {
	s.mu.Lock()
	s.stop()
	s.mu.Unlock()
	s.drain()
	s.stopAll(errClosed)
	s.executing.Wait()
	close(s.ended)
	s.catalog.close()
	s.background.Wait()
	if s.led != nil {
		s.led.close()
		_ = s.lock.Close() // nothing was written
	}
}

// drain waits up to the stop timeout for the runs to end.
func (s *server) drain() {
	done := make(chan struct{})
	go func() {
		s.executing.Wait()
		close(done)
	}()
	timer := time.NewTimer(s.flags.StopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
