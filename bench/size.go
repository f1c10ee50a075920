package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// measureSizes measures the stripped binaries for linux/arm64. `make size` checks the
// same limits.
func measureSizes(ctx context.Context) ([]Figure, error) {
	out, err := os.MkdirTemp("", "tea-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	for _, args := range [][]string{nil, {"static"}} {
		cmd := exec.CommandContext(ctx, filepath.Join("scripts", "build"), args...)
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "OUT="+out)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("build for linux/arm64: %w", err)
		}
	}
	limits := map[string]float64{"tea": 18, "tea-static": 12, "tea-plugin-memory": 22, "tea-plugin-device": 14, "tea-plugin-notify": 12, "tea-plugin-llm": 12}
	binaries, err := os.ReadDir(out)
	if err != nil {
		return nil, err
	}
	var figures []Figure
	for _, b := range binaries {
		info, err := b.Info()
		if err != nil {
			return nil, err
		}
		figures = append(figures, Figure{Name: b.Name() + ", linux/arm64", Value: float64(info.Size()) / 1e6, Unit: "MB", Limit: limits[b.Name()]})
	}
	return figures, nil
}
