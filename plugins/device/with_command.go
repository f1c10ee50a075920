//go:build !minimal || command

package device

import (
	"github.com/the-edge-agent/tea/plugins/device/internal/command"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
)

func commandPart() []part.Part { return []part.Part{command.Part()} }
