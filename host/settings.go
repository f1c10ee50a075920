package host

// Settings are the workflow's settings with ${VAR} expanded; to read only.
func (wf *Workflow) Settings() map[string]any { return wf.spec.Settings }
