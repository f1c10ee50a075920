package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// buildsPage is the page that `make builds` writes.
var buildsPage = filepath.Join("docs", "reference", "builds.md")

// combinations returns the bundles of the programs on the page.
func combinations() []string {
	return []string{"", "llm", "memory[lite]", "llm,memory[lite]", "llm,memory", "plan", "web", "mcp", "web,plan,mcp", "graph[lite]", "graph"}
}

// writeBuilds builds each combination with bin/tea, measures it and writes the
// page.
func writeBuilds(ctx context.Context, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "tea-builds")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	flow := filepath.Join(dir, "flow.yaml")
	if err := os.WriteFile(flow, []byte("nodes: [{name: a, run: 'return {a = 1}'}]\n"), 0o600); err != nil {
		return err
	}
	var page strings.Builder
	fmt.Fprintf(&page, "# Sizes of builds\n\nWritten by `make builds`: programs of [`tea build`](../guide/builds.md), their sizes, and the time and peak memory of a run\n"+
		"of one Lua node on the %s/%s machine with %d CPUs that wrote this page.\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	page.WriteString("| `--with` | linux/amd64, MB | linux/arm64, MB | linux/arm/v7, MB | start, ms | RSS, MB |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, with := range combinations() {
		row := []string{"`" + with + "`"}
		if with == "" {
			row = []string{"nothing"}
		}
		for _, target := range []string{"linux/amd64", "linux/arm64", "linux/arm/v7"} {
			fmt.Fprintln(progress, with, target)
			size, err := build(ctx, with, target, filepath.Join(dir, strings.ReplaceAll(target, "/", "-")))
			if err != nil {
				return err
			}
			row = append(row, fmt.Sprintf("%.1f", size))
		}
		own, err := timeCommand(ctx, dir, filepath.Join(dir, runtime.GOOS+"-"+runtime.GOARCH), "run", flow, "-q")
		if err != nil {
			return err
		}
		row = append(row, fmt.Sprintf("%.1f", own.shortest), fmt.Sprintf("%.1f", own.rss))
		fmt.Fprintf(&page, "| %s |\n", strings.Join(row, " | "))
	}
	page.WriteString("\nstart is the shortest of several runs. `memory` without `[lite]` links DuckDB where the target has a C++ compiler, here linux/" + runtime.GOARCH + " only.\n")
	return os.WriteFile(buildsPage, []byte(page.String()), 0o600)
}

// build builds a program and returns its size in MB.
func build(ctx context.Context, with, target, output string) (float64, error) {
	args := []string{"build", "-q", "--source", ".", "--target", target, "-o", output}
	if with != "" {
		args = append(args, "--with", with)
	}
	if out, err := exec.CommandContext(ctx, filepath.Join("bin", "tea"), args...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("tea %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	info, err := os.Stat(output)
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / 1e6, nil
}
