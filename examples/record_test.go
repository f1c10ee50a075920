package examples

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/examples/internal/offline"
)

// recordings returns what the examples' models say, by the example's folder.
func recordings() (map[string][]offline.Answer, error) {
	files, err := filepath.Glob("*/answers.yaml")
	if err != nil {
		return nil, err
	}
	all := map[string][]offline.Answer{}
	for _, file := range files {
		example := filepath.Dir(file)
		if all[example], err = offline.Answers(file); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func TestEachAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	all, err := recordings()
	if err != nil || len(all) == 0 {
		t.Fatalf("answers: %v, %v", all, err)
	}
	for example, answers := range all {
		recorded, err := os.ReadFile(filepath.Join(example, "answers.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(recorded), "\n"); n != len(answers) {
			t.Errorf("%s has %d recordings for %d answers; run with -update", example, n, len(answers))
		}
	}
}

// recordAll makes the recordings again that the examples play: each example
// with an answers.yaml runs against a local server of OpenAI's protocol which
// gives those answers.
func recordAll() error {
	all, err := recordings()
	if err != nil {
		return err
	}
	for example, answers := range all {
		if err := record(example, answers); err != nil {
			return fmt.Errorf("record %s: %w", example, err)
		}
	}
	answers, err := offline.Answers("eval/model.yaml")
	if err != nil {
		return err
	}
	return record("eval", answers)
}

func record(example string, answers []offline.Answer) (err error) {
	server := httptest.NewServer(offline.Model(answers, nil))
	defer server.Close()
	dir, err := os.MkdirTemp("", "tea-record-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(dir, os.DirFS(example)); err != nil {
		return err
	}
	made := filepath.Join(dir, "answers.jsonl")
	if err := os.RemoveAll(made); err != nil {
		return err
	}
	connection := fmt.Sprintf(`"api_base":"%s/v1","replay":{"file":"answers.jsonl","record":true,"provider":"openai"}`, server.URL)
	script := "tea run workflow.yaml -q -C '{\"settings\":{\"llm\":{" + connection + "}}}'"
	if _, err := os.Stat(filepath.Join(dir, "input.json")); err == nil {
		script += " -i @input.json"
	}
	if evaluation := filepath.Join(dir, "eval.yaml"); example == "eval" {
		text, err := os.ReadFile(evaluation)
		if err == nil {
			settings := "settings: {llm: {" + connection + "}}\n"
			err = os.WriteFile(evaluation, []byte(settings+strings.Replace(string(text), "replay: {file: answers.jsonl}", connection, 1)), 0o600)
		}
		if err != nil {
			return err
		}
		script = "touch answers.jsonl; tea eval eval.yaml --no-cache"
	}
	res, err := shell(context.Background(), dir, dir, script)
	if err != nil {
		return err
	}
	if res.code != 0 && res.code != 130 {
		return fmt.Errorf("exit code %d\n%s%s", res.code, res.stdout, res.stderr)
	}
	data, err := os.ReadFile(made)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	slices.Sort(lines) // branches record in any order
	lines = slices.Compact(slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" }))
	return os.WriteFile(filepath.Join(example, "answers.jsonl"), []byte(strings.Join(lines, "")), 0o644)
}
