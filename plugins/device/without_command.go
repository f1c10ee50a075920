//go:build minimal && !command

package device

import "github.com/the-edge-agent/tea/plugins/device/internal/part"

func commandPart() []part.Part { return nil }
