// Package checkup checks whether a machine can run workflows. Start with [Run].
package checkup

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts. Only Fail means that workflows cannot run.
const (
	OK   Verdict = "ok"
	Warn Verdict = "warn"
	Fail Verdict = "fail"
)

// Finding is the result of one check, for people.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"`
	// Hint is the remedy; "" if there is nothing to do.
	Hint string `json:"hint,omitempty"`
}

// Options select what is checked.
type Options struct {
	Host *host.Host
	// RunDir is the directory of runs; "" for none.
	RunDir string
	// Plugins are the plugins that were found, PluginProblems the faults of
	// the others.
	Plugins        []string
	PluginProblems []string
	// UTF8 and Terminal describe the terminal.
	UTF8, Terminal bool
	// Now is the clock.
	Now time.Time
}

// Run makes every check and returns the findings in the order of the checks.
func Run(ctx context.Context, o Options) []Finding {
	return []Finding{
		o.directory(), o.space(), o.checkpoint(ctx), o.lua(ctx),
		o.plugins(), o.clock(), o.locale(), o.terminal(),
	}
}

func (o Options) directory() Finding {
	f := Finding{Check: "directory of runs", Verdict: Fail, Hint: "set XDG_STATE_HOME, or name a directory with -c or TEA_CHECKPOINT_DIR"}
	if o.RunDir == "" {
		f.Message = "neither XDG_STATE_HOME nor HOME is set"
		return f
	}
	if err := os.MkdirAll(o.RunDir, 0o700); err != nil {
		f.Message = err.Error()
		return f
	}
	if err := CheckWritable(o.RunDir); err != nil {
		f.Message = o.RunDir + " cannot be written to"
		return f
	}
	return Finding{Check: f.Check, Verdict: OK, Message: o.RunDir}
}

func (o Options) space() Finding {
	f := Finding{Check: "disk space", Verdict: Warn, Hint: "free some space; `tea checkpoint gc` removes old runs"}
	free, err := freeSpace(o.RunDir)
	if err != nil {
		f.Message = "unknown: " + err.Error()
		return f
	}
	const little = 100 << 20
	f.Message = fmt.Sprintf("%d MB free", free>>20)
	if free >= little {
		f.Verdict, f.Hint = OK, ""
	}
	return f
}

// probe writes a durable record and runs Lua.
const probe = `
name: doctor
nodes:
  - name: lua
    run: return {sum = 1 + 1}
`

func (o Options) checkpoint(ctx context.Context) Finding {
	f := Finding{Check: "checkpoint", Verdict: Fail, Hint: "runs cannot be stored there; check the disk and the permissions of the directory"}
	dir, err := os.MkdirTemp(o.RunDir, "doctor-")
	if err != nil {
		f.Message = err.Error()
		return f
	}
	defer os.RemoveAll(dir)
	started := time.Now()
	if _, err := o.run(ctx, host.RunOptions{CheckpointDir: dir, Durability: flow.DurabilitySync}); err != nil {
		f.Message = err.Error()
		return f
	}
	runs, err := checkpoints.Open(dir)
	if err == nil {
		var list []checkpoints.Entry
		if list, err = runs.List(); err == nil && (len(list) != 1 || list[0].Status != flow.Done) {
			err = fmt.Errorf("the run that was written cannot be found again")
		}
	}
	if err != nil {
		f.Message = err.Error()
		return f
	}
	return Finding{Check: f.Check, Verdict: OK, Message: fmt.Sprintf("written, synced and read in %s", time.Since(started).Round(100*time.Microsecond))}
}

func (o Options) lua(ctx context.Context) Finding {
	f := Finding{Check: "Lua", Verdict: Fail, Hint: "this build of tea is broken; install it again"}
	res, err := o.run(ctx, host.RunOptions{})
	switch {
	case err != nil:
		f.Message = err.Error()
	case res.State["sum"] != int64(2):
		f.Message = fmt.Sprintf("1 + 1 is %v", res.State["sum"])
	default:
		return Finding{Check: f.Check, Verdict: OK, Message: "works"}
	}
	return f
}

func (o Options) run(ctx context.Context, ro host.RunOptions) (*flow.Result, error) {
	wf, err := o.Host.Parse("doctor", []byte(probe), host.LoadOptions{})
	if err != nil {
		return nil, err
	}
	defer wf.Close()
	res, err := wf.Run(ctx, ro)
	if err != nil {
		return nil, err
	}
	return res, res.Err
}

func (o Options) plugins() Finding {
	f := Finding{Check: "plugins", Verdict: OK, Message: "none found"}
	if len(o.Plugins) > 0 {
		f.Message = strings.Join(o.Plugins, ", ")
	}
	if len(o.PluginProblems) > 0 {
		f.Verdict, f.Hint = Warn, "`tea plugin list` shows what is used"
		f.Message += "; " + strings.Join(o.PluginProblems, "; ")
	}
	return f
}

// oldest is earlier than the release of this program. An earlier clock was not
// set.
var oldest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func (o Options) clock() Finding {
	f := Finding{Check: "clock", Verdict: OK, Message: o.Now.UTC().Format(time.RFC3339)}
	if o.Now.Before(oldest) {
		f.Verdict, f.Hint = Warn, "set the clock (timedatectl, chrony): run ids, certificates and the removal of old runs depend on it"
	}
	return f
}

func (o Options) locale() Finding {
	if o.UTF8 {
		return Finding{Check: "locale", Verdict: OK, Message: "UTF-8"}
	}
	return Finding{Check: "locale", Verdict: Warn, Message: "not UTF-8; symbols are drawn in ASCII", Hint: "set LANG=C.UTF-8"}
}

func (o Options) terminal() Finding {
	if o.Terminal {
		return Finding{Check: "terminal", Verdict: OK, Message: "live lines are drawn"}
	}
	return Finding{Check: "terminal", Verdict: OK, Message: "none on stderr: plain lines are printed"}
}
