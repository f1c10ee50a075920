// Package deploy_test checks the compose file and the manifests with the programs.
package deploy_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// mount is a volume mount of a container.
type mount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
}

type volume struct {
	Name   string
	Secret struct {
		DefaultMode fs.FileMode `yaml:"defaultMode"`
	}
}

type container struct {
	Image        string
	Args         []string
	VolumeMounts []mount `yaml:"volumeMounts"`
}

type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []container
				Volumes    []volume
			}
		}
	}
}

// build returns the program tea, next to tea-serve and tea-temporal.
func build(t *testing.T) string {
	t.Helper()
	peertest.Long(t, "builds tea")
	bin := t.TempDir()
	for _, name := range []string{"tea", "tea-serve", "tea-temporal"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, name), "./cmd/"+name)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return filepath.Join(bin, "tea")
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	tea := build(t)
	lines := map[string][]string{"compose.yaml": composeCommand(t)}
	modes := map[string]fs.FileMode{} // of the token file
	for _, o := range objects(t) {
		for _, v := range o.Spec.Template.Spec.Volumes {
			if v.Name == "tokens" {
				modes[o.Metadata.Name] = v.Secret.DefaultMode
			}
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			lines[o.Metadata.Name] = c.Args
		}
	}
	if len(lines) != 3 {
		t.Fatalf("command lines: %q", lines)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	// The files of a ConfigMap are links to a hidden directory.
	write("flows/..1/flow.yaml", "name: flow\nnodes: [{name: a, run: 'return {}'}]\n")
	modes["compose.yaml"] = composeTokens(t, filepath.Join(dir, "tokens"))
	if err := errors.Join(os.Symlink("..1", filepath.Join(dir, "flows/..data")), os.Symlink("..data/flow.yaml", filepath.Join(dir, "flows/flow.yaml"))); err != nil {
		t.Fatal(err)
	}
	for name, args := range lines {
		check := append(slices.Clone(args), "--help") // after the flags, because an unknown flag is an error
		if args[0] == "serve" {
			check = append(slices.Clone(args), "--check")
			if err := os.Chmod(filepath.Join(dir, "tokens/tokens"), modes[name]); err != nil {
				t.Fatal(err)
			}
			for i, arg := range check {
				check[i] = strings.NewReplacer("/flows", dir+"/flows", "/data", dir+"/data", "/run/secrets/", dir+"/tokens/", "/tokens/tokens", dir+"/tokens/tokens").Replace(arg)
			}
		}
		cmd := exec.CommandContext(t.Context(), tea, check...)
		cmd.Env = []string{"HOME=" + dir}
		out, err := cmd.CombinedOutput()
		if err != nil || args[0] == "serve" && !strings.Contains(string(out), "1 workflows") {
			t.Errorf("%s: tea %q: %v\n%s", name, check, err, out)
		}
	}
}

// composeTokens makes the token file in a directory with the command at the head of
// compose.yaml, except for its owner, and returns its mode.
func composeTokens(t *testing.T, dir string) fs.FileMode {
	t.Helper()
	page, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.ReadFile("../../scripts/image")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^#   (mkdir .*)$`).FindSubmatch(page)
	user := regexp.MustCompile(`--user (\d+):`).FindSubmatch(image)
	if line == nil || user == nil {
		t.Fatalf("commands in compose.yaml: %q; user of the image: %q", line, user)
	}
	bin := t.TempDir()
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700)); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "umask 022; "+string(line[1])) //nolint:gosec // a line of this directory
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if want := fmt.Sprintf("chown %s tokens\n", user[1]); err != nil || string(out) != want {
		t.Fatalf("%s: %v, as root %q, want %q", line[1], err, out, want)
	}
	info, err := os.Stat(filepath.Join(dir, "tokens"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func composeCommand(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image     string
			Command   []string
			Volumes   []string
			Secrets   []string
			DependsOn []string `yaml:"depends_on"`
		}
		Volumes, Secrets map[string]any
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for name, service := range file.Services {
		if service.Image == "" {
			t.Errorf("%s has no image", name)
		}
		for _, other := range service.DependsOn {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s depends on %s, which does not exist", name, other)
			}
		}
		for _, secret := range service.Secrets {
			if _, ok := file.Secrets[secret]; !ok {
				t.Errorf("%s has an unknown secret %s", name, secret)
			}
		}
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, ok := file.Volumes[source]; !ok && !strings.HasPrefix(source, ".") {
				t.Errorf("%s has an unknown volume %s", name, source)
			}
		}
	}
	return file.Services["tea"].Command
}

// objects returns the documents of kubernetes.yaml.
func objects(t *testing.T) (all []object) {
	t.Helper()
	file, err := os.Open("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for documents := yaml.NewDecoder(file); ; {
		var o object
		if err := documents.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if o.Kind == "" || o.Metadata.Name == "" || o.Metadata.Namespace != "tea" {
			t.Errorf("incomplete: %+v", o)
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(o.Spec.Template.Spec.Volumes, func(v volume) bool { return v.Name == m.Name }) {
					t.Errorf("%s mounts an unknown volume %s", o.Metadata.Name, m.Name)
				}
			}
		}
		all = append(all, o)
	}
}
