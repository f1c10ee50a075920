package evaluate

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Case is an input with the expected output.
type Case struct {
	ID string
	// Pos is where the case is written.
	Pos      string
	Input    map[string]any
	Expected any
	Tags     []string
	// Answers answer the questions of the run, by interrupt or node.
	Answers map[string]any
}

var caseKeys = []string{"id", "input", "expected", "tags", "answers"}

// decodeCases reads the cases of a list or of a file.
func (f *File) decodeCases(n *yaml.Node) error {
	err := f.objects(n, f.addCase)
	if err == nil && len(f.Cases) == 0 {
		err = f.Failf(n, "there are no cases")
	}
	return err
}

// addCase adds the case with the given fields.
func (f *File) addCase(pos string, i int, fields map[string]any) error {
	c := Case{Pos: pos, ID: strconv.Itoa(i + 1)}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", pos, fmt.Errorf(format, args...))
	}
	for key, v := range fields {
		ok := true
		switch key {
		case "id":
			if c.ID, ok = v.(string); !ok {
				c.ID, ok = value.FormatNumber(v), value.IsNumber(v)
			}
		case "input":
			c.Input, ok = v.(map[string]any)
		case "answers":
			c.Answers, ok = v.(map[string]any)
		case "expected":
			c.Expected = v
		case "tags":
			ok = value.Into(v, &c.Tags) == nil
		default:
			return fail("unknown key %q%s", key, diag.Ending(key, caseKeys))
		}
		if !ok {
			return fail("%s: unexpected %s", key, value.TypeName(v))
		}
	}
	if other, used := f.ids[c.ID]; used {
		return fail("the case id %q is already used at %s; rename one of them", c.ID, other)
	}
	f.ids[c.ID] = pos
	f.Cases = append(f.Cases, c)
	return nil
}

// eachLine calls add for the objects of a JSONL or CSV file, with their positions.
func eachLine(file string, add func(pos string, i int, fields map[string]any) error) error {
	data, err := confine.ReadRegular(file, mostBytes)
	if err != nil {
		return err
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // a byte order mark
	switch filepath.Ext(file) {
	case ".csv":
		return eachRow(file, data, add)
	case ".jsonl", ".ndjson":
	default:
		return fmt.Errorf("%s: expected a file .jsonl or .csv", file)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, mostBytes)
	i := 0
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		pos := fmt.Sprintf("%s:%d", file, number)
		v, err := value.Decode(line)
		fields, ok := v.(map[string]any)
		if err == nil && !ok {
			err = errors.New("expected an object")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", pos, err)
		}
		if err := add(pos, i, fields); err != nil {
			return err
		}
		i++
	}
	return lines.Err()
}

// eachRow reads a CSV file with a header. A column input.NAME or expected.NAME is a member;
// columns with other names are members of input. A cell that is JSON is its value, other
// cells are text, and empty cells are left out.
func eachRow(file string, data []byte, add func(pos string, i int, fields map[string]any) error) error {
	rows := csv.NewReader(bytes.NewReader(data))
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	for i := 0; err == nil; i++ {
		var row []string
		if row, err = rows.Read(); err != nil {
			break
		}
		line, _ := rows.FieldPos(0)
		fields := map[string]any{"input": map[string]any{}}
		for j, cell := range row {
			if cell != "" {
				setCell(fields, header[j], cell)
			}
		}
		if err := add(fmt.Sprintf("%s:%d", file, line), i, fields); err != nil {
			return err
		}
	}
	var syntax *csv.ParseError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d:%d: %w", file, syntax.Line, syntax.Column, syntax.Err)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func setCell(fields map[string]any, column, cell string) {
	var v any = cell
	if decoded, err := value.Decode([]byte(cell)); err == nil {
		v = decoded
	}
	group, name, nested := strings.Cut(column, ".")
	switch {
	case column == "tags":
		var tags []any
		for tag := range strings.FieldsSeq(cell) {
			tags = append(tags, tag)
		}
		fields["tags"] = tags
	case column == "id":
		fields["id"] = cell
	case slices.Contains(caseKeys, column):
		fields[column] = v
	case nested && slices.Contains(caseKeys, group):
		object, _ := fields[group].(map[string]any)
		if object == nil {
			object = map[string]any{}
		}
		object[name] = v
		fields[group] = object
	default:
		fields["input"].(map[string]any)[column] = v
	}
}
