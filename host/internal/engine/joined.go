package engine

// joined holds the branch results that a fan-in node receives.
type joined struct {
	results []branchResult
	list    []any
}

// failure returns the failure of the first failed branch, nil if there is none.
func (j *joined) failure() error {
	if j == nil {
		return nil
	}
	for i := range j.results {
		if res := &j.results[i]; res.Err != nil {
			return res.failure()
		}
	}
	return nil
}

// entries returns the results in the form that templates of the fan-in node use.
func (j *joined) entries() []any {
	if j.list == nil {
		j.list = make([]any, len(j.results))
		for i := range j.results {
			j.list[i] = j.entry(i)
		}
	}
	return j.list
}

func (j *joined) entry(i int) map[string]any {
	res := &j.results[i]
	entry := map[string]any{
		"branch": res.Branch, "success": res.Err == nil, "state": res.state,
		"error": nil, "error_type": nil, "timeout": res.Timeout, "timing_ms": milliseconds(res.Elapsed),
		"retry_count": int64(res.Retries), "circuit_state": nil,
	}
	if res.Err != nil {
		entry["error"], entry["error_type"] = res.Err.Message, string(res.Err.Type)
	}
	if res.Circuit != "" {
		entry["circuit_state"] = res.Circuit
	}
	return entry
}
