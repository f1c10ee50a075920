package serial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Part returns the part of the bundle.
func Part() part.Part {
	return part.New(settingsKey, func(s Settings, guards *guard.Guards) any { return &client{s, guards} },
		part.Action(settingsKey, "exchange", "Writes to a serial port and reads the answer.", (*client).Exchange, tea.Once(), tea.DryRun()),
		part.Action(settingsKey, "list", "Lists the serial ports of the device.", (*client).List, tea.Idempotent(), tea.Reads()),
		part.Action(settingsKey, "watch", "Passes on the lines from a serial port until the call ends; for the trigger stream of tea serve.", (*client).Watch, tea.Streaming(), tea.Idempotent(), tea.Reads()),
	)
}

// client uses the serial ports of a workflow.
type client struct {
	settings Settings
	guards   *guard.Guards
}

// Terminator is what ends an answer or a line.
type Terminator struct {
	Until       string `json:"until,omitempty" doc:"text that ends it, and is not part of the result"`
	UntilBase64 string `json:"until_base64,omitempty" doc:"the same as bytes in Base64"`
}

type exchangeParams struct {
	Port        string `json:"port,omitempty" doc:"name of the port in settings.serial.ports; can be left out if there is one"`
	Write       string `json:"write,omitempty" doc:"text to write; a rule in settings.serial.ports.NAME.write must allow it"`
	WriteBase64 string `json:"write_base64,omitempty" doc:"bytes to write in Base64, instead of write"`
	Terminator
	Count          int     `json:"count,omitempty" minimum:"1" maximum:"65536" doc:"number of bytes after which the answer ends"`
	TimeoutSeconds float64 `json:"timeout_seconds" default:"2" minimum:"0" maximum:"3600" doc:"limit for the answer; without until and count, how long to read: 0 reads nothing"`
}

// exchangeResult is the result of serial.exchange, and what serial.watch passes on.
type exchangeResult struct {
	Success bool    `json:"success" doc:"always true"`
	Port    string  `json:"port"`
	Text    *string `json:"text" doc:"what was read, as text; null if it is not valid UTF-8"`
	Base64  string  `json:"base64,omitempty" doc:"what was read, in Base64 if it is not valid UTF-8"`
	Bytes   int     `json:"bytes" doc:"number of bytes that were read"`
	DryRun  bool    `json:"dry_run" doc:"true if nothing was sent because of dry_run in the settings"`
}

func (r *exchangeResult) set(data []byte) {
	r.Bytes = len(data)
	r.Text, r.Base64 = part.Text(data)
}

func (c *client) Exchange(ctx context.Context, req *tea.Request, p exchangeParams) (*exchangeResult, error) {
	name, port, err := c.port(p.Port)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	data, err := part.Bytes("write", p.Write, p.WriteBase64)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	until, err := part.Bytes("until", p.Until, p.UntilBase64)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	result := &exchangeResult{Success: true, Port: name}
	result.set(nil)
	exchange := func(ctx context.Context) error { return port.exchange(ctx, p, data, until, result) }
	if len(data) == 0 {
		err = exchange(ctx)
	} else {
		rule, number, setting := port.rule(diag.Key(portsPath, name), data)
		result.DryRun, err = c.guards.Permit(ctx, req, guard.Write{
			Setting: setting, Machine: port.Path, Target: fmt.Sprintf("the serial port %q", name), Rule: rule, Value: number, Shown: part.Shown("%q", data),
		}, exchange)
	}
	return result, err
}

func (c *client) port(given string) (string, Port, error) {
	name, err := part.Name(portsPath, "port", c.settings.Ports, given)
	return name, c.settings.Ports[name], err
}

// exchange opens the port, writes and reads. Its errors say what the write did.
func (p Port) exchange(ctx context.Context, params exchangeParams, data, until []byte, result *exchangeResult) error {
	limit := part.Seconds(params.TimeoutSeconds)
	l, err := openLine(ctx, result.Port, p, max(limit, part.PortTimeout))
	if err != nil {
		return guard.NotSent(err)
	}
	defer l.close()
	if len(data) > 0 {
		if err := l.ResetInputBuffer(); err != nil { // an older answer is not one to this write
			return guard.NotSent(tea.Errorf(tea.ConnectionError, "the serial port %s: %w", l.name, err))
		}
		if n, err := l.send(ctx, data, max(limit, part.PortTimeout)+p.duration(len(data))); err != nil {
			kind := tea.ConnectionError
			if errors.Is(err, os.ErrDeadlineExceeded) {
				kind = tea.Timeout
			} else if ctx.Err() != nil {
				kind = tea.AsError(ctx.Err()).Type
			}
			err = tea.Errorf(kind, "write to the serial port %s: %w", l.name, err)
			if n == 0 {
				return guard.NotSent(err)
			}
			return guard.Unknown(err)
		}
	}
	answer, err := l.next(ctx, time.Now().Add(limit+p.duration(len(data))), until, params.Count)
	if err == nil {
		result.set(answer)
		return nil
	}
	if errors.Is(err, errTimeout) {
		e := tea.Errorf(tea.Timeout, "the serial port %s sent %d bytes, but no complete answer within %s", l.name, len(answer), limit)
		e.Details = map[string]any{"received": part.Shown("%q", answer)}
		err = e
	}
	if len(data) > 0 {
		return guard.Unknown(err)
	}
	return guard.NotSent(err)
}

// Found is a serial port of the device.
type Found struct {
	Path   string `json:"path"`
	ID     string `json:"id,omitempty" doc:"a path that stays the same when adapters are plugged in another order (Linux)"`
	Driver string `json:"driver,omitempty" doc:"its driver (Linux)"`
}

type listResult struct {
	Success bool    `json:"success" doc:"always true"`
	Ports   []Found `json:"ports"`
}

func (c *client) List(context.Context, *tea.Request, struct{}) (*listResult, error) {
	found, err := ports()
	if err != nil {
		return nil, err
	}
	return &listResult{Success: true, Ports: found}, nil
}

type watchParams struct {
	Port string `json:"port,omitempty" doc:"name of the port in settings.serial.ports; can be left out if there is one"`
	Terminator
}

// Watch implements serial.watch. Lines end with a line feed, and a carriage return before
// it, unless another terminator is given.
func (c *client) Watch(ctx context.Context, req *tea.Request, p watchParams) (struct{}, error) {
	name, port, err := c.port(p.Port)
	if err != nil {
		return struct{}{}, err
	}
	until, err := part.Bytes("until", p.Until, p.UntilBase64)
	if err != nil {
		return struct{}{}, err
	}
	lines := len(until) == 0
	if lines {
		until = []byte("\n")
	}
	l, err := openLine(ctx, name, port, part.PortTimeout)
	if err != nil {
		return struct{}{}, err
	}
	defer l.close()
	for {
		data, err := l.next(ctx, time.Time{}, until, 0)
		if err != nil {
			return struct{}{}, err
		}
		if lines {
			data = bytes.TrimSuffix(data, []byte("\r"))
		}
		result := exchangeResult{Success: true, Port: name}
		result.set(data)
		if err := part.Emit(ctx, req, result); err != nil {
			return struct{}{}, err
		}
	}
}
