package serial

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const (
	settingsKey = "serial"
	portsPath   = "settings.serial.ports"
)

// Settings are the settings under settings.serial.
type Settings struct {
	Ports map[string]Port `json:"ports,omitempty" doc:"the serial ports by name"`
}

// Port is a serial port.
type Port struct {
	Path     string `json:"path" minLength:"1" doc:"the device, such as /dev/serial/by-id/usb-... or COM3"`
	Baud     int    `json:"baud,omitempty" default:"9600" minimum:"50" maximum:"4000000" doc:"speed"`
	Parity   string `json:"parity,omitempty" enum:"none,even,odd,mark,space" default:"none" doc:"parity"`
	StopBits int    `json:"stop_bits,omitempty" default:"1" minimum:"1" maximum:"2" doc:"stop bits"`
	DataBits int    `json:"data_bits,omitempty" default:"8" minimum:"5" maximum:"8" doc:"data bits"`
	Write    []Rule `json:"write,omitempty" doc:"what can be written, and its limits; the first rule that matches counts"`
}

// Rule allows writing some texts or bytes.
type Rule struct {
	Text    []string `json:"text,omitempty" doc:"the texts that can be written"`
	Base64  []string `json:"base64,omitempty" doc:"the bytes that can be written, in Base64"`
	Pattern string   `json:"pattern,omitempty" format:"re2" doc:"regular expression that must match all of a text; its group is the number for min, max and max_step"`
	guard.Rule
}

// JSONSchema returns the schema, which requires a rule to allow something.
func (Rule) JSONSchema() *schema.Schema {
	type plain Rule
	return schema.With[plain](`{"anyOf": [{"required": ["text"]}, {"required": ["base64"]}, {"required": ["pattern"]}],
		"dependentRequired": {"min": ["pattern"], "max": ["pattern"], "max_step": ["pattern"]}}`)
}

// Check returns a mistake in the settings that the schema cannot express.
func (s Settings) Check() error {
	return part.Check(portsPath, s.Ports, func(path string, port Port) error {
		for i, rule := range port.Write {
			if err := rule.check(); err != nil {
				return tea.Errorf(tea.ValidationError, "%s: %w", diag.Index(path+".write", i), err)
			}
		}
		return nil
	})
}

func (r Rule) check() error {
	for _, text := range r.Base64 {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			return fmt.Errorf("base64: %w", err)
		}
	}
	pattern, err := r.pattern()
	switch {
	case err != nil:
		return fmt.Errorf("pattern: %w", err)
	case r.Numeric() && (pattern.NumSubexp() != 1 || len(r.Text)+len(r.Base64) > 0):
		return errors.New("min, max and max_step need a pattern with one group, which is the number, and neither text nor base64")
	}
	return nil
}

// pattern returns the expression for all of a text. Without a pattern, nothing matches
// but the empty text, which is never written.
func (r Rule) pattern() (*regexp.Regexp, error) {
	if _, err := regexp.Compile(r.Pattern); err != nil {
		return nil, err // reports the pattern without ^ and $
	}
	return regexp.Compile(`\A(?:` + r.Pattern + `)\z`)
}

// decimal is a number as machines write it; strconv also reads inf and 0x1p4.
var decimal = regexp.MustCompile(`\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)\z`)

// allows reports whether the rule allows to write data, and returns the number in it.
func (r Rule) allows(data []byte) (number any, ok bool) {
	if slices.Contains(r.Text, string(data)) || slices.Contains(r.Base64, base64.StdEncoding.EncodeToString(data)) {
		return nil, true
	}
	pattern, err := r.pattern()
	if err != nil || !utf8.Valid(data) { // each invalid byte would match as the same character
		return nil, false
	}
	groups := pattern.FindSubmatch(data)
	if len(groups) == 2 && decimal.Match(groups[1]) {
		if f, err := strconv.ParseFloat(string(groups[1]), 64); err == nil {
			number = f
		}
	}
	return number, groups != nil
}

// rule returns the rule for data and its path; nil if there is none.
func (p Port) rule(path string, data []byte) (rule *guard.Rule, number any, setting string) {
	for i, r := range p.Write {
		if number, ok := r.allows(data); ok {
			return &r.Rule, number, diag.Index(path+".write", i)
		}
	}
	return nil, nil, path + ".write"
}

// duration returns how long bytes are on the line, with start, parity and stop bits.
func (p Port) duration(bytes int) time.Duration {
	return time.Duration(bytes) * 12 * time.Second / time.Duration(p.Baud)
}
